/* The kernel of a sweep: a block keeps MO_SIDE x MO_SIDE elements of each array that the loop stores in
 * shared memory and takes several rounds there. It writes the elements whose values cannot depend on
 * elements outside; the rim, as wide as the rounds reach, is recomputed by the neighbouring blocks.
 * A launch takes one group of rounds, or many: between two groups a block keeps its own elements where they
 * are, waits for the blocks around it, and reads its rim from what they wrote. Such a launch is
 * cooperative, so that no block waits for one that has not begun. Groups read one buffer and write the
 * other by turns: a neighbour that still reads one group is never overtaken by two.
 *
 * li ... hi and lj ... hj are the rows and columns that are still right, from 0; they shrink with each
 * part by what the part reads before and behind its own element, but not at the edge of the arrays. */
#include "modelica/card/kernels.h"

#include <string.h>

/* clang-format off */
static const char BEGIN[] =
    "    const int across = (p.columns + tc - 1) / tc;\n"
    "    const int bi = (int)blockIdx.x / across, bj = (int)blockIdx.x % across;\n"
    "    const int oi = bi * tr - skip_i, oj = bj * tc - skip_j;\n"
    "    for (int g = 0; g < p.groups; g++) {\n"
    "    const mo_int first = p.first + (mo_int)g * p.steps;\n"
    "    const int steps = p.last - first < p.steps ? (int)(p.last - first) + 1 : p.steps;\n"
    "    int li = oi <= 0 ? -MO_FAR : oi, hi = oi + MO_SIDE >= p.rows ? MO_FAR : oi + MO_SIDE - 1;\n"
    "    int lj = oj <= 0 ? -MO_FAR : oj, hj = oj + MO_SIDE >= p.columns ? MO_FAR : oj + MO_SIDE - 1;\n"
    "    struct mo_run own = {p.fault, p.launch + g, 0, p.rounds}, *const run = &own;\n";
static const char EACH[] =
    "for (int e = threadIdx.x; e < MO_SIDE * MO_SIDE; e += MO_SWEEP_THREADS) {\n";
static const char ELEMENT[] =
    "        const int r = e / MO_SIDE, c = e % MO_SIDE, i = oi + r, j = oj + c;\n"
    "        const bool inner = r >= skip_i && c >= skip_j && r < skip_i + tr && c < skip_j + tc;\n";
/* a block tells that its group is written, and waits until its neighbours have written theirs */
static const char WAIT[] =
    "    if (g + 1 < p.groups) {\n"
    "        const mo_int mark = p.mark + g + 1;\n"
    "        __syncthreads();\n"
    "        if (threadIdx.x == 0) {\n"
    "            __threadfence();\n"
    "            *(volatile mo_int *)&p.marks[blockIdx.x] = mark;\n"
    "        }\n"
    "        __syncthreads();\n"
    "        if (threadIdx.x < 9) {\n"
    "            const int ni = bi + (int)threadIdx.x / 3 - 1, nj = bj + (int)threadIdx.x % 3 - 1;\n"
    "            if (ni >= 0 && nj >= 0 && nj < across && ni * across + nj < (int)gridDim.x)\n"
    "                while (*(volatile mo_int *)&p.marks[ni * across + nj] < mark) {}\n"
    "            __threadfence();\n"
    "        }\n"
    "        __syncthreads();\n"
    "    }\n"
    "    }\n";
/* clang-format on */

static void append(mo_text *text, const char *piece)
{
    if (tb_bytes_append(&text->bytes, piece, strlen(piece)) != TB_OK) text->failed = true;
}

/* all elements before the first group, the rim before the others */
static void emit_load(mo_emit *e, const mo_sweep *sweep)
{
    mo_text *text = e->text;
    append(text, "    ");
    append(text, EACH);
    append(text, ELEMENT);
    append(text, "        if ((g > 0 && inner) || i < 0 || j < 0) continue;\n");
    for (int32_t k = 0; k < sweep->arrays; k++) {
        const int32_t a = sweep->array[k];
        tb_mo_print(text,
                    "        if (i < A%d->size[0] && j < A%d->size[1])\n"
                    "            S%d[e] = (g %% 2 == 0 ? (double *)A%d->data : p.out[%d])"
                    "[i * A%d->size[1] + j];\n",
                    a, a, a, a, k, a);
    }
    tb_mo_print(text, "    }\n    __syncthreads();\n");
}

static void emit_keep(mo_emit *e, const mo_sweep *sweep)
{
    mo_text *text = e->text;
    append(text, "    ");
    append(text, EACH);
    append(text, ELEMENT);
    append(text, "        if (!inner) continue;\n");
    for (int32_t k = 0; k < sweep->arrays; k++) {
        const int32_t a = sweep->array[k];
        tb_mo_print(text,
                    "        if (i < A%d->size[0] && j < A%d->size[1])\n"
                    "            (g %% 2 == 0 ? p.out[%d] : (double *)A%d->data)"
                    "[i * A%d->size[1] + j] = S%d[e];\n",
                    a, a, k, a, a, a);
    }
    tb_mo_print(text, "    }\n");
}

/* the rounds of a nest whose elements and reads are right, each by one thread */
static void emit_part(mo_emit *e, const mo_function *f, const mo_sweep *sweep, int32_t part)
{
    mo_text *text = e->text;
    const mo_s *s = sweep->part[part];
    if (s->op == MO_S_ALLOCATE) {
        tb_mo_print(text,
                    "        %s            S%d[e] = 0;\n        }\n        __syncthreads();\n",
                    EACH, s->variable);
        return;
    }
    if (s->op == MO_S_COPY) {
        tb_mo_print(text, "        %s            S%d[e] = S%d[e];\n        }\n", EACH, s->variable,
                    s->source);
        tb_mo_print(text, "        __syncthreads();\n");
        return;
    }
    const mo_loop *loop = s->loop;
    const int32_t vi = loop->nest[0]->variable, vj = loop->nest[1]->variable;
    const int32_t *low = sweep->low[part], *high = sweep->high[part];
    tb_mo_print(text,
                "        %s            const int i = oi + e / MO_SIDE, j = oj + e %% MO_SIDE;\n"
                "            const mo_int v%d = i + 1, v%d = j + 1;\n",
                EACH, vi, vj);
    tb_mo_print(
        text,
        "            if (i + 1 < p.ends[%d][0] || i + 1 > p.ends[%d][1] || j + 1 < p.ends[%d][2] ||"
        " j + 1 > p.ends[%d][3] ||\n"
        "                i - %d < li || i + %d > hi || j - %d < lj || j + %d > hj) continue;\n",
        part, part, part, part, low[0], high[0], low[1], high[1]);
    tb_mo_print(text, "            own.round = ((t * %d + %d) << 25) + (i * p.columns + j);\n",
                sweep->parts, part);
    bool *assigned = tb_mo_find_assigned(s, f->count);
    assigned[vi] = assigned[vj] = false;
    e->depth = 3;
    for (int32_t v = 0; v < f->count; v++)
        if (assigned[v]) tb_mo_emit_variable(e, v);
    e->loops = 0;
    for (int32_t d = 0; d < 2; d++) e->loop[e->loops++] = loop->nest[d];
    tb_mo_emit_statements(e, loop->nest[1]->body);
    e->loops = 0;
    tb_mo_print(text,
                "        }\n        li += %d, hi -= %d, lj += %d, hj -= %d;\n"
                "        __syncthreads();\n",
                low[0], high[0], low[1], high[1]);
}

void tb_mo_emit_sweep(mo_emit *e, const mo_function *f, const mo_kernel *k)
{
    const mo_sweep *sweep = k->sweep;
    mo_text *text = e->text;
    e->function = f;
    e->loops = 0;
    e->sweep = sweep;
    tb_mo_print(text,
                "#define MO_SIDE %d\n#define MO_SWEEP_THREADS %d\n#define MO_FAR 1000000000\n",
                MO_SIDE, MO_SWEEP_THREADS);
    tb_mo_print(text,
                "struct p@ { int ends[%d][4], steps, rows, columns, groups;"
                " mo_int first, last, rounds, mark, *marks;"
                " unsigned long long *fault, launch; double *out[%d];"
                " union { double real; mo_int integer; } s[%d]; struct mo_array a[%d]; };\n",
                MO_SWEEP_PARTS, MO_SWEEP_ARRAYS, k->scalars > 0 ? k->scalars : 1, k->arrays);
    tb_mo_emit_head(e, f, k, "w");
    for (int32_t a = 0; a < sweep->arrays; a++)
        tb_mo_print(text, "    __shared__ double S%d[MO_SIDE * MO_SIDE];\n", sweep->array[a]);
    tb_mo_print(text,
                "    const int tr = MO_SIDE - p.steps * %d, tc = MO_SIDE - p.steps * %d;\n"
                "    const int skip_i = p.steps * %d, skip_j = p.steps * %d;\n",
                sweep->reach_low[0] + sweep->reach_high[0],
                sweep->reach_low[1] + sweep->reach_high[1], sweep->reach_low[0],
                sweep->reach_low[1]);
    append(text, BEGIN);
    emit_load(e, sweep);
    tb_mo_print(text,
                "    for (int t = 0; t < steps; t++) {\n"
                "        const mo_int v%d = first + t;\n",
                k->loop->variable);
    for (int32_t part = 0; part < sweep->parts; part++) emit_part(e, f, sweep, part);
    tb_mo_print(text, "    }\n");
    emit_keep(e, sweep);
    append(text, WAIT);
    tb_mo_print(text, "}\n\n");
    e->sweep = NULL;
    e->depth = 0;
}
