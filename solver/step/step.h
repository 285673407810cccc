/* State and time stepping.
 *
 * A tb_state is precision-free: it stores doubles, and a float stepper rounds what it stores, so
 * that a snapshot resumes bit-exactly in either precision. One step is a pipeline of stages over
 * one world:
 *
 *     move to the collision configuration -> dynamics -> detect -> assemble -> solve
 *         -> integrate -> remember
 *
 * tb_world_step runs it; backends decide for which worlds and where.
 *
 * The whole warm start of a step is in the state: impulses and statuses (open, stick, slip and
 * where to) of contacts in their records, those of other rows in the numbers, the history by which
 * `auto` chooses, and the cached factor with its weight. So a restored or forked state continues as
 * its source does, byte for byte. */
#ifndef TB_STEP_H
#define TB_STEP_H

#include "collide/collide.h"
#include "model/model.h"
#include "solve/solve.h"

/* Numbers of a contact between its detection and the end of the solve. They use the memory of the
 * record's impulse. */
typedef struct tb_contact_draft {
    double bias[3];    /* m/s: xi of normal and tangential rows minus the velocity after the step */
    double slip_speed; /* m/s, of the last step */
    /* m: the spin torque is spin_radius x lambda of row 3, a rolling torque rolling_length x lambda */
    double spin_radius, rolling_length;
} tb_contact_draft;

/* One contact of the last step, for tb_state_contact and for the next step's warm start.
 * Impulses of friction are remembered as a vector in world axes, because tangents may turn
 * between steps. */
typedef struct tb_contact_record {
    int32_t shape_a, shape_b;
    uint64_t feature;
    double position[3], normal[3], tangent1[3], tangent2[3];
    double gap;
    union {
        double impulse[6];      /* normal, tangents (N s); spin, rolling (N m s) */
        tb_contact_draft draft; /* before the solve */
    };
    double velocity[3]; /* m/s, after the step */
    int32_t kind;       /* number of rows, as of tb_contact_kind */
    int32_t status;     /* before the solve that of the last step, or unknown */
} tb_contact_record;

/* Impulses of the rows that are not contacts, by the thing they belong to; kept as one array.
 * limits: one per joint, two for each (lower, upper); tendons: two limits, friction, spring;
 * elastics: strains. */
typedef struct tb_row_memory {
    int32_t joint_limits, dof_friction, tendon_rows, actuators, elastics, equalities, total;
} tb_row_memory;

enum { TB_KINEMATIC_NUMBERS = 13, TB_TENDON_ROWS = 4, TB_EQUALITY_ROWS = 6, TB_ELASTIC_ROWS = 6 };

TB_FN tb_row_memory tb_row_memory_layout(const tb_model *model)
{
    tb_row_memory r;
    r.joint_limits = 0;
    r.dof_friction = r.joint_limits + 2 * model->number_of_joints;
    r.tendon_rows = r.dof_friction + model->number_of_dofs;
    r.actuators = r.tendon_rows + TB_TENDON_ROWS * model->number_of_tendons;
    r.elastics = r.actuators + model->number_of_actuators;
    r.equalities = r.elastics + TB_ELASTIC_ROWS * model->number_of_elastics;
    r.total = r.equalities + TB_EQUALITY_ROWS * model->number_of_equalities;
    return r;
}

/* Arrays of a state's `numbers` in their order: X(NAME, member, numbers in a state of model m).
 * A device copy counts each of them as newer on one side or the other. */
#define TB_STATE_ARRAYS(X)                                                                         \
    X(Q, q, (m)->number_of_coordinates)                                                            \
    X(U, u, (m)->number_of_dofs)                                                                   \
    X(CONTROLS, controls, (m)->number_of_actuators)                                                \
    X(ACTIVATIONS, activations, (m)->number_of_activations)                                        \
    X(APPLIED, applied, (m)->number_of_dofs)                                                       \
    X(WRENCHES, wrenches, 6 * (m)->number_of_bodies)                                               \
    X(KINEMATIC, kinematic, TB_KINEMATIC_NUMBERS *(m)->number_of_kinematic_bodies)                 \
    X(ROW_IMPULSES, row_impulses, tb_row_memory_layout(m).total)                                   \
    X(ACTUATOR_FORCE, actuator_force, (m)->number_of_actuators)
/* The rest of `numbers`, written by steps alone; it goes with the last of the arrays above. */
#define TB_STATE_HIDDEN_ARRAYS(X)                                                                  \
    X(ROW_STATUSES, row_statuses, tb_row_memory_layout(m).total)                                   \
    X(HISTORY, history, TB_HISTORY_NUMBERS)                                                        \
    X(FACTOR, factor, tb_cached_factor_numbers((m)->number_of_dofs))                               \
    X(PAST_U, past_u, (m)->number_of_past_velocities)                                              \
    X(SLEEP, sleep, (m)->number_of_sleep_numbers)

#define TB_STATE_NUMBER(NAME, member, numbers) TB_STATE_NUMBER_##NAME,
enum { TB_STATE_ARRAYS(TB_STATE_NUMBER) TB_ARRAYS };
#undef TB_STATE_NUMBER

/* Parts of a state, as a set: bit i is array i; the contacts follow. */
#define TB_STATE_BIT(NAME, member, numbers) TB_STATE_##NAME = 1 << TB_STATE_NUMBER_##NAME,
typedef enum tb_state_array {
    TB_STATE_ARRAYS(TB_STATE_BIT) TB_STATE_CONTACTS = 1 << TB_ARRAYS,
    TB_PARTS_NUMBERS = TB_STATE_CONTACTS - 1,
    TB_STATE_ALL = TB_PARTS_NUMBERS | TB_STATE_CONTACTS,
    /* inputs: a step reads them and only a course writes them */
    TB_PARTS_INPUT = TB_STATE_CONTROLS | TB_STATE_APPLIED | TB_STATE_WRENCHES
} tb_state_array;
#undef TB_STATE_BIT

/* The copy of a state that a device keeps between calls (backend/backend.h). */
typedef struct tb_device_copy tb_device_copy;

/* A variant of a model with a world's parameters, shared by forks. */
typedef struct tb_state_variant tb_state_variant;

struct tb_state {
    const tb_model *model;            /* of its steps: the variant's if there is one */
    tb_state_variant *variant;        /* NULL: the state has no parameters of its own */
    struct tb_state_soft *soft;       /* step/soft.h; NULL: the model has no soft bodies */
    struct tb_kept_evaluations *kept; /* step/evaluations.h; NULL: evaluations are not kept */
    double time;
    int64_t steps;
    tb_status status; /* DIVERGED: frozen */
    double *numbers;  /* one block that holds the arrays below, in this order */
    size_t number_of_numbers;
    double *q, *u, *controls, *activations;
    double *applied;        /* dofs */
    double *wrenches;       /* bodies x 6: force, torque about the centre of mass, world */
    double *kinematic;      /* kinematic bodies x 13 */
    double *row_impulses;   /* tb_row_memory_layout */
    double *actuator_force; /* actuators, N, last step */
    double *row_statuses; /* as row_impulses, at a block's first: 1 + tb_contact_status; 0: none */
    double *history;      /* TB_HISTORY_NUMBERS: a tb_solve_history */
    double *factor;       /* tb_cached_factor_numbers of the dofs: Newton's cached factor */
    double *past_u;       /* u before the last step, for sensors of acceleration; else empty */
    double *sleep;        /* see sleep_once.c; empty where nothing sleeps */
    /* Of the last step. Never written once there: a step makes its own in next_contacts, so forks
     * share these until each has stepped. */
    tb_contact_record *contacts;
    int32_t number_of_contacts, contact_capacity;
    tb_contact_record *next_contacts; /* no part of the state */
    int32_t next_capacity;
    int32_t next_wanted;        /* on a device: records that did not fit; 0: all did */
    tb_certificate certificate; /* of the last step */
    /* The numbers above are the host's. After steps on a device, the parts in `device_newer` are
     * up to date only in its copy, until a reader needs them. Time, steps, status, certificate
     * and the number of contacts always come back. Parts in `host_newer` go to the device with
     * the next step. No part is in both. */
    tb_device_copy *device_copy; /* NULL: no device has anything */
    uint32_t host_newer, device_newer;
};

/* Working memory of one thread. */
typedef struct tb_workspace {
    tb_arena arena;
    int32_t threads; /* that a stage within one world may use; 1 inside a parallel batch */
    struct tb_penalty *penalty; /* of the volume law (penalty/penalty.h); NULL: none yet */
    int32_t solver; /* on a device, which does not know names: tb_solver_number of the options' */
} tb_workspace;

/* One step of one world. Fills the certificate. A world that has diverged is left as it is and says
 * so. Failures other than DIVERGED (memory) leave the state as it was. */
#define tb_world_step TB_SYMBOL(tb_world_step)
TB_EXTERN tb_status tb_world_step(tb_state *state, const tb_step_options *options,
                                  tb_workspace *workspace, tb_certificate *certificate,
                                  tb_error *error);

/* The problem that the next step would solve, written to a file (double). */
tb_status tb_world_export(const tb_state *state, const tb_step_options *options,
                          tb_workspace *workspace, const char *path, tb_error *error);

/* Energy (J) at the state's q and u: kinetic, gravity, joint springs, tendon springs. */
TB_EXTERN double tb_world_energy(const tb_state *state, tb_arena *arena);

/* Acceleration (dofs) from gravity, Coriolis terms, springs, dampers, actuators and applied
 * forces. */
tb_status tb_world_smooth_acceleration(const tb_state *state, tb_workspace *workspace,
                                       double *acceleration, tb_error *error);

/* Moves `count` kinematic bodies (13 numbers each) by their own velocities for dt. */
TB_EXTERN void tb_kinematic_move(double *numbers, int32_t count, double dt);

/* Applies a course's inputs to a state before its step `step`, counted from 0.
 * RESOURCE_EXHAUSTED if the arena refuses. */
TB_EXTERN tb_status tb_course_apply_inputs(tb_state *state, const tb_course *course, int32_t step,
                                           tb_arena *arena);
/* Records the course's outputs after that step. */
TB_EXTERN void tb_course_record_outputs(const tb_state *state, const tb_course *course,
                                        int32_t step, const tb_certificate *certificate);
/* Gives 13 numbers each of `bodies` kinematic bodies unit quaternions, as a state has them. */
void tb_course_normalize(double *kinematic, int64_t bodies);
/* Parts of a state that a course writes. */
static inline uint32_t tb_course_arrays(const tb_course *course)
{
    return (course->kinematic ? (uint32_t)TB_STATE_KINEMATIC : 0) |
           (course->accelerations ? (uint32_t)TB_STATE_WRENCHES : 0) |
           (course->controls ? (uint32_t)TB_STATE_CONTROLS : 0);
}

/* ---- sleep: state/sleep_once.c; of models with sleep numbers ---- */

/* Whether the numbers are those of the last step: another scheme or device may have made it. */
bool tb_sleep_is_current(const tb_state *state);
/* Marks the numbers as those of the last step. */
void tb_sleep_is_written(tb_state *state);
bool tb_sleep_is_asleep(const tb_state *state, int32_t tree);
/* The numbers of a tree: steps for which it has been slow, or below zero where it sleeps; a hash of
 * its inputs; the residual of its last step. */
typedef struct tb_sleeper {
    double slow_steps, inputs, residual;
} tb_sleeper;
enum { TB_ASLEEP = -1 };
static inline tb_sleeper *tb_sleep_of(const tb_state *state, int32_t tree)
{
    return (tb_sleeper *)(void *)(state->sleep + TB_SLEEP_HEADER + TB_SLEEP_OF_TREE * tree);
}
/* A hash for each tree of all that may push or move it but contacts: coordinates, velocities,
 * forces, controls, the pose and velocity of a kinematic body that carries it. Each tree's is
 * `stride` numbers behind the one before it. */
void tb_sleep_inputs(const tb_state *state, double *inputs, int32_t stride);
/* Whether a kinematic body has no velocity and is where it was after the last step. */
bool tb_sleep_is_still(const tb_state *state, int32_t kinematic);
/* Whether the last step left gaps open, which the certificate of every step has to tell. */
bool tb_sleep_has_open_gaps(const tb_state *state);
/* After a step: these numbers belong to it. asleep: trees that sleep from now on, may be NULL. */
void tb_sleep_close(tb_state *state, const bool *asleep, const double *inputs,
                    const tb_certificate *certificate);
/* Adds to a certificate what sleeps: contacts, penetration, residual, the number of bodies. */
void tb_sleep_certify(const tb_state *state, tb_certificate *certificate);
/* Every tree is awake again; after a reset, bodies that the model puts to sleep are not. */
void tb_sleep_wake_all(tb_state *state);
void tb_sleep_reset(tb_state *state);
/* Whether the whole world sleeps, so that a step changes nothing but the time. Resets the arena. */
bool tb_sleep_rests(const tb_state *state, tb_arena *arena);
/* Such a step of length dt. */
void tb_sleep_rest(tb_state *state, double dt, bool report_energy, tb_arena *arena,
                   tb_certificate *certificate);

/* ---- parameters of a world ---- */

/* The model that the state was made of. */
const tb_model *tb_variant_origin(const tb_state *state);
tb_state_variant *tb_variant_share(tb_state_variant *variant); /* NULL is fine */
void tb_variant_release(tb_state_variant *variant);
/* Numbers that keep the parameters of a state's variant in a snapshot, and the numbers themselves:
 * friction, masses, gains, biases, damping and dry friction of joints, sizes of shapes. The first
 * numbers, up to biases, are all that older snapshots have. */
size_t tb_variant_numbers(const tb_model *model);
size_t tb_variant_first_numbers(const tb_model *model);
void tb_variant_write(const tb_state *state, double *numbers);
/* A variant for the first `count` numbers, of a snapshot of the state's model; *variant is NULL where
 * they are the model's own. DATA_LOSS for numbers out of range. */
tb_status tb_variant_read(const tb_state *state, const void *numbers, size_t count,
                          tb_state_variant **variant, tb_error *error);
/* Takes over the variant (NULL: the model itself). The state's numbers must be on the host. */
void tb_variant_set(tb_state *state, tb_state_variant *variant);

/* Reserves memory for `count` contact records of the present step, beside the last step's;
 * RESOURCE_EXHAUSTED if refused. */
TB_EXTERN tb_status tb_state_reserve_next(tb_state *state, int32_t count);
/* The first `count` contacts of the step that has been made are the state's now. */
TB_EXTERN void tb_state_take_next(tb_state *state, int32_t count);

/* ---- a state and its device copy ---- */

/* First number of each array of `numbers`, and behind the last one their count. */
void tb_state_arrays(const tb_state *state, size_t first[TB_ARRAYS + 1]);
/* Brings these parts to the host if a device has them newer; readers call it first. ABORTED if
 * the device is lost: the host's parts are then of an earlier step. */
tb_status tb_state_sync_to_host(const tb_state *state, uint32_t parts, tb_error *error);
/* The same of many at once. */
tb_status tb_states_sync_to_host(tb_state *const *states, int32_t worlds, uint32_t parts,
                                 tb_error *error);
/* Marks these parts, as a whole, as newer on the host; writers call it. */
static inline void tb_state_mark_host_newer(tb_state *state, uint32_t parts)
{
    state->device_newer &= ~parts;
    state->host_newer |= state->device_copy ? parts : 0;
}
/* Drops the device copy; parts that were newer there are lost. */
void tb_state_drop_device_copy(tb_state *state);
/* Marks a world as diverged, in its state and in the certificate; returns DIVERGED and the
 * message. */
tb_status tb_state_freeze(tb_state *state, tb_certificate *certificate, tb_error *error);
/* Reserves memory for `count` contacts that replace the present ones. */
tb_status tb_state_replace_contacts(tb_state *state, int32_t count);

#endif
