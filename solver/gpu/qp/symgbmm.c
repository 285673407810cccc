/* symgbmm on a card: the host's side. */
#include "gpu/qp/symgbmm.h"

#include <stdlib.h>
#include <string.h>

#include "gpu/device/array_copies.h"
#include "gpu/device/blas.h"

enum { BLOCKS_A_PROCESSOR = 4, BEFORE = 0, AFTER = 1 };

/* A product's memory on a card. */
typedef struct product_room {
    tb_gpu_device device;
    tb_gpu_buffer numbers, staging;
} product_room;

static size_t product_part(size_t count, size_t size)
{
    return (count * size + 255) / 256 * 256;
}

enum { WHOLE_COLUMNS = 64 };

/* All n x n numbers of the band, a few columns at a time. */
static tb_status send_whole(product_room *room, const tb_gpu_product *p, bool single, void *there,
                            const double *band, tb_error *error)
{
    const size_t n = (size_t)p->n, wide = (size_t)p->half_bandwidth + 1;
    const size_t size = single ? sizeof(float) : sizeof(double);
    double *columns = malloc(WHOLE_COLUMNS * n * sizeof *columns);
    tb_status status = columns ? TB_OK : tb_fail_memory(error, n * sizeof *columns, "columns");
    for (size_t from = 0; from < n && status == TB_OK; from += WHOLE_COLUMNS) {
        const size_t to = from + WHOLE_COLUMNS < n ? from + WHOLE_COLUMNS : n;
        memset(columns, 0, (to - from) * n * sizeof *columns);
        for (size_t j = from; j < to; j++) {
            double *column = columns + (j - from) * n;
            for (size_t i = j; i < n && i < j + wide; i++) column[i] = band[i - j + j * wide];
            for (size_t i = j + 1 > wide ? j + 1 - wide : 0; i < j; i++)
                column[i] = band[j - i + i * wide];
        }
        status =
            tb_gpu_upload_doubles(&room->device, &room->staging, (char *)there + from * n * size, n,
                                  columns, n, to - from, single, error);
    }
    free(columns);
    return status;
}

/* Begins the product of cuBLAS or of a kernel. */
static tb_status begin_product(product_room *room, const tb_gpu_product *p, bool single, int blocks,
                               tb_gpu_blas *blas, tb_error *error)
{
    if (blas->handle)
        return tb_gpu_blas_multiply(blas, single, p->n, p->columns, p->band, p->a, p->c, error);
    return tb_gpu_check(
        &room->device,
        (single ? tb_gpu_start_product_f32 : tb_gpu_start_product)(p, blocks, room->device.stream),
        "beginning the product", error);
}

/* The factors go there, the product is made between two marks of the stream, and comes back. */
static tb_status run_product(product_room *room, tb_gpu_product *p, bool single, tb_gpu_blas *blas,
                             const double *band, const double *a, double *c, double *seconds,
                             tb_error *error)
{
    const size_t n = (size_t)p->n, size = single ? sizeof(float) : sizeof(double);
    const size_t wide = blas->handle ? n : (size_t)p->half_bandwidth + 1,
                 columns = (size_t)p->columns;
    const size_t first = product_part(n * wide, size), part = product_part(n * columns, size);
    size_t staging = TB_GPU_STAGING;
    if (n * size > staging) staging = n * size;
    int processors = 0;
    tb_gpu_device *device = &room->device;
    tb_status status = tb_gpu_reserve(device, &room->numbers, first + 2 * part, error);
    if (status == TB_OK) status = tb_gpu_reserve_pinned(device, &room->staging, staging, error);
    if (status != TB_OK) return status;
    char *there = room->numbers.memory;
    p->band = there;
    p->a = there + first;
    p->c = there + first + part;
    status = blas->handle ? send_whole(room, p, single, there, band, error)
                          : tb_gpu_upload_doubles(device, &room->staging, there, wide, band, wide,
                                                  n, single, error);
    if (status == TB_OK)
        status = tb_gpu_upload_doubles(device, &room->staging, there + first, n, a, n, columns,
                                       single, error);
    if (status == TB_OK)
        status = tb_gpu_check(
            device,
            cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device->index),
            "asking for its processors", error);
    if (status == TB_OK) status = tb_gpu_mark(device, BEFORE, error);
    if (status == TB_OK)
        status = begin_product(room, p, single, processors * BLOCKS_A_PROCESSOR, blas, error);
    if (status == TB_OK) status = tb_gpu_mark(device, AFTER, error);
    if (status == TB_OK)
        status =
            tb_gpu_download_doubles(device, &room->staging, c, p->c, n * columns, single, error);
    *seconds = 0;
    return status == TB_OK ? tb_gpu_elapsed(device, BEFORE, AFTER, seconds, error) : status;
}

tb_status tb_gpu_symgbmm(tb_symgbmm_variant variant, tb_precision precision, int32_t device,
                         int32_t n, int32_t half_bandwidth, int32_t columns, const double *band,
                         const double *a, double *c, double *seconds, tb_error *error)
{
    char reason[TB_ERROR_MESSAGE_SIZE];
    if (device >= tb_gpu_count(reason))
        return tb_fail_field(error, TB_NOT_FOUND, "device", "there is no card %d", (int)device);
    product_room room = {0};
    tb_status status = tb_gpu_device_open(device, &room.device, error);
    if (status != TB_OK) return status;
    tb_gpu_product p = {.n = n,
                        .half_bandwidth = half_bandwidth,
                        .columns = columns,
                        .shared = variant == TB_SYMGBMM_SHARED};
    tb_gpu_blas blas = {0};
    if (variant == TB_SYMGBMM_GEMM) status = tb_gpu_blas_open(&blas, room.device.stream, error);
    if (status == TB_OK)
        status = run_product(&room, &p, precision == TB_FLOAT, &blas, band, a, c, seconds, error);
    tb_gpu_blas_close(&blas);
    tb_gpu_release(&room.device, &room.numbers);
    tb_gpu_release_pinned(&room.device, &room.staging);
    tb_gpu_device_close(&room.device);
    return status;
}
