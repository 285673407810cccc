/* Statuses, error messages and logging of libtribo. Part of tribo.h. */
#ifndef TRIBO_BASE_H
#define TRIBO_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- statuses -------------------------------------------------------------------------------- */

/* name, text, gRPC code, HTTP code */
#define TB_STATUS_LIST(X)                                                                          \
    X(OK, "ok", 0, 200)                                                                            \
    X(INVALID_ARGUMENT, "invalid argument", 3, 400)                                                \
    X(NOT_FOUND, "not found", 5, 404)                                                              \
    X(FAILED_PRECONDITION, "failed precondition", 9, 400)                                          \
    X(RESOURCE_EXHAUSTED, "resource exhausted", 8, 429)                                            \
    X(UNSUPPORTED, "not supported", 12, 501)                                                       \
    X(DATA_LOSS, "corrupt data", 15, 500)                                                          \
    X(DIVERGED, "diverged", 10, 409)                                                               \
    X(NOT_CONVERGED, "tolerance not reached", 10, 409)                                             \
    X(DEADLINE_EXCEEDED, "deadline exceeded", 4, 504)                                              \
    X(CANCELLED, "cancelled", 1, 499)                                                              \
    X(UNAVAILABLE, "unavailable", 14, 503)                                                         \
    X(UNAUTHENTICATED, "no valid key", 16, 401)                                                    \
    X(PERMISSION_DENIED, "permission denied", 7, 403)                                              \
    X(ABORTED, "aborted", 10, 409)                                                                 \
    X(INTERNAL, "internal error", 13, 500)

typedef enum tb_status {
#define TB_STATUS_ENUM(name, text, grpc, http) TB_##name,
    TB_STATUS_LIST(TB_STATUS_ENUM)
#undef TB_STATUS_ENUM
} tb_status;

/* The name of a status ("INVALID_ARGUMENT"), its text, and its codes on the wire. Unknown values
 * give "UNKNOWN", "unknown status", 2 and 500. */
const char *tb_status_name(tb_status status);
const char *tb_status_text(tb_status status);
int tb_status_grpc(tb_status status);
int tb_status_http(tb_status status);

enum { TB_ERROR_MESSAGE_SIZE = 512, TB_ERROR_NAME_SIZE = 160 };

/* Cause and location of a failure. The size is fixed, so that an error can be filled when memory
 * runs out. */
typedef struct tb_error {
    tb_status status;
    char message[TB_ERROR_MESSAGE_SIZE]; /* one complete line of English */
    char file[TB_ERROR_NAME_SIZE];       /* file at fault, or "" */
    int line;                            /* line in that file, 0 if unknown */
    char field[TB_ERROR_NAME_SIZE];      /* argument, element or attribute at fault, or "" */
} tb_error;

/* ---- logging --------------------------------------------------------------------------------- */

typedef enum tb_log_level { TB_LOG_DEBUG, TB_LOG_INFO, TB_LOG_WARNING, TB_LOG_ERROR } tb_log_level;

/* Receives messages; `message` lives for the call only. May be called from any thread. */
typedef void tb_log_function(void *context, tb_log_level level, const char *message);

/* Where a library object sends its messages. A zeroed hook is silent. */
typedef struct tb_log {
    tb_log_function *function;
    void *context;
} tb_log;

#ifdef __cplusplus
}
#endif

#endif
