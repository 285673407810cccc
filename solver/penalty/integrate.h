/* Integrators of y' = f(t, y): explicit Runge-Kutta methods by their tables, and SUNDIALS. */
#ifndef TB_INTEGRATE_H
#define TB_INTEGRATE_H

#include "base/base.h"

/* Writes f(t, y) to `slope`. A failure ends the integration. */
typedef tb_status tb_slope_function(void *context, double t, const double *y, double *slope,
                                    tb_error *error);

/* An initial value problem over one step, and the cost of its integration. */
typedef struct tb_initial_value {
    tb_slope_function *slope;
    void *context;
    int32_t size, threads; /* threads: that may share a sum of slopes; 0: all */
    double dt;             /* s: from t = 0 to t = dt */
    double tolerance;      /* of the adaptive methods: relative, and absolute in units of y */
    double *y;             /* size: at 0, then at dt */
    double *scratch;       /* TB_INTEGRATE_ARRAYS x size */
    int64_t evaluations, steps, rejected;
} tb_initial_value;

enum { TB_MOST_STAGES = 7, TB_INTEGRATE_ARRAYS = TB_MOST_STAGES + 2 };

/* name, order, stages, summary; tables in runge_kutta.c */
#define TB_RUNGE_KUTTA_LIST(X)                                                                     \
    X(rkfix1, 1, 1, "explicit Euler, one step of dt")                                              \
    X(rkfix2, 2, 2, "Heun's method of order 2, one step of dt")                                    \
    X(rkfix3, 3, 3, "Kutta's method of order 3, one step of dt")                                   \
    X(rkfix4, 4, 4, "the classical method of order 4, one step of dt")                             \
    X(cerk23, 2, 4, "steps chosen by the tolerance, orders 2 and 3 (Bogacki and Shampine)")        \
    X(cerk34, 3, 5, "steps chosen by the tolerance, orders 3 and 4 (Zonneveld)")                   \
    X(cerk45, 4, 6, "steps chosen by the tolerance, orders 4 and 5 (Fehlberg)")

#define TB_SUNDIALS_LIST(X)                                                                        \
    X(cvode, "SUNDIALS: implicit, variable order, backward differences")                           \
    X(cvode_adams, "SUNDIALS: variable order, Adams and Moulton")                                  \
    X(ida, "SUNDIALS: differential-algebraic form, as DASSL")                                      \
    X(arkode, "SUNDIALS: explicit Runge-Kutta steps by the tolerance")

/* The method of a name and its steps. NOT_FOUND for an unknown name; UNSUPPORTED for one of SUNDIALS
 * in a build without it; NOT_CONVERGED where a tolerance cannot be reached. */
tb_status tb_integrate(const char *name, tb_initial_value *problem, tb_error *error);

/* An explicit Runge-Kutta method of fixed steps. */
typedef struct tb_fixed_method {
    int32_t stages;
    double a[TB_MOST_STAGES][TB_MOST_STAGES], b[TB_MOST_STAGES];
} tb_fixed_method;

/* False for a name that is none of them. */
bool tb_integrator_fixed(const char *name, tb_fixed_method *method);

/* Integrators of SUNDIALS; UNSUPPORTED in a build without it. */
tb_status tb_integrate_sundials(const char *name, tb_initial_value *problem, tb_error *error);

#endif
