/* Contact problems: residuals, stop tests, products with the matrices, the contact graph, files. */
#ifndef TB_CONTACT_H
#define TB_CONTACT_H

#include "contact/problem.h"
#include "contact/prox.h"
#include "contact/local_solve.h"
#include "contact/stop_tests.h"

/* The sum of the squares of c. */
#define tb_problem_c_squared TB_SYMBOL(tb_problem_c_squared)
TB_EXTERN double tb_problem_c_squared(const tb_problem *problem);

/* ---- residuals ---- */

typedef struct tb_residuals {
    /* || lambda - proj_K(lambda - (xi + mu |xi_T| e_N)) || / || c ||, rho = 1 (De Saxcé); laws
     * without that form use lambda - prox_C(lambda - xi). Not divided if c = 0 */
    double natural;
    double natural_absolute;     /* the same without the division */
    double complementarity;      /* largest |lambda_n xi_n|, J */
    double cone;                 /* largest excess of friction over its set, N s */
    double penetration_velocity; /* largest -xi_n, m/s */
} tb_residuals;

/* Replaces a residual that is not a number, so that callers never receive NaN. */
#define TB_RESIDUAL_UNKNOWN DBL_MAX

/* An impulse in double: `fine` (rows, or NULL) holds the remainder that the float `lambda`
 * rounds away. The double build has no remainder. */
TB_FN double tb_impulse_at(const tb_real *lambda, const tb_real *fine, int32_t row)
{
#ifdef TB_SINGLE
    return fine ? (double)lambda[row] + (double)fine[row] : (double)lambda[row];
#else
    (void)fine;
    return lambda[row];
#endif
}

/* Computes the residuals of lambda plus `fine` (see tb_impulse_at), independently of the solver:
 * computes xi (rows, may be NULL to discard) in double from the problem's numbers. `whitened` (dofs,
 * may be NULL) receives Y lambda in the factorized form. `scratch` gives dofs doubles, unless
 * `whitened` is given, and for a team also a double a block and a record a lane. */
#define tb_problem_judge TB_SYMBOL(tb_problem_judge)
TB_EXTERN tb_status tb_problem_judge(const tb_problem *problem, const tb_real *lambda,
                                     const tb_real *fine, tb_arena *scratch, double *whitened,
                                     tb_real *xi, tb_residuals *residuals);
/* The same of lambda alone, without `whitened`. */
#define tb_problem_residuals TB_SYMBOL(tb_problem_residuals)
TB_EXTERN tb_status tb_problem_residuals(const tb_problem *problem, const tb_real *lambda,
                                         tb_arena *scratch, tb_real *xi, tb_residuals *residuals);

/* Other measures of the literature, all in double, from impulses and their xi. */

/* Poulsen's constant R of his quality gamma = 1/2 || prox(lambda - R xi) - lambda ||^2; at least
 * ten times the solver's r. */
#define TB_POULSEN_R 100.0
/* Poulsen's Theta = e . e and epsilon-infinity = max |e_i| of the
 * increment e = lambda - previous. */
#define tb_increment_theta TB_SYMBOL(tb_increment_theta)
TB_EXTERN double tb_increment_theta(const tb_real *lambda, const tb_real *previous, int32_t rows);
#define tb_increment_epsilon TB_SYMBOL(tb_increment_epsilon)
TB_EXTERN double tb_increment_epsilon(const tb_real *lambda, const tb_real *previous, int32_t rows);
/* Nützi's tests of the increment: every element (4.49), and the 2-norm (4.50). False for NaN. */
#define tb_increment_element_test TB_SYMBOL(tb_increment_element_test)
TB_EXTERN bool tb_increment_element_test(const tb_real *lambda, const tb_real *previous,
                                         int32_t rows, double relative, double absolute);
#define tb_increment_norm_test TB_SYMBOL(tb_increment_norm_test)
TB_EXTERN bool tb_increment_norm_test(const tb_real *lambda, const tb_real *previous, int32_t rows,
                                      double relative, double absolute);
/* Betz's one-sided test of every block (3.8): rho_n > -tolerance, and friction converged where
 * lambda_n = 0, |rho_f| < tolerance or the trial impulse lambda - r rho (r of each block's friction
 * rows, `r` has a number for every row) was clamped. */
#define tb_problem_one_sided_test TB_SYMBOL(tb_problem_one_sided_test)
TB_EXTERN bool tb_problem_one_sided_test(const tb_problem *problem, const tb_real *lambda,
                                         const tb_real *xi, const tb_real *r, double tolerance);

/* A team computes the following functions together: all lanes call each function with the same
 * arguments, and all lanes see its results when it returns. */

/* xi = G lambda + E lambda + c, in working precision. `s` (dofs) receives Y lambda in the
 * factorized form. */
#define tb_problem_apply TB_SYMBOL(tb_problem_apply)
TB_EXTERN void tb_problem_apply(const tb_problem *problem, const tb_real *lambda, tb_real *s,
                                tb_real *xi);

/* s = Y lambda (dofs), the factorized form only. */
#define tb_problem_whiten TB_SYMBOL(tb_problem_whiten)
TB_EXTERN void tb_problem_whiten(const tb_problem *problem, const tb_real *lambda, tb_real *s);
/* s += the contribution of the blocks first to end - 1 to Y lambda. */
#define tb_problem_whiten_blocks TB_SYMBOL(tb_problem_whiten_blocks)
TB_EXTERN void tb_problem_whiten_blocks(const tb_problem *problem, int32_t first, int32_t end,
                                        const tb_real *lambda, tb_real *s);

/* The Delassus matrix, dense row-major rows x rows, compliance on the diagonal. */
#define tb_problem_delassus TB_SYMBOL(tb_problem_delassus)
TB_EXTERN tb_status tb_problem_delassus(const tb_problem *problem, tb_real *g);

/* The diagonal block of one block, rows x rows, compliance on the diagonal. Computed by one
 * lane. */
#define tb_problem_local_block TB_SYMBOL(tb_problem_local_block)
TB_EXTERN void tb_problem_local_block(const tb_problem *problem, int32_t block, tb_real *g);

/* OPEN, STICK, SLIP of every block from its impulses. */
#define tb_problem_statuses TB_SYMBOL(tb_problem_statuses)
TB_EXTERN void tb_problem_statuses(const tb_problem *problem, const tb_real *lambda,
                                   uint8_t *statuses);

/* ---- contact graph ---- */

/* Blocks that share a dof: for colouring, ordering and islands. CSR over blocks,
 * without self, sorted. */
typedef struct tb_contact_graph {
    int32_t number_of_blocks;
    const int32_t *start; /* number_of_blocks + 1 */
    const int32_t *neighbour;
} tb_contact_graph;

#define tb_contact_graph_build TB_SYMBOL(tb_contact_graph_build)
TB_EXTERN tb_status tb_contact_graph_build(const tb_problem *problem, tb_arena *arena,
                                           tb_contact_graph *graph);

/* ---- files (double only) ---- */

#ifndef TB_SINGLE
/* Writes a problem as ".dat" or ".hdf5": the Delassus matrix is assembled. Takes Coulomb
 * contacts with frictionless ones (padded by two inactive rows), or planar ones; bilateral rows
 * are eliminated. UNSUPPORTED names any other law. */
TB_EXTERN tb_status tb_problem_write(const tb_problem *problem, const char *path, tb_error *error);

/* The local problem of a file, given or reduced from its global form. Borrowed. */
TB_EXTERN const tb_problem *tb_problem_file_local(const tb_problem_file *file);
#endif

#endif
