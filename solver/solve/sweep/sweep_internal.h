/* The iteration that sor and jor share: set-up, sweeps, stop tests, divergence,
 * the honest account. */
#ifndef TB_SWEEP_INTERNAL_H
#define TB_SWEEP_INTERNAL_H

#include "base/team.h"
#include "solve/solve.h"
#include "solve/sweep/sweep.h"

#define tb_sweeper TB_SYMBOL(tb_sweeper)
typedef struct tb_sweeper tb_sweeper;

/* No byte of a link is a gap, since all of it is written and read at once. */
enum { TB_LINK_FILLING = sizeof(tb_real) == sizeof(double) ? 1 : 3 };

/* A Coulomb contact that is solved by rows, or a block of one row, as a team's sweep reads it: all
 * of it at once, in a lane's widest accesses. */
typedef struct TB_ALIGNED(16) tb_team_link {
    const tb_real *y;    /* its rows */
    const uint16_t *dof; /* of its columns; NULL: it is a block of another kind */
    int32_t row, width;
    uint8_t law, shape, rows, filling;
    int32_t more_filling[TB_LINK_FILLING];
    tb_real mu, r_normal, r_friction;
    tb_real g_normal, g_friction; /* g_00, the larger of g_11 and g_22 */
    tb_real carry[2];             /* g_10 and g_20; of one row its bounds */
    tb_real c[3];
} tb_team_link;

/* The order of a coloured sweep: blocks of colour c are order[start[c]] to order[start[c + 1] -
 * 1]. */
typedef struct tb_colours {
    int32_t number, threads;
    int32_t unsafe; /* the last colours, 0 or 1, whose blocks may share dofs */
    const int32_t *start, *order;
    double *measures; /* of the chunks of one colour */
    tb_real *changes; /* rows: of the impulses of the unsafe colour */
} tb_colours;

/* Each lane of a team has one; the lanes share the arrays behind its pointers. All lanes call
 * the functions below together, with the same arguments; at the return all see the written numbers. */
struct tb_sweeper {
    const tb_problem *problem;
    tb_sweep_block *blocks;
    tb_real *local;      /* diagonal blocks of more than three rows */
    tb_real *lambda;     /* rows */
    tb_real *s;          /* dofs, Y lambda; factorized form */
    tb_real *next;       /* jor: the new s or the new lambda */
    tb_real *change;     /* jor, on devices: rows, the change of lambda by each block */
    double *measures;    /* jor, on devices: blocks, their shares of a sweep's measure */
    tb_real *products;   /* sor, on devices: of three rows' columns with s */
    tb_team_link *links; /* likewise: blocks, or NULL */
    tb_real *alpha;      /* blocks: slip parameters of the exact local solves, or NULL */
    tb_real *g;          /* dense form: G, rows x rows, where it had to be assembled */
    tb_real *t;          /* T form: 1 - R G, rows x rows */
    tb_real *d;          /* T form: -R c, rows */
    tb_matrix matrix;    /* G as swept: the problem's own or `g` */
    tb_storage storage;  /* as resolved */
    bool whole;          /* blocks are solved as wholes where that pays */
    bool painleve;       /* and where rows cannot, in any case */
    bool gauss_seidel;   /* sor, else jor */
    tb_real omega;
    double r_global;           /* of TB_R_SPECTRUM, before omega */
    const tb_colours *colours; /* NULL: blocks in their order */
};

/* Most columns of a block whose dofs are listed on devices. */
enum { TB_LISTED_COLUMNS = 64 };

/* One sweep over all blocks, in the sweeper's storage: moves lambda (and s). Returns the squared
 * length of the change in velocity units, sum (g_ii dlambda_i)^2, from which the stop test
 * estimates the residual. */
#define tb_sor_sweep TB_SYMBOL(tb_sor_sweep)
TB_EXTERN double tb_sor_sweep(tb_sweeper *sweeper);
#define tb_jor_sweep TB_SYMBOL(tb_jor_sweep)
TB_EXTERN double tb_jor_sweep(tb_sweeper *sweeper);

/* Runs a method to its end: sor, or jor if not `gauss_seidel`. `omega` is the method's own
 * relaxation. Everything is taken from warm->scratch and returned. */
#define tb_iterate TB_SYMBOL(tb_iterate)
TB_EXTERN tb_status tb_iterate(const tb_problem *problem, const tb_solve_options *options,
                               tb_warm_start *warm, tb_solution *solution, const char *name,
                               double omega, bool gauss_seidel);

/* The same by colours of the blocks, on options->threads; factorized form, not on devices. */
#define tb_iterate_coloured TB_SYMBOL(tb_iterate_coloured)
TB_EXTERN tb_status tb_iterate_coloured(const tb_problem *problem, const tb_solve_options *options,
                                        tb_warm_start *warm, tb_solution *solution,
                                        const char *name, double omega);
#define tb_colours_find TB_SYMBOL(tb_colours_find)
TB_EXTERN tb_status tb_colours_find(const tb_problem *problem, const tb_solve_options *options,
                                    tb_arena *arena, tb_colours *colours);
#define tb_coloured_sweep TB_SYMBOL(tb_coloured_sweep)
TB_EXTERN double tb_coloured_sweep(tb_sweeper *sweeper);

/* Memory and storage. FAILED_PRECONDITION for options that do not fit the problem. */
#define tb_sweeper_prepare TB_SYMBOL(tb_sweeper_prepare)
TB_EXTERN tb_status tb_sweeper_prepare(tb_sweeper *sweeper, const tb_problem *problem,
                                       const tb_solve_options *options, bool gauss_seidel,
                                       tb_arena *scratch);

/* Fills the blocks from `first` on before `end`, with their diagonal blocks, their r-factors for
 * the first omega, and their rows of T where it is used. The sweeper's omega is set when all have
 * theirs. */
#define tb_sweeper_start TB_SYMBOL(tb_sweeper_start)
TB_EXTERN void tb_sweeper_start(tb_sweeper *sweeper, const tb_solve_options *options, int32_t first,
                                int32_t end, tb_real omega);

/* r-factors for another omega, and T where it is used (scaled, not built again). */
#define tb_sweeper_set_omega TB_SYMBOL(tb_sweeper_set_omega)
TB_EXTERN void tb_sweeper_set_omega(tb_sweeper *sweeper, const tb_solve_options *options,
                                    tb_real omega);

/* 2 / (smallest + largest eigenvalue) of G. */
#define tb_spectrum_r TB_SYMBOL(tb_spectrum_r)
TB_EXTERN tb_status tb_spectrum_r(const tb_problem *problem, tb_arena *scratch, double *r);

#endif
