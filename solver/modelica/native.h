/* The C back end: generated C, the system's compiler, and a cache of compiled functions. */
#ifndef TB_MODELICA_NATIVE_H
#define TB_MODELICA_NATIVE_H

#include "base/file.h"
#include "modelica/run.h"

/* An entry point of generated code: arguments are scalars and arrays of the function's inputs,
 * flags and outputs, in the order of its variables. */
typedef void mo_entry(mo_run *run, mo_slot *slot);

/* Text that grows; failed: memory was refused. */
typedef struct mo_text {
    tb_bytes bytes;
    bool failed;
} mo_text;

void tb_mo_print(mo_text *text, const char *format, ...) TB_PRINTF(2, 3);

/* The whole program as C. No text of the source is in it but numbers. */
tb_status tb_mo_emit_c(const mo_program *program, mo_text *text, tb_error *error);

/* Compiled code of a program. */
typedef struct mo_native mo_native;

/* Compiles the program, or takes it from the cache. UNAVAILABLE where no compiler is found. */
tb_status tb_mo_native_load(const mo_program *program, const tb_function_options *options,
                            mo_native **native, double *compile_seconds, tb_error *error);
mo_entry *tb_mo_native_entry(const mo_native *native, int32_t function);
void tb_mo_native_free(mo_native *native);

#endif
