/* See shared_card.h. */
#include "gpu/shared_card.h"

#include <stdlib.h>

#include "base/base.h"

enum { CARDS = 64 };

/* of the card's memory: limit of worlds that stay */
static const double WORLDS_SHARE = 0.5;

/* The process's cards. A card is one for a process by its nature: its driver knows no two. */
static struct {
    pthread_mutex_t lock;
    tb_gpu_card *cards[CARDS];
} open_cards = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void close_card(tb_gpu_card *card)
{
    tb_gpu_batch *b = &card->batch;
    tb_gpu_device *d = &b->device;
    (void)cudaSetDevice(card->index);
    tb_gpu_large_destroy(&card->large, d);
    tb_gpu_models_destroy(&b->models, d);
    tb_gpu_side_streams_close(&b->side_streams);
    tb_gpu_release_pinned(d, &b->staging);
    tb_gpu_release_pinned(d, &b->list);
    tb_gpu_release_pinned(d, &b->stop);
    tb_gpu_release(d, &b->block);
    tb_gpu_release(d, &b->arenas);
    tb_gpu_device_close(d);
    tb_gpu_device_copies_close(&card->device_copies);
    pthread_mutex_destroy(&card->stepping);
    free(b->tasks);
    free(b->moves);
    free(b->pending);
    free(b->tables.models);
    free(card);
}

/* Another thread may have opened or closed the card since. */
static void close_if_empty(int32_t index)
{
    pthread_mutex_lock(&open_cards.lock);
    tb_gpu_card *card = open_cards.cards[index];
    if (card != NULL) {
        pthread_mutex_lock(&card->device_copies.lock);
        const bool empty = card->device_copies.count == 0 && card->device_copies.contexts == 0;
        pthread_mutex_unlock(&card->device_copies.lock);
        if (empty) {
            open_cards.cards[index] = NULL;
            close_card(card);
        }
    }
    pthread_mutex_unlock(&open_cards.lock);
}

static tb_status open_card(int32_t index, const tb_backend *backend, tb_gpu_card **opened,
                           tb_error *error)
{
    tb_device_info info;
    tb_gpu_card *card = calloc(1, sizeof *card);
    if (card == NULL) return tb_fail_memory(error, sizeof *card, "the GPU backend");
    card->index = index;
    pthread_mutex_init(&card->stepping, NULL);
    tb_gpu_batch *b = &card->batch;
    tb_status status = tb_gpu_describe(index, &info, error);
    if (status == TB_OK) {
        const double worlds = (double)info.memory * WORLDS_SHARE;
        status = tb_gpu_device_copies_open(&card->device_copies, index, (uint64_t)worlds, error);
    }
    if (status == TB_OK) status = tb_gpu_device_open(index, &b->device, error);
    if (status != TB_OK) {
        tb_gpu_device_close(&card->device_copies.device);
        pthread_mutex_destroy(&card->stepping);
        free(card);
        return status;
    }
    card->device_copies.backend = backend;
    card->device_copies.empty = close_if_empty;
    card->device_copies.use = (tb_device_use){0};
    b->device_copies = &card->device_copies;
    b->processors = info.processors;
    b->memory = info.memory;
    *opened = card;
    return TB_OK;
}

tb_status tb_gpu_card_enter(int32_t index, const tb_backend *backend, tb_gpu_card **entered,
                            tb_error *error)
{
    tb_status status = TB_OK;
    if (index >= CARDS)
        return tb_fail_field(error, TB_UNSUPPORTED, "device", "device %d, at most %d are used",
                             index, CARDS);
    pthread_mutex_lock(&open_cards.lock);
    tb_gpu_card *card = open_cards.cards[index];
    if (card == NULL) status = open_card(index, backend, &card, error);
    if (status == TB_OK) {
        open_cards.cards[index] = *entered = card;
        pthread_mutex_lock(&card->device_copies.lock);
        card->device_copies.contexts++;
        pthread_mutex_unlock(&card->device_copies.lock);
    }
    pthread_mutex_unlock(&open_cards.lock);
    return status;
}

void tb_gpu_card_leave(tb_gpu_card *card)
{
    tb_gpu_device_copies *device_copies = &card->device_copies;
    const int32_t index = card->index;
    pthread_mutex_lock(&device_copies->lock);
    const bool empty = --device_copies->contexts == 0 && device_copies->count == 0;
    pthread_mutex_unlock(&device_copies->lock);
    if (empty) close_if_empty(index);
}

/* ---- use and counts ---- */

void tb_gpu_card_publish(tb_gpu_card *card)
{
    const tb_gpu_batch *b = &card->batch;
    tb_gpu_device_copies *device_copies = &card->device_copies;
    pthread_mutex_lock(&device_copies->lock);
    card->published = (tb_device_use){.memory_bytes = b->device.device_bytes,
                                      .model_bytes = b->models.bytes,
                                      .launches = b->launches,
                                      .uploads = b->uploads,
                                      .captures = card->large.captures,
                                      .copied_bytes = b->copied_bytes,
                                      .copy_seconds = b->copy_seconds,
                                      .compute_seconds = b->compute_seconds,
                                      .lost = b->device.lost};
    pthread_mutex_unlock(&device_copies->lock);
}

void tb_gpu_card_use(int32_t index, tb_device_use *use)
{
    *use = (tb_device_use){0};
    if (index < 0 || index >= CARDS) return;
    pthread_mutex_lock(&open_cards.lock);
    tb_gpu_card *card = open_cards.cards[index];
    if (card != NULL) {
        tb_gpu_device_copies *device_copies = &card->device_copies;
        pthread_mutex_lock(&device_copies->lock);
        const tb_device_use *mine = &device_copies->use;
        *use = card->published;
        use->memory_bytes += device_copies->device.device_bytes;
        use->pool_bytes = device_copies->pool.bytes;
        use->pool_used_bytes = device_copies->pool.used;
        use->worlds = device_copies->count;
        use->worlds_swapped = mine->worlds_swapped;
        use->fetches = mine->fetches;
        use->moves = mine->moves;
        use->evictions = mine->evictions;
        use->copied_bytes += mine->copied_bytes;
        use->copy_seconds += mine->copy_seconds;
        use->lost = use->lost || device_copies->device.lost;
        pthread_mutex_unlock(&device_copies->lock);
    }
    pthread_mutex_unlock(&open_cards.lock);
    use->memory_bytes += tb_gpu_soft_bytes(index);
    use->worlds += tb_gpu_soft_worlds(index);
}
