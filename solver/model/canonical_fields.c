/* Canonical bytes, field by field: see canonical.h. */
#include "model/canonical.h"

#include <string.h>

/* ---- numbers and texts ---- */

void tb_canonical_fail(tb_canonical *io, const char *what)
{
    if (io->status == TB_OK)
        io->status = tb_fail_field(io->error, TB_DATA_LOSS, "bytes",
                                   "model bytes are damaged: %s at byte %zu", what, io->at);
}

/* The next `size` bytes of the input, NULL at its end. */
static const unsigned char *take(tb_canonical *io, size_t size)
{
    if (io->status != TB_OK) return NULL;
    if (size > io->size - io->at) {
        tb_canonical_fail(io, "they end early");
        return NULL;
    }
    io->at += size;
    return io->in + io->at - size;
}

static void put(tb_canonical *io, const void *data, size_t size)
{
    if (io->status != TB_OK || size == 0) return;
    io->status = tb_bytes_append(io->out, data, size);
    if (io->status != TB_OK) tb_fail_memory(io->error, size, "canonical bytes");
}

static void number(tb_canonical *io, uint64_t *x, size_t size)
{
    unsigned char bytes[8];
    if (io->reading) {
        const unsigned char *from = take(io, size);
        *x = 0;
        if (from == NULL) return;
        for (size_t i = 0; i < size; i++) *x |= (uint64_t)from[i] << (8 * i);
    } else {
        for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)(*x >> (8 * i));
        put(io, bytes, size);
    }
}

void tb_canonical_u32(tb_canonical *io, uint32_t *x)
{
    uint64_t wide = *x;
    number(io, &wide, 4);
    *x = (uint32_t)wide;
}

static void io_i32(tb_canonical *io, int32_t *x)
{
    uint32_t bits = 0;
    memcpy(&bits, x, sizeof bits);
    tb_canonical_u32(io, &bits);
    memcpy(x, &bits, sizeof bits);
}

void tb_canonical_bool(tb_canonical *io, bool *x)
{
    uint64_t wide = *x;
    number(io, &wide, 1);
    if (wide > 1) tb_canonical_fail(io, "a truth value is neither 0 nor 1");
    *x = wide == 1;
}

static void io_double(tb_canonical *io, double *x)
{
    uint64_t bits = 0;
    const double positive_zero = io->reading ? 0 : *x + 0.0;
    memcpy(&bits, &positive_zero, sizeof bits);
    number(io, &bits, 8);
    if (io->reading) memcpy(x, &bits, sizeof bits);
}

static void io_doubles(tb_canonical *io, double *x, int count)
{
    for (int i = 0; i < count; i++) io_double(io, &x[i]);
}

/* Enums are int in memory and i32 in bytes; the builder checks their range. */
#define ENUM(io, x)                                                                                \
    do {                                                                                           \
        int32_t value_ = (int32_t)(x);                                                             \
        io_i32(io, &value_);                                                                       \
        if (value_ < 0 || value_ > 255) {                                                          \
            tb_canonical_fail(io, "a choice is out of range");                                     \
            value_ = 0;                                                                            \
        }                                                                                          \
        if ((io)->reading) (x) = value_;                                                           \
    } while (0)

static void io_text(tb_canonical *io, const char **text)
{
    int32_t length = io->reading ? 0 : (int32_t)strlen(*text);
    tb_canonical_count(io, &length, 1);
    if (!io->reading) {
        put(io, *text, (size_t)length);
        return;
    }
    *text = "";
    const unsigned char *from = take(io, (size_t)length);
    if (from == NULL || length == 0) return;
    if (memchr(from, 0, (size_t)length) != NULL) {
        tb_canonical_fail(io, "a name has a zero byte");
        return;
    }
    char *copy = tb_arena_take(io->arena, (size_t)length + 1);
    if (copy == NULL) {
        io->status = tb_fail_memory(io->error, (size_t)length, "name");
        return;
    }
    memcpy(copy, from, (size_t)length);
    copy[length] = 0;
    *text = copy;
}

void tb_canonical_count(tb_canonical *io, int32_t *count, size_t least)
{
    uint32_t wide = (uint32_t)*count;
    tb_canonical_u32(io, &wide);
    if (io->reading && (wide > INT32_MAX || (size_t)wide * least > io->size - io->at)) {
        tb_canonical_fail(io, "a count exceeds the remaining bytes");
        wide = 0;
    }
    *count = (int32_t)wide;
}

/* Arrays with their count, which the caller has written or read by tb_canonical_count. */
static void io_double_array(tb_canonical *io, const double **x, int32_t count)
{
    if (!io->reading) {
        for (int32_t i = 0; i < count; i++) {
            double value = (*x)[i];
            io_double(io, &value);
        }
        return;
    }
    *x = NULL;
    if (io->status != TB_OK || count == 0) return;
    if ((size_t)count * 8 > io->size - io->at) {
        tb_canonical_fail(io, "they end early");
        return;
    }
    double *copy = TB_ARENA_ARRAY(io->arena, double, count);
    if (copy == NULL) {
        io->status = tb_fail_memory(io->error, (size_t)count * sizeof *copy, "array");
        return;
    }
    for (int32_t i = 0; i < count; i++) io_double(io, &copy[i]);
    *x = copy;
}

static void io_index_array(tb_canonical *io, const int32_t **x, int32_t count)
{
    if (!io->reading) {
        for (int32_t i = 0; i < count; i++) {
            int32_t value = (*x)[i];
            io_i32(io, &value);
        }
        return;
    }
    *x = NULL;
    if (io->status != TB_OK || count == 0) return;
    if ((size_t)count * 4 > io->size - io->at) {
        tb_canonical_fail(io, "they end early");
        return;
    }
    int32_t *copy = TB_ARENA_ARRAY(io->arena, int32_t, count);
    if (copy == NULL) {
        io->status = tb_fail_memory(io->error, (size_t)count * sizeof *copy, "array");
        return;
    }
    for (int32_t i = 0; i < count; i++) io_i32(io, &copy[i]);
    *x = copy;
}

/* ---- definitions ---- */

void tb_canonical_options(tb_canonical *io, tb_scene_def *x)
{
    io_text(io, &x->name);
    io_doubles(io, x->gravity, 3);
    io_double(io, &x->dt);
    ENUM(io, x->inertia_source);
    io_double(io, &x->minimum_mass);
    io_double(io, &x->minimum_inertia);
    io_double(io, &x->total_mass);
    tb_canonical_bool(io, &x->balance_inertia);
    tb_canonical_bool(io, &x->filter_parent);
    io_i32(io, &x->inertia_groups[0]);
    io_i32(io, &x->inertia_groups[1]);
    io_double(io, &x->density);
    io_double(io, &x->viscosity);
    io_doubles(io, x->wind, 3);
}

void tb_canonical_body(tb_canonical *io, tb_body_def *x)
{
    io_text(io, &x->name);
    io_doubles(io, x->position, 3);
    io_doubles(io, x->orientation, 4);
    tb_canonical_bool(io, &x->kinematic);
    io_double(io, &x->gravity_compensation);
    tb_canonical_bool(io, &x->has_inertia);
    if (!x->has_inertia) return;
    io_double(io, &x->mass);
    io_doubles(io, x->com, 3);
    io_doubles(io, x->inertia_frame, 4);
    io_doubles(io, x->inertia, 6);
}

void tb_canonical_mesh(tb_canonical *io, tb_mesh_def *x)
{
    io_text(io, &x->name);
    tb_canonical_count(io, &x->number_of_vertices, 24);
    io_double_array(io, &x->vertices,
                    3 * (x->number_of_vertices <= TB_MESH_LIMIT ? x->number_of_vertices : 0));
    tb_canonical_count(io, &x->number_of_triangles, 12);
    io_index_array(io, &x->triangles,
                   3 * (x->number_of_triangles <= TB_MESH_LIMIT ? x->number_of_triangles : 0));
    ENUM(io, x->inertia);
    io_i32(io, &x->most_hull_vertices);
}

void tb_canonical_height_field(tb_canonical *io, tb_height_field_def *x)
{
    io_text(io, &x->name);
    io_i32(io, &x->rows);
    io_i32(io, &x->columns);
    if (x->rows < 1 || x->columns < 1 || x->columns > TB_MESH_LIMIT / x->rows) {
        tb_canonical_fail(io, "a height field has an impossible size");
        return;
    }
    io_double_array(io, &x->heights, x->rows * x->columns);
    io_double(io, &x->half_x);
    io_double(io, &x->half_y);
    io_double(io, &x->base);
}

void tb_canonical_joint(tb_canonical *io, tb_joint_def *x)
{
    io_text(io, &x->name);
    ENUM(io, x->type);
    io_doubles(io, x->position, 3);
    io_doubles(io, x->axis, 3);
    tb_canonical_bool(io, &x->limited);
    io_double(io, &x->lower);
    io_double(io, &x->upper);
    io_double(io, &x->stiffness);
    io_double(io, &x->spring_reference);
    io_double(io, &x->damping);
    io_double(io, &x->dry_friction);
    io_double(io, &x->armature);
    io_double(io, &x->reference);
    io_doubles(io, x->stiffness_polynomial, 2);
    io_doubles(io, x->damping_polynomial, 2);
    tb_canonical_bool(io, &x->actuator_force_limited);
    io_double(io, &x->actuator_force_lower);
    io_double(io, &x->actuator_force_upper);
    tb_canonical_bool(io, &x->actuators_compensate_gravity);
}

static void surface(tb_canonical *io, tb_surface *x)
{
    ENUM(io, x->kind);
    io_double(io, &x->friction);
    io_double(io, &x->restitution);
    io_double(io, &x->spin_radius);
    io_double(io, &x->rolling_length);
    io_double(io, &x->adhesion);
    io_double(io, &x->adhesion_range);
}

void tb_canonical_sleep_tolerance(tb_canonical *io, tb_scene_def *x)
{
    io_double(io, &x->sleep_tolerance);
    if (!(x->sleep_tolerance > 0)) tb_canonical_fail(io, "a tolerance is not positive");
}

void tb_canonical_tangential_restitution(tb_canonical *io, tb_surface *x)
{
    io_double(io, &x->tangential_restitution);
}

void tb_canonical_volume_constants(tb_canonical *io, tb_shape_def *x)
{
    tb_volume_constants *c = &x->volume_constants;
    tb_canonical_bool(io, &x->has_volume_constants);
    if (!x->has_volume_constants) return;
    io_double(io, &c->elasticity);
    io_double(io, &c->damping);
    io_double(io, &c->sliding_velocity);
    io_double(io, &c->static_friction);
    io_double(io, &c->kinetic_friction);
    io_double(io, &c->rotation_damping);
    io_double(io, &c->sphere_stiffness);
    tb_canonical_bool(io, &c->joined);
}

void tb_canonical_shape(tb_canonical *io, tb_shape_def *x)
{
    io_text(io, &x->name);
    ENUM(io, x->type);
    io_doubles(io, x->position, 3);
    io_doubles(io, x->orientation, 4);
    io_doubles(io, x->size, 3);
    io_double(io, &x->density);
    io_double(io, &x->mass);
    tb_canonical_bool(io, &x->shell);
    surface(io, &x->surface);
    tb_canonical_u32(io, &x->category);
    tb_canonical_u32(io, &x->mask);
    io_i32(io, &x->group);
    io_i32(io, &x->priority);
    tb_canonical_bool(io, &x->fluid_ellipsoid);
    io_doubles(io, x->fluid_coefficients, 5);
    io_doubles(io, x->surface_velocity, 6);
}

void tb_canonical_elastic(tb_canonical *io, tb_elastic_def *x)
{
    uint32_t kind = (uint32_t)x->kind;
    tb_canonical_u32(io, &kind);
    if (kind > TB_ELASTIC_HINGE) tb_canonical_fail(io, "an elastic is of an unknown kind");
    io_double(io, &x->young);
    io_double(io, &x->poisson);
    io_double(io, &x->thickness);
    io_double(io, &x->damping);
    x->kind = (tb_elastic_kind)kind;
}

void tb_canonical_element(tb_canonical *io, tb_element_def *x, uint32_t balls[3])
{
    uint32_t corners = (uint32_t)x->corners;
    tb_canonical_u32(io, &corners);
    if (corners != 2 && corners != 3)
        tb_canonical_fail(io, "an element has a wrong number of corners");
    for (uint32_t i = 0; i < 3; i++)
        if (i < corners) tb_canonical_u32(io, &balls[i]);
    uint32_t group = (uint32_t)x->group;
    tb_canonical_u32(io, &group);
    if (group > INT32_MAX) tb_canonical_fail(io, "an element's group is out of range");
    x->corners = (int32_t)corners;
    x->group = (int32_t)group;
}

/* Colour and material of a shape: an extra. */
void tb_canonical_look(tb_canonical *io, tb_shape_def *x)
{
    tb_canonical_bool(io, &x->has_colour);
    if (x->has_colour) io_doubles(io, x->colour, 4);
    io_text(io, &x->material);
}

void tb_canonical_site(tb_canonical *io, tb_site_def *x)
{
    io_text(io, &x->name);
    io_doubles(io, x->position, 3);
    io_doubles(io, x->orientation, 4);
}

void tb_canonical_tendon(tb_canonical *io, tb_tendon_def *x)
{
    io_text(io, &x->name);
    tb_canonical_count(io, &x->number_of_joints, 8);
    io_double_array(io, &x->coefficients, x->number_of_joints);
    tb_canonical_count(io, &x->number_of_points, 8);
    tb_canonical_bool(io, &x->limited);
    io_double(io, &x->lower);
    io_double(io, &x->upper);
    io_double(io, &x->stiffness);
    io_double(io, &x->damping);
    io_double(io, &x->dry_friction);
    io_double(io, &x->spring_lower);
    io_double(io, &x->spring_upper);
    io_double(io, &x->armature);
    io_doubles(io, x->stiffness_polynomial, 2);
    io_doubles(io, x->damping_polynomial, 2);
    tb_canonical_bool(io, &x->actuator_force_limited);
    io_double(io, &x->actuator_force_lower);
    io_double(io, &x->actuator_force_upper);
}

void tb_canonical_tendon_point(tb_canonical *io, tb_tendon_point *x)
{
    uint32_t kind = (uint32_t)x->kind;
    tb_canonical_u32(io, &kind);
    if (kind > TB_TENDON_PULLEY) tb_canonical_fail(io, "a point of a tendon is of no kind");
    if (io->status == TB_OK) x->kind = (tb_tendon_point_kind)kind;
    io_doubles(io, x->position, 3);
    io_doubles(io, x->orientation, 4);
    io_double(io, &x->radius);
    io_double(io, &x->divisor);
    tb_canonical_bool(io, &x->has_side);
    io_doubles(io, x->side, 3);
}

static void muscle(tb_canonical *io, tb_muscle *x)
{
    io_doubles(io, x->range, 2);
    io_double(io, &x->force);
    io_double(io, &x->shortest);
    io_double(io, &x->longest);
    io_double(io, &x->fastest);
    io_double(io, &x->passive);
    io_double(io, &x->lengthening);
}

void tb_canonical_actuator(tb_canonical *io, tb_actuator_def *x)
{
    io_text(io, &x->name);
    io_double(io, &x->rod_length);
    tb_canonical_bool(io, &x->in_parent);
    ENUM(io, x->gain_curve);
    ENUM(io, x->bias_curve);
    muscle(io, &x->muscle_gain);
    muscle(io, &x->muscle_bias);
    io_doubles(io, x->length_range, 2);
    tb_canonical_bool(io, &x->disabled);
    tb_canonical_bool(io, &x->early);
    io_doubles(io, x->muscle_times, 3);
    io_doubles(io, x->gear, 6);
    io_doubles(io, x->gain, 3);
    io_doubles(io, x->bias, 3);
    tb_canonical_bool(io, &x->control_limited);
    io_double(io, &x->control_lower);
    io_double(io, &x->control_upper);
    tb_canonical_bool(io, &x->force_limited);
    io_double(io, &x->force_lower);
    io_double(io, &x->force_upper);
    ENUM(io, x->activation);
    io_double(io, &x->time_constant);
    if (x->activation == TB_ACTIVATION_CURRENT) {
        io_double(io, &x->resistance);
        io_double(io, &x->back_emf);
    }
    tb_canonical_bool(io, &x->activation_limited);
    io_double(io, &x->activation_lower);
    io_double(io, &x->activation_upper);
    tb_canonical_bool(io, &x->is_input);
    io_double(io, &x->integral_gain);
    io_double(io, &x->integral_limit);
    io_double(io, &x->slew_rate);
    tb_canonical_bool(io, &x->slew_from_control);
    ENUM(io, x->orientation);
    io_double(io, &x->delay);
    io_i32(io, &x->samples);
    ENUM(io, x->interpolation);
}

void tb_canonical_equality(tb_canonical *io, tb_equality_def *x)
{
    io_text(io, &x->name);
    ENUM(io, x->type);
    io_doubles(io, x->anchor_a, 3);
    tb_canonical_bool(io, &x->has_anchor_b);
    io_doubles(io, x->anchor_b, 3);
    tb_canonical_bool(io, &x->has_orientation);
    io_doubles(io, x->orientation, 4);
    io_doubles(io, x->polynomial, 5);
    tb_canonical_bool(io, &x->disabled);
}

void tb_canonical_pair(tb_canonical *io, tb_pair_def *x)
{
    io_text(io, &x->name);
    surface(io, &x->surface);
}

void tb_canonical_keyframe(tb_canonical *io, tb_keyframe_def *x)
{
    io_text(io, &x->name);
    io_double(io, &x->time);
    tb_canonical_count(io, &x->number_of_q, 8);
    io_double_array(io, &x->q, x->number_of_q);
    tb_canonical_count(io, &x->number_of_u, 8);
    io_double_array(io, &x->u, x->number_of_u);
    tb_canonical_count(io, &x->number_of_controls, 8);
    io_double_array(io, &x->controls, x->number_of_controls);
    tb_canonical_count(io, &x->number_of_activations, 8);
    io_double_array(io, &x->activations, x->number_of_activations);
    tb_canonical_count(io, &x->number_of_kinematic, 8);
    io_double_array(io, &x->kinematic, x->number_of_kinematic);
}

void tb_canonical_sensor(tb_canonical *io, tb_sensor_def *x)
{
    io_text(io, &x->name);
    ENUM(io, x->type);
    tb_canonical_bool(io, &x->object_at_com);
    tb_canonical_bool(io, &x->has_reference);
    tb_canonical_bool(io, &x->reference_at_com);
    io_double(io, &x->cutoff);
    ENUM(io, x->zone_type);
    io_doubles(io, x->zone_size, 3);
}

void tb_canonical_checksum(const unsigned char *bytes, size_t size,
                           unsigned char checksum[TB_CANONICAL_CHECKSUM_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    char hex[65];
    tb_sha256_hex(bytes, size, hex);
    for (int i = 0; i < TB_CANONICAL_CHECKSUM_SIZE; i++)
        checksum[i] = (unsigned char)((strchr(digits, hex[2 * i]) - digits) << 4 |
                                      (strchr(digits, hex[2 * i + 1]) - digits));
}
