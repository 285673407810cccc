/* MJCF compiler and option: how to read the document, and the scene's own numbers.
 *
 * Both may appear several times; later ones overwrite attribute by attribute. They apply to the
 * whole document from any position. */
#include <string.h>

#include "model/import/mjcf/mjcf.h"

static const mjcf_words COMPILER = {
    .used = "angle alignfree autolimits meshdir assetdir strippath inertiafromgeom "
            "inertiagrouprange boundmass "
            "boundinertia settotalmass balanceinertia coordinate fitaabb eulerseq exactmeshinertia "
            "convexhull",
    .silent = "texturedir discardvisual usethread fusestatic conflict passthrough "
              "savecanonical "
              "savecompiled saveinertial",
};

static const mjcf_words OPTION = {
    .used = "timestep gravity wind density viscosity o_friction actuatorgroupdisable "
            "sleep_tolerance",
    .silent = "integrator cone jacobian solver iterations tolerance ls_iterations ls_tolerance "
              "noslip_iterations noslip_tolerance ccd_iterations ccd_tolerance sdf_iterations "
              "sdf_initpoints magnetic apirate mpr_iterations mpr_tolerance",
    .soft = "impratio o_margin o_solref o_solimp",
};

static const mjcf_words FLAG = {
    .used =
        "constraint equality frictionloss limit contact spring damper passive gravity clampctrl "
        "filterparent actuation override sleep",
    .silent =
        "warmstart refsafe sensor midphase nativeccd island eulerdamp autoreset energy fwdinv "
        "invdiscrete multiccd diagexact speculative ipc",
};

static tb_status read_euler_sequence(mjcf *m, const xmlNode *node)
{
    const char *text = tb_xml_attribute(node, "eulerseq");
    if (text == NULL) return TB_OK;
    if (strlen(text) != 3 || strspn(text, "xyzXYZ") != 3)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "eulerseq",
                           "eulerseq=\"%.20s\" is not three of x, y, z, X, Y, Z", text);
    memcpy(m->euler_sequence, text, 4);
    return TB_OK;
}

static tb_status read_mass_rules(mjcf *m, const xmlNode *node)
{
    int32_t source = m->scene_def.inertia_source == TB_INERTIA_GIVEN    ? 0
                     : m->scene_def.inertia_source == TB_INERTIA_SHAPES ? 1
                                                                        : 2;
    static const tb_inertia_source SOURCES[] = {TB_INERTIA_GIVEN, TB_INERTIA_SHAPES,
                                                TB_INERTIA_AUTO};
    double groups[2] = {m->scene_def.inertia_groups[0], m->scene_def.inertia_groups[1]};
    MJCF_TRY(tb_xml_choice(node, "inertiafromgeom", "false true auto", &source, m->error));
    m->scene_def.inertia_source = SOURCES[source];
    MJCF_TRY(tb_xml_numbers(node, "inertiagrouprange", 2, 2, groups, NULL, m->error));
    for (int i = 0; i < 2; i++) {
        if (groups[i] != floor(groups[i]) || fabs(groups[i]) > INT32_MAX)
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "inertiagrouprange",
                               "inertiagrouprange has %g, which is not an integer", groups[i]);
        m->scene_def.inertia_groups[i] = (int32_t)groups[i];
    }
    MJCF_TRY(tb_xml_number(node, "boundmass", &m->scene_def.minimum_mass, m->error));
    MJCF_TRY(tb_xml_number(node, "boundinertia", &m->scene_def.minimum_inertia, m->error));
    double total = m->scene_def.total_mass;
    MJCF_TRY(tb_xml_number(node, "settotalmass", &total, m->error));
    m->scene_def.total_mass = total > 0 ? total : 0;
    return tb_xml_bool(node, "balanceinertia", &m->scene_def.balance_inertia, m->error);
}

static tb_status read_compiler(mjcf *m, const xmlNode *node)
{
    MJCF_TRY(mjcf_check_attributes(m, node, &COMPILER));
    MJCF_TRY(tb_xml_check_children(node, "lengthrange", m->error));
    for (const xmlNode *c = tb_xml_first(node); c != NULL; c = tb_xml_next(c))
        MJCF_TRY(mjcf_read_length_search(m, c, &m->length_search));
    int32_t angle = m->degrees ? 1 : 0, coordinate = 0;
    bool hull = true;
    MJCF_TRY(tb_xml_choice(node, "angle", "radian degree", &angle, m->error));
    m->degrees = angle == 1;
    MJCF_TRY(tb_xml_choice(node, "coordinate", "local global", &coordinate, m->error));
    if (coordinate == 1)
        return tb_xml_fail(m->error, TB_UNSUPPORTED, node, "coordinate",
                           "coordinate=\"global\" is not supported: poses are relative to parents");
    MJCF_TRY(tb_xml_bool(node, "autolimits", &m->autolimits, m->error));
    MJCF_TRY(tb_xml_bool(node, "strippath", &m->strip_path, m->error));
    MJCF_TRY(tb_xml_bool(node, "alignfree", &m->align_free, m->error));
    MJCF_TRY(tb_xml_bool(node, "fitaabb", &m->fit_aabb, m->error));
    MJCF_TRY(tb_xml_bool(node, "exactmeshinertia", &m->exact_mesh_inertia, m->error));
    MJCF_TRY(tb_xml_bool(node, "convexhull", &hull, m->error));
    if (!hull)
        return tb_xml_fail(
            m->error, TB_UNSUPPORTED, node, "convexhull",
            "convexhull=\"false\" is not supported: mesh geoms collide as their hulls");
    MJCF_TRY(read_euler_sequence(m, node));
    return read_mass_rules(m, node);
}

/* meshdir overrules assetdir in any order */
static void read_mesh_directory(mjcf *m, const xmlNode *root)
{
    m->mesh_directory = "";
    const char *const names[] = {"assetdir", "meshdir"};
    for (int i = 0; i < 2; i++)
        for (const xmlNode *c = tb_xml_first_named(root, "compiler"); c != NULL;
             c = tb_xml_next_named(c, "compiler")) {
            const char *text = tb_xml_attribute(c, names[i]);
            if (text != NULL) m->mesh_directory = text;
        }
}

/* ---- option ---- */

static tb_status read_flag(mjcf *m, const xmlNode *node, const char *name, bool *disabled)
{
    int32_t choice = *disabled ? 0 : 1;
    MJCF_TRY(tb_xml_choice(node, name, "disable enable", &choice, m->error));
    *disabled = choice == 0;
    return TB_OK;
}

static tb_status read_flags(mjcf *m, const xmlNode *node)
{
    MJCF_TRY(mjcf_check_attributes(m, node, &FLAG));
    MJCF_TRY(tb_xml_check_children(node, "", m->error));
    bool no_constraint = false, no_passive = false, no_filter = !m->scene_def.filter_parent;
    bool no_override = !m->override, no_sleep = !m->sleeps;
    MJCF_TRY(read_flag(m, node, "constraint", &no_constraint));
    MJCF_TRY(read_flag(m, node, "equality", &m->no_equality));
    MJCF_TRY(read_flag(m, node, "frictionloss", &m->no_dry_friction));
    MJCF_TRY(read_flag(m, node, "limit", &m->no_limit));
    MJCF_TRY(read_flag(m, node, "contact", &m->no_contact));
    MJCF_TRY(read_flag(m, node, "passive", &no_passive));
    MJCF_TRY(read_flag(m, node, "spring", &m->no_spring));
    MJCF_TRY(read_flag(m, node, "damper", &m->no_damper));
    MJCF_TRY(read_flag(m, node, "gravity", &m->no_gravity));
    MJCF_TRY(read_flag(m, node, "clampctrl", &m->no_control_clamp));
    MJCF_TRY(read_flag(m, node, "filterparent", &no_filter));
    MJCF_TRY(read_flag(m, node, "actuation", &m->no_actuation));
    MJCF_TRY(read_flag(m, node, "override", &no_override));
    MJCF_TRY(read_flag(m, node, "sleep", &no_sleep));
    m->sleeps = !no_sleep;
    if (no_constraint) m->no_equality = m->no_dry_friction = m->no_limit = m->no_contact = true;
    if (no_passive) m->no_spring = m->no_damper = true;
    m->scene_def.filter_parent = !no_filter;
    m->override = !no_override;
    return TB_OK;
}

static tb_status read_medium(mjcf *m, const xmlNode *node)
{
    tb_scene_def *def = &m->scene_def;
    MJCF_TRY(tb_xml_number(node, "density", &def->density, m->error));
    MJCF_TRY(tb_xml_number(node, "viscosity", &def->viscosity, m->error));
    MJCF_TRY(tb_xml_numbers(node, "wind", 3, 3, def->wind, NULL, m->error));
    const char *field = def->density < 0 ? "density" : def->viscosity < 0 ? "viscosity" : NULL;
    if (field == NULL) return TB_OK;
    return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, field, "%s=\"%.40s\" is less than 0",
                       field, tb_xml_attribute(node, field));
}

static tb_status read_disabled_groups(mjcf *m, const xmlNode *node)
{
    double groups[31];
    int32_t count = 0;
    MJCF_TRY(tb_xml_numbers(node, "actuatorgroupdisable", 0, 31, groups, &count, m->error));
    for (int32_t i = 0; i < count; i++) {
        if (groups[i] != floor(groups[i]) || groups[i] < 0 || groups[i] > 30)
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "actuatorgroupdisable",
                               "actuatorgroupdisable has %g, which is not a group from 0 to 30",
                               groups[i]);
        m->disabled_actuator_groups |= 1u << (unsigned)groups[i];
    }
    return TB_OK;
}

static tb_status read_option(mjcf *m, const xmlNode *node)
{
    MJCF_TRY(mjcf_check_attributes(m, node, &OPTION));
    MJCF_TRY(tb_xml_check_children(node, "flag", m->error));
    MJCF_TRY(tb_xml_number(node, "timestep", &m->scene_def.dt, m->error));
    if (!(m->scene_def.dt > 0))
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "timestep",
                           "timestep is %g s, not positive", m->scene_def.dt);
    MJCF_TRY(tb_xml_numbers(node, "gravity", 3, 3, m->scene_def.gravity, NULL, m->error));
    MJCF_TRY(read_medium(m, node));
    MJCF_TRY(tb_xml_number(node, "sleep_tolerance", &m->scene_def.sleep_tolerance, m->error));
    if (m->scene_def.sleep_tolerance < 0)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "sleep_tolerance",
                           "sleep_tolerance is %g, less than 0", m->scene_def.sleep_tolerance);
    MJCF_TRY(tb_xml_numbers(node, "o_friction", 1, 5, m->override_friction, NULL, m->error));
    MJCF_TRY(read_disabled_groups(m, node));
    for (const xmlNode *c = tb_xml_first(node); c != NULL; c = tb_xml_next(c))
        MJCF_TRY(read_flags(m, c));
    return TB_OK;
}

tb_status mjcf_read_compiler(mjcf *m)
{
    const xmlNode *root = tb_xml_root(m->xml);
    m->degrees = true;
    m->autolimits = true;
    m->length_search = mjcf_length_search_defaults();
    memcpy(m->euler_sequence, "xyz", 4);
    m->scene_def = tb_scene_defaults();
    m->scene_def.inertia_groups[0] = 0;
    m->scene_def.inertia_groups[1] = 5;
    read_mesh_directory(m, root);
    for (const xmlNode *c = tb_xml_first_named(root, "compiler"); c != NULL;
         c = tb_xml_next_named(c, "compiler"))
        MJCF_TRY(read_compiler(m, c));
    m->inertia_source = m->scene_def.inertia_source;
    return TB_OK;
}

/* Bodies of attached models may take their inertia by another rule than the main model's: then each
 * body says for itself whether it is given. */
static void mix_inertia_sources(mjcf *m)
{
    for (int32_t i = 1; i < m->models->number_of_rules; i++)
        if (m->models->rules[i].inertia_source != m->inertia_source)
            m->scene_def.inertia_source = TB_INERTIA_AUTO;
}

tb_status mjcf_read_options(mjcf *m)
{
    const xmlNode *root = tb_xml_root(m->xml);
    const double friction[5] = {1, 1, 0.005, 0.0001, 0.0001};
    MJCF_TRY(mjcf_read_compiler(m));
    m->models->rules[0] = m->rules;
    mix_inertia_sources(m);
    memcpy(m->override_friction, friction, sizeof friction);
    m->scene_def.name = tb_xml_attribute(root, "model");
    m->scene_def.dt = 0.002;
    m->scene_def.gravity[0] = m->scene_def.gravity[1] = 0;
    m->scene_def.gravity[2] = -9.81;
    m->scene_def.filter_parent = true;
    m->scene_def.sleep_tolerance = 1e-4;
    MJCF_TRY(tb_xml_check_attributes(root, "model", m->error));

    for (const xmlNode *c = tb_xml_first_named(root, "option"); c != NULL;
         c = tb_xml_next_named(c, "option"))
        MJCF_TRY(read_option(m, c));

    if (!m->sleeps) m->scene_def.sleep_tolerance = 0;
    if (m->no_gravity)
        m->scene_def.gravity[0] = m->scene_def.gravity[1] = m->scene_def.gravity[2] = 0;
    if (m->no_spring && m->no_damper) /* nor any other passive force */
        m->scene_def.density = m->scene_def.viscosity = 0;
    if (m->override && m->override_friction[0] != m->override_friction[1])
        return tb_xml_fail(m->error, TB_UNSUPPORTED, tb_xml_first_named(root, "option"),
                           "o_friction",
                           "o_friction with two different sliding coefficients is not supported");
    return TB_OK;
}
