/* The devices of the daemon: the processors of this machine and its cards, each with a scheduler
 * and its owner thread; and the choice of a device for a session or a job.
 *
 * The caller may name a device. Otherwise the configuration decides if cards are used at all, and
 * then size and load decide: a card takes as long for one small world as for hundreds, so it gets
 * sessions with many worlds or with very large ones, and fewer while others wait for it; none with
 * shapes that collide as meshes (tb_model_has_meshes has the reason).
 *
 * The break-even number of worlds varies strongly between scenes (tests/bench/gpu/results). A scene
 * measured on both kinds of device therefore goes to the faster (pace.h). A scene measured on one
 * kind tries the other if that, by size, takes at most four times as long for a job of grasps,
 * twice for a session, one caller at a time.
 *
 * A session keeps its device, so that its bytes do not depend on later load; the response names the
 * device. */
#ifndef SERVER_DEVICE_H
#define SERVER_DEVICE_H

#include "ops/daemon.h"

/* Lists the devices that [server] backend names, the one that is used first in front. UNAVAILABLE,
 * with the reason, where cards are asked for and there are none. */
tb_status td_devices_find(struct td_server *, tb_error *);
/* Makes their schedulers. */
tb_status td_devices_start(struct td_server *, tb_error *);
/* Waits until no job is left on any of them or `seconds` have passed; false in that case. */
bool td_devices_drain(struct td_server *, double seconds);
int32_t td_devices_queued(const struct td_server *);
void td_devices_end(struct td_server *);

/* A request for a device: `worlds` of `bodies` each, with these options. */
typedef struct td_device_wish {
    const char *name; /* "": any */
    int64_t worlds;
    int32_t bodies;
    uint64_t bytes;     /* memory of the worlds, as estimated; 0: unknown */
    bool meshes;        /* tb_model_has_meshes */
    int64_t soft_nodes; /* tb_soft_model_nodes */
    bool ends;     /* by itself, unlike a session: to try a device that may be slow costs less */
    uint64_t pace; /* td_pace_key; 0: unknown */
    const tb_step_options *options;
} td_device_wish;

/* Called where a call of the device was ABORTED. While another card works, the device is marked as lost and its
 * sessions move there from their last checkpoints (session_recover.c); else the daemon ends. NULL: the
 * processors. */
void td_device_lose(struct td_server *, td_device *);
/* Whether a card is lost and others go on. */
bool td_device_is_gone(const struct td_server *, const td_device *);

/* The device of a name, or one by size and load that takes the options. NOT_FOUND; UNSUPPORTED where
 * the one that was named does not take the options. */
tb_status td_device_choose(struct td_server *, const td_device_wish *, td_device **, tb_error *);
/* Records the time of a step of all worlds: ns of the device, or of one of its threads (td_job). */
void td_device_note(struct td_server *, const td_device *, uint64_t pace, int64_t worlds,
                    double step_ns);
/* Begins to measure the share of time in which the device is in use: at the start, after its warm-up. */
void td_device_watch(td_device *);
/* The processors, which every daemon has. */
td_device *td_device_cpu(struct td_server *);
/* Least number of worlds for which a card is faster, as measured at the start or as configured. */
int64_t td_device_card_worlds(const struct td_server *);
/* Options for steps there. */
void td_device_apply(const td_device *, tb_step_options *);
/* A session row's code of a device, and back; NULL for a device that no longer exists. */
uint8_t td_device_code(const td_device *);
td_device *td_device_coded(struct td_server *, uint8_t code);

/* device_metrics.c: the devices' part of the metrics page. */
void td_devices_print(void *server, FILE *out);

#endif
