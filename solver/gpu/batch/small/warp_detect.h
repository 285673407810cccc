/* Contacts of a small world by its warp: shapes, near pairs, points. A lane is a shape, a candidate
 * pair, an eighth of a pair of boxes, or another pair.
 *
 * Shapes and points lie where the solver's blocks come to lie afterwards. */
#ifndef TB_GPU_WARP_DETECT_H
#define TB_GPU_WARP_DETECT_H

#include "gpu/batch/small/warp_boxes.h"
#include "gpu/batch/small/warp_motion.h"

/* A colliding shape in this step, in shared memory. Lanes read the same of theirs: its size keeps their
 * banks apart. */
typedef struct warp_shape {
    tb_posed_shape posed;
    tb_box box;   /* swept */
    tb_real spin; /* m/s */
    int32_t body, place;
} warp_shape;

typedef struct warp_sight {
    warp_shape *shapes;
    tb_contact_point *points; /* TB_MANIFOLD_POINTS a slot */
    int32_t slots;
} warp_sight;

/* Shapes first, then points, where blocks will be. */
TB_STATIC warp_sight warp_sight_of(const warp_keep *keep, warp_problem *p)
{
    warp_sight s;
    size_t bytes;
    unsigned char *memory = warp_free_memory(p, &bytes);
    const size_t shapes = (size_t)keep->shapes * sizeof(warp_shape) / 16 * 16 + 16;
    s.shapes = (warp_shape *)(void *)memory;
    s.points = (tb_contact_point *)(void *)(memory + shapes);
    s.slots = (int32_t)((bytes - shapes) / (TB_MANIFOLD_POINTS * sizeof(tb_contact_point)));
    if (s.slots > WARP_POINT_SLOTS) s.slots = WARP_POINT_SLOTS;
    return s;
}

/* ---- shapes ---- */

/* Half extents of a shape along the world's axes; those of ellipsoids are the general function's. */
TB_STATIC tb_box warp_box(const tb_posed_shape *shape)
{
    const tb_real *m = shape->pose.rotation.m, far = TB_REAL_MAX / 4;
    const tb_vec3 s = shape->size;
    tb_real half[3];
    tb_box box;
    if (shape->type > TB_SHAPE_BOX) return tb_shape_box(shape);
    for (int k = 0; k < 3; k++) {
        const tb_real x = tb_abs(m[3 * k]), y = tb_abs(m[3 * k + 1]), z = tb_abs(m[3 * k + 2]);
        half[k] = s.x;
        if (shape->type == TB_SHAPE_CAPSULE) half[k] = s.x + s.y * z;
        if (shape->type == TB_SHAPE_CYLINDER) half[k] = s.x * tb_sqrt(x * x + y * y) + s.y * z;
        if (shape->type == TB_SHAPE_BOX) half[k] = s.x * x + s.y * y + s.z * z;
        if (shape->type == TB_SHAPE_PLANE) half[k] = far;
    }
    const tb_vec3 h = tb_v3(half[0], half[1], half[2]);
    const tb_vec3 c = shape->type == TB_SHAPE_PLANE ? tb_v3(0, 0, 0) : shape->pose.position;
    box.lower = tb_v3_sub(c, h);
    box.upper = tb_v3_add(c, h);
    return box;
}

/* The lane's shape; false if its box has left the range of numbers. */
TB_STATIC bool warp_place_shape(const warp_keep *keep, const warp_sight *sight)
{
    const warp_common *t = keep->common;
    const int32_t lane = tb_team_lane();
    if (lane >= keep->shapes) return true;
    warp_shape *s = &sight->shapes[lane];
    const int32_t body = t->body_of[lane];
    const warp_body *b = &keep->body[body];
    tb_pose local;
    tb_posed_shape posed;
    const tb_real *const column = &t->shape[0][lane];
#define NUMBER(k) column[(int)WARP_LANES * (int)(k)]
    local.position =
        tb_v3(NUMBER(WARP_POSITION), NUMBER(WARP_POSITION + 1), NUMBER(WARP_POSITION + 2));
    for (int k = 0; k < 9; k++) local.rotation.m[k] = NUMBER(WARP_ROTATION + k);
    posed.size = tb_v3(NUMBER(WARP_SIZE), NUMBER(WARP_SIZE + 1), NUMBER(WARP_SIZE + 2));
    const tb_real spin = tb_v3_length(b->spin) * NUMBER(WARP_REACH);
#undef NUMBER
    const int32_t place = t->place[lane];
    posed.type = (tb_shape_type)t->type[lane];
    posed.pose = tb_pose_mul(&b->pose, &local);
    posed.hull = NULL, posed.mesh = NULL, posed.field = NULL;
    const tb_box box = warp_box(&posed);
    const tb_box swept = tb_box_swept(&box, b->velocity, spin, keep->ahead, keep->margin);
    s->posed = posed;
    s->box = swept;
    s->spin = spin;
    s->body = body;
    s->place = place;
    return tb_box_valid(&swept);
}

/* ---- pairs ---- */

TB_STATIC tb_real warp_pair_margin(const warp_keep *keep, const warp_shape *a, const warp_shape *b)
{
    return tb_pair_margin(keep->body[a->body].velocity, a->spin, keep->body[b->body].velocity,
                          b->spin, keep->ahead, keep->margin);
}

/* Whether a shape's box comes near a plane. */
TB_STATIC bool near_plane(const warp_keep *keep, const warp_shape *plane, const warp_shape *other)
{
    const tb_real *m = plane->posed.pose.rotation.m;
    const tb_vec3 n = tb_v3(m[2], m[5], m[8]);
    const tb_vec3 size = tb_v3_sub(other->box.upper, other->box.lower);
    const tb_vec3 centre = tb_v3_add_scaled(other->box.lower, size, TB_R(0.5));
    const tb_real reach =
        TB_R(0.5) * (tb_abs(n.x) * size.x + tb_abs(n.y) * size.y + tb_abs(n.z) * size.z);
    return tb_v3_dot(n, tb_v3_sub(centre, plane->posed.pose.position)) - reach <=
           warp_pair_margin(keep, plane, other);
}

/* Candidates that may touch, in the list's order; -1: more than there are slots for points. */
TB_STATIC int32_t warp_find_pairs(warp_keep *keep, const warp_sight *sight)
{
    const int32_t lane = tb_team_lane();
    const uint32_t *words = keep->common->pairs;
    int32_t count = 0;
    TB_ROLLED
    for (int32_t base = 0; base < keep->number_of_candidates; base += WARP_LANES) {
        const int32_t i = base + lane;
        bool near = false;
        if (i < keep->number_of_candidates) {
            const uint32_t word = words[i];
            const warp_shape *a = &sight->shapes[word & WARP_SHAPE_MASK];
            const warp_shape *b = &sight->shapes[word >> WARP_SECOND & WARP_SHAPE_MASK];
            const bool second = word & WARP_PLANE_SECOND;
            if (word & WARP_PLANE)
                near = near_plane(keep, second ? b : a, second ? a : b);
            else
                near = tb_box_overlap_likely(&a->box, &b->box);
        }
        const uint32_t bits = tb_team_ballot(near);
        const int32_t at = count + tb_count_bits(bits & ((1u << lane) - 1));
        if (near && at < sight->slots) keep->pairs[at] = (uint16_t)i;
        count += tb_count_bits(bits);
    }
    tb_team_sync();
    return count <= sight->slots ? count : -1;
}

/* ---- points ---- */

enum { WARP_NO_POINTS = 255 /* only the general kernel can decide */ };

/* Points of a pair with a plane. */
TB_STATIC int32_t plane_points(const tb_posed_shape *plane, const tb_posed_shape *other,
                               tb_real margin, tb_contact_point *points)
{
    switch (other->type) {
    case TB_SHAPE_BOX: return tb_plane_box(plane, other, margin, points);
    case TB_SHAPE_CYLINDER: return tb_plane_cylinder(plane, other, margin, points);
    case TB_SHAPE_CAPSULE: return tb_plane_capsule(plane, other, margin, points);
    case TB_SHAPE_SPHERE: return tb_plane_sphere(plane, other, margin, points);
    default: return -1;
    }
}

/* Points of the lane's pair by the general method. */
TB_CALLED int32_t general_points(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                                 tb_contact_point *points)
{
    uint32_t flags = 0;
    const int32_t count = tb_collide_convex_in(a, b, margin, points, &flags, NULL);
    return flags || count < 0 ? (int32_t)WARP_NO_POINTS : count;
}

TB_STATIC int32_t collide_own(const warp_keep *keep, const warp_shape *a, const warp_shape *b,
                              tb_contact_point *points)
{
    const tb_real margin = warp_pair_margin(keep, a, b);
    int32_t count = -1;
    if (a->posed.type == TB_SHAPE_PLANE) count = plane_points(&a->posed, &b->posed, margin, points);
    return count >= 0 ? count : general_points(&a->posed, &b->posed, margin, points);
}

/* Points of all pairs; counts[] has their numbers. */
TB_STATIC void warp_find_points(warp_keep *keep, const warp_sight *sight, int32_t pairs)
{
    const int32_t lane = tb_team_lane();
    const bool own = lane < pairs;
    const warp_candidate *c = &keep->candidates[own ? keep->pairs[lane] : 0];
    const warp_shape *a = &sight->shapes[c->a], *b = &sight->shapes[c->b];
    const bool boxes = own && a->posed.type == TB_SHAPE_BOX && b->posed.type == TB_SHAPE_BOX;
    const bool apart =
        boxes && warp_boxes_apart(&a->posed, &b->posed, warp_pair_margin(keep, a, b));
    if (apart) keep->counts[lane] = 0;
    uint32_t left = tb_team_ballot(boxes && !apart);
    const bool many = tb_count_bits(left) > (int)WARP_LANES / (int)WARP_BOX_LANES;
    const int32_t lanes = many ? WARP_BOX_LANES_OF_MANY : WARP_BOX_LANES, group = lane / lanes;
    TB_ROLLED
    while (left != 0) {
        uint32_t mine = left;
        TB_ROLLED
        for (int32_t g = 0; g < WARP_LANES / lanes; g++) {
            if (g < group) mine &= mine - 1;
            left &= left - 1;
        }
        const int32_t slot = mine ? lowest_bit(mine) : 0;
        const warp_candidate *of = &keep->candidates[keep->pairs[slot]];
        const warp_shape *first = &sight->shapes[of->a], *second = &sight->shapes[of->b];
        const int32_t found =
            warp_box_box(&first->posed, &second->posed, warp_pair_margin(keep, first, second),
                         mine != 0, lanes, sight->points + TB_MANIFOLD_POINTS * slot);
        if (mine && lane % lanes == 0)
            keep->counts[slot] =
                (uint8_t)(found == WARP_BOX_GENERAL ? (int32_t)WARP_NO_POINTS : found);
    }
    tb_team_sync();
    if (own && (!boxes || keep->counts[lane] == WARP_NO_POINTS))
        keep->counts[lane] =
            (uint8_t)collide_own(keep, a, b, sight->points + TB_MANIFOLD_POINTS * lane);
    tb_team_sync();
}

/* Numbers the contacts in the order of their pairs; false: there are more than lanes, or a pair is the
 * general kernel's. */
TB_STATIC bool warp_number_contacts(warp_keep *keep, int32_t pairs)
{
    const int32_t lane = tb_team_lane();
    const int32_t count = lane < pairs ? keep->counts[lane] : 0;
    int32_t total;
    const int32_t first = tb_team_before(count, &total);
    if (total > WARP_ITEMS) return false;
    TB_ROLLED
    for (int32_t k = 0; k < count; k++) {
        keep->slot_of[first + k] = (uint8_t)lane;
        keep->point_of[first + k] = (uint8_t)k;
    }
    if (TB_LEADER) keep->contacts = total;
    tb_team_sync();
    return true;
}

#endif
