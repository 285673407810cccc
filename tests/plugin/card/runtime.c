/* A card played by the processor: see cuda_runtime_api.h. Work is done when it is asked for; so
 * everything is in order, and a stream is only a name.
 *
 *   TRIBO_TEST_CARDS        cards that are there; 1
 *   TRIBO_TEST_CARD_MEMORY  bytes of each; 256 MiB
 *   TRIBO_TEST_CARD_US      us that a launch of steps takes at least; 0
 *   TRIBO_TEST_LOSE         a file: once it is there, every call fails as on a card that a kernel
 *                           has sent to an illegal address */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "played.h"

enum { CARDS = 8, HEAD = 256 }; /* HEAD: bytes before each allocation, which keep its size */

struct played_stream {
    int card;
    struct played_graph *capture; /* NULL: work is done when it is asked for */
};

struct played_event {
    double time;
    struct played_graph *capture; /* of the stream that it was recorded in */
};

static _Atomic size_t taken[CARDS];
enum { LAUNCHES, TABLES, COPIES, ALLOCATIONS, WAITS, QUESTIONS, EVENTS, OTHERS, KINDS };
static _Atomic int64_t counts[KINDS];
static atomic_bool lost;
static _Thread_local int current;

static long setting(const char *name, long usual)
{
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? atol(text) : usual;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

cudaError_t played_state(void)
{
    const char *file = getenv("TRIBO_TEST_LOSE");
    if (file != NULL && access(file, F_OK) == 0) atomic_store(&lost, true);
    return atomic_load(&lost) ? cudaErrorIllegalAddress : cudaSuccess;
}

void played_launch(void)
{
    const double until = now() + 1e-6 * (double)setting("TRIBO_TEST_CARD_US", 0);
    while (now() < until) continue;
}

void played_tell(played_counts *told)
{
    *told = (played_counts){.launches = counts[LAUNCHES],
                            .tables = counts[TABLES],
                            .copies = counts[COPIES],
                            .allocations = counts[ALLOCATIONS],
                            .waits = counts[WAITS],
                            .questions = counts[QUESTIONS],
                            .events = counts[EVENTS],
                            .others = counts[OTHERS]};
}

void played_count_launch(void)
{
    counts[LAUNCHES]++;
}

void played_count_tables(void)
{
    counts[TABLES]++;
}

/* ---- cards ---- */

cudaError_t cudaGetDeviceCount(int *count)
{
    const long cards = setting("TRIBO_TEST_CARDS", 1);
    *count = cards < 0 ? 0 : cards > CARDS ? CARDS : (int)cards;
    return cudaSuccess;
}

static size_t memory_of_card(void)
{
    return (size_t)setting("TRIBO_TEST_CARD_MEMORY", 256L << 20);
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device)
{
    counts[OTHERS]++;
    (void)device;
    *value = 0;
    if (attribute == cudaDevAttrComputeCapabilityMajor) *value = 9;
    if (attribute == cudaDevAttrMultiProcessorCount) *value = 4;
    if (attribute == cudaDevAttrCooperativeLaunch) *value = 1;
    if (attribute == cudaDevAttrMaxSharedMemoryPerBlockOptin) *value = 227 << 10;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    counts[OTHERS]++;
    int count = 0;
    cudaGetDeviceCount(&count);
    if (device < 0 || device >= count) return cudaErrorInvalidDevice;
    *properties = (struct cudaDeviceProp){
        .major = 9, .multiProcessorCount = 4, .totalGlobalMem = memory_of_card()};
    snprintf(properties->name, sizeof properties->name, "a played card");
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 13000;
    return cudaSuccess;
}

/* Lanes of a played card have stacks of one size. */
cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
    counts[OTHERS]++;
    (void)limit;
    *value = 1024;
    return played_state();
}

cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
    counts[OTHERS]++;
    (void)limit, (void)value;
    return played_state();
}

cudaError_t cudaSetDevice(int device)
{
    counts[OTHERS]++;
    int count = 0;
    cudaGetDeviceCount(&count);
    if (device < 0 || device >= count) return cudaErrorInvalidDevice;
    current = device;
    return played_state();
}

cudaError_t cudaGetLastError(void)
{
    return played_state();
}

const char *cudaGetErrorName(cudaError_t error)
{
    return error == cudaErrorIllegalAddress     ? "cudaErrorIllegalAddress"
           : error == cudaErrorLaunchFailure    ? "cudaErrorLaunchFailure"
           : error == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
                                                : "cudaErrorInvalidValue";
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error == cudaErrorIllegalAddress     ? "an illegal memory access was encountered"
           : error == cudaErrorLaunchFailure    ? "unspecified launch failure"
           : error == cudaErrorMemoryAllocation ? "out of memory"
                                                : "invalid argument";
}

/* ---- streams, events ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    (void)flags;
    *stream = calloc(1, sizeof **stream);
    if (*stream == NULL) return cudaErrorMemoryAllocation;
    (*stream)->card = current;
    return played_state();
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    (void)priority;
    return cudaStreamCreateWithFlags(stream, flags);
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return played_state();
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    free(stream);
    return played_state();
}

/* A stream belongs to its card, which the caller must have entered. */
static cudaError_t state_of(cudaStream_t stream)
{
    if (stream == NULL || stream->card != current) return cudaErrorInvalidValue;
    return played_state();
}

cudaError_t played_use(cudaStream_t stream)
{
    return state_of(stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    counts[WAITS]++;
    return state_of(stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    counts[QUESTIONS]++;
    return state_of(stream);
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    *event = calloc(1, sizeof **event);
    return *event == NULL ? cudaErrorMemoryAllocation : played_state();
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    free(event);
    return played_state();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    (void)flags;
    return cudaEventCreate(event);
}

/* Work is done when it is asked for, so there is nothing to wait for but a capture to take part
 * in. */
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    counts[EVENTS]++;
    (void)flags;
    if (state_of(stream) == cudaSuccess) played_join(event->capture, stream);
    return state_of(stream);
}

struct played_graph *played_capture_of(cudaStream_t stream)
{
    return stream->capture;
}

void played_set_capture(cudaStream_t stream, struct played_graph *graph)
{
    stream->capture = graph;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    counts[EVENTS]++;
    event->time = now();
    event->capture = state_of(stream) == cudaSuccess ? stream->capture : NULL;
    return state_of(stream);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
    counts[EVENTS]++;
    *milliseconds = (float)(1e3 * (to->time - from->time));
    return played_state();
}

/* ---- memory ---- */

typedef struct head {
    size_t bytes;
    int card;
} head;

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    counts[ALLOCATIONS]++;
    *memory = NULL;
    if (played_state() != cudaSuccess) return played_state();
    const size_t before = atomic_fetch_add(&taken[current], bytes);
    const size_t whole = (bytes + 2 * HEAD - 1) / HEAD * HEAD;
    unsigned char *block = NULL;
    if (before + bytes <= memory_of_card()) block = aligned_alloc(HEAD, whole);
    if (block == NULL) {
        atomic_fetch_sub(&taken[current], bytes);
        return cudaErrorMemoryAllocation;
    }
    memset(block, 0xa5, whole); /* callers may not rely on zeros */
    const head h = {bytes, current};
    memcpy(block, &h, sizeof h);
    *memory = block + HEAD;
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    counts[ALLOCATIONS]++;
    head h;
    if (memory == NULL) return played_state();
    unsigned char *block = (unsigned char *)memory - HEAD;
    memcpy(&h, block, sizeof h);
    atomic_fetch_sub(&taken[h.card], h.bytes);
    free(block);
    return played_state();
}

cudaError_t cudaMallocAsync(void **memory, size_t bytes, cudaStream_t stream)
{
    return state_of(stream) != cudaSuccess ? state_of(stream) : cudaMalloc(memory, bytes);
}

cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream)
{
    (void)stream;
    return cudaFree(memory);
}

cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    counts[ALLOCATIONS]++;
    (void)flags;
    *memory = malloc(bytes);
    return *memory == NULL ? cudaErrorMemoryAllocation : played_state();
}

cudaError_t cudaFreeHost(void *memory)
{
    counts[ALLOCATIONS]++;
    free(memory);
    return played_state();
}

cudaError_t cudaMemGetInfo(size_t *room, size_t *total)
{
    counts[OTHERS]++;
    *total = memory_of_card();
    *room = *total - atomic_load(&taken[current]);
    return played_state();
}

typedef struct copy {
    void *to;
    const void *from;
    size_t bytes;
} copy;

static cudaError_t make_copy(const void *argument)
{
    const copy *c = argument;
    counts[COPIES]++;
    memcpy(c->to, c->from, c->bytes);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    const copy c = {to, from, bytes};
    (void)kind;
    if (state_of(stream) != cudaSuccess) return state_of(stream);
    return played_kept(stream, make_copy, &c, sizeof c) ? cudaSuccess : make_copy(&c);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, enum cudaMemcpyKind kind,
                              cudaStream_t stream)
{
    counts[COPIES]++;
    (void)kind;
    if (state_of(stream) != cudaSuccess) return state_of(stream);
    for (size_t i = 0; i < height; i++)
        memcpy((char *)to + i * to_pitch, (const char *)from + i * from_pitch, width);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    counts[COPIES]++;
    if (state_of(stream) != cudaSuccess) return state_of(stream);
    memset(to, value, bytes);
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value)
{
    (void)function;
    (void)attribute;
    (void)value;
    return played_state();
}
