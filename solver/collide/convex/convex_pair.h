/* Any two convex shapes: nearest features by GJK or EPA, then contacts on the overlap of these
 * features.
 *
 * If a flat face's own normal separates as well as the best direction, that exact normal is
 * used, and the shapes' patches are overlaid along it. Otherwise parallel edges give two points,
 * and all other features one. */
#ifndef TB_COLLIDE_CONVEX_PAIR_H
#define TB_COLLIDE_CONVEX_PAIR_H

#include "collide/convex/face_first.h"
#include "collide/convex/overlay.h"

/* feature id of a shape's vertices in the simplex */
TB_FN uint32_t tb_simplex_feature(const tb_simplex *s, const tb_core *core, int of_b)
{
    if (core->type == TB_SHAPE_CAPSULE || tb_core_curved(core)) return TB_FEATURE_SURFACE;
    uint32_t first = 0, second = 0;
    int n = 0;
    for (int k = 0; k < s->count; k++) {
        const uint32_t id = of_b ? s->v[k].id_b : s->v[k].id_a;
        if (n == 0) {
            first = id;
            n = 1;
        } else if (id != first && n == 1) {
            second = id;
            n = 2;
        } else if (id != first && id != second) {
            n = 3;
        }
    }
    if (n == 3 || core->type == TB_SHAPE_SPHERE) return TB_FEATURE_SURFACE;
    return n == 2 ? tb_feature_edge(first, second) : TB_FEATURE_VERTEX | first;
}

/* the patch of one shape over a flat face or cap of the other */
TB_FN void tb_overlay_on_face(tb_overlay *o, const tb_patch *ref, int ref_is_b, const tb_patch *inc)
{
    if (inc->kind == TB_PATCH_POINT) {
        const tb_vec3 out = ref_is_b ? tb_v3_negate(o->normal) : o->normal;
        if (!tb_overlay_over(ref, out, inc->p[0])) return;
        tb_overlay_add(o, inc->p[0], !ref_is_b, tb_overlay_height(ref, out, inc->p[0]),
                       TB_FEATURE_VERTEX | inc->id[0], TB_FEATURE_SURFACE);
    } else if (inc->kind == TB_PATCH_SEGMENT) {
        tb_overlay_segment(o, ref, ref_is_b, inc);
    } else if (ref->kind == TB_PATCH_POLYGON && inc->kind == TB_PATCH_POLYGON) {
        tb_overlay_polygons(o, ref, ref_is_b, inc);
    } else if (ref->kind == TB_PATCH_DISC && inc->kind == TB_PATCH_DISC) {
        tb_overlay_discs(o, ref_is_b ? inc : ref, ref_is_b ? ref : inc);
    } else if (ref->kind == TB_PATCH_DISC) {
        tb_overlay_disc_polygon(o, ref, ref_is_b, inc);
    } else {
        tb_overlay_disc_polygon(o, inc, !ref_is_b, ref);
    }
}

/* Contacts along the normal of the flat face c->face. Returns the smallest gap. */
TB_FN_LARGE tb_real tb_convex_on_face(tb_core *a, tb_core *b, const tb_closest *c, tb_overlay *o)
{
    tb_patch patch_a, patch_b;
    o->normal = c->normal;
    o->count = 0;
    tb_patch_of(a, c->normal, &patch_a);
    tb_patch_of(b, tb_v3_negate(c->normal), &patch_b);
    if (c->face == 2)
        tb_overlay_on_face(o, &patch_b, 1, &patch_a);
    else
        tb_overlay_on_face(o, &patch_a, 0, &patch_b);
    tb_real least = TB_REAL_MAX;
    for (int k = 0; k < o->count; k++) least = tb_min(least, o->points[k].gap);
    return least;
}

TB_FN int tb_core_is_polytope(const tb_core *core)
{
    return core->type == TB_SHAPE_BOX || core->type == TB_SHAPE_CONVEX;
}

enum { TB_FEWEST_ON_AREA = 3 }; /* points that hold a shape straight */

/* Overlapping polytopes whose least depth is that of edges: contacts over an area of a face of nearly
 * that depth, A's before B's. 0 where there is none. */
TB_FN_LARGE int tb_convex_on_near_face(tb_core *a, tb_core *b, const tb_closest *c, tb_overlay *o)
{
    if (!(c->separation < 0) || !tb_core_is_polytope(a) || !tb_core_is_polytope(b)) return 0;
    tb_closest flat = *c;
    flat.separation = TB_COLLIDE_FACE_DEPTH * c->separation;
    for (int of = 1; of <= 2; of++) {
        tb_vec3 out;
        if (!tb_core_face_normal(of == 1 ? a : b, of == 1 ? c->normal : tb_v3_negate(c->normal),
                                 &out))
            continue;
        const tb_vec3 n = of == 1 ? out : tb_v3_negate(out);
        if (tb_v3_dot(n, c->normal) < TB_COLLIDE_FACE_LEAN) continue;
        const tb_real separation = tb_core_separation(a, b, n);
        if (!(separation > flat.separation)) continue;
        flat.separation = separation;
        flat.normal = n;
        flat.face = of;
    }
    if (!flat.face) return 0;
    const tb_real least = tb_convex_on_face(a, b, &flat, o);
    return o->count >= TB_FEWEST_ON_AREA && least <= TB_COLLIDE_FACE_REACH * c->separation;
}

/* Contacts of any features: on a face, along parallel edges, or at the nearest points. */
TB_FN_LARGE void tb_convex_on_features(tb_core *a, tb_core *b, const tb_closest *c, tb_real tie,
                                       tb_overlay *o)
{
    const tb_real gap = c->separation - a->radius - b->radius;
    tb_real least = TB_REAL_MAX;
    if (!c->face && tb_convex_on_near_face(a, b, c, o)) return;
    o->normal = c->normal;
    o->count = 0;
    if (c->face) {
        least = tb_convex_on_face(a, b, c, o);
    } else {
        tb_patch patch_a, patch_b;
        if (tb_patch_edge(a, c->normal, &patch_a) &&
            tb_patch_edge(b, tb_v3_negate(c->normal), &patch_b))
            tb_overlay_edges(o, &patch_a, &patch_b);
        for (int k = 0; k < o->count; k++) least = tb_min(least, o->points[k].gap);
    }
    if (least <= gap + 4 * tie) return;
    /* no point of the overlay has the distance, so use the nearest points */
    tb_overlay_add(o, tb_v3_add_scaled(c->on_a, c->normal, a->radius), 0, gap,
                   tb_simplex_feature(&c->simplex, a, 0), tb_simplex_feature(&c->simplex, b, 1));
}

/* Where a pair that is searched stage by stage goes on. */
typedef enum tb_search_stage {
    TB_SEARCH_FACES,    /* at the beginning: faces that separate the shapes, or bear the contact */
    TB_SEARCH_DISTANCE, /* with GJK */
    TB_SEARCH_DEPTH     /* with EPA: the shapes overlap */
} tb_search_stage;

struct tb_search {
    tb_search_stage next;
    int32_t last_a, last_b; /* tb_core.last of both shapes */
    tb_simplex simplex;     /* DEPTH: the last one of GJK */
};

/* Ends a stage. */
TB_FN int tb_search_wait(tb_search *search, tb_search_stage next, const tb_core *a,
                         const tb_core *b)
{
    search->next = next;
    search->last_a = a->last;
    search->last_b = b->last;
    return TB_COLLIDE_WAITS;
}

/* The features that a search by stages finds in its present stage, as tb_closest_find. */
TB_FN int tb_search_features(tb_core *a, tb_core *b, tb_real limit, const tb_search *search,
                             tb_closest *c, tb_epa *room)
{
    if (!search || search->next < TB_SEARCH_DEPTH) return tb_closest_find(a, b, limit, c, room);
    c->simplex = search->simplex;
    return tb_closest_after(a, b, TB_GJK_TOUCHING, tb_v3(0, 0, 0), c, room);
}

/* room: as of tb_closest_find; without it TB_COLLIDE_NO_ROOM is possible. search: NULL, or the stage of
 * this call, and TB_COLLIDE_WAITS is possible. */
TB_FN_LARGE int tb_convex_contacts(const tb_posed_shape *a, const tb_posed_shape *b, tb_real margin,
                                   tb_contact_point *points, uint32_t *flags, tb_epa *room,
                                   tb_search *search)
{
    const tb_vec3 origin = a->pose.position;
    tb_core core_a = tb_core_of(a, origin), core_b = tb_core_of(b, origin);
    const tb_real radii = core_a.radius + core_b.radius, limit = margin + radii;
    const tb_real tie = TB_COLLIDE_TIE * (core_a.extent + core_b.extent + radii);
    tb_closest c;
    tb_overlay o;
    o.margin = margin;
    o.count = 0;

    bool found = false;
    if (!search || search->next == TB_SEARCH_FACES) {
        const int face = tb_face_first_find(&core_a, &core_b, tie, limit, &c);
        if (face == 0) return 0;
        found = face == 2 &&
                tb_convex_on_face(&core_a, &core_b, &c, &o) <= c.separation - radii + 4 * tie;
        if (!found && search) return tb_search_wait(search, TB_SEARCH_DISTANCE, &core_a, &core_b);
    } else {
        core_a.last = search->last_a;
        core_b.last = search->last_b;
    }
    if (!found) {
        const int near = tb_search_features(&core_a, &core_b, tb_max(limit, 0), search, &c, room);
        if (near == TB_CLOSEST_NO_ROOM && search) {
            search->simplex = c.simplex;
            return tb_search_wait(search, TB_SEARCH_DEPTH, &core_a, &core_b);
        }
        if (near == TB_CLOSEST_NO_ROOM) return TB_COLLIDE_NO_ROOM;
        if (!near || !(c.separation <= limit)) return 0;
        if (c.degenerate) *flags |= TB_CONTACT_DEGENERATE;
        tb_convex_on_features(&core_a, &core_b, &c, tie, &o);
    }
    const int count = tb_manifold_reduce(o.points, o.count);
    for (int k = 0; k < count; k++) {
        points[k] = o.points[k];
        points[k].point_a = tb_v3_add(points[k].point_a, origin);
        points[k].point_b = tb_v3_add(points[k].point_b, origin);
    }
    return count;
}

#endif
