/* A bounding-volume tree for a large world on a GPU, and its overlap queries.
 *
 * Boxes are sorted by the Morton codes of their centres, and the binary radix tree over the sorted
 * codes is built with every inner node on its own (Karras, Maximizing parallelism in the construction
 * of BVHs, octrees and k-d trees, HPG 2012): no level waits for another. The index breaks ties
 * of equal codes. Nodes hold the boxes of both children as floats, rounded outwards, so that a
 * descent is one read of 64 bytes. The final test compares the boxes themselves, so the pairs
 * are the pairs of tb_broad_phase. */
#ifndef TB_BOX_TREE_H
#define TB_BOX_TREE_H

#include "base/grid.h"
#include "collide/broad/broad.h"

enum { TB_BOX_TREE_CODE_BITS = 30, TB_BOX_TREE_DEPTH = 64 };

/* An inner node. A child >= 0 is an inner node, else the leaf at place -1 - child. */
typedef struct tb_box_tree_node {
    float lower[2][3], upper[2][3];
    int32_t child[2];
    int32_t parent; /* -1: none */
    int32_t side;   /* index of this node among its parent's children */
} tb_box_tree_node;

typedef struct tb_box_tree {
    int32_t leaves;
    const uint32_t *codes;   /* leaves, sorted */
    const int32_t *order;    /* leaves: box of each leaf */
    tb_box_tree_node *nodes; /* leaves - 1 */
    int32_t *parents;        /* leaves: node times two, plus the side */
    int32_t *arrivals;       /* leaves - 1 */
} tb_box_tree;

TB_LANE float tb_float_below(tb_real x)
{
    const float y = (float)x;
    return (tb_real)y > x ? nextafterf(y, -FLT_MAX) : y;
}

TB_LANE float tb_float_above(tb_real x)
{
    const float y = (float)x;
    return (tb_real)y < x ? nextafterf(y, FLT_MAX) : y;
}

/* ten bits an axis, of a point between the bounds */
TB_LANE uint32_t tb_box_tree_code(const float point[3], const float lower[3], float inverse_cell)
{
    uint32_t cell[3];
    for (int k = 0; k < 3; k++) {
        float t = (point[k] - lower[k]) * inverse_cell;
        t = t > 0 ? t : 0;
        t = t < 1023 ? t : 1023;
        cell[k] = (uint32_t)(int32_t)t;
    }
    return (uint32_t)tb_morton_code(cell[0], cell[1], cell[2]);
}

/* length of the common prefix of two places' codes, -1 where the second does not exist */
TB_LANE int32_t tb_box_tree_prefix(const tb_box_tree *t, int32_t i, int32_t j)
{
    if (j < 0 || j >= t->leaves) return -1;
    const uint32_t differs = t->codes[i] ^ t->codes[j];
    if (differs) return tb_leading_zeros(differs);
    return 32 + tb_leading_zeros((uint32_t)i ^ (uint32_t)j);
}

/* Inner node i: its range of places by doubling and halving steps, its split, its children. */
TB_LANE void tb_box_tree_link(const tb_box_tree *t, int32_t i)
{
    const int32_t d = tb_box_tree_prefix(t, i, i + 1) > tb_box_tree_prefix(t, i, i - 1) ? 1 : -1;
    const int32_t least = tb_box_tree_prefix(t, i, i - d);
    int32_t reach = 2;
    while (tb_box_tree_prefix(t, i, i + reach * d) > least) reach *= 2;
    int32_t length = 0;
    for (int32_t step = reach / 2; step > 0; step /= 2)
        if (tb_box_tree_prefix(t, i, i + (length + step) * d) > least) length += step;
    const int32_t j = i + length * d, common = tb_box_tree_prefix(t, i, j);
    int32_t split = 0;
    for (int32_t step = (length + 1) / 2;; step = (step + 1) / 2) {
        if (tb_box_tree_prefix(t, i, i + (split + step) * d) > common) split += step;
        if (step <= 1) break;
    }
    const int32_t middle = i + split * d + (d < 0 ? d : 0);
    const int32_t first = i < j ? i : j, last = i < j ? j : i;
    const bool leaf[2] = {first == middle, last == middle + 1};
    for (int side = 0; side < 2; side++) {
        const int32_t place = middle + side;
        t->nodes[i].child[side] = leaf[side] ? -1 - place : place;
        if (leaf[side]) {
            t->parents[place] = 2 * i + side;
        } else {
            t->nodes[place].parent = i;
            t->nodes[place].side = side;
        }
    }
    if (i == 0) t->nodes[0].parent = -1;
    t->arrivals[i] = 0;
}

/* Propagates a leaf's box upwards: the second child to arrive at a node continues to the parent. */
TB_LANE void tb_box_tree_climb(const tb_box_tree *t, int32_t place, const tb_box *box)
{
    float lower[3], upper[3];
    lower[0] = tb_float_below(box->lower.x), upper[0] = tb_float_above(box->upper.x);
    lower[1] = tb_float_below(box->lower.y), upper[1] = tb_float_above(box->upper.y);
    lower[2] = tb_float_below(box->lower.z), upper[2] = tb_float_above(box->upper.z);
    int32_t node = t->parents[place] / 2, side = t->parents[place] % 2;
    for (;;) {
        tb_box_tree_node *n = &t->nodes[node];
        for (int k = 0; k < 3; k++) {
            n->lower[side][k] = lower[k];
            n->upper[side][k] = upper[k];
        }
        if (tb_grid_arrive(&t->arrivals[node]) == 0 || n->parent < 0) return;
        const volatile float *other_lower = n->lower[1 - side], *other_upper = n->upper[1 - side];
        for (int k = 0; k < 3; k++) {
            lower[k] = lower[k] < other_lower[k] ? lower[k] : other_lower[k];
            upper[k] = upper[k] > other_upper[k] ? upper[k] : other_upper[k];
        }
        side = n->side;
        node = n->parent;
    }
}

/* State of a walk through the tree. */
typedef struct tb_box_tree_walk {
    float lower[3], upper[3];
    int32_t stack[TB_BOX_TREE_DEPTH];
    int32_t depth;
} tb_box_tree_walk;

TB_LANE void tb_box_tree_walk_begin(const tb_box_tree *t, tb_box_tree_walk *w, const tb_box *box)
{
    w->lower[0] = tb_float_below(box->lower.x), w->upper[0] = tb_float_above(box->upper.x);
    w->lower[1] = tb_float_below(box->lower.y), w->upper[1] = tb_float_above(box->upper.y);
    w->lower[2] = tb_float_below(box->lower.z), w->upper[2] = tb_float_above(box->upper.z);
    w->depth = 0;
    if (t->leaves > 0) w->stack[w->depth++] = t->leaves > 1 ? 0 : -1;
}

/* Index of the next box that may overlap; -1: no more boxes. */
TB_LANE int32_t tb_box_tree_walk_next(const tb_box_tree *t, tb_box_tree_walk *w)
{
    while (w->depth > 0) {
        const int32_t at = w->stack[--w->depth];
        if (at < 0) return t->order[-1 - at];
        const tb_box_tree_node n = t->nodes[at];
        for (int side = 1; side >= 0; side--) {
            bool meets = true;
            for (int k = 0; k < 3; k++)
                meets = meets && n.lower[side][k] <= w->upper[k] && w->lower[k] <= n.upper[side][k];
            if (meets) w->stack[w->depth++] = n.child[side];
        }
    }
    return -1;
}

#endif
