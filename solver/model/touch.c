/* Pairs of shapes that may collide, and their contact surface. */
#include "model/model.h"

TB_EXTERN const tb_model_pair *tb_model_find_pair(const tb_model *model, int32_t a, int32_t b)
{
    const int32_t lower = a < b ? a : b, upper = a < b ? b : a;
    int32_t first = model->shape_pair_start[lower], end = model->shape_pair_start[lower + 1];
    while (first < end) {
        const int32_t middle = first + (end - first) / 2;
        if (model->pairs[middle].b < upper)
            first = middle + 1;
        else
            end = middle;
    }
    return first < model->shape_pair_start[lower + 1] && model->pairs[first].b == upper
               ? &model->pairs[first]
               : NULL;
}

/* Whether a pair of indices is in a sorted list of excludes. */
TB_STATIC bool is_excluded(const tb_model_exclude *excludes, int32_t count, int32_t p, int32_t q)
{
    const int32_t a = p < q ? p : q, b = p < q ? q : p;
    int32_t first = 0, end = count;
    while (first < end) {
        const int32_t middle = first + (end - first) / 2;
        const tb_model_exclude *e = &excludes[middle];
        if (e->a < a || (e->a == a && e->b < b))
            first = middle + 1;
        else
            end = middle;
    }
    return first < count && excludes[first].a == a && excludes[first].b == b;
}

TB_EXTERN bool tb_model_shapes_collide(const tb_model *model, int32_t a, int32_t b)
{
    const tb_model_filter *p = &model->filters[a], *q = &model->filters[b];

    /* no joint moves one shape relative to the other: such pairs never collide, listed or not */
    if (p->root == q->root) return false;
    if (!p->moves && !q->moves) return false;
#ifndef TB_DEVICE
    if (p->is_corner && q->is_corner) return false;
#endif
    if (model->number_of_shape_excludes > 0 &&
        is_excluded(model->shape_excludes, model->number_of_shape_excludes, a, b))
        return false;
    if (model->number_of_pairs > 0 && tb_model_find_pair(model, a, b) != NULL) return true;
    if (!(p->category & q->mask) && !(q->category & p->mask)) return false;

    /* parent and child; bodies fixed to each other count as one */
    if (p->above == q->root || q->above == p->root) return false;
    return model->number_of_excludes == 0 ||
           !is_excluded(model->excludes, model->number_of_excludes, model->shapes[a].body,
                        model->shapes[b].body);
}

/* double in every build, like the rest of the model */
TB_STATIC double larger(double a, double b)
{
    return a > b ? a : b;
}

TB_EXTERN tb_surface tb_model_pair_surface(const tb_model *model, int32_t a, int32_t b)
{
    const tb_model_pair *listed =
        model->number_of_pairs > 0 ? tb_model_find_pair(model, a, b) : NULL;
    if (listed != NULL) return listed->surface;
    const int32_t priority_a = model->shapes[a].priority, priority_b = model->shapes[b].priority;
    if (priority_a != priority_b) return model->shapes[priority_a > priority_b ? a : b].surface;
    const tb_surface *p = &model->shapes[a].surface, *q = &model->shapes[b].surface;
    tb_surface surface;
    surface.kind = p->kind > q->kind ? p->kind : q->kind;
    surface.friction = larger(p->friction, q->friction);
    surface.restitution = larger(p->restitution, q->restitution);
    surface.tangential_restitution = larger(p->tangential_restitution, q->tangential_restitution);
    /* the larger torque applies; a torque is friction times radius */
    const double torque = larger(p->friction * p->spin_radius, q->friction * q->spin_radius);
    surface.spin_radius = surface.friction > 0 ? torque / surface.friction : 0;
    surface.rolling_length = larger(p->rolling_length, q->rolling_length);
    surface.adhesion = p->adhesion + q->adhesion;
    surface.adhesion_range = p->adhesion_range + q->adhesion_range;
    return surface;
}
