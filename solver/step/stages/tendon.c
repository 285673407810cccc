/* Tendons: length, and its derivative by the dofs.
 *
 * A fixed tendon's length is linear in the coordinates, and its coefficients are in the model. A
 * spatial tendon's follow from the poses of the bodies and are computed anew in each step: with n
 * the direction of a straight piece between points P and Q, dL = n . (dQ - dP) / divisor. */
#include "model/tendon_path.h"
#include "step/stages/stages.h"

/* Adds the effect of a piece's end on the tendon's coefficients. pull: direction times share,
 * m/m; dofs ascend, without those that move all of a branch. */
TB_CALLED void add_end(const tb_dynamics *d, const tb_model_tendon *t, int32_t body, tb_vec3 point,
                       tb_vec3 pull, double *coefficients)
{
    const tb_model *m = d->model;
    const int32_t *dofs = m->tendon_dofs + t->first;
    int32_t i = t->count - 1;
    for (int32_t dof = m->bodies[body].last_dof; dof >= 0; dof = m->dofs[dof].parent) {
        while (i >= 0 && dofs[i] > dof) i--;
        if (i < 0) return;
        if (dofs[i] != dof) continue;
        const tb_vec3 r = tb_v3_sub(point, d->references[m->dofs[dof].tree]);
        coefficients[i] += (double)tb_v3_dot(pull, tb_motion_at(tb_dynamics_axis(d, dof), r));
    }
}

TB_EXTERN tb_real tb_tendon_measure(const tb_dynamics *dynamics, int32_t tendon,
                                    double *coefficients)
{
    const tb_model *m = dynamics->model;
    const tb_model_tendon *t = &m->tendons[tendon];
    const tb_model_tendon_point *points = m->tendon_points + t->first_point;
    tb_tendon_walk walk = tb_tendon_begin();
    tb_real length = 0;
    for (int32_t i = 0; coefficients && i < t->count; i++) coefficients[i] = 0;
    for (;;) {
        const tb_tendon_run run =
            tb_tendon_next(points, t->number_of_points, dynamics->poses, &walk);
        if (run.pieces == 0) return length;
        length += tb_tendon_run_length(&run);
        for (int32_t k = 0; coefficients && k < run.pieces; k++) {
            const tb_tendon_piece *p = &run.piece[k];
            if (p->bodies[0] == p->bodies[1]) continue;
            const tb_vec3 along =
                tb_v3_normalize(tb_v3_sub(p->ends[1], p->ends[0]), tb_v3(0, 0, 0));
            for (int e = 0; e < 2; e++)
                add_end(dynamics, t, p->bodies[e], p->ends[e],
                        tb_v3_scale(along, e ? run.share : -run.share), coefficients);
        }
    }
}

/* How fast kinematic bodies alone make a spatial tendon longer, m/s. */
TB_STATIC tb_real prescribed_speed(const tb_world *w, const tb_model_tendon *t)
{
    const tb_model_tendon_point *points = w->model->tendon_points + t->first_point;
    tb_tendon_walk walk = tb_tendon_begin();
    tb_real speed = 0;
    for (;;) {
        const tb_tendon_run run =
            tb_tendon_next(points, t->number_of_points, w->dynamics.poses, &walk);
        if (run.pieces == 0) return speed;
        for (int32_t k = 0; k < run.pieces; k++) {
            const tb_tendon_piece *p = &run.piece[k];
            const tb_vec3 along =
                tb_v3_normalize(tb_v3_sub(p->ends[1], p->ends[0]), tb_v3(0, 0, 0));
            const tb_motion first = tb_prescribed_motion(w, p->bodies[0], p->ends[0]);
            const tb_motion last = tb_prescribed_motion(w, p->bodies[1], p->ends[1]);
            speed += run.share * tb_v3_dot(along, tb_v3_sub(last.linear, first.linear));
        }
    }
}

/* Velocity and acceleration of a body's point by the bodies' velocities and the accelerations in
 * `dynamics`: of the last bias, at constant dof velocities while the base accelerates upward. */
TB_STATIC void move_point(const tb_world *w, int32_t body, const tb_motion *velocities,
                          tb_vec3 point, tb_vec3 *velocity, tb_vec3 *acceleration)
{
    const tb_model *m = w->model;
    const tb_dynamics *d = &w->dynamics;
    const int32_t tree = m->bodies[body].tree;
    tb_motion v = tb_motion_zero(), a = tb_motion_zero();
    tb_vec3 about = d->poses[body].position;
    if (tree < 0) {
        const int32_t base = m->bodies[body].fixed_to;
        about = d->poses[base].position;
        if (m->bodies[base].kinematic >= 0) v = velocities[base];
    } else {
        v = velocities[body];
        about = d->references[tree];
        if (!m->trees[tree].single_free) {
            a = d->accelerations[body];
            a.linear = tb_v3_add(a.linear, tb_v3_load(m->gravity));
        }
    }
    const bool fixed_point = tree >= 0 && !m->trees[tree].single_free;
    const tb_vec3 r = tb_v3_sub(point, about);
    *velocity = tb_motion_at(v, r);
    /* for a point fixed in space the whole velocity turns, for one of the body the difference to
     * its own */
    const tb_vec3 turning = fixed_point ? *velocity : tb_v3_cross(v.angular, r);
    *acceleration = tb_v3_add(tb_motion_at(a, r), tb_v3_cross(v.angular, turning));
}

TB_EXTERN double tb_tendon_gain(const tb_world *world, int32_t tendon, const tb_motion *velocities)
{
    const tb_world *w = world;
    const tb_model_tendon *t = &w->model->tendons[tendon];
    tb_tendon_walk walk = tb_tendon_begin();
    double gain = 0;
    for (;;) {
        const tb_tendon_run run = tb_tendon_next(w->model->tendon_points + t->first_point,
                                                 t->number_of_points, w->dynamics.poses, &walk);
        if (run.pieces == 0) return gain;
        const tb_tendon_piece *p = &run.piece[0];
        tb_vec3 v[2], a[2];
        for (int e = 0; e < 2; e++)
            move_point(w, p->bodies[e], velocities, p->ends[e], &v[e], &a[e]);
        const tb_vec3 apart = tb_v3_sub(p->ends[1], p->ends[0]), speed = tb_v3_sub(v[1], v[0]);
        const tb_real length = tb_v3_length(apart);
        if (!(length > TB_TENDON_LEAST) || p->bodies[0] == p->bodies[1]) continue;
        const tb_vec3 along = tb_v3_scale(apart, 1 / length);
        const tb_real part = tb_v3_dot(along, speed);
        gain += (double)(run.share * (tb_v3_dot(along, tb_v3_sub(a[1], a[0])) +
                                      (tb_v3_length2(speed) - part * part) / length));
    }
}

TB_EXTERN void tb_tendons_gain(const tb_world *world, const tb_motion *velocities)
{
    const tb_model *m = world->model;
    if (m->number_of_tendon_points == 0) return;
    TB_EACH (i, m->number_of_tendons)
        if (m->tendons[i].number_of_points > 0 && m->tendons[i].armature > 0)
            world->tendon_gains[i] = tb_tendon_gain(world, i, velocities);
    tb_team_sync();
}

TB_EXTERN tb_status tb_tendons_take(tb_world *world)
{
    tb_world *w = world;
    const tb_model *m = w->model;
    if (m->number_of_tendon_points == 0) return TB_OK;
    w->tendon_coefficients = TB_ARENA_ARRAY(w->arena, double, m->number_of_tendon_terms);
    w->tendon_lengths = TB_ARENA_ARRAY(w->arena, tb_real, m->number_of_tendons);
    w->tendon_drifts = TB_ARENA_ZEROED(w->arena, tb_real, m->number_of_tendons);
    w->tendon_gains = TB_ARENA_ZEROED(w->arena, double, m->number_of_tendons);
    if (!w->tendon_gains) return TB_RESOURCE_EXHAUSTED;
    return w->tendon_coefficients && w->tendon_lengths && w->tendon_drifts ? TB_OK
                                                                           : TB_RESOURCE_EXHAUSTED;
}

TB_EXTERN void tb_tendons_place(const tb_world *world)
{
    const tb_world *w = world;
    const tb_model *m = w->model;
    if (m->number_of_tendon_points == 0) return;
    TB_EACH (i, m->number_of_tendons) {
        const tb_model_tendon *t = &m->tendons[i];
        if (t->number_of_points == 0) continue;
        w->tendon_lengths[i] =
            tb_tendon_measure(&w->dynamics, i, w->tendon_coefficients + t->first);
        if (m->number_of_kinematic_bodies > 0) w->tendon_drifts[i] = prescribed_speed(w, t);
    }
    tb_team_sync();
}

TB_EXTERN tb_transmission tb_tendon_transmission(const tb_world *world, int32_t tendon)
{
    const tb_model *m = world->model;
    const tb_model_tendon *t = &m->tendons[tendon];
    const bool fixed = t->number_of_points == 0;
    return TB_VALUE(tb_transmission){
        .dofs = m->tendon_dofs + t->first,
        .coefficients = (fixed ? m->tendon_coefficients : world->tendon_coefficients) + t->first,
        .first = 0,
        .count = t->count,
        .scale = 1,
        .drift = fixed ? 0 : (double)world->tendon_drifts[tendon]};
}

TB_EXTERN tb_real tb_tendon_fixed_length(const tb_model *model, int32_t tendon, const tb_real *q)
{
    const tb_model_tendon *t = &model->tendons[tendon];
    tb_real length = 0;
    for (int32_t i = t->first; i < t->first + t->count; i++)
        length += TB_R(model->tendon_coefficients[i]) * q[model->tendon_coordinates[i]];
    return length;
}

TB_EXTERN tb_real tb_tendon_length(const tb_world *world, int32_t tendon, const tb_real *q)
{
    if (world->model->tendons[tendon].number_of_points > 0) return world->tendon_lengths[tendon];
    return tb_tendon_fixed_length(world->model, tendon, q);
}

TB_EXTERN tb_real tb_tendon_stretch(const tb_model_tendon *tendon, tb_real length)
{
    const tb_real lower = TB_R(tendon->spring_lower), upper = TB_R(tendon->spring_upper);
    return length > upper ? length - upper : length < lower ? length - lower : 0;
}
