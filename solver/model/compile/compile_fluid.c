/* Compiles fluid forces: the parts of each body that the medium acts on.
 *
 * MuJoCo's two models (documentation, "Fluid forces"): a body without fluid shapes is a box with
 * the body's mass and inertia; on a body with fluid ellipsoids the medium acts through the
 * ellipsoids alone. The box's edges follow from the principal moments, I_x = m (y^2 + z^2) / 12.
 * The added mass and inertia of an ellipsoid in potential flow are Lamb's (Hydrodynamics, art. 114;
 * Tuckerman, Inertia factors of ellipsoids, 1925); they depend on
 *
 *     kappa_x = x y z int_0^inf dl / ((x^2 + l) sqrt((x^2 + l) (y^2 + l) (z^2 + l)))
 *
 * computed by the Gauss-Kronrod rule of 15 points (QUADPACK's constants) after l = s t^3 / (1 -
 * t)^2, s = (x^3 y z)^(2/5), as in MuJoCo, so that the coefficients agree. */
#include "model/model_internal.h"

#include <string.h>

static const double SMALLEST = 1e-15, EPSILON = 1e-14;

/* ---- added mass ---- */

static const double KRONROD_NODES[] = {
    0.991455371120812639206854697526329, 0.949107912342758524526189684047851,
    0.864864423359769072789712788640926, 0.741531185599394439863864773280788,
    0.586087235467691130294144691258130, 0.405845151377397166906606412076961,
    0.207784955007898467600689403773245, 0};
static const double KRONROD_WEIGHTS[] = {
    0.022935322010529224963732008058970, 0.063092092629978553290700663189204,
    0.104790010322250183839876322541518, 0.140653259715525918745189590510238,
    0.169004726639267902826583426598550, 0.190350578064785409913256402421014,
    0.204432940075298892414161999234649, 0.209482141084727828012999174891714};

/* The integrand at t, with dl/dt. */
static double kappa_term(double t, double scale, double x, double y, double z)
{
    const double l = scale * t * t * t / ((1 - t) * (1 - t));
    const double rate = scale * t * t * (3 - t) / ((1 - t) * (1 - t) * (1 - t));
    const double a = 1 + l / (x * x), b = 1 + l / (y * y), c = 1 + l / (z * z);
    return rate / (a * sqrt(a * b * c));
}

static double kappa(double x, double y, double z)
{
    const double scale = pow(x * x * x * y * z, 0.4);
    double sum = 0;
    for (int i = 0; i < 8; i++) {
        const double half = 0.5 * KRONROD_NODES[i], weight = 0.5 * KRONROD_WEIGHTS[i];
        sum += weight * kappa_term(0.5 - half, scale, x, y, z);
        if (i < 7) sum += weight * kappa_term(0.5 + half, scale, x, y, z);
    }
    return sum / (x * x);
}

/* kappa of two axes whose squares differ by `difference` and sum to `sum`, b the second one's. */
static double inertia_factor(double difference, double sum, double a, double b)
{
    return difference * difference * fabs(b - a) /
           fmax(EPSILON, fabs(2 * difference + sum * (a - b)));
}

static void add_mass(tb_model_fluid *f)
{
    const double *s = f->size;
    const double volume = 4.0 / 3 * 3.14159265358979323846 * s[0] * s[1] * s[2];
    double k[3];
    for (int i = 0; i < 3; i++) k[i] = kappa(s[i], s[(i + 1) % 3], s[(i + 2) % 3]);
    for (int i = 0; i < 3; i++) {
        const int j = (i + 1) % 3, l = (i + 2) % 3;
        const double y2 = s[j] * s[j], z2 = s[l] * s[l];
        f->added_mass[i] = volume * k[i] / fmax(EPSILON, 2 - k[i]);
        f->added_inertia[i] = volume / 5 * inertia_factor(y2 - z2, y2 + z2, k[j], k[l]);
    }
}

/* ---- ellipsoids ---- */

static void set_ellipsoid(const tb_shape_def *shape, int32_t body, tb_model_fluid *f)
{
    const tb_mat33 rotation = tb_q_matrix(tb_q_load(shape->orientation));
    f->body = body;
    f->ellipsoid = true;
    memcpy(f->position, shape->position, sizeof f->position);
    memcpy(f->rotation, rotation.m, sizeof f->rotation);
    memcpy(f->coefficients, shape->fluid_coefficients, sizeof f->coefficients);
    memcpy(f->size, shape->size, sizeof f->size);
    if (shape->type == TB_SHAPE_SPHERE) f->size[1] = f->size[2] = f->size[0];
    if (shape->type == TB_SHAPE_CAPSULE || shape->type == TB_SHAPE_CYLINDER) {
        f->size[2] = f->size[1] + (shape->type == TB_SHAPE_CAPSULE ? f->size[0] : 0);
        f->size[1] = f->size[0];
    }
    add_mass(f);
}

/* ---- boxes ---- */

static bool weighs(const tb_scene_def *options, const tb_shape_def *shape)
{
    return shape->group >= options->inertia_groups[0] &&
           shape->group <= options->inertia_groups[1] &&
           (shape->mass > 0 || (shape->mass < 0 && shape->density > 0));
}

/* Axes of the described inertia: the given axes, or the axes of the only shape with mass. The
 * axes matter if two moments are equal. */
static tb_mat33 described_axes(const tb_compiler *c, int32_t body)
{
    const tb_scene_def *options = &c->scene->options;
    const scene_body *from = &c->scene->bodies[c->scene_body[body]];
    const tb_shape_def *only = NULL;
    int32_t count = 0;
    for (int32_t i = c->body_shapes[body]; i < c->body_shapes[body + 1]; i++) {
        const tb_shape_def *shape = &c->scene->shapes[c->scene_shape[i]];
        if (weighs(options, shape)) count++, only = shape;
    }
    const bool given =
        from->inertia >= 0 && (options->inertia_source != TB_INERTIA_SHAPES || count == 0);
    if (given) return tb_q_matrix(tb_q_load(c->scene->inertias[from->inertia].frame));
    if (count == 1) return tb_q_matrix(tb_q_load(only->orientation));
    return tb_m33_identity();
}

static void set_box(const tb_compiler *c, int32_t b, tb_model_fluid *f)
{
    const tb_model_body *body = &c->bodies[b];
    const tb_mat33 inertia = tb_m33_symmetric(body->inertia);
    tb_mat33 axes = described_axes(c, b);
    const tb_mat33 back = tb_m33_transpose(&axes), local = tb_m33_rotate_symmetric(&back, &inertia);
    double moments[3] = {local.m[0], local.m[4], local.m[8]};
    const double off = fabs(local.m[1]) + fabs(local.m[2]) + fabs(local.m[5]);
    if (off > 1e-10 * (moments[0] + moments[1] + moments[2]))
        tb_m33_eigen(&inertia, moments, &axes);
    f->body = b;
    f->ellipsoid = false;
    memcpy(f->position, body->com, sizeof f->position);
    memcpy(f->rotation, axes.m, sizeof f->rotation);
    for (int i = 0; i < 3; i++) {
        const double square = moments[(i + 1) % 3] + moments[(i + 2) % 3] - moments[i];
        f->size[i] = sqrt(6 * fmax(SMALLEST, square) / body->mass);
    }
}

/* ---- all bodies ---- */

/* Writes the boxes and ellipsoids of one body that the medium acts on, and returns their number.
 * into: NULL only counts them. */
static int32_t add_body(const tb_compiler *c, int32_t b, tb_model_fluid *into)
{
    const tb_model_body *body = &c->bodies[b];
    int32_t count = 0;
    if (body->tree < 0 || body->mass < SMALLEST) return 0;
    for (int32_t i = c->body_shapes[b]; i < c->body_shapes[b + 1]; i++) {
        const tb_shape_def *shape = &c->scene->shapes[c->scene_shape[i]];
        if (!shape->fluid_ellipsoid) continue;
        if (into != NULL) set_ellipsoid(shape, b, &into[count]);
        count++;
    }
    if (count > 0) return count;
    if (into != NULL) set_box(c, b, into);
    return 1;
}

tb_status tb_compile_fluid(tb_compiler *c)
{
    tb_model *model = c->model;
    int32_t count = 0;
    bool compensates = false;
    for (int32_t b = 1; b < model->number_of_bodies; b++) {
        const bool moves = c->bodies[b].tree >= 0;
        compensates = compensates || (moves && c->bodies[b].gravity_compensation != 0);
    }
    model->compensates_gravity =
        compensates && (model->gravity[0] != 0 || model->gravity[1] != 0 || model->gravity[2] != 0);
    if (model->density == 0 && model->viscosity == 0) return TB_OK;

    for (int32_t b = 1; b < model->number_of_bodies; b++) count += add_body(c, b, NULL);
    tb_model_fluid *fluids = TB_ARENA_ZEROED(&model->arena, tb_model_fluid, count);
    if (fluids == NULL) return tb_fail_memory(c->error, (size_t)count * sizeof *fluids, "fluids");
    for (int32_t b = 1; b < model->number_of_bodies; b++) {
        tb_model_body *body = &c->bodies[b];
        body->fluid = model->number_of_fluids;
        body->number_of_fluids = add_body(c, b, fluids + body->fluid);
        model->number_of_fluids += body->number_of_fluids;
    }
    model->fluids = fluids;
    return TB_OK;
}
