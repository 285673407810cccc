/* See field_work.h. */
#include "gpu/large/field_work.h"

void tb_gpu_field_forget_graph(tb_gpu_field *f)
{
    if (f->graph != NULL) (void)cudaGraphExecDestroy(f->graph);
    f->graph = NULL;
}

tb_status tb_gpu_field_place(tb_gpu_field *f, tb_gpu_device *d, tb_gpu_field_part part,
                             tb_error *error)
{
    const size_t size = f->calls->lay_out(f->field, part, NULL);
    const tb_status status = tb_gpu_reserve(d, &f->parts[part], size, error);
    if (status != TB_OK) return status;
    (void)f->calls->lay_out(f->field, part, f->parts[part].memory);
    return tb_gpu_check(d, f->calls->clear(f->field, part, d->stream), "clearing a world", error);
}

tb_status tb_gpu_field_copy(tb_gpu_field *f, tb_gpu_device *d, void *to, const void *from,
                            size_t bytes, tb_error *error)
{
    if (bytes == 0) return TB_OK;
    f->copied_bytes += bytes;
    return tb_gpu_check(d, cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, d->stream),
                        "copying a world", error);
}

tb_status tb_gpu_field_reserve_scratch(tb_gpu_field *f, tb_gpu_device *d, tb_gpu_field_work work,
                                       tb_error *error)
{
    size_t bytes = 0;
    const tb_status status =
        tb_gpu_check(d, f->calls->measure(f->field, work, &bytes), "planning a step", error);
    if (status != TB_OK) return status;
    if (bytes + 1 > f->scratch.capacity) tb_gpu_field_forget_graph(f);
    return tb_gpu_reserve(d, &f->scratch, bytes + 1, error);
}

tb_status tb_gpu_field_start(tb_gpu_field *f, tb_gpu_device *d, tb_gpu_field_work work,
                             cudaEvent_t *marks, tb_error *error)
{
    return tb_gpu_check(
        d,
        f->calls->start(f->field, work, f->scratch.memory, f->scratch.capacity, d->stream, marks),
        "launching stages", error);
}

tb_status tb_gpu_field_send_control(tb_gpu_field *f, tb_gpu_device *d, tb_error *error)
{
    tb_gpu_field_view v;
    f->calls->view(f->field, &v);
    return tb_gpu_field_copy(f, d, v.control, f->control.memory, v.control_size, error);
}

tb_status tb_gpu_field_fetch_control(tb_gpu_field *f, tb_gpu_device *d, tb_error *error)
{
    tb_gpu_field_view v;
    f->calls->view(f->field, &v);
    tb_status status = tb_gpu_field_copy(f, d, f->control.memory, v.control, v.control_size, error);
    if (status == TB_OK) status = tb_gpu_wait(d, "steps", error);
    if (status == TB_OK) f->calls->report(f->control.memory, &f->report);
    if (status == TB_OK) f->cached = f->report.cached;
    return status;
}
