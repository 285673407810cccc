/* Canonical bytes: the same for equal models, back again to the same model, and never a crash. */
#include "model_util.h"

START_TEST(a_model_comes_back_from_its_bytes)
{
    tb_scene *scene = rich_scene();
    tb_model *model = compile(scene), *again = NULL;
    tb_error error = {0};
    size_t size = 0, size_again = 0;
    const unsigned char *bytes = tb_model_bytes(model, &size);
    TEST_OK(tb_model_from_bytes(bytes, size, &again, &error), &error);
    ck_assert_str_eq(tb_model_sha256(model), tb_model_sha256(again));
    const unsigned char *bytes_again = tb_model_bytes(again, &size_again);
    ck_assert_uint_eq(size, size_again);
    ck_assert_mem_eq(bytes, bytes_again, size);
    char hex[65];
    tb_sha256_hex(bytes, size, hex);
    ck_assert_str_eq(hex, tb_model_sha256(model));

    /* the compiled parts too, to the last bit */
    ck_assert_mem_eq(model->bodies, again->bodies,
                     (size_t)model->number_of_bodies * sizeof *model->bodies);
    ck_assert_mem_eq(model->q_reference, again->q_reference,
                     (size_t)model->number_of_coordinates * sizeof *model->q_reference);
    ck_assert_mem_eq(model->hulls[0].planes, again->hulls[0].planes,
                     (size_t)model->hulls[0].number_of_faces * 4 * sizeof(double));
    ck_assert_int_eq(tb_model_find(again, TB_HANDLE_JOINT, "wrist_angle"),
                     tb_model_find(model, TB_HANDLE_JOINT, "wrist_angle"));
    tb_model_destroy(again);
    tb_model_destroy(model);
    tb_scene_destroy(scene);
}
END_TEST

/* The bytes are a format: if this hash changes, TB_CANONICAL_VERSION must change. */
START_TEST(the_format_is_what_it_was)
{
    const tb_handle none = {0};
    tb_scene *scene = new_scene();
    add_shape(scene, none, TB_SHAPE_PLANE, 0, 0, 0);
    add_ball(scene, "ball");
    tb_model *model = compile(scene);
    ck_assert_str_eq(tb_model_sha256(model),
                     "c1446f5c019097a5f45f636049c7e7b0fa986cf8b6759187af23aa0f15499c1c");
    tb_model_destroy(model);
    tb_scene_destroy(scene);
}
END_TEST

static tb_model *two_bodies(bool reversed, double zero)
{
    const tb_handle none = {0};
    tb_error error = {0};
    tb_scene *scene = new_scene();
    tb_handle parent = add_body(scene, none, "parent"), child, other = none;
    tb_body_def def = tb_body_defaults();
    if (!reversed) other = add_shape(scene, parent, TB_SHAPE_SPHERE, 1, 0, 0);
    def.name = "child";
    def.parent = parent;
    def.position[0] = zero;
    TEST_OK(tb_scene_add_body(scene, &def, &child, &error), &error);
    add_shape(scene, child, TB_SHAPE_BOX, 1, 2, 3);
    if (reversed) other = add_shape(scene, parent, TB_SHAPE_SPHERE, 1, 0, 0);
    (void)other;
    tb_model *model = compile(scene);
    tb_scene_destroy(scene);
    return model;
}

START_TEST(equal_models_have_equal_bytes_however_they_were_described)
{
    tb_model *a = two_bodies(false, 0), *b = two_bodies(true, -0.0), *c = two_bodies(false, 1e-300);
    ck_assert_str_eq(tb_model_sha256(a), tb_model_sha256(b));
    ck_assert_str_ne(tb_model_sha256(a), tb_model_sha256(c));
    tb_model_destroy(a);
    tb_model_destroy(b);
    tb_model_destroy(c);
}
END_TEST

/* For any orientations and axes of a scene, normalising them again changes nothing. */
START_TEST(random_models_come_back)
{
    tb_random random = tb_random_stream(3, 4);
    for (int round = 0; round < 200; round++) {
        tb_scene *scene = new_scene();
        tb_error error = {0};
        tb_handle body = {0};
        for (int i = 0; i < 5; i++) {
            tb_body_def def = tb_body_defaults();
            def.parent = i % 2 ? body : (tb_handle){0};
            for (int k = 0; k < 4; k++) def.orientation[k] = tb_random_normal(&random);
            for (int k = 0; k < 3; k++) def.position[k] = tb_random_normal(&random);
            TEST_OK(tb_scene_add_body(scene, &def, &body, &error), &error);
            tb_joint_def joint = tb_joint_defaults();
            joint.body = body;
            for (int k = 0; k < 3; k++) joint.axis[k] = tb_random_normal(&random);
            TEST_OK(tb_scene_add_joint(scene, &joint, NULL, &error), &error);
            add_shape(scene, body, TB_SHAPE_BOX, tb_random_between(&random, 0.1, 1), 0.2, 0.3);
        }
        tb_model *model = compile(scene), *again = NULL;
        TEST_OK(tb_model_from_bytes(model->bytes, model->bytes_size, &again, &error), &error);
        tb_model_destroy(again);
        tb_model_destroy(model);
        tb_scene_destroy(scene);
    }
}
END_TEST

/* Constants of the volume law follow in an extra, too. */
START_TEST(volume_constants_come_back)
{
    const tb_handle none = {0};
    tb_error error = {0};
    tb_scene *scene = new_scene();
    tb_shape_def shape = tb_shape_defaults();
    add_shape(scene, none, TB_SHAPE_PLANE, 0, 0, 0);
    shape.name = "rubber";
    shape.body = add_body(scene, none, "ball");
    shape.size[0] = 0.1;
    tb_scene *plain = NULL;
    shape.has_volume_constants = true;
    shape.volume_constants.elasticity = 2e6;
    shape.volume_constants.joined = true;
    TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);
    tb_model *model = compile(scene), *again = NULL;
    TEST_OK(tb_model_from_bytes(model->bytes, model->bytes_size, &again, &error), &error);
    const tb_volume_constants *c =
        &again->volume_constants[tb_model_find(again, TB_HANDLE_SHAPE, "rubber")];
    ck_assert_double_eq(c->elasticity, 2e6);
    ck_assert_double_eq(c->damping, 0.3);
    ck_assert(c->joined);
    ck_assert(!again->volume_constants[0].joined);
    ck_assert_double_eq(again->volume_constants[0].elasticity, 1e7);
    tb_model_destroy(again);
    tb_model_destroy(model);
    tb_scene_destroy(scene);

    plain = new_scene();
    add_shape(plain, none, TB_SHAPE_PLANE, 0, 0, 0);
    model = compile(plain);
    ck_assert_ptr_null(model->volume_constants);
    shape.name = NULL;
    shape.body = none;
    shape.volume_constants.elasticity = 0;
    TEST_STATUS(tb_scene_add_shape(plain, &shape, NULL, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_str_eq(error.field, "volume_constants.elasticity");
    shape.volume_constants = tb_volume_constants_defaults();
    shape.volume_constants.kinetic_friction = 0.7;
    TEST_STATUS(tb_scene_add_shape(plain, &shape, NULL, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_msg(strstr(error.message, "above static_friction") != NULL, "%s", error.message);
    tb_model_destroy(model);
    tb_scene_destroy(plain);
}
END_TEST

/* Tangential restitution follows in an extra, so that other models keep their bytes. */
START_TEST(tangential_restitution_comes_back)
{
    const tb_handle none = {0};
    tb_error error = {0};
    tb_scene *scene = new_scene();
    tb_pair_def pair = tb_pair_defaults();
    tb_shape_def shape = tb_shape_defaults();
    shape.name = "rubber";
    shape.body = add_body(scene, none, "ball");
    shape.size[0] = 0.1;
    shape.surface.tangential_restitution = 0.75;
    pair.a = add_shape(scene, none, TB_SHAPE_PLANE, 0, 0, 0);
    TEST_OK(tb_scene_add_shape(scene, &shape, &pair.b, &error), &error);
    pair.surface.tangential_restitution = 0.5;
    TEST_OK(tb_scene_add_pair(scene, &pair, NULL, &error), &error);
    tb_model *model = compile(scene), *again = NULL;
    TEST_OK(tb_model_from_bytes(model->bytes, model->bytes_size, &again, &error), &error);
    const int32_t ball = tb_model_find(again, TB_HANDLE_SHAPE, "rubber");
    ck_assert_double_eq(again->shapes[ball].surface.tangential_restitution, 0.75);
    ck_assert_double_eq(again->pairs[0].surface.tangential_restitution, 0.5);
    ck_assert(again->has_tangential_restitution);
    ck_assert_str_eq(tb_model_sha256(again), tb_model_sha256(model));
    tb_model_destroy(again);
    tb_model_destroy(model);
    tb_scene_destroy(scene);
}
END_TEST

/* Each prefix lies in memory of its own, so that a sanitizer sees a read past its end. */
START_TEST(every_truncation_is_data_loss)
{
    tb_scene *scene = rich_scene();
    tb_model *model = compile(scene), *again = NULL;
    for (size_t size = 0; size < model->bytes_size; size++) {
        tb_error error = {0};
        tb_scene *read = NULL;
        unsigned char *bytes = malloc(size + 1);
        memcpy(bytes, model->bytes, size);
        TEST_STATUS(tb_model_from_bytes(bytes, size, &again, &error), TB_DATA_LOSS, &error);
        ck_assert_ptr_null(again);
        /* and the reader itself, behind the checksum */
        if (size < model->bytes_size - TB_CANONICAL_CHECKSUM_SIZE) {
            unsigned char *exact = realloc(bytes, size > 0 ? size : 1);
            const tb_status status = tb_canonical_read(exact, size, &read, &error);
            ck_assert_msg(status == TB_DATA_LOSS || status == TB_INVALID_ARGUMENT, "%s",
                          error.message);
            ck_assert_ptr_null(read);
            bytes = exact;
        }
        free(bytes);
    }
    tb_model_destroy(model);
    tb_scene_destroy(scene);
}
END_TEST

START_TEST(every_flipped_bit_is_data_loss)
{
    tb_scene *scene = rich_scene();
    tb_model *model = compile(scene), *again = NULL;
    unsigned char *bytes = malloc(model->bytes_size);
    memcpy(bytes, model->bytes, model->bytes_size);
    for (size_t i = 0; i < model->bytes_size; i++) {
        tb_error error = {0};
        bytes[i] ^= (unsigned char)(1u << i % 8);
        TEST_STATUS(tb_model_from_bytes(bytes, model->bytes_size, &again, &error), TB_DATA_LOSS,
                    &error);
        ck_assert_str_ne(error.message, "");
        bytes[i] ^= (unsigned char)(1u << i % 8);
    }
    free(bytes);
    tb_model_destroy(model);
    tb_scene_destroy(scene);
}
END_TEST

/* Behind the checksum: damaged scenes are refused or compile or fail to, but never crash. */
START_TEST(damaged_scenes_do_not_crash)
{
    tb_scene *scene = rich_scene();
    tb_model *model = compile(scene);
    const size_t size = model->bytes_size - TB_CANONICAL_CHECKSUM_SIZE;
    tb_random random = tb_random_stream(1, 9);
    unsigned char *bytes = malloc(size);
    int compiled = 0;
    for (int round = 0; round < 20000; round++) {
        tb_error error = {0};
        tb_scene *read = NULL;
        tb_model *damaged = NULL;
        memcpy(bytes, model->bytes, size);
        const int flips = 1 + (int)(tb_random_u32(&random) % 4);
        for (int i = 0; i < flips; i++)
            bytes[tb_random_u32(&random) % size] = (unsigned char)tb_random_u32(&random);
        if (tb_canonical_read(bytes, size, &read, &error) != TB_OK) {
            ck_assert_ptr_null(read);
            continue;
        }
        if (tb_scene_compile(read, &damaged, &error) == TB_OK) compiled++;
        tb_model_destroy(damaged);
        tb_scene_destroy(read);
    }
    ck_assert_int_gt(compiled, 0);
    free(bytes);
    tb_model_destroy(model);
    tb_scene_destroy(scene);
}
END_TEST

TEST_MAIN(a_model_comes_back_from_its_bytes, the_format_is_what_it_was,
          equal_models_have_equal_bytes_however_they_were_described, random_models_come_back,
          tangential_restitution_comes_back, volume_constants_come_back,
          every_truncation_is_data_loss, every_flipped_bit_is_data_loss,
          damaged_scenes_do_not_crash)
