/* Contacts of convex outlines in the plane: the axis of largest separation, and the incident edge clipped
 * to the reference face (Gottschalk 1996; Catto, GDC 2007). Corners that face corners across a gap touch
 * along the line between them, so that gaps are distances. */
#include "step/planar/planar.h"

#include "base/parallel.h"

#include <math.h>
#include <stdlib.h>

static const double SAME_M =
    1e-9; /* separations that count as equal: the first outline's face is kept */

typedef struct outline {
    const tb_planar_vec *p, *normals; /* corners; of the edge behind each */
    int32_t n;
} outline;

static outline outline_of(const tb_planar_world *w, int32_t shape)
{
    const tb_planar_shape *s = &w->shapes[shape];
    return (outline){w->points + s->first, w->normals + s->first, s->count};
}

static double dot(tb_planar_vec a, tb_planar_vec b)
{
    return a.x * b.x + a.y * b.y;
}

static tb_planar_vec minus(tb_planar_vec a, tb_planar_vec b)
{
    return (tb_planar_vec){a.x - b.x, a.y - b.y};
}

static tb_planar_vec plus(tb_planar_vec a, double s, tb_planar_vec b)
{
    return (tb_planar_vec){a.x + s * b.x, a.y + s * b.y};
}

/* The face of `a` from which `b` is farthest. */
static double largest_separation(outline a, outline b, int32_t *face)
{
    double largest = -INFINITY;
    for (int32_t i = 0; i < a.n; i++) {
        const tb_planar_vec n = a.normals[i];
        double least = INFINITY;
        for (int32_t k = 0; k < b.n; k++) {
            const double apart = dot(n, minus(b.p[k], a.p[i]));
            if (apart < least) least = apart;
        }
        if (least > largest + SAME_M) {
            largest = least;
            *face = i;
        }
    }
    return largest;
}

static int32_t incident_edge(outline o, tb_planar_vec normal)
{
    int32_t edge = 0;
    double least = INFINITY;
    for (int32_t i = 0; i < o.n; i++) {
        const double d = dot(o.normals[i], normal);
        if (d < least - SAME_M) {
            least = d;
            edge = i;
        }
    }
    return edge;
}

static uint64_t feature_of(bool flipped, int32_t face, int32_t edge, int32_t end)
{
    return (uint64_t)flipped << 63 | (uint64_t)face << 33 | (uint64_t)edge << 2 | (uint64_t)end;
}

/* Corner against corner: the nearest pair of ends of both edges. */
static int32_t corner_pair(outline ref, int32_t face, outline other, int32_t edge, bool flipped,
                           double reach, tb_planar_contact *c)
{
    double nearest = INFINITY;
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            const tb_planar_vec p = ref.p[(face + i) % ref.n], q = other.p[(edge + k) % other.n];
            const tb_planar_vec d = minus(q, p);
            const double gap = hypot(d.x, d.y);
            if (!(gap < nearest) || gap == 0) continue;
            nearest = gap;
            const double sign = flipped ? -1 / gap : 1 / gap;
            c->gap = gap;
            c->normal = (tb_planar_vec){sign * d.x, sign * d.y};
            c->point = plus(p, 0.5, d);
            c->feature = feature_of(flipped, face, edge, 2) | (uint64_t)(2 * i + k) << 58;
        }
    return nearest <= reach;
}

static int32_t polygon_pair(outline a, outline b, double reach, tb_planar_contact *contacts)
{
    int32_t face = 0, face_b = 0, count = 0;
    double separation = largest_separation(a, b, &face);
    const double separation_b = largest_separation(b, a, &face_b);
    const bool flipped = separation_b > separation + SAME_M;
    if (flipped) separation = separation_b;
    if (separation > reach) return 0;
    const outline ref = flipped ? b : a, other = flipped ? a : b;
    if (flipped) face = face_b;
    const tb_planar_vec n = ref.normals[face];
    const int32_t edge = incident_edge(other, n);
    const tb_planar_vec along = {-n.y, n.x}, start = ref.p[face];
    const double length = dot(along, minus(ref.p[(face + 1) % ref.n], start));
    const tb_planar_vec p = other.p[edge], q = other.p[(edge + 1) % other.n];
    const double tp = dot(along, minus(p, start)), tq = dot(along, minus(q, start));
    if (fmax(tp, tq) < 0 || fmin(tp, tq) > length)
        return separation > 0 ? corner_pair(ref, face, other, edge, flipped, reach, contacts) : 0;

    for (int end = 0; end < 2; end++) {
        /* an end of the incident edge, or where it leaves the strip of the face */
        tb_planar_vec at = end == 0 ? p : q;
        const double own = end == 0 ? tp : tq;
        const double inside = fmin(fmax(own, 0), length);
        if (inside != own) at = plus(p, (inside - tp) / (tq - tp), minus(q, p));
        const double gap = dot(n, minus(at, start));
        if (gap > reach) continue;
        tb_planar_contact *c = &contacts[count++];
        c->gap = gap;
        c->normal = flipped ? (tb_planar_vec){-n.x, -n.y} : n;
        c->point = plus(at, -gap / 2, n);
        c->feature = feature_of(flipped, face, edge, end);
    }
    return count;
}

/* A disc against a polygon: normal from the polygon to the disc. */
static int32_t polygon_disc(outline a, tb_planar_vec centre, double radius, double reach,
                            tb_planar_contact *c)
{
    int32_t face = 0;
    const double separation = largest_separation(a, (outline){&centre, NULL, 1}, &face);
    const tb_planar_vec p = a.p[face], q = a.p[(face + 1) % a.n], n = a.normals[face];
    const tb_planar_vec along = {-n.y, n.x};
    const double t = dot(along, minus(centre, p)), length = dot(along, minus(q, p));
    double distance = separation;
    tb_planar_vec normal = n;
    c->feature = (uint64_t)face << 2;
    if (separation > 0 && (t < 0 || t > length)) {
        const tb_planar_vec d = minus(centre, t < 0 ? p : q);
        distance = hypot(d.x, d.y);
        normal = (tb_planar_vec){d.x / distance, d.y / distance};
        c->feature |= t < 0 ? 1 : 2;
    }
    c->gap = distance - radius;
    c->normal = normal;
    c->point = plus(centre, -(radius + c->gap / 2), normal);
    return c->gap <= reach;
}

static int32_t disc_pair(const tb_planar_world *w, const tb_planar_shape *a,
                         const tb_planar_shape *b, double reach, tb_planar_contact *c)
{
    const tb_planar_vec p = w->points[a->first], d = minus(w->points[b->first], p);
    const double distance = hypot(d.x, d.y);
    c->normal = (tb_planar_vec){0, 1};
    if (distance > 0) c->normal = (tb_planar_vec){d.x / distance, d.y / distance};
    c->gap = distance - a->radius - b->radius;
    c->point = plus(p, a->radius + c->gap / 2, c->normal);
    c->feature = 0;
    return c->gap <= reach;
}

/* A half plane against anything else: its one or two nearest corners. */
static int32_t half_plane(const tb_planar_world *w, const tb_planar_shape *plane,
                          const tb_planar_shape *s, double reach, tb_planar_contact *contacts)
{
    const tb_planar_vec n = w->points[plane->first];
    const double offset = w->points[plane->first + 1].x;
    int32_t best[2] = {-1, -1};
    double gaps[2] = {INFINITY, INFINITY};
    for (int32_t i = 0; i < s->count; i++) {
        const double gap = dot(n, w->points[s->first + i]) - offset - s->radius;
        if (gap < gaps[0]) {
            gaps[1] = gaps[0];
            best[1] = best[0];
            gaps[0] = gap;
            best[0] = i;
        } else if (gap < gaps[1]) {
            gaps[1] = gap;
            best[1] = i;
        }
    }
    int32_t count = 0;
    for (int k = 0; k < 2; k++) {
        if (best[k] < 0 || gaps[k] > reach) continue;
        tb_planar_contact *c = &contacts[count++];
        c->gap = gaps[k];
        c->normal = n;
        c->point = plus(w->points[s->first + best[k]], -(s->radius + gaps[k] / 2), n);
        c->feature = (uint64_t)best[k];
    }
    return count;
}

static bool is_half_plane(const tb_planar_shape *s)
{
    return s->count == 1 && s->radius == 0;
}

int32_t tb_planar_collide(const tb_planar_world *w, int32_t a, int32_t b, double reach,
                          tb_planar_contact contacts[TB_PLANAR_MOST_POINTS])
{
    const tb_planar_shape *p = &w->shapes[a], *q = &w->shapes[b];
    int32_t count = 0;
    bool turned = false;
    if (is_half_plane(p)) {
        count = half_plane(w, p, q, reach, contacts);
    } else if (is_half_plane(q)) {
        count = half_plane(w, q, p, reach, contacts);
        turned = true;
    } else if (p->radius > 0 && q->radius > 0) {
        count = disc_pair(w, p, q, reach, contacts);
    } else if (q->radius > 0) {
        count = polygon_disc(outline_of(w, a), w->points[q->first], q->radius, reach, contacts);
    } else if (p->radius > 0) {
        count = polygon_disc(outline_of(w, b), w->points[p->first], p->radius, reach, contacts);
        turned = true;
    } else {
        count = polygon_pair(outline_of(w, a), outline_of(w, b), reach, contacts);
    }
    for (int32_t i = 0; i < count; i++) {
        contacts[i].a = a;
        contacts[i].b = b;
        if (turned)
            contacts[i].normal = (tb_planar_vec){-contacts[i].normal.x, -contacts[i].normal.y};
    }
    return count;
}

/* ---- pairs ---- */

typedef struct interval {
    double lower, upper, low, high; /* along x; along y */
    double way;                     /* m, that the shape may go within the step */
    int32_t shape;
} interval;

static int by_lower(const void *a, const void *b)
{
    const interval *x = a, *y = b;
    if (x->lower != y->lower) return x->lower < y->lower ? -1 : 1;
    return x->shape < y->shape ? -1 : 1;
}

typedef struct pair {
    int32_t a, b;
    double reach;
} pair;

static interval interval_of(const tb_planar_world *w, int32_t i, double dt, double margin)
{
    const tb_planar_shape *s = &w->shapes[i];
    interval v = {-INFINITY, INFINITY, -INFINITY, INFINITY, 0, i};
    if (s->owner >= 0) {
        const double *u = w->bodies[s->owner].velocity;
        v.way = dt * (hypot(u[0], u[1]) + fabs(u[2]) * s->reach);
    }
    if (is_half_plane(s)) return v;
    const double around = v.way + margin / 2;
    v.lower = s->centre.x - s->half.x - around;
    v.upper = s->centre.x + s->half.x + around;
    v.low = s->centre.y - s->half.y - around;
    v.high = s->centre.y + s->half.y + around;
    return v;
}

/* A list in an arena that grows by doubling: the old half is given back with the arena. */
static bool push(tb_arena *arena, void **items, int32_t count, int32_t *capacity, size_t size)
{
    if (count < *capacity) return true;
    const int32_t wanted = *capacity ? 2 * *capacity : 256;
    char *grown = tb_arena_take_array(arena, (size_t)wanted, size);
    if (!grown) return false;
    for (size_t i = 0; i < (size_t)count * size; i++) grown[i] = ((const char *)*items)[i];
    *items = grown;
    *capacity = wanted;
    return true;
}

/* Most moves of the insertion sort below, as a multiple of the intervals. */
enum { MOVES_OF_INTERVAL = 16 };

/* Sorts the intervals, which stand in the order of the last detection. Shapes move little from step
 * to step, so an insertion sort mostly moves few of them. */
static void sort_intervals(const tb_planar_world *w, interval *v)
{
    const int32_t n = w->number_of_shapes;
    int64_t left = (int64_t)MOVES_OF_INTERVAL * n;
    for (int32_t i = 1; i < n && left >= 0; i++) {
        const interval own = v[i];
        int32_t k = i;
        for (; k > 0 && by_lower(&v[k - 1], &own) > 0; k--) v[k] = v[k - 1];
        v[k] = own;
        left -= i - k;
    }
    if (left < 0) qsort(v, (size_t)n, sizeof *v, by_lower);
    for (int32_t i = 0; i < n; i++) w->sorted[i] = v[i].shape;
}

/* Sorts pairs by their shapes: by the first into stretches, in each of which the few second ones are
 * inserted. */
static bool sort_pairs(const tb_planar_world *w, tb_arena *arena, pair **pairs, int32_t count)
{
    const int32_t n = w->number_of_shapes;
    const pair *from = *pairs;
    int32_t *end = TB_ARENA_ZEROED(arena, int32_t, (size_t)n + 2);
    pair *to = TB_ARENA_ARRAY(arena, pair, count);
    if (!end || !to) return false;
    for (int32_t i = 0; i < count; i++) end[from[i].a + 2]++;
    for (int32_t a = 0; a < n; a++) end[a + 2] += end[a + 1];
    for (int32_t i = 0; i < count; i++) to[end[from[i].a + 1]++] = from[i];
    for (int32_t i = 1; i < count; i++) {
        const pair own = to[i];
        int32_t k = i;
        for (; k > 0 && to[k - 1].a == own.a && to[k - 1].b > own.b; k--) to[k] = to[k - 1];
        to[k] = own;
    }
    *pairs = to;
    return true;
}

static tb_status find_pairs(const tb_planar_world *w, double dt, double margin, tb_arena *arena,
                            pair **pairs, int32_t *count)
{
    const int32_t n = w->number_of_shapes;
    interval *v = TB_ARENA_ARRAY(arena, interval, n);
    int32_t capacity = 0;
    void *list = NULL;
    *count = 0;
    if (!v) return TB_RESOURCE_EXHAUSTED;
    for (int32_t i = 0; i < n; i++) v[i] = interval_of(w, w->sorted[i], dt, margin);
    sort_intervals(w, v);
    for (int32_t i = 0; i < n; i++)
        for (int32_t k = i + 1; k < n && v[k].lower <= v[i].upper; k++) {
            if (v[k].low > v[i].high || v[i].low > v[k].high) continue;
            const int32_t a = v[i].shape < v[k].shape ? v[i].shape : v[k].shape;
            const int32_t b = v[i].shape < v[k].shape ? v[k].shape : v[i].shape;
            if (w->shapes[a].owner == w->shapes[b].owner) continue;
            if (!tb_model_shapes_collide(w->model, w->shapes[a].shape, w->shapes[b].shape))
                continue;
            if (!push(arena, &list, *count, &capacity, sizeof(pair))) return TB_RESOURCE_EXHAUSTED;
            ((pair *)list)[(*count)++] = (pair){a, b, margin + v[i].way + v[k].way};
        }
    *pairs = list;
    return *count == 0 || sort_pairs(w, arena, pairs, *count) ? TB_OK : TB_RESOURCE_EXHAUSTED;
}

enum { PAIRS_AT_ONCE = 64 };

/* Pairs and their contacts, each pair in places of its own. */
typedef struct detection {
    const tb_planar_world *world;
    const pair *pairs;
    tb_planar_contact *contacts; /* TB_PLANAR_MOST_POINTS a pair */
    int32_t *found;              /* pairs */
} detection;

static void collide_pair(void *context, int32_t i, int32_t thread)
{
    const detection *d = context;
    const pair *p = &d->pairs[i];
    (void)thread;
    d->found[i] = tb_planar_collide(d->world, p->a, p->b, p->reach,
                                    d->contacts + TB_PLANAR_MOST_POINTS * (int64_t)i);
}

tb_status tb_planar_detect(const tb_planar_world *w, double dt, double margin, int32_t threads,
                           tb_arena *arena, tb_planar_contact **contacts, int32_t *count)
{
    pair *pairs = NULL;
    int32_t number = 0;
    *count = 0;
    const tb_status status = find_pairs(w, dt, margin, arena, &pairs, &number);
    if (status != TB_OK) return status;
    detection d = {.world = w, .pairs = pairs};
    d.contacts = TB_ARENA_ARRAY(arena, tb_planar_contact, TB_PLANAR_MOST_POINTS * (int64_t)number);
    d.found = TB_ARENA_ARRAY(arena, int32_t, number);
    if (!d.contacts || !d.found) return TB_RESOURCE_EXHAUSTED;
    tb_parallel_for(number, PAIRS_AT_ONCE, threads, collide_pair, &d);
    for (int32_t i = 0; i < number; i++)
        for (int32_t k = 0; k < d.found[i]; k++)
            d.contacts[(*count)++] = d.contacts[TB_PLANAR_MOST_POINTS * (int64_t)i + k];
    *contacts = d.contacts;
    return TB_OK;
}
