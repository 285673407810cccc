/* The thesis's third generation of intersections with its traversals on a card: bodies are placed here, all
 * triangles of all pairs go down the trees there, and the surfaces are measured here.
 *
 * The card returns parts in an order that depends on its lanes; they are sorted by their triangle and their
 * corners before they are added up, so that runs repeat to the byte. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend.h"
#include "penalty/bsp_internal.h"
#include "penalty/card/measure_card.h"

enum { USUAL_LIMIT = 5000 };

/* Triangles of a batch. */
typedef struct card_batch {
    tb_traversal_node *nodes;
    tb_traversal_source *sources;
    tb_traversal_part *parts;
    int32_t number_of_sources, source_capacity, number_of_parts, part_capacity;
} card_batch;

int32_t tb_traversal_way_of(const char *method)
{
    static const char *const NAMES[] = {"gpu_recursive", "gpu_iterative", "gpu_hybrid",
                                        "gpu_shared", "gpu_own"};
    for (int32_t i = 0; i < (int32_t)(sizeof NAMES / sizeof *NAMES); i++)
        if (strcmp(method, NAMES[i]) == 0) return i;
    return -1;
}

static void batch_free(card_batch *b)
{
    free(b->nodes);
    free(b->sources);
    free(b->parts);
}

/* All inverted trees at their poses, one behind the other as the bodies' nodes. */
static bool place_nodes(const tb_bsp *bsp, card_batch *b)
{
    const tb_bsp_batch *batch = &bsp->batch;
    b->nodes = malloc(((size_t)batch->number_of_nodes + 1) * sizeof *b->nodes);
    if (!b->nodes) return false;
    for (int32_t i = 0; i < batch->number_of_bodies; i++) {
        const tb_bsp_body *x = &batch->bodies[i];
        const tb_bsp_tree *tree = &bsp->trees[x->tree];
        for (int32_t k = 0; k < tree->count; k++) {
            const tb_bsp_node *from = &tree->nodes[k];
            tb_traversal_node *to = &b->nodes[x->node + k];
            const tb_bsp_plane plane = tb_bsp_place_plane(&from->plane, &x->pose, -1);
            memcpy(to->plane, plane.n, sizeof to->plane);
            to->front = from->back >= 0 ? x->node + from->back : TB_TRAVERSAL_KEPT;
            to->back = from->front >= 0 ? x->node + from->front : TB_TRAVERSAL_DROPPED;
        }
    }
    return true;
}

static bool add_part(card_batch *b, const tb_traversal_part *part)
{
    tb_traversal_part *parts =
        tb_grow(b->parts, b->number_of_parts + 1, &b->part_capacity, sizeof *parts);
    if (!parts) return false;
    b->parts = parts;
    b->parts[b->number_of_parts++] = *part;
    return true;
}

static bool add_triangle(card_batch *b, const tb_bsp_triangle *t, int32_t pair, int32_t root,
                         double turn)
{
    tb_traversal_source *sources =
        tb_grow(b->sources, b->number_of_sources + 1, &b->source_capacity, sizeof *sources);
    if (!sources) return false;
    b->sources = sources;
    tb_traversal_source *s = &b->sources[b->number_of_sources];
    *s = (tb_traversal_source){.turn = turn, .pair = pair, .second = t->second};
    memcpy(s->plane, t->plane.n, sizeof s->plane);
    tb_traversal_part part = {.source = b->number_of_sources++, .node = root};
    memcpy(part.corner, t->corner, sizeof part.corner);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < 3; i++) s->size = fmax(s->size, fabs(t->corner[k][i]));
    return add_part(b, &part);
}

/* B's triangles near A and A's near B, of every pair whose boxes meet. */
static bool gather_all(tb_bsp *bsp, int32_t count, card_batch *b)
{
    tb_bsp_triangles *list = &bsp->surface[0];
    for (int32_t i = 0; i < count; i++) {
        const tb_bsp_body *x = &bsp->batch.bodies[bsp->batch.ends[2 * i]],
                          *y = &bsp->batch.bodies[bsp->batch.ends[2 * i + 1]];
        bool apart = false;
        for (int k = 0; k < 3; k++)
            apart = apart || x->box[k] > y->box[3 + k] || y->box[k] > x->box[3 + k];
        if (apart) continue;
        if (!tb_bsp_gather(bsp, y, x->box, true, list)) return false;
        for (int32_t k = 0; k < list->count; k++)
            if (!add_triangle(b, &list->items[k], i, x->node, 1)) return false;
        if (!tb_bsp_gather(bsp, x, y->box, false, list)) return false;
        for (int32_t k = 0; k < list->count; k++)
            if (!add_triangle(b, &list->items[k], i, y->node, -1)) return false;
    }
    return true;
}

static tb_status go_down(const tb_backend *gpu, const tb_bsp *bsp, const card_batch *b,
                         const tb_traversal_part *parts, int32_t count, tb_traversal *t,
                         double *seconds, tb_error *error)
{
    t->nodes = b->nodes;
    t->sources = b->sources;
    t->parts = parts;
    t->number_of_nodes = bsp->batch.number_of_nodes;
    t->number_of_sources = b->number_of_sources;
    t->number_of_parts = count;
    const tb_status status = gpu->traverse_trees(0, t, error);
    *seconds += t->seconds;
    return status;
}

static int compare_parts(const void *a, const void *b)
{
    const tb_traversal_part *x = a, *y = b;
    if (x->source != y->source) return x->source < y->source ? -1 : 1;
    return memcmp(x->corner, y->corner, sizeof x->corner);
}

/* Parts of B that lay in a plane of A go down A's tree again, turned, which removes the second of two
 * flush faces; all others stay. */
static tb_status clip_flush(const tb_backend *gpu, const tb_bsp *bsp, card_batch *b,
                            tb_traversal *t, double *seconds, tb_error *error)
{
    tb_traversal_part *kept = t->kept;
    int32_t count = 0, stay = 0;
    const int32_t all = t->number_of_kept;
    b->number_of_parts = 0;
    for (int32_t i = 0; i < all; i++) {
        const tb_traversal_source *s = &b->sources[kept[i].source];
        if (!s->second || !kept[i].flush) {
            kept[stay++] = kept[i];
            continue;
        }
        tb_traversal_part again = kept[i];
        again.node = bsp->batch.bodies[bsp->batch.ends[2 * s->pair]].node;
        if (!add_part(b, &again)) return tb_fail_memory(error, 0, "flush faces");
        count++;
    }
    t->number_of_kept = stay;
    if (count == 0) return TB_OK;
    for (int32_t i = 0; i < b->number_of_sources; i++)
        if (b->sources[i].second) b->sources[i].turn = -1;
    tb_status status = go_down(gpu, bsp, b, b->parts, count, t, seconds, error);
    tb_traversal_part *more = t->kept;
    const int32_t added = status == TB_OK ? t->number_of_kept : 0;
    tb_traversal_part *joined = realloc(kept, ((size_t)stay + (size_t)added + 1) * sizeof *joined);
    if (joined) kept = joined;
    if (status == TB_OK && !joined) status = tb_fail_memory(error, 0, "flush faces");
    if (status == TB_OK) memcpy(kept + stay, more, (size_t)added * sizeof *kept);
    if (status == TB_OK || more != kept) free(more);
    t->kept = kept;
    t->number_of_kept = status == TB_OK ? stay + added : 0;
    return status;
}

/* The results of all pairs from parts in the order of their pairs. */
static tb_status measure_all(tb_bsp *bsp, const card_batch *b, const tb_traversal *t,
                             const tb_solid_pair *pairs, int32_t count, tb_bsp_result *results,
                             tb_error *error)
{
    tb_bsp_triangles *list = &bsp->pool;
    for (int32_t i = 0, next = 0; i < count; i++) {
        list->count = 0;
        for (; next < t->number_of_kept && b->sources[t->kept[next].source].pair == i; next++) {
            const tb_traversal_part *x = &t->kept[next];
            tb_bsp_triangle triangle = {.second = b->sources[x->source].second != 0};
            memcpy(triangle.corner, x->corner, sizeof triangle.corner);
            if (!tb_bsp_add(list, &triangle)) return tb_fail_memory(error, 0, "an intersection");
        }
        if (tb_bsp_measure(list, &results[i])) continue;
        const tb_status status = tb_bsp_by_pieces(bsp, &pairs[i], &results[i], error);
        if (status != TB_OK) return status;
        results[i].mended = true;
    }
    return TB_OK;
}

tb_status tb_bsp_card_intersect(tb_bsp *bsp, tb_traversal_way way, int32_t limit,
                                const tb_solid_pair *pairs, int32_t count, tb_bsp_result *results,
                                double *seconds, tb_error *error)
{
    const tb_backend *gpu = NULL;
    card_batch b = {.nodes = NULL};
    tb_traversal t = {.way = way, .limit = limit > 0 ? limit : USUAL_LIMIT};
    *seconds = 0;
    tb_status status = tb_backend_find(TB_BACKEND_GPU, &gpu, error);
    if (status == TB_OK && !gpu->traverse_trees)
        return tb_fail_field(error, TB_UNSUPPORTED, "backend", "backend '%s' has no BSP trees",
                             gpu->name);
    if (status != TB_OK) return status;
    if (!tb_bsp_batch_begin(bsp, pairs, count) || !place_nodes(bsp, &b) ||
        !gather_all(bsp, count, &b))
        status = tb_fail_memory(error, 0, "a batch of intersections");
    if (status == TB_OK)
        status = go_down(gpu, bsp, &b, b.parts, b.number_of_parts, &t, seconds, error);
    if (status == TB_OK) status = clip_flush(gpu, bsp, &b, &t, seconds, error);
    if (status == TB_OK) {
        if (t.number_of_kept > 0)
            qsort(t.kept, (size_t)t.number_of_kept, sizeof *t.kept, compare_parts);
        status = measure_all(bsp, &b, &t, pairs, count, results, error);
    }
    free(t.kept);
    batch_free(&b);
    return status;
}
