/* Reads whole files, writes streams. See files.h. */
#include "common/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cli.h"

tb_status files_read(const char *path, size_t limit, char **text, size_t *size, tb_error *error)
{
    struct stat about;
    /* without O_NONBLOCK, opening a pipe would block until a writer opens it */
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "rb") : NULL;
    if (file == NULL || fstat(descriptor, &about) != 0) {
        const tb_status status = errno == ENOENT ? TB_NOT_FOUND : TB_INVALID_ARGUMENT;
        cli_fail(error, status, path, 0, NULL, "%s", strerror(errno));
        if (file != NULL)
            fclose(file);
        else if (descriptor >= 0)
            close(descriptor);
        return status;
    }

    tb_status status = TB_OK;
    char *bytes = NULL;
    const size_t length = about.st_size > 0 ? (size_t)about.st_size : 0;
    if (!S_ISREG(about.st_mode))
        status = cli_fail(error, TB_INVALID_ARGUMENT, path, 0, NULL, "not a regular file");
    else if (length > limit)
        status = cli_fail(error, TB_RESOURCE_EXHAUSTED, path, 0, NULL,
                          "%zu bytes, more than the limit of %zu", length, limit);
    else if ((bytes = malloc(length + 1)) == NULL)
        status = cli_fail(error, TB_RESOURCE_EXHAUSTED, path, 0, NULL, "no memory for %zu bytes",
                          length);
    else if (fread(bytes, 1, length, file) != length)
        status = cli_fail(error, TB_DATA_LOSS, path, 0, NULL, "could not be read to its end");
    fclose(file);
    if (status != TB_OK) {
        free(bytes);
        return status;
    }
    bytes[length] = '\0';
    *text = bytes;
    *size = length;
    return TB_OK;
}

/* Temporary path for new content, malloc'ed: in the folder of the file that a link leads to. NULL:
 * the path is written directly, as for devices and pipes. */
static char *place_beside(const char *path)
{
    struct stat about;
    const bool there = stat(path, &about) == 0;
    if (there && !S_ISREG(about.st_mode)) return NULL;
    char *target = there ? realpath(path, NULL) : strdup(path);
    if (target == NULL) return NULL;
    const size_t size = strlen(target) + 32;
    char *beside = malloc(size);
    if (beside != NULL) snprintf(beside, size, "%s.%ld.part", target, (long)getpid());
    free(target);
    return beside;
}

tb_status files_create(const char *path, FILE **file, tb_error *error)
{
    if (strcmp(path, "-") == 0) {
        *file = stdout;
        return TB_OK;
    }
    char *beside = place_beside(path);
    /* a file without permission to write is not replaced either */
    const bool closed = beside != NULL && access(path, F_OK) == 0 && access(path, W_OK) != 0;
    *file = closed ? NULL : fopen(beside != NULL ? beside : path, "w");
    const int cause = errno;
    free(beside);
    if (*file == NULL)
        return cli_fail(error, TB_INVALID_ARGUMENT, path, 0, NULL, "cannot be written: %s",
                        strerror(cause));
    return TB_OK;
}

/* Renames the temporary file to its path; true if there was none. */
static bool put_in_place(const char *path)
{
    char *beside = place_beside(path);
    char *target = beside != NULL ? strdup(beside) : NULL;
    bool moved = beside == NULL;
    if (target != NULL) {
        char *mark = strrchr(target, '.');
        *mark = '\0';
        mark = strrchr(target, '.');
        *mark = '\0';
        struct stat about;
        if (stat(target, &about) == 0) (void)chmod(beside, about.st_mode & 07777);
        moved = rename(beside, target) == 0;
    }
    free(target);
    free(beside);
    return moved;
}

void files_abandon(FILE *file, const char *path)
{
    if (file == NULL || file == stdout) return;
    fclose(file);
    char *beside = place_beside(path);
    if (beside != NULL) unlink(beside);
    free(beside);
}

/* ---- inputs and outputs ---- */

static bool same_file(const char *a, const char *b)
{
    struct stat first, second;
    if (strcmp(a, b) == 0) return true;
    if (stat(a, &first) != 0 || stat(b, &second) != 0) return false;
    return first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

static bool is_device(const char *path)
{
    struct stat about;
    return strcmp(path, "-") == 0 || (stat(path, &about) == 0 && !S_ISREG(about.st_mode));
}

tb_status files_check_outputs(const char *const *inputs, int number_of_inputs,
                              const char *const *outputs, int number_of_outputs, tb_error *error)
{
    for (int o = 0; o < number_of_outputs; o++) {
        if (outputs[o] == NULL || is_device(outputs[o])) continue;
        for (int i = 0; i < number_of_inputs; i++)
            if (inputs[i] != NULL && same_file(inputs[i], outputs[o]))
                return cli_fail(error, TB_INVALID_ARGUMENT, outputs[o], 0, NULL,
                                "is read by this command and cannot be its output, too");
        for (int i = 0; i < o; i++)
            if (outputs[i] != NULL && same_file(outputs[i], outputs[o]))
                return cli_fail(error, TB_INVALID_ARGUMENT, outputs[o], 0, NULL,
                                "is named as two outputs");
    }
    return TB_OK;
}

tb_status files_close(FILE *file, const char *path, tb_error *error)
{
    if (file == NULL) return TB_OK;
    const bool printed = file == stdout;
    const bool flushed = fflush(file) == 0 && !ferror(file);
    const bool closed = printed || fclose(file) == 0;
    if (flushed && closed && (printed || put_in_place(path))) return TB_OK;
    return cli_fail(error, TB_DATA_LOSS, path, 0, NULL, "could not be written to its end: %s",
                    strerror(errno));
}

int files_has_extension(const char *path, const char *extension)
{
    const size_t length = strlen(path), n = strlen(extension);
    return length >= n && strcasecmp(path + length - n, extension) == 0;
}
