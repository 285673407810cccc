/* Parameters of a world (tb_parameters): friction, masses, gains, damping and dry friction of
 * joints, and sizes of shapes that differ from its model's.
 *
 * A world with parameters steps on a variant of its model (model/merge.h), so that no stage of a
 * step knows of parameters, on a processor or on a card. Forks share the variant, which is counted
 * and goes with its last owner. A snapshot holds the parameters, not the variant. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "model/merge.h"
#include "step/step.h"

struct tb_state_variant {
    atomic_int owners;
    const tb_model *origin;
    tb_model *model;
};

const tb_model *tb_variant_origin(const tb_state *state)
{
    return state->variant != NULL ? state->variant->origin : state->model;
}

tb_state_variant *tb_variant_share(tb_state_variant *variant)
{
    if (variant != NULL) atomic_fetch_add_explicit(&variant->owners, 1, memory_order_relaxed);
    return variant;
}

void tb_variant_release(tb_state_variant *variant)
{
    if (variant == NULL ||
        atomic_fetch_sub_explicit(&variant->owners, 1, memory_order_acq_rel) != 1)
        return;
    tb_model_destroy(variant->model);
    free(variant);
}

/* A device keeps its copy by the model: a world of another variant is another world there. */
void tb_variant_set(tb_state *state, tb_state_variant *variant)
{
    const tb_model *origin = tb_variant_origin(state);
    tb_state_drop_device_copy(state);
    tb_variant_release(state->variant);
    state->variant = variant;
    state->model = variant != NULL ? variant->model : origin;
    tb_sleep_wake_all(state);
}

/* ---- arrays ---- */

size_t tb_variant_numbers(const tb_model *model)
{
    return tb_variant_first_numbers(model) + 2 * (size_t)model->number_of_joints +
           3 * (size_t)model->number_of_shapes;
}

size_t tb_variant_first_numbers(const tb_model *model)
{
    return (size_t)model->number_of_shapes + (size_t)model->number_of_bodies +
           6 * (size_t)model->number_of_actuators;
}

/* The arrays of a block of tb_variant_numbers. */
static tb_parameters arrays_of(const tb_model *m, double *numbers)
{
    tb_parameters p = {.friction = numbers};
    p.mass = p.friction + m->number_of_shapes;
    p.gain = p.mass + m->number_of_bodies;
    p.bias = p.gain + 3 * m->number_of_actuators;
    p.damping = p.bias + 3 * m->number_of_actuators;
    p.dry_friction = p.damping + m->number_of_joints;
    p.size = p.dry_friction + m->number_of_joints;
    return p;
}

static void read_model(const tb_model *m, const tb_parameters *into)
{
    for (int32_t i = 0; into->friction && i < m->number_of_shapes; i++)
        into->friction[i] = m->shapes[i].surface.friction;
    for (int32_t i = 0; into->mass && i < m->number_of_bodies; i++)
        into->mass[i] = m->bodies[i].mass;
    for (int32_t i = 0; i < 3 * m->number_of_actuators; i++) {
        const tb_model_actuator *a = &m->actuators[i / 3];
        if (into->gain) into->gain[i] = a->gain[i % 3];
        if (into->bias) into->bias[i] = a->bias[i % 3];
    }
    for (int32_t i = 0; i < m->number_of_joints; i++) {
        const tb_model_dof *dof = &m->dofs[m->joints[i].dof]; /* all dofs of a joint are alike */
        if (into->damping) into->damping[i] = dof->damping;
        if (into->dry_friction) into->dry_friction[i] = dof->dry_friction;
    }
    for (int32_t i = 0; into->size && i < 3 * m->number_of_shapes; i++)
        into->size[i] = m->shapes[i / 3].size[i % 3];
}

void tb_state_parameters(const tb_state *state, const tb_parameters *into)
{
    read_model(state->model, into);
}

void tb_variant_write(const tb_state *state, double *numbers)
{
    const tb_parameters arrays = arrays_of(state->model, numbers);
    tb_state_parameters(state, &arrays);
}

/* ---- checks ---- */

static tb_status refuse(tb_error *error, const tb_model *m, const char *field, tb_handle_kind kind,
                        int32_t index, double value, const char *rule)
{
    return tb_fail_field(error, TB_INVALID_ARGUMENT, field, "%s %d ('%.80s'): %s is %g, %s",
                         kind == TB_HANDLE_SHAPE   ? "shape"
                         : kind == TB_HANDLE_BODY  ? "body"
                         : kind == TB_HANDLE_JOINT ? "joint"
                                                   : "actuator",
                         index, tb_model_thing_name(m, kind, index), field, value, rule);
}

/* The rule that a law breaks, or NULL. A muscle's numbers are not these; the pull of an adhesion
 * actuator is its control times one gain. */
static const char *broken_rule(const tb_model_actuator *a, bool is_gain, int32_t k, double value)
{
    const bool muscle = (is_gain ? a->gain_curve : a->bias_curve) == TB_CURVE_MUSCLE;
    const double own = is_gain ? a->gain[k] : a->bias[k];
    const bool pulls = a->transmission == TB_TRANSMISSION_BODY;
    if (!isfinite(value)) return "which is not finite";
    if (muscle && value != own) return "but the actuator is a muscle";
    if (pulls && is_gain && k == 0 && value < 0) return "but adhesion cannot be negative";
    if (pulls && !(is_gain && k == 0) && value != own) return "but adhesion has one gain";
    return NULL;
}

/* The rule that the k-th size of a shape breaks, or NULL. */
static const char *broken_size(const tb_model *m, const tb_model_shape *shape, int k, double value)
{
    if (value == shape->size[k]) return NULL;
    if (!isfinite(value)) return "which is not finite";
    int used = 0;
    switch (shape->type) {
    case TB_SHAPE_SPHERE: used = 1; break;
    case TB_SHAPE_CAPSULE:
    case TB_SHAPE_CYLINDER: used = 2; break;
    case TB_SHAPE_BOX:
    case TB_SHAPE_ELLIPSOID: used = 3; break;
    default: return "but only spheres, capsules, cylinders, boxes and ellipsoids take other sizes";
    }
    if (k >= used) return "but a shape of this type does not have it: expected 0";
    if (m->soft != NULL) return "but soft bodies touch the shape as the scene has it";
    for (int32_t i = 0; i < m->number_of_fluids; i++)
        if (m->fluids[i].ellipsoid && m->fluids[i].body == shape->body)
            return "but the forces of a fluid depend on it";
    if (shape->type == TB_SHAPE_CAPSULE && k == 1) /* the segment may be a point */
        return value >= 0 ? NULL : "expected a number >= 0";
    return value > 0 ? NULL : "expected a number > 0";
}

static tb_status check(const tb_model *m, const tb_parameters *p, tb_error *error)
{
    for (int32_t i = 0; i < 3 * m->number_of_shapes; i++) {
        const char *rule = broken_size(m, &m->shapes[i / 3], i % 3, p->size[i]);
        if (rule) return refuse(error, m, "size", TB_HANDLE_SHAPE, i / 3, p->size[i], rule);
    }
    for (int32_t i = 0; i < m->number_of_shapes; i++)
        if (!(p->friction[i] >= 0) || !isfinite(p->friction[i]))
            return refuse(error, m, "friction", TB_HANDLE_SHAPE, i, p->friction[i],
                          "expected a number >= 0");
    for (int32_t i = 1; i < m->number_of_bodies; i++) {
        const bool massless = m->bodies[i].mass == 0;
        if (massless && p->mass[i] != 0)
            return refuse(error, m, "mass", TB_HANDLE_BODY, i, p->mass[i],
                          "but the scene gives the body no mass, and so no inertia to scale");
        if (!massless && (!(p->mass[i] > 0) || !isfinite(p->mass[i])))
            return refuse(error, m, "mass", TB_HANDLE_BODY, i, p->mass[i], "expected a number > 0");
    }
    for (int32_t i = 0; i < 3 * m->number_of_actuators; i++) {
        const tb_model_actuator *a = &m->actuators[i / 3];
        const char *rule = broken_rule(a, true, i % 3, p->gain[i]);
        if (rule) return refuse(error, m, "gain", TB_HANDLE_ACTUATOR, i / 3, p->gain[i], rule);
        rule = broken_rule(a, false, i % 3, p->bias[i]);
        if (rule) return refuse(error, m, "bias", TB_HANDLE_ACTUATOR, i / 3, p->bias[i], rule);
    }
    for (int32_t i = 0; i < m->number_of_joints; i++) {
        static const char *const RULE = "expected a number >= 0";
        const bool free = m->trees[m->dofs[m->joints[i].dof].tree].single_free;
        if (free && p->damping[i] != 0)
            return refuse(error, m, "damping", TB_HANDLE_JOINT, i, p->damping[i],
                          "but the scene gives the free joint none");
        if (!(p->damping[i] >= 0) || !isfinite(p->damping[i]))
            return refuse(error, m, "damping", TB_HANDLE_JOINT, i, p->damping[i], RULE);
        if (!(p->dry_friction[i] >= 0) || !isfinite(p->dry_friction[i]))
            return refuse(error, m, "dry_friction", TB_HANDLE_JOINT, i, p->dry_friction[i], RULE);
    }
    return TB_OK;
}

/* ---- setting ---- */

/* Equal values give equal bytes of the model's hash: -0 becomes 0, as in a scene. */
static void clear_signs_of_zero(double *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (numbers[i] == 0) numbers[i] = 0;
}

static tb_status make_variant(const tb_model *origin, double *numbers, tb_state_variant **variant,
                              tb_error *error)
{
    *variant = NULL;
    clear_signs_of_zero(numbers, tb_variant_numbers(origin));
    const tb_parameters p = arrays_of(origin, numbers);
    tb_status status = check(origin, &p, error);
    if (status != TB_OK) return status;
    const tb_model_values values = {p.friction, p.mass,         p.gain, p.bias,
                                    p.damping,  p.dry_friction, p.size};
    tb_model *model = NULL;
    status = tb_model_vary_values(origin, &values, &model, error);
    if (status != TB_OK || model == NULL) return status;
    tb_state_variant *made = calloc(1, sizeof *made);
    if (!made) {
        tb_model_destroy(model);
        return tb_fail_memory(error, sizeof *made, "the parameters of a world");
    }
    atomic_init(&made->owners, 1);
    made->origin = origin;
    made->model = model;
    *variant = made;
    return TB_OK;
}

tb_status tb_variant_read(const tb_state *state, const void *numbers, size_t count,
                          tb_state_variant **variant, tb_error *error)
{
    const tb_model *origin = tb_variant_origin(state);
    const size_t bytes = tb_variant_numbers(origin) * sizeof(double);
    *variant = NULL;
    double *copy = malloc(bytes + 1);
    if (!copy) return tb_fail_memory(error, bytes, "the parameters of a world");
    /* numbers that the snapshot does not have yet are the model's */
    const tb_parameters arrays = arrays_of(origin, copy);
    read_model(origin, &arrays);
    memcpy(copy, numbers, count * sizeof *copy);
    tb_status status = make_variant(origin, copy, variant, error);
    if (status == TB_INVALID_ARGUMENT) {
        status = TB_DATA_LOSS;
        if (error) error->status = TB_DATA_LOSS;
    }
    free(copy);
    return status;
}

/* Takes over the variant, also after a failure. */
static tb_status set_variant(tb_state *state, tb_state_variant *variant, tb_error *error)
{
    const bool changes = state->variant != variant;
    const tb_status status = changes ? tb_state_sync_to_host(state, TB_STATE_ALL, error) : TB_OK;
    if (changes && status == TB_OK)
        tb_variant_set(state, variant);
    else
        tb_variant_release(variant);
    return status;
}

static void overlay(double *into, const double *values, int32_t count)
{
    if (values && count > 0) memcpy(into, values, (size_t)count * sizeof *into);
}

tb_status tb_state_set_parameters(tb_state *state, const tb_parameters *parameters, tb_error *error)
{
    const tb_model *origin = tb_variant_origin(state);
    const size_t bytes = tb_variant_numbers(origin) * sizeof(double);
    if (!parameters) return set_variant(state, NULL, error);
    double *numbers = malloc(bytes + 1);
    if (!numbers) return tb_fail_memory(error, bytes, "the parameters of a world");
    tb_variant_write(state, numbers);
    const tb_parameters now = arrays_of(origin, numbers);
    overlay(now.friction, parameters->friction, origin->number_of_shapes);
    overlay(now.mass, parameters->mass, origin->number_of_bodies);
    overlay(now.gain, parameters->gain, 3 * origin->number_of_actuators);
    overlay(now.bias, parameters->bias, 3 * origin->number_of_actuators);
    overlay(now.damping, parameters->damping, origin->number_of_joints);
    overlay(now.dry_friction, parameters->dry_friction, origin->number_of_joints);
    overlay(now.size, parameters->size, 3 * origin->number_of_shapes);
    now.mass[0] = origin->bodies[0].mass;

    tb_state_variant *variant = NULL;
    tb_status status = make_variant(origin, numbers, &variant, error);
    free(numbers);
    return status == TB_OK ? set_variant(state, variant, error) : status;
}

tb_status tb_state_share_parameters(tb_state *state, const tb_state *from, tb_error *error)
{
    if (tb_variant_origin(state) != tb_variant_origin(from))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "from", "the states are not of one model");
    return set_variant(state, tb_variant_share(from->variant), error);
}
