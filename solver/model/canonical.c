/* A scene as canonical bytes: see canonical.h for the layout. */
#include "model/canonical.h"
#include "model/soft.h"

#include <string.h>

/* ---- references ---- */

/* References in the bytes: 1-based in the model's order, 0 for none or the world. */
typedef struct reference_maps {
    const tb_compiler *c;
    int32_t *joint; /* scene joint -> place in the bytes */
    int32_t *site;  /* scene site -> place in the bytes */
} reference_maps;

static uint32_t reference_of(const reference_maps *maps, tb_handle handle)
{
    const tb_compiler *c = maps->c;
    const int32_t index = scene_index(handle);
    if (index < 0) return 0;
    switch (handle.kind) {
    case TB_HANDLE_BODY: return (uint32_t)c->model_body[index];
    case TB_HANDLE_JOINT: return (uint32_t)maps->joint[index] + 1;
    case TB_HANDLE_SHAPE: return (uint32_t)c->model_shape[index] + 1;
    case TB_HANDLE_SITE: return (uint32_t)maps->site[index] + 1;
    default: return (uint32_t)index + 1; /* assets and tendons keep their order */
    }
}

static void put_reference(tb_canonical *io, const reference_maps *maps, tb_handle handle)
{
    uint32_t reference = reference_of(maps, handle);
    tb_canonical_u32(io, &reference);
}

/* ---- writing ---- */

static void put_count(tb_canonical *io, int32_t count)
{
    tb_canonical_count(io, &count, 0);
}

static void put_body(tb_canonical *io, const tb_compiler *c, int32_t model_index)
{
    const scene_body *from = &c->scene->bodies[c->scene_body[model_index]];
    tb_body_def def = tb_body_defaults();
    uint32_t parent = (uint32_t)c->bodies[model_index].parent;
    def.name = from->name;
    memcpy(def.position, from->position, sizeof def.position);
    memcpy(def.orientation, from->orientation, sizeof def.orientation);
    def.kinematic = from->kinematic;
    def.gravity_compensation = from->gravity_compensation;
    if (from->inertia >= 0) {
        const scene_inertia *given = &c->scene->inertias[from->inertia];
        def.has_inertia = true;
        def.mass = given->mass;
        memcpy(def.com, given->com, sizeof def.com);
        memcpy(def.inertia_frame, given->frame, sizeof def.inertia_frame);
        memcpy(def.inertia, given->inertia, sizeof def.inertia);
    }
    tb_canonical_u32(io, &parent);
    tb_canonical_body(io, &def);
}

static void put_tree(tb_canonical *io, const reference_maps *maps)
{
    const tb_compiler *c = maps->c;
    const tb_scene *s = c->scene;
    put_count(io, s->number_of_bodies);
    for (int32_t i = 1; i < c->model->number_of_bodies; i++) put_body(io, c, i);
    put_count(io, s->number_of_joints);
    for (int32_t i = 0; i < s->number_of_joints; i++) {
        tb_joint_def def = s->joints[c->scene_joint[i]];
        put_reference(io, maps, def.body);
        tb_canonical_joint(io, &def);
    }
    put_count(io, s->number_of_shapes);
    for (int32_t i = 0; i < s->number_of_shapes; i++) {
        tb_shape_def def = s->shapes[c->scene_shape[i]];
        put_reference(io, maps, def.body);
        put_reference(io, maps, def.asset);
        tb_canonical_shape(io, &def);
    }
    put_count(io, s->number_of_sites);
    for (int32_t i = 0; i < s->number_of_sites; i++) {
        tb_site_def def = s->sites[c->scene_site[i]];
        put_reference(io, maps, def.body);
        tb_canonical_site(io, &def);
    }
}

static void put_parts(tb_canonical *io, const reference_maps *maps)
{
    const tb_compiler *c = maps->c;
    const tb_scene *s = c->scene;
    put_count(io, s->number_of_tendons);
    for (int32_t i = 0; i < s->number_of_tendons; i++) {
        tb_tendon_def def = s->tendons[i];
        tb_canonical_tendon(io, &def);
        for (int32_t k = 0; k < def.number_of_joints; k++) put_reference(io, maps, def.joints[k]);
        for (int32_t k = 0; k < def.number_of_points; k++) {
            tb_tendon_point point = def.points[k];
            tb_canonical_tendon_point(io, &point);
            put_reference(io, maps, point.body);
            put_reference(io, maps, point.side_body);
        }
    }
    put_count(io, s->number_of_actuators);
    for (int32_t i = 0; i < s->number_of_actuators; i++) {
        tb_actuator_def def = s->actuators[i];
        uint32_t kind = def.target.kind;
        tb_canonical_u32(io, &kind);
        put_reference(io, maps, def.target);
        put_reference(io, maps, def.reference);
        tb_canonical_actuator(io, &def);
    }
    put_count(io, s->number_of_equalities);
    for (int32_t i = 0; i < s->number_of_equalities; i++) {
        tb_equality_def def = s->equalities[i];
        tb_canonical_equality(io, &def);
        put_reference(io, maps, def.a);
        put_reference(io, maps, def.b);
    }
}

static void put_exclude(tb_canonical *io, uint32_t a, uint32_t b)
{
    tb_canonical_u32(io, &a);
    tb_canonical_u32(io, &b);
}

/* Writes pairs and excludes in the model's order: sorted, without repetition. */
static void put_filters(tb_canonical *io, const tb_compiler *c)
{
    const tb_model *m = c->model;
    put_count(io, m->number_of_pairs);
    for (int32_t i = 0; i < m->number_of_pairs; i++) {
        tb_pair_def def = c->scene->pairs[c->scene_pair[i]];
        uint32_t ends[2] = {(uint32_t)m->pairs[i].a + 1, (uint32_t)m->pairs[i].b + 1};
        tb_canonical_u32(io, &ends[0]);
        tb_canonical_u32(io, &ends[1]);
        tb_canonical_pair(io, &def);
    }
    put_count(io, m->number_of_excludes + m->number_of_shape_excludes);
    for (int32_t i = 0; i < m->number_of_excludes; i++)
        put_exclude(io, (uint32_t)m->excludes[i].a, (uint32_t)m->excludes[i].b);
    for (int32_t i = 0; i < m->number_of_shape_excludes; i++)
        put_exclude(io, (uint32_t)m->shape_excludes[i].a | SHAPE_EXCLUDE,
                    (uint32_t)m->shape_excludes[i].b | SHAPE_EXCLUDE);
}

static bool has_looks(const tb_scene *s)
{
    for (int32_t i = 0; i < s->number_of_shapes; i++)
        if (s->shapes[i].has_colour || s->shapes[i].material[0] != 0) return true;
    return false;
}

static void put_looks(tb_canonical *io, const tb_compiler *c)
{
    uint32_t tag = EXTRA_LOOKS;
    tb_canonical_u32(io, &tag);
    for (int32_t i = 0; i < c->scene->number_of_shapes; i++) {
        tb_shape_def def = c->scene->shapes[c->scene_shape[i]];
        tb_canonical_look(io, &def);
    }
}

static bool has_tangential_restitution(const tb_scene *s)
{
    for (int32_t i = 0; i < s->number_of_shapes; i++)
        if (s->shapes[i].surface.tangential_restitution > 0) return true;
    for (int32_t i = 0; i < s->number_of_pairs; i++)
        if (s->pairs[i].surface.tangential_restitution > 0) return true;
    return false;
}

/* One number a shape, then one a pair. */
static void put_tangential_restitution(tb_canonical *io, const tb_compiler *c)
{
    uint32_t tag = EXTRA_TANGENTIAL_RESTITUTION;
    tb_canonical_u32(io, &tag);
    for (int32_t i = 0; i < c->scene->number_of_shapes; i++) {
        tb_shape_def def = c->scene->shapes[c->scene_shape[i]];
        tb_canonical_tangential_restitution(io, &def.surface);
    }
    for (int32_t i = 0; i < c->model->number_of_pairs; i++) {
        tb_pair_def def = c->scene->pairs[c->scene_pair[i]];
        tb_canonical_tangential_restitution(io, &def.surface);
    }
}

static bool has_volume_constants(const tb_scene *s)
{
    for (int32_t i = 0; i < s->number_of_shapes; i++)
        if (s->shapes[i].has_volume_constants) return true;
    return false;
}

static void put_volume_constants(tb_canonical *io, const tb_compiler *c)
{
    uint32_t tag = EXTRA_VOLUME_CONSTANTS;
    tb_canonical_u32(io, &tag);
    for (int32_t i = 0; i < c->scene->number_of_shapes; i++) {
        tb_shape_def def = c->scene->shapes[c->scene_shape[i]];
        tb_canonical_volume_constants(io, &def);
    }
}

static bool has_extras(const tb_scene *s)
{
    return has_looks(s) || s->number_of_sensors > 0 || has_tangential_restitution(s) ||
           has_volume_constants(s) || s->soft != NULL || s->options.sleep_tolerance > 0 ||
           s->number_of_elements > 0 || s->number_of_elastics > 0;
}

static void put_elements(tb_canonical *io, const reference_maps *maps)
{
    const tb_scene *s = maps->c->scene;
    uint32_t tag = EXTRA_ELEMENTS, balls[3] = {0};
    tb_canonical_u32(io, &tag);
    put_count(io, s->number_of_elements);
    for (int32_t i = 0; i < s->number_of_elements; i++) {
        tb_element_def def = s->elements[i];
        for (int32_t k = 0; k < def.corners; k++) balls[k] = reference_of(maps, def.balls[k]);
        tb_canonical_element(io, &def, balls);
    }
}

static void put_elastics(tb_canonical *io, const reference_maps *maps)
{
    const tb_scene *s = maps->c->scene;
    uint32_t tag = EXTRA_ELASTICS;
    tb_canonical_u32(io, &tag);
    put_count(io, s->number_of_elastics);
    for (int32_t i = 0; i < s->number_of_elastics; i++) {
        tb_elastic_def def = s->elastics[i];
        for (int k = 0; k < 4; k++) put_reference(io, maps, def.sites[k]);
        tb_canonical_elastic(io, &def);
    }
}

/* The tolerance, then a policy a body. */
static void put_sleep(tb_canonical *io, const tb_compiler *c)
{
    uint32_t tag = EXTRA_SLEEP;
    tb_scene_def options = c->scene->options;
    tb_canonical_u32(io, &tag);
    tb_canonical_sleep_tolerance(io, &options);
    for (int32_t i = 1; i < c->model->number_of_bodies; i++) {
        uint32_t sleep = (uint32_t)c->scene->bodies[c->scene_body[i]].sleep;
        tb_canonical_u32(io, &sleep);
    }
}

/* The bytes of soft bodies, as a text. */
static void put_soft(tb_canonical *io, const tb_scene *s)
{
    uint32_t tag = EXTRA_SOFT;
    tb_canonical_u32(io, &tag);
    put_count(io, (int32_t)s->soft_size);
    if (io->status == TB_OK) io->status = tb_bytes_append(io->out, s->soft, s->soft_size);
}

static void put_end(tb_canonical *io, const reference_maps *maps, tb_handle end)
{
    uint32_t kind = end.kind;
    tb_canonical_u32(io, &kind);
    put_reference(io, maps, end);
}

static void put_sensors(tb_canonical *io, const reference_maps *maps)
{
    const tb_scene *s = maps->c->scene;
    uint32_t tag = EXTRA_SENSORS;
    tb_canonical_u32(io, &tag);
    put_count(io, s->number_of_sensors);
    for (int32_t i = 0; i < s->number_of_sensors; i++) {
        tb_sensor_def def = s->sensors[i];
        put_end(io, maps, def.object);
        put_end(io, maps, def.reference);
        tb_canonical_sensor(io, &def);
    }
}

/* Notes where the content of an asset lies: behind its name, which began at `from`. */
static void note_content(const tb_canonical *io, const char *name, size_t from,
                         tb_model_content *content)
{
    content->first = from + 4 + strlen(name);
    content->size = io->out->size - content->first;
}

static void put_scene(tb_canonical *io, const reference_maps *maps)
{
    const tb_scene *s = maps->c->scene;
    tb_model *model = maps->c->model;
    tb_scene_def options = s->options;
    tb_canonical_options(io, &options);
    put_count(io, s->number_of_meshes);
    for (int32_t i = 0; i < s->number_of_meshes; i++) {
        tb_mesh_def def = s->meshes[i];
        const size_t from = io->out->size;
        tb_canonical_mesh(io, &def);
        note_content(io, def.name, from, &model->mesh_contents[i]);
    }
    put_count(io, s->number_of_height_fields);
    for (int32_t i = 0; i < s->number_of_height_fields; i++) {
        tb_height_field_def def = s->height_fields[i];
        const size_t from = io->out->size;
        tb_canonical_height_field(io, &def);
        note_content(io, def.name, from, &model->height_field_contents[i]);
    }
    put_tree(io, maps);
    put_parts(io, maps);
    put_filters(io, maps->c);
    put_count(io, s->number_of_keyframes);
    for (int32_t i = 0; i < s->number_of_keyframes; i++) {
        tb_keyframe_def def = s->keyframes[i];
        tb_canonical_keyframe(io, &def);
    }
    if (has_looks(s)) put_looks(io, maps->c);
    if (s->number_of_sensors > 0) put_sensors(io, maps);
    if (has_tangential_restitution(s)) put_tangential_restitution(io, maps->c);
    if (has_volume_constants(s)) put_volume_constants(io, maps->c);
    if (s->soft != NULL) put_soft(io, s);
    if (s->options.sleep_tolerance > 0) put_sleep(io, maps->c);
    if (s->number_of_elements > 0) put_elements(io, maps);
    if (s->number_of_elastics > 0) put_elastics(io, maps);
}

tb_status tb_canonical_write(const tb_compiler *c, tb_bytes *bytes, tb_error *error)
{
    const int32_t joints = c->scene->number_of_joints, sites = c->scene->number_of_sites;
    tb_arena scratch;
    tb_canonical io = {.error = error, .out = bytes};
    uint32_t version =
        has_extras(c->scene) ? TB_CANONICAL_VERSION_WITH_EXTRAS : TB_CANONICAL_VERSION;
    tb_arena_init(&scratch, 0);
    reference_maps maps = {c, TB_ARENA_ARRAY(&scratch, int32_t, joints),
                           TB_ARENA_ARRAY(&scratch, int32_t, sites)};
    if (maps.joint == NULL || maps.site == NULL) {
        tb_arena_destroy(&scratch);
        return tb_fail_memory(error, (size_t)(joints + sites) * 4, "canonical bytes");
    }
    for (int32_t i = 0; i < joints; i++) maps.joint[c->scene_joint[i]] = i;
    for (int32_t i = 0; i < sites; i++) maps.site[c->scene_site[i]] = i;

    io.status = tb_bytes_append(bytes, TB_CANONICAL_MAGIC, strlen(TB_CANONICAL_MAGIC));
    if (io.status != TB_OK) tb_fail_memory(error, 8, "canonical bytes");
    tb_canonical_u32(&io, &version);
    put_scene(&io, &maps);
    if (io.status == TB_OK) {
        unsigned char checksum[TB_CANONICAL_CHECKSUM_SIZE];
        tb_canonical_checksum(bytes->base, bytes->size, checksum);
        io.status = tb_bytes_append(bytes, checksum, sizeof checksum);
        if (io.status != TB_OK) tb_fail_memory(error, sizeof checksum, "canonical bytes");
    }
    if (io.status != TB_OK) tb_bytes_free(bytes);
    tb_arena_destroy(&scratch);
    return io.status;
}
