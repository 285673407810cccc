/* The length of a launch that takes its worlds through many steps: a clock ends it, because hard steps take
 * twenty times as long as easy ones. Worlds that have steps left go on in a later launch, so no result
 * depends on the clock. */
#ifndef TB_GPU_LAUNCH_TIME_H
#define TB_GPU_LAUNCH_TIME_H

#include "gpu/device/gpu_internal.h"

#ifdef __CUDACC__

/* ns after which no world begins a step. Other callers, a deadline or a cancellation wait for 20 ms at most;
 * the steps that are being made take up to 7 of them. */
enum { LAUNCH_NS = 12000000 };

static __device__ unsigned long long card_time(void)
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

/* The time from which on no world of the launch begins another step, ns of the card's clock. The first team to
 * ask begins the launch, and leaves the time in `counts`, which are zero before. */
TB_STATIC unsigned long long end_of_launch(const tb_gpu_launch *launch)
{
    unsigned long long end = 0;
    if (TB_LEADER) {
        const unsigned long long now = card_time();
        const unsigned long long began =
            atomicCAS((unsigned long long *)(void *)launch->counts, 0ull, now);
        end = (began != 0 ? began : now) + LAUNCH_NS;
    }
    tb_team_share(&end, sizeof end);
    return end;
}

/* The same for all lanes. */
TB_STATIC bool is_over(unsigned long long end)
{
    int32_t over = 0;
    if (TB_LEADER) over = card_time() > end;
    tb_team_share(&over, sizeof over);
    return over != 0;
}

#endif
#endif
