/* The world of solver/grid and the functions that its files share. */
#ifndef TB_SOFT_GRID_INTERNAL_H
#define TB_SOFT_GRID_INTERNAL_H

#include "grid/grid.h"
#include "grid/nodes/clamps.h"
#include "grid/nodes/links.h"
#include "grid/nodes/motion.h"
#include "tribo_qp.h"

/* A rigid body that soft ones touch. Twists: velocity of the centre of mass, angular velocity, world
 * axes; impulses and their moments about that centre accordingly. See partners.c. */
typedef struct tb_soft_rigid {
    int32_t body; /* of the model */
    bool moves;   /* by impulses: `response` is not 0 */
    tb_vec3 position, centre;
    tb_quaternion orientation;
    double first[6], last[6];      /* twists at the step's start and end, as predicted */
    double before[6];              /* N s: impulses that the prediction was given */
    double impulse[6];             /* N s: of the step's substeps so far */
    double response[36], root[36]; /* K and L, 1/kg and 1/(kg m^2); K = L L' */
    double twist[6];               /* at the end of the substep, without its impulses; then with */
    double y[6];                   /* by the substep's impulses: the twist changes by L y */
} tb_soft_rigid;

struct tb_soft_world {
    tb_soft_scene scene;
    tb_soft_field fields[TB_SOFT_MOST_BODIES];
    /* of the present fields, if `momenta_known`: between two substeps of a step */
    tb_soft_sums momenta[TB_SOFT_MOST_BODIES];
    bool momenta_known;
    tb_soft_space space;
    size_t nodes;
    double time, last_dt; /* s; of the last substep */
    double energy;        /* J: kinetic and elastic, at the start of the present substep */
    double external[3]; /* N s, on bodies that are not clamped, by all else, in the last substep */
    struct tb_soft_card *card; /* NULL: fields are the processor's alone */
    bool failed;               /* in the middle of a substep: the state is not whole */

    /* scratch that bodies share, one after the other */
    double *cell_force;   /* nodes x 24, N, of the cell above a node on its corners */
    double *slope;        /* nodes x 9, gradients at nodes for the extrapolation */
    uint32_t *neighbours; /* nodes, for the extrapolation (field.c) */
    double *cell_mass;    /* nodes, kg, of the cell above a node, for the extrapolation */
    tb_soft_stages stages;
    tb_soft_sums *planes; /* nodes[2] */

    tb_soft_solid *now; /* obstacles, where they are in the present substep */
    tb_soft_frame frames[TB_SOFT_MOST_BODIES]; /* of clamps, in the present substep */
    tb_soft_rigid *rigid;
    int32_t number_of_rigid;
    double coupled_start, coupled_dt; /* s: of the step of the rigid bodies */
    double last_part;                 /* s: of the one that made rigid[].before; 0: none */

    tb_arena step;             /* of one substep */
    tb_arena history;          /* of `contacts` */
    tb_soft_contact *contacts; /* of the last substep: warm sets of the next */
    int32_t number_of_contacts;
};

static inline int32_t tb_soft_node(const tb_soft_world *w, int32_t i, int32_t j, int32_t k)
{
    return tb_soft_number(&w->space, i, j, k);
}

static inline double tb_soft_coordinate(const tb_soft_world *w, int axis, int32_t i)
{
    return tb_soft_place(&w->space, axis, i);
}

static inline double tb_soft_cell_volume(const tb_soft_world *w)
{
    const double *h = w->scene.lattice.spacing;
    return h[0] * h[1] * h[2];
}

/* number of corner c of the cell above node n */
static inline int32_t tb_soft_corner(const tb_soft_world *w, int32_t n, int corner)
{
    return tb_soft_corner_of(&w->space, n, corner);
}

static inline bool tb_soft_cell_valid(const tb_soft_world *w, const tb_soft_field *f, int32_t n)
{
    return tb_soft_cell_is_valid(&w->space, f, n);
}

static inline void tb_soft_gather(const tb_soft_world *w, const double *q, int32_t n,
                                  double values[24])
{
    tb_soft_corner_values(&w->space, q, n, values);
}

/* Visits nodes of one plane of a field's box: x from lower[0] to upper[0], and y. */
typedef void tb_soft_visit(tb_soft_world *w, int32_t body, int32_t k, const void *context);
/* Runs `visit` for every plane of the body's box, planes on threads. */
void tb_soft_planes(tb_soft_world *w, int32_t body, tb_soft_visit *visit, const void *context);
/* A node's part of the sums, which are cleared before; false: it has none. */
typedef bool tb_soft_part(tb_soft_world *w, int32_t body, const int32_t at[3], int32_t n,
                          const void *context, tb_soft_sums *sums);
/* Adds the parts of all nodes in the body's box up, in the order of nodes/space.h. */
tb_soft_sums tb_soft_add_up(tb_soft_world *w, int32_t body, tb_soft_part *part,
                            const void *context);

#define TB_SOFT_EACH_NODE(w, f, k, n, i, j)                                                        \
    for (int32_t j = (f)->lower[1]; j < (f)->upper[1]; j++)                                        \
        for (int32_t i = (f)->lower[0], n = tb_soft_node(w, i, j, k); i < (f)->upper[0]; i++, n++)

/* ---- field.c ---- */

/* Masses, layers and depths from X, which must be valid where layers are; finds neighbours and extrapolates
 * X to the new layers. *mass_error is the part by which masses were scaled so that their sum is the body's mass. */
void tb_soft_measure_masses(tb_soft_world *w, int32_t body, double *mass_error);
/* Prepares tb_soft_extrapolate of a body until its layers or masses change, or another body is prepared. */
void tb_soft_find_neighbours(tb_soft_world *w, int32_t body);
/* Extends q (X or v) from layer 0 to the others: affine, from the gradients of q inside the body. */
void tb_soft_extrapolate(tb_soft_world *w, int32_t body, double *q);

/* ---- forces.c ---- */

/* Forces of stress at all nodes into cell_force, elastic energy, damped power, stiffness, smallest
 * det F (0: folded). */
tb_soft_sums tb_soft_stress_pass(tb_soft_world *w, int32_t body);
/* v <- v + dt (force / mass + g) at nodes with mass. */
void tb_soft_accelerate(tb_soft_world *w, int32_t body, double dt);
/* mass, momentum, kinetic and potential energy, speed */
tb_soft_sums tb_soft_momentum_pass(tb_soft_world *w, int32_t body);

/* ---- transport.c ---- */

/* Moves X and v of all bodies with v over dt, then measures masses anew. Linear and angular momentum
 * of a body without clamps are conserved. */
void tb_soft_transport(tb_soft_world *w, int32_t body, double dt, tb_soft_certificate *c);

/* ---- step.c ---- */

/* Number of substeps for the rest of a step, of which `done` are over. FAILED_PRECONDITION: more than the
 * scene allows; DIVERGED. */
tb_status tb_soft_count_substeps(tb_soft_world *w, double rest, int32_t done, int32_t *count,
                                 tb_error *error);
/* Steps by dt; the certificate begins with smallest_volume 1e300, and tb_soft_finish ends it. */
tb_status tb_soft_advance(tb_soft_world *w, double dt, tb_soft_certificate *c, tb_error *error);
/* Energies and momenta at the end. */
tb_status tb_soft_finish(tb_soft_world *w, tb_soft_certificate *c, tb_error *error);

/* ---- partners.c ---- */

/* Takes over K (6 x 6) and finds L. */
void tb_soft_rigid_respond(tb_soft_rigid *rigid, const double response[36]);
/* Obstacles and rigid bodies at the begin of a substep: places now, velocities at its end. */
void tb_soft_partners_begin(tb_soft_world *w, double dt);
/* Velocities with the impulses of the substep; moves the rigid bodies on their predicted ways. */
void tb_soft_partners_end(tb_soft_world *w, double dt);
void tb_soft_obstacle_velocity(const tb_soft_world *w, int32_t obstacle, const double point[3],
                               double velocity[3]);

/* Whether a shape of the body may touch a soft body within dt. */
bool tb_soft_rigid_is_near(const tb_soft_world *w, int32_t rigid, double dt);

/* ---- clamps.c ---- */

/* Which nodes are held in this substep; gives those of frames that move their reference coordinates. After
 * tb_soft_partners_begin. */
void tb_soft_clamps_take(tb_soft_world *w);
/* Gives the held nodes of a body the velocities of their frames; the frames get the impulses. */
void tb_soft_clamps_hold(tb_soft_world *w, int32_t body);
/* The impulse (N s) that a clamp's rigid body gets from the held nodes, and its moment about the body's centre
 * of mass. */
void tb_soft_clamp_receive(tb_soft_world *w, int32_t clamp, const double impulse[3],
                           const double moment[3]);
/* Whether a clamp moves with a rigid body. */
bool tb_soft_clamp_follows(const tb_soft_world *w, int32_t clamp);
/* The frames of all clamps, after their rigid bodies have new places or twists. */
void tb_soft_clamps_place(tb_soft_world *w);
/* Whether the body is clamped to the rigid body of the obstacle: they do not touch each other. */
bool tb_soft_clamped_to(const tb_soft_world *w, int32_t body, int32_t obstacle);

/* ---- state.c ---- */

/* The state as plain bytes, in memory that is used again, and back. */
tb_status tb_soft_world_keep(const tb_soft_world *w, tb_bytes *bytes, tb_error *error);
tb_status tb_soft_world_put_back(tb_soft_world *w, const tb_bytes *bytes, tb_error *error);
/* The same for the way back from a step that fails: fields that lie on a card are kept there. */
tb_status tb_soft_world_begin_step(tb_soft_world *w, tb_bytes *bytes, tb_error *error);
tb_status tb_soft_world_undo_step(tb_soft_world *w, const tb_bytes *bytes, tb_error *error);

/* ---- world.c ---- */

/* Where the fields lie and the programs are solved from now on: `device` of a GPU, or the processor. */
tb_status tb_soft_world_place(tb_soft_world *w, tb_backend_choice backend, int32_t device,
                              tb_error *error);

/* ---- scene_xml.c ---- */

/* tb_soft_scene_read of a text that is parsed already. */
struct _xmlNode;
tb_status tb_soft_scene_read_tree(const struct _xmlNode *root, tb_soft_scene *scene,
                                  tb_error *error);

/* ---- scene.c ---- */

/* The box of a shape in the world; infinite for a plane. */
void tb_soft_bounds(const tb_soft_solid *solid, double lower[3], double upper[3]);

/* ---- contact.c, programs.c ---- */

/* A body, or obstacle who - number_of_bodies where it is in this substep. */
tb_soft_side tb_soft_side_of(const tb_soft_world *w, int32_t who);
/* Whether body a and b may touch, and the cells, upper excluded, where they may. */
bool tb_soft_pair_may_touch(const tb_soft_world *w, int32_t a, int32_t b, int32_t lower[3],
                            int32_t upper[3]);
/* By their keys. */
void tb_soft_sort_contacts(tb_soft_contact *contacts, int32_t count);
/* Cells in contact, sorted by key, from the arena of the step. */
tb_status tb_soft_find_contacts(tb_soft_world *w, tb_soft_contact **contacts, int32_t *count,
                                tb_error *error);
/* Of the two programs of a substep. */
tb_qp_options tb_soft_program_options(const tb_soft_world *w);
/* Adds contact and friction impulses to v; fills in alpha, beta and active. */
tb_status tb_soft_solve_contacts(tb_soft_world *w, double dt, tb_soft_contact *contacts,
                                 int32_t count, tb_soft_certificate *c, tb_error *error);

#endif
