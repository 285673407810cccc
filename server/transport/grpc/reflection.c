/* grpc.reflection.v1 and v1alpha: the list of services, and the files that define them, from the
 * descriptor set that the build embeds.
 *
 * A response holds a file's bytes as protoc made them; this code parses only the file's name, its
 * imports and the names that it defines (field numbers: google/protobuf/descriptor.proto). Both
 * versions have the same wire format, so v1's messages also serve v1alpha's calls. */
#include "handlers/handlers.h"
#include "transport/grpc/grpc_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grpc/reflection/v1/reflection.pb-c.h"
#include "wire/scan.h"

static const uint8_t DESCRIPTORS[] = {
#include "descriptors.pb.inc"
};

enum { NAME_SIZE = 256, NESTING = 32 };

/* fields of FileDescriptorSet, FileDescriptorProto, DescriptorProto and the like */
enum {
    SET_FILE = 1,
    FILE_NAME = 1,
    FILE_PACKAGE = 2,
    FILE_DEPENDENCY = 3,
    FILE_MESSAGE = 4,
    FILE_ENUM = 5,
    FILE_SERVICE = 6,
    ANY_NAME = 1,
    MESSAGE_FIELD = 2,
    MESSAGE_NESTED = 3,
    MESSAGE_ENUM = 4,
    SERVICE_METHOD = 2
};

typedef struct symbol {
    char *name; /* full */
    int32_t file;
    bool message;
} symbol;

typedef struct file {
    td_wire bytes;
} file;

struct rpc_reflection {
    file *files;
    int32_t file_count;
    symbol *symbols; /* by name */
    size_t symbol_count, symbol_capacity;
};

typedef Grpc__Reflection__V1__ServerReflectionRequest reflection_request;
typedef Grpc__Reflection__V1__ServerReflectionResponse reflection_response;

/* ---- the index ---- */

static bool is_text(const td_wire_field *field)
{
    return field->type == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
}

/* Finds the first field of this number. */
static bool find_field(td_wire wire, uint32_t id, td_wire_field *field)
{
    while (td_wire_next(&wire, field))
        if (field->id == id && is_text(field)) return true;
    return false;
}

/* Writes "scope.name" for the thing described by `thing`. */
static bool full_name(const char *scope, td_wire thing, char name[NAME_SIZE])
{
    td_wire_field field;
    if (!find_field(thing, ANY_NAME, &field)) return false;
    const int length = snprintf(name, NAME_SIZE, "%s%s%.*s", scope, *scope != '\0' ? "." : "",
                                (int)field.size, (const char *)field.bytes);
    return length > 0 && length < NAME_SIZE;
}

static bool add_symbol(rpc_reflection *r, const char *name, int32_t file_index, bool message)
{
    if (r->symbol_count == r->symbol_capacity) {
        const size_t capacity = r->symbol_capacity == 0 ? 256 : 2 * r->symbol_capacity;
        symbol *grown = realloc(r->symbols, capacity * sizeof *grown);
        if (grown == NULL) return false;
        r->symbols = grown;
        r->symbol_capacity = capacity;
    }
    char *copy = strdup(name);
    if (copy == NULL) return false;
    r->symbols[r->symbol_count++] = (symbol){copy, file_index, message};
    return true;
}

static td_wire inside(const td_wire_field *field)
{
    return (td_wire){field->bytes, field->bytes + field->size};
}

/* Adds a message and the names that it defines: nested messages, enums, fields. */
static bool index_message(rpc_reflection *r, int32_t file_index, const char *scope, td_wire thing,
                          int nesting)
{
    char name[NAME_SIZE], member[NAME_SIZE];
    td_wire_field field;
    if (nesting > NESTING || !full_name(scope, thing, name)) return false;
    if (!add_symbol(r, name, file_index, true)) return false;
    while (td_wire_next(&thing, &field)) {
        if (!is_text(&field)) continue;
        if (field.id == MESSAGE_NESTED) {
            if (!index_message(r, file_index, name, inside(&field), nesting + 1)) return false;
        } else if (field.id == MESSAGE_ENUM || field.id == MESSAGE_FIELD) {
            if (!full_name(name, inside(&field), member)) return false;
            if (!add_symbol(r, member, file_index, false)) return false;
        }
    }
    return true;
}

static bool index_service(rpc_reflection *r, int32_t file_index, const char *scope, td_wire thing)
{
    char name[NAME_SIZE], method[NAME_SIZE];
    td_wire_field field;
    if (!full_name(scope, thing, name) || !add_symbol(r, name, file_index, false)) return false;
    while (td_wire_next(&thing, &field))
        if (field.id == SERVICE_METHOD && is_text(&field))
            if (!full_name(name, inside(&field), method) ||
                !add_symbol(r, method, file_index, false))
                return false;
    return true;
}

static bool index_file(rpc_reflection *r, int32_t file_index)
{
    char package[NAME_SIZE] = "", name[NAME_SIZE];
    td_wire wire = r->files[file_index].bytes;
    td_wire_field field;
    if (find_field(wire, FILE_PACKAGE, &field)) {
        if (field.size >= NAME_SIZE) return false;
        memcpy(package, field.bytes, field.size);
        package[field.size] = '\0';
    }
    while (td_wire_next(&wire, &field)) {
        bool good = true;
        if (!is_text(&field)) continue;
        if (field.id == FILE_MESSAGE)
            good = index_message(r, file_index, package, inside(&field), 0);
        if (field.id == FILE_SERVICE) good = index_service(r, file_index, package, inside(&field));
        if (field.id == FILE_ENUM)
            good =
                full_name(package, inside(&field), name) && add_symbol(r, name, file_index, false);
        if (!good) return false;
    }
    return wire.at == wire.end;
}

static int compare_symbols(const void *a, const void *b)
{
    return strcmp(((const symbol *)a)->name, ((const symbol *)b)->name);
}

static bool index_set(rpc_reflection *r)
{
    td_wire set = {DESCRIPTORS, DESCRIPTORS + sizeof DESCRIPTORS};
    td_wire_field field;
    while (td_wire_next(&set, &field)) r->file_count += field.id == SET_FILE && is_text(&field);
    r->files = calloc((size_t)r->file_count + 1, sizeof *r->files);
    if (r->files == NULL) return false;

    set.at = DESCRIPTORS;
    int32_t i = 0;
    while (td_wire_next(&set, &field))
        if (field.id == SET_FILE && is_text(&field)) r->files[i++].bytes = inside(&field);
    for (i = 0; i < r->file_count; i++)
        if (!index_file(r, i)) return false;
    if (r->symbol_count > 0)
        qsort(r->symbols, r->symbol_count, sizeof *r->symbols, compare_symbols);
    return true;
}

tb_status rpc_reflection_create(rpc_reflection **made, tb_error *error)
{
    rpc_reflection *r = calloc(1, sizeof *r);
    *made = r;
    if (r == NULL) return tb_fail_memory(error, sizeof *r, "reflection");
    if (index_set(r)) return TB_OK;
    rpc_reflection_destroy(r);
    *made = NULL;
    return tb_fail(error, TB_INTERNAL, "the descriptors that were built in cannot be read");
}

void rpc_reflection_destroy(rpc_reflection *r)
{
    if (r == NULL) return;
    for (size_t i = 0; i < r->symbol_count; i++) free(r->symbols[i].name);
    free(r->symbols);
    free(r->files);
    free(r);
}

static const symbol *find_symbol(const rpc_reflection *r, const char *name)
{
    char plain[NAME_SIZE];
    if (*name == '.') name++;
    if (strlen(name) >= sizeof plain || r->symbol_count == 0) return NULL;
    strcpy(plain, name);
    /* some clients write a method as "Service/Method" */
    char *slash = strrchr(plain, '/');
    if (slash != NULL) *slash = '.';
    const symbol key = {.name = plain};
    return bsearch(&key, r->symbols, r->symbol_count, sizeof key, compare_symbols);
}

/* -1 if there is none */
static int32_t find_file(const rpc_reflection *r, td_wire_field name)
{
    td_wire_field field;
    for (int32_t i = 0; i < r->file_count; i++)
        if (find_field(r->files[i].bytes, FILE_NAME, &field) && field.size == name.size &&
            memcmp(field.bytes, name.bytes, name.size) == 0)
            return i;
    return -1;
}

/* ---- answers ---- */

/* The file and, once each, all that it imports, in the order of `chosen`; gives their number. */
static size_t choose_files(const rpc_reflection *r, int32_t first, int32_t *chosen)
{
    size_t count = 1;
    chosen[0] = first;
    for (size_t i = 0; i < count; i++) {
        td_wire wire = r->files[chosen[i]].bytes;
        td_wire_field field;
        while (td_wire_next(&wire, &field)) {
            if (field.id != FILE_DEPENDENCY || !is_text(&field)) continue;
            const int32_t imported = find_file(r, field);
            bool known = imported < 0;
            for (size_t j = 0; j < count; j++) known = known || chosen[j] == imported;
            if (!known) chosen[count++] = imported;
        }
    }
    return count;
}

static void answer_error(td_call *call, reflection_response *response, tb_error *error)
{
    Grpc__Reflection__V1__ErrorResponse answer = GRPC__REFLECTION__V1__ERROR_RESPONSE__INIT;
    answer.error_code = tb_status_grpc(error->status);
    answer.error_message = error->message;
    response->message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ERROR_RESPONSE;
    response->error_response = &answer;
    td_call_send(call, &response->base);
}

static void answer_files(td_call *call, const rpc_reflection *r, reflection_response *response,
                         int32_t first)
{
    Grpc__Reflection__V1__FileDescriptorResponse answer =
        GRPC__REFLECTION__V1__FILE_DESCRIPTOR_RESPONSE__INIT;
    tb_error error = {0};
    int32_t *chosen = calloc((size_t)r->file_count, sizeof *chosen);
    ProtobufCBinaryData *bytes = calloc((size_t)r->file_count, sizeof *bytes);
    if (chosen == NULL || bytes == NULL) {
        tb_fail_memory(&error, 0, "descriptors");
        answer_error(call, response, &error);
    } else {
        answer.n_file_descriptor_proto = choose_files(r, first, chosen);
        answer.file_descriptor_proto = bytes;
        for (size_t i = 0; i < answer.n_file_descriptor_proto; i++) {
            const td_wire wire = r->files[chosen[i]].bytes;
            bytes[i].data = (uint8_t *)(uintptr_t)wire.at;
            bytes[i].len = (size_t)(wire.end - wire.at);
        }
        response->message_response_case =
            GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_FILE_DESCRIPTOR_RESPONSE;
        response->file_descriptor_response = &answer;
        td_call_send(call, &response->base);
    }
    free(chosen);
    free(bytes);
}

static void answer_file_name(td_call *call, const rpc_reflection *r, reflection_response *response,
                             const char *name)
{
    tb_error error = {0};
    const int32_t found =
        find_file(r, (td_wire_field){.bytes = (const uint8_t *)name, .size = strlen(name)});
    if (found >= 0) {
        answer_files(call, r, response, found);
    } else {
        tb_fail(&error, TB_NOT_FOUND, "there is no file '%s'", name);
        answer_error(call, response, &error);
    }
}

static void answer_symbol(td_call *call, const rpc_reflection *r, reflection_response *response,
                          const char *name)
{
    tb_error error = {0};
    const symbol *found = find_symbol(r, name);
    if (found != NULL) {
        answer_files(call, r, response, found->file);
    } else {
        tb_fail(&error, TB_NOT_FOUND, "there is no symbol '%s'", name);
        answer_error(call, response, &error);
    }
}

/* proto3 allows extensions only of options, and these files define none. */
static void answer_extension(td_call *call, reflection_response *response, const char *type,
                             int32_t number)
{
    tb_error error = {0};
    tb_fail(&error, TB_NOT_FOUND, "'%s' has no extension %d", type, number);
    answer_error(call, response, &error);
}

static void answer_extension_numbers(td_call *call, const rpc_reflection *r,
                                     reflection_response *response, char *type)
{
    Grpc__Reflection__V1__ExtensionNumberResponse answer =
        GRPC__REFLECTION__V1__EXTENSION_NUMBER_RESPONSE__INIT;
    tb_error error = {0};
    const symbol *found = find_symbol(r, type);
    if (found == NULL || !found->message) {
        tb_fail(&error, TB_NOT_FOUND, "there is no message '%s'", type);
        answer_error(call, response, &error);
        return;
    }
    answer.base_type_name = type;
    response->message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_ALL_EXTENSION_NUMBERS_RESPONSE;
    response->all_extension_numbers_response = &answer;
    td_call_send(call, &response->base);
}

/* Lists every service of a table once; the methods of a service must be consecutive. */
static size_t list_table(const td_method *methods, const char **names, size_t count, size_t limit)
{
    for (const td_method *m = methods; m->name != NULL; m++) {
        bool known = false;
        for (size_t i = 0; i < count; i++) known = known || strcmp(names[i], m->service) == 0;
        if (!known && count < limit) names[count++] = m->service;
    }
    return count;
}

static void answer_services(td_call *call, reflection_response *response)
{
    enum { LIMIT = 32 };
    const char *names[LIMIT];
    Grpc__Reflection__V1__ServiceResponse services[LIMIT], *pointers[LIMIT];
    Grpc__Reflection__V1__ListServiceResponse answer =
        GRPC__REFLECTION__V1__LIST_SERVICE_RESPONSE__INIT;
    size_t count = list_table(td_methods(), names, 0, LIMIT);
    count = list_table(rpc_health_methods, names, count, LIMIT);
    count = list_table(rpc_reflection_methods, names, count, LIMIT);
    for (size_t i = 0; i < count; i++) {
        grpc__reflection__v1__service_response__init(&services[i]);
        services[i].name = (char *)(uintptr_t)names[i];
        pointers[i] = &services[i];
    }
    answer.n_service = count;
    answer.service = pointers;
    response->message_response_case =
        GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_LIST_SERVICES_RESPONSE;
    response->list_services_response = &answer;
    td_call_send(call, &response->base);
}

static void answer(td_call *call, const rpc_reflection *r, reflection_request *request)
{
    reflection_response response = GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__INIT;
    tb_error error = {0};
    response.valid_host = request->host;
    response.original_request = request;
    switch (request->message_request_case) {
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_BY_FILENAME:
        answer_file_name(call, r, &response, request->file_by_filename);
        break;
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_SYMBOL:
        answer_symbol(call, r, &response, request->file_containing_symbol);
        break;
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_FILE_CONTAINING_EXTENSION:
        answer_extension(call, &response, request->file_containing_extension->containing_type,
                         request->file_containing_extension->extension_number);
        break;
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_ALL_EXTENSION_NUMBERS_OF_TYPE:
        answer_extension_numbers(call, r, &response, request->all_extension_numbers_of_type);
        break;
    case GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_LIST_SERVICES:
        answer_services(call, &response);
        break;
    default:
        tb_fail(&error, TB_INVALID_ARGUMENT, "the request asks nothing");
        answer_error(call, &response, &error);
        break;
    }
}

/* ---- the method: the next question is read when the answer before it has left ---- */

static void message(td_call *call, td_request *request)
{
    answer(call, ((rpc_call *)call)->rpc->reflection, (reflection_request *)request->message);
    td_request_free(request);
}

static void writable(td_call *call)
{
    td_call_read(call);
}

static void half_closed(td_call *call)
{
    td_call_finish(call, TB_OK, NULL, 0);
}

static void cancelled(td_call *call)
{
    td_call_finish(call, TB_CANCELLED, NULL, 0);
}

#define METHOD(version)                                                                            \
    {                                                                                              \
        .service = "grpc.reflection." version ".ServerReflection", .name = "ServerReflectionInfo", \
        .client_streaming = true, .server_streaming = true,                                        \
        .input = &grpc__reflection__v1__server_reflection_request__descriptor,                     \
        .output = &grpc__reflection__v1__server_reflection_response__descriptor,                   \
        .message = message, .half_closed = half_closed, .writable = writable,                      \
        .cancelled = cancelled                                                                     \
    }

const td_method rpc_reflection_methods[] = {METHOD("v1"), METHOD("v1alpha"), {.name = NULL}};
