/* The CUDA driver and NVRTC, loaded at run time: no header, no library at build time, and nothing
 * changes where they are missing. */
#ifndef TB_MODELICA_DRIVER_H
#define TB_MODELICA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef void *cu_handle; /* contexts, modules, functions, streams, events */
typedef unsigned long long cu_pointer;

/* Functions of the driver that are used: name, parameters. */
#define CU_FUNCTIONS(X)                                                                            \
    X(cuInit, (unsigned flags))                                                                    \
    X(cuDeviceGet, (int *device, int ordinal))                                                     \
    X(cuDeviceGetAttribute, (int *value, int attribute, int device))                               \
    X(cuDevicePrimaryCtxRetain, (cu_handle * context, int device))                                 \
    X(cuCtxSetCurrent, (cu_handle context))                                                        \
    X(cuStreamCreate, (cu_handle * stream, unsigned flags))                                        \
    X(cuStreamSynchronize, (cu_handle stream))                                                     \
    X(cuModuleLoadData, (cu_handle * module, const void *image))                                   \
    X(cuModuleUnload, (cu_handle module))                                                          \
    X(cuModuleGetFunction, (cu_handle * function, cu_handle module, const char *name))             \
    X(cuMemAlloc_v2, (cu_pointer * pointer, size_t bytes))                                         \
    X(cuMemAllocAsync, (cu_pointer * pointer, size_t bytes, cu_handle stream))                     \
    X(cuMemFreeAsync, (cu_pointer pointer, cu_handle stream))                                      \
    X(cuMemcpyHtoDAsync_v2, (cu_pointer to, const void *from, size_t bytes, cu_handle stream))     \
    X(cuMemcpyDtoHAsync_v2, (void *to, cu_pointer from, size_t bytes, cu_handle stream))           \
    X(cuMemcpyDtoDAsync_v2, (cu_pointer to, cu_pointer from, size_t bytes, cu_handle stream))      \
    X(cuMemsetD8Async, (cu_pointer pointer, unsigned char byte, size_t count, cu_handle stream))   \
    X(cuMemHostAlloc, (void **memory, size_t bytes, unsigned flags))                               \
    X(cuDeviceGetDefaultMemPool, (cu_handle * pool, int device))                                   \
    X(cuMemPoolSetAttribute, (cu_handle pool, int attribute, void *value))                         \
    X(cuEventCreate, (cu_handle * event, unsigned flags))                                          \
    X(cuEventRecord, (cu_handle event, cu_handle stream))                                          \
    X(cuEventElapsedTime, (float *ms, cu_handle begin, cu_handle end))                             \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor,                                                 \
      (int *blocks, cu_handle function, int threads, size_t shared))                               \
    X(cuLaunchCooperativeKernel,                                                                   \
      (cu_handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,        \
       unsigned bz, unsigned shared, cu_handle stream, void **parameters))                         \
    X(cuLaunchKernel,                                                                              \
      (cu_handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,        \
       unsigned bz, unsigned shared, cu_handle stream, void **parameters, void **extra))

#define NVRTC_FUNCTIONS(X)                                                                         \
    X(nvrtcVersion, (int *major, int *minor))                                                      \
    X(nvrtcCreateProgram, (cu_handle * program, const char *source, const char *name, int headers, \
                           const char *const *texts, const char *const *names))                    \
    X(nvrtcCompileProgram, (cu_handle program, int count, const char *const *options))             \
    X(nvrtcGetCUBINSize, (cu_handle program, size_t * size))                                       \
    X(nvrtcGetCUBIN, (cu_handle program, char *code))                                              \
    X(nvrtcGetProgramLogSize, (cu_handle program, size_t * size))                                  \
    X(nvrtcGetProgramLog, (cu_handle program, char *log))                                          \
    X(nvrtcDestroyProgram, (cu_handle * program))

/* Words of 8 bytes in which kernels leave a failure and results. */
enum { MO_FAULT_WORDS = 16 };

/* The first card of the machine; made once in a process. */
typedef struct mo_driver {
#define CU_POINTER(name, parameters) int(*name) parameters;
    CU_FUNCTIONS(CU_POINTER)
    NVRTC_FUNCTIONS(CU_POINTER)
#undef CU_POINTER
    cu_handle context, stream, begin, end;
    int device, processors;
    char architecture[16]; /* "sm_90" */
    uint64_t *fault;       /* the first failure of the kernels: pinned copy */
    cu_pointer card_fault;
} mo_driver;

/* The driver, ready for use on the calling thread. UNAVAILABLE with the reason. */
tb_status tb_mo_driver(mo_driver **driver, tb_error *error);

/* SHA-256, 64 hexadecimal digits, of all that decides the machine code of a text. */
void tb_mo_nvrtc_key(const mo_driver *driver, const char *source, const char *architecture,
                     char key[65]);
/* Compiles CUDA to machine code of the architecture; the caller frees it. INTERNAL with the first
 * line of the compiler's log. */
tb_status tb_mo_nvrtc_compile(const mo_driver *driver, const char *source, const char *architecture,
                              char **code, size_t *size, tb_error *error);
/* NVRTC alone, for machines without a card. */
tb_status tb_mo_nvrtc_open(mo_driver *driver, tb_error *error);

#endif
