/* Canonical bytes as a scene: see canonical.h for the layout. */
#include "model/canonical.h"
#include "model/soft.h"

#include <string.h>

static tb_handle get_reference(tb_canonical *io, const tb_scene *scene, tb_handle_kind kind)
{
    const tb_handle none = {0};
    uint32_t reference = 0;
    tb_canonical_u32(io, &reference);
    if (reference > INT32_MAX) tb_canonical_fail(io, "a reference is out of range");
    if (io->status != TB_OK || reference == 0) return none;
    return tb_handle_make(kind, scene->owner, (int32_t)reference - 1);
}

/* Turns the builder's refusal of an element into DATA_LOSS. */
static void added(tb_canonical *io, tb_status status)
{
    if (io->status == TB_OK) io->status = status;
}

static int32_t get_count(tb_canonical *io)
{
    int32_t count = 0;
    tb_canonical_count(io, &count, 4);
    return count;
}

#define FOR_EACH(io)                                                                               \
    for (int32_t i_ = 0, n_ = get_count(io); (io)->status == TB_OK && i_ < n_; i_++)

static void get_tree(tb_canonical *io, tb_scene *scene)
{
    FOR_EACH(io)
    {
        tb_body_def def = tb_body_defaults();
        def.parent = get_reference(io, scene, TB_HANDLE_BODY);
        tb_canonical_body(io, &def);
        if (io->status == TB_OK) added(io, tb_scene_add_body(scene, &def, NULL, io->error));
    }
    FOR_EACH(io)
    {
        tb_joint_def def = tb_joint_defaults();
        def.body = get_reference(io, scene, TB_HANDLE_BODY);
        tb_canonical_joint(io, &def);
        if (io->status == TB_OK) added(io, tb_scene_add_joint(scene, &def, NULL, io->error));
    }
    FOR_EACH(io)
    {
        tb_shape_def def = tb_shape_defaults();
        def.body = get_reference(io, scene, TB_HANDLE_BODY);
        def.asset = get_reference(io, scene, TB_HANDLE_MESH);
        tb_canonical_shape(io, &def);
        if (def.type == TB_SHAPE_HEIGHT_FIELD) def.asset.kind = TB_HANDLE_HEIGHT_FIELD;
        if (io->status == TB_OK) added(io, tb_scene_add_shape(scene, &def, NULL, io->error));
    }
    FOR_EACH(io)
    {
        tb_site_def def = tb_site_defaults();
        def.body = get_reference(io, scene, TB_HANDLE_BODY);
        tb_canonical_site(io, &def);
        if (io->status == TB_OK) added(io, tb_scene_add_site(scene, &def, NULL, io->error));
    }
}

static void get_tendon(tb_canonical *io, tb_scene *scene)
{
    tb_tendon_def def = tb_tendon_defaults();
    tb_canonical_tendon(io, &def);
    if (io->status != TB_OK) return;
    tb_handle *joints = TB_ARENA_ARRAY(io->arena, tb_handle, def.number_of_joints);
    tb_tendon_point *points = TB_ARENA_ARRAY(io->arena, tb_tendon_point, def.number_of_points);
    if (joints == NULL || points == NULL) {
        io->status = tb_fail_memory(io->error, (size_t)def.number_of_joints * 8, "tendon");
        return;
    }
    for (int32_t k = 0; k < def.number_of_joints; k++)
        joints[k] = get_reference(io, scene, TB_HANDLE_JOINT);
    for (int32_t k = 0; k < def.number_of_points; k++) {
        points[k] = tb_tendon_point_defaults();
        tb_canonical_tendon_point(io, &points[k]);
        points[k].body = get_reference(io, scene, TB_HANDLE_BODY);
        points[k].side_body = get_reference(io, scene, TB_HANDLE_BODY);
    }
    def.joints = joints;
    def.points = points;
    if (io->status == TB_OK) added(io, tb_scene_add_tendon(scene, &def, NULL, io->error));
}

static void get_exclude(tb_canonical *io, tb_scene *scene)
{
    tb_handle ends[2] = {{0}, {0}};
    bool shapes = false;
    for (int k = 0; k < 2; k++) {
        uint32_t end = 0;
        tb_canonical_u32(io, &end);
        const bool shape = (end & SHAPE_EXCLUDE) != 0;
        const int32_t index = (int32_t)(end & ~SHAPE_EXCLUDE);
        if (k > 0 && shape != shapes) tb_canonical_fail(io, "an exclude of a shape and a body");
        shapes = shape;
        if (shape)
            ends[k] = tb_handle_make(TB_HANDLE_SHAPE, scene->owner, index);
        else if (index > 0)
            ends[k] = tb_handle_make(TB_HANDLE_BODY, scene->owner, index - 1);
    }
    if (io->status != TB_OK) return;
    added(io, shapes ? tb_scene_exclude_shapes(scene, ends[0], ends[1], io->error)
                     : tb_scene_add_exclude(scene, ends[0], ends[1], io->error));
}

static void get_parts(tb_canonical *io, tb_scene *scene)
{
    FOR_EACH(io) get_tendon(io, scene);
    FOR_EACH(io)
    {
        tb_actuator_def def = tb_actuator_defaults();
        uint32_t kind = 0;
        tb_canonical_u32(io, &kind);
        if (kind > TB_HANDLE_KEYFRAME) tb_canonical_fail(io, "a target is of no kind");
        def.target = get_reference(io, scene, (tb_handle_kind)kind);
        def.reference = get_reference(io, scene, TB_HANDLE_SITE);
        tb_canonical_actuator(io, &def);
        if (io->status == TB_OK) added(io, tb_scene_add_actuator(scene, &def, NULL, io->error));
    }
    FOR_EACH(io)
    {
        tb_equality_def def = tb_equality_defaults();
        tb_canonical_equality(io, &def);
        const tb_handle_kind kind = def.type == TB_EQUALITY_JOINT    ? TB_HANDLE_JOINT
                                    : def.type == TB_EQUALITY_TENDON ? TB_HANDLE_TENDON
                                                                     : TB_HANDLE_BODY;
        def.a = get_reference(io, scene, kind);
        def.b = get_reference(io, scene, kind);
        if (io->status == TB_OK) added(io, tb_scene_add_equality(scene, &def, NULL, io->error));
    }
    FOR_EACH(io)
    {
        tb_pair_def def = tb_pair_defaults();
        def.a = get_reference(io, scene, TB_HANDLE_SHAPE);
        def.b = get_reference(io, scene, TB_HANDLE_SHAPE);
        tb_canonical_pair(io, &def);
        if (io->status == TB_OK) added(io, tb_scene_add_pair(scene, &def, NULL, io->error));
    }
    FOR_EACH(io) get_exclude(io, scene);
    FOR_EACH(io)
    {
        tb_keyframe_def def = tb_keyframe_defaults();
        tb_canonical_keyframe(io, &def);
        if (io->status == TB_OK) added(io, tb_scene_add_keyframe(scene, &def, NULL, io->error));
    }
}

static void get_looks(tb_canonical *io, tb_scene *scene)
{
    for (int32_t i = 0; io->status == TB_OK && i < scene->number_of_shapes; i++) {
        tb_shape_def *shape = &scene->shapes[i];
        tb_canonical_look(io, shape);
        if (io->status != TB_OK) return;
        tb_check check = tb_check_begin(TB_HANDLE_SHAPE, shape->name, i, io->error);
        tb_scene_keep_look(scene, &check, shape);
        added(io, check.status);
    }
}

static tb_handle get_end(tb_canonical *io, const tb_scene *scene)
{
    uint32_t kind = 0;
    tb_canonical_u32(io, &kind);
    if (kind > TB_HANDLE_KEYFRAME) tb_canonical_fail(io, "a sensor's object is of no kind");
    return get_reference(io, scene, (tb_handle_kind)kind);
}

static void get_sensors(tb_canonical *io, tb_scene *scene)
{
    FOR_EACH(io)
    {
        tb_sensor_def def = tb_sensor_defaults();
        def.object = get_end(io, scene);
        def.reference = get_end(io, scene);
        tb_canonical_sensor(io, &def);
        if (io->status == TB_OK) added(io, tb_scene_add_sensor(scene, &def, NULL, io->error));
    }
}

static void get_tangential_restitution(tb_canonical *io, tb_scene *scene)
{
    const int32_t shapes = scene->number_of_shapes;
    for (int32_t i = 0; io->status == TB_OK && i < shapes + scene->number_of_pairs; i++) {
        const bool pair = i >= shapes;
        tb_surface *surface = pair ? &scene->pairs[i - shapes].surface : &scene->shapes[i].surface;
        tb_canonical_tangential_restitution(io, surface);
        if (io->status != TB_OK) return;
        tb_check check = tb_check_begin(pair ? TB_HANDLE_PAIR : TB_HANDLE_SHAPE, NULL,
                                        pair ? i - shapes : i, io->error);
        tb_check_surface(&check, surface);
        added(io, check.status);
    }
}

static void get_volume_constants(tb_canonical *io, tb_scene *scene)
{
    for (int32_t i = 0; io->status == TB_OK && i < scene->number_of_shapes; i++) {
        tb_shape_def def = scene->shapes[i];
        tb_canonical_volume_constants(io, &def);
        if (io->status == TB_OK && def.has_volume_constants)
            added(io, tb_scene_set_volume_constants(scene, i, &def.volume_constants, io->error));
    }
}

static void get_soft(tb_canonical *io, tb_scene *scene)
{
    int32_t size = 0;
    tb_canonical_count(io, &size, 1);
    if (io->status != TB_OK) return;
    added(io, tb_scene_set_soft(scene, io->in + io->at, (size_t)size, io->error));
    io->at += (size_t)size;
}

static void get_sleep(tb_canonical *io, tb_scene *scene)
{
    tb_canonical_sleep_tolerance(io, &scene->options);
    for (int32_t i = 0; io->status == TB_OK && i < scene->number_of_bodies; i++) {
        uint32_t sleep = 0;
        tb_canonical_u32(io, &sleep);
        if (sleep > TB_SLEEP_INIT) tb_canonical_fail(io, "a body sleeps in an unknown way");
        scene->bodies[i].sleep = (tb_sleep)sleep;
    }
}

static void get_elements(tb_canonical *io, tb_scene *scene)
{
    FOR_EACH(io)
    {
        tb_element_def def = {0};
        uint32_t balls[3] = {0};
        tb_canonical_element(io, &def, balls);
        for (int32_t k = 0; k < def.corners && k < 3; k++)
            if (balls[k] > 0 && balls[k] <= INT32_MAX)
                def.balls[k] = tb_handle_make(TB_HANDLE_SHAPE, scene->owner, (int32_t)balls[k] - 1);
        if (io->status == TB_OK) added(io, tb_scene_add_element(scene, &def, io->error));
    }
}

static void get_elastics(tb_canonical *io, tb_scene *scene)
{
    FOR_EACH(io)
    {
        tb_elastic_def def = {0};
        for (int k = 0; k < 4; k++) def.sites[k] = get_reference(io, scene, TB_HANDLE_SITE);
        tb_canonical_elastic(io, &def);
        if (io->status == TB_OK) added(io, tb_scene_add_elastic(scene, &def, io->error));
    }
}

/* Extras follow each other by their tags, each at most once; the end is that of the bytes. */
static void get_extras(tb_canonical *io, tb_scene *scene)
{
    typedef void reader(tb_canonical *, tb_scene *);
    static reader *const READERS[] = {NULL,
                                      get_looks,
                                      get_sensors,
                                      get_tangential_restitution,
                                      get_volume_constants,
                                      get_soft,
                                      get_sleep,
                                      get_elements,
                                      get_elastics};
    uint32_t last = 0;
    while (io->status == TB_OK && io->at < io->size) {
        uint32_t tag = 0;
        tb_canonical_u32(io, &tag);
        if (tag > last && tag <= EXTRA_ELASTICS)
            READERS[tag](io, scene);
        else
            tb_canonical_fail(io, "an extra is unknown or out of order");
        last = tag;
    }
}

static void get_scene(tb_canonical *io, tb_scene **scene)
{
    tb_scene_def options = tb_scene_defaults();
    tb_canonical_options(io, &options);
    if (io->status == TB_OK) added(io, tb_scene_create(&options, scene, io->error));
    if (io->status != TB_OK) return;
    FOR_EACH(io)
    {
        tb_mesh_def def = tb_mesh_defaults();
        tb_canonical_mesh(io, &def);
        if (io->status == TB_OK) added(io, tb_scene_add_mesh(*scene, &def, NULL, io->error));
        tb_arena_reset(io->arena);
    }
    FOR_EACH(io)
    {
        tb_height_field_def def = tb_height_field_defaults();
        tb_canonical_height_field(io, &def);
        if (io->status == TB_OK)
            added(io, tb_scene_add_height_field(*scene, &def, NULL, io->error));
        tb_arena_reset(io->arena);
    }
    get_tree(io, *scene);
    get_parts(io, *scene);
}

tb_status tb_canonical_read(const unsigned char *bytes, size_t size, tb_scene **scene,
                            tb_error *error)
{
    const size_t magic = strlen(TB_CANONICAL_MAGIC);
    tb_arena arena;
    tb_canonical io = {.reading = true, .error = error, .in = bytes, .size = size, .arena = &arena};
    uint32_t version = 0;
    *scene = NULL;
    tb_arena_init(&arena, 0);
    if (size < magic || memcmp(bytes, TB_CANONICAL_MAGIC, magic) != 0) {
        tb_canonical_fail(&io, "they do not begin as a model");
    } else {
        io.at = magic;
        tb_canonical_u32(&io, &version);
        if (io.status == TB_OK && version != TB_CANONICAL_VERSION &&
            version != TB_CANONICAL_VERSION_WITH_EXTRAS)
            io.status = tb_fail_field(error, TB_UNSUPPORTED, "version",
                                      "model bytes have version %u; this library reads %d and %d",
                                      (unsigned)version, (int)TB_CANONICAL_VERSION,
                                      (int)TB_CANONICAL_VERSION_WITH_EXTRAS);
    }
    if (io.status == TB_OK) get_scene(&io, scene);
    if (io.status == TB_OK && version == TB_CANONICAL_VERSION_WITH_EXTRAS) get_extras(&io, *scene);
    if (io.status == TB_OK && io.at != size) tb_canonical_fail(&io, "more follows the end");
    tb_arena_destroy(&arena);
    if (io.status != TB_OK) {
        tb_scene_destroy(*scene);
        *scene = NULL;
    }
    return io.status;
}
