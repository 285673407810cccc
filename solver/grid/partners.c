/* Obstacles of a substep: where walls and rigid bodies are, how fast, and how rigid bodies answer.
 *
 * A rigid body's velocity at the end of a substep is V = V_free + K (P - P_before s) with its twist V_free that
 * a trial step without new impulses predicts, K = J M^-1 J' at its centre of mass, the impulses P of the
 * substeps so far, and the impulses P_before that the trial step was given, of which the part s is due. With
 * K = L L' the body takes part in the contact programs as two places of three components y with
 * unit mass, V = L y: they differ from nodes by a matrix in place of a weight. */
#include <string.h>

#include "grid/grid_internal.h"

/* of the largest diagonal entry: smaller pivots of K are rounding */
static const double SMALLEST_PIVOT = 1e-12;

/* r += K p */
static void add_response(const double K[36], const double p[6], double scale, double r[6])
{
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++) r[i] += scale * K[6 * i + j] * p[j];
}

void tb_soft_rigid_respond(tb_soft_rigid *r, const double response[36])
{
    double rest[36], largest = 0;
    for (int i = 0; i < 6; i++)
        for (int j = 0; j < 6; j++)
            rest[6 * i + j] = r->response[6 * i + j] =
                0.5 * (response[6 * i + j] + response[6 * j + i]);
    /* the units of the linear and of the angular part differ: pivots are compared to their own part */
    double scale[6];
    for (int i = 0; i < 6; i++) {
        scale[i] = 0;
        for (int j = 3 * (i / 3); j < 3 * (i / 3) + 3; j++)
            scale[i] = tb_max(scale[i], rest[7 * j]);
        largest = tb_max(largest, scale[i]);
    }
    memset(r->root, 0, sizeof r->root);
    r->moves = largest > 0;
    bool done[6] = {false};
    for (int column = 0; column < 6; column++) {
        int pivot = -1;
        for (int i = 0; i < 6; i++) {
            if (done[i] || !(rest[7 * i] > SMALLEST_PIVOT * scale[i])) continue;
            if (pivot < 0 || rest[7 * i] * scale[pivot] > rest[7 * pivot] * scale[i]) pivot = i;
        }
        if (pivot < 0) break;
        done[pivot] = true;
        const double root = sqrt(rest[7 * pivot]);
        double l[6];
        for (int i = 0; i < 6; i++) l[i] = rest[6 * i + pivot] / root;
        for (int i = 0; i < 6; i++) {
            r->root[6 * i + column] = l[i];
            for (int j = 0; j < 6; j++) rest[6 * i + j] -= l[i] * l[j];
        }
    }
}

void tb_soft_partners_begin(tb_soft_world *w, double dt)
{
    const tb_soft_scene *s = &w->scene;
    for (int32_t i = 0; i < w->number_of_rigid; i++) {
        tb_soft_rigid *r = w->rigid + i;
        const double part =
            w->coupled_dt > 0 ? (w->time + dt - w->coupled_start) / w->coupled_dt : 0;
        for (int k = 0; k < 6; k++) r->twist[k] = r->first[k] + part * (r->last[k] - r->first[k]);
        add_response(r->response, r->before, -part, r->twist);
        add_response(r->response, r->impulse, 1, r->twist);
        memset(r->y, 0, sizeof r->y);
    }
    for (int32_t i = 0; i < s->number_of_obstacles; i++) {
        const tb_soft_obstacle *o = s->obstacles + i;
        tb_soft_solid *now = w->now + i;
        *now = o->shape;
        if (o->rigid > 0) {
            const tb_soft_rigid *r = w->rigid + (o->rigid - 1);
            const tb_pose body = {r->position, tb_q_matrix(r->orientation)};
            now->pose = tb_pose_mul(&body, &o->shape.pose);
        } else {
            now->pose.position =
                tb_v3_add(now->pose.position, tb_v3_scale(tb_v3_load(o->velocity), w->time));
        }
    }
    tb_soft_clamps_place(w);
}

void tb_soft_partners_end(tb_soft_world *w, double dt)
{
    for (int32_t i = 0; i < w->number_of_rigid; i++) {
        tb_soft_rigid *r = w->rigid + i;
        for (int k = 0; k < 6; k++)
            for (int j = 0; j < 6; j++) r->twist[k] += r->root[6 * k + j] * r->y[j];
        /* places follow the prediction: a body that its own contacts hold would leave a gap behind
         * if it moved with the velocity that the programs give it */
        const tb_vec3 old = r->centre, angle = tb_v3_scale(tb_v3_load(r->last + 3), dt);
        const tb_quaternion turn = tb_q_from_rotation_vector(angle);
        r->centre = tb_v3_add(old, tb_v3_scale(tb_v3_load(r->last), dt));
        r->position = tb_v3_add(r->centre, tb_q_rotate(turn, tb_v3_sub(r->position, old)));
        r->orientation = tb_q_normalize(tb_q_mul(turn, r->orientation));
    }
    tb_soft_clamps_place(w);
}

void tb_soft_obstacle_velocity(const tb_soft_world *w, int32_t obstacle, const double point[3],
                               double velocity[3])
{
    const tb_soft_obstacle *o = w->scene.obstacles + obstacle;
    memcpy(velocity, o->velocity, 3 * sizeof *velocity);
    if (o->rigid == 0) return;
    const tb_soft_rigid *r = w->rigid + (o->rigid - 1);
    tb_soft_partner_velocity(r->centre, r->twist, point, velocity);
}

bool tb_soft_rigid_is_near(const tb_soft_world *w, int32_t rigid, double dt)
{
    const tb_soft_rigid *r = w->rigid + rigid;
    const tb_soft_lattice *l = &w->scene.lattice;
    const tb_pose pose = {r->position, tb_q_matrix(r->orientation)};
    for (int32_t i = 0; i < w->scene.number_of_obstacles; i++) {
        const tb_soft_obstacle *o = w->scene.obstacles + i;
        if (o->rigid != rigid + 1) continue;
        tb_soft_solid solid = o->shape;
        double lower[3], upper[3], reach = 0;
        solid.pose = tb_pose_mul(&pose, &o->shape.pose);
        tb_soft_bounds(&solid, lower, upper);
        for (int k = 0; k < 6; k++)
            reach += fabs(r->first[k]) * dt * (k < 3 ? 1 : upper[k - 3] - lower[k - 3]);
        for (int32_t b = 0; b < w->scene.number_of_bodies; b++) {
            const tb_soft_field *f = w->fields + b;
            bool near = true;
            for (int a = 0; a < 3; a++) {
                const double margin = reach + l->spacing[a];
                near = near && lower[a] - margin <= tb_soft_coordinate(w, a, f->upper[a]) &&
                       upper[a] + margin >= tb_soft_coordinate(w, a, f->lower[a]);
            }
            if (near) return true;
        }
    }
    return false;
}
