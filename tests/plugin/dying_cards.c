/* Real cards that die on demand: the plug-in named by TRIBO_TEST_PLUGIN as it is, and a thread that
 * makes card N unusable as soon as the file $TRIBO_TEST_LOSE.N exists. A kernel that writes to an
 * address of nobody poisons the process' context of that card, as a fault of the card does: every
 * later call there fails, and only a new process gets the card back. Found by TRIBO_GPU_PLUGIN. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "backend/backend.h"

/* not const: filled from the other plug-in while this one is loaded */
extern tb_backend tb_backend_plugin;
tb_backend tb_backend_plugin;

enum { CARDS = 8, POLL_NS = 1000000 };

#define KERNEL(body)                                                                               \
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry fault()\n{\n" body             \
    "    ret;\n}\n"

/* by name, TRIBO_TEST_FAULT; the first where it is not set */
static const struct {
    const char *name, *code;
} FAULTS[] = {
    {"address", KERNEL("    .reg .b64 %address;\n"
                       "    .reg .b32 %value;\n"
                       "    mov.u64 %address, 64;\n"
                       "    mov.u32 %value, 1;\n"
                       "    st.global.u32 [%address], %value;\n")},
    {"trap", KERNEL("    trap;\n")},
};

/* The driver's functions, which no header here declares. */
typedef struct {
    int (*init)(unsigned flags);
    int (*device)(int *device, int ordinal);
    int (*retain)(void **context, int device);
    int (*set_current)(void *context);
    int (*load)(void **module, const void *image);
    int (*function)(void **function, void *module, const char *name);
    int (*launch)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                  unsigned bz, unsigned shared, void *stream, void **arguments, void **extra);
    int (*synchronize)(void);
} driver_calls;

static bool open_driver(driver_calls *d)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return false;
    const struct {
        const char *name;
        void **function;
    } calls[] = {
        {"cuInit", (void **)&d->init},
        {"cuDeviceGet", (void **)&d->device},
        {"cuDevicePrimaryCtxRetain", (void **)&d->retain},
        {"cuCtxSetCurrent", (void **)&d->set_current},
        {"cuModuleLoadData", (void **)&d->load},
        {"cuModuleGetFunction", (void **)&d->function},
        {"cuLaunchKernel", (void **)&d->launch},
        {"cuCtxSynchronize", (void **)&d->synchronize},
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        if ((*calls[i].function = dlsym(library, calls[i].name)) == NULL) return false;
    return true;
}

static const char *fault_code(void)
{
    const char *name = getenv("TRIBO_TEST_FAULT");
    for (size_t i = 0; name != NULL && i < sizeof FAULTS / sizeof FAULTS[0]; i++)
        if (strcmp(name, FAULTS[i].name) == 0) return FAULTS[i].code;
    return FAULTS[0].code;
}

static void kill_card(const driver_calls *d, int card)
{
    int device = 0;
    void *context = NULL, *module = NULL, *function = NULL;
    int result = d->device(&device, card);
    if (result == 0) result = d->retain(&context, device);
    if (result == 0) result = d->set_current(context);
    if (result == 0) result = d->load(&module, fault_code());
    if (result == 0) result = d->function(&function, module, "fault");
    if (result == 0) result = d->launch(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
    if (result == 0) result = d->synchronize();
    fprintf(stderr, "dying_cards: card %d: error %d of the driver\n", card, result);
}

static void *watch(void *lost)
{
    driver_calls driver = {0};
    bool dead[CARDS] = {false};
    for (;; nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL)) {
        for (int card = 0; card < CARDS; card++) {
            char name[4096];
            snprintf(name, sizeof name, "%s.%d", (const char *)lost, card);
            if (dead[card] || access(name, F_OK) != 0) continue;
            dead[card] = true;
            if (driver.init == NULL && (!open_driver(&driver) || driver.init(0) != 0))
                fprintf(stderr, "dying_cards: no driver\n");
            else
                kill_card(&driver, card);
        }
    }
    return NULL;
}

__attribute__((constructor)) static void load(void)
{
    const char *path = getenv("TRIBO_TEST_PLUGIN"), *lost = getenv("TRIBO_TEST_LOSE");
    void *other = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    const tb_backend *real = other != NULL ? dlsym(other, "tb_backend_plugin") : NULL;
    if (real == NULL) return; /* its ABI stays 0, and nothing takes it */
    tb_backend_plugin = *real;

    /* signals are for the daemon's own threads */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pthread_t thread;
    if (lost != NULL && pthread_create(&thread, NULL, watch, (void *)lost) == 0)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}
