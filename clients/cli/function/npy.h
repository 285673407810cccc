/* Arrays in NumPy's file format, versions 1 to 3. */
#ifndef CLI_FUNCTION_NPY_H
#define CLI_FUNCTION_NPY_H

#include "tribo_function.h"

/* Reads a file of at most 4 GiB as an array of `type`: Real takes floating-point numbers and
 * integers, Integer takes integers, Boolean takes Booleans; little endian, C order. The caller frees
 * the value with tb_function_value_free. */
tb_status npy_read(const char *path, tb_function_type type, tb_function_value *value,
                   tb_error *error);
tb_status npy_write(const char *path, const tb_function_value *value, tb_error *error);

#endif
