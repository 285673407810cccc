/* Fuzzes the reader of configuration files. The reader returns values that survive printing and
 * reading again, or a failure that names the file and changes no value. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tb_error error = {0};
    const td_config defaults = td_config_defaults();
    td_config config = defaults;
    const tb_status status = td_config_parse(&config, (const char *)data, size, "fuzz.ini", &error);
    if (status != TB_OK) {
        if (strstr(error.message, "fuzz.ini") == NULL) abort();
        if (!td_config_equal(&config, &defaults)) abort();
        return 0;
    }
    td_config_check(&config, &error);

    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL) return 0;
    td_config_print(&config, out);
    if (fclose(out) != 0) abort();
    td_config again = defaults;
    if (td_config_parse(&again, text, length, "again.ini", &error) != TB_OK) abort();
    if (!td_config_equal(&config, &again)) abort();
    free(text);
    return 0;
}
