/* Kernels of a function: what each takes, and the CUDA text of all. */
#ifndef TB_MODELICA_KERNELS_H
#define TB_MODELICA_KERNELS_H

#include "modelica/emit.h"
#include "modelica/loops.h"

enum { MO_KERNEL_ARRAYS = 40, MO_KERNEL_SCALARS = 64, MO_BLOCK = 256 };

/* What a launch hands over, in this order: ends of the nest, rounds, failures, scalars, arrays. */
typedef struct mo_kernel {
    const mo_s *loop;
    int32_t scalars, arrays;
    int32_t scalar[MO_KERNEL_SCALARS]; /* variables that the nest reads and no round assigns */
    int32_t array[MO_KERNEL_ARRAYS];
    bool stored[MO_KERNEL_ARRAYS];
    bool fits; /* false: more arrays or scalars than a launch takes */
} mo_kernel;

/* Lists the kernels of a function; kernels[f->kernels] is the caller's. */
void tb_mo_list_kernels(const mo_function *f, mo_kernel *kernels);
/* Marks a function and all that it calls; reached[program->count]. */
void tb_mo_reach(const mo_function *f, bool *reached);
/* The text for NVRTC: device functions, then kernels; k2_0 is the first of function 2.
 * kernels[program->count]: NULL for a function that is not reached. */
tb_status tb_mo_emit_cuda(const mo_program *program, mo_kernel *const *kernels, mo_text *text,
                          tb_error *error);

/* A failure on the card: launch, round, then place and kind. Smaller is earlier. */
enum { MO_KIND_BITS = 4, MO_PLACE_BITS = 21, MO_ROUND_BITS = 31 };

#endif
