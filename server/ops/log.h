/* Structured log lines on standard error: a level, an event name and fields, as text or as JSON.
 *
 *     td_log_write(log, TB_LOG_INFO, "session.created", "session=%s worlds=%d", id, worlds);
 *
 * The format holds `name=%x` pairs separated by single spaces. Keys, request bytes and other
 * secrets never go in. */
#ifndef SERVER_LOG_H
#define SERVER_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "tribo.h"

typedef struct td_log td_log;

tb_status td_log_create(tb_log_level least, bool json, td_log **, tb_error *);
void td_log_destroy(td_log *);
void td_log_set_level(td_log *, tb_log_level least);
/* A NULL log is silent. */
void td_log_write(td_log *, tb_log_level, const char *event, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The latest lines that were written, at most `lines` of them, the oldest first: text with line ends,
 * cut at `size` from the front, and a zero. Returns its length. */
enum { TD_LOG_TAIL_SIZE = 65536 };
size_t td_log_tail(td_log *, int lines, char *text, size_t size);
/* For library objects that log through a tb_log hook. */
tb_log td_log_hook(td_log *);

#endif
