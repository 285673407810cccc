/* tribo info: contents of a model, as text and as JSON for comparing importers; or a daemon's
 * version, devices and limits. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/args.h"
#include "common/cli.h"
#include "info/info_server.h"
#include "common/json.h"
#include "common/names.h"
#include "info/overlap_list.h"
#include "simulation/simulation.h"

static const args_command COMMAND = {
    .name = "info",
    .operands = "MODEL | --server ADDRESS",
    .description =
        "Prints what a model (MJCF, URDF, MJZ, a mesh) holds: counts, masses and inertias, "
        "joints,\n"
        "warnings. With --json also body poses and, on request, the mass matrix and the "
        "acceleration\n"
        "without contacts, limits and equalities, at the reference pose, a keyframe or given\n"
        "coordinates. Inertias are about the centre of mass in body axes: xx, yy, zz, xy, xz, "
        "yz.\n"
        "With --overlaps: the pairs of shapes that overlap in that pose, and whether any of 64 "
        "poses\n"
        "of the joints between them separates them; 'ignore' lists the remaining pairs,\n"
        "'error' fails where there are pairs.\n"
        "With --server and no model: version, build, age, devices, solvers and limits of a "
        "daemon.\n",
    .examples = "  tribo info hand.xml\n"
                "  tribo info hand.urdf --package-path ~/robots --json\n"
                "  tribo info arm.xml --json --mass-matrix --acceleration --q 0,0.5,1,0,0,0,0\n"
                "  tribo info hand.urdf --overlaps\n"
                "  tribo info --server robot7:7410 --json\n",
    .minimum_operands = 0,
    .maximum_operands = 1};

enum { UNASKED = -2, OVERLAP_SAMPLES = 64 };

typedef struct info {
    const char *path, *keyframe;
    importing import;
    int overlaps;                 /* tb_overlap_policy, ARGS_ALONE, or UNASKED */
    const char *q, *u, *controls; /* "1,2,3" */
    bool json, mass_matrix, acceleration, quiet;
    tb_model *model;
    tb_state *state;
    name_list bodies, joints;
    tb_overlap *overlapping; /* in the pose that is asked about, the deepest first */
    int32_t number_of_overlaps;
    tb_error error;
} info;

static const char *joint_type_name(tb_joint_type type)
{
    switch (type) {
    case TB_JOINT_FIXED: return "fixed";
    case TB_JOINT_HINGE: return "hinge";
    case TB_JOINT_SLIDE: return "slide";
    case TB_JOINT_BALL: return "ball";
    case TB_JOINT_FREE: return "free";
    case TB_JOINT_PLANAR: return "planar";
    }
    return "unknown";
}

/* ---- the state that is asked about ---- */

typedef tb_status array_setter(tb_state *, const double *, int32_t, tb_error *);

/* Sets an array of the state from "1,2,3". NULL leaves it alone. */
static tb_status set_array(info *m, const char *option, const char *list, array_setter *set)
{
    if (list == NULL) return TB_OK;
    int32_t count = 1;
    for (const char *c = list; *c != '\0'; c++) count += *c == ',';
    double *values = calloc((size_t)count, sizeof *values);
    if (values == NULL)
        return cli_fail(&m->error, TB_RESOURCE_EXHAUSTED, "", 0, option, "no memory");

    tb_status status = TB_OK;
    const char *next = list;
    for (int32_t i = 0; i < count && status == TB_OK; i++) {
        char *end = NULL;
        values[i] = strtod(next, &end);
        if (end == next || (*end != ',' && *end != '\0') || !isfinite(values[i]))
            status = cli_fail(&m->error, TB_INVALID_ARGUMENT, "", 0, option,
                              "--%s: number %d is not a finite number", option, (int)i + 1);
        next = end + 1;
    }
    if (status == TB_OK) status = set(m->state, values, count, &m->error);
    free(values);
    return status;
}

static tb_status prepare(info *m)
{
    int32_t keyframe = -1;
    /* the table comes before the refusal */
    const bool ignore = m->overlaps == TB_OVERLAPS_IGNORE;
    m->import.overlaps = ignore ? TB_OVERLAPS_IGNORE : TB_OVERLAPS_KEEP;
    tb_status status =
        simulation_load_model(m->path, &m->import, m->keyframe, true, &m->model, &m->error);
    if (status == TB_OK)
        status = simulation_find_keyframe(m->model, m->keyframe, &keyframe, &m->error);
    if (status == TB_OK) status = tb_state_create(m->model, &m->state, &m->error);
    if (status == TB_OK && keyframe >= 0) status = tb_state_reset(m->state, keyframe, &m->error);
    if (status == TB_OK) status = set_array(m, "q", m->q, tb_state_set_q);
    if (status == TB_OK) status = set_array(m, "u", m->u, tb_state_set_u);
    if (status == TB_OK) status = set_array(m, "controls", m->controls, tb_state_set_controls);
    if (status == TB_OK) status = name_list_create(m->model, TB_HANDLE_BODY, &m->bodies, &m->error);
    if (status == TB_OK)
        status = name_list_create(m->model, TB_HANDLE_JOINT, &m->joints, &m->error);
    if (status == TB_OK && m->overlaps != UNASKED)
        status = tb_state_overlaps(m->state, tb_step_defaults().contact_slop, OVERLAP_SAMPLES,
                                   &m->overlapping, &m->number_of_overlaps, &m->error);
    return status;
}

/* ---- JSON ---- */

static json_t *counts_json(const tb_model_counts *c)
{
    json_t *object = json_object();
    json_object_set_new(object, "bodies", json_integer(c->bodies));
    json_object_set_new(object, "joints", json_integer(c->joints));
    json_object_set_new(object, "coordinates", json_integer(c->coordinates));
    json_object_set_new(object, "dofs", json_integer(c->dofs));
    json_object_set_new(object, "shapes", json_integer(c->shapes));
    json_object_set_new(object, "meshes", json_integer(c->meshes));
    json_object_set_new(object, "sites", json_integer(c->sites));
    json_object_set_new(object, "tendons", json_integer(c->tendons));
    json_object_set_new(object, "actuators", json_integer(c->actuators));
    json_object_set_new(object, "activations", json_integer(c->activations));
    json_object_set_new(object, "equalities", json_integer(c->equalities));
    json_object_set_new(object, "pairs", json_integer(c->pairs));
    json_object_set_new(object, "keyframes", json_integer(c->keyframes));
    json_object_set_new(object, "kinematic_bodies", json_integer(c->kinematic_bodies));
    json_object_set_new(object, "trees", json_integer(c->trees));
    return object;
}

static json_t *bodies_json(const info *m)
{
    json_t *object = json_object();
    for (int32_t i = 1; i < m->bodies.count; i++) {
        tb_body_info about;
        tb_body_motion motion;
        if (tb_model_body_info(m->model, i, &about) != TB_OK ||
            tb_state_body_motion(m->state, i, &motion) != TB_OK)
            continue;
        json_t *body = json_object();
        json_object_set_new(body, "index", json_integer(i));
        json_object_set_new(body, "parent", json_text(m->bodies.names[about.parent]));
        json_object_set_new(body, "kinematic", json_boolean(about.kinematic));
        json_object_set_new(body, "mass", json_finite(about.mass));
        json_object_set_new(body, "com", json_vector(about.com, 3));
        json_object_set_new(body, "inertia", json_vector(about.inertia, 6));
        json_object_set_new(body, "principal", json_vector(about.principal, 3));
        json_object_set_new(body, "position", json_vector(motion.position, 3));
        json_object_set_new(body, "orientation", json_vector(motion.orientation, 4));
        json_object_set_new(object, m->bodies.names[i], body);
    }
    return object;
}

static json_t *joints_json(const info *m)
{
    json_t *object = json_object();
    for (int32_t i = 0; i < m->joints.count; i++) {
        tb_joint_info about;
        if (tb_model_joint_info(m->model, i, &about) != TB_OK) continue;
        json_t *joint = json_object();
        json_object_set_new(joint, "index", json_integer(i));
        json_object_set_new(joint, "type", json_string(joint_type_name(about.type)));
        json_object_set_new(joint, "body", json_text(m->bodies.names[about.body]));
        json_object_set_new(joint, "coordinate", json_integer(about.coordinate));
        json_object_set_new(joint, "dof", json_integer(about.dof));
        json_object_set_new(joint, "coordinates", json_integer(about.coordinates));
        json_object_set_new(joint, "dofs", json_integer(about.dofs));
        json_object_set_new(joint, "limited", json_boolean(about.limited));
        if (about.limited) {
            json_object_set_new(joint, "lower", json_finite(about.lower));
            json_object_set_new(joint, "upper", json_finite(about.upper));
        }
        json_object_set_new(object, m->joints.names[i], joint);
    }
    return object;
}

/* Adds the mass matrix (rows of numbers) and the acceleration, each if requested. */
static tb_status add_dynamics(info *m, json_t *object)
{
    const int32_t n = tb_model_count(m->model).dofs;
    const size_t cells = (size_t)n * (size_t)n + (size_t)n;
    double *numbers = calloc(cells > 0 ? cells : 1, sizeof *numbers);
    if (numbers == NULL)
        return cli_fail(&m->error, TB_RESOURCE_EXHAUSTED, m->path, 0, "mass-matrix",
                        "no memory for a mass matrix of %d dofs", (int)n);
    tb_status status = TB_OK;
    if (m->mass_matrix) {
        status = tb_state_mass_matrix(m->state, numbers, &m->error);
        json_t *rows = json_array();
        for (int32_t i = 0; i < n; i++)
            json_array_append_new(rows, json_vector(numbers + (size_t)i * (size_t)n, n));
        json_object_set_new(object, "mass_matrix", rows);
    }
    if (status == TB_OK && m->acceleration) {
        status = tb_state_smooth_acceleration(m->state, numbers, &m->error);
        json_object_set_new(object, "acceleration", json_vector(numbers, n));
    }
    free(numbers);
    return status;
}

static tb_status print_json(info *m)
{
    const tb_model_counts counts = tb_model_count(m->model);
    double gravity[3];
    tb_model_gravity(m->model, gravity);
    json_t *object = json_object();
    json_object_set_new(object, "file", json_text(m->path));
    json_object_set_new(object, "name", json_text(tb_model_name(m->model)));
    json_object_set_new(object, "model_sha256", json_text(tb_model_sha256(m->model)));
    json_object_set_new(object, "dt", json_finite(tb_model_dt(m->model)));
    json_object_set_new(object, "gravity", json_vector(gravity, 3));
    json_object_set_new(object, "counts", counts_json(&counts));
    json_object_set_new(object, "total_mass", json_finite(tb_model_total_mass(m->model)));
    json_object_set_new(object, "bodies", bodies_json(m));
    json_object_set_new(object, "joints", joints_json(m));
    json_object_set_new(object, "q", json_vector(tb_state_q(m->state), counts.coordinates));
    json_object_set_new(object, "u", json_vector(tb_state_u(m->state), counts.dofs));
    json_object_set_new(object, "controls",
                        json_vector(tb_state_controls(m->state), counts.actuators));

    json_t *actuators = json_array(), *warnings = json_array();
    name_list names = {0};
    tb_status status = name_list_create(m->model, TB_HANDLE_ACTUATOR, &names, &m->error);
    for (int32_t i = 0; i < names.count; i++)
        json_array_append_new(actuators, json_text(names.names[i]));
    name_list_free(&names);
    for (int32_t i = 0; i < counts.warnings; i++)
        json_array_append_new(warnings, json_text(tb_model_warning(m->model, i)));
    json_object_set_new(object, "actuators", actuators);
    json_object_set_new(object, "warnings", warnings);
    if (m->overlaps != UNASKED)
        json_object_set_new(object, "overlaps",
                            overlap_list_json(m->model, m->overlapping, m->number_of_overlaps));

    if (status == TB_OK && (m->mass_matrix || m->acceleration)) status = add_dynamics(m, object);
    if (status == TB_OK)
        json_print(stdout, object);
    else
        json_decref(object);
    return status;
}

/* ---- text ---- */

static void print_counts(const tb_model_counts *c)
{
    const struct {
        int32_t count;
        const char *one, *many;
    } things[] = {{c->bodies - 1, "body", "bodies"},
                  {c->joints, "joint", "joints"},
                  {c->dofs, "dof", "dofs"},
                  {c->shapes, "shape", "shapes"},
                  {c->meshes, "mesh", "meshes"},
                  {c->sites, "site", "sites"},
                  {c->actuators, "actuator", "actuators"},
                  {c->equalities, "equality", "equalities"},
                  {c->tendons, "tendon", "tendons"},
                  {c->pairs, "pair", "pairs"},
                  {c->keyframes, "keyframe", "keyframes"},
                  {c->kinematic_bodies, "kinematic body", "kinematic bodies"},
                  {c->trees, "tree", "trees"}};
    const char *separator = "";
    for (size_t i = 0; i < sizeof things / sizeof things[0]; i++) {
        if (things[i].count == 0) continue;
        printf("%s%d %s", separator, (int)things[i].count,
               things[i].count == 1 ? things[i].one : things[i].many);
        separator = ", ";
    }
    printf("\n");
}

static tb_status print_text(info *m)
{
    const tb_model_counts counts = tb_model_count(m->model);
    double gravity[3];
    tb_model_gravity(m->model, gravity);
    printf("%s%s%s\n", m->path, tb_model_name(m->model)[0] != '\0' ? ": " : "",
           tb_model_name(m->model));
    print_counts(&counts);
    printf("total mass %.6g kg, dt %g s, gravity %g %g %g m/s^2\nmodel %s\n",
           tb_model_total_mass(m->model), tb_model_dt(m->model), gravity[0], gravity[1], gravity[2],
           tb_model_sha256(m->model));

    if (m->bodies.count > 1)
        printf("\n%-20s %10s %30s %36s\n", "body", "mass (kg)", "centre of mass (m)",
               "principal moments (kg m^2)");
    for (int32_t i = 1; i < m->bodies.count; i++) {
        tb_body_info b;
        if (tb_model_body_info(m->model, i, &b) != TB_OK) continue;
        printf("%-20.20s %10.5g %10.5f%10.5f%10.5f %12.4g%12.4g%12.4g\n", m->bodies.names[i],
               b.mass, b.com[0], b.com[1], b.com[2], b.principal[0], b.principal[1],
               b.principal[2]);
    }
    if (m->joints.count > 0)
        printf("\n%-20s %-8s %-20s %4s %25s\n", "joint", "type", "body", "dofs", "range (m, rad)");
    for (int32_t i = 0; i < m->joints.count; i++) {
        tb_joint_info j;
        char range[64] = "";
        if (tb_model_joint_info(m->model, i, &j) != TB_OK) continue;
        if (j.limited) snprintf(range, sizeof range, "%.6g to %.6g", j.lower, j.upper);
        printf("%-20.20s %-8s %-20.20s %4d %25s\n", m->joints.names[i], joint_type_name(j.type),
               m->bodies.names[j.body], (int)j.dofs, range);
    }
    if (counts.warnings > 0) printf("\n");
    for (int32_t i = 0; i < counts.warnings; i++)
        printf("warning: %s\n", tb_model_warning(m->model, i));
    if (m->overlaps != UNASKED) overlap_list_print(m->model, m->overlapping, m->number_of_overlaps);
    return TB_OK;
}

int command_info(int argc, char **argv)
{
    info m = {.overlaps = UNASKED};
    args_option import[IMPORTING_OPTIONS];
    importing_option_list(&m.import, import);
    remote_options remote = {0};
    args_option connection[REMOTE_OPTIONS];
    remote_option_list(&remote, connection);
    const args_option options[] = {
        {"json", NULL, "print one JSON object", ARGS_FLAG, &m.json, 0, 0, NULL},
        {"mass-matrix", NULL, "with --json: dofs x dofs, with armature", ARGS_FLAG, &m.mass_matrix,
         0, 0, NULL},
        {"acceleration", NULL, "with --json: of every dof, nothing in contact", ARGS_FLAG,
         &m.acceleration, 0, 0, NULL},
        {"keyframe", "NAME", "at this keyframe (name or number)", ARGS_TEXT, &m.keyframe, 0, 0,
         NULL},
        {"q", "LIST", "at these coordinates: 0,0.5,...", ARGS_TEXT, &m.q, 0, 0, NULL},
        {"u", "LIST", "at these velocities", ARGS_TEXT, &m.u, 0, 0, NULL},
        {"controls", "LIST", "with these controls", ARGS_TEXT, &m.controls, 0, 0, NULL},
        import[0],
        import[1],
        {"overlaps", "[WHAT]", "list links that overlap there; left after", ARGS_MAYBE_CHOICE,
         &m.overlaps, 0, 0, import[2].choices},
        {NULL, NULL, NULL, ARGS_FLAG, NULL, 0, 0, NULL}};
    const args_group groups[] = {{"options", options}, {"a daemon", connection}, {NULL, NULL}};
    int operands = 0;
    const args_outcome outcome = args_parse(&COMMAND, groups, argc, argv, &operands);
    if (outcome != ARGS_READY) return outcome == ARGS_HELPED ? CLI_OK : CLI_USAGE;
    if ((operands == 0) == (remote.address == NULL)) {
        args_complain(COMMAND.name, "needs either a MODEL or --server ADDRESS%s",
                      operands > 0 ? ", not both" : "");
        return CLI_USAGE;
    }
    m.path = argv[1];
    if ((m.mass_matrix || m.acceleration) && !m.json) {
        args_complain(COMMAND.name, "--mass-matrix and --acceleration need --json");
        return CLI_USAGE;
    }

    tb_status status = TB_OK;
    if (operands == 0) {
        status = info_server(&remote, m.json, &m.error);
    } else {
        status = prepare(&m);
        if (status == TB_OK) status = m.json ? print_json(&m) : print_text(&m);
        if (status == TB_OK && m.overlaps == TB_OVERLAPS_ERROR && m.number_of_overlaps > 0)
            status = overlap_list_refuse(m.path, m.number_of_overlaps, &m.error);
    }
    if (status != TB_OK) {
        if (m.json) json_print(stdout, json_error(&m.error));
        cli_complain(&m.error);
    }
    name_list_free(&m.bodies);
    name_list_free(&m.joints);
    tb_overlaps_destroy(m.overlapping);
    tb_state_destroy(m.state);
    tb_model_destroy(m.model);
    importing_free(&m.import);
    return cli_exit_code(status);
}
