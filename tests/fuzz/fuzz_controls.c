/* Fuzzes the reader of controls files. The reader returns rows of finite numbers in the order
 * of time, or a failure that names the line. The reader belongs to the command, not to the
 * library, so this program compiles it in. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "../../clients/cli/simulation/controls.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const ACTUATORS[] = {"lift", "close", "a,b", "say \"hi\""};
    enum { COUNT = sizeof ACTUATORS / sizeof ACTUATORS[0] };
    control_table table;
    tb_error error = {0};

    const tb_status status =
        controls_parse((const char *)data, size, "fuzz.csv", ACTUATORS, COUNT, &table, &error);
    if (status == TB_OK) {
        if (table.rows < 1 || table.columns < 1 || table.columns > COUNT) abort();
        for (int32_t i = 0; i < table.columns; i++)
            if (table.actuators[i] < 0 || table.actuators[i] >= COUNT) abort();
        for (int32_t i = 0; i < table.rows; i++) {
            if (!isfinite(table.times[i]) || (i > 0 && table.times[i] <= table.times[i - 1]))
                abort();
            if (controls_row(&table, table.times[i], 0) != i) abort();
        }
        for (int32_t i = 0; i < table.rows * table.columns; i++)
            if (!isfinite(table.values[i])) abort();
    } else if (error.message[0] == '\0' || error.line == 0 || table.times != NULL) {
        abort();
    }
    controls_free(&table);
    return 0;
}
