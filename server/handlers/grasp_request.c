/* See grasp_request.h. */
#include "handlers/grasp_request.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "schedule/pace.h"
#include "session/catalog.h"
#include "wire/wire.h"

static const double DEFAULT_FRICTION = 0.7,
                    DEFAULT_SPIN_M = 0.005; /* of a mesh, which says nothing of its surface */
enum { FILES_LIMIT = 10000 };

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const tb_status try_status = (call);                                                       \
        if (try_status != TB_OK) return try_status;                                                \
    } while (0)

/* ---- numbers ---- */

/* A list that is empty or has `size` finite numbers. */
static tb_status read_list(const double *values, size_t n, size_t size, const char *field,
                           double *out, tb_error *error)
{
    if (n == 0) return TB_OK;
    if (n != size)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, field, "%s has %zu numbers, expected %zu",
                             field, n, size);
    for (size_t i = 0; i < size; i++) {
        if (!isfinite(values[i]))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, field, "%s[%zu] is %g, not finite",
                                 field, i, values[i]);
        out[i] = values[i];
    }
    return TB_OK;
}

static tb_status read_pose(const Tribo__V1__Pose *pose, const char *field, double position[3],
                           double orientation[4], tb_error *error)
{
    char name[TB_ERROR_NAME_SIZE];
    if (pose == NULL) return TB_OK;
    snprintf(name, sizeof name, "%s.position", field);
    TRY(read_list(pose->position, pose->n_position, 3, name, position, error));
    snprintf(name, sizeof name, "%s.orientation", field);
    TRY(read_list(pose->orientation, pose->n_orientation, 4, name, orientation, error));
    double length2 = 0;
    for (int i = 0; i < 4; i++) length2 += orientation[i] * orientation[i];
    if (length2 > 1e-20) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, name, "%s is zero", name);
}

/* Zero keeps the default. */
static void set(double *number, double value)
{
    if (value != 0) *number = value;
}

/* ---- parts of the request ---- */

static tb_status read_object(const Tribo__V1__GraspObject *from, tb_grasp_object *to,
                             tb_error *error)
{
    if (from == NULL)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "object", "the request has no object");
    if (!(from->density >= 0) || !isfinite(from->density))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "object.density",
                             "object.density is %g kg/m^3, expected a positive number, or 0 for "
                             "1000",
                             from->density);
    to->mass = from->mass;
    to->friction = from->friction;
    to->convex = from->convex;
    to->no_table = from->no_table;
    return read_pose(from->pose, "object.pose", to->position, to->orientation, error);
}

static tb_status read_hand(const Tribo__V1__GraspHand *from, tb_grasp_hand *to, tb_error *error)
{
    if (from == NULL)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "hand", "the request has no hand");
    const size_t n = from->n_closing_actuators;
    const size_t counts[2] = {from->n_open_controls, from->n_close_controls};
    const char *const names[2] = {"hand.open_controls", "hand.close_controls"};
    for (int i = 0; i < 2; i++)
        if (counts[i] != 0 && counts[i] != n)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, names[i],
                                 "%s has %zu numbers, but %zu closing actuators are named",
                                 names[i], counts[i], n);
    const tb_status status =
        td_wire_read_overlaps(from->overlaps, "hand.overlaps", &to->overlaps, error);
    if (status != TB_OK) return status;
    to->profile = from->profile;
    to->closing = (const char *const *)from->closing_actuators;
    to->number_of_closing = (int32_t)n;
    if (from->n_open_controls > 0) to->open_controls = from->open_controls;
    if (from->n_close_controls > 0) to->close_controls = from->close_controls;
    return read_pose(from->tool, "hand.tool", to->tool_position, to->tool_orientation, error);
}

static tb_status read_poses(const Tribo__V1__EvaluateGraspsRequest *m, td_grasp_request *r,
                            tb_error *error)
{
    char field[64];
    r->poses = calloc(m->n_poses + 1, sizeof *r->poses);
    if (r->poses == NULL) return tb_fail_memory(error, m->n_poses * sizeof *r->poses, "poses");
    for (size_t i = 0; i < m->n_poses; i++) {
        const Tribo__V1__GraspPose *from = m->poses[i];
        tb_grasp_pose *to = &r->poses[i];
        *to = tb_grasp_pose_defaults();
        to->name = from->name;
        to->force = from->force;
        snprintf(field, sizeof field, "poses[%zu].pose", i);
        TRY(read_pose(from->pose, field, to->position, to->orientation, error));
    }
    r->request.poses = r->poses;
    r->request.number_of_poses = (int32_t)m->n_poses;
    return TB_OK;
}

static tb_status read_shakes(const Tribo__V1__GraspProtocol *from, td_grasp_request *r,
                             tb_error *error)
{
    char field[64];
    r->shakes = calloc(from->n_shakes + 1, sizeof *r->shakes);
    if (r->shakes == NULL) return tb_fail_memory(error, 0, "shakes");
    for (size_t i = 0; i < from->n_shakes; i++) {
        const Tribo__V1__ShakeMotion *shake = from->shakes[i];
        tb_grasp_shake *to = &r->shakes[i];
        *to = tb_grasp_shake_defaults();
        to->amplitude = shake->amplitude;
        to->angle = shake->angle;
        set(&to->frequency, shake->frequency);
        set(&to->seconds, shake->seconds);
        snprintf(field, sizeof field, "protocol.shakes[%zu].axis", i);
        if (shake->n_axis == 0)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, field, "%s is missing", field);
        TRY(read_list(shake->axis, shake->n_axis, 3, field, to->axis, error));
    }
    r->request.protocol.shakes = r->shakes;
    r->request.protocol.number_of_shakes = (int32_t)from->n_shakes;
    return TB_OK;
}

static tb_status read_protocol(const Tribo__V1__GraspProtocol *from, td_grasp_request *r,
                               tb_error *error)
{
    tb_grasp_protocol *to = &r->request.protocol;
    if (from == NULL) return TB_OK;
    if (!(from->dt >= 0 && from->dt <= 1))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "protocol.dt",
                             "protocol.dt is %g s, expected up to 1, or 0 for 0.002", from->dt);
    r->request.step.dt = from->dt;
    TRY(read_list(from->approach, from->n_approach, 3, "protocol.approach", to->approach, error));
    to->approach_distance = from->approach_distance;
    to->force = from->force;
    to->width = from->width;
    set(&to->approach_speed, from->approach_speed);
    set(&to->close_seconds, from->close_seconds);
    set(&to->lift, from->lift);
    set(&to->lift_seconds, from->lift_seconds);
    set(&to->hold_seconds, from->hold_seconds);
    set(&to->slip_limit, from->slip_limit);
    return read_shakes(from, r, error);
}

static void read_perturbation(const Tribo__V1__GraspPerturbation *from, tb_grasp_perturbation *to)
{
    if (from == NULL) return;
    *to = (tb_grasp_perturbation){.count = from->count != 0 ? from->count : 1,
                                  .seed = from->seed,
                                  .position = from->position,
                                  .angle = from->angle,
                                  .friction = from->friction,
                                  .mass = from->mass};
}

static tb_status check_size(const td_config *config, const Tribo__V1__EvaluateGraspsRequest *m,
                            tb_error *error)
{
    const int64_t copies =
        m->perturbation != NULL && m->perturbation->count > 0 ? m->perturbation->count : 1;
    const int64_t limit = config->grasps_per_request;
    if (m->n_poses == 0)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "poses", "the request has no poses");
    if (m->n_poses <= (size_t)(limit / copies)) return TB_OK;
    return tb_fail_field(error, TB_RESOURCE_EXHAUSTED, "poses",
                         "%zu poses with %lld copies each are more than the %lld grasps that one "
                         "request may ask for",
                         m->n_poses, (long long)copies, (long long)limit);
}

/* ---- files ---- */

/* Whether a file is a mesh and no document. */
static bool is_mesh(const unsigned char *bytes, size_t size)
{
    size_t i = 0;
    if (size >= 3 && memcmp(bytes, "\xEF\xBB\xBF", 3) == 0) i = 3;
    if (size >= 2 && (memcmp(bytes, "\xFF\xFE", 2) == 0 || memcmp(bytes, "\xFE\xFF", 2) == 0))
        return false;
    while (i < size && isspace(bytes[i])) i++;
    return i == size || bytes[i] != '<';
}

typedef struct asset_files {
    const td_asset *asset;
    const unsigned char *bytes;
    size_t size;
    const char *path;
    td_bundle *bundle;
} asset_files;

static tb_status open_files(td_server *server, const Tribo__V1__GraspAsset *from,
                            asset_files *files, tb_error *error)
{
    files->path = from->path;
    switch (from->main_case) {
    case TRIBO__V1__GRASP_ASSET__MAIN_SHA256:
        TRY(td_catalog_asset(server->catalog, from->sha256, &files->asset, error));
        files->bytes = files->asset->bytes;
        files->size = files->asset->size;
        if (files->path[0] == '\0') files->path = files->asset->name;
        break;
    case TRIBO__V1__GRASP_ASSET__MAIN_DATA:
        files->bytes = from->data.data;
        files->size = from->data.len;
        break;
    default:
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "main",
                             "the asset has neither sha256 nor data");
    }
    if (files->path[0] == '\0') files->path = "file";
    if (from->n_files > FILES_LIMIT)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "files", "%zu files, at most %d are taken",
                             from->n_files, FILES_LIMIT);
    const char **texts = calloc(2 * from->n_files + 1, sizeof(const char *));
    if (texts == NULL) return tb_fail_memory(error, 0, "paths");
    for (size_t i = 0; i < from->n_files; i++) {
        texts[i] = from->files[i]->path;
        texts[from->n_files + i] = from->files[i]->sha256;
    }
    tb_status status = td_bundle_create(server->catalog, texts, texts + from->n_files,
                                        (int32_t)from->n_files, &files->bundle, error);
    free(texts);
    if (status == TB_OK)
        status = td_bundle_add_main(files->bundle, files->path, files->bytes, files->size, error);
    return status;
}

/* Loads an asset; errors name the field as a member of `whose`. */
static tb_status load(td_server *server, const Tribo__V1__GraspAsset *from, const char *whose,
                      double density, bool fixed_base, tb_scene **scene, bool *mesh,
                      tb_error *error)
{
    const td_config *config = server->config;
    asset_files files = {0};
    tb_error cause = {0};
    char field[TB_ERROR_NAME_SIZE];
    if (from == NULL) {
        snprintf(field, sizeof field, "%s.asset", whose);
        return tb_fail_field(error, TB_INVALID_ARGUMENT, field, "the %s has no asset", whose);
    }
    tb_status status = open_files(server, from, &files, &cause);
    if (status == TB_OK) {
        tb_import_options options = tb_import_defaults();
        options.file_limit = (size_t)config->asset_bytes;
        options.fixed_base = fixed_base;
        options.balance_inertia = from->balance_inertia;
        if (density > 0) options.density = density;
        options.files = td_bundle_source(files.bundle);
        *mesh = is_mesh(files.bytes, files.size);
        status = tb_scene_load(files.path, &options, scene, &cause);
    }
    td_bundle_destroy(files.bundle);
    td_asset_release(server->catalog, files.asset);
    if (status == TB_OK) return TB_OK;
    snprintf(field, sizeof field, "%s.asset%s%.100s", whose, cause.field[0] != '\0' ? "." : "",
             cause.field);
    return tb_fail_field(error, status, field, "%s: %.400s", whose, cause.message);
}

/* A grasp's own limit of iterations, larger than a session's, stays where the client gives none. */
static tb_status read_solve(const Tribo__V1__SolveOptions *m, tb_solve_options *solve,
                            tb_error *error)
{
    const int32_t own = solve->maximum_iterations;
    const tb_status status = td_wire_read_solve_options(m, "solve", solve, error);
    if (m == NULL || m->maximum_iterations == 0) solve->maximum_iterations = own;
    return status;
}

tb_status td_grasp_request_read(td_server *server, const Tribo__V1__EvaluateGraspsRequest *m,
                                td_grasp_request *r, tb_error *error)
{
    const td_config *config = server->config;
    bool mesh = false, ignored;
    memset(r, 0, sizeof *r);
    r->request = tb_grasp_defaults();
    r->request.step.threads = config->threads;
    if (m->confidence != 0) r->request.confidence = m->confidence;
    tb_status status = check_size(config, m, error);
    if (status == TB_OK) status = read_object(m->object, &r->request.object, error);
    if (status == TB_OK) status = read_hand(m->hand, &r->request.hand, error);
    if (status == TB_OK) status = read_poses(m, r, error);
    if (status == TB_OK) status = read_protocol(m->protocol, r, error);
    if (status == TB_OK) status = read_solve(m->solve, &r->request.step.solve, error);
    if (status == TB_OK) {
        read_perturbation(m->perturbation, &r->request.perturbation);
        status = load(server, m->object->asset, "object", m->object->density, false, &r->object,
                      &mesh, error);
    }
    if (status == TB_OK)
        status = load(server, m->hand->asset, "hand", 0, true, &r->hand, &ignored, error);
    if (status == TB_OK && mesh && r->request.object.friction == 0) {
        r->request.object.own_friction = DEFAULT_FRICTION;
        r->request.object.own_spin = DEFAULT_SPIN_M;
    }
    r->request.object.scene = r->object;
    r->request.hand.scene = r->hand;
    if (status != TB_OK) td_grasp_request_free(r);
    return status;
}

void td_grasp_request_free(td_grasp_request *r)
{
    tb_scene_destroy(r->hand);
    tb_scene_destroy(r->object);
    free(r->poses);
    free(r->shakes);
    memset(r, 0, sizeof *r);
}

/* A protobuf-c buffer that hashes the packed bytes and stores none. */
typedef struct hash_buffer {
    ProtobufCBuffer base;
    uint64_t hash;
} hash_buffer;

static void append_to_hash(ProtobufCBuffer *buffer, size_t size, const uint8_t *bytes)
{
    hash_buffer *to = (hash_buffer *)buffer;
    to->hash = td_pace_hash(to->hash, bytes, size);
}

uint64_t td_grasp_request_pace(const Tribo__V1__EvaluateGraspsRequest *m,
                               const tb_step_options *options)
{
    hash_buffer buffer = {.base.append = append_to_hash, .hash = TD_PACE_SEED};
    Tribo__V1__EvaluateGraspsRequest kind = TRIBO__V1__EVALUATE_GRASPS_REQUEST__INIT;
    kind.object = m->object;
    kind.hand = m->hand;
    kind.protocol = m->protocol;
    tribo__v1__evaluate_grasps_request__pack_to_buffer(&kind, &buffer.base);
    return td_pace_key(buffer.hash, options);
}

void td_grasp_rename_field(tb_error *error)
{
    static const char *const NAMES[][2] = {{"hand.closing", "hand.closing_actuators"},
                                           {"object.position", "object.pose.position"},
                                           {"object.orientation", "object.pose.orientation"},
                                           {"object.scene", "object.asset"},
                                           {"hand.scene", "hand.asset"},
                                           {"dt", "protocol.dt"},
                                           {"protocol.number_of_shakes", "protocol.shakes"}};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        if (strcmp(error->field, NAMES[i][0]) == 0) {
            snprintf(error->field, sizeof error->field, "%s", NAMES[i][1]);
            return;
        }
    /* poses[3].position is poses[3].pose.position on the wire */
    unsigned index;
    char rest[32];
    if (sscanf(error->field, "poses[%u].%31s", &index, rest) == 2 &&
        (strcmp(rest, "position") == 0 || strcmp(rest, "orientation") == 0))
        snprintf(error->field, sizeof error->field, "poses[%u].pose.%s", index, rest);
}
