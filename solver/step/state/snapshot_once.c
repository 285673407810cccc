/* Snapshots of worlds, and their hash.
 *
 * A snapshot is a header, the block of numbers, the contacts, the parameters of the world if it has its
 * own, its soft bodies if there are any, and a checksum. */
#include <stdlib.h>
#include <string.h>

#include "step/soft.h"
#include "step/step.h"

/* 2: statuses of rows, history of solves; 3: a factor, what Newton costs; 4: a checksum at the
 * end; 5: parameters behind the contacts; 6: Newton's pull in the history, without and (7) with
 * parameters; 8, 9: the same two with soft bodies; 10, 11: parameters with joints and sizes, without
 * and with soft bodies. Before 6 the numbers were fewer. */
enum {
    SNAPSHOT_VERSION = 6,
    SNAPSHOT_FIRST_PARAMETERS = 7,
    SNAPSHOT_SOFT = 8,
    SNAPSHOT_SOFT_FIRST_PARAMETERS = 9,
    SNAPSHOT_PARAMETERS = 10,
    SNAPSHOT_SOFT_PARAMETERS = 11,
    HASHED_VERSION = 3
};
static const uint64_t HASH_START = 0xcbf29ce484222325u;

static const char SNAPSHOT_MAGIC[8] = {'T', 'B', 'S', 'T', 'A', 'T', 'E', '\0'};

/* Header of a snapshot, before the numbers. Little endian like all supported machines;
 * padding-free. */
typedef struct snapshot_header {
    char magic[8];
    uint32_t version, status;
    char sha256[64];
    uint64_t number_of_numbers;
    uint64_t number_of_contacts;
    double time;
    int64_t steps;
} snapshot_header;

/* A contact as it lies in a snapshot: the record has no padding either, which the build checks. */
_Static_assert(sizeof(tb_contact_record) == 16 + 8 * (3 * 4 + 1 + 6 + 3) + 8,
               "padding in a record");
_Static_assert(sizeof(snapshot_header) == 8 + 8 + 64 + 32, "padding in the snapshot header");

static snapshot_header make_header(const tb_state *s)
{
    snapshot_header h;
    memset(&h, 0, sizeof h);
    memcpy(h.magic, SNAPSHOT_MAGIC, sizeof h.magic);
    if (s->soft)
        h.version = s->variant ? SNAPSHOT_SOFT_PARAMETERS : SNAPSHOT_SOFT;
    else
        h.version = s->variant ? SNAPSHOT_PARAMETERS : SNAPSHOT_VERSION;
    h.status = (uint32_t)s->status;
    memcpy(h.sha256, tb_variant_origin(s)->sha256, sizeof h.sha256);
    h.number_of_numbers = s->number_of_numbers;
    h.number_of_contacts = (uint64_t)s->number_of_contacts;
    h.time = s->time;
    h.steps = s->steps;
    return h;
}

static bool version_has_soft(uint32_t version)
{
    return version == SNAPSHOT_SOFT || version == SNAPSHOT_SOFT_FIRST_PARAMETERS ||
           version == SNAPSHOT_SOFT_PARAMETERS;
}

/* Numbers of parameters in a snapshot. */
static size_t numbers_of_parameters(uint32_t version, const tb_model *origin)
{
    switch (version) {
    case SNAPSHOT_FIRST_PARAMETERS:
    case SNAPSHOT_SOFT_FIRST_PARAMETERS: return tb_variant_first_numbers(origin);
    case SNAPSHOT_PARAMETERS:
    case SNAPSHOT_SOFT_PARAMETERS: return tb_variant_numbers(origin);
    default: return 0;
    }
}

/* FNV-1a over 64-bit words. Every step is a bijection of the hash, so a change of one word always
 * shows, and a change of several is missed once in 2^64 times. */
static uint64_t hash_words(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *p = data;
    for (size_t i = 0; i + 8 <= bytes; i += 8) {
        uint64_t word;
        memcpy(&word, p + i, 8);
        hash = (hash ^ word) * 0x100000001b3u;
        hash ^= hash >> 29;
    }
    return hash;
}

/* Bytes that soft bodies take at the end of a snapshot: padded to words, then their size. */
static size_t soft_tail(bool has_soft, size_t size)
{
    return has_soft ? (size + 7) / 8 * 8 + sizeof(uint64_t) : 0;
}

static void write_soft(unsigned char *to, size_t tail, const unsigned char *soft, size_t size)
{
    const uint64_t size64 = size;
    memset(to, 0, tail);
    memcpy(to, soft, size);
    memcpy(to + tail - sizeof size64, &size64, sizeof size64);
}

/* New soft bodies from the last of `*size` bytes of a snapshot, which this takes off. */
static tb_status read_soft(const tb_state *state, const unsigned char *bytes, size_t *size,
                           struct tb_state_soft **soft, tb_error *error)
{
    uint64_t soft_size = 0;
    const size_t least = sizeof(snapshot_header) + sizeof soft_size;
    if (*size >= least) memcpy(&soft_size, bytes + *size - sizeof soft_size, sizeof soft_size);
    if (*size < least || soft_size > *size - least || soft_tail(true, soft_size) > *size - least)
        return tb_fail(error, TB_DATA_LOSS, "a snapshot of %zu bytes does not fit its header",
                       *size);
    const size_t tail = soft_tail(true, (size_t)soft_size);
    *size -= tail;
    return tb_state_soft_read(state, bytes + *size, (size_t)soft_size, soft, error);
}

tb_status tb_state_snapshot(const tb_state *state, unsigned char **bytes, size_t *size,
                            tb_error *error)
{
    const tb_status brought = tb_state_sync_to_host(state, TB_STATE_ALL, error);
    if (brought != TB_OK) return brought;
    const snapshot_header h = make_header(state);
    const size_t numbers = state->number_of_numbers * sizeof(double);
    const size_t contacts = (size_t)state->number_of_contacts * sizeof *state->contacts;
    const size_t parameters =
        state->variant ? tb_variant_numbers(state->model) * sizeof(double) : 0;
    unsigned char *soft = NULL;
    size_t soft_size = 0;
    if (state->soft) {
        const tb_status saved = tb_state_soft_save(state, &soft, &soft_size, error);
        if (saved != TB_OK) return saved;
    }
    const size_t tail = soft_tail(state->soft != NULL, soft_size);
    *size = sizeof h + numbers + contacts + parameters + tail + sizeof(uint64_t);
    *bytes = malloc(*size);
    if (!*bytes) {
        tb_bytes_destroy(soft);
        return tb_fail_memory(error, *size, "a snapshot");
    }
    memcpy(*bytes, &h, sizeof h);
    memcpy(*bytes + sizeof h, state->numbers, numbers);
    if (contacts) memcpy(*bytes + sizeof h + numbers, state->contacts, contacts);
    /* all that lies before is a multiple of 8 bytes */
    if (parameters)
        tb_variant_write(state, (double *)(void *)(*bytes + sizeof h + numbers + contacts));
    if (tail)
        write_soft(*bytes + sizeof h + numbers + contacts + parameters, tail, soft, soft_size);
    tb_bytes_destroy(soft);
    const uint64_t checksum = hash_words(HASH_START, *bytes, *size - sizeof checksum);
    memcpy(*bytes + *size - sizeof checksum, &checksum, sizeof checksum);
    return TB_OK;
}

void tb_bytes_destroy(unsigned char *bytes)
{
    free(bytes);
}

/* All but soft bodies, from `size` bytes without the checksum. Nothing changes on failure. */
static tb_status restore_rigid(tb_state *state, const snapshot_header *h,
                               const unsigned char *bytes, size_t size, tb_error *error)
{
    const tb_model *origin = tb_variant_origin(state);
    const size_t numbers = state->number_of_numbers * sizeof(double);
    const size_t count = numbers_of_parameters(h->version, origin);
    const size_t parameters = count * sizeof(double);
    if (h->number_of_numbers != state->number_of_numbers || h->number_of_contacts > INT32_MAX ||
        size != sizeof *h + numbers + parameters +
                    (size_t)h->number_of_contacts * sizeof(tb_contact_record))
        return tb_fail(error, TB_DATA_LOSS, "a snapshot of %zu bytes does not fit its header",
                       size);

    /* shapes are looked up by these indices later; the rest is numbers */
    for (uint64_t i = 0; i < h->number_of_contacts; i++) {
        tb_contact_record r;
        memcpy(&r, bytes + sizeof *h + numbers + i * sizeof r, sizeof r);
        const int32_t shapes = state->model->number_of_shapes;
        if (r.shape_a < 0 || r.shape_a >= shapes || r.shape_b < 0 || r.shape_b >= shapes)
            return tb_fail(error, TB_DATA_LOSS, "the snapshot names a shape that does not exist");
    }
    tb_state_variant *variant = NULL;
    tb_status status = TB_OK;
    if (parameters)
        status = tb_variant_read(state, bytes + size - parameters, count, &variant, error);
    if (status != TB_OK) return status;
    if (tb_state_replace_contacts(state, (int32_t)h->number_of_contacts) != TB_OK) {
        tb_variant_release(variant);
        return tb_fail_memory(error, size, "a snapshot's contacts");
    }

    tb_state_mark_host_newer(state, TB_STATE_ALL);
    if (variant || state->variant) tb_variant_set(state, variant);
    memcpy(state->numbers, bytes + sizeof *h, numbers);
    state->number_of_contacts = (int32_t)h->number_of_contacts;
    if (h->number_of_contacts)
        memcpy(state->contacts, bytes + sizeof *h + numbers,
               (size_t)h->number_of_contacts * sizeof(tb_contact_record));
    state->time = h->time;
    state->steps = h->steps;
    state->status = h->status == TB_DIVERGED ? TB_DIVERGED : TB_OK;
    return TB_OK;
}

tb_status tb_state_restore(tb_state *state, const unsigned char *bytes, size_t size,
                           tb_error *error)
{
    snapshot_header h;
    if (!bytes || size < sizeof h)
        return tb_fail(error, TB_DATA_LOSS, "a snapshot of %zu bytes is too short", size);
    memcpy(&h, bytes, sizeof h);
    if (memcmp(h.magic, SNAPSHOT_MAGIC, sizeof h.magic) != 0)
        return tb_fail(error, TB_DATA_LOSS, "not a snapshot");
    if (h.version < SNAPSHOT_VERSION || h.version > SNAPSHOT_SOFT_PARAMETERS)
        return tb_fail(error, TB_FAILED_PRECONDITION,
                       "snapshot version %u, this build reads %d to %d", h.version,
                       SNAPSHOT_VERSION, SNAPSHOT_SOFT_PARAMETERS);
    const bool has_soft = version_has_soft(h.version);
    uint64_t checksum = 0;
    if (size < sizeof h + sizeof checksum)
        return tb_fail(error, TB_DATA_LOSS, "a snapshot of %zu bytes is too short", size);
    size -= sizeof checksum;
    memcpy(&checksum, bytes + size, sizeof checksum);
    if (hash_words(HASH_START, bytes, size) != checksum)
        return tb_fail(error, TB_DATA_LOSS,
                       "the snapshot's bytes have changed: its checksum is another");
    const tb_model *origin = tb_variant_origin(state);
    if (memcmp(h.sha256, origin->sha256, sizeof h.sha256) != 0)
        return tb_fail(error, TB_FAILED_PRECONDITION,
                       "the snapshot is of model %.12s, the state of %.12s: of another scene, or "
                       "compiled by another version",
                       h.sha256, origin->sha256);
    if (has_soft != (state->soft != NULL))
        return tb_fail(error, TB_DATA_LOSS, "the snapshot's soft bodies do not fit its model");
    struct tb_state_soft *soft = NULL;
    tb_status status = has_soft ? read_soft(state, bytes, &size, &soft, error) : TB_OK;
    if (status == TB_OK) status = restore_rigid(state, &h, bytes, size, error);
    if (status != TB_OK) {
        tb_state_soft_destroy(soft);
        return status;
    }
    if (has_soft) {
        tb_state_soft_destroy(state->soft);
        state->soft = soft;
    }
    return TB_OK;
}

uint64_t tb_state_hash(const tb_state *state)
{
    if (tb_state_sync_to_host(state, TB_STATE_ALL, NULL) != TB_OK) return 0; /* of a lost device */
    snapshot_header h = make_header(state);
    /* a new snapshot version alone changes no hash */
    if (!state->variant) h.version = HASHED_VERSION;
    memcpy(h.sha256, state->model->sha256, sizeof h.sha256);
    uint64_t hash = hash_words(HASH_START, &h, sizeof h);
    hash = hash_words(hash, state->numbers, state->number_of_numbers * sizeof(double));
    unsigned char *soft = NULL;
    size_t size = 0;
    if (state->soft && tb_state_soft_save(state, &soft, &size, NULL) == TB_OK)
        hash = hash_words(hash, soft, size);
    tb_bytes_destroy(soft);
    return hash_words(hash, state->contacts,
                      (size_t)state->number_of_contacts * sizeof *state->contacts);
}
