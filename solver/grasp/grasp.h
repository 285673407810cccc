/* Private header of solver/grasp: from a request to results.
 *
 *     request -> check.c -> compose.c: plan (one compiled world) -> play.c: one world a copy
 *                             path.c: the hand's path in time     -> job.c: all worlds, in slices
 *                             replay.c: films of chosen trials, trials played again
 *
 * A plan is immutable and shared by all worlds. Each world is a separate state, of a variant of
 * the model if friction, mass or force differ. The hand is attached to a kinematic body, the
 * carrier, whose path is prescribed exactly. Observations never change a world's inputs, they
 * can only end its trial. A world therefore takes several steps in one course, and the job
 * examines the recordings of each step afterwards. */
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

/* The trials whose motion is kept (replay.c). */
typedef struct grasp_filming {
    int64_t every;  /* steps between two frames; 0: no trial is filmed */
    int32_t copies; /* the first ones of each grasp */
    uint32_t verdicts;
    bool *poses; /* number_of_poses: kept whatever their verdict; NULL: none */
} grasp_filming;

typedef struct tb_grasp_plan {
    tb_model *model;
    double dt;
    tb_step_options step;  /* options of one world, with one thread */
    char solver[16];       /* storage of step.solve.solver */
    bool on_card;          /* a GPU steps all worlds together */
    int32_t steps_at_once; /* largest number of steps in a course */

    /* the hand: bodies [carrier, hand_end) */
    int32_t carrier, hand_end;
    grasp_frame tool;                    /* tool frame in the carrier's frame */
    const struct grasp_profile *profile; /* NULL: none */
    /* hand_coordinates, the first of the model's coordinates, with the hand open and closed */
    double *open_q, *closed_q;
    int32_t hand_coordinates;
    double *controls;           /* all actuators, hand open */
    int32_t *closing;           /* number_of_closing actuators ... */
    double *open, *close;       /* ... their controls ... */
    tb_control_source *sources; /* ... and where these come from */
    int32_t number_of_closing;

    /* the object: bodies [object, object_end), the first of them free */
    int32_t object, object_end, object_coordinate;
    grasp_frame object_frame; /* frame of the object's file in the world, at the start */
    tb_vec3 object_origin;    /* origin of the body's frame in the file's frame (both have the same
                              axes) */
    double object_mass, object_friction, object_radius;
    bool table;
    double table_height;

    tb_grasp_protocol protocol; /* shakes owned */
    int64_t *shake_ends;        /* steps, one entry per shake */
    grasp_phases phases;
    tb_grasp_perturbation perturbation;
    tb_grasp_pose *poses; /* names owned */
    int32_t number_of_poses;
    double confidence;
    grasp_filming filming;
    char **warnings;
    int32_t number_of_warnings, warning_capacity;
    tb_hand_info info; /* arrays owned */
    char base[128];    /* name for it */
} tb_grasp_plan;

/* ---- check.c ---- */

/* INVALID_ARGUMENT names the first invalid field. */
tb_status grasp_check(const tb_grasp_request *request, tb_error *error);
tb_status grasp_check_hand(const tb_grasp_hand *hand, tb_error *error);

/* ---- compose.c, compose_hand.c ---- */

/* Takes the step's options, the tool frame and numbers of the request. */
void grasp_plan_options(const tb_grasp_request *request, tb_grasp_plan *plan);

tb_status grasp_plan_make(const tb_grasp_request *request, tb_grasp_plan *plan, tb_error *error);
/* The one child of the object's world; INVALID_ARGUMENT if there are none or several. */
tb_status grasp_object_root(const tb_model *file, int32_t *root, tb_error *error);
void grasp_plan_free(tb_grasp_plan *plan);
tb_status grasp_plan_warn(tb_grasp_plan *plan, tb_error *error, const char *format, ...)
    TB_PRINTF(3, 4);

/* A hand alone on its carrier, without gravity, and its measured properties. */
typedef struct grasp_hand {
    tb_model *file; /* the model of the hand's file */
    tb_model *bare; /* on the carrier; bodies and actuators as in the plan's model */
    tb_merge_def merge;
    int32_t *actuators;              /* of the file's: index in bare, -1 */
    const tb_parameters *parameters; /* of the worlds in which it comes to rest; NULL: bare's own */
    int32_t *tips;                   /* bodies of bare that can touch, without children that can */
    int32_t number_of_tips;
    /* protocol.width: limits of two slides */
    int32_t stop_bodies[2], stop_slides[2];
    double stop_lower[2], stop_upper[2];
    int32_t number_of_stops;
} grasp_hand;

/* Compiles the hand, finds its base, its tool frame, its closing actuators and their controls, and
 * lets it open and close. */
tb_status grasp_hand_make(const tb_grasp_request *request, tb_grasp_plan *plan, grasp_hand *hand,
                          tb_error *error);
void grasp_hand_free(grasp_hand *hand);
/* The coordinates (hand_coordinates) at which the hand rests when it holds these controls of all
 * actuators, from `start` on (hand_rest.c). *seconds (may be NULL): when the joints had nearly come
 * there. */
tb_status grasp_hand_rest(const tb_grasp_plan *plan, const grasp_hand *hand, const double *start,
                          const double *controls, double *q, double *seconds, tb_error *error);
/* Finds hand->tips. */
tb_status grasp_hand_tips(grasp_hand *hand, tb_error *error);
/* Motions of all bodies at coordinates q; `state`: of the bare hand, scratch. */
tb_status grasp_hand_motions(const grasp_hand *hand, tb_state *state, const double *q,
                             tb_body_motion *motions, tb_error *error);
/* Mean distance (m) of the fingertips; 0 for fewer than two. */
double grasp_hand_spread(const grasp_hand *hand, const tb_body_motion *motions);
/* Finds the closing actuators and the controls of all (hand_controls.c). */
tb_status grasp_hand_controls(const tb_grasp_hand *from, tb_grasp_plan *plan,
                              const grasp_hand *hand, const double *start, tb_error *error);
/* Fills plan->info, leaves links of fingers' mechanisms out of the tips, and warns of hands that do not
 * close (hand_info.c). */
tb_status grasp_hand_note(tb_grasp_plan *plan, grasp_hand *hand, tb_error *error);
void grasp_hand_forget(tb_grasp_plan *plan);
/* Name of a thing of the bare hand as the hand's file has it. */
const char *grasp_hand_file_name(const tb_model *bare, tb_handle_kind kind, int32_t index);

/* ---- hand_jam.c: warnings of what keeps a hand from closing ---- */

/* Dry friction that the closing actuators do not overcome, links that block each other. */
tb_status grasp_hand_warn_of_jams(tb_grasp_plan *plan, const grasp_hand *hand, tb_error *error);
/* A closing time that is shorter than the hand's; after grasp_phases_make. */
tb_status grasp_warn_of_haste(tb_grasp_plan *plan, tb_error *error);
/* Shapes of the open hand, as it is composed, that overlap; `refuse`: an error in place of warnings. */
tb_status grasp_hand_warn_of_overlaps(tb_grasp_plan *plan, const grasp_hand *hand, bool refuse,
                                      tb_error *error);

/* An object that moves before the fingers reach it (object_rest.c); `alone`: the object on the table
 * without the hand, its root the first body. */
tb_status grasp_warn_of_motion(tb_grasp_plan *plan, const tb_model *alone, tb_error *error);

/* Actuators of a bare hand with the ends of their control ranges, and for each which end opens the
 * hand, and whether it moves the fingertips apart at all. */
typedef struct grasp_motion {
    const grasp_hand *hand;
    const int32_t *actuators;
    int32_t count;
    const double *lower, *upper;
    double *open, *close; /* found */
    bool *closes;         /* found */
} grasp_motion;

/* hand_motion.c; DIVERGED if the hand does. */
tb_status grasp_motion_find(const tb_grasp_plan *plan, const grasp_motion *motion,
                            const double *start, tb_error *error);
/* Limits its two fingers to a distance `width` of their faces, m (stops.c). */
tb_status grasp_hand_stop(const tb_grasp_plan *plan, grasp_hand *hand, double width,
                          tb_error *error);
/* Adds the carrier and the hand to a scene. */
tb_status grasp_hand_add(tb_scene *scene, const grasp_hand *hand, tb_error *error);

/* ---- extent.c: extents of shapes ---- */

/* Largest n . x (m) over the points of a shape, with its body in this frame. */
double grasp_support(const tb_model *model, int32_t shape, const grasp_frame *body, tb_vec3 n);
/* Largest distance (m) of the shape's points from a point of its body's frame. */
double grasp_reach(const tb_model *model, int32_t shape, tb_vec3 from);
/* Frame of a body of a motion. */
grasp_frame grasp_frame_of(const tb_body_motion *motion);

/* ---- path.c ---- */

/* Steps of all phases from the protocol and dt. */
tb_status grasp_phases_make(tb_grasp_plan *plan, tb_error *error);
/* Frame of the tool after `step` steps; `grasp` is the tool's frame while the hand closes. */
grasp_frame grasp_tool_at(const tb_grasp_plan *plan, const grasp_frame *grasp, int64_t step);
/* The same of the carrier. */
grasp_frame grasp_carrier_at(const tb_grasp_plan *plan, const grasp_frame *grasp, int64_t step);
/* Fraction (0 to 1) of the way from open to closed controls in the next step. */
double grasp_closing_at(const tb_grasp_plan *plan, int64_t step);

/* ---- play.c: one world ---- */

/* The contact that gives way: the last that began to slide, or, while all hold, the weakest. */
typedef struct grasp_slide {
    int64_t step;               /* in which it began to slide; -1: all contacts hold */
    double margin, last_margin; /* smallest of the hand's contacts before that step, and now */
    grasp_frame object;         /* frame of the object's file at the last touch */
    double point[3];            /* m, in the object's frame */
    int32_t shapes[2];          /* -1: the hand has not touched the object since it closed */
} grasp_slide;

/* The grip when the lift began, as in tb_grasp_reason. */
typedef struct grasp_grip {
    double grip, press, lean; /* N, N, rad */
} grasp_grip;

/* The motion of a trial so far; poses NULL: it is not filmed. */
typedef struct grasp_film {
    int32_t frames;
    int64_t filmed; /* step of the last frame */
    double *times;  /* frames */
    float *poses;   /* frames x bodies x 7 */
} grasp_film;

typedef struct grasp_world {
    const tb_grasp_plan *plan;
    int32_t grasp, copy;
    int64_t step;
    tb_model *variant; /* NULL: the plan's model */
    tb_state *state;
    grasp_frame target; /* frame of the tool while the hand closes, world */
    int64_t touched;    /* step after which the hand last touched the object */
    double height;      /* m, height of the object's centre of mass when the lift began */
    tb_vec3 place;      /* place of the centre of mass at that time, carrier's frame */
    tb_grasp_trial trial;
    grasp_slide slide;
    grasp_grip grip;
    int64_t missed_step;    /* first step above the tolerance; -1: none */
    double missed_residual; /* of that step */
    int32_t missed;         /* steps above the tolerance */
    grasp_film film;
    /* scratch, reused by later worlds */
    tb_course course;        /* course of the next steps; arrays in `rows` */
    double *rows;            /* steps_at_once of each array */
    tb_touch *touches;       /* likewise */
    tb_certificate *steps;   /* likewise */
    tb_state *shown;         /* state of the plan's model in the world's pose after a step */
    tb_body_motion *motions; /* all bodies */
    bool *holds;             /* hand bodies: touched the object when the lift began */
    double *marks;           /* hand bodies x 4 x 3: points of the object in their frames */
    /* contacts of the first copy, malloc'ed; the function that takes them sets NULL */
    tb_grasp_contact *contacts;
    int32_t number_of_contacts;
} grasp_world;

tb_status grasp_world_take(const tb_grasp_plan *plan, grasp_world *world, tb_error *error);
void grasp_world_give(grasp_world *world);
tb_status grasp_world_begin(grasp_world *world, int32_t grasp, int32_t copy, tb_error *error);
/* Takes up to `steps` steps; *done when its trial is complete. */
tb_status grasp_world_play(grasp_world *world, tb_stepper *stepper, int64_t steps, bool *done,
                           tb_error *error);
/* The same in parts, for stepping many worlds at once: grasp_world_plan writes the course of up
 * to `steps` steps, at least one; grasp_world_look judges its recordings. */
void grasp_world_plan(grasp_world *world, int32_t steps);
tb_status grasp_world_look(grasp_world *world, bool *done, tb_error *error);
/* Whether grasp_world_look will read the contacts of the state. */
bool grasp_world_reads(const grasp_world *world);
/* Frees the data of one trial. */
void grasp_world_end(grasp_world *world);

/* ---- reason.c: why a trial has its verdict ---- */

void grasp_reason_begin(grasp_world *world);
/* Follows the contact that gives way; `hold`: the hand against the object after a step since the
 * fingers closed. */
void grasp_reason_follow(grasp_world *world, const tb_touch *hold);
/* The hand overlaps the object or the table in the shown state. */
void grasp_reason_collided(grasp_world *world, const tb_touch *touch);
/* A shape of the hand's base is `depth` (m) below the table after `step` steps. */
void grasp_reason_in_table(grasp_world *world, int32_t shape, int64_t step, double depth);
/* The hand lost the object, or the slip passed the limit, after `step` steps. */
void grasp_reason_lost(grasp_world *world, int64_t step);
/* The trial ends in this step without a contact to name. */
void grasp_reason_now(grasp_world *world);
/* Takes the verdict from a trial that rests on a step above the tolerance. */
void grasp_reason_certify(grasp_world *world);

/* ---- job.c, and rounds.c for worlds on a card ---- */

/* A grasp in progress, until its result is delivered. */
typedef struct grasp_record {
    tb_grasp_trial *trials; /* copies; NULL before the first begins */
    int32_t done;
    tb_grasp_contact *contacts;
    int32_t number_of_contacts;
    grasp_film *films; /* filming.copies; NULL: no trial is filmed */
    double epsilon, volume;
} grasp_record;

/* One active world. */
typedef struct grasp_slot {
    grasp_world world;
    tb_stepper *stepper; /* NULL on a GPU: one stepper steps all worlds */
    bool busy;
    /* state of the current round */
    bool done;
    tb_status status;
    tb_error error;
} grasp_slot;

struct tb_grasp_job {
    tb_grasp_plan plan;
    grasp_slot *slots;
    int32_t number_of_slots;
    /* on a GPU: rounds of some steps of all worlds (rounds.c) */
    tb_stepper *card;
    int32_t threads;    /* threads that prepare and judge worlds between steps */
    grasp_slot **live;  /* number_of_slots: active slots */
    tb_state **states;  /* likewise */
    tb_course *courses; /* likewise */
    /* of this round: questions whether it is to end, and whether its worlds have made a step */
    int32_t questions;
    bool idle;
    grasp_record *records; /* poses */
    int64_t next;          /* next trial to begin, ordered by grasp, then by copy */
    int64_t trials, trials_done, trials_held, trials_uncertified, steps_done, steps_total;
    int32_t grasps_done;
    int32_t given;                       /* delivered results */
    uint64_t film_bytes;                 /* of films that wait for their result to be delivered */
    int64_t until;                       /* ns: end of the slice */
    bool (*yields)(const void *context); /* may be NULL */
    const void *yields_context;
    pthread_mutex_t lock;
    tb_status status; /* the first failure */
    tb_error error;
    /* the last delivered result */
    tb_grasp_result result;
    grasp_record out;
    tb_grasp_finger *fingers;
};

/* Takes the next trial: false if there is none, or after a failure. */
bool grasp_job_take(tb_grasp_job *job, int32_t *grasp, int32_t *copy);
/* Stores a complete trial. */
tb_status grasp_job_finish(tb_grasp_job *job, grasp_world *world, tb_error *error);
/* Keeps the first failure; all threads stop at it. */
void grasp_job_fail(tb_grasp_job *job, tb_status status, const tb_error *error);
/* ns, monotonic clock. */
int64_t grasp_job_now(void);
/* Whether the slice has time left and `yields` does not ask to end it. */
bool grasp_job_goes_on(const tb_grasp_job *job);

/* Plays rounds until the slice ends or no trial remains. */
void grasp_rounds_play(tb_grasp_job *job);
/* tb_solve_options.cancelled of a job's stepper on a GPU: whether the round is to end. */
bool grasp_round_ends(void *job);

/* ---- replay.c ---- */

/* Whether no trial is to begin before films are delivered. */
bool grasp_film_waits(const tb_grasp_job *job);
/* Takes the first frame of a world that begins, where its film may be kept. */
tb_status grasp_film_begin(grasp_world *world, tb_error *error);
/* Takes the frame that the course recorded in its step `noted`, if one is due; `last`: the trial has
 * ended. */
void grasp_film_look(grasp_world *world, int32_t noted, bool last);
/* Moves the film of a complete trial to its place among `films` (filming.copies) if it is to be kept;
 * under the job's lock. */
void grasp_film_keep(tb_grasp_job *job, grasp_world *world, grasp_film *films);
/* The result delivered next has its films counted as delivered. */
void grasp_film_give(tb_grasp_job *job);
void grasp_film_free(grasp_film *film);

/* ---- measure.c ---- */

/* Watches of a world's course. */
enum { GRASP_HOLD, GRASP_BEFORE, GRASP_BEHIND, GRASP_WATCHES };

/* Watches the hand against the object, and the hand against the bodies before and behind it in
 * the model. */
void grasp_watch(const tb_grasp_plan *plan, tb_watch watches[GRASP_WATCHES]);
/* The deepest contact of the hand with the object or the table, if it is deeper than `depth` (m);
 * else NULL. */
const tb_touch *grasp_collides(const tb_touch touches[GRASP_WATCHES], double depth);
/* Records the object's place in the hand now. */
tb_status grasp_mark(grasp_world *world, tb_error *error);
/* Displacement (m) of the object in the hand since grasp_mark. */
tb_status grasp_slip(grasp_world *world, double *slip, tb_error *error);
/* Records the current contacts, replacing earlier records. */
tb_status grasp_note_contacts(grasp_world *world, tb_error *error);
tb_vec3 grasp_object_com(const grasp_world *world);

/* ---- quality.c ---- */

/* Epsilon and volume of the recorded contacts. */
tb_status grasp_quality(const grasp_world *world, double *epsilon, double *volume, tb_error *error);
/* Friction of a contact under a unit normal force: tangential, and torques (m) about the normal and
 * about a tangent. */
void grasp_friction(const tb_surface *surface, double friction[3]);
/* m, the object's centre of mass in its frame. */
tb_vec3 grasp_object_centre(const tb_grasp_plan *plan);

#endif
