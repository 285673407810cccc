/* Wavefront OBJ from memory: see mesh_file.h.
 *
 * Two passes over the text: the first reads vertices, the second faces, so that a face may name a
 * vertex that comes later in the file (positive indices count from the file's start) and is cut
 * into triangles with all coordinates known. Statement names as in the format's description by
 * Wavefront (Advanced Visualizer manual, appendix B). */
#include "base/budget.h"
#include "model/import/mesh/mesh_file.h"

#include <stdlib.h>
#include <string.h>

/* without any effect on shape */
static const char *const IGNORED[] = {
    "vt",     "vn",       "vp",       "g",          "s",         "o",      "mg",
    "usemtl", "mtllib",   "usemap",   "maplib",     "l",         "p",      "lod",
    "bevel",  "c_interp", "d_interp", "shadow_obj", "trace_obj", "cstech", "stech"};
/* shape that is not read */
static const char *const FREE_FORM[] = {"curv", "curv2", "surf", "cstype", "deg", "bmat", "step",
                                        "parm", "trim",  "hole", "scrv",   "sp",  "end",  "con",
                                        "call", "csh",   "bzp",  "bsp",    "cdc", "cdp",  "res"};

typedef struct obj_reader {
    const char *at, *end;
    int line;
    const char *file;
    tb_error *error;
    double *vertices;
    int32_t number_of_vertices, vertex_capacity;
    int32_t vertices_seen; /* before the present statement, for negative indices */
    int32_t *triangles;
    int32_t number_of_triangles, triangle_capacity;
    int32_t *face; /* vertex indices of the current face or line */
    int32_t face_capacity;
    bool lines;        /* lines are read, not faces */
    int32_t *segments; /* pairs of vertex indices */
    int32_t number_of_segments, segment_capacity;
} obj_reader;

/* ---- text ---- */

static bool is_line_end(char c)
{
    return c == '\n' || c == '\r';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\v' || c == '\f';
}

static void pass_line_end(obj_reader *r)
{
    if (r->at < r->end && *r->at == '\r') {
        r->at++;
        if (r->at < r->end && *r->at == '\n') r->at++;
    } else if (r->at < r->end) {
        r->at++;
    }
    r->line++;
}

/* Passes over blanks and over line ends behind a backslash. */
static void pass_blanks(obj_reader *r)
{
    while (r->at < r->end) {
        if (is_blank(*r->at)) {
            r->at++;
        } else if (*r->at == '\\' && r->at + 1 < r->end && is_line_end(r->at[1])) {
            r->at++;
            pass_line_end(r);
        } else {
            return;
        }
    }
}

/* Whether the statement ends here; blanks are ignored. */
static bool at_statement_end(obj_reader *r)
{
    pass_blanks(r);
    return r->at == r->end || is_line_end(*r->at) || *r->at == '#';
}

static void pass_statement(obj_reader *r)
{
    bool comment = false;
    while (r->at < r->end && !is_line_end(*r->at)) {
        comment = comment || *r->at == '#';
        if (!comment && *r->at == '\\' && r->at + 1 < r->end && is_line_end(r->at[1])) {
            r->at++;
            pass_line_end(r);
        } else {
            r->at++;
        }
    }
    if (r->at < r->end) pass_line_end(r);
}

/* Whether a number may end here. */
static bool at_word_end(const obj_reader *r)
{
    return r->at == r->end || is_blank(*r->at) || is_line_end(*r->at) || *r->at == '#' ||
           *r->at == '\\';
}

static tb_status fail(obj_reader *r, tb_status status, const char *field, const char *text)
{
    return tb_fail_file(r->error, status, r->file, r->line, field, "%s", text);
}

/* ---- statements ---- */

/* v x y z [w] or v x y z red green blue: numbers after the position are ignored. */
static tb_status read_vertex(obj_reader *r)
{
    if (r->number_of_vertices >= TB_MESH_FILE_LIMIT)
        return tb_fail_file(r->error, TB_RESOURCE_EXHAUSTED, r->file, r->line, "v",
                            "more than %d vertices", (int)TB_MESH_FILE_LIMIT);
    double numbers[7];
    int count = 0;
    while (!at_statement_end(r)) {
        double *x = &numbers[count < 7 ? count : 6];
        if (!tb_parse_number(&r->at, x) || r->at > r->end || !at_word_end(r))
            return fail(r, TB_INVALID_ARGUMENT, "v", "a vertex has something that is no number");
        if (count < 3 && !(fabs(*x) <= TB_MESH_COORDINATE_LIMIT))
            return tb_fail_file(r->error, TB_INVALID_ARGUMENT, r->file, r->line, "v",
                                "vertex coordinate %g is not finite or beyond %g m", *x,
                                TB_MESH_COORDINATE_LIMIT);
        count++;
    }
    if (count < 3 || count > 7)
        return tb_fail_file(r->error, TB_INVALID_ARGUMENT, r->file, r->line, "v",
                            "a vertex has %d numbers, not 3", count);

    double *vertices = r->vertices;
    if (r->number_of_vertices == r->vertex_capacity) {
        vertices =
            tb_grow(vertices, r->number_of_vertices + 1, &r->vertex_capacity, 3 * sizeof *vertices);
        if (vertices == NULL)
            return tb_fail_memory(r->error, (size_t)r->number_of_vertices * 24, "vertices");
        r->vertices = vertices;
    }
    memcpy(vertices + 3 * (size_t)r->number_of_vertices++, numbers, 3 * sizeof *numbers);
    return TB_OK;
}

/* An integer at the reader's place; false if there is none. Far too large ones saturate. */
static bool read_integer(obj_reader *r, int64_t *integer)
{
    const char *p = r->at;
    const bool negative = p < r->end && *p == '-';
    if (p < r->end && (*p == '-' || *p == '+')) p++;
    const char *digits = p;
    int64_t value = 0;
    for (; p < r->end && *p >= '0' && *p <= '9'; p++)
        if (value < INT32_MAX) value = 10 * value + (*p - '0');
    if (p == digits) return false;
    r->at = p;
    *integer = negative ? -value : value;
    return true;
}

/* One corner of a face: v, v/vt, v//vn or v/vt/vn. */
static tb_status read_corner(obj_reader *r, int32_t *vertex)
{
    int64_t index = 0, other = 0;
    bool good = read_integer(r, &index);
    for (int slash = 0; good && slash < 2 && r->at < r->end && *r->at == '/'; slash++) {
        r->at++;
        const bool empty = slash == 0 && r->at < r->end && *r->at == '/';
        good = empty || read_integer(r, &other);
    }
    if (!good || !at_word_end(r))
        return fail(r, TB_INVALID_ARGUMENT, "f", "a face has something that is no vertex index");

    const int64_t found = index < 0 ? r->vertices_seen + index : index - 1;
    const int64_t most = index < 0 ? r->vertices_seen : r->number_of_vertices;
    if (found < 0 || found >= most)
        return tb_fail_file(r->error, TB_INVALID_ARGUMENT, r->file, r->line, "f",
                            "vertex index %lld is out of range: there are %d vertices",
                            (long long)index, (int)most);
    *vertex = (int32_t)found;
    return TB_OK;
}

static tb_status add_triangles(obj_reader *r, int32_t count)
{
    const int32_t wanted = count - 2;
    if (r->number_of_triangles > TB_MESH_FILE_LIMIT - wanted)
        return tb_fail_file(r->error, TB_RESOURCE_EXHAUSTED, r->file, r->line, "f",
                            "more than %d triangles", (int)TB_MESH_FILE_LIMIT);
    if (r->triangle_capacity < r->number_of_triangles + wanted) {
        int32_t *triangles = tb_grow(r->triangles, r->number_of_triangles + wanted,
                                     &r->triangle_capacity, 3 * sizeof *triangles);
        if (triangles == NULL)
            return tb_fail_memory(r->error, (size_t)r->number_of_triangles * 12, "triangles");
        r->triangles = triangles;
    }

    int32_t *first = r->triangles + 3 * (size_t)r->number_of_triangles;
    if (tb_polygon_triangulate(r->vertices, r->face, count, first) != TB_OK) {
        if (count <= TB_MESH_FACE_LIMIT)
            return tb_fail_memory(r->error, (size_t)count * 32, "a face");
        return tb_fail_file(r->error, TB_RESOURCE_EXHAUSTED, r->file, r->line, "f",
                            "a face that is not convex has %d vertices, more than %d", (int)count,
                            (int)TB_MESH_FACE_LIMIT);
    }
    /* a triangle that names one vertex twice has no surface */
    int32_t kept = 0;
    for (int32_t i = 0; i < wanted; i++) {
        const int32_t *t = first + 3 * (size_t)i;
        if (t[0] == t[1] || t[1] == t[2] || t[2] == t[0]) continue;
        memmove(first + 3 * (size_t)kept++, t, 3 * sizeof *t);
    }
    r->number_of_triangles += kept;
    return TB_OK;
}

/* The vertex indices of a face or line, into `face`. */
static tb_status read_corners(obj_reader *r, const char *field, int32_t *count)
{
    *count = 0;
    while (!at_statement_end(r)) {
        if (*count >= TB_MESH_FILE_LIMIT)
            return fail(r, TB_RESOURCE_EXHAUSTED, field, "too many vertices in one statement");
        if (*count == r->face_capacity) {
            int32_t *face = tb_grow(r->face, *count + 1, &r->face_capacity, sizeof *face);
            if (face == NULL) return tb_fail_memory(r->error, (size_t)*count * 4, "a face");
            r->face = face;
        }
        const tb_status status = read_corner(r, &r->face[*count]);
        if (status != TB_OK) return status;
        ++*count;
    }
    return TB_OK;
}

static tb_status read_face(obj_reader *r)
{
    int32_t count = 0;
    const tb_status status = read_corners(r, "f", &count);
    if (status != TB_OK) return status;
    /* a face of one or two corners is a point or a line: there are files that hold some */
    if (count == 0) return fail(r, TB_INVALID_ARGUMENT, "f", "a face has no vertices");
    return count < 3 ? TB_OK : add_triangles(r, count);
}

/* The segments of a line, one after the other. */
static tb_status read_line(obj_reader *r)
{
    int32_t count = 0;
    const tb_status status = read_corners(r, "l", &count);
    if (status != TB_OK) return status;
    if (count < 2) return fail(r, TB_INVALID_ARGUMENT, "l", "a line has less than two vertices");
    if (r->number_of_segments > TB_MESH_FILE_LIMIT - count)
        return tb_fail_file(r->error, TB_RESOURCE_EXHAUSTED, r->file, r->line, "l",
                            "more than %d segments", (int)TB_MESH_FILE_LIMIT);
    const int32_t wanted = r->number_of_segments + count - 1;
    if (r->segment_capacity < wanted) {
        int32_t *segments =
            tb_grow(r->segments, wanted, &r->segment_capacity, 2 * sizeof *segments);
        if (segments == NULL) return tb_fail_memory(r->error, (size_t)wanted * 8, "segments");
        r->segments = segments;
    }
    for (int32_t i = 0; i + 1 < count; i++)
        memcpy(r->segments + 2 * (size_t)r->number_of_segments++, r->face + i, 2 * sizeof *r->face);
    return TB_OK;
}

static bool is_among(const char *const *names, size_t count, const char *word, size_t length)
{
    for (size_t i = 0; i < count; i++)
        if (strlen(names[i]) == length && memcmp(names[i], word, length) == 0) return true;
    return false;
}

/* Reads the current statement: vertices in the first pass, faces in the second. */
static tb_status read_statement(obj_reader *r, bool faces)
{
    const char *word = r->at;
    while (r->at < r->end && !at_word_end(r)) r->at++;
    const size_t length = (size_t)(r->at - word);

    if (length == 1 && word[0] == 'v') {
        r->vertices_seen++;
        return faces ? TB_OK : read_vertex(r);
    }
    if (r->lines && length == 1 && word[0] == 'l') return faces ? read_line(r) : TB_OK;
    if (faces && !r->lines &&
        ((length == 1 && word[0] == 'f') || (length == 2 && memcmp(word, "fo", 2) == 0)))
        return read_face(r);
    if (faces || (length == 1 && word[0] == 'f') || (length == 2 && memcmp(word, "fo", 2) == 0))
        return TB_OK;
    if (is_among(IGNORED, sizeof IGNORED / sizeof IGNORED[0], word, length)) return TB_OK;
    if (is_among(FREE_FORM, sizeof FREE_FORM / sizeof FREE_FORM[0], word, length))
        return tb_fail_file(r->error, TB_UNSUPPORTED, r->file, r->line, "obj",
                            "free-form statement '%.*s' is not supported", (int)length, word);
    return tb_fail_file(r->error, TB_INVALID_ARGUMENT, r->file, r->line, "obj",
                        "unknown statement '%.*s'", length < 40 ? (int)length : 40, word);
}

static tb_status read_pass(obj_reader *r, const char *text, bool faces)
{
    r->at = text;
    r->line = 1;
    r->vertices_seen = 0;
    while (r->at < r->end) {
        tb_status status = tb_budget_check(r->error);
        if (status != TB_OK) return status;
        if (!at_statement_end(r)) {
            status = read_statement(r, faces);
            if (status != TB_OK) return status;
        }
        pass_statement(r);
    }
    return TB_OK;
}

/* Both passes. */
static tb_status read_all(obj_reader *r, const char *text, size_t size)
{
    /* some editors put a byte order mark before the first statement */
    if (size >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) text += 3;
    tb_status status = read_pass(r, text, false);
    if (status == TB_OK && r->number_of_vertices == 0)
        status = fail(r, TB_INVALID_ARGUMENT, "v", "no vertices");
    if (status == TB_OK) status = read_pass(r, text, true);
    free(r->face);
    return status;
}

tb_status tb_obj_parse(const char *text, size_t size, const char *file, tb_mesh_data *mesh,
                       tb_error *error)
{
    obj_reader r = {.end = text + size, .file = file, .error = error};
    memset(mesh, 0, sizeof *mesh);
    tb_status status = read_all(&r, text, size);
    mesh->vertices = r.vertices;
    mesh->number_of_vertices = r.number_of_vertices;
    mesh->triangles = r.triangles;
    mesh->number_of_triangles = r.number_of_triangles;
    if (status == TB_OK && mesh->number_of_triangles > 0)
        status = tb_mesh_data_compact(mesh, error);
    if (status != TB_OK) tb_mesh_data_free(mesh);
    return status;
}

tb_status tb_obj_parse_lines(const char *text, size_t size, const char *file, tb_simplices *body,
                             tb_error *error)
{
    obj_reader r = {.end = text + size, .file = file, .error = error, .lines = true};
    const tb_status status = read_all(&r, text, size);
    *body = (tb_simplices){.dimension = 1,
                           .points = r.vertices,
                           .number_of_points = r.number_of_vertices,
                           .simplices = r.segments,
                           .number_of_simplices = r.number_of_segments};
    if (status != TB_OK) tb_simplices_free(body);
    return status;
}
