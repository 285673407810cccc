/* Arrays in NumPy's file format. */
#include "function/npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/files.h"

static const char MAGIC[] = "\x93NUMPY";
enum { MAGIC_BYTES = 6, MOST_BYTES_LOG2 = 32 };

/* An element type of the format. */
typedef struct npy_type {
    const char *descr;
    size_t bytes;
    bool real, boolean;
} npy_type;

static const npy_type TYPES[] = {{"<f8", 8, true, false},  {"<f4", 4, true, false},
                                 {"<i8", 8, false, false}, {"<i4", 4, false, false},
                                 {"|b1", 1, false, true},  {NULL, 0, false, false}};

static tb_status fail(tb_error *error, const char *path, const char *what)
{
    return cli_fail(error, TB_INVALID_ARGUMENT, path, 0, NULL, "%s", what);
}

/* the text behind a key of the header's dictionary, or NULL */
static const char *value_of(const char *header, const char *key)
{
    const char *at = strstr(header, key);
    if (at == NULL) return NULL;
    at += strlen(key);
    while (*at == ' ' || *at == ':') at++;
    return at;
}

static tb_status read_shape(const char *path, const char *text, tb_function_value *value,
                            tb_error *error)
{
    if (text == NULL || *text != '(') return fail(error, path, "the header has no shape");
    text++;
    for (;;) {
        char *end;
        while (*text == ' ' || *text == ',') text++;
        if (*text == ')') return TB_OK;
        const long long size = strtoll(text, &end, 10);
        if (end == text || size < 0) return fail(error, path, "the header's shape is no list");
        if (value->rank == TB_FUNCTION_RANK)
            return fail(error, path, "more than 8 dimensions are left out");
        value->size[value->rank++] = size;
        text = end;
    }
}

static double real_at(const npy_type *from, const char *data, size_t k)
{
    float single;
    double number;
    int32_t small;
    int64_t integer;
    data += k * from->bytes;
    if (from->real && from->bytes == 4) {
        memcpy(&single, data, sizeof single);
        return (double)single;
    }
    if (from->real) {
        memcpy(&number, data, sizeof number);
        return number;
    }
    if (from->bytes == 4) {
        memcpy(&small, data, sizeof small);
        return small;
    }
    memcpy(&integer, data, sizeof integer);
    return (double)integer;
}

static tb_status convert(const char *path, const npy_type *from, const char *data, size_t count,
                         tb_function_value *value, tb_error *error)
{
    const bool fits = value->type == TB_FUNCTION_REAL      ? !from->boolean
                      : value->type == TB_FUNCTION_INTEGER ? !from->boolean && !from->real
                                                           : from->boolean;
    if (!fits) {
        static const char *const NAMES[] = {"Real", "Integer", "Boolean"};
        return cli_fail(error, TB_INVALID_ARGUMENT, path, 0, NULL,
                        "elements are '%s', the input is %s", from->descr, NAMES[value->type]);
    }
    value->data = malloc(count * 8 + 1);
    if (value->data == NULL)
        return cli_fail(error, TB_RESOURCE_EXHAUSTED, path, 0, NULL, "no memory");
    double *real = value->data;
    int64_t *integer = value->data;
    if (value->type == TB_FUNCTION_BOOLEAN) {
        memcpy(value->data, data, count);
    } else if (value->type == TB_FUNCTION_REAL) {
        for (size_t k = 0; k < count; k++) real[k] = real_at(from, data, k);
    } else if (from->bytes == 8) {
        memcpy(value->data, data, count * 8);
    } else {
        for (size_t k = 0; k < count; k++) integer[k] = (int64_t)real_at(from, data, k);
    }
    return TB_OK;
}

static tb_status parse(const char *path, const char *bytes, size_t size, tb_function_value *value,
                       tb_error *error)
{
    const unsigned char *head = (const unsigned char *)bytes;
    if (size < 10 || memcmp(bytes, MAGIC, MAGIC_BYTES) != 0)
        return fail(error, path, "not a file of NumPy (.npy)");
    const bool first = head[6] == 1;
    size_t length = (size_t)(head[8] | head[9] << 8), begin = 10;
    if (!first && size >= 12) {
        length += (size_t)head[10] << 16 | (size_t)head[11] << 24;
        begin = 12;
    }
    char header[1024];
    if (head[6] < 1 || head[6] > 3 || length >= sizeof header || begin + length > size)
        return fail(error, path, "a header that this program cannot read");
    memcpy(header, bytes + begin, length);
    header[length] = '\0';

    const char *descr = value_of(header, "'descr'"), *order = value_of(header, "'fortran_order'");
    const npy_type *type = TYPES;
    while (type->descr != NULL && (descr == NULL || strncmp(descr + 1, type->descr, 3) != 0))
        type++;
    if (type->descr == NULL)
        return fail(error, path, "elements are none of <f8, <f4, <i8, <i4, |b1");
    if (order == NULL || strncmp(order, "False", 5) != 0)
        return fail(error, path, "in Fortran's order, expected C's (numpy.ascontiguousarray)");
    const tb_status status = read_shape(path, value_of(header, "'shape'"), value, error);
    if (status != TB_OK) return status;
    size_t count = 1;
    for (int32_t d = 0; d < value->rank; d++)
        if (__builtin_mul_overflow(count, (size_t)value->size[d], &count)) count = SIZE_MAX / 16;
    if (count > (size - begin - length) / type->bytes)
        return fail(error, path, "shorter than its shape");
    return convert(path, type, bytes + begin + length, count, value, error);
}

tb_status npy_read(const char *path, tb_function_type type, tb_function_value *value,
                   tb_error *error)
{
    char *bytes = NULL;
    size_t size = 0;
    *value = (tb_function_value){.type = type};
    tb_status status = files_read(path, (size_t)1 << MOST_BYTES_LOG2, &bytes, &size, error);
    if (status == TB_OK) status = parse(path, bytes, size, value, error);
    if (status != TB_OK) tb_function_value_free(value);
    free(bytes);
    return status;
}

tb_status npy_write(const char *path, const tb_function_value *value, tb_error *error)
{
    static const char *const DESCR[] = {"<f8", "<i8", "|b1"};
    char shape[256] = "", header[512];
    size_t count = 1, used = 0;
    for (int32_t d = 0; d < value->rank; d++) {
        count *= (size_t)value->size[d];
        used += (size_t)snprintf(shape + used, sizeof shape - used, "%lld,%s",
                                 (long long)value->size[d], d + 1 < value->rank ? " " : "");
    }
    const int length =
        snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }",
                 DESCR[value->type], shape);
    /* data begins at a multiple of 64 */
    const int padded = (length + 1 + 10 + 63) / 64 * 64 - 10;
    FILE *file = NULL;
    const tb_status status = files_create(path, &file, error);
    if (status != TB_OK) return status;
    fwrite(MAGIC, 1, MAGIC_BYTES, file);
    fputc(1, file);
    fputc(0, file);
    fputc(padded & 255, file);
    fputc(padded >> 8, file);
    fprintf(file, "%s%*s\n", header, padded - length - 1, "");
    fwrite(value->data, value->type == TB_FUNCTION_BOOLEAN ? 1 : 8, count, file);
    return files_close(file, path, error);
}
