/* The kernel of a sweep: a block keeps MO_SIDE x MO_SIDE elements of each array that the loop stores in
 * shared memory and takes several rounds there. It writes the elements whose values cannot depend on
 * elements outside; the rim, as wide as the rounds reach, is recomputed by the neighbouring blocks.
 * A launch takes one group of rounds, or many: between two groups a block keeps its own elements where they
 * are, waits for the blocks around it, and reads its rim from what they wrote. Such a launch is
 * cooperative, so that no block waits for one that has not begun. Groups read one buffer and write the
 * other by turns: a neighbour that still reads one group is never overtaken by two.
 *
 * li ... hi and lj ... hj are the rows and columns that a block holds, from 0, without end where the arrays
 * end. Each part makes fewer of them right: by what it reads before and behind its own element. A thread
 * has the same MO_OWN elements in all parts, and knows the last round in which each is right. */
#include "modelica/card/kernels.h"

#include <string.h>

/* clang-format off */
static const char BEGIN[] =
    "    const int across = (p.columns + tc - 1) / tc;\n"
    "    const int bi = (int)blockIdx.x / across, bj = (int)blockIdx.x % across;\n"
    "    const int oi = bi * tr - skip_i, oj = bj * tc - skip_j;\n"
    "    const int li = oi <= 0 ? -MO_FAR : oi, hi = oi + MO_SIDE >= p.rows ? MO_FAR : oi + MO_SIDE - 1;\n"
    "    const int lj = oj <= 0 ? -MO_FAR : oj, hj = oj + MO_SIDE >= p.columns ? MO_FAR : oj + MO_SIDE - 1;\n";
static const char GROUP[] =
    "    for (int g = 0; g < p.groups; g++) {\n"
    "    const mo_int first = p.first + (mo_int)g * p.steps;\n"
    "    const int steps = p.last - first < p.steps ? (int)(p.last - first) + 1 : p.steps;\n"
    "    struct mo_run own = {p.fault, p.launch + g, 0, p.rounds}, *const run = &own;\n";
static const char EACH[] =
    "_Pragma(\"unroll\") for (int q = 0; q < MO_OWN; q++) {\n"
    "            const int e = threadIdx.x + q * MO_SWEEP_THREADS, r = e / MO_SIDE, c = e % MO_SIDE;\n"
    "            const int i = oi + r, j = oj + c;\n";
static const char INNER[] =
    "            const bool inner = r >= skip_i && c >= skip_j && r < skip_i + tr && c < skip_j + tc;\n";
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

static void emit_each(mo_text *text)
{
    append(text, "        ");
    append(text, EACH);
}

/* All elements before the first group, the rim before the others. All are asked for before any is used. */
static void emit_load(mo_emit *e, const mo_sweep *sweep)
{
    mo_text *text = e->text;
    for (int32_t k = 0; k < sweep->arrays; k++)
        tb_mo_print(text, "    double T%d[MO_OWN];\n", sweep->array[k]);
    for (int32_t pass = 0; pass < 2; pass++) {
        emit_each(text);
        append(text, INNER);
        for (int32_t k = 0; k < sweep->arrays; k++) {
            const int32_t a = sweep->array[k];
            tb_mo_print(
                text,
                "            if ((g == 0 || !inner) && (unsigned)i < (unsigned)A%d->size[0] &&"
                " (unsigned)j < (unsigned)A%d->size[1])\n",
                a, a);
            if (pass == 0)
                tb_mo_print(
                    text,
                    "                T%d[q] = (g %% 2 == 0 ? (double *)A%d->data : p.out[%d])"
                    "[i * (int)A%d->size[1] + j];\n",
                    a, a, k, a);
            else
                tb_mo_print(text, "                S%d[e] = T%d[q];\n", a, a);
        }
        tb_mo_print(text, "        }\n");
    }
    tb_mo_print(text, "    __syncthreads();\n");
}

static void emit_keep(mo_emit *e, const mo_sweep *sweep)
{
    mo_text *text = e->text;
    emit_each(text);
    append(text, INNER);
    for (int32_t k = 0; k < sweep->arrays; k++) {
        const int32_t a = sweep->array[k];
        tb_mo_print(text,
                    "            if (inner && i < (int)A%d->size[0] && j < (int)A%d->size[1])\n"
                    "                (g %% 2 == 0 ? p.out[%d] : (double *)A%d->data)"
                    "[i * (int)A%d->size[1] + j] = S%d[e];\n",
                    a, a, k, a, a, a);
    }
    tb_mo_print(text, "        }\n");
}

/* the last round in which a thread's elements are among the part's and right; -1: none */
static void emit_last(mo_emit *e, const mo_sweep *sweep)
{
    mo_text *text = e->text;
    int32_t low[2] = {0}, high[2] = {0};
    for (int32_t k = 0; k < sweep->parts; k++)
        if (sweep->part[k]->op == MO_S_FOR) tb_mo_print(text, "    int last%d[MO_OWN];\n", k);
    emit_each(text);
    for (int32_t k = 0; k < sweep->parts; k++) {
        if (sweep->part[k]->op != MO_S_FOR) continue;
        for (int32_t d = 0; d < 2; d++) {
            low[d] += sweep->low[k][d];
            high[d] += sweep->high[k][d];
        }
        tb_mo_print(
            text,
            "            last%d[q] = i + 1 < p.ends[%d][0] || i + 1 > p.ends[%d][1] ||"
            " j + 1 < p.ends[%d][2] || j + 1 > p.ends[%d][3] ? -1 :\n"
            "                min(min(mo_right(i - li - %d, %d), mo_right(hi - i - %d, %d)),\n"
            "                    min(mo_right(j - lj - %d, %d), mo_right(hj - j - %d, %d)));\n",
            k, k, k, k, k, low[0], sweep->reach_low[0], high[0], sweep->reach_high[0], low[1],
            sweep->reach_low[1], high[1], sweep->reach_high[1]);
    }
    tb_mo_print(text, "        }\n");
}

/* the rounds of a nest whose elements and reads are right, each by one thread */
static void emit_part(mo_emit *e, const mo_function *f, const mo_sweep *sweep, int32_t part)
{
    mo_text *text = e->text;
    const mo_s *s = sweep->part[part];
    emit_each(text);
    if (s->op == MO_S_ALLOCATE) {
        tb_mo_print(text, "            S%d[e] = 0;\n        }\n        __syncthreads();\n",
                    s->variable);
        return;
    }
    if (s->op == MO_S_COPY) {
        tb_mo_print(text, "            S%d[e] = S%d[e];\n        }\n        __syncthreads();\n",
                    s->variable, s->source);
        return;
    }
    const mo_loop *loop = s->loop;
    const int32_t vi = loop->nest[0]->variable, vj = loop->nest[1]->variable;
    tb_mo_print(text,
                "            const mo_int v%d = i + 1, v%d = j + 1;\n"
                "            if (t > last%d[q]) continue;\n"
                "            own.round = ((t * %d + %d) << 25) + (i * p.columns + j);\n",
                vi, vj, part, sweep->parts, part);
    bool *assigned = tb_mo_find_assigned(s, f->count);
    assigned[vi] = assigned[vj] = false;
    e->depth = 3;
    for (int32_t v = 0; v < f->count; v++)
        if (assigned[v]) tb_mo_emit_variable(e, v);
    e->loops = 0;
    for (int32_t d = 0; d < 2; d++) e->loop[e->loops++] = loop->nest[d];
    tb_mo_emit_statements(e, loop->nest[1]->body);
    e->loops = 0;
    tb_mo_print(text, "        }\n        __syncthreads();\n");
}

void tb_mo_emit_sweep(mo_emit *e, const mo_function *f, const mo_kernel *k)
{
    const mo_sweep *sweep = k->sweep;
    mo_text *text = e->text;
    e->function = f;
    e->loops = 0;
    e->sweep = sweep;
    tb_mo_print(text,
                "#define MO_SIDE %d\n#define MO_SWEEP_THREADS %d\n#define MO_FAR 1000000000\n"
                "#define MO_OWN (MO_SIDE * MO_SIDE / MO_SWEEP_THREADS)\n",
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
    emit_last(e, sweep);
    append(text, GROUP);
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
