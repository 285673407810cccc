/* A compiled model as one relocatable block of bytes.
 *
 * A tb_model is a structure of pointers into many arrays. A card needs it as one piece, with the
 * pointers as they are on the card. The block begins with the tb_model. */
#ifndef TB_GPU_MODEL_IMAGE_H
#define TB_GPU_MODEL_IMAGE_H

#include "model/model.h"

enum { TB_MODEL_IMAGE_ALIGNMENT = 64 };

/* Size of the image, bytes. `origin` is the address of the image of the model that a variant
 * borrows from: arrays borrowed on the host are borrowed there too, and the variant's image must
 * not outlive that one. 0: the image is complete. */
size_t tb_model_image_size(const tb_model *model, uintptr_t origin);

/* Writes the image into `bytes` (tb_model_image_size of them, every one written), for use at the
 * address `base`, which has the alignment above. Arrays that no step reads are left out: names,
 * warnings, keyframes, the canonical bytes, the arena. */
void tb_model_image_write(const tb_model *model, uintptr_t base, uintptr_t origin,
                          unsigned char *bytes);

#endif
