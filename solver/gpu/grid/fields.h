/* Fields of soft bodies on a card: the structures that the host and the kernels share. */
#ifndef TB_GPU_SOFT_FIELDS_H
#define TB_GPU_SOFT_FIELDS_H

#include <cuda_runtime_api.h>

#include "base/error.h"
#include "grid/card/fields.h"

enum { TB_GPU_SOFT_THREADS = 256, TB_GPU_SOFT_BLOCKS = 4 /* of a processor */ };

/* Fields that a pass of extrapolation extends. */
enum { TB_GPU_SOFT_X = 1, TB_GPU_SOFT_V = 2 };

/* Passes over nodes or bodies. */
typedef enum tb_gpu_soft_pass {
    TB_GPU_SOFT_TAKE,
    TB_GPU_SOFT_ACCELERATE,
    TB_GPU_SOFT_SLOPES,
    TB_GPU_SOFT_EXTEND, /* by one layer */
    TB_GPU_SOFT_ADVECT,
    TB_GPU_SOFT_ADOPT,
    TB_GPU_SOFT_SCALE,
    TB_GPU_SOFT_CLEAR,
    TB_GPU_SOFT_LAYER,
    TB_GPU_SOFT_REPAIR,
    /* of sums and what follows from them, a body a block */
    TB_GPU_SOFT_END_STRESS,
    TB_GPU_SOFT_END_MOMENTUM,
    TB_GPU_SOFT_END_WAS,
    TB_GPU_SOFT_END_MASSES,
    TB_GPU_SOFT_END_BOX,
    TB_GPU_SOFT_END_REPAIR
} tb_gpu_soft_pass;

/* Working memory of a body on the card. Forces of cells and results of transport are never needed at the
 * same time. */
typedef struct tb_gpu_soft_scratch {
    double *cell_force;          /* nodes x 24 */
    double *slope_X, *slope_v;   /* nodes x 9 */
    tb_soft_stages stages;       /* nodes x 3 each */
    tb_soft_sums *runs;          /* nodes[2] x nodes[1] x runs of a row */
    tb_soft_sums *rows, *planes; /* nodes[2] x nodes[1]; nodes[2] */
    int32_t lower[3], upper[3];  /* box of the nodes with mass */
} tb_gpu_soft_scratch;

/* A pass. Pointers of the card; arrays by bodies. */
typedef struct tb_gpu_soft {
    tb_soft_space space;
    int32_t bodies, clamps, runs; /* runs of a row */
    const tb_soft_card_body *body;
    const tb_soft_card_clamp *clamp;
    tb_soft_field *fields;
    tb_gpu_soft_scratch *scratch;
    tb_soft_card_outcome *outcomes;
    double time, dt;
    tb_gpu_soft_pass pass;
    int32_t layer; /* of EXTEND and LAYER; depths: 1: outside of the body alone */
    int32_t which; /* TB_GPU_SOFT_X, TB_GPU_SOFT_V: of SLOPES and EXTEND */
    bool second;   /* stage of transport */
} tb_gpu_soft;

#ifdef __cplusplus
extern "C" {
#endif
/* The backend's entries. */
tb_status tb_gpu_soft_open(int32_t device, const tb_soft_card_scene *scene, void **context,
                           tb_error *error);
tb_status tb_gpu_soft_call(void *context, const tb_soft_card_call *call, tb_error *error);
void tb_gpu_soft_close(void *context);

/* Begin all launches of a call's part on the stream and do not wait. */
cudaError_t tb_gpu_soft_forces(const tb_gpu_soft *soft, int32_t processors, cudaStream_t stream);
cudaError_t tb_gpu_soft_transport(const tb_gpu_soft *soft, int32_t processors, cudaStream_t stream);
cudaError_t tb_gpu_soft_measure(const tb_gpu_soft *soft, int32_t processors, cudaStream_t stream);
#ifdef __cplusplus
}
#endif

#endif
