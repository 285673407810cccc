/* Reads a model as a planar world, and refuses other models with the name of the offending part. */
#include "step/planar/planar.h"

#include "base/parallel.h"

#include <math.h>
#include <string.h>

/* of unit vectors: tolerance for being in the plane or along its normal */
static const double SLANT = 1e-6;

typedef struct frame {
    double position[3], rotation[9]; /* in the world */
} frame;

/* ---- frames ---- */

static void rotate(const double r[9], const double v[3], double out[3])
{
    for (int i = 0; i < 3; i++)
        out[i] = r[3 * i] * v[0] + r[3 * i + 1] * v[1] + r[3 * i + 2] * v[2];
}

static void from_quaternion(const double q[4], double r[9])
{
    const double w = q[0], x = q[1], y = q[2], z = q[3];
    const double m[9] = {1 - 2 * (y * y + z * z), 2 * (x * y - w * z),     2 * (x * z + w * y),
                         2 * (x * y + w * z),     1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                         2 * (x * z - w * y),     2 * (y * z + w * x),     1 - 2 * (x * x + y * y)};
    memcpy(r, m, sizeof m);
}

/* A body's frame in the world, all joints at their reference. */
static frame frame_of(const tb_model *m, int32_t body)
{
    frame f = {{0, 0, 0}, {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    for (; body > 0; body = m->bodies[body].parent) {
        frame up = f;
        double r[9], p[3];
        from_quaternion(m->bodies[body].orientation, r);
        rotate(r, f.position, p);
        for (int i = 0; i < 3; i++) up.position[i] = m->bodies[body].position[i] + p[i];
        for (int i = 0; i < 3; i++)
            for (int j = 0; j < 3; j++)
                up.rotation[3 * i + j] = r[3 * i] * f.rotation[j] +
                                         r[3 * i + 1] * f.rotation[3 + j] +
                                         r[3 * i + 2] * f.rotation[6 + j];
        f = up;
    }
    return f;
}

static double dot(const double a[3], const double b[3])
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static tb_planar_vec in_plane(const tb_planar_world *w, const double v[3])
{
    return (tb_planar_vec){dot(w->axis[0], v), dot(w->axis[1], v)};
}

static tb_planar_vec point_in_plane(const tb_planar_world *w, const frame *f, const double local[3])
{
    double p[3];
    rotate(f->rotation, local, p);
    for (int i = 0; i < 3; i++) p[i] += f->position[i];
    return in_plane(w, p);
}

/* ---- refusals ---- */

static tb_status refuse(const tb_model *m, tb_handle_kind kind, int32_t index, const char *what,
                        tb_error *error)
{
    static const char *const NAMES[] = {
        [TB_HANDLE_BODY] = "body", [TB_HANDLE_SHAPE] = "shape", [TB_HANDLE_JOINT] = "joint"};
    const char *name = tb_model_thing_name(m, kind, index);
    if (name[0])
        return tb_fail_field(error, TB_UNSUPPORTED, NAMES[kind], "%s '%s' %s", NAMES[kind], name,
                             what);
    return tb_fail_field(error, TB_UNSUPPORTED, NAMES[kind], "%s %d %s", NAMES[kind], (int)index,
                         what);
}

static tb_status check_model(const tb_model *m, tb_error *error)
{
    const struct {
        int32_t count;
        const char *what;
    } others[] = {{m->number_of_actuators, "actuators"},
                  {m->number_of_tendons, "tendons"},
                  {m->number_of_equalities, "equalities"},
                  {m->number_of_kinematic_bodies, "kinematic bodies"},
                  {m->number_of_fluids, "a medium"},
                  {m->number_of_pairs, "listed pairs of shapes"},
                  {m->number_of_dry_dofs, "dry friction in joints"},
                  {m->number_of_limited_joints, "joint limits"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (others[i].count > 0)
            return tb_fail_field(error, TB_UNSUPPORTED, "scheme",
                                 "the planar scheme has no %s, and the model has", others[i].what);
    return TB_OK;
}

/* ---- bodies ---- */

static bool is_free_joint(const tb_model *m, const tb_model_joint *j)
{
    const tb_model_dof *d = &m->dofs[j->dof];
    return j->stiffness == 0 && d->damping == 0 && d->armature == 0;
}

/* The plane, from the first body that moves. */
static tb_status find_plane(tb_planar_world *w, int32_t body, tb_error *error)
{
    const tb_model *m = w->model;
    const tb_model_body *b = &m->bodies[body];
    const tb_model_joint *j = m->joints + b->joint;
    if (b->number_of_joints != 3 || j[0].type != TB_JOINT_SLIDE || j[1].type != TB_JOINT_SLIDE ||
        j[2].type != TB_JOINT_HINGE)
        return refuse(m, TB_HANDLE_BODY, body,
                      "can leave the plane: the planar scheme wants two slides and then a hinge",
                      error);
    const frame f = frame_of(m, body);
    rotate(f.rotation, j[2].axis, w->normal);
    rotate(f.rotation, j[0].axis, w->axis[0]);
    const double slant = dot(w->normal, w->axis[0]);
    if (fabs(slant) > SLANT)
        return refuse(m, TB_HANDLE_BODY, body,
                      "can leave the plane: a slide is not normal to its hinge", error);
    for (int i = 0; i < 3; i++) {
        const int k = (i + 1) % 3, l = (i + 2) % 3;
        w->axis[1][i] = w->normal[k] * w->axis[0][l] - w->normal[l] * w->axis[0][k];
    }
    return TB_OK;
}

static tb_status read_body(tb_planar_world *w, int32_t body, tb_error *error)
{
    const tb_model *m = w->model;
    const tb_model_body *b = &m->bodies[body];
    const tb_model_joint *j = m->joints + b->joint;
    tb_planar_body *to = &w->bodies[w->number_of_bodies++];
    const frame f = frame_of(m, body);
    memset(to, 0, sizeof *to);
    to->body = body;
    if (b->number_of_joints != 3 || j[0].type != TB_JOINT_SLIDE || j[1].type != TB_JOINT_SLIDE ||
        j[2].type != TB_JOINT_HINGE)
        return refuse(m, TB_HANDLE_BODY, body,
                      "can leave the plane: the planar scheme wants two slides and then a hinge",
                      error);
    if (m->bodies[b->parent].fixed_to != 0)
        return refuse(m, TB_HANDLE_BODY, body, "hangs on a body that moves, not on the world",
                      error);
    for (int k = 0; k < 3; k++) {
        double axis[3];
        rotate(f.rotation, j[k].axis, axis);
        const double slant = dot(axis, w->normal);
        if (k < 2 ? fabs(slant) > SLANT : fabs(fabs(slant) - 1) > SLANT)
            return refuse(m, TB_HANDLE_BODY, body, "is out of the plane of the bodies before it",
                          error);
        if (!is_free_joint(m, &j[k]))
            return refuse(m, TB_HANDLE_JOINT, b->joint + k,
                          "has a spring, a damper or an armature, which the planar scheme has not",
                          error);
        to->dof[k] = j[k].dof;
        to->coordinate[k] = j[k].coordinate;
        if (k == 2) {
            to->turn = slant > 0 ? 1 : -1;
            continue;
        }
        const tb_planar_vec direction = in_plane(w, axis);
        to->slides[0][k] = direction.x;
        to->slides[1][k] = direction.y;
    }
    if (fabs(to->slides[0][0] * to->slides[1][1] - to->slides[0][1] * to->slides[1][0]) < SLANT)
        return refuse(m, TB_HANDLE_BODY, body, "has two slides along one line", error);
    const double *i = b->inertia; /* xx, yy, zz, xy, xz, yz */
    const double *h = j[2].axis;
    const double about = h[0] * h[0] * i[0] + h[1] * h[1] * i[1] + h[2] * h[2] * i[2] +
                         2 * (h[0] * h[1] * i[3] + h[0] * h[2] * i[4] + h[1] * h[2] * i[5]);
    to->inverse_mass = 1 / b->mass;
    to->inverse_inertia = 1 / about;
    to->anchor = point_in_plane(w, &f, j[2].position);
    const tb_planar_vec com = point_in_plane(w, &f, b->com);
    to->lever = (tb_planar_vec){com.x - to->anchor.x, com.y - to->anchor.y};
    return TB_OK;
}

/* ---- outlines ---- */

static double cross(tb_planar_vec o, tb_planar_vec a, tb_planar_vec b)
{
    return (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x);
}

/* The convex hull of some points in place, counter-clockwise, without corners on straight edges
 * (Andrew 1979); returns its number of corners. `scratch` holds 2 count points. */
static int32_t hull_of(tb_planar_vec *p, int32_t count, tb_planar_vec *scratch)
{
    double size = 0;
    for (int32_t i = 1; i < count; i++) {
        const tb_planar_vec v = p[i];
        int32_t j = i;
        for (; j > 0 && (p[j - 1].x > v.x || (p[j - 1].x == v.x && p[j - 1].y > v.y)); j--)
            p[j] = p[j - 1];
        p[j] = v;
        size = fmax(size, hypot(v.x - p[0].x, v.y - p[0].y));
    }
    const double flat = 1e-12 * size * size;
    int32_t n = 0;
    for (int32_t i = 0; i < count; i++) {
        while (n >= 2 && cross(scratch[n - 2], scratch[n - 1], p[i]) <= flat) n--;
        scratch[n++] = p[i];
    }
    for (int32_t i = count - 2, lower = n + 1; i >= 0; i--) {
        while (n >= lower && cross(scratch[n - 2], scratch[n - 1], p[i]) <= flat) n--;
        scratch[n++] = p[i];
    }
    if (n < 2) return n;
    n--; /* the first point again */
    memcpy(p, scratch, (size_t)n * sizeof *p);
    return n;
}

/* Points of a shape's surface whose hull is its outline; the shape's frame. Discs: none, the
 * radius. */
static tb_status solid_points(const tb_planar_world *w, int32_t index, const frame *f,
                              const double **points, int32_t *count, double corners[24],
                              double *radius, tb_error *error)
{
    const tb_model *m = w->model;
    const tb_model_shape *s = &m->shapes[index];
    const double along = fabs(w->normal[0] * f->rotation[2] + w->normal[1] * f->rotation[5] +
                              w->normal[2] * f->rotation[8]);
    *count = 0;
    *radius = 0;
    switch (s->type) {
    case TB_SHAPE_SPHERE: *radius = s->size[0]; return TB_OK;
    case TB_SHAPE_CYLINDER:
    case TB_SHAPE_CAPSULE:
        if (along < 1 - SLANT)
            return refuse(m, TB_HANDLE_SHAPE, index,
                          "is a cylinder or capsule that lies across the plane's normal", error);
        *radius = s->size[0];
        return TB_OK;
    case TB_SHAPE_BOX:
        for (int i = 0; i < 24; i++) corners[i] = (i / 3 >> i % 3 & 1 ? 1 : -1) * s->size[i % 3];
        *points = corners;
        *count = 8;
        return TB_OK;
    case TB_SHAPE_CONVEX:
        *points = m->hulls[s->asset].vertices;
        *count = m->hulls[s->asset].number_of_vertices;
        return TB_OK;
    case TB_SHAPE_MESH:
        return refuse(m, TB_HANDLE_SHAPE, index,
                      "is a mesh of triangles, whose outline need not be convex", error);
    default:
        return refuse(m, TB_HANDLE_SHAPE, index, "has no outline that the planar scheme knows",
                      error);
    }
}

/* Half plane: its outward normal, and the offset along it in the second corner's x. */
static tb_status read_half_plane(tb_planar_world *w, int32_t index, const frame *f,
                                 tb_planar_shape *to, tb_error *error)
{
    const double up[3] = {f->rotation[2], f->rotation[5], f->rotation[8]};
    if (fabs(dot(up, w->normal)) > SLANT)
        return refuse(w->model, TB_HANDLE_SHAPE, index, "is a plane that cuts the plane of motion",
                      error);
    to->count = 1;
    w->corners[to->first] = in_plane(w, up);
    w->corners[to->first + 1] = (tb_planar_vec){dot(up, f->position), 0};
    w->number_of_corners += 2;
    return TB_OK;
}

static tb_status read_shape(tb_planar_world *w, int32_t index, int32_t owner,
                            tb_planar_vec *scratch, tb_error *error)
{
    const tb_model *m = w->model;
    const tb_model_shape *s = &m->shapes[index];
    const tb_planar_body *body = owner >= 0 ? &w->bodies[owner] : NULL;
    const frame b = frame_of(m, s->body);
    frame f;
    rotate(b.rotation, s->position, f.position);
    for (int i = 0; i < 3; i++) f.position[i] += b.position[i];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            f.rotation[3 * i + j] = b.rotation[3 * i] * s->rotation[j] +
                                    b.rotation[3 * i + 1] * s->rotation[3 + j] +
                                    b.rotation[3 * i + 2] * s->rotation[6 + j];
    tb_planar_shape *to = &w->shapes[w->number_of_shapes++];
    memset(to, 0, sizeof *to);
    to->shape = index;
    to->owner = owner;
    to->first = w->number_of_corners;
    if (s->surface.restitution > 0 || s->surface.tangential_restitution > 0)
        return refuse(m, TB_HANDLE_SHAPE, index, "has restitution, which the planar scheme has not",
                      error);
    if (s->type == TB_SHAPE_PLANE) return read_half_plane(w, index, &f, to, error);
    const double *points = NULL;
    double box[24];
    int32_t count = 0;
    const tb_status status = solid_points(w, index, &f, &points, &count, box, &to->radius, error);
    if (status != TB_OK) return status;
    tb_planar_vec *corners = w->corners + to->first;
    static const double ORIGIN[3] = {0, 0, 0};
    if (to->radius > 0) corners[0] = point_in_plane(w, &f, ORIGIN);
    for (int32_t i = 0; i < count; i++) corners[i] = point_in_plane(w, &f, points + 3 * i);
    to->count = to->radius > 0 ? 1 : hull_of(corners, count, scratch);
    if (to->radius == 0 && to->count < 3)
        return refuse(m, TB_HANDLE_SHAPE, index, "has an outline without area", error);
    w->number_of_corners += to->count;
    for (int32_t i = 0; i < to->count && body; i++) {
        corners[i].x -= body->anchor.x + body->lever.x;
        corners[i].y -= body->anchor.y + body->lever.y;
    }
    for (int32_t i = 0; i < to->count; i++)
        to->reach = fmax(to->reach, hypot(corners[i].x, corners[i].y) + to->radius);
    return TB_OK;
}

/* ---- all of it ---- */

static int32_t most_points(const tb_model *m, const tb_model_shape *s)
{
    if (s->type == TB_SHAPE_BOX) return 8;
    return s->type == TB_SHAPE_CONVEX ? m->hulls[s->asset].number_of_vertices : 2;
}

tb_status tb_planar_read(const tb_model *model, tb_arena *arena, tb_planar_world *w,
                         tb_error *error)
{
    memset(w, 0, sizeof *w);
    w->model = model;
    tb_status status = check_model(model, error);
    if (status != TB_OK) return status;
    int64_t corners = 0, largest = 1;
    for (int32_t i = 0; i < model->number_of_colliding_shapes; i++) {
        const int32_t most = most_points(model, &model->shapes[model->colliding_shapes[i]]);
        corners += most;
        if (most > largest) largest = most;
    }
    int32_t *owner = TB_ARENA_ARRAY(arena, int32_t, model->number_of_bodies);
    tb_planar_vec *scratch = TB_ARENA_ARRAY(arena, tb_planar_vec, 2 * largest + 2);
    w->bodies = TB_ARENA_ARRAY(arena, tb_planar_body, model->number_of_trees);
    w->shapes = TB_ARENA_ARRAY(arena, tb_planar_shape, model->number_of_colliding_shapes);
    w->corners = TB_ARENA_ARRAY(arena, tb_planar_vec, corners);
    w->points = TB_ARENA_ARRAY(arena, tb_planar_vec, corners);
    w->normals = TB_ARENA_ARRAY(arena, tb_planar_vec, corners);
    w->sorted = TB_ARENA_ARRAY(arena, int32_t, model->number_of_colliding_shapes);
    if (!owner || !scratch || !w->bodies || !w->shapes || !w->corners || !w->points ||
        !w->normals || !w->sorted)
        return tb_fail_memory(error, 0, "a planar world");
    for (int32_t i = 0; i < model->number_of_colliding_shapes; i++) w->sorted[i] = i;

    for (int32_t i = 0; i < model->number_of_bodies; i++) {
        const int32_t root = model->bodies[i].fixed_to;
        owner[i] = root == i || root == 0 ? -1 : owner[root];
        if (model->bodies[i].number_of_joints == 0) continue;
        if (w->number_of_bodies == 0) status = find_plane(w, i, error);
        if (status == TB_OK && model->trees[model->bodies[i].tree].number_of_bodies != 1)
            status = refuse(model, TB_HANDLE_BODY, i, "has other bodies on it", error);
        owner[i] = w->number_of_bodies;
        if (status == TB_OK) status = read_body(w, i, error);
        if (status != TB_OK) return status;
    }
    if (w->number_of_bodies == 0)
        return tb_fail_field(error, TB_UNSUPPORTED, "scheme",
                             "no body of the model moves in a plane");
    for (int32_t i = 0; i < model->number_of_colliding_shapes; i++) {
        const int32_t shape = model->colliding_shapes[i];
        status = read_shape(w, shape, owner[model->shapes[shape].body], scratch, error);
        if (status != TB_OK) return status;
    }
    return TB_OK;
}

static double displacement(const tb_planar_world *w, const tb_planar_body *b, const double *q,
                           int k)
{
    return q[b->coordinate[k]] - w->model->q_reference[b->coordinate[k]];
}

static void box_around(tb_planar_world *w, tb_planar_shape *s)
{
    tb_planar_vec lower = {INFINITY, INFINITY}, upper = {-INFINITY, -INFINITY};
    for (int32_t i = s->first; i < s->first + s->count; i++) {
        lower.x = fmin(lower.x, w->points[i].x - s->radius);
        lower.y = fmin(lower.y, w->points[i].y - s->radius);
        upper.x = fmax(upper.x, w->points[i].x + s->radius);
        upper.y = fmax(upper.y, w->points[i].y + s->radius);
    }
    s->centre = (tb_planar_vec){(lower.x + upper.x) / 2, (lower.y + upper.y) / 2};
    s->half = (tb_planar_vec){(upper.x - lower.x) / 2, (upper.y - lower.y) / 2};
}

/* A world that is placed at a state's numbers. */
typedef struct placement {
    tb_planar_world *world;
    const double *q, *u;
} placement;

enum { PLACED_AT_ONCE = 64 };

static void place_body(void *context, int32_t i, int32_t thread)
{
    const placement *p = context;
    const tb_planar_world *w = p->world;
    const double *u = p->u;
    tb_planar_body *b = &w->bodies[i];
    (void)thread;
    const double s0 = displacement(w, b, p->q, 0), s1 = displacement(w, b, p->q, 1);
    b->angle = b->turn * displacement(w, b, p->q, 2);
    const double c = cos(b->angle), s = sin(b->angle);
    const tb_planar_vec lever = {c * b->lever.x - s * b->lever.y, s * b->lever.x + c * b->lever.y};
    b->centre.x = b->anchor.x + b->slides[0][0] * s0 + b->slides[0][1] * s1 + lever.x;
    b->centre.y = b->anchor.y + b->slides[1][0] * s0 + b->slides[1][1] * s1 + lever.y;
    const double turn = b->turn * u[b->dof[2]];
    b->velocity[0] =
        b->slides[0][0] * u[b->dof[0]] + b->slides[0][1] * u[b->dof[1]] - turn * lever.y;
    b->velocity[1] =
        b->slides[1][0] * u[b->dof[0]] + b->slides[1][1] * u[b->dof[1]] + turn * lever.x;
    b->velocity[2] = turn;
}

static void place_shape(void *context, int32_t i, int32_t thread)
{
    const placement *p = context;
    tb_planar_world *w = p->world;
    tb_planar_shape *s = &w->shapes[i];
    tb_planar_vec *points = w->points + s->first;
    (void)thread;
    if (s->owner >= 0) {
        const tb_planar_body *b = &w->bodies[s->owner];
        const double c = cos(b->angle), sine = sin(b->angle);
        for (int32_t k = 0; k < s->count; k++) {
            const tb_planar_vec corner = w->corners[s->first + k];
            points[k].x = b->centre.x + c * corner.x - sine * corner.y;
            points[k].y = b->centre.y + sine * corner.x + c * corner.y;
        }
    } else {
        memcpy(points, w->corners + s->first, (size_t)s->count * sizeof *points);
    }
    if (s->count == 1 && s->radius == 0) { /* a half plane: its offset, and no box */
        points[1] = w->corners[s->first + 1];
        return;
    }
    box_around(w, s);
    for (int32_t k = 0; k < s->count && s->count > 1; k++) {
        const tb_planar_vec from = points[k], to = points[k + 1 < s->count ? k + 1 : 0];
        const tb_planar_vec edge = {to.x - from.x, to.y - from.y};
        const double length = hypot(edge.x, edge.y);
        w->normals[s->first + k] = (tb_planar_vec){edge.y / length, -edge.x / length};
    }
}

void tb_planar_place(tb_planar_world *w, const double *q, const double *u, int32_t threads)
{
    placement p = {.world = w, .q = q, .u = u};
    tb_parallel_for(w->number_of_bodies, PLACED_AT_ONCE, threads, place_body, &p);
    tb_parallel_for(w->number_of_shapes, PLACED_AT_ONCE, threads, place_shape, &p);
}

/* Slides' coordinates of an in-plane vector. */
static void slide_numbers(const tb_planar_body *b, double x, double y, double out[2])
{
    const double det = b->slides[0][0] * b->slides[1][1] - b->slides[0][1] * b->slides[1][0];
    out[0] = (b->slides[1][1] * x - b->slides[0][1] * y) / det;
    out[1] = (b->slides[0][0] * y - b->slides[1][0] * x) / det;
}

void tb_planar_dofs(const tb_planar_body *b, double *u)
{
    const double c = cos(b->angle), s = sin(b->angle);
    const tb_planar_vec lever = {c * b->lever.x - s * b->lever.y, s * b->lever.x + c * b->lever.y};
    double slides[2];
    slide_numbers(b, b->velocity[0] + b->velocity[2] * lever.y,
                  b->velocity[1] - b->velocity[2] * lever.x, slides);
    u[b->dof[0]] = slides[0];
    u[b->dof[1]] = slides[1];
    u[b->dof[2]] = b->turn * b->velocity[2];
}

void tb_planar_coordinates(const tb_model *model, const tb_planar_body *b, double *q)
{
    const double c = cos(b->angle), s = sin(b->angle);
    const tb_planar_vec lever = {c * b->lever.x - s * b->lever.y, s * b->lever.x + c * b->lever.y};
    double slides[2];
    slide_numbers(b, b->centre.x - lever.x - b->anchor.x, b->centre.y - lever.y - b->anchor.y,
                  slides);
    q[b->coordinate[0]] = model->q_reference[b->coordinate[0]] + slides[0];
    q[b->coordinate[1]] = model->q_reference[b->coordinate[1]] + slides[1];
    q[b->coordinate[2]] = model->q_reference[b->coordinate[2]] + b->turn * b->angle;
}
