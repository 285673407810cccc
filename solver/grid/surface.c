/* Surfaces of bodies as triangles, and files for ParaView. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grid/card/steps.h"
#include "grid/grid_internal.h"

/* ---- surfaces ---- */

/* A vertex lies on an edge between two nodes, and triangles that meet there share it. */
typedef struct builder {
    tb_soft_surface *s;
    int32_t vertex_capacity, triangle_capacity, pressure_capacity;
    uint64_t *edges;  /* table: 1 + the edge's number; 0: free */
    int32_t *indices; /* of its vertex */
    size_t places;    /* a power of two, more than twice the vertices */
} builder;

/* A cell of a body: corners, their distances to the surface, their numbers. */
typedef struct surface_cell {
    double at[8][3], depth[8];
    int32_t node[8];
} surface_cell;

/* Appends room for `count` items of three to an array; false without memory. */
static bool grow(void **items, int32_t count, int32_t *capacity, size_t size)
{
    if (count <= *capacity) return true;
    void *grown = tb_grow(*items, count, capacity, size);
    if (grown == NULL) return false;
    *items = grown;
    return true;
}

/* Index of an edge in the table, or of its insertion. */
static size_t place_of(const builder *b, uint64_t edge)
{
    size_t place = (size_t)((edge * 0x9e3779b97f4a7c15u) >> 20) & (b->places - 1);
    while (b->edges[place] != 0 && b->edges[place] != edge) place = (place + 1) & (b->places - 1);
    return place;
}

static bool widen(builder *b)
{
    const builder old = *b;
    b->places = old.places > 0 ? 2 * old.places : 1024;
    b->edges = calloc(b->places, sizeof *b->edges);
    b->indices = calloc(b->places, sizeof *b->indices);
    for (size_t i = 0; b->edges != NULL && b->indices != NULL && i < old.places; i++) {
        if (old.edges[i] == 0) continue;
        const size_t place = place_of(b, old.edges[i]);
        b->edges[place] = old.edges[i];
        b->indices[place] = old.indices[i];
    }
    free(old.edges);
    free(old.indices);
    return b->edges != NULL && b->indices != NULL;
}

/* The vertex where depth is 0 on the edge between corners p and q; -1 without memory. */
static int32_t crossing(builder *b, const surface_cell *c, int p, int q)
{
    tb_soft_surface *s = b->s;
    const bool turned = c->node[p] > c->node[q];
    const int from = turned ? q : p, to = turned ? p : q;
    const uint64_t edge = ((uint64_t)c->node[from] << 32 | (uint64_t)c->node[to]) + 1;
    if (2 * (size_t)s->number_of_vertices >= b->places && !widen(b)) return -1;
    const size_t place = place_of(b, edge);
    if (b->edges[place] != 0) return b->indices[place];
    if (!grow((void **)&s->vertices, s->number_of_vertices + 1, &b->vertex_capacity,
              3 * sizeof(double)))
        return -1;
    const double t = c->depth[from] / (c->depth[from] - c->depth[to]);
    for (int a = 0; a < 3; a++)
        s->vertices[3 * (size_t)s->number_of_vertices + (size_t)a] =
            c->at[from][a] + t * (c->at[to][a] - c->at[from][a]);
    b->edges[place] = edge;
    return b->indices[place] = s->number_of_vertices++;
}

/* A vertex with the middle of its edge: triangles are turned by those, for where the surface runs through
 * a node some have no area. */
typedef struct corner_of_triangle {
    int32_t vertex; /* -1: without memory */
    double middle[3];
} corner_of_triangle;

static corner_of_triangle meet(builder *b, const surface_cell *c, int p, int q)
{
    corner_of_triangle made = {.vertex = crossing(b, c, p, q)};
    for (int a = 0; a < 3; a++) made.middle[a] = 0.5 * (c->at[p][a] + c->at[q][a]);
    return made;
}

static bool add_triangle(builder *b, const corner_of_triangle *x, const corner_of_triangle *y,
                         const corner_of_triangle *z, const double outward[3], double pressure)
{
    tb_soft_surface *s = b->s;
    double e[3], f[3], along = 0;
    if (x->vertex < 0 || y->vertex < 0 || z->vertex < 0) return false;
    for (int a = 0; a < 3; a++)
        e[a] = y->middle[a] - x->middle[a], f[a] = z->middle[a] - x->middle[a];
    for (int a = 0; a < 3; a++)
        along += (e[(a + 1) % 3] * f[(a + 2) % 3] - e[(a + 2) % 3] * f[(a + 1) % 3]) * outward[a];
    if (!grow((void **)&s->triangles, s->number_of_triangles + 1, &b->triangle_capacity,
              3 * sizeof(int32_t)) ||
        !grow((void **)&s->pressure, s->number_of_triangles + 1, &b->pressure_capacity,
              sizeof(double)))
        return false;
    int32_t *t = s->triangles + 3 * (size_t)s->number_of_triangles;
    t[0] = x->vertex;
    t[1] = along < 0 ? z->vertex : y->vertex;
    t[2] = along < 0 ? y->vertex : z->vertex;
    s->pressure[s->number_of_triangles++] = pressure;
    return true;
}

/* The surface in one tetrahedron (marching tetrahedra, Doi and Koide 1991). */
static bool cut(builder *b, const surface_cell *c, const int corner[4], double pressure)
{
    int in[4], out[4], n = 0, rest = 0;
    corner_of_triangle x[4];
    double outward[3];
    for (int i = 0; i < 4; i++) {
        if (c->depth[corner[i]] < 0)
            in[n++] = corner[i];
        else
            out[rest++] = corner[i];
    }
    if (n == 0 || n == 4) return true;
    for (int a = 0; a < 3; a++) outward[a] = c->at[out[0]][a] - c->at[in[0]][a];
    if (n == 2) {
        x[0] = meet(b, c, in[0], out[0]);
        x[1] = meet(b, c, in[0], out[1]);
        x[2] = meet(b, c, in[1], out[1]);
        x[3] = meet(b, c, in[1], out[0]);
        return add_triangle(b, x, x + 1, x + 2, outward, pressure) &&
               add_triangle(b, x, x + 2, x + 3, outward, pressure);
    }
    for (int i = 0; i < 3; i++)
        x[i] = n == 1 ? meet(b, c, in[0], out[i]) : meet(b, c, in[i], out[0]);
    return add_triangle(b, x, x + 1, x + 2, outward, pressure);
}

/* Contact pressure (Pa) on a body in a cell, of the last substep: all impulses over the surface, which
 * pieces of several obstacles share, up to a section of the cell. */
static double pressure_in(const tb_soft_world *w, int32_t body, int32_t cell)
{
    const double *h = w->scene.lattice.spacing;
    const double section = tb_soft_cell_volume(w) / tb_min(h[0], tb_min(h[1], h[2]));
    double impulse = 0, area = 0, largest = 0;
    for (int32_t i = 0; i < w->number_of_contacts; i++) {
        const tb_soft_contact *c = w->contacts + i;
        if (c->cell != cell || (c->a != body && c->b != body)) continue;
        impulse += c->alpha;
        area += c->area;
        largest = tb_max(largest, c->area);
    }
    return impulse > 0 ? impulse / (tb_min(area, tb_max(largest, section)) * w->last_dt) : 0;
}

tb_status tb_soft_world_surface(tb_soft_world *w, int32_t body, tb_soft_surface *surface,
                                tb_error *error)
{
    builder b = {.s = surface};
    bool whole = true;
    memset(surface, 0, sizeof *surface);
    if (body < 0 || body >= w->scene.number_of_bodies)
        return tb_fail_field(error, TB_NOT_FOUND, "body", "there is no body %d", body);
    const tb_status status = tb_soft_card_fetch(w, error);
    if (status != TB_OK) return status;
    const tb_soft_field *f = w->fields + body;
    for (int32_t k = f->lower[2]; k + 1 < f->upper[2]; k++)
        for (int32_t j = f->lower[1]; j + 1 < f->upper[1]; j++)
            for (int32_t i = f->lower[0]; whole && i + 1 < f->upper[0]; i++) {
                const int32_t n = tb_soft_node(w, i, j, k);
                surface_cell here;
                int negative = 0;
                if (!tb_soft_cell_valid(w, f, n)) continue;
                for (int c = 0; c < 8; c++) {
                    here.node[c] = tb_soft_corner(w, n, c);
                    here.depth[c] = f->depth[here.node[c]];
                    negative += here.depth[c] < 0;
                    here.at[c][0] = tb_soft_coordinate(w, 0, i + (c & 1));
                    here.at[c][1] = tb_soft_coordinate(w, 1, j + (c >> 1 & 1));
                    here.at[c][2] = tb_soft_coordinate(w, 2, k + (c >> 2 & 1));
                }
                if (negative == 0 || negative == 8) continue;
                const double pressure = pressure_in(w, body, n);
                for (int t = 0; t < TB_SOFT_TETRAHEDRA; t++) {
                    int corner[4];
                    tb_soft_tetrahedron(t, (i & 1) | (j & 1) << 1 | (k & 1) << 2, corner);
                    whole = whole && cut(&b, &here, corner, pressure);
                }
            }
    free(b.edges);
    free(b.indices);
    if (whole) return TB_OK;
    free(surface->vertices);
    free(surface->triangles);
    free(surface->pressure);
    memset(surface, 0, sizeof *surface);
    return tb_fail_memory(error, 0, "a surface");
}

size_t tb_soft_world_surface_bytes(const tb_soft_world *w, size_t number)
{
    size_t triangles = 0;
    for (int32_t b = 0; b < w->scene.number_of_bodies; b++) {
        const tb_soft_field *f = w->fields + b;
        for (int32_t k = f->lower[2]; k + 1 < f->upper[2]; k++)
            for (int32_t j = f->lower[1]; j + 1 < f->upper[1]; j++)
                for (int32_t i = f->lower[0]; i + 1 < f->upper[0]; i++) {
                    const int32_t n = tb_soft_node(w, i, j, k);
                    if (!tb_soft_cell_valid(w, f, n)) continue;
                    for (int t = 0; t < TB_SOFT_TETRAHEDRA; t++) {
                        int corner[4], inside = 0;
                        tb_soft_tetrahedron(t, (i & 1) | (j & 1) << 1 | (k & 1) << 2, corner);
                        for (int c = 0; c < 4; c++)
                            inside += f->depth[tb_soft_corner(w, n, corner[c])] < 0;
                        triangles += inside == 2 ? 2 : inside == 1 || inside == 3;
                    }
                }
    }
    /* a closed mesh has half as many vertices as triangles, but for a few */
    return triangles * (3 * sizeof(int32_t) + number) + (triangles / 2 + 2) * 3 * number;
}

/* ---- VTK XML ---- */

typedef struct text {
    tb_bytes bytes;
    tb_status status;
} text;

static void put(text *t, const char *format, ...) TB_PRINTF(2, 3);
static void put(text *t, const char *format, ...)
{
    char piece[512];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    if (t->status == TB_OK) t->status = tb_bytes_append(&t->bytes, piece, (size_t)length);
}

static void begin_array(text *t, const char *type, const char *name, int components)
{
    put(t, "<DataArray type=\"%s\" Name=\"%s\" NumberOfComponents=\"%d\" format=\"ascii\">\n", type,
        name, components);
}

static void put_surfaces(text *t, tb_soft_surface *s, int32_t bodies)
{
    int32_t vertices = 0, triangles = 0;
    for (int32_t b = 0; b < bodies; b++)
        vertices += s[b].number_of_vertices, triangles += s[b].number_of_triangles;
    put(t,
        "<VTKFile type=\"PolyData\" version=\"1.0\" byte_order=\"LittleEndian\">\n<PolyData>\n"
        "<Piece NumberOfPoints=\"%d\" NumberOfPolys=\"%d\">\n<Points>\n",
        vertices, triangles);
    begin_array(t, "Float64", "Points", 3);
    for (int32_t b = 0; b < bodies; b++)
        for (int32_t v = 0; v < s[b].number_of_vertices; v++) {
            const double *x = s[b].vertices + 3 * (size_t)v;
            put(t, "%.9g %.9g %.9g\n", x[0], x[1], x[2]);
        }
    put(t, "</DataArray>\n</Points>\n<Polys>\n");
    begin_array(t, "Int32", "connectivity", 1);
    for (int32_t b = 0, first = 0; b < bodies; first += s[b++].number_of_vertices)
        for (int32_t k = 0; k < s[b].number_of_triangles; k++) {
            const int32_t *c = s[b].triangles + 3 * (size_t)k;
            put(t, "%d %d %d\n", first + c[0], first + c[1], first + c[2]);
        }
    put(t, "</DataArray>\n");
    begin_array(t, "Int32", "offsets", 1);
    for (int32_t k = 1; k <= triangles; k++) put(t, "%d\n", 3 * k);
    put(t, "</DataArray>\n</Polys>\n<CellData>\n");
    begin_array(t, "Float64", "pressure", 1);
    for (int32_t b = 0; b < bodies; b++)
        for (int32_t k = 0; k < s[b].number_of_triangles; k++) put(t, "%.9g\n", s[b].pressure[k]);
    put(t, "</DataArray>\n");
    begin_array(t, "Int32", "body", 1);
    for (int32_t b = 0; b < bodies; b++)
        for (int32_t k = 0; k < s[b].number_of_triangles; k++) put(t, "%d\n", b);
    put(t, "</DataArray>\n</CellData>\n</Piece>\n</PolyData>\n</VTKFile>\n");
}

static tb_status write_surfaces(tb_soft_world *w, text *t, tb_error *error)
{
    tb_soft_surface surfaces[TB_SOFT_MOST_BODIES] = {{0}};
    tb_status status = TB_OK;
    const int32_t bodies = w->scene.number_of_bodies;
    for (int32_t b = 0; status == TB_OK && b < bodies; b++)
        status = tb_soft_world_surface(w, b, surfaces + b, error);
    if (status == TB_OK) put_surfaces(t, surfaces, bodies);
    for (int32_t b = 0; b < bodies; b++) {
        free(surfaces[b].vertices);
        free(surfaces[b].triangles);
        free(surfaces[b].pressure);
    }
    return status;
}

/* Calls `each` for every cell with material, or (`points`) every node with mass, of all bodies. */
typedef void visitor(tb_soft_world *w, int32_t body, int32_t n, const int32_t at[3], void *context);
static void visit(tb_soft_world *w, bool points, visitor *each, void *context)
{
    for (int32_t b = 0; b < w->scene.number_of_bodies; b++) {
        const tb_soft_field *f = w->fields + b;
        /* not where a body's face lies in a plane of the grid but for rounding */
        const double least = 1e-9 * w->scene.bodies[b].material.density * tb_soft_cell_volume(w);
        for (int32_t k = f->lower[2]; k < f->upper[2]; k++)
            TB_SOFT_EACH_NODE (w, f, k, n, i, j) {
                const int32_t at[3] = {i, j, k};
                double mass = 0;
                for (int o = 0; o < 8; o++) mass += f->octant[8 * (size_t)n + (size_t)o];
                if (points ? f->layer[n] == 0 : mass > least) each(w, b, n, at, context);
            }
    }
}

typedef struct volume_writer {
    text *t;
    int32_t *number; /* bodies x nodes: of a point */
    int32_t count, cells, what;
} volume_writer;

static void count_point(tb_soft_world *w, int32_t body, int32_t n, const int32_t at[3],
                        void *context)
{
    volume_writer *v = context;
    (void)at;
    v->number[(size_t)body * w->nodes + (size_t)n] = v->count++;
}

static void count_cell(tb_soft_world *w, int32_t body, int32_t n, const int32_t at[3],
                       void *context)
{
    (void)w, (void)body, (void)n, (void)at;
    ((volume_writer *)context)->cells++;
}

static void put_point(tb_soft_world *w, int32_t body, int32_t n, const int32_t at[3], void *context)
{
    const volume_writer *v = context;
    const tb_soft_field *f = w->fields + body;
    const double x[3] = {tb_soft_coordinate(w, 0, at[0]), tb_soft_coordinate(w, 1, at[1]),
                         tb_soft_coordinate(w, 2, at[2])};
    const double *from = v->what == 0 ? x : (v->what == 1 ? f->X : f->v) + 3 * (size_t)n;
    if (v->what == 0) from = x;
    if (v->what < 3)
        put(v->t, "%.9g %.9g %.9g\n", from[0], from[1], from[2]);
    else if (v->what == 3)
        put(v->t, "%.9g\n", f->mass[n]);
    else
        put(v->t, "%d\n", body);
}

/* Stress of a cell: the mean of its octants, weighted by their masses. */
static void put_stress(tb_soft_world *w, int32_t body, int32_t n, text *t)
{
    const tb_soft_field *f = w->fields + body;
    const tb_soft_material *m = &w->scene.bodies[body].material;
    double X[24], v[24], sum[9] = {0}, mass = 0;
    tb_soft_gather(w, f->X, n, X);
    tb_soft_gather(w, f->v, n, v);
    for (int o = 0; o < 8; o++) {
        const double part = f->octant[8 * (size_t)n + (size_t)o];
        if (!(part > 0)) continue;
        const tb_mat33 g = tb_soft_gradient(X, w->space.tables.slope[o]),
                       l = tb_soft_gradient(v, w->space.tables.slope[o]);
        tb_soft_stress s;
        tb_soft_stress_of(m, &g, &l, &s);
        for (int i = 0; i < 9; i++) sum[i] += part * s.sigma.m[i];
        mass += part;
    }
    put(t, "%.9g %.9g %.9g %.9g %.9g %.9g\n", sum[0] / mass, sum[4] / mass, sum[8] / mass,
        sum[1] / mass, sum[5] / mass, sum[2] / mass);
}

static void put_cell(tb_soft_world *w, int32_t body, int32_t n, const int32_t at[3], void *context)
{
    const volume_writer *v = context;
    const int order[8] = {0, 1, 3, 2, 4, 5, 7, 6}; /* VTK's of a hexahedron */
    (void)at;
    if (v->what == 1) {
        put_stress(w, body, n, v->t);
        return;
    }
    if (v->what == 2) {
        double mass = 0;
        for (int o = 0; o < 8; o++) mass += w->fields[body].octant[8 * (size_t)n + (size_t)o];
        put(v->t, "%.9g\n",
            mass / (w->scene.bodies[body].material.density * tb_soft_cell_volume(w)));
        return;
    }
    for (int c = 0; c < 8; c++)
        put(v->t, c == 7 ? "%d\n" : "%d ",
            v->number[(size_t)body * w->nodes + (size_t)tb_soft_corner(w, n, order[c])]);
}

static tb_status write_volume(tb_soft_world *w, text *t, tb_error *error)
{
    volume_writer v = {.t = t};
    static const struct {
        const char *name;
        int components;
    } points[] = {{"Points", 3}, {"X", 3}, {"v", 3}, {"mass", 1}, {"body", 1}};
    const size_t all = (size_t)w->scene.number_of_bodies * w->nodes;
    v.number = malloc(all * sizeof *v.number);
    if (v.number == NULL) return tb_fail_memory(error, all * sizeof *v.number, "points of a file");
    visit(w, true, count_point, &v);
    visit(w, false, count_cell, &v);
    put(t,
        "<VTKFile type=\"UnstructuredGrid\" version=\"1.0\" byte_order=\"LittleEndian\">\n"
        "<UnstructuredGrid>\n<Piece NumberOfPoints=\"%d\" NumberOfCells=\"%d\">\n<Points>\n",
        v.count, v.cells);
    for (v.what = 0; v.what < 5; v.what++) {
        if (v.what == 1) put(t, "<PointData>\n");
        begin_array(t, v.what == 4 ? "Int32" : "Float64", points[v.what].name,
                    points[v.what].components);
        visit(w, true, put_point, &v);
        put(t, "</DataArray>\n%s", v.what == 0 ? "</Points>\n" : "");
    }
    put(t, "</PointData>\n<Cells>\n");
    begin_array(t, "Int32", "connectivity", 1);
    v.what = 0;
    visit(w, false, put_cell, &v);
    put(t, "</DataArray>\n");
    begin_array(t, "Int32", "offsets", 1);
    for (int32_t k = 1; k <= v.cells; k++) put(t, "%d\n", 8 * k);
    put(t, "</DataArray>\n");
    begin_array(t, "UInt8", "types", 1);
    for (int32_t k = 0; k < v.cells; k++) put(t, "12\n");
    put(t, "</DataArray>\n</Cells>\n<CellData>\n");
    for (v.what = 1; v.what <= 2; v.what++) {
        begin_array(t, "Float64", v.what == 1 ? "stress" : "occupied", v.what == 1 ? 6 : 1);
        visit(w, false, put_cell, &v);
        put(t, "</DataArray>\n");
    }
    put(t, "</CellData>\n</Piece>\n</UnstructuredGrid>\n</VTKFile>\n");
    free(v.number);
    return TB_OK;
}

tb_status tb_soft_world_vtk(tb_soft_world *w, bool volume, unsigned char **out, size_t *size,
                            tb_error *error)
{
    text t = {.status = TB_OK};
    *out = NULL;
    *size = 0;
    tb_status status = tb_soft_card_fetch(w, error);
    if (status != TB_OK) return status;
    put(&t, "<?xml version=\"1.0\"?>\n");
    status = volume ? write_volume(w, &t, error) : write_surfaces(w, &t, error);
    if (status == TB_OK && t.status != TB_OK) status = tb_fail_memory(error, 0, "a VTK file");
    if (status != TB_OK) {
        tb_bytes_free(&t.bytes);
        return status;
    }
    *out = t.bytes.base;
    *size = t.bytes.size;
    return TB_OK;
}
