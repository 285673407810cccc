/* Requests: an encoded message becomes a tree of C structs in one bounded arena.
 *
 * protobuf-c takes its memory from the arena and nothing is given back before the whole request is
 * freed, so its bound holds for the sum of everything that unpacking asks for: a message that makes
 * protobuf-c merge and copy in squares of its size is cut off too. The scan foretells the size, so
 * that a usual request costs one allocation. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "wire/request.h"
#include "wire/scan.h"
#include "ops/daemon.h"

enum { ALIGNMENT = 16, FIRST_CHUNK_BYTES = 512, GROWTH_BYTES = 1 << 16 };

typedef struct chunk {
    struct chunk *next;
    size_t size;
} chunk;

struct td_message_arena {
    uint8_t *at;
    size_t left;
    size_t taken, bound; /* bytes of all chunks, and how many may be */
    chunk *chunks;       /* all but the first, which follows the block */
    bool refused;        /* the bound was met, or memory ran out */
    ProtobufCAllocator allocator;
};

/* A request, its arena and the arena's first chunk are one allocation. */
typedef struct request_block {
    td_request request;
    struct td_message_arena arena;
    _Alignas(ALIGNMENT) uint8_t first[];
} request_block;

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Allocates one more chunk of at least `size` bytes. */
static bool arena_grow(struct td_message_arena *arena, size_t size)
{
    const size_t allowed = arena->bound - arena->taken;
    if (size > allowed) return false;
    const size_t capacity = smaller(size > GROWTH_BYTES ? size : GROWTH_BYTES, allowed);
    const size_t header = (sizeof(chunk) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (capacity > SIZE_MAX - header) return false;
    chunk *added = malloc(header + capacity);
    if (added == NULL) return false;
    added->next = arena->chunks;
    added->size = capacity;
    arena->chunks = added;
    arena->taken += capacity;
    arena->at = (uint8_t *)added + header;
    arena->left = capacity;
    return true;
}

static void *arena_take(struct td_message_arena *arena, size_t size)
{
    if (size > SIZE_MAX - ALIGNMENT) {
        arena->refused = true;
        return NULL;
    }
    const size_t whole = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (whole > arena->left && !arena_grow(arena, whole)) {
        arena->refused = true;
        return NULL;
    }
    void *taken = arena->at;
    arena->at += whole;
    arena->left -= whole;
    return taken;
}

static void *allocator_take(void *arena, size_t size)
{
    return arena_take(arena, size);
}

static void allocator_give_back(void *arena, void *pointer)
{
    (void)arena;
    (void)pointer;
}

/* A request without a message, in an arena that holds `first` bytes already. */
static tb_status request_make(size_t first, size_t bound, td_request **request, tb_error *error)
{
    const size_t capacity = smaller(first, bound) / ALIGNMENT * ALIGNMENT;
    request_block *block = malloc(sizeof *block + capacity);
    *request = NULL;
    if (block == NULL) return tb_fail_memory(error, sizeof *block + capacity, "a request");
    block->arena = (struct td_message_arena){
        .at = block->first, .left = capacity, .taken = capacity, .bound = bound};
    block->arena.allocator = (ProtobufCAllocator){
        .alloc = allocator_take, .free = allocator_give_back, .allocator_data = &block->arena};
    block->request = (td_request){.arena = &block->arena};
    *request = &block->request;
    return TB_OK;
}

void td_request_free(td_request *request)
{
    if (request == NULL) return;
    for (chunk *c = request->arena->chunks, *next; c != NULL; c = next) {
        next = c->next;
        free(c);
    }
    free(request); /* the first member of its block */
}

static tb_status fail_too_large(tb_error *error, const ProtobufCMessageDescriptor *type,
                                size_t bound)
{
    return tb_fail(error, TB_RESOURCE_EXHAUSTED,
                   "%s would take more than the %zu bytes that an unpacked request may take",
                   type->name, bound);
}

tb_status td_request_unpack(const td_server *server, const ProtobufCMessageDescriptor *type,
                            const uint8_t *bytes, size_t size, td_request **request,
                            tb_error *error)
{
    const td_config *config = server->config;
    const size_t bound = smaller(config->unpack_bytes, SIZE_MAX / 4);
    size_t memory = 0;
    *request = NULL;

    if (size > config->message_bytes)
        return tb_fail(error, TB_RESOURCE_EXHAUSTED,
                       "%s has %zu bytes, and a message may have %llu", type->name, size,
                       (unsigned long long)config->message_bytes);
    tb_status status = td_scan(type, bytes, size, config->nesting, &memory, error);
    if (status != TB_OK) return status;
    if (memory > bound) return fail_too_large(error, type, bound);

    status = request_make(memory, bound, request, error);
    if (status != TB_OK) return status;
    struct td_message_arena *arena = (*request)->arena;
    (*request)->message = protobuf_c_message_unpack(type, &arena->allocator, size, bytes);
    if ((*request)->message != NULL) return TB_OK;

    status = arena->refused ? fail_too_large(error, type, bound)
                            : tb_fail(error, TB_INVALID_ARGUMENT, "%s is malformed", type->name);
    td_request_free(*request);
    *request = NULL;
    return status;
}

tb_status td_request_create(const td_server *server, const ProtobufCMessageDescriptor *type,
                            td_request **request, tb_error *error)
{
    const size_t bound = smaller(server->config->unpack_bytes, SIZE_MAX / 4);
    tb_status status =
        request_make(type->sizeof_message + FIRST_CHUNK_BYTES, bound, request, error);
    if (status != TB_OK) return status;
    (*request)->message = td_request_allocate(*request, type->sizeof_message);
    if ((*request)->message == NULL) {
        td_request_free(*request);
        *request = NULL;
        return fail_too_large(error, type, bound);
    }
    type->message_init((*request)->message);
    return TB_OK;
}

void *td_request_allocate(td_request *request, size_t size)
{
    void *taken = arena_take(request->arena, size);
    if (taken != NULL) memset(taken, 0, size);
    return taken;
}

tb_status td_page_size(int32_t asked, int32_t *size, tb_error *error)
{
    enum { USUAL = 100, LARGEST = 1000 };
    *size = asked == 0 ? USUAL : asked;
    if (asked >= 0 && asked <= LARGEST) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, "page_size",
                         "page_size is %d, expected 0 to %d", asked, LARGEST);
}
