/* Model images on a card, found by the model's SHA-256: a scene that many worlds, sessions and calls
 * share stands there once, and stays warm when its worlds are gone. Of a variant of a model only what
 * differs stands there. */
#ifndef TB_GPU_MODEL_CACHE_H
#define TB_GPU_MODEL_CACHE_H

#include "gpu/device/device.h"

/* One model on the card, and what its worlds were found to need. */
typedef struct tb_gpu_model {
    char sha256[65];
    const tb_model *image;       /* the card's address */
    size_t size;                 /* bytes */
    int32_t holders;             /* worlds of the batch under way */
    struct tb_gpu_model *origin; /* of a variant: it stands while this one does */
    int32_t variants;            /* that borrow from it */
    int64_t last_use;            /* number of the batch */
    int32_t contact_capacity;
    size_t arena_size;
} tb_gpu_model;

typedef struct tb_gpu_models {
    tb_gpu_model **table; /* open addressing, capacity a power of two */
    int32_t count, capacity;
    size_t bytes; /* of images */
    int64_t batch;
    unsigned char *scratch; /* an image on its way */
    size_t scratch_size;
} tb_gpu_models;

/* Begins a batch: nobody holds anything. Images that have not been asked for of late go if all of
 * them together take more than `limit` bytes. */
void tb_gpu_models_begin(tb_gpu_models *models, tb_gpu_device *device, size_t limit);
/* The model on the card, put there if it is new; held until the next batch begins. */
tb_status tb_gpu_models_hold(tb_gpu_models *models, tb_gpu_device *device, const tb_model *model,
                             tb_gpu_model **held, tb_error *error);
void tb_gpu_models_destroy(tb_gpu_models *models, tb_gpu_device *device);

#endif
