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
    args_list inputs, outputs, keeps;
    const char *session; /* of kept arrays, or NULL */
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

/* A call: the function's description and its values. */
typedef struct function_values {
    tb_function_info info;
    tb_function_argument *argument; /* inputs, then outputs */
    tb_function_value *value;       /* likewise */
    const char **file;              /* of each output, or NULL */
    const char **kept; /* of each argument, the name that the daemon keeps it under, or NULL */
} function_values;

/* Has a daemon compile and call, and fetches kept outputs that have a file. */
tb_status function_call_remote(const function_job *job, function_values *v,
                               tb_function_timing *timing, tb_error *error);
/* Has a daemon forget the arrays that the calls of a session kept. */
int function_forget(const function_job *job, const char *session);

/* Reads and compiles the source; on failure says why, with the line and a caret. */
tb_status function_load(function_job *job, tb_function_program **program);

#endif
