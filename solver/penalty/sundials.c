/* SUNDIALS behind tb_integrate: CVODE, IDA and ARKODE. TB_HAVE_SUNDIALS is set where the build has
 * found the library; without it these integrators are UNSUPPORTED by name. */
#include <string.h>

#include "penalty/integrate.h"

#ifndef TB_HAVE_SUNDIALS

tb_status tb_integrate_sundials(const char *name, tb_initial_value *problem, tb_error *error)
{
    (void)problem;
#define REFUSE(integrator, summary)                                                                \
    if (strcmp(name, #integrator) == 0)                                                            \
        return tb_fail_field(error, TB_UNSUPPORTED, "solve.solver",                                \
                             "integrator '%s' is one of SUNDIALS, which this build lacks", name);
    TB_SUNDIALS_LIST(REFUSE)
#undef REFUSE
    return tb_fail_field(error, TB_NOT_FOUND, "solve.solver", "there is no integrator '%s'", name);
}

#else

#include <arkode/arkode_erkstep.h>
#include <cvode/cvode.h>
#include <ida/ida.h>
#include <nvector/nvector_serial.h>
#include <sundials/sundials_context.h>
#include <sunlinsol/sunlinsol_dense.h>
#include <sunlinsol/sunlinsol_spgmr.h>
#include <sunmatrix/sunmatrix_dense.h>
#include <sunnonlinsol/sunnonlinsol_fixedpoint.h>

/* Up to this size Newton's matrix is dense, beyond it Krylov's method needs none. */
enum { LARGEST_DENSE = 200, MOST_STEPS = 1000000 };

typedef struct bridge {
    tb_initial_value *problem;
    tb_error *error;
    tb_status status; /* of the slope that failed */
} bridge;

static int call_slope(bridge *b, double t, N_Vector y, double *slope)
{
    b->problem->evaluations++;
    b->status = b->problem->slope(b->problem->context, t, N_VGetArrayPointer(y), slope, b->error);
    return b->status == TB_OK ? 0 : -1;
}

static int ordinary(realtype t, N_Vector y, N_Vector slope, void *context)
{
    return call_slope(context, t, y, N_VGetArrayPointer(slope));
}

/* F(t, y, y') = f(t, y) - y' */
static int implicit(realtype t, N_Vector y, N_Vector slope, N_Vector residual, void *context)
{
    const int failed = call_slope(context, t, y, N_VGetArrayPointer(residual));
    if (!failed) N_VLinearSum(1, residual, -1, slope, residual);
    return failed;
}

/* Objects of SUNDIALS that one call owns. */
typedef struct parts {
    SUNContext context;
    N_Vector y, slope;
    SUNMatrix matrix;
    SUNLinearSolver linear;
    SUNNonlinearSolver nonlinear;
} parts;

static bool take_parts(parts *x, tb_initial_value *p)
{
    if (SUNContext_Create(NULL, &x->context) != 0) return false;
    x->y = N_VMake_Serial(p->size, p->y, x->context);
    x->slope = x->y ? N_VClone(x->y) : NULL;
    if (!x->slope) return false;
    if (p->size <= LARGEST_DENSE) {
        x->matrix = SUNDenseMatrix(p->size, p->size, x->context);
        x->linear = x->matrix ? SUNLinSol_Dense(x->y, x->matrix, x->context) : NULL;
    } else {
        x->linear = SUNLinSol_SPGMR(x->y, SUN_PREC_NONE, 0, x->context);
    }
    x->nonlinear = SUNNonlinSol_FixedPoint(x->y, 0, x->context);
    return x->linear && x->nonlinear;
}

static void free_parts(parts *x)
{
    if (x->nonlinear) SUNNonlinSolFree(x->nonlinear);
    if (x->linear) SUNLinSolFree(x->linear);
    if (x->matrix) SUNMatDestroy(x->matrix);
    if (x->slope) N_VDestroy(x->slope);
    if (x->y) N_VDestroy(x->y);
    SUNContext_Free(&x->context);
}

/* Errors come back as statuses; nothing is printed. */
static void be_silent(int code, const char *module, const char *function, char *message,
                      void *context)
{
    (void)code, (void)module, (void)function, (void)message, (void)context;
}

static int run_cvode(bridge *b, parts *x, bool adams)
{
    tb_initial_value *p = b->problem;
    realtype reached = 0;
    long steps = 0;
    void *memory = CVodeCreate(adams ? CV_ADAMS : CV_BDF, x->context);
    if (!memory) return -1;
    int code = CVodeInit(memory, ordinary, 0, x->y);
    CVodeSetErrHandlerFn(memory, be_silent, NULL);
    if (code == 0) code = CVodeSetUserData(memory, b);
    if (code == 0) code = CVodeSStolerances(memory, p->tolerance, p->tolerance);
    if (code == 0)
        code = adams ? CVodeSetNonlinearSolver(memory, x->nonlinear)
                     : CVodeSetLinearSolver(memory, x->linear, x->matrix);
    if (code == 0) code = CVodeSetMaxNumSteps(memory, MOST_STEPS);
    if (code == 0) code = CVodeSetStopTime(memory, p->dt);
    if (code == 0) code = CVode(memory, p->dt, x->y, &reached, CV_NORMAL);
    CVodeGetNumSteps(memory, &steps);
    p->steps = steps;
    CVodeFree(&memory);
    return code;
}

static int run_ida(bridge *b, parts *x)
{
    tb_initial_value *p = b->problem;
    realtype reached = 0;
    long steps = 0;
    void *memory = IDACreate(x->context);
    if (!memory) return -1;
    int code = call_slope(b, 0, x->y, N_VGetArrayPointer(x->slope)); /* consistent from the start */
    IDASetErrHandlerFn(memory, be_silent, NULL);
    if (code == 0) code = IDAInit(memory, implicit, 0, x->y, x->slope);
    if (code == 0) code = IDASetUserData(memory, b);
    if (code == 0) code = IDASStolerances(memory, p->tolerance, p->tolerance);
    if (code == 0) code = IDASetLinearSolver(memory, x->linear, x->matrix);
    if (code == 0) code = IDASetMaxNumSteps(memory, MOST_STEPS);
    if (code == 0) code = IDASetStopTime(memory, p->dt);
    if (code == 0) code = IDASolve(memory, p->dt, &reached, x->y, x->slope, IDA_NORMAL);
    IDAGetNumSteps(memory, &steps);
    p->steps = steps;
    IDAFree(&memory);
    return code;
}

static int run_arkode(bridge *b, parts *x)
{
    tb_initial_value *p = b->problem;
    realtype reached = 0;
    long steps = 0;
    void *memory = ERKStepCreate(ordinary, 0, x->y, x->context);
    if (!memory) return -1;
    int code = ERKStepSetUserData(memory, b);
    ERKStepSetErrHandlerFn(memory, be_silent, NULL);
    if (code == 0) code = ERKStepSStolerances(memory, p->tolerance, p->tolerance);
    if (code == 0) code = ERKStepSetMaxNumSteps(memory, MOST_STEPS);
    if (code == 0) code = ERKStepSetStopTime(memory, p->dt);
    if (code == 0) code = ERKStepEvolve(memory, p->dt, x->y, &reached, ARK_NORMAL);
    ERKStepGetNumSteps(memory, &steps);
    p->steps = steps;
    ERKStepFree(&memory);
    return code;
}

tb_status tb_integrate_sundials(const char *name, tb_initial_value *problem, tb_error *error)
{
    bridge b = {.problem = problem, .error = error};
    parts x = {0};
    const bool adams = strcmp(name, "cvode_adams") == 0;
    const bool cvode = adams || strcmp(name, "cvode") == 0;
    const bool ida = strcmp(name, "ida") == 0, arkode = strcmp(name, "arkode") == 0;
    if (!cvode && !ida && !arkode)
        return tb_fail_field(error, TB_NOT_FOUND, "solve.solver", "there is no integrator '%s'",
                             name);
    int code = take_parts(&x, problem) ? 0 : -1;
    if (code != 0) {
        free_parts(&x);
        return tb_fail_memory(error, 0, "an integrator of SUNDIALS");
    }
    code = cvode ? run_cvode(&b, &x, adams) : (ida ? run_ida(&b, &x) : run_arkode(&b, &x));
    free_parts(&x);
    if (b.status != TB_OK) return b.status;
    if (code >= 0) return TB_OK;
    return tb_fail(error, TB_NOT_CONVERGED, "integrator '%s' ended with code %d at tolerance %g",
                   name, code, problem->tolerance);
}

#endif
