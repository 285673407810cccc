/* See call.h. */
#include "gpu/batch/call.h"

#include "solve/solve.h"

_Static_assert(sizeof(tb_step_options) == 192, "a new field is copied below too");

void tb_gpu_call_set_options(tb_gpu_call *call, const tb_step_options *options)
{
    tb_step_options *to = &call->launch.options;
    const tb_solve_options *solve = &options->solve;
    call->launch.solver = tb_solver_number(solve->solver);
    call->single = options->precision == TB_FLOAT;
    to->dt = options->dt;
    to->scheme = options->scheme;
    to->precision = options->precision;
    to->recovery_speed = options->recovery_speed;
    to->contact_slop = options->contact_slop;
    to->speculative_time = options->speculative_time;
    to->contact_margin = options->contact_margin;
    to->contact_merge = options->contact_merge;
    to->closure_tolerance = options->closure_tolerance;
    to->closure_slop = options->closure_slop;
    to->report_energy = options->report_energy;
    to->solve.tolerance = solve->tolerance;
    to->solve.maximum_iterations = solve->maximum_iterations;
    to->solve.omega = solve->omega;
    to->solve.r_strategy = solve->r_strategy;
    to->solve.storage = solve->storage;
    to->solve.stop = solve->stop;
    to->solve.warm_start = solve->warm_start;
    to->solve.local_solve = solve->local_solve;
    to->solve.accelerate = solve->accelerate;
    to->solve.maximum_halvings = solve->maximum_halvings;
    to->solve.colouring = solve->colouring;
    to->solve.colours = solve->colours;
    to->solve.impulse_limit = solve->impulse_limit;
    to->solve.as_listed = solve->as_listed;
}

cudaError_t tb_gpu_call_start(const tb_gpu_call *call, cudaStream_t stream)
{
    char *here = (char *)call->staging + call->inputs, *there = (char *)call->block + call->inputs;
    cudaError_t result = cudaMemcpyAsync(call->block, call->staging, call->inputs + call->headers,
                                         cudaMemcpyHostToDevice, stream);
    if (result == cudaSuccess)
        result = (call->single ? tb_gpu_start_steps_f32
                               : tb_gpu_start_steps)(&call->launch, call->side_streams, stream);
    if (result != cudaSuccess) return result;
    /* worlds have moved: without their headers the card's states are lost */
    return cudaMemcpyAsync(here, there, call->headers + call->outputs, cudaMemcpyDeviceToHost,
                           stream) == cudaSuccess
               ? cudaSuccess
               : cudaErrorLaunchFailure;
}
