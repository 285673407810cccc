/* Triangles that go down inverted BSP trees on a card: one step of one part, for kernels and for the processor
 * (Göteman and Roxling A19 to A22). Parts are triangles; a split makes at most two more. */
#ifndef TB_TRAVERSAL_H
#define TB_TRAVERSAL_H

#include <stdbool.h>

#include "penalty/exact.h"

enum { TB_TRAVERSAL_KEPT = -1, TB_TRAVERSAL_DROPPED = -2, TB_TRAVERSAL_BATCHES = 8 };

/* Planes within this share of the corners' size are the same. */
#define TB_SAME_PLANE 1e-11

typedef enum tb_traversal_way {
    TB_TRAVERSE_RECURSIVE, /* a function that calls itself; new parts are the next launch's */
    TB_TRAVERSE_ITERATIVE, /* the same in a loop */
    TB_TRAVERSE_HYBRID,    /* the same while a batch is above `limit`; the rest on the processor */
    TB_TRAVERSE_SHARED,    /* a block shares the parts of its triangles in its shared memory */
    TB_TRAVERSE_OWN        /* a thread keeps the parts of its triangle in a list of its own */
} tb_traversal_way;

typedef struct tb_traversal_node {
    double plane[4];     /* inverted, world: outward unit normal, offset */
    int32_t front, back; /* numbers of nodes, or KEPT and DROPPED where there is none */
} tb_traversal_node;

/* A triangle of one solid of a pair and the tree of the other. */
typedef struct tb_traversal_source {
    double plane[4]; /* of the triangle, world */
    double size;     /* m: largest coordinate of its corners */
    double turn;     /* a triangle in a plane goes to the front if turn times its normal agrees */
    int32_t pair, second;
} tb_traversal_source;

/* A part of a triangle. */
typedef struct tb_traversal_part {
    double corner[3][3]; /* m, world */
    int32_t source, node;
    int32_t flush; /* 1: lay in a plane that it was placed at */
    int32_t spare;
} tb_traversal_part;

/* All triangles of a batch. */
typedef struct tb_traversal {
    tb_traversal_way way;
    int32_t limit; /* of the hybrid way, in parts */
    const tb_traversal_node *nodes;
    const tb_traversal_source *sources;
    const tb_traversal_part *parts;
    int32_t number_of_nodes, number_of_sources, number_of_parts;
    /* results */
    tb_traversal_part *kept; /* heap, the caller frees it; in no fixed order */
    int32_t number_of_kept, launches;
    int32_t batches[TB_TRAVERSAL_BATCHES]; /* parts of the first launches */
    double seconds;                        /* on the card */
} tb_traversal;

TB_FN bool tb_planes_agree(const double a[4], const double b[4], double size)
{
    const double sign = a[0] * b[0] + a[1] * b[1] + a[2] * b[2] > 0 ? 1 : -1;
    for (int k = 0; k < 3; k++)
        if (!(tb_abs(a[k] - sign * b[k]) <= TB_SAME_PLANE)) return false;
    const double most = tb_abs(b[3]) > size ? tb_abs(b[3]) : size;
    return tb_abs(a[3] - sign * b[3]) <= TB_SAME_PLANE * (1 + most);
}

/* The corners of a part on one side of a plane, 3 or 4. */
TB_FN int32_t tb_traversal_cut(const tb_traversal_part *x, const double side[3], double sign,
                               double corner[4][3])
{
    int32_t count = 0;
    for (int32_t k = 0; k < 3; k++) {
        const int32_t next = k == 2 ? 0 : k + 1;
        const double a = side[k], b = side[next];
        if (sign * a >= 0) {
            for (int i = 0; i < 3; i++) corner[count][i] = x->corner[k][i];
            count++;
        }
        if (!((a > 0 && b < 0) || (a < 0 && b > 0))) continue;
        /* from the corner in front to the one behind, so that both sides get the same corner */
        const double *p = x->corner[a > 0 ? k : next], *q = x->corner[a > 0 ? next : k];
        const double share = a > 0 ? a / (a - b) : b / (b - a);
        for (int i = 0; i < 3; i++) corner[count][i] = p[i] + share * (q[i] - p[i]);
        count++;
    }
    return count;
}

/* One node further: the part becomes one of its pieces, the others (at most 2) go to `more`. Returns their
 * number. The part's node must be one. */
TB_FN int32_t tb_traversal_step(const tb_traversal *t, tb_traversal_part *x,
                                tb_traversal_part more[2])
{
    const tb_traversal_node *n = &t->nodes[x->node];
    const tb_traversal_source *s = &t->sources[x->source];
    const bool same = tb_planes_agree(s->plane, n->plane, s->size);
    double side[3];
    bool any_front = false, any_back = false;
    for (int k = 0; k < 3; k++) {
        side[k] = same ? 0 : tb_plane_side(n->plane, x->corner[k]);
        any_front = any_front || side[k] > 0;
        any_back = any_back || side[k] < 0;
    }
    if (!any_front || !any_back) {
        if (!any_front && !any_back) {
            const double *p = s->plane, *q = n->plane;
            x->flush = 1;
            any_front = s->turn * (p[0] * q[0] + p[1] * q[1] + p[2] * q[2]) > 0;
        }
        x->node = any_front ? n->front : n->back;
        return 0;
    }
    const tb_traversal_part whole = *x;
    int32_t pieces = 0;
    for (int b = 0; b < 2; b++) {
        const int32_t node = b == 0 ? n->front : n->back;
        double corner[4][3];
        if (node == TB_TRAVERSAL_DROPPED) continue;
        const int32_t count = tb_traversal_cut(&whole, side, b == 0 ? 1 : -1, corner);
        for (int32_t k = 1; k + 1 < count; k++) {
            tb_traversal_part *to = pieces == 0 ? x : &more[pieces - 1];
            *to = whole;
            to->node = node;
            for (int i = 0; i < 3; i++) {
                to->corner[0][i] = corner[0][i];
                to->corner[1][i] = corner[k][i];
                to->corner[2][i] = corner[k + 1][i];
            }
            pieces++;
        }
    }
    return pieces - 1;
}

#endif
