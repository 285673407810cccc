/* Large arrays of doubles to and from a card, by way of pinned memory and in its precision. */
#ifndef TB_GPU_ARRAY_COPIES_H
#define TB_GPU_ARRAY_COPIES_H

#include "gpu/device/device.h"

/* Bytes of pinned memory that arrays travel through, at least. */
enum { TB_GPU_STAGING = 16 << 20 };

/* to <- from, doubles or floats; nothing where `to` is NULL. */
void tb_gpu_convert(void *to, const double *from, size_t count, bool single);

/* `columns` columns of `height` numbers, one behind the other in `from`, to the card, where they
 * are `stride` numbers apart. `staging` holds one at least. Waits until it is done. */
tb_status tb_gpu_upload_doubles(tb_gpu_device *device, const tb_gpu_buffer *staging, void *to,
                                size_t stride, const double *from, size_t height, size_t columns,
                                bool single, tb_error *error);

/* The other way, without gaps. */
tb_status tb_gpu_download_doubles(tb_gpu_device *device, const tb_gpu_buffer *staging, double *to,
                                  const void *from, size_t count, bool single, tb_error *error);

#endif
