/* Inside of the grasp room: from a request to results.
 *
 *     request -> check.c -> compose.c: plan (one compiled world) -> play.c: one world a copy
 *                             path.c: where the hand is, when      -> job.c: all of them, in slices
 *
 * A plan is immutable and shared by all worlds; each world is a state of its own, and where
 * friction, mass or force differ, of a variant of the model. The hand hangs on a kinematic body, the
 * carrier, whose path is prescribed exactly. Nothing that a world shows changes what it is told next,
 * it can only end its trial; so it is told some steps at once, as a course, and looked at afterwards,
 * step by step in what the course has noted. */
#ifndef TB_GRASP_H
#define TB_GRASP_H

#include <pthread.h>

#include "base/base.h"
#include "base/vector.h"
#include "model/merge.h"

/* A frame: x_outer = rotate(orientation, x_inner) + position. */
typedef struct grasp_frame {
    tb_vec3 position;
    tb_quaternion orientation;
} grasp_frame;

grasp_frame grasp_frame_make(const double position[3], const double orientation[4]);
grasp_frame grasp_frame_mul(const grasp_frame *a, const grasp_frame *b);
grasp_frame grasp_frame_inverse(const grasp_frame *a);
tb_vec3 grasp_frame_out(const grasp_frame *frame, tb_vec3 inner);
tb_vec3 grasp_frame_in(const grasp_frame *frame, tb_vec3 outer);

/* Ends of the phases, in steps from the beginning. */
typedef struct grasp_phases {
    int64_t approach, close, lift, shake, end;
} grasp_phases;

typedef struct tb_grasp_plan {
    tb_model *model;
    double dt;
    tb_step_options step; /* of one world: one thread */
    char solver[16];      /* step.solve.solver points here */
    bool on_card;         /* all worlds are stepped together */

    /* the hand: bodies [carrier, hand_end) */
    int32_t carrier, hand_end;
    grasp_frame tool; /* in the carrier's frame */
    double *open_q;   /* hand_coordinates: the first of the model's coordinates */
    int32_t hand_coordinates;
    double *controls;     /* all actuators, hand open */
    int32_t *closing;     /* number_of_closing actuators ... */
    double *open, *close; /* ... and their controls */
    int32_t number_of_closing;

    /* the object: bodies [object, object_end), the first of them free */
    int32_t object, object_end, object_coordinate;
    grasp_frame object_frame; /* of its file's frame in the world at the beginning */
    tb_vec3 object_origin; /* of the body's frame in the file's frame (both have the same axes) */
    double object_mass, object_friction, object_radius;
    bool table;
    double table_height;

    tb_grasp_protocol protocol; /* shakes owned */
    int64_t *shake_ends;        /* steps, one a shake */
    grasp_phases phases;
    tb_grasp_perturbation perturbation;
    tb_grasp_pose *poses; /* names owned */
    int32_t number_of_poses;
    double confidence;
    char **warnings;
    int32_t number_of_warnings, warning_capacity;
} tb_grasp_plan;

/* ---- check.c ---- */

/* INVALID_ARGUMENT naming the first field that makes no sense. */
tb_status grasp_check(const tb_grasp_request *request, tb_error *error);

/* ---- compose.c, compose_hand.c ---- */

tb_status grasp_plan_make(const tb_grasp_request *request, tb_grasp_plan *plan, tb_error *error);
/* The one body that hangs on the object's world; INVALID_ARGUMENT if there are none or several. */
tb_status grasp_object_root(const tb_model *file, int32_t *root, tb_error *error);
void grasp_plan_free(tb_grasp_plan *plan);
tb_status grasp_plan_warn(tb_grasp_plan *plan, tb_error *error, const char *format, ...)
    TB_PRINTF(3, 4);

/* A hand alone on its carrier, without gravity, and what was found out about it. */
typedef struct grasp_hand {
    tb_model *file; /* as the file says */
    tb_model *bare; /* on the carrier; bodies and actuators as in the plan's model */
    tb_merge_def merge;
    int32_t *actuators; /* of the file's: index in bare, -1 */
    /* protocol.width: limits of two slides */
    int32_t stop_bodies[2], stop_slides[2];
    double stop_lower[2], stop_upper[2];
    int32_t number_of_stops;
} grasp_hand;

/* Compiles the hand, finds its base, its closing actuators and their controls, and lets it open. */
tb_status grasp_hand_make(const tb_grasp_request *request, tb_grasp_plan *plan, grasp_hand *hand,
                          tb_error *error);
void grasp_hand_free(grasp_hand *hand);
/* Puts stops on its two fingers at a distance of their faces, m (stops.c). */
tb_status grasp_hand_stop(const tb_grasp_plan *plan, grasp_hand *hand, double width,
                          tb_error *error);
/* Adds the carrier and the hand to a scene. */
tb_status grasp_hand_add(tb_scene *scene, const grasp_hand *hand, tb_error *error);

/* ---- extent.c: how far shapes reach ---- */

/* Largest n . x (m) over the points of a shape whose body stands in this frame. */
double grasp_support(const tb_model *model, int32_t shape, const grasp_frame *body, tb_vec3 n);
/* Largest distance (m) of the shape's points from a point of its body's frame. */
double grasp_reach(const tb_model *model, int32_t shape, tb_vec3 from);
/* Frame of a body of a motion. */
grasp_frame grasp_frame_of(const tb_body_motion *motion);

/* ---- path.c ---- */

/* Steps of all phases from the protocol and dt. */
tb_status grasp_phases_make(tb_grasp_plan *plan, tb_error *error);
/* Frame of the tool when `step` steps are done; `grasp` is its frame when it closes. */
grasp_frame grasp_tool_at(const tb_grasp_plan *plan, const grasp_frame *grasp, int64_t step);
/* The same of the carrier. */
grasp_frame grasp_carrier_at(const tb_grasp_plan *plan, const grasp_frame *grasp, int64_t step);
/* How far (0 to 1) the controls have gone from open to closed in the step that follows. */
double grasp_closing_at(const tb_grasp_plan *plan, int64_t step);

/* ---- play.c: one world ---- */

/* Steps of a course at most. */
enum { GRASP_STEPS_AT_ONCE = 16 };

typedef struct grasp_world {
    const tb_grasp_plan *plan;
    int32_t grasp, copy;
    int64_t step;
    tb_model *variant; /* NULL: the plan's model */
    tb_state *state;
    grasp_frame target;     /* of the tool when it closes, world */
    tb_vec3 velocity, spin; /* of the carrier in the step before */
    int64_t touched;        /* step after which the hand last touched the object */
    double height;          /* m, of the object's centre of mass when the lift began */
    tb_vec3 place;          /* of it then, carrier's frame */
    tb_grasp_trial trial;
    /* scratch, kept from world to world */
    tb_course course;        /* of the steps that it takes next; arrays in `rows` */
    double *rows;            /* GRASP_STEPS_AT_ONCE of each array */
    tb_touch *touches;       /* likewise */
    tb_certificate *steps;   /* likewise */
    tb_state *shown;         /* of the plan's model: stands as the world did after a step */
    tb_body_motion *motions; /* all bodies */
    bool *holds;             /* hand bodies: touched the object when the lift began */
    double *marks;           /* hand bodies x 4 x 3: points of the object in their frames */
    /* contacts of the first copy, malloc'ed; whoever takes them sets NULL */
    tb_grasp_contact *contacts;
    tb_surface *surfaces; /* of the contacts */
    int32_t number_of_contacts;
} grasp_world;

tb_status grasp_world_take(const tb_grasp_plan *plan, grasp_world *world, tb_error *error);
void grasp_world_give(grasp_world *world);
tb_status grasp_world_begin(grasp_world *world, int32_t grasp, int32_t copy, tb_error *error);
/* Takes up to `steps` steps; *done when its trial is complete. */
tb_status grasp_world_play(grasp_world *world, tb_stepper *stepper, int64_t steps, bool *done,
                           tb_error *error);
/* The same in parts, for who steps many worlds at once: the course of up to `steps` steps, at least
 * one, and what is seen when it has been followed. */
void grasp_world_plan(grasp_world *world, int32_t steps);
tb_status grasp_world_look(grasp_world *world, bool *done, tb_error *error);
/* Whether grasp_world_look will read the contacts of the state. */
bool grasp_world_reads(const grasp_world *world);
/* Gives back what belongs to one trial. */
void grasp_world_end(grasp_world *world);

/* ---- job.c, and rounds.c for worlds on a card ---- */

/* A grasp while it is played, and until its result is handed out. */
typedef struct grasp_record {
    tb_grasp_trial *trials; /* copies; NULL before the first begins */
    int32_t done;
    tb_grasp_contact *contacts;
    int32_t number_of_contacts;
    double epsilon, volume;
} grasp_record;

/* One world in play. */
typedef struct grasp_slot {
    grasp_world world;
    tb_stepper *stepper; /* NULL on a card: one steps all */
    bool busy;
    /* of the round under way */
    bool done;
    tb_status status;
    tb_error error;
} grasp_slot;

struct tb_grasp_job {
    tb_grasp_plan plan;
    grasp_slot *slots;
    int32_t number_of_slots;
    /* on a card: rounds of some steps of all worlds (rounds.c) */
    tb_stepper *card;
    int32_t threads;       /* that tell and look at worlds between steps */
    grasp_slot **live;     /* number_of_slots: in play */
    tb_state **states;     /* likewise */
    tb_course *courses;    /* likewise */
    int32_t ahead;         /* steps of this round at most */
    int64_t step_ns;       /* of the last round; 0: there was none */
    grasp_record *records; /* poses */
    int64_t next;          /* trial to begin: grasp by grasp, copy by copy */
    int64_t trials, trials_done, trials_held, steps_done, steps_total;
    int32_t grasps_done;
    int32_t given;                       /* results handed out */
    int64_t until;                       /* ns: end of the slice */
    bool (*yields)(const void *context); /* may be NULL */
    const void *yields_context;
    pthread_mutex_t lock;
    tb_status status; /* the first failure */
    tb_error error;
    /* the result handed out last */
    tb_grasp_result result;
    grasp_record out;
    tb_grasp_finger *fingers;
};

/* Takes the next trial: false if there is none, or after a failure. */
bool grasp_job_take(tb_grasp_job *job, int32_t *grasp, int32_t *copy);
/* Enters a trial that is complete. */
tb_status grasp_job_finish(tb_grasp_job *job, grasp_world *world, tb_error *error);
/* Keeps the first failure; all threads stop at it. */
void grasp_job_fail(tb_grasp_job *job, tb_status status, const tb_error *error);
/* ns, of a clock that is never set. */
int64_t grasp_job_now(void);
/* Whether the slice has time left and nobody wants it to yield. */
bool grasp_job_goes_on(const tb_grasp_job *job);

/* Rounds until the slice is over or nothing is left to play. */
void grasp_rounds_play(tb_grasp_job *job);

/* ---- measure.c ---- */

/* What a world's course watches. */
enum { GRASP_HOLD, GRASP_BEFORE, GRASP_BEHIND, GRASP_WATCHES };

/* The hand and the object; the hand and what stands before it and behind it in the model. */
void grasp_watch(const tb_grasp_plan *plan, tb_watch watches[GRASP_WATCHES]);
/* Whether a contact of the hand with the object or the table is deeper than `depth` (m). */
bool grasp_collides(const tb_touch touches[GRASP_WATCHES], double depth);
/* Remembers where the object is in the hand now. */
tb_status grasp_mark(grasp_world *world, tb_error *error);
/* How far it has moved since (m). */
tb_status grasp_slip(grasp_world *world, double *slip, tb_error *error);
/* Notes the contacts of this moment, in the place of those noted before. */
tb_status grasp_note_contacts(grasp_world *world, tb_error *error);
tb_vec3 grasp_object_com(const grasp_world *world);

/* ---- quality.c ---- */

/* Epsilon and volume of noted contacts; `radius` (m) scales torques. */
tb_status grasp_quality(const grasp_world *world, double *epsilon, double *volume, tb_error *error);

#endif
