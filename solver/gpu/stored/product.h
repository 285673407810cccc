/* Products with a stored T as the listings make them, and the projection that follows (Nützi 5.2).
 *
 * A thread owns a row and walks along it: at any time a block reads one stretch of one column. x comes
 * through shared memory, a chunk at a time. Products and sums are rounded apart and in the order of the
 * columns, so the processor's loops give the same bytes. */
#ifndef TB_GPU_STORED_PRODUCT_H
#define TB_GPU_STORED_PRODUCT_H

#include "contact/contact.h"
#include "gpu/qp/grid.h"
#include "gpu/stored/stored.h"

/* X_ELEMS_PER_THREAD and UNROLL of the listing's best version. */
static const int X_NUMBERS = 4, COLUMNS_AT_ONCE = 6, MOST_THREADS = 192;

TB_CARD const tb_real *column_of(const tb_gpu_stored *s, int64_t column)
{
    return (const tb_real *)s->t + column * s->pitch;
}

/* sum + T(row, from ... from + count) x, with x in any memory. */
TB_CARD tb_real add_row(const tb_gpu_stored *s, tb_real sum, int row, int from, int count,
                        const tb_real *x)
{
    const tb_real *t = column_of(s, from) + row;
    int c = 0;
    for (; c + COLUMNS_AT_ONCE <= count; c += COLUMNS_AT_ONCE) {
        tb_real own[6], other[6];
#pragma unroll
        for (int k = 0; k < 6; k++) own[k] = t[k * s->pitch];
#pragma unroll
        for (int k = 0; k < 6; k++) other[k] = x[c + k];
#pragma unroll
        for (int k = 0; k < 6; k++) sum += own[k] * other[k];
        t += COLUMNS_AT_ONCE * s->pitch;
    }
    for (; c < count; c++, t += s->pitch) sum += *t * x[c];
    return sum;
}

/* The same over any number of columns by a whole block: chunks of x go through `shared`, which holds
 * X_NUMBERS of every thread. Reached by all threads; `active` ones have a row. */
TB_CARD tb_real add_row_by_chunks(const tb_gpu_stored *s, tb_real *shared, tb_real sum, int row,
                                  bool active, int from, int count, const tb_real *x)
{
    const int threads = (int)blockDim.x, chunk = threads * X_NUMBERS;
    for (int j = 0; j < count; j += chunk) {
        const int width = count - j < chunk ? count - j : chunk;
        __syncthreads();
        for (int k = (int)threadIdx.x; k < width; k += threads) shared[k] = x[from + j + k];
        __syncthreads();
        if (active) sum = add_row(s, sum, row, from + j, width, shared);
    }
    return sum;
}

/* Thread i of `rows` rows a block has row i of the block's stretch. */
TB_CARD void product_of_block(const tb_gpu_stored *s, tb_real *shared)
{
    const int n = 3 * s->contacts, row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    const bool active = row < n;
    const tb_real sum = add_row_by_chunks(s, shared, 0, row, active, 0, n, (const tb_real *)s->old);
    if (active) ((tb_real *)s->next)[row] = sum + ((const tb_real *)s->d)[row];
}

TB_CARD void project_contact(const tb_gpu_stored *s, int contact)
{
    tb_real *x = (tb_real *)s->next + 3 * (int64_t)contact;
    tb_prox_coulomb(x, ((const tb_real *)s->mu)[contact]);
}

TB_CARD void add_to_contact(const tb_gpu_stored *s, int contact)
{
    for (int64_t k = 3 * (int64_t)contact; k < 3 * (int64_t)contact + 3; k++)
        ((tb_real *)s->next)[k] = ((const tb_real *)s->sum)[k] + ((const tb_real *)s->d)[k];
}

/* Product and projection in one launch (jorProxGPU): the block's rows are whole contacts. */
TB_CARD void product_and_projection(const tb_gpu_stored *s, tb_real *shared, int rows)
{
    const int n = 3 * s->contacts, own = (int)threadIdx.x;
    const int row = (int)blockIdx.x * rows + own;
    const bool active = own < rows && row < n;
    const tb_real sum = add_row_by_chunks(s, shared, 0, row, active, 0, n, (const tb_real *)s->old);
    __syncthreads();
    if (active) shared[own] = sum + ((const tb_real *)s->d)[row];
    __syncthreads();
    const int contact = (int)blockIdx.x * (rows / 3) + own;
    if (own < rows / 3 && contact < s->contacts) {
        tb_prox_coulomb(shared + 3 * own, ((const tb_real *)s->mu)[contact]);
        for (int k = 0; k < 3; k++)
            ((tb_real *)s->next)[3 * (int64_t)contact + k] = shared[3 * own + k];
    }
}

/* Whether an element's increment is too large to stop (Nützi 4.49); not a number never stops. */
TB_CARD bool moves_on(const tb_gpu_stored *s, tb_real before, tb_real after)
{
    const double change = (double)tb_abs(after - before);
    return !(change <= s->absolute + s->relative * (double)tb_abs(before));
}

#endif
