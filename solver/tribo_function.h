/* Functions of Modelica 3.6: compiled once, called with arrays on a processor or a card.
 *
 * A source holds functions, packages of functions, records and constants. A program is a
 * compiled source: immutable, and shared by any number of threads. A call gives every input
 * and gets every output; records count as one argument a field, "state.h".
 *
 * Sources come from callers, so nothing in them is trusted: the compiler accepts Modelica alone,
 * every element access is checked, and each call has limits on time and memory. A failed check
 * (an index, a division, an assertion) ends the call with a status whose message begins
 * "FILE:LINE:COLUMN: ".
 *
 * Semantics: Modelica Language Specification 3.6. Real is double; Integer has 64 bits and a result
 * that does not fit ends the call; the order of operations is that of the source, and sum() adds by a
 * tree, the same on each back end. */
#ifndef TRIBO_FUNCTION_H
#define TRIBO_FUNCTION_H

#include "tribo.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TB_FUNCTION_RANK = 8, TB_FUNCTION_NAME_SIZE = 208 };

typedef enum tb_function_type {
    TB_FUNCTION_REAL,    /* double */
    TB_FUNCTION_INTEGER, /* int64_t */
    TB_FUNCTION_BOOLEAN  /* uint8_t, 0 or 1 */
} tb_function_type;

/* An array that stays between calls: on the card if a call there made or read it, else on the host.
 * Its content does not change, and any number of threads may share it. */
typedef struct tb_function_array tb_function_array;

/* An argument or a result: a scalar (rank 0) or a dense array, last index fastest. */
typedef struct tb_function_value {
    tb_function_type type;
    int32_t rank;
    int64_t size[TB_FUNCTION_RANK];
    void *data;              /* product of size elements, one for a scalar */
    tb_function_array *kept; /* holds the content in place of data; NULL: data does */
} tb_function_value;

typedef enum tb_function_backend {
    TB_FUNCTION_AUTO, /* the card for functions marked for it, else C, else the interpreter */
    TB_FUNCTION_INTERPRETER, /* always available */
    TB_FUNCTION_CPU,         /* C, by the system's compiler */
    TB_FUNCTION_GPU          /* CUDA by NVRTC; the function bears annotation(gpuFunction = true) */
} tb_function_backend;

/* "auto", "interpreter", "cpu", "gpu"; NULL beyond. */
const char *tb_function_backend_name(tb_function_backend backend);

typedef struct tb_function_program tb_function_program;

typedef struct tb_function_options {
    tb_function_backend backend;
    double seconds;        /* longest call; 0: no limit */
    uint64_t memory_bytes; /* arrays of a call; 0: no limit */
    const char *cache;     /* folder of compiled code; NULL: the user's cache folder; "": none */
    uint64_t cache_bytes;  /* size of that folder, oldest removed first; 0: 256 MiB */
    bool (*cancelled)(void *context); /* asked now and then during a call; NULL: never */
    void *cancelled_context;
    const bool *keep; /* by output: it comes back as a kept array, without data; NULL: none */
} tb_function_options;

/* 60 s, 2 GiB, automatic backend, the user's cache. */
tb_function_options tb_function_defaults(void);

/* Location of an error in the source; the error's message holds the cause. */
typedef struct tb_function_fault {
    int32_t line, column; /* from 1; 0: nowhere */
    char caret[512];      /* the source line and a caret below it, two lines, or "" */
} tb_function_fault;

/* Compiles a source of `size` bytes; `name` is the file in messages. `fault` may be NULL.
 * INVALID_ARGUMENT for a source that is wrong, UNSUPPORTED for parts of Modelica that are left out,
 * RESOURCE_EXHAUSTED above a limit. */
tb_status tb_function_compile(const char *source, size_t size, const char *name,
                              tb_function_program **program, tb_function_fault *fault,
                              tb_error *error);
void tb_function_destroy(tb_function_program *program);

/* SHA-256 of the source, 64 hexadecimal digits. */
const char *tb_function_key(const tb_function_program *program);

typedef struct tb_function_argument {
    char name[TB_FUNCTION_NAME_SIZE];
    tb_function_type type;
    int32_t rank;
    bool optional; /* an input with a default value */
} tb_function_argument;

typedef struct tb_function_info {
    char name[TB_FUNCTION_NAME_SIZE]; /* "Package.f" */
    int32_t inputs, outputs;
    bool on_card; /* annotation(gpuFunction = true) */
} tb_function_info;

int32_t tb_function_count(const tb_function_program *program);
/* NOT_FOUND beyond the last. */
tb_status tb_function_describe(const tb_function_program *program, int32_t function,
                               tb_function_info *info);
/* Inputs come first: argument info.inputs is the first output. */
tb_status tb_function_describe_argument(const tb_function_program *program, int32_t function,
                                        int32_t argument, tb_function_argument *info);
/* The function with this name, or with this last part of a dotted name if only one has it; -1. */
int32_t tb_function_find(const tb_function_program *program, const char *name);

/* The report on the loops of a function, a line each: "FILE:LINE:COLUMN: kernel over
 * (i, j)" or the access that forbids one. The caller frees the text. */
tb_status tb_function_report(const tb_function_program *program, int32_t function, char **text,
                             tb_error *error);

/* Fixed-step integrators. */
typedef enum tb_function_method {
    TB_FUNCTION_EULER,
    TB_FUNCTION_MIDPOINT,
    TB_FUNCTION_RUNGE_KUTTA_4,
    TB_FUNCTION_IMPLICIT_EULER /* Newton and BiCGSTAB, to a residual of 1e-12 (1 + |x|) */
} tb_function_method;
/* "euler", "midpoint", "runge_kutta_4", "implicit_euler"; NULL for no method. */
const char *tb_function_method_name(tb_function_method method);
/* Source text: the program's own, followed by a function that integrates a function of rates, x' =
 * f(x, parameters), which has the states as its first inputs and their rates as its outputs, in the
 * same order and shapes. The new function is named with the method, "derivatives_euler"; its inputs are
 * the states with a 0 behind their names, the parameters that have no default, dt and n_steps.
 * FAILED_PRECONDITION if the outputs are not rates of the states. The caller frees the text. */
tb_status tb_function_integrator(const tb_function_program *program, int32_t function,
                                 tb_function_method method, char **source, tb_error *error);

typedef struct tb_function_timing {
    tb_function_backend backend; /* that ran */
    double compile_seconds;      /* s, for code that was not yet compiled */
    double seconds;              /* s, of the call without compiling */
    double kernel_seconds;       /* s, on the card */
    int64_t launches;
} tb_function_timing;

/* Calls a function. inputs[i].data and kept NULL: the default value of an optional input. Outputs are
 * allocated: the caller frees each with tb_function_value_free, also after a failure. `timing` may
 * be NULL. INVALID_ARGUMENT with the input's name for a wrong type, rank or size and for numbers
 * that are not finite; for failures in the function the status and place of the failure:
 * FAILED_PRECONDITION for an assertion, INVALID_ARGUMENT for an index, a size, a division or a
 * domain, DIVERGED for an output that is not finite, DEADLINE_EXCEEDED, CANCELLED,
 * RESOURCE_EXHAUSTED; UNAVAILABLE where the backend is missing. */
tb_status tb_function_call(const tb_function_program *program, int32_t function,
                           const tb_function_options *options, const tb_function_value *inputs,
                           tb_function_value *outputs, tb_function_timing *timing, tb_error *error);

/* Frees the data and releases the kept array. */
void tb_function_value_free(tb_function_value *value);

/* Copies an array of rank 1 to 8. INVALID_ARGUMENT for a scalar, a negative size or an element that is
 * not finite. The caller releases the array. */
tb_status tb_function_array_make(const tb_function_value *value, tb_function_array **array,
                                 tb_error *error);
/* Copies the content to the host: the caller frees the value. ABORTED where the card is lost. */
tb_status tb_function_array_read(tb_function_array *array, tb_function_value *value,
                                 tb_error *error);
/* Type, rank and size; data and kept are NULL. */
tb_function_value tb_function_array_shape(const tb_function_array *array);
/* Bytes of the content. The host and the card may each have a copy. */
uint64_t tb_function_array_bytes(const tb_function_array *array);
/* One user more, and one fewer: the last release frees the array. NULL is fine. */
void tb_function_array_hold(tb_function_array *array);
void tb_function_array_release(tb_function_array *array);

#ifdef __cplusplus
}
#endif

#endif
