/* Steppers: options, steps, certificates, courses, devices. Part of tribo.h. */
#ifndef TRIBO_STEP_H
#define TRIBO_STEP_H

#include "tribo_model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- stepping -------------------------------------------------------------------------------- */

typedef enum tb_scheme {
    TB_SCHEME_STEWART_TRINKLE, /* gap term, no restitution by default: for grasps and stacks */
    TB_SCHEME_MOREAU,          /* midpoint, Newton restitution: for impacts */
    /* Betz's Stewart-Trinkle stepping in a plane: bodies of two slides and a hinge, convex
     * outlines, the whole gap is recovered within the step, no restitution. Double precision on
     * the CPU only. UNSUPPORTED names the element of the model that does not fit */
    TB_SCHEME_PLANAR,
    /* Soft contacts: forces from the overlap volume (Göteman and Roxling), integrated as ordinary
     * differential equations. solve.solver names the integrator (tb_integrator_name; "auto":
     * rkfix4), solve.tolerance is its tolerance; `iterations` of the certificate counts its
     * evaluations of all forces. Double precision on the CPU only. UNSUPPORTED names the element
     * of the model that does not fit */
    TB_SCHEME_VOLUME
} tb_scheme;

typedef enum tb_precision { TB_DOUBLE, TB_FLOAT } tb_precision;

/* Backend that steps the worlds. The CPU is built in. The GPU is a plug-in, searched once at the
 * first call that needs it; it is available if a driver and a card are available too. Both
 * backends run the same formulas: their results agree to rounding, and each backend gives the
 * same bytes every time. Before the driver enumerates cards, the library sets
 * CUDA_DEVICE_MAX_CONNECTIONS=20 in the environment unless the variable exists. A program whose
 * threads read the environment must therefore call a GPU function before it starts them. */
typedef enum tb_backend_choice {
    TB_BACKEND_CPU,
    TB_BACKEND_GPU, /* UNAVAILABLE without a GPU */
    TB_BACKEND_AUTO /* the GPU if available; the CPU otherwise, for meshes (tb_model_has_meshes) among
                       fewer than 2,000 shapes, for soft bodies on few nodes (tb_soft_model_nodes) */
} tb_backend_choice;

typedef struct tb_backend_info {
    const char *name; /* "cpu", "gpu" */
    int32_t devices;  /* usable devices; 0: none, and `reason` gives the cause */
    char reason[TB_ERROR_MESSAGE_SIZE];
} tb_backend_info;

typedef struct tb_device_info {
    char name[96];         /* "NVIDIA H200" */
    char driver[32];       /* version; "" for the CPU */
    char architecture[16]; /* "sm_90"; "" for the CPU */
    int32_t processors;    /* parallel units: multiprocessors of a GPU, threads of a CPU */
    uint64_t memory;       /* bytes of device memory; 0: uses the machine's */
} tb_device_info;

/* Describes the backend of a number in tb_backend_choice; INVALID_ARGUMENT past the last. */
tb_status tb_backend_describe(tb_backend_choice, tb_backend_info *);
/* Describes a device of a backend. NOT_FOUND names the device; UNAVAILABLE gives the cause why
 * the backend is missing. */
tb_status tb_device_describe(tb_backend_choice, int32_t device, tb_device_info *, tb_error *);

/* Memory and work counters of a device for this process, summed over all steppers. */
typedef struct tb_device_use {
    uint64_t memory_bytes;     /* device memory of this process */
    uint64_t pool_bytes;       /* part of memory_bytes reserved for worlds */
    uint64_t pool_used_bytes;  /* part of pool_bytes in use by worlds on the device */
    uint64_t model_bytes;      /* part of memory_bytes used by compiled models */
    int64_t worlds;            /* worlds kept between calls, on the device or swapped out */
    int64_t worlds_swapped;    /* worlds of these that are swapped out to the host */
    int64_t launches, fetches; /* steps begun; copies of worlds to the host */
    int64_t uploads, moves; /* worlds copied from the host; worlds copied on the device, for forks
                              and growth */
    int64_t evictions;      /* worlds swapped out to free memory for others */
    int64_t captures;       /* steps of a large world captured as a CUDA graph */
    uint64_t copied_bytes;  /* to and from the device */
    double copy_seconds, compute_seconds; /* on the device, by its own clock */
    bool lost;
} tb_device_use;

/* All zero for the CPU, and for a device without steppers. Any thread may call this at any time. */
tb_status tb_device_measure(tb_backend_choice, int32_t device, tb_device_use *, tb_error *);

typedef enum tb_storage {
    TB_STORAGE_AUTO,
    TB_STORAGE_FACTORIZED, /* velocities kept, rows applied */
    TB_STORAGE_DENSE,      /* G assembled */
    TB_STORAGE_T           /* T = 1 - R G assembled */
} tb_storage;

typedef enum tb_r_strategy {
    TB_R_DIAGONAL,   /* omega / G_ii, one for both tangents (Nützi 4.41) */
    TB_R_RICHARDSON, /* omega */
    TB_R_SPECTRUM,   /* 2 / (smallest + largest eigenvalue of G), times omega */
    /* (diag(G) / omega + lower triangle of G)^-1 (Betz 2.54): omega / G_ii, and every contact
     * sees the new impulses of the contacts before it; prox_serial and prox_cuda only */
    TB_R_GAUSS_SEIDEL
} tb_r_strategy;

typedef enum tb_stop_test {
    TB_STOP_RESIDUAL, /* natural map over the norm of c; always computed for the certificate */
    TB_STOP_ELEMENT,  /* |new - old| <= |old| tolerance + tolerance, every element (Nützi 4.49) */
    TB_STOP_NORM,     /* the same in the 2-norm (Nützi 4.50) */
    TB_STOP_EPSILON,  /* largest change of an impulse (Poulsen's epsilon-infinity) */
    TB_STOP_MERIT,    /* sum of squared changes (Poulsen's Theta) */
    TB_STOP_ONE_SIDED /* rho_n > -tolerance; |rho_f| < tolerance or clamped (Betz) */
} tb_stop_test;

/* Colours of the solver `coloured` (Poulsen, chapter 4). */
typedef enum tb_solve_colouring {
    TB_COLOURING_RIGID,    /* first-free, every colour safe: its contacts share no body */
    TB_COLOURING_BALANCED, /* each contact takes the free colour with the fewest contacts */
    /* first-free; colours of less than a tenth of the contacts are merged into one unsafe colour,
     * the last, whose contacts all see the impulses before it */
    TB_COLOURING_RELAXED
} tb_solve_colouring;

typedef struct tb_solve_options {
    const char *solver; /* "sor", "jor", "newton", "auto"; borrowed */
    double tolerance;   /* on the stop test; TB_STOP_RESIDUAL: dimensionless */
    int32_t maximum_iterations;
    double omega; /* relaxation; 0: the solver's own */
    tb_r_strategy r_strategy;
    tb_storage storage;
    tb_stop_test stop;
    bool warm_start;
    bool local_solve; /* solve contacts as 3x3 blocks where that pays, else by rows */
    /* extrapolate over slow sweeps (Anderson; large worlds: momentum; where half of 256 blocks or more
     * have no friction, on a processor in double: conjugate directions) */
    bool accelerate;
    int32_t maximum_halvings;     /* largest number of halvings of omega after divergence */
    int32_t threads;              /* 0: all processors; serial solvers ignore it */
    tb_solve_colouring colouring; /* coloured */
    int32_t colours;              /* BALANCED: at least this many; 0: the first-free number */
    /* N s, prox_serial only: a larger normal impulse restarts the solve with half the omega and
     * twice the sweeps (Betz's p_nLimit); 0: off */
    double impulse_limit;
    /* prox_serial, prox_cuda: reproduces the errors of the thesis's listings (r computed before
     * omega is halved; gap instead of gap / h; a first sweep with mu = 1; on a GPU a fence in place
     * of the barriers, so that threads read velocities of other sweeps) */
    bool as_listed;
    /* the solver calls it between sweeps; true ends the solve as CANCELLED; NULL: never. On a GPU: before
     * each launch of at most 64 steps, and about every 0.1 ms of it, but not during one step nor during a
     * launch of small worlds, which begin no step after 12 ms. After true each world ends its step, so
     * that worlds may have taken different numbers of steps */
    bool (*cancelled)(void *context);
    void *cancelled_context;
} tb_solve_options;

tb_solve_options tb_solve_defaults(void);

/* Names and one-line descriptions of the solvers, NULL past the last. */
const char *tb_solver_name(int32_t index);
const char *tb_solver_summary(int32_t index);

/* Names and one-line descriptions of the integrators of TB_SCHEME_VOLUME, NULL past the last. */
const char *tb_integrator_name(int32_t index);
const char *tb_integrator_summary(int32_t index);

typedef struct tb_step_options {
    double dt; /* s; 0: the model's */
    tb_scheme scheme;
    tb_precision precision;
    tb_solve_options solve;
    double recovery_speed; /* m/s, cap on the speed at which penetration is removed */
    /* m; gaps within +-slop count as touching and require no motion; larger gaps are rounded to
     * eighths of the slop. Without the slop, rounding errors make the gaps of redundant contacts
     * inconsistent, and solvers do not converge on them. */
    double contact_slop;
    /* in steps: contacts are also created for bodies that may meet within this time */
    double speculative_time;
    double contact_margin; /* m, contacts are also created up to this gap */
    /* 0: off. Contact points of the same two bodies become one, the deepest, where their normals and
     * surfaces are equal and they are nearer to each other than this share of the smaller body's
     * radius of gyration. Shapes that join, such as parts of a mesh, give redundant points, which
     * slow solves down. Large worlds then step as small ones */
    double contact_merge;
    double closure_tolerance; /* m or rad; the stepper projects loops to this error after the
                                 step */
    /* m or rad; loop errors and limit violations up to this remain uncorrected if no motion
     * removes them */
    double closure_slop;
    int32_t threads;    /* worlds in parallel; 0: all processors */
    bool report_energy; /* fills the certificate's energies, at a small cost */
    tb_backend_choice backend;
    int32_t device; /* device of the backend, from 0; the CPU has one */
    /* On a GPU: worlds stay on the device after a step, and a getter copies them to the host.
     * Otherwise every step copies all worlds. Results are the same. */
    bool resident;
} tb_step_options;

tb_step_options tb_step_defaults(void);

typedef enum tb_certificate_flags {
    TB_CERTIFICATE_NOT_CONVERGED = 1, /* tolerance not reached within the iterations */
    TB_CERTIFICATE_DIVERGED = 2,      /* the world is frozen at its last good state */
    TB_CERTIFICATE_OVERFLOW = 4,      /* a capacity grew and the step was redone */
    TB_CERTIFICATE_HALVED = 8,        /* omega was halved at least once */
    TB_CERTIFICATE_DEGENERATE = 16,   /* a pair of shapes had no well-defined normal */
    /* not all gaps can be closed: the velocities are exact, the positions are the nearest
     * possible, and `worst_fault` names the gap with the largest error */
    TB_CERTIFICATE_INFEASIBLE = 32
} tb_certificate_flags;

/* A gap that the positions of a world cannot close. */
typedef enum tb_fault_kind {
    TB_FAULT_NONE,
    TB_FAULT_OVERLAP,      /* a, b: shapes that penetrate each other */
    TB_FAULT_JOINT_LIMIT,  /* a: joint outside of its range */
    TB_FAULT_TENDON_LIMIT, /* a: tendon outside of its range */
    TB_FAULT_EQUALITY      /* a: equality that is not closed */
} tb_fault_kind;

typedef struct tb_fault {
    int32_t kind;  /* tb_fault_kind */
    int32_t a, b;  /* indices in the model, -1: none */
    double amount; /* m or rad, error of the gap, >= 0 */
} tb_fault;

/* Accuracy of a step: residual, errors and energies. Every result carries one. */
typedef struct tb_certificate {
    tb_status status; /* OK, NOT_CONVERGED or DIVERGED */
    uint32_t flags;   /* tb_certificate_flags */
    int64_t step;     /* of the world, counted from 1 */
    double time;      /* s, at the end of the step */
    /* natural map at rho = 1 in De Saxcé form over the norm of c, which counts at least the rounding of
     * velocities (solver/README.md); dimensionless */
    double residual;
    double penetration;           /* m, largest */
    double cone_error;            /* N s, largest excess of a tangential impulse over mu lambda_n */
    double complementarity_error; /* N m s^-1 s = J, largest |lambda_n xi_n| */
    double closure_error;         /* m or rad, largest, of equalities after the step */
    double energy;                /* J, at the end */
    double energy_change;         /* J, over the step */
    /* J: contributions to the change, in double precision: position corrections (recovery and
     * the closing of loops); actuators; dampers of joints and tendons; contacts, dry friction,
     * limits and loops; applied forces and kinematic bodies. energy_unexplained is the rest: the
     * discretization error of the step. It may be as large as energy_bound, or the step is DIVERGED:
     * of order dt^2 a step without an impact, of order dt a step with one, and 1e-6 of the energies
     * for rounding (formula: solver/README.md). 0 for `planar` and `volume`, which have no bound */
    double energy_recovery, energy_motors, energy_damping, energy_friction, energy_applied;
    double energy_unexplained, energy_bound;
    int32_t contacts, rows, iterations;
    char solver[16]; /* solver of the final impulses; "auto": the warm start was accepted
                        unchanged */
    /* quality of the warm start: blocks with a known status (open, stick, slip) before the
     * solve, and the number of them that kept it; sums over merged steps */
    int64_t known_statuses, kept_statuses;
    int64_t linear_solves;  /* solves of Newton's system, with new or kept factorizations */
    int64_t factorizations; /* factorizations of Newton's system */
    int64_t resets;         /* abandoned warm starts from the active sets of the last step */
    int32_t asleep;         /* trees that slept at the end of the step, most in one step */
    int32_t faults;         /* gaps that could not be closed, most in one step */
    tb_fault worst_fault;
} tb_certificate;

/* One line of English for a fault, with the model's names: "'pad' and 'mug' overlap by 0.3 mm
 * ...". */
void tb_fault_describe(const tb_model *, const tb_fault *, char *text, size_t size);

/* The certificate of the state's last step, zeroed before the first; borrowed until the next
 * step. */
const tb_certificate *tb_state_certificate(const tb_state *);

/* Combines the certificates of several steps: worst errors, last time, sums of iterations. */
void tb_certificate_merge(tb_certificate *into, const tb_certificate *other);

typedef struct tb_stepper tb_stepper;

/* Options and scratch memory for stepping. The scratch memory grows to the largest world stepped
 * so far; later steps allocate nothing. */
tb_status tb_stepper_create(const tb_step_options *, tb_stepper **, tb_error *);
void tb_stepper_destroy(tb_stepper *);
tb_step_options tb_stepper_options(const tb_stepper *);
tb_status tb_stepper_set_options(tb_stepper *, const tb_step_options *, tb_error *);
/* Bytes allocated so far by this stepper and its scratch. Tests use it to show that a warm step
 * allocates nothing. */
size_t tb_stepper_allocated(const tb_stepper *);
int64_t tb_stepper_allocations(const tb_stepper *);

/* Memory and transfer counters of a stepper. */
typedef struct tb_stepper_use {
    const char *backend; /* backend in use: "cpu" or "gpu", also with TB_BACKEND_AUTO */
    uint64_t host_bytes, device_bytes;
    int64_t allocations;                  /* number of allocations from the system or the driver */
    int64_t regrowths;                    /* launches repeated because a capacity was too small */
    uint64_t copied_bytes;                /* to and from the device */
    double copy_seconds, compute_seconds; /* on the device, by its own clock */
    bool lost; /* the device failed: every call returns ABORTED until the process restarts */
} tb_stepper_use;

tb_stepper_use tb_stepper_measure(const tb_stepper *);
/* Runs every kernel that a GPU step may need once on empty input, so that the first step has no
 * start-up cost. Returns OK at once on the CPU. */
tb_status tb_stepper_warm(tb_stepper *, tb_error *);

/* Steps one world `steps` times. `certificate` (may be NULL) merges all steps. DIVERGED freezes the
 * world; NOT_CONVERGED is a certificate status, not a failure. */
tb_status tb_step(tb_stepper *, tb_state *, int32_t steps, tb_certificate *, tb_error *);

/* Steps many worlds, of one or many models, in parallel. Results do not depend on the batch or on
 * the number of threads. certificates: `worlds` entries or NULL; zero for a world that made no
 * step. Returns the first failure. The other worlds are stepped all the same, unless the whole
 * call fails to begin (no memory, a lost device). */
tb_status tb_step_batch(tb_stepper *, tb_state *const *states, int32_t worlds, int32_t steps,
                        tb_certificate *certificates, tb_error *);

/* Contacts between bodies [first_a, end_a) and bodies [first_b, end_b) of a model. */
typedef struct tb_watch {
    int32_t first_a, end_a, first_b, end_b;
} tb_watch;

/* Result of a watch after a step. */
typedef struct tb_touch {
    double gap;     /* m, the smallest; INFINITY without a contact */
    double impulse; /* N s, the largest normal one; 0 without */
    /* smallest 1 - |tangential| / (mu normal), dimensionless, over the contacts with at least a
     * tenth of this impulse: 0 at slip; 1 if no contact bears an impulse */
    double margin;
    /* m, world, of the contacts with the smallest gap and with the smallest margin; 0 without */
    double nearest_position[3], weakest_position[3];
    int32_t nearest[2], weakest[2]; /* their shapes; -1: none */
} tb_touch;

enum { TB_COURSE_WATCHES = 4 };

/* Inputs and recordings of several steps of a world. One call runs all the steps, on a GPU
 * without the host in between. The caller owns the arrays; each has one row per step, and
 * several worlds may share inputs. With all fields but `steps` zero, the world only steps. */
typedef struct tb_course {
    int32_t steps; /* of this world */
    /* Inputs set before a step; NULL: the state's values remain. */
    /* steps x kinematic bodies (in the model's order) x 13: position, orientation, linear and angular
     * velocity, as tb_state_set_kinematic takes them */
    const double *kinematic;
    /* steps x kinematic bodies x 6, m/s^2 and rad/s^2 about the body's origin, world axes. A
     * kinematic body has a velocity but no acceleration. The bodies of the trees attached to one
     * therefore receive the inertial forces of this acceleration as wrenches, which replace
     * their previous body wrenches. */
    const double *accelerations;
    const double *controls; /* steps x actuators, as tb_state_set_controls takes them */
    /* Recordings after a step; NULL: not recorded. A world that diverges records only its
     * certificate then, and nothing in later steps. */
    double *q;                    /* steps x coordinates */
    double *moved;                /* steps x kinematic bodies x 13 */
    tb_touch *touches;            /* steps x number_of_watches */
    tb_certificate *certificates; /* steps */
    tb_watch watches[TB_COURSE_WATCHES];
    int32_t number_of_watches;
} tb_course;

/* Steps many worlds, each by its own course. The results are the same bytes as with a setter
 * call and a tb_step per step. The last inputs remain in the state; the course itself is not
 * part of the state. certificates: `worlds` entries, merged over the steps, or NULL.
 * INVALID_ARGUMENT, before any state changes, for numbers that are not finite, orientations of
 * length 0, and counts below zero or above TB_COURSE_WATCHES (field "courses"); otherwise as
 * tb_step_batch. */
tb_status tb_step_courses(tb_stepper *, tb_state *const *states, const tb_course *courses,
                          int32_t worlds, tb_certificate *certificates, tb_error *);

/* Sets the pose of a state to the pose that `course` recorded after a step, for inspection only.
 * The course must record q and moved. The state's model must have the same coordinates and
 * bodies as the course's. */
void tb_course_show(const tb_course *course, int32_t step, tb_state *shown);

/* Writes the contact problem of the world's next step to a file. */
tb_status tb_export_problem(tb_stepper *, const tb_state *, const char *path, tb_error *);

/* Cost of one method of finding near pairs or overlaps in the pose of a state. */
typedef struct tb_volume_measure {
    int32_t shapes;    /* that collide and have a box */
    int32_t intervals; /* of Morton codes; 0 for the others */
    int32_t pairs;     /* pairs whose boxes meet; for overlaps, pairs of two polyhedra */
    int32_t triangles; /* of the overlaps' surfaces; 0 for the pieces */
    int32_t mended;    /* overlaps that the pieces had to compute again */
    double volume;     /* m^3, of all overlaps */
    double seconds;    /* of one call, the least of several */
    double parts[4]; /* s on a card: encoding, sort of intervals, finding, sort of pairs; else 0 */
} tb_volume_measure;

/* Measures a method of Göteman and Roxling (2015) at a state's pose: "morton" and "brute" find near
 * pairs, "rows" as steps do, "encode" makes the intervals of "morton" alone; "evaluation" computes all forces once;
 * "original", "reduced", "traversal" and "pieces" find the overlaps of the polyhedra among
 * them. On a GPU "gpu_count" and "gpu_append" find near pairs, by counting first and by appending; "gpu_sort" is
 * "morton" whose sorts go to the GPU above the thesis's numbers of keys; "gpu_recursive", "gpu_iterative",
 * "gpu_hybrid", "gpu_shared" and "gpu_own" are "traversal" with the triangles on the GPU (parts[0]: s
 * there). cell: m, base cell of the Morton codes; 0: chosen by the boxes; for "gpu_hybrid" the number
 * of parts up to which the processor goes on, 0: 5,000. NOT_FOUND for an unknown method, UNAVAILABLE without a GPU,
 * UNSUPPORTED as TB_SCHEME_VOLUME. */
tb_status tb_state_measure_volume(const tb_state *, const char *method, double cell,
                                  tb_volume_measure *, tb_error *);
/* Seconds of a sort of `count` random 64-bit keys with values, the least of several: on the processor, or on a
 * GPU with both copies. UNAVAILABLE without a GPU. */
tb_status tb_measure_sort(int32_t count, bool on_gpu, double *seconds, tb_error *);

#ifdef __cplusplus
}
#endif

#endif
