/* Filling errors and sending log messages. */
#ifndef TB_ERROR_H
#define TB_ERROR_H

#include "base/device.h"
#include "tribo.h"

#ifdef TB_DEVICE

/* On a device an error carries its status only; the host adds the text. */
TB_FN tb_status tb_fail_status(tb_error *error, tb_status status)
{
    if (error) error->status = status;
    return status;
}

#define tb_fail(error, status, ...)              tb_fail_status((error), (status))
#define tb_fail_field(error, status, field, ...) tb_fail_status((error), (status))
#define tb_fail_memory(error, bytes, what)       tb_fail_status((error), TB_RESOURCE_EXHAUSTED)

#else

#if defined(__GNUC__)
#define TB_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define TB_PRINTF(text, first)
#endif

/* Fills `error` (may be NULL) and returns `status`, so that a failure is one line:
 *     return tb_fail(error, TB_NOT_FOUND, "no body named '%s'", name);
 * The message is one line of valid UTF-8 for any arguments; a long message is cut at the
 * buffer's end. The arguments may point into `error` itself: "%s", error->message wraps a
 * message in another. */
tb_status tb_fail(tb_error *error, tb_status status, const char *format, ...) TB_PRINTF(3, 4);

/* The same with the field at fault. */
tb_status tb_fail_field(tb_error *error, tb_status status, const char *field, const char *format,
                        ...) TB_PRINTF(4, 5);

/* The same with file, line (0: unknown) and field (may be NULL).
 * The message begins "file:line: ". */
tb_status tb_fail_file(tb_error *error, tb_status status, const char *file, int line,
                       const char *field, const char *format, ...) TB_PRINTF(6, 7);

/* RESOURCE_EXHAUSTED for a failed allocation; the message has the bytes (0: unknown) and their
 * purpose. */
tb_status tb_fail_memory(tb_error *error, size_t bytes, const char *what);

/* The error of a batch, of which one world failed: takes over the world's own error, named by the
 * world's index where the batch has several. */
tb_status tb_fail_world(tb_error *error, tb_status status, int32_t worlds, int32_t world,
                        const tb_error *own);

/* Sends one line to the hook; a zeroed hook is silent. */
void tb_log_write(const tb_log *log, tb_log_level level, const char *format, ...) TB_PRINTF(3, 4);

#endif
#endif
