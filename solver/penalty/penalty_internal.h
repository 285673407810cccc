/* Working memory of the volume law: solids of a model, shapes that are near, forces. */
#ifndef TB_PENALTY_INTERNAL_H
#define TB_PENALTY_INTERNAL_H

#include <string.h>

#include "penalty/card/ball_law.h"
#include "penalty/broad.h"
#include "penalty/integrate.h"
#include "penalty/penalty.h"
#include "penalty/volume_law.h"
#include "step/dynamics/dynamics.h"
#include "step/evaluations.h"

/* A shape as the law sees it. */
typedef struct tb_law_shape {
    int32_t shape, body; /* of the model */
    int32_t solid;       /* in solids; -1: none is needed */
    double radius;       /* m, > 0: a ball */
    bool half_space, fixed;
    double lower[3], upper[3]; /* m, box in the shape's frame; of a half-space infinite */
    tb_volume_constants constants;
} tb_law_shape;

/* Key of a cached solid: equal keys mean equal solids. */
typedef struct tb_solid_key {
    tb_shape_type type;
    int32_t asset;
    double size[3];
} tb_solid_key;

/* Shapes whose boxes, grown by the margin, met when the list was made. */
typedef struct tb_near_pair {
    int32_t a, b;   /* in shapes, a < b */
    double reach;   /* m, sum of the radii of two balls; other shapes: 0 */
    bool may_touch; /* at the present point: boxes meet, and of two balls the balls */
} tb_near_pair;

/* The contact of one part in the last evaluation. */
typedef struct tb_law_contact {
    int32_t a, b; /* in shapes */
    tb_overlap_part part;
    tb_contact_push push;
    tb_vec3 velocity; /* m/s, of A relative to B */
} tb_law_contact;

struct tb_penalty {
    char sha256[65]; /* of the model that the memory is for */
    tb_arena arena;  /* arrays of the model's size */
    tb_workspace dynamics_memory;

    tb_law_shape *shapes; /* colliding shapes */
    int32_t number_of_shapes;
    tb_solid *solids;
    tb_solid_key *keys;
    int32_t number_of_solids, solid_capacity, key_capacity;
    bool simple;             /* every tree is one body whose motion body_law.h has */
    tb_law_body *law_bodies; /* trees; where simple */

    tb_pose *poses;                  /* bodies, world */
    tb_vec3 *linear, *angular, *com; /* bodies: velocity of the centre of mass; the centre; world */
    tb_pose *shape_poses;            /* shapes, world */
    double *wrenches;                /* bodies x 6: force, torque about the centre of mass */
    double *kinematic;               /* kinematic bodies x 13, at the time of the evaluation */
    double *boxes, *near_boxes;      /* shapes x 6: lower, upper; world; at the list's making */
    double *bounded_boxes;           /* shapes x 6: near boxes of those that are no half-space */
    int32_t *bounded;                /* shapes: their numbers */
    int32_t *bounded_shapes;         /* shapes: the model's numbers of those with boxes */
    tb_broad broad;
    double margin; /* m */
    bool listed;
    tb_near_pair *pairs;
    int32_t number_of_pairs, pair_capacity;

    tb_law_contact *contacts;
    int32_t number_of_contacts, contact_capacity;
    tb_overlaps_found found;
    double *y, *scratch; /* the integrator's */
    int32_t size;
    double y_energy; /* J, of the state that the last step left in y; NAN: not known */
    double power;    /* W, of the contacts in the last evaluation */
    bool degenerate;

    /* of the step that is being made */
    const tb_state *state;
    tb_error *error;
};

/* The solids of a model's shapes. UNSUPPORTED names the shape. */
tb_status tb_penalty_take_shapes(tb_penalty *p, const tb_model *model, tb_error *error);
void tb_penalty_free_solids(tb_penalty *p);

/* Memory and solids for the state's model; kept while the model is the same. */
tb_status tb_penalty_prepare(tb_penalty *p, const tb_state *state, tb_error *error);

/* Poses, velocities and contact forces at y = (q, u, ...), t after the step's start. */
tb_status tb_penalty_evaluate(tb_penalty *p, double t, const double *y, tb_error *error);
/* Starts the evaluations of a step of p->state, where it keeps them. */
void tb_penalty_begin_kept(const tb_penalty *p);
/* Whether all numbers of y are finite. */
bool tb_penalty_is_finite(const tb_penalty *p, const double *y);
/* f(t, y) for tb_integrate; the context is the tb_penalty. */
tb_status tb_penalty_slope(void *context, double t, const double *y, double *slope,
                           tb_error *error);

/* Constants of a tree that is one body without motors, springs and dampers, from a model's reference
 * coordinates. False for other trees. */
bool tb_penalty_simple_body(const tb_model *model, int32_t tree, tb_law_body *body);

/* Steps that a card has made: their cost and the worst contact of each step's last evaluation. */
typedef struct tb_penalty_steps {
    const char *integrator;
    const double *point; /* y of the last evaluation */
    double dt;           /* s */
    int32_t steps, evaluations, contacts;
    double penetration; /* m */
    bool degenerate;
} tb_penalty_steps;

/* Takes them over: the state moves to p->y, whose last number is the work of the contacts, and gets the
 * contacts of the last evaluation. */
tb_status tb_penalty_take_steps(tb_penalty *p, tb_state *state, const tb_step_options *options,
                                const tb_penalty_steps *steps, tb_certificate *certificate,
                                tb_error *error);
/* The name of an integrator of the options. */
const char *tb_penalty_integrator(const tb_step_options *options);

#endif
