/* Length ranges of muscles that give none, found by pulling them (model/pull.h) in the scene of the first
 * reading, which has no actuators yet: without gravity, fluid, contacts, springs, dampers and friction, so
 * that limits and equalities alone hold them. These do not give here, and give a little in MuJoCo: ranges
 * differ by that. */
#include <stdlib.h>
#include <string.h>

#include "model/import/mjcf/mjcf.h"
#include "model/model_internal.h"

mjcf_length_search mjcf_length_search_defaults(void)
{
    return (mjcf_length_search){
        .pull = {.acceleration = 20, .time_constant = 1, .dt = 0.01, .duration = 10, .interval = 2},
        .tolerance = 0.05};
}

tb_status mjcf_read_length_search(mjcf *m, const xmlNode *node, mjcf_length_search *search)
{
    static const mjcf_words WORDS = {
        .used = "mode useexisting uselimit accel maxforce timeconst timestep inttotal interval "
                "tolrange"};
    tb_pull_search *pull = &search->pull;
    const struct {
        const char *name;
        double *number;
    } NUMBERS[] = {{"accel", &pull->acceleration},      {"maxforce", &pull->most_force},
                   {"timeconst", &pull->time_constant}, {"timestep", &pull->dt},
                   {"inttotal", &pull->duration},       {"interval", &pull->interval},
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
    if (!(pull->dt > 0) || !(pull->interval > 0) || !(pull->duration > pull->interval))
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

/* The muscle's range; with limits of its own to fall back on, 0 and 0 where it comes to no rest. */
static tb_status find_range(const mjcf *m, const tb_model *model, const mjcf_actuator *muscle,
                            double range[2])
{
    const mjcf_length_search *search = &m->length_search;
    const tb_pull_target target = {muscle->joint, muscle->tendon, muscle->def.gear[0]};
    const bool limited = muscle->joint >= 0 ? m->joints[muscle->joint].def.limited
                                            : m->tendons[muscle->tendon].def.limited;
    double spreads[2];
    MJCF_TRY(tb_pull_muscle(model, &search->pull, &target, range, spreads, m->error));
    const double size = range[1] - range[0], spread = fmax(spreads[0], spreads[1]);
    const bool rests = spread <= search->tolerance * size;
    if (limited && !(rests && size > 0)) range[0] = range[1] = 0;
    if (limited) return TB_OK;
    if (!(size > 0))
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, muscle->node, "lengthrange",
                           "pulled short and long, the muscle has lengths of %g and %g", range[0],
                           range[1]);
    if (!rests)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, muscle->node, "lengthrange",
                           "pulled for %g s, the muscle comes to no rest: its length still changes "
                           "by %g in a range of %g",
                           search->pull.duration, spread, size);
    return TB_OK;
}

tb_status mjcf_find_lengths(mjcf *m, double **lengths)
{
    tb_model *model = NULL;
    *lengths = calloc(2 * (size_t)m->number_of_actuators + 2, sizeof **lengths);
    if (*lengths == NULL) return tb_fail_memory(m->error, 0, "lengths of muscles");
    if (tb_pull_muscle == NULL) {
        for (int32_t i = 0; i < 2 * m->number_of_actuators; i++) (*lengths)[i] = NAN;
        return TB_OK;
    }
    bare(m->scene);
    tb_status status = mjcf_read_equalities(m);
    if (status == TB_OK) status = tb_scene_compile(m->scene, &model, m->error);
    for (int32_t i = 0; i < m->number_of_actuators && status == TB_OK; i++)
        if (m->actuators[i].seeks_lengths)
            status = find_range(m, model, &m->actuators[i], *lengths + 2 * (size_t)i);
    tb_model_destroy(model);
    return status;
}
