/* Teams: the lanes that step one world together.
 *
 * On a GPU several lanes, a team, step one world. All lanes run the same functions with the same
 * arguments, so every lane has a function's local variables. Shared memory (arrays of the arena,
 * the state) is written by one lane and read by the others after the next tb_team_sync. Three forms
 * distribute the computation:
 *
 *     TB_EACH(i, n) { ... }         loop indices distributed over the lanes; an index must read
 *                                   nothing that another index of the loop writes
 *     if (TB_LEADER) { ... }        one lane, for sequential code
 *     otherwise                     every lane, in its own variables; into shared memory only if
 *                                   all lanes write the same value and no lane reads another value
 *                                   there between the syncs before and after
 *
 * All lanes take an array of the arena together; taking it syncs.
 *
 * tb_team_sync(), which all lanes must reach, separates a write from reads by other lanes.
 * tb_team_share copies the leader's bytes to the variables of all lanes, tb_team_pass the bytes of
 * any lane. Sums over a distributed loop run in the order of its indices, so results are the same
 * bytes for any number of lanes.
 *
 * A GPU has on-chip shared memory for the time of a kernel. tb_team_fast returns each team's part
 * of it, for one function at a time.
 *
 * A CPU thread is a team of one: loops are plain loops, syncs do nothing, and there is no shared
 * memory other than the caches. */
#ifndef TB_TEAM_H
#define TB_TEAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/device.h"
#include "base/real.h"

enum { TB_TEAM_NUMBERS_OF_A_LANE = 12 };

#if defined(TB_DEVICE) && defined(__CUDACC__)

/* Blocks are one warp: x counts the lanes of a world (a power of two), y the worlds. */
static __device__ inline int32_t tb_team_lane(void)
{
    return (int32_t)threadIdx.x;
}

#if defined(TB_UNIT_WARP) ||                                                                       \
    defined(TB_UNIT_WIDE) /* a warp a world: the compiler knows their number */
static __device__ inline int32_t tb_team_lanes(void)
{
    return 32;
}

static __device__ inline unsigned tb_team_mask(void)
{
    return ~0u;
}
#else
static __device__ inline int32_t tb_team_lanes(void)
{
    return (int32_t)blockDim.x;
}

static __device__ inline unsigned tb_team_mask(void)
{
    const unsigned lanes = blockDim.x;
    return ~0u >> (32 - lanes) << (threadIdx.y * lanes);
}
#endif

static __device__ inline void tb_team_sync(void)
{
    __syncwarp(tb_team_mask());
}

/* Copies one lane's `bytes` (a multiple of four, aligned to four) to every lane's own `data`. */
static __device__ inline void tb_team_pass(void *data, size_t bytes, int32_t from)
{
    unsigned *words = (unsigned *)data;
    const unsigned mask = tb_team_mask();
    for (size_t k = 0; k < bytes / 4; k++)
        words[k] = __shfl_sync(mask, words[k], from, tb_team_lanes());
}

/* The same with the leader's bytes. */
static __device__ inline void tb_team_share(void *data, size_t bytes)
{
    tb_team_pass(data, bytes, 0);
}

/* A number of another lane, of each lane's own choice. */
static __device__ inline tb_real tb_team_take_real(tb_real own, int32_t from)
{
    return __shfl_sync(tb_team_mask(), own, from, tb_team_lanes());
}

static __device__ inline double tb_team_take_double(double own, int32_t from)
{
    return __shfl_sync(tb_team_mask(), own, from, tb_team_lanes());
}

/* The lanes of which `own` is true, lane 0 in the lowest bit. */
static __device__ inline uint32_t tb_team_ballot(bool own)
{
    return __ballot_sync(tb_team_mask(), own) >> (threadIdx.y * (unsigned)tb_team_lanes() % 32);
}

/* The lanes whose value is the same as the own, which all lanes of a warp ask for together. */
static __device__ inline uint32_t tb_team_match(int32_t own)
{
    return __match_any_sync(0xffffffffu, own);
}

/* The team's part of the launch's shared memory, for all its lanes: *bytes, aligned to 16; NULL
 * if there is none. Its content lasts until the kernel ends. The kernel's source defines this
 * function, because it knows the layout of the shared memory. */
static __device__ void *tb_team_fast(size_t *bytes);

/* Shared memory for a few numbers that lanes exchange: a fixed number for each lane, aligned to
 * 16. For one function at a time, which syncs before and after the lanes write there. */
static __device__ inline tb_real *tb_team_near(void)
{
    __shared__ __align__(16) tb_real numbers[TB_TEAM_NUMBERS_OF_A_LANE * 32];
    return numbers + TB_TEAM_NUMBERS_OF_A_LANE * (int)threadIdx.y * tb_team_lanes();
}

#elif defined(TB_TEAM_PLAYED) /* a test emulates the lanes of a GPU */

int32_t tb_team_lane(void);
int32_t tb_team_lanes(void);
void tb_team_sync(void);
void tb_team_share(void *data, size_t bytes);
void tb_team_pass(void *data, size_t bytes, int32_t from);
double tb_team_take_double(double own, int32_t from);
uint32_t tb_team_ballot(bool own);
uint32_t tb_team_match(int32_t own);
void *tb_team_fast(size_t *bytes);
void *tb_team_near_memory(void);

TB_FN tb_real tb_team_take_real(tb_real own, int32_t from)
{
    return TB_R(tb_team_take_double((double)own, from));
}

TB_FN tb_real *tb_team_near(void)
{
    return (tb_real *)tb_team_near_memory();
}

#else

TB_FN int32_t tb_team_lane(void)
{
    return 0;
}

TB_FN int32_t tb_team_lanes(void)
{
    return 1;
}

TB_FN void tb_team_sync(void)
{
}

TB_FN void tb_team_share(void *data, size_t bytes)
{
    (void)data;
    (void)bytes;
}

TB_FN void tb_team_pass(void *data, size_t bytes, int32_t from)
{
    (void)data;
    (void)bytes;
    (void)from;
}

TB_FN tb_real tb_team_take_real(tb_real own, int32_t from)
{
    (void)from;
    return own;
}

TB_FN double tb_team_take_double(double own, int32_t from)
{
    (void)from;
    return own;
}

TB_FN uint32_t tb_team_ballot(bool own)
{
    return own;
}

TB_FN void *tb_team_fast(size_t *bytes)
{
    *bytes = 0;
    return NULL;
}

TB_FN tb_real *tb_team_near(void)
{
    return NULL;
}

#endif

#define TB_EACH(i, n)                                                                              \
    TB_ROLLED                                                                                      \
    for (int32_t i = tb_team_lane(); i < (n); i += tb_team_lanes())
#define TB_LEADER (tb_team_lane() == 0)

#if defined(TB_DEVICE) && defined(__CUDACC__)
#define TB_TEAM_FN       static __device__ inline
#define TB_TEAM_FN_LARGE static __device__ __noinline__
typedef uint32_t tb_team_word;
#else
#define TB_TEAM_FN       static inline
#define TB_TEAM_FN_LARGE static inline
typedef uint32_t __attribute__((may_alias)) tb_team_word; /* aliases data of any type */
#endif

TB_FN int tb_count_bits(uint32_t bits)
{
#ifdef __CUDA_ARCH__
    return __popc(bits);
#else
    return __builtin_popcount(bits);
#endif
}

/* Whether the team has one lane, for code with a separate serial path. A GPU always takes the
 * team's path. */
TB_TEAM_FN bool tb_team_is_one(void)
{
#if defined(TB_DEVICE) && defined(__CUDACC__)
    return false;
#else
    return tb_team_lanes() == 1;
#endif
}

/* Shared memory for `count` numbers, or `elsewhere` if the team has less. */
TB_TEAM_FN tb_real *tb_team_numbers(int32_t count, tb_real *elsewhere)
{
    tb_real *near = tb_team_near();
    return near && count <= TB_TEAM_NUMBERS_OF_A_LANE * tb_team_lanes() ? near : elsewhere;
}

/* Whether `own` is true in every lane. */
TB_TEAM_FN bool tb_team_all(bool own)
{
#if defined(TB_DEVICE) && defined(__CUDACC__)
    return __all_sync(tb_team_mask(), own) != 0;
#else
    bool all = own;
    for (int32_t k = 0; tb_team_lanes() > 1 && k < tb_team_lanes(); k++) {
        int32_t other = own;
        tb_team_pass(&other, sizeof other, k);
        all = all && other;
    }
    return all;
#endif
}

/* Whether `own` is true in any lane. */
TB_TEAM_FN bool tb_team_any(bool own)
{
    return !tb_team_all(!own);
}

/* The sum of a number over the lanes before this one; *total: over all. */
TB_TEAM_FN int32_t tb_team_before(int32_t number, int32_t *total)
{
#if defined(TB_DEVICE) && defined(__CUDACC__)
    const unsigned mask = tb_team_mask();
    const int lanes = (int)tb_team_lanes();
    int32_t sum = number;
    for (int step = 1; step < lanes; step *= 2) {
        const int32_t lower = __shfl_up_sync(mask, sum, (unsigned)step, lanes);
        if ((int)threadIdx.x >= step) sum += lower;
    }
    *total = __shfl_sync(mask, sum, lanes - 1, lanes);
    return sum - number;
#else
    int32_t before = 0;
    *total = tb_team_lanes() > 1 ? 0 : number;
    for (int32_t k = 0; tb_team_lanes() > 1 && k < tb_team_lanes(); k++) {
        int32_t other = number;
        tb_team_pass(&other, sizeof other, k);
        if (k < tb_team_lane()) before += other;
        *total += other;
    }
    return before;
#endif
}

/* The largest number over the lanes; no number may be NaN. */
TB_TEAM_FN double tb_team_largest(double own)
{
#if defined(TB_DEVICE) && defined(__CUDACC__)
    for (int step = (int)tb_team_lanes() / 2; step > 0; step /= 2) {
        const double other = __shfl_xor_sync(tb_team_mask(), own, step, (int)tb_team_lanes());
        own = other > own ? other : own;
    }
    return own;
#else
    double largest = own;
    for (int32_t k = 0; tb_team_lanes() > 1 && k < tb_team_lanes(); k++) {
        double other = own;
        tb_team_pass(&other, sizeof other, k);
        largest = other > largest ? other : largest;
    }
    return largest;
#endif
}

/* The sum over the lanes, in halves: the same bytes for one number of lanes alone. */
TB_TEAM_FN double tb_team_total(double own)
{
    for (int32_t step = tb_team_lanes() / 2; step > 0; step /= 2)
        own += tb_team_take_double(own, tb_team_lane() ^ step);
    return own;
}

/* The exclusive or over the lanes. */
TB_TEAM_FN uint64_t tb_team_xor(uint64_t own)
{
#if defined(TB_DEVICE) && defined(__CUDACC__)
    for (int step = (int)tb_team_lanes() / 2; step > 0; step /= 2)
        own ^= __shfl_xor_sync(tb_team_mask(), (unsigned long long)own, step, (int)tb_team_lanes());
    return own;
#else
    uint64_t all = tb_team_lanes() > 1 ? 0 : own;
    for (int32_t k = 0; tb_team_lanes() > 1 && k < tb_team_lanes(); k++) {
        uint64_t other = own;
        tb_team_pass(&other, sizeof other, k);
        all ^= other;
    }
    return all;
#endif
}

/* The index of the largest of the lanes' values; of equal values the lowest index. */
TB_TEAM_FN int32_t tb_team_place_of_largest(tb_real value, int32_t index)
{
#if defined(TB_DEVICE) && defined(__CUDACC__)
    const unsigned mask = tb_team_mask();
    const int lanes = (int)tb_team_lanes();
    TB_ROLLED
    for (int step = lanes / 2; step > 0; step /= 2) {
        const tb_real other = __shfl_xor_sync(mask, value, step, lanes);
        const int32_t others = __shfl_xor_sync(mask, index, step, lanes);
        if (other > value || (other == value && others < index)) {
            value = other;
            index = others;
        }
    }
    return index;
#else
    const tb_real own = value;
    const int32_t owns = index;
    for (int32_t k = 0; k < tb_team_lanes(); k++) {
        tb_real other = own;
        int32_t others = owns;
        tb_team_pass(&other, sizeof other, k);
        tb_team_pass(&others, sizeof others, k);
        if (other > value || (other == value && others < index)) {
            value = other;
            index = others;
        }
    }
    return index;
#endif
}

/* A distributed nested loop: if the outer loop has fewer indices than there are lanes, several
 * lanes share an outer index and distribute the inner loop. */
typedef struct tb_team_nest {
    int32_t outer, outer_step; /* this lane's first outer index, and the step to the next */
    int32_t inner, inner_step;
} tb_team_nest;

TB_TEAM_FN tb_team_nest tb_team_nest_of(int32_t outer_turns)
{
    tb_team_nest nest;
    int shift = 0;
    TB_ROLLED
    while (tb_team_lanes() >> shift > 1 && tb_team_lanes() >> (shift + 1) >= outer_turns) shift++;
    nest.inner_step = 1 << shift;
    nest.inner = tb_team_lane() & (nest.inner_step - 1);
    nest.outer_step = tb_team_lanes() >> shift;
    nest.outer = tb_team_lane() >> shift;
    return nest;
}

/* tb_all_finite computed by all lanes, for numbers that all lanes can read. */
TB_TEAM_FN_LARGE bool tb_team_all_finite(const tb_real *x, int32_t count)
{
    if (tb_team_is_one()) return tb_all_finite(x, count);
    bool finite = true;
    TB_EACH (i, count) finite = finite && tb_all_finite(x + i, 1);
    return tb_team_all(finite);
}

#if defined(TB_DEVICE) && defined(__CUDACC__)
/* A copy of `count` units by the lanes. Each lane issues four loads before it waits for the
 * first. */
#define TB_TEAM_MOVE(name, unit)                                                                   \
    static __device__ inline void name(unit *to, const unit *from, int32_t count)                  \
    {                                                                                              \
        const int32_t lanes = tb_team_lanes();                                                     \
        TB_ROLLED                                                                                  \
        for (int32_t first = tb_team_lane(); first < count; first += 4 * lanes) {                  \
            unit taken[4];                                                                         \
            for (int k = 0; k < 4; k++)                                                            \
                if (first + k * lanes < count) taken[k] = from[first + k * lanes];                 \
            for (int k = 0; k < 4; k++)                                                            \
                if (first + k * lanes < count) to[first + k * lanes] = taken[k];                   \
        }                                                                                          \
    }
TB_TEAM_MOVE(tb_team_move_words, tb_team_word)
TB_TEAM_MOVE(tb_team_move_pairs, uint2)
TB_TEAM_MOVE(tb_team_move_quads, uint4)
#undef TB_TEAM_MOVE
#endif

/* Zeroes bytes, words distributed over the lanes; visible to all lanes after the next sync. */
TB_TEAM_FN_LARGE void tb_team_clear(void *data, size_t bytes)
{
    if (tb_team_is_one()) {
        memset(data, 0, bytes);
        return;
    }
    const int32_t words = (int32_t)(bytes / 4);
    int32_t done = 0;
#if defined(TB_DEVICE) && defined(__CUDACC__)
    if ((uintptr_t)data % sizeof(uint4) == 0) {
        const uint4 zero = {0, 0, 0, 0};
        done = words / 4 * 4;
        TB_EACH (i, words / 4) ((uint4 *)data)[i] = zero;
    }
#endif
    TB_EACH (i, words - done) ((tb_team_word *)data)[done + i] = 0;
    if (TB_LEADER) memset((unsigned char *)data + 4 * (size_t)words, 0, bytes % 4);
}

/* Copies bytes in the same way; both addresses are aligned to words. */
TB_TEAM_FN_LARGE void tb_team_copy(void *to, const void *from, size_t bytes)
{
    if (tb_team_is_one()) {
        memcpy(to, from, bytes);
        return;
    }
    const size_t words = bytes / 4;
#if defined(TB_DEVICE) && defined(__CUDACC__)
    size_t done = 0;
    const uintptr_t places = (uintptr_t)to | (uintptr_t)from;
    if (places % sizeof(uint4) == 0) {
        done = words / 4 * 4;
        tb_team_move_quads((uint4 *)to, (const uint4 *)from, (int32_t)(words / 4));
    } else if (places % sizeof(uint2) == 0) {
        done = words / 2 * 2;
        tb_team_move_pairs((uint2 *)to, (const uint2 *)from, (int32_t)(words / 2));
    }
    tb_team_move_words((tb_team_word *)to + done, (const tb_team_word *)from + done,
                       (int32_t)(words - done));
#else
    TB_EACH (i, (int32_t)words) ((tb_team_word *)to)[i] = ((const tb_team_word *)from)[i];
#endif
    if (TB_LEADER)
        memcpy((unsigned char *)to + 4 * words, (const unsigned char *)from + 4 * words, bytes % 4);
}

/* Clears bytes of this lane alone, a multiple of eight at an address aligned to eight. */
TB_TEAM_FN void tb_lane_clear(void *to, size_t bytes)
{
#if defined(TB_DEVICE) && defined(__CUDACC__)
    uint64_t *target = (uint64_t *)to; /* memset takes them byte by byte */
    for (int i = 0; i < (int)(bytes / sizeof *target); i++) target[i] = 0;
#else
    memset(to, 0, bytes);
#endif
}

/* Copies bytes of this lane alone, a multiple of four between addresses aligned to four: by four words, which are
 * read before the first is written, and written at once where `to` is aligned to that, because a lane that stores
 * far from all others takes as long for a word as for four. */
TB_TEAM_FN void tb_lane_copy(void *to, const void *from, size_t bytes)
{
#if defined(TB_DEVICE) && defined(__CUDACC__)
    const tb_team_word *words = (const tb_team_word *)from;
    tb_team_word *target = (tb_team_word *)to;
    const int count = (int)(bytes / 4);
    const bool by_four = (uintptr_t)to % sizeof(uint4) == 0;
    int i = 0;
    TB_ROLLED
    for (; i + 4 <= count; i += 4) {
        const uint4 own = make_uint4(words[i], words[i + 1], words[i + 2], words[i + 3]);
        if (by_four) {
            *(uint4 *)(target + i) = own;
        } else {
            target[i] = own.x, target[i + 1] = own.y;
            target[i + 2] = own.z, target[i + 3] = own.w;
        }
    }
    TB_ROLLED
    for (; i < count; i++) target[i] = words[i];
#else
    memcpy(to, from, bytes);
#endif
}

/* Declares an array of TB_LANE_NUMBERS numbers that a lane has for itself. In float on a card it is shared memory, and
 * not the stack, which the first cache does not hold for all lanes. The lanes' arrays are an odd number of words
 * apart, so that lanes in step ask different banks. For one function at a time. */
enum { TB_LANE_NUMBERS = 48 };
#if defined(TB_DEVICE) && defined(__CUDACC__) && defined(TB_SINGLE)
static __device__ inline tb_real *tb_lane_numbers(void)
{
    __shared__ tb_real numbers[(TB_LANE_NUMBERS + 1) * 32];
    return numbers + (TB_LANE_NUMBERS + 1) * (int)(threadIdx.y * blockDim.x + threadIdx.x);
}
#define TB_LANE_ARRAY(name) tb_real *const name = tb_lane_numbers()
#else
#define TB_LANE_ARRAY(name) tb_real name[TB_LANE_NUMBERS]
#endif

/* Prefetches memory that is read soon, so that its cache misses overlap. A hint; the CPU
 * prefetches by itself and ignores it. */
TB_TEAM_FN_LARGE void tb_team_fetch(const void *memory, size_t bytes)
{
#if defined(TB_DEVICE) && defined(__CUDACC__)
    const size_t line = 128, from = (size_t)memory / line * line, end = (size_t)memory + bytes;
    for (size_t at = from + (size_t)tb_team_lane() * line; at < end;
         at += (size_t)tb_team_lanes() * line)
        asm volatile("prefetch.global.L2 [%0];" ::"l"(at));
#else
    (void)memory;
    (void)bytes;
#endif
}

#endif
