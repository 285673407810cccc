/* Where shapes are and how fast while contacts are looked for, and points as contacts. Part of detect.c. */
#ifndef TB_DETECTION_H
#define TB_DETECTION_H

#include "step/stages/approach.h"
#include "step/stages/merge.h"
#include "step/stages/stages.h"

typedef struct detection {
    tb_world *world;
    tb_posed_shape *shapes; /* model shapes */
    tb_vec3 *velocity;      /* of the body origin, m/s */
    tb_real *spin;          /* |omega| times the reach about the body origin, m/s */
    tb_box *boxes;          /* colliding shapes, swept */
    bool *tight;            /* colliding shapes: the box is as small as it can be; NULL: all are */
} detection;

/* Where a shape is, and how fast: the velocity of its body at the body's origin, as the step begins. */
typedef struct shape_motion {
    tb_posed_shape posed;
    tb_vec3 velocity;
    tb_real spin;
} shape_motion;

TB_STATIC shape_motion look_at_shape(const tb_world *w, int32_t s)
{
    const tb_model *m = w->model;
    const tb_model_shape *shape = &m->shapes[s];
    const int32_t body = shape->body, tree = m->bodies[body].tree;
    const tb_motion v = w->dynamics.velocities[body];
    shape_motion own;
    own.velocity = v.linear;
    if (tree >= 0)
        own.velocity = tb_motion_at(
            v, tb_v3_sub(w->dynamics.poses[body].position, w->dynamics.references[tree]));
    own.spin = tb_shape_spin(shape, v.angular);
    own.posed = tb_shape_at(m, shape, &w->dynamics.poses[body]);
    return own;
}

TB_STATIC tb_real look_ahead(const tb_world *w)
{
    return TB_R(w->options->speculative_time) * w->dt;
}

/* Gap up to which contacts are wanted in any case. */
TB_STATIC tb_real least_margin(const tb_world *w)
{
    return tb_max(TB_R(w->options->contact_margin), TB_R(w->model->adhesion_reach));
}

TB_STATIC tb_world_contact contact_of_pair(const tb_model *m, int32_t a, int32_t b)
{
    return TB_VALUE(tb_world_contact){.shape_a = a,
                                      .shape_b = b,
                                      .body_a = m->shapes[a].body,
                                      .body_b = m->shapes[b].body,
                                      .surface = tb_model_pair_surface(m, a, b)};
}

TB_STATIC void take_point(tb_world_contact *c, const tb_contact_point *p)
{
    c->feature = p->feature;
    c->position = tb_v3_lerp(p->point_a, p->point_b, TB_R(0.5));
    c->normal = p->normal;
    tb_v3_tangents(p->normal, &c->tangent1, &c->tangent2);
    c->gap = p->gap;
}

#ifndef TB_DEVICE
/* Points of the pair that is looked at; points of all pairs, where they are merged. */
typedef struct point_list {
    tb_contact_point *points;
    tb_merge_point *found;
    int32_t capacity, number_found, found_capacity;
} point_list;
#endif

#endif
