/* Kernels of a function: what each takes, and the CUDA text of all. */
#ifndef TB_MODELICA_KERNELS_H
#define TB_MODELICA_KERNELS_H

#include "modelica/emit.h"
#include "modelica/loops.h"

enum { MO_KERNEL_ARRAYS = 40, MO_KERNEL_SCALARS = 64, MO_BLOCK = 256, MO_TILE = 64 };

/* Arguments of a kernel's launch, in this order: ends of the nest, rounds, failures, scalars, arrays. */
typedef struct mo_kernel {
    const mo_s *loop;
    int32_t scalars, arrays;
    int32_t scalar[MO_KERNEL_SCALARS]; /* variables that the nest reads and no round assigns */
    int32_t array[MO_KERNEL_ARRAYS];
    bool stored[MO_KERNEL_ARRAYS];
    bool fits; /* false: more arrays or scalars than a launch takes */
    /* a product of matrices: the loop over its inner dimension, and the factors; else NULL */
    const mo_s *product;
    int32_t left, right, result;
} mo_kernel;

/* Lists the kernels of a function; kernels[f->kernels] is the caller's. */
void tb_mo_list_kernels(const mo_function *f, mo_kernel *kernels);
/* Marks a function and all that it calls; reached[program->count]. */
void tb_mo_reach(const mo_function *f, bool *reached);
/* Finds out whether a kernel is a product of matrices: product.c. */
void tb_mo_find_product(const mo_function *f, mo_kernel *kernel);
/* The kernel t2_0 of a product, by tiles in shared memory, beside k2_0. */
void tb_mo_emit_product(mo_emit *e, const mo_function *f, const mo_kernel *kernel, int32_t number);
/* The first lines of a kernel: its name, and its variables from the launch's struct. */
void tb_mo_emit_head(mo_emit *e, const mo_function *f, const mo_kernel *kernel, const char *prefix,
                     int32_t number);
/* The text for NVRTC: device functions, then kernels; k2_0 is the first of function 2.
 * kernels[program->count]: NULL for a function that is not reached. */
tb_status tb_mo_emit_cuda(const mo_program *program, mo_kernel *const *kernels, mo_text *text,
                          tb_error *error);

/* A failure on the card: launch, round, then place and kind. Smaller is earlier. */
enum { MO_KIND_BITS = 4, MO_PLACE_BITS = 21, MO_ROUND_BITS = 31 };

#endif
