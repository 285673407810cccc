/* Shared by the files of `tribo function`. */
#ifndef CLI_FUNCTION_FUNCTION_H
#define CLI_FUNCTION_FUNCTION_H

#include "common/args.h"
#include "remote/remote.h"
#include "tribo_function.h"

/* Options of the command line of `tribo function call`. */
typedef struct function_job {
    const char *path;     /* of the source */
    const char *function; /* NULL: the only one */
    args_list inputs, outputs;
    int backend;
    int method; /* tb_function_method */
    double seconds, memory_mib;
    bool json;
    remote_options remote; /* address NULL: here */
    char *source;          /* text of the file, from function_load on */
} function_job;

/* Splits "name=value"; NULL, with a complaint, if there is no name. */
const char *function_split(const char *option, const char *text, char *name, size_t size);

/* The function that --function names, or the only one; -1, with a complaint, if there is none. */
int32_t function_choose(const function_job *job, const tb_function_program *program);

int function_compile(function_job *job);
int function_call(function_job *job);

/* Has a daemon compile and call; values are the inputs, then room for the outputs. */
tb_status function_call_remote(const function_job *job, const char *source,
                               const tb_function_info *info, const tb_function_argument *argument,
                               tb_function_value *values, tb_function_timing *timing,
                               tb_error *error);

/* Reads and compiles the source; on failure says why, with the line and a caret. */
tb_status function_load(function_job *job, tb_function_program **program);

#endif
