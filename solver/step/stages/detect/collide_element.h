/* Contacts of a pair of an element and a shape or another element. Part of detect.c. */
#ifndef TB_COLLIDE_ELEMENT_H
#define TB_COLLIDE_ELEMENT_H

#include "step/stages/detect/element_pairs.h"

/* Weight from which a point is at a corner. */
#define AT_BALL (1 - TB_R(1e-6))

/* Shares of the corners in the point of the element that is nearest to one of its plane or line: at least 0,
 * together 1. */
TB_STATIC void weigh_corners(const element_pose *p, int32_t corners, tb_vec3 point,
                             tb_real weights[3])
{
    const tb_vec3 a = tb_v3_sub(p->corners[1], p->corners[0]), q = tb_v3_sub(point, p->corners[0]);
    if (corners == 2) {
        const tb_real square = tb_v3_length2(a);
        weights[1] = square > 0 ? tb_clamp(tb_v3_dot(q, a) / square, 0, 1) : 0;
        weights[0] = 1 - weights[1];
        weights[2] = 0;
        return;
    }
    const tb_vec3 b = tb_v3_sub(p->corners[2], p->corners[0]), normal = tb_v3_cross(a, b);
    const tb_real square = tb_v3_length2(normal);
    weights[1] = square > 0 ? tb_max(0, tb_v3_dot(tb_v3_cross(q, b), normal) / square) : 0;
    weights[2] = square > 0 ? tb_max(0, tb_v3_dot(tb_v3_cross(a, q), normal) / square) : 0;
    weights[0] = tb_max(0, 1 - weights[1] - weights[2]);
    const tb_real sum = weights[0] + weights[1] + weights[2];
    for (int k = 0; k < 3; k++) weights[k] /= sum;
}

/* An element as a side of a contact, its weights still to be set. */
TB_STATIC tb_element_side side_of_element(const tb_model *m, int32_t element,
                                          const element_pose *pose)
{
    const tb_model_element *e = &m->elements[element];
    tb_element_side side = {.corners = e->corners};
    for (int32_t k = 0; k < e->corners; k++) {
        side.bodies[k] = m->shapes[e->balls[k]].body;
        side.at[k] = pose->corners[k];
    }
    return side;
}

/* Sets the weights of a side by its point on the surface, `outwards` of the element. True where a corner has all
 * of it. */
TB_STATIC bool weigh_side(const tb_model *m, int32_t element, const element_pose *pose,
                          tb_vec3 point, tb_vec3 outwards, tb_element_side *side)
{
    const tb_model_element *e = &m->elements[element];
    const tb_real radius = TB_R(m->shapes[e->balls[0]].size[0]);
    weigh_corners(pose, e->corners, tb_v3_add_scaled(point, outwards, -radius), side->weights);
    bool at_ball = false;
    for (int32_t k = 0; k < e->corners; k++) at_ball = at_ball || side->weights[k] > AT_BALL;
    return at_ball;
}

/* The points of one pair at hand, each with the elements' numbers in its feature. */
TB_STATIC tb_status add_element_contacts(tb_world *w, const point_list *list, element_pair pair,
                                         const element_pose *poses, int32_t count)
{
    /* odd numbers: features of different elements differ */
    const uint64_t spread = 0x9e3779b97f4a7c15u, spread_other = 0xc2b2ae3d27d4eb4fu;
    const tb_model *m = w->model;
    tb_world_contact c = contact_of_pair(m, pair.a, pair.b);
    tb_element_side sides[2];
    const tb_element_side *given[2] = {NULL, NULL};
    int32_t of_side[2] = {-1, -1}; /* elements */
    const bool is_b = pair.b == m->elements[pair.element].balls[0];
    of_side[is_b] = pair.element;
    of_side[!is_b] = pair.other;
    for (int s = 0; s < 2; s++) {
        if (of_side[s] < 0) continue;
        sides[s] = side_of_element(m, of_side[s], &poses[of_side[s]]);
        given[s] = &sides[s];
    }
    for (int32_t i = 0; i < count; i++) {
        const tb_contact_point *p = &list->points[i];
        bool at_ball = false;
        take_point(&c, p);
        c.feature +=
            spread * (uint64_t)(pair.element + 1) + spread_other * (uint64_t)(pair.other + 1);
        for (int s = 0; s < 2; s++)
            if (given[s])
                at_ball = weigh_side(m, of_side[s], &poses[of_side[s]], s ? p->point_b : p->point_a,
                                     s ? tb_v3_negate(p->normal) : p->normal, &sides[s]);
        /* a shape touches a ball by itself */
        if (at_ball && pair.other < 0) continue;
        if (!tb_contacts_add_element(w, &c, given)) return TB_RESOURCE_EXHAUSTED;
    }
    return TB_OK;
}

/* Tells the sleepers of a touch. True where one of them wakes. */
TB_STATIC bool touch_element(tb_world *w, element_pair pair)
{
    const tb_model_element *e = &w->model->elements[pair.element];
    const tb_model_element *f = pair.other >= 0 ? &w->model->elements[pair.other] : NULL;
    const int32_t s = f ? f->balls[0] : pair.a == e->balls[0] ? pair.b : pair.a;
    bool wakes = false;
    for (int32_t k = 0; k < e->corners; k++) wakes = tb_sleep_touch(w, e->balls[k], s) || wakes;
    for (int32_t k = 1; f && k < f->corners; k++)
        wakes = tb_sleep_touch(w, e->balls[0], f->balls[k]) || wakes;
    return wakes;
}

TB_STATIC tb_status collide_element(const detection *d, point_list *list, element_pair pair,
                                    const element_pose *poses)
{
    tb_world *w = d->world;
    const element_pose *pose = &poses[pair.element];
    const bool is_b = pair.b == w->model->elements[pair.element].balls[0];
    const int32_t s = is_b ? pair.a : pair.b;
    const element_pose *other = pair.other >= 0 ? &poses[pair.other] : NULL;
    const tb_posed_shape *against = other ? &other->posed : &d->shapes[s];
    const tb_real margin =
        tb_pair_margin(other ? other->velocity : d->velocity[s], other ? other->spread : d->spin[s],
                       pose->velocity, pose->spread, look_ahead(w), least_margin(w));
    for (;;) {
        const int32_t count =
            tb_collide_pair(is_b ? against : &pose->posed, is_b ? &pose->posed : against, margin,
                            list->points, list->capacity, w->arena, &w->collide_flags);
        if (count < 0) return TB_RESOURCE_EXHAUSTED;
        if (count > 0 && touch_element(w, pair)) return TB_OK;
        if (count <= list->capacity) return add_element_contacts(w, list, pair, poses, count);
        list->capacity = 2 * count;
        list->points = TB_ARENA_ARRAY(w->arena, tb_contact_point, list->capacity);
        if (!list->points) return TB_RESOURCE_EXHAUSTED;
    }
}

#endif
