/* Checks of definitions. Scenes come from files and networks. This file refuses every invalid
 * field, naming element and field, before any arithmetic uses it. */
#include "model/model_internal.h"

#include <stdarg.h>
#include <stdio.h>

tb_check tb_check_begin(tb_handle_kind kind, const char *name, int32_t index, tb_error *error)
{
    tb_check check = {TB_OK, error, kind, name != NULL ? name : "", index};
    return check;
}

void tb_check_fail(tb_check *check, const char *field, const char *format, ...)
{
    char text[TB_ERROR_MESSAGE_SIZE];
    va_list arguments;
    if (check->status != TB_OK) return;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (check->kind == TB_HANDLE_NONE)
        check->status =
            tb_fail_field(check->error, TB_INVALID_ARGUMENT, field, "scene: %s %s", field, text);
    else if (check->name[0] != 0)
        check->status =
            tb_fail_field(check->error, TB_INVALID_ARGUMENT, field, "%s '%.100s': %s %s",
                          tb_handle_kind_name(check->kind), check->name, field, text);
    else
        check->status =
            tb_fail_field(check->error, TB_INVALID_ARGUMENT, field, "%s %d: %s %s",
                          tb_handle_kind_name(check->kind), (int)check->index, field, text);
}

void tb_check_numbers(tb_check *check, const char *field, double *x, int count)
{
    for (int i = 0; i < count && check->status == TB_OK; i++) {
        if (!isfinite(x[i]))
            tb_check_fail(check, field, "must be finite, not %g", x[i]);
        else if (fabs(x[i]) > TB_LARGEST_NUMBER)
            tb_check_fail(check, field, "%g is out of range", x[i]);
        x[i] += 0.0; /* -0 becomes 0 */
    }
}

void tb_check_not_negative(tb_check *check, const char *field, double *x, int count)
{
    tb_check_numbers(check, field, x, count);
    for (int i = 0; i < count && check->status == TB_OK; i++)
        if (x[i] < 0) tb_check_fail(check, field, "must not be negative, but is %g", x[i]);
}

void tb_check_positive(tb_check *check, const char *field, double *x, int count)
{
    tb_check_numbers(check, field, x, count);
    for (int i = 0; i < count && check->status == TB_OK; i++)
        if (!(x[i] > 0)) tb_check_fail(check, field, "must be positive, but is %g", x[i]);
}

void tb_check_bounds(tb_check *check, const char *field, bool on, double *lower, double *upper)
{
    if (!on) {
        *lower = *upper = 0;
        return;
    }
    if (check->status != TB_OK) return;
    if (!isfinite(*lower) || !isfinite(*upper))
        tb_check_fail(check, field, "must be finite, not %g to %g", *lower, *upper);
    else if (*lower > *upper)
        tb_check_fail(check, field, "range from %g to %g is empty", *lower, *upper);
    *lower += 0.0;
    *upper += 0.0;
}

/* Normalises in place; a vector of unit length to rounding stays unchanged. */
static void make_unit(tb_check *check, const char *field, double *x, int count)
{
    tb_check_numbers(check, field, x, count);
    if (check->status != TB_OK) return;
    double square = 0;
    for (int i = 0; i < count; i++) square += x[i] * x[i];
    if (fabs(square - 1) <= 1e-14) return;
    if (square < TB_SMALLEST_DIRECTION * TB_SMALLEST_DIRECTION) {
        tb_check_fail(check, field, "is zero and has no direction");
        return;
    }
    const double length = sqrt(square);
    for (int i = 0; i < count; i++) x[i] = x[i] / length + 0.0;
}

void tb_check_quaternion(tb_check *check, const char *field, double q[4])
{
    make_unit(check, field, q, 4);
}

void tb_check_axis(tb_check *check, const char *field, double v[3])
{
    make_unit(check, field, v, 3);
}

void tb_check_surface(tb_check *check, tb_surface *surface)
{
    if (surface->kind != TB_CONTACT_FRICTIONLESS && surface->kind != TB_CONTACT_COULOMB &&
        surface->kind != TB_CONTACT_SPIN && surface->kind != TB_CONTACT_ROLLING)
        tb_check_fail(check, "surface.kind", "must be 1, 3, 4 or 6, not %d", (int)surface->kind);
    tb_check_not_negative(check, "surface.friction", &surface->friction, 1);
    tb_check_not_negative(check, "surface.restitution", &surface->restitution, 1);
    if (check->status == TB_OK && surface->restitution > 1)
        tb_check_fail(check, "surface.restitution", "must be at most 1, but is %g",
                      surface->restitution);
    tb_check_not_negative(check, "surface.tangential_restitution", &surface->tangential_restitution,
                          1);
    if (check->status == TB_OK && surface->tangential_restitution > 1)
        tb_check_fail(check, "surface.tangential_restitution", "must be at most 1, but is %g",
                      surface->tangential_restitution);
    tb_check_not_negative(check, "surface.spin_radius", &surface->spin_radius, 1);
    tb_check_not_negative(check, "surface.rolling_length", &surface->rolling_length, 1);
    tb_check_not_negative(check, "surface.adhesion", &surface->adhesion, 1);
    tb_check_not_negative(check, "surface.adhesion_range", &surface->adhesion_range, 1);
}

void tb_check_volume_constants(tb_check *check, tb_volume_constants *c)
{
    tb_check_positive(check, "volume_constants.elasticity", &c->elasticity, 1);
    tb_check_not_negative(check, "volume_constants.damping", &c->damping, 1);
    tb_check_positive(check, "volume_constants.sliding_velocity", &c->sliding_velocity, 1);
    tb_check_not_negative(check, "volume_constants.static_friction", &c->static_friction, 1);
    tb_check_not_negative(check, "volume_constants.kinetic_friction", &c->kinetic_friction, 1);
    if (check->status == TB_OK && c->kinetic_friction > c->static_friction)
        tb_check_fail(check, "volume_constants.kinetic_friction",
                      "%g is above static_friction, which is %g", c->kinetic_friction,
                      c->static_friction);
    tb_check_not_negative(check, "volume_constants.rotation_damping", &c->rotation_damping, 1);
    tb_check_not_negative(check, "volume_constants.sphere_stiffness", &c->sphere_stiffness, 1);
}

static int32_t count_of(const tb_scene *scene, tb_handle_kind kind)
{
    switch (kind) {
    case TB_HANDLE_BODY: return scene->number_of_bodies;
    case TB_HANDLE_JOINT: return scene->number_of_joints;
    case TB_HANDLE_SHAPE: return scene->number_of_shapes;
    case TB_HANDLE_MESH: return scene->number_of_meshes;
    case TB_HANDLE_HEIGHT_FIELD: return scene->number_of_height_fields;
    case TB_HANDLE_SITE: return scene->number_of_sites;
    case TB_HANDLE_TENDON: return scene->number_of_tendons;
    case TB_HANDLE_ACTUATOR: return scene->number_of_actuators;
    case TB_HANDLE_EQUALITY: return scene->number_of_equalities;
    case TB_HANDLE_PAIR: return scene->number_of_pairs;
    case TB_HANDLE_EXCLUDE: return scene->number_of_excludes;
    case TB_HANDLE_KEYFRAME: return scene->number_of_keyframes;
    case TB_HANDLE_SENSOR: return scene->number_of_sensors;
    default: return 0;
    }
}

void tb_check_handle(tb_check *check, const tb_scene *scene, const char *field, tb_handle handle,
                     tb_handle_kind kind, bool optional, int32_t *index)
{
    *index = -1;
    if (check->status != TB_OK || (optional && tb_handle_is_none(handle))) return;
    tb_error inner = {0};
    if (tb_handle_index(handle, kind, scene->owner, count_of(scene, kind), field, index, &inner) !=
        TB_OK)
        tb_check_fail(check, field, "is wrong: %s", inner.message);
}

void tb_check_name(tb_check *check, const tb_scene *scene)
{
    const char *why = "";
    if (check->status != TB_OK || check->name[0] == 0) return;
    if (!tb_name_is_valid(check->name, &why)) {
        check->name = "";
        tb_check_fail(check, "name", "%s", why);
    } else if (tb_names_find(&scene->names, check->kind, check->name) >= 0) {
        tb_check_fail(check, "name", "is used twice");
    }
}

void tb_check_inertia(tb_check *check, const tb_scene_def *options, const scene_inertia *given)
{
    if (check->status != TB_OK || options->inertia_source == TB_INERTIA_SHAPES) return;
    double moments[3];
    tb_mat33 axes;
    const tb_mat33 matrix = tb_m33_symmetric(given->inertia);
    tb_m33_eigen(&matrix, moments, &axes);
    if (moments[2] < -1e-9 * fabs(moments[0]))
        tb_check_fail(check, "inertia", "must not have a negative principal moment, but has %g",
                      moments[2]);
    else if (!tb_moments_repair(moments, options->minimum_inertia, options->balance_inertia))
        tb_check_fail(check, "inertia",
                      "breaks the triangle inequality: %g + %g < %g (balance_inertia, or tribo's "
                      "--balance-inertia, repairs it)",
                      moments[1], moments[2], moments[0]);
}
