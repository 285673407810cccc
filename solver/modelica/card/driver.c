/* Loads the CUDA driver and NVRTC, and makes a stream on the first card. */
#include "modelica/card/driver.h"

#include "base/sha256.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPUTE_MAJOR = 75, COMPUTE_MINOR = 76, PROCESSORS = 16 }; /* CUdevice_attribute */
enum { RELEASE_THRESHOLD = 4 };                                   /* CUmemPool_attribute */

/* The driver and NVRTC as the one search of the process found them; written once. */
static struct {
    pthread_once_t once;
    mo_driver driver;
    tb_status status;
    tb_error error;
} found = {.once = PTHREAD_ONCE_INIT};

static bool find(void *library, const char *name, void *function)
{
    void *symbol = dlsym(library, name);
    memcpy(function, &symbol, sizeof symbol);
    return symbol != NULL;
}

static void *open_first(const char *const *names)
{
    void *library = NULL;
    for (; *names != NULL && library == NULL; names++)
        library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
    return library;
}

tb_status tb_mo_nvrtc_open(mo_driver *d, tb_error *error)
{
    static const char *const NAMES[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", NULL};
    void *library = open_first(NAMES);
    if (library == NULL)
        return tb_fail(error, TB_UNAVAILABLE, "NVRTC is missing (libnvrtc.so.13 or 12)");
#define NVRTC_FIND(name, parameters)                                                               \
    if (!find(library, #name, &d->name))                                                           \
        return tb_fail(error, TB_UNAVAILABLE, "NVRTC lacks %s", #name);
    NVRTC_FUNCTIONS(NVRTC_FIND)
#undef NVRTC_FIND
    return TB_OK;
}

static tb_status open_driver(mo_driver *d, tb_error *error)
{
    static const char *const NAMES[] = {"libcuda.so.1", "libcuda.so", NULL};
    int major = 0, minor = 0;
    void *library = open_first(NAMES);
    if (library == NULL) return tb_fail(error, TB_UNAVAILABLE, "no CUDA driver (libcuda.so.1)");
#define CU_FIND(name, parameters)                                                                  \
    if (!find(library, #name, &d->name))                                                           \
        return tb_fail(error, TB_UNAVAILABLE, "the CUDA driver lacks %s", #name);
    CU_FUNCTIONS(CU_FIND)
#undef CU_FIND
    uint64_t keep = UINT64_MAX;
    cu_handle pool;
    void *pinned = NULL;
    const int failed = d->cuInit(0) || d->cuDeviceGet(&d->device, 0) ||
                       d->cuDevicePrimaryCtxRetain(&d->context, d->device) ||
                       d->cuCtxSetCurrent(d->context) || d->cuStreamCreate(&d->stream, 1) ||
                       d->cuEventCreate(&d->begin, 0) || d->cuEventCreate(&d->end, 0) ||
                       d->cuMemAlloc_v2(&d->card_fault, 8 * MO_FAULT_WORDS) ||
                       d->cuMemHostAlloc(&pinned, 8 * MO_FAULT_WORDS, 0) ||
                       d->cuDeviceGetDefaultMemPool(&pool, d->device) ||
                       d->cuMemPoolSetAttribute(pool, RELEASE_THRESHOLD, &keep) ||
                       d->cuDeviceGetAttribute(&major, COMPUTE_MAJOR, d->device) ||
                       d->cuDeviceGetAttribute(&minor, COMPUTE_MINOR, d->device) ||
                       d->cuDeviceGetAttribute(&d->processors, PROCESSORS, d->device);
    d->fault = pinned;
    if (failed) return tb_fail(error, TB_UNAVAILABLE, "no card that the CUDA driver can use");
    snprintf(d->architecture, sizeof d->architecture, "sm_%d%d", major, minor);
    return TB_OK;
}

static void search(void)
{
    found.status = open_driver(&found.driver, &found.error);
    if (found.status == TB_OK) found.status = tb_mo_nvrtc_open(&found.driver, &found.error);
}

tb_status tb_mo_driver(mo_driver **driver, tb_error *error)
{
    pthread_once(&found.once, search);
    if (found.status != TB_OK) return tb_fail(error, found.status, "%s", found.error.message);
    if (found.driver.cuCtxSetCurrent(found.driver.context) != 0)
        return tb_fail(error, TB_ABORTED, "the card's context is lost");
    *driver = &found.driver;
    return TB_OK;
}

/* the first line of the compiler's log with an error */
static tb_status tell_log(const mo_driver *d, cu_handle program, tb_error *error)
{
    size_t size = 0;
    d->nvrtcGetProgramLogSize(program, &size);
    char *log = calloc(1, size + 1);
    if (log != NULL) d->nvrtcGetProgramLog(program, log);
    const char *line = log != NULL ? strstr(log, "error") : NULL;
    tb_fail(error, TB_INTERNAL, "NVRTC refused generated code: %.200s",
            line != NULL ? line : "no log");
    free(log);
    return TB_INTERNAL;
}

/* products and sums stay apart, as on the processor */
static const char *const OPTIONS[] = {"--fmad=false", "--std=c++17", "-w"};
enum { OPTION_COUNT = sizeof OPTIONS / sizeof OPTIONS[0] };

void tb_mo_nvrtc_key(const mo_driver *d, const char *source, const char *architecture, char key[65])
{
    char text[400], hash[65];
    int major = 0, minor = 0;
    d->nvrtcVersion(&major, &minor);
    tb_sha256_hex(source, strlen(source), hash);
    int used = snprintf(text, sizeof text, "%s %s %d.%d", hash, architecture, major, minor);
    for (int k = 0; k < OPTION_COUNT; k++)
        used += snprintf(text + used, sizeof text - (size_t)used, " %s", OPTIONS[k]);
    tb_sha256_hex(text, (size_t)used, key);
}

tb_status tb_mo_nvrtc_compile(const mo_driver *d, const char *source, const char *architecture,
                              char **code, size_t *size, tb_error *error)
{
    cu_handle program = NULL;
    char target[40], number[48]; /* the text chooses by MO_ARCHITECTURE, 90 of "sm_90" */
    tb_status status = TB_OK;
    snprintf(target, sizeof target, "--gpu-architecture=%s", architecture);
    snprintf(number, sizeof number, "--define-macro=MO_ARCHITECTURE=%d",
             atoi(architecture + strcspn(architecture, "0123456789")));
    const char *options[OPTION_COUNT + 2] = {target, number};
    memcpy(options + 2, OPTIONS, sizeof OPTIONS);
    *code = NULL;
    if (d->nvrtcCreateProgram(&program, source, "function.cu", 0, NULL, NULL) != 0)
        return tb_fail(error, TB_INTERNAL, "NVRTC does not start");
    if (d->nvrtcCompileProgram(program, OPTION_COUNT + 2, options) != 0)
        status = tell_log(d, program, error);
    if (status == TB_OK && d->nvrtcGetCUBINSize(program, size) != 0)
        status = tb_fail(error, TB_INTERNAL, "NVRTC gave no machine code");
    if (status == TB_OK) *code = malloc(*size + 1);
    if (status == TB_OK && *code == NULL) status = tb_fail_memory(error, *size, "machine code");
    if (status == TB_OK && d->nvrtcGetCUBIN(program, *code) != 0)
        status = tb_fail(error, TB_INTERNAL, "NVRTC gave no machine code");
    d->nvrtcDestroyProgram(&program);
    if (status != TB_OK) {
        free(*code);
        *code = NULL;
    }
    return status;
}
