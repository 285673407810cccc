/* See pool.h. */
#include "gpu/device/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static const size_t SMALLEST_BLOCK = 1024;
/* A class begins with this many bytes and then doubles, so that it has few chunks for any number
 * of worlds. */
static const size_t FIRST_CHUNK = (size_t)2 << 20, LARGEST_CHUNK = (size_t)512 << 20;

struct tb_gpu_chunk {
    tb_gpu_chunk *next;
    unsigned char *memory;
    size_t block;
    int32_t blocks, number_of_free;
    int32_t free[]; /* indices, blocks */
};

static size_t class_size(int32_t c)
{
    return (SMALLEST_BLOCK / 4 * (size_t)(4 + c % 4)) << (c / 4);
}

static int32_t class_of(size_t bytes)
{
    int32_t c = 0;
    while (c < TB_GPU_POOL_CLASSES && class_size(c) < bytes) c++;
    return c;
}

/* How many blocks the next chunk of a class has. */
static size_t blocks_wanted(const tb_gpu_pool *pool, int32_t c)
{
    const size_t size = class_size(c);
    size_t have = 0;
    for (const tb_gpu_chunk *k = pool->chunks[c]; k != NULL; k = k->next) have += (size_t)k->blocks;
    size_t wanted = FIRST_CHUNK / size > have ? FIRST_CHUNK / size : have;
    if (wanted > LARGEST_CHUNK / size) wanted = LARGEST_CHUNK / size;
    const size_t room = pool->limit > pool->bytes ? (size_t)(pool->limit - pool->bytes) / size : 0;
    if (wanted > room) wanted = room;
    return wanted > 0 || room == 0 ? wanted : 1;
}

static tb_status add_chunk(tb_gpu_pool *pool, tb_gpu_device *device, int32_t c, tb_error *error)
{
    const size_t size = class_size(c), blocks = blocks_wanted(pool, c);
    if (blocks == 0)
        return tb_fail(error, TB_RESOURCE_EXHAUSTED,
                       "card %d: %zu bytes for a world are beyond the %llu that worlds may take",
                       device->index, size, (unsigned long long)pool->limit);
    tb_gpu_chunk *chunk = malloc(sizeof *chunk + blocks * sizeof *chunk->free);
    if (chunk == NULL) return tb_fail_memory(error, blocks * sizeof *chunk->free, "a pool");
    tb_gpu_buffer memory = {0};
    tb_error whole;
    size_t n = blocks;
    tb_status status = tb_gpu_reserve(device, &memory, n * size, &whole);
    if (status == TB_RESOURCE_EXHAUSTED && n > 1) {
        n = 1; /* one at least */
        status = tb_gpu_reserve(device, &memory, size, &whole);
    }
    if (status != TB_OK) {
        free(chunk);
        if (error != NULL) *error = whole;
        return status;
    }
    *chunk = (tb_gpu_chunk){.next = pool->chunks[c],
                            .memory = memory.memory,
                            .block = size,
                            .blocks = (int32_t)n,
                            .number_of_free = (int32_t)n};
    for (int32_t i = 0; i < chunk->blocks; i++) chunk->free[i] = chunk->blocks - 1 - i;
    pool->chunks[c] = chunk;
    pool->bytes += n * size;
    return TB_OK;
}

tb_status tb_gpu_pool_take(tb_gpu_pool *pool, tb_gpu_device *device, size_t bytes,
                           tb_gpu_allocation *place, tb_error *error)
{
    const int32_t c = class_of(bytes);
    *place = (tb_gpu_allocation){0};
    if (c == TB_GPU_POOL_CLASSES)
        return tb_fail(error, TB_RESOURCE_EXHAUSTED, "a world of %zu bytes", bytes);
    tb_gpu_chunk *chunk = pool->chunks[c];
    while (chunk != NULL && chunk->number_of_free == 0) chunk = chunk->next;
    if (chunk == NULL) {
        const tb_status status = add_chunk(pool, device, c, error);
        if (status != TB_OK) return status;
        chunk = pool->chunks[c];
    }
    const int32_t index = chunk->free[--chunk->number_of_free];
    place->memory = chunk->memory + (size_t)index * chunk->block;
    place->chunk = chunk;
    pool->used += chunk->block;
    return TB_OK;
}

void tb_gpu_pool_give(tb_gpu_pool *pool, tb_gpu_allocation *place)
{
    tb_gpu_chunk *chunk = place->chunk;
    if (place->memory == NULL) return;
    const size_t offset = (size_t)((unsigned char *)place->memory - chunk->memory);
    chunk->free[chunk->number_of_free++] = (int32_t)(offset / chunk->block);
    pool->used -= chunk->block;
    *place = (tb_gpu_allocation){0};
}

static void drop(tb_gpu_pool *pool, tb_gpu_device *device, tb_gpu_chunk *chunk)
{
    const size_t bytes = (size_t)chunk->blocks * chunk->block;
    tb_gpu_buffer memory = {.memory = chunk->memory, .capacity = bytes};
    tb_gpu_release(device, &memory);
    pool->bytes -= bytes;
    free(chunk);
}

void tb_gpu_pool_trim(tb_gpu_pool *pool, tb_gpu_device *device)
{
    for (int32_t c = 0; c < TB_GPU_POOL_CLASSES; c++) {
        for (tb_gpu_chunk **link = &pool->chunks[c]; *link != NULL;) {
            tb_gpu_chunk *chunk = *link;
            if (chunk->number_of_free < chunk->blocks) {
                link = &chunk->next;
                continue;
            }
            *link = chunk->next;
            drop(pool, device, chunk);
        }
    }
}

void tb_gpu_pool_destroy(tb_gpu_pool *pool, tb_gpu_device *device)
{
    for (int32_t c = 0; c < TB_GPU_POOL_CLASSES; c++)
        for (tb_gpu_chunk *chunk = pool->chunks[c], *next; chunk != NULL; chunk = next) {
            next = chunk->next;
            drop(pool, device, chunk);
        }
    *pool = (tb_gpu_pool){0};
}
