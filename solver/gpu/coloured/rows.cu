/* Poulsen's Jacobi and coloured Gauss-Seidel on a GPU (A Parallel Gauss-Seidel Method for Computing
 * Contact Forces, DIKU 2010): all iterations and the controller of R in one cooperative launch, a
 * contact a thread, a barrier of all blocks after each colour.
 *
 * Bodies of the unsafe colour are brought up to date a body a thread, each in contact order, so the
 * impulses are those of the processor to the byte. Double only; the float build of this file is
 * empty. */
#ifndef TB_SINGLE
#include "gpu/coloured/rows.h"
#include "gpu/qp/grid.h"

typedef struct rows_lane {
    int lane, lanes;
    meeting *place;
} rows_lane;

TB_CARD void meet_rows(const rows_lane *t)
{
    meet(t->place, (int)gridDim.x);
}

TB_CARD void copy_impulses(const tb_row_sweep *s, const rows_lane *t, double *to,
                           const double *from)
{
    for (int i = t->lane; i < TB_CONTACT_ROWS * s->contacts; i += t->lanes) to[i] = from[i];
}

TB_CARD void sum_all_bodies(const tb_row_sweep *s, const rows_lane *t)
{
    if (s->storage != TB_STORAGE_FACTORIZED) return;
    for (int m = t->lane; m < s->bodies; m += t->lanes) tb_row_sum_body(s, m);
    meet_rows(t);
}

/* The pass over contacts order[first ... first + count), or over these where `order` is NULL. */
TB_CARD double pass(const tb_row_sweep *s, const rows_lane *t, const int32_t *order, int first,
                    int count, bool in_place, double epsilon)
{
    for (int i = t->lane; i < count; i += t->lanes)
        epsilon = tb_row_solve(s, order ? order[first + i] : i, in_place, epsilon);
    meet_rows(t);
    return epsilon;
}

/* The unsafe colour's new impulses are taken over: bodies first, by the changes, then the
 * impulses. */
TB_CARD void take_unsafe(const tb_row_run *run, const tb_row_sweep *s, const rows_lane *t,
                         int first, int count)
{
    for (int i = t->lane; i < run->unsafe_bodies; i += t->lanes) {
        const int m = run->unsafe_body[i];
        for (int j = run->unsafe_start[i]; j < run->unsafe_start[i + 1]; j++) {
            const int k = run->unsafe_edge[j];
            double change[TB_CONTACT_ROWS];
            for (int r = 0; r < TB_CONTACT_ROWS; r++)
                change[r] = s->next[TB_CONTACT_ROWS * (int64_t)k + r] -
                            s->lambda[TB_CONTACT_ROWS * (int64_t)k + r];
            tb_row_push(s, k, s->a[k] == m ? 0 : 1, change);
        }
    }
    if (run->unsafe_bodies > 0) meet_rows(t);
    for (int i = t->lane; i < count; i += t->lanes) {
        const int64_t k = TB_CONTACT_ROWS * (int64_t)run->order[first + i];
        for (int r = 0; r < TB_CONTACT_ROWS; r++) s->lambda[k + r] = s->next[k + r];
    }
    meet_rows(t);
}

/* One iteration; this thread's largest change. Jacobi exchanges lambda and next. */
TB_CARD double iterate_rows(const tb_row_run *run, tb_row_sweep *s, const rows_lane *t)
{
    double epsilon = 0;
    if (run->colours == 0) {
        epsilon = pass(s, t, NULL, 0, s->contacts, false, 0);
        double *old = s->lambda;
        s->lambda = s->next;
        s->next = old;
        sum_all_bodies(s, t);
        return epsilon;
    }
    for (int c = 0; c < run->colours; c++) {
        const bool safe = c < run->colours - run->unsafe;
        const int first = run->colour_start[c], count = run->colour_start[c + 1] - first;
        epsilon = pass(s, t, run->order, first, count, safe, epsilon);
        if (!safe) take_unsafe(run, s, t, first, count);
    }
    return epsilon;
}

TB_CARD void vote_largest(unsigned long long *at, double epsilon)
{
    for (int step = WARP / 2; step > 0; step /= 2) {
        const double other = __shfl_xor_sync(0xffffffffu, epsilon, step);
        if (other > epsilon) epsilon = other;
    }
    unsigned long long bits;
    memcpy(&bits, &epsilon, sizeof bits); /* of numbers that are not negative, in their order */
    if (lane_of() == 0 && bits > 0) atomicMax(at, bits);
}

/* Back to the impulses before the iteration, with a smaller R. */
TB_CARD void reduce(const tb_gpu_rows *g, tb_row_sweep *s, const rows_lane *t, const double *before,
                    double *after, bool scaled)
{
    copy_impulses(s, t, s->lambda, before);
    copy_impulses(s, t, after, before);
    if (scaled && s->storage == TB_STORAGE_T)
        for (int k = t->lane; k < s->contacts; k += t->lanes) tb_row_rescale(s, k, g->run.nu);
    if (scaled) s->r *= g->run.nu;
    meet_rows(t);
    sum_all_bodies(s, t);
}

TB_CARD void go_through_iterations(const tb_gpu_rows *g, const rows_lane *t)
{
    tb_row_sweep s = g->run.sweep;
    tb_row_outcome outcome = {0, 0, 0, s.r, 0};
    double last = 0;
    bool compared = false;
    for (int i = 0; i < g->run.iterations; i++) {
        double *before = g->before[i % 2], *after = g->before[(i + 1) % 2];
        vote_largest(&g->largest[i % 3], iterate_rows(&g->run, &s, t));
        copy_impulses(&s, t, after, s.lambda);
        if (t->lane == 0) g->largest[(i + 1) % 3] = 0;
        meet_rows(t);
        const unsigned long long bits = *(volatile unsigned long long *)&g->largest[i % 3];
        outcome.iterations = i + 1;
        memcpy(&outcome.epsilon, &bits, sizeof bits);
        if (compared && outcome.epsilon > last && g->run.tries > 0) {
            const bool scaled = outcome.reductions < g->run.tries;
            reduce(g, &s, t, before, after, scaled);
            if (!scaled) break;
            outcome.reductions++;
            compared = false;
            continue;
        }
        compared = true;
        last = outcome.epsilon;
    }
    outcome.r = s.r;
    if (s.lambda != g->run.sweep.lambda) copy_impulses(&s, t, s.next, s.lambda);
    if (t->lane == 0) *g->outcome = outcome;
}

extern "C" __global__ void __launch_bounds__(256)
    tb_gpu_rows_iterations(const __grid_constant__ tb_gpu_rows g)
{
    const rows_lane t = {.lane = (int)(blockIdx.x * LANES + threadIdx.x),
                         .lanes = (int)gridDim.x * LANES,
                         .place = (meeting *)(void *)g.meeting};
    go_through_iterations(&g, &t);
}

extern "C" cudaError_t tb_gpu_start_rows(const tb_gpu_rows *rows, int32_t processors,
                                         cudaStream_t stream)
{
    tb_gpu_rows g = *rows;
    void *arguments[] = {&g};
    int blocks = processors * TB_GPU_ROWS_BLOCKS;
    const int wanted = (g.run.sweep.contacts + LANES - 1) / LANES;
    if (wanted < blocks) blocks = wanted > 0 ? wanted : 1;
    return cudaLaunchCooperativeKernel((const void *)tb_gpu_rows_iterations, dim3((unsigned)blocks),
                                       dim3((unsigned)LANES), arguments, 0, stream);
}
#endif
