// See grid_play.h. Barriers are the syncs; operations of several lanes at once on a card are atomic
// here, so that ThreadSanitizer sees all others.
#define TB_DEVICE      1
#define TB_GRID_PLAYED 1
#include "base/grid.h"

#include "grid_play.h"

#include <pthread.h>
#include <stdlib.h>

enum { MOST = 8 };

static struct {
    int32_t blocks, lanes;
    pthread_barrier_t all, block[MOST];
    double parts[MOST][MOST];
    void (*work)(const void *argument);
    const void *argument;
} grid = {};

static thread_local int32_t self;

int32_t tb_grid_lane(void)
{
    return self;
}

int32_t tb_grid_lanes(void)
{
    return grid.blocks * grid.lanes;
}

int32_t tb_grid_thread_block(void)
{
    return self / grid.lanes;
}

int32_t tb_grid_thread_blocks(void)
{
    return grid.blocks;
}

int32_t tb_block_lane(void)
{
    return self % grid.lanes;
}

int32_t tb_block_lanes(void)
{
    return grid.lanes;
}

void tb_grid_sync(void)
{
    pthread_barrier_wait(&grid.all);
}

double tb_block_sum(double x)
{
    const int32_t block = tb_grid_thread_block();
    double sum = 0;
    pthread_barrier_wait(&grid.block[block]); // the last sum has been read
    grid.parts[block][tb_block_lane()] = x;
    pthread_barrier_wait(&grid.block[block]);
    for (int32_t k = 0; k < grid.lanes; k++) sum += grid.parts[block][k];
    return sum;
}

template <typename number>
static void change(number *into, number x, bool (*wanted)(number, number))
{
    number old = __atomic_load_n(into, __ATOMIC_RELAXED);
    while (wanted(x, old) &&
           !__atomic_compare_exchange_n(into, &old, x, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
}

void tb_grid_max_u32(uint32_t *into, uint32_t x)
{
    change<uint32_t>(into, x, [](uint32_t a, uint32_t b) { return a > b; });
}

void tb_grid_min_u32(uint32_t *into, uint32_t x)
{
    change<uint32_t>(into, x, [](uint32_t a, uint32_t b) { return a < b; });
}

void tb_grid_max_u64(uint64_t *into, uint64_t x)
{
    change<uint64_t>(into, x, [](uint64_t a, uint64_t b) { return a > b; });
}

void tb_grid_add(int32_t *into, int32_t x)
{
    __atomic_fetch_add(into, x, __ATOMIC_RELAXED);
}

int32_t tb_grid_take(int32_t *from, int32_t x)
{
    return __atomic_fetch_add(from, x, __ATOMIC_RELAXED);
}

int32_t tb_grid_read(const int32_t *from)
{
    return __atomic_load_n(from, __ATOMIC_RELAXED);
}

void tb_grid_write(int32_t *to, int32_t x)
{
    __atomic_store_n(to, x, __ATOMIC_RELAXED);
}

int32_t tb_grid_arrive(int32_t *counter)
{
    return __atomic_fetch_add(counter, 1, __ATOMIC_ACQ_REL);
}

// ---- launches ----

void grid_choose(int32_t blocks, int32_t lanes)
{
    if (blocks < 1 || blocks > MOST || lanes < 1 || lanes > MOST) abort();
    grid.blocks = blocks;
    grid.lanes = lanes;
}

static void *play(void *lane)
{
    self = (int32_t)(intptr_t)lane;
    grid.work(grid.argument);
    self = 0;
    return nullptr;
}

static void barrier(pthread_barrier_t *b, int32_t lanes)
{
    if (pthread_barrier_init(b, nullptr, (unsigned)lanes) != 0) abort();
}

void grid_play(void (*work)(const void *argument), const void *argument)
{
    pthread_t threads[MOST * MOST];
    const int32_t count = grid.blocks * grid.lanes;
    grid.work = work;
    grid.argument = argument;
    barrier(&grid.all, count);
    for (int32_t b = 0; b < grid.blocks; b++) barrier(&grid.block[b], grid.lanes);
    for (int32_t i = 1; i < count; i++)
        if (pthread_create(&threads[i], nullptr, play, (void *)(intptr_t)i) != 0) abort();
    play(nullptr);
    for (int32_t i = 1; i < count; i++) pthread_join(threads[i], nullptr);
    pthread_barrier_destroy(&grid.all);
    for (int32_t b = 0; b < grid.blocks; b++) pthread_barrier_destroy(&grid.block[b]);
}
