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

/* Puts a piece of an output where it belongs. */
static tb_status take_piece(const tb_function_argument *argument, int32_t outputs,
                            tb_function_value *values, const Tribo__V1__CallResponse *m,
                            tb_error *error)
{
    int32_t k = 0;
    const Tribo__V1__FunctionValue *output = m->output;
    while (k < outputs && strcmp(argument[k].name, output->name) != 0) k++;
    const Tribo__V1__Array *a = output->value;
    if (k == outputs || a == NULL || a->n_shape != (size_t)argument[k].rank)
        return cli_fail(error, TB_INTERNAL, "", 0, NULL, "the daemon sent an unknown output");
    tb_function_value *value = &values[k];
    if (value->data == NULL) {
        *value = (tb_function_value){.type = argument[k].type, .rank = argument[k].rank};
        for (size_t d = 0; d < a->n_shape; d++) value->size[d] = a->shape[d];
        value->data = calloc(bytes_of(value) + 1, 1);
    }
    if (value->data == NULL || m->offset > bytes_of(value) ||
        a->data.len > bytes_of(value) - m->offset)
        return cli_fail(error, TB_INTERNAL, "", 0, NULL, "the daemon sent a wrong output");
    if (a->data.len > 0) memcpy((char *)value->data + m->offset, a->data.data, a->data.len);
    return TB_OK;
}

static tb_status receive(tbc_stream *stream, const tb_function_argument *argument, int32_t outputs,
                         tb_function_value *values, tb_function_timing *timing, tb_error *error)
{
    for (;;) {
        ProtobufCMessage *message = NULL;
        tb_status status = tbc_stream_receive(stream, &message, error);
        if (status != TB_OK || message == NULL) return status;
        const Tribo__V1__CallResponse *m = (const Tribo__V1__CallResponse *)message;
        if (m->event_case == TRIBO__V1__CALL_RESPONSE__EVENT_OUTPUT) {
            status = take_piece(argument, outputs, values, m, error);
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

tb_status function_call_remote(const function_job *job, const char *source,
                               const tb_function_info *info, const tb_function_argument *argument,
                               tb_function_value *values, tb_function_timing *timing,
                               tb_error *error)
{
    static const Tribo__V1__DataType DTYPES[] = {TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64,
                                                 TRIBO__V1__DATA_TYPE__DATA_TYPE_INT64,
                                                 TRIBO__V1__DATA_TYPE__DATA_TYPE_UINT8};
    const size_t inputs = (size_t)info->inputs;
    tbc_client *client = NULL;
    tbc_stream *stream = NULL;
    Tribo__V1__CallRequest request = TRIBO__V1__CALL_REQUEST__INIT;
    Tribo__V1__FunctionValue *value = calloc(inputs + 1, sizeof *value);
    Tribo__V1__FunctionValue **list = calloc(inputs + 1, sizeof *list);
    Tribo__V1__Array *array = calloc(inputs + 1, sizeof *array);
    tb_status status = TB_OK;
    if (value == NULL || list == NULL || array == NULL)
        status = cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL, "no memory");
    for (size_t k = 0; k < inputs && status == TB_OK; k++) {
        if (values[k].data == NULL) continue;
        tribo__v1__function_value__init(&value[k]);
        tribo__v1__array__init(&array[k]);
        array[k].dtype = DTYPES[values[k].type];
        array[k].n_shape = (size_t)values[k].rank;
        array[k].shape = values[k].size;
        array[k].data.data = values[k].data;
        array[k].data.len = bytes_of(&values[k]);
        value[k].name = (char *)(uintptr_t)argument[k].name;
        value[k].value = &array[k];
        list[request.n_inputs++] = &value[k];
    }
    request.program_case = TRIBO__V1__CALL_REQUEST__PROGRAM_SOURCE;
    request.source = (char *)(uintptr_t)source;
    request.name = (char *)(uintptr_t)job->path;
    request.function = (char *)(uintptr_t)info->name;
    request.inputs = list;
    request.backend = (Tribo__V1__FunctionBackend)job->backend;
    request.seconds = job->seconds;
    request.memory_bytes = (uint64_t)(job->memory_mib * 1048576);
    if (status == TB_OK) status = remote_connect(&job->remote, &client, error);
    if (status == TB_OK)
        status = tbc_stream_open(client, "tribo.v1.Function/Call",
                                 &tribo__v1__call_response__descriptor, 0, &stream, error);
    if (status == TB_OK) status = tbc_stream_send(stream, &request.base, error);
    if (status == TB_OK) status = tbc_stream_half_close(stream, error);
    if (status == TB_OK)
        status = receive(stream, argument + inputs, info->outputs, values + inputs, timing, error);
    tbc_stream_close(stream);
    if (client != NULL) tbc_disconnect(client);
    free(value);
    free(list);
    free(array);
    return status;
}
