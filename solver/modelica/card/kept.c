/* Arrays that stay between calls. Their content does not change, so that the host and the card may each
 * have a copy, made when a call first needs it there, and calls at the same time share them.
 *
 * Memory of the card is taken and given back in the order of the one stream of all calls. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "modelica/card/call.h"

struct tb_function_array {
    atomic_int users;
    pthread_mutex_t lock; /* of the two copies */
    tb_function_value shape;
    int64_t bytes;
    void *data;        /* the host's copy, or NULL */
    mo_driver *driver; /* of the card's copy, or NULL */
    cu_pointer card;
};

static tb_function_array *make(tb_function_type type, int32_t rank, const int64_t *size)
{
    tb_function_array *kept = calloc(1, sizeof *kept);
    if (kept == NULL) return NULL;
    atomic_init(&kept->users, 1);
    pthread_mutex_init(&kept->lock, NULL);
    kept->shape.type = type;
    kept->shape.rank = rank;
    kept->bytes = type == TB_FUNCTION_BOOLEAN ? 1 : 8;
    for (int32_t d = 0; d < rank; d++) {
        kept->shape.size[d] = size[d];
        if (size[d] < 0 || __builtin_mul_overflow(kept->bytes, size[d], &kept->bytes)) {
            free(kept);
            return NULL;
        }
    }
    return kept;
}

void tb_function_array_hold(tb_function_array *kept)
{
    if (kept != NULL) atomic_fetch_add(&kept->users, 1);
}

void tb_function_array_release(tb_function_array *kept)
{
    if (kept == NULL || atomic_fetch_sub(&kept->users, 1) > 1) return;
    if (kept->card != 0 && kept->driver->cuCtxSetCurrent(kept->driver->context) == 0)
        kept->driver->cuMemFreeAsync(kept->card, kept->driver->stream);
    pthread_mutex_destroy(&kept->lock);
    free(kept->data);
    free(kept);
}

tb_function_value tb_function_array_shape(const tb_function_array *kept)
{
    return kept->shape;
}

uint64_t tb_function_array_bytes(const tb_function_array *kept)
{
    return (uint64_t)kept->bytes;
}

/* ---- the two copies ---- */

/* Has the content on the host; under the lock. */
static tb_status need_data(tb_function_array *kept, tb_error *error)
{
    mo_driver *d = kept->driver;
    if (kept->data != NULL) return TB_OK;
    void *data = tb_mo_output_memory((size_t)kept->bytes);
    if (data == NULL) return tb_fail_memory(error, (size_t)kept->bytes, "a kept array");
    if (d->cuCtxSetCurrent(d->context) != 0 ||
        d->cuMemcpyDtoHAsync_v2(data, kept->card, (size_t)kept->bytes, d->stream) != 0 ||
        d->cuStreamSynchronize(d->stream) != 0) {
        free(data);
        return tb_fail(error, TB_ABORTED, "the card failed: a copy of a kept array");
    }
    kept->data = data;
    return TB_OK;
}

/* Has the content on the card, which the calling thread has; under the lock. */
static tb_status need_card(tb_function_array *kept, mo_driver *d, tb_error *error)
{
    const size_t bytes = (size_t)kept->bytes;
    if (kept->card != 0 || bytes == 0) return TB_OK;
    if (d->cuMemAllocAsync(&kept->card, bytes, d->stream) != 0) {
        kept->card = 0;
        return tb_fail(error, TB_RESOURCE_EXHAUSTED, "the card has no %zu bytes left", bytes);
    }
    kept->driver = d;
    if (d->cuMemcpyHtoDAsync_v2(kept->card, kept->data, bytes, d->stream) != 0)
        return tb_fail(error, TB_ABORTED, "the card failed: a copy to it");
    return TB_OK;
}

tb_status tb_function_array_make(const tb_function_value *value, tb_function_array **made,
                                 tb_error *error)
{
    *made = NULL;
    if (value->rank < 1 || value->rank > TB_FUNCTION_RANK || value->data == NULL)
        return tb_fail(error, TB_INVALID_ARGUMENT, "arrays alone are kept, no scalars");
    tb_function_array *kept = make(value->type, value->rank, value->size);
    if (kept == NULL) return tb_fail_memory(error, 0, "a kept array");
    const int64_t bad =
        value->type == TB_FUNCTION_REAL ? tb_mo_first_infinite(value->data, kept->bytes / 8) : -1;
    tb_status status = TB_OK;
    if (bad >= 0)
        status = tb_fail(error, TB_INVALID_ARGUMENT, "element %lld of a kept array is not finite",
                         (long long)bad + 1);
    const uint8_t *truth = value->data;
    for (int64_t k = 0; value->type == TB_FUNCTION_BOOLEAN && k < kept->bytes; k++)
        if (truth[k] > 1)
            status = tb_fail(error, TB_INVALID_ARGUMENT,
                             "element %lld of a kept array is neither 0 nor 1", (long long)k + 1);
    if (status == TB_OK) kept->data = tb_mo_output_memory((size_t)kept->bytes);
    if (status == TB_OK && kept->data == NULL)
        status = tb_fail_memory(error, (size_t)kept->bytes, "a kept array");
    if (status == TB_OK) {
        memcpy(kept->data, value->data, (size_t)kept->bytes);
        *made = kept;
    } else {
        tb_function_array_release(kept);
    }
    return status;
}

tb_status tb_function_array_read(tb_function_array *kept, tb_function_value *value, tb_error *error)
{
    *value = kept->shape;
    value->data = tb_mo_output_memory((size_t)kept->bytes);
    if (value->data == NULL) return tb_fail_memory(error, (size_t)kept->bytes, "an array");
    pthread_mutex_lock(&kept->lock);
    const tb_status status = need_data(kept, error);
    if (status == TB_OK) memcpy(value->data, kept->data, (size_t)kept->bytes);
    pthread_mutex_unlock(&kept->lock);
    return status;
}

/* ---- in a call ---- */

void tb_mo_lend_kept(mo_run *run, tb_function_array *kept, mo_array *array)
{
    tb_error error = {0};
    pthread_mutex_lock(&kept->lock);
    const tb_status status =
        run->card != NULL ? need_card(kept, run->card->driver, &error) : need_data(kept, &error);
    memcpy(array->size, kept->shape.size, sizeof array->size);
    array->data = kept->data;
    array->bytes = kept->bytes;
    array->borrowed = array->kept = true;
    array->zero = false;
    array->where = 0;
    if (kept->data != NULL) array->where |= MO_ON_HOST;
    if (run->card != NULL && kept->card != 0) {
        array->where |= MO_ON_CARD;
        array->card = (void *)(uintptr_t)kept->card;
    }
    pthread_mutex_unlock(&kept->lock);
    if (status != TB_OK) tb_mo_run_escape(run, status, (mo_place){0, 0}, "%s", error.message);
}

tb_function_array *tb_mo_keep_output(mo_run *run, mo_array *array)
{
    tb_function_array *kept = make((tb_function_type)array->base, array->rank, array->size);
    if (kept == NULL) return NULL;
    if (array->card != NULL && !array->kept && array->where & MO_ON_CARD) {
        kept->driver = run->card->driver;
        kept->card = (cu_pointer)(uintptr_t)tb_mo_card_take(run, array);
        return kept;
    }
    kept->data = tb_mo_output_memory((size_t)kept->bytes);
    if (kept->data == NULL) {
        tb_function_array_release(kept);
        return NULL;
    }
    tb_mo_get_array(run, array, kept->data);
    return kept;
}
