// See team_play.h. Lanes take turns on one processor, each until its next sync, in their order or
// against it: threads that meet at barriers spend hundreds of times as long on being woken. Under
// ThreadSanitizer they are threads, so that it sees accesses without a sync between them. Lanes
// exchange values through a common array, between syncs.
#define TB_DEVICE      1
#define TB_TEAM_PLAYED 1
#include "base/team.h"

#include "team_play.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif

enum { MOST_LANES = 32, PASSED_BYTES = 4096, STACK_BYTES = 8 << 20 };

struct team;

struct player {
    team *own;
    int32_t lane;
    bool ended;
    ucontext_t where;
    unsigned char *stack;
    void *fake; // the address sanitizer's own stack
};

struct team {
    int32_t lanes, step; // from a lane to the one whose turn is next
    int32_t ended;
    player players[MOST_LANES];
    ucontext_t outside;
    pthread_barrier_t barrier;
    alignas(16) unsigned char passed[PASSED_BYTES];
    double shown[MOST_LANES];
    alignas(16) unsigned char near[sizeof(double) * TB_TEAM_NUMBERS_OF_A_LANE * MOST_LANES];
    void (*work)(void *context, int32_t lane);
    void *context;
};

static thread_local player *self = nullptr;

int32_t tb_team_lane(void)
{
    return self != nullptr ? self->lane : 0;
}

int32_t tb_team_lanes(void)
{
    return self != nullptr ? self->own->lanes : 1;
}

#ifdef __SANITIZE_THREAD__

void tb_team_sync(void)
{
    if (tb_team_lanes() > 1) pthread_barrier_wait(&self->own->barrier);
}

static void *play(void *context)
{
    self = (player *)context;
    self->own->work(self->own->context, self->lane);
    self = nullptr;
    return nullptr;
}

static void play_all(team *own)
{
    pthread_t threads[MOST_LANES];
    if (pthread_barrier_init(&own->barrier, nullptr, (unsigned)own->lanes) != 0) abort();
    for (int32_t i = 1; i < own->lanes; i++)
        if (pthread_create(&threads[i], nullptr, play, &own->players[i]) != 0) abort();
    play(&own->players[0]);
    for (int32_t i = 1; i < own->lanes; i++) pthread_join(threads[i], nullptr);
    pthread_barrier_destroy(&own->barrier);
}

#else

static void leave(player *from, const unsigned char *stack, size_t bytes)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(from != nullptr ? &from->fake : nullptr, stack, bytes);
#else
    (void)from, (void)stack, (void)bytes;
#endif
}

static void arrive(player *there)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(there != nullptr ? there->fake : nullptr, nullptr, nullptr);
#else
    (void)there;
#endif
}

static player *next_of(const player *p)
{
    team *own = p->own;
    return &own->players[(p->lane + own->step + own->lanes) % own->lanes];
}

// All lanes come to a sync equally often, so the next one's turn is all that a barrier needs.
void tb_team_sync(void)
{
    if (tb_team_lanes() == 1) return;
    player *own = self, *next = next_of(own);
    if (next->ended) abort(); // without the sync at which this one waits
    self = next;
    leave(own, next->stack, STACK_BYTES);
    if (swapcontext(&own->where, &next->where) != 0) abort();
    arrive(own);
}

static void play(void)
{
    arrive(nullptr);
    player *own = self;
    own->own->work(own->own->context, own->lane);
    own->ended = true;
    team *all = own->own;
    if (++all->ended == all->lanes) {
        self = nullptr;
        leave(nullptr, nullptr, 0);
        setcontext(&all->outside);
    }
    self = next_of(own);
    leave(nullptr, self->stack, STACK_BYTES);
    setcontext(&self->where);
}

static void play_all(team *own)
{
    static int32_t turns = 0;
    const size_t bytes = (size_t)own->lanes * STACK_BYTES;
    void *stacks = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stacks == MAP_FAILED) abort();
    own->step = turns++ % 2 == 0 ? 1 : -1;
    own->ended = 0;
    for (int32_t i = 0; i < own->lanes; i++) {
        player *p = &own->players[i];
        p->stack = (unsigned char *)stacks + (size_t)i * STACK_BYTES;
        if (getcontext(&p->where) != 0) abort();
        p->where.uc_stack.ss_sp = p->stack;
        p->where.uc_stack.ss_size = STACK_BYTES;
        p->where.uc_link = nullptr;
        makecontext(&p->where, play, 0);
    }
    player outside = {};
    self = &own->players[own->step > 0 ? 0 : own->lanes - 1];
    leave(&outside, self->stack, STACK_BYTES);
    if (swapcontext(&own->outside, &self->where) != 0) abort();
    arrive(&outside);
    munmap(stacks, bytes);
}

#endif

void tb_team_pass(void *data, size_t bytes, int32_t from)
{
    if (tb_team_lanes() == 1) return;
    if (bytes > PASSED_BYTES || bytes % 4 != 0) abort();
    tb_team_sync(); // the last passed value has been read
    if (self->lane == from) memcpy(self->own->passed, data, bytes);
    tb_team_sync();
    memcpy(data, self->own->passed, bytes);
}

void tb_team_share(void *data, size_t bytes)
{
    tb_team_pass(data, bytes, 0);
}

double tb_team_take_double(double own, int32_t from)
{
    if (tb_team_lanes() == 1) return own;
    team *all = self->own;
    tb_team_sync(); // all lanes have read the last numbers
    all->shown[self->lane] = own;
    tb_team_sync();
    return all->shown[from % tb_team_lanes()];
}

uint32_t tb_team_ballot(bool own)
{
    if (tb_team_lanes() == 1) return own;
    team *all = self->own;
    uint32_t bits = 0;
    tb_team_sync(); // all lanes have read the last numbers
    all->shown[self->lane] = own;
    tb_team_sync();
    for (int i = 0; i < tb_team_lanes(); i++) bits |= (uint32_t)(all->shown[i] != 0) << i;
    return bits;
}

uint32_t tb_team_match(int32_t own)
{
    team *all = self->own;
    uint32_t bits = 0;
    tb_team_sync(); // all lanes have read the last numbers
    all->shown[self->lane] = own;
    tb_team_sync();
    for (int i = 0; i < tb_team_lanes(); i++) bits |= (uint32_t)(all->shown[i] == own) << i;
    return bits;
}

void *tb_team_near_memory(void)
{
    return self != nullptr ? self->own->near : nullptr;
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

void team_play(int32_t lanes, void (*work)(void *context, int32_t lane), void *context)
{
    static team own;
    if (lanes < 1 || lanes > MOST_LANES || self != nullptr) abort();
    own.lanes = lanes;
    own.work = work;
    own.context = context;
    for (int32_t i = 0; i < lanes; i++) {
        own.players[i].own = &own;
        own.players[i].lane = i;
        own.players[i].ended = false;
        own.players[i].fake = nullptr;
    }
    play_all(&own);
}
