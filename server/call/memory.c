/* See memory.h. */
#include "call/memory.h"

#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "call/auth.h"
#include "call/call.h"
#include "ops/daemon.h"
#include "tribo_soft.h"

/* Measured over piles of boxes after some steps (1, 50 and 1000 bodies): 28 kB, 130 kB and 1.9 MB a
 * world; shapes of static geometry add their boxes. */
static const uint64_t WORLD_BYTES = 24 << 10, BODY_BYTES = 2 << 10, SHAPE_BYTES = 256;
/* A variant of a model: the model's structure, and each body, shape and half an actuator. */
static const uint64_t PARAMETERS_BYTES = 4 << 10, COPIED_BYTES = 512;
/* Freed memory that is worth asking the allocator to give back. */
static const size_t TRIM_BYTES = (size_t)32 << 20;

typedef struct memory_client {
    char name[TD_CALLER_NAME_SIZE];
    uint64_t bytes;
} memory_client;

struct td_memory {
    pthread_mutex_t mutex;
    uint64_t booked;
    memory_client *clients; /* with something booked */
    int32_t count, capacity;
};

tb_status td_memory_create(td_memory **created, tb_error *error)
{
    td_memory *memory = calloc(1, sizeof *memory);
    *created = memory;
    if (memory == NULL) return tb_fail_memory(error, sizeof *memory, "the memory's accounts");
    pthread_mutex_init(&memory->mutex, NULL);
    return TB_OK;
}

void td_memory_destroy(td_memory *memory)
{
    if (memory == NULL) return;
    pthread_mutex_destroy(&memory->mutex);
    free(memory->clients);
    free(memory);
}

/* ---- memory of the process and the machine ---- */

uint64_t td_memory_resident(void)
{
    unsigned long long total = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL) return 0;
    const bool read = fscanf(file, "%llu %llu", &total, &resident) == 2;
    fclose(file);
    return read ? (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

/* The machine's memory, or the control group's if that is less. */
static uint64_t physical_bytes(void)
{
    uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    unsigned long long limit = 0;
    FILE *file = fopen("/sys/fs/cgroup/memory.max", "re");
    if (file == NULL) return bytes;
    if (fscanf(file, "%llu", &limit) == 1 && limit < bytes) bytes = limit;
    fclose(file);
    return bytes;
}

uint64_t td_memory_limit(const td_server *server)
{
    const uint64_t given = server->config->memory_bytes;
    return given > 0 ? given : physical_bytes() / 4 * 3;
}

uint64_t td_memory_of_worlds(const tb_model *model, int32_t worlds)
{
    const tb_model_counts n = tb_model_count(model);
    const uint64_t world = WORLD_BYTES + BODY_BYTES * (uint64_t)n.bodies +
                           SHAPE_BYTES * (uint64_t)n.shapes + tb_soft_model_bytes(model);
    return world * (uint64_t)worlds;
}

uint64_t td_memory_on_card(const tb_model *model, int32_t worlds)
{
    const uint64_t soft = tb_soft_model_card_bytes(model);
    return soft > 0 ? soft * (uint64_t)worlds : td_memory_of_worlds(model, worlds);
}

uint64_t td_memory_of_parameters(const tb_model *model, int32_t worlds)
{
    const tb_model_counts n = tb_model_count(model);
    const uint64_t copied = (uint64_t)n.bodies + (uint64_t)n.shapes + 2 * (uint64_t)n.actuators;
    return (PARAMETERS_BYTES + COPIED_BYTES * copied) * (uint64_t)worlds;
}

/* ---- the accounts ---- */

static memory_client *find_client(td_memory *memory, const char *name)
{
    for (int32_t i = 0; i < memory->count; i++)
        if (strcmp(memory->clients[i].name, name) == 0) return &memory->clients[i];
    return NULL;
}

static memory_client *add_client(td_memory *memory, const char *name)
{
    if (memory->count == memory->capacity) {
        const int32_t capacity = 2 * memory->capacity + 8;
        memory_client *grown = realloc(memory->clients, (size_t)capacity * sizeof *grown);
        if (grown == NULL) return NULL;
        memory->clients = grown;
        memory->capacity = capacity;
    }
    memory_client *client = &memory->clients[memory->count++];
    *client = (memory_client){0};
    snprintf(client->name, sizeof client->name, "%s", name);
    return client;
}

static tb_status refuse(tb_error *error, const char *what, uint64_t bytes, const char *whose,
                        uint64_t used, uint64_t limit)
{
    return tb_fail_field(error, TB_RESOURCE_EXHAUSTED, "memory",
                         "%s would take about %" PRIu64 " bytes of memory; %s may have %" PRIu64
                         ", and %" PRIu64 " are in use",
                         what, bytes, whose, limit, used);
}

tb_status td_memory_take(td_server *server, const char *client, uint64_t bytes, const char *what,
                         tb_error *error)
{
    const td_config *config = server->config;
    td_memory *memory = server->memory;
    const uint64_t limit = td_memory_limit(server), resident = td_memory_resident();
    const uint64_t client_limit =
        config->client_memory_bytes > 0 ? config->client_memory_bytes : limit;
    if (config->session_memory_bytes > 0 && bytes > config->session_memory_bytes)
        return refuse(error, what, bytes, "a session", 0, config->session_memory_bytes);

    tb_status status = TB_OK;
    pthread_mutex_lock(&memory->mutex);
    const uint64_t used = memory->booked > resident ? memory->booked : resident;
    memory_client *account = find_client(memory, client);
    const uint64_t own = account != NULL ? account->bytes : 0;
    if (bytes > limit || used > limit - bytes)
        status = refuse(error, what, bytes, "the server", used, limit);
    else if (bytes > client_limit || own > client_limit - bytes)
        status = refuse(error, what, bytes, "a client", own, client_limit);
    else if (account == NULL && (account = add_client(memory, client)) == NULL)
        status = tb_fail_memory(error, sizeof *account, "the memory's accounts");
    if (status == TB_OK) {
        account->bytes += bytes;
        memory->booked += bytes;
    }
    pthread_mutex_unlock(&memory->mutex);
    return status;
}

void td_memory_give_back(td_server *server, const char *client, uint64_t bytes)
{
    td_memory *memory = server->memory;
    pthread_mutex_lock(&memory->mutex);
    memory_client *account = find_client(memory, client);
    if (account != NULL) {
        account->bytes -= bytes < account->bytes ? bytes : account->bytes;
        if (account->bytes == 0) *account = memory->clients[--memory->count];
    }
    memory->booked -= bytes < memory->booked ? bytes : memory->booked;
    pthread_mutex_unlock(&memory->mutex);
}

uint64_t td_memory_booked(td_server *server)
{
    pthread_mutex_lock(&server->memory->mutex);
    const uint64_t booked = server->memory->booked;
    pthread_mutex_unlock(&server->memory->mutex);
    return booked;
}

void td_memory_trim(void)
{
#ifdef __GLIBC__
    const struct mallinfo2 info = mallinfo2();
    if (info.fordblks > TRIM_BYTES) malloc_trim(0);
#endif
}
