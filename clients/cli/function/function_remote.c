/* tribo function call --server: a daemon compiles and calls; outputs arrive in pieces. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "function/function.h"
#include "tribo/v1/function.pb-c.h"

static size_t bytes_of(const tb_function_value *value)
{
    size_t bytes = value->type == TB_FUNCTION_BOOLEAN ? 1 : 8;
    for (int32_t d = 0; d < value->rank; d++) bytes *= (size_t)value->size[d];
    return bytes;
}

/* Puts a piece of an array where it belongs; the first brings the shape. */
static tb_status take_array(const tb_function_argument *argument, tb_function_value *value,
                            const Tribo__V1__Array *a, uint64_t offset, bool kept, tb_error *error)
{
    if (a == NULL || a->n_shape != (size_t)argument->rank)
        return cli_fail(error, TB_INTERNAL, "", 0, NULL, "the daemon sent an unknown output");
    if (value->data == NULL) {
        *value = (tb_function_value){.type = argument->type, .rank = argument->rank};
        for (size_t d = 0; d < a->n_shape; d++) value->size[d] = a->shape[d];
        if (kept) return TB_OK;
        value->data = calloc(bytes_of(value) + 1, 1);
    }
    if (value->data == NULL || offset > bytes_of(value) || a->data.len > bytes_of(value) - offset)
        return cli_fail(error, TB_INTERNAL, "", 0, NULL, "the daemon sent a wrong output");
    if (a->data.len > 0) memcpy((char *)value->data + offset, a->data.data, a->data.len);
    return TB_OK;
}

static tb_status take_output(function_values *v, const Tribo__V1__CallResponse *m, tb_error *error)
{
    int32_t k = v->info.inputs;
    const int32_t count = v->info.inputs + v->info.outputs;
    while (k < count && strcmp(v->argument[k].name, m->output->name) != 0) k++;
    if (k == count)
        return cli_fail(error, TB_INTERNAL, "", 0, NULL, "the daemon sent an unknown output");
    return take_array(&v->argument[k], &v->value[k], m->output->value, m->offset,
                      m->output->kept[0] != '\0', error);
}

static tb_status receive(tbc_stream *stream, function_values *v, tb_function_timing *timing,
                         tb_error *error)
{
    for (;;) {
        ProtobufCMessage *message = NULL;
        tb_status status = tbc_stream_receive(stream, &message, error);
        if (status != TB_OK || message == NULL) return status;
        const Tribo__V1__CallResponse *m = (const Tribo__V1__CallResponse *)message;
        if (m->event_case == TRIBO__V1__CALL_RESPONSE__EVENT_OUTPUT) {
            status = take_output(v, m, error);
        } else if (m->event_case == TRIBO__V1__CALL_RESPONSE__EVENT_SUMMARY) {
            *timing = (tb_function_timing){.backend = (tb_function_backend)m->summary->backend,
                                           .compile_seconds = m->summary->compile_seconds,
                                           .seconds = m->summary->seconds,
                                           .kernel_seconds = m->summary->kernel_seconds,
                                           .launches = m->summary->launches};
        }
        tbc_free(message);
        if (status != TB_OK) return status;
    }
}

/* ---- fetch and forget ---- */

static tb_status fetch(tbc_client *client, const function_job *job, function_values *v, int32_t k,
                       tb_error *error)
{
    Tribo__V1__FetchRequest request = TRIBO__V1__FETCH_REQUEST__INIT;
    tbc_stream *stream = NULL;
    request.session = (char *)(uintptr_t)job->session;
    request.name = (char *)(uintptr_t)v->kept[k];
    tb_status status = tbc_stream_open(client, "tribo.v1.Function/Fetch",
                                       &tribo__v1__fetch_response__descriptor, 0, &stream, error);
    if (status == TB_OK) status = tbc_stream_send(stream, &request.base, error);
    if (status == TB_OK) status = tbc_stream_half_close(stream, error);
    while (status == TB_OK) {
        ProtobufCMessage *message = NULL;
        status = tbc_stream_receive(stream, &message, error);
        if (status != TB_OK || message == NULL) break;
        const Tribo__V1__FetchResponse *m = (const Tribo__V1__FetchResponse *)message;
        status = take_array(&v->argument[k], &v->value[k], m->value, m->offset, false, error);
        tbc_free(message);
    }
    tbc_stream_close(stream);
    return status;
}

int function_forget(const function_job *job, const char *session)
{
    Tribo__V1__ForgetRequest request = TRIBO__V1__FORGET_REQUEST__INIT;
    ProtobufCMessage *message = NULL;
    tbc_client *client = NULL;
    tb_error error = {0};
    request.session = (char *)(uintptr_t)session;
    if (job->remote.address == NULL) {
        args_complain("function", "arrays are kept by a daemon: --server is missing");
        return CLI_USAGE;
    }
    tb_status status = remote_connect(&job->remote, &client, &error);
    if (status == TB_OK)
        status = tbc_call(client, "tribo.v1.Function/Forget", &request.base,
                          &tribo__v1__forget_response__descriptor, 0, &message, &error);
    if (status == TB_OK) {
        const Tribo__V1__ForgetResponse *m = (const Tribo__V1__ForgetResponse *)message;
        printf("%d arrays of %llu bytes forgotten\n", m->arrays, (unsigned long long)m->bytes);
    } else {
        cli_complain(&error);
    }
    tbc_free(message);
    if (client != NULL) tbc_disconnect(client);
    return cli_exit_code(status);
}

/* ---- call ---- */

/* The messages of a request's arguments. */
typedef struct function_arguments {
    Tribo__V1__FunctionValue *value, **inputs;
    Tribo__V1__Array *array;
    Tribo__V1__KeepOutput *output, **keep;
} function_arguments;

static tb_status open_arguments(const function_values *v, function_arguments *a, tb_error *error)
{
    const size_t inputs = (size_t)v->info.inputs + 1, outputs = (size_t)v->info.outputs + 1;
    a->value = calloc(inputs, sizeof *a->value);
    a->inputs = calloc(inputs, sizeof *a->inputs);
    a->array = calloc(inputs, sizeof *a->array);
    a->output = calloc(outputs, sizeof *a->output);
    a->keep = calloc(outputs, sizeof *a->keep);
    if (a->value != NULL && a->inputs != NULL && a->array != NULL && a->output != NULL &&
        a->keep != NULL)
        return TB_OK;
    return cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL, "no memory");
}

static void close_arguments(function_arguments *a)
{
    free(a->value);
    free(a->inputs);
    free(a->array);
    free(a->output);
    free(a->keep);
}

static void fill_request(const function_values *v, function_arguments *a,
                         Tribo__V1__CallRequest *request)
{
    static const Tribo__V1__DataType DTYPES[] = {TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64,
                                                 TRIBO__V1__DATA_TYPE__DATA_TYPE_INT64,
                                                 TRIBO__V1__DATA_TYPE__DATA_TYPE_UINT8};
    for (int32_t k = 0; k < v->info.inputs; k++) {
        const tb_function_value *given = &v->value[k];
        Tribo__V1__Array *array = &a->array[k];
        if (given->data == NULL && v->kept[k] == NULL) continue;
        tribo__v1__function_value__init(&a->value[k]);
        a->value[k].name = v->argument[k].name;
        if (v->kept[k] != NULL) a->value[k].kept = (char *)(uintptr_t)v->kept[k];
        a->inputs[request->n_inputs++] = &a->value[k];
        if (given->data == NULL) continue;
        tribo__v1__array__init(array);
        array->dtype = DTYPES[given->type];
        array->n_shape = (size_t)given->rank;
        array->shape = v->value[k].size;
        array->data.data = given->data;
        array->data.len = bytes_of(given);
        a->value[k].value = array;
    }
    for (int32_t k = 0; k < v->info.outputs; k++) {
        const int32_t argument = v->info.inputs + k;
        if (v->kept[argument] == NULL) continue;
        tribo__v1__keep_output__init(&a->output[k]);
        a->output[k].output = v->argument[argument].name;
        a->output[k].name = (char *)(uintptr_t)v->kept[argument];
        a->keep[request->n_keep++] = &a->output[k];
    }
    request->inputs = a->inputs;
    request->keep = a->keep;
}

tb_status function_call_remote(const function_job *job, function_values *v,
                               tb_function_timing *timing, tb_error *error)
{
    tbc_client *client = NULL;
    tbc_stream *stream = NULL;
    function_arguments arguments = {0};
    Tribo__V1__CallRequest request = TRIBO__V1__CALL_REQUEST__INIT;
    tb_status status = open_arguments(v, &arguments, error);
    if (status == TB_OK) fill_request(v, &arguments, &request);
    request.program_case = TRIBO__V1__CALL_REQUEST__PROGRAM_SOURCE;
    request.source = job->source;
    request.name = (char *)(uintptr_t)job->path;
    request.function = v->info.name;
    request.backend = (Tribo__V1__FunctionBackend)job->backend;
    request.seconds = job->seconds;
    request.memory_bytes = (uint64_t)(job->memory_mib * 1048576);
    if (job->session != NULL) request.session = (char *)(uintptr_t)job->session;
    if (status == TB_OK) status = remote_connect(&job->remote, &client, error);
    if (status == TB_OK)
        status = tbc_stream_open(client, "tribo.v1.Function/Call",
                                 &tribo__v1__call_response__descriptor, 0, &stream, error);
    if (status == TB_OK) status = tbc_stream_send(stream, &request.base, error);
    if (status == TB_OK) status = tbc_stream_half_close(stream, error);
    if (status == TB_OK) status = receive(stream, v, timing, error);
    tbc_stream_close(stream);
    for (int32_t k = v->info.inputs; k < v->info.inputs + v->info.outputs && status == TB_OK; k++)
        if (v->kept[k] != NULL && v->file[k] != NULL) status = fetch(client, job, v, k, error);
    if (client != NULL) tbc_disconnect(client);
    close_arguments(&arguments);
    return status;
}
