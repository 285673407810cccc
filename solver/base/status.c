/* Names, texts and wire codes of the statuses, from TB_STATUS_LIST in tribo.h. */
#include "tribo.h"

typedef struct status_row {
    const char *name, *text;
    int grpc, http;
} status_row;

/* The row of a status, or the row of an unknown one: a status may come from a file or from the
 * wire. */
static const status_row *row_of(tb_status status)
{
    static const status_row rows[] = {
#define STATUS_ROW(name, text, grpc, http) {#name, text, grpc, http},
        TB_STATUS_LIST(STATUS_ROW)
#undef STATUS_ROW
    };
    static const status_row unknown = {"UNKNOWN", "unknown status", 2, 500};
    const size_t index = (size_t)status;
    return index < sizeof rows / sizeof rows[0] ? &rows[index] : &unknown;
}

const char *tb_status_name(tb_status status)
{
    return row_of(status)->name;
}

const char *tb_status_text(tb_status status)
{
    return row_of(status)->text;
}

int tb_status_grpc(tb_status status)
{
    return row_of(status)->grpc;
}

int tb_status_http(tb_status status)
{
    return row_of(status)->http;
}
