/* Reading and writing whole files, byte buffers, paths and numbers: see file.h. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- byte buffers ---------------------------------------------------------------------------- */

void tb_bytes_free(tb_bytes *bytes)
{
    free(bytes->base);
    memset(bytes, 0, sizeof *bytes);
}

/* Reserves `more` bytes and the zero behind them. */
static tb_status reserve(tb_bytes *bytes, size_t more)
{
    if (more > (size_t)PTRDIFF_MAX - 1 - bytes->size) return TB_RESOURCE_EXHAUSTED;
    const size_t needed = bytes->size + more + 1;
    if (bytes->base != NULL && needed <= bytes->capacity) return TB_OK;

    /* grow by half, or to the needed size if that is refused */
    size_t wanted = bytes->capacity + bytes->capacity / 2;
    if (wanted < 64) wanted = 64;
    if (wanted < needed || wanted > PTRDIFF_MAX) wanted = needed;
    unsigned char *grown = realloc(bytes->base, wanted);
    if (grown == NULL && wanted > needed) grown = realloc(bytes->base, wanted = needed);
    if (grown == NULL) return TB_RESOURCE_EXHAUSTED;
    bytes->base = grown;
    bytes->capacity = wanted;
    return TB_OK;
}

tb_status tb_bytes_append(tb_bytes *bytes, const void *data, size_t size)
{
    const tb_status status = reserve(bytes, size);
    if (status != TB_OK) return status;
    if (size > 0) memcpy(bytes->base + bytes->size, data, size);
    bytes->size += size;
    bytes->base[bytes->size] = 0;
    return TB_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Fills the error of a failed system call on a file from errno. */
static tb_status fail_system(tb_error *error, const char *path, const char *verb)
{
    const int number = errno;
    tb_status status = TB_INTERNAL;
    switch (number) {
    case ENOENT:
    case ENOTDIR: status = TB_NOT_FOUND; break;
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case EINVAL:
    case ENXIO: status = TB_INVALID_ARGUMENT; break;
    case EACCES:
    case EPERM:
    case EROFS: status = TB_FAILED_PRECONDITION; break;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOMEM: status = TB_RESOURCE_EXHAUSTED; break;
    default: break;
    }
    char text[128];
    /* the GNU version, which returns the text */
    const char *reason = strerror_r(number, text, sizeof text);
    return tb_fail_file(error, status, path, 0, NULL, "cannot %s: %s", verb, reason);
}

static tb_status fail_not_regular(tb_error *error, const char *path, mode_t mode)
{
    return tb_fail_file(error, TB_INVALID_ARGUMENT, path, 0, NULL, "is a %s, not a regular file",
                        S_ISDIR(mode) ? "folder" : "device, pipe or socket");
}

static tb_status fail_too_large(tb_error *error, const char *path, size_t size, size_t limit)
{
    return tb_fail_file(error, TB_RESOURCE_EXHAUSTED, path, 0, NULL,
                        "has %zu bytes or more, %zu are allowed", size, limit);
}

/* Appends all of an open file to `bytes`. The size is only a hint: the file may grow while it is
 * read, and files of /proc have size 0. */
static tb_status read_all(int file, size_t hint, size_t limit, const char *path, tb_bytes *bytes,
                          tb_error *error)
{
    enum { CHUNK = 65536 };
    size_t room = hint + 1; /* one more byte, to detect the end without growing */
    for (;;) {
        if (reserve(bytes, room) != TB_OK) return tb_fail_memory(error, bytes->size + room, path);
        const size_t free_bytes = bytes->capacity - 1 - bytes->size;
        const ssize_t got = read(file, bytes->base + bytes->size, free_bytes);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return fail_system(error, path, "read");
        if (got == 0) break;
        bytes->size += (size_t)got;
        if (limit != 0 && bytes->size > limit)
            return fail_too_large(error, path, bytes->size, limit);
        room = bytes->capacity - 1 > bytes->size ? 1 : CHUNK;
    }
    bytes->base[bytes->size] = 0;
    return TB_OK;
}

tb_status tb_file_read(const char *path, size_t limit, tb_bytes *bytes, tb_error *error)
{
    bytes->size = 0;
    /* O_NONBLOCK: a pipe without a writer must not block before fstat finds its type */
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) return fail_system(error, path, "open");

    tb_status status = TB_OK;
    struct stat about;
    if (fstat(file, &about) != 0)
        status = fail_system(error, path, "open");
    else if (!S_ISREG(about.st_mode))
        status = fail_not_regular(error, path, about.st_mode);
    else if (limit != 0 && (uintmax_t)about.st_size > limit)
        status = fail_too_large(error, path, (size_t)about.st_size, limit);
    else if ((uintmax_t)about.st_size > PTRDIFF_MAX - 2)
        status = fail_too_large(error, path, (size_t)about.st_size, PTRDIFF_MAX);
    else
        status = read_all(file, (size_t)about.st_size, limit, path, bytes, error);
    close(file);
    if (status != TB_OK) tb_bytes_free(bytes);
    return status;
}

/* Opens a new file beside `path`; its name goes to `temporary`. */
static int open_beside(const char *path, char *temporary, size_t size)
{
    int file = -1;
    for (int attempt = 0; attempt < 100; attempt++) {
        const int length =
            snprintf(temporary, size, "%s.%ld-%d.tmp", path, (long)getpid(), attempt);
        if (length < 0 || (size_t)length >= size) {
            errno = ENAMETOOLONG;
            return -1;
        }
        file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file >= 0 || errno != EEXIST) break;
    }
    return file;
}

static bool write_all(int file, const unsigned char *data, size_t size)
{
    while (size > 0) {
        const ssize_t put = write(file, data, size);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return false;
        data += put;
        size -= (size_t)put;
    }
    return true;
}

/* Makes the rename durable by syncing the folder. A folder that cannot be synced is ignored. */
static void sync_folder_of(const char *path)
{
    char folder[PATH_MAX];
    if (tb_path_join(path, ".", folder, sizeof folder) != TB_OK) return;
    const int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) return;
    fsync(file);
    close(file);
}

tb_status tb_file_write(const char *path, const void *data, size_t size, tb_error *error)
{
    /* rename would also replace a device by a file */
    struct stat about;
    const bool exists = stat(path, &about) == 0;
    if (exists && !S_ISREG(about.st_mode)) return fail_not_regular(error, path, about.st_mode);

    char temporary[PATH_MAX];
    const int file = open_beside(path, temporary, sizeof temporary);
    if (file < 0) return fail_system(error, path, "write");

    /* the new file is complete and on disk before it takes the old file's name and permissions */
    bool ok = write_all(file, data, size);
    if (ok && exists) ok = fchmod(file, about.st_mode & 07777) == 0;
    ok = ok && fsync(file) == 0;
    int number = errno;
    if (close(file) != 0 && ok) {
        number = errno;
        ok = false;
    }
    if (ok && rename(temporary, path) != 0) {
        number = errno;
        ok = false;
    }
    if (!ok) {
        unlink(temporary);
        errno = number;
        return fail_system(error, path, "write");
    }
    sync_folder_of(path);
    return TB_OK;
}

/* ---- paths and numbers ----------------------------------------------------------------------- */

tb_status tb_path_join(const char *base, const char *relative, char *joined, size_t size)
{
    const char *slash = relative[0] == '/' ? NULL : strrchr(base, '/');
    const size_t folder = slash != NULL ? (size_t)(slash - base) + 1 : 0;
    const size_t rest = strlen(relative) + 1;
    if (rest > size || folder > size - rest) return TB_RESOURCE_EXHAUSTED;
    memcpy(joined, base, folder);
    memcpy(joined + folder, relative, rest);
    return TB_OK;
}

void tb_path_normalise(char *path)
{
    /* the part that ".." cannot leave: a scheme with its host or package, or the root */
    char *scheme = strstr(path, "://");
    char *start = scheme != NULL ? scheme + 3 : path;
    const bool rooted = scheme != NULL || *start == '/';
    char *end = scheme == NULL && rooted ? start + 1 : start;
    char *const floor = end;

    for (const char *p = start; *p != 0;) {
        while (*p == '/') p++;
        const size_t length = strcspn(p, "/");
        const bool up = length == 2 && p[0] == '.' && p[1] == '.';
        char *last = end;
        while (last > floor && last[-1] != '/') last--;
        const bool above = end - last == 2 && last[0] == '.' && last[1] == '.';
        if (length == 0 || (length == 1 && p[0] == '.') || (up && end == floor && rooted)) {
            /* nothing */
        } else if (up && end > floor && !above) {
            end = last > floor ? last - 1 : floor;
        } else {
            if (end > floor) *end++ = '/';
            memmove(end, p, length);
            end += length;
        }
        p += length;
    }
    *end = 0;
}

static locale_t plain_locale;

static void make_plain_locale(void)
{
    plain_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

bool tb_parse_number(const char **text, double *number)
{
    /* The program's locale may have a decimal comma, and the library must not change it. The
     * library therefore uses its own "C" locale, which is built into the C library and always
     * available. */
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_plain_locale);

    /* strtod skips white space, including newlines; this function must not */
    const unsigned char first = (unsigned char)**text;
    if (first <= ' ') return false;
    char *end;
    const double value = strtod_l(*text, &end, plain_locale);
    if (end == *text) return false;
    *text = end;
    *number = value;
    return true;
}
