/* GMSH's MSH, versions 2.2 and 4.1, text and binary: see mesh_file.h.
 *
 * A file is a series of sections, $Name to $EndName; those of nodes and elements count. Both versions list
 * elements of one type in blocks, binary 2.2 and 4.1 with a header each, text 2.2 with the header in every
 * element. Format: GMSH reference manual, "MSH file format" and "MSH file format version 2 (Legacy)". */
#include "base/budget.h"
#include "base/file.h"
#include "base/little_endian.h"
#include "model/import/mesh/mesh_file.h"

#include <stdlib.h>
#include <string.h>

/* Types of elements, and their nodes. */
enum { SEGMENT = 1, TRIANGLE = 2, TETRAHEDRON = 4, POINT = 15 };

/* Where a node of the file is in the list of points. */
typedef struct numbered {
    int64_t number;
    int32_t place;
} numbered;

/* Simplices of one dimension. */
typedef struct collected {
    int64_t *nodes; /* their numbers in the file */
    int32_t count, capacity;
} collected;

typedef struct gmsh_reader {
    const char *at, *end;
    const char *begin, *file;
    tb_error *error;
    bool binary, old; /* version 2.2 */
    double *points;
    numbered *nodes;
    int32_t number_of_nodes;
    collected found[4]; /* by dimension */
} gmsh_reader;

/* ---- text and numbers ---- */

static tb_status fail(const gmsh_reader *r, tb_status status, const char *field, const char *text)
{
    int line = 1;
    if (!r->binary)
        for (const char *c = r->begin; c < r->at; c++) line += *c == '\n';
    return tb_fail_file(r->error, status, r->file, r->binary ? 0 : line, field, "%s", text);
}

static tb_status fail_end(const gmsh_reader *r)
{
    return fail(r, TB_DATA_LOSS, "file", "the file ends early");
}

static void pass_space(gmsh_reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\r' || *r->at == '\n'))
        r->at++;
}

/* Passes over the rest of a line. */
static void pass_line(gmsh_reader *r)
{
    while (r->at < r->end && *r->at != '\n') r->at++;
    if (r->at < r->end) r->at++;
}

/* The next number of a text. */
static tb_status read_text(gmsh_reader *r, const char *field, double *number)
{
    pass_space(r);
    if (r->at == r->end) return fail_end(r);
    if (!tb_parse_number(&r->at, number) || r->at > r->end || !(fabs(*number) <= 1e300))
        return fail(r, TB_INVALID_ARGUMENT, field, "something that is no number");
    return TB_OK;
}

/* A whole number: of a text, or of four or eight bytes. */
static tb_status read_whole(gmsh_reader *r, const char *field, int bytes, int64_t *number)
{
    if (!r->binary) {
        double x = 0;
        const tb_status status = read_text(r, field, &x);
        if (status != TB_OK) return status;
        if (!(fabs(x) < 1e15) || x != floor(x))
            return fail(r, TB_INVALID_ARGUMENT, field, "a number that is not whole");
        *number = (int64_t)x;
        return TB_OK;
    }
    if (r->end - r->at < bytes) return fail_end(r);
    const unsigned char *base = (const unsigned char *)r->at;
    const int64_t low = (int64_t)tb_read_i32(base) & 0xffffffff;
    *number = bytes == 4 ? tb_read_i32(base) : (int64_t)tb_read_i32(base + 4) * 4294967296 + low;
    r->at += bytes;
    return TB_OK;
}

static tb_status read_coordinates(gmsh_reader *r, double point[3])
{
    for (int i = 0; i < 3; i++) {
        if (r->binary) {
            if (r->end - r->at < 8) return fail_end(r);
            point[i] = tb_read_double((const unsigned char *)r->at);
            r->at += 8;
        } else {
            const tb_status status = read_text(r, "Nodes", &point[i]);
            if (status != TB_OK) return status;
        }
        if (!(fabs(point[i]) <= TB_MESH_COORDINATE_LIMIT))
            return fail(r, TB_INVALID_ARGUMENT, "Nodes",
                        "a node that is not finite or too far away");
    }
    return TB_OK;
}

/* A count from 0 to TB_MESH_FILE_LIMIT, of which each thing takes at least `least` bytes. */
static tb_status check_count(const gmsh_reader *r, const char *field, int64_t count, int64_t least)
{
    if (count < 0) return fail(r, TB_INVALID_ARGUMENT, field, "a count that is negative");
    if (count > TB_MESH_FILE_LIMIT)
        return tb_fail_file(r->error, TB_RESOURCE_EXHAUSTED, r->file, 0, field,
                            "more than %d of them", (int)TB_MESH_FILE_LIMIT);
    return count * least <= r->end - r->at ? TB_OK : fail_end(r);
}

/* ---- nodes ---- */

static tb_status reserve_nodes(gmsh_reader *r, int64_t count)
{
    const tb_status status = check_count(r, "Nodes", count, r->binary ? 24 : 6);
    if (status != TB_OK) return status;
    if (r->points != NULL)
        return fail(r, TB_INVALID_ARGUMENT, "Nodes", "a second section of nodes");
    r->points = malloc((3 * (size_t)count + 1) * sizeof *r->points);
    r->nodes = malloc(((size_t)count + 1) * sizeof *r->nodes);
    return r->points != NULL && r->nodes != NULL
               ? TB_OK
               : tb_fail_memory(r->error, (size_t)count * 40, "nodes");
}

static tb_status read_old_nodes(gmsh_reader *r)
{
    int64_t count = 0;
    const bool binary = r->binary;
    r->binary = false; /* the count is text in both */
    tb_status status = read_whole(r, "Nodes", 0, &count);
    r->binary = binary;
    if (status == TB_OK) status = reserve_nodes(r, count);
    if (status == TB_OK && binary) pass_line(r);
    for (int32_t i = 0; i < count && status == TB_OK; i++) {
        r->nodes[i].place = i;
        status = read_whole(r, "Nodes", 4, &r->nodes[i].number);
        if (status == TB_OK) status = read_coordinates(r, r->points + 3 * (size_t)i);
        r->number_of_nodes = i + 1;
    }
    return status;
}

/* Nodes of an entity: their numbers, then their coordinates. */
static tb_status read_node_block(gmsh_reader *r, int32_t most)
{
    int64_t header[4] = {0}; /* dimension, entity, parametric, count */
    tb_status status = TB_OK;
    for (int i = 0; i < 4 && status == TB_OK; i++)
        status = read_whole(r, "Nodes", i < 3 ? 4 : 8, &header[i]);
    if (status != TB_OK) return status;
    if (header[2] != 0)
        return fail(r, TB_UNSUPPORTED, "Nodes", "parametric coordinates are not supported");
    if (header[3] < 0 || header[3] > most - r->number_of_nodes)
        return fail(r, TB_INVALID_ARGUMENT, "Nodes", "a block of more nodes than there are");
    const int32_t first = r->number_of_nodes, end = first + (int32_t)header[3];
    for (int32_t i = first; i < end && status == TB_OK; i++) {
        r->nodes[i].place = i;
        status = read_whole(r, "Nodes", 8, &r->nodes[i].number);
    }
    for (int32_t i = first; i < end && status == TB_OK; i++)
        status = read_coordinates(r, r->points + 3 * (size_t)i);
    r->number_of_nodes = end;
    return status;
}

static tb_status read_new_nodes(gmsh_reader *r)
{
    int64_t header[4] = {0}; /* blocks, nodes, least and largest number */
    tb_status status = TB_OK;
    for (int i = 0; i < 4 && status == TB_OK; i++) status = read_whole(r, "Nodes", 8, &header[i]);
    if (status == TB_OK) status = reserve_nodes(r, header[1]);
    for (int64_t b = 0; b < header[0] && status == TB_OK; b++)
        status = read_node_block(r, (int32_t)header[1]);
    if (status == TB_OK && r->number_of_nodes != header[1])
        status = fail(r, TB_INVALID_ARGUMENT, "Nodes", "the blocks have less nodes than there are");
    return status;
}

/* ---- elements ---- */

/* Dimension of a type of elements, from 0; -1: it is not supported. */
static int dimension_of(int64_t type)
{
    switch (type) {
    case POINT: return 0;
    case SEGMENT: return 1;
    case TRIANGLE: return 2;
    case TETRAHEDRON: return 3;
    default: return -1;
    }
}

/* The nodes of an element of this dimension. */
static tb_status read_element(gmsh_reader *r, int dimension, int bytes)
{
    collected *c = &r->found[dimension];
    const int32_t corners = dimension + 1;
    if (c->count == c->capacity) {
        int64_t *grown =
            tb_grow(c->nodes, c->count + 1, &c->capacity, (size_t)corners * sizeof *grown);
        if (grown == NULL) return tb_fail_memory(r->error, (size_t)c->count * 32, "elements");
        c->nodes = grown;
    }
    for (int i = 0; i < corners; i++) {
        const tb_status status = read_whole(
            r, "Elements", bytes, &c->nodes[(size_t)c->count * (size_t)corners + (size_t)i]);
        if (status != TB_OK) return status;
    }
    c->count++;
    return TB_OK;
}

static tb_status fail_type(const gmsh_reader *r)
{
    return fail(r, TB_UNSUPPORTED, "Elements",
                "an element that is no point, segment, triangle or tetrahedron");
}

/* Type, elements in the block and tags are a block's header in binary; in text every element has its
 * number, type and tags. */
static tb_status read_old_block(gmsh_reader *r, int64_t *left)
{
    int64_t number = 0, type = 0, count = 1, tags = 0, tag = 0;
    tb_status status = r->binary ? TB_OK : read_whole(r, "Elements", 4, &number);
    if (status == TB_OK) status = read_whole(r, "Elements", 4, &type);
    if (status == TB_OK && r->binary) status = read_whole(r, "Elements", 4, &count);
    if (status == TB_OK) status = read_whole(r, "Elements", 4, &tags);
    if (status != TB_OK) return status;
    const int dimension = dimension_of(type);
    if (dimension < 0) return fail_type(r);
    if (count < 1 || count > *left || tags < 0)
        return fail(r, TB_INVALID_ARGUMENT, "Elements", "a block whose counts are out of range");
    *left -= count;
    for (int64_t i = 0; i < count && status == TB_OK; i++) {
        if (r->binary) status = read_whole(r, "Elements", 4, &number);
        for (int64_t k = 0; k < tags && status == TB_OK; k++)
            status = read_whole(r, "Elements", 4, &tag);
        if (status == TB_OK) status = read_element(r, dimension, 4);
    }
    return status;
}

static tb_status read_old_elements(gmsh_reader *r)
{
    int64_t left = 0;
    const bool binary = r->binary;
    r->binary = false;
    tb_status status = read_whole(r, "Elements", 0, &left);
    r->binary = binary;
    if (status == TB_OK) status = check_count(r, "Elements", left, binary ? 8 : 4);
    if (status == TB_OK && binary) pass_line(r);
    while (left > 0 && status == TB_OK) status = read_old_block(r, &left);
    return status;
}

static tb_status read_new_block(gmsh_reader *r, int64_t *left)
{
    int64_t header[4] = {0}; /* dimension, entity, type, count */
    int64_t number = 0;
    tb_status status = TB_OK;
    for (int i = 0; i < 4 && status == TB_OK; i++)
        status = read_whole(r, "Elements", i < 3 ? 4 : 8, &header[i]);
    if (status != TB_OK) return status;
    const int dimension = dimension_of(header[2]);
    if (dimension < 0) return fail_type(r);
    if (header[3] < 0 || header[3] > *left)
        return fail(r, TB_INVALID_ARGUMENT, "Elements", "a block of more elements than there are");
    *left -= header[3];
    for (int64_t i = 0; i < header[3] && status == TB_OK; i++) {
        status = read_whole(r, "Elements", 8, &number);
        if (status == TB_OK) status = read_element(r, dimension, 8);
    }
    return status;
}

static tb_status read_new_elements(gmsh_reader *r)
{
    int64_t header[4] = {0}; /* blocks, elements, least and largest number */
    tb_status status = TB_OK;
    for (int i = 0; i < 4 && status == TB_OK; i++)
        status = read_whole(r, "Elements", 8, &header[i]);
    if (status == TB_OK) status = check_count(r, "Elements", header[1], r->binary ? 16 : 4);
    int64_t left = header[1];
    for (int64_t b = 0; b < header[0] && status == TB_OK; b++) status = read_new_block(r, &left);
    if (status == TB_OK && left > 0)
        status = fail(r, TB_INVALID_ARGUMENT, "Elements",
                      "the blocks have less elements than there are");
    return status;
}

/* ---- the whole ---- */

/* Passes over a word that must be here. */
static bool pass_word(gmsh_reader *r, const char *word)
{
    const size_t length = strlen(word);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0) return false;
    r->at += length;
    return true;
}

static tb_status read_format(gmsh_reader *r)
{
    double version = 0, binary = 0, size = 0;
    if (!pass_word(r, "$MeshFormat"))
        return fail(r, TB_INVALID_ARGUMENT, "file",
                    "no GMSH file: it does not begin with $MeshFormat");
    tb_status status = read_text(r, "MeshFormat", &version);
    if (status == TB_OK) status = read_text(r, "MeshFormat", &binary);
    if (status == TB_OK) status = read_text(r, "MeshFormat", &size);
    if (status != TB_OK) return status;
    r->old = version == 2.2;
    if ((!r->old && version != 4.1) || size != 8 || (binary != 0 && binary != 1))
        return fail(r, TB_UNSUPPORTED, "MeshFormat",
                    "versions 2.2 and 4.1 are read, with numbers of 8 bytes, and no other");
    r->binary = binary == 1;
    if (!r->binary) return TB_OK;
    int64_t one = 0;
    pass_line(r);
    status = read_whole(r, "MeshFormat", 4, &one);
    if (status == TB_OK && one != 1)
        status =
            fail(r, TB_UNSUPPORTED, "MeshFormat", "the byte order is not that of little endians");
    return status;
}

/* Passes over everything up to the end of a section, whose name the reader is behind. */
static tb_status pass_section(gmsh_reader *r, const char *name, size_t length)
{
    for (; r->at < r->end; r->at++)
        if (*r->at == '$' && (size_t)(r->end - r->at) >= length + 4 &&
            memcmp(r->at, "$End", 4) == 0 && memcmp(r->at + 4, name, length) == 0) {
            pass_line(r);
            return TB_OK;
        }
    return fail_end(r);
}

/* A section of any kind; its end is a fault elsewhere only if numbers are left over. */
static tb_status read_section(gmsh_reader *r)
{
    const char *name = r->at + 1;
    while (r->at < r->end && *r->at != '\n' && *r->at != '\r') r->at++;
    const size_t length = (size_t)(r->at - name);
    pass_line(r);
    tb_status status = TB_OK;
    const bool nodes = length == 5 && memcmp(name, "Nodes", 5) == 0;
    const bool elements = length == 8 && memcmp(name, "Elements", 8) == 0;
    if (!nodes && !elements) return pass_section(r, name, length);
    if (nodes)
        status = r->old ? read_old_nodes(r) : read_new_nodes(r);
    else
        status = r->old ? read_old_elements(r) : read_new_elements(r);
    if (status != TB_OK) return status;
    pass_space(r);
    if (!pass_word(r, nodes ? "$EndNodes" : "$EndElements"))
        return fail(r, TB_INVALID_ARGUMENT, nodes ? "Nodes" : "Elements",
                    "the section does not end behind the last of its count");
    return TB_OK;
}

static int by_number(const void *a, const void *b)
{
    const int64_t p = ((const numbered *)a)->number, q = ((const numbered *)b)->number;
    return (p > q) - (p < q);
}

/* The simplices of the largest dimension, by places of their nodes. */
static tb_status take_simplices(gmsh_reader *r, tb_simplices *body)
{
    int dimension = 3;
    while (dimension > 0 && r->found[dimension].count == 0) dimension--;
    if (dimension == 0)
        return fail(r, TB_INVALID_ARGUMENT, "Elements", "no segment, triangle or tetrahedron");
    const collected *c = &r->found[dimension];
    const size_t corners = (size_t)c->count * (size_t)(dimension + 1);
    qsort(r->nodes, (size_t)r->number_of_nodes, sizeof *r->nodes, by_number);
    body->dimension = dimension;
    body->number_of_simplices = c->count;
    body->simplices = malloc((corners + 1) * sizeof *body->simplices);
    if (body->simplices == NULL) return tb_fail_memory(r->error, corners * 4, "elements");
    for (size_t i = 0; i < corners; i++) {
        const numbered wanted = {.number = c->nodes[i]};
        const numbered *node =
            bsearch(&wanted, r->nodes, (size_t)r->number_of_nodes, sizeof *r->nodes, by_number);
        if (node == NULL)
            return tb_fail_file(r->error, TB_INVALID_ARGUMENT, r->file, 0, "Elements",
                                "there is no node %lld", (long long)c->nodes[i]);
        body->simplices[i] = node->place;
    }
    body->points = r->points;
    body->number_of_points = r->number_of_nodes;
    r->points = NULL;
    return TB_OK;
}

tb_status tb_gmsh_parse(const char *bytes, size_t size, const char *file, tb_simplices *body,
                        tb_error *error)
{
    gmsh_reader r = {
        .at = bytes, .begin = bytes, .end = bytes + size, .file = file, .error = error};
    memset(body, 0, sizeof *body);
    tb_status status = read_format(&r);
    if (status == TB_OK) status = pass_section(&r, "MeshFormat", strlen("MeshFormat"));
    while (status == TB_OK) {
        pass_space(&r);
        if (r.at == r.end) break;
        status = *r.at == '$'
                     ? read_section(&r)
                     : fail(&r, TB_INVALID_ARGUMENT, "file", "something that is no section");
        if (status == TB_OK) status = tb_budget_check(error);
    }
    if (status == TB_OK && r.nodes == NULL)
        status = fail(&r, TB_INVALID_ARGUMENT, "Nodes", "no section of nodes");
    if (status == TB_OK) status = take_simplices(&r, body);
    if (status != TB_OK) tb_simplices_free(body);
    free(r.points);
    free(r.nodes);
    for (int i = 0; i < 4; i++) free(r.found[i].nodes);
    return status;
}
