/* The grasps of 1,000 steps that warm starts are measured on, for the library and for the daemon.
 *
 * Two scenes: the jaw and mug that simulators are timed on (tests/data/jaw_mug.c), and the hand
 * that takes the same kind of mug by its handle, which is harder (tests/data/hand.c, keyframe
 * "handle"). The jaw closes, lifts, holds; from 1.5 s to 1.7 s the mug is pulled and twisted to and
 * fro. */
#ifndef COMMON_WARM_H
#define COMMON_WARM_H

#include "common_bench.h"

enum {
    WARM_STEPS = 1000,
    WARM_DELAY = 250 /* steps that the second of two sessions is behind */
};
static const double WARM_TOLERANCE = 1e-8;
enum { WARM_ITERATIONS = 2000 };

typedef struct warm_scene {
    const char *name;
    char path[640]; /* of its model, with the meshes beside it */
    tb_model *model;
    tb_model_counts counts;
    int32_t keyframe;   /* -1: none */
    int32_t lift;       /* actuator */
    double force;       /* N, of each of the two that close */
    int32_t mug, first; /* body, and the first of its dofs */
    double height;      /* of the lift at the start */
    double *controls;   /* counts.actuators, of the next step */
    double *forces;     /* counts.dofs, likewise */
} warm_scene;

enum { WARM_SCENES = 2 };

/* Writes and compiles the models; stops the program where that fails. */
void warm_load(warm_scene scenes[WARM_SCENES]);
void warm_free(warm_scene *);

/* A world at the start. */
tb_state *warm_start(const warm_scene *);
/* Controls and forces of the step that follows `step` steps. */
void warm_command(warm_scene *, int64_t steps);
/* Stops the program if a world that is through has not lifted its mug. */
void warm_check(const warm_scene *, const tb_state *);

/* Prints one figure of a scene. */
void warm_print(const warm_scene *, const char *way, const char *what, double value);
/* Prints the work in a certificate over WARM_STEPS steps. */
void warm_print_work(const warm_scene *, const char *way, const tb_certificate *);

#endif
