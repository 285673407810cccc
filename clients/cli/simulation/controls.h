/* Controls files: values of the actuators over time.
 *
 *     time,lift,close
 *     0,0,20
 *     1.5,0.2,20
 *
 * CSV with a header. Each row applies from its time until the next row's; before the first row and
 * for actuators without a column the state's own controls apply. Times strictly increase. Blank
 * lines and lines that begin with '#' are ignored. */
#ifndef CLI_CONTROLS_H
#define CLI_CONTROLS_H

#include "tribo.h"

typedef struct control_table {
    int32_t *actuators; /* columns: model index of each */
    double *times;      /* rows, s */
    double *values;     /* rows x columns */
    int32_t columns, rows;
} control_table;

enum { CONTROLS_FILE_LIMIT = 256 << 20 };

/* Parses `size` bytes of text; `path` names it in messages. `actuators` are the names to choose
 * from, `number_of_actuators` of them. Errors name file, line and field. */
tb_status controls_parse(const char *text, size_t size, const char *path,
                         const char *const *actuators, int32_t number_of_actuators,
                         control_table *controls, tb_error *error);
void controls_free(control_table *controls);

/* Row that holds at `time` (a step that begins within `tolerance` before a row's time belongs to
 * the row), -1 before the first. */
int32_t controls_row(const control_table *controls, double time, double tolerance);

#endif
