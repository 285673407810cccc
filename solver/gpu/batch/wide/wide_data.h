/* Data of the solve of a wide world, in shared memory: items, their rows of Y, impulses.
 *
 * An item is a contact of up to four rows (normal, tangents, spin) or one row of another block. Columns of
 * Y are stored by fours: the dofs 4 g to 4 g + 3 are group g, and an item holds four numbers a row for
 * each group that one of its dofs lies in, zero where it has none. So a loop over the groups has fixed
 * places, and a lane keeps a row of the system's matrix in registers.
 *
 * Arrays of rows and of items are apart by kind, so that lanes that read neighbours use different
 * banks. */
#ifndef TB_GPU_WIDE_DATA_H
#define TB_GPU_WIDE_DATA_H

#include "base/team.h"
#include "contact/judge.h"
#include "gpu/batch/small/warp_block.h"
#include "solve/solve.h"

enum {
    WIDE_MOST_DOFS = 36, /* TB_GPU_WIDE_DOFS */
#ifdef TB_UNIT_PILE
    WIDE_MOST_ITEMS = WARP_ITEMS,
    WIDE_MOST_ROWS = 3 * WARP_ITEMS,
    WIDE_MOST_QUADS = 288, /* 24 contacts between bodies without a common group */
    WIDE_SLOPES_OF_ROW = 3,
#else
    WIDE_MOST_ITEMS = 80,
    WIDE_MOST_ROWS = 112,
    WIDE_MOST_QUADS = 320,
    WIDE_SLOPES_OF_ROW = 4,
#endif
    WIDE_LANES = 32, /* of a world, which hold the first rows of the system */
    WIDE_GROUP = 4,  /* dofs */
    WIDE_GROUPS = WIDE_MOST_DOFS / WIDE_GROUP,
    WIDE_ROWS = 4, /* of an item */
    WIDE_SLOPES = WIDE_ROWS * WIDE_ROWS
};

/* In shared memory. */
typedef struct TB_ALIGNED(16) wide_memory {
    warp_quad quads[WIDE_MOST_QUADS];                 /* Y, the rows of an item in a row */
    warp_quad right[WIDE_GROUPS];                     /* ds, the solution of the system */
    warp_quad pivots[2][WIDE_GROUPS + 1];             /* rows of the elimination, in turns */
    double s[WIDE_MOST_DOFS];                         /* Y' lambda */
    double lambda[WIDE_MOST_ROWS], x[WIDE_MOST_ROWS]; /* impulses of the iterate; its velocities */
    double p[WIDE_MOST_ROWS];                         /* impulses that the proximal term pulls to */
    union {
        double answer[WIDE_MOST_ROWS]; /* the iterate in its laws' sets, which is judged */
        struct {
            tb_real step[WIDE_MOST_ROWS];   /* Newton's, of the impulses */
            tb_real change[WIDE_MOST_ROWS]; /* of the velocities by the step */
        };
    };
    tb_real lack[WIDE_MOST_ROWS]; /* prox_C(p - xi / w) - lambda */
    /* K, the numbers of an item row by row; in sweeps see wide_prepare_sweeps */
    tb_real k[WIDE_MOST_ROWS * WIDE_SLOPES_OF_ROW];
    tb_real c[WIDE_MOST_ROWS], compliance[WIDE_MOST_ROWS];
    tb_real weight[WIDE_MOST_ITEMS]; /* mean of G's diagonal */
    tb_real mu[WIDE_MOST_ITEMS];
    tb_real lower[WIDE_MOST_ITEMS], upper[WIDE_MOST_ITEMS]; /* of the first row */
    uint32_t columns[WIDE_MOST_ITEMS]; /* first quad, and from bit 16 on the groups as bits */
    uint8_t row[WIDE_MOST_ITEMS], rows[WIDE_MOST_ITEMS];
#ifdef TB_UNIT_PILE
    uint32_t items_of[WIDE_GROUPS]; /* with dofs of a group, as bits */
#else
    uint8_t block_of[WIDE_MOST_ROWS], item_of[WIDE_MOST_ROWS];
#endif
} wide_memory;

/* How far a solve is between two rounds. */
typedef struct wide_progress {
    double residual; /* of the answer, or of the iterate where that is too far to be judged */
    double last;     /* residual of the round before */
    tb_real epsilon; /* weight of the proximal term, as a share of G's diagonal */
    int32_t steps, sweeps, failures, extensions;
    int32_t limit; /* of the steps, until the solve begins anew or is given up */
} wide_progress;

typedef struct wide_solve {
    const tb_problem *problem;
    wide_memory *m;
    int32_t items, rows, dofs;
    bool has_fine; /* answers keep the rounding of their impulses */
    double tolerance;
    double inverse_norm; /* of c */
    int32_t most;        /* steps and sweeps, beyond which the solve pauses between two rounds */
    wide_progress now;
} wide_solve;

#ifdef __CUDACC__
#define WIDE_FN   static __device__ __forceinline__
#define WIDE_FULL _Pragma("unroll")
#else
#define WIDE_FN static inline
#define WIDE_FULL
#endif

/* Tells the compiler on a card that a pointer leads to shared memory, whose instructions are shorter
 * than those for any address. */
#ifdef __CUDA_ARCH__
#define WIDE_IS_SHARED(pointer) __builtin_assume(__isShared(pointer))
#else
#define WIDE_IS_SHARED(pointer) ((void)0)
#endif

TB_FN wide_memory *wide_memory_of(const wide_solve *w)
{
    WIDE_IS_SHARED(w->m);
    return w->m;
}

/* ---- items ---- */

TB_FN uint32_t wide_groups(uint32_t columns)
{
    return columns >> 16;
}

/* The first quad of row `r` of an item. */
TB_FN int32_t wide_quad(uint32_t columns, int32_t r)
{
    return (int32_t)(columns & 0xffff) + r * tb_count_bits(wide_groups(columns));
}

/* The place of a group among those of an item. */
TB_FN int32_t wide_place(uint32_t columns, int32_t group)
{
    return tb_count_bits(wide_groups(columns) & ((1u << group) - 1));
}

TB_FN bool wide_has_group(uint32_t columns, int32_t group)
{
    return (wide_groups(columns) >> group & 1) != 0;
}

/* The number of row `r` of an item that belongs to a dof, 0: none does. */
TB_FN tb_real wide_value(const wide_memory *m, uint32_t columns, int32_t r, int32_t dof)
{
    const int32_t group = dof / WIDE_GROUP;
    if (!wide_has_group(columns, group)) return 0;
    return m->quads[wide_quad(columns, r) + wide_place(columns, group)].v[dof % WIDE_GROUP];
}

/* K of an item: rows x rows numbers, no more than WIDE_SLOPES_OF_ROW for each of its rows. */
TB_FN tb_real *wide_slope(wide_memory *m, int32_t item)
{
    return m->k + WIDE_SLOPES_OF_ROW * m->row[item];
}

#ifndef TB_UNIT_PILE
/* ---- loading ---- */

/* Items that a block becomes. */
TB_STATIC int32_t wide_items_of(const tb_block *block)
{
    return block->law == TB_LAW_BILATERAL ? block->rows : 1;
}

/* The groups of a block's dofs, as bits. */
TB_STATIC uint32_t wide_groups_of(const tb_problem *problem, const tb_block *block)
{
    const tb_segment *run = problem->segments + block->segment;
    uint32_t groups = 0;
    TB_ROLLED
    for (int32_t k = 0; k < block->segments; k++) {
        const int32_t first = run[k].dof / WIDE_GROUP;
        const int32_t last = (run[k].dof + run[k].count - 1) / WIDE_GROUP;
        if (run[k].count > 0) groups |= ((2u << last) - 1) & ~((1u << first) - 1);
    }
    return groups;
}

/* Whether the problem has a size and laws that this solve takes. */
TB_STATIC bool wide_fits(const tb_problem *problem)
{
    int32_t items = 0, quads = 0;
    bool fits = problem->number_of_dofs <= WIDE_MOST_DOFS &&
                problem->number_of_rows <= WIDE_MOST_ROWS &&
                problem->number_of_blocks <= WIDE_MOST_ROWS && problem->values != NULL;
    TB_EACH (b, fits ? problem->number_of_blocks : 0) {
        const tb_block *block = &problem->blocks[b];
        fits = fits && block->law != TB_LAW_ROLLING;
        items += wide_items_of(block);
        quads += block->rows * tb_count_bits(wide_groups_of(problem, block));
    }
    (void)tb_team_before(items, &items);
    (void)tb_team_before(quads, &quads);
    return tb_team_all(fits && items <= WIDE_MOST_ITEMS && quads <= WIDE_MOST_QUADS);
}

/* The items of a block, from `item` on, their quads from `quad` on. */
TB_STATIC void wide_put_items(const wide_solve *w, const tb_block *block, int32_t b,
                              uint32_t groups, int32_t item, int32_t quad)
{
    wide_memory *m = wide_memory_of(w);
    const int32_t items = wide_items_of(block), rows = block->rows / items;
    const bool is_free = block->law == TB_LAW_BILATERAL, is_box = block->law == TB_LAW_BOX;
    TB_ROLLED
    for (int32_t i = 0; i < items; i++, item++) {
        m->columns[item] = (uint32_t)quad | groups << 16;
        m->row[item] = (uint8_t)(block->row + i * rows);
        m->rows[item] = (uint8_t)rows;
        m->mu[item] = rows > 1 ? block->mu : TB_R(0);
        m->lower[item] = is_free ? -TB_REAL_MAX : is_box ? block->lower : TB_R(0);
        m->upper[item] = is_box ? block->upper : TB_REAL_MAX;
        TB_ROLLED
        for (int32_t r = 0; r < rows; r++) {
            m->block_of[block->row + i * rows + r] = (uint8_t)b;
            m->item_of[block->row + i * rows + r] = (uint8_t)item;
        }
        quad += rows * tb_count_bits(groups);
    }
}

/* One row of Y: zero, then its numbers run by run. */
TB_STATIC void wide_put_row(const wide_solve *w, int32_t row)
{
    wide_memory *m = wide_memory_of(w);
    const tb_block *block = &w->problem->blocks[m->block_of[row]];
    const int32_t item = m->item_of[row];
    const uint32_t columns = m->columns[item];
    const warp_quad zero = {{0, 0, 0, 0}};
    const tb_real *y = w->problem->values + block->value + (row - block->row) * block->width;
    const tb_segment *run = w->problem->segments + block->segment;
    warp_quad *to = m->quads + wide_quad(columns, row - m->row[item]);
    TB_ROLLED
    for (int32_t i = 0; i < tb_count_bits(wide_groups(columns)); i++) to[i] = zero;
    TB_ROLLED
    for (int32_t k = 0; k < block->segments; k++) {
        TB_UNROLLED
        for (int32_t i = 0; i < run[k].count; i++) {
            const int32_t dof = run[k].dof + i;
            to[wide_place(columns, dof / WIDE_GROUP)].v[dof % WIDE_GROUP] = y[i];
        }
        y += run[k].count;
    }
}

/* The mean of G's diagonal of an item. */
TB_STATIC tb_real wide_weight_of(const wide_solve *w, int32_t item)
{
    const wide_memory *m = wide_memory_of(w);
    const int32_t rows = m->rows[item], first = wide_quad(m->columns[item], 0);
    tb_real sum = 0;
    TB_ROLLED
    for (int32_t q = 0; q < rows * tb_count_bits(wide_groups(m->columns[item])); q++) {
        const warp_quad y = m->quads[first + q];
        for (int i = 0; i < WIDE_GROUP; i++) sum += y.v[i] * y.v[i];
    }
    return sum / TB_R(rows);
}

/* The items and the start. */
TB_STATIC void wide_load(wide_solve *w, const tb_real *lambda, const tb_real *fine)
{
    const tb_problem *problem = w->problem;
    wide_memory *m = wide_memory_of(w);
    int32_t items = 0, quads = 0;
    TB_ROLLED
    for (int32_t base = 0; base < problem->number_of_blocks; base += tb_team_lanes()) {
        const int32_t b = base + tb_team_lane();
        const bool is = b < problem->number_of_blocks;
        const tb_block *block = &problem->blocks[is ? b : 0];
        const uint32_t groups = is ? wide_groups_of(problem, block) : 0;
        int32_t more, wider;
        const int32_t item = items + tb_team_before(is ? wide_items_of(block) : 0, &more);
        const int32_t quad =
            quads + tb_team_before(is ? block->rows * tb_count_bits(groups) : 0, &wider);
        items += more;
        quads += wider;
        if (is) wide_put_items(w, block, b, groups, item, quad);
    }
    w->items = items;
    w->rows = problem->number_of_rows;
    w->dofs = problem->number_of_dofs;
    tb_team_sync();
    TB_EACH (r, w->rows) {
        wide_put_row(w, r);
        m->lambda[r] = tb_impulse_at(lambda, fine, r);
        m->c[r] = problem->c[r];
        m->compliance[r] = problem->compliance ? problem->compliance[r] : TB_R(0);
    }
    TB_EACH (dof, WIDE_MOST_DOFS) m->s[dof] = 0;
    tb_team_sync();
    TB_EACH (i, items) m->weight[i] = wide_weight_of(w, i);
    tb_team_sync();
}

#endif /* TB_UNIT_PILE */

#endif
