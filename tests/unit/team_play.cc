// See team_play.h. A barrier is the sync; what one lane passes to the others goes through a common
// place, between barriers.
#define TB_DEVICE      1
#define TB_TEAM_PLAYED 1
#include "base/team.h"

#include "team_play.h"

#include <pthread.h>
#include <stdlib.h>

enum { MOST_LANES = 32, PASSED_BYTES = 4096 };

struct team {
    int32_t lanes;
    pthread_barrier_t barrier;
    unsigned char passed[PASSED_BYTES];
    void (*work)(void *context, int32_t lane);
    void *context;
};

struct player {
    team *own;
    int32_t lane;
};

static thread_local player self = {nullptr, 0};

int32_t tb_team_lane(void)
{
    return self.lane;
}

int32_t tb_team_lanes(void)
{
    return self.own ? self.own->lanes : 1;
}

void tb_team_sync(void)
{
    if (tb_team_lanes() > 1) pthread_barrier_wait(&self.own->barrier);
}

void tb_team_pass(void *data, size_t bytes, int32_t from)
{
    if (tb_team_lanes() == 1) return;
    if (bytes > PASSED_BYTES || bytes % 4 != 0) abort();
    tb_team_sync(); // what was passed last has been taken
    if (self.lane == from) memcpy(self.own->passed, data, bytes);
    tb_team_sync();
    memcpy(data, self.own->passed, bytes);
}

void tb_team_share(void *data, size_t bytes)
{
    tb_team_pass(data, bytes, 0);
}

static void *fast_memory;
static size_t fast_bytes;

void *tb_team_fast(size_t *bytes)
{
    *bytes = fast_bytes;
    return fast_memory;
}

void team_play_fast(void *memory, size_t bytes)
{
    fast_memory = memory;
    fast_bytes = bytes;
}

static void *play(void *context)
{
    self = *(player *)context;
    self.own->work(self.own->context, self.lane);
    self = player{nullptr, 0};
    return nullptr;
}

void team_play(int32_t lanes, void (*work)(void *context, int32_t lane), void *context)
{
    team own;
    pthread_t threads[MOST_LANES];
    player players[MOST_LANES];
    if (lanes < 1 || lanes > MOST_LANES) abort();
    own.lanes = lanes;
    own.work = work;
    own.context = context;
    if (pthread_barrier_init(&own.barrier, nullptr, (unsigned)lanes) != 0) abort();
    for (int32_t i = 0; i < lanes; i++) {
        players[i] = player{&own, i};
        if (i > 0 && pthread_create(&threads[i], nullptr, play, &players[i]) != 0) abort();
    }
    play(&players[0]);
    for (int32_t i = 1; i < lanes; i++) pthread_join(threads[i], nullptr);
    pthread_barrier_destroy(&own.barrier);
}
