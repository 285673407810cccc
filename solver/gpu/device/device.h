/* A card as one owner thread sees it: a stream, memory that only grows, and the first failure.
 *
 * Every call of the CUDA runtime goes through tb_gpu_check. Running out of memory is a refusal; an
 * error after which the card does not answer any more makes the device lost, and from then on every
 * call says ABORTED with the first reason. Nothing exits. */
#ifndef TB_GPU_DEVICE_H
#define TB_GPU_DEVICE_H

#include <cuda_runtime_api.h>

#include "step/step.h"

enum { TB_GPU_MARKS = 4 };

typedef struct tb_gpu_device {
    int32_t index;
    cudaStream_t stream;
    cudaEvent_t marks[TB_GPU_MARKS]; /* places in the stream between which time is taken */
    bool lost;
    char reason[TB_ERROR_MESSAGE_SIZE]; /* of the loss */
    uint64_t host_bytes, device_bytes;
    int64_t allocations;
    bool soft; /* device_bytes are also counted as those of worlds of soft bodies */
} tb_gpu_device;

/* Memory that grows to each request and never shrinks; growth loses its content. */
typedef struct tb_gpu_buffer {
    void *memory;
    size_t capacity;
} tb_gpu_buffer;

/* Asks the driver for enough queues to the card, by the environment; before the driver starts. */
void tb_gpu_prepare(void);
/* Devices that can run the kernels; 0 and a reason. */
int32_t tb_gpu_count(char reason[TB_ERROR_MESSAGE_SIZE]);
tb_status tb_gpu_describe(int32_t index, tb_device_info *info, tb_error *error);

tb_status tb_gpu_device_open(int32_t index, tb_gpu_device *device, tb_error *error);
void tb_gpu_device_close(tb_gpu_device *device);
/* Makes the card that of the calling thread; callers from the host call it first. ABORTED if the
 * card is lost. */
tb_status tb_gpu_device_enter(tb_gpu_device *device, tb_error *error);

/* Status of a call of the runtime: OK, RESOURCE_EXHAUSTED (memory), ABORTED (lost), INTERNAL. */
tb_status tb_gpu_check(tb_gpu_device *device, cudaError_t result, const char *what,
                       tb_error *error);
/* Whether the stream has work left. */
bool tb_gpu_is_busy(const tb_gpu_device *device);
/* Waits for the stream. */
tb_status tb_gpu_wait(tb_gpu_device *device, const char *what, tb_error *error);

/* Reserves `bytes` on the card, or of pinned memory on the host. */
tb_status tb_gpu_reserve(tb_gpu_device *device, tb_gpu_buffer *buffer, size_t bytes,
                         tb_error *error);
tb_status tb_gpu_reserve_pinned(tb_gpu_device *device, tb_gpu_buffer *buffer, size_t bytes,
                                tb_error *error);
void tb_gpu_release(tb_gpu_device *device, tb_gpu_buffer *buffer);
void tb_gpu_release_pinned(tb_gpu_device *device, tb_gpu_buffer *buffer);
/* Worlds of soft bodies on a card, which have streams of their own, and the memory that they and their programs have
 * there. Any thread may count and ask. */
void tb_gpu_count_soft(int32_t index, int64_t bytes, int64_t worlds);
uint64_t tb_gpu_soft_bytes(int32_t index);
int64_t tb_gpu_soft_worlds(int32_t index);
/* Free bytes of the card, and all of them. */
tb_status tb_gpu_free_memory(tb_gpu_device *device, size_t *free_bytes, size_t *total,
                             tb_error *error);

/* Time on the card between two marks of the stream, s, is added to *seconds once both have been
 * passed. */
tb_status tb_gpu_mark(tb_gpu_device *device, int mark, tb_error *error);
tb_status tb_gpu_elapsed(tb_gpu_device *device, int from, int to, double *seconds, tb_error *error);

#endif
