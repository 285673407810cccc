/* The grasp demo: every keyframe of grasp.xml is a grasp, a hand open around a mug. All are played
 * side by side: close, lift 0.2 m, shake along and about the axes, come to rest,
 * hold for a second. */
#ifndef CLI_DEMO_H
#define CLI_DEMO_H

#include "common/names.h"
#include "common/progress.h"
#include "tribo.h"

/* ---- demo_data.c ---- */

/* Returns the folder for the demo's files in the folder of the running program, creating it if
 * missing. The generators there write mug.obj, hand.xml, hand.urdf and grasp.xml into it, with this
 * friction. */
tb_status demo_make_data(double friction, char *folder, size_t size, tb_error *error);

/* ---- demo_script.c: the schedule of a grasp ---- */

enum { DEMO_HAND_AXES = 5 }; /* x, y, lift (m), turn, tilt (rad) */

extern const char *const DEMO_AXES[DEMO_HAND_AXES];

/* s from the beginning: fingers closed, lifted, shaken, at rest, end of the hold. */
extern const double DEMO_CLOSED_S, DEMO_LIFTED_S, DEMO_SHAKEN_S, DEMO_RESTED_S, DEMO_END_S;
extern const double DEMO_LIFT_M;

/* How far the hand is to be from its grasp pose at `time`. */
void demo_offset(double time, double offset[DEMO_HAND_AXES]);

/* ---- demo_grasps.c ---- */

enum { DEMO_POINTS = 4, DEMO_GRASPS = 16 };

typedef enum demo_outcome {
    DEMO_HELD,  /* carried to the end, nowhere moved by more than DEMO_HELD_M */
    DEMO_MOVED, /* carried to the end, but moved in the hand */
    DEMO_DROPPED
} demo_outcome;

extern const double DEMO_HELD_M;

/* One grasp during simulation, and its result. */
typedef struct demo_grasp {
    const char *name;   /* of the keyframe; borrowed from the model */
    double command;     /* N, that each finger closes with */
    double moving_slip; /* m: largest way of the mug in the fingers from closed to at rest */
    double hold_slip;   /* m: the same over the hold */
    double slip;        /* m: since closed, now */
    double height;      /* m, of the mug's centre of mass above its start */
    double touched_at;  /* s, when a finger last touched the mug */
    double force[2];    /* N, normal force on the left and right finger in the last step */
    int32_t contacts;   /* between mug and fingers in the last step */
    tb_certificate certificate; /* of all steps */
    tb_certificate last;
    double closed[2][DEMO_POINTS][3]; /* points of the mug in either finger's frame */
    double rested[2][DEMO_POINTS][3];
    double first_height;
} demo_grasp;

typedef struct demo_options {
    const char *solver;          /* NULL: the library's */
    double dt, tolerance, force; /* 0: the model's, the demo's, the keyframe's */
    int64_t threads;
    int scheme; /* tb_scheme */
} demo_options;

typedef struct demo {
    tb_model *model;
    tb_stepper *stepper;
    tb_state *worlds[DEMO_GRASPS];
    tb_certificate latest[DEMO_GRASPS];
    demo_grasp grasps[DEMO_GRASPS];
    int32_t count;
    double dt, mug_mass;                      /* s, kg */
    int32_t mug, hand, finger[2];             /* bodies */
    int32_t axis[DEMO_HAND_AXES];             /* actuators */
    int32_t finger_shapes[2][2];              /* pad and finger of either side */
    double base[DEMO_GRASPS][DEMO_HAND_AXES]; /* controls in the keyframe */
} demo;

tb_status demo_open(demo *d, const char *path, const demo_options *options, tb_error *error);
void demo_close(demo *d);

demo_outcome demo_grasp_outcome(const demo_grasp *g);

/* Called after every step; false ends the demo. */
typedef bool demo_watch(void *context, const demo *d, double time);

/* Plays all grasps to their end. DIVERGED of one grasp is a result of it, not a failure. */
tb_status demo_play(demo *d, demo_watch *watch, void *context, progress *bar, tb_error *error);

#endif
