/* Zip archives in memory: see archive.h. */
#include "model/import/archive.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "model/names.h"

enum {
    END_BYTES = 22, /* of the end record without its comment */
    DIRECTORY_BYTES = 46,
    LOCAL_BYTES = 30,
    COMMENT_LIMIT = 65535,
    ENTRY_LIMIT = 65534, /* one more means a 64-bit archive */
    METHOD_STORED = 0,
    METHOD_DEFLATED = 8,
    FLAG_ENCRYPTED = 1
};
#define LOCAL_SIGNATURE     0x04034b50u
#define DIRECTORY_SIGNATURE 0x02014b50u
#define END_SIGNATURE       0x06054b50u
#define WIDE                0xffffffffu /* the number is in a 64-bit record */

typedef struct archive_entry {
    size_t packed_at, packed_size, size;
    uint32_t checksum;
    unsigned method;
} archive_entry;

struct tb_archive {
    const tb_bytes *bytes;
    const char *file;
    tb_names names; /* index in entries */
    archive_entry *entries;
    int32_t count;
};

static uint32_t read_16(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t read_32(const unsigned char *p)
{
    return read_16(p) | read_16(p + 2) << 16;
}

bool tb_archive_is(const tb_bytes *bytes)
{
    return bytes->size >= END_BYTES && read_32(bytes->base) == LOCAL_SIGNATURE;
}

static tb_status damaged(const tb_archive *a, const char *why, tb_error *error)
{
    return tb_fail_file(error, TB_DATA_LOSS, a->file, 0, NULL, "the archive is damaged: %s", why);
}

/* The end record: the last match of its signature whose comment ends the file. */
static const unsigned char *find_end(const tb_bytes *bytes)
{
    for (size_t back = END_BYTES; back <= bytes->size && back <= END_BYTES + COMMENT_LIMIT;
         back++) {
        const unsigned char *p = bytes->base + bytes->size - back;
        if (read_32(p) == END_SIGNATURE && read_16(p + 20) == back - END_BYTES) return p;
    }
    return NULL;
}

/* Where an entry's packed bytes are: behind its local record. */
static bool find_packed(const tb_archive *a, size_t local, archive_entry *entry)
{
    const tb_bytes *b = a->bytes;
    if (b->size < LOCAL_BYTES || local > b->size - LOCAL_BYTES) return false;
    const unsigned char *p = b->base + local;
    if (read_32(p) != LOCAL_SIGNATURE) return false;
    entry->packed_at = local + LOCAL_BYTES + read_16(p + 26) + read_16(p + 28);
    return entry->packed_at <= b->size && entry->packed_size <= b->size - entry->packed_at;
}

/* One record of the directory at *at; moves behind it. Folders are ignored. */
static tb_status read_entry(tb_archive *a, size_t *at, size_t end, tb_error *error)
{
    const unsigned char *p = a->bytes->base + *at;
    if (end - *at < DIRECTORY_BYTES || read_32(p) != DIRECTORY_SIGNATURE)
        return damaged(a, "its directory ends early", error);
    const size_t name_size = read_16(p + 28);
    const size_t size = DIRECTORY_BYTES + name_size + read_16(p + 30) + read_16(p + 32);
    if (size > end - *at) return damaged(a, "its directory ends early", error);
    *at += size;
    archive_entry entry = {.packed_size = read_32(p + 20),
                           .size = read_32(p + 24),
                           .checksum = read_32(p + 16),
                           .method = read_16(p + 10)};
    char name[TB_NAME_LENGTH_LIMIT + 1];
    if (name_size > TB_NAME_LENGTH_LIMIT) return damaged(a, "a name is too long", error);
    memcpy(name, p + DIRECTORY_BYTES, name_size);
    name[name_size] = 0;
    if (name_size == 0 || name[name_size - 1] == '/') return TB_OK;
    if (entry.packed_size == WIDE || entry.size == WIDE || read_32(p + 42) == WIDE)
        return tb_fail_file(error, TB_UNSUPPORTED, a->file, 0, NULL,
                            "'%.200s': 64-bit archives are not supported", name);
    if (read_16(p + 8) & FLAG_ENCRYPTED)
        return tb_fail_file(error, TB_UNSUPPORTED, a->file, 0, NULL,
                            "'%.200s' is encrypted, which is not supported", name);
    if (entry.method != METHOD_STORED && entry.method != METHOD_DEFLATED)
        return tb_fail_file(error, TB_UNSUPPORTED, a->file, 0, NULL,
                            "'%.200s' is packed by method %u, neither stored nor deflated", name,
                            entry.method);
    if (!find_packed(a, read_32(p + 42), &entry))
        return damaged(a, "an entry lies outside of it", error);
    tb_path_normalise(name);
    if (tb_names_find(&a->names, TB_HANDLE_NONE, name) >= 0)
        return damaged(a, "two files have one name", error);
    const char *kept = tb_names_keep(&a->names, name);
    if (kept == NULL || !tb_names_insert(&a->names, TB_HANDLE_NONE, kept, a->count))
        return tb_fail_memory(error, name_size, "an archive");
    a->entries[a->count++] = entry;
    return TB_OK;
}

static tb_status read_directory(tb_archive *a, tb_error *error)
{
    const unsigned char *record = find_end(a->bytes);
    if (record == NULL) return damaged(a, "it has no end record", error);
    const uint32_t entries = read_16(record + 10);
    const size_t size = read_32(record + 12), first = read_32(record + 16);
    const size_t end = (size_t)(record - a->bytes->base);
    if (read_16(record + 4) != 0 || read_16(record + 6) != 0 || entries != read_16(record + 8))
        return tb_fail_file(error, TB_UNSUPPORTED, a->file, 0, NULL,
                            "archives in several parts are not supported");
    if (entries > ENTRY_LIMIT || size == WIDE || first == WIDE)
        return tb_fail_file(error, TB_UNSUPPORTED, a->file, 0, NULL,
                            "64-bit archives are not supported");
    if (first > end || size > end - first) return damaged(a, "its directory lies outside", error);
    a->entries = calloc((size_t)entries + 1, sizeof *a->entries);
    if (a->entries == NULL)
        return tb_fail_memory(error, entries * sizeof *a->entries, "an archive");
    size_t at = first;
    tb_status status = TB_OK;
    for (uint32_t i = 0; i < entries && status == TB_OK; i++)
        status = read_entry(a, &at, first + size, error);
    return status;
}

tb_status tb_archive_open(const tb_bytes *bytes, const char *file, tb_archive **archive,
                          tb_error *error)
{
    tb_archive *a = calloc(1, sizeof *a);
    *archive = NULL;
    if (a == NULL) return tb_fail_memory(error, sizeof *a, "an archive");
    a->bytes = bytes;
    a->file = file;
    tb_names_init(&a->names);
    const tb_status status = read_directory(a, error);
    if (status == TB_OK)
        *archive = a;
    else
        tb_archive_close(a);
    return status;
}

void tb_archive_close(tb_archive *archive)
{
    if (archive == NULL) return;
    tb_names_destroy(&archive->names);
    free(archive->entries);
    free(archive);
}

bool tb_archive_has(const tb_archive *archive, const char *path)
{
    return tb_names_find(&archive->names, TB_HANDLE_NONE, path) >= 0;
}

/* Inflates exactly the entry's size. */
static bool inflate_entry(const tb_archive *a, const archive_entry *entry, unsigned char *bytes)
{
    z_stream stream = {0};
    stream.next_in = a->bytes->base + entry->packed_at;
    stream.avail_in = (uInt)entry->packed_size;
    stream.next_out = bytes;
    stream.avail_out = (uInt)entry->size;
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false; /* raw: zip has its own frame */
    const int code = inflate(&stream, Z_FINISH);
    const bool whole = code == Z_STREAM_END && stream.total_out == entry->size;
    inflateEnd(&stream);
    return whole;
}

tb_status tb_archive_read(const tb_archive *archive, const char *path, size_t limit,
                          unsigned char **bytes, size_t *size, tb_error *error)
{
    const int32_t index = tb_names_find(&archive->names, TB_HANDLE_NONE, path);
    *bytes = NULL;
    *size = 0;
    if (index < 0)
        return tb_fail_file(error, TB_NOT_FOUND, archive->file, 0, NULL,
                            "the archive has no file '%.200s'", path);
    const archive_entry *entry = &archive->entries[index];
    if (entry->size > limit)
        return tb_fail_file(error, TB_RESOURCE_EXHAUSTED, archive->file, 0, NULL,
                            "'%.200s': %zu bytes are more than the %zu that are allowed", path,
                            entry->size, limit);
    unsigned char *unpacked = malloc(entry->size + 1);
    if (unpacked == NULL) return tb_fail_memory(error, entry->size, path);
    bool good = true;
    if (entry->method == METHOD_DEFLATED)
        good = inflate_entry(archive, entry, unpacked);
    else if (entry->packed_size == entry->size)
        memcpy(unpacked, archive->bytes->base + entry->packed_at, entry->size);
    else
        good = false;
    if (!good || crc32(0, unpacked, (uInt)entry->size) != entry->checksum) {
        free(unpacked);
        return tb_fail_file(error, TB_DATA_LOSS, archive->file, 0, NULL,
                            "'%.200s' is not what was packed", path);
    }
    unpacked[entry->size] = 0;
    *bytes = unpacked;
    *size = entry->size;
    return TB_OK;
}
