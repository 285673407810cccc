/* Large world: which shapes may touch, and where (detect.c).
 *
 * One shape finds each pair: the one in the tree if the other is large, else the first in the
 * model. Pairs are sorted by the places of their finders along the Morton curve, so that later
 * stages find their bodies near each other; partners of one finder are in the model's order. */
#ifndef TB_LARGE_PAIRS_H
#define TB_LARGE_PAIRS_H

#include "collide/convex/plane_pairs.h"
#include "collide/convex/round_pairs.h"
#include "step/stages/contact_terms.h"
#include "step/large/large_motion.h"

/* ---- finding ---- */

TB_LANE bool tb_large_meets(const tb_large_world *f, int32_t shape, const tb_box *box,
                            int32_t other)
{
    const int32_t a = shape < other ? shape : other, b = shape < other ? other : shape;
    const int32_t *list = f->model->colliding_shapes;
    return tb_box_overlap(box, &f->boxes[other]) &&
           tb_model_shapes_collide(f->model, list[a], list[b]);
}

/* Notes a partner among the `count` that are there, in the model's order, while there is room. */
TB_LANE void tb_large_record_partner(int32_t *partners, int32_t capacity, int32_t count,
                                     int32_t other)
{
    int32_t at = count < capacity ? count : capacity;
    if (at == capacity) {
        if (partners[at - 1] < other) return;
        at--;
    }
    while (at > 0 && partners[at - 1] > other) {
        partners[at] = partners[at - 1];
        at--;
    }
    partners[at] = other;
}

/* All that the shape at a place finds; notes the first `capacity`, returns how many there are. */
TB_LANE int32_t tb_large_find(const tb_large_world *f, int32_t place, int32_t *partners,
                              int32_t capacity)
{
    const tb_box_tree tree = tb_large_tree_of(f);
    const int32_t shape = f->sorted_order[place];
    const tb_box box = f->boxes[shape];
    const bool large = place >= f->plan.small;
    int32_t count = 0;
    for (int32_t i = 0; i < f->plan.large; i++) {
        const int32_t other = f->plan.large_shapes[i];
        if (large && other <= shape) continue;
        if (tb_large_meets(f, shape, &box, other))
            tb_large_record_partner(partners, capacity, count++, other);
    }
    if (large) return count;
    tb_box_tree_walk walk;
    tb_box_tree_walk_begin(&tree, &walk, &box);
    for (int32_t other; (other = tb_box_tree_walk_next(&tree, &walk)) >= 0;)
        if (other > shape && tb_large_meets(f, shape, &box, other))
            tb_large_record_partner(partners, capacity, count++, other);
    return count;
}

TB_STATIC void tb_large_stage_find(const tb_large_world *f)
{
    if (tb_large_stopped(f)) return;
    TB_GRID_EACH(i, f->plan.shapes)
    {
        int32_t partners[TB_LARGE_SLOTS];
        const int32_t count = tb_large_find(f, i, partners, TB_LARGE_SLOTS);
        f->found[i] = count;
        for (int32_t k = 0; k < count && k < TB_LARGE_SLOTS; k++)
            f->partners[(int64_t)i * TB_LARGE_SLOTS + k] = partners[k];
    }
    if (TB_GRID_LEADER) f->found[f->plan.shapes] = 0;
}

/* Writes the list; shapes that found more than they could note look again. */
TB_STATIC void tb_large_stage_pairs(const tb_large_world *f)
{
    if (tb_large_stopped(f)) return;
    const int32_t all = f->found_from[f->plan.shapes];
    if (TB_GRID_LEADER) f->control->pairs = all;
    if (all > f->capacity.pairs || all < 0) {
        if (TB_GRID_LEADER) tb_large_stop(f, TB_LARGE_FULL);
        return;
    }
    TB_GRID_EACH(i, f->plan.shapes)
    {
        const int32_t from = f->found_from[i], count = f->found[i];
        /* a sum that has run over is below zero somewhere on its way, since no term is that
         * large */
        if (from < 0 || count > f->capacity.pairs - from) {
            tb_grid_write(&f->control->too_many, 1);
            tb_large_stop(f, TB_LARGE_FULL);
            continue;
        }
        const int32_t shape = f->sorted_order[i];
        const int32_t *partners = f->partners + (int64_t)i * TB_LARGE_SLOTS;
        if (count > TB_LARGE_SLOTS) {
            int32_t *all_partners = f->hard_of + from; /* not in use yet */
            tb_large_find(f, i, all_partners, count);
            partners = all_partners;
        }
        for (int32_t k = 0; k < count; k++) {
            f->pairs[from + k].finder = shape;
            f->pairs[from + k].other = partners[k];
        }
    }
}

/* ---- points ---- */

/* The two sides of a pair in the model's order: A's normal points to B. */
typedef struct tb_large_sides {
    int32_t a, b; /* shapes */
    const tb_model_shape *shape_a, *shape_b;
    const tb_large_body *body_a, *body_b;
} tb_large_sides;

TB_LANE tb_large_sides tb_large_sides_of(const tb_large_world *f, int32_t pair)
{
    const tb_large_pair p = f->pairs[pair];
    tb_large_sides s;
    s.a = p.finder < p.other ? p.finder : p.other;
    s.b = p.finder < p.other ? p.other : p.finder;
    s.shape_a = tb_large_shape(f, s.a);
    s.shape_b = tb_large_shape(f, s.b);
    s.body_a = tb_large_body_of(f, s.a);
    s.body_b = tb_large_body_of(f, s.b);
    return s;
}

/* Pairs of balls, and of a ball and a plane: one point, found anew wherever it is wanted. */
TB_LANE bool tb_large_is_easy(const tb_large_sides *s)
{
    const tb_shape_type a = s->shape_a->type, b = s->shape_b->type;
    return (a == TB_SHAPE_SPHERE && (b == TB_SHAPE_SPHERE || b == TB_SHAPE_PLANE)) ||
           (a == TB_SHAPE_PLANE && b == TB_SHAPE_SPHERE);
}

/* Pairs that collide triangle by triangle (large_mesh.h). */
TB_LANE bool tb_large_has_surface(const tb_large_world *f, const tb_large_sides *s)
{
    return f->plan.surfaces > 0 &&
           (tb_large_is_surface(f->model, s->shape_a) || tb_large_is_surface(f->model, s->shape_b));
}

TB_LANE tb_real tb_large_margin(const tb_large_world *f, const tb_large_sides *s)
{
    return tb_pair_margin(tb_quad_vector(s->body_a->start_linear),
                          tb_shape_spin(s->shape_a, tb_quad_vector(s->body_a->start_angular)),
                          tb_quad_vector(s->body_b->start_linear),
                          tb_shape_spin(s->shape_b, tb_quad_vector(s->body_b->start_angular)),
                          f->look_ahead, f->margin);
}

/* velocity of a body where p is, from a twist about its centre */
TB_LANE tb_vec3 tb_large_velocity(const tb_quad *linear, const tb_quad *angular,
                                  const tb_large_body *b, tb_vec3 p)
{
    return tb_v3_add(tb_quad_vector(*linear),
                     tb_v3_cross(tb_quad_vector(*angular), tb_v3_sub(p, tb_large_position(b))));
}

/* Midway between both surfaces, where rows are written. */
TB_LANE tb_vec3 tb_large_middle(const tb_contact_point *p)
{
    return tb_v3_lerp(p->point_a, p->point_b, TB_R(0.5));
}

TB_LANE tb_real tb_large_before(const tb_large_sides *s, const tb_contact_point *p)
{
    const tb_vec3 at = tb_large_middle(p);
    const tb_vec3 a =
        tb_large_velocity(&s->body_a->start_linear, &s->body_a->start_angular, s->body_a, at);
    const tb_vec3 b =
        tb_large_velocity(&s->body_b->start_linear, &s->body_b->start_angular, s->body_b, at);
    return tb_v3_dot(p->normal, tb_v3_sub(b, a));
}

TB_LANE tb_contact_timing tb_large_timing(const tb_large_world *f)
{
    return tb_contact_timing_of(&f->options, f->dt, f->theta);
}

/* Drops the points that Moreau's rule leaves out. */
TB_LANE int32_t tb_large_store_contact(const tb_large_world *f, const tb_large_sides *s,
                                       tb_contact_point *points, int32_t count)
{
    if (f->theta == 1) return count;
    const tb_contact_timing timing = tb_large_timing(f);
    const tb_real thin = tb_min(tb_shape_thickness(s->shape_a), tb_shape_thickness(s->shape_b));
    int32_t kept = 0;
    for (int32_t i = 0; i < count; i++)
        if (!tb_contact_moreau_skips(&timing, points[i].gap, thin, tb_large_before(s, &points[i])))
            points[kept++] = points[i];
    return kept;
}

TB_LANE int32_t tb_large_easy_points(const tb_large_world *f, const tb_large_sides *s,
                                     tb_contact_point *point, uint32_t *flags)
{
    const tb_pose pose_a = tb_large_pose(s->body_a), pose_b = tb_large_pose(s->body_b);
    const tb_posed_shape a = tb_shape_at(f->model, s->shape_a, &pose_a);
    const tb_posed_shape b = tb_shape_at(f->model, s->shape_b, &pose_b);
    const tb_real margin = tb_large_margin(f, s);
    int32_t count = 0;
    if (a.type == TB_SHAPE_PLANE) {
        count = tb_plane_sphere(&a, &b, margin, point);
    } else if (b.type == TB_SHAPE_PLANE) {
        count = tb_plane_sphere(&b, &a, margin, point);
        tb_contact_mirror(point, count);
        if (count > 0) point->feature = (point->feature << 32) | (point->feature >> 32);
    } else {
        count = tb_sphere_sphere(&a, &b, margin, point, flags);
    }
    return tb_large_store_contact(f, s, point, count);
}

TB_LANE void tb_large_report_partners(const tb_large_world *f, uint32_t flags)
{
    if (flags)
        tb_grid_write((int32_t *)&f->control->collide_flags, (int32_t)flags); /* there is one */
}

/* Most contacts of a unit. Units of balls have one contact, since sweeps over them read one. */
TB_LANE int32_t tb_large_unit_contacts(const tb_large_world *f)
{
    return f->plan.round ? 1 : TB_UNIT_CONTACTS;
}

/* A pair's item of `touching`. */
TB_LANE uint64_t tb_large_touching(const tb_large_world *f, int32_t contacts)
{
    const int32_t most = tb_large_unit_contacts(f);
    return (uint64_t)((contacts + most - 1) / most) << 32 | (uint32_t)contacts;
}

/* Points of a pair that is not easy. */
TB_LANE const tb_contact_point *tb_large_hard_points(const tb_large_world *f, int32_t pair,
                                                     const tb_large_sides *s)
{
    const int32_t at = f->hard_from[pair];
    return tb_large_has_surface(f, s) ? f->surface_points + f->surface_from[at]
                                      : f->hard_points + (int64_t)at * TB_MANIFOLD_POINTS;
}

/* Counts the points of easy pairs, and marks the hard ones. */
TB_STATIC void tb_large_stage_narrow(const tb_large_world *f)
{
    if (tb_large_stopped(f)) return;
    const int32_t pairs = f->control->pairs;
    TB_GRID_EACH(i, f->capacity.pairs + 1)
    {
        int32_t hard = 0, count = 0;
        if (i < pairs) {
            const tb_large_sides s = tb_large_sides_of(f, i);
            hard = !tb_large_is_easy(&s);
            if (!hard) {
                tb_contact_point point;
                uint32_t flags = 0;
                count = tb_large_easy_points(f, &s, &point, &flags);
                tb_large_report_partners(f, flags);
            }
        }
        f->hard_of[i] = hard;
        f->touching[i] = count > 0 ? (uint64_t)1 << 32 | (uint32_t)count : 0;
    }
}

TB_LANE uint32_t tb_large_kind(const tb_large_world *f, const tb_large_sides *s)
{
    const uint32_t a = (uint32_t)s->shape_a->type, b = (uint32_t)s->shape_b->type;
    return tb_large_has_surface(f, s) ? TB_LARGE_KINDS + a + b : 8 * a + b;
}

/* The hard pairs, to be sorted by the types of their shapes: lanes of a warp then do the same. Pairs with
 * surfaces come last. */
TB_STATIC void tb_large_stage_list_hard(const tb_large_world *f)
{
    if (tb_large_stopped(f)) return;
    const int32_t pairs = f->control->pairs, hard = f->hard_from[f->capacity.pairs];
    if (TB_GRID_LEADER) f->control->hard = hard;
    if (hard > f->capacity.hard) {
        if (TB_GRID_LEADER) tb_large_stop(f, TB_LARGE_FULL);
        return;
    }
    TB_GRID_EACH(i, f->capacity.hard)
    {
        if (i < hard) continue;
        f->kinds[i] = TB_LARGE_NO_KIND;
        f->hard_pairs[i] = -1;
    }
    TB_GRID_EACH(i, pairs)
    {
        if (!f->hard_of[i]) continue;
        const tb_large_sides s = tb_large_sides_of(f, i);
        const int32_t at = f->hard_from[i];
        f->kinds[at] = tb_large_kind(f, &s);
        f->hard_pairs[at] = i;
    }
}

TB_STATIC void tb_large_stage_hard(const tb_large_world *f)
{
    if (tb_large_stopped(f)) return;
    TB_GRID_EACH(i, f->control->hard)
    {
        if (f->sorted_kinds[i] >= TB_LARGE_KINDS) return; /* pairs with surfaces from here on */
        const int32_t pair = f->sorted_hard[i];
        const tb_large_sides s = tb_large_sides_of(f, pair);
        const tb_pose pose_a = tb_large_pose(s.body_a), pose_b = tb_large_pose(s.body_b);
        const tb_posed_shape a = tb_shape_at(f->model, s.shape_a, &pose_a);
        const tb_posed_shape b = tb_shape_at(f->model, s.shape_b, &pose_b);
        tb_contact_point *points =
            f->hard_points + (int64_t)f->hard_from[pair] * TB_MANIFOLD_POINTS;
        uint32_t flags = 0;
        int32_t count = tb_collide_convex(&a, &b, tb_large_margin(f, &s), points, &flags);
        count = tb_large_store_contact(f, &s, points, count);
        tb_large_report_partners(f, flags);
        f->touching[pair] = count > 0 ? (uint64_t)1 << 32 | (uint32_t)count : 0;
    }
}

#endif
