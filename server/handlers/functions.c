/* Handlers of Function: Compile, Call, List, and Fetch and Forget of arrays that calls keep.
 *
 * A worker compiles and calls; as with problems, one worker stays free for requests that take
 * milliseconds. A call ends with its client, its deadline or its own limit, between rounds of its
 * loops. Outputs leave in pieces, and the worker waits while the reader is behind by WINDOW. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "call/memory.h"
#include "call/offload.h"
#include "handlers/handlers.h"
#include "session/programs.h"
#include "session/session.h"
#include "wire/wire.h"

#include "tribo/v1/function.pb-c.h"

enum { WINDOW = 16, PIECE_BYTES = 1 << 20 };
static const double RETRY_AFTER_S = 1, DEFAULT_SECONDS = 60, MOST_SECONDS = 3600;
static const uint64_t DEFAULT_MEMORY_BYTES = UINT64_C(256) << 20;
static const char *const TYPES[] = {"Real", "Integer", "Boolean"};

/* ---- descriptions ---- */

static Tribo__V1__FunctionArgument **describe_arguments(td_wire *wire,
                                                        const tb_function_program *program,
                                                        int32_t function, int32_t first,
                                                        int32_t count)
{
    Tribo__V1__FunctionArgument **list = td_wire_take(wire, ((size_t)count + 1) * sizeof *list);
    for (int32_t k = 0; k < count && !wire->failed; k++) {
        tb_function_argument *a = td_wire_take(wire, sizeof *a);
        list[k] = td_wire_take(wire, sizeof **list);
        if (wire->failed) break;
        tribo__v1__function_argument__init(list[k]);
        tb_function_describe_argument(program, function, first + k, a);
        list[k]->name = a->name;
        list[k]->type = (char *)(uintptr_t)TYPES[a->type];
        list[k]->rank = a->rank;
        list[k]->optional = a->optional;
    }
    return list;
}

/* The compiler's report on a function's loops (kernel, reduction, or the access that forbids a kernel),
 * copied into the wire's arena. */
static char *describe_loops(td_wire *wire, const tb_function_program *program, int32_t function)
{
    char *report = NULL, *copy = NULL;
    if (tb_function_report(program, function, &report, NULL) != TB_OK) return (char *)"";
    copy = td_wire_take(wire, strlen(report) + 1);
    if (copy != NULL) strcpy(copy, report);
    free(report);
    return copy;
}

static Tribo__V1__CompileResponse *describe(td_wire *wire, const tb_function_program *program)
{
    const int32_t count = tb_function_count(program);
    Tribo__V1__CompileResponse *m = td_wire_take(wire, sizeof *m);
    Tribo__V1__FunctionInfo **list = td_wire_take(wire, (size_t)count * sizeof *list);
    if (wire->failed) return NULL;
    tribo__v1__compile_response__init(m);
    m->key = (char *)(uintptr_t)tb_function_key(program);
    m->functions = list;
    m->n_functions = (size_t)count;
    for (int32_t f = 0; f < count && !wire->failed; f++) {
        tb_function_info *info = td_wire_take(wire, sizeof *info);
        list[f] = td_wire_take(wire, sizeof **list);
        if (wire->failed) break;
        tribo__v1__function_info__init(list[f]);
        tb_function_describe(program, f, info);
        list[f]->name = info->name;
        list[f]->card = info->on_card;
        list[f]->n_inputs = (size_t)info->inputs;
        list[f]->n_outputs = (size_t)info->outputs;
        list[f]->inputs = describe_arguments(wire, program, f, 0, info->inputs);
        list[f]->outputs = describe_arguments(wire, program, f, info->inputs, info->outputs);
        list[f]->loops = info->on_card ? describe_loops(wire, program, f) : (char *)"";
    }
    return m;
}

static void reply_or_fail(td_call *call, td_wire *wire, const ProtobufCMessage *message)
{
    tb_error error;
    if (!wire->failed) {
        td_call_reply(call, message);
    } else {
        tb_fail_memory(&error, 0, "an answer");
        td_call_fail(call, &error);
    }
    td_wire_destroy(wire);
}

/* ---- Compile and List ---- */

static const char *file_name(const char *name)
{
    return name[0] != '\0' ? name : "source.mo";
}

static void compile(td_call *call, td_request *request)
{
    const Tribo__V1__CompileRequest *m = (const Tribo__V1__CompileRequest *)request->message;
    tb_error error = {0};
    td_wire wire = {0};
    tb_function_program *program = NULL;
    td_programs *programs = call->server->programs;
    const tb_status status = td_programs_compile(programs, m->source, strlen(m->source),
                                                 file_name(m->name), &program, &error);
    td_request_free(request);
    if (status != TB_OK) {
        if (error.field[0] == '\0') snprintf(error.field, sizeof error.field, "source");
        td_call_fail(call, &error);
        return;
    }
    const Tribo__V1__CompileResponse *response = describe(&wire, program);
    reply_or_fail(call, &wire, response != NULL ? &response->base : NULL);
    td_programs_release(programs, program);
}

void td_function_compile(td_call *call, td_request *request)
{
    td_offload(call, request, compile);
}

/* Adds the arrays of a session to the answer. */
static void describe_arrays(td_call *call, const char *session, td_wire *wire,
                            Tribo__V1__ListResponse *response)
{
    enum { MOST = 256 };
    const td_array_key key = {call->caller.name, session, NULL};
    char(*names)[TD_ARRAY_NAME + 1] = td_wire_take(wire, MOST * sizeof *names);
    tb_function_array *arrays[MOST];
    if (session[0] == '\0' || wire->failed) return;
    const int32_t count = td_arrays_list(call->server->arrays, &key, names, arrays, MOST);
    response->arrays = td_wire_take(wire, ((size_t)count + 1) * sizeof *response->arrays);
    for (int32_t k = 0; k < count; k++) {
        Tribo__V1__KeptArray *a = td_wire_take(wire, sizeof *a);
        tb_function_value *shape = td_wire_take(wire, sizeof *shape);
        if (!wire->failed) {
            tribo__v1__kept_array__init(a);
            *shape = tb_function_array_shape(arrays[k]);
            a->name = names[k];
            a->type = (char *)(uintptr_t)TYPES[shape->type];
            a->shape = shape->size;
            a->n_shape = (size_t)shape->rank;
            a->bytes = tb_function_array_bytes(arrays[k]);
            response->arrays[response->n_arrays++] = a;
        }
        tb_function_array_release(arrays[k]);
    }
}

static void list(td_call *call, td_request *request)
{
    td_wire wire = {0};
    const Tribo__V1__ListRequest *m = (const Tribo__V1__ListRequest *)request->message;
    tb_function_program *programs[TD_PROGRAMS];
    Tribo__V1__ListResponse response = TRIBO__V1__LIST_RESPONSE__INIT;
    const int count = td_programs_list(call->server->programs, programs, TD_PROGRAMS);
    Tribo__V1__CompileResponse *messages[TD_PROGRAMS];
    describe_arrays(call, m->session, &wire, &response);
    td_request_free(request);
    for (int k = 0; k < count; k++) messages[k] = describe(&wire, programs[k]);
    response.n_programs = (size_t)count;
    response.programs = messages;
    reply_or_fail(call, &wire, &response.base);
    for (int k = 0; k < count; k++) td_programs_release(call->server->programs, programs[k]);
}

void td_function_list(td_call *call, td_request *request)
{
    td_offload(call, request, list);
}

/* ---- Call: inputs ---- */

/* A call of a function on a worker. */
typedef struct calling {
    td_call *call;
    tb_function_program *program;
    int32_t function;
    tb_function_info info;
    tb_function_argument *argument;
    tb_function_value *value; /* inputs, then outputs */
    uint64_t memory_bytes;    /* booked */
    tb_function_options options;
    tb_function_timing timing;
    bool *keep;        /* by output, or NULL */
    const char **name; /* by output, of those to keep */
} calling;

static const Tribo__V1__FunctionValue *find_input(const Tribo__V1__CallRequest *m, const char *name)
{
    for (size_t k = 0; k < m->n_inputs; k++)
        if (strcmp(m->inputs[k]->name, name) == 0) return m->inputs[k];
    return NULL;
}

static size_t bytes_of(Tribo__V1__DataType type)
{
    switch (type) {
    case TRIBO__V1__DATA_TYPE__DATA_TYPE_UINT8: return 1;
    case TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT32:
    case TRIBO__V1__DATA_TYPE__DATA_TYPE_INT32: return 4;
    default: return 8;
    }
}

static bool accepts(tb_function_type type, Tribo__V1__DataType given)
{
    const bool whole = given == TRIBO__V1__DATA_TYPE__DATA_TYPE_INT64 ||
                       given == TRIBO__V1__DATA_TYPE__DATA_TYPE_INT32;
    if (type == TB_FUNCTION_BOOLEAN) return given == TRIBO__V1__DATA_TYPE__DATA_TYPE_UINT8;
    if (type == TB_FUNCTION_INTEGER) return whole;
    return whole || given == TRIBO__V1__DATA_TYPE__DATA_TYPE_UNSPECIFIED ||
           given == TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64 ||
           given == TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
}

static void convert(Tribo__V1__DataType from, const uint8_t *data, int64_t count,
                    tb_function_value *value)
{
    const size_t bytes = bytes_of(from);
    const bool real = value->type == TB_FUNCTION_REAL;
    const bool whole = from == TRIBO__V1__DATA_TYPE__DATA_TYPE_INT64 ||
                       from == TRIBO__V1__DATA_TYPE__DATA_TYPE_INT32;
    for (int64_t k = 0; k < count; k++) {
        int64_t integer = 0;
        int32_t small = 0;
        float single = 0;
        const uint8_t *at = data + (size_t)k * bytes;
        if (bytes == 8) memcpy(&integer, at, 8);
        if (bytes == 4) memcpy(&small, at, 4);
        if (bytes == 4) memcpy(&single, at, 4);
        if (value->type == TB_FUNCTION_BOOLEAN)
            ((uint8_t *)value->data)[k] = *at;
        else if (whole && real)
            ((double *)value->data)[k] = (double)(bytes == 8 ? integer : small);
        else if (whole)
            ((int64_t *)value->data)[k] = bytes == 8 ? integer : small;
        else if (bytes == 8)
            memcpy((double *)value->data + k, &integer, 8);
        else
            ((double *)value->data)[k] = (double)single;
    }
}

static tb_status read_input(const Tribo__V1__FunctionValue *given, tb_function_type type,
                            tb_function_value *value, tb_error *error)
{
    const Tribo__V1__Array *a = given->value;
    int64_t count = 1;
    value->type = type;
    if (a == NULL || !accepts(type, a->dtype) || a->n_shape > TB_FUNCTION_RANK)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, given->name,
                             "input '%.80s' is no array of %s", given->name, TYPES[type]);
    value->rank = (int32_t)a->n_shape;
    for (size_t d = 0; d < a->n_shape; d++) {
        value->size[d] = a->shape[d];
        if (a->shape[d] < 0 || __builtin_mul_overflow(count, a->shape[d], &count)) count = -1;
        if (count < 0) break;
    }
    if (count < 0 || (uint64_t)count * bytes_of(a->dtype) != a->data.len)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, given->name,
                             "input '%.80s' has %zu bytes, which its shape does not", given->name,
                             a->data.len);
    value->data = malloc((size_t)count * 8 + 8);
    if (value->data == NULL) return tb_fail_memory(error, (size_t)count * 8, "an input");
    convert(a->dtype, a->data.data, count, value);
    return TB_OK;
}

/* An array of the session, or one that comes with the request and stays for later calls. */
static tb_status read_kept(calling *c, const Tribo__V1__CallRequest *m,
                           const Tribo__V1__FunctionValue *given, tb_function_value *value,
                           tb_error *error)
{
    td_arrays *arrays = c->call->server->arrays;
    const td_array_key key = {c->call->caller.name, m->session, given->kept};
    if (given->value == NULL) return td_arrays_find(arrays, &key, &value->kept, error);
    tb_function_array *made = NULL;
    tb_status status = tb_function_array_make(value, &made, error);
    if (status == TB_OK) status = td_arrays_put(arrays, &key, made, error);
    if (status != TB_OK) {
        if (error->field[0] == '\0') snprintf(error->field, sizeof error->field, "%s", given->name);
        tb_function_array_release(made);
        return status;
    }
    tb_function_value_free(value);
    value->kept = made;
    return TB_OK;
}

/* Which outputs stay, and under which names. */
static tb_status read_keep(calling *c, const Tribo__V1__CallRequest *m, tb_error *error)
{
    if (m->n_keep == 0) return TB_OK;
    c->keep = calloc((size_t)c->info.outputs + 1, sizeof *c->keep);
    c->name = calloc((size_t)c->info.outputs + 1, sizeof *c->name);
    if (c->keep == NULL || c->name == NULL) return tb_fail_memory(error, 0, "a call");
    for (size_t i = 0; i < m->n_keep; i++) {
        const Tribo__V1__KeepOutput *asked = m->keep[i];
        const tb_function_argument *output = c->argument + c->info.inputs;
        int32_t k = 0;
        while (k < c->info.outputs && strcmp(output[k].name, asked->output) != 0) k++;
        if (k == c->info.outputs)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "keep",
                                 "function '%s' has no output '%.80s'", c->info.name,
                                 asked->output);
        c->name[k] = asked->name[0] != '\0' ? asked->name : output[k].name;
        c->keep[k] = true;
        const td_array_key key = {c->call->caller.name, m->session, c->name[k]};
        const tb_status status = td_arrays_check(&key, error);
        if (status != TB_OK) return status;
    }
    c->options.keep = c->keep;
    return TB_OK;
}

/* Puts the outputs that stay where later calls find them. */
static tb_status keep_outputs(calling *c, const char *session, tb_error *error)
{
    tb_status status = TB_OK;
    for (int32_t k = 0; c->keep != NULL && k < c->info.outputs && status == TB_OK; k++) {
        if (!c->keep[k]) continue;
        const td_array_key key = {c->call->caller.name, session, c->name[k]};
        status =
            td_arrays_put(c->call->server->arrays, &key, c->value[c->info.inputs + k].kept, error);
    }
    return status;
}

static tb_status read_inputs(calling *c, const Tribo__V1__CallRequest *m, tb_error *error)
{
    const int32_t inputs = c->info.inputs, count = inputs + c->info.outputs;
    tb_status status = TB_OK;
    c->argument = calloc((size_t)count + 1, sizeof *c->argument);
    c->value = calloc((size_t)count + 1, sizeof *c->value);
    if (c->argument == NULL || c->value == NULL) return tb_fail_memory(error, 0, "a call");
    for (int32_t k = 0; k < count; k++)
        tb_function_describe_argument(c->program, c->function, k, &c->argument[k]);
    for (int32_t k = 0; k < inputs && status == TB_OK; k++) {
        const Tribo__V1__FunctionValue *given = find_input(m, c->argument[k].name);
        if (given == NULL) continue;
        if (given->value != NULL || given->kept[0] == '\0')
            status = read_input(given, c->argument[k].type, &c->value[k], error);
        if (status == TB_OK && given->kept[0] != '\0')
            status = read_kept(c, m, given, &c->value[k], error);
    }
    for (size_t i = 0; i < m->n_inputs && status == TB_OK; i++) {
        int32_t k = 0;
        while (k < inputs && strcmp(c->argument[k].name, m->inputs[i]->name) != 0) k++;
        if (k == inputs)
            status = tb_fail_field(error, TB_INVALID_ARGUMENT, "inputs",
                                   "function '%s' has no input '%.80s'", c->info.name,
                                   m->inputs[i]->name);
    }
    return status;
}

static tb_status find_program(calling *c, const Tribo__V1__CallRequest *m, tb_error *error)
{
    td_programs *programs = c->call->server->programs;
    tb_status status;
    if (m->program_case == TRIBO__V1__CALL_REQUEST__PROGRAM_KEY)
        status = td_programs_find(programs, m->key, &c->program, error);
    else if (m->program_case == TRIBO__V1__CALL_REQUEST__PROGRAM_SOURCE)
        status = td_programs_compile(programs, m->source, strlen(m->source), file_name(m->name),
                                     &c->program, error);
    else
        status = tb_fail_field(error, TB_INVALID_ARGUMENT, "program",
                               "the request has neither source nor key");
    if (status != TB_OK) return status;
    c->function = m->function[0] != '\0'               ? tb_function_find(c->program, m->function)
                  : tb_function_count(c->program) == 1 ? 0
                                                       : -1;
    if (c->function < 0)
        return tb_fail_field(error, TB_NOT_FOUND, "function", "the program has no function '%.80s'",
                             m->function);
    return tb_function_describe(c->program, c->function, &c->info);
}

/* ---- Call: running and answering ---- */

static bool is_cancelled(void *context)
{
    return !td_call_wanted(context, td_monotonic_ns());
}

static tb_status read_options(calling *c, const Tribo__V1__CallRequest *m, tb_error *error)
{
    static const tb_function_backend BACKENDS[] = {TB_FUNCTION_AUTO, TB_FUNCTION_INTERPRETER,
                                                   TB_FUNCTION_CPU, TB_FUNCTION_GPU};
    c->options = tb_function_defaults();
    if ((unsigned)m->backend >= sizeof BACKENDS / sizeof BACKENDS[0])
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "backend", "backend is %d, which is none",
                             (int)m->backend);
    if (!(m->seconds >= 0 && m->seconds <= MOST_SECONDS))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "seconds",
                             "seconds is %g, expected 0 to %g", m->seconds, MOST_SECONDS);
    c->options.backend = BACKENDS[m->backend];
    c->options.seconds = m->seconds > 0 ? m->seconds : DEFAULT_SECONDS;
    c->options.memory_bytes = m->memory_bytes > 0 ? m->memory_bytes : DEFAULT_MEMORY_BYTES;
    c->options.cancelled = is_cancelled;
    c->options.cancelled_context = c->call;
    const tb_status status =
        td_memory_take(c->call->server, c->call->caller.name, c->options.memory_bytes,
                       "the function's arrays", error);
    if (status == TB_OK) c->memory_bytes = c->options.memory_bytes;
    return status;
}

/* waits while the reader is behind; false: the reader has gone */
static bool wait_for_reader(td_call *call)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    while (td_call_queued(call) >= WINDOW) {
        if (!td_call_wanted(call, td_monotonic_ns())) return false;
        nanosleep(&pause, NULL);
    }
    return true;
}

static void send_piece(td_call *call, const char *name, const char *kept, Tribo__V1__Array *array,
                       uint64_t offset)
{
    Tribo__V1__CallResponse response = TRIBO__V1__CALL_RESPONSE__INIT;
    Tribo__V1__FunctionValue output = TRIBO__V1__FUNCTION_VALUE__INIT;
    Tribo__V1__FetchResponse fetched = TRIBO__V1__FETCH_RESPONSE__INIT;
    fetched.value = output.value = array;
    fetched.offset = response.offset = offset;
    output.name = (char *)(uintptr_t)name;
    output.kept = (char *)(uintptr_t)kept;
    response.event_case = TRIBO__V1__CALL_RESPONSE__EVENT_OUTPUT;
    response.output = &output;
    td_call_send(call, name != NULL ? &response.base : &fetched.base);
}

/* Sends an output in pieces, or with a NULL name a fetched array; a kept output is sent without data. */
static void send_array(td_call *call, const char *name, const char *kept,
                       const tb_function_value *value)
{
    static const Tribo__V1__DataType DTYPES[] = {TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64,
                                                 TRIBO__V1__DATA_TYPE__DATA_TYPE_INT64,
                                                 TRIBO__V1__DATA_TYPE__DATA_TYPE_UINT8};
    tb_function_value shape = *value;
    uint64_t bytes = value->type == TB_FUNCTION_BOOLEAN ? 1 : 8;
    for (int32_t d = 0; d < value->rank; d++) bytes *= (uint64_t)value->size[d];
    if (value->data == NULL) bytes = 0;
    for (uint64_t offset = 0; offset == 0 || offset < bytes; offset += PIECE_BYTES) {
        Tribo__V1__Array array = TRIBO__V1__ARRAY__INIT;
        const uint64_t left = bytes - offset;
        if (!wait_for_reader(call)) return;
        array.dtype = DTYPES[value->type];
        array.n_shape = (size_t)value->rank;
        array.shape = shape.size;
        array.data.data = bytes > 0 ? (uint8_t *)value->data + offset : NULL;
        array.data.len = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        send_piece(call, name, kept, &array, offset);
    }
}

static void send_outputs(calling *c)
{
    for (int32_t k = 0; k < c->info.outputs; k++)
        send_array(c->call, c->argument[c->info.inputs + k].name,
                   c->keep != NULL && c->keep[k] ? c->name[k] : "", &c->value[c->info.inputs + k]);
}

static void send_summary(calling *c)
{
    Tribo__V1__CallResponse response = TRIBO__V1__CALL_RESPONSE__INIT;
    Tribo__V1__CallSummary summary = TRIBO__V1__CALL_SUMMARY__INIT;
    summary.backend = (Tribo__V1__FunctionBackend)c->timing.backend;
    summary.compile_seconds = c->timing.compile_seconds;
    summary.seconds = c->timing.seconds;
    summary.kernel_seconds = c->timing.kernel_seconds;
    summary.launches = c->timing.launches;
    summary.key = (char *)(uintptr_t)tb_function_key(c->program);
    response.event_case = TRIBO__V1__CALL_RESPONSE__EVENT_SUMMARY;
    response.summary = &summary;
    td_call_send(c->call, &response.base);
}

static void free_calling(calling *c)
{
    td_server *server = c->call->server;
    for (int32_t k = 0; c->value != NULL && k < c->info.inputs + c->info.outputs; k++)
        tb_function_value_free(&c->value[k]);
    free(c->argument);
    free(c->value);
    free(c->keep);
    free(c->name);
    if (c->memory_bytes > 0) td_memory_give_back(server, c->call->caller.name, c->memory_bytes);
    td_programs_release(server->programs, c->program);
}

/* On a worker. */
static void run(td_call *call, td_request *request)
{
    const Tribo__V1__CallRequest *m = (const Tribo__V1__CallRequest *)request->message;
    td_server *server = call->server;
    calling c = {.call = call};
    tb_error error = {0};
    double retry_after = 0;
    tb_status status = TB_OK;
    const int workers = td_workers_count(server->workers), most = workers > 1 ? workers - 1 : 1;
    if (atomic_fetch_add(&server->solving, 1) >= most) {
        status = tb_fail(&error, TB_RESOURCE_EXHAUSTED,
                         "%d functions and problems are being worked on already", most);
        retry_after = RETRY_AFTER_S;
    }
    if (status == TB_OK) status = find_program(&c, m, &error);
    if (status == TB_OK) status = read_options(&c, m, &error);
    if (status == TB_OK) status = read_inputs(&c, m, &error);
    if (status == TB_OK) status = read_keep(&c, m, &error);
    if (status == TB_OK)
        status = tb_function_call(c.program, c.function, &c.options, c.value,
                                  c.value + c.info.inputs, &c.timing, &error);
    if (status == TB_OK) status = keep_outputs(&c, m->session, &error);
    if (status == TB_CANCELLED && td_monotonic_ns() >= call->deadline_ns)
        status = tb_fail(&error, TB_DEADLINE_EXCEEDED, "the deadline passed during the call");
    if (status == TB_OK) send_outputs(&c);
    if (status == TB_OK) send_summary(&c);
    free_calling(&c);
    td_request_free(request);
    /* before the answer: a client that calls again at once finds its place free */
    atomic_fetch_sub(&server->solving, 1);
    td_call_finish(call, status, status == TB_OK ? NULL : &error, retry_after);
}

void td_function_call(td_call *call, td_request *request)
{
    tb_error error = {0};
    if (!atomic_load(&call->server->draining)) {
        td_offload(call, request, run);
        return;
    }
    td_request_free(request);
    tb_fail(&error, TB_UNAVAILABLE, "the server is stopping");
    td_call_fail(call, &error);
}

void td_function_call_half_closed(td_call *call)
{
    (void)call;
}

void td_function_call_writable(td_call *call)
{
    (void)call; /* the worker looks by itself */
}

void td_function_call_cancelled(td_call *call)
{
    (void)call; /* the worker asks td_call_wanted */
}

/* ---- arrays of a session ---- */

static void fetch(td_call *call, td_request *request)
{
    const Tribo__V1__FetchRequest *m = (const Tribo__V1__FetchRequest *)request->message;
    const td_array_key key = {call->caller.name, m->session, m->name};
    tb_error error = {0};
    tb_function_array *array = NULL;
    tb_function_value value = {0};
    uint64_t booked = 0;
    tb_status status = td_arrays_find(call->server->arrays, &key, &array, &error);
    if (status == TB_OK)
        status = td_memory_take(call->server, call->caller.name, tb_function_array_bytes(array),
                                "the array", &error);
    if (status == TB_OK) booked = tb_function_array_bytes(array);
    if (status == TB_OK) status = tb_function_array_read(array, &value, &error);
    if (status == TB_OK) send_array(call, NULL, "", &value);
    tb_function_value_free(&value);
    tb_function_array_release(array);
    if (booked > 0) td_memory_give_back(call->server, call->caller.name, booked);
    td_request_free(request);
    td_call_finish(call, status, status == TB_OK ? NULL : &error, 0);
}

void td_function_fetch(td_call *call, td_request *request)
{
    td_offload(call, request, fetch);
}

void td_function_fetch_half_closed(td_call *call)
{
    (void)call;
}

void td_function_fetch_writable(td_call *call)
{
    (void)call; /* the worker looks by itself */
}

void td_function_fetch_cancelled(td_call *call)
{
    (void)call; /* the worker asks td_call_wanted */
}

static void forget(td_call *call, td_request *request)
{
    const Tribo__V1__ForgetRequest *m = (const Tribo__V1__ForgetRequest *)request->message;
    Tribo__V1__ForgetResponse response = TRIBO__V1__FORGET_RESPONSE__INIT;
    td_array_key key = {call->caller.name, m->session, NULL};
    for (size_t k = 0; k < m->n_names; k++) {
        key.name = m->names[k];
        td_arrays_forget(call->server->arrays, &key, &response.arrays, &response.bytes);
    }
    if (m->n_names == 0)
        td_arrays_forget(call->server->arrays, &key, &response.arrays, &response.bytes);
    td_request_free(request);
    td_call_reply(call, &response.base);
}

void td_function_forget(td_call *call, td_request *request)
{
    td_offload(call, request, forget);
}
