/* See device.h. */
#include "schedule/device.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "schedule/pace.h"
#include "schedule/scheduler.h"
#include "call/auth.h"
#include "call/call.h"
#include "ops/daemon.h"
#include "tribo_soft.h"

/* Worlds from which on a card gets a session where nothing has been measured. */
static const int64_t USUAL_CARD_WORLDS = 1024;

/* Acceptable slowdown, by size alone, of a trial on an unmeasured device: a job ends and comes
 * again, a session stays. Only jobs therefore repeat trials whose measurement is old. */
static const double LOSS_OF_A_JOB = 4, LOSS_OF_A_SESSION = 2;
static const int64_t AGE_NS = 600000000000;

/* Between two looks at a device's share of busy time. */
static const int64_t LOOK_NS = 1000000000;

/* ---- which there are ---- */

static td_device *add_device(td_server *server, tb_backend_choice backend, int32_t index)
{
    if (server->number_of_devices == TD_DEVICES) return NULL;
    td_device *device = &server->devices[server->number_of_devices++];
    device->backend = backend;
    device->index = index;
    if (backend == TB_BACKEND_CPU)
        snprintf(device->name, sizeof device->name, "cpu");
    else
        snprintf(device->name, sizeof device->name, "gpu:%d", (int)index);
    return device;
}

static tb_status add_cards(td_server *server, int32_t count, tb_error *error)
{
    for (int32_t i = 0; i < count && i < TD_DEVICES - 1; i++) {
        tb_device_info info;
        const tb_status status = tb_device_describe(TB_BACKEND_GPU, i, &info, error);
        if (status != TB_OK) return status;
        td_device *device = add_device(server, TB_BACKEND_GPU, i);
        snprintf(device->description, sizeof device->description, "%s", info.name);
        device->memory_bytes = info.memory;
        device->processors = info.processors;
    }
    return TB_OK;
}

tb_status td_devices_find(td_server *server, tb_error *error)
{
    const td_config *config = server->config;
    tb_status status = TB_OK;
    server->number_of_devices = 0;
    if (config->backend != TB_BACKEND_CPU) {
        tb_backend_info gpu;
        status = tb_backend_describe(TB_BACKEND_GPU, &gpu);
        if (status == TB_OK) status = add_cards(server, gpu.devices, error);
        if (status == TB_OK && gpu.devices == 0 && config->backend == TB_BACKEND_GPU)
            status = tb_fail_field(error, TB_UNAVAILABLE, "server.backend",
                                   "[server] backend = gpu, but there is none: %.300s", gpu.reason);
        /* usual on a machine without cards; on a machine with cards, the log's only reason why none
         * is used */
        if (status == TB_OK && gpu.devices == 0)
            td_log_write(server->log, TB_LOG_INFO, "devices.no_card", "reason=%s", gpu.reason);
    }
    if (status == TB_OK) add_device(server, TB_BACKEND_CPU, 0);
    if (status == TB_OK && server->number_of_devices > 1)
        status = td_paces_create(&server->paces, error);
    return status;
}

/* ---- all of them ---- */

tb_status td_devices_start(td_server *server, tb_error *error)
{
    tb_status status = TB_OK;
    for (int32_t i = 0; i < server->number_of_devices && status == TB_OK; i++) {
        td_device *device = &server->devices[i];
        status = td_scheduler_create(server, device, &device->scheduler, error);
        if (status == TB_OK) td_device_watch(device);
        if (status == TB_OK && device->description[0] == '\0')
            snprintf(device->description, sizeof device->description, "%s",
                     td_scheduler_device(device->scheduler));
    }
    return status;
}

bool td_devices_drain(td_server *server, double seconds)
{
    const int64_t end = td_monotonic_ns() + (int64_t)(fmin(seconds, 1e9) * 1e9);
    bool drained = true;
    for (int32_t i = 0; i < server->number_of_devices; i++) {
        const double left = 1e-9 * (double)(end - td_monotonic_ns());
        td_scheduler *s = server->devices[i].scheduler;
        if (s != NULL) drained = td_scheduler_drain(s, fmax(left, 0)) && drained;
    }
    return drained;
}

int32_t td_devices_queued(const td_server *server)
{
    int32_t queued = 0;
    for (int32_t i = 0; i < server->number_of_devices; i++)
        queued += td_scheduler_queued(server->devices[i].scheduler);
    return queued;
}

void td_devices_end(td_server *server)
{
    for (int32_t i = 0; i < server->number_of_devices; i++) {
        td_scheduler_destroy(server->devices[i].scheduler);
        server->devices[i].scheduler = NULL;
    }
    td_paces_destroy(server->paces);
    server->paces = NULL;
}

/* ---- choosing ---- */

void td_device_watch(td_device *d)
{
    atomic_store(&d->looked_busy_seconds, td_scheduler_measure(d->scheduler).busy_seconds);
    atomic_store(&d->looked_ns, td_monotonic_ns());
}

/* Share of the time in which the device was in use since the look before, looked at no more often than
 * once a second. */
static double busy_share(td_device *d)
{
    const int64_t now = td_monotonic_ns();
    long long last = atomic_load(&d->looked_ns);
    if (now - last >= LOOK_NS && atomic_compare_exchange_strong(&d->looked_ns, &last, now)) {
        const double busy = td_scheduler_measure(d->scheduler).busy_seconds;
        const double before = atomic_exchange(&d->looked_busy_seconds, busy);
        atomic_store(&d->busy_share, 1e9 * (busy - before) / (double)(now - last));
    }
    return atomic_load(&d->busy_share);
}

/* A card as a place for more worlds. */
typedef struct place {
    bool fits;         /* the worlds fit in addition to the present ones */
    double free_bytes; /* of memory */
    int32_t waiting;   /* jobs */
    int busy;          /* quarters of the time in use */
    double fill;       /* share of the memory that the sessions take */
    int32_t sessions;
} place;

static place look_at(td_device *d, uint64_t bytes)
{
    tb_device_use use = {0};
    const double worlds = (double)atomic_load(&d->world_bytes), total = (double)d->memory_bytes;
    tb_device_measure(d->backend, d->index, &use, NULL);
    /* memory that is kept for worlds and not in use is free for others */
    const double used = (double)(use.memory_bytes - (use.pool_bytes - use.pool_used_bytes));
    place p = {.free_bytes = total - fmax(worlds, used),
               .waiting = td_scheduler_queued(d->scheduler),
               .busy = (int)(4 * busy_share(d) + 0.5),
               .fill = total > 0 ? worlds / total : 0,
               .sessions = atomic_load(&d->sessions)};
    p.fits = total == 0 || (double)bytes <= p.free_bytes;
    return p;
}

/* Memory first, since worlds that do not fit are swapped at every step; then the wait, at once and as a
 * habit; then an even spread, of memory and of sessions. */
static bool is_better(const place *a, const place *b)
{
    if (a->fits != b->fits) return a->fits;
    if (!a->fits && a->free_bytes != b->free_bytes) return a->free_bytes > b->free_bytes;
    if (a->waiting != b->waiting) return a->waiting < b->waiting;
    if (a->busy != b->busy) return a->busy < b->busy;
    if (a->fill != b->fill) return a->fill < b->fill;
    return a->sessions < b->sessions;
}

/* The card that `bytes` more of worlds suit best; NULL: none. */
static td_device *freest_card(td_server *server, uint64_t bytes)
{
    td_device *best = NULL;
    place best_place = {0};
    for (int32_t i = 0; i < server->number_of_devices; i++) {
        td_device *d = &server->devices[i];
        if (d->backend == TB_BACKEND_CPU || atomic_load(&d->lost)) continue;
        const place here = look_at(d, bytes);
        if (best != NULL && !is_better(&here, &best_place)) continue;
        best = d;
        best_place = here;
    }
    return best;
}

void td_device_lose(td_server *server, td_device *device)
{
    if (device == NULL || device->backend == TB_BACKEND_CPU) {
        atomic_store(&server->alive, false);
        return;
    }
    const bool known = atomic_exchange(&device->lost, true);
    const td_device *other = freest_card(server, 0);
    if (other == NULL) {
        atomic_store(&server->alive, false);
    } else if (!known) {
        td_log_write(server->log, TB_LOG_ERROR, "device.lost", "device=%s goes_on=%s sessions=%d",
                     device->name, other->name, (int)atomic_load(&device->sessions));
    }
}

bool td_device_is_gone(const td_server *server, const td_device *device)
{
    return atomic_load(&device->lost) && atomic_load(&server->alive);
}

td_device *td_device_cpu(td_server *server)
{
    return &server->devices[server->number_of_devices - 1];
}

int64_t td_device_card_worlds(const td_server *server)
{
    const int64_t configured = server->config->gpu_worlds;
    const td_device *card = &server->devices[0];
    const td_device *cpu = &server->devices[server->number_of_devices - 1];
    const double card_ns = atomic_load(&card->step_ns), cpu_ns = atomic_load(&cpu->step_ns);
    if (configured > 0) return configured;
    if (!(card_ns > 0 && cpu_ns > 0)) return USUAL_CARD_WORLDS;
    /* the card's time for one world is its time for a few hundred; the threads share theirs out */
    const double worlds = ceil(card_ns * td_scheduler_threads(cpu->scheduler) / cpu_ns);
    return worlds < 2 ? 2 : worlds < 1e6 ? (int64_t)worlds : 1000000;
}

/* Decides by size, or by measured step times of the same scene where both are known (`*known`). */
static bool is_for_card(const td_server *server, const td_device *card, const td_device *cpu,
                        const td_device_wish *wish, bool *known)
{
    *known = false;
    if (server->config->backend == TB_BACKEND_GPU) return true;
    /* meshes are slower on a card (tests/bench/gpu/results/README.md) */
    if (wish->meshes || (wish->options != NULL && (wish->options->scheme == TB_SCHEME_PLANAR ||
                                                   wish->options->scheme == TB_SCHEME_VOLUME)))
        return false;
    if (wish->soft_nodes == 0 && wish->bodies >= server->config->gpu_bodies) return true;
    /* waiting jobs reduce a device's gain */
    const double card_wait = 1 + td_scheduler_queued(card->scheduler);
    const double cpu_wait = 1 + td_scheduler_queued(cpu->scheduler);
    /* the card's speedup, estimated by size alone: of worlds with soft bodies, one at a time */
    const double size = wish->soft_nodes > 0
                            ? (double)wish->soft_nodes / TB_SOFT_CARD_NODES
                            : (double)wish->worlds / (double)td_device_card_worlds(server);
    const double gain = size * cpu_wait / card_wait;
    if (server->config->gpu_worlds > 0) return gain >= 1;

    const int64_t now = td_monotonic_ns(), since = wish->ends ? now - AGE_NS : INT64_MIN;
    const double threads = td_scheduler_threads(cpu->scheduler), worlds = (double)wish->worlds;
    const double card_ns =
        td_pace_step_ns(server->paces, wish->pace, TB_BACKEND_GPU, wish->worlds, since);
    const double cpu_ns =
        td_pace_step_ns(server->paces, wish->pace, TB_BACKEND_CPU, wish->worlds, since) /
        fmin(threads, worlds);
    *known = card_ns > 0 && cpu_ns > 0;
    if (*known) return card_ns * card_wait <= cpu_ns * cpu_wait;
    if (card_ns + cpu_ns == 0) return gain >= 1;

    /* the unmeasured device: chosen because size favours it, or as a trial */
    const tb_backend_choice other = card_ns > 0 ? TB_BACKEND_CPU : TB_BACKEND_GPU;
    const double lost = other == TB_BACKEND_CPU ? gain : 1 / gain;
    const double most = wish->ends ? LOSS_OF_A_JOB : LOSS_OF_A_SESSION;
    const bool goes =
        lost <= 1 || (lost <= most && td_pace_try(server->paces, wish->pace, other, now));
    return goes == (other == TB_BACKEND_GPU);
}

/* True if a stepper with these options can be made on the device. */
static tb_status try_options(const td_device *device, const tb_step_options *options,
                             tb_error *error)
{
    tb_stepper *stepper = NULL;
    tb_step_options there = *options;
    if (device->backend == TB_BACKEND_CPU) return TB_OK;
    td_device_apply(device, &there);
    const tb_status status = tb_stepper_create(&there, &stepper, error);
    tb_stepper_destroy(stepper);
    return status;
}

static td_device *named(td_server *server, const char *name)
{
    for (int32_t i = 0; i < server->number_of_devices; i++)
        if (strcmp(server->devices[i].name, name) == 0) return &server->devices[i];
    return NULL;
}

/* Whether a card has memory for the worlds. Those with soft bodies stay there; all others make room for each other. */
static bool has_room(td_device *card, const td_device_wish *wish)
{
    return wish->soft_nodes == 0 || look_at(card, wish->bytes).fits;
}

tb_status td_device_choose(td_server *server, const td_device_wish *wish, td_device **chosen,
                           tb_error *error)
{
    td_device *card = freest_card(server, wish->bytes), *cpu = td_device_cpu(server);
    if (*wish->name != '\0') {
        *chosen = named(server, wish->name);
        if (*chosen != NULL && atomic_load(&(*chosen)->lost))
            return tb_fail_field(error, TB_UNAVAILABLE, "device", "the device %s is lost",
                                 wish->name);
        if (*chosen != NULL && *chosen != cpu && !has_room(*chosen, wish))
            return tb_fail_field(error, TB_RESOURCE_EXHAUSTED, "memory",
                                 "%" PRId64 " worlds would take about %" PRIu64
                                 " bytes of the device %s, which has less",
                                 wish->worlds, wish->bytes, wish->name);
        if (*chosen != NULL) return try_options(*chosen, wish->options, error);
        return tb_fail_field(error, TB_NOT_FOUND, "device", "there is no device '%.80s'",
                             wish->name);
    }
    bool known = false;
    *chosen = cpu;
    if (card != NULL && has_room(card, wish) && is_for_card(server, card, cpu, wish, &known)) {
        const tb_status status = try_options(card, wish->options, error);
        /* there are things that cards do not do */
        if (status != TB_OK && status != TB_UNSUPPORTED) return status;
        if (status == TB_OK) *chosen = card;
        known = known && status == TB_OK;
    }
    atomic_fetch_add(known ? &(*chosen)->chosen_by_pace : &(*chosen)->chosen_by_size, 1);
    return TB_OK;
}

void td_device_note(td_server *server, const td_device *device, uint64_t pace, int64_t worlds,
                    double step_ns)
{
    if (server->paces != NULL)
        td_pace_note(server->paces, pace, device->backend, worlds, step_ns, td_monotonic_ns());
}

uint8_t td_device_code(const td_device *device)
{
    return (uint8_t)(device->backend == TB_BACKEND_CPU ? 1 : 2 + device->index);
}

td_device *td_device_coded(td_server *server, uint8_t code)
{
    for (int32_t i = 0; i < server->number_of_devices; i++)
        if (td_device_code(&server->devices[i]) == code) return &server->devices[i];
    return NULL;
}
