/* Which worlds the kernels take in which a warp keeps its world (step_warp.cu, step_pile.cu). */
#ifndef TB_GPU_WARP_FITS_H
#define TB_GPU_WARP_FITS_H

#include "contact/problem.h"
#include "step/step.h"

/* Whether the kernels have the contact law; put_pair (warp_keep.h) gives a contact friction by it. */
bool tb_gpu_warp_knows(tb_law law);

/* Whether worlds of this model, stepped with these options, go by the kernel of small worlds: few dofs,
 * contacts with sliding friction or none, rows of one number, the solver `auto`. How a world moves does
 * not matter: steps with more contacts than the kernel holds it leaves to the general ones. */
bool tb_gpu_warp_fits(const tb_model *model, const tb_step_options *options);

/* The same of the kernel of piles, which has room for six trees of up to six dofs: free bodies, jaws. */
bool tb_gpu_pile_fits(const tb_model *model, const tb_step_options *options);

#endif
