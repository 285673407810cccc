/* Fields of soft bodies on a GPU: the passes of grid/field.c, forces.c and transport.c, a node a lane.
 *
 * A warp makes one run of a row (TB_SOFT_RUN nodes) at a time, so that the fields' rows are read in whole
 * sectors and sums have the order of nodes/space.h: lanes of a run by halves, then runs, rows and planes
 * in order. Bodies share a launch: block b works for body b modulo their number. The boxes of the bodies
 * lie on the card and change there, so launches are as large as the card and not as the boxes. Double
 * only; the float build of this file is empty. */
#ifndef TB_SINGLE
#include "gpu/grid/fields.h"
#include "grid/nodes/forces.h"
#include "grid/nodes/masses.h"

#ifndef TB_CARD /* a test on the processor has its own */
#define TB_CARD static __device__
#endif

static const int WARP_LANES = TB_SOFT_RUN;
static const int WARPS_OF_BLOCK = (int)TB_GPU_SOFT_THREADS / (int)TB_SOFT_RUN;

/* ---- runs ---- */

/* A warp's share of a body's runs. */
typedef struct walk {
    int32_t body, lane;
    tb_soft_field f; /* the body's, with its box before the launch */
    int32_t first, width, rows; /* run of the box's first node; runs and rows of the box */
    int64_t next, end, apart;
} walk;

TB_CARD walk begin_walk(const tb_gpu_soft *g)
{
    walk t;
    t.body = (int32_t)blockIdx.x % g->bodies;
    t.lane = (int32_t)threadIdx.x % WARP_LANES;
    t.f = g->fields[t.body];
    t.first = t.f.lower[0] / TB_SOFT_RUN;
    t.width = (t.f.upper[0] + TB_SOFT_RUN - 1) / TB_SOFT_RUN - t.first;
    t.rows = t.f.upper[1] - t.f.lower[1];
    t.end = (int64_t)t.width * t.rows * (t.f.upper[2] - t.f.lower[2]);
    t.next = (int64_t)(blockIdx.x / (unsigned)g->bodies) * WARPS_OF_BLOCK +
             threadIdx.x / WARP_LANES;
    t.apart = (int64_t)(gridDim.x / (unsigned)g->bodies) * WARPS_OF_BLOCK;
    return t;
}

/* The lane's node of a run; false: it lies outside of the box. */
TB_CARD bool node_of_run(const tb_gpu_soft *g, const walk *t, int64_t run, int32_t at[3],
                         int32_t *n)
{
    const int32_t row = (int32_t)(run / t->width);
    at[0] = (t->first + (int32_t)(run % t->width)) * TB_SOFT_RUN + t->lane;
    at[1] = t->f.lower[1] + row % t->rows;
    at[2] = t->f.lower[2] + row / t->rows;
    *n = tb_soft_number(&g->space, at[0], at[1], at[2]);
    return at[0] >= t->f.lower[0] && at[0] < t->f.upper[0];
}

/* Where the sums of the run of a node stand. */
TB_CARD tb_soft_sums *place_of_run(const tb_gpu_soft *g, const walk *t, const int32_t at[3])
{
    const int64_t row = (int64_t)at[2] * g->space.lattice.nodes[1] + at[1];
    return g->scratch[t->body].runs + row * g->runs + at[0] / TB_SOFT_RUN;
}

/* A run's sum of one quantity, in all lanes. */
TB_CARD double join_run(int q, double own)
{
    for (int step = WARP_LANES / 2; step > 0; step /= 2)
        own = tb_soft_sums_join(q, own, __shfl_xor_sync(0xffffffffu, own, step));
    return own;
}

/* All sums of a run, of which lane q ends with number q. Each step halves the numbers of a lane: it keeps
 * one half of them and passes the other half to its partner lane. Numbers from TB_SOFT_ADDED on are no sums. */
TB_CARD double add_run(const double own[WARP_LANES], int32_t lane)
{
    double part[WARP_LANES];
#pragma unroll
    for (int q = 0; q < WARP_LANES; q++) part[q] = own[q];
#pragma unroll
    for (int half = WARP_LANES / 2; half > 0; half /= 2) {
        const bool upper = (lane & half) != 0;
#pragma unroll
        for (int q = 0; q < half; q++) {
            const double given = upper ? part[q] : part[q + half];
            const double kept = upper ? part[q + half] : part[q];
            part[q] = kept + __shfl_xor_sync(0xffffffffu, given, half);
        }
    }
    return part[0];
}

/* Writes the sums of a run without stiffness and det F. */
TB_CARD void put_run(const tb_gpu_soft *g, const walk *t, const int32_t at[3],
                     const tb_soft_sums *own)
{
    double numbers[WARP_LANES];
#pragma unroll
    for (int q = 0; q < WARP_LANES; q++)
        numbers[q] = q < TB_SOFT_ADDED ? ((const double *)own)[q] : 0;
    double sum = add_run(numbers, t->lane);
    const double speed = join_run(TB_SOFT_ADDED, own->speed);
    if (t->lane == TB_SOFT_ADDED) sum = speed;
    if (t->lane == TB_SOFT_SUMS - 1) sum = 1e300;
    if (t->lane < TB_SOFT_SUMS) ((double *)place_of_run(g, t, at))[t->lane] = sum;
}

/* ---- passes with sums ---- */

extern "C" __global__ void __launch_bounds__(TB_GPU_SOFT_THREADS)
    tb_gpu_soft_stress(const __grid_constant__ tb_gpu_soft g)
{
    walk t = begin_walk(&g);
    const tb_soft_material material = g.body[t.body].material;
    double *force = g.scratch[t.body].cell_force;
    for (int64_t run = t.next; run < t.end; run += t.apart) {
        int32_t at[3], n;
        tb_soft_sums own;
        tb_soft_sums_clear(&own);
        if (node_of_run(&g, &t, run, at, &n))
            tb_soft_stress_cell(&g.space, &t.f, &material, n, force + 24 * (int64_t)n, &own);
        const double elastic = join_run(0, own.elastic), damped = join_run(0, own.damped_power);
        const double stiffness = join_run(TB_SOFT_ADDED, own.stiffness);
        const double smallest = join_run(TB_SOFT_SUMS - 1, own.smallest);
        if (t.lane > 0) continue;
        tb_soft_sums *sums = place_of_run(&g, &t, at);
        tb_soft_sums_clear(&own);
        own.elastic = elastic;
        own.damped_power = damped;
        own.stiffness = stiffness;
        own.smallest = smallest;
        *sums = own;
    }
}

extern "C" __global__ void __launch_bounds__(TB_GPU_SOFT_THREADS)
    tb_gpu_soft_cells(const __grid_constant__ tb_gpu_soft g)
{
    walk t = begin_walk(&g);
    const tb_soft_solid shape = g.body[t.body].shape;
    const double density = g.body[t.body].material.density;
    for (int64_t run = t.next; run < t.end; run += t.apart) {
        int32_t at[3], n;
        double mass = 0;
        if (node_of_run(&g, &t, run, at, &n))
            mass = tb_soft_weigh_cell(&g.space, &t.f, &shape, density, at, n);
        mass = join_run(0, mass);
        if (t.lane > 0) continue;
        tb_soft_sums own;
        tb_soft_sums_clear(&own);
        own.scratch = mass;
        *place_of_run(&g, &t, at) = own;
    }
}

extern "C" __global__ void __launch_bounds__(TB_GPU_SOFT_THREADS)
    tb_gpu_soft_momentum(const __grid_constant__ tb_gpu_soft g)
{
    walk t = begin_walk(&g);
    for (int64_t run = t.next; run < t.end; run += t.apart) {
        int32_t at[3], n;
        tb_soft_sums own;
        tb_soft_sums_clear(&own);
        if (node_of_run(&g, &t, run, at, &n)) tb_soft_node_momentum(&g.space, &t.f, at, n, &own);
        put_run(&g, &t, at, &own);
    }
}

/* Impulses of the nodes that a clamp of a rigid body holds. */
extern "C" __global__ void __launch_bounds__(TB_GPU_SOFT_THREADS)
    tb_gpu_soft_held(const __grid_constant__ tb_gpu_soft g)
{
    walk t = begin_walk(&g);
    if (t.body != g.clamp[g.held_by].body) return;
    for (int64_t run = t.next; run < t.end; run += t.apart) {
        int32_t at[3], n;
        tb_soft_sums own;
        tb_soft_sums_clear(&own);
        if (node_of_run(&g, &t, run, at, &n))
            tb_soft_held_impulse(&g.space, &t.f, &g.frames[g.held_by], g.held_by + 1, at, n, &own);
        put_run(&g, &t, at, &own);
    }
}

/* Sums of the rows of a plane, and of the plane: a plane a block. */
extern "C" __global__ void __launch_bounds__(TB_GPU_SOFT_THREADS)
    tb_gpu_soft_planes(const __grid_constant__ tb_gpu_soft g)
{
    walk t = begin_walk(&g);
    const tb_gpu_soft_scratch *s = &g.scratch[t.body];
    const int32_t blocks = (int32_t)gridDim.x / g.bodies, q = t.lane;
    const int32_t own = (int32_t)blockIdx.x / g.bodies, warp = (int32_t)threadIdx.x / WARP_LANES;
    tb_soft_sums start;
    tb_soft_sums_clear(&start);
    for (int32_t k = t.f.lower[2] + own; k < t.f.upper[2]; k += blocks) {
        const int64_t first = (int64_t)k * g.space.lattice.nodes[1];
        for (int32_t j = t.f.lower[1] + warp; j < t.f.upper[1] && q < TB_SOFT_SUMS;
             j += WARPS_OF_BLOCK) {
            const tb_soft_sums *runs = s->runs + (first + j) * g.runs + t.first;
            double sum = ((const double *)&start)[q];
            TB_UNROLLED
            for (int32_t r = 0; r < t.width; r++)
                sum = tb_soft_sums_join(q, sum, ((const double *)(runs + r))[q]);
            ((double *)(s->rows + first + j))[q] = sum;
        }
        __syncthreads();
        if (warp > 0 || q >= TB_SOFT_SUMS) continue;
        double sum = ((const double *)&start)[q];
#pragma unroll 8
        for (int32_t j = t.f.lower[1]; j < t.f.upper[1]; j++)
            sum = tb_soft_sums_join(q, sum, ((const double *)(s->rows + first + j))[q]);
        ((double *)(s->planes + k))[q] = sum;
    }
}

/* ---- a body's sum, and what follows from it ---- */

TB_CARD void end_masses(const tb_gpu_soft *g, int32_t body, const tb_soft_sums *whole)
{
    const tb_soft_card_body *b = &g->body[body];
    tb_gpu_soft_scratch *s = &g->scratch[body];
    const double sum = whole->scratch, mass = b->material.density * tb_soft_volume(&b->shape);
    g->outcomes[body].scale = sum > 0 ? mass / sum : 1;
    g->outcomes[body].mass_error = tb_abs(sum / mass - 1);
    for (int a = 0; a < 3; a++) {
        s->lower[a] = INT32_MAX;
        s->upper[a] = 0;
    }
}

TB_CARD void end_repair(const tb_gpu_soft *g, int32_t body, const tb_soft_sums *whole)
{
    tb_soft_card_outcome *out = &g->outcomes[body];
    memset(&out->repair, 0, sizeof out->repair);
    if (!g->body[body].clamped) out->repair = tb_soft_repair_of(&out->was, whole);
}

TB_CARD void end_held(const tb_gpu_soft *g, int32_t body, const tb_soft_sums *whole)
{
    double *impulse = g->impulses + 6 * g->held_by;
    if (body != g->clamp[g->held_by].body) return;
    for (int a = 0; a < 3; a++) {
        impulse[a] = whole->momentum[a];
        impulse[3 + a] = whole->angular[a];
    }
}

extern "C" __global__ void __launch_bounds__(TB_GPU_SOFT_THREADS)
    tb_gpu_soft_end(const __grid_constant__ tb_gpu_soft g)
{
#ifdef __CUDACC__
    extern __shared__ __align__(16) unsigned char shared_bytes[];
#endif
    tb_soft_sums *whole = (tb_soft_sums *)(void *)shared_bytes;
    const int32_t body = (int32_t)blockIdx.x, q = (int32_t)threadIdx.x;
    tb_soft_field *f = &g.fields[body];
    tb_soft_card_outcome *out = &g.outcomes[body];
    if (q < TB_SOFT_SUMS && g.pass != TB_GPU_SOFT_END_BOX) {
        tb_soft_sums start;
        tb_soft_sums_clear(&start);
        double sum = ((const double *)&start)[q];
#pragma unroll 8
        for (int32_t k = f->lower[2]; k < f->upper[2]; k++)
            sum = tb_soft_sums_join(q, sum, ((const double *)(g.scratch[body].planes + k))[q]);
        ((double *)whole)[q] = sum;
    }
    __syncthreads();
    if (q > 0) return;
    switch (g.pass) {
    case TB_GPU_SOFT_END_STRESS: out->stress = *whole; break;
    case TB_GPU_SOFT_END_MOMENTUM: out->momentum = *whole; break;
    case TB_GPU_SOFT_END_WAS: out->was = *whole; break;
    case TB_GPU_SOFT_END_MASSES: end_masses(&g, body, whole); break;
    case TB_GPU_SOFT_END_REPAIR: end_repair(&g, body, whole); break;
    case TB_GPU_SOFT_END_HELD: end_held(&g, body, whole); break;
    default:
        tb_soft_enlarge_box(&g.space, f, g.scratch[body].lower, g.scratch[body].upper);
        for (int a = 0; a < 3; a++) {
            out->lower[a] = f->lower[a];
            out->upper[a] = f->upper[a];
        }
        out->outside = f->outside;
    }
}

/* ---- masses ---- */

extern "C" __global__ void __launch_bounds__(TB_GPU_SOFT_THREADS)
    tb_gpu_soft_depths(const __grid_constant__ tb_gpu_soft g)
{
    walk t = begin_walk(&g);
    const tb_soft_solid shape = g.body[t.body].shape;
    for (int64_t run = t.next; run < t.end; run += t.apart) {
        int32_t at[3], n;
        if (!node_of_run(&g, &t, run, at, &n)) continue;
        if (t.f.layer[n] != TB_SOFT_NO_LAYER && !(g.layer > 0 && t.f.layer[n] == 0))
            t.f.depth[n] = tb_soft_distance(&shape, t.f.X + 3 * (int64_t)n);
    }
}

/* Masses of nodes, layer 0, and the box of the nodes with mass. */
extern "C" __global__ void __launch_bounds__(TB_GPU_SOFT_THREADS)
    tb_gpu_soft_masses(const __grid_constant__ tb_gpu_soft g)
{
    walk t = begin_walk(&g);
    tb_gpu_soft_scratch *s = &g.scratch[t.body];
    for (int64_t run = t.next; run < t.end; run += t.apart) {
        int32_t at[3], n;
        double mass = 0;
        if (node_of_run(&g, &t, run, at, &n)) {
            mass = tb_soft_node_mass(&g.space, &t.f, at);
            t.f.mass[n] = mass;
            t.f.layer[n] = mass > 0 ? 0 : TB_SOFT_NO_LAYER;
        }
        const unsigned heavy = __ballot_sync(0xffffffffu, mass > 0);
        if (t.lane > 0 || heavy == 0) continue;
        int32_t low[3] = {at[0], at[1], at[2]}, high[3] = {at[0] + TB_SOFT_RUN, at[1] + 1, at[2] + 1};
        for (unsigned bits = heavy; (bits & 1) == 0; bits >>= 1) low[0]++;
        for (unsigned bits = heavy; (bits & 0x80000000u) == 0; bits <<= 1) high[0]--;
        for (int a = 0; a < 3; a++) { /* most runs change nothing, and look before they write */
            if (low[a] < *(const volatile int32_t *)&s->lower[a]) atomicMin(&s->lower[a], low[a]);
            if (high[a] > *(const volatile int32_t *)&s->upper[a])
                atomicMax(&s->upper[a], high[a]);
        }
    }
}

/* ---- passes without sums ---- */

/* grid/clamps.c */
TB_CARD void take_node(const tb_gpu_soft *g, const walk *t, const int32_t at[3], int32_t n)
{
    const tb_soft_field *f = &t->f;
    double x[3], X[3];
    if (f->held == NULL) return;
    tb_soft_place_of(&g->space, at, x);
    if (f->held[n] > 0 && g->frames[f->held[n] - 1].moves) f->held[n] = 0;
    if (f->layer[n] == TB_SOFT_NO_LAYER) return;
    for (int32_t c = 0; c < g->clamps; c++) {
        const tb_soft_card_clamp *clamp = &g->clamp[c];
        if (clamp->body != t->body || !g->frames[c].moves) continue;
        tb_soft_frame_reference(&g->frames[c], x, X);
        if (!tb_soft_box_holds(&g->space, clamp->lower, clamp->upper, X)) continue;
        f->held[n] = (uint8_t)(c + 1);
        for (int a = 0; a < 3; a++) f->X[3 * (int64_t)n + a] = X[a];
    }
}

/* The velocity of a held node is that of its clamp. */
TB_CARD void hold_node(const tb_gpu_soft *g, const walk *t, const int32_t at[3], int32_t n)
{
    double x[3];
    if (t->f.held == NULL || t->f.held[n] == 0 || t->f.layer[n] != 0) return;
    tb_soft_place_of(&g->space, at, x);
    tb_soft_frame_velocity(&g->frames[t->f.held[n] - 1], x, t->f.v + 3 * (int64_t)n);
}

TB_CARD void slope_node(const tb_gpu_soft *g, const walk *t, const int32_t at[3], int32_t n)
{
    const tb_gpu_soft_scratch *s = &g->scratch[t->body];
    if (t->f.layer[n] != 0 || !tb_soft_touches_layer(&g->space, &t->f, at, 1)) return;
    if (g->which & TB_GPU_SOFT_X)
        tb_soft_node_slope(&g->space, &t->f, NULL, t->f.X, at, s->slope_X + 9 * (int64_t)n);
    if (g->which & TB_GPU_SOFT_V)
        tb_soft_node_slope(&g->space, &t->f, NULL, t->f.v, at, s->slope_v + 9 * (int64_t)n);
}

TB_CARD void extend_node(const tb_gpu_soft *g, const walk *t, const int32_t at[3], int32_t n)
{
    const tb_gpu_soft_scratch *s = &g->scratch[t->body];
    if (t->f.layer[n] != g->layer) return;
    if (g->which & TB_GPU_SOFT_X)
        tb_soft_extend_node(&g->space, &t->f, t->f.X, s->slope_X, g->layer, at, n);
    if (g->which & TB_GPU_SOFT_V)
        tb_soft_extend_node(&g->space, &t->f, t->f.v, s->slope_v, g->layer, at, n);
}

TB_CARD void clear_node(const walk *t, int32_t n)
{
    if (t->f.layer[n] == 0) return;
    t->f.layer[n] = TB_SOFT_NO_LAYER;
    t->f.mass[n] = 0;
}

TB_CARD void make_pass(const tb_gpu_soft *g, const walk *t, const int32_t at[3], int32_t n)
{
    const tb_gpu_soft_scratch *s = &g->scratch[t->body];
    switch (g->pass) {
    case TB_GPU_SOFT_TAKE: take_node(g, t, at, n); break;
    case TB_GPU_SOFT_ACCELERATE:
        tb_soft_accelerate_node(&g->space, &t->f, s->cell_force, g->dt, at, n);
        break;
    case TB_GPU_SOFT_HOLD: hold_node(g, t, at, n); break;
    case TB_GPU_SOFT_SLOPES: slope_node(g, t, at, n); break;
    case TB_GPU_SOFT_EXTEND: extend_node(g, t, at, n); break;
    case TB_GPU_SOFT_ADVECT:
        tb_soft_advect_node(&g->space, &t->f, &s->stages, g->dt, g->second, n);
        break;
    case TB_GPU_SOFT_ADOPT:
        tb_soft_adopt_node(&t->f, &s->stages, g->second, n);
        hold_node(g, t, at, n);
        break;
    case TB_GPU_SOFT_SCALE:
        for (int o = 0; o < 8; o++) t->f.octant[8 * (int64_t)n + o] *= g->outcomes[t->body].scale;
        break;
    case TB_GPU_SOFT_CLEAR: clear_node(t, n); break;
    case TB_GPU_SOFT_LAYER:
        if (t->f.layer[n] == TB_SOFT_NO_LAYER &&
            tb_soft_touches_layer(&g->space, &t->f, at, g->layer - 1))
            t->f.layer[n] = (uint8_t)g->layer;
        break;
    case TB_GPU_SOFT_REPAIR:
        if (!g->body[t->body].clamped)
            tb_soft_repair_node(&g->space, &t->f, &g->outcomes[t->body].repair, at, n);
        break;
    default: break;
    }
}

extern "C" __global__ void __launch_bounds__(TB_GPU_SOFT_THREADS)
    tb_gpu_soft_nodes(const __grid_constant__ tb_gpu_soft g)
{
    walk t = begin_walk(&g);
    for (int64_t run = t.next; run < t.end; run += t.apart) {
        int32_t at[3], n;
        if (node_of_run(&g, &t, run, at, &n)) make_pass(&g, &t, at, n);
    }
}

/* ---- launches ---- */

typedef struct launches {
    tb_gpu_soft g;
    unsigned blocks;
    cudaStream_t stream;
    cudaError_t result;
} launches;

static launches begin_launches(const tb_gpu_soft *soft, int32_t processors, cudaStream_t stream)
{
    launches l;
    const int32_t wanted = processors * TB_GPU_SOFT_BLOCKS, bodies = soft->bodies;
    l.g = *soft;
    l.blocks = (unsigned)(wanted > bodies ? wanted / bodies * bodies : bodies);
    l.stream = stream;
    l.result = cudaSuccess;
    return l;
}

static void launch(launches *l, const void *kernel, unsigned blocks)
{
    void *arguments[] = {&l->g};
    if (l->result != cudaSuccess) return;
    l->result = cudaLaunchKernel(kernel, dim3(blocks), dim3((unsigned)TB_GPU_SOFT_THREADS),
                                 arguments, sizeof(tb_soft_sums), l->stream);
}

static void pass(launches *l, tb_gpu_soft_pass which)
{
    l->g.pass = which;
    launch(l, (const void *)tb_gpu_soft_nodes, l->blocks);
}

/* A kernel that writes the sums of runs, their sum, and what follows from it. */
static void sum_up(launches *l, const void *kernel, tb_gpu_soft_pass end)
{
    launch(l, kernel, l->blocks);
    launch(l, (const void *)tb_gpu_soft_planes, l->blocks);
    l->g.pass = end;
    launch(l, (const void *)tb_gpu_soft_end, (unsigned)l->g.bodies);
}

static void extrapolate(launches *l, int32_t which)
{
    l->g.which = which;
    pass(l, TB_GPU_SOFT_SLOPES);
    for (l->g.layer = 1; l->g.layer <= TB_SOFT_LAYERS; l->g.layer++) pass(l, TB_GPU_SOFT_EXTEND);
}

static void measure_depths(launches *l, bool outside_only)
{
    l->g.layer = outside_only;
    launch(l, (const void *)tb_gpu_soft_depths, l->blocks);
}

/* tb_soft_measure_masses */
static void measure_masses(launches *l)
{
    measure_depths(l, false);
    sum_up(l, (const void *)tb_gpu_soft_cells, TB_GPU_SOFT_END_MASSES);
    pass(l, TB_GPU_SOFT_SCALE);
    launch(l, (const void *)tb_gpu_soft_masses, l->blocks);
    l->g.pass = TB_GPU_SOFT_END_BOX;
    launch(l, (const void *)tb_gpu_soft_end, (unsigned)l->g.bodies);
    pass(l, TB_GPU_SOFT_CLEAR);
    for (l->g.layer = 1; l->g.layer <= TB_SOFT_LAYERS; l->g.layer++) pass(l, TB_GPU_SOFT_LAYER);
    extrapolate(l, TB_GPU_SOFT_X);
    measure_depths(l, true);
}

extern "C" cudaError_t tb_gpu_soft_forces(const tb_gpu_soft *soft, int32_t processors,
                                          cudaStream_t stream)
{
    launches l = begin_launches(soft, processors, stream);
    if (l.g.clamps > 0) pass(&l, TB_GPU_SOFT_TAKE);
    sum_up(&l, (const void *)tb_gpu_soft_stress, TB_GPU_SOFT_END_STRESS);
    pass(&l, TB_GPU_SOFT_ACCELERATE);
    for (l.g.held_by = 0; l.g.held_by < l.g.clamps; l.g.held_by++)
        if (l.g.followers >> l.g.held_by & 1)
            sum_up(&l, (const void *)tb_gpu_soft_held, TB_GPU_SOFT_END_HELD);
    if (l.g.clamps > 0) pass(&l, TB_GPU_SOFT_HOLD);
    return l.result;
}

extern "C" cudaError_t tb_gpu_soft_transport(const tb_gpu_soft *soft, int32_t processors,
                                             cudaStream_t stream)
{
    launches l = begin_launches(soft, processors, stream);
    const int stages = l.g.space.advection == TB_SOFT_SECOND_ORDER ? 2 : 1;
    const int32_t both = TB_GPU_SOFT_X | TB_GPU_SOFT_V;
    sum_up(&l, (const void *)tb_gpu_soft_momentum, TB_GPU_SOFT_END_WAS);
    for (int number = 0; number < stages; number++) {
        l.g.second = number == 1;
        extrapolate(&l, l.g.second ? both : (int32_t)TB_GPU_SOFT_V);
        pass(&l, TB_GPU_SOFT_ADVECT);
        pass(&l, TB_GPU_SOFT_ADOPT);
    }
    extrapolate(&l, both);
    measure_masses(&l);
    sum_up(&l, (const void *)tb_gpu_soft_momentum, TB_GPU_SOFT_END_REPAIR);
    pass(&l, TB_GPU_SOFT_REPAIR);
    extrapolate(&l, TB_GPU_SOFT_V);
    sum_up(&l, (const void *)tb_gpu_soft_momentum, TB_GPU_SOFT_END_MOMENTUM);
    return l.result;
}

extern "C" cudaError_t tb_gpu_soft_measure(const tb_gpu_soft *soft, int32_t processors,
                                           cudaStream_t stream)
{
    launches l = begin_launches(soft, processors, stream);
    sum_up(&l, (const void *)tb_gpu_soft_momentum, TB_GPU_SOFT_END_MOMENTUM);
    sum_up(&l, (const void *)tb_gpu_soft_stress, TB_GPU_SOFT_END_STRESS);
    return l.result;
}
#endif
