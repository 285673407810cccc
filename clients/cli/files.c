#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"

tb_status files_read(const char *path, size_t limit, char **text, size_t *size, tb_error *error)
{
    struct stat about;
    /* without O_NONBLOCK a pipe would be waited for until somebody writes */
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

tb_status files_create(const char *path, FILE **file, tb_error *error)
{
    *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "w");
    if (*file == NULL)
        return cli_fail(error, TB_INVALID_ARGUMENT, path, 0, NULL, "cannot be written: %s",
                        strerror(errno));
    return TB_OK;
}

tb_status files_close(FILE *file, const char *path, tb_error *error)
{
    if (file == NULL) return TB_OK;
    const int flushed = fflush(file) == 0 && !ferror(file);
    const int closed = file == stdout || fclose(file) == 0;
    if (flushed && closed) return TB_OK;
    return cli_fail(error, TB_DATA_LOSS, path, 0, NULL, "could not be written to its end: %s",
                    strerror(errno));
}

int files_has_extension(const char *path, const char *extension)
{
    const size_t length = strlen(path), n = strlen(extension);
    return length >= n && strcasecmp(path + length - n, extension) == 0;
}
