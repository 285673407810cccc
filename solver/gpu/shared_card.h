/* A card of this process: what all steppers on it share.
 *
 * Kernels that are loaded, models and worlds that are there, memory that was asked for: all of it
 * makes the next call quick, whoever calls. So a process opens a card once and every stepper on it
 * is a guest there; sessions and grasp jobs of a daemon find it warm. One call at a time launches;
 * who calls at the same moment waits. The card is closed when the last stepper and the last world on
 * it have gone. */
#ifndef TB_GPU_SHARED_CARD_H
#define TB_GPU_SHARED_CARD_H

#include "backend/backend.h"
#include "gpu/batch/batch.h"
#include "gpu/large/large_run.h"

typedef struct tb_gpu_card {
    tb_gpu_device_copies device_copies; /* first */
    int32_t index;
    pthread_mutex_t stepping; /* of the batch */
    tb_gpu_batch batch;
    tb_gpu_large_world large; /* of the large world that was stepped last */
    tb_device_use published;  /* of the batch, under the device copies' lock */
} tb_gpu_card;

/* The card, opened if nobody has it yet; one guest more. */
tb_status tb_gpu_card_enter(int32_t index, const tb_backend *backend, tb_gpu_card **card,
                            tb_error *error);
void tb_gpu_card_leave(tb_gpu_card *card);
/* All zero for a card that nobody has. */
void tb_gpu_card_use(int32_t index, tb_device_use *use);
/* At the end of a call: what `use` says of the batch. */
void tb_gpu_card_publish(tb_gpu_card *card);

#endif
