/* The block SOR iterations of the listings: an exact Gauss-Seidel with two kernels by turns along
 * the diagonal of T, the relaxed mixture with Jacobi, and both on block CSR (Nützi 5.3, 5.4).
 *
 * `sum` is t of (5.13), the sum over the newest impulses before a row and the last ones from it on. A
 * row that is finished starts the sum of the next iteration at zero. */
#ifndef TB_GPU_STORED_SOR_H
#define TB_GPU_STORED_SOR_H

#include "gpu/stored/product.h"

/* Rows of a diagonal block in shared memory. */
typedef struct diagonal_memory {
    tb_real sum[MOST_THREADS], next[MOST_THREADS];
} diagonal_memory;

TB_CARD void note_movement(const tb_gpu_stored *s, int row, tb_real after)
{
    if (s->check && moves_on(s, ((const tb_real *)s->next)[row], after)) *s->stopped = 0;
}

TB_CARD void meet_unless(uint32_t left_out)
{
    if (!(left_out & TB_PROX_BARRIERS)) __syncthreads();
}

/* sorProxStepA: one block of threads, a row each, contact after contact. Normal first; then both
 * tangential rows together, so that the second sees the first's last value (Nützi, listing A.2).
 * Less the parts that are left out, for the time of each. */
TB_CARD void diagonal_block(const tb_gpu_stored *s, diagonal_memory *m)
{
    const uint32_t out = s->left_out;
    const int own = (int)threadIdx.x, first = s->index * s->group * 3;
    const int left = 3 * s->contacts - first, rows = left < 3 * s->group ? left : 3 * s->group;
    const bool active = own < rows;
    const tb_real *d = (const tb_real *)s->d + first, *mu = (const tb_real *)s->mu + first / 3;
    tb_real *sum = (tb_real *)s->sum + first;
    if (active) m->sum[own] = sum[own];
    __syncthreads();
    for (int j = 0; j < rows; j += 3) {
        if (own == j) {
            const tb_real normal = d[j] + m->sum[j];
            m->next[j] = out & TB_PROX_NORMAL ? normal : tb_prox_unilateral(normal);
            if (!(out & TB_PROX_WRITES)) m->sum[j] = 0;
        }
        meet_unless(out);
        if (active && !(out & TB_PROX_PROPAGATION))
            m->sum[own] += column_of(s, first + j)[first + own] * m->next[j];
        meet_unless(out);
        if (own == j + 1) {
            tb_real x[2] = {d[j + 1] + m->sum[j + 1], d[j + 2] + m->sum[j + 2]};
            if (!(out & TB_PROX_TANGENTIAL)) tb_prox_disk(x, mu[j / 3] * m->next[j]);
            m->next[j + 1] = x[0];
            m->next[j + 2] = x[1];
            if (!(out & TB_PROX_WRITES)) m->sum[j + 1] = m->sum[j + 2] = 0;
        }
        meet_unless(out);
        if (active && !(out & TB_PROX_PROPAGATION)) {
            m->sum[own] += column_of(s, first + j + 1)[first + own] * m->next[j + 1];
            m->sum[own] += column_of(s, first + j + 2)[first + own] * m->next[j + 2];
        }
    }
    __syncthreads();
    if (!active || out & TB_PROX_WRITES) return;
    note_movement(s, first + own, m->next[own]);
    ((tb_real *)s->next)[first + own] = m->next[own];
    sum[own] = m->sum[own];
}

/* sorProxStepB: the columns of diagonal block `index` for all rows outside of it. */
TB_CARD void columns_off_diagonal(const tb_gpu_stored *s, tb_real *shared)
{
    const int n = 3 * s->contacts, first = s->index * s->group * 3;
    const int columns = n - first < 3 * s->group ? n - first : 3 * s->group;
    int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    const bool active = row < n - columns;
    if (row >= first) row += columns;
    tb_real *sum = (tb_real *)s->sum;
    const tb_real own = active ? sum[row] : 0;
    const tb_real all =
        add_row_by_chunks(s, shared, own, row, active, first, columns, (const tb_real *)s->next);
    if (active) sum[row] = all;
}

/* sorProxRelaxedStepA: a contact of the group a thread; a group of up to 128 is one block of
 * threads. */
TB_CARD void project_group(const tb_gpu_stored *s)
{
    const int own = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    const int contact = s->index * s->group + own;
    if (own >= s->group || contact >= s->contacts) return;
    tb_real *sum = (tb_real *)s->sum + 3 * (int64_t)contact, x[3];
    for (int k = 0; k < 3; k++) {
        x[k] = sum[k] + ((const tb_real *)s->d)[3 * (int64_t)contact + k];
        sum[k] = 0;
    }
    tb_prox_coulomb(x, ((const tb_real *)s->mu)[contact]);
    for (int k = 0; k < 3; k++) {
        note_movement(s, 3 * contact + k, x[k]);
        ((tb_real *)s->next)[3 * (int64_t)contact + k] = x[k];
    }
}

/* sorProxRelaxedStepB: the columns of group `index` for all rows. */
TB_CARD void columns_of_group(const tb_gpu_stored *s, tb_real *shared)
{
    const int n = 3 * s->contacts, first = s->index * s->group * 3;
    const int columns = n - first < 3 * s->group ? n - first : 3 * s->group;
    const int row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    const bool active = row < n;
    tb_real *sum = (tb_real *)s->sum;
    const tb_real own = active ? sum[row] : 0;
    const tb_real all =
        add_row_by_chunks(s, shared, own, row, active, first, columns, (const tb_real *)s->next);
    if (active) sum[row] = all;
}

/* The start vector from the impulses `next`: row l of the upper part of T. Relaxed groups take
 * whole diagonal blocks; the exact SOR takes the diagonal and, of each contact, the entry (T2, T1),
 * since both tangential rows are projected together. */
TB_CARD void start_row(const tb_gpu_stored *s, bool relaxed)
{
    const int n = 3 * s->contacts, row = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (row >= n) return;
    const int contact = row / 3, within = row % 3;
    const int from = relaxed ? contact / s->group * s->group * 3 : row - (within == 2);
    ((tb_real *)s->sum)[row] = add_row(s, 0, row, from, n - from, (const tb_real *)s->next + from);
}

/* ---- block CSR ---- */

/* x += T_block y for a block of 3 x 3, by rows. */
TB_CARD void add_block(const tb_gpu_stored *s, int32_t block, const tb_real *y, tb_real *x)
{
    const tb_real *t = (const tb_real *)s->value + 9 * (int64_t)block;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) x[i] += t[3 * i + j] * y[j];
}

/* The blocks of a row that lie in group `index`. The test has two sides: a row without a block
 * there begins with one of a later group, or of the next row. */
TB_CARD void sparse_columns_of_group(const tb_gpu_stored *s)
{
    const int contact = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (contact >= s->contacts) return;
    const int32_t lower = s->index * s->group, upper = lower + s->group;
    const int32_t *start = s->group_start + (int64_t)s->index * (s->contacts + 1);
    tb_real *sum = (tb_real *)s->sum + 3 * (int64_t)contact, x[3] = {sum[0], sum[1], sum[2]};
    for (int32_t b = start[contact]; b < start[contact + 1]; b++) {
        const int32_t column = s->column[b];
        if (column < lower || column >= upper) break;
        add_block(s, b, (const tb_real *)s->next + 3 * (int64_t)column, x);
    }
    for (int k = 0; k < 3; k++) sum[k] = x[k];
}

/* Sparse Full SOR: a thread a block row, left to right. Before a block left of the diagonal the
 * thread waits until the count of finished contacts has passed its column. Blocks of threads take
 * their rows by a ticket, so the rows that others wait for have begun. Counters: ticket, finished
 * contacts. */
TB_CARD void sparse_row(const tb_gpu_stored *s, int contact, volatile unsigned *done)
{
    const int32_t from = s->row_start[contact], to = s->row_start[contact + 1];
    tb_real x[3] = {0, 0, 0}, *next = (tb_real *)s->next;
    int32_t b = from, diagonal = -1;
    for (; b < to && s->column[b] < contact; b++) {
        while (*done <= (unsigned)s->column[b]) TB_CARD_SPIN;
        __threadfence();
        tb_real y[3];
        for (int k = 0; k < 3; k++)
            y[k] = ((volatile tb_real *)next)[3 * (int64_t)s->column[b] + k];
        add_block(s, b, y, x);
    }
    if (b < to && s->column[b] == contact) diagonal = b++;
    for (; b < to; b++) add_block(s, b, next + 3 * (int64_t)s->column[b], x);
    /* within the contact: the normal sees old values, both tangents the new normal */
    tb_real own[3], y[3];
    const tb_real *t = (const tb_real *)s->value + 9 * (int64_t)diagonal;
    const tb_real *d = (const tb_real *)s->d + 3 * (int64_t)contact;
    for (int k = 0; k < 3; k++) own[k] = next[3 * (int64_t)contact + k];
    y[0] = own[0], y[1] = own[1], y[2] = own[2];
    for (int i = 0; i < 3; i++) {
        tb_real product = 0;
        if (diagonal >= 0)
            for (int j = 0; j < 3; j++) product += t[3 * i + j] * y[j];
        const tb_real z = x[i] + product + d[i];
        if (i == 0)
            own[0] = y[0] = tb_prox_unilateral(z);
        else
            own[i] = z;
    }
    tb_prox_disk(own + 1, ((const tb_real *)s->mu)[contact] * own[0]);
    while (*done < (unsigned)contact) TB_CARD_SPIN;
    for (int k = 0; k < 3; k++) {
        note_movement(s, 3 * contact + k, own[k]);
        ((volatile tb_real *)next)[3 * (int64_t)contact + k] = own[k];
    }
    __threadfence();
    *done = (unsigned)contact + 1;
}

TB_CARD void sparse_sweep(const tb_gpu_stored *s, unsigned *ticket)
{
    if (threadIdx.x == 0) *ticket = atomicAdd(&s->counters[0], 1u);
    __syncthreads();
    const int contact = (int)(*ticket * blockDim.x + threadIdx.x);
    if (contact < s->contacts) sparse_row(s, contact, &s->counters[32]);
}

#endif
