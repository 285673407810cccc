/* The folder of compiled code. It belongs to the user alone: a file that another user could have
 * written is not loaded. */
#include "modelica/cache.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t DEFAULT_CACHE_BYTES = UINT64_C(256) << 20;

static bool make_folder(const char *path)
{
    char part[MO_PATH_BYTES];
    snprintf(part, sizeof part, "%s", path);
    for (char *p = part + 1; *p != '\0'; p++)
        if (*p == '/') {
            *p = '\0';
            if (mkdir(part, 0700) != 0 && errno != EEXIST) return false;
            *p = '/';
        }
    return mkdir(part, 0700) == 0 || errno == EEXIST;
}

/* Whether only this user can have put files there. */
static bool is_own_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
           (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool tb_mo_cache_folder(const tb_function_options *options, char *path, size_t size)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (options->cache != NULL && options->cache[0] == '\0') return false;
    if (options->cache != NULL)
        snprintf(path, size, "%s", options->cache);
    else if (base != NULL && base[0] == '/')
        snprintf(path, size, "%s/tribo/functions", base);
    else if (home != NULL && home[0] == '/')
        snprintf(path, size, "%s/.cache/tribo/functions", home);
    else
        return false;
    return strlen(path) < size - 128 && make_folder(path) && is_own_folder(path);
}

bool tb_mo_cache_owns(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
           (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool tb_mo_cache_holds(const char *name)
{
    return strspn(name, "0123456789abcdef") == 64 &&
           (strcmp(name + 64, ".so") == 0 || strcmp(name + 64, ".cubin") == 0);
}

void tb_mo_cache_shrink(const char *folder, const tb_function_options *options)
{
    const uint64_t limit = options->cache_bytes > 0 ? options->cache_bytes : DEFAULT_CACHE_BYTES;
    for (;;) {
        DIR *directory = opendir(folder);
        char oldest[MO_PATH_BYTES + 300] = "", path[MO_PATH_BYTES + 300];
        time_t when = 0;
        uint64_t total = 0;
        int objects = 0;
        struct stat info;
        for (struct dirent *e; directory != NULL && (e = readdir(directory)) != NULL;) {
            if (!tb_mo_cache_holds(e->d_name)) continue;
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
            if (stat(path, &info) != 0) continue;
            total += (uint64_t)info.st_size;
            if (objects++ == 0 || info.st_mtime < when) {
                when = info.st_mtime;
                snprintf(oldest, sizeof oldest, "%s", path);
            }
        }
        if (directory != NULL) closedir(directory);
        if (total <= limit || objects <= 1 || unlink(oldest) != 0) return;
    }
}
