/* Parts that the generations of bsp.h share: triangles, splits, trees that are kept for solids. */
#ifndef TB_BSP_INTERNAL_H
#define TB_BSP_INTERNAL_H

#include <math.h>

#include "penalty/bsp.h"
#include "penalty/card/traversal.h"

#define TB_BSP_SAME_PLANE TB_SAME_PLANE

/* Parts of one triangle that wait for their turn; each split adds at most two. */
enum { TB_BSP_MOST_TASKS = 256 };
/* Corners of a part; one with more is divided. */
enum { TB_BSP_MOST_CORNERS = 12 };

typedef struct tb_bsp_plane {
    double n[4]; /* outward unit normal, offset */
} tb_bsp_plane;

typedef struct tb_bsp_triangle {
    double corner[3][3];
    tb_bsp_plane plane;
    bool second; /* from B */
    bool flush;  /* lay in a plane that it was placed at */
} tb_bsp_triangle;

typedef struct tb_bsp_triangles {
    tb_bsp_triangle *items;
    int32_t count, capacity;
} tb_bsp_triangles;

/* A node of a tree: children by index, -1: none. */
typedef struct tb_bsp_node {
    tb_bsp_plane plane;
    int32_t front, back;
} tb_bsp_node;

typedef struct tb_bsp_tree {
    const tb_solid *solid; /* of a kept tree */
    tb_bsp_node *nodes;    /* in the solid's frame if kept, else in the world's */
    int32_t count, capacity;
    tb_bsp_plane *faces; /* of a kept tree: planes of the solid's triangles, its frame */
    bool is_convex;      /* of a kept tree: no node has anything in front */
} tb_bsp_tree;

/* A solid at its pose in one batch of the third generation. */
typedef struct tb_bsp_body {
    const tb_solid *solid;
    tb_pose pose;
    int32_t tree;         /* in trees */
    int32_t vertex, node; /* first in vertices; in nodes and placed */
    double box[6];        /* m, world: lower, upper */
} tb_bsp_body;

/* A convex part of a triangle on its way down a tree. */
typedef struct tb_bsp_part {
    double corner[TB_BSP_MOST_CORNERS][3];
    double side[TB_BSP_MOST_CORNERS]; /* of the plane that it was last placed at */
    int32_t count, node;
    bool flush; /* lay in a plane that it was placed at */
} tb_bsp_part;

/* Working memory of a batch. */
typedef struct tb_bsp_batch {
    tb_bsp_body *bodies;
    double *vertices;       /* bodies' vertices x 3, m, world */
    tb_bsp_node *nodes;     /* bodies' nodes, inverted, world; of those that `placed` marks */
    unsigned char *placed;  /* nodes */
    unsigned char *outside; /* vertices of one solid: sides of a box that they are outside of */
    int32_t *ends;          /* pairs x 2: their bodies */
    tb_bsp_part *stack;     /* parts that wait for their turn */
    int32_t *slots;         /* hash table of the bodies, -1: free */
    int32_t body_capacity, vertex_capacity, node_capacity, placed_capacity, outside_capacity,
        end_capacity, slot_capacity, stack_capacity;
    int32_t number_of_bodies, number_of_vertices, number_of_nodes, number_of_slots;
} tb_bsp_batch;

struct tb_bsp {
    tb_bsp_tree *trees; /* kept, by solid */
    int32_t number_of_trees, tree_capacity;
    tb_bsp_tree placed[2];
    tb_bsp_triangles surface[2], kept[2], pool;
    tb_bsp_batch batch;
    tb_overlaps_found found;
};

bool tb_bsp_add(tb_bsp_triangles *list, const tb_bsp_triangle *t);
/* A plane at a pose; sign -1: turned. */
tb_bsp_plane tb_bsp_place_plane(const tb_bsp_plane *plane, const tb_pose *pose, double sign);
/* Whether a triangle lies in a plane, up to rounding. The planes are compared with each other, so that either order gives the same answer. */
static inline bool tb_bsp_same_plane(const tb_bsp_triangle *t, const tb_bsp_plane *p)
{
    double size = 0;
    for (int k = 0; k < 3; k++)
        size = fmax(
            size, fmax(fabs(t->corner[k][0]), fmax(fabs(t->corner[k][1]), fabs(t->corner[k][2]))));
    return tb_planes_agree(t->plane.n, p->n, size);
}

/* Signs of a triangle's corners at a plane, all 0 where both planes are one. */
void tb_bsp_classify(const tb_bsp_triangle *t, const tb_bsp_plane *p, double side[3]);
/* Parts in front of a plane and behind it, at most 3 triangles in all. */
void tb_bsp_split(const tb_bsp_triangle *t, const double side[3], tb_bsp_triangle front[2],
                  int *fronts, tb_bsp_triangle back[2], int *backs);
/* The number of the kept tree of a solid, -1 if memory is refused. */
int32_t tb_bsp_find_tree(tb_bsp *bsp, const tb_solid *solid);

/* The third generation: places the bodies of a batch, each once. False if memory is refused. */
bool tb_bsp_batch_begin(tb_bsp *bsp, const tb_solid_pair *pairs, int32_t count);
/* The surface of the overlap of one pair of the batch. */
bool tb_bsp_batch_intersect(tb_bsp *bsp, int32_t pair, tb_bsp_triangles *result);
void tb_bsp_batch_free(tb_bsp_batch *batch);
/* The triangles of a body that are not all outside of one side of a box. */
bool tb_bsp_gather(tb_bsp *bsp, const tb_bsp_body *body, const double box[6], bool second,
                   tb_bsp_triangles *list);

/* The volume and area of an overlap's surface. False for a surface that is not closed. */
bool tb_bsp_measure(const tb_bsp_triangles *list, tb_bsp_result *result);
/* The overlap of a pair by its convex pieces. */
tb_status tb_bsp_by_pieces(tb_bsp *bsp, const tb_solid_pair *pair, tb_bsp_result *result,
                           tb_error *error);

#endif
