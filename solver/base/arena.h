/* Arenas: memory allocated piece by piece and freed all at once.
 *
 * A step takes all its scratch from one arena and resets it at its end. An arena that overflows
 * takes extra blocks; the next reset joins them into one, so that a warm step allocates nothing
 * from the system. Arenas count their allocations for tests. */
#ifndef TB_ARENA_H
#define TB_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/device.h"

#ifdef TB_DEVICE
enum { TB_ARENA_ALIGNMENT = 16 }; /* the widest access of a lane; a world's memory is scarce */
#else
enum { TB_ARENA_ALIGNMENT = 64 }; /* a cache line, and enough for every vector unit */
#endif

typedef struct tb_arena_block tb_arena_block;

typedef enum tb_arena_lanes { TB_ARENA_OF_TEAM, TB_ARENA_OF_ONE_LANE } tb_arena_lanes;

typedef struct tb_arena {
    tb_arena_block *current; /* newest block; older ones behind it */
    size_t used;             /* bytes taken since the last reset, with padding */
    size_t peak;             /* largest `used` ever */
    size_t capacity;         /* bytes held from the system */
    int64_t allocations;     /* allocations from the system */
    size_t limit;            /* bytes that may be held; 0: no limit */
    tb_arena_lanes lanes;    /* on a device: lanes that take from it (gpu/device/device_memory.h) */
} tb_arena;

/* A zeroed tb_arena is an empty arena. `limit` 0: none. */
void tb_arena_init(tb_arena *arena, size_t limit);
void tb_arena_destroy(tb_arena *arena);

/* Uninitialised memory, aligned to TB_ARENA_ALIGNMENT, or NULL if the system or the limit
 * refuses. A size of 0 gives a valid pointer. */
TB_EXTERN void *tb_arena_take(tb_arena *arena, size_t bytes);
/* count x size bytes, zeroed; NULL also if the product overflows. */
TB_EXTERN void *tb_arena_take_zeroed(tb_arena *arena, size_t count, size_t size);
/* count x size bytes, not zeroed; NULL also if the product overflows. */
TB_EXTERN void *tb_arena_take_array(tb_arena *arena, size_t count, size_t size);
/* A copy of a string. */
char *tb_arena_string(tb_arena *arena, const char *text);

/* Frees every piece; keeps the memory, joined into one block, for later use. */
TB_EXTERN void tb_arena_reset(tb_arena *arena);

/* A position in the arena: returning to the mark frees everything taken after it. */
typedef struct tb_arena_mark {
    tb_arena_block *block;
    size_t offset, used;
} tb_arena_mark;

TB_EXTERN tb_arena_mark tb_arena_get_mark(const tb_arena *arena);
TB_EXTERN void tb_arena_return_to(tb_arena *arena, tb_arena_mark mark);

#define TB_ARENA_ARRAY(arena, type, count)                                                         \
    ((type *)tb_arena_take_array((arena), (size_t)(count), sizeof(type)))
#define TB_ARENA_ZEROED(arena, type, count)                                                        \
    ((type *)tb_arena_take_zeroed((arena), (size_t)(count), sizeof(type)))

/* Several pieces, one after the other, between tb_arena_begin and tb_arena_end; nothing else takes from the arena
 * meanwhile. On a device the lanes of a team wait for each other at every piece that they take from an arena, but
 * only at the end of these: each lane keeps the account on its own. A refused piece is NULL. */
typedef struct tb_arena_pieces {
    tb_arena *arena;
    size_t used, peak; /* on a device: the lane's account */
} tb_arena_pieces;

#ifndef TB_DEVICE /* there: gpu/device/device_memory.h */
static inline tb_arena_pieces tb_arena_begin(tb_arena *arena)
{
    return (tb_arena_pieces){arena, 0, 0};
}

static inline void *tb_arena_piece(tb_arena_pieces *pieces, size_t count, size_t size)
{
    return tb_arena_take_array(pieces->arena, count, size);
}

static inline void tb_arena_end(const tb_arena_pieces *pieces)
{
    (void)pieces;
}
#endif

#define TB_ARENA_PIECE(pieces, type, count)                                                        \
    ((type *)tb_arena_piece((pieces), (size_t)(count), sizeof(type)))

/* Advises the system to back a malloc block with huge pages. The caller does this before the
 * first write to a block that a step reads in order. Small blocks are skipped; the system may
 * ignore the advice. */
void tb_wish_huge_pages(void *memory, size_t bytes);

/* Grows a heap array by half, to at least `count` items of `size` bytes, keeps its content and
 * writes the new capacity to *capacity. NULL, and no change, if memory is refused. */
void *tb_grow(void *items, int32_t count, int32_t *capacity, size_t size);

#endif
