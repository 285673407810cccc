/* Configuration files: inih parses lines, and this reader counts them, so that every message can
 * name its line. The reader also refuses lines that inih would cut, bytes that are not text, and an
 * option set twice, which is how inih reports a continued line. */
#include <errno.h>
#include <ini.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file.h"
#include "ops/config.h"

/* options of one file; far more than there are */
enum { FILE_LIMIT = 1 << 20, SEEN_LIMIT = 256, SEEN_SIZE = 128 };

typedef struct reading {
    td_config *config;
    const char *name; /* of the file */
    const char *next, *end;
    int line;
    char (*seen)[SEEN_SIZE]; /* SEEN_LIMIT */
    int number_seen;
    tb_status status;
    tb_error *error;
} reading;

static void fail_line(reading *r, const char *field, const char *message)
{
    r->status = tb_fail_file(r->error, TB_INVALID_ARGUMENT, r->name, r->line, field, "%s", message);
}

/* inih's fgets: the next line with its end, NULL after the last or after a failure. */
static char *next_line(char *line, int size, void *context)
{
    reading *r = context;
    if (r->status != TB_OK || r->next == r->end) return NULL;
    r->line++;
    const size_t rest = (size_t)(r->end - r->next);
    const char *end = memchr(r->next, '\n', rest);
    const size_t length = end != NULL ? (size_t)(end - r->next) + 1 : rest;
    if (memchr(r->next, '\0', length) != NULL) {
        fail_line(r, NULL, "the line holds a zero byte");
        return NULL;
    }
    if (size < 2 || length > (size_t)size - 1) {
        char why[64];
        snprintf(why, sizeof why, "the line is longer than %d bytes", size - 3);
        fail_line(r, NULL, why);
        return NULL;
    }
    memcpy(line, r->next, length);
    line[length] = '\0';
    r->next += length;
    return line;
}

static int take(void *context, const char *section, const char *name, const char *value)
{
    reading *r = context;
    if (r->status != TB_OK) return 0;
    tb_error error = {.status = TB_OK};
    char full[SEEN_SIZE], source[TB_ERROR_NAME_SIZE + 16];
    snprintf(full, sizeof full, "%s.%s", section, name);
    snprintf(source, sizeof source, "%s:%d", r->name, r->line);
    r->status = td_config_set(r->config, section, name, value != NULL ? value : "", source, &error);
    if (r->status != TB_OK) {
        if (r->error != NULL) {
            *r->error = error;
            snprintf(r->error->file, sizeof r->error->file, "%s", r->name);
            r->error->line = r->line;
        }
        return 0;
    }
    for (int i = 0; i < r->number_seen; i++) {
        if (strcmp(r->seen[i], full) != 0) continue;
        char why[SEEN_SIZE + 64];
        snprintf(why, sizeof why, "[%s] %s is set a second time, to '%.60s'", section, name, value);
        fail_line(r, full, why);
        return 0;
    }
    memcpy(r->seen[r->number_seen++], full, sizeof full);
    return 1;
}

tb_status td_config_parse(td_config *config, const char *text, size_t size, const char *name,
                          tb_error *error)
{
    td_config changed = *config;
    reading r = {.config = &changed,
                 .name = name,
                 .next = text,
                 .end = text + size,
                 .status = TB_OK,
                 .error = error};
    if (size == 0) return TB_OK;
    if (size > FILE_LIMIT)
        return tb_fail_file(error, TB_INVALID_ARGUMENT, name, 0, NULL, "is larger than %d bytes",
                            FILE_LIMIT);
    r.seen = calloc(SEEN_LIMIT, sizeof *r.seen);
    if (r.seen == NULL) return tb_fail_memory(error, SEEN_LIMIT * sizeof *r.seen, name);

    const int wrong_line = ini_parse_stream(next_line, &r, take, &r);
    if (r.status == TB_OK && wrong_line < 0) {
        r.status = tb_fail_memory(error, 0, name);
    } else if (wrong_line > 0 && (r.status == TB_OK || wrong_line < r.line)) {
        /* inih goes on behind a line that it did not understand: that one is the cause */
        r.line = wrong_line;
        fail_line(&r, NULL, "neither [section] nor option = value");
    }
    free(r.seen);
    if (r.status == TB_OK) *config = changed;
    return r.status;
}

static bool is_pipe(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISFIFO(about.st_mode);
}

/* All that comes through a pipe until its writer closes it. */
static tb_status read_pipe(const char *path, tb_bytes *bytes, tb_error *error)
{
    char piece[4096];
    tb_status status = TB_OK;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return tb_fail_file(error, TB_NOT_FOUND, path, 0, NULL, "cannot be opened: %s",
                            strerror(errno));
    for (size_t n; status == TB_OK && (n = fread(piece, 1, sizeof piece, file)) > 0;) {
        status = tb_bytes_append(bytes, piece, n);
        if (status != TB_OK)
            tb_fail_memory(error, bytes->size, path);
        else if (bytes->size > FILE_LIMIT)
            status = tb_fail_file(error, TB_RESOURCE_EXHAUSTED, path, 0, NULL,
                                  "is larger than %d bytes", FILE_LIMIT);
    }
    if (status == TB_OK && ferror(file))
        status = tb_fail_file(error, TB_DATA_LOSS, path, 0, NULL, "could not be read to its end");
    fclose(file);
    return status;
}

bool td_config_again(const char *path)
{
    return !is_pipe(path);
}

tb_status td_config_read(td_config *config, const char *path, tb_error *error)
{
    tb_bytes file = {0};
    tb_status status = is_pipe(path) ? read_pipe(path, &file, error)
                                     : tb_file_read(path, FILE_LIMIT, &file, error);
    if (status == TB_OK)
        status = td_config_parse(config, (const char *)file.base, file.size, path, error);
    tb_bytes_free(&file);
    return status;
}
