/* MJCF worldbody: the kinematic tree, with frames and replicates.
 *
 * A frame is a pose applied to its children; it creates no body. A replicate makes its children
 * several times, each copy displaced from the one before, and adds the copy's number to their
 * names; elements elsewhere that refer to them are repeated as often (mjcf_for_section). A body's
 * own elements are read before its child bodies, so that bodies come depth first and the joints of
 * a body are contiguous in the coordinates. */
#include <stdio.h>
#include <string.h>

#include "model/import/mjcf/flex/flex.h"

static const mjcf_words BODY = {
    .used = "name childclass mocap pos quat axisangle xyaxes zaxis euler gravcomp sleep",
    .silent = "simple fuse user",
};

static const mjcf_words FRAME = {
    .used = "name childclass pos quat axisangle xyaxes zaxis euler scale massscale",
    .silent = "scaling",
};

static const mjcf_words REPLICATE = {.used = "count sep offset euler childclass",
                                     .silent = "prefix"};

static const mjcf_words INERTIAL = {
    .used = "pos mass diaginertia fullinertia quat axisangle xyaxes zaxis euler"};

static const mjcf_words SITE = {
    .used = "name class pos quat axisangle xyaxes zaxis euler fromto type size",
    .silent = "group material rgba mesh user",
};

static const char *const UNSUPPORTED = "composite plugin";

/* The body whose children the reader is at. */
typedef struct place {
    tb_handle body;
    mjcf_pose world; /* of the body */
    bool has_inertia;
    bool is_world;
} place;

/* `frame` is the described body's in the scene's. */
static tb_status read_inertial(mjcf *m, const xmlNode *node, const mjcf_pose *frame,
                               tb_body_def *def)
{
    mjcf_element element;
    mjcf_pose pose;
    const char *text = NULL;
    int32_t diagonal = 0, full = 0;
    double moments[3] = {0}, symmetric[6] = {0};
    bool turned = false;
    MJCF_TRY(mjcf_open(m, node, NULL, -1, &INERTIAL, &element));
    MJCF_TRY(tb_xml_require(node, "pos", &text, m->error));
    MJCF_TRY(tb_xml_require(node, "mass", &text, m->error));
    MJCF_TRY(mjcf_read_pose(m, &element, &pose));
    MJCF_TRY(mjcf_orientation(m, &element, &pose.orientation, &turned));
    MJCF_TRY(tb_xml_number(node, "mass", &def->mass, m->error));
    MJCF_TRY(tb_xml_numbers(node, "diaginertia", 3, 3, moments, &diagonal, m->error));
    MJCF_TRY(tb_xml_numbers(node, "fullinertia", 6, 6, symmetric, &full, m->error));
    if (def->mass < 0)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "mass",
                           "mass is %g kg, less than 0", def->mass);
    if (full > 0 && (turned || diagonal > 0))
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "fullinertia",
                           "fullinertia stands beside %s",
                           turned ? "an orientation" : "diaginertia");
    def->has_inertia = true;
    pose = mjcf_pose_mul(frame, &pose);
    tb_v3_store(def->com, pose.position);
    tb_q_store(def->inertia_frame, pose.orientation);
    memset(def->inertia, 0, sizeof def->inertia);
    memcpy(def->inertia, full > 0 ? symmetric : moments,
           full > 0 ? sizeof symmetric : sizeof moments);
    return TB_OK;
}

/* The extent of a site. Sizes of the wrong count are left as they are: they matter to touch sensors
 * alone, and the builder refuses those. */
static tb_status read_zone(mjcf *m, const mjcf_element *element, bool ends, double half_length,
                           mjcf_zone *zone)
{
    static const tb_shape_type TYPES[] = {TB_SHAPE_SPHERE,   TB_SHAPE_CAPSULE, TB_SHAPE_ELLIPSOID,
                                          TB_SHAPE_CYLINDER, TB_SHAPE_BOX,     TB_SHAPE_MESH};
    int32_t type = 0, given = 0;
    double size[3] = {0.005, 0.005, 0.005};
    MJCF_TRY(mjcf_choice(m, element, "type", "sphere capsule ellipsoid cylinder box mesh", &type));
    MJCF_TRY(mjcf_numbers(m, element, "size", 1, 3, size, &given));
    zone->type = TYPES[type];
    memcpy(zone->size, size, sizeof size);
    if (!ends) return TB_OK;
    const bool round = zone->type == TB_SHAPE_CAPSULE || zone->type == TB_SHAPE_CYLINDER;
    zone->size[round ? 1 : 2] = half_length;
    if (!round) zone->size[1] = size[0];
    return TB_OK;
}

static tb_status read_site(mjcf *m, const xmlNode *node, int32_t childclass, const mjcf_pose *frame,
                           tb_handle body)
{
    mjcf_element element;
    mjcf_pose pose;
    double half_length = 0;
    bool ends = false;
    tb_error refusal = {0};
    tb_site_def def = tb_site_defaults();
    MJCF_TRY(mjcf_open(m, node, "site", childclass, &SITE, &element));
    MJCF_TRY(mjcf_read_pose(m, &element, &pose));
    MJCF_TRY(mjcf_fromto(m, &element, &pose, &half_length, &ends));
    MJCF_TRY(mjcf_name(m, node, &def.name));
    pose = mjcf_pose_mul(frame, &pose);
    def.body = body;
    tb_v3_store(def.position, pose.position);
    tb_q_store(def.orientation, pose.orientation);
    if (tb_scene_add_site(m->scene, &def, NULL, &refusal) != TB_OK)
        return mjcf_refused(m, node, &refusal);
    MJCF_TRY(
        mjcf_grow(m, (void **)&m->sites, m->number_of_sites, &m->site_capacity, sizeof *m->sites));
    MJCF_TRY(
        mjcf_grow(m, (void **)&m->zones, m->number_of_sites, &m->zone_capacity, sizeof *m->zones));
    MJCF_TRY(read_zone(m, &element, ends, half_length, &m->zones[m->number_of_sites]));
    m->sites[m->number_of_sites++] = def;
    return TB_OK;
}

static tb_status read_childclass(mjcf *m, const xmlNode *node, int32_t *childclass)
{
    const char *name = tb_xml_attribute(node, "childclass");
    return name != NULL ? mjcf_find_class(m, node, "childclass", name, childclass) : TB_OK;
}

/* Which children a pass reads. */
typedef enum pass { OWN_THINGS, CHILD_BODIES } pass;

static tb_status read_children(mjcf *m, const xmlNode *node, int32_t childclass,
                               const mjcf_pose *frame, const place *at, pass which);

static tb_status read_frame(mjcf *m, const xmlNode *node, int32_t childclass,
                            const mjcf_pose *frame, const place *at, pass which)
{
    mjcf_element element;
    mjcf_pose pose;
    double scale[3] = {1, 1, 1}, mass_scale = 0;
    int32_t count = 0;
    MJCF_TRY(mjcf_open(m, node, NULL, -1, &FRAME, &element));
    MJCF_TRY(tb_xml_numbers(node, "scale", 1, 3, scale, &count, m->error));
    MJCF_TRY(tb_xml_number(node, "massscale", &mass_scale, m->error));
    for (int32_t i = 0; i < count; i++)
        if (scale[i] != 1)
            return tb_xml_fail(m->error, TB_UNSUPPORTED, node, "scale",
                               "scaled frames are not supported");
    if (mass_scale != 0 && mass_scale != 1)
        return tb_xml_fail(m->error, TB_UNSUPPORTED, node, "massscale",
                           "scaled frames are not supported");
    MJCF_TRY(mjcf_read_pose(m, &element, &pose));
    MJCF_TRY(read_childclass(m, node, &childclass));
    pose = mjcf_pose_mul(frame, &pose);
    return read_children(m, node, childclass, &pose, at, which);
}

/* names of suffixes, in a kind that holds no other names */
#define SUFFIX_KIND TB_HANDLE_EXCLUDE

/* Pushes the suffix of a copy before the enclosing ones. */
static tb_status push_replica(mjcf *m, const char *separator, int32_t number, int digits,
                              bool enter)
{
    char text[512];
    const int n =
        snprintf(text, sizeof text, "%s%0*d%s", separator, digits, (int)number, m->suffix);
    if (n < 0 || (size_t)n >= sizeof text)
        return tb_fail(m->error, TB_RESOURCE_EXHAUSTED,
                       "the suffix of a replica's names is too long");
    const char *kept = tb_names_keep(&m->names, text);
    if (kept == NULL) return tb_fail_memory(m->error, sizeof text, "a name");
    m->suffix = kept;
    /* siblings may use the same suffix */
    if (!enter || tb_names_find(&m->names, SUFFIX_KIND, kept) >= 0) return TB_OK;
    if (!tb_names_insert(&m->names, SUFFIX_KIND, kept, m->number_of_replicas))
        return tb_fail_memory(m->error, sizeof text, "a name");
    MJCF_TRY(mjcf_grow(m, (void **)&m->replicas, m->number_of_replicas, &m->replica_capacity,
                       sizeof *m->replicas));
    m->replicas[m->number_of_replicas++].suffix = kept;
    return TB_OK;
}

static tb_status read_replicate(mjcf *m, const xmlNode *node, int32_t childclass,
                                const mjcf_pose *frame, const place *at, pass which)
{
    int32_t count = 0;
    double offset[3] = {0}, euler[3] = {0};
    MJCF_TRY(mjcf_check_attributes(m, node, &REPLICATE));
    MJCF_TRY(tb_xml_integer(node, "count", &count, m->error));
    if (count < 1)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "count", "count is %d, less than 1",
                           (int)count);
    m->number_of_copies += (int64_t)count;
    if (m->number_of_copies > MJCF_REPLICA_LIMIT)
        return tb_xml_fail(m->error, TB_RESOURCE_EXHAUSTED, node, "count",
                           "more than %d replicas in one model", MJCF_REPLICA_LIMIT);
    if (tb_xml_first_named(node, "joint") != NULL ||
        tb_xml_first_named(node, "freejoint") != NULL ||
        tb_xml_first_named(node, "inertial") != NULL)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, NULL,
                           "joints and inertials cannot be replicated without their body");
    MJCF_TRY(tb_xml_numbers(node, "offset", 3, 3, offset, NULL, m->error));
    MJCF_TRY(tb_xml_numbers(node, "euler", 3, 3, euler, NULL, m->error));
    MJCF_TRY(read_childclass(m, node, &childclass));
    const char *separator = tb_xml_attribute(node, "sep");
    int digits = 1;
    for (int32_t i = count; i >= 10; i /= 10) digits++;

    mjcf_pose local = mjcf_pose_identity();
    const char *outside = m->suffix;
    for (int32_t i = 0; i < count; i++) {
        const mjcf_pose pose = mjcf_pose_mul(frame, &local);
        MJCF_TRY(
            push_replica(m, separator != NULL ? separator : "", i, digits, which == CHILD_BODIES));
        MJCF_TRY(read_children(m, node, childclass, &pose, at, which));
        m->suffix = outside;
        /* as MuJoCo has it: the offset in the last copy's frame, the angles multiplied */
        local.position =
            tb_v3_add(local.position, tb_q_rotate(local.orientation, tb_v3_load(offset)));
        const double angles[3] = {(i + 1) * euler[0], (i + 1) * euler[1], (i + 1) * euler[2]};
        mjcf_enter(m, node); /* the children may stem from another document */
        local.orientation = mjcf_from_euler(m, angles);
    }
    return TB_OK;
}

static bool is_of_inertia(const tb_error *refusal)
{
    return strncmp(refusal->field, "inertia", 7) == 0 || strcmp(refusal->field, "mass") == 0 ||
           strcmp(refusal->field, "com") == 0;
}

static tb_status note_mocap(mjcf *m, const tb_body_def *def)
{
    MJCF_TRY(mjcf_grow(m, (void **)&m->mocaps, m->number_of_mocaps, &m->mocap_capacity,
                       sizeof *m->mocaps));
    double *pose = m->mocaps[m->number_of_mocaps++].pose;
    memcpy(pose, def->position, 3 * sizeof *pose);
    memcpy(pose + 3, def->orientation, 4 * sizeof *pose);
    return TB_OK;
}

static mjcf_pose invert(const mjcf_pose *pose)
{
    const tb_quaternion back = tb_q_conjugate(pose->orientation);
    const mjcf_pose inverse = {tb_v3_negate(tb_q_rotate(back, pose->position)), back};
    return inverse;
}

/* The axes in which the document gives a body's inertia, once its own things are read. */
static void find_axes(const mjcf *m, const tb_body_def *def, mjcf_aligned *found)
{
    const bool given = def->has_inertia && m->inertia_source != TB_INERTIA_SHAPES;
    const bool single = !given && m->number_of_weighing == 1;
    found->axes = given    ? tb_q_load(def->inertia_frame)
                  : single ? m->weighing_axes
                           : tb_q_identity();
    found->exact =
        (given && def->inertia[3] == 0 && def->inertia[4] == 0 && def->inertia[5] == 0) ||
        (single && !m->weighing_mesh);
}

static tb_status read_body(mjcf *m, const xmlNode *node, int32_t childclass, const mjcf_pose *frame,
                           const place *at)
{
    mjcf_element element;
    mjcf_pose pose;
    bool mocap = false;
    tb_error refusal = {0};
    tb_body_def def = tb_body_defaults();
    place inside = {.is_world = false};
    MJCF_TRY(mjcf_open(m, node, NULL, -1, &BODY, &element));
    MJCF_TRY(mjcf_read_pose(m, &element, &pose));
    MJCF_TRY(tb_xml_bool(node, "mocap", &mocap, m->error));
    MJCF_TRY(read_childclass(m, node, &childclass));
    MJCF_TRY(mjcf_name(m, node, &def.name));
    int32_t sleep = TB_SLEEP_AUTO;
    MJCF_TRY(tb_xml_choice(node, "sleep", "auto never allowed init", &sleep, m->error));
    def.sleep = m->sleeps ? (tb_sleep)sleep : TB_SLEEP_AUTO;
    pose = mjcf_pose_mul(frame, &pose);
    const mjcf_pose *alignment = mjcf_find_alignment(m, m->number_of_bodies + 1);
    const mjcf_pose own = alignment != NULL ? invert(alignment) : mjcf_pose_identity();
    if (alignment != NULL) pose = mjcf_pose_mul(&pose, alignment);
    const xmlNode *inertial = tb_xml_first_named(node, "inertial");
    if (inertial != NULL) {
        if (tb_xml_next_named(inertial, "inertial") != NULL)
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT,
                               tb_xml_next_named(inertial, "inertial"), NULL,
                               "a second inertial in one body");
        MJCF_TRY(read_inertial(m, inertial, &own, &def));
    }
    if (m->scene_def.inertia_source != m->inertia_source) {
        /* the model that this body comes from goes by a rule of its own */
        if (m->inertia_source == TB_INERTIA_SHAPES) def.has_inertia = false;
        if (m->inertia_source == TB_INERTIA_GIVEN) def.has_inertia = true;
    }
    def.parent = at->body;
    def.kinematic = mocap;
    MJCF_TRY(tb_xml_number(node, "gravcomp", &def.gravity_compensation, m->error));
    if (m->no_spring && m->no_damper) def.gravity_compensation = 0; /* nor other passive forces */
    tb_v3_store(def.position, pose.position);
    tb_q_store(def.orientation, pose.orientation);
    if (tb_scene_add_body(m->scene, &def, &inside.body, &refusal) != TB_OK)
        return mjcf_refused(m, inertial != NULL && is_of_inertia(&refusal) ? inertial : node,
                            &refusal);
    m->number_of_bodies++;
    if (mocap) MJCF_TRY(note_mocap(m, &def));
    inside.world = mjcf_pose_mul(&at->world, &pose);
    inside.has_inertia = def.has_inertia;

    const int32_t joints = m->number_of_joints, bodies = m->number_of_bodies;
    m->number_of_weighing = 0;
    MJCF_TRY(read_children(m, node, childclass, &own, &inside, OWN_THINGS));
    const bool aligned = m->number_of_joints == joints + 1 && m->joints[joints].aligned;
    mjcf_aligned found = {.body = (int32_t)inside.body.index};
    find_axes(m, &def, &found);
    MJCF_TRY(read_children(m, node, childclass, &own, &inside, CHILD_BODIES));
    return aligned && m->number_of_bodies == bodies ? mjcf_note_aligned(m, &found) : TB_OK;
}

/* One of a body's own things: not a body, and nothing that holds other things. */
static tb_status read_own(mjcf *m, const xmlNode *node, int32_t childclass, const mjcf_pose *frame,
                          const place *at)
{
    const char *name = tb_xml_name(node);
    if (strcmp(name, "geom") == 0)
        return mjcf_read_geom(m, node, childclass, frame, at->body, at->has_inertia);
    if (strcmp(name, "joint") == 0 || strcmp(name, "freejoint") == 0)
        return mjcf_read_joint(m, node, childclass, frame, at->body, &at->world);
    if (strcmp(name, "site") == 0) return read_site(m, node, childclass, frame, at->body);
    if (strcmp(name, "flexcomp") == 0) return mjcf_read_flexcomp(m, node, frame, at->body);
    if (strcmp(name, FLEX_MADE) == 0) return mjcf_read_flex(m, node);
    if (strcmp(name, FLEX_VERTEX) == 0) return mjcf_read_flex_vertex(m, node, frame, at->body);
    if (strcmp(name, "camera") == 0 || strcmp(name, "light") == 0)
        return mjcf_note_past(m, node, name, "has no effect on motion");
    if (strcmp(name, "inertial") == 0) {
        if (at->is_world)
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, NULL,
                               "the world has no inertia");
        if (!tb_xml_is(node->parent, "body"))
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, NULL,
                               "an inertial stands in its body, not in a frame");
        return TB_OK; /* read with its body */
    }
    if (tb_xml_in_words(UNSUPPORTED, name))
        return tb_xml_fail(m->error, TB_UNSUPPORTED, node, NULL, "element '%s' is not supported",
                           name);
    return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, NULL, "unknown element in '%.100s'",
                       tb_xml_name(node->parent));
}

static tb_status read_children(mjcf *m, const xmlNode *node, int32_t childclass,
                               const mjcf_pose *frame, const place *at, pass which)
{
    for (const xmlNode *c = tb_xml_first(node); c != NULL; c = tb_xml_next(c)) {
        if (tb_xml_is(c, "frame"))
            MJCF_TRY(read_frame(m, c, childclass, frame, at, which));
        else if (tb_xml_is(c, "replicate"))
            MJCF_TRY(read_replicate(m, c, childclass, frame, at, which));
        else if (tb_xml_is(c, "body")) {
            if (which == CHILD_BODIES) MJCF_TRY(read_body(m, c, childclass, frame, at));
        } else if (which == OWN_THINGS) {
            MJCF_TRY(read_own(m, c, childclass, frame, at));
        }
    }
    return TB_OK;
}

tb_status mjcf_read_bodies(mjcf *m)
{
    const mjcf_pose identity = mjcf_pose_identity();
    const place world = {.world = identity, .is_world = true};
    const xmlNode *root = tb_xml_root(m->xml);
    for (int which = OWN_THINGS; which <= CHILD_BODIES; which++)
        for (const xmlNode *c = tb_xml_first_named(root, "worldbody"); c != NULL;
             c = tb_xml_next_named(c, "worldbody")) {
            MJCF_TRY(tb_xml_check_attributes(c, "", m->error));
            MJCF_TRY(read_children(m, c, m->main_class, &identity, &world, (pass)which));
        }
    return TB_OK;
}
