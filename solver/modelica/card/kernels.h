/* Kernels of a function: the arguments of each, and the CUDA text of all. */
#ifndef TB_MODELICA_KERNELS_H
#define TB_MODELICA_KERNELS_H

#include "modelica/card/driver.h"
#include "modelica/emit.h"
#include "modelica/loops.h"

enum { MO_KERNEL_ARRAYS = 40, MO_KERNEL_SCALARS = 64, MO_BLOCK = 256, MO_TILES = 6 };

/* A kernel for products of matrices: rows and columns of a block's tile, its threads, strips of the factors
 * in shared memory. */
typedef struct mo_tile {
    const char *prefix; /* of the kernel's name */
    bool tensor;        /* by tensor cores, in an order of theirs */
    int rows, columns, threads, stages;
    double blocks; /* fewest for each processor of the card: else a smaller tile does */
} mo_tile;
extern const mo_tile tb_mo_tiles[MO_TILES];

enum { MO_FOLD_THREADS = 512, MO_RESULT_WORD = 8, MO_BRANCHES = 64, MO_JOINS = 5 };
/* Sweeps: rows and columns of each array in a block's shared memory, threads of the block, reach of a
 * stencil, and most rounds of a group. */
enum { MO_SIDE = 32, MO_SWEEP_THREADS = 512, MO_SWEEP_REACH = 8, MO_SWEEP_STEPS = 64 };

/* Arguments of a kernel's launch, in this order: ends of the nest, rounds, failures, scalars, arrays. */
typedef struct mo_kernel {
    const mo_s *loop;
    int32_t scalars, arrays;
    int32_t scalar[MO_KERNEL_SCALARS]; /* variables that the nest reads and no round assigns */
    int32_t array[MO_KERNEL_ARRAYS];
    bool stored[MO_KERNEL_ARRAYS];
    bool fits;      /* false: more arrays or scalars than a launch takes */
    int32_t number; /* of its text: kernels that do the same share one */
    /* a product of matrices: the loop over its inner dimension, and the factors; else NULL */
    const mo_s *product;
    int32_t left, right, result;
    const mo_sweep *sweep; /* several rounds of a sequential loop, or NULL */
} mo_kernel;

/* Kernels of a function: of its loops, then of its sweeps. */
int32_t tb_mo_kernel_count(const mo_function *f);
/* Lists them; kernels[tb_mo_kernel_count(f)] is the caller's. */
void tb_mo_list_kernels(const mo_function *f, mo_kernel *kernels);
/* Marks a function and all that it calls; reached[program->count]. */
void tb_mo_reach(const mo_function *f, bool *reached);
/* Finds out whether a kernel is a product of matrices: product.c. */
void tb_mo_find_product(const mo_function *f, mo_kernel *kernel);
/* The kernels t0, u0, ... of a product, by tiles in shared memory, beside k0: those by tensor cores for a
 * function whose sums may be reordered, if the card has them. */
void tb_mo_emit_product(mo_emit *e, const mo_function *f, const mo_kernel *kernel);
/* The kernel r0 of a reduction; its results follow the failure in memory. */
void tb_mo_emit_fold(mo_emit *e, const mo_function *f, const mo_kernel *kernel);
/* The kernel k0 of a parallel reduction: partial results over MO_BRANCHES rounds each. Joins of
 * partial results: functions, and the kernels g0, g1, ... of one block that join them to a
 * result. */
void tb_mo_emit_parallel(mo_emit *e, const mo_function *f, const mo_kernel *kernel);
void tb_mo_emit_joins(mo_text *text, unsigned joins);
/* The join of a reduction v + x, min(v, x) or max(v, x). */
int32_t tb_mo_join_number(const mo_x *x);
/* The struct p0 of a launch's argument, and the values of the iterators of round t. */
void tb_mo_emit_parameters(mo_emit *e, const mo_kernel *kernel);
void tb_mo_emit_iterators(mo_emit *e, const mo_loop *loop);
/* The kernel w0 of a sweep. */
void tb_mo_emit_sweep(mo_emit *e, const mo_function *f, const mo_kernel *kernel);
/* The scalars that a loop assigns, iterators included: by variable, up to the next call. */
bool *tb_mo_find_assigned(const mo_s *loop, int32_t count);
/* The first lines of a kernel: its name, and its variables from the launch's struct. */
void tb_mo_emit_head(mo_emit *e, const mo_function *f, const mo_kernel *kernel, const char *prefix);
/* The text for NVRTC: device functions, then kernels; sets the number of each kernel.
 * kernels[program->count]: NULL for a function that is not reached. */
tb_status tb_mo_emit_cuda(const mo_program *program, mo_kernel *const *kernels, mo_text *text,
                          tb_error *error);

/* Texts of kernels; equal texts are kept once: merge.c. */
typedef struct mo_merge {
    mo_text *text; /* of all kernels, with numbers for the variables and for @ */
    int32_t count, capacity;
    mo_text *kept; /* as compared */
} mo_merge;
/* Adds the text of a kernel, if none is equal but for the numbers of variables; its number. */
int32_t tb_mo_merge(mo_merge *merge, const mo_text *own);
void tb_mo_merge_end(mo_merge *merge);

/* A failure on the card: its key is launch, round, then place and kind; smaller is earlier. A lock
 * and the values what, a and b of MO_FAIL follow the key; the results of a reduction begin at
 * MO_RESULT_WORD. */
enum { MO_KIND_BITS = 4, MO_PLACE_BITS = 21, MO_ROUND_BITS = 31 };
_Static_assert(MO_RESULT_WORD + MO_FOLDS <= MO_FAULT_WORDS, "results stand behind the failure");

#endif
