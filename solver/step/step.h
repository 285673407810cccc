/* State and time stepping.
 *
 * A tb_state is precision-free: it stores doubles, and a float stepper rounds what it stores, so
 * that a snapshot resumes bit-exactly in either precision. One step is a pipeline of stages over
 * one world:
 *
 *     move to the collision configuration -> dynamics -> detect -> assemble -> solve
 *         -> integrate -> remember
 *
 * tb_world_step runs it; backends decide for which worlds and where. */
#ifndef TB_STEP_H
#define TB_STEP_H

#include "collide/collide.h"
#include "model/model.h"
#include "solve/solve.h"

/* One contact of the last step: what tb_state_contact tells, and what warm-starts the next step.
 * Impulses of friction are remembered as a vector in world axes,
 * because tangents may turn between steps. */
typedef struct tb_contact_record {
    int32_t shape_a, shape_b;
    uint64_t feature;
    double position[3], normal[3], tangent1[3], tangent2[3];
    double gap;
    double impulse[6]; /* normal, tangents (N s); spin, rolling (N m s) */
    double velocity[3];
    int32_t kind, status;
} tb_contact_record;

/* Impulses of the rows that are not contacts, by the thing they belong to; kept as one array.
 * limits: one per joint, two for each (lower, upper); tendons: two limits, friction, spring. */
typedef struct tb_row_memory {
    int32_t joint_limits, dof_friction, tendon_rows, actuators, equalities, total;
} tb_row_memory;

tb_row_memory tb_row_memory_layout(const tb_model *model);

enum { TB_KINEMATIC_NUMBERS = 13, TB_TENDON_ROWS = 4, TB_EQUALITY_ROWS = 6 };

struct tb_state {
    const tb_model *model;
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
    /* Of the last step. Never written once there: a step makes its own in next_contacts, so forks
     * share these until each has stepped. */
    tb_contact_record *contacts;
    int32_t number_of_contacts, contact_capacity;
    tb_contact_record *next_contacts; /* no part of the state */
    int32_t next_capacity;
    tb_certificate certificate; /* of the last step */
};

/* Working memory of one thread. */
typedef struct tb_workspace {
    tb_arena arena;
    int32_t threads; /* that a stage within one world may use; 1 inside a parallel batch */
} tb_workspace;

/* One step of one world. Fills the certificate. A world that has diverged is left as it is and says
 * so. Failures other than DIVERGED (memory) leave the state as it was. */
#define tb_world_step TB_SYMBOL(tb_world_step)
tb_status tb_world_step(tb_state *state, const tb_step_options *options, tb_workspace *workspace,
                        tb_certificate *certificate, tb_error *error);

/* The problem that the next step would solve, written to a file (double). */
tb_status tb_world_export(const tb_state *state, const tb_step_options *options,
                          tb_workspace *workspace, const char *path, tb_error *error);

/* Energy (J) at the state's q and u: kinetic, gravity, joint springs, tendon springs. */
double tb_world_energy(const tb_state *state, tb_arena *arena);

/* Acceleration (dofs) from gravity, Coriolis terms, springs, dampers, actuators and applied
 * forces. */
tb_status tb_world_smooth_acceleration(const tb_state *state, tb_workspace *workspace,
                                       double *acceleration, tb_error *error);

/* Moves `count` kinematic bodies (13 numbers each) by their own velocities for dt. */
void tb_kinematic_move(double *numbers, int32_t count, double dt);

/* Room for `count` contact records of the step that is being made, beside those that are there;
 * RESOURCE_EXHAUSTED if refused. */
tb_status tb_state_reserve_next(tb_state *state, int32_t count);
/* The first `count` contacts of the step that has been made are the state's now. */
void tb_state_take_next(tb_state *state, int32_t count);

/* ---- backends ---- */

enum { TB_BACKEND_ABI = 1 };

/* A backend schedules the per-world and per-element functions of the rooms above; it holds no
 * formula. The CPU's is built in; others are plug-ins that say the same ABI number. */
typedef struct tb_backend {
    int32_t abi;      /* TB_BACKEND_ABI */
    const char *name; /* "cpu" */
    /* Working memory for `options`. */
    tb_status (*create)(const tb_step_options *options, void **context, tb_error *error);
    void (*destroy)(void *context);
    /* Steps every world `steps` times; the contract of tb_step_batch. */
    tb_status (*step)(void *context, const tb_step_options *options, tb_state *const *states,
                      int32_t worlds, int32_t steps, tb_certificate *certificates, tb_error *error);
    /* Bytes held and times the system was asked for memory. */
    void (*memory)(const void *context, size_t *bytes, int64_t *allocations);
    /* A workspace for questions about one world (export, energy). */
    tb_workspace *(*workspace)(void *context);
} tb_backend;

extern const tb_backend tb_backend_cpu;

#endif
