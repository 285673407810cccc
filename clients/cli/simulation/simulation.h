/* A model, its worlds and a stepper, set up from the options that several commands share, and run
 * in portions so that progress shows and Ctrl-C works.
 * How the work is cut never changes a result. */
#ifndef CLI_SIMULATION_H
#define CLI_SIMULATION_H

#include "common/args.h"
#include "simulation/controls.h"
#include "simulation/device.h"
#include "simulation/importing.h"
#include "common/names.h"
#include "common/progress.h"
#include "remote/remote_session.h"
#include "tribo.h"

typedef struct simulation_options {
    const char *path; /* of the model */
    const char *keyframe, *solver;
    const char *integrator; /* of the volume law; NULL: the default */
    importing import;
    double dt, tolerance, omega; /* 0: the model's or the library's */
    double contact_merge;        /* 0: no points merge */
    int64_t maximum_iterations;  /* 0: the library's */
    int64_t worlds, threads;     /* threads 0: all processors */
    device_options device;
    int scheme, precision, storage, r_strategy, colouring;
    int64_t colours; /* of a balanced colouring */
    int contact;     /* 1: the volume law */
    bool report_energy;
    bool quiet;
    const remote_options *remote; /* NULL: stepped here */
} simulation_options;

enum { SIMULATION_OPTIONS = 23 };

simulation_options simulation_defaults(void);
/* The command-line options that fill `options`. */
void simulation_option_list(simulation_options *options, args_option list[SIMULATION_OPTIONS]);
/* False, and said on stderr, if there is no such solver. NULL is fine. */
bool simulation_check_solver(const char *command, const char *solver);
/* The same of the solver and the integrator, which go with the contact law. */
bool simulation_check_law(const char *command, const simulation_options *options);

typedef struct simulation {
    tb_model *model;
    tb_stepper *stepper;    /* NULL if a daemon steps: its device may be absent here */
    importing import;       /* how the model was read */
    remote_session *remote; /* steps the worlds instead of the stepper; or NULL */
    tb_state **worlds;
    int32_t number_of_worlds;
    double dt; /* s, in effect */
    bool report_energy;
    tb_certificate *latest;  /* one a world: of the last call's steps */
    tb_certificate *portion; /* one a world: of the present portion's steps */
    tb_certificate merged;   /* of all worlds and of the steps of ended portions */
    bool has_merged;         /* a portion has ended */
    tb_certificate last;     /* of the first world's last call */
    int64_t steps;           /* done by the first world */
    double seconds;          /* spent in stepping */
} simulation;

/* Loads the model, says its warnings on stderr unless quiet, makes the worlds. */
tb_status simulation_open(const simulation_options *options, simulation *s, tb_error *error);
void simulation_close(simulation *s);

/* Loads a model as all commands do; says its warnings on stderr unless quiet. `import` (NULL: the
 * defaults) gets the files and names that its other users need. keyframe: of the first pose, or NULL. */
tb_status simulation_load_model(const char *path, importing *import, const char *keyframe,
                                bool quiet, tb_model **model, tb_error *error);
/* Index of a keyframe given by name or number; -1 for NULL. */
tb_status simulation_find_keyframe(const tb_model *model, const char *keyframe, int32_t *index,
                                   tb_error *error);

/* Called after every step of the first world where steps are watched; false ends the run. */
typedef bool simulation_watch(void *context, simulation *s);

/* Steps all worlds `steps` times under the controls (may be NULL). `watch` may be NULL. Returns the
 * first failure: CANCELLED after Ctrl-C, DIVERGED, ...; steps done until then are kept. */
tb_status simulation_run(simulation *s, int64_t steps, const control_table *controls,
                         simulation_watch *watch, void *context, progress *bar, tb_error *error);

#endif
