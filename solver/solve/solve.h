/* Solvers: one file each, all of one signature, found by name.
 *
 * A solver sees a contact problem and nothing of bodies or time. It starts from `warm` if the
 * options say so, and leaves impulses, statuses and their measured residual in `solution`. */
#ifndef TB_SOLVE_H
#define TB_SOLVE_H

#include "contact/contact.h"

/* A block's status that is not known. */
enum { TB_STATUS_UNKNOWN = 255 };

/* Running averages of solve cost, read by `auto`. All zero: none yet. Doubles, because a state
 * holds doubles. */
typedef struct tb_solve_history {
    double
        sweeps; /* that solves by sweeps take; fades while Newton solves, so that they come again */
    double steps; /* that Newton takes from the sets of the last solve; fades while sweeps solve */
    double price; /* of such a step, in sweeps; 0: not known */
    /* sweeps that a solve costs which Newton begins and ends; 0: not known; decays while others
     * solve */
    double newton;
    /* epsilon to which steps from statuses had to weaken their pull, for the world's slow motions;
     * grows from solve to solve; 0: none is known */
    double pull;
} tb_solve_history;

enum { TB_HISTORY_NUMBERS = sizeof(tb_solve_history) / sizeof(double) };

/* Up to TB_DENSE_DOFS a dense LU can be cheaper than a fill-reducing ordering. Up to
 * TB_CACHED_FACTOR_DOFS the system is always dense, and its factor is kept from solve to solve: the
 * square of doubles is part of every state. */
enum { TB_DENSE_DOFS = 64, TB_CACHED_FACTOR_DOFS = 24 };

/* Numbers of a factor that is kept from solve to solve: the share of the diagonal that its weights
 * were (0: there is none), and the inverse of its matrix, dofs x dofs. Of larger systems none is
 * kept: 0. */
TB_FN int32_t tb_cached_factor_numbers(int32_t dofs)
{
    return dofs <= TB_CACHED_FACTOR_DOFS ? 1 + dofs * dofs : 0;
}

/* State that a caller carries from solve to solve, and a solver's working memory. */
#define tb_warm_start TB_SYMBOL(tb_warm_start)
typedef struct tb_warm_start {
    const tb_real *lambda;     /* rows, or NULL: start from zero */
    const tb_real *fine;       /* rows, or NULL: rounding of lambda */
    const uint8_t *statuses;   /* blocks, tb_contact_status or unknown; NULL: none is known */
    const tb_real *speeds;     /* blocks, m/s: speed of slipping blocks; NULL: not known */
    tb_arena *scratch;         /* returned to where it was */
    tb_solve_history *history; /* read and updated; NULL: not kept */
    double *factor;            /* tb_cached_factor_numbers, likewise */
    /* source of `factor`: the solver that first uses the factor copies it and writes NULL here;
     * auto leaves it if sweeps suffice. NULL: `factor` is filled */
    const double *last_factor;
    bool apart; /* the problem is an island of a larger world */
} tb_warm_start;

/* Counts of linear solves of a solve. */
typedef struct tb_solve_work {
    int32_t linear_solves;  /* of Newton's system; staggered: right-hand sides of both programs */
    int32_t factorizations; /* of it; of both */
    int32_t resets;         /* the last step's sets were tried, and given up; factored once more */
    int32_t cycle; /* staggered: turns after which its sets came back when it gave up; else 0 */
} tb_solve_work;

/* The caller provides the arrays. */
#define tb_solution TB_SYMBOL(tb_solution)
typedef struct tb_solution {
    tb_real *lambda;       /* rows, N s */
    tb_real *fine;         /* rows: belongs to lambda where has_fine says so; may be NULL */
    tb_real *xi;           /* rows, m/s */
    double *whitened;      /* dofs, Y lambda; factorized form only, may be NULL */
    uint8_t *statuses;     /* blocks, tb_contact_status */
    tb_status status;      /* OK, NOT_CONVERGED, DIVERGED */
    int32_t iterations;    /* sweeps over all rows, of all attempts */
    int32_t halvings;      /* of omega */
    int32_t first_check;   /* sweeps before the residual was first looked at; 0: never */
    double first_residual; /* natural, then */
    tb_solve_work work;    /* of all attempts */
    bool at_rounding;      /* newton: it gave up where rounding leaves no more to gain */
    bool has_fine; /* lambda is the float rounding of the judged impulses; the rest is in fine */
    tb_residuals residuals; /* of lambda, in double */
    char solver[16]; /* the solver that ended the work; auto: none, the start met the tolerance */
} tb_solution;

/* Says which solver ended the work. */
TB_FN void tb_solution_sign(tb_solution *solution, const char *name)
{
    const int size = (int)sizeof solution->solver;
    TB_ROLLED
    for (int i = 0, end = 0; i < size; i++) {
        end = end || i == size - 1 || name[i] == 0;
        solution->solver[i] = end ? (char)0 : name[i];
    }
}

/* Failures (memory, bad options) are the return value; not reaching the tolerance is
 * solution->status. A solver never returns numbers that are not finite: it says DIVERGED and gives
 * its last good ones. */
#define tb_solve_function TB_SYMBOL(tb_solve_function)
typedef tb_status tb_solve_function(const tb_problem *problem, const tb_solve_options *options,
                                    tb_warm_start *warm, tb_solution *solution);

/* The registry: a new solver is a file and a line. */
#define TB_SOLVER_LIST(X)                                                                          \
    X(sor, "projected Gauss-Seidel with over-relaxation, slow sweeps accelerated (Anderson)")      \
    X(jor, "projected Jacobi with over-relaxation; order of contacts does not matter")             \
    X(newton, "semismooth Newton on the exact cone with a proximal term, after a few sweeps")      \
    X(auto, "sor while its sweeps promise to do, newton where they do not")                        \
    X(staggered, "normals and friction in turn by active sets (SCHURPA), on a cone of four "       \
                 "facets")                                                                         \
    X(coloured,                                                                                    \
      "sor by colours of the contact graph on all threads, the same bytes on any number")          \
    X(prox_serial, "Betz's sweeps for contacts in the plane, with his freeze and restart")         \
    X(prox_cuda, "Betz's sweeps in the plane, all contacts and all bodies at once")                \
    X(mprgp, "conjugate gradients on the contacts in the plane that push, with projections")       \
    X(lemke, "complementary pivoting for contacts in the plane, the reference there")

/* by name; NULL if there is none. */
#define tb_solver_find TB_SYMBOL(tb_solver_find)
tb_solve_function *tb_solver_find(const char *name);

#define tb_solve_jor TB_SYMBOL(tb_solve_jor)
TB_EXTERN tb_solve_function tb_solve_jor;
#define tb_solve_sor TB_SYMBOL(tb_solve_sor)
TB_EXTERN tb_solve_function tb_solve_sor;

/* Newton stops by the residual under every stop option, and auto leaves other stop tests to sor.
 * Both count Newton steps as iterations like sweeps. Impulses are the ones with the smallest
 * residual met. */
#define tb_solve_newton TB_SYMBOL(tb_solve_newton)
TB_EXTERN tb_solve_function tb_solve_newton;
#define tb_solve_auto TB_SYMBOL(tb_solve_auto)
TB_EXTERN tb_solve_function tb_solve_auto;
/* True if a warm solve of `auto` begins with sweeps, by its history. */
#define tb_auto_begins_with_sweeps TB_SYMBOL(tb_auto_begins_with_sweeps)
TB_EXTERN bool tb_auto_begins_with_sweeps(const tb_solve_history *history);

/* Share of the tolerance below which a start is accepted without steps from its sets. */
#define tb_auto_rest TB_SYMBOL(tb_auto_rest)
TB_EXTERN double tb_auto_rest(const tb_solve_history *history);

/* Stops by the residual, or when the alternation no longer changes. Its cone has four facets:
 * sliding contacts in space keep a residual against the exact cone, and the solution reports it.
 * Iterations are the saddle systems solved. UNSUPPORTED for laws with spin. */
#define tb_solve_staggered TB_SYMBOL(tb_solve_staggered)
TB_EXTERN tb_solve_function tb_solve_staggered;

/* Factorized form alone: UNSUPPORTED for a matrix as a file has it, and for other storages. */
#define tb_solve_coloured TB_SYMBOL(tb_solve_coloured)
TB_EXTERN tb_solve_function tb_solve_coloured;

/* For contacts in the plane alone: UNSUPPORTED for laws other than PLANAR and UNILATERAL.
 * prox_serial and prox_cuda stop by the residual or by ONE_SIDED, and want the factorized form.
 * mprgp stops by the residual, counts products with G as iterations, and wants the factorized form.
 * lemke counts pivots as iterations, and takes no more than 30,000 complementary pairs
 * (RESOURCE_EXHAUSTED). */
#define tb_solve_prox_serial TB_SYMBOL(tb_solve_prox_serial)
TB_EXTERN tb_solve_function tb_solve_prox_serial;
#define tb_solve_prox_cuda TB_SYMBOL(tb_solve_prox_cuda)
TB_EXTERN tb_solve_function tb_solve_prox_cuda;
#define tb_solve_mprgp TB_SYMBOL(tb_solve_mprgp)
TB_EXTERN tb_solve_function tb_solve_mprgp;
#define tb_solve_lemke TB_SYMBOL(tb_solve_lemke)
TB_EXTERN tb_solve_function tb_solve_lemke;

/* Solvers that a device has too, numbered in this order from 1 on. All lanes of a team
 * (base/team.h) call them, each with its own warm start and solution, whose arrays they share,
 * and with one arena. */
#define TB_DEVICE_SOLVER_LIST(X) X(sor) X(jor) X(newton) X(auto) X(staggered)

/* Solvers compiled into a unit for a device; all by default. */
#ifndef TB_UNIT_SOLVER_LIST
#define TB_UNIT_SOLVER_LIST TB_DEVICE_SOLVER_LIST
#endif

enum {
    TB_SOLVER_NONE,
#define TB_SOLVER_NUMBER(solver) TB_SOLVER_NUMBER_##solver,
    TB_DEVICE_SOLVER_LIST(TB_SOLVER_NUMBER)
#undef TB_SOLVER_NUMBER
};

/* by name; TB_SOLVER_NONE where devices have none of that name. */
int32_t tb_solver_number(const char *name);

#endif
