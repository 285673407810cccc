/* The table of a backend: functions of the code that schedules work on a device, for the library.
 *
 * The header only declares states, models and programs, so that every room may include it. */
#ifndef TB_BACKEND_H
#define TB_BACKEND_H

#include "base/error.h"
#include "tribo_qp.h"

/* The copy of a state that a device keeps between calls. The struct begins the backend's own,
 * larger one. Forked states share a copy until one of them is stepped. */
typedef struct tb_device_copy {
    const struct tb_backend *backend;
} tb_device_copy;

struct tb_volume_run;
struct tb_betz_batch;
struct tb_box_pairs;
struct tb_row_run;
struct tb_row_outcome;
struct tb_soft_card_call;
struct tb_soft_card_scene;
struct tb_traversal;

enum { TB_BACKEND_ABI = 23 };

/* How a GPU spreads the worlds of a call over its processors, where a test or a benchmark fixes it, so
 * that a few worlds take every way that many would. No result depends on it. */
typedef struct tb_backend_schedule {
    int32_t lanes[4]; /* of a world, in each part of a step; 0: chosen */
    int32_t alone;    /* most worlds that go alone; -1: chosen */
    int32_t overlap;  /* blocks of solves that no other world waits for; 0: none; -1: chosen */
    int32_t large;    /* shapes from which on a world is a large one; 0: chosen */
} tb_backend_schedule;

static inline tb_backend_schedule tb_backend_schedule_chosen(void)
{
    return (tb_backend_schedule){.alone = -1, .overlap = -1};
}

/* A backend schedules the per-world and per-element functions of the rooms above; it holds no
 * formula. The CPU's is built in. Others are plug-ins: a shared object that exports one `const
 * tb_backend tb_backend_plugin` with the same ABI number. That number covers this table, tb_state,
 * tb_model, options, certificates and errors. */
typedef struct tb_backend {
    int32_t abi;      /* TB_BACKEND_ABI; first, and of this type, in every version */
    const char *name; /* "cpu" */
    /* Called once in a process, before every other function, for settings that the driver reads at
     * its start. May be NULL. */
    void (*prepare)(void);
    /* Number of usable devices; 0, with the cause in `reason`, if there are none. */
    int32_t (*devices)(char reason[TB_ERROR_MESSAGE_SIZE]);
    tb_status (*describe)(int32_t device, tb_device_info *info, tb_error *error);
    /* Working memory for `options`. */
    tb_status (*create)(const tb_step_options *options, void **context, tb_error *error);
    void (*destroy)(void *context);
    /* Whether the context also serves these options, or another must be made. NULL: every change of
     * options needs another. */
    bool (*serves)(const void *context, const tb_step_options *options);
    /* Steps every world `steps` times, or by its course where there are courses (checked; NULL:
     * none); the contracts of tb_step_batch and tb_step_courses. ABORTED: the device is lost, and
     * the host's copies of the states are as before the call. A backend without device copies gets
     * states that are wholly on the host and have none. */
    tb_status (*step)(void *context, const tb_step_options *options, tb_state *const *states,
                      const tb_course *courses, int32_t worlds, int32_t steps,
                      tb_certificate *certificates, tb_error *error);
    /* All but the name. */
    void (*measure)(const void *context, tb_stepper_use *use);
    /* Fixes the schedule of all later calls in this process; none may be on its way. May be NULL. */
    void (*fix_schedule)(const tb_backend_schedule *schedule);

    /* A backend with a memory of its own; NULL where worlds are stepped in the host's. The functions
     * below may be called from any thread, also while another one steps other states. */
    /* Runs every variant of every kernel once on empty input, so that no later call pays the cost
     * of a first use. */
    tb_status (*warm)(void *context, tb_error *error);
    tb_status (*use)(int32_t device, tb_device_use *use, tb_error *error);
    /* Fetches the parts of these states that are newer on the device, and perhaps more. All states
     * have device copies of this backend. A state is fetched as a whole or stays unchanged. */
    tb_status (*fetch)(tb_state *const *states, int32_t worlds, uint32_t parts, tb_error *error);
    /* Add and remove a state's reference to this device copy; removing the last one frees the
     * copy. */
    void (*share)(tb_device_copy *device_copy);
    void (*release)(tb_device_copy *device_copy);

    /* Programs with bounds on single variables, checked: the contracts of tb_qp_solver_open, solve,
     * forget and close; leave frees what *room of tb_qp_card_program holds. May be NULL, all of them: the
     * backend takes no programs. */
    tb_status (*program_open)(const tb_qp_program *program, const tb_qp_options *options,
                              void **context, tb_error *error);
    tb_status (*program_solve)(void *context, const double *f, const double *b, uint8_t *active,
                               double *x, double *lambda, tb_qp_result *result, tb_error *error);
    void (*program_forget)(void *context);
    void (*program_close)(void *context);
    void (*program_leave)(void *room);
    /* tb_symgbmm's two variants of a card, checked. May be NULL. */
    tb_status (*symgbmm)(tb_symgbmm_variant variant, tb_precision precision, int32_t device,
                         int32_t n, int32_t half_bandwidth, int32_t columns, const double *band,
                         const double *a, double *c, double *seconds, tb_error *error);
    /* tb_prox_iterate, checked; fills all of the result but the residual. May be NULL. */
    tb_status (*prox_iterate)(const tb_prox_system *system, const tb_prox_options *options,
                              double *lambda, tb_prox_result *result, tb_error *error);
    /* Betz's sweeps over islands of planar contacts (solve/planar/betz_batch.h), in double. `fresh`:
     * the batch differs from that of the last call in more than its islands and its impulses.
     * May be
     * NULL, all of them. */
    tb_status (*planar_open)(int32_t device, void **context, tb_error *error);
    tb_status (*planar_sweep)(void *context, const struct tb_betz_batch *batch, bool fresh,
                              tb_error *error);
    void (*planar_close)(void *context);
    /* Poulsen's iterations on block rows (solve/coloured/block_rows_sweep.h), checked; fills the outcome
     * and the impulses of the run. May be NULL. */
    tb_status (*rows_iterate)(int32_t device, const struct tb_row_run *run,
                              struct tb_row_outcome *outcome, tb_error *error);
    /* Steps of worlds by the volume law (penalty/card/volume_run.h). DIVERGED worlds are marked in the
     * run and are no failure. May be NULL, all of them. */
    tb_status (*volume_open)(int32_t device, void **context, tb_error *error);
    tb_status (*volume_run)(void *context, struct tb_volume_run *run, tb_error *error);
    void (*volume_close)(void *context);
    /* Near pairs of boxes by one of a card's methods (penalty/card/box_pairs.h). May be NULL. */
    tb_status (*box_pairs)(int32_t device, struct tb_box_pairs *pairs, tb_error *error);
    /* Fields and forces of a world of soft bodies (grid/card/fields.h). May be NULL, all of them. */
    tb_status (*soft_open)(int32_t device, const struct tb_soft_card_scene *scene, void **context,
                           tb_error *error);
    tb_status (*soft_call)(void *context, const struct tb_soft_card_call *call, tb_error *error);
    void (*soft_close)(void *context);
    /* Triangles down BSP trees by one of a card's ways (penalty/card/traversal.h). May be NULL. */
    tb_status (*traverse_trees)(int32_t device, struct tb_traversal *traversal, tb_error *error);
} tb_backend;

extern const tb_backend tb_backend_cpu;
/* Planar worlds on the processor, their contacts on the GPU's planar sweeps. */
extern const tb_backend tb_backend_planar;
/* Worlds by the volume law: states on the processor, steps on the GPU. */
extern const tb_backend tb_backend_volume;

/* Resolves a choice to a backend. UNAVAILABLE, with the reason, if the choice requires a GPU and
 * there is none. */
tb_status tb_backend_find(tb_backend_choice choice, const tb_backend **backend, tb_error *error);
/* Opens a plug-in. NOT_FOUND: no such file, or not a plug-in; FAILED_PRECONDITION: of another ABI.
 * A plug-in is never unloaded. */
tb_status tb_backend_open(const char *path, const tb_backend **backend, tb_error *error);

#endif
