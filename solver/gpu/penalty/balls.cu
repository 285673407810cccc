/* Worlds of balls by the volume law on a GPU: all steps of a call in one cooperative launch, a shape a lane.
 *
 * An evaluation has two parts with one barrier between them: every ball shows its place and enters a hash table
 * of cubes; then every ball adds up the forces of its partners. Tables and places are used by turns, so
 * that the next evaluation needs no further barrier. An entry of a table bears the number of its
 * evaluation, so that tables are never cleared. A slot is a list in the order in which lanes came;
 * partners are sorted by their number, so that sums do not depend on it. Double only; the float build of
 * this file is empty. */
#ifndef TB_SINGLE
#include "gpu/penalty/balls.h"
#include "gpu/qp/grid.h"

/* A lane's part of the work: items from `first` to `end` in steps of `apart`, an item a shape of a world. */
typedef struct balls_lane {
    int64_t first, end, apart;
    meeting *place; /* NULL: the block is alone */
} balls_lane;

/* The evaluation that is being made. */
typedef struct balls_turn {
    uint32_t stamp; /* from 1 */
    int turn;       /* 0 or 1 */
    int32_t stage, step;
} balls_turn;

TB_CARD void meet_balls(const balls_lane *t)
{
    if (t->place != NULL)
        meet(t->place, (int)gridDim.x);
    else
        __syncthreads();
}

/* ---- showing ---- */

/* Whether a world's motion has ended in an earlier step; it need not be followed. */
TB_CARD bool has_ended(const tb_gpu_balls *g, const balls_turn *e, int32_t world)
{
    return *(const volatile int32_t *)&g->diverged[world] < e->step;
}

TB_CARD void enter_table(const tb_gpu_balls *g, const balls_turn *e, int32_t world, int32_t shape,
                         const double *seen)
{
    const double per_metre = g->scene.cubes_per_metre;
    const int64_t shapes = (int64_t)g->worlds * g->scene.shapes;
    const uint32_t slot =
        tb_balls_slot(tb_balls_cube(seen[0], per_metre), tb_balls_cube(seen[1], per_metre),
                      tb_balls_cube(seen[2], per_metre), g->slots);
    unsigned long long *head = g->heads + (int64_t)(e->turn * g->worlds + world) * g->slots + slot;
    const unsigned long long own = (unsigned long long)e->stamp << 32 | (uint32_t)shape;
    const unsigned long long before = atomicExch(head, own);
    const bool first = (uint32_t)(before >> 32) != e->stamp;
    g->next[e->turn * shapes + (int64_t)world * g->scene.shapes + shape] =
        first ? -1 : (int32_t)(uint32_t)before;
}

/* Moves a body to the stage's point and shows its ball. */
TB_CARD void show_item(const tb_gpu_balls *g, const balls_turn *e, int64_t item)
{
    const tb_balls_scene *s = &g->scene;
    const int32_t world = (int32_t)(item / s->shapes), shape = (int32_t)(item % s->shapes);
    const tb_ball *ball = &s->balls[shape];
    double *seen = g->seen + TB_BALLS_SEEN * (e->turn * (int64_t)g->worlds * s->shapes + item);
    if (!(ball->radius > 0) || has_ended(g, e, world)) return;
    if (ball->body < 0) {
        tb_balls_show_fixed(ball, seen);
    } else {
        const int64_t body = (int64_t)world * s->bodies + ball->body;
        const size_t apart = (size_t)g->worlds * (size_t)s->bodies * TB_VOLUME_NUMBERS;
        double *point = g->point + TB_VOLUME_NUMBERS * body;
        tb_volume_point(&g->method, e->stage, g->y + TB_VOLUME_NUMBERS * body,
                       g->slopes + TB_VOLUME_NUMBERS * body, apart, point);
        if (!tb_volume_finite(point, TB_VOLUME_WORK)) atomicMin(&g->diverged[world], e->step);
        tb_balls_show(ball, point, seen);
    }
    if (!g->scans) enter_table(g, e, world, shape, seen);
}

/* ---- partners ---- */

/* Partners of the least numbers above `after`, ascending. */
typedef struct partner_list {
    int32_t shapes[TB_BALLS_PARTNERS];
    int32_t count, after;
} partner_list;

TB_CARD void list_partner(partner_list *list, int32_t shape)
{
    int32_t at = list->count;
    while (at > 0 && list->shapes[at - 1] > shape) at--;
    if (at == TB_BALLS_PARTNERS || (at > 0 && list->shapes[at - 1] == shape)) return;
    const bool full = list->count == TB_BALLS_PARTNERS;
    for (int32_t k = full ? TB_BALLS_PARTNERS - 1 : list->count; k > at; k--)
        list->shapes[k] = list->shapes[k - 1];
    list->shapes[at] = shape;
    if (!full) list->count++;
}

/* Balls of a slot that are near a ball. */
TB_CARD void look_at_slot(const tb_gpu_balls *g, const balls_turn *e, int32_t world, int32_t shape,
                          const double *all_seen, uint32_t slot, partner_list *list)
{
    const tb_balls_scene *s = &g->scene;
    const tb_ball *own = &s->balls[shape];
    const int32_t *next = g->next + (int64_t)(e->turn * g->worlds + world) * s->shapes;
    const unsigned long long head =
        g->heads[(int64_t)(e->turn * g->worlds + world) * g->slots + slot];
    if ((uint32_t)(head >> 32) != e->stamp) return;
    for (int32_t k = (int32_t)(uint32_t)head; k >= 0; k = next[k]) {
        if (k == shape || k <= list->after) continue;
        const tb_ball *other = &s->balls[k];
        if (tb_balls_collide(own, other) &&
            tb_balls_near(all_seen + (int64_t)TB_BALLS_SEEN * shape, own->radius,
                          all_seen + (int64_t)TB_BALLS_SEEN * k, other->radius))
            list_partner(list, k);
    }
}

/* All shapes of a small world one after another, which takes less time than the cubes around a ball. */
TB_CARD void scan_partners(const tb_gpu_balls *g, int32_t shape, const double *all_seen,
                           partner_list *list)
{
    const tb_balls_scene *s = &g->scene;
    const tb_ball *own = &s->balls[shape];
    const double *seen = all_seen + (int64_t)TB_BALLS_SEEN * shape;
    list->count = 0;
    for (int32_t k = list->after + 1; k < s->shapes && list->count < TB_BALLS_PARTNERS; k++) {
        const tb_ball *other = &s->balls[k];
        if (k != shape && tb_balls_collide(own, other) &&
            (!(other->radius > 0) || tb_balls_near(seen, own->radius,
                                                   all_seen + (int64_t)TB_BALLS_SEEN * k,
                                                   other->radius)))
            list->shapes[list->count++] = k;
    }
}

TB_CARD void find_partners(const tb_gpu_balls *g, const balls_turn *e, int32_t world, int32_t shape,
                           const double *all_seen, partner_list *list)
{
    const double *x = all_seen + (int64_t)TB_BALLS_SEEN * shape;
    const double per_metre = g->scene.cubes_per_metre;
    const int32_t cx = tb_balls_cube(x[0], per_metre), cy = tb_balls_cube(x[1], per_metre),
                  cz = tb_balls_cube(x[2], per_metre);
    if (g->scans) {
        scan_partners(g, shape, all_seen, list);
        return;
    }
    list->count = 0;
    for (int32_t dz = -1; dz <= 1; dz++)
        for (int32_t dy = -1; dy <= 1; dy++)
            for (int32_t dx = -1; dx <= 1; dx++)
                look_at_slot(g, e, world, shape, all_seen,
                             tb_balls_slot(cx + dx, cy + dy, cz + dz, g->slots), list);
    /* a plane has no box: it is near all */
    for (int32_t i = 0; i < g->scene.planes; i++) {
        const int32_t k = g->scene.plane[i];
        if (k > list->after && tb_balls_collide(&g->scene.balls[shape], &g->scene.balls[k]))
            list_partner(list, k);
    }
}

/* The forces of all contacts of a ball. */
TB_CARD void add_forces(const tb_gpu_balls *g, const balls_turn *e, int32_t world, int32_t shape,
                        tb_volume_sum *sum)
{
    const tb_balls_scene *s = &g->scene;
    const double *all_seen =
        g->seen + TB_BALLS_SEEN * (int64_t)(e->turn * g->worlds + world) * s->shapes;
    const tb_ball *own = &s->balls[shape];
    double still[TB_BALLS_SEEN];
    partner_list list;
    for (int k = 0; k < TB_BALLS_SEEN; k++) still[k] = 0;
    list.after = -1;
    do {
        find_partners(g, e, world, shape, all_seen, &list);
        for (int32_t i = 0; i < list.count; i++) {
            const int32_t other = list.shapes[i];
            const tb_ball *ball = &s->balls[other];
            const double *seen = all_seen + (int64_t)TB_BALLS_SEEN * shape;
            const double *shown =
                ball->radius > 0 ? all_seen + (int64_t)TB_BALLS_SEEN * other : still;
            const bool first = shape < other;
            tb_balls_push(first ? own : ball, first ? seen : shown, first ? ball : own,
                          first ? shown : seen, first, first || ball->body < 0, sum);
        }
        list.after = list.count > 0 ? list.shapes[list.count - 1] : 0;
    } while (list.count == TB_BALLS_PARTNERS);
}

/* ---- a part of a step ---- */

/* The slope of a body at its point under the forces of its contacts. */
TB_CARD void slope_of_body(const tb_gpu_balls *g, int32_t body_of_world, int64_t body,
                           const tb_volume_sum *sum, double *slope)
{
    tb_balls_slope(&g->scene.free_bodies[body_of_world], g->scene.gravity,
                   g->point + TB_VOLUME_NUMBERS * body, g->forces + TB_VOLUME_FORCES * body, sum,
                   slope);
}

/* The slope of a ball's body; after the last stage its numbers at the end of the step. */
TB_CARD void push_item(const tb_gpu_balls *g, const balls_turn *e, int64_t item)
{
    const tb_balls_scene *s = &g->scene;
    const int32_t world = (int32_t)(item / s->shapes), shape = (int32_t)(item % s->shapes);
    const tb_ball *ball = &s->balls[shape];
    if (!(ball->radius > 0) || ball->body < 0 || has_ended(g, e, world)) return;
    const int64_t body = (int64_t)world * s->bodies + ball->body;
    const size_t apart = (size_t)g->worlds * (size_t)s->bodies * TB_VOLUME_NUMBERS;
    double *slopes = g->slopes + TB_VOLUME_NUMBERS * body;
    tb_volume_sum sum;
    memset(&sum, 0, sizeof sum);
    add_forces(g, e, world, shape, &sum);
    slope_of_body(g, ball->body, body, &sum, slopes + (size_t)e->stage * apart);
    if (sum.degenerate) g->degenerate[world] = 1;
    if (e->stage + 1 < g->method.stages) return;
    if (sum.deepest > g->deepest[body]) g->deepest[body] = sum.deepest;
    if (sum.contacts > 0)
        atomicAdd(&g->step_contacts[(int64_t)world * g->steps + e->step], sum.contacts);
    if (!tb_volume_advance(&g->method, &s->free_bodies[ball->body].law, g->y + TB_VOLUME_NUMBERS * body, slopes, apart))
        atomicMin(&g->diverged[world], e->step);
}

/* All steps of a body that has no ball, which touches nothing. */
TB_CARD void fly(const tb_gpu_balls *g, int32_t world, int32_t body_of_world)
{
    const tb_balls_scene *s = &g->scene;
    const int64_t body = (int64_t)world * s->bodies + body_of_world;
    const size_t apart = (size_t)g->worlds * (size_t)s->bodies * TB_VOLUME_NUMBERS;
    double *y = g->y + TB_VOLUME_NUMBERS * body, *point = g->point + TB_VOLUME_NUMBERS * body;
    double *slopes = g->slopes + TB_VOLUME_NUMBERS * body;
    tb_volume_sum none;
    memset(&none, 0, sizeof none);
    for (int32_t step = 0; step < g->steps; step++) {
        bool finite = true;
        for (int32_t stage = 0; stage < g->method.stages; stage++) {
            tb_volume_point(&g->method, stage, y, slopes, apart, point);
            finite = finite && tb_volume_finite(point, TB_VOLUME_WORK);
            slope_of_body(g, body_of_world, body, &none, slopes + (size_t)stage * apart);
        }
        finite = tb_volume_advance(&g->method, &s->free_bodies[body_of_world].law, y, slopes, apart) && finite;
        if (!finite) atomicMin(&g->diverged[world], step);
    }
}

TB_CARD void step_items(const tb_gpu_balls *g, const balls_lane *t)
{
    balls_turn e = {0, 0, 0, 0};
    for (e.step = 0; e.step < g->steps; e.step++)
        for (e.stage = 0; e.stage < g->method.stages; e.stage++) {
            e.stamp++;
            e.turn = 1 - e.turn;
            for (int64_t i = t->first; i < t->end; i += t->apart) show_item(g, &e, i);
            meet_balls(t);
            for (int64_t i = t->first; i < t->end; i += t->apart) push_item(g, &e, i);
        }
}

TB_CARD void fly_all(const tb_gpu_balls *g)
{
    const int64_t bodies = (int64_t)g->worlds * g->scene.bodies;
    const int64_t lanes = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < bodies;
         i += lanes)
        if (g->scene.free_bodies[i % g->scene.bodies].ball < 0)
            fly(g, (int32_t)(i / g->scene.bodies), (int32_t)(i % g->scene.bodies));
}

extern "C" __global__ void __launch_bounds__(TB_GPU_BALLS_THREADS)
    tb_gpu_balls_steps(const __grid_constant__ tb_gpu_balls g)
{
    const int64_t shapes = g.scene.shapes;
    balls_lane t;
    fly_all(&g);
    if (!g.alone) {
        t.first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
        t.end = g.worlds * shapes;
        t.apart = (int64_t)gridDim.x * blockDim.x;
        t.place = (meeting *)(void *)g.meeting;
        step_items(&g, &t);
        return;
    }
    t.place = NULL;
    t.apart = blockDim.x;
    for (int64_t world = blockIdx.x; world < g.worlds; world += gridDim.x) {
        t.first = world * shapes + threadIdx.x;
        t.end = (world + 1) * shapes;
        step_items(&g, &t);
    }
}

/* Worlds of their own blocks have blocks as wide as a world, as many as the card holds at once. */
extern "C" cudaError_t tb_gpu_start_balls(const tb_gpu_balls *balls, int32_t processors,
                                          cudaStream_t stream)
{
    tb_gpu_balls g = *balls;
    void *arguments[] = {&g};
    const int64_t lanes = (int64_t)g.worlds * g.scene.shapes;
    int threads = TB_GPU_BALLS_THREADS, resident = 2;
    if (g.alone) {
        while (threads > WARP && threads / 2 >= g.scene.shapes) threads /= 2;
        const cudaError_t result = cudaOccupancyMaxActiveBlocksPerMultiprocessor(
            &resident, (const void *)tb_gpu_balls_steps, threads, 0);
        if (result != cudaSuccess) return result;
    }
    int64_t blocks = (int64_t)processors * (resident > 0 ? resident : 1);
    const int64_t wanted = g.alone ? g.worlds : (lanes + threads - 1) / threads;
    if (wanted < blocks) blocks = wanted > 0 ? wanted : 1;
    return cudaLaunchCooperativeKernel((const void *)tb_gpu_balls_steps, dim3((unsigned)blocks),
                                       dim3((unsigned)threads), arguments, 0, stream);
}
#endif
