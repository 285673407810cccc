/* Arenas: see arena.h.
 *
 * Blocks form a list, newest first. Each block is at least as large as all before it together, so a
 * cold arena makes a logarithmic number of allocations. Returning to a mark frees the blocks taken
 * after it; `peak` keeps their size, and the next reset makes one block of that size.
 *
 * Under AddressSanitizer, bytes that are not taken are poisoned: a read past an array's end or
 * after a reset is reported as if each array came from malloc. */
#include "base/arena.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "base/budget.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_POISONS 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define ARENA_POISONS 1
#endif

#ifdef ARENA_POISONS
#include <sanitizer/asan_interface.h>
#define POISON(start, size)   ASAN_POISON_MEMORY_REGION(start, size)
#define UNPOISON(start, size) ASAN_UNPOISON_MEMORY_REGION(start, size)
#else
#define POISON(start, size)   ((void)(start), (void)(size))
#define UNPOISON(start, size) ((void)(start), (void)(size))
#endif

enum {
    FIRST_BLOCK_SIZE = 4096, /* bytes, a page; most arenas outgrow it at once */
    HUGE_PAGE_SIZE = 2 << 20
};

struct tb_arena_block {
    tb_arena_block *older;
    size_t size;   /* bytes behind the header */
    size_t offset; /* bytes taken */
};

/* The header takes a whole alignment unit, so that the memory behind it is aligned too. */
static const size_t header_size = TB_ARENA_ALIGNMENT;
_Static_assert(sizeof(tb_arena_block) <= TB_ARENA_ALIGNMENT, "the header fits its place");

static unsigned char *memory_of(tb_arena_block *block)
{
    return (unsigned char *)block + header_size;
}

/* Gets a block with `size` bytes (a multiple of the alignment) from the system, if the limit
 * allows. */
static bool push_block(tb_arena *arena, size_t size)
{
    if (size > PTRDIFF_MAX - header_size - arena->capacity) return false;
    size_t total = header_size + size;

    /* a large world reads all of its block in every step: huge pages save
     * page walks */
    size_t alignment = TB_ARENA_ALIGNMENT;
    if (total >= 2 * (size_t)HUGE_PAGE_SIZE && arena->limit == 0 && total < PTRDIFF_MAX / 2) {
        alignment = HUGE_PAGE_SIZE;
        total = (total + alignment - 1) / alignment * alignment;
        size = total - header_size;
    }
    if (arena->limit != 0 && arena->capacity + total > arena->limit) return false;

    if (!tb_budget_take(total)) return false;
    arena->allocations++;
    tb_arena_block *block = aligned_alloc(alignment, total);
    if (block == NULL) {
        tb_budget_give_back(total);
        return false;
    }
#ifdef MADV_HUGEPAGE
    if (alignment == HUGE_PAGE_SIZE) (void)madvise(block, total, MADV_HUGEPAGE); /* a hint */
#endif
    block->older = arena->current;
    block->size = size;
    block->offset = 0;
    POISON(memory_of(block), size);
    arena->current = block;
    arena->capacity += total;
    return true;
}

static void pop_block(tb_arena *arena)
{
    tb_arena_block *block = arena->current;
    arena->current = block->older;
    arena->capacity -= header_size + block->size;
    tb_budget_give_back(header_size + block->size);
    UNPOISON(memory_of(block), block->size);
    free(block);
}

void tb_arena_init(tb_arena *arena, size_t limit)
{
    memset(arena, 0, sizeof *arena);
    arena->limit = limit;
}

void tb_arena_destroy(tb_arena *arena)
{
    while (arena->current != NULL) pop_block(arena);
    tb_arena_init(arena, arena->limit);
}

void *tb_arena_take(tb_arena *arena, size_t bytes)
{
    /* whole alignment units, at least one: two pieces never share an address */
    if (bytes > SIZE_MAX - TB_ARENA_ALIGNMENT) return NULL;
    const size_t unit = TB_ARENA_ALIGNMENT;
    const size_t size = bytes == 0 ? unit : (bytes + unit - 1) / unit * unit;

    if (arena->current == NULL || arena->current->size - arena->current->offset < size) {
        /* double the held memory; if that is too much, take only the needed bytes */
        const size_t more =
            arena->capacity > FIRST_BLOCK_SIZE ? arena->capacity / unit * unit : FIRST_BLOCK_SIZE;
        if (!(more > size && push_block(arena, more)) && !push_block(arena, size)) return NULL;
    }

    tb_arena_block *block = arena->current;
    unsigned char *memory = memory_of(block) + block->offset;
    block->offset += size;
    arena->used += size;
    if (arena->used > arena->peak) arena->peak = arena->used;
    UNPOISON(memory, bytes);
    return memory;
}

void *tb_arena_take_array(tb_arena *arena, size_t count, size_t size)
{
    if (size != 0 && count > SIZE_MAX / size) return NULL;
    return tb_arena_take(arena, count * size);
}

void *tb_arena_take_zeroed(tb_arena *arena, size_t count, size_t size)
{
    void *memory = tb_arena_take_array(arena, count, size);
    if (memory != NULL) memset(memory, 0, count * size);
    return memory;
}

char *tb_arena_string(tb_arena *arena, const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = tb_arena_take(arena, size);
    if (copy != NULL) memcpy(copy, text, size);
    return copy;
}

void tb_arena_reset(tb_arena *arena)
{
    arena->used = 0;
    tb_arena_block *block = arena->current;
    if (block == NULL) return;

    /* one block for the peak use, without the unused ends of the blocks */
    size_t size = 0;
    for (const tb_arena_block *b = block; b != NULL; b = b->older) size += b->size;
    if (size < arena->peak) size = arena->peak;
    if (block->older != NULL || block->size < size) {
        /* free first, so that the peak of the process does not double; if the system then
         * refuses, the arena is empty and allocates again on the next take */
        while (arena->current != NULL) pop_block(arena);
        push_block(arena, size);
        return;
    }
    block->offset = 0;
    POISON(memory_of(block), block->size);
}

tb_arena_mark tb_arena_get_mark(const tb_arena *arena)
{
    tb_arena_mark mark = {arena->current, 0, arena->used};
    if (arena->current != NULL) mark.offset = arena->current->offset;
    return mark;
}

void tb_arena_return_to(tb_arena *arena, tb_arena_mark mark)
{
    /* a mark of an empty arena has no block: then the oldest one stays, empty */
    while (arena->current != NULL && arena->current != mark.block &&
           !(mark.block == NULL && arena->current->older == NULL))
        pop_block(arena);
    arena->used = mark.used;
    if (arena->current == NULL) return;
    arena->current->offset = mark.offset;
    POISON(memory_of(arena->current) + mark.offset, arena->current->size - mark.offset);
}

void tb_wish_huge_pages(void *memory, size_t bytes)
{
#ifdef MADV_HUGEPAGE
    if (bytes < 2 * (size_t)HUGE_PAGE_SIZE) return;
    const uintptr_t mask = (uintptr_t)HUGE_PAGE_SIZE - 1;
    const uintptr_t first = ((uintptr_t)memory + mask) & ~mask;
    const uintptr_t end = ((uintptr_t)memory + bytes) & ~mask;
    (void)madvise((void *)first, (size_t)(end - first), MADV_HUGEPAGE);
#else
    (void)memory, (void)bytes;
#endif
}

void *tb_grow(void *items, int32_t count, int32_t *capacity, size_t size)
{
    if (count < 0 || size == 0) return NULL;
    if (items != NULL && count <= *capacity) return items;

    /* grow by half, to at least eight */
    int64_t wanted = (int64_t)*capacity + *capacity / 2;
    if (wanted < 8) wanted = 8;
    if (wanted < count) wanted = count;
    if (wanted > INT32_MAX) wanted = INT32_MAX;
    if ((uint64_t)wanted > PTRDIFF_MAX / size) wanted = count;
    if ((uint64_t)wanted > PTRDIFF_MAX / size) return NULL;

    /* a budget counts old and new memory while the content is copied, as arrays of scenes only grow */
    const size_t held = items != NULL ? (size_t)*capacity * size : 0;
    if (!tb_budget_take((size_t)wanted * size)) return NULL;
    void *grown = realloc(items, (size_t)wanted * size);
    tb_budget_give_back(grown != NULL ? held : (size_t)wanted * size);
    if (grown == NULL) return NULL;
    tb_wish_huge_pages(grown, (size_t)wanted * size);
    *capacity = (int32_t)wanted;
    return grown;
}
