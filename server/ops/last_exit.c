/* Reads and writes the file `last_exit` of the data folder. See last_exit.h. */
#include "ops/last_exit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

/* The text always has this size: writing it in place needs no room on a full disk. */
enum { SIZE = 8 };
static const char RUNS[SIZE + 1] = "running\n";

static int open_in(const char *folder, char path[4096])
{
    snprintf(path, 4096, "%s/last_exit", folder);
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static tb_status overwrite(int file, const char *path, const char text[SIZE], tb_error *error)
{
    const ssize_t written = pwrite(file, text, SIZE, 0);
    if (written == SIZE) return TB_OK;
    return tb_fail(error, TB_UNAVAILABLE, "%s: %s", path,
                   written < 0 ? strerror(errno) : "not written whole");
}

tb_status td_last_exit_begin(const char *folder, int *last, tb_error *error)
{
    char path[4096], text[SIZE + 1] = "";
    *last = TD_LAST_EXIT_NONE;
    if (folder[0] == '\0') return TB_OK;
    const int file = open_in(folder, path);
    if (file < 0) return tb_fail(error, TB_UNAVAILABLE, "%s: %s", path, strerror(errno));
    if (pread(file, text, SIZE, 0) == SIZE) {
        char *end;
        const long status = strtol(text, &end, 10);
        *last = end != text ? (int)status : TD_LAST_EXIT_KILLED;
    }
    const tb_status status = overwrite(file, path, RUNS, error);
    close(file);
    return status;
}

tb_status td_last_exit_end(const char *folder, int status, tb_error *error)
{
    char path[4096], text[SIZE + 1];
    if (folder[0] == '\0') return TB_OK;
    const int file = open_in(folder, path);
    if (file < 0) return tb_fail(error, TB_UNAVAILABLE, "%s: %s", path, strerror(errno));
    snprintf(text, sizeof text, "%-7d\n", status);
    const tb_status written = overwrite(file, path, text, error);
    close(file);
    return written;
}
