/* What the played runtime tells the played kernels. */
#ifndef PLAYED_H
#define PLAYED_H

#include "cuda_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Why nothing works any longer, or cudaSuccess. */
cudaError_t played_state(void);
/* Takes as long as a launch is to take. */
void played_launch(void);

#ifdef __cplusplus
}
#endif

#endif
