/* Length ranges of muscles that give none.
 *
 * They are found as MuJoCo finds them (its mj_setLengthRange): from the described pose the muscle is pulled
 * short, then long, by forces along its moments that accelerate the dofs at a fixed rate, while
 * velocities fade, and its length at last is an end of its range. The scene of the first reading, which has
 * no actuators yet, serves for that without gravity, fluid, contacts, springs, dampers and friction, so
 * that limits and equalities alone hold it. These do not give here, and give a little in MuJoCo: ranges differ by
 * that. */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "model/import/mjcf/mjcf.h"
#include "model/model_internal.h"
#include "tribo_step.h"

enum { DOF_LIMIT = 500 }; /* the mass matrix is dense, and factored in each step */

/* A length is at rest that changes by no more than this share a step. */
static const double REST = 1e-10;

mjcf_length_search mjcf_length_search_defaults(void)
{
    return (mjcf_length_search){.acceleration = 20,
                                .time_constant = 1,
                                .dt = 0.01,
                                .duration = 10,
                                .interval = 2,
                                .tolerance = 0.05};
}

tb_status mjcf_read_length_search(mjcf *m, const xmlNode *node, mjcf_length_search *search)
{
    static const mjcf_words WORDS = {
        .used = "mode useexisting uselimit accel maxforce timeconst timestep inttotal interval "
                "tolrange"};
    const struct {
        const char *name;
        double *number;
    } NUMBERS[] = {{"accel", &search->acceleration},      {"maxforce", &search->most_force},
                   {"timeconst", &search->time_constant}, {"timestep", &search->dt},
                   {"inttotal", &search->duration},       {"interval", &search->interval},
                   {"tolrange", &search->tolerance}};
    int32_t mode = search->off ? 0 : 1;
    bool keeps = !search->renews;
    MJCF_TRY(mjcf_check_attributes(m, node, &WORDS));
    MJCF_TRY(tb_xml_check_children(node, "", m->error));
    MJCF_TRY(tb_xml_choice(node, "mode", "none muscle muscleuser all", &mode, m->error));
    MJCF_TRY(tb_xml_bool(node, "useexisting", &keeps, m->error));
    MJCF_TRY(tb_xml_bool(node, "uselimit", &search->takes_limits, m->error));
    for (size_t i = 0; i < sizeof NUMBERS / sizeof *NUMBERS; i++) {
        MJCF_TRY(tb_xml_number(node, NUMBERS[i].name, NUMBERS[i].number, m->error));
        if (!(*NUMBERS[i].number >= 0))
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, NUMBERS[i].name,
                               "%s is below 0", NUMBERS[i].name);
    }
    if (!(search->dt > 0) || !(search->interval > 0) || !(search->duration > search->interval))
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "inttotal",
                           "a search needs timestep > 0 and inttotal > interval > 0");
    search->off = mode == 0;
    search->renews = !keeps;
    return TB_OK;
}

/* Leaves the scene its inertia and limits. */
static void bare(tb_scene *scene)
{
    memset(scene->options.gravity, 0, sizeof scene->options.gravity);
    scene->options.density = scene->options.viscosity = 0;
    for (int32_t i = 0; i < scene->number_of_joints; i++) {
        tb_joint_def *joint = &scene->joints[i];
        joint->stiffness = joint->damping = joint->dry_friction = 0;
        memset(joint->stiffness_polynomial, 0, sizeof joint->stiffness_polynomial);
        memset(joint->damping_polynomial, 0, sizeof joint->damping_polynomial);
    }
    for (int32_t i = 0; i < scene->number_of_tendons; i++) {
        tb_tendon_def *tendon = &scene->tendons[i];
        tendon->stiffness = tendon->damping = tendon->dry_friction = 0;
        memset(tendon->stiffness_polynomial, 0, sizeof tendon->stiffness_polynomial);
        memset(tendon->damping_polynomial, 0, sizeof tendon->damping_polynomial);
    }
    for (int32_t i = 0; i < scene->number_of_shapes; i++)
        scene->shapes[i].category = scene->shapes[i].mask = 0;
}

/* A model that is pulled. */
typedef struct puller {
    const mjcf_length_search *how;
    const tb_model *model;
    tb_stepper *stepper;
    tb_state *state;
    int32_t dofs, tendons;
    double *mass, *force, *row, *u; /* dofs x dofs; dofs */
    double *lengths, *moments;      /* of tendons; tendons x dofs */
    tb_error *error;
} puller;

static tb_status begin_pulling(puller *p, const tb_model *model)
{
    tb_step_options options = tb_step_defaults();
    options.dt = p->how->dt;
    options.threads = options.solve.threads = 1;
    options.backend = TB_BACKEND_CPU;
    p->model = model;
    p->dofs = model->number_of_dofs;
    p->tendons = model->number_of_tendons;
    if (p->dofs > DOF_LIMIT)
        return tb_fail(p->error, TB_RESOURCE_EXHAUSTED,
                       "lengths of muscles are found in models of up to %d dofs", DOF_LIMIT);
    const size_t n = (size_t)p->dofs, tendons = (size_t)p->tendons;
    p->mass = calloc(n * n + 1, sizeof *p->mass);
    p->force = calloc(n + 1, sizeof *p->force);
    p->row = calloc(n + 1, sizeof *p->row);
    p->u = calloc(n + 1, sizeof *p->u);
    p->lengths = calloc(tendons + 1, sizeof *p->lengths);
    p->moments = calloc(tendons * n + 1, sizeof *p->moments);
    if (!p->mass || !p->force || !p->row || !p->u || !p->lengths || !p->moments)
        return tb_fail_memory(p->error, n * (n + tendons) * sizeof *p->mass, "a mass matrix");
    MJCF_TRY(tb_state_create(model, &p->state, p->error));
    return tb_stepper_create(&options, &p->stepper, p->error);
}

static void end_pulling(puller *p)
{
    tb_state_destroy(p->state);
    tb_stepper_destroy(p->stepper);
    free(p->mass);
    free(p->force);
    free(p->row);
    free(p->u);
    free(p->lengths);
    free(p->moments);
}

/* The muscle's length and its moments, in `force`. */
static tb_status look(puller *p, const mjcf_actuator *muscle, double *length)
{
    const double gear = muscle->def.gear[0];
    memset(p->force, 0, (size_t)p->dofs * sizeof *p->force);
    if (muscle->joint >= 0) {
        const tb_model_joint *joint = &p->model->joints[muscle->joint];
        *length = gear * tb_state_q(p->state)[joint->coordinate];
        p->force[joint->dof] = gear;
        return TB_OK;
    }
    MJCF_TRY(tb_state_tendons(p->state, p->lengths, p->moments, p->error));
    *length = gear * p->lengths[muscle->tendon];
    for (int32_t i = 0; i < p->dofs; i++)
        p->force[i] = gear * p->moments[(size_t)muscle->tendon * (size_t)p->dofs + (size_t)i];
    return TB_OK;
}

/* One step under the muscle's pull (sign -1) or push (1). */
static tb_status advance(puller *p, const mjcf_actuator *muscle, double sign, double *length)
{
    const mjcf_length_search *how = p->how;
    const size_t n = (size_t)p->dofs;
    const double fade = exp(-how->dt / fmax(0.01, how->time_constant));
    for (size_t i = 0; i < n; i++) p->u[i] = fade * tb_state_u(p->state)[i];
    MJCF_TRY(tb_state_set_u(p->state, p->u, p->dofs, p->error));
    MJCF_TRY(look(p, muscle, length));
    MJCF_TRY(tb_state_mass_matrix(p->state, p->mass, p->error));
    if (tb_cholesky(p->mass, p->dofs, p->dofs) != p->dofs)
        return tb_fail(p->error, TB_INVALID_ARGUMENT,
                       "lengths of muscles need a mass matrix that is positive definite");
    memcpy(p->row, p->force, n * sizeof *p->row);
    double scale = how->acceleration / fmax(DBL_MIN, mjcf_acceleration(p->mass, p->dofs, p->row));
    double norm = 0;
    for (size_t i = 0; i < n; i++) norm = hypot(norm, p->force[i]);
    if (how->most_force > 0) scale = fmin(scale, how->most_force / fmax(DBL_MIN, norm));
    for (size_t i = 0; i < n; i++) p->force[i] *= norm > 0 ? sign * scale : 0;
    MJCF_TRY(tb_state_set_applied_force(p->state, p->force, p->dofs, p->error));
    return tb_step(p->stepper, p->state, 1, NULL, p->error);
}

/* An end of the muscle's range, the shortest (sign -1) or longest length of the last interval; *spread:
 * how much the length changes there. A length that has been at rest for an interval stays. */
static tb_status find_end(puller *p, const mjcf_actuator *muscle, double sign, double *end,
                          double *spread)
{
    const mjcf_length_search *how = p->how;
    double low = INFINITY, high = -INFINITY, before = NAN, rest = 0;
    MJCF_TRY(tb_state_reset(p->state, -1, p->error));
    for (double time = how->dt; time <= how->duration; time += how->dt) {
        double length = 0;
        /* once a row of the mass matrix */
        for (int32_t i = 0; i < p->dofs; i++) MJCF_TRY(tb_budget_check(p->error));
        MJCF_TRY(advance(p, muscle, sign, &length));
        rest = fabs(length - before) <= REST * (1 + fabs(length)) ? rest + how->dt : 0;
        before = length;
        if (rest > how->interval) low = INFINITY, high = -INFINITY;
        if (rest > how->interval || time > how->duration - how->interval) {
            low = fmin(low, length);
            high = fmax(high, length);
        }
        if (rest > how->interval) break;
    }
    *end = sign < 0 ? low : high;
    *spread = high - low;
    return TB_OK;
}

/* The muscle's range; with limits of its own to fall back on, 0 and 0 where it comes to no rest. */
static tb_status find_range(puller *p, const mjcf_actuator *muscle, bool limited, double range[2])
{
    double spread[2];
    for (int side = 0; side < 2; side++)
        MJCF_TRY(find_end(p, muscle, 2 * side - 1, &range[side], &spread[side]));
    const double size = range[1] - range[0];
    const bool rests = fmax(spread[0], spread[1]) <= p->how->tolerance * size;
    if (limited && !(rests && size > 0)) range[0] = range[1] = 0;
    if (limited) return TB_OK;
    if (!(size > 0))
        return tb_xml_fail(p->error, TB_INVALID_ARGUMENT, muscle->node, "lengthrange",
                           "pulled short and long, the muscle has lengths of %g and %g", range[0],
                           range[1]);
    if (!rests)
        return tb_xml_fail(p->error, TB_INVALID_ARGUMENT, muscle->node, "lengthrange",
                           "pulled for %g s, the muscle comes to no rest: its length still changes "
                           "by %g in a range of %g",
                           p->how->duration, fmax(spread[0], spread[1]), size);
    return TB_OK;
}

tb_status mjcf_find_lengths(mjcf *m, double **lengths)
{
    tb_model *model = NULL;
    puller p = {.how = &m->length_search, .error = m->error};
    *lengths = calloc(2 * (size_t)m->number_of_actuators + 2, sizeof **lengths);
    if (*lengths == NULL) return tb_fail_memory(m->error, 0, "lengths of muscles");
    bare(m->scene);
    tb_status status = mjcf_read_equalities(m);
    if (status == TB_OK) status = tb_scene_compile(m->scene, &model, m->error);
    if (status == TB_OK) status = begin_pulling(&p, model);
    for (int32_t i = 0; i < m->number_of_actuators && status == TB_OK; i++) {
        const mjcf_actuator *a = &m->actuators[i];
        if (!a->seeks_lengths) continue;
        const bool limited =
            a->joint >= 0 ? m->joints[a->joint].def.limited : m->tendons[a->tendon].def.limited;
        status = find_range(&p, a, limited, *lengths + 2 * (size_t)i);
    }
    end_pulling(&p);
    tb_model_destroy(model);
    return status;
}
