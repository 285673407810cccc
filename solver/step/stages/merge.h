/* Merging of redundant contact points (tb_step_options.contact_merge).
 *
 * Neighbouring shapes of one body touch another body at nearly the same place: walls made of boxes, parts
 * of a decomposed mesh. Such points restrain the bodies twice, impulses creep from one to the other along
 * the null space, and a solve takes longer for no other motion. Points of the same two bodies with the
 * same surface and equal normals, nearer to each other than a share of the bodies' size, become one.
 *
 * The first point of a cluster is its seed: a point within the distance of an earlier seed joins the
 * earliest such cluster, and any other point is a seed. Chains of near points therefore do not collapse,
 * and the extreme points of a patch keep a representative within the distance, so that its torsional
 * support stays. The deepest point represents its cluster, the first one of those that are within the slop
 * of the deepest: with an impulse there and none at the others, the complementarity of the points left out
 * holds up to their distance times the bodies' relative spin. */
#ifndef TB_STEP_MERGE_H
#define TB_STEP_MERGE_H

#include "step/stages/stages.h"

/* Difference of two unit normals that count as equal: an angle in radians. */
static const tb_real TB_MERGE_ANGLE = TB_R(1e-3);

/* A body's size, m: its radius of gyration; 0 where it has no mass. */
TB_FN tb_real tb_merge_size(const tb_model_body *body)
{
    const double *i = body->inertia;
    return body->mass > 0 ? TB_R(sqrt((i[0] + i[1] + i[2]) / (2 * body->mass))) : TB_R(0);
}

/* Distance within which points of two bodies merge, m: a share of the smaller size; 0 where neither has
 * one. */
TB_FN tb_real tb_merge_distance(const tb_model *m, double share, int32_t body_a, int32_t body_b)
{
    const tb_real a = tb_merge_size(&m->bodies[body_a]), b = tb_merge_size(&m->bodies[body_b]);
    return TB_R(share) * (a > 0 && b > 0 ? tb_min(a, b) : tb_max(a, b));
}

/* The same for points of two shapes; 0 where every point counts: adhesion pulls at each, and a conveying
 * surface moves each in its own way. */
TB_FN tb_real tb_merge_reach(const tb_model *m, double share, int32_t shape_a, int32_t shape_b,
                             const tb_surface *surface)
{
    const tb_model_shape *a = &m->shapes[shape_a], *b = &m->shapes[shape_b];
    if (a->conveys || b->conveys || surface->adhesion > 0) return 0;
    return tb_merge_distance(m, share, a->body, b->body);
}

TB_FN bool tb_merge_same_surface(const tb_surface *a, const tb_surface *b)
{
    const tb_law law = tb_contact_law(a);
    if (tb_contact_law(b) != law || a->restitution != b->restitution ||
        a->tangential_restitution != b->tangential_restitution)
        return false;
    if (law != TB_LAW_UNILATERAL && a->friction != b->friction) return false;
    const bool spins = law == TB_LAW_SPIN || law == TB_LAW_ROLLING;
    return (!spins || a->spin_radius == b->spin_radius) &&
           (law != TB_LAW_ROLLING || a->rolling_length == b->rolling_length);
}

/* Whether two points are near and their normals equal. */
TB_FN bool tb_merge_near(tb_vec3 position, tb_vec3 normal, tb_vec3 other, tb_vec3 other_normal,
                         tb_real distance)
{
    const tb_vec3 way = tb_v3_sub(position, other), turn = tb_v3_sub(normal, other_normal);
    return (tb_v3_dot(way, way) <= distance * distance) &
           (tb_v3_dot(turn, turn) <= TB_MERGE_ANGLE * TB_MERGE_ANGLE);
}

/* A point of the list that is merged. */
#define tb_merge_point TB_SYMBOL(tb_merge_point)
typedef struct tb_merge_point {
    tb_contact_point point;
    int32_t shape_a, shape_b; /* model shapes */
    tb_surface surface;
    tb_real distance; /* m; 0: the point stays */
    int32_t seed;     /* place of its cluster's seed */
    tb_real deepest;  /* of a seed: least gap of its cluster, m */
    int32_t before;   /* of a seed: the seed before it with the same body B, -1 */
    bool represented; /* of a seed: a point has been chosen */
    bool stays;
} tb_merge_point;

TB_STATIC tb_merge_point merge_point_of(const tb_world *w, int32_t a, int32_t b,
                                        const tb_contact_point *point)
{
    tb_merge_point p;
    p.point = *point;
    p.shape_a = a;
    p.shape_b = b;
    p.surface = tb_model_pair_surface(w->model, a, b);
    p.distance = tb_merge_reach(w->model, w->options->contact_merge, a, b, &p.surface);
    p.seed = p.before = -1;
    p.deepest = point->gap;
    p.represented = p.stays = false;
    return p;
}

TB_STATIC bool merges(const tb_model *m, const tb_merge_point *p, const tb_merge_point *seed)
{
    if (m->shapes[p->shape_a].body != m->shapes[seed->shape_a].body) return false;
    const tb_vec3 at = tb_v3_lerp(p->point.point_a, p->point.point_b, TB_R(0.5));
    const tb_vec3 of = tb_v3_lerp(seed->point.point_a, seed->point.point_b, TB_R(0.5));
    return tb_merge_near(at, p->point.normal, of, seed->point.normal, p->distance) &&
           tb_merge_same_surface(&p->surface, &seed->surface);
}

/* Finds the seed of every point, and the least gap of every cluster. seeds_of: bodies, -1 each. */
TB_STATIC void find_seeds(const tb_model *m, tb_merge_point *points, int32_t count,
                          int32_t *seeds_of)
{
    for (int32_t i = 0; i < count; i++) {
        tb_merge_point *p = &points[i];
        int32_t *last = &seeds_of[m->shapes[p->shape_b].body];
        p->seed = i;
        p->deepest = p->point.gap;
        p->represented = false;
        if (!(p->distance > 0)) continue;
        for (int32_t s = *last; s >= 0; s = points[s].before)
            if (merges(m, p, &points[s])) p->seed = s;
        tb_merge_point *seed = &points[p->seed];
        seed->deepest = tb_min(seed->deepest, p->point.gap);
        if (p->seed != i) continue;
        p->before = *last;
        *last = i;
    }
}

/* Whether the point at this place represents its cluster; asked once for each, in order. */
TB_STATIC bool represents(tb_merge_point *points, int32_t place, tb_real slop)
{
    tb_merge_point *seed = &points[points[place].seed];
    if (seed->represented || points[place].point.gap > seed->deepest + slop) return false;
    seed->represented = true;
    return true;
}

/* Chooses the points that stay: those whose `stays` is set. False if memory is refused. By one lane, with
 * scratch from the arena. */
TB_STATIC bool merge_points(const tb_world *w, tb_merge_point *points, int32_t count)
{
    const int32_t bodies = w->model->number_of_bodies;
    int32_t *seeds_of = TB_ARENA_ARRAY(w->arena, int32_t, bodies);
    if (!seeds_of) return false;
    for (int32_t b = 0; b < bodies; b++) seeds_of[b] = -1;
    find_seeds(w->model, points, count, seeds_of);
    for (int32_t i = 0; i < count; i++)
        points[i].stays = represents(points, i, TB_R(w->options->contact_slop));
    return true;
}

#endif
