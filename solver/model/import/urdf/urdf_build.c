/* Building a scene from the links and joints of a URDF: see urdf.h. */
#include "model/import/urdf/urdf.h"

#include <string.h>

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const tb_status try_status_ = (call);                                                      \
        if (try_status_ != TB_OK) return try_status_;                                              \
    } while (0)

/* The same for a call of the builder's, whose failure gets the file and line of a node. */
#define BUILD(node, call)                                                                          \
    do {                                                                                           \
        tb_error cause_ = {0};                                                                     \
        tb_error *cause = &cause_;                                                                 \
        const tb_status build_status_ = (call);                                                    \
        if (build_status_ != TB_OK) return urdf_fail_from(u, build_status_, (node), cause);        \
    } while (0)

/* ---- bodies and joints ---- */

static tb_status add_body(urdf *u, int32_t index)
{
    urdf_link *link = &u->links[index];
    tb_body_def def = tb_body_defaults();
    def.name = link->name;
    if (link->joint >= 0) {
        const urdf_joint *joint = &u->joints[link->joint];
        def.parent = u->links[joint->parent].body;
        memcpy(def.position, joint->position, sizeof def.position);
        memcpy(def.orientation, joint->orientation, sizeof def.orientation);
        if (joint->type == URDF_FLOATING) { /* bodies float in the world alone */
            def.parent = (tb_handle){0};
            tb_v3_store(def.position, link->pose.position);
            tb_q_store(def.orientation, tb_q_from_matrix(&link->pose.rotation));
        }
    }
    if (!link->shapes_weigh) { /* also a mass of zero is given, so that shapes do not add to it */
        def.has_inertia = true;
        def.mass = link->mass;
        memcpy(def.com, link->com, sizeof def.com);
        memcpy(def.inertia_frame, link->frame, sizeof def.inertia_frame);
        memcpy(def.inertia, link->inertia, sizeof def.inertia);
    }
    BUILD(link->node, tb_scene_add_body(u->scene, &def, &link->body, cause));
    return TB_OK;
}

static tb_status add_joint(urdf *u, urdf_joint *joint)
{
    static const tb_joint_type TYPES[] = {
        [URDF_FIXED] = TB_JOINT_FIXED,      [URDF_REVOLUTE] = TB_JOINT_HINGE,
        [URDF_CONTINUOUS] = TB_JOINT_HINGE, [URDF_PRISMATIC] = TB_JOINT_SLIDE,
        [URDF_PLANAR] = TB_JOINT_PLANAR,    [URDF_FLOATING] = TB_JOINT_FREE,
        [URDF_SPHERICAL] = TB_JOINT_BALL};
    if (joint->type == URDF_FIXED) return TB_OK;
    if (joint->type == URDF_FLOATING && !urdf_is_static(u, joint->parent))
        urdf_note_ignored(u, joint->node,
                          "a floating joint's coordinates are the pose in the world, not in the "
                          "parent that moves");
    tb_joint_def def = tb_joint_defaults();
    def.name = joint->name;
    def.body = u->links[joint->child].body;
    def.type = TYPES[joint->type];
    memcpy(def.axis, joint->axis, sizeof def.axis);
    def.limited = joint->limited;
    def.lower = joint->lower;
    def.upper = joint->upper;
    def.damping = joint->damping;
    def.dry_friction = joint->friction;
    BUILD(joint->node, tb_scene_add_joint(u->scene, &def, &joint->handle, cause));
    return TB_OK;
}

/* A free joint for a root, named like the link; nameless if a joint has that name. */
static tb_status free_root(urdf *u, const urdf_link *root)
{
    tb_joint_def def = tb_joint_defaults();
    if (tb_names_find(&u->names, TB_HANDLE_JOINT, root->name) < 0) def.name = root->name;
    def.body = root->body;
    def.type = TB_JOINT_FREE;
    BUILD(root->node, tb_scene_add_joint(u->scene, &def, NULL, cause));
    return TB_OK;
}

/* ---- shapes ---- */

static tb_status check_positive(urdf *u, const xmlNode *node, const char *name, int32_t count,
                                double *numbers)
{
    const char *text;
    TRY(tb_xml_require(node, name, &text, u->error));
    TRY(tb_xml_numbers(node, name, count, count, numbers, NULL, u->error));
    for (int32_t i = 0; i < count; i++)
        if (!(numbers[i] > 0))
            return tb_xml_fail(u->error, TB_INVALID_ARGUMENT, node, name,
                               "%s=\"%.80s\" is not positive", name, text);
    return TB_OK;
}

/* A half space: its frame is turned so that Z is the normal. */
static tb_status read_plane(urdf *u, const xmlNode *node, tb_shape_def *def)
{
    double normal[3] = {0, 0, 1};
    tb_vec3 x, y;
    urdf_note_attributes(u, node, "normal");
    TRY(tb_xml_numbers(node, "normal", 3, 3, normal, NULL, u->error));
    const tb_vec3 n = tb_v3_normalize(tb_v3_load(normal), tb_v3(0, 0, 0));
    if (!(tb_v3_length2(n) > 0))
        return tb_xml_fail(u->error, TB_INVALID_ARGUMENT, node, "normal",
                           "the normal is zero and has no direction");
    tb_v3_tangents(n, &x, &y);
    const tb_mat33 axes = tb_m33_from_columns(x, y, n);
    tb_q_store(def->orientation, tb_q_mul(tb_q_load(def->orientation), tb_q_from_matrix(&axes)));
    def->type = TB_SHAPE_PLANE;
    return TB_OK;
}

static tb_status read_shape(urdf *u, const xmlNode *node, bool concave, tb_shape_def *def)
{
    if (tb_xml_is(node, "box")) {
        def->type = TB_SHAPE_BOX;
        urdf_note_attributes(u, node, "size");
        TRY(check_positive(u, node, "size", 3, def->size));
        for (int i = 0; i < 3; i++) def->size[i] /= 2;
    } else if (tb_xml_is(node, "cylinder") || tb_xml_is(node, "capsule")) {
        def->type = tb_xml_is(node, "capsule") ? TB_SHAPE_CAPSULE : TB_SHAPE_CYLINDER;
        urdf_note_attributes(u, node, "radius length");
        TRY(check_positive(u, node, "radius", 1, &def->size[0]));
        TRY(check_positive(u, node, "length", 1, &def->size[1]));
        def->size[1] /= 2;
    } else if (tb_xml_is(node, "sphere")) {
        def->type = TB_SHAPE_SPHERE;
        urdf_note_attributes(u, node, "radius");
        TRY(check_positive(u, node, "radius", 1, def->size));
    } else if (tb_xml_is(node, "plane")) {
        TRY(read_plane(u, node, def));
    } else if (tb_xml_is(node, "mesh")) {
        def->type = concave ? TB_SHAPE_MESH : TB_SHAPE_CONVEX;
        TRY(urdf_mesh(u, node, &def->asset));
    } else {
        return tb_xml_fail(u->error, TB_UNSUPPORTED, node, NULL,
                           "a geometry is a box, cylinder, capsule, sphere, plane or mesh");
    }
    return TB_OK;
}

/* Friction inside a <collision>, written in older files of Gazebo's. */
static tb_status read_coefficients(urdf *u, const xmlNode *node, tb_surface *surface)
{
    urdf_note_attributes(u, node, "mu kp kd");
    TRY(tb_xml_number(node, "mu", &surface->friction, u->error));
    if (!(surface->friction >= 0))
        return tb_xml_fail(u->error, TB_INVALID_ARGUMENT, node, "mu", "mu=\"%g\" is negative",
                           surface->friction);
    if (tb_xml_attribute(node, "kp") != NULL || tb_xml_attribute(node, "kd") != NULL)
        urdf_note_ignored(u, node, "kp and kd have no effect: contacts are hard");
    return TB_OK;
}

/* A <collision>, or a <visual>. */
static tb_status add_shape(urdf *u, const urdf_link *link, const xmlNode *node)
{
    tb_shape_def def = tb_shape_defaults();
    const char *name = tb_xml_attribute(node, "name"), *why = "";
    const char *concave = tb_xml_attribute(node, "concave");
    const xmlNode *geometry = NULL;
    def.body = link->body;
    def.surface = link->surface;
    if (tb_xml_is(node, "visual")) {
        def.category = def.mask = 0;
        def.mass = 0;
        urdf_look(u, node, &def);
    } else {
        urdf_link_look(u, link, &def);
    }
    urdf_note_attributes(u, node, "name group concave");
    TRY(urdf_origin(u, node, def.position, def.orientation));
    for (const xmlNode *c = tb_xml_first(node); c != NULL; c = tb_xml_next(c)) {
        if (tb_xml_is(c, "geometry")) {
            if (geometry != NULL)
                return tb_xml_fail(u->error, TB_INVALID_ARGUMENT, c, NULL,
                                   "'%s' has more than one <geometry>", tb_xml_name(node));
            geometry = c;
        } else if (tb_xml_is(c, "contact_coefficients")) {
            TRY(read_coefficients(u, c, &def.surface));
        } else if (!tb_xml_in_words("origin material", tb_xml_name(c))) {
            TRY(urdf_other_element(u, c, "verbose"));
        }
    }
    const xmlNode *shape = geometry != NULL ? tb_xml_first(geometry) : NULL;
    if (shape == NULL || tb_xml_next(shape) != NULL)
        return tb_xml_fail(u->error, TB_INVALID_ARGUMENT, geometry != NULL ? geometry : node,
                           "geometry", "there must be one <geometry> with one shape in it");
    const bool as_it_is =
        link->concave || (concave != NULL && tb_xml_in_words("yes true 1", concave));
    TRY(read_shape(u, shape, as_it_is, &def));

    /* several links may use one name for their collisions: the first keeps it */
    const bool free_name = name != NULL && tb_name_is_valid(name, &why) &&
                           tb_handle_is_none(tb_scene_find(u->scene, TB_HANDLE_SHAPE, name));
    def.name = free_name ? name : NULL;
    BUILD(node, tb_scene_add_shape(u->scene, &def, NULL, cause));
    return TB_OK;
}

/* A visual that cannot be read is left out: the robot moves without it. */
static tb_status add_visual(urdf *u, const urdf_link *link, const xmlNode *node)
{
    tb_error *const error = u->error;
    tb_error refusal = {0};
    u->error = &refusal;
    const tb_status status = add_shape(u, link, node);
    u->error = error;
    if (status == TB_OK) return TB_OK;
    if (status == TB_RESOURCE_EXHAUSTED || status == TB_CANCELLED ||
        status == TB_DEADLINE_EXCEEDED) {
        if (error != NULL) *error = refusal;
        return status;
    }
    urdf_note_ignored(u, node, "a visual is left out: %.120s", refusal.message);
    return TB_OK;
}

static tb_status add_shapes(urdf *u, const urdf_link *link)
{
    if (u->options->visuals)
        for (const xmlNode *c = tb_xml_first_named(link->node, "visual"); c != NULL;
             c = tb_xml_next_named(c, "visual"))
            TRY(add_visual(u, link, c));
    for (const xmlNode *c = tb_xml_first_named(link->node, "collision"); c != NULL;
         c = tb_xml_next_named(c, "collision"))
        TRY(add_shape(u, link, c));
    return TB_OK;
}

/* ---- neighbours that do not collide ---- */

/* The scene's parent filter makes an exception for parents that cannot move, which is right for a
 * ball on a table and wrong for an arm on its base: so exclude a joint's moving links from the
 * static links between it and the root. Links without collisions are skipped, so the work is the
 * number of excludes. */
static tb_status exclude_base(urdf *u, const urdf_joint *joint, const int32_t *group_start,
                              const int32_t *group_links)
{
    const int32_t first = group_start[joint->child], end = group_start[joint->child + 1];
    if (joint->type == URDF_FIXED || joint->type == URDF_FLOATING) return TB_OK;
    if (first == end || !urdf_is_static(u, joint->parent)) return TB_OK;
    for (int32_t at = u->links[joint->parent].collider; at >= 0;) {
        const urdf_link *base = &u->links[at];
        for (int32_t i = first; i < end; i++)
            BUILD(joint->node,
                  tb_scene_add_exclude(u->scene, base->body, u->links[group_links[i]].body, cause));
        at = base->joint >= 0 ? u->links[u->joints[base->joint].parent].collider : -1;
    }
    return TB_OK;
}

static tb_status exclude_bases(urdf *u)
{
    /* links with collisions, sorted by group by counting */
    const int32_t n = u->number_of_links;
    tb_arena arena = {0};
    int32_t *start = TB_ARENA_ZEROED(&arena, int32_t, n + 2);
    int32_t *sorted = TB_ARENA_ARRAY(&arena, int32_t, n);
    tb_status status = TB_OK;
    if (start == NULL || sorted == NULL) {
        status = tb_fail_memory(u->error, (size_t)n * sizeof *start, "links");
        goto done;
    }
    for (int32_t i = 0; i < n; i++)
        if (u->links[i].collisions > 0) start[u->links[i].group + 2]++;
    for (int32_t i = 0; i < n; i++) start[i + 2] += start[i + 1];
    for (int32_t i = 0; i < n; i++)
        if (u->links[i].collisions > 0) sorted[start[u->links[i].group + 1]++] = i;
    for (int32_t j = 0; j < u->number_of_joints && status == TB_OK; j++)
        status = exclude_base(u, &u->joints[j], start, sorted);
done:
    tb_arena_destroy(&arena);
    return status;
}

/* ---- motors and mimics ---- */

static tb_status add_motor(urdf *u, const urdf_joint *joint)
{
    const urdf_joint_type type = joint->type;
    if (joint->mimic != NULL) return TB_OK;
    if (type != URDF_REVOLUTE && type != URDF_CONTINUOUS && type != URDF_PRISMATIC) return TB_OK;
    tb_actuator_def def = tb_actuator_defaults();
    def.name = joint->name;
    def.target = joint->handle;
    def.force_limited = joint->effort > 0;
    def.force_lower = -joint->effort;
    def.force_upper = joint->effort;
    BUILD(joint->node, tb_scene_add_actuator(u->scene, &def, NULL, cause));
    return TB_OK;
}

static tb_status add_mimic(urdf *u, const urdf_joint *joint)
{
    if (joint->mimic == NULL) return TB_OK;
    const int32_t other = tb_names_find(&u->names, TB_HANDLE_JOINT, joint->mimic_joint);
    tb_equality_def def = tb_equality_defaults();
    def.name = joint->name;
    def.type = TB_EQUALITY_JOINT;
    def.a = joint->handle;
    def.b = u->joints[other].handle;
    memset(def.polynomial, 0, sizeof def.polynomial);
    def.polynomial[0] = joint->offset;
    def.polynomial[1] = joint->multiplier;
    BUILD(joint->mimic, tb_scene_add_equality(u->scene, &def, NULL, cause));
    return TB_OK;
}

tb_status urdf_build(urdf *u)
{
    for (int32_t i = 0; i < u->number_of_links; i++) TRY(add_body(u, u->order[i]));
    for (int32_t i = 0; i < u->number_of_links; i++)
        if (u->links[i].joint < 0 && !urdf_is_static(u, i)) TRY(free_root(u, &u->links[i]));
    for (int32_t j = 0; j < u->number_of_joints; j++) TRY(add_joint(u, &u->joints[j]));
    for (int32_t i = 0; i < u->number_of_links; i++) TRY(add_shapes(u, &u->links[i]));
    TRY(exclude_bases(u));
    for (int32_t j = 0; j < u->number_of_joints; j++) TRY(add_motor(u, &u->joints[j]));
    for (int32_t j = 0; j < u->number_of_joints; j++) TRY(add_mimic(u, &u->joints[j]));
    return TB_OK;
}
