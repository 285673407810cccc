/* See large_launch.h. */
#include "gpu/large/large_launch.h"

void tb_gpu_large_forget_graph(tb_gpu_large_world *f)
{
    if (f->graph != NULL) (void)cudaGraphExecDestroy(f->graph);
    f->graph = NULL;
}

tb_status tb_gpu_large_allocate(tb_gpu_large_world *f, tb_gpu_device *d, tb_gpu_large_memory part,
                                tb_error *error)
{
    const size_t size = f->calls->lay_out(f->world, part, NULL);
    const tb_status status = tb_gpu_reserve(d, &f->parts[part], size, error);
    if (status != TB_OK) return status;
    (void)f->calls->lay_out(f->world, part, f->parts[part].memory);
    return tb_gpu_check(d, f->calls->clear(f->world, part, d->stream), "clearing a world", error);
}

tb_status tb_gpu_large_copy(tb_gpu_large_world *f, tb_gpu_device *d, void *to, const void *from,
                            size_t bytes, tb_error *error)
{
    if (bytes == 0) return TB_OK;
    f->copied_bytes += bytes;
    return tb_gpu_check(d, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, d->stream),
                        "copying a world", error);
}

tb_status tb_gpu_large_reserve_scratch(tb_gpu_large_world *f, tb_gpu_device *d,
                                       tb_gpu_large_launches work, tb_error *error)
{
    size_t bytes = 0;
    const tb_status status =
        tb_gpu_check(d, f->calls->measure(f->world, work, &bytes), "planning a step", error);
    if (status != TB_OK) return status;
    if (bytes + 1 > f->scratch.capacity) tb_gpu_large_forget_graph(f);
    return tb_gpu_reserve(d, &f->scratch, bytes + 1, error);
}

tb_status tb_gpu_large_start(tb_gpu_large_world *f, tb_gpu_device *d, tb_gpu_large_launches work,
                             cudaEvent_t *marks, tb_error *error)
{
    return tb_gpu_check(
        d,
        f->calls->start(f->world, work, f->scratch.memory, f->scratch.capacity, d->stream, marks),
        "launching stages", error);
}

tb_status tb_gpu_large_send_control(tb_gpu_large_world *f, tb_gpu_device *d, tb_error *error)
{
    tb_gpu_large_view v;
    f->calls->view(f->world, &v);
    return tb_gpu_large_copy(f, d, v.control, f->control.memory, v.control_size, error);
}

tb_status tb_gpu_large_fetch_control(tb_gpu_large_world *f, tb_gpu_device *d, tb_error *error)
{
    tb_gpu_large_view v;
    f->calls->view(f->world, &v);
    tb_status status = tb_gpu_large_copy(f, d, f->control.memory, v.control, v.control_size, error);
    if (status == TB_OK) status = tb_gpu_wait(d, "steps", error);
    if (status == TB_OK) f->calls->report(f->control.memory, &f->report);
    if (status == TB_OK) f->cached = f->report.cached;
    return status;
}
