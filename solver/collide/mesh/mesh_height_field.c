/* A part of a height field as a mesh: two triangles a cell for the surface, two for the bottom, and
 * sides along the field's border, so that the field is the solid that tribo.h promises. */
#include "collide/mesh/mesh_internal.h"

/* Vertices: the surface row by row, then the same below. */
typedef struct field_part {
    const tb_height_field *field;
    int32_t row, column, rows, columns; /* cells */
    double *vertices;
    int32_t *triangles, *names;
    int32_t number_of_triangles;
} field_part;

TB_STATIC int32_t part_vertex(const field_part *p, int32_t row, int32_t column, bool bottom)
{
    const int32_t layer = (p->rows + 1) * (p->columns + 1);
    return (bottom ? layer : 0) + row * (p->columns + 1) + column;
}

TB_STATIC void part_triangle(field_part *p, int32_t a, int32_t b, int32_t c, int32_t name)
{
    int32_t *t = &p->triangles[3 * p->number_of_triangles];
    t[0] = a;
    t[1] = b;
    t[2] = c;
    p->names[p->number_of_triangles++] = name;
}

/* A side of the solid under the surface's edge from a to b; outward is to the right of that
 * direction. */
TB_STATIC void part_side(field_part *p, int32_t row_a, int32_t column_a, int32_t row_b,
                         int32_t column_b, int32_t name)
{
    const int32_t a = part_vertex(p, row_a, column_a, false);
    const int32_t b = part_vertex(p, row_b, column_b, false);
    const int32_t below_a = part_vertex(p, row_a, column_a, true);
    const int32_t below_b = part_vertex(p, row_b, column_b, true);
    part_triangle(p, a, b, below_b, name);
    part_triangle(p, a, below_b, below_a, name + 1);
}

TB_STATIC void part_fill(field_part *p)
{
    const tb_height_field *f = p->field;
    for (int32_t r = 0; r <= p->rows; r++)
        for (int32_t c = 0; c <= p->columns; c++)
            for (int bottom = 0; bottom < 2; bottom++) {
                double *v = &p->vertices[3 * part_vertex(p, r, c, bottom)];
                const int32_t row = p->row + r, column = p->column + c;
                v[0] = f->half_x * (2.0 * column / (f->columns - 1) - 1);
                v[1] = f->half_y * (2.0 * row / (f->rows - 1) - 1);
                v[2] = bottom ? -f->base
                              : f->heights[(size_t)row * (size_t)f->columns + (size_t)column];
            }

    const int32_t cell_rows = f->rows - 1, cell_columns = f->columns - 1;
    const int32_t surface = 2 * cell_rows * cell_columns;
    for (int32_t r = 0; r < p->rows; r++)
        for (int32_t c = 0; c < p->columns; c++) {
            const int32_t name = 2 * ((p->row + r) * cell_columns + p->column + c);
            for (int bottom = 0; bottom < 2; bottom++) {
                const int32_t v00 = part_vertex(p, r, c, bottom);
                const int32_t v01 = part_vertex(p, r, c + 1, bottom);
                const int32_t v11 = part_vertex(p, r + 1, c + 1, bottom);
                const int32_t v10 = part_vertex(p, r + 1, c, bottom);
                part_triangle(p, v00, bottom ? v11 : v01, bottom ? v01 : v11,
                              name + (bottom ? surface : 0));
                part_triangle(p, v00, bottom ? v10 : v11, bottom ? v11 : v10,
                              name + 1 + (bottom ? surface : 0));
            }
        }

    const int32_t sides = 2 * surface;
    for (int32_t r = 0; r < p->rows; r++) {
        const int32_t name = sides + 2 * (p->row + r);
        if (p->column == 0) part_side(p, r, 0, r + 1, 0, name);
        if (p->column + p->columns == cell_columns)
            part_side(p, r + 1, p->columns, r, p->columns, name + 2 * cell_rows);
    }
    for (int32_t c = 0; c < p->columns; c++) {
        const int32_t name = sides + 4 * cell_rows + 2 * (p->column + c);
        if (p->row == 0) part_side(p, 0, c + 1, 0, c, name);
        if (p->row + p->rows == cell_rows)
            part_side(p, p->rows, c, p->rows, c + 1, name + 2 * cell_columns);
    }
}

TB_STATIC tb_vec3 part_point(const field_part *p, int32_t vertex)
{
    return tb_v3_load(&p->vertices[3 * vertex]);
}

/* Triangles across edges, through a table of the edges seen so far. */
TB_STATIC bool part_link(const field_part *p, int32_t *adjacent, tb_arena *arena)
{
    const int32_t edges = 3 * p->number_of_triangles;
    uint32_t size = 1;
    while (size < 2 * (uint32_t)edges) size *= 2;
    int32_t *table = TB_ARENA_ARRAY(arena, int32_t, size);
    if (!table) return false;
    for (uint32_t i = 0; i < size; i++) table[i] = -1;
    for (int32_t e = 0; e < edges; e++) {
        const int32_t a = p->triangles[e], b = p->triangles[e % 3 == 2 ? e - 2 : e + 1];
        const uint32_t low = (uint32_t)(a < b ? a : b), high = (uint32_t)(a < b ? b : a);
        uint32_t slot = (low * 2654435769u ^ high * 2246822519u) & (size - 1);
        adjacent[e] = -1;
        for (; table[slot] >= 0; slot = (slot + 1) & (size - 1)) {
            const int32_t o = table[slot];
            const int32_t c = p->triangles[o], d = p->triangles[o % 3 == 2 ? o - 2 : o + 1];
            if (c != b || d != a || adjacent[o] >= 0) continue;
            adjacent[e] = o / 3;
            adjacent[o] = e / 3;
            break;
        }
        if (adjacent[e] < 0) table[slot] = e;
    }
    return true;
}

TB_STATIC uint8_t part_edge_kind(const field_part *p, const double *normals, int32_t e,
                                 int32_t across)
{
    /* without a neighbour: the cut of the part, beyond which the field continues */
    if (across < 0) return TB_EDGE_FLAT;
    const tb_vec3 n = tb_v3_load(&normals[3 * (e / 3)]), m = tb_v3_load(&normals[3 * across]);
    const tb_vec3 turn = tb_v3_cross(n, m);
    if (tb_v3_length2(turn) <= TB_MESH_ANGLE * TB_MESH_ANGLE) return TB_EDGE_FLAT;
    const tb_vec3 edge = tb_v3_sub(part_point(p, p->triangles[e % 3 == 2 ? e - 2 : e + 1]),
                                   part_point(p, p->triangles[e]));
    return tb_v3_dot(turn, edge) > 0 ? TB_EDGE_CONVEX : TB_EDGE_CONCAVE;
}

TB_EXTERN bool tb_height_field_part(const tb_height_field *field, const double lower[3],
                                    const double upper[3], tb_arena *arena, tb_triangle_mesh *mesh,
                                    const int32_t **names)
{
    field_part p = {.field = field};
    tb_height_field_range(lower[0], upper[0], field->half_x, field->columns - 1, &p.column,
                          &p.columns);
    tb_height_field_range(lower[1], upper[1], field->half_y, field->rows - 1, &p.row, &p.rows);
    const size_t cells = (size_t)p.rows * (size_t)p.columns;
    const size_t most = 4 * cells + 4 * ((size_t)p.rows + (size_t)p.columns);
    const size_t vertices = 2 * ((size_t)p.rows + 1) * ((size_t)p.columns + 1);
    if (most > INT32_MAX / 8 || vertices > INT32_MAX / 8) return false;
    p.vertices = TB_ARENA_ARRAY(arena, double, 3 * vertices);
    p.triangles = TB_ARENA_ARRAY(arena, int32_t, 3 * most);
    p.names = TB_ARENA_ARRAY(arena, int32_t, most);
    double *normals = TB_ARENA_ARRAY(arena, double, 3 * most);
    int32_t *adjacent = TB_ARENA_ARRAY(arena, int32_t, 3 * most);
    uint8_t *edge_kind = TB_ARENA_ARRAY(arena, uint8_t, 3 * most);
    int32_t *tree_triangles = TB_ARENA_ARRAY(arena, int32_t, most);
    tb_tree_node *node = TB_ARENA_ARRAY(arena, tb_tree_node, 1);
    if (!p.vertices || !p.triangles || !p.names || !normals || !adjacent || !edge_kind ||
        !tree_triangles || !node)
        return false;
    part_fill(&p);
    if (!part_link(&p, adjacent, arena)) return false;

    /* normals in double for any working precision */
    int32_t kept = 0;
    for (int32_t t = 0; t < p.number_of_triangles; t++) {
        const double *a = &p.vertices[3 * p.triangles[3 * t]];
        const double *b = &p.vertices[3 * p.triangles[3 * t + 1]];
        const double *c = &p.vertices[3 * p.triangles[3 * t + 2]];
        const double u[3] = {b[0] - a[0], b[1] - a[1], b[2] - a[2]};
        const double v[3] = {c[0] - a[0], c[1] - a[1], c[2] - a[2]};
        const double n[3] = {u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2],
                             u[0] * v[1] - u[1] * v[0]};
        const double length = sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
        for (int k = 0; k < 3; k++) normals[3 * t + k] = length > 0 ? n[k] / length : 0;
        if (length > 0) tree_triangles[kept++] = t;
    }
    for (int32_t e = 0; e < 3 * p.number_of_triangles; e++)
        edge_kind[e] = part_edge_kind(&p, normals, e, adjacent[e]);

    const double half[2] = {field->half_x, field->half_y};
    for (int k = 0; k < 3; k++) {
        node->lower[k] = k < 2 ? -half[k] : -field->base;
        node->upper[k] = k < 2 ? half[k] : field->highest;
        mesh->lower[k] = node->lower[k];
        mesh->upper[k] = node->upper[k];
    }
    node->right = 0;
    node->first = 0;
    node->count = kept;
    mesh->number_of_vertices = (int32_t)vertices;
    mesh->number_of_triangles = p.number_of_triangles;
    mesh->number_of_nodes = 1;
    mesh->number_of_tree_triangles = kept;
    mesh->vertices = p.vertices;
    mesh->triangles = p.triangles;
    mesh->adjacent = adjacent;
    mesh->normals = normals;
    mesh->edge_kind = edge_kind;
    mesh->nodes = node;
    mesh->tree_triangles = tree_triangles;
    *names = p.names;
    return true;
}
