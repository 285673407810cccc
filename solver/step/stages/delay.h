/* Delayed controls: samples of past steps, and the control between them.
 *
 * A memory holds `count` pairs (time, control), newest first. It starts as zeros: controls before
 * the first step count as zero, as in MuJoCo (programming/simulation, "Delays"). */
#ifndef TB_DELAY_H
#define TB_DELAY_H

#include "model/model.h"

/* Adds the control of the step that began at `time`. Samples that are not older (of a new
 * memory, or of a world whose time was set back) are spaced by dt. */
TB_FN void tb_keep_control(double *memory, int32_t count, double time, double control, double dt)
{
    for (int32_t i = count - 1; i > 0; i--) {
        memory[2 * i] = memory[2 * (i - 1)];
        memory[2 * i + 1] = memory[2 * (i - 1) + 1];
    }
    memory[0] = time;
    memory[1] = control;
    for (int32_t i = 1; i < count; i++)
        if (memory[2 * i] >= memory[2 * (i - 1)]) memory[2 * i] = memory[2 * (i - 1)] - dt;
}

/* Slope of the Catmull-Rom spline at sample i, 0 at the ends. */
TB_FN double tb_sample_slope(const double *memory, int32_t count, int32_t i)
{
    if (i == 0 || i == count - 1) return 0;
    const double *newer = memory + 2 * (i - 1), *older = memory + 2 * (i + 1);
    return newer[0] > older[0] ? (newer[1] - older[1]) / (newer[0] - older[0]) : 0;
}

/* The control at `time`; before the oldest sample the oldest, after the newest the newest. */
TB_FN double tb_past_control(const double *memory, int32_t count, double time,
                             tb_interpolation interpolation)
{
    const double same = 1e-9 * (1 + (time < 0 ? -time : time)); /* rounding of summed time steps */
    int32_t i = 0;
    while (i < count && memory[2 * i] > time + same) i++;
    if (i == count) return memory[2 * (count - 1) + 1];
    const double *older = memory + 2 * i, *newer = memory + 2 * (i - 1);
    if (i == 0 || interpolation == TB_INTERPOLATION_HOLD || time - older[0] <= same)
        return older[1];
    const double way = newer[0] - older[0], x = (time - older[0]) / way;
    if (interpolation == TB_INTERPOLATION_LINEAR) return older[1] + x * (newer[1] - older[1]);
    const double y = 1 - x;
    return y * y * (1 + 2 * x) * older[1] + x * x * (1 + 2 * y) * newer[1] +
           x * y * way *
               (y * tb_sample_slope(memory, count, i) - x * tb_sample_slope(memory, count, i - 1));
}

#endif
