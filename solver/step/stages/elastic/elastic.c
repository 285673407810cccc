/* Elastic triangles, tetrahedra and hinges: materials of St. Venant and Kirchhoff with linear elements, through the
 * lengths of their edges, and plates that bend at their edges (compile_elastics.c).
 *
 * A number s of an element's strain has a spring and a damper, f = -k (s + damping ds/dt), and a step has a row for it,
 * along ds/dx. The stiffness of these rows is implicit. What is left of the energy's second derivative, stress times
 * the second derivative of s, is explicit: it is negative in a compressed element, which is how a body buckles, and in
 * a stretched one it asks for small steps as the tension of any string does. */
#include <math.h>

#include "model/dihedral.h"
#include "step/stages/elastic/elastic.h"

/* An elastic at the poses of the dynamics. */
typedef struct elastic_shape {
    tb_vec3 corners[4];
    tb_vec3 edges[6];  /* to the second corner, m */
    tb_vec3 slopes[4]; /* of a hinge: derivatives of the strain by the corners */
    tb_real strain[6];
} elastic_shape;

TB_STATIC void find_hinge(const tb_model_elastic *e, elastic_shape *s)
{
    const tb_real half = TB_R(0.5) * (tb_dihedral_angle(s->corners) - TB_R(e->angle));
    s->strain[0] = 2 * tb_sin(half);
    tb_dihedral_slopes(s->corners, s->slopes);
    for (int i = 0; i < 4; i++) s->slopes[i] = tb_v3_scale(s->slopes[i], tb_cos(half));
}

TB_STATIC void find_strains(const tb_model_elastic *e, elastic_shape *s)
{
    tb_real longer[6];
    for (int32_t i = 0; i < e->modes; i++) {
        int32_t ends[2];
        tb_elastic_edge(i, ends);
        s->edges[i] = tb_v3_sub(s->corners[ends[1]], s->corners[ends[0]]);
        longer[i] = tb_v3_length2(s->edges[i]) - TB_R(e->squares[i]);
    }
    for (int32_t k = 0; k < e->modes; k++) {
        s->strain[k] = 0;
        for (int32_t i = 0; i < e->modes; i++) s->strain[k] += TB_R(e->strain[k][i]) * longer[i];
    }
}

TB_STATIC elastic_shape elastic_shape_of(const tb_dynamics *d, const tb_model_elastic *e)
{
    elastic_shape s;
    for (int32_t i = 0; i < e->corners; i++)
        s.corners[i] = tb_pose_point(&d->poses[e->bodies[i]], tb_v3_load(e->points[i]));
    if (e->kind == TB_ELASTIC_HINGE)
        find_hinge(e, &s);
    else
        find_strains(e, &s);
    return s;
}

/* How fast the strains change while the corners move at v. */
TB_STATIC void rates_of(const tb_model_elastic *e, const elastic_shape *s, const tb_vec3 v[4],
                        tb_real rates[6])
{
    tb_real longer[6];
    if (e->kind == TB_ELASTIC_HINGE) {
        rates[0] = 0;
        for (int i = 0; i < 4; i++) rates[0] += tb_v3_dot(s->slopes[i], v[i]);
        return;
    }
    for (int32_t i = 0; i < e->modes; i++) {
        int32_t ends[2];
        tb_elastic_edge(i, ends);
        longer[i] = 2 * tb_v3_dot(s->edges[i], tb_v3_sub(v[ends[1]], v[ends[0]]));
    }
    for (int32_t k = 0; k < e->modes; k++) {
        rates[k] = 0;
        for (int32_t i = 0; i < e->modes; i++) rates[k] += TB_R(e->strain[k][i]) * longer[i];
    }
}

/* Derivatives of a sum of strains by the corners' places, the strains times `weights`. */
TB_STATIC void gradient_of(const tb_model_elastic *e, const elastic_shape *s,
                           const tb_real weights[6], tb_vec3 gradient[4])
{
    if (e->kind == TB_ELASTIC_HINGE) {
        for (int i = 0; i < 4; i++) gradient[i] = tb_v3_scale(s->slopes[i], weights[0]);
        return;
    }
    for (int32_t i = 0; i < e->corners; i++) gradient[i] = tb_v3(0, 0, 0);
    for (int32_t i = 0; i < e->modes; i++) {
        tb_real share = 0;
        int32_t ends[2];
        for (int32_t k = 0; k < e->modes; k++) share += weights[k] * TB_R(e->strain[k][i]);
        tb_elastic_edge(i, ends);
        gradient[ends[0]] = tb_v3_add_scaled(gradient[ends[0]], s->edges[i], -2 * share);
        gradient[ends[1]] = tb_v3_add_scaled(gradient[ends[1]], s->edges[i], 2 * share);
    }
}

/* Velocities of the corners at velocities u of the dofs, while kinematic bodies rest. */
TB_STATIC void corner_velocities(const tb_dynamics *d, const tb_model_elastic *e,
                                 const elastic_shape *s, const tb_real *u, tb_vec3 v[4])
{
    const tb_model *m = d->model;
    for (int32_t i = 0; i < e->corners; i++) {
        v[i] = tb_v3(0, 0, 0);
        for (int32_t dof = m->bodies[e->bodies[i]].last_dof; dof >= 0; dof = m->dofs[dof].parent) {
            const tb_vec3 r = tb_v3_sub(s->corners[i], d->references[m->dofs[dof].tree]);
            v[i] = tb_v3_add_scaled(v[i], tb_motion_at(tb_dynamics_axis(d, dof), r), u[dof]);
        }
    }
}

/* How fast the strains change at velocities u of the dofs, while kinematic bodies rest. */
TB_STATIC void rates_at(const tb_dynamics *d, const tb_model_elastic *e, const elastic_shape *s,
                        const tb_real *u, tb_real rates[6])
{
    tb_vec3 v[4];
    corner_velocities(d, e, s, u, v);
    rates_of(e, s, v, rates);
}

/* ---- rows ---- */

/* Rounding of a sum over the largest it may be by its terms. */
#define ROUNDING (16 * TB_REAL_EPSILON)

/* A sum, 0 where its terms cancel to rounding: a body that flies without deformation then has rows that ask for
 * nothing, where rounding would be solved to the tolerance. */
TB_STATIC tb_real without_rounding(tb_real sum, tb_real terms)
{
    return tb_abs(sum) <= ROUNDING * terms ? 0 : sum;
}

/* Derivatives of all strains by the corners' places. */
TB_STATIC void find_gradients(const tb_model_elastic *e, const elastic_shape *s,
                              tb_vec3 gradients[6][4])
{
    if (e->kind == TB_ELASTIC_HINGE) {
        for (int i = 0; i < 4; i++) gradients[0][i] = s->slopes[i];
        return;
    }
    for (int k = 0; k < 6; k++)
        for (int i = 0; i < 4; i++) gradients[k][i] = tb_v3(0, 0, 0);
    for (int32_t i = 0; i < e->modes; i++) {
        int32_t ends[2];
        tb_elastic_edge(i, ends);
        const tb_vec3 edge = tb_v3_scale(s->edges[i], 2);
        for (int k = 0; k < 6; k++) {
            const tb_vec3 pull = tb_v3_scale(edge, TB_R(e->strain[k][i]));
            gradients[k][ends[0]] = tb_v3_sub(gradients[k][ends[0]], pull);
            gradients[k][ends[1]] = tb_v3_add(gradients[k][ends[1]], pull);
        }
    }
}

/* Fills the rows of a block with the strains' derivatives by the dofs. Drops strains that are rounding of the corners'
 * places. */
TB_STATIC void fill_strains(const tb_world *w, const tb_model_elastic *e, elastic_shape *s,
                            tb_real *values)
{
    const tb_model *m = w->model;
    const tb_dynamics *d = &w->dynamics;
    const int32_t width = w->chains.width;
    tb_vec3 gradients[6][4];
    find_gradients(e, s, gradients);
    for (int32_t k = 0; k < e->modes; k++) {
        tb_real terms = 0;
        for (int32_t i = 0; i < e->corners; i++) {
            const tb_vec3 g = gradients[k][i], x = s->corners[i];
            terms += tb_abs(g.x * x.x) + tb_abs(g.y * x.y) + tb_abs(g.z * x.z);
        }
        s->strain[k] = without_rounding(s->strain[k], terms);
    }
    for (int32_t i = 0; i < e->corners; i++)
        for (int32_t dof = m->bodies[e->bodies[i]].last_dof; dof >= 0; dof = m->dofs[dof].parent) {
            const tb_vec3 r = tb_v3_sub(s->corners[i], d->references[m->dofs[dof].tree]);
            const tb_vec3 axis = tb_motion_at(tb_dynamics_axis(d, dof), r);
            tb_real *value = values + tb_block_position(&w->chains, dof);
            for (int32_t k = 0; k < e->modes; k++)
                value[k * width] += tb_v3_dot(gradients[k][i], axis);
        }
}

/* Speed of a row at velocities x of the dofs. */
TB_STATIC tb_real row_speed(const tb_world *w, const tb_real *row, const tb_real *x)
{
    tb_real sum = 0, terms = 0;
    for (int32_t i = 0; i < w->chains.width; i++) {
        const tb_real term = row[i] * x[w->chains.dofs[i]];
        sum += term;
        terms += tb_abs(term);
    }
    return without_rounding(sum, terms);
}

/* Begins the block of one elastic and ends it; false if memory is refused. */
TB_STATIC bool add_block(tb_world *w, const tb_model_elastic *e, int32_t memory)
{
    int32_t leaves[4];
    for (int32_t i = 0; i < e->corners; i++) leaves[i] = w->model->bodies[e->bodies[i]].last_dof;
    tb_real *values = tb_block_begin(w, TB_LAW_BILATERAL, e->modes, leaves, e->corners, memory);
    if (!values) return false;
    if (w->chains.width == 0) {
        tb_block_cancel(w);
        return true;
    }
    elastic_shape s = elastic_shape_of(&w->dynamics, e);
    tb_vec3 moved[4] = {{0}};
    tb_real drift[6];
    for (int32_t i = 0; i < e->corners; i++)
        moved[i] = tb_prescribed_motion(w, e->bodies[i], s.corners[i]).linear;
    rates_of(e, &s, moved, drift);
    fill_strains(w, e, &s, values);
    const int32_t row = w->blocks[w->number_of_blocks - 1].row;
    for (int32_t k = 0; k < e->modes; k++) {
        const tb_real *own = values + k * w->chains.width;
        double past, damping;
        tb_spring_damper(w, e->stiffness[k], e->stiffness[k] * e->damping, &past, &damping);
        double constant = -e->stiffness[k] * (double)s.strain[k];
        if (past != 0) constant += past * (double)(row_speed(w, own, w->u) + drift[k]);
        w->c[row + k] = row_speed(w, own, w->u_free) + drift[k] - TB_R(constant / damping);
        w->compliance[row + k] = TB_R(1 / ((double)w->dt * damping));
        w->driven[row + k] = drift[k];
    }
    w->has_compliance = true;
    tb_block_end(w, values);
    return true;
}

TB_EXTERN tb_status tb_elastics_add_rows(tb_world *world)
{
    tb_world *w = world;
    const tb_model *m = w->model;
    const int32_t memory = tb_row_memory_layout(m).elastics;
    const int32_t others = m->number_of_tendons + m->number_of_actuators + m->number_of_equalities;
    /* as of corners of three dofs; more is reserved as it is needed */
    int32_t rows = 0;
    for (int32_t i = 0; i < m->number_of_elastics; i++) rows += m->elastics[i].modes;
    if (!tb_block_reserve(w, m->number_of_elastics, rows, 12 * (int64_t)rows))
        return TB_RESOURCE_EXHAUSTED;
    for (int32_t i = 0; i < m->number_of_elastics; i++) {
        if (w->sleep && tb_world_leaves_out(w, m->first_trees[others + i])) continue;
        if (!add_block(w, &m->elastics[i], memory + TB_ELASTIC_ROWS * i))
            return TB_RESOURCE_EXHAUSTED;
    }
    return TB_OK;
}

/* ---- forces and energy ---- */

TB_EXTERN void tb_elastics_push(const tb_world *world, tb_real *force)
{
    const tb_model *m = world->model;
    const tb_dynamics *d = &world->dynamics;
    for (int32_t n = 0; n < m->number_of_elastics; n++) {
        const tb_model_elastic *e = &m->elastics[n];
        const elastic_shape s = elastic_shape_of(d, e);
        tb_vec3 v[4], gradient[4];
        tb_real rates[6];
        corner_velocities(d, e, &s, world->u, v);
        for (int32_t i = 0; i < e->corners; i++)
            v[i] = tb_v3_add(v[i], tb_prescribed_motion(world, e->bodies[i], s.corners[i]).linear);
        rates_of(e, &s, v, rates);
        for (int32_t k = 0; k < e->modes; k++)
            rates[k] = -TB_R(e->stiffness[k]) * (s.strain[k] + TB_R(e->damping) * rates[k]);
        gradient_of(e, &s, rates, gradient);
        for (int32_t i = 0; i < e->corners; i++)
            for (int32_t dof = m->bodies[e->bodies[i]].last_dof; dof >= 0;
                 dof = m->dofs[dof].parent) {
                const tb_vec3 r = tb_v3_sub(s.corners[i], d->references[m->dofs[dof].tree]);
                force[dof] += tb_v3_dot(gradient[i], tb_motion_at(tb_dynamics_axis(d, dof), r));
            }
    }
}

TB_EXTERN tb_real tb_elastics_energy(const tb_dynamics *dynamics)
{
    const tb_model *m = dynamics->model;
    tb_real energy = 0;
    for (int32_t n = 0; n < m->number_of_elastics; n++) {
        const tb_model_elastic *e = &m->elastics[n];
        const elastic_shape s = elastic_shape_of(dynamics, e);
        for (int32_t k = 0; k < e->modes; k++)
            energy += TB_R(0.5 * e->stiffness[k]) * s.strain[k] * s.strain[k];
    }
    return energy;
}

TB_EXTERN tb_real tb_elastics_power(const tb_world *world, const tb_real *u)
{
    const tb_model *m = world->model;
    tb_real power = 0;
    for (int32_t n = 0; n < m->number_of_elastics; n++) {
        const tb_model_elastic *e = &m->elastics[n];
        const elastic_shape s = elastic_shape_of(&world->dynamics, e);
        tb_real rates[6];
        rates_at(&world->dynamics, e, &s, u, rates);
        for (int32_t k = 0; k < e->modes; k++)
            power -= TB_R(e->stiffness[k]) * s.strain[k] * rates[k];
    }
    return power;
}

TB_EXTERN tb_real tb_elastics_work(const tb_world *world, const tb_solution *solution,
                                   const tb_real *mean, tb_real *damping)
{
    const tb_world *w = world;
    const tb_model *m = w->model;
    const int32_t first = tb_row_memory_layout(m).elastics;
    tb_real work = 0;
    *damping = 0;
    for (int32_t r = 0; r < w->contact_rows; r++) {
        const int32_t at = w->memory[r] - first;
        if (at < 0 || at >= TB_ELASTIC_ROWS * m->number_of_elastics || at % TB_ELASTIC_ROWS != 0)
            continue;
        const tb_model_elastic *e = &m->elastics[at / TB_ELASTIC_ROWS];
        const elastic_shape s = elastic_shape_of(&w->dynamics, e);
        tb_real speeds[6], before[6], after[6];
        rates_at(&w->dynamics, e, &s, mean, speeds);
        rates_at(&w->dynamics, e, &s, w->u, before);
        rates_at(&w->dynamics, e, &s, w->u_end, after);
        for (int32_t k = 0; k < e->modes; k++) {
            const tb_real speed = (1 - w->theta) * before[k] + w->theta * after[k];
            work += solution->lambda[r + k] * speeds[k];
            *damping -= w->dt * TB_R(e->stiffness[k] * e->damping) * speed * speeds[k];
        }
    }
    return work;
}

/* Half of a strain's second derivative along a motion of the corners; of a hinge a bound. */
TB_STATIC tb_real second_rate(const tb_model_elastic *e, const elastic_shape *s, int32_t k,
                              const tb_vec3 v[4])
{
    tb_real sum = 0;
    if (e->kind == TB_ELASTIC_HINGE) {
        for (int i = 1; i < 4; i++)
            sum += tb_v3_length2(s->slopes[i]) * tb_v3_length2(tb_v3_sub(v[i], v[0]));
        return sum;
    }
    for (int32_t i = 0; i < e->modes; i++) {
        int32_t ends[2];
        tb_elastic_edge(i, ends);
        sum += TB_R(e->strain[k][i]) * tb_v3_length2(tb_v3_sub(v[ends[1]], v[ends[0]]));
    }
    return sum;
}

TB_EXTERN tb_real tb_elastics_error(const tb_world *world)
{
    const tb_world *w = world;
    const tb_model *m = w->model;
    const tb_real dt2 = w->dt * w->dt;
    tb_real error = 0;
    for (int32_t n = 0; n < m->number_of_elastics; n++) {
        const tb_model_elastic *e = &m->elastics[n];
        const elastic_shape s = elastic_shape_of(&w->dynamics, e);
        tb_vec3 v[4];
        tb_real rates[6];
        corner_velocities(&w->dynamics, e, &s, w->u_end, v);
        rates_of(e, &s, v, rates);
        for (int32_t k = 0; k < e->modes; k++)
            error +=
                TB_R(e->stiffness[k]) * dt2 *
                (TB_R(0.5) * rates[k] * rates[k] + tb_abs(s.strain[k] * second_rate(e, &s, k, v)));
    }
    return error;
}
