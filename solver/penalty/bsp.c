/* The BSP trees of bsp.h: building, inverting, placing triangles, and the first two generations of
 * intersections. A side is the exact sign of exact.h; builds alone take corners within rounding as on
 * the plane. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "penalty/bsp_internal.h"
#include "penalty/exact.h"

/* A surface whose area vectors sum to more than this share of its area is not closed. */
#define OPEN_SURFACE 1e-9

/* The first generation's tree, as csg.js: every node has its own memory and its triangles. */
typedef struct branch {
    tb_bsp_plane plane;
    bool has_plane;
    tb_bsp_triangles on;
    struct branch *front, *back;
} branch;

/* ---- triangles ---- */

bool tb_bsp_add(tb_bsp_triangles *list, const tb_bsp_triangle *t)
{
    tb_bsp_triangle *grown = tb_grow(list->items, list->count + 1, &list->capacity, sizeof *grown);
    if (!grown) return false;
    list->items = grown;
    list->items[list->count++] = *t;
    return true;
}

static tb_bsp_plane plane_of(const double corner[3][3])
{
    const tb_vec3 a = tb_v3_load(corner[0]);
    const tb_vec3 n = tb_v3_normalize(
        tb_v3_cross(tb_v3_sub(tb_v3_load(corner[1]), a), tb_v3_sub(tb_v3_load(corner[2]), a)),
        tb_v3(0, 0, 0));
    return (tb_bsp_plane){{n.x, n.y, n.z, tb_v3_dot(n, a)}};
}

tb_bsp_plane tb_bsp_place_plane(const tb_bsp_plane *p, const tb_pose *pose, double sign)
{
    const tb_vec3 n = tb_m33_mul_v3(&pose->rotation, tb_v3_load(p->n));
    const double w = p->n[3] + tb_v3_dot(n, pose->position);
    return (tb_bsp_plane){{sign * n.x, sign * n.y, sign * n.z, sign * w}};
}

static void flip(tb_bsp_triangle *t)
{
    double swap[3];
    memcpy(swap, t->corner[1], sizeof swap);
    memcpy(t->corner[1], t->corner[2], sizeof swap);
    memcpy(t->corner[2], swap, sizeof swap);
    for (int k = 0; k < 4; k++) t->plane.n[k] = -t->plane.n[k];
}

/* The surface of a solid at its pose, in the world's frame. */
static bool place_surface(const tb_solid *solid, const tb_pose *pose, bool second,
                          tb_bsp_triangles *list)
{
    const tb_surface_mesh *m = &solid->surface;
    list->count = 0;
    for (int32_t i = 0; i < m->number_of_triangles; i++) {
        tb_bsp_triangle t = {.second = second};
        for (int k = 0; k < 3; k++) {
            const double *x = m->vertices + 3 * (size_t)m->triangles[3 * i + k];
            tb_v3_store(t.corner[k],
                        tb_v3_add(pose->position, tb_m33_mul_v3(&pose->rotation, tb_v3_load(x))));
        }
        t.plane = plane_of((const double(*)[3])t.corner);
        if (!tb_bsp_add(list, &t)) return false;
    }
    return true;
}

/* m: how far a corner may be from a plane that it lies on. */
static double rounding_of(const tb_bsp_triangles *list)
{
    double size = 0;
    for (int32_t i = 0; i < list->count; i++)
        for (int c = 0; c < 3; c++)
            for (int k = 0; k < 3; k++) size = fmax(size, fabs(list->items[i].corner[c][k]));
    return TB_BSP_SAME_PLANE * size;
}

/* ---- splitPolygon ---- */

void tb_bsp_classify(const tb_bsp_triangle *t, const tb_bsp_plane *p, double side[3])
{
    if (tb_bsp_same_plane(t, p)) {
        side[0] = side[1] = side[2] = 0;
        return;
    }
    for (int k = 0; k < 3; k++) side[k] = tb_plane_side(p->n, t->corner[k]);
}

void tb_bsp_split(const tb_bsp_triangle *t, const double side[3], tb_bsp_triangle front[2],
                  int *fronts, tb_bsp_triangle back[2], int *backs)
{
    double loop[2][4][3];
    int count[2] = {0, 0};
    for (int k = 0; k < 3; k++) {
        const int next = (k + 1) % 3;
        const double a = side[k], b = side[next];
        if (a >= 0) memcpy(loop[0][count[0]++], t->corner[k], 3 * sizeof(double));
        if (a <= 0) memcpy(loop[1][count[1]++], t->corner[k], 3 * sizeof(double));
        if (!((a > 0 && b < 0) || (a < 0 && b > 0))) continue;
        double x[3];
        const double part = a / (a - b);
        for (int i = 0; i < 3; i++)
            x[i] = t->corner[k][i] + part * (t->corner[next][i] - t->corner[k][i]);
        memcpy(loop[0][count[0]++], x, sizeof x);
        memcpy(loop[1][count[1]++], x, sizeof x);
    }
    *fronts = *backs = 0;
    for (int s = 0; s < 2; s++)
        for (int k = 1; k + 1 < count[s]; k++) {
            tb_bsp_triangle *out = s == 0 ? &front[(*fronts)++] : &back[(*backs)++];
            *out = *t;
            memcpy(out->corner[0], loop[s][0], sizeof out->corner[0]);
            memcpy(out->corner[1], loop[s][k], sizeof out->corner[1]);
            memcpy(out->corner[2], loop[s][k + 1], sizeof out->corner[2]);
        }
}

/* ---- first generation: csg.js ---- */

static void branch_free(branch *b)
{
    if (!b) return;
    branch_free(b->front);
    branch_free(b->back);
    free(b->on.items);
    free(b);
}

/* Sorts a triangle at a plane into four lists. Corners within `on_plane` (m) count as on the plane:
 * in a build, where neighbours share corners with the plane up to rounding, a sliver in front of it
 * would represent the whole space there. */
static bool sort_triangle(const tb_bsp_triangle *t, const tb_bsp_plane *p, double on_plane,
                          tb_bsp_triangles *same, tb_bsp_triangles *opposite,
                          tb_bsp_triangles *front, tb_bsp_triangles *back)
{
    double side[3];
    tb_bsp_triangle fronts[2], backs[2];
    int nf, nb;
    tb_bsp_classify(t, p, side);
    for (int k = 0; k < 3; k++)
        if (fabs(side[k]) <= on_plane) side[k] = 0;
    const bool any_front = side[0] > 0 || side[1] > 0 || side[2] > 0;
    const bool any_back = side[0] < 0 || side[1] < 0 || side[2] < 0;
    if (!any_front && !any_back) {
        const double *a = t->plane.n, *b = p->n;
        return tb_bsp_add(a[0] * b[0] + a[1] * b[1] + a[2] * b[2] > 0 ? same : opposite, t);
    }
    if (!any_back) return tb_bsp_add(front, t);
    if (!any_front) return tb_bsp_add(back, t);
    tb_bsp_split(t, side, fronts, &nf, backs, &nb);
    bool fits = true;
    for (int i = 0; i < nf; i++) fits = fits && tb_bsp_add(front, &fronts[i]);
    for (int i = 0; i < nb; i++) fits = fits && tb_bsp_add(back, &backs[i]);
    return fits;
}

/* Node.build of csg.js. */
static branch *branch_build(branch *b, const tb_bsp_triangles *list, double on_plane)
{
    if (list->count == 0) return b;
    if (!b) b = calloc(1, sizeof *b);
    if (!b) return NULL;
    if (!b->has_plane) b->plane = list->items[0].plane, b->has_plane = true;
    tb_bsp_triangles front = {0}, back = {0};
    for (int32_t i = 0; i < list->count; i++)
        sort_triangle(&list->items[i], &b->plane, on_plane, &b->on, &b->on, &front, &back);
    b->front = branch_build(b->front, &front, on_plane);
    b->back = branch_build(b->back, &back, on_plane);
    free(front.items);
    free(back.items);
    return b;
}

static void branch_invert(branch *b)
{
    if (!b) return;
    for (int32_t i = 0; i < b->on.count; i++) flip(&b->on.items[i]);
    for (int k = 0; k < 4; k++) b->plane.n[k] = -b->plane.n[k];
    branch_invert(b->front);
    branch_invert(b->back);
    branch *swap = b->front;
    b->front = b->back;
    b->back = swap;
}

/* Node.clipPolygons: leaves the triangles outside of the tree's solid. */
static tb_bsp_triangles branch_clip(const branch *b, tb_bsp_triangles list)
{
    tb_bsp_triangles front = {0}, back = {0};
    for (int32_t i = 0; i < list.count; i++)
        sort_triangle(&list.items[i], &b->plane, 0, &front, &back, &front, &back);
    free(list.items);
    if (b->front) front = branch_clip(b->front, front);
    if (b->back) {
        back = branch_clip(b->back, back);
        for (int32_t i = 0; i < back.count; i++) tb_bsp_add(&front, &back.items[i]);
    }
    free(back.items);
    return front;
}

static void branch_clip_to(branch *b, const branch *other)
{
    if (!b) return;
    b->on = branch_clip(other, b->on);
    branch_clip_to(b->front, other);
    branch_clip_to(b->back, other);
}

static bool branch_all(const branch *b, tb_bsp_triangles *list)
{
    if (!b) return true;
    for (int32_t i = 0; i < b->on.count; i++)
        if (!tb_bsp_add(list, &b->on.items[i])) return false;
    return branch_all(b->front, list) && branch_all(b->back, list);
}

/* A and B = not (not A or not B); with a last build of the result. */
static bool intersect_original(tb_bsp *bsp, tb_bsp_triangles *result)
{
    const double on_a = rounding_of(&bsp->surface[0]), on_b = rounding_of(&bsp->surface[1]);
    branch *a = branch_build(NULL, &bsp->surface[0], on_a);
    branch *b = branch_build(NULL, &bsp->surface[1], on_b);
    branch_invert(a);
    branch_clip_to(b, a);
    branch_invert(b);
    branch_clip_to(a, b);
    branch_clip_to(b, a);
    tb_bsp_triangles more = {0};
    branch_all(b, &more);
    a = branch_build(a, &more, fmax(on_a, on_b));
    branch_invert(a);
    result->count = 0;
    const bool fits = branch_all(a, result);
    free(more.items);
    branch_free(a);
    branch_free(b);
    return fits;
}

/* ---- trees that are kept ---- */

static int32_t add_node(tb_bsp_tree *t, const tb_bsp_plane *p)
{
    tb_bsp_node *grown = tb_grow(t->nodes, t->count + 1, &t->capacity, sizeof *grown);
    if (!grown) return -1;
    t->nodes = grown;
    t->nodes[t->count] = (tb_bsp_node){*p, -1, -1};
    return t->count++;
}

/* The number of the subtree, -1 for none. Sets *fits to false if memory is refused. */
static int32_t build_nodes(tb_bsp_tree *t, const tb_bsp_triangles *list, double on_plane,
                           bool *fits)
{
    if (list->count == 0) return -1;
    const tb_bsp_plane p = list->items[0].plane;
    const int32_t index = add_node(t, &p);
    tb_bsp_triangles on = {0}, front = {0}, back = {0};
    *fits = *fits && index >= 0;
    for (int32_t i = 0; i < list->count && *fits; i++)
        *fits = sort_triangle(&list->items[i], &p, on_plane, &on, &on, &front, &back);
    if (*fits) {
        const int32_t f = build_nodes(t, &front, on_plane, fits),
                      b = build_nodes(t, &back, on_plane, fits);
        t->nodes[index].front = f;
        t->nodes[index].back = b;
    }
    free(on.items), free(front.items), free(back.items);
    return index;
}

int32_t tb_bsp_find_tree(tb_bsp *bsp, const tb_solid *solid)
{
    for (int32_t i = 0; i < bsp->number_of_trees; i++)
        if (bsp->trees[i].solid == solid) return i;
    tb_bsp_tree *grown =
        tb_grow(bsp->trees, bsp->number_of_trees + 1, &bsp->tree_capacity, sizeof *grown);
    if (!grown) return -1;
    bsp->trees = grown;
    tb_bsp_tree *t = &bsp->trees[bsp->number_of_trees];
    memset(t, 0, sizeof *t);
    t->solid = solid;
    const tb_pose home = {.rotation = tb_m33_identity()};
    tb_bsp_triangles list = {0};
    bool fits = place_surface(solid, &home, false, &list);
    t->faces = malloc(((size_t)list.count + 1) * sizeof *t->faces);
    fits = fits && t->faces;
    for (int32_t i = 0; i < list.count && fits; i++) t->faces[i] = list.items[i].plane;
    if (fits) build_nodes(t, &list, rounding_of(&list), &fits);
    free(list.items);
    t->is_convex = true;
    for (int32_t i = 0; i < t->count; i++) t->is_convex = t->is_convex && t->nodes[i].front < 0;
    if (fits) return bsp->number_of_trees++;
    free(t->nodes);
    free(t->faces);
    return -1;
}

/* A kept tree in the world's frame, inverted: planes turned, children swapped. */
static bool place_tree(const tb_bsp_tree *kept, const tb_pose *pose, tb_bsp_tree *placed)
{
    tb_bsp_node *grown = tb_grow(placed->nodes, kept->count, &placed->capacity, sizeof *grown);
    if (!grown) return false;
    placed->nodes = grown;
    placed->count = kept->count;
    for (int32_t i = 0; i < kept->count; i++) {
        const tb_bsp_node *from = &kept->nodes[i];
        placed->nodes[i] =
            (tb_bsp_node){tb_bsp_place_plane(&from->plane, pose, -1), from->back, from->front};
    }
    return true;
}

/* Takes one triangle down a tree; pieces outside of the tree's solid are added to `kept`. A
 * coplanar triangle goes to the front if the normals agree. */
static bool traverse(const tb_bsp_tree *t, const tb_bsp_triangle *first, tb_bsp_triangles *kept)
{
    typedef struct task {
        tb_bsp_triangle triangle;
        int32_t node;
    } task;
    task stack[TB_BSP_MOST_TASKS];
    int top = 0;
    stack[top++] = (task){*first, 0};
    while (top > 0) {
        const task x = stack[--top];
        const tb_bsp_node *n = &t->nodes[x.node];
        tb_bsp_triangle front[2], back[2];
        int fronts = 0, backs = 0;
        double side[3];
        tb_bsp_classify(&x.triangle, &n->plane, side);
        const bool any_front = side[0] > 0 || side[1] > 0 || side[2] > 0;
        const bool any_back = side[0] < 0 || side[1] < 0 || side[2] < 0;
        if (any_front && any_back) {
            tb_bsp_split(&x.triangle, side, front, &fronts, back, &backs);
        } else {
            const double *a = x.triangle.plane.n, *b = n->plane.n;
            const bool goes_front =
                any_front || (!any_back && a[0] * b[0] + a[1] * b[1] + a[2] * b[2] > 0);
            (goes_front ? front : back)[0] = x.triangle;
            if (goes_front)
                fronts = 1;
            else
                backs = 1;
        }
        for (int i = 0; i < fronts; i++) {
            if (n->front < 0) {
                if (!tb_bsp_add(kept, &front[i])) return false;
            } else if (top < TB_BSP_MOST_TASKS) {
                stack[top++] = (task){front[i], n->front};
            } else {
                return false;
            }
        }
        for (int i = 0; i < backs && n->back >= 0; i++) {
            if (top == TB_BSP_MOST_TASKS) return false;
            stack[top++] = (task){back[i], n->back};
        }
    }
    return true;
}

static bool clip_list(const tb_bsp_tree *t, const tb_bsp_triangles *list, tb_bsp_triangles *kept)
{
    kept->count = 0;
    for (int32_t i = 0; i < list->count; i++)
        if (!traverse(t, &list->items[i], kept)) return false;
    return true;
}

static void flip_all(tb_bsp_triangles *list)
{
    for (int32_t i = 0; i < list->count; i++) flip(&list->items[i]);
}

/* The three clips of kept trees (A18, A20): B by not A, A by not B, B by not A again. */
static bool clip_three(tb_bsp *bsp, const tb_bsp_triangles *a, const tb_bsp_triangles *b,
                       tb_bsp_triangles *result)
{
    tb_bsp_triangles *kept_a = &bsp->kept[0], *kept_b = &bsp->kept[1];
    if (!clip_list(&bsp->placed[0], b, kept_b)) return false;
    flip_all(kept_b);
    for (int32_t i = 0; i < a->count; i++) flip(&a->items[i]);
    if (!clip_list(&bsp->placed[1], a, kept_a)) return false;
    if (!clip_list(&bsp->placed[0], kept_b, result)) return false;
    for (int32_t i = 0; i < kept_a->count; i++)
        if (!tb_bsp_add(result, &kept_a->items[i])) return false;
    flip_all(result);
    return true;
}

static bool place_pair(tb_bsp *bsp, const tb_solid_pair *pair)
{
    const int32_t a = tb_bsp_find_tree(bsp, pair->a), b = tb_bsp_find_tree(bsp, pair->b);
    return a >= 0 && b >= 0 && place_tree(&bsp->trees[a], &pair->pose_a, &bsp->placed[0]) &&
           place_tree(&bsp->trees[b], &pair->pose_b, &bsp->placed[1]);
}

/* ---- results ---- */

bool tb_bsp_measure(const tb_bsp_triangles *list, tb_bsp_result *r)
{
    tb_vec3 sum = tb_v3(0, 0, 0);
    double area = 0;
    memset(r, 0, sizeof *r);
    r->triangles = list->count;
    if (list->count == 0) return true;
    const tb_vec3 origin = tb_v3_load(list->items[0].corner[0]);
    for (int32_t i = 0; i < list->count; i++) {
        const tb_bsp_triangle *t = &list->items[i];
        const tb_vec3 a = tb_v3_sub(tb_v3_load(t->corner[0]), origin),
                      b = tb_v3_sub(tb_v3_load(t->corner[1]), origin),
                      c = tb_v3_sub(tb_v3_load(t->corner[2]), origin);
        const tb_vec3 n = tb_v3_scale(tb_v3_cross(tb_v3_sub(b, a), tb_v3_sub(c, a)), 0.5);
        const double volume = tb_v3_dot(a, n) / 3;
        r->volume += volume;
        r->first = tb_v3_add_scaled(r->first, tb_v3_add(a, tb_v3_add(b, c)), volume / 4);
        if (t->second) r->area = tb_v3_add(r->area, n);
        sum = tb_v3_add(sum, n);
        area += tb_v3_length(n);
    }
    r->first = tb_v3_add_scaled(r->first, origin, r->volume);
    return tb_v3_length(sum) <= OPEN_SURFACE * area;
}

tb_status tb_bsp_by_pieces(tb_bsp *bsp, const tb_solid_pair *pair, tb_bsp_result *r,
                           tb_error *error)
{
    const tb_status status = tb_solids_overlap(pair->a, &pair->pose_a, pair->b, &pair->pose_b,
                                               false, &bsp->found, error);
    memset(r, 0, sizeof *r);
    for (int32_t i = 0; i < bsp->found.number_of_parts && status == TB_OK; i++) {
        const tb_overlap_part *part = &bsp->found.parts[i];
        r->volume += part->volume;
        r->first = tb_v3_add_scaled(r->first, part->centroid, part->volume);
        r->area = tb_v3_add(r->area, part->area);
    }
    return status;
}

static bool intersect(tb_bsp *bsp, tb_overlap_method method, const tb_solid_pair *pairs, int32_t i)
{
    const tb_solid_pair *pair = &pairs[i];
    if (method == TB_OVERLAP_TRAVERSAL) return tb_bsp_batch_intersect(bsp, i, &bsp->pool);
    if (!place_surface(pair->a, &pair->pose_a, false, &bsp->surface[0]) ||
        !place_surface(pair->b, &pair->pose_b, true, &bsp->surface[1]))
        return false;
    if (method == TB_OVERLAP_ORIGINAL) return intersect_original(bsp, &bsp->pool);
    return place_pair(bsp, pair) && clip_three(bsp, &bsp->surface[0], &bsp->surface[1], &bsp->pool);
}

tb_status tb_bsp_intersect(tb_bsp *bsp, tb_overlap_method method, const tb_solid_pair *pairs,
                           int32_t count, tb_bsp_result *results, tb_error *error)
{
    const bool pieces = method == TB_OVERLAP_AUTO || method == TB_OVERLAP_PIECES;
    if (method == TB_OVERLAP_TRAVERSAL && !tb_bsp_batch_begin(bsp, pairs, count))
        return tb_fail_memory(error, 0, "a batch of intersections");
    for (int32_t i = 0; i < count; i++) {
        if (!pieces && !intersect(bsp, method, pairs, i))
            return tb_fail_memory(error, 0, "an intersection");
        if (!pieces && tb_bsp_measure(&bsp->pool, &results[i])) continue;
        const tb_status status = tb_bsp_by_pieces(bsp, &pairs[i], &results[i], error);
        if (status != TB_OK) return status;
        results[i].mended = !pieces;
    }
    return TB_OK;
}

tb_status tb_bsp_create(tb_bsp **bsp, tb_error *error)
{
    *bsp = calloc(1, sizeof **bsp);
    return *bsp ? TB_OK : tb_fail_memory(error, sizeof **bsp, "trees of solids");
}

void tb_bsp_destroy(tb_bsp *bsp)
{
    if (!bsp) return;
    for (int32_t i = 0; i < bsp->number_of_trees; i++) {
        free(bsp->trees[i].nodes);
        free(bsp->trees[i].faces);
    }
    free(bsp->trees);
    for (int i = 0; i < 2; i++) {
        free(bsp->placed[i].nodes);
        free(bsp->surface[i].items);
        free(bsp->kept[i].items);
    }
    free(bsp->pool.items);
    tb_bsp_batch_free(&bsp->batch);
    tb_overlaps_found_free(&bsp->found);
    free(bsp);
}
