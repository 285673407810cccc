/* MJCF geoms: the shapes of bodies.
 *
 * A geom without contact and mass is visual only and is left out with its mesh, unless the caller
 * asks for visuals: robot models carry large meshes of that kind. */
#include <string.h>

#include "base/file.h"
#include "model/import/mjcf/mjcf.h"
#include "model/model_internal.h"

static const mjcf_words GEOM = {
    .used = "name class type pos quat axisangle xyaxes zaxis euler size fromto contype conaffinity "
            "condim "
            "group friction mass density shellinertia hfield mesh fitscale priority fluidshape "
            "fluidcoef surfacevel adhesion gap restitution tangential_restitution material rgba",
    .silent = "castshadow user",
    .soft = "solmix solref solimp margin",
};

static const char *const TYPE_WORDS = "plane hfield sphere capsule ellipsoid cylinder box mesh sdf";
enum { PLANE, HFIELD, SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX, MESH, SDF };

static const tb_shape_type TYPES[] =
    {
        TB_SHAPE_PLANE,     TB_SHAPE_HEIGHT_FIELD, TB_SHAPE_SPHERE, TB_SHAPE_CAPSULE,
        TB_SHAPE_ELLIPSOID, TB_SHAPE_CYLINDER,     TB_SHAPE_BOX,    TB_SHAPE_CONVEX,
        TB_SHAPE_MESH, /* the surface itself, with its hollows */
};

/* MuJoCo bounds the torque of spin by the torsional coefficient (m) times the normal force; here it
 * is bounded by 2/3 mu spin_radius times it. */
tb_status mjcf_surface(mjcf *m, const xmlNode *node, int32_t condim, double sliding,
                       double torsional, double rolling, tb_surface *surface)
{
    if (condim != 1 && condim != 3 && condim != 4 && condim != 6)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "condim",
                           "condim is %d, not one of 1, 3, 4, 6", (int)condim);
    if (sliding < 0 || torsional < 0 || rolling < 0)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "friction",
                           "friction has a negative coefficient");
    *surface = tb_surface_defaults();
    surface->kind = (tb_contact_kind)condim;
    surface->friction = sliding;
    surface->restitution = 0;
    surface->spin_radius = sliding > 0 ? 1.5 * torsional / sliding : 0;
    surface->rolling_length = rolling;
    return TB_OK;
}

/* A mask as MuJoCo keeps it: 32 bits of an integer that may be written as a negative number. */
static tb_status read_mask(mjcf *m, const mjcf_element *element, const char *name, uint32_t *mask)
{
    double number = 1;
    MJCF_TRY(mjcf_number(m, element, name, &number));
    if (number != floor(number) || number < INT32_MIN || number > UINT32_MAX)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, element->node, name,
                           "%s=\"%g\" is not a mask of 32 bits", name, number);
    *mask = (uint32_t)(int64_t)number;
    return TB_OK;
}

tb_status mjcf_adhesion(mjcf *m, const mjcf_element *element, tb_surface *surface)
{
    MJCF_TRY(mjcf_number(m, element, "adhesion", &surface->adhesion));
    MJCF_TRY(mjcf_number(m, element, "gap", &surface->adhesion_range));
    const char *field = surface->adhesion < 0         ? "adhesion"
                        : surface->adhesion_range < 0 ? "gap"
                                                      : NULL;
    if (field == NULL) return TB_OK;
    return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, element->node, field, "%s is less than 0",
                       field);
}

tb_status mjcf_restitution(mjcf *m, const mjcf_element *element, tb_surface *surface)
{
    static const char *const NAMES[] = {"restitution", "tangential_restitution"};
    double *const numbers[] = {&surface->restitution, &surface->tangential_restitution};
    for (int i = 0; i < 2; i++) {
        MJCF_TRY(mjcf_number(m, element, NAMES[i], numbers[i]));
        if (!(*numbers[i] >= 0 && *numbers[i] <= 1))
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, element->node, NAMES[i],
                               "%s is %g, not from 0 to 1", NAMES[i], *numbers[i]);
    }
    return TB_OK;
}

static tb_status read_surface(mjcf *m, const mjcf_element *element, tb_surface *surface)
{
    double friction[3] = {1, 0.005, 0.0001};
    int32_t condim = 3;
    MJCF_TRY(mjcf_integer(m, element, "condim", &condim));
    MJCF_TRY(mjcf_numbers(m, element, "friction", 1, 3, friction, NULL));
    if (m->override) {
        friction[0] = m->override_friction[0];
        friction[1] = m->override_friction[2];
        friction[2] = m->override_friction[3];
    }
    MJCF_TRY(
        mjcf_surface(m, element->node, condim, friction[0], friction[1], friction[2], surface));
    MJCF_TRY(mjcf_restitution(m, element, surface));
    return mjcf_adhesion(m, element, surface);
}

static tb_status check_size(mjcf *m, const xmlNode *node, int32_t type, tb_shape_def *def)
{
    static const int NUMBERS[] = {0, 0, 1, 2, 3, 2, 3, 0, 0};
    for (int i = 0; i < NUMBERS[type]; i++)
        if (!(def->size[i] > 0))
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "size",
                               "size %d is %g, not positive", i + 1, def->size[i]);
    /* numbers beyond those of the type are ignored */
    for (int i = NUMBERS[type]; i < 3; i++) def->size[i] = 0;
    return TB_OK;
}

static tb_status read_size(mjcf *m, const mjcf_element *element, int32_t type, tb_shape_def *def,
                           mjcf_pose *pose)
{
    double half_length = 0;
    bool ends = false;
    MJCF_TRY(mjcf_numbers(m, element, "size", 1, 3, def->size, NULL));
    MJCF_TRY(mjcf_fromto(m, element, pose, &half_length, &ends));
    if (ends) {
        if (type == CAPSULE || type == CYLINDER) {
            def->size[1] = half_length;
        } else if (type == BOX || type == ELLIPSOID) {
            def->size[1] = def->size[0];
            def->size[2] = half_length;
        } else {
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, element->node, "fromto",
                               "fromto is for capsules, cylinders, boxes and ellipsoids");
        }
    }
    return check_size(m, element->node, type, def);
}

static tb_status read_mass(mjcf *m, const mjcf_element *element, tb_shape_def *def)
{
    def->density = 1000;
    def->mass = -1;
    const bool given = mjcf_text(element, "mass") != NULL;
    MJCF_TRY(mjcf_number(m, element, "mass", &def->mass));
    MJCF_TRY(mjcf_number(m, element, "density", &def->density));
    MJCF_TRY(mjcf_bool(m, element, "shellinertia", &def->shell));
    if (given && def->mass < 0)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, element->node, "mass",
                           "mass is %g kg, less than 0", def->mass);
    if (def->density < 0)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, element->node, "density",
                           "density is %g kg/m^3, less than 0", def->density);
    return TB_OK;
}

/* How the medium acts on the geom; without a medium nothing is kept of it. */
static tb_status read_fluid(mjcf *m, const mjcf_element *element, tb_shape_def *def)
{
    int32_t shape = 0;
    const double coefficients[5] = {0.5, 0.25, 1.5, 1, 1};
    MJCF_TRY(mjcf_choice(m, element, "fluidshape", "none ellipsoid", &shape));
    memcpy(def->fluid_coefficients, coefficients, sizeof coefficients);
    MJCF_TRY(mjcf_numbers(m, element, "fluidcoef", 1, 5, def->fluid_coefficients, NULL));
    const bool medium = m->scene_def.density > 0 || m->scene_def.viscosity > 0;
    def->fluid_ellipsoid = medium && shape == 1;
    return TB_OK;
}

/* Whether the geom counts for the inertia of its body, if that comes from geoms. */
static bool weighs(const mjcf *m, const tb_shape_def *def)
{
    return (def->mass > 0 || (def->mass < 0 && def->density > 0)) &&
           def->group >= m->scene_def.inertia_groups[0] &&
           def->group <= m->scene_def.inertia_groups[1];
}

/* The geom's colour, else its material's. */
static tb_status read_look(mjcf *m, const mjcf_element *element, tb_shape_def *def)
{
    const char *material = mjcf_text(element, "material");
    def->material = material;
    if (material != NULL) {
        const int32_t index = tb_names_find(&m->names, MJCF_MATERIAL_KIND, material);
        def->has_colour = index >= 0;
        if (index >= 0) memcpy(def->colour, m->materials[index].colour, sizeof def->colour);
    }
    if (mjcf_text(element, "rgba") == NULL) return TB_OK;
    const double grey[4] = {0.5, 0.5, 0.5, 1};
    memcpy(def->colour, grey, sizeof grey);
    def->has_colour = true;
    return mjcf_numbers(m, element, "rgba", 1, 4, def->colour, NULL);
}

/* Whether the geom can neither touch anything nor weigh anything. */
static bool is_only_seen(const mjcf *m, const xmlNode *node, const tb_shape_def *def,
                         bool has_inertia)
{
    if (def->category != 0 || def->mask != 0 || def->fluid_ellipsoid) return false;
    const char *name = tb_xml_attribute(node, "name");
    if (name != NULL && tb_names_find(&m->names, TB_HANDLE_PAIR, name) >= 0) return false;
    const bool given = m->inertia_source == TB_INERTIA_GIVEN ||
                       (m->inertia_source == TB_INERTIA_AUTO && has_inertia);
    return def->body.index == 0 || !weighs(m, def) || given;
}

static tb_status add(mjcf *m, const xmlNode *node, const mjcf_pose *pose, tb_shape_def *def)
{
    tb_error refusal = {0};
    tb_v3_store(def->position, pose->position);
    tb_q_store(def->orientation, pose->orientation);
    if (m->no_contact) def->category = def->mask = 0;
    if (tb_scene_add_shape(m->scene, def, NULL, &refusal) != TB_OK)
        return mjcf_refused(m, node, &refusal);
    if (weighs(m, def)) {
        m->number_of_weighing++;
        m->weighing_axes = pose->orientation;
        m->weighing_mesh = def->type == TB_SHAPE_CONVEX || def->type == TB_SHAPE_MESH;
    }
    return TB_OK;
}

/* The ellipsoid that the medium acts on in place of a mesh: along each principal axis it reaches as
 * far from the centre of mass as the farthest vertex does (MuJoCo's geom size of a mesh). It has no
 * mass and no contacts. */
static tb_status add_fluid_ellipsoid(mjcf *m, const xmlNode *node, const char *mesh,
                                     const mjcf_pose *pose, tb_shape_def *def)
{
    const mjcf_extent *extent = NULL;
    MJCF_TRY(mjcf_measure_mesh(m, node, mesh, &extent));
    tb_shape_def ellipsoid = *def;
    ellipsoid.name = NULL;
    ellipsoid.type = TB_SHAPE_ELLIPSOID;
    ellipsoid.asset = (tb_handle){0};
    ellipsoid.category = ellipsoid.mask = 0;
    ellipsoid.mass = 0;
    for (int i = 0; i < 3; i++)
        ellipsoid.size[i] = fmax(fabs(extent->lower[i]), fabs(extent->upper[i]));
    def->fluid_ellipsoid = false;
    const mjcf_pose placed = mjcf_pose_mul(pose, &extent->principal);
    return add(m, node, &placed, &ellipsoid);
}

static tb_status read_geom(mjcf *m, const xmlNode *node, int32_t childclass, const mjcf_pose *frame,
                           tb_handle body, bool has_inertia, bool *only_seen)
{
    mjcf_element element;
    int32_t type = SPHERE;
    double fit_scale = 1;
    mjcf_pose pose;
    tb_shape_def def = tb_shape_defaults();
    def.body = body;
    for (const xmlNode *c = tb_xml_first(node); c != NULL; c = tb_xml_next(c))
        return tb_xml_fail(
            m->error, tb_xml_is(c, "plugin") ? TB_UNSUPPORTED : TB_INVALID_ARGUMENT, c, NULL,
            tb_xml_is(c, "plugin") ? "plugins are not supported" : "unknown element in 'geom'");
    MJCF_TRY(mjcf_open(m, node, "geom", childclass, &GEOM, &element));
    MJCF_TRY(mjcf_choice(m, &element, "type", TYPE_WORDS, &type));
    MJCF_TRY(mjcf_read_pose(m, &element, &pose));
    MJCF_TRY(read_mask(m, &element, "contype", &def.category));
    MJCF_TRY(read_mask(m, &element, "conaffinity", &def.mask));
    MJCF_TRY(mjcf_integer(m, &element, "group", &def.group));
    MJCF_TRY(mjcf_integer(m, &element, "priority", &def.priority));
    MJCF_TRY(mjcf_number(m, &element, "fitscale", &fit_scale));
    MJCF_TRY(read_surface(m, &element, &def.surface));
    MJCF_TRY(read_mass(m, &element, &def));
    MJCF_TRY(read_fluid(m, &element, &def));
    MJCF_TRY(read_look(m, &element, &def));
    MJCF_TRY(mjcf_numbers(m, &element, "surfacevel", 1, 6, def.surface_velocity, NULL));
    const char *mesh_name = mjcf_text(&element, "mesh");
    const char *hfield_name = mjcf_text(&element, "hfield");
    const bool fitted = mesh_name != NULL && type != MESH && type != SDF;
    if (!fitted) MJCF_TRY(read_size(m, &element, type, &def, &pose));
    MJCF_TRY(mjcf_name(m, node, &def.name));
    if (!fitted) {
        const mjcf_pose placed = mjcf_pose_mul(frame, &pose);
        MJCF_TRY(mjcf_note_round(m, &def, TYPES[type], &placed));
    }
    *only_seen = is_only_seen(m, node, &def, has_inertia);
    if (*only_seen && !m->options->visuals) return TB_OK;
    if (*only_seen) def.mass = 0;
    if (fitted && mjcf_text(&element, "fromto") != NULL)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "fromto",
                           "fromto stands beside mesh, which gives the size");

    /* from here on the element's sources are gone: assets have defaults too */
    def.type = TYPES[type];
    pose = mjcf_pose_mul(frame, &pose);
    if (fitted) {
        if (type == PLANE || type == HFIELD)
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "mesh",
                               "a %s cannot be fitted to a mesh",
                               type == PLANE ? "plane" : "height field");
        MJCF_TRY(mjcf_fit(m, node, mesh_name, fit_scale, &def, &pose));
        MJCF_TRY(check_size(m, node, type, &def));
        MJCF_TRY(mjcf_note_round(m, &def, TYPES[type], &pose));
    }
    if (type == MESH || type == SDF) {
        const mjcf_mesh *mesh = NULL;
        if (mesh_name == NULL)
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "mesh",
                               "attribute 'mesh' is missing");
        MJCF_TRY(mjcf_use_mesh(m, node, mesh_name, &mesh));
        def.asset = mesh->handle;
        /* without faces the surface is that of the hull of the points */
        if (!mesh->has_faces) def.type = TB_SHAPE_CONVEX;
        def.shell = false;
        if (def.fluid_ellipsoid) MJCF_TRY(add_fluid_ellipsoid(m, node, mesh_name, &pose, &def));
        pose = mjcf_pose_mul(&pose, &mesh->offset);
    } else if (type == HFIELD) {
        if (hfield_name == NULL)
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "hfield",
                               "attribute 'hfield' is missing");
        MJCF_TRY(mjcf_use_hfield(m, node, hfield_name, &def.asset));
    }
    return add(m, node, &pose, &def);
}

tb_status mjcf_read_geom(mjcf *m, const xmlNode *node, int32_t childclass, const mjcf_pose *frame,
                         tb_handle body, bool has_inertia)
{
    tb_error *const error = m->error;
    tb_error refusal = {0};
    bool only_seen = false;
    m->error = &refusal;
    const tb_status status = read_geom(m, node, childclass, frame, body, has_inertia, &only_seen);
    m->error = error;
    if (status == TB_OK) return TB_OK;
    const bool bad_mesh = only_seen && status != TB_RESOURCE_EXHAUSTED && status != TB_CANCELLED &&
                          status != TB_DEADLINE_EXCEEDED;
    if (bad_mesh)
        return mjcf_note_past(m, node, "geom", "is only seen and cannot be read: left out");
    if (error != NULL) *error = refusal;
    return status;
}

/* ---- constants of the volume law ---- */

/* Replaces constants by those of a text "elasticity=1e6 damping=0.5". */
static tb_status read_constants(mjcf *m, const xmlNode *node, tb_volume_constants *c)
{
    const struct {
        const char *name;
        double *value;
    } words[] = {{"elasticity", &c->elasticity},
                 {"damping", &c->damping},
                 {"sliding_velocity", &c->sliding_velocity},
                 {"static_friction", &c->static_friction},
                 {"kinetic_friction", &c->kinetic_friction},
                 {"rotation_damping", &c->rotation_damping},
                 {"sphere_stiffness", &c->sphere_stiffness}};
    const int count = (int)(sizeof words / sizeof *words);
    const char *text = NULL;
    MJCF_TRY(tb_xml_require(node, "data", &text, m->error));
    while (*(text += strspn(text, " \t\r\n"))) {
        const size_t all = strcspn(text, " \t\r\n"), length = strcspn(text, "= \t\r\n");
        int i = 0;
        while (i < count &&
               (strlen(words[i].name) != length || strncmp(words[i].name, text, length) != 0))
            i++;
        const bool joined = length == 6 && strncmp(text, "joined", 6) == 0;
        const char *end = text + length + 1;
        double value = 0;
        if ((i == count && !joined) || text[length] != '=' || !tb_parse_number(&end, &value) ||
            end != text + all || (joined && value != 0 && value != 1))
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "data",
                               "'%.*s' is no constant of the volume law with its number",
                               (int)(all < 80 ? all : 80), text);
        if (joined)
            c->joined = value != 0;
        else
            *words[i].value = value;
        text += all;
    }
    return TB_OK;
}

/* Sets the constants of the shapes from `first` up to `end`. */
static tb_status set_constants(mjcf *m, const xmlNode *node, int32_t first, int32_t end)
{
    for (int32_t i = first; i < end; i++) {
        tb_error refusal = {0};
        tb_volume_constants c = m->scene->shapes[i].volume_constants;
        MJCF_TRY(read_constants(m, node, &c));
        if (tb_scene_set_volume_constants(m->scene, i, &c, &refusal) != TB_OK)
            return mjcf_refused(m, node, &refusal);
    }
    return TB_OK;
}

/* Texts for all geoms come before those for one, wherever they are in the file. */
tb_status mjcf_read_volume_constants(mjcf *m)
{
    static const char PREFIX[] = "volume_law";
    const size_t length = sizeof PREFIX - 1;
    const xmlNode *root = tb_xml_root(m->xml);
    for (int single = 0; single < 2; single++)
        for (const xmlNode *s = tb_xml_first_named(root, "custom"); s != NULL;
             s = tb_xml_next_named(s, "custom"))
            for (const xmlNode *c = tb_xml_first_named(s, "text"); c != NULL;
                 c = tb_xml_next_named(c, "text")) {
                const char *name = tb_xml_attribute(c, "name");
                if (name == NULL || strncmp(name, PREFIX, length) != 0) continue;
                if (name[length] == 0 && single == 0)
                    MJCF_TRY(set_constants(m, c, 0, m->scene->number_of_shapes));
                if (name[length] != ':' || single == 0) continue;
                const tb_handle shape = tb_scene_find(m->scene, TB_HANDLE_SHAPE, name + length + 1);
                if (tb_handle_is_none(shape))
                    return tb_xml_fail(m->error, TB_NOT_FOUND, c, "name",
                                       "there is no geom '%.100s'", name + length + 1);
                MJCF_TRY(set_constants(m, c, scene_index(shape), scene_index(shape) + 1));
            }
    return TB_OK;
}
