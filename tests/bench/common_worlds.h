/* A scene of tests/bench/gpu/scenes.py for a benchmark: the model, its actuators' controls over
 * time, and the differences of the worlds' starts. Without a model it is jaw and mug. */
#ifndef COMMON_WORLDS_H
#define COMMON_WORLDS_H

#include "../../clients/cli/simulation/controls.h"
#include "common_bench.h"

typedef struct bench_scene {
    const char *name, *model_path, *controls_path; /* "": no controls */
    int32_t steps;                                 /* of the whole */
    const char *joint;                             /* free joint that is displaced; "*": each */
    double shift, turn, hinges;                    /* m, rad, rad: largest */
    double rise;                                   /* m, of all but the first world */
    const char *body;                              /* held if above `height` at the end; "" */
    double height;                                 /* m */
    tb_model *model;
    control_table controls;
} bench_scene;

/* Reads one option of the scene and its value, false if it is none: --scene, --model, --controls,
 * --steps, --vary JOINT:SHIFT:TURN:HINGES:RISE, --held BODY:HEIGHT. Keeps pointers into the
 * text. */
bool bench_scene_option(bench_scene *scene, const char *option, char *value);

/* Loads the scene of the options. `build` is the build folder; ends the program on any error. */
void bench_scene_load(bench_scene *scene, const char *build);
void bench_scene_free(bench_scene *scene);

/* Puts a world at its start: the first keyframe where one bears the name "start", else the
 * reference pose, then displaced by numbers that depend on `index` alone; 0 is left where it is. */
void bench_scene_start(const bench_scene *scene, tb_state *state, int32_t index);

/* Sets the controls of this step; returns the first step with other controls, at most `steps`. */
int32_t bench_scene_command(const bench_scene *scene, tb_state *const *states, int32_t worlds,
                            int32_t step);

/* Worlds that hold their body; all of them if there is none. */
int32_t bench_scene_held(const bench_scene *scene, tb_state *const *states, int32_t worlds);

/* The folder of this build, from the running program's path. */
const char *bench_build_folder(void);

#endif
