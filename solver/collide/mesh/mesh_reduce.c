/* Reduces the points of single triangles to manifolds.
 *
 * Comparing triangles decides three cases. First, a face whose deepest point is on a convex edge
 * beyond which the shape continues is not the contact: the edge is, and has its own points.
 * Second, a depth that disappears when a far smaller depth is resolved is not a contact: the
 * side of a block that overlaps another by a millimetre also lies half a metre under its top.
 * Third, triangles of one plane, or all that touch one flat face, give one manifold: the hull
 * and the deepest point, without duplicates. */
#include "collide/mesh/mesh_internal.h"

TB_EXTERN tb_mesh_contact *tb_mesh_points_reserve(tb_mesh_points *points, int32_t count)
{
    if (points->failed) return NULL;
    if (points->count + count > points->capacity) {
        int32_t capacity = points->capacity ? 2 * points->capacity : 64;
        while (capacity < points->count + count) capacity *= 2;
        tb_mesh_contact *items = TB_ARENA_ARRAY(points->arena, tb_mesh_contact, capacity);
        if (!items) {
            points->failed = true;
            return NULL;
        }
        for (int32_t i = 0; i < points->count; i++) items[i] = points->items[i];
        points->items = items;
        points->capacity = capacity;
    }
    return points->items + points->count;
}

/* Points of one normal; in the first pass also of one plane. */
struct tb_mesh_region {
    tb_vec3 normal;
    tb_real height, deepest;
    int32_t deepest_point, first; /* `first` and `next` chain the points in order */
    int32_t last, count;
    bool of_face, dropped;
    int32_t spots; /* index of the region's first spot */
    int32_t chosen[TB_MANIFOLD_POINTS + 1], kept;
};

typedef struct regions {
    tb_mesh_region *items;
    int32_t count;
    int32_t *next; /* next point of the region, -1 at the end */
} regions;

TB_STATIC void region_add(regions *r, const tb_mesh_contact *points, int32_t p, bool by_plane,
                          tb_real noise)
{
    const tb_mesh_contact *c = &points[p];
    r->next[p] = -1;
    /* neighbours come in sequence, so search the newest regions first */
    for (int32_t i = r->count - 1; i >= 0; i--) {
        tb_mesh_region *g = &r->items[i];
        if (!tb_mesh_same_direction(g->normal, c->normal)) continue;
        if (by_plane && (g->of_face != c->of_face || tb_abs(g->height - c->height) > 64 * noise))
            continue;
        r->next[g->last] = p;
        g->last = p;
        g->count++;
        if (c->gap < g->deepest) g->deepest = c->gap, g->deepest_point = p;
        return;
    }
    tb_mesh_region *g = &r->items[r->count++];
    g->normal = c->normal;
    g->height = c->height;
    g->deepest = c->gap;
    g->deepest_point = g->first = g->last = p;
    g->count = 1;
    g->of_face = c->of_face;
    g->dropped = false;
}

/* Whether a face is deepest at a convex edge beyond which the shape continues. */
TB_STATIC bool region_is_cut(const regions *r, const tb_mesh_region *g,
                             const tb_mesh_contact *points, tb_real noise)
{
    for (int32_t p = g->first; p >= 0 && g->of_face; p = r->next[p])
        if (points[p].cut && points[p].gap <= g->deepest + noise) return true;
    return false;
}

/* Whether x is outside the prism over a triangle's face, beyond a convex or boundary edge; flat
 * edges are crossed. */
TB_STATIC bool leaves_face(const tb_mesh_view *view, int32_t triangle, tb_vec3 x)
{
    enum { STEPS = 16 };
    int32_t before = -1;
    for (int step = 0; step < STEPS && triangle >= 0; step++) {
        tb_mesh_triangle t;
        tb_mesh_triangle_load(view, triangle, &t);
        int32_t next = -1;
        for (int k = 0; k < 3; k++) {
            if (!(tb_v3_dot(t.side[k], tb_v3_sub(x, t.v[k])) > 0)) continue;
            if (t.open[k]) return true;
            const int32_t across = view->mesh->adjacent[3 * triangle + k];
            if (across != before && view->mesh->edge_kind[3 * triangle + k] == TB_EDGE_FLAT)
                next = across;
        }
        before = triangle;
        triangle = next;
    }
    return false;
}

TB_STATIC bool outside_solid(const tb_polytope *s, tb_vec3 x)
{
    for (int32_t f = 0; f < s->number_of_faces; f++)
        if (tb_v3_dot(s->normals[f], x) > s->offsets[f]) return true;
    return false;
}

/* Whether a contact ends when the shape moves by `way`: its point then lies beside its face, or
 * its mesh point outside the shape. */
TB_STATIC bool contact_ends(const tb_mesh_contact *c, const tb_mesh_pair *pair, tb_vec3 way)
{
    if (c->of_face) return leaves_face(pair->view, c->triangle, tb_v3_add(c->on_shape, way));
    const tb_vec3 x = tb_v3_sub(c->on_mesh, way);
    if (pair->solid) return outside_solid(pair->solid, x);
    if (pair->other) return leaves_face(pair->other, (int32_t)(c->feature >> 2), x);
    return false;
}

/* Drops points whose depth disappears when a smaller depth is resolved. */
TB_STATIC int32_t drop_explained(tb_mesh_contact *points, int32_t count, const regions *r,
                                 const tb_mesh_pair *pair, tb_real noise)
{
    int32_t kept = 0;
    for (int32_t p = 0; p < count; p++) {
        const tb_mesh_contact c = points[p];
        bool explained = false;
        for (int32_t i = 0; i < r->count && !explained && c.gap < -16 * noise; i++) {
            const tb_mesh_region *g = &r->items[i];
            if (g->dropped || g->deepest >= -noise || g->deepest < TB_R(0.25) * c.gap) continue;
            if (tb_v3_dot(g->normal, c.normal) > TB_R(0.7)) continue;
            /* a little farther than the small depth, in proportion to the large one, for slight
             * tilts */
            const tb_real way = 4 * noise - g->deepest - c.gap / 64;
            explained = contact_ends(&c, pair, tb_v3_scale(g->normal, way));
        }
        if (!explained) points[kept++] = c;
    }
    return kept;
}

/* A point of a region in the plane across its normal. */
struct tb_mesh_spot {
    tb_real u, v;
    int32_t point;
};

TB_STATIC bool spot_before(const tb_mesh_spot *a, const tb_mesh_spot *b)
{
    if (a->u != b->u) return a->u < b->u;
    if (a->v != b->v) return a->v < b->v;
    return a->point < b->point;
}

/* Heap sort: in place, and no worse on sorted input. */
TB_STATIC void sort_spots(tb_mesh_spot *s, int32_t count)
{
    for (int32_t end = count, root = count / 2; end > 1;) {
        if (root > 0) {
            root--;
        } else {
            end--;
            const tb_mesh_spot swap = s[0];
            s[0] = s[end];
            s[end] = swap;
        }
        const tb_mesh_spot item = s[root];
        int32_t hole = root;
        for (int32_t child = 2 * hole + 1; child < end; child = 2 * hole + 1) {
            if (child + 1 < end && spot_before(&s[child], &s[child + 1])) child++;
            if (!spot_before(&item, &s[child])) break;
            s[hole] = s[child];
            hole = child;
        }
        s[hole] = item;
    }
}

/* The same order by all lanes of a team: Batcher's bitonic network (1968); indices beyond the
 * last spot never exchange. */
TB_STATIC void sort_spots_together(tb_mesh_spot *s, int32_t count)
{
    for (int32_t block = 2; block < 2 * count; block *= 2)
        for (int32_t way = block / 2; way > 0; way /= 2) {
            TB_EACH (i, count) {
                const int32_t other = way == block / 2 ? i ^ (block - 1) : i ^ way;
                if (other <= i || other >= count || !spot_before(&s[other], &s[i])) continue;
                const tb_mesh_spot swap = s[i];
                s[i] = s[other];
                s[other] = swap;
            }
            tb_team_sync();
        }
}

/* Whether a, b, c turn left: twice the area exceeds the rounding error of a straight line. */
TB_STATIC bool turns_left(const tb_mesh_spot *a, const tb_mesh_spot *b, const tb_mesh_spot *c,
                          tb_real noise)
{
    const tb_real x1 = b->u - a->u, y1 = b->v - a->v, x2 = c->u - a->u, y2 = c->v - a->v;
    const tb_real length = tb_max(tb_abs(x1) + tb_abs(y1), tb_abs(x2) + tb_abs(y2));
    return x1 * y2 - y1 * x2 > 4 * noise * length;
}

/* Makes abscissas equal that differ only by rounding; otherwise points on one vertical would
 * sort arbitrarily and the chain would lose its ends. */
TB_STATIC void level_spots(tb_mesh_spot *s, int32_t count, tb_real noise)
{
    for (int32_t i = 1, first = 0; i < count; i++) {
        if (s[i].u - s[first].u > 4 * noise) first = i;
        s[i].u = s[first].u;
    }
}

/* Sorts spots, so that equal abscissas are next to each other. together: all lanes of a team
 * call it; else one lane. */
TB_STATIC void arrange_spots(tb_mesh_spot *s, int32_t count, tb_real noise, bool together)
{
    if (together)
        sort_spots_together(s, count);
    else
        sort_spots(s, count);
    if (!together || TB_LEADER) level_spots(s, count, noise);
    if (together) {
        tb_team_sync();
        sort_spots_together(s, count);
    } else {
        sort_spots(s, count);
    }
}

/* Convex hull of arranged spots by Andrew's monotone chain (1979), without corners on straight
 * sides; of coincident points the deepest. `hull` holds 2 x count. Returns its size. */
TB_STATIC int32_t hull_of_spots(tb_mesh_spot *s, int32_t count, const tb_mesh_contact *points,
                                tb_real noise, tb_mesh_spot *hull)
{
    int32_t n = 0;
    for (int32_t i = 0; i < count; i++) {
        int32_t same = -1;
        for (int32_t k = n - 1; k >= 0 && s[i].u - s[k].u <= 4 * noise; k--)
            if (tb_abs(s[i].v - s[k].v) <= 4 * noise) {
                same = k;
                break;
            }
        if (same < 0)
            s[n++] = s[i];
        else if (points[s[i].point].gap < points[s[same].point].gap)
            s[same].point = s[i].point;
    }
    if (n < 3) {
        for (int32_t i = 0; i < n; i++) hull[i] = s[i];
        return n;
    }
    int32_t size = 0;
    for (int32_t i = 0; i < n; i++) {
        while (size >= 2 && !turns_left(&hull[size - 2], &hull[size - 1], &s[i], noise)) size--;
        hull[size++] = s[i];
    }
    const int32_t lower = size + 1;
    for (int32_t i = n - 2; i >= 0; i--) {
        while (size >= lower && !turns_left(&hull[size - 2], &hull[size - 1], &s[i], noise)) size--;
        hull[size++] = s[i];
    }
    return size - 1;
}

/* Marks points of `chosen` until there are TB_MANIFOLD_POINTS: the extremes of the hull along eight
 * directions, or all of a small hull. */
TB_STATIC void choose_from_hull(const tb_mesh_spot *hull, int32_t size, int32_t *chosen,
                                int32_t *count)
{
    static const tb_real directions[TB_MANIFOLD_POINTS][2] = {{1, 0}, {-1, 0},  {0, 1},  {0, -1},
                                                              {1, 1}, {-1, -1}, {1, -1}, {-1, 1}};
    for (int32_t k = 0; k < TB_MANIFOLD_POINTS && *count < TB_MANIFOLD_POINTS; k++) {
        int32_t best = 0;
        if (size <= TB_MANIFOLD_POINTS) {
            if (k >= size) return;
            best = k;
        } else {
            tb_real most = -TB_REAL_MAX;
            for (int32_t i = 0; i < size; i++) {
                const tb_real h = directions[k][0] * hull[i].u + directions[k][1] * hull[i].v;
                if (h > most) most = h, best = i;
            }
        }
        bool known = false;
        for (int32_t i = 0; i < *count; i++) known = known || chosen[i] == hull[best].point;
        if (!known) chosen[(*count)++] = hull[best].point;
    }
}

/* Writes the points of a region as spots, all or only up to depth bound `most`. Returns their
 * number. */
TB_STATIC int32_t lay_spots(const tb_mesh_region *g, const tb_mesh_contact *points,
                            const int32_t *next, tb_real most, tb_mesh_spot *spots)
{
    tb_vec3 t1, t2;
    int32_t n = 0;
    tb_v3_tangents(g->normal, &t1, &t2);
    for (int32_t p = g->first; p >= 0; p = next[p]) {
        if (points[p].gap > most) continue;
        spots[n].u = tb_v3_dot(t1, points[p].on_mesh);
        spots[n].v = tb_v3_dot(t2, points[p].on_mesh);
        spots[n].point = p;
        n++;
    }
    return n;
}

/* Selects the hull of arranged spots, and in the first pass the deepest point of the region if
 * the hull lacks its depth. */
TB_STATIC void choose_spots(tb_mesh_region *g, const tb_mesh_contact *points, tb_real noise,
                            bool first, tb_mesh_spot *spots, int32_t count, tb_mesh_spot *hull)
{
    const int32_t size = hull_of_spots(spots, count, points, noise, hull);
    tb_real depth = TB_REAL_MAX;
    for (int32_t i = 0; i < size; i++) depth = tb_min(depth, points[hull[i].point].gap);
    if (first && depth > g->deepest + 4 * noise) g->chosen[g->kept++] = g->deepest_point;
    choose_from_hull(hull, size, g->chosen, &g->kept);
}

/* Sorts the chosen points and drops coincident ones: a point of the second hull may coincide
 * with one of the first. */
TB_STATIC void order_chosen(tb_mesh_region *g, const tb_mesh_contact *points, tb_real noise)
{
    int32_t *chosen = g->chosen, kept = 0;
    for (int32_t i = 0; i < g->kept; i++) {
        bool twice = false;
        for (int32_t k = 0; k < kept && !twice; k++) {
            const tb_vec3 d = tb_v3_sub(points[chosen[i]].on_mesh, points[chosen[k]].on_mesh);
            twice = tb_v3_length2(d) <= 64 * noise * noise;
        }
        if (!twice) chosen[kept++] = chosen[i];
    }
    /* in the original order */
    for (int32_t i = 1; i < kept; i++) {
        const int32_t p = chosen[i];
        int32_t k = i;
        for (; k > 0 && chosen[k - 1] > p; k--) chosen[k] = chosen[k - 1];
        chosen[k] = p;
    }
    g->kept = kept;
}

TB_EXTERN void tb_mesh_choose(const tb_mesh_contact *points, tb_real noise,
                              const tb_mesh_desk *desk, int32_t number, bool together)
{
    tb_mesh_region *g = &desk->regions[number];
    tb_mesh_spot *spots = desk->spots + g->spots, *hull = desk->hull + 2 * (size_t)g->spots;
    const bool own = !together || TB_LEADER;
    tb_real farthest = g->deepest;
    for (int32_t p = g->first; own && p >= 0; p = desk->next[p])
        farthest = tb_max(farthest, points[p].gap);
    const tb_real near_gap = g->deepest + (farthest - g->deepest) / 8 + 4 * noise;
    if (own) g->kept = 0;

    /* first the hull of the points nearly as deep as the deepest; then the hull of all, if
     * larger */
    for (int pass = 0; pass < 2; pass++) {
        int32_t n = 0;
        if (own && !(pass == 1 && farthest <= near_gap))
            n = lay_spots(g, points, desk->next, pass == 0 ? near_gap : TB_REAL_MAX, spots);
        if (together) {
            tb_team_share(&n, sizeof n);
            tb_team_sync();
        }
        if (n == 0) break;
        arrange_spots(spots, n, noise, together);
        if (own) choose_spots(g, points, noise, pass == 0, spots, n, hull);
    }
    if (own) order_chosen(g, points, noise);
}

/* Gives points with equal feature ids distinct ids, in order. */
TB_STATIC void name_apart(tb_mesh_contact *c, int32_t count)
{
    for (int32_t i = 1; i < count; i++)
        for (int32_t k = 0; k < i; k++) {
            if (c[k].triangle != c[i].triangle || c[k].feature != c[i].feature ||
                c[k].code != c[i].code)
                continue;
            c[i].code = (uint8_t)(c[i].code + 16);
            k = -1;
        }
}

TB_EXTERN bool tb_mesh_desk_take(tb_mesh_desk *desk, int32_t points, tb_arena *arena)
{
    const size_t n = (size_t)points;
    desk->regions = TB_ARENA_ARRAY(arena, tb_mesh_region, n);
    desk->next = TB_ARENA_ARRAY(arena, int32_t, n);
    desk->spots = TB_ARENA_ARRAY(arena, tb_mesh_spot, n);
    desk->hull = TB_ARENA_ARRAY(arena, tb_mesh_spot, 2 * n);
    desk->result = TB_ARENA_ARRAY(arena, tb_mesh_contact, n);
    return desk->regions && desk->next && desk->spots && desk->hull && desk->result;
}

TB_EXTERN tb_mesh_desk tb_mesh_desk_part(const tb_mesh_desk *desk, int32_t first)
{
    return TB_VALUE(tb_mesh_desk){desk->regions + first, desk->next + first, desk->spots + first,
                                  desk->hull + 2 * (size_t)first, desk->result + first};
}

TB_EXTERN int32_t tb_mesh_group(tb_mesh_contact *points, int32_t count, const tb_mesh_pair *pair,
                                tb_real noise, const tb_mesh_desk *desk)
{
    regions r = {.items = desk->regions, .next = desk->next};

    /* drop faces that are not the contact, and depths that smaller depths explain */
    for (int32_t p = 0; p < count; p++) region_add(&r, points, p, true, noise);
    for (int32_t i = 0; i < r.count; i++) {
        tb_mesh_region *g = &r.items[i];
        g->dropped = region_is_cut(&r, g, points, noise);
        for (int32_t p = g->first; p >= 0; p = r.next[p]) points[p].cut = g->dropped;
    }
    for (int32_t p = 0; p < count; p++) {
        tb_mesh_contact *c = &points[p];
        if (c->instead_of >= 0 && !points[c->instead_of].cut) c->witness = true;
    }
    int32_t kept = 0;
    for (int32_t p = 0; p < count; p++)
        if (!points[p].cut && !points[p].witness) points[kept++] = points[p];
    kept = drop_explained(points, kept, &r, pair, noise);

    /* group the rest by normal */
    r.count = 0;
    for (int32_t p = 0; p < kept; p++) region_add(&r, points, p, false, noise);
    for (int32_t i = 0, spots = 0; i < r.count; spots += r.items[i++].count)
        r.items[i].spots = spots;
    return r.count;
}

TB_EXTERN int32_t tb_mesh_region_size(const tb_mesh_desk *desk, int32_t number)
{
    return desk->regions[number].count;
}

TB_EXTERN int32_t tb_mesh_gather(const tb_mesh_contact *points, const tb_mesh_desk *desk,
                                 int32_t number)
{
    int32_t total = 0;
    for (int32_t i = 0; i < number; i++) {
        const tb_mesh_region *g = &desk->regions[i];
        for (int32_t k = 0; k < g->kept; k++) desk->result[total++] = points[g->chosen[k]];
    }
    name_apart(desk->result, total);
    return total;
}
