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
    WIDE_MOST_QUADS = 288,    /* 24 contacts between bodies without a common group */
    WIDE_COMPLIANT_ROWS = 16, /* rows of joints, which come first */
    WIDE_HAS_STATUSES = 0,
#else
    WIDE_MOST_ITEMS = 80,
    WIDE_MOST_ROWS = 112,
    WIDE_MOST_QUADS = 448,
    WIDE_MOST_VALUES = 1432, /* of Y; more have no room on their way to its groups */
    WIDE_COMPLIANT_ROWS = WIDE_MOST_ROWS,
    WIDE_HAS_STATUSES = 1, /* solves begin with steps from statuses (wide_statuses.h) */
#endif
    WIDE_LANES = 32, /* of a world, which hold the first rows of the system */
    WIDE_GROUP = 4,  /* dofs */
    WIDE_GROUPS = WIDE_MOST_DOFS / WIDE_GROUP,
    WIDE_WHOLE_GROUPS = WIDE_LANES / WIDE_GROUP, /* at most, of whole rows */
    WIDE_ROWS = 4,                               /* of an item */
    /* the bits of a word of `columns`: first quad, row, number of rows, groups as bits */
    WIDE_QUAD_BITS = 9,
    WIDE_ROW_BITS = 7,
    WIDE_ROWS_AT = WIDE_QUAD_BITS + WIDE_ROW_BITS,
    WIDE_GROUPS_AT = WIDE_ROWS_AT + 3,
    WIDE_SLOPES = WIDE_ROWS * WIDE_ROWS
};

#ifndef TB_UNIT_PILE
/* Memory of a problem on its way to the rows of Y. */
typedef struct wide_loading {
    tb_real values[WIDE_MOST_VALUES];
    /* of a block: first of its values, from bit 12 on their number in a row, and from bit 18 on its
     * first row; its first run, and from bit 16 on the number of runs */
    uint32_t value[WIDE_MOST_ROWS], segment[WIDE_MOST_ROWS];
    uint8_t block_of[WIDE_MOST_ROWS]; /* of a row */
} wide_loading;
#endif

/* Pairs of rows of the elimination, in turns. */
typedef warp_quad wide_pivots[2][2][WIDE_GROUPS + 1];

/* In shared memory. */
typedef struct TB_ALIGNED(16) wide_memory {
    warp_quad quads[WIDE_MOST_QUADS]; /* Y, the rows of an item in a row */
    union {
#ifndef TB_UNIT_PILE
        wide_loading loading;
#endif
        struct {
#ifndef TB_UNIT_PILE
            wide_pivots pivots;
#endif
            double s[WIDE_MOST_DOFS];      /* Y' lambda */
            double lambda[WIDE_MOST_ROWS]; /* impulses of the iterate */
            union {
                double x[WIDE_MOST_ROWS];            /* its velocities, or the answer's */
                warp_quad along[WIDE_MOST_ROWS / 2]; /* see wide_prepare_rows */
            };
            union {
                double p[WIDE_MOST_ROWS]; /* impulses that the proximal term pulls to */
                warp_quad couplings[WIDE_MOST_ITEMS / 2]; /* see wide_prepare_row */
            };
            union {
                double answer[WIDE_MOST_ROWS]; /* the iterate in its laws' sets, which is judged */
#ifdef TB_UNIT_PILE
                wide_pivots
                    pivots; /* the solution, in the first rows, is read before `step` is written */
#endif
                struct {
                    tb_real step[WIDE_MOST_ROWS];   /* Newton's, of the impulses */
                    tb_real change[WIDE_MOST_ROWS]; /* of the velocities by the step */
                };
            };
#ifndef TB_UNIT_PILE
            tb_real lack[WIDE_MOST_ROWS]; /* prox_C(p - xi / w) - lambda, of contacts with spin */
#endif
            union {
                warp_quad k[WIDE_MOST_ROWS];     /* see wide_slope */
                warp_quad rates[WIDE_MOST_ROWS]; /* see wide_prepare_sweeps */
#ifdef TB_UNIT_PILE
                tb_real lack[WIDE_MOST_ROWS]; /* unused: no contact of a pile has spin */
#endif
            };
        };
    };
    tb_real c[WIDE_MOST_ROWS];
    tb_real compliance[WIDE_COMPLIANT_ROWS]; /* of the first rows; of others 0 */
    tb_real weight[WIDE_MOST_ITEMS];         /* mean of G's diagonal */
    tb_real lower[WIDE_MOST_ITEMS];          /* of the first row */
    tb_real bound[WIDE_MOST_ITEMS];          /* mu of several rows, the upper bound of one */
    uint32_t columns[WIDE_MOST_ITEMS];       /* see wide_columns */
    uint8_t active[WIDE_MOST_ITEMS];         /* its K or its lack counts in the system */
    uint8_t status[WIDE_MOST_ITEMS];         /* see wide_status_of */
#ifdef TB_UNIT_PILE
    uint8_t item_of[WIDE_MOST_ROWS]; /* of a row */
    uint32_t items_of[WIDE_GROUPS];  /* with dofs of a group, as bits */
#else
    uint32_t row_columns[WIDE_MOST_ROWS]; /* as columns, of each row alone */
#endif
} wide_memory;

/* How far a solve is between two rounds. */
typedef struct wide_progress {
    double residual; /* of the answer, or of the iterate where that is too far to be judged */
    double start;    /* residual of the start */
    double last;     /* residual of the round before */
    tb_real epsilon; /* weight of the proximal term, as a share of G's diagonal */
    int32_t steps, sweeps, failures, extensions;
    int32_t limit; /* of the steps, until the solve begins anew */
    /* the residual when x was summed from the iterate last; DBL_MAX: x is not the iterate's */
    double summed;
    double best; /* residual of the best answer of the starts given up; 0: there is none */
} wide_progress;

/* A solve, in shared memory: its lanes' stacks have no room in the first cache. */
typedef struct wide_solve {
    wide_memory memory;
#ifndef TB_UNIT_PILE
    tb_problem problem;
#endif
    double tolerance;
    double inverse_norm; /* of c */
    int32_t items, rows, dofs;
    bool has_fine; /* answers keep the rounding of their impulses */
#ifndef TB_UNIT_PILE
    uint32_t common_groups; /* see wide_common_groups */
#endif
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

TB_FN wide_memory *wide_memory_of(wide_solve *w)
{
    WIDE_IS_SHARED(w);
    return &w->memory;
}

/* ds, the solution of the system. It lies where the rows of an even pair were, because the last pair
 * is odd. */
TB_FN warp_quad *wide_right(wide_memory *m)
{
    return m->pivots[0][0];
}

/* ---- items ---- */

/* Where an item's numbers are, as one word. */
TB_FN uint32_t wide_columns(int32_t quad, int32_t row, int32_t rows, uint32_t groups)
{
    return (uint32_t)quad | (uint32_t)row << WIDE_QUAD_BITS | (uint32_t)rows << WIDE_ROWS_AT |
           groups << WIDE_GROUPS_AT;
}

TB_FN uint32_t wide_groups(uint32_t columns)
{
    return columns >> WIDE_GROUPS_AT;
}

/* The first row of an item, and the number of its rows. */
TB_FN int32_t wide_row(uint32_t columns)
{
    return (int32_t)(columns >> WIDE_QUAD_BITS & ((1u << WIDE_ROW_BITS) - 1));
}

TB_FN int32_t wide_rows(uint32_t columns)
{
    return (int32_t)(columns >> WIDE_ROWS_AT & 7);
}

/* The first quad of row `r` of an item. */
TB_FN int32_t wide_quad(uint32_t columns, int32_t r)
{
    return (int32_t)(columns & ((1u << WIDE_QUAD_BITS) - 1)) +
           r * tb_count_bits(wide_groups(columns));
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

/* Where the numbers of a row are, as of an item of one row. */
TB_FN uint32_t wide_columns_of_row(const wide_memory *m, int32_t row)
{
#ifdef TB_UNIT_PILE
    const uint32_t columns = m->columns[m->item_of[row]], groups = wide_groups(columns);
    return wide_columns(wide_quad(columns, row - wide_row(columns)), row, 1, groups);
#else
    return m->row_columns[row];
#endif
}

TB_FN tb_real wide_compliance(const wide_memory *m, int32_t row)
{
#ifdef TB_UNIT_PILE
    if (row >= (int32_t)WIDE_COMPLIANT_ROWS) return 0;
#endif
    return m->compliance[row];
}

/* The number of an item's first row that belongs to a dof whose group the item has. */
TB_FN const tb_real *wide_value_at(const wide_memory *m, uint32_t columns, int32_t dof)
{
    return m->quads[wide_quad(columns, 0) + wide_place(columns, dof / WIDE_GROUP)].v +
           dof % WIDE_GROUP;
}

/* The number of the item's first row that belongs to a dof, 0: none does. */
TB_FN tb_real wide_value(const wide_memory *m, uint32_t columns, int32_t dof)
{
    return wide_has_group(columns, dof / WIDE_GROUP) ? *wide_value_at(m, columns, dof) : TB_R(0);
}

/* The numbers of n rows of an item that belong to a dof; rows that it has not are zero. */
TB_FN warp_quad wide_values(const wide_memory *m, uint32_t columns, int32_t n, int32_t dof)
{
    warp_quad y = {{0, 0, 0, 0}};
    if (!wide_has_group(columns, dof / WIDE_GROUP)) return y;
    const tb_real *at = wide_value_at(m, columns, dof);
    const int32_t stride = WIDE_GROUP * tb_count_bits(wide_groups(columns));
    y.v[0] = at[0];
    if (n > 1) y.v[1] = at[stride];
    if (n > 2) y.v[2] = at[2 * stride];
    if (n > 3) y.v[3] = at[3 * stride];
    return y;
}

/* K of an item, row by row, and in the last place the lack of the row where K needs no more than three. */
TB_FN warp_quad *wide_slope(wide_memory *m, uint32_t columns)
{
    return m->k + wide_row(columns);
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

/* Whether the problem, whose Y has `values` numbers, has a size and laws that this solve takes. */
TB_STATIC bool wide_fits(const tb_problem *problem, int32_t values)
{
    int32_t items = 0, quads = 0;
    bool fits = values <= WIDE_MOST_VALUES && problem->number_of_dofs <= WIDE_MOST_DOFS &&
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
TB_STATIC void wide_put_items(wide_solve *w, const tb_block *block, int32_t b, uint32_t groups,
                              int32_t item, int32_t quad)
{
    wide_memory *m = wide_memory_of(w);
    const int32_t items = wide_items_of(block), rows = block->rows / items;
    const int32_t width = tb_count_bits(groups);
    const bool is_free = block->law == TB_LAW_BILATERAL, is_box = block->law == TB_LAW_BOX;
    m->loading.value[b] =
        (uint32_t)block->value | (uint32_t)block->width << 12 | (uint32_t)block->row << 18;
    m->loading.segment[b] = (uint32_t)block->segment | (uint32_t)block->segments << 16;
    TB_ROLLED
    for (int32_t r = 0; r < block->rows; r++) {
        m->loading.block_of[block->row + r] = (uint8_t)b;
        m->row_columns[block->row + r] = wide_columns(quad + r * width, block->row + r, 1, groups);
    }
    TB_ROLLED
    for (int32_t i = 0; i < items; i++, item++) {
        m->columns[item] =
            wide_columns(quad + i * rows * width, block->row + i * rows, rows, groups);
        m->lower[item] = is_free ? -TB_REAL_MAX : is_box ? block->lower : TB_R(0);
        m->bound[item] = rows > 1 ? block->mu : is_box ? block->upper : TB_REAL_MAX;
    }
}

/* One row of Y: zero, then its numbers run by run. */
TB_STATIC void wide_put_row(wide_solve *w, int32_t row)
{
    wide_memory *m = wide_memory_of(w);
    const int32_t block = m->loading.block_of[row];
    const uint32_t columns = m->row_columns[row], value = m->loading.value[block];
    const uint32_t segment = m->loading.segment[block];
    const warp_quad zero = {{0, 0, 0, 0}};
    const tb_segment *run = w->problem.segments + (segment & 0xffff);
    const int32_t own = row - (int32_t)(value >> 18), width = (int32_t)(value >> 12 & 63);
    const tb_real *y = m->loading.values + (value & 4095) + own * width;
    warp_quad *to = m->quads + wide_quad(columns, 0);
    TB_ROLLED
    for (int32_t i = 0; i < tb_count_bits(wide_groups(columns)); i++) to[i] = zero;
    TB_ROLLED
    for (int32_t k = 0; k < (int32_t)(segment >> 16); k++) {
        const tb_segment own_run = run[k];
        TB_UNROLLED
        for (int32_t i = 0; i < own_run.count; i++) {
            const int32_t dof = own_run.dof + i;
            to[wide_place(columns, dof / WIDE_GROUP)].v[dof % WIDE_GROUP] = y[i];
        }
        y += own_run.count;
    }
}

/* The mean of G's diagonal of an item. */
TB_STATIC tb_real wide_weight_of(wide_solve *w, int32_t item)
{
    const wide_memory *m = wide_memory_of(w);
    const uint32_t columns = m->columns[item];
    const int32_t rows = wide_rows(columns), first = wide_quad(columns, 0);
    tb_real sum = 0;
    TB_ROLLED
    for (int32_t q = 0; q < rows * tb_count_bits(wide_groups(columns)); q++) {
        const warp_quad y = m->quads[first + q];
        for (int i = 0; i < WIDE_GROUP; i++) sum += y.v[i] * y.v[i];
    }
    return sum / TB_R(rows);
}

/* The groups of all dofs where every item is to have all of them: the system takes whole rows faster
 * than rows of few groups where items have half of the groups or more, and there is room. Else
 * none. */
TB_STATIC uint32_t wide_common_groups(const tb_problem *problem)
{
    const int32_t groups = (problem->number_of_dofs + WIDE_GROUP - 1) / WIDE_GROUP;
    const int32_t all = problem->number_of_rows * groups;
    int32_t quads = 0;
    TB_EACH (b, problem->number_of_blocks)
        quads +=
            problem->blocks[b].rows * tb_count_bits(wide_groups_of(problem, &problem->blocks[b]));
    (void)tb_team_before(quads, &quads);
    const bool is_whole = 2 * quads >= all && all <= WIDE_MOST_QUADS && groups <= WIDE_WHOLE_GROUPS;
    return is_whole ? (1u << groups) - 1 : 0;
}

/* Items of all blocks. */
TB_STATIC void wide_load_items(wide_solve *w)
{
    const tb_problem *problem = &w->problem;
    const uint32_t common = wide_common_groups(problem);
    int32_t items = 0, quads = 0;
    TB_ROLLED
    for (int32_t base = 0; base < problem->number_of_blocks; base += tb_team_lanes()) {
        const int32_t b = base + tb_team_lane();
        const bool is = b < problem->number_of_blocks;
        const tb_block *block = &problem->blocks[is ? b : 0];
        const uint32_t groups = !is ? 0 : common ? common : wide_groups_of(problem, block);
        int32_t more, wider;
        const int32_t item = items + tb_team_before(is ? wide_items_of(block) : 0, &more);
        const int32_t quad =
            quads + tb_team_before(is ? block->rows * tb_count_bits(groups) : 0, &wider);
        items += more;
        quads += wider;
        if (is) wide_put_items(w, block, b, groups, item, quad);
    }
    if (TB_LEADER) {
        w->items = items;
        w->rows = problem->number_of_rows;
        w->dofs = problem->number_of_dofs;
        w->common_groups = common;
    }
}

/* The impulses of the start as the iterate. */
TB_STATIC void wide_put_start(wide_solve *w, const tb_real *lambda, const tb_real *fine)
{
    TB_EACH (r, w->rows) wide_memory_of(w)->lambda[r] = tb_impulse_at(lambda, fine, r);
    tb_team_sync();
}

/* The items, of which Y has `values` numbers, and the start. The numbers are copied first, all at
 * once: lanes that read their rows from memory would wait for one number after another. */
TB_STATIC void wide_load(wide_solve *w, int32_t values, const tb_real *lambda, const tb_real *fine)
{
    const tb_problem *problem = &w->problem;
    wide_memory *m = wide_memory_of(w);
    double c_squared = 0;
    tb_team_copy(m->loading.values, problem->values, (size_t)values * sizeof(tb_real));
    TB_EACH (r, problem->number_of_rows) {
        m->c[r] = problem->c[r];
        m->compliance[r] = problem->compliance ? problem->compliance[r] : TB_R(0);
    }
    wide_load_items(w);
    tb_team_sync();
    TB_EACH (r, w->rows) {
        wide_put_row(w, r);
        c_squared += (double)m->c[r] * (double)m->c[r];
    }
    c_squared = tb_team_total(c_squared);
    if (TB_LEADER) w->inverse_norm = c_squared > 0 ? 1 / sqrt(c_squared) : 1;
    tb_team_sync();
    wide_put_start(w, lambda, fine);
    TB_EACH (dof, WIDE_MOST_DOFS) m->s[dof] = 0;
    TB_EACH (i, w->items) m->weight[i] = wide_weight_of(w, i);
    /* wide_add_whole_item multiplies it by zero, behind a last item of two rows */
    if (TB_LEADER && w->rows < WIDE_MOST_ROWS) m->k[w->rows] = TB_VALUE(warp_quad){{0, 0, 0, 0}};
    tb_team_sync();
}

#endif /* TB_UNIT_PILE */

#endif
