/* The quality of a grasp from its contacts: primitive wrenches of their friction cones, then the
 * hull (wrench_space.c).
 *
 * A contact with a unit normal force can add any tangential force of up to mu: an inscribed
 * octagon replaces the rim of that disk, so epsilon and volume are lower bounds. Torques about
 * the normal and rolling torques are added if the surface has them. Torques are about the centre
 * of mass, divided by the object's radius. */
#include <stdlib.h>

#include "base/error.h"
#include "grasp/grasp.h"

static const double PI = 3.14159265358979323846;
/* EDGES of the friction disk. A hull in six dimensions costs the square of its points or more:
 * beyond MOST_CONTACTS only the contacts farthest from each other are used. */
enum { EDGES = 8, MOST_CONTACTS = 8 };

typedef struct primitives {
    double *wrenches;
    int32_t count;
} primitives;

static void add(primitives *p, tb_vec3 force, tb_vec3 torque, double radius)
{
    double *w = p->wrenches + 6 * (size_t)p->count++;
    tb_v3_store(w, force);
    tb_v3_store(w + 3, tb_v3_scale(torque, 1 / radius));
}

void grasp_friction(const tb_surface *s, double friction[3])
{
    friction[0] = s->kind >= TB_CONTACT_COULOMB ? s->friction : 0;
    friction[1] = s->kind >= TB_CONTACT_SPIN ? 2.0 / 3 * s->friction * s->spin_radius : 0;
    friction[2] = s->kind >= TB_CONTACT_ROLLING ? s->rolling_length : 0;
}

static void add_contact(primitives *p, const tb_grasp_contact *c, tb_vec3 arm, double radius)
{
    const tb_vec3 n = tb_v3_load(c->normal);
    tb_vec3 t1, t2;
    tb_v3_tangents(n, &t1, &t2);
    const double mu = c->friction[0], spin = c->friction[1], roll = c->friction[2];
    const int32_t rim = mu > 0 ? EDGES : 1;
    for (int32_t i = 0; i < rim; i++) {
        const double angle = 2 * PI * i / rim;
        tb_vec3 force = tb_v3_add_scaled(n, t1, mu * cos(angle));
        force = tb_v3_add_scaled(force, t2, mu * sin(angle));
        add(p, force, tb_v3_cross(arm, force), radius);
    }
    const tb_vec3 turns[3] = {tb_v3_scale(n, spin), tb_v3_scale(t1, roll), tb_v3_scale(t2, roll)};
    const tb_vec3 torque = tb_v3_cross(arm, n);
    for (int k = 0; k < 3; k++) {
        if (!((k == 0 ? spin : roll) > 0)) continue;
        add(p, n, tb_v3_add(torque, turns[k]), radius);
        add(p, n, tb_v3_sub(torque, turns[k]), radius);
    }
}

/* Distance of two contacts: of their places, in radii, and of their normals. */
static double distance(const grasp_world *world, int32_t a, int32_t b)
{
    const tb_grasp_contact *p = &world->contacts[a], *q = &world->contacts[b];
    const tb_vec3 way = tb_v3_sub(tb_v3_load(p->position), tb_v3_load(q->position));
    const tb_vec3 turn = tb_v3_sub(tb_v3_load(p->normal), tb_v3_load(q->normal));
    return tb_v3_length(way) / world->plan->object_radius + tb_v3_length(turn);
}

/* Selects contacts: all, or repeatedly the one farthest from the selected ones. */
static int32_t spread_out(const grasp_world *world, int32_t kept[MOST_CONTACTS])
{
    const int32_t n = world->number_of_contacts;
    const int32_t count = n < MOST_CONTACTS ? n : MOST_CONTACTS;
    for (int32_t k = 0; k < count; k++) {
        kept[k] = n <= MOST_CONTACTS ? k : 0;
        if (k == 0 || n <= MOST_CONTACTS) continue;
        double farthest = -1;
        for (int32_t i = 0; i < n; i++) {
            double nearest = INFINITY;
            for (int32_t j = 0; j < k; j++) nearest = fmin(nearest, distance(world, i, kept[j]));
            if (nearest <= farthest) continue;
            farthest = nearest;
            kept[k] = i;
        }
    }
    return count;
}

tb_vec3 grasp_object_centre(const tb_grasp_plan *plan)
{
    return tb_v3_add(plan->object_origin, tb_v3_load(plan->model->bodies[plan->object].com));
}

tb_status grasp_quality(const grasp_world *world, double *epsilon, double *volume, tb_error *error)
{
    const tb_grasp_plan *plan = world->plan;
    const int32_t n = world->number_of_contacts;
    *epsilon = *volume = 0;
    if (n == 0) return TB_OK;
    int32_t kept[MOST_CONTACTS];
    const int32_t count = spread_out(world, kept);
    primitives p = {calloc(((size_t)EDGES + 6) * (size_t)count * 6, sizeof(double)), 0};
    if (p.wrenches == NULL) return tb_fail_memory(error, 0, "a grasp's wrenches");
    const tb_vec3 com = grasp_object_centre(plan);
    for (int32_t k = 0; k < count; k++) {
        const int32_t i = kept[k];
        const tb_vec3 arm = tb_v3_sub(tb_v3_load(world->contacts[i].position), com);
        add_contact(&p, &world->contacts[i], arm, plan->object_radius);
    }
    const tb_status status = tb_wrench_space(p.wrenches, p.count, epsilon, volume, error);
    free(p.wrenches);
    return status;
}
