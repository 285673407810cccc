/* Backends: the one that is built in, and the plug-in that is looked for.
 *
 * The GPU's code stands in a shared object of its own, so that nothing else links a CUDA library
 * and everything runs unchanged where there is none. It is looked for once in a process, at the
 * first question about it, and stays: the driver's part of it cannot be unloaded. Looked for
 * where TRIBO_GPU_PLUGIN says (a path; empty: nowhere), else beside the program or library that
 * this code is part of, else in the folder where `make install` puts it. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "step/step.h"

#define PLUGIN_NAME  "libtribo_gpu.so"
#define PLUGIN_ENTRY "tb_backend_plugin"

enum { PATH_SIZE = 4096 };

/* Result of the search; written once. */
typedef struct discovery {
    pthread_once_t once;
    const tb_backend *gpu; /* NULL: none that can work here */
    int32_t devices;
    char reason[TB_ERROR_MESSAGE_SIZE];
} discovery;

static discovery found = {.once = PTHREAD_ONCE_INIT};

tb_status tb_backend_open(const char *path, const tb_backend **backend, tb_error *error)
{
    *backend = NULL;
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object) return tb_fail(error, TB_NOT_FOUND, "backend '%s': %s", path, dlerror());
    const tb_backend *entry = dlsym(object, PLUGIN_ENTRY);
    if (!entry) {
        dlclose(object);
        return tb_fail(error, TB_NOT_FOUND, "backend '%s' exports no %s", path, PLUGIN_ENTRY);
    }
    if (entry->abi != TB_BACKEND_ABI) {
        const int abi = entry->abi;
        dlclose(object);
        return tb_fail(error, TB_FAILED_PRECONDITION,
                       "backend '%s' has ABI %d, this build takes %d", path, abi, TB_BACKEND_ABI);
    }
    *backend = entry;
    return TB_OK;
}

/* The folder of the program or shared library that holds this code; "" if that is not known. */
static void own_folder(char folder[PATH_SIZE])
{
    Dl_info info;
    folder[0] = '\0';
    if (!dladdr(&found, &info) || !info.dli_fname) return;
    /* the main program may have been called by a bare name */
    char *path = realpath(strchr(info.dli_fname, '/') ? info.dli_fname : "/proc/self/exe", NULL);
    if (!path) return;
    char *slash = strrchr(path, '/');
    if (slash && slash - path < PATH_SIZE) {
        *slash = '\0';
        memcpy(folder, path, strlen(path) + 1);
    }
    free(path);
}

static bool readable(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file) fclose(file);
    return file != NULL;
}

/* False, and a reason, if there is no such file anywhere. */
static bool find_file(char path[PATH_SIZE + 64])
{
    static const char *const PLACES[] = {"", "tribo/", "../tribo/", "../lib/tribo/"};
    const char *given = getenv("TRIBO_GPU_PLUGIN");
    if (given) {
        snprintf(path, PATH_SIZE, "%s", given);
        if (*given) return true;
        snprintf(found.reason, sizeof found.reason, "switched off by TRIBO_GPU_PLUGIN");
        return false;
    }
    char folder[PATH_SIZE];
    own_folder(folder);
    for (size_t i = 0; *folder && i < sizeof PLACES / sizeof *PLACES; i++) {
        snprintf(path, PATH_SIZE + 64, "%s/%s%s", folder, PLACES[i], PLUGIN_NAME);
        if (readable(path)) return true;
    }
    snprintf(found.reason, sizeof found.reason, "no %s beside '%.400s'", PLUGIN_NAME, folder);
    return false;
}

static void discover(void)
{
    char path[PATH_SIZE + 64];
    tb_error error = {0};
    const tb_backend *gpu = NULL;
    if (!find_file(path)) return;
    if (tb_backend_open(path, &gpu, &error) != TB_OK) {
        snprintf(found.reason, sizeof found.reason, "%s", error.message);
        return;
    }
    if (gpu->prepare) gpu->prepare();
    found.devices = gpu->devices(found.reason);
    if (found.devices > 0) found.gpu = gpu;
}

tb_status tb_backend_find(tb_backend_choice choice, const tb_backend **backend, tb_error *error)
{
    *backend = &tb_backend_cpu;
    if (choice == TB_BACKEND_CPU) return TB_OK;
    pthread_once(&found.once, discover);
    if (found.gpu) *backend = found.gpu;
    if (found.gpu || choice == TB_BACKEND_AUTO) return TB_OK;
    return tb_fail_field(error, TB_UNAVAILABLE, "backend", "there is no GPU backend: %s",
                         found.reason);
}

tb_status tb_backend_describe(tb_backend_choice choice, tb_backend_info *info)
{
    memset(info, 0, sizeof *info);
    if (choice == TB_BACKEND_CPU) {
        info->name = tb_backend_cpu.name;
        info->devices = tb_backend_cpu.devices(info->reason);
        return TB_OK;
    }
    if (choice != TB_BACKEND_GPU) return TB_INVALID_ARGUMENT;
    pthread_once(&found.once, discover);
    info->name = "gpu";
    info->devices = found.devices;
    memcpy(info->reason, found.reason, sizeof info->reason);
    return TB_OK;
}

tb_status tb_device_describe(tb_backend_choice choice, int32_t device, tb_device_info *info,
                             tb_error *error)
{
    memset(info, 0, sizeof *info);
    const tb_backend *backend = NULL;
    const tb_status status = tb_backend_find(choice, &backend, error);
    if (status != TB_OK) return status;
    char reason[TB_ERROR_MESSAGE_SIZE];
    const int32_t devices = backend->devices(reason);
    if (device < 0 || device >= devices)
        return tb_fail_field(error, TB_NOT_FOUND, "device", "device %d of %d of backend '%s'",
                             device, devices, backend->name);
    return backend->describe(device, info, error);
}

tb_status tb_device_measure(tb_backend_choice choice, int32_t device, tb_device_use *use,
                            tb_error *error)
{
    memset(use, 0, sizeof *use);
    const tb_backend *backend = NULL;
    const tb_status status = tb_backend_find(choice, &backend, error);
    if (status != TB_OK || !backend->use) return status;
    return backend->use(device, use, error);
}
