/* The kernels of the GPU backend, played: the step is the one that cards run, compiled for the
 * processor (tests/unit/device_world.cc), in the card's memory and with what fits there. */
#include <string.h>

#include "../../unit/device_world.h"
#include "gpu/gpu_internal.h"
#include "gpu/sides.h"
#include "played.h"
#include "step/certificate.h"

typedef tb_status step_function(device_job *job, tb_certificate *certificate);

/* the float build of the same source */
step_function device_world_step_f32;

/* Where solves overlap: those of more iterations outlast so many steps of the others. */
enum { LONG_SOLVE = 10, STEPS_OF_OTHERS = 3 };

/* As solver/gpu/step_part.h does it. */
static void step_world(const tb_gpu_launch *launch, tb_gpu_world *world, step_function *step)
{
    tb_state *state = &world->state;
    world->status = TB_OK;
    world->contacts_needed = 0;
    world->arena_needed = 0;
    for (int32_t round = 0; round < launch->steps && world->steps_left > 0; round++) {
        tb_certificate certificate;
        device_job job = {.state = state,
                          .options = &launch->options,
                          .course = world->course.steps > 0 ? &world->course : NULL,
                          .step = world->course.steps - world->steps_left,
                          .solver = launch->solver,
                          .memory = launch->arenas,
                          .bytes = launch->arena_size};
        const int other = state->contacts == world->contacts[0];
        state->next_contacts = world->contacts[other];
        state->next_capacity = world->contact_capacity;
        state->next_wanted = 0;
        world->status = step(&job, &certificate);
        if (launch->overlap > 0 && certificate.iterations > LONG_SOLVE) round += STEPS_OF_OTHERS;
        if (world->status == TB_RESOURCE_EXHAUSTED) {
            world->contacts_needed = state->next_wanted;
            if (job.wanted > launch->arena_size) world->arena_needed = job.wanted;
            return;
        }
        tb_certificate_add(&world->merged, &certificate);
        world->steps_left = world->status == TB_OK ? world->steps_left - 1 : 0;
    }
}

typedef struct steps {
    tb_gpu_launch launch;
    step_function *step;
} steps;

static cudaError_t make_steps(const void *argument)
{
    const steps *s = argument;
    for (int32_t i = 0; i < s->launch.number_of_worlds; i++)
        step_world(&s->launch, &s->launch.worlds[i], s->step);
    return played_state();
}

static cudaError_t start(const tb_gpu_launch *launch, const tb_gpu_sides *sides,
                         cudaStream_t stream, step_function *step)
{
    const steps s = {*launch, step};
    cudaError_t result = played_use(stream);
    if (result != cudaSuccess) return result;
    if (played_capture_of(stream) == NULL) played_count_launch();
    played_launch();
    if (launch->overlap > 0) result = tb_gpu_side_begin(sides, 0, stream);
    if (result != cudaSuccess) return result;
    result = played_kept(stream, make_steps, &s, sizeof s) ? cudaSuccess : make_steps(&s);
    if (launch->overlap > 0 && result == cudaSuccess) result = tb_gpu_sides_join(sides, stream);
    return result;
}

cudaError_t tb_gpu_start_steps(const tb_gpu_launch *launch, const tb_gpu_sides *sides,
                               cudaStream_t stream)
{
    return start(launch, sides, stream, device_world_step);
}

cudaError_t tb_gpu_start_steps_f32(const tb_gpu_launch *launch, const tb_gpu_sides *sides,
                                   cudaStream_t stream)
{
    return start(launch, sides, stream, device_world_step_f32);
}

cudaError_t tb_gpu_warm_steps(cudaStream_t stream)
{
    (void)stream;
    return played_state();
}

cudaError_t tb_gpu_warm_steps_f32(cudaStream_t stream)
{
    (void)stream;
    return played_state();
}

cudaError_t tb_gpu_start_copies(const tb_gpu_copy *copies, int32_t count, cudaStream_t stream)
{
    (void)stream;
    played_count_launch();
    if (played_state() != cudaSuccess) return played_state();
    for (int32_t i = 0; i < count; i++)
        memcpy(copies[i].to, copies[i].from, (size_t)copies[i].bytes);
    return cudaSuccess;
}
