/* Reading a URDF's elements into links and joints: see urdf.h. */
#include "model/import/urdf/urdf.h"

#include <math.h>
#include <string.h>

/* Elements without effect on rigid-body motion and contact. */
#define IGNORED_IN_ROBOT                                                                           \
    "material transmission gazebo sensor plugin verbose ros2_control group_state "                 \
    "disable_collisions"
#define IGNORED_IN_LINK                                                                            \
    "material sensor gazebo audio_source collision_checking self_collision_checking "              \
    "self_collide verbose"
#define IGNORED_IN_JOINT "calibration safety_controller hardwareInterface sensor gazebo verbose"

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const tb_status try_status_ = (call);                                                      \
        if (try_status_ != TB_OK) return try_status_;                                              \
    } while (0)

/* ---- pieces ---- */

/* Rotation by roll, pitch, yaw about the fixed axes X, Y, Z. */
static void quaternion_from_rpy(const double rpy[3], double q[4])
{
    const tb_quaternion x = tb_q(cos(rpy[0] / 2), sin(rpy[0] / 2), 0, 0);
    const tb_quaternion y = tb_q(cos(rpy[1] / 2), 0, sin(rpy[1] / 2), 0);
    const tb_quaternion z = tb_q(cos(rpy[2] / 2), 0, 0, sin(rpy[2] / 2));
    tb_q_store(q, tb_q_mul(z, tb_q_mul(y, x)));
}

/* The only child of this name, NULL if there is none; INVALID_ARGUMENT if there are several. */
static tb_status only_child(urdf *u, const xmlNode *node, const char *name, const xmlNode **child)
{
    *child = tb_xml_first_named(node, name);
    const xmlNode *second = *child != NULL ? tb_xml_next_named(*child, name) : NULL;
    if (second == NULL) return TB_OK;
    return tb_xml_fail(u->error, TB_INVALID_ARGUMENT, second, NULL, "'%s' has more than one <%s>",
                       tb_xml_name(node), name);
}

/* The same where one must be. */
static tb_status required_child(urdf *u, const xmlNode *node, const char *name,
                                const xmlNode **child)
{
    TRY(only_child(u, node, name, child));
    if (*child != NULL) return TB_OK;
    return tb_xml_fail(u->error, TB_INVALID_ARGUMENT, node, name, "<%s> is missing", name);
}

tb_status urdf_origin(urdf *u, const xmlNode *node, double position[3], double orientation[4])
{
    const xmlNode *origin;
    double rpy[3] = {0}, xyzw[4];
    int32_t count;
    TRY(only_child(u, node, "origin", &origin));
    if (origin == NULL) return TB_OK;
    urdf_note_attributes(u, origin, "xyz rpy quat_xyzw");
    TRY(tb_xml_numbers(origin, "xyz", 3, 3, position, NULL, u->error));
    TRY(tb_xml_numbers(origin, "rpy", 3, 3, rpy, NULL, u->error));
    TRY(tb_xml_numbers(origin, "quat_xyzw", 4, 4, xyzw, &count, u->error));
    if (count == 0) {
        quaternion_from_rpy(rpy, orientation);
        return TB_OK;
    }
    orientation[0] = xyzw[3];
    memcpy(orientation + 1, xyzw, 3 * sizeof *xyzw);
    if (!(tb_abs(xyzw[0]) + tb_abs(xyzw[1]) + tb_abs(xyzw[2]) + tb_abs(xyzw[3]) > 1e-10))
        return tb_xml_fail(u->error, TB_INVALID_ARGUMENT, origin, "quat_xyzw",
                           "quat_xyzw is zero and has no direction");
    return TB_OK;
}

/* A number that must not be negative. */
static tb_status not_negative(urdf *u, const xmlNode *node, const char *name, double *number)
{
    TRY(tb_xml_number(node, name, number, u->error));
    if (*number >= 0) return TB_OK;
    return tb_xml_fail(u->error, TB_INVALID_ARGUMENT, node, name, "%s=\"%g\" is negative", name,
                       *number);
}

static bool says_yes(const xmlNode *node, const char *name)
{
    const char *text = tb_xml_attribute(node, name);
    return text != NULL && tb_xml_in_words("yes true 1", text);
}

/* ---- links ---- */

static tb_status read_inertial(urdf *u, const xmlNode *node, urdf_link *link)
{
    const xmlNode *mass, *inertia;
    for (const xmlNode *c = tb_xml_first(node); c != NULL; c = tb_xml_next(c))
        if (!tb_xml_is(c, "origin") && !tb_xml_is(c, "mass") && !tb_xml_is(c, "inertia"))
            TRY(urdf_other_element(u, c, ""));
    TRY(urdf_origin(u, node, link->com, link->frame));
    TRY(required_child(u, node, "mass", &mass));
    urdf_note_attributes(u, mass, "value");
    const char *text;
    TRY(tb_xml_require(mass, "value", &text, u->error));
    TRY(not_negative(u, mass, "value", &link->mass));

    static const char *const NAMES[] = {"ixx", "iyy", "izz", "ixy", "ixz", "iyz"};
    TRY(only_child(u, node, "inertia", &inertia));
    if (inertia == NULL) {
        if (link->mass > 0) urdf_note_ignored(u, node, "no <inertia>: a point mass");
        return TB_OK;
    }
    /* the tensor is symmetric: iyx is ixy in other words */
    static const char *const MIRRORED[] = {"ixx", "iyy", "izz", "iyx", "izx", "izy"};
    urdf_note_attributes(u, inertia, "ixx iyy izz ixy ixz iyz iyx izx izy");
    for (int i = 0; i < 6; i++) {
        if (i < 3) TRY(tb_xml_require(inertia, NAMES[i], &text, u->error));
        const bool mirrored = tb_xml_attribute(inertia, NAMES[i]) == NULL &&
                              tb_xml_attribute(inertia, MIRRORED[i]) != NULL;
        if (mirrored) urdf_note_ignored(u, inertia, "'%s' is read as '%s'", MIRRORED[i], NAMES[i]);
        TRY(tb_xml_number(inertia, mirrored ? MIRRORED[i] : NAMES[i], &link->inertia[i], u->error));
    }
    return TB_OK;
}

/* <contact>, an extension of Bullet's: one element a quantity. */
static tb_status read_contact(urdf *u, const xmlNode *node, tb_surface *surface)
{
    double spin_length = 0;
    for (const xmlNode *c = tb_xml_first(node); c != NULL; c = tb_xml_next(c)) {
        double scale = 1;
        if (tb_xml_is(c, "lateral_friction")) {
            TRY(not_negative(u, c, "value", &surface->friction));
        } else if (tb_xml_is(c, "restitution")) {
            TRY(not_negative(u, c, "value", &surface->restitution));
        } else if (tb_xml_is(c, "tangential_restitution")) {
            TRY(not_negative(u, c, "value", &surface->tangential_restitution));
        } else if (tb_xml_is(c, "rolling_friction")) {
            TRY(not_negative(u, c, "value", &surface->rolling_length));
        } else if (tb_xml_is(c, "spinning_friction")) {
            TRY(not_negative(u, c, "value", &spin_length));
        } else if (tb_xml_is(c, "inertia_scaling")) {
            TRY(not_negative(u, c, "value", &scale));
            if (scale != 1)
                urdf_note_ignored(u, c, "inertia_scaling has no effect: inertia is as given");
        } else {
            TRY(urdf_other_element(u, c,
                                   "contact_cfm contact_erp stiffness damping friction_anchor"));
        }
    }
    /* Bullet bounds the spin torque by a length, we by 2/3 mu times a radius */
    if (spin_length > 0 && surface->friction > 0) {
        surface->kind = TB_CONTACT_SPIN;
        surface->spin_radius = 1.5 * spin_length / surface->friction;
    }
    if (surface->rolling_length > 0) surface->kind = TB_CONTACT_ROLLING;
    return TB_OK;
}

static tb_status read_link(urdf *u, const xmlNode *node, urdf_link *link)
{
    const xmlNode *inertial;
    link->node = node;
    link->joint = -1;
    link->frame[0] = 1;
    link->surface = tb_surface_defaults();
    link->concave = says_yes(node, "concave");
    urdf_note_attributes(u, node, "name type concave");
    TRY(tb_xml_require(node, "name", &link->name, u->error));
    TRY(only_child(u, node, "inertial", &inertial));
    for (const xmlNode *c = tb_xml_first(node); c != NULL; c = tb_xml_next(c)) {
        if (tb_xml_is(c, "inertial")) {
            link->inertial = true;
            TRY(read_inertial(u, c, link));
        } else if (tb_xml_is(c, "contact")) {
            TRY(read_contact(u, c, &link->surface));
        } else if (tb_xml_is(c, "collision")) {
            link->collisions++;
        } else if (!tb_xml_is(c, "visual")) {
            TRY(urdf_other_element(u, c, IGNORED_IN_LINK));
        }
    }
    return TB_OK;
}

/* ---- joints ---- */

static bool has_one_coordinate(urdf_joint_type type)
{
    return type == URDF_REVOLUTE || type == URDF_CONTINUOUS || type == URDF_PRISMATIC;
}

static tb_status read_limit(urdf *u, const xmlNode *node, urdf_joint *joint)
{
    const bool bounded = joint->type == URDF_REVOLUTE || joint->type == URDF_PRISMATIC;
    const xmlNode *limit;
    TRY(only_child(u, node, "limit", &limit));
    if (limit == NULL) {
        if (bounded) urdf_note_ignored(u, node, "no <limit>: the joint moves without end");
        return TB_OK;
    }
    double velocity = 0;
    urdf_note_attributes(u, limit, "lower upper effort velocity acceleration jerk");
    TRY(tb_xml_number(limit, "lower", &joint->lower, u->error));
    TRY(tb_xml_number(limit, "upper", &joint->upper, u->error));
    TRY(tb_xml_number(limit, "effort", &joint->effort, u->error));
    TRY(tb_xml_number(limit, "velocity", &velocity, u->error));
    if (joint->effort < 0) urdf_note_ignored(u, limit, "the sign of effort is not read");
    joint->effort = fabs(joint->effort);
    if (!has_one_coordinate(joint->type)) return TB_OK;

    const char *effort = tb_xml_attribute(limit, "effort");
    if (effort != NULL && joint->effort == 0 && tb_xml_first_named(node, "mimic") == NULL)
        urdf_note_ignored(u, limit, "effort is 0: the joint's motor has no force limit");
    if (velocity != 0) urdf_note_ignored(u, limit, "velocity limits are not enforced");
    if (!bounded) return TB_OK;

    const bool given =
        tb_xml_attribute(limit, "lower") != NULL || tb_xml_attribute(limit, "upper") != NULL;
    joint->limited = given && joint->lower <= joint->upper;
    if (!joint->limited)
        urdf_note_ignored(u, limit,
                          given ? "lower is above upper: the joint moves without end"
                                : "neither lower nor upper: the joint moves without end");
    else if (joint->lower == joint->upper)
        urdf_note_ignored(u, limit, "lower equals upper: the joint cannot move");
    return TB_OK;
}

static tb_status read_mimic(urdf *u, const xmlNode *node, urdf_joint *joint)
{
    joint->multiplier = 1;
    TRY(only_child(u, node, "mimic", &joint->mimic));
    if (joint->mimic == NULL) return TB_OK;
    urdf_note_attributes(u, joint->mimic, "joint multiplier offset");
    TRY(tb_xml_require(joint->mimic, "joint", &joint->mimic_joint, u->error));
    TRY(tb_xml_number(joint->mimic, "multiplier", &joint->multiplier, u->error));
    TRY(tb_xml_number(joint->mimic, "offset", &joint->offset, u->error));
    if (joint->type != URDF_FIXED && !has_one_coordinate(joint->type))
        return tb_xml_fail(u->error, TB_INVALID_ARGUMENT, joint->mimic, "mimic",
                           "joint '%.100s' is not revolute, continuous or prismatic", joint->name);
    return TB_OK;
}

/* The link that <parent> or <child> names. */
static tb_status read_end(urdf *u, const xmlNode *node, const char *end, int32_t *link)
{
    const xmlNode *child;
    const char *name;
    TRY(required_child(u, node, end, &child));
    urdf_note_attributes(u, child, "link");
    TRY(tb_xml_require(child, "link", &name, u->error));
    *link = tb_names_find(&u->names, TB_HANDLE_BODY, name);
    if (*link >= 0) return TB_OK;
    return tb_xml_fail(u->error, TB_NOT_FOUND, node, end, "its %s link '%.100s' does not exist",
                       end, name);
}

static tb_status read_joint(urdf *u, const xmlNode *node, urdf_joint *joint)
{
    const char *text;
    int32_t type = URDF_FIXED;
    const xmlNode *axis;
    joint->node = node;
    joint->orientation[0] = 1;
    joint->axis[0] = 1;
    urdf_note_attributes(u, node, "name type");
    TRY(tb_xml_require(node, "name", &joint->name, u->error));
    TRY(tb_xml_require(node, "type", &text, u->error));
    TRY(tb_xml_choice(node, "type", URDF_JOINT_TYPES, &type, u->error));
    joint->type = (urdf_joint_type)type;
    TRY(read_end(u, node, "parent", &joint->parent));
    TRY(read_end(u, node, "child", &joint->child));
    TRY(urdf_origin(u, node, joint->position, joint->orientation));
    TRY(only_child(u, node, "axis", &axis));
    if (axis != NULL) {
        urdf_note_attributes(u, axis, "xyz");
        TRY(tb_xml_numbers(axis, "xyz", 3, 3, joint->axis, NULL, u->error));
        const bool used = has_one_coordinate(joint->type) || joint->type == URDF_PLANAR;
        if (used && !(tb_v3_length(tb_v3_load(joint->axis)) > 1e-10))
            return tb_xml_fail(u->error, TB_INVALID_ARGUMENT, axis, "xyz",
                               "the axis of joint '%.100s' is zero and has no direction",
                               joint->name);
    }
    TRY(read_limit(u, node, joint));
    TRY(read_mimic(u, node, joint));
    for (const xmlNode *c = tb_xml_first(node); c != NULL; c = tb_xml_next(c)) {
        if (tb_xml_is(c, "dynamics") || tb_xml_is(c, "joint_properties")) {
            urdf_note_attributes(u, c, "damping friction");
            TRY(not_negative(u, c, "damping", &joint->damping));
            TRY(not_negative(u, c, "friction", &joint->friction));
        } else if (!tb_xml_in_words("parent child origin axis limit mimic", tb_xml_name(c))) {
            TRY(urdf_other_element(u, c, IGNORED_IN_JOINT));
        }
    }
    return TB_OK;
}

/* ---- the robot ---- */

/* <compiler> as MuJoCo reads it in a URDF. Visuals and fused bodies make no difference here. */
static tb_status read_compiler(urdf *u, const xmlNode *node, tb_scene_def *def)
{
    int32_t source = def->inertia_source == TB_INERTIA_SHAPES;
    urdf_note_attributes(
        u, node,
        "balanceinertia boundmass boundinertia settotalmass inertiafromgeom meshdir "
        "assetdir strippath discardvisual fusestatic angle coordinate autolimits "
        "eulerseq texturedir usethread saveinertial");
    bool balance = false;
    TRY(tb_xml_bool(node, "balanceinertia", &balance, u->error));
    def->balance_inertia = def->balance_inertia || balance;
    TRY(not_negative(u, node, "boundmass", &def->minimum_mass));
    TRY(not_negative(u, node, "boundinertia", &def->minimum_inertia));
    TRY(tb_xml_number(node, "settotalmass", &def->total_mass, u->error));
    if (!(def->total_mass > 0)) def->total_mass = 0;
    if (tb_xml_attribute(node, "inertiafromgeom") != NULL) {
        TRY(tb_xml_choice(node, "inertiafromgeom", "false true auto", &source, u->error));
        def->inertia_source = source == 0   ? TB_INERTIA_GIVEN
                              : source == 1 ? TB_INERTIA_SHAPES
                                            : TB_INERTIA_AUTO;
    }
    if (tb_xml_attribute(node, "assetdir") != NULL)
        u->mesh_folder = tb_xml_attribute(node, "assetdir");
    if (tb_xml_attribute(node, "meshdir") != NULL)
        u->mesh_folder = tb_xml_attribute(node, "meshdir");
    bool strip = true;
    TRY(tb_xml_bool(node, "strippath", &strip, u->error));
    u->keep_path = !strip;
    return TB_OK;
}

/* <mujoco>, an extension of MuJoCo's: settings of masses, meshes, the time step and gravity. */
static tb_status read_mujoco(urdf *u, const xmlNode *node)
{
    tb_scene_def def = tb_scene_options(u->scene);
    for (const xmlNode *c = tb_xml_first(node); c != NULL; c = tb_xml_next(c)) {
        if (tb_xml_is(c, "compiler")) {
            TRY(read_compiler(u, c, &def));
        } else if (tb_xml_is(c, "option")) {
            urdf_note_attributes(u, c, "timestep gravity");
            TRY(tb_xml_number(c, "timestep", &def.dt, u->error));
            TRY(tb_xml_numbers(c, "gravity", 3, 3, def.gravity, NULL, u->error));
        } else {
            TRY(urdf_other_element(u, c, "size statistic visual"));
        }
    }
    tb_error cause = {0};
    const tb_status status = tb_scene_set_options(u->scene, &def, &cause);
    return status == TB_OK ? TB_OK : urdf_fail_from(u, status, node, &cause);
}

/* Enters a link's or joint's name; it must be new. */
static tb_status enter_name(urdf *u, tb_handle_kind kind, const char *name, const xmlNode *node,
                            int32_t index)
{
    const char *why = "";
    if (name[0] == 0)
        return tb_xml_fail(u->error, TB_INVALID_ARGUMENT, node, "name", "the name is empty");
    if (!tb_name_is_valid(name, &why))
        return tb_xml_fail(u->error, TB_INVALID_ARGUMENT, node, "name", "the name %s", why);
    const int32_t other = tb_names_find(&u->names, kind, name);
    if (other >= 0) {
        const xmlNode *first =
            kind == TB_HANDLE_BODY ? u->links[other].node : u->joints[other].node;
        return tb_xml_fail(u->error, TB_INVALID_ARGUMENT, node, "name",
                           "the name is used twice, first in line %d", tb_xml_line(first));
    }
    if (tb_names_insert(&u->names, kind, name, index)) return TB_OK;
    return tb_fail_memory(u->error, strlen(name), "names");
}

static tb_status add_link(urdf *u, const xmlNode *node)
{
    const int32_t index = u->number_of_links;
    if (index >= TB_SCENE_LIMIT)
        return tb_xml_fail(u->error, TB_RESOURCE_EXHAUSTED, node, NULL, "more than %d links",
                           (int)TB_SCENE_LIMIT);
    if (index == u->link_capacity) {
        urdf_link *links = tb_grow(u->links, index + 1, &u->link_capacity, sizeof *links);
        if (links == NULL) return tb_fail_memory(u->error, (size_t)index * sizeof *links, "links");
        u->links = links;
    }
    urdf_link *link = &u->links[index];
    memset(link, 0, sizeof *link);
    TRY(read_link(u, node, link));
    TRY(enter_name(u, TB_HANDLE_BODY, link->name, node, index));
    u->number_of_links++;
    return TB_OK;
}

static tb_status add_joint(urdf *u, const xmlNode *node)
{
    const int32_t index = u->number_of_joints;
    if (index == u->joint_capacity) {
        urdf_joint *joints = tb_grow(u->joints, index + 1, &u->joint_capacity, sizeof *joints);
        if (joints == NULL)
            return tb_fail_memory(u->error, (size_t)index * sizeof *joints, "joints");
        u->joints = joints;
    }
    urdf_joint *joint = &u->joints[index];
    memset(joint, 0, sizeof *joint);
    TRY(read_joint(u, node, joint));
    TRY(enter_name(u, TB_HANDLE_JOINT, joint->name, node, index));
    u->number_of_joints++;
    return TB_OK;
}

tb_status urdf_read(urdf *u)
{
    const xmlNode *robot = tb_xml_root(u->xml);
    /* links first: a joint may precede its links */
    for (const xmlNode *c = tb_xml_first(robot); c != NULL; c = tb_xml_next(c)) {
        if (tb_xml_is(c, "link"))
            TRY(add_link(u, c));
        else if (tb_xml_is(c, "mujoco"))
            TRY(read_mujoco(u, c));
        else if (!tb_xml_is(c, "joint") && !tb_xml_is(c, "material"))
            TRY(urdf_other_element(u, c, IGNORED_IN_ROBOT));
    }
    if (u->number_of_links == 0)
        return tb_xml_fail(u->error, TB_INVALID_ARGUMENT, robot, "link", "there is no link");
    for (const xmlNode *c = tb_xml_first_named(robot, "joint"); c != NULL;
         c = tb_xml_next_named(c, "joint"))
        TRY(add_joint(u, c));
    return TB_OK;
}
