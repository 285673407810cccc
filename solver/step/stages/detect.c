/* Contacts of one world: boxes that may meet within the step, pairs, contact points, and at once
 * their rows, while the contact's data is in the cache. */
#include <stdlib.h>

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

/* Where a shape is, and how fast: the velocity of its body at the body's origin, taken ahead over the step by the
 * free motion: a body that is just let go has no speed yet, but will have g dt. */
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

TB_STATIC tb_box swept_box(const detection *d, int32_t s, tb_box box)
{
    const tb_world *w = d->world;
    return tb_box_swept(&box, d->velocity[s], d->spin[s], look_ahead(w), least_margin(w));
}

/* Velocity of a point that moves with a shape's body, m/s. */
TB_STATIC tb_vec3 velocity_at(const detection *d, int32_t s, tb_vec3 point)
{
    const tb_world *w = d->world;
    const int32_t body = w->model->shapes[s].body;
    const tb_vec3 arm = tb_v3_sub(point, w->dynamics.poses[body].position);
    return tb_v3_add(d->velocity[s], tb_v3_cross(w->dynamics.velocities[body].angular, arm));
}

/* The same bound as tb_pair_margin's, but over the region where the surfaces can meet, for meshes, whose
 * number of pairs of triangles grows with the cube of the margin: bodies that roll on each other are
 * slow there and fast elsewhere. The region is the part of the box of `a` within `margin` of the box
 * of `b`. The relative velocity is affine in the point, so that its largest speed is at a corner.
 * Two terms cover the rest: the points that meet are up to `margin` apart, and move on arcs. */
TB_STATIC tb_real local_margin(const detection *d, int32_t a, int32_t b, tb_real margin)
{
    const tb_world *w = d->world;
    const tb_vec3 reach = tb_v3(margin, margin, margin);
    const tb_box own = tb_shape_box(&d->shapes[a]), other = tb_shape_box(&d->shapes[b]);
    const tb_vec3 lower = tb_v3_max(own.lower, tb_v3_sub(other.lower, reach));
    const tb_vec3 upper = tb_v3_min(own.upper, tb_v3_add(other.upper, reach));
    tb_real fastest2 = 0;
    for (int corner = 0; corner < 8; corner++) {
        const tb_vec3 point = tb_v3(corner & 1 ? upper.x : lower.x, corner & 2 ? upper.y : lower.y,
                                    corner & 4 ? upper.z : lower.z);
        const tb_vec3 speed = tb_v3_sub(velocity_at(d, a, point), velocity_at(d, b, point));
        fastest2 = tb_max(fastest2, tb_v3_length2(speed));
    }
    const tb_motion *velocities = w->dynamics.velocities;
    const tb_real turn_a = tb_v3_length(velocities[w->model->shapes[a].body].angular);
    const tb_real turn_b = tb_v3_length(velocities[w->model->shapes[b].body].angular);
    const tb_real time = look_ahead(w);
    const tb_real arcs = TB_R(0.5) * time * (turn_a * d->spin[a] + turn_b * d->spin[b]);
    const tb_real approach = tb_sqrt(fastest2) + turn_b * margin + arcs;
    return tb_min(margin, least_margin(w) + time * approach);
}

TB_STATIC bool is_surface(const tb_posed_shape *shape)
{
    return shape->type == TB_SHAPE_MESH || shape->type == TB_SHAPE_HEIGHT_FIELD;
}

/* Up to which gap contacts of two shapes are wanted. */
TB_STATIC tb_real pair_margin(const detection *d, int32_t a, int32_t b)
{
    const tb_world *w = d->world;
    const tb_real margin = tb_pair_margin(d->velocity[a], d->spin[a], d->velocity[b], d->spin[b],
                                          look_ahead(w), least_margin(w));
    return is_surface(&d->shapes[a]) && is_surface(&d->shapes[b]) ? local_margin(d, a, b, margin)
                                                                  : margin;
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

/* Arrays of the shapes. False if memory is refused. */
TB_STATIC bool take_shapes(detection *d)
{
    const tb_world *w = d->world;
    const int32_t shapes = w->model->number_of_shapes;
    tb_arena_pieces pieces = tb_arena_begin(w->arena);
    d->shapes = TB_ARENA_PIECE(&pieces, tb_posed_shape, shapes);
    d->velocity = TB_ARENA_PIECE(&pieces, tb_vec3, shapes);
    d->spin = TB_ARENA_PIECE(&pieces, tb_real, shapes);
    d->boxes = TB_ARENA_PIECE(&pieces, tb_box, w->model->number_of_colliding_shapes);
    tb_arena_end(&pieces);
    return d->shapes && d->velocity && d->spin && d->boxes;
}

/* Where all shapes are, and their boxes; on a card without those that are climbed. */
TB_STATIC void place_shapes(detection *d)
{
    const tb_model *m = d->world->model;
    TB_EACH (i, m->number_of_colliding_shapes) {
        const int32_t s = m->colliding_shapes[i];
        const tb_posed_shape *shape = &d->shapes[s];
        const shape_motion own = look_at_shape(d->world, s);
        d->shapes[s] = own.posed;
        d->velocity[s] = own.velocity;
        d->spin[s] = own.spin;
#ifdef TB_DEVICE
        if (tb_shape_is_climbed(shape)) continue;
#endif
        d->boxes[i] = swept_box(
            d, s, d->tight ? tb_shape_loose_box(shape, &d->tight[i]) : tb_shape_box(shape));
    }
    tb_team_sync();
}

#ifdef TB_DEVICE
/* The n-th bit that is set. */
TB_STATIC int32_t place_of_bit(uint32_t bits, int32_t n)
{
    for (; n > 0; n--) bits &= bits - 1;
    return tb_count_bits((bits & (0 - bits)) - 1);
}

/* The boxes of hulls that are climbed, a bound a lane: one lane would climb six times, and the others wait. */
TB_CALLED void place_climbed(const detection *d)
{
    enum { BOUNDS = 6 };
    const tb_model *m = d->world->model;
    const int32_t count = m->number_of_colliding_shapes, *shapes = m->colliding_shapes;
    for (int32_t base = 0; base < count; base += tb_team_lanes()) {
        const int32_t i = base + tb_team_lane();
        const bool own = i < count && tb_shape_is_climbed(&d->shapes[shapes[i]]);
        const uint32_t climbed = tb_team_ballot(own);
        TB_EACH (k, BOUNDS * tb_count_bits(climbed)) {
            const int32_t at = base + place_of_bit(climbed, k / BOUNDS);
            tb_real *bounds = (tb_real *)&d->boxes[at];
            bounds[k % BOUNDS] = tb_hull_bound(&d->shapes[shapes[at]], k % BOUNDS);
        }
        tb_team_sync();
        if (own) d->boxes[i] = swept_box(d, shapes[i], d->boxes[i]);
    }
    tb_team_sync();
}
#endif

/* Both. False if memory is refused. */
TB_STATIC bool pose_shapes(detection *d)
{
    if (!take_shapes(d)) return false;
    place_shapes(d);
#ifdef TB_DEVICE
    place_climbed(d);
#endif
    return true;
}

#ifndef TB_DEVICE /* there: detect_team.c */

/* The broad phase sees the shapes that can collide at all, by their place in the model's list. */
TB_STATIC bool wanted(const void *context, int32_t a, int32_t b)
{
    const tb_model *m = (const tb_model *)context;
    const int32_t p = m->colliding_shapes[a], q = m->colliding_shapes[b];
    if (m->filters[p].root == m->filters[q].root) return false; /* most near shapes: one body's */
    return tb_model_shapes_collide(m, p, q);
}

/* The same where bodies sleep: a pair of which none moves stays as it is. */
typedef struct sleepy_pairs {
    const tb_model *model;
    bool *moves; /* colliding shapes */
} sleepy_pairs;

TB_STATIC bool wanted_awake(const void *context, int32_t a, int32_t b)
{
    const sleepy_pairs *pairs = (const sleepy_pairs *)context;
    return (pairs->moves[a] || pairs->moves[b]) && wanted(pairs->model, a, b);
}

/* Pairs of boxes that meet, whose shapes may collide. */
TB_STATIC tb_status find_pairs(const detection *d, tb_pair **pairs, int32_t *count)
{
    const tb_world *w = d->world;
    const tb_model *m = w->model;
    const int32_t shapes = m->number_of_colliding_shapes;
    if (!w->sleep || !w->sleep->any)
        return tb_broad_phase(d->boxes, shapes, wanted, m, w->threads, w->arena, pairs, count);
    sleepy_pairs sleepy = {m, TB_ARENA_ARRAY(w->arena, bool, shapes)};
    if (!sleepy.moves) return TB_RESOURCE_EXHAUSTED;
    for (int32_t i = 0; i < shapes; i++)
        sleepy.moves[i] = tb_sleep_moves(w, m->colliding_shapes[i]);
    return tb_broad_phase(d->boxes, shapes, wanted_awake, &sleepy, w->threads, w->arena, pairs,
                          count);
}

/* Points of the pair that is looked at; points of all pairs, where they are merged. */
typedef struct point_list {
    tb_contact_point *points;
    tb_merge_point *found;
    int32_t capacity, number_found, found_capacity;
} point_list;

/* Contacts come sorted by pair, and those of elements are not merged. */
TB_STATIC bool merges_points(const tb_world *w)
{
    return w->options->contact_merge > 0 && w->model->number_of_elements == 0;
}

/* Keeps a pair's points until those of all pairs are there. */
TB_STATIC tb_status keep_points(const tb_world *w, point_list *list, int32_t a, int32_t b,
                                int32_t count)
{
    if (list->number_found + count > list->found_capacity) {
        const int32_t capacity = 2 * (list->number_found + count);
        tb_merge_point *grown = TB_ARENA_ARRAY(w->arena, tb_merge_point, capacity);
        if (!grown) return TB_RESOURCE_EXHAUSTED;
        if (list->number_found > 0)
            memcpy(grown, list->found, (size_t)list->number_found * sizeof *grown);
        list->found = grown;
        list->found_capacity = capacity;
    }
    for (int32_t i = 0; i < count; i++)
        list->found[list->number_found++] = merge_point_of(w, a, b, &list->points[i]);
    return TB_OK;
}

TB_STATIC tb_status add_contacts(tb_world *w, point_list *list, int32_t a, int32_t b, int32_t count)
{
    if (merges_points(w)) return keep_points(w, list, a, b, count);
    tb_world_contact c = contact_of_pair(w->model, a, b);
    for (int32_t i = 0; i < count; i++) {
        take_point(&c, &list->points[i]);
        if (!tb_contacts_add(w, &c)) return TB_RESOURCE_EXHAUSTED;
    }
    return TB_OK;
}

TB_STATIC tb_status add_merged(tb_world *w, const point_list *list)
{
    if (list->number_found == 0) return TB_OK;
    if (!merge_points(w, list->found, list->number_found)) return TB_RESOURCE_EXHAUSTED;
    for (int32_t i = 0; i < list->number_found; i++) {
        const tb_merge_point *p = &list->found[i];
        if (!p->stays) continue;
        tb_world_contact c = contact_of_pair(w->model, p->shape_a, p->shape_b);
        take_point(&c, &p->point);
        if (!tb_contacts_add(w, &c)) return TB_RESOURCE_EXHAUSTED;
    }
    return TB_OK;
}

/* Makes a colliding shape's box as small as it can be. */
TB_STATIC void tighten(const detection *d, int32_t i)
{
    const int32_t s = d->world->model->colliding_shapes[i];
    if (!d->tight[i]) d->boxes[i] = swept_box(d, s, tb_shape_box(&d->shapes[s]));
    d->tight[i] = true;
}

/* True if two colliding shapes whose boxes overlap still overlap with tight boxes. A plane is
 * below everything: there the pair's own test is as fast. */
TB_STATIC bool are_near(const detection *d, tb_pair pair)
{
    const int32_t *colliding = d->world->model->colliding_shapes;
    if (d->tight[pair.a] && d->tight[pair.b]) return true;
    if (d->shapes[colliding[pair.a]].type == TB_SHAPE_PLANE ||
        d->shapes[colliding[pair.b]].type == TB_SHAPE_PLANE)
        return true;
    tighten(d, pair.a);
    if (!tb_box_overlap(&d->boxes[pair.a], &d->boxes[pair.b])) return false;
    tighten(d, pair.b);
    return tb_box_overlap(&d->boxes[pair.a], &d->boxes[pair.b]);
}

TB_STATIC tb_status collide(const detection *d, point_list *list, int32_t a, int32_t b)
{
    tb_world *w = d->world;
    const tb_real margin = pair_margin(d, a, b);
    for (;;) {
        const int32_t count = tb_collide_pair(&d->shapes[a], &d->shapes[b], margin, list->points,
                                              list->capacity, w->arena, &w->collide_flags);
        if (count < 0) return TB_RESOURCE_EXHAUSTED;
        if (count > 0 && tb_sleep_touch(w, a, b)) return TB_OK;
        if (count <= list->capacity) return count ? add_contacts(w, list, a, b, count) : TB_OK;
        list->capacity = 2 * count;
        list->points = TB_ARENA_ARRAY(w->arena, tb_contact_point, list->capacity);
        if (!list->points) return TB_RESOURCE_EXHAUSTED;
    }
}

/* ---- elements ---- */

/* An element as a capsule, or as a flat hull that a ball is rolled over. */
typedef struct element_pose {
    tb_posed_shape posed;
    tb_hull hull;
    double vertices[9], planes[8];
    tb_vec3 corners[3];
    tb_vec3 velocity; /* m/s, the mean of the corners' */
    tb_real spread;   /* m/s, the farthest from it */
    tb_box box;       /* swept */
} element_pose;

/* Weight from which a point is at a corner. */
#define AT_BALL (1 - TB_R(1e-6))

/* A pair of shapes, of which one is an element's first ball. */
typedef struct element_pair {
    int32_t a, b, element;
} element_pair;

TB_STATIC void pose_capsule(element_pose *p, tb_real radius)
{
    const tb_vec3 along = tb_v3_sub(p->corners[1], p->corners[0]);
    const tb_real length = tb_v3_length(along);
    const tb_vec3 z = length > 0 ? tb_v3_scale(along, 1 / length) : tb_v3(0, 0, 1);
    tb_vec3 x, y;
    tb_v3_tangents(z, &x, &y);
    p->posed.type = TB_SHAPE_CAPSULE;
    p->posed.size = tb_v3(radius, length / 2, 0);
    p->posed.pose.position = tb_v3_lerp(p->corners[0], p->corners[1], TB_R(0.5));
    p->posed.pose.rotation = TB_VALUE(tb_mat33){{x.x, y.x, z.x, x.y, y.y, z.y, x.z, y.z, z.z}};
}

/* Sides of a triangle: its edges from each corner to the next, the upper face left of them. */
TB_STATIC void pose_triangle(element_pose *p, tb_real radius)
{
    static const int32_t FACE_START[] = {0, 3, 6}, FACES[] = {0, 1, 2, 0, 2, 1},
                         EDGES[] = {0, 1, 0, 1, 1, 2, 0, 1, 2, 0, 0, 1},
                         NEIGHBOUR_START[] = {0, 2, 4, 6}, NEIGHBOURS[] = {1, 2, 0, 2, 0, 1};
    const tb_vec3 middle = tb_v3_scale(
        tb_v3_add(tb_v3_add(p->corners[0], p->corners[1]), p->corners[2]), TB_R(1.0 / 3));
    const tb_vec3 across = tb_v3_cross(tb_v3_sub(p->corners[1], p->corners[0]),
                                       tb_v3_sub(p->corners[2], p->corners[0]));
    const tb_real area = tb_v3_length(across);
    const tb_vec3 normal = area > 0 ? tb_v3_scale(across, 1 / area) : tb_v3(0, 0, 1);
    tb_vec3 lower = tb_v3(0, 0, 0), upper = lower;
    for (int k = 0; k < 3; k++) {
        const tb_vec3 v = tb_v3_sub(p->corners[k], middle);
        tb_v3_store(&p->vertices[3 * k], v);
        lower = tb_v3_min(lower, v);
        upper = tb_v3_max(upper, v);
    }
    tb_v3_store(&p->planes[0], normal);
    tb_v3_store(&p->planes[4], tb_v3_negate(normal));
    p->planes[3] = p->planes[7] = 0;
    p->hull = TB_VALUE(tb_hull){.number_of_vertices = 3,
                                .number_of_faces = 2,
                                .number_of_edges = 3,
                                .number_of_face_indices = 6,
                                .vertices = p->vertices,
                                .planes = p->planes,
                                .face_start = FACE_START,
                                .face_vertices = FACES,
                                .edges = EDGES,
                                .neighbour_start = NEIGHBOUR_START,
                                .neighbours = NEIGHBOURS};
    tb_v3_store(p->hull.middle, tb_v3_lerp(lower, upper, TB_R(0.5)));
    tb_v3_store(p->hull.half, tb_v3_scale(tb_v3_sub(upper, lower), TB_R(0.5)));
    p->posed.type = TB_SHAPE_CONVEX;
    p->posed.size = tb_v3(radius, 0, 0);
    p->posed.hull = &p->hull;
    p->posed.pose = tb_pose_identity();
    p->posed.pose.position = middle;
}

TB_STATIC void pose_element(const tb_world *w, const tb_model_element *e, element_pose *p)
{
    const tb_model *m = w->model;
    const tb_real radius = TB_R(m->shapes[e->balls[0]].size[0]);
    tb_vec3 velocities[3];
    memset(p, 0, sizeof *p);
    for (int32_t k = 0; k < e->corners; k++) {
        const shape_motion own = look_at_shape(w, e->balls[k]);
        p->corners[k] = own.posed.pose.position;
        velocities[k] = own.velocity;
        p->velocity = tb_v3_add_scaled(p->velocity, own.velocity, 1 / (tb_real)e->corners);
    }
    for (int32_t k = 0; k < e->corners; k++)
        p->spread = tb_max(p->spread, tb_v3_length(tb_v3_sub(velocities[k], p->velocity)));
    if (e->corners == 2)
        pose_capsule(p, radius);
    else
        pose_triangle(p, radius);
    const tb_box box = tb_shape_box(&p->posed);
    p->box = tb_box_swept(&box, p->velocity, p->spread, look_ahead(w), least_margin(w));
}

/* Whether an element sees a shape, and one of them may move. */
TB_STATIC bool element_sees(const tb_world *w, const tb_model_element *e, int32_t s)
{
    const tb_model_filter *filters = w->model->filters, *f = &filters[s];
    const tb_model_filter *own = &filters[e->balls[0]];
    if (!(own->category & f->mask) && !(f->category & own->mask)) return false;
    bool moves = !w->sleep || !w->sleep->any || tb_sleep_moves(w, s);
    for (int32_t k = 0; k < e->corners; k++) {
        if (filters[e->balls[k]].root == f->root) return false;
        moves = moves || tb_sleep_moves(w, e->balls[k]);
    }
    return moves;
}

TB_STATIC int compare_element_pairs(const void *left, const void *right)
{
    const element_pair *p = (const element_pair *)left, *q = (const element_pair *)right;
    if (p->a != q->a) return p->a < q->a ? -1 : 1;
    if (p->b != q->b) return p->b < q->b ? -1 : 1;
    return (p->element > q->element) - (p->element < q->element);
}

/* Pairs of elements and shapes whose boxes meet, sorted by (a, b, element). `poses` is filled where there are
 * any shapes but planes and balls. */
TB_STATIC tb_status find_element_pairs(const detection *d, element_pose *poses,
                                       element_pair **pairs, int32_t *count)
{
    const tb_world *w = d->world;
    const tb_model *m = w->model;
    int32_t capacity = 64;
    bool posed = false;
    *pairs = TB_ARENA_ARRAY(w->arena, element_pair, capacity);
    if (!*pairs) return TB_RESOURCE_EXHAUSTED;
    for (int32_t j = 0; j < m->number_of_colliding_shapes; j++) {
        const int32_t s = m->colliding_shapes[j];
        if (m->filters[s].is_corner || m->shapes[s].type == TB_SHAPE_PLANE) continue;
        for (int32_t i = 0; !posed && i < m->number_of_elements; i++)
            pose_element(w, &m->elements[i], &poses[i]);
        posed = true;
        for (int32_t i = 0; i < m->number_of_elements; i++) {
            const tb_model_element *e = &m->elements[i];
            if (!tb_box_overlap(&poses[i].box, &d->boxes[j]) || !element_sees(w, e, s)) continue;
            if (*count == capacity) {
                element_pair *grown = TB_ARENA_ARRAY(w->arena, element_pair, 2 * capacity);
                if (!grown) return TB_RESOURCE_EXHAUSTED;
                memcpy(grown, *pairs, (size_t)capacity * sizeof *grown);
                *pairs = grown;
                capacity *= 2;
            }
            const int32_t ball = e->balls[0];
            (*pairs)[(*count)++] =
                TB_VALUE(element_pair){ball < s ? ball : s, ball < s ? s : ball, i};
        }
    }
    if (*count > 0) qsort(*pairs, (size_t)*count, sizeof **pairs, compare_element_pairs);
    return TB_OK;
}

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

/* The points of one pair at hand, each with the element's number in its feature. */
TB_STATIC tb_status add_element_contacts(tb_world *w, const point_list *list, element_pair pair,
                                         const element_pose *pose, int32_t count)
{
    const uint64_t spread = 0x9e3779b97f4a7c15u; /* odd: features of different elements differ */
    const tb_model_element *e = &w->model->elements[pair.element];
    tb_world_contact c = contact_of_pair(w->model, pair.a, pair.b);
    tb_element_side side = {.corners = e->corners, .is_b = pair.b == e->balls[0]};
    const tb_real radius = TB_R(w->model->shapes[e->balls[0]].size[0]);
    for (int32_t k = 0; k < e->corners; k++) {
        side.bodies[k] = w->model->shapes[e->balls[k]].body;
        side.at[k] = pose->corners[k];
    }
    for (int32_t i = 0; i < count; i++) {
        const tb_contact_point *p = &list->points[i];
        take_point(&c, p);
        c.feature += spread * (uint64_t)(pair.element + 1);
        weigh_corners(pose, e->corners,
                      side.is_b ? tb_v3_add_scaled(p->point_b, p->normal, radius)
                                : tb_v3_add_scaled(p->point_a, p->normal, -radius),
                      side.weights);
        bool at_ball = false; /* which has a contact of its own there */
        for (int32_t k = 0; k < e->corners; k++) at_ball = at_ball || side.weights[k] > AT_BALL;
        if (!at_ball && !tb_contacts_add_element(w, &c, &side)) return TB_RESOURCE_EXHAUSTED;
    }
    return TB_OK;
}

TB_STATIC tb_status collide_element(const detection *d, point_list *list, element_pair pair,
                                    const element_pose *pose)
{
    tb_world *w = d->world;
    const tb_model_element *e = &w->model->elements[pair.element];
    const bool is_b = pair.b == e->balls[0];
    const int32_t s = is_b ? pair.a : pair.b;
    const tb_posed_shape *a = is_b ? &d->shapes[s] : &pose->posed;
    const tb_posed_shape *b = is_b ? &pose->posed : &d->shapes[s];
    const tb_real margin = tb_pair_margin(d->velocity[s], d->spin[s], pose->velocity, pose->spread,
                                          look_ahead(w), least_margin(w));
    for (;;) {
        const int32_t count = tb_collide_pair(a, b, margin, list->points, list->capacity, w->arena,
                                              &w->collide_flags);
        if (count < 0) return TB_RESOURCE_EXHAUSTED;
        bool wakes = false;
        for (int32_t k = 0; k < e->corners && count > 0; k++)
            wakes = tb_sleep_touch(w, e->balls[k], s) || wakes;
        if (wakes) return TB_OK;
        if (count <= list->capacity) return add_element_contacts(w, list, pair, pose, count);
        list->capacity = 2 * count;
        list->points = TB_ARENA_ARRAY(w->arena, tb_contact_point, list->capacity);
        if (!list->points) return TB_RESOURCE_EXHAUSTED;
    }
}

/* The pairs of elements, and their poses where there are any. */
TB_STATIC tb_status pairs_of_elements(const detection *d, element_pose **poses,
                                      element_pair **pairs, int32_t *count)
{
    const tb_model *m = d->world->model;
    *count = 0;
    if (m->number_of_elements == 0) return TB_OK;
    *poses = TB_ARENA_ARRAY(d->world->arena, element_pose, m->number_of_elements);
    if (!*poses) return TB_RESOURCE_EXHAUSTED;
    return find_element_pairs(d, *poses, pairs, count);
}

/* Adds the contacts of all pairs of shapes and of elements, in the order of the shapes. */
TB_STATIC tb_status collide_all(detection *d, point_list *list, const tb_pair *pairs, int32_t count)
{
    const int32_t *colliding = d->world->model->colliding_shapes;
    element_pose *poses = NULL;
    element_pair *others = NULL;
    int32_t number_of_others = 0, q = 0;
    tb_status status = pairs_of_elements(d, &poses, &others, &number_of_others);
    for (int32_t p = 0; p <= count && status == TB_OK; p++) {
        const int32_t a = p < count ? colliding[pairs[p].a] : INT32_MAX;
        const int32_t b = p < count ? colliding[pairs[p].b] : INT32_MAX;
        for (; q < number_of_others && status == TB_OK &&
               (others[q].a < a || (others[q].a == a && others[q].b < b));
             q++)
            status = collide_element(d, list, others[q], &poses[others[q].element]);
        if (p < count && status == TB_OK && are_near(d, pairs[p])) status = collide(d, list, a, b);
    }
    return status;
}

/* Rows that a contact can have. */
TB_STATIC int32_t most_rows(const tb_model *m)
{
    int32_t most = 1;
    for (int32_t i = 0; i < m->number_of_pairs; i++) {
        const int32_t rows = (int32_t)m->pairs[i].surface.kind;
        most = rows > most ? rows : most;
    }
    for (int32_t i = 0; i < m->number_of_colliding_shapes; i++) {
        const int32_t rows = (int32_t)m->shapes[m->colliding_shapes[i]].surface.kind;
        most = rows > most ? rows : most;
    }
    return most;
}

TB_EXTERN tb_status tb_world_detect(tb_world *world, tb_error *error)
{
    tb_world *w = world;
    const tb_model *m = w->model;
    detection d = {.world = w};
    point_list list = {.capacity = 64};
    list.points = TB_ARENA_ARRAY(w->arena, tb_contact_point, list.capacity);
    d.tight = TB_ARENA_ARRAY(w->arena, bool, m->number_of_colliding_shapes);
    if (!list.points || !d.tight || !pose_shapes(&d))
        return tb_fail_memory(error, 0, "a step's shapes");

    tb_pair *pairs = NULL;
    int32_t number_of_pairs = 0;
    const tb_status status = find_pairs(&d, &pairs, &number_of_pairs);
    if (status == TB_INVALID_ARGUMENT) return TB_DIVERGED; /* boxes out of the range of numbers */
    if (status != TB_OK) return tb_fail(error, status, "broad phase: %s", tb_status_text(status));

    /* about as many as in the last step, so that a warm world copies nothing */
    const int32_t last = w->state->number_of_contacts;
    const int32_t count = last > number_of_pairs ? last : number_of_pairs;
    if (!tb_contacts_begin(w, count + count / 8 + 64, most_rows(m)))
        return tb_fail_memory(error, 0, "a step's contact rows");
    if (collide_all(&d, &list, pairs, number_of_pairs) != TB_OK || add_merged(w, &list) != TB_OK)
        return tb_fail_memory(error, 0, "a step's contacts");
    tb_contacts_end(w);
    return TB_OK;
}

#endif
