/* The thesis's intersections by BSP trees, three generations by name (Göteman and Roxling 6.5, 8.2).
 *
 * original    a tree for each solid and query; clipTo both ways, and a build of the result (csg.js)
 * reduced     trees built once; only planes and triangles are placed; no build of the result
 * traversal   trees of inverted planes in one array; bodies are placed once for all pairs of a call,
 *             and triangles go down iteratively; those outside the other solid's box never enter
 *
 * All give the surface of the overlap as triangles. A triangle is in a plane if the plane's corners
 * and its own agree about it in both directions; every other side is the exact sign of the plane's
 * value at the corner (exact.h); only builds take corners within rounding as on the plane. A result
 * that is no closed surface is computed again by the convex pieces, and counted. The trees serve
 * comparisons; steps use the pieces, which are faster (tribo bench goteman --table intersections). */
#ifndef TB_BSP_H
#define TB_BSP_H

#include "penalty/overlap.h"

/* A pair of solids at their world poses. Neither is a half-space. */
typedef struct tb_solid_pair {
    const tb_solid *a, *b;
    tb_pose pose_a, pose_b;
} tb_solid_pair;

/* The whole overlap of a pair, not split. */
typedef struct tb_bsp_result {
    double volume; /* m^3 */
    tb_vec3 first; /* m^4, volume times centroid, world */
    tb_vec3 area;  /* m^2, of the triangles that came from B */
    int32_t triangles;
    bool mended; /* computed by the pieces */
} tb_bsp_result;

typedef struct tb_bsp tb_bsp; /* trees of solids, and working memory */

tb_status tb_bsp_create(tb_bsp **bsp, tb_error *error);
void tb_bsp_destroy(tb_bsp *bsp); /* NULL is fine */

/* The overlaps of `count` pairs by ORIGINAL, REDUCED, TRAVERSAL or PIECES; `results` has `count`
 * entries. Trees are kept for solids by their address. RESOURCE_EXHAUSTED. */
tb_status tb_bsp_intersect(tb_bsp *bsp, tb_overlap_method method, const tb_solid_pair *pairs,
                           int32_t count, tb_bsp_result *results, tb_error *error);

#endif
