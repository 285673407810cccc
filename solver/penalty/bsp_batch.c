/* The third generation of bsp.h (A19, A20): a batch places each body once, and triangles go down
 * inverted trees of planes without calls.
 *
 * Beyond the thesis: a plane of a tree is placed when a triangle first reaches it, triangles outside
 * of the other body's box never enter, pairs that a plane of a convex body separates are left out, parts
 * of triangles stay polygons until they are kept, and the third clip, which removes the second of two flush
 * faces, takes the flush triangles alone, because all others would pass it as they passed the first. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "penalty/bsp_internal.h"
#include "penalty/exact.h"

void tb_bsp_batch_free(tb_bsp_batch *b)
{
    free(b->bodies);
    free(b->vertices);
    free(b->nodes);
    free(b->placed);
    free(b->outside);
    free(b->ends);
    free(b->slots);
    free(b->stack);
    memset(b, 0, sizeof *b);
}

/* ---- bodies ---- */

/* Room for `count` items; false if memory is refused. */
#define ROOM(items, count, capacity)                                                               \
    ((count) <= (capacity) || batch_room((void **)&(items), (count), &(capacity), sizeof *(items)))

static bool batch_room(void **items, int32_t count, int32_t *capacity, size_t size)
{
    void *grown = tb_grow(*items, count, capacity, size);
    if (grown) *items = grown;
    return grown != NULL;
}

static uint64_t hash_of(const tb_solid *solid, const tb_pose *pose)
{
    uint64_t hash = (uint64_t)(uintptr_t)solid;
    const double x[3] = {tb_v3_at(pose->position, 0), tb_v3_at(pose->position, 1),
                         tb_v3_at(pose->position, 2)};
    for (int k = 0; k < 3; k++) {
        uint64_t bits;
        memcpy(&bits, &x[k], sizeof bits);
        hash = (hash ^ bits) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

/* The world's vertices of a body, its box, and its tree with no node placed. */
static bool place_body(tb_bsp *bsp, const tb_solid *solid, const tb_pose *pose)
{
    tb_bsp_batch *b = &bsp->batch;
    const int32_t tree = tb_bsp_find_tree(bsp, solid), count = solid->surface.number_of_vertices;
    if (tree < 0) return false;
    const int32_t nodes = bsp->trees[tree].count;
    if (!ROOM(b->bodies, b->number_of_bodies + 1, b->body_capacity) ||
        !ROOM(b->vertices, 3 * (b->number_of_vertices + count), b->vertex_capacity) ||
        !ROOM(b->nodes, b->number_of_nodes + nodes, b->node_capacity) ||
        !ROOM(b->placed, b->number_of_nodes + nodes, b->placed_capacity) ||
        !ROOM(b->outside, count, b->outside_capacity))
        return false;
    tb_bsp_body *x = &b->bodies[b->number_of_bodies++];
    *x = (tb_bsp_body){.solid = solid,
                       .pose = *pose,
                       .tree = tree,
                       .vertex = b->number_of_vertices,
                       .node = b->number_of_nodes};
    for (int k = 0; k < 3; k++) x->box[k] = INFINITY, x->box[3 + k] = -INFINITY;
    for (int32_t v = 0; v < count; v++) {
        double *to = b->vertices + 3 * (size_t)(b->number_of_vertices++);
        const tb_vec3 local = tb_v3_load(solid->surface.vertices + 3 * (size_t)v);
        tb_v3_store(to, tb_v3_add(pose->position, tb_m33_mul_v3(&pose->rotation, local)));
        for (int k = 0; k < 3; k++) {
            x->box[k] = to[k] < x->box[k] ? to[k] : x->box[k];
            x->box[3 + k] = to[k] > x->box[3 + k] ? to[k] : x->box[3 + k];
        }
    }
    memset(b->placed + b->number_of_nodes, 0, (size_t)nodes);
    b->number_of_nodes += nodes;
    return true;
}

/* The number of a body in the batch, -1 if memory is refused. */
static int32_t find_body(tb_bsp *bsp, const tb_solid *solid, const tb_pose *pose)
{
    tb_bsp_batch *b = &bsp->batch;
    const int32_t mask = b->number_of_slots - 1;
    int32_t slot = (int32_t)(hash_of(solid, pose) & (uint64_t)mask);
    for (; b->slots[slot] >= 0; slot = (slot + 1) & mask) {
        const tb_bsp_body *x = &b->bodies[b->slots[slot]];
        if (x->solid == solid && memcmp(&x->pose, pose, sizeof *pose) == 0) return b->slots[slot];
    }
    if (!place_body(bsp, solid, pose)) return -1;
    return b->slots[slot] = b->number_of_bodies - 1;
}

bool tb_bsp_batch_begin(tb_bsp *bsp, const tb_solid_pair *pairs, int32_t count)
{
    tb_bsp_batch *b = &bsp->batch;
    b->number_of_bodies = b->number_of_vertices = b->number_of_nodes = 0;
    for (b->number_of_slots = 16; b->number_of_slots < 4 * count;) b->number_of_slots *= 2;
    if (!ROOM(b->ends, 2 * count + 1, b->end_capacity) ||
        !ROOM(b->slots, b->number_of_slots, b->slot_capacity))
        return false;
    for (int32_t i = 0; i < b->number_of_slots; i++) b->slots[i] = -1;
    for (int32_t i = 0; i < count; i++) {
        b->ends[2 * i] = find_body(bsp, pairs[i].a, &pairs[i].pose_a);
        b->ends[2 * i + 1] = find_body(bsp, pairs[i].b, &pairs[i].pose_b);
        if (b->ends[2 * i] < 0 || b->ends[2 * i + 1] < 0) return false;
    }
    return true;
}

/* ---- triangles and planes at their poses ---- */

/* A node of a body's inverted tree. */
static const tb_bsp_node *node_at(tb_bsp *bsp, const tb_bsp_body *x, int32_t index)
{
    tb_bsp_batch *b = &bsp->batch;
    tb_bsp_node *to = &b->nodes[x->node + index];
    if (!b->placed[x->node + index]) {
        const tb_bsp_node *from = &bsp->trees[x->tree].nodes[index];
        to->plane = tb_bsp_place_plane(&from->plane, &x->pose, -1);
        to->front = from->back;
        to->back = from->front;
        b->placed[x->node + index] = 1;
    }
    return to;
}

bool tb_bsp_gather(tb_bsp *bsp, const tb_bsp_body *x, const double box[6], bool second,
                   tb_bsp_triangles *list)
{
    const tb_surface_mesh *m = &x->solid->surface;
    const double *vertices = bsp->batch.vertices + 3 * (size_t)x->vertex;
    unsigned char *outside = bsp->batch.outside;
    list->count = 0;
    for (int32_t v = 0; v < m->number_of_vertices; v++) {
        const double *p = vertices + 3 * (size_t)v;
        outside[v] =
            (unsigned char)((p[0] < box[0]) | (p[1] < box[1]) << 1 | (p[2] < box[2]) << 2 |
                            (p[0] > box[3]) << 3 | (p[1] > box[4]) << 4 | (p[2] > box[5]) << 5);
    }
    for (int32_t i = 0; i < m->number_of_triangles; i++) {
        const int32_t *c = m->triangles + 3 * (size_t)i;
        if (outside[c[0]] & outside[c[1]] & outside[c[2]]) continue;
        tb_bsp_triangle t = {.second = second};
        for (int k = 0; k < 3; k++)
            memcpy(t.corner[k], vertices + 3 * (size_t)c[k], sizeof t.corner[k]);
        t.plane = tb_bsp_place_plane(&bsp->trees[x->tree].faces[i], &x->pose, 1);
        if (!tb_bsp_add(list, &t)) return false;
    }
    return true;
}

/* ---- traversal ---- */

/* The part of `from` on one side of its last plane: in front for sign 1, behind for -1. */
static void cut(const tb_bsp_part *from, double sign, tb_bsp_part *to)
{
    to->count = 0;
    to->flush = from->flush;
    for (int32_t k = 0; k < from->count; k++) {
        const int32_t next = k + 1 == from->count ? 0 : k + 1;
        const double a = from->side[k], b = from->side[next];
        if (sign * a >= 0) memcpy(to->corner[to->count++], from->corner[k], sizeof to->corner[0]);
        if (!((a > 0 && b < 0) || (a < 0 && b > 0))) continue;
        /* from the corner in front to the one behind, so that both parts get the same corner */
        const double *p = from->corner[a > 0 ? k : next], *q = from->corner[a > 0 ? next : k];
        const double share = a > 0 ? a / (a - b) : b / (b - a);
        double *corner = to->corner[to->count++];
        for (int i = 0; i < 3; i++) corner[i] = p[i] + share * (q[i] - p[i]);
    }
}

/* Adds a part as a fan of triangles. */
static bool keep(const tb_bsp_part *x, const tb_bsp_triangle *of, tb_bsp_triangles *kept)
{
    tb_bsp_triangle t = *of;
    t.flush = x->flush;
    memcpy(t.corner[0], x->corner[0], sizeof t.corner[0]);
    for (int32_t k = 1; k + 1 < x->count; k++) {
        memcpy(t.corner[1], x->corner[k], 2 * sizeof t.corner[1]);
        if (!tb_bsp_add(kept, &t)) return false;
    }
    return true;
}

/* Sets the sides of a part at a plane. */
static void place_part(tb_bsp_part *x, const tb_bsp_triangle *of, const tb_bsp_plane *plane,
                       bool *any_front, bool *any_back)
{
    const bool same = tb_bsp_same_plane(of, plane);
    *any_front = *any_back = false;
    for (int32_t k = 0; k < x->count && !same; k++) {
        x->side[k] = tb_plane_side(plane->n, x->corner[k]);
        *any_front |= x->side[k] > 0;
        *any_back |= x->side[k] < 0;
    }
}

/* Makes room for one part more and divides the last one where it has too many corners. */
static tb_bsp_part *last_part(tb_bsp_batch *b, int32_t *top)
{
    if (!ROOM(b->stack, *top + 2, b->stack_capacity)) return NULL;
    tb_bsp_part *x = &b->stack[*top - 1];
    if (x->count < TB_BSP_MOST_CORNERS) return x;
    tb_bsp_part *half = &b->stack[(*top)++];
    const int32_t middle = x->count / 2;
    *half = *x;
    half->count = 1 + x->count - middle;
    memmove(half->corner[1], x->corner[middle], (size_t)(x->count - middle) * sizeof x->corner[0]);
    x->count = middle + 1;
    return half;
}

/* Takes one triangle down a body's inverted tree; the parts of it inside the body are added to
 * `kept`. A triangle in a plane goes to the front if its normal times `turn` agrees. */
static bool traverse(tb_bsp *bsp, const tb_bsp_body *body, const tb_bsp_triangle *triangle,
                     double turn, tb_bsp_triangles *kept)
{
    tb_bsp_batch *b = &bsp->batch;
    tb_bsp_part cut_part;
    int32_t top = 1;
    if (!ROOM(b->stack, 1, b->stack_capacity)) return false;
    memcpy(b->stack[0].corner, triangle->corner, sizeof triangle->corner);
    b->stack[0].count = 3;
    b->stack[0].node = 0;
    b->stack[0].flush = false;
    while (top > 0) {
        tb_bsp_part *x = last_part(b, &top);
        if (!x) return false;
        const tb_bsp_node *n = node_at(bsp, body, x->node);
        bool any_front, any_back;
        place_part(x, triangle, &n->plane, &any_front, &any_back);
        if (any_front && any_back) {
            /* the part in front goes on; the part behind waits below it, if anything is behind */
            tb_bsp_part *front = n->back >= 0 ? &b->stack[top] : &cut_part;
            cut(x, 1, front);
            if (n->back >= 0) {
                cut(x, -1, &cut_part);
                cut_part.node = n->back;
                top++;
            }
            memcpy(x->corner, cut_part.corner, (size_t)cut_part.count * sizeof x->corner[0]);
            x->count = cut_part.count;
            if (n->back >= 0) {
                x->node = n->back;
                x = front;
            }
        } else if (!any_front && !any_back) {
            const double *p = triangle->plane.n, *q = n->plane.n;
            x->flush = true;
            any_front = turn * (p[0] * q[0] + p[1] * q[1] + p[2] * q[2]) > 0;
        }
        x->node = any_front ? n->front : n->back;
        if (x->node >= 0) continue;
        if (any_front && !keep(x, triangle, kept)) return false;
        top--;
    }
    return true;
}

/* Whether a plane of a convex body has another body in front of it. */
static bool separates(tb_bsp *bsp, const tb_bsp_body *body, const tb_bsp_body *other)
{
    const tb_bsp_tree *tree = &bsp->trees[body->tree];
    const int32_t vertices = other->solid->surface.number_of_vertices;
    const double *x = bsp->batch.vertices + 3 * (size_t)other->vertex;
    if (!tree->is_convex) return false;
    for (int32_t i = 0; i < tree->count; i++) {
        const tb_bsp_node *n = node_at(bsp, body, i);
        int32_t v = 0;
        while (v < vertices && tb_plane_side(n->plane.n, x + 3 * (size_t)v) <= 0) v++;
        if (v == vertices) return true;
    }
    return false;
}

bool tb_bsp_batch_intersect(tb_bsp *bsp, int32_t pair, tb_bsp_triangles *result)
{
    const tb_bsp_body *a = &bsp->batch.bodies[bsp->batch.ends[2 * pair]],
                      *b = &bsp->batch.bodies[bsp->batch.ends[2 * pair + 1]];
    tb_bsp_triangles *surface = &bsp->surface[0], *inside = &bsp->kept[0];
    result->count = inside->count = 0;
    for (int k = 0; k < 3; k++)
        if (a->box[k] > b->box[3 + k] || b->box[k] > a->box[3 + k]) return true;
    if (separates(bsp, a, b) || separates(bsp, b, a)) return true;
    if (!tb_bsp_gather(bsp, b, a->box, true, surface)) return false;
    for (int32_t i = 0; i < surface->count; i++)
        if (!traverse(bsp, a, &surface->items[i], 1, inside)) return false;
    for (int32_t i = 0; i < inside->count; i++) {
        tb_bsp_triangle *t = &inside->items[i];
        if (!(t->flush ? traverse(bsp, a, t, -1, result) : tb_bsp_add(result, t))) return false;
    }
    if (!tb_bsp_gather(bsp, a, b->box, false, surface)) return false;
    for (int32_t i = 0; i < surface->count; i++)
        if (!traverse(bsp, b, &surface->items[i], -1, result)) return false;
    return true;
}
