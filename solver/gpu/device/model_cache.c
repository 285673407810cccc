/* See model_cache.h. */
#include "gpu/device/model_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "gpu/device/model_image.h"

enum {
    FIRST_CAPACITY = 64,
    /* capacities of the first world of an unknown model; refused requests enlarge them */
    FIRST_CONTACTS = 32,
    FIRST_ARENA_BYTES = 64 << 10
};

/* The digest's own digits are as good as any hash of them. */
static uint64_t hash_of(const char sha256[65])
{
    uint64_t hash = 0;
    for (int i = 0; i < 16; i++)
        hash = hash << 4 | (uint64_t)(sha256[i] <= '9' ? sha256[i] - '0' : sha256[i] - 'a' + 10);
    return hash;
}

/* Slot of the model, or the free slot that it would take. */
static int32_t find(const tb_gpu_models *models, const char sha256[65])
{
    const uint64_t mask = (uint64_t)models->capacity - 1;
    uint64_t i = hash_of(sha256) & mask;
    while (models->table[i] != NULL && memcmp(models->table[i]->sha256, sha256, 64) != 0)
        i = (i + 1) & mask;
    return (int32_t)i;
}

/* Moves the live entries of `old` to an empty table. */
static void enter_all(tb_gpu_models *models, tb_gpu_model *const *old, int32_t capacity)
{
    models->count = 0;
    for (int32_t i = 0; i < capacity; i++) {
        if (old[i] == NULL) continue;
        models->table[find(models, old[i]->sha256)] = old[i];
        models->count++;
    }
}

static tb_status grow(tb_gpu_models *models, tb_error *error)
{
    if (2 * (models->count + 1) <= models->capacity) return TB_OK;
    const int32_t capacity = models->capacity > 0 ? 2 * models->capacity : FIRST_CAPACITY;
    tb_gpu_model **table = calloc((size_t)capacity, sizeof(tb_gpu_model *));
    if (table == NULL)
        return tb_fail_memory(error, (size_t)capacity * sizeof(tb_gpu_model *), "models");
    tb_gpu_model **old = models->table;
    const int32_t old_capacity = models->capacity;
    models->table = table;
    models->capacity = capacity;
    enter_all(models, old, old_capacity);
    free(old);
    return TB_OK;
}

static void drop(tb_gpu_models *models, tb_gpu_device *device, tb_gpu_model *model)
{
    if (model->image != NULL) (void)cudaFreeAsync((void *)(uintptr_t)model->image, device->stream);
    if (model->origin != NULL) model->origin->variants--;
    models->bytes -= model->size;
    device->device_bytes -= model->size;
    free(model);
}

/* ---- batches ---- */

static int by_last_use(const void *a, const void *b)
{
    const tb_gpu_model *p = *(tb_gpu_model *const *)a, *q = *(tb_gpu_model *const *)b;
    return (p->last_use > q->last_use) - (p->last_use < q->last_use);
}

/* The oldest go until half of the limit is left, so that this is rare; an origin stays while it has
 * variants. Where memory for the list is refused, nothing goes. */
static void evict(tb_gpu_models *models, tb_gpu_device *device, size_t limit)
{
    const size_t bytes = (size_t)models->capacity * sizeof(tb_gpu_model *);
    tb_gpu_model **all = malloc(bytes);
    if (all == NULL) return;
    int32_t count = 0;
    for (int32_t i = 0; i < models->capacity; i++)
        if (models->table[i] != NULL) all[count++] = models->table[i];
    qsort(all, (size_t)count, sizeof *all, by_last_use);
    for (int32_t i = 0; i < count && models->bytes > limit / 2; i++) {
        if (all[i]->variants > 0) continue;
        drop(models, device, all[i]);
        all[i] = NULL;
    }
    memset(models->table, 0, bytes);
    enter_all(models, all, count);
    free(all);
}

void tb_gpu_models_begin(tb_gpu_models *models, tb_gpu_device *device, size_t limit)
{
    models->batch++;
    for (int32_t i = 0; i < models->capacity; i++)
        if (models->table[i] != NULL) models->table[i]->holders = 0;
    if (models->bytes > limit) evict(models, device, limit);
}

static tb_status upload(tb_gpu_models *models, tb_gpu_device *device, const tb_model *source,
                        tb_gpu_model *model, tb_error *error)
{
    const uintptr_t origin = model->origin != NULL ? (uintptr_t)model->origin->image : 0;
    const size_t size = tb_model_image_size(source, origin);
    if (size > models->scratch_size) {
        unsigned char *scratch = realloc(models->scratch, size);
        if (scratch == NULL) return tb_fail_memory(error, size, "a model's image");
        models->scratch = scratch;
        models->scratch_size = size;
    }
    void *image = NULL;
    device->allocations++;
    tb_status status = tb_gpu_check(device, cudaMallocAsync(&image, size, device->stream),
                                    "memory for a model", error);
    if (status != TB_OK) return status;
    model->image = image;
    model->size = size;
    models->bytes += size;
    device->device_bytes += size;
    tb_model_image_write(source, (uintptr_t)image, origin, models->scratch);
    /* pageable memory: it has been read when the call returns */
    return tb_gpu_check(
        device,
        cudaMemcpyAsync(image, models->scratch, size, cudaMemcpyHostToDevice, device->stream),
        "copying a model", error);
}

/* Passes the capacities of a variant's worlds to its origin and so to all its variants. */
static void share_needs(tb_gpu_model *model)
{
    tb_gpu_model *origin = model->origin;
    if (origin == NULL) return;
    if (origin->contact_capacity < model->contact_capacity)
        origin->contact_capacity = model->contact_capacity;
    if (origin->arena_size < model->arena_size) origin->arena_size = model->arena_size;
    model->contact_capacity = origin->contact_capacity;
    model->arena_size = origin->arena_size;
}

static tb_status put(tb_gpu_models *models, tb_gpu_device *device, const tb_model *source,
                     tb_gpu_model *origin, tb_gpu_model **entry, tb_error *error)
{
    tb_status status = grow(models, error);
    if (status != TB_OK) return status;
    tb_gpu_model *made = calloc(1, sizeof *made);
    if (made == NULL) return tb_fail_memory(error, sizeof *made, "a model");
    memcpy(made->sha256, source->sha256, sizeof made->sha256);
    made->number = models->made++;
    made->contact_capacity = FIRST_CONTACTS;
    made->arena_size = FIRST_ARENA_BYTES;
    made->origin = origin;
    if (origin != NULL) origin->variants++;
    status = upload(models, device, source, made, error);
    if (status != TB_OK) {
        drop(models, device, made);
        return status;
    }
    models->table[find(models, source->sha256)] = made;
    models->count++;
    *entry = made;
    return TB_OK;
}

/* The model on the card, and before it the one that it borrows from. */
static tb_status stand(tb_gpu_models *models, tb_gpu_device *device, const tb_model *model,
                       tb_gpu_model **entry, tb_error *error)
{
    *entry = models->capacity > 0 ? models->table[find(models, model->sha256)] : NULL;
    if (*entry == NULL) {
        tb_gpu_model *origin = NULL;
        tb_status status = TB_OK;
        if (model->origin != NULL) status = stand(models, device, model->origin, &origin, error);
        if (status == TB_OK) status = put(models, device, model, origin, entry, error);
        if (status != TB_OK) return status;
    }
    (*entry)->last_use = models->batch;
    return TB_OK;
}

tb_status tb_gpu_models_hold(tb_gpu_models *models, tb_gpu_device *device, const tb_model *model,
                             tb_gpu_model **held, tb_error *error)
{
    const tb_status status = stand(models, device, model, held, error);
    if (status != TB_OK) return status;
    share_needs(*held);
    (*held)->holders++;
    return TB_OK;
}

void tb_gpu_models_destroy(tb_gpu_models *models, tb_gpu_device *device)
{
    tb_gpu_model **table = models->table;
    for (int32_t i = 0; i < models->capacity; i++) {
        if (table[i] == NULL || table[i]->origin == NULL) continue;
        drop(models, device, table[i]);
        table[i] = NULL;
    }
    for (int32_t i = 0; i < models->capacity; i++)
        if (table[i] != NULL) drop(models, device, table[i]); /* the origins last */
    free(table);
    free(models->scratch);
    *models = (tb_gpu_models){0};
}
