/* STL from memory, ASCII and binary: see mesh_file.h.
 *
 * A binary file has an 80-byte header, a little-endian count and 50 bytes for each triangle:
 * normal, three corners (float32) and an attribute word. Its header may begin with "solid" like an
 * ASCII file, so size decides first: no ASCII file of any sane length fits the count that its own
 * letters would spell. Normals are ignored: the order of the corners says where outside is. */
#include "base/budget.h"
#include "model/import/mesh/mesh_file.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { HEADER_SIZE = 84, TRIANGLE_SIZE = 50, NORMAL_SIZE = 12 };

typedef struct stl_reader {
    const char *file;
    tb_error *error;
    double *vertices;
    int32_t number_of_vertices, vertex_capacity;
    int32_t *triangles;
    int32_t number_of_triangles, triangle_capacity;
    int32_t *table; /* vertex of a hash, -1: none; a power of two long, at most half full */
    uint32_t table_size;
    /* ASCII only */
    const char *at, *end;
    int line;
} stl_reader;

/* ---- vertices by place ---- */

static uint32_t hash_of(const double place[3])
{
    uint64_t bits[3], hash = 0x9E3779B97F4A7C15u;
    memcpy(bits, place, sizeof bits);
    for (int i = 0; i < 3; i++) {
        hash = (hash ^ bits[i]) * 0xD6E8FEB86659FD93u;
        hash ^= hash >> 32;
    }
    return (uint32_t)hash;
}

static bool table_grow(stl_reader *r)
{
    const uint32_t size = r->table_size == 0 ? 64 : 2 * r->table_size;
    int32_t *table = malloc(size * sizeof *table);
    if (table == NULL) return false;
    for (uint32_t i = 0; i < size; i++) table[i] = -1;
    for (int32_t v = 0; v < r->number_of_vertices; v++) {
        uint32_t slot = hash_of(r->vertices + 3 * (size_t)v) & (size - 1);
        while (table[slot] >= 0) slot = (slot + 1) & (size - 1);
        table[slot] = v;
    }
    free(r->table);
    r->table = table;
    r->table_size = size;
    return true;
}

/* The index of the vertex at this place, new or old; -1 where memory is refused. */
static int32_t vertex_at(stl_reader *r, const double place[3])
{
    /* -0 and 0 are one place */
    const double key[3] = {place[0] + 0.0, place[1] + 0.0, place[2] + 0.0};
    if (2 * ((uint32_t)r->number_of_vertices + 1) > r->table_size && !table_grow(r)) return -1;
    uint32_t slot = hash_of(key) & (r->table_size - 1);
    for (; r->table[slot] >= 0; slot = (slot + 1) & (r->table_size - 1))
        if (memcmp(r->vertices + 3 * (size_t)r->table[slot], key, sizeof key) == 0)
            return r->table[slot];

    if (r->number_of_vertices == r->vertex_capacity) {
        double *vertices =
            tb_grow(r->vertices, r->number_of_vertices + 1, &r->vertex_capacity, sizeof key);
        if (vertices == NULL) return -1;
        r->vertices = vertices;
    }
    memcpy(r->vertices + 3 * (size_t)r->number_of_vertices, key, sizeof key);
    r->table[slot] = r->number_of_vertices;
    return r->number_of_vertices++;
}

/* Adds a triangle, unless its corners coincide. */
static tb_status add_triangle(stl_reader *r, const double corners[9])
{
    int32_t v[3];
    for (int i = 0; i < 3; i++) {
        v[i] = vertex_at(r, corners + 3 * i);
        if (v[i] < 0) return tb_fail_memory(r->error, (size_t)r->number_of_vertices * 24, r->file);
    }
    if (v[0] == v[1] || v[1] == v[2] || v[2] == v[0]) return TB_OK;
    if (r->number_of_triangles == r->triangle_capacity) {
        int32_t *triangles =
            tb_grow(r->triangles, r->number_of_triangles + 1, &r->triangle_capacity, sizeof v);
        if (triangles == NULL)
            return tb_fail_memory(r->error, (size_t)r->number_of_triangles * 12, r->file);
        r->triangles = triangles;
    }
    memcpy(r->triangles + 3 * (size_t)r->number_of_triangles++, v, sizeof v);
    return TB_OK;
}

/* ---- binary ---- */

static uint32_t load_u32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static tb_status read_binary(stl_reader *r, const char *bytes, size_t size)
{
    if (size < HEADER_SIZE)
        return tb_fail_file(r->error, TB_DATA_LOSS, r->file, 0, "header",
                            "a binary STL of %zu bytes ends inside its header of %d", size,
                            (int)HEADER_SIZE);
    const unsigned char *p = (const unsigned char *)bytes + 80;
    const uint32_t count = load_u32(p);
    const uint64_t wanted = HEADER_SIZE + (uint64_t)count * TRIANGLE_SIZE;
    if (wanted > size)
        return tb_fail_file(r->error, TB_DATA_LOSS, r->file, 0, "triangles",
                            "truncated: byte 80 announces %u triangles, %llu bytes, but the file "
                            "has %zu",
                            count, (unsigned long long)wanted, size);
    if (wanted < size)
        return tb_fail_file(r->error, TB_DATA_LOSS, r->file, 0, "triangles",
                            "byte 80 announces %u triangles, %llu bytes, but the file goes on to "
                            "%zu",
                            count, (unsigned long long)wanted, size);
    if (count > TB_MESH_FILE_LIMIT)
        return tb_fail_file(r->error, TB_RESOURCE_EXHAUSTED, r->file, 0, "triangles",
                            "%u triangles are more than %d", count, (int)TB_MESH_FILE_LIMIT);

    p += 4;
    for (uint32_t t = 0; t < count; t++, p += TRIANGLE_SIZE) {
        double corners[9];
        if (!tb_budget_holds()) return tb_budget_check(r->error);
        for (int i = 0; i < 9; i++) {
            const uint32_t bits = load_u32(p + NORMAL_SIZE + 4 * i);
            float x;
            memcpy(&x, &bits, sizeof x);
            corners[i] = (double)x;
            if (!(fabs(corners[i]) <= TB_MESH_COORDINATE_LIMIT))
                return tb_fail_file(
                    r->error, TB_INVALID_ARGUMENT, r->file, 0, "vertex",
                    "byte %llu: coordinate %g of triangle %u is not finite or beyond %g m",
                    (unsigned long long)(HEADER_SIZE + (uint64_t)t * TRIANGLE_SIZE + NORMAL_SIZE +
                                         4 * (uint64_t)i),
                    corners[i], t, TB_MESH_COORDINATE_LIMIT);
        }
        const tb_status status = add_triangle(r, corners);
        if (status != TB_OK) return status;
    }
    return TB_OK;
}

/* ---- ASCII ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

static void pass_space(stl_reader *r)
{
    for (; r->at < r->end && is_space(*r->at); r->at++)
        if (*r->at == '\n') r->line++;
}

static void pass_line(stl_reader *r)
{
    while (r->at < r->end && *r->at != '\n') r->at++;
}

/* Skips the word if it comes next, in any case of letters. */
static bool take_word(stl_reader *r, const char *word)
{
    pass_space(r);
    const size_t length = strlen(word);
    if ((size_t)(r->end - r->at) < length || strncasecmp(r->at, word, length) != 0) return false;
    if (r->at + length < r->end && !is_space(r->at[length])) return false;
    r->at += length;
    return true;
}

static tb_status expect_word(stl_reader *r, const char *word)
{
    if (take_word(r, word)) return TB_OK;
    if (r->at == r->end)
        return tb_fail_file(r->error, TB_DATA_LOSS, r->file, r->line, word,
                            "truncated: the file ends where '%s' should stand", word);
    int length = 0;
    while (length < 40 && r->at + length < r->end && !is_space(r->at[length])) length++;
    return tb_fail_file(r->error, TB_INVALID_ARGUMENT, r->file, r->line, word,
                        "'%.*s' where '%s' should stand", length, r->at, word);
}

static tb_status read_numbers(stl_reader *r, double numbers[3], const char *what)
{
    for (int i = 0; i < 3; i++) {
        pass_space(r);
        if (r->at == r->end)
            return tb_fail_file(r->error, TB_DATA_LOSS, r->file, r->line, what,
                                "truncated: the file ends inside a %s", what);
        if (!tb_parse_number(&r->at, &numbers[i]) || r->at > r->end ||
            (r->at < r->end && !is_space(*r->at)))
            return tb_fail_file(r->error, TB_INVALID_ARGUMENT, r->file, r->line, what,
                                "a %s is not three numbers", what);
    }
    return TB_OK;
}

/* facet normal n n n outer loop (vertex x y z) x 3 endloop endfacet; "facet" has been taken */
static tb_status read_facet(stl_reader *r)
{
    double normal[3], corners[9];
    tb_status status = tb_budget_check(r->error);
    if (status == TB_OK) status = expect_word(r, "normal");
    if (status == TB_OK) status = read_numbers(r, normal, "normal");
    if (status == TB_OK) status = expect_word(r, "outer");
    if (status == TB_OK) status = expect_word(r, "loop");
    for (int i = 0; i < 3 && status == TB_OK; i++) {
        status = expect_word(r, "vertex");
        if (status == TB_OK) status = read_numbers(r, corners + 3 * i, "vertex");
        for (int k = 3 * i; k < 3 * i + 3 && status == TB_OK; k++)
            if (!(fabs(corners[k]) <= TB_MESH_COORDINATE_LIMIT))
                status = tb_fail_file(r->error, TB_INVALID_ARGUMENT, r->file, r->line, "vertex",
                                      "vertex coordinate %g is not finite or beyond %g m",
                                      corners[k], TB_MESH_COORDINATE_LIMIT);
    }
    if (status == TB_OK) status = expect_word(r, "endloop");
    if (status == TB_OK) status = expect_word(r, "endfacet");
    if (status == TB_OK && r->number_of_triangles >= TB_MESH_FILE_LIMIT)
        status = tb_fail_file(r->error, TB_RESOURCE_EXHAUSTED, r->file, r->line, "facet",
                              "more than %d triangles", (int)TB_MESH_FILE_LIMIT);
    return status == TB_OK ? add_triangle(r, corners) : status;
}

static tb_status read_ascii(stl_reader *r, const char *text, size_t size)
{
    r->at = text;
    r->end = text + size;
    r->line = 1;
    tb_status status = expect_word(r, "solid");
    while (status == TB_OK) {
        /* the rest of the line is the solid's name */
        pass_line(r);
        while (status == TB_OK && take_word(r, "facet")) status = read_facet(r);
        if (status == TB_OK) status = expect_word(r, "endsolid");
        if (status != TB_OK) break;
        pass_line(r);
        pass_space(r);
        if (r->at == r->end) break;
        status = expect_word(r, "solid");
    }
    return status;
}

/* Text that begins with "solid" and has no zero byte where a binary file's first triangles would
 * be. */
static bool looks_ascii(const char *bytes, size_t size)
{
    size_t start = 0;
    while (start < size && is_space(bytes[start])) start++;
    if (size - start < 5 || strncasecmp(bytes + start, "solid", 5) != 0) return false;
    return memchr(bytes, 0, size < 1024 ? size : 1024) == NULL;
}

tb_status tb_stl_parse(const char *bytes, size_t size, const char *file, tb_mesh_data *mesh,
                       tb_error *error)
{
    stl_reader r = {.file = file, .error = error};
    memset(mesh, 0, sizeof *mesh);
    const bool fits =
        size >= HEADER_SIZE &&
        HEADER_SIZE + (uint64_t)load_u32((const unsigned char *)bytes + 80) * TRIANGLE_SIZE == size;
    tb_status status = !fits && looks_ascii(bytes, size) ? read_ascii(&r, bytes, size)
                                                         : read_binary(&r, bytes, size);
    if (status == TB_OK && r.number_of_triangles == 0)
        status = tb_fail_file(error, TB_INVALID_ARGUMENT, file, r.line, "facet",
                              "no triangle with a surface");
    free(r.table);
    mesh->vertices = r.vertices;
    mesh->number_of_vertices = r.number_of_vertices;
    mesh->triangles = r.triangles;
    mesh->number_of_triangles = r.number_of_triangles;
    if (status != TB_OK) tb_mesh_data_free(mesh);
    return status;
}
