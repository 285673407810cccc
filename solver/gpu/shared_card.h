/* A card of this process, shared by all its steppers.
 *
 * Loaded kernels, models, worlds and allocated memory make the next call of any stepper faster. So
 * a process opens a card once and all steppers share it; sessions and grasp jobs of a daemon find
 * it warm. One call at a time launches; concurrent callers wait. The card is closed when the last
 * stepper and the last world on it are gone. */
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

/* Returns the card, opened if needed, with one more user. */
tb_status tb_gpu_card_enter(int32_t index, const tb_backend *backend, tb_gpu_card **card,
                            tb_error *error);
void tb_gpu_card_leave(tb_gpu_card *card);
/* All zero for a card that is not open. */
void tb_gpu_card_use(int32_t index, tb_device_use *use);
/* At the end of a call: copies the batch's counts to `use`. */
void tb_gpu_card_publish(tb_gpu_card *card);

#endif
