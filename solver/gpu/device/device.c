/* See device.h. */
#include "gpu/device/device.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "gpu/device/side_streams.h"

/* The oldest card that the kernels are compiled for, as major * 10 + minor. */
enum { OLDEST_ARCHITECTURE = 75 };

/* ---- enumeration ---- */

static int architecture(int32_t index)
{
    int major = 0, minor = 0;
    if (cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index) != cudaSuccess ||
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index) != cudaSuccess)
        return 0;
    return 10 * major + minor;
}

/* Streams that share a queue wait for each other (side_streams.h). */
void tb_gpu_prepare(void)
{
    (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", TB_GPU_QUEUES, 0);
}

int32_t tb_gpu_count(char reason[TB_ERROR_MESSAGE_SIZE])
{
    int count = 0;
    reason[0] = '\0';
    const cudaError_t result = cudaGetDeviceCount(&count);
    if (result != cudaSuccess) {
        (void)cudaGetLastError();
        snprintf(reason, TB_ERROR_MESSAGE_SIZE, "%s", cudaGetErrorString(result));
        return 0;
    }
    /* cards are numbered as the driver does; one that is too old ends the list */
    int32_t usable = 0;
    while (usable < count && architecture(usable) >= OLDEST_ARCHITECTURE) usable++;
    if (usable == 0)
        snprintf(reason, TB_ERROR_MESSAGE_SIZE, "no card of architecture sm_%d or newer",
                 (int)OLDEST_ARCHITECTURE);
    return usable;
}

tb_status tb_gpu_describe(int32_t index, tb_device_info *info, tb_error *error)
{
    struct cudaDeviceProp properties;
    int driver = 0;
    memset(info, 0, sizeof *info);
    cudaError_t result = cudaGetDeviceProperties(&properties, index);
    if (result == cudaSuccess) result = cudaDriverGetVersion(&driver);
    if (result != cudaSuccess)
        return tb_fail(error, TB_UNAVAILABLE, "card %d: %s", index, cudaGetErrorString(result));
    snprintf(info->name, sizeof info->name, "%.90s", properties.name);
    snprintf(info->driver, sizeof info->driver, "CUDA %d.%d", driver / 1000, driver % 1000 / 10);
    snprintf(info->architecture, sizeof info->architecture, "sm_%d%d", properties.major,
             properties.minor);
    info->processors = properties.multiProcessorCount;
    info->memory = properties.totalGlobalMem;

    /* the version of the driver itself, if the system has the file */
    FILE *file = fopen("/proc/driver/nvidia/version", "r");
    char line[256];
    if (file == NULL) return TB_OK;
    if (fgets(line, sizeof line, file) != NULL) {
        /* "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05 ...", or with words between */
        for (const char *word = line; (word = strchr(word, ' ')) != NULL;) {
            char version[32];
            if (sscanf(++word, "%31[0-9.]", version) != 1 || strchr(version, '.') == NULL) continue;
            memcpy(info->driver, version, sizeof info->driver);
            break;
        }
    }
    fclose(file);
    return TB_OK;
}

/* ---- errors ---- */

/* After an error of the device itself, nothing works until the process has ended. */
static bool still_answers(const tb_gpu_device *device)
{
    (void)cudaGetLastError();
    const cudaError_t result =
        device->stream != NULL ? cudaStreamSynchronize(device->stream) : cudaFree(NULL);
    return result == cudaSuccess;
}

tb_status tb_gpu_check(tb_gpu_device *device, cudaError_t result, const char *what, tb_error *error)
{
    if (result == cudaSuccess) return TB_OK;
    const char *name = cudaGetErrorName(result), *text = cudaGetErrorString(result);
    if (!device->lost && (!still_answers(device) || result == cudaErrorLaunchFailure)) {
        device->lost = true;
        snprintf(device->reason, sizeof device->reason, "card %d is lost: %s: %s (%s)",
                 device->index, what, text, name);
    }
    if (device->lost) return tb_fail(error, TB_ABORTED, "%s", device->reason);
    return tb_fail(error, result == cudaErrorMemoryAllocation ? TB_RESOURCE_EXHAUSTED : TB_INTERNAL,
                   "card %d: %s: %s (%s)", device->index, what, text, name);
}

tb_status tb_gpu_wait(tb_gpu_device *device, const char *what, tb_error *error)
{
    return tb_gpu_check(device, cudaStreamSynchronize(device->stream), what, error);
}

bool tb_gpu_is_busy(const tb_gpu_device *device)
{
    if (cudaStreamQuery(device->stream) != cudaErrorNotReady) return false;
    (void)cudaGetLastError(); /* it is no error */
    return true;
}

/* ---- life ---- */

tb_status tb_gpu_device_open(int32_t index, tb_gpu_device *device, tb_error *error)
{
    *device = (tb_gpu_device){.index = index};
    tb_status status = tb_gpu_check(device, cudaSetDevice(index), "opening it", error);
    if (status == TB_OK)
        status =
            tb_gpu_check(device, cudaStreamCreateWithFlags(&device->stream, cudaStreamNonBlocking),
                         "making a stream", error);
    for (int i = 0; i < TB_GPU_MARKS && status == TB_OK; i++)
        status = tb_gpu_check(device, cudaEventCreate(&device->marks[i]), "making an event", error);
    if (status != TB_OK) tb_gpu_device_close(device);
    return status;
}

/* The results of a lost card's calls say nothing new. */
void tb_gpu_device_close(tb_gpu_device *device)
{
    for (int i = 0; i < TB_GPU_MARKS; i++)
        if (device->marks[i] != NULL) (void)cudaEventDestroy(device->marks[i]);
    if (device->stream != NULL) (void)cudaStreamDestroy(device->stream);
    memset(device->marks, 0, sizeof device->marks);
    device->stream = NULL;
}

tb_status tb_gpu_device_enter(tb_gpu_device *device, tb_error *error)
{
    if (device->lost) return tb_fail(error, TB_ABORTED, "%s", device->reason);
    return tb_gpu_check(device, cudaSetDevice(device->index), "entering it", error);
}

/* ---- memory ---- */

enum { CARDS = 64 };

/* Of the process, as cards are. */
static struct {
    atomic_llong bytes[CARDS], worlds[CARDS];
} soft;

/* Half as much again, so that a growing batch does not ask at every call. */
static size_t grown(const tb_gpu_buffer *buffer, size_t bytes)
{
    const size_t more = buffer->capacity + buffer->capacity / 2;
    return more > bytes ? more : bytes;
}

tb_status tb_gpu_reserve(tb_gpu_device *device, tb_gpu_buffer *buffer, size_t bytes,
                         tb_error *error)
{
    if (bytes <= buffer->capacity) return TB_OK;
    size_t wanted = grown(buffer, bytes);
    tb_gpu_release(device, buffer);
    device->allocations++;
    cudaError_t result = cudaMalloc(&buffer->memory, wanted);
    if (result == cudaErrorMemoryAllocation && wanted > bytes) {
        (void)cudaGetLastError();
        wanted = bytes;
        result = cudaMalloc(&buffer->memory, wanted);
    }
    if (result != cudaSuccess) {
        char what[64];
        buffer->memory = NULL;
        snprintf(what, sizeof what, "%zu bytes of memory", bytes);
        return tb_gpu_check(device, result, what, error);
    }
    buffer->capacity = wanted;
    device->device_bytes += wanted;
    if (device->soft) tb_gpu_count_soft(device->index, (int64_t)wanted, 0);
    return TB_OK;
}

tb_status tb_gpu_reserve_pinned(tb_gpu_device *device, tb_gpu_buffer *buffer, size_t bytes,
                                tb_error *error)
{
    if (bytes <= buffer->capacity) return TB_OK;
    const size_t wanted = grown(buffer, bytes);
    tb_gpu_release_pinned(device, buffer);
    device->allocations++;
    const cudaError_t result = cudaHostAlloc(&buffer->memory, wanted, cudaHostAllocDefault);
    if (result != cudaSuccess) {
        buffer->memory = NULL;
        return tb_gpu_check(device, result, "pinned memory", error);
    }
    buffer->capacity = wanted;
    device->host_bytes += wanted;
    return TB_OK;
}

void tb_gpu_release(tb_gpu_device *device, tb_gpu_buffer *buffer)
{
    if (buffer->memory != NULL) (void)cudaFree(buffer->memory);
    device->device_bytes -= buffer->capacity;
    if (device->soft) tb_gpu_count_soft(device->index, -(int64_t)buffer->capacity, 0);
    *buffer = (tb_gpu_buffer){0};
}

void tb_gpu_release_pinned(tb_gpu_device *device, tb_gpu_buffer *buffer)
{
    if (buffer->memory != NULL) (void)cudaFreeHost(buffer->memory);
    device->host_bytes -= buffer->capacity;
    *buffer = (tb_gpu_buffer){0};
}

void tb_gpu_count_soft(int32_t index, int64_t bytes, int64_t worlds)
{
    if (index < 0 || index >= CARDS) return;
    atomic_fetch_add(&soft.bytes[index], bytes);
    atomic_fetch_add(&soft.worlds[index], worlds);
}

uint64_t tb_gpu_soft_bytes(int32_t index)
{
    return index >= 0 && index < CARDS ? (uint64_t)atomic_load(&soft.bytes[index]) : 0;
}

int64_t tb_gpu_soft_worlds(int32_t index)
{
    return index >= 0 && index < CARDS ? atomic_load(&soft.worlds[index]) : 0;
}

tb_status tb_gpu_free_memory(tb_gpu_device *device, size_t *free_bytes, size_t *total,
                             tb_error *error)
{
    return tb_gpu_check(device, cudaMemGetInfo(free_bytes, total), "asking for its memory", error);
}

/* ---- time ---- */

tb_status tb_gpu_mark(tb_gpu_device *device, int mark, tb_error *error)
{
    return tb_gpu_check(device, cudaEventRecord(device->marks[mark], device->stream),
                        "marking a time", error);
}

tb_status tb_gpu_elapsed(tb_gpu_device *device, int from, int to, double *seconds, tb_error *error)
{
    float milliseconds = 0;
    const tb_status status = tb_gpu_check(
        device, cudaEventElapsedTime(&milliseconds, device->marks[from], device->marks[to]),
        "taking a time", error);
    *seconds += 1e-3 * (double)milliseconds;
    return status;
}
