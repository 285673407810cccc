/* Shared declarations of the stages of one step. */
#ifndef TB_STEP_INTERNAL_H
#define TB_STEP_INTERNAL_H

#include "base/team.h"
#include "step/certificate.h"
#include "step/stages/contact_terms.h"
#include "step/dynamics/dynamics.h"
#include "step/step.h"

/* Stages of a step, for measurements (gpu/batch/stages.h). */
enum {
    TB_STAGE_ARRAYS,
    TB_STAGE_MOTION,
    TB_STAGE_MASS,
    TB_STAGE_BEGIN,
    TB_STAGE_ROWS,
    TB_STAGE_BROAD,
    TB_STAGE_NARROW,
    TB_STAGE_CONTACTS,
    TB_STAGE_SOLVE,
    TB_STAGE_END,
    TB_STAGES
};
#ifndef TB_STAGE_DONE
#define TB_STAGE_DONE(stage) ((void)0)
#endif

/* A contact as detected, on its way to rows and to a record. */
typedef struct tb_world_contact {
    int32_t shape_a, shape_b, body_a, body_b; /* model indices */
    uint64_t feature;
    tb_vec3 position; /* m, midway between both points */
    tb_vec3 normal, tangent1, tangent2;
    tb_real gap; /* m */
    tb_surface surface;
} tb_world_contact;

/* A union of chains of dofs: the columns of a block's rows. */
typedef struct tb_chains {
    int32_t *dofs;    /* ascending; model dofs */
    int32_t *parents; /* of each: position of its parent in the union, -1 */
    int8_t *sides;    /* of each: +1 moves B, -1 moves A, 0 both or generic */
    int32_t width;
    int32_t segment, number_of_runs; /* index of the union in the world's `segments` */
    int32_t heads[2];                /* of two chains: positions of their last dofs, -1 */
    bool free_bodies;                /* the union is that of one or two single free bodies */
} tb_chains;

/* One world inside one step. Everything lives in the arena, and a team has one for all its
 * lanes. */
#define tb_world TB_SYMBOL(tb_world)
typedef struct tb_world {
    const tb_model *model;
    const tb_state *state;
    tb_state *home; /* the same where the step is to be kept, else NULL */
    const tb_step_options *options;
    tb_arena *arena;
    int32_t threads, solver;         /* the workspace's */
    struct tb_sleep_of_world *sleep; /* sleep.c; NULL: every tree is awake and stays so */
    tb_real dt;
    tb_real theta; /* 1: Stewart-Trinkle, end of the step; 1/2: Moreau, midpoint */

    tb_real *q;            /* coordinates at the collision configuration */
    tb_real *u;            /* dofs at the start */
    tb_real *u_free;       /* dofs after the step if no row pushed */
    tb_real *u_end;        /* dofs after the step */
    tb_real *force;        /* dofs, N: explicit generalized force */
    tb_real *spring_force; /* dofs, N: the part of `force` from joint springs and dampers */
    bool accounts;         /* the step's energy is accounted for */
    /* dofs: dt theta (d + dt theta k), the implicit terms added to M; not for single free bodies */
    tb_real *diagonal;
    double *actuator_force; /* actuators, N: of actuators without a row */
    double *kinematic;      /* kinematic bodies x 13 at the collision configuration */
    /* Parts of `force`, kept separately; each is NULL if the model has none. Motors are
     * elsewhere: in actuator_force and the actuators' rows. */
    tb_real *fluid_force;  /* dofs, N: the medium's, at the start of the step */
    tb_inertia *drag;      /* bodies: see fluid.c */
    tb_force *drag_forces; /* bodies, scratch of the medium's forces */
    tb_real *compensation; /* dofs, N: gravity compensation */
    tb_real *motor_excess; /* dofs, N: part of actuators' forces that joints' limits cut off */
    double *moments;       /* number_of_moments of the model: of actuators, in moment_dofs' order */
    double *lengths;       /* actuators with moments: their lengths */
    bool *held;            /* actuators that push with actuator_force and have no row */
    /* actuators, NULL where none has a servo's memory: followed setpoint, and setpoint less
     * length */
    double *setpoints, *servo_errors;
    double *pulled; /* dofs: change of u_free by adhesion */
    tb_dynamics dynamics;
    /* of spatial tendons at the poses in `dynamics`; see tb_tendons_place */
    double *tendon_coefficients; /* tendon terms */
    tb_real *tendon_lengths;     /* tendons, m */
    tb_real *tendon_drifts;      /* tendons, m/s: of kinematic bodies */
    double *tendon_gains;        /* tendons with armature, m/s^2; see tb_tendons_gain */

    tb_contact_record *records; /* contacts; until the solve ends they hold drafts */
    int32_t number_of_contacts, record_capacity;
    int32_t record_from;  /* first record of the last step that may be the next contact's */
    tb_real deepest;      /* penetration, m */
    bool has_compliance;  /* some row has; else that of contacts is not written */
    int32_t contact_rows; /* first row of a contact */
    uint32_t collide_flags;
    const struct tb_found *found; /* on a card: by a search beside the begin; NULL: none */

    uint8_t *warm_statuses; /* blocks: before the solve */
    tb_solve_history history;
    double
        *factor; /* tb_cached_factor_numbers; NULL after a solve that left the state's as it is */

    /* the problem while it grows */
    tb_block *blocks;
    int32_t number_of_blocks, block_capacity;
    tb_segment *segments;
    int32_t number_of_segments, segment_capacity;
    tb_real *values;
    int64_t number_of_values, value_capacity;
    tb_real *c, *compliance, *warm; /* rows */
    tb_real *fine;                  /* rows, in float: rounding of warm; else NULL */
    int32_t *memory;                /* rows before the contacts': index in row_impulses */
    /* rows, of a contact only its first: the row's term in the recovery's problem beside its xi,
     * m/s; and its gap or the error of its equality, m or rad */
    tb_real *recovery, *gaps;
    tb_real *driven; /* rows, m/s: velocity by kinematic bodies */
    int32_t number_of_rows, row_capacity;
    int32_t first_contact_block; /* contact k is this block + k */

    /* of the block under construction; consecutive blocks often have the same chains, which are
     * merged and stored as segments only once */
    tb_chains chains;
    int32_t leaves[2]; /* of two chains: dofs that were asked for */
    bool has_chains;   /* `chains` is their union */
} tb_world;

/* Sets a row's impulse of the last step, and in float its rounding. */
TB_FN void tb_world_put_warm(const tb_world *world, int32_t row, double impulse)
{
    const tb_real coarse = TB_R(impulse);
    world->warm[row] = coarse;
    if (world->fine) world->fine[row] = TB_R(impulse - (double)coarse);
}

/* Replaces impulses that missed their tolerance and do work, or are far from the law (last_resort.c). */
#define tb_world_take_no_energy TB_SYMBOL(tb_world_take_no_energy)
TB_EXTERN tb_status tb_world_take_no_energy(const tb_world *world, const tb_problem *problem,
                                            tb_solution *solution, tb_error *error);

/* ---- recovery of positions ---- */

/* Effect of a step on positions alone. */
#define tb_recovered TB_SYMBOL(tb_recovered)
typedef struct tb_recovered {
    tb_real *velocity; /* dofs: moves the coordinates for dt and is no part of u; NULL: none */
    int32_t faults;    /* gaps that could not be closed */
    tb_fault worst;
} tb_recovered;

/* Whether the step's solution leaves a recovery to do; the same for all lanes. */
#define tb_world_asks_for_recovery TB_SYMBOL(tb_world_asks_for_recovery)
TB_EXTERN bool tb_world_asks_for_recovery(const tb_world *world, const tb_solution *solution);

/* The motion that gives back penetrations, violated limits and the errors of loops far from closed,
 * after the velocities have been solved for. From the arena. */
#define tb_world_recover TB_SYMBOL(tb_world_recover)
TB_EXTERN tb_status tb_world_recover(tb_world *world, const tb_solution *solution,
                                     tb_recovered *recovered, tb_error *error);

/* The fault of a block of the step: which thing its row belongs to, and how far that is off. */
#define tb_world_fault TB_SYMBOL(tb_world_fault)
TB_EXTERN tb_fault tb_world_fault(const tb_world *world, int32_t block);

/* Moves the coordinates by the recovery's velocity (dofs) for dt, no joint beyond its limits that
 * is within them and none further beyond. */
#define tb_world_move_recovery TB_SYMBOL(tb_world_move_recovery)
TB_EXTERN void tb_world_move_recovery(const tb_world *world, tb_real *velocity);

/* Joints that end the step beyond their limits, no nearer than they began it: faults. */
#define tb_world_find_violated_limits TB_SYMBOL(tb_world_find_violated_limits)
TB_EXTERN void tb_world_find_violated_limits(const tb_world *world, tb_recovered *recovered);

/* Solves a contact problem of this world by the step's solver. */
#define tb_world_run_solver TB_SYMBOL(tb_world_run_solver)
TB_EXTERN tb_status tb_world_run_solver(const tb_world *world, const tb_solve_options *options,
                                        const tb_problem *problem, tb_warm_start *warm,
                                        tb_solution *solution, tb_error *error);

/* ---- sleep, on the processor ---- */

/* Of a world in which trees may sleep. Arrays from the step's arena. */
typedef struct tb_sleep_of_world {
    bool any;     /* a tree sleeps */
    bool wakes;   /* a sleeping tree is touched: the step begins again without its island's sleep */
    bool *asleep; /* trees that this step leaves out */
    bool *touched;   /* trees that sleep and that something touches */
    bool *falls;     /* trees that fall asleep in this step */
    bool *still;     /* kinematic bodies that do not move */
    int32_t *island; /* trees, scratch */
    double *inputs;  /* trees: hashes */
} tb_sleep_of_world;

/* Whether the step leaves out a tree (-1: none). */
TB_FN bool tb_world_leaves_out(const tb_world *w, int32_t tree)
{
#ifdef TB_DEVICE
    (void)w, (void)tree;
    return false;
#else
    return w->sleep && w->sleep->any && tree >= 0 && w->sleep->asleep[tree];
#endif
}

#ifndef TB_DEVICE
/* Finds the trees that sleep, and wakes those whose inputs have changed. False if memory is
 * refused. */
#define tb_sleep_open TB_SYMBOL(tb_sleep_open)
TB_EXTERN bool tb_sleep_open(tb_world *world);
/* Whether a shape's body may move in this step. */
#define tb_sleep_moves TB_SYMBOL(tb_sleep_moves)
TB_EXTERN bool tb_sleep_moves(const tb_world *world, int32_t shape);
/* Two shapes may touch: true where that wakes one of their trees, which sleeps. */
#define tb_sleep_touch TB_SYMBOL(tb_sleep_touch)
TB_EXTERN bool tb_sleep_touch(tb_world *world, int32_t shape_a, int32_t shape_b);
/* Wakes the islands of the trees that were touched, for the step that begins again. */
#define tb_sleep_wake_touched TB_SYMBOL(tb_sleep_wake_touched)
TB_EXTERN void tb_sleep_wake_touched(tb_world *world);
/* Chooses the trees that fall asleep, and stops them: u_end is 0. Also reserves memory for the
 * contacts that tb_sleep_keep_contacts keeps: RESOURCE_EXHAUSTED. */
#define tb_sleep_choose TB_SYMBOL(tb_sleep_choose)
TB_EXTERN tb_status tb_sleep_choose(tb_world *world, const tb_recovered *recovered, bool converged);
/* Sets the impulses and statuses of rows that are no contacts to 0 where the step has made its own. */
#define tb_sleep_clear_rows TB_SYMBOL(tb_sleep_clear_rows)
TB_EXTERN void tb_sleep_clear_rows(const tb_world *world, tb_state *state);
/* The coordinates after the step of all that is awake. */
#define tb_sleep_commit TB_SYMBOL(tb_sleep_commit)
TB_EXTERN void tb_sleep_commit(const tb_world *world, tb_state *state);
/* Adds the contacts of what sleeps to the step's records, in the order of pairs. Returns how many
 * there are now. */
#define tb_sleep_keep_contacts TB_SYMBOL(tb_sleep_keep_contacts)
TB_EXTERN int32_t tb_sleep_keep_contacts(tb_world *world);
/* After the commit: the trees that were chosen sleep, and the certificate tells of all that do. */
#define tb_sleep_end TB_SYMBOL(tb_sleep_end)
TB_EXTERN void tb_sleep_end(const tb_world *world, tb_certificate *certificate);
#endif

/* ---- a step in parts ---- */

/* State of one world's step between its parts. The processor runs the parts at once; a card has
 * a kernel for each, with suitable registers, stack and lanes, and keeps this struct in the
 * world's memory. A team has one for all its lanes, and one workspace. */
#define tb_stepping TB_SYMBOL(tb_stepping)
typedef struct tb_stepping {
    tb_world world;
    tb_solution solution;
    double energy_before; /* J; where it is accounted for */
    tb_recovered recovered;
} tb_stepping;

/* In this order, as long as they give OK; anything else ends the step as tb_world_step says. The
 * certificate is filled where a part ends it. */
#define tb_step_begin TB_SYMBOL(tb_step_begin)
TB_EXTERN tb_status tb_step_begin(tb_stepping *stepping, tb_state *state,
                                  const tb_step_options *options, tb_workspace *workspace,
                                  tb_certificate *certificate, tb_error *error);
#ifdef TB_DEVICE
/* The search of tb_step_detect, by another team while this one makes tb_step_begin: it reads the state, which
 * no begin changes but for the course's inputs (kinematic: see tb_world_pose). */
#define tb_step_search TB_SYMBOL(tb_step_search)
TB_EXTERN void tb_step_search(tb_stepping *stepping, const tb_state *state, const double *kinematic,
                              const tb_step_options *options, tb_workspace *workspace,
                              struct tb_found *found);
#endif
#define tb_step_detect TB_SYMBOL(tb_step_detect)
TB_EXTERN tb_status tb_step_detect(tb_stepping *stepping, tb_certificate *certificate,
                                   tb_error *error);
#define tb_step_solve TB_SYMBOL(tb_step_solve)
TB_EXTERN tb_status tb_step_solve(tb_stepping *stepping, tb_error *error);
#define tb_step_end TB_SYMBOL(tb_step_end)
TB_EXTERN tb_status tb_step_end(tb_stepping *stepping, tb_certificate *certificate,
                                tb_error *error);

/* ---- one lane for its team ---- */

/* Sequential work that takes memory is done by one lane for all:
 *
 *     if (tb_world_alone(w)) status = ...;
 *     tb_world_together(w, &status);
 *
 * Functions for both cases sync by tb_world_sync: a lane that works alone does not wait. */
#ifdef TB_DEVICE
TB_TEAM_FN bool tb_world_alone(tb_world *world)
{
    tb_team_sync(); /* all are done with the account */
    if (TB_LEADER) world->arena->lanes = TB_ARENA_OF_ONE_LANE;
    return TB_LEADER;
}

TB_TEAM_FN void tb_world_together(tb_world *world, tb_status *status)
{
    if (TB_LEADER) world->arena->lanes = TB_ARENA_OF_TEAM;
    tb_team_sync();
    tb_team_share(status, sizeof *status);
}

TB_TEAM_FN void tb_world_sync(const tb_world *world)
{
    if (world->arena->lanes == TB_ARENA_OF_TEAM) tb_team_sync();
}
#else
TB_TEAM_FN bool tb_world_alone(tb_world *world)
{
    (void)world;
    return true;
}

TB_TEAM_FN void tb_world_together(tb_world *world, tb_status *status)
{
    (void)world;
    (void)status;
}

TB_TEAM_FN void tb_world_sync(const tb_world *world)
{
    (void)world;
}
#endif

/* ---- stages, in order ---- */

/* Loads the state, moves to the collision configuration, computes dynamics, forces and u_free. */
#define tb_world_begin TB_SYMBOL(tb_world_begin)
TB_EXTERN tb_status tb_world_begin(tb_world *world, tb_error *error);
/* Rows of actuators, dry friction, limits, tendons and equalities. */
#define tb_world_assemble_rows TB_SYMBOL(tb_world_assemble_rows)
TB_EXTERN tb_status tb_world_assemble_rows(tb_world *world, tb_error *error);
#ifdef TB_DEVICE
/* Arrays of the motion alone, loaded and moved to the collision configuration as by tb_world_begin; for a search.
 * kinematic: the state's, or those that the course is about to give it. */
#define tb_world_pose TB_SYMBOL(tb_world_pose)
TB_EXTERN tb_status tb_world_pose(tb_world *world, const double *kinematic);
/* Finds pairs of shapes that are near each other, their points and the places of their contacts, in the arena; needs
 * poses and velocities alone. */
#define tb_world_search TB_SYMBOL(tb_world_search)
TB_EXTERN void tb_world_search(tb_world *world, struct tb_found *found);
#endif
/* Finds contacts, where no search has, and adds their rows. DIVERGED where the motion has left the range of numbers. */
#define tb_world_detect TB_SYMBOL(tb_world_detect)
TB_EXTERN tb_status tb_world_detect(tb_world *world, tb_error *error);
/* Pulls of actuators on bodies, into `c` and `u_free`; behind the contacts' rows. */
#define tb_world_adhere TB_SYMBOL(tb_world_adhere)
TB_EXTERN tb_status tb_world_adhere(tb_world *world, tb_error *error);
/* The problem as far as it has been assembled; borrows the world's arrays. */
#define tb_world_problem TB_SYMBOL(tb_world_problem)
TB_EXTERN tb_problem tb_world_problem(const tb_world *world);
/* Works of one step, J, at the mean of its velocities (see energy_once.c). */
typedef struct tb_energy_account {
    double motors, damping, friction, applied;
    /* J, the largest discretization error that a step may have. The sum of
     * - d' M d, d the change of velocity or the part of it that no row makes, whichever gives less:
     *   a row changes it by any amount at an impact;
     * - dt du' f of gravity and springs, whose work follows the path of u1 and not of the mean;
     * - three times the square of the largest turn of a body (rad; at most a tenth), times the
     *   energy that turning bodies exchange and the works of forces, whose directions turn too;
     * - three times that turn (at most 0.3), times the energy of velocities that rows change: the
     *   Coriolis terms, whose power is cubic in the velocities, leave it out;
     * - the errors of tendons and of springs that turn back (tendon_error,
     *   returning_springs_error).
     * Without an impact each is of order dt^2, with one of order dt: velocities then change by
     * impulses that do not shrink with dt, turns and ways do */
    double bound;
    double energy;   /* J, before the motion of positions alone, if there is one */
    bool recovers;   /* there is one */
    bool bases_move; /* a kinematic body carries a tree; its work is not in `applied` */
} tb_energy_account;

/* Whether bodies of a tree may turn by more in a step than the account's discretization error
 * leaves unnoticed: the sum of the tree's joint speeds (rad/s) at u, which bounds every body's, is
 * above TB_UNCHECKED_TURN a step. */
#define TB_UNCHECKED_TURN 0.05 /* rad */
TB_EXTERN bool tb_world_turns_fast(const tb_world *world, const double *u);
/* Sorts the work of a step by its source, once u_end is there. The dynamics keep the velocities of
 * the account; double only. */
TB_EXTERN tb_status tb_world_account(tb_world *world, const tb_solution *solution,
                                     tb_energy_account *account, tb_error *error);
/* Energy (J) of w->q and u_end, before they are the state's; moves the dynamics there, whose poses
 * are those of w->q already if it is placed; double only. */
TB_EXTERN double tb_world_end_energy(tb_world *world, bool placed);
/* Energy (J) of the state that the step begins with, before anything moves; double only. */
TB_EXTERN double tb_world_begin_energy(tb_world *world);
/* tb_state_overlaps for the `most` deepest pairs; *total counts all. A crowd of shapes in one place
 * has as many pairs as the square of their number, and a list of these takes more than the
 * model. */
tb_status tb_state_deepest_overlaps(const tb_state *state, double slop, int32_t samples,
                                    int32_t most, tb_overlap **overlaps, int32_t *count,
                                    int64_t *total, tb_error *error);
/* Dynamics at the state's q and u, from the arena; double only. RESOURCE_EXHAUSTED if refused. */
TB_EXTERN tb_status tb_dynamics_look(tb_dynamics *d, const tb_state *state, tb_arena *arena);

/* Moves q (coordinates) so that equalities hold. *closure_error: the largest error left, m or rad.
 * Equalities that can be closed no further are faults; the world's gaps become the errors left.
 * placed: the poses of the dynamics are those of q, as they are afterwards if there are
 * equalities. */
#define tb_world_close_loops TB_SYMBOL(tb_world_close_loops)
TB_EXTERN tb_status tb_world_close_loops(tb_world *world, tb_real *q, bool placed,
                                         tb_recovered *recovered, double *closure_error,
                                         tb_error *error);

/* ---- pieces ---- */

/* Begins the contacts' rows, with memory for about `count` contacts of at most `rows` rows. */
#define tb_contacts_begin TB_SYMBOL(tb_contacts_begin)
TB_EXTERN bool tb_contacts_begin(tb_world *world, int32_t count, int32_t rows);
/* Adds one contact's rows and its record, unless it needs none. Contacts come sorted by pair. points: all `count`
 * of the pair, among which a new feature finds the force of one that has gone; none: no feature does. */
#define tb_contacts_add TB_SYMBOL(tb_contacts_add)
TB_EXTERN bool tb_contacts_add(tb_world *world, const tb_world_contact *contact,
                               const tb_contact_point *points, int32_t count);
#ifndef TB_DEVICE
/* An element as a side of a contact: its point moves with the sum of its balls' velocities by their weights, which
 * add up to one. */
typedef struct tb_element_side {
    int32_t corners, bodies[3];
    tb_vec3 at[3]; /* m, the balls' centres */
    tb_real weights[3];
} tb_element_side;
/* The same for a contact whose sides A and B are elements or (NULL) shapes. In the place of an element the contact
 * has its first ball. */
#define tb_contacts_add_element TB_SYMBOL(tb_contacts_add_element)
TB_EXTERN bool tb_contacts_add_element(tb_world *world, const tb_world_contact *contact,
                                       const tb_element_side *const elements[2]);
#endif
#define tb_contacts_end TB_SYMBOL(tb_contacts_end)
TB_EXTERN void tb_contacts_end(tb_world *world);

/* Starts a block: takes the union of the chains above `leaves` (dof indices, -1 allowed), grows the
 * arrays and returns rows x width zeroed numbers for W, or NULL if memory is refused. The union
 * is world->chains. Fill W, then call tb_block_end. memory: of the first row, or -1 for a
 * contact. */
#define tb_block_begin TB_SYMBOL(tb_block_begin)
TB_EXTERN tb_real *tb_block_begin(tb_world *world, tb_law law, int32_t rows, const int32_t *leaves,
                                  int32_t number_of_leaves, int32_t memory);
/* Reserves memory for this many more blocks, rows and numbers at once, so that long lists are
 * not copied as they grow. */
#define tb_block_reserve TB_SYMBOL(tb_block_reserve)
TB_EXTERN bool tb_block_reserve(tb_world *world, int32_t blocks, int32_t rows, int64_t values);
/* W_row . x for rows on these chains. */
TB_FN tb_real tb_block_dot(const tb_chains *chains, const tb_real *w_row, const tb_real *x)
{
    const int32_t *dofs = chains->dofs, width = chains->width;
    tb_real sum = 0;
    TB_UNROLLED
    for (int32_t i = 0; i < width; i++) sum += w_row[i] * x[dofs[i]];
    return sum;
}
/* The parts of tb_block_begin, for lanes that each make blocks of their own: the union of the
 * chains above `leaves`, in the arrays that `chains` brings ... */
#define tb_block_merge_chains TB_SYMBOL(tb_block_merge_chains)
TB_EXTERN void tb_block_merge_chains(const tb_model *model, tb_chains *chains,
                                     const int32_t *leaves, int32_t number_of_leaves);
/* ... memory for this many more segments, of which a union needs number_of_runs; false if memory
 * is refused ... */
#define tb_segment_reserve TB_SYMBOL(tb_segment_reserve)
TB_EXTERN bool tb_segment_reserve(tb_world *world, int32_t segments);
/* ... the union's runs, from this segment on ... */
#define tb_block_store_chains TB_SYMBOL(tb_block_store_chains)
TB_EXTERN void tb_block_store_chains(const tb_world *world, tb_chains *chains, int32_t segment);
/* ... and a block at reserved places. */
typedef struct tb_block_offsets {
    int32_t block, row;
    int64_t value;
} tb_block_offsets;
#define tb_block_put TB_SYMBOL(tb_block_put)
TB_EXTERN tb_real *tb_block_put(const tb_world *world, const tb_chains *chains,
                                const tb_block_offsets *place, tb_law law, int32_t rows,
                                int32_t memory);
/* Whitens `rows` rows of W in place: Y = H^-T W. */
#define tb_block_whiten TB_SYMBOL(tb_block_whiten)
TB_EXTERN void tb_block_whiten(const tb_world *world, const tb_chains *chains, int32_t rows,
                               tb_real *values);
#define tb_block_whiten_row TB_SYMBOL(tb_block_whiten_row)
TB_EXTERN void tb_block_whiten_row(const tb_world *world, const tb_chains *chains, tb_real *values);
/* The same for the block under construction, which ends. */
#define tb_block_end TB_SYMBOL(tb_block_end)
TB_EXTERN void tb_block_end(tb_world *world, tb_real *values);
/* Drops the block under construction again. */
#define tb_block_cancel TB_SYMBOL(tb_block_cancel)
TB_EXTERN void tb_block_cancel(tb_world *world);

/* Index of a dof in the union; the dof must be there. */
TB_FN int32_t tb_block_position(const tb_chains *chains, int32_t dof)
{
    int32_t i = 0;
    while (chains->dofs[i] != dof) i++;
    return i;
}

/* An actuator's or tendon's action on the dofs. */
typedef struct tb_transmission {
    const int32_t *dofs; /* or NULL: `first` and the following */
    const double *coefficients;
    int32_t first, count;
    double scale; /* of all coefficients and the drift */
    double drift; /* m/s: velocity by kinematic bodies */
} tb_transmission;

/* Transmission of an actuator at the present poses. */
#define tb_actuator_transmission TB_SYMBOL(tb_actuator_transmission)
TB_EXTERN tb_transmission tb_actuator_transmission(const tb_world *world, int32_t actuator);
/* Its length, m or rad: gear times coordinate; a ball's is its rotation vector, a free joint and a
 * site without reference have none. */
#define tb_actuator_length TB_SYMBOL(tb_actuator_length)
TB_EXTERN double tb_actuator_length(const tb_world *world, int32_t actuator);
/* Lengths and moments of all actuators whose moments depend on the pose; after the motion. */
#define tb_transmissions_find TB_SYMBOL(tb_transmissions_find)
TB_EXTERN void tb_transmissions_find(tb_world *world);
/* Arrays for transmissions and passive forces, as far as the model needs them; false if the arena
 * refuses. */
#define tb_transmissions_take TB_SYMBOL(tb_transmissions_take)
TB_EXTERN bool tb_transmissions_take(tb_world *world);
#define tb_passive_take TB_SYMBOL(tb_passive_take)
TB_EXTERN bool tb_passive_take(tb_world *world);
/* Adds to `force` the forces of springs and dampers of joints, gravity compensation and the medium,
 * and prepares their implicit parts: `diagonal`, and the drag of the dynamics. */
#define tb_passive_forces TB_SYMBOL(tb_passive_forces)
TB_EXTERN void tb_passive_forces(tb_world *world);
/* The medium's part of that. */
#define tb_fluid_take TB_SYMBOL(tb_fluid_take)
TB_EXTERN bool tb_fluid_take(tb_world *world);
#define tb_fluid_forces TB_SYMBOL(tb_fluid_forces)
TB_EXTERN void tb_fluid_forces(tb_world *world);

/* A damper's force at velocity u, N; its slope is that at velocity u0, as the step takes it. */
TB_FN double tb_damper_force(const tb_model_dof *dof, double u0, double u)
{
    const double *p = dof->damping_polynomial, v = fabs(u0);
    const double a = p[0] * v, b = p[1] * v * v;
    return -(dof->damping + a + b) * u0 - fmax(dof->damping + 2 * a + 3 * b, 0.0) * (u - u0);
}

/* Kinematic bodies go their way for `time`. */
TB_TEAM_FN void tb_world_move_kinematic(const tb_world *world, tb_real time)
{
    TB_EACH (i, world->model->number_of_kinematic_bodies)
        tb_kinematic_move(world->kinematic + TB_KINEMATIC_NUMBERS * i, 1, (double)time);
    tb_team_sync();
}

/* The actuator's control, within its limits. */
TB_FN double tb_actuator_control(const tb_model_actuator *actuator, double control)
{
    if (!actuator->control_limited) return control;
    return fmin(fmax(control, actuator->control_lower), actuator->control_upper);
}

/* Present law of an actuator: force = constant - damping v (v at the end of the step), N before
 * the gear. */
typedef struct tb_actuator_law {
    double constant, damping;
    double lower, upper; /* force limits, infinite where there are none */
} tb_actuator_law;

#define tb_actuator_evaluate TB_SYMBOL(tb_actuator_evaluate)
TB_EXTERN tb_actuator_law tb_actuator_evaluate(const tb_world *world, int32_t actuator);

/* Moves u (dofs), a velocity at the end of the step, by the actuators and tendon springs with
 * rows, one after another, as if nothing else pushed. */
/* Adds actuators' forces to `force`: constant forces of actuators without a stabilising velocity
 * term; the others get rows, unless all are wanted. */
#define tb_actuators_push TB_SYMBOL(tb_actuators_push)
TB_EXTERN void tb_actuators_push(tb_world *world, bool all);
/* The control that acts now: the delayed one where the actuator has a delay, within its limits. */
#define tb_actuator_control_now TB_SYMBOL(tb_actuator_control_now)
TB_EXTERN double tb_actuator_control_now(const tb_world *world, int32_t actuator);
/* Moves the state's activations of one actuator on to the end of the step. */
#define tb_actuator_advance TB_SYMBOL(tb_actuator_advance)
TB_EXTERN void tb_actuator_advance(const tb_world *world, int32_t actuator, tb_state *state);
/* The activation after dt, if the control stays. velocity: of the actuator, for a current. */
#define tb_activation_after TB_SYMBOL(tb_activation_after)
TB_EXTERN double tb_activation_after(const tb_model_actuator *actuator, double control,
                                     double velocity, double activation, double dt);
/* Coefficient c + p[0] x + p[1] x^2 of a spring's or damper's force over x; *slope: of x times the
 * coefficient, not below 0. */
TB_FN tb_real tb_polynomial_coefficient(tb_real c, const double p[2], tb_real x, tb_real *slope)
{
    const tb_real a = TB_R(p[0]) * x, b = TB_R(p[1]) * x * x;
    *slope = tb_max(c + 2 * a + 3 * b, 0);
    return c + a + b;
}
/* A spring k with a damper d on something at x that moves at v0 before the step and v1 after it:
 * force = -k x + past v0 - damping v1. With theta = 1 this is the force at the end of the step,
 * with theta = 1/2 (x is at the midpoint) its mean over the step, as for springs and dampers on
 * joints. */
TB_FN void tb_spring_damper(const tb_world *w, double k, double d, double *past, double *damping)
{
    const double theta = (double)w->theta, stiffness = theta * theta * (double)w->dt * k;
    *past = theta == 1 ? 0 : stiffness - (1 - theta) * d;
    *damping = stiffness + theta * d;
}

#define tb_servos_predict TB_SYMBOL(tb_servos_predict)
TB_EXTERN tb_status tb_servos_predict(tb_world *world, tb_real *u);

/* One equality at the present poses: begins its block (BILATERAL) with W filled. errors: how far it
 * is off, m or rad, per row; drift: velocity of the row that kinematic bodies cause. NULL if memory
 * is refused. */
#define tb_equality_begin TB_SYMBOL(tb_equality_begin)
TB_EXTERN tb_real *tb_equality_begin(tb_world *world, int32_t equality, const tb_real *q,
                                     int32_t memory, tb_real errors[TB_EQUALITY_ROWS],
                                     tb_real drift[TB_EQUALITY_ROWS]);

/* Term in c of an equality's rows beside the free velocity and the drift, from their W and
 * drift. */
#define tb_equality_bias TB_SYMBOL(tb_equality_bias)
TB_EXTERN void tb_equality_bias(const tb_world *world, const tb_real *values, int32_t rows,
                                const tb_real drift[TB_EQUALITY_ROWS],
                                tb_real bias[TB_EQUALITY_ROWS]);
/* The velocity (m/s or rad/s) at which the recovery draws a loop together that is too far from
 * closed for a projection, from its errors; zero for any other. */
#define tb_equality_recovery TB_SYMBOL(tb_equality_recovery)
TB_EXTERN void tb_equality_recovery(const tb_world *world, int32_t rows,
                                    const tb_real errors[TB_EQUALITY_ROWS], tb_real *recovery);
/* Moves u (dofs), a velocity at the end of the step, so that it obeys the equalities' rows, as if
 * nothing else pushed. Uses the blocks and leaves none. */
#define tb_equality_predict TB_SYMBOL(tb_equality_predict)
TB_EXTERN tb_status tb_equality_predict(tb_world *world, tb_real *u);
/* Rows of many closures and the factor of their matrix, for one thread. Memory is the arena's. */
#define tb_closing TB_SYMBOL(tb_closing)
typedef struct tb_closing tb_closing;
/* Copies the rows of a problem for the impulses of tb_closing_impulses, which factors their matrix once. *closing:
 * NULL, or an earlier one, whose memory and pattern are used again where its rows have the same dofs.
 * RESOURCE_EXHAUSTED. */
#define tb_closing_take_rows TB_SYMBOL(tb_closing_take_rows)
TB_EXTERN tb_status tb_closing_take_rows(tb_closing **closing, const tb_problem *problem,
                                         tb_real ridge, tb_arena *arena);
/* The copied rows, borrowed. */
#define tb_closing_rows TB_SYMBOL(tb_closing_rows)
TB_EXTERN tb_problem tb_closing_rows(const tb_closing *closing);
/* mu (rows) = -(G + ridge trace(G))^-1 c of the copied rows. *solved: false where rounding leaves no factor. */
#define tb_closing_impulses TB_SYMBOL(tb_closing_impulses)
TB_EXTERN tb_status tb_closing_impulses(tb_closing *closing, const tb_real *c, tb_real *mu,
                                        bool *solved);

/* Velocity and angular velocity of a body's point without its dofs: that of the kinematic body
 * that it is fixed to or that carries its tree, or zero. */
#define tb_prescribed_motion TB_SYMBOL(tb_prescribed_motion)
TB_EXTERN tb_motion tb_prescribed_motion(const tb_world *world, int32_t body, tb_vec3 point);

TB_FN int32_t tb_transmission_dof(const tb_transmission *t, int32_t i)
{
    return t->dofs ? t->dofs[i] : t->first + i;
}

/* How fast a transmission moves at velocities u. */
TB_FN double tb_transmission_velocity(const tb_transmission *t, const tb_real *u)
{
    double velocity = t->scale * t->drift;
    for (int32_t i = 0; i < t->count; i++)
        velocity += t->scale * t->coefficients[i] * (double)u[tb_transmission_dof(t, i)];
    return velocity;
}

/* ---- tendons ---- */

/* Effect of tendons' armatures outside of the step (double): their part of a mass matrix (dofs x
 * dofs), and x <- (M + a J' J)^-1 (M x - J' a dJ/dt u), from x = M^-1 f. */
TB_EXTERN tb_status tb_tendons_add_mass(const tb_dynamics *dynamics, tb_arena *arena, double *mass);
TB_EXTERN tb_status tb_tendons_slow(const tb_world *world, double *x);
/* Takes the arrays of spatial tendons, if there are any. */
#define tb_tendons_take TB_SYMBOL(tb_tendons_take)
TB_EXTERN tb_status tb_tendons_take(tb_world *world);
/* Lengths and coefficients of spatial tendons at the poses in world->dynamics. */
#define tb_tendons_place TB_SYMBOL(tb_tendons_place)
TB_EXTERN void tb_tendons_place(const tb_world *world);
/* A tendon's action on the dofs. */
#define tb_tendon_transmission TB_SYMBOL(tb_tendon_transmission)
TB_EXTERN tb_transmission tb_tendon_transmission(const tb_world *world, int32_t tendon);
/* Length of a spatial tendon (m) at the poses in `dynamics`, and d length / d dof for its dofs (may
 * be NULL). */
#define tb_tendon_measure TB_SYMBOL(tb_tendon_measure)
TB_EXTERN tb_real tb_tendon_measure(const tb_dynamics *dynamics, int32_t tendon,
                                    double *coefficients);
/* d^2 length / dt^2 (m/s^2) of a spatial tendon of sites alone while no dof's velocity changes, at
 * these velocities of the bodies and the accelerations of the last bias in `dynamics`. */
#define tb_tendon_gain TB_SYMBOL(tb_tendon_gain)
TB_EXTERN double tb_tendon_gain(const tb_world *world, int32_t tendon, const tb_motion *velocities);
/* Sets world->tendon_gains for tendons with armature, in the same way. */
#define tb_tendons_gain TB_SYMBOL(tb_tendons_gain)
TB_EXTERN void tb_tendons_gain(const tb_world *world, const tb_motion *velocities);
/* Length of a fixed tendon at coordinates q. */
#define tb_tendon_fixed_length TB_SYMBOL(tb_tendon_fixed_length)
TB_EXTERN tb_real tb_tendon_fixed_length(const tb_model *model, int32_t tendon, const tb_real *q);
/* Length of any tendon at coordinates q, where the last tb_tendons_place was. */
#define tb_tendon_length TB_SYMBOL(tb_tendon_length)
TB_EXTERN tb_real tb_tendon_length(const tb_world *world, int32_t tendon, const tb_real *q);
/* How far a length is beyond the range in which the tendon's spring rests, signed. */
#define tb_tendon_stretch TB_SYMBOL(tb_tendon_stretch)
TB_EXTERN tb_real tb_tendon_stretch(const tb_model_tendon *tendon, tb_real length);

#endif
