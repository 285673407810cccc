/* A planar world as an SVG file.
 *
 * A prism's outline is the convex hull of its corners projected to the plane; cylinders and capsules
 * along the normal, and spheres, are circles. A plane is drawn as the half space under its edge. */
#include "run/planar_draw.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "common/files.h"
#include "common/plot.h"

enum { PAGE = 900, MARGIN = 30, CAPTION = 40, MOST_HEIGHT = 1400 };
static const double FORCE_LENGTH = 0.12; /* of the largest force, as a share of the page */

/* The plane's axes in the world, and how it lies on the page. */
typedef struct view {
    double right[3], up[3];
    double low[2], high[2]; /* m, of all that is drawn */
    double scale;           /* pixels/m */
    double height;          /* pixels */
} view;

typedef struct outline {
    tb_shape_type type;
    int32_t body;             /* 0: fixed */
    double centre[2], radius; /* m, of a circle; PLANE: a point of the edge */
    double normal[2];         /* PLANE */
    int32_t corners;          /* 0: a circle or a plane */
    double (*corner)[2];
} outline;

typedef struct drawing {
    const tb_model *model;
    const tb_state *state;
    view view;
    int32_t outlines;
    outline *outline;
} drawing;

/* ---- geometry ---- */

static void rotate(const double q[4], const double v[3], double out[3])
{
    const double w = q[0], *u = q + 1;
    double t[3];
    for (int i = 0; i < 3; i++)
        t[i] = 2 * (u[(i + 1) % 3] * v[(i + 2) % 3] - u[(i + 2) % 3] * v[(i + 1) % 3]);
    for (int i = 0; i < 3; i++)
        out[i] =
            v[i] + w * t[i] + u[(i + 1) % 3] * t[(i + 2) % 3] - u[(i + 2) % 3] * t[(i + 1) % 3];
}

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/* Up is the world's Z in the plane, or its Y where the plane is level; right turns to up about the
 * normal's sign that shows +X, or else +Y, to the right. */
static tb_status find_plane(drawing *d, tb_error *error)
{
    const tb_model_counts count = tb_model_count(d->model);
    tb_joint_info joint;
    int32_t hinge = 0;
    while (hinge < count.joints &&
           (tb_model_joint_info(d->model, hinge, &joint) != TB_OK || joint.type != TB_JOINT_HINGE))
        hinge++;
    if (hinge == count.joints)
        return cli_fail(error, TB_UNSUPPORTED, "", 0, NULL,
                        "a drawing shows a planar world, and the model has no hinge");
    tb_body_motion motion;
    double n[3], *up = d->view.up, *right = d->view.right;
    tb_state_body_motion(d->state, joint.body, &motion);
    rotate(motion.orientation, joint.axis, n);
    const int k = fabs(n[2]) < 0.9 ? 2 : 1;
    for (int i = 0; i < 3; i++) up[i] = (i == k) - n[k] * n[i];
    const double length = sqrt(dot(up, up));
    for (int i = 0; i < 3; i++) up[i] /= length;
    for (int i = 0; i < 3; i++)
        right[i] = up[(i + 1) % 3] * n[(i + 2) % 3] - up[(i + 2) % 3] * n[(i + 1) % 3];
    const double sign = fabs(right[0]) > 1e-9 ? right[0] : right[1];
    for (int i = 0; i < 3; i++) right[i] *= sign < 0 ? -1 : 1;
    return TB_OK;
}

/* Direction of counter-clockwise order in the plane, to compare points from left to right. */
static int by_place(const void *a, const void *b)
{
    const double *p = a, *q = b;
    if (p[0] != q[0]) return p[0] < q[0] ? -1 : 1;
    return (p[1] > q[1]) - (p[1] < q[1]);
}

static double turn_of(const double a[2], const double b[2], const double c[2])
{
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
}

/* Convex hull (Andrew's monotone chain): `hull` has space for twice the points. */
static int32_t hull_of(double (*points)[2], int32_t n, double (*hull)[2])
{
    int32_t size = 0;
    qsort(points, (size_t)n, sizeof *points, by_place);
    for (int pass = 0; pass < 2; pass++) {
        const int32_t first = size;
        for (int32_t k = 0; k < n; k++) {
            const double *p = points[pass == 0 ? k : n - 1 - k];
            while (size - first >= 2 && turn_of(hull[size - 2], hull[size - 1], p) <= 0) size--;
            memcpy(hull[size++], p, sizeof *hull);
        }
        size--; /* the next chain begins with this point */
    }
    return size;
}

static void project(const drawing *d, const double world[3], double point[2])
{
    point[0] = dot(d->view.right, world);
    point[1] = dot(d->view.up, world);
}

/* ---- shapes ---- */

/* Corners of a prism in the shape's frame; the caller frees them. */
static tb_status corners_of(const drawing *d, const tb_shape_info *shape, double **corners,
                            int32_t *number, tb_error *error)
{
    tb_triangles mesh = {0};
    tb_status status = TB_OK;
    *number = 8;
    if (shape->type != TB_SHAPE_BOX) {
        status = tb_model_mesh(d->model, shape->mesh, true, &mesh, error);
        *number = mesh.number_of_vertices;
    }
    if (status == TB_OK) *corners = malloc(((size_t)*number + 1) * 3 * sizeof **corners);
    if (status == TB_OK && *corners == NULL)
        status = cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL, "out of memory");
    for (int32_t i = 0; status == TB_OK && i < *number; i++)
        for (int k = 0; k < 3; k++)
            (*corners)[3 * i + k] = shape->type == TB_SHAPE_BOX
                                        ? ((i >> k & 1) != 0 ? 1 : -1) * shape->size[k]
                                        : (double)mesh.vertices[3 * i + k];
    tb_triangles_free(&mesh);
    return status;
}

/* Where a point of a shape's frame lies in the world. */
static void place(const drawing *d, const tb_shape_info *shape, const double local[3],
                  double world[3])
{
    double at[3];
    rotate(shape->orientation, local, at);
    for (int i = 0; i < 3; i++) at[i] += shape->position[i];
    memcpy(world, at, sizeof at);
    if (shape->body == 0) return; /* the world */
    tb_body_motion motion;
    tb_state_body_motion(d->state, shape->body, &motion);
    rotate(motion.orientation, at, world);
    for (int i = 0; i < 3; i++) world[i] += motion.position[i];
}

static tb_status add_polygon(drawing *d, const tb_shape_info *shape, outline *o, tb_error *error)
{
    double *corners = NULL;
    int32_t number = 0;
    tb_status status = corners_of(d, shape, &corners, &number, error);
    double(*points)[2] = status == TB_OK ? malloc(((size_t)number + 1) * sizeof *points) : NULL;
    if (status == TB_OK) o->corner = malloc(2 * ((size_t)number + 1) * sizeof *o->corner);
    if (status == TB_OK && (points == NULL || o->corner == NULL))
        status = cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL, "out of memory");
    for (int32_t i = 0; status == TB_OK && i < number; i++) {
        double world[3];
        place(d, shape, corners + 3 * i, world);
        project(d, world, points[i]);
    }
    if (status == TB_OK) o->corners = hull_of(points, number, o->corner);
    free(points);
    free(corners);
    return status;
}

static void include(view *v, const double point[2], double radius)
{
    for (int k = 0; k < 2; k++) {
        v->low[k] = fmin(v->low[k], point[k] - radius);
        v->high[k] = fmax(v->high[k], point[k] + radius);
    }
}

static tb_status add_shape(drawing *d, int32_t index, tb_error *error)
{
    tb_shape_info shape;
    const double zero[3] = {0}, z[3] = {0, 0, 1};
    double world[3], tip[3], end[2];
    tb_status status = tb_model_shape_info(d->model, index, &shape);
    if (status != TB_OK || !shape.collides) return status;
    outline *o = &d->outline[d->outlines++];
    *o = (outline){.type = shape.type, .body = shape.body, .radius = shape.size[0]};
    place(d, &shape, zero, world);
    project(d, world, o->centre);
    switch (shape.type) {
    case TB_SHAPE_PLANE:
        place(d, &shape, z, tip);
        project(d, tip, end);
        for (int k = 0; k < 2; k++) o->normal[k] = end[k] - o->centre[k];
        break;
    case TB_SHAPE_BOX:
    case TB_SHAPE_CONVEX:
        status = add_polygon(d, &shape, o, error);
        for (int32_t i = 0; i < o->corners; i++) include(&d->view, o->corner[i], 0);
        break;
    case TB_SHAPE_SPHERE:
    case TB_SHAPE_CYLINDER:
    case TB_SHAPE_CAPSULE: include(&d->view, o->centre, o->radius); break;
    default: d->outlines--; break; /* never in a world that the planar scheme steps */
    }
    return status;
}

/* ---- the page ---- */

static double x_of(const view *v, double x)
{
    return MARGIN + v->scale * (x - v->low[0]);
}

static double y_of(const view *v, double y)
{
    return v->height - MARGIN - v->scale * (y - v->low[1]);
}

/* A plane's half space as a rectangle under its edge that is larger than the page. */
static void write_plane(FILE *file, const view *v, const outline *o)
{
    const double reach = 2 * (PAGE + MOST_HEIGHT) / v->scale;
    const double *n = o->normal, along[2] = {n[1], -n[0]};
    fputs("<polygon class=\"fixed\" points=\"", file);
    for (int i = 0; i < 4; i++) {
        const double side = i == 0 || i == 3 ? -reach : reach, depth = i < 2 ? 0 : reach;
        const double x = o->centre[0] + side * along[0] - depth * n[0];
        const double y = o->centre[1] + side * along[1] - depth * n[1];
        fprintf(file, "%.2f,%.2f ", x_of(v, x), y_of(v, y));
    }
    fputs("\"/>\n", file);
}

static void write_outline(FILE *file, const drawing *d, const outline *o)
{
    const view *v = &d->view;
    const char *class = o->body == 0 ? "fixed" : "body";
    if (o->type == TB_SHAPE_PLANE) {
        write_plane(file, v, o);
        return;
    }
    if (o->corners == 0) {
        fprintf(file, "<circle class=\"%s\" cx=\"%.2f\" cy=\"%.2f\" r=\"%.2f\">", class,
                x_of(v, o->centre[0]), y_of(v, o->centre[1]), v->scale * o->radius);
    } else {
        fprintf(file, "<polygon class=\"%s\" points=\"", class);
        for (int32_t i = 0; i < o->corners; i++)
            fprintf(file, "%.2f,%.2f ", x_of(v, o->corner[i][0]), y_of(v, o->corner[i][1]));
        fputs("\">", file);
    }
    if (o->body > 0) {
        fputs("<title>", file);
        plot_write_text(file, tb_model_thing_name(d->model, TB_HANDLE_BODY, o->body), SIZE_MAX);
        fputs("</title>", file);
    }
    fputs(o->corners == 0 ? "</circle>\n" : "</polygon>\n", file);
}

/* Force on shape B of a contact in the plane, N. */
static void force_of(const drawing *d, const tb_contact_info *c, double dt, double force[2])
{
    double world[3] = {0};
    for (int k = 0; k < 3; k++)
        world[k] = (c->impulse[0] * c->normal[k] + c->impulse[1] * c->tangent1[k] +
                    c->impulse[2] * c->tangent2[k]) /
                   dt;
    project(d, world, force);
}

/* A dot at every contact and a line along the force on B; returns the largest force. */
static double write_contacts(FILE *file, const drawing *d, double dt)
{
    const int32_t n = tb_state_number_of_contacts(d->state);
    double largest = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int32_t i = 0; i < n; i++) {
            tb_contact_info c;
            double force[2], at[2];
            if (tb_state_contact(d->state, i, &c) != TB_OK) continue;
            force_of(d, &c, dt, force);
            const double size = hypot(force[0], force[1]);
            if (pass == 0) {
                largest = fmax(largest, size);
                continue;
            }
            project(d, c.position, at);
            const double x = x_of(&d->view, at[0]), y = y_of(&d->view, at[1]);
            const double length = largest > 0 ? FORCE_LENGTH * PAGE / largest : 0;
            fprintf(file,
                    "<circle class=\"contact\" cx=\"%.2f\" cy=\"%.2f\" r=\"2\"><title>%.4g "
                    "N</title></circle><line class=\"force\" x1=\"%.2f\" y1=\"%.2f\" "
                    "x2=\"%.2f\" y2=\"%.2f\"/>\n",
                    x, y, size, x, y, x + length * force[0], y - length * force[1]);
        }
    return largest;
}

static const char STYLE[] =
    "<style>text{font:14px sans-serif;fill:#222}.body{fill:#7aa6d8;fill-opacity:.5;stroke:#2b5f9e}"
    ".fixed{fill:#ddd;stroke:#888}.contact{fill:#c0392b}.force{stroke:#c0392b;stroke-width:1.5}"
    "</style>\n";

static void write_page(FILE *file, const drawing *d, double dt, const char *title)
{
    const view *v = &d->view;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" "
            "viewBox=\"0 0 %d %.0f\">\n%s<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
            PAGE, v->height, PAGE, v->height, STYLE);
    for (int pass = 0; pass < 2; pass++) /* moving bodies over fixed ones */
        for (int32_t i = 0; i < d->outlines; i++)
            if ((d->outline[i].body > 0) == (pass == 1)) write_outline(file, d, &d->outline[i]);
    const double largest = write_contacts(file, d, dt);
    fprintf(file, "<text x=\"%d\" y=\"24\">", MARGIN);
    plot_write_text(file, title, SIZE_MAX);
    fprintf(file, ", %.4g s, largest contact force %.4g N</text>\n</svg>\n",
            tb_state_time(d->state), largest);
}

static void fit(view *v)
{
    if (!(v->high[0] > v->low[0])) v->low[0] = v->low[1] = -1, v->high[0] = v->high[1] = 1;
    v->scale = fmin((PAGE - 2 * MARGIN) / (v->high[0] - v->low[0]),
                    (MOST_HEIGHT - 2 * MARGIN) / (v->high[1] - v->low[1]));
    v->height = v->scale * (v->high[1] - v->low[1]) + 2 * MARGIN + CAPTION;
}

tb_status planar_draw(const tb_model *model, const tb_state *state, double dt, const char *title,
                      const char *path, tb_error *error)
{
    const int32_t shapes = tb_model_count(model).shapes;
    drawing d = {.model = model, .state = state};
    d.view.low[0] = d.view.low[1] = INFINITY;
    d.view.high[0] = d.view.high[1] = -INFINITY;
    d.outline = calloc((size_t)shapes + 1, sizeof *d.outline);
    tb_status status = d.outline != NULL
                           ? find_plane(&d, error)
                           : cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL, "out of memory");
    for (int32_t i = 0; status == TB_OK && i < shapes; i++) status = add_shape(&d, i, error);
    FILE *file = NULL;
    if (status == TB_OK) status = files_create(path, &file, error);
    if (status == TB_OK) {
        fit(&d.view);
        write_page(file, &d, dt, title);
        status = files_close(file, path, error);
    }
    for (int32_t i = 0; i < d.outlines; i++) free(d.outline[i].corner);
    free(d.outline);
    return status;
}
