/* The devices' part of the metrics page: queue lengths, and sessions, memory and activity of each
 * device. Read again for each page. */
#include <inttypes.h>
#include <stdio.h>

#include "schedule/scheduler.h"
#include "call/auth.h"
#include "call/call.h"
#include "ops/daemon.h"
#include "schedule/device.h"

/* A family: name, type, help, and how its value is printed from a row. */
typedef struct row {
    const td_device *device;
    td_scheduler_use queue;
    tb_device_use use;
} row;

typedef struct family {
    const char *name, *type, *help;
    bool cards_only;
    double (*value)(const row *);
} family;

#define VALUE(name, expression)                                                                    \
    static double name(const row *r)                                                               \
    {                                                                                              \
        return (double)(expression);                                                               \
    }
VALUE(queue_length, r->queue.waiting)
VALUE(wait_seconds, r->queue.wait_seconds)
VALUE(jobs, r->queue.jobs)
VALUE(busy_seconds, r->queue.busy_seconds)
VALUE(sessions, atomic_load(&r->device->sessions))
VALUE(session_worlds, atomic_load(&r->device->worlds))
VALUE(chosen_by_size, atomic_load(&r->device->chosen_by_size))
VALUE(chosen_by_pace, atomic_load(&r->device->chosen_by_pace))
VALUE(warm_up_seconds, atomic_load(&r->device->warm_up_seconds))
VALUE(memory, r->use.memory_bytes)
VALUE(memory_total, r->device->memory_bytes)
VALUE(memory_worlds, r->use.pool_used_bytes)
VALUE(memory_pool, r->use.pool_bytes)
VALUE(memory_models, r->use.model_bytes)
VALUE(compute_seconds, r->use.compute_seconds)
VALUE(copy_seconds, r->use.copy_seconds)
VALUE(copied_bytes, r->use.copied_bytes)
VALUE(worlds, r->use.worlds)
VALUE(worlds_swapped, r->use.worlds_swapped)
VALUE(evictions, r->use.evictions)
VALUE(launches, r->use.launches)
VALUE(uploads, r->use.uploads)
VALUE(fetches, r->use.fetches)
VALUE(moves, r->use.moves)
VALUE(lost, r->use.lost || atomic_load(&r->device->lost))

static const family FAMILIES[] = {
    {"tribod_device_queue_length", "gauge", "Requests waiting for the device", false, queue_length},
    {"tribod_device_wait_seconds_total", "counter", "Time that requests waited for it", false,
     wait_seconds},
    {"tribod_device_jobs_total", "counter", "Requests that it was done with", false, jobs},
    {"tribod_device_busy_seconds_total", "counter", "Time that somebody had it", false,
     busy_seconds},
    {"tribod_device_sessions", "gauge", "Sessions that are stepped there", false, sessions},
    {"tribod_device_worlds", "gauge", "Worlds of these sessions", false, session_worlds},
    {"tribod_device_chosen_by_size_total", "counter",
     "Sessions and jobs that it got by size or kind", false, chosen_by_size},
    {"tribod_device_chosen_by_pace_total", "counter",
     "Sessions and jobs that it got since steps of them had been measured on both kinds", false,
     chosen_by_pace},
    {"tribod_device_warm_up_seconds", "gauge", "Duration of the warm-up at the start", false,
     warm_up_seconds},
    {"tribod_gpu_memory_bytes", "gauge", "Memory of the card that the daemon holds", true, memory},
    {"tribod_gpu_memory_total_bytes", "gauge", "Memory of the card", true, memory_total},
    {"tribod_gpu_pool_bytes", "gauge", "Memory kept for worlds", true, memory_pool},
    {"tribod_gpu_pool_used_bytes", "gauge", "Of these, by worlds", true, memory_worlds},
    {"tribod_gpu_model_bytes", "gauge", "Memory of compiled scenes", true, memory_models},
    {"tribod_gpu_busy_seconds_total", "counter", "Time that kernels of steps ran", true,
     compute_seconds},
    {"tribod_gpu_copy_seconds_total", "counter", "Time of copies to and from the card", true,
     copy_seconds},
    {"tribod_gpu_copied_bytes_total", "counter", "Bytes copied to and from the card", true,
     copied_bytes},
    {"tribod_gpu_worlds", "gauge", "Worlds that live on the card between calls", true, worlds},
    {"tribod_gpu_worlds_swapped", "gauge", "Of these, swapped out to the host", true,
     worlds_swapped},
    {"tribod_gpu_evictions_total", "counter", "Worlds that made room for others", true, evictions},
    {"tribod_gpu_launches_total", "counter", "Launches of steps", true, launches},
    {"tribod_gpu_uploads_total", "counter", "Worlds sent to the card", true, uploads},
    {"tribod_gpu_fetches_total", "counter", "Times worlds were read back", true, fetches},
    {"tribod_gpu_moves_total", "counter", "Worlds copied on the card: forks, growth", true, moves},
    {"tribod_gpu_lost", "gauge", "1 once the card has failed", true, lost}};

void td_devices_print(void *context, FILE *out)
{
    const td_server *server = context;
    row rows[TD_DEVICES];
    for (int32_t i = 0; i < server->number_of_devices; i++) {
        const td_device *device = &server->devices[i];
        rows[i] = (row){.device = device, .queue = td_scheduler_measure(device->scheduler)};
        tb_device_measure(device->backend, device->index, &rows[i].use, NULL);
    }
    const bool cards = server->devices[0].backend != TB_BACKEND_CPU;
    for (size_t f = 0; f < sizeof FAMILIES / sizeof *FAMILIES; f++) {
        const family *m = &FAMILIES[f];
        if (m->cards_only && !cards) continue;
        fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", m->name, m->help, m->name, m->type);
        for (int32_t i = 0; i < server->number_of_devices; i++) {
            if (m->cards_only && rows[i].device->backend == TB_BACKEND_CPU) continue;
            fprintf(out, "%s{device=\"%s\"} %.15g\n", m->name, rows[i].device->name,
                    m->value(&rows[i]));
        }
    }
}
