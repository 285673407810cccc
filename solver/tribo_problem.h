/* Contact problems without a world, and prox iterations with a stored T. Part of tribo.h. */
#ifndef TRIBO_PROBLEM_H
#define TRIBO_PROBLEM_H

#include "tribo_step.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- contact problems on their own ----------------------------------------------------------- */

typedef struct tb_problem_file tb_problem_file;

/* Reads a problem: text (local or global form) or FCLIB HDF5, by content. */
tb_status tb_problem_load(const char *path, tb_problem_file **, tb_error *);
/* The same from memory; `name` replaces the file name in messages. */
tb_status tb_problem_load_memory(const void *bytes, size_t size, const char *name,
                                 tb_problem_file **, tb_error *);
void tb_problem_destroy(tb_problem_file *);
/* Writes text (".dat") or FCLIB HDF5 (".hdf5"), by extension. */
tb_status tb_problem_save(const tb_problem_file *, const char *path, tb_error *);

typedef struct tb_problem_info {
    int32_t dimension; /* 2 or 3 */
    int32_t contacts, rows;
    bool global, dense;
    double asymmetry; /* |W - W'| / |W|, Frobenius */
} tb_problem_info;

tb_problem_info tb_problem_describe(const tb_problem_file *);

typedef struct tb_problem_result {
    tb_status status; /* OK, NOT_CONVERGED, DIVERGED */
    double residual;  /* natural map at rho = 1 in De Saxcé form over ||q||, double */
    int32_t iterations;
    double seconds;
    char solver[16];
    int32_t cycle; /* staggered: period, in iterations, of the repeated active sets on which it
                      gave up; else 0 */
    bool on_gpu;   /* the impulses are a GPU's */
} tb_problem_result;

/* Solves from zero impulses; reactions and velocities (rows each) may be NULL. CANCELLED if the
 * options' function asks for it. */
tb_status tb_problem_solve(const tb_problem_file *, const tb_solve_options *, double *reactions,
                           double *velocities, tb_problem_result *, tb_error *);

/* The same on a device. A GPU iterates `full-sor` on the stored T, in rounds, until the residual
 * meets the tolerance. Where its iterations run out or its convergence is too slow for those left,
 * the options' solver begins again on the CPU. The result names the solver that ended the work and
 * whether that was the GPU's. AUTO is the CPU where there is no GPU. RESOURCE_EXHAUSTED has the
 * bytes that T requires; UNSUPPORTED names a law other than a contact's. */
tb_status tb_problem_solve_on(const tb_problem_file *, tb_backend_choice, int32_t device,
                              const tb_solve_options *, double *reactions, double *velocities,
                              tb_problem_result *, tb_error *);

/* ---- prox iterations with a stored T -------------------------------------------------------- */

/* The contact problem of one step in Nützi's prox form (Computing Non-Smooth Dynamics on the
 * GPU, ETH 2011): lambda <- prox(T lambda + d) with T = I - R^-1 G, d = -R^-1 c, and R_i^-1 =
 * alpha diag(1 / G_ii(1,1), 1 / max(G_ii(2,2), G_ii(3,3)) twice) for contact i (4.40 to 4.43).
 * Contacts have three rows: normal, tangent 1, tangent 2. T is kept in blocks of 3 x 3. */
typedef struct tb_prox_system tb_prox_system;

/* A random system of Nützi's section 6.1: G dense, symmetric and diagonally dominant, its
 * entries off the diagonal uniform in [-1, 1]; c uniform in [-1, 1] with most normal entries
 * negative; mu 0.5. INVALID_ARGUMENT; RESOURCE_EXHAUSTED with the bytes required. */
tb_status tb_prox_system_random(int32_t contacts, uint64_t seed, double alpha, tb_prox_system **,
                                tb_error *);
/* The prox system of a problem of contacts: Coulomb's in space or in the plane, and frictionless
 * ones. UNSUPPORTED names any other law. */
tb_status tb_prox_system_of_problem(const tb_problem_file *, double alpha, tb_prox_system **,
                                    tb_error *);
void tb_prox_system_destroy(tb_prox_system *); /* NULL is fine */
int32_t tb_prox_system_contacts(const tb_prox_system *);
int64_t tb_prox_system_blocks(const tb_prox_system *); /* number of 3 x 3 blocks of T */

/* The variants by name: `jor1` to `jor7` of Nützi's table 6.1 (without `jor6`), `full-sor-32`
 * and `-64`, `relaxed-sor-2` to `-128`, Nützi's two sparse designs, and `jor` and `full-sor`,
 * which run all iterations in one GPU launch. NULL past the last. */
const char *tb_prox_variant_name(int32_t index);
const char *tb_prox_variant_summary(int32_t index);

/* Parts of an iteration of `full-sor-32` and `full-sor-64` that a run can leave out, which shows their
 * share of its time (Nützi, figure 6.4). The impulses of such a run are no solution. */
typedef enum tb_prox_part {
    TB_PROX_STEP_B = 1 << 0,      /* the columns of a diagonal block for all other rows */
    TB_PROX_PROPAGATION = 1 << 1, /* new impulses to the other rows of their diagonal block */
    TB_PROX_NORMAL = 1 << 2,      /* projections to normal impulses >= 0 */
    TB_PROX_TANGENTIAL = 1 << 3,  /* projections to the friction disk */
    TB_PROX_WRITES = 1 << 4,      /* storing new impulses, and zeroing the sums of their rows */
    TB_PROX_BARRIERS = 1 << 5 /* of the GPU's threads, together with all others; the CPU has none */
} tb_prox_part;

typedef struct tb_prox_options {
    const char *variant; /* borrowed */
    tb_precision precision;
    tb_backend_choice backend; /* on the CPU every variant runs in the GPU's order */
    int32_t device;
    int32_t threads;      /* for `jor7` only; 0: all processors */
    int32_t iterations;   /* largest number of iterations */
    int32_t check_period; /* iterations between two stop tests; 0: no test */
    double relative,
        absolute;      /* |change| <= relative |lambda| + absolute for every row, N s (4.49) */
    uint32_t left_out; /* tb_prox_part, summed; 0: a whole iteration */
} tb_prox_options;

/* `jor5` in double on the CPU, 5000 iterations, a test at every one, 1e-7 and 1e-7 N s. */
tb_prox_options tb_prox_defaults(void);

typedef struct tb_prox_result {
    int32_t iterations;
    bool converged;      /* by the stop test */
    double residual;     /* |lambda - prox(T lambda + d)| / |d|, 2-norms, in double */
    double seconds;      /* of the iterations alone, without copies */
    double copy_seconds; /* to the GPU and back; 0 on the CPU */
    int64_t bytes;       /* bytes of T that this variant reads per iteration */
} tb_prox_result;

/* Iterates from `lambda` (3 numbers a contact, N s), which receives the result. INVALID_ARGUMENT
 * and NOT_FOUND name the field; RESOURCE_EXHAUSTED: T does not fit, the message has the bytes
 * required; UNSUPPORTED: a library of the variant is missing, or the variant cannot leave parts
 * out; UNAVAILABLE, ABORTED: the GPU is missing or failed. */
tb_status tb_prox_iterate(const tb_prox_system *, const tb_prox_options *, double *lambda,
                          tb_prox_result *, tb_error *);

#ifdef __cplusplus
}
#endif

#endif
