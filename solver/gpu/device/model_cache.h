/* Model images on a card, found by the model's SHA-256: worlds, sessions and calls share one
 * image of a scene, which stays when its worlds are gone. A variant of a model has an image of
 * its differences alone. */
#ifndef TB_GPU_MODEL_CACHE_H
#define TB_GPU_MODEL_CACHE_H

#include "gpu/device/device.h"

/* One model on the card, and the capacities that its worlds need. */
typedef struct tb_gpu_model {
    char sha256[65];
    int64_t number;        /* of no other image of this cache, before or after */
    const tb_model *image; /* the card's address */
    size_t size;           /* bytes */
    int32_t holders;       /* worlds of the batch under way */
    struct tb_gpu_model
        *origin;      /* of a variant: the image that it refers to, which lives as long */
    int32_t variants; /* that borrow from it */
    int64_t last_use; /* number of the batch */
    int32_t contact_capacity;
    size_t arena_size;
} tb_gpu_model;

typedef struct tb_gpu_models {
    tb_gpu_model **table; /* open addressing, capacity a power of two */
    int32_t count, capacity;
    size_t bytes; /* of images */
    int64_t made; /* images, from the first on */
    int64_t batch;
    unsigned char *scratch; /* an image on its way */
    size_t scratch_size;
} tb_gpu_models;

/* Begins a batch, in which no image is in use yet. The least recently used images go if all
 * together take more than `limit` bytes. */
void tb_gpu_models_begin(tb_gpu_models *models, tb_gpu_device *device, size_t limit);
/* The model on the card, put there if it is new; held until the next batch begins. */
tb_status tb_gpu_models_hold(tb_gpu_models *models, tb_gpu_device *device, const tb_model *model,
                             tb_gpu_model **held, tb_error *error);
void tb_gpu_models_destroy(tb_gpu_models *models, tb_gpu_device *device);

#endif
