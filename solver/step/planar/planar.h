/* Worlds in a plane, stepped by Betz's scheme (Solving Rigid Multibody Physics Dynamics Using
 * Proximal Point Functions on the GPU, RPI 2011, chapter 2): TB_SCHEME_PLANAR.
 *
 * A body has the coordinates (x, y, theta) of its centre of mass; outlines are convex polygons and
 * discs. In a model, such a body is joined to the world by two slides and a hinge behind them
 * with the plane's normal as axis. Its shapes are prisms, cylinders along the normal, or spheres.
 * One step:
 *
 *     nu' = nu + M^-1 (p_ext + W_n p_n + W_f p_f),    q' = q + h nu'
 *     (2.31, 2.32)
 *     0 <= p_n  orthogonal to  gap / h + W_n' nu' >= 0,    p_f = prox_[-mu p_n, mu p_n](p_f - r
 *     W_f' nu')
 *
 * with gaps, normals and levers of the step's beginning, t = (n_y, -n_x), no restitution, no slop
 * and no bound on the speed at which a penetration is given back. The contacts are a tb_problem of
 * planar blocks, which every solver takes that knows their law. */
#ifndef TB_PLANAR_H
#define TB_PLANAR_H

#include "step/step.h"

enum { TB_PLANAR_DOFS = 3 };

typedef struct tb_planar_vec {
    double x, y;
} tb_planar_vec;

/* A moving body. Model dofs u give the velocity of the hinge's anchor by `slides`, and the turn. */
typedef struct tb_planar_body {
    int32_t body, dof[TB_PLANAR_DOFS], coordinate[TB_PLANAR_DOFS]; /* slide, slide, hinge */
    double slides[2][2]; /* columns: in-plane directions of the slides' axes */
    double turn;         /* +1 or -1: the hinge's axis along the plane's normal or against it */
    double inverse_mass, inverse_inertia; /* 1/kg, 1/(kg m^2) */
    tb_planar_vec anchor;                 /* m, of the hinge in the plane, all coordinates 0 */
    tb_planar_vec lever;  /* m, from the anchor to the centre of mass, all coordinates 0 */
    tb_planar_vec centre; /* m, of mass, now */
    double angle;         /* rad, now */
    double velocity[TB_PLANAR_DOFS]; /* m/s of the centre of mass, rad/s */
} tb_planar_body;

/* An outline in the plane: a disc where radius > 0, a half plane where count is 1, else a polygon,
 * counter-clockwise. */
typedef struct tb_planar_shape {
    int32_t shape, owner;       /* model index; index in `bodies`, -1: fixed */
    int32_t first, count;       /* in `corners` and `points` */
    double radius;              /* m */
    tb_planar_vec centre, half; /* m, of the box around it, now */
    double reach;               /* m, of its farthest point from the centre of mass */
} tb_planar_shape;

typedef struct tb_planar_world {
    const tb_model *model;
    double normal[3], axis[2][3]; /* of the plane, in the world; axis[1] = normal x axis[0] */
    tb_planar_body *bodies;
    int32_t number_of_bodies;
    tb_planar_shape *shapes;
    int32_t number_of_shapes;
    /* of shapes, about the centre of mass with the body's angle 0; of fixed shapes, in the
     * plane; of a half plane its normal and offset */
    tb_planar_vec *corners;
    tb_planar_vec *points;  /* the same, now */
    tb_planar_vec *normals; /* of polygons: outward, of the edge behind each corner, now */
    int32_t number_of_corners;
    int32_t *sorted; /* shapes in the order of the last detection, where the next sort begins */
} tb_planar_world;

/* The planar model of a world, kept between steps. Zeroed before the first step; used by one thread at
 * a time. */
typedef struct tb_planar_kept {
    tb_arena arena;
    tb_planar_world world;
    char sha256[65]; /* of the model that was read, "" for none */
} tb_planar_kept;

void tb_planar_kept_destroy(tb_planar_kept *kept);

/* One contact point of two shapes. The normal points from A to B: it pushes B away. */
typedef struct tb_planar_contact {
    int32_t a, b; /* indices in `shapes` */
    uint64_t feature;
    tb_planar_vec normal, point;
    double gap; /* m */
} tb_planar_contact;

enum { TB_PLANAR_MOST_POINTS = 2 };

/* Reads a model as a planar world, coordinates not yet set. UNSUPPORTED names the misfit: a
 * body that can leave the plane, a shape without a convex outline, a joint with springs or limits,
 * an actuator. From the arena. */
tb_status tb_planar_read(const tb_model *model, tb_arena *arena, tb_planar_world *world,
                         tb_error *error);
/* Takes coordinates and velocities of a state; moves the outlines. On any number of threads (0: all
 * processors) the same bytes. */
void tb_planar_place(tb_planar_world *world, const double *q, const double *u, int32_t threads);
/* The dofs u of a body that moves by its `velocity`. */
void tb_planar_dofs(const tb_planar_body *body, double *u);
/* The coordinates q of a body at its `centre` and `angle`. */
void tb_planar_coordinates(const tb_model *model, const tb_planar_body *body, double *q);

/* Contacts of two outlines whose gap is at most `reach` m; returns their number. */
int32_t tb_planar_collide(const tb_planar_world *world, int32_t a, int32_t b, double reach,
                          tb_planar_contact contacts[TB_PLANAR_MOST_POINTS]);

/* All contacts of the world, by pairs of shapes in order. Two shapes are looked at where they may
 * meet within dt, or their gap is at most `margin` m; the same bytes on any number of threads (0:
 * all processors). From the arena. */
tb_status tb_planar_detect(const tb_planar_world *world, double dt, double margin, int32_t threads,
                           tb_arena *arena, tb_planar_contact **contacts, int32_t *count);

/* Start of a planar world's solve. */
typedef struct tb_planar_solve {
    const tb_solve_options *options;
    const double *warm;      /* rows, N s */
    const uint8_t *statuses; /* contacts */
    const double *speeds;    /* contacts, m/s */
    tb_solve_history *history;
} tb_planar_solve;

/* One step of one world by TB_SCHEME_PLANAR; the contract of tb_world_step. */
tb_status tb_planar_step(tb_state *state, const tb_step_options *options, tb_workspace *workspace,
                         tb_planar_kept *kept, tb_certificate *certificate, tb_error *error);
/* The same in halves, between which all islands of many worlds can be solved at once. `stepping` is
 * in the workspace's arena and uses `kept`; its islands are NULL if the world has no contacts. Where
 * the first half fails, the caller leaves the second half out. */
typedef struct tb_planar_stepping tb_planar_stepping;
tb_status tb_planar_step_begin(tb_state *state, const tb_step_options *options,
                               tb_workspace *workspace, tb_planar_kept *kept,
                               tb_certificate *certificate, tb_planar_stepping **stepping,
                               tb_error *error);
struct tb_planar_islands *tb_planar_step_islands(tb_planar_stepping *stepping);
tb_status tb_planar_step_end(tb_planar_stepping *stepping, tb_state *state,
                             tb_certificate *certificate, tb_error *error);
/* The problem of the next step, written to a file. */
tb_status tb_planar_export(const tb_state *state, const tb_step_options *options,
                           tb_workspace *workspace, const char *path, tb_error *error);

#endif
