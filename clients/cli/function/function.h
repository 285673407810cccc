/* Shared by the files of `tribo function`. */
#ifndef CLI_FUNCTION_FUNCTION_H
#define CLI_FUNCTION_FUNCTION_H

#include "common/args.h"
#include "remote/remote.h"
#include "tribo_function.h"

/* What the command line asks for. */
typedef struct function_job {
    const char *path;     /* of the source */
    const char *function; /* NULL: the only one */
    args_list inputs, outputs;
    int backend;
    double seconds, memory_mib;
    bool json;
    remote_options remote; /* address NULL: here */
} function_job;

/* Splits "name=value"; NULL, with a complaint, if there is no name. */
const char *function_split(const char *option, const char *text, char *name, size_t size);

int function_compile(const function_job *job);
int function_call(const function_job *job);

/* Reads and compiles the source; on failure says why, with the line and a caret. */
tb_status function_load(const function_job *job, tb_function_program **program);

#endif
