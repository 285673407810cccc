/* Bounding-volume tree of a triangle mesh.
 *
 * The surface-area heuristic splits nodes along the longest axis of the centroids, with at least
 * a quarter of the triangles on either side. The tree is efficient for triangles of different
 * sizes, and its depth stays below 2.5 log2(n), on which the fixed stacks of callers rely.
 * Triangles are sorted once an axis and then partitioned stably, so the same mesh gives the same
 * tree everywhere. */
#include "model/model_internal.h"

#include <stdlib.h>
#include <string.h>

enum { LEAF_TRIANGLES = 4 };

typedef struct tree_box {
    tb_vec3 lower, upper;
} tree_box;

typedef struct tree_workspace {
    tree_box *boxes;   /* by place in ids */
    int32_t *order[3]; /* places, sorted along each axis within every node's range */
    int32_t *buffer;
    double *areas; /* of the boxes from the right */
    bool *left;    /* by place */
    tb_tree_node *nodes;
    int32_t number_of_nodes, number_of_leaves;
    int32_t *leaf_triangles;
    const int32_t *ids;
} tree_workspace;

typedef struct tree_key {
    double key;
    int32_t place;
} tree_key;

static int compare_keys(const void *left, const void *right)
{
    const tree_key *l = left, *r = right;
    if (l->key != r->key) return l->key < r->key ? -1 : 1;
    return (l->place > r->place) - (l->place < r->place);
}

static void include(tree_box *box, const tree_box *other)
{
    box->lower = tb_v3_min(box->lower, other->lower);
    box->upper = tb_v3_max(box->upper, other->upper);
}

static double area_of(const tree_box *box)
{
    const tb_vec3 d = tb_v3_sub(box->upper, box->lower);
    return d.x * d.y + d.y * d.z + d.z * d.x;
}

/* Number of triangles in the left child, of `count` in sorted order. */
static int32_t best_split(tree_workspace *w, const int32_t *order, int32_t count)
{
    const int32_t least = count / 4 > 0 ? count / 4 : 1;
    tree_box box = w->boxes[order[count - 1]];
    for (int32_t i = count - 1; i > 0; i--) {
        include(&box, &w->boxes[order[i]]);
        w->areas[i] = area_of(&box);
    }
    int32_t best = count / 2;
    double best_cost = INFINITY;
    box = w->boxes[order[0]];
    for (int32_t i = 1; i < count; i++) {
        include(&box, &w->boxes[order[i - 1]]);
        if (i < least || count - i < least) continue;
        const double cost = area_of(&box) * i + w->areas[i] * (count - i);
        if (cost < best_cost) {
            best_cost = cost;
            best = i;
        }
    }
    return best;
}

/* Stable partition of the range by w->left. */
static void partition(tree_workspace *w, int32_t *order, int32_t count)
{
    int32_t left = 0, right = 0;
    for (int32_t i = 0; i < count; i++) {
        if (w->left[order[i]])
            order[left++] = order[i];
        else
            w->buffer[right++] = order[i];
    }
    memcpy(order + left, w->buffer, (size_t)right * sizeof *order);
}

/* Recursion is at most 2.5 log2(n) deep. */
static int32_t build_node(tree_workspace *w, int32_t first, int32_t count)
{
    const int32_t index = w->number_of_nodes++;
    tb_tree_node *node = &w->nodes[index];
    tree_box box = w->boxes[w->order[0][first]];
    tb_vec3 low = tb_v3_add(box.lower, box.upper), high = low; /* twice the centroids */
    for (int32_t i = first + 1; i < first + count; i++) {
        const tree_box *b = &w->boxes[w->order[0][i]];
        const tb_vec3 centre = tb_v3_add(b->lower, b->upper);
        include(&box, b);
        low = tb_v3_min(low, centre);
        high = tb_v3_max(high, centre);
    }
    tb_v3_store(node->lower, box.lower);
    tb_v3_store(node->upper, box.upper);
    node->right = 0;
    node->first = node->count = 0;
    if (count <= LEAF_TRIANGLES) {
        node->first = w->number_of_leaves;
        node->count = count;
        for (int32_t i = first; i < first + count; i++)
            w->leaf_triangles[w->number_of_leaves++] = w->ids[w->order[0][i]];
        return index;
    }
    const tb_vec3 size = tb_v3_sub(high, low);
    const int axis = size.x >= size.y && size.x >= size.z ? 0 : size.y >= size.z ? 1 : 2;
    const int32_t split = best_split(w, w->order[axis] + first, count);
    for (int32_t i = 0; i < count; i++) w->left[w->order[axis][first + i]] = i < split;
    for (int k = 0; k < 3; k++)
        if (k != axis) partition(w, w->order[k] + first, count);
    build_node(w, first, split);
    const int32_t right = build_node(w, first + split, count - split);
    w->nodes[index].right = right;
    return index;
}

static bool prepare(tree_workspace *w, tb_arena *scratch, const double *vertices,
                    const int32_t *triangles, int32_t count)
{
    tree_key *keys = TB_ARENA_ARRAY(scratch, tree_key, count);
    w->boxes = TB_ARENA_ARRAY(scratch, tree_box, count);
    w->buffer = TB_ARENA_ARRAY(scratch, int32_t, count);
    w->areas = TB_ARENA_ARRAY(scratch, double, count);
    w->left = TB_ARENA_ARRAY(scratch, bool, count);
    for (int k = 0; k < 3; k++) w->order[k] = TB_ARENA_ARRAY(scratch, int32_t, count);
    if (!keys || !w->boxes || !w->buffer || !w->areas || !w->left || !w->order[0] || !w->order[1] ||
        !w->order[2])
        return false;
    for (int32_t i = 0; i < count; i++) {
        const int32_t *t = triangles + 3 * (size_t)w->ids[i];
        const tb_vec3 a = tb_v3_load(vertices + 3 * (size_t)t[0]);
        const tb_vec3 b = tb_v3_load(vertices + 3 * (size_t)t[1]);
        const tb_vec3 c = tb_v3_load(vertices + 3 * (size_t)t[2]);
        w->boxes[i].lower = tb_v3_min(a, tb_v3_min(b, c));
        w->boxes[i].upper = tb_v3_max(a, tb_v3_max(b, c));
    }
    for (int k = 0; k < 3; k++) {
        for (int32_t i = 0; i < count; i++) {
            keys[i].key = tb_v3_at(w->boxes[i].lower, k) + tb_v3_at(w->boxes[i].upper, k);
            keys[i].place = i;
        }
        qsort(keys, (size_t)count, sizeof *keys, compare_keys);
        for (int32_t i = 0; i < count; i++) w->order[k][i] = keys[i].place;
    }
    return true;
}

tb_status tb_mesh_tree_build(const double *vertices, const int32_t *triangles, const int32_t *ids,
                             int32_t count, tb_arena *arena, tb_triangle_mesh *mesh,
                             tb_error *error)
{
    tb_arena scratch;
    tree_workspace w = {.ids = ids};
    if (count == 0) return TB_OK;
    tb_arena_init(&scratch, 0);
    w.nodes = TB_ARENA_ARRAY(arena, tb_tree_node, 2 * (size_t)count);
    w.leaf_triangles = TB_ARENA_ARRAY(arena, int32_t, count);
    const bool memory = w.nodes != NULL && w.leaf_triangles != NULL &&
                        prepare(&w, &scratch, vertices, triangles, count);
    if (memory) {
        build_node(&w, 0, count);
        mesh->nodes = w.nodes;
        mesh->tree_triangles = w.leaf_triangles;
        mesh->number_of_nodes = w.number_of_nodes;
        mesh->number_of_tree_triangles = w.number_of_leaves;
        memcpy(mesh->lower, w.nodes[0].lower, sizeof mesh->lower);
        memcpy(mesh->upper, w.nodes[0].upper, sizeof mesh->upper);
    }
    tb_arena_destroy(&scratch);
    return memory ? TB_OK : tb_fail_memory(error, (size_t)count * sizeof *w.nodes, "mesh tree");
}
