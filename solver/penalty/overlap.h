/* Overlaps of two solids: disjoint parts with volume, centroid, depth and area vector. */
#ifndef TB_PENALTY_OVERLAP_H
#define TB_PENALTY_OVERLAP_H

#include "penalty/solid.h"
#include "penalty/volume_law.h"

/* How the overlap is found. */
#define TB_OVERLAP_METHOD_LIST(X)                                                                  \
    X(AUTO, "auto", "the convex pieces, the fastest of all by measurement")                        \
    X(PIECES, "pieces", "closed-form clipping of pairs of convex pieces")                          \
    X(ORIGINAL, "original", "a BSP tree for each query, as csg.js (the thesis's first)")           \
    X(REDUCED, "reduced", "trees built once, no last build (its second)")                          \
    X(TRAVERSAL, "traversal", "inverted trees of planes, all triangles in one batch (its third)")

typedef enum tb_overlap_method {
#define TB_OVERLAP_METHOD_ENUM(name, text, summary) TB_OVERLAP_##name,
    TB_OVERLAP_METHOD_LIST(TB_OVERLAP_METHOD_ENUM)
#undef TB_OVERLAP_METHOD_ENUM
} tb_overlap_method;

/* One clipped pair of pieces. */
typedef struct tb_fragment {
    double volume;
    tb_vec3 first, area;                /* see tb_clip_moments; the world's frame */
    int32_t vertex, number_of_vertices; /* in vertices */
    int32_t seam, number_of_seams;      /* in seams: faces on inner planes */
    int32_t part;                       /* the first fragment of its part */
    int32_t number;                     /* of its part, in parts */
} tb_fragment;

/* A face of a fragment on an inner plane of one of the solids. */
typedef struct tb_seam {
    int32_t solid, cut; /* 0: A, 1: B; signed number of the inner plane */
    int32_t vertex, number_of_vertices;
} tb_seam;

/* A convex polygon of B's surface inside A. */
typedef struct tb_overlap_face {
    int32_t vertex, number_of_vertices; /* in vertices, counter-clockwise seen from outside of B */
    int32_t fragment;
    int32_t cut; /* 0, or the inner plane of B that the polygon lies on */
} tb_overlap_face;

/* Working memory and result; zeroed is empty. A warm one allocates nothing. */
typedef struct tb_overlaps_found {
    tb_overlap_part *parts;
    int32_t number_of_parts, part_capacity;
    tb_fragment *fragments;
    int32_t number_of_fragments, fragment_capacity;
    tb_vec3 *vertices;
    int32_t number_of_vertices, vertex_capacity;
    tb_seam *seams;
    int32_t number_of_seams, seam_capacity;
    bool keeps_faces; /* asked by the caller: faces below are filled */
    tb_overlap_face *faces;
    int32_t number_of_faces, face_capacity;
    void *clip_block;
    size_t clip_bytes;
} tb_overlaps_found;

void tb_overlaps_found_free(tb_overlaps_found *found);

/* The parts of the overlap of solids A and B at their world poses. Disjoint regions are separate
 * parts if `split`, else all are one. At most one solid is a half-space. RESOURCE_EXHAUSTED. */
tb_status tb_solids_overlap(const tb_solid *a, const tb_pose *pose_a, const tb_solid *b,
                            const tb_pose *pose_b, bool split, tb_overlaps_found *found,
                            tb_error *error);

#endif
