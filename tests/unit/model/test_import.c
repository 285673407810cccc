/* Loading scenes by path: file types, meshes, and failures. */
#include "test_util.h"

#include <unistd.h>

#include "model/model.h"

static tb_error error;
static char path[64];

/* Writes a file in a folder for temporary files; the next one replaces it. */
static const char *file_with(const char *ending, const char *text)
{
    if (path[0] != 0) unlink(path);
    snprintf(path, sizeof path, "/tmp/tribo_import_%d_thing%s", (int)getpid(), ending);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
    return path;
}

static void remove_file(void)
{
    unlink(path);
    path[0] = 0;
}

/* The scene's model, and the scene's first warning. */
static tb_model *loaded(const char *file, double density, char *warning, size_t size)
{
    tb_import_options options = tb_import_defaults();
    options.density = density;
    tb_scene *scene;
    tb_model *model;
    memset(&error, 0, sizeof error);
    TEST_OK(tb_scene_load(file, &options, &scene, &error), &error);
    snprintf(warning, size, "%s",
             tb_scene_number_of_warnings(scene) > 0 ? tb_scene_warning(scene, 0) : "");
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    tb_scene_destroy(scene);
    return model;
}

static void check_failure(const char *file, tb_status expected, const char *words)
{
    tb_scene *scene;
    memset(&error, 0, sizeof error);
    TEST_STATUS(tb_scene_load(file, NULL, &scene, &error), expected, &error);
    ck_assert_msg(strstr(error.message, words) != NULL, "'%s' lacks '%s'", error.message, words);
    ck_assert_ptr_null(scene);
}

#define CUBE_VERTICES "v 0 0 0\nv 2 0 0\nv 2 1 0\nv 0 1 0\nv 0 0 1\nv 2 0 1\nv 2 1 1\nv 0 1 1\n"
#define CUBE                                                                                       \
    CUBE_VERTICES "f 4 3 2 1\nf 5 6 7 8\nf 1 2 6 5\n"                                              \
                  "f 2 3 7 6\nf 3 4 8 7\nf 4 1 5 8\n"
/* an L of volume 3 and height 1 */
#define ANGLE                                                                                      \
    "v 0 0 0\nv 2 0 0\nv 2 1 0\nv 1 1 0\nv 1 2 0\nv 0 2 0\n"                                       \
    "v 0 0 1\nv 2 0 1\nv 2 1 1\nv 1 1 1\nv 1 2 1\nv 0 2 1\n"                                       \
    "f 6 5 4 3 2 1\nf 7 8 9 10 11 12\nf 1 2 8 7\nf 2 3 9 8\nf 3 4 10 9\nf 4 5 11 10\n"             \
    "f 5 6 12 11\nf 6 1 7 12\n"

START_TEST(a_convex_mesh_becomes_a_free_hull)
{
    char warning[200];
    tb_model *model = loaded(file_with(".obj", CUBE), 500, warning, sizeof warning);
    tb_body_info info;
    ck_assert_str_eq(warning, "");
    ck_assert_int_eq(model->number_of_dofs, 6);
    ck_assert_int_eq(model->shapes[0].type, TB_SHAPE_CONVEX);
    TEST_OK(tb_model_body_info(model, 1, &info), NULL);
    TEST_NEAR(info.mass, 1000, 1e-9);
    TEST_NEAR(info.com[0], 1, 1e-12);
    TEST_NEAR(info.inertia[0], 1000 * (1 + 1) / 12.0, 1e-9);
    TEST_NEAR(info.inertia[2], 1000 * (4 + 1) / 12.0, 1e-9);
    /* the file's name without folder and extension */
    ck_assert_ptr_nonnull(strstr(tb_model_thing_name(model, TB_HANDLE_BODY, 1), "thing"));
    ck_assert_ptr_null(strchr(tb_model_thing_name(model, TB_HANDLE_BODY, 1), '/'));
    ck_assert_ptr_null(strstr(tb_model_thing_name(model, TB_HANDLE_BODY, 1), ".obj"));
    tb_model_destroy(model);
    remove_file();
}
END_TEST

START_TEST(another_mesh_keeps_its_triangles)
{
    char warning[200];
    tb_model *model = loaded(file_with(".obj", ANGLE), 1000, warning, sizeof warning);
    ck_assert_str_eq(warning, "");
    ck_assert_int_eq(model->shapes[0].type, TB_SHAPE_MESH);
    TEST_NEAR(tb_model_total_mass(model), 3000, 1e-9);
    tb_model_destroy(model);
    remove_file();
}
END_TEST

START_TEST(a_mesh_that_faces_inwards_is_turned_round)
{
    char warning[300];
    tb_model *model = loaded(file_with(".obj", CUBE_VERTICES
                                       "f 1 2 3 4\nf 8 7 6 5\nf 5 6 2 1\nf 6 7 3 2\nf 7 8 4 3\n"
                                       "f 8 5 1 4\n"),
                             1000, warning, sizeof warning);
    ck_assert_ptr_nonnull(strstr(warning, "inwards"));
    ck_assert_int_eq(model->shapes[0].type, TB_SHAPE_CONVEX);
    TEST_NEAR(tb_model_total_mass(model), 2000, 1e-9);
    tb_model_destroy(model);
    remove_file();
}
END_TEST

START_TEST(a_mesh_with_a_hole_weighs_as_its_hull)
{
    char warning[300];
    tb_model *model = loaded(file_with(".obj", CUBE_VERTICES "f 4 3 2 1\nf 1 2 6 5\nf 2 3 7 6\n"
                                                             "f 3 4 8 7\nf 4 1 5 8\n"),
                             1000, warning, sizeof warning);
    ck_assert_ptr_nonnull(strstr(warning, "not closed"));
    ck_assert_int_eq(model->shapes[0].type, TB_SHAPE_MESH);
    TEST_NEAR(tb_model_total_mass(model), 2000, 1e-9);
    tb_model_destroy(model);
    remove_file();
}
END_TEST

START_TEST(a_cloud_of_points_becomes_its_hull)
{
    char warning[200];
    tb_model *model = loaded(file_with(".obj", CUBE_VERTICES), 1000, warning, sizeof warning);
    ck_assert_int_eq(model->shapes[0].type, TB_SHAPE_CONVEX);
    TEST_NEAR(tb_model_total_mass(model), 2000, 1e-9);
    tb_model_destroy(model);
    remove_file();
}
END_TEST

START_TEST(xml_is_told_by_its_root)
{
    char warning[300];
    tb_model *model =
        loaded(file_with(".xml", "\xEF\xBB\xBF<?xml version='1.0'?>\n<robot name='r'><link "
                                 "name='a'/></robot>"),
               1000, warning, sizeof warning);
    ck_assert_int_eq(tb_model_find(model, TB_HANDLE_BODY, "a"), 1);
    tb_model_destroy(model);
    model = loaded(file_with(".urdf", "<mujoco><worldbody><body name='b'><freejoint/><geom "
                                      "size='1'/></body></worldbody></mujoco>"),
                   1000, warning, sizeof warning);
    ck_assert_int_eq(tb_model_find(model, TB_HANDLE_BODY, "b"), 1);
    tb_model_destroy(model);
    check_failure(file_with(".xml", "<!-- x -->\n<sdf/>"), TB_INVALID_ARGUMENT,
                  "neither 'mujoco', 'robot' nor 'soft'");
    ck_assert_int_eq(error.line, 2);
    remove_file();
}
END_TEST

START_TEST(every_mistake_names_the_file)
{
    check_failure("/nowhere/at/all.obj", TB_NOT_FOUND, "/nowhere/at/all.obj");
    check_failure("/tmp", TB_INVALID_ARGUMENT, "/tmp");
    check_failure(file_with(".obj", ""), TB_INVALID_ARGUMENT, "empty");
    check_failure(file_with(".obj", "v 0 0 0\nf 1 2 3\n"), TB_INVALID_ARGUMENT, ".obj:2");
    check_failure(file_with(".stl", "solid\nfacet\n"), TB_DATA_LOSS, ".stl:3");
    check_failure(file_with(".ply", "v 0 0 0\n"), TB_UNSUPPORTED, ".ply");
    check_failure(file_with(".bin", "hello"), TB_INVALID_ARGUMENT, "'hello'");
    /* flat, and a single point */
    check_failure(file_with(".obj", "v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nf 1 2 3 4\n"),
                  TB_INVALID_ARGUMENT, ".obj");
    check_failure(file_with(".obj", "v 0 0 0\n"), TB_INVALID_ARGUMENT, ".obj");
    remove_file();
}
END_TEST

START_TEST(options_are_checked)
{
    tb_scene *scene;
    const char *file = file_with(".obj", CUBE);
    tb_import_options options = tb_import_defaults();
    options.file_limit = 20;
    TEST_STATUS(tb_scene_load(file, &options, &scene, &error), TB_RESOURCE_EXHAUSTED, NULL);
    options = tb_import_defaults();
    options.density = 0;
    TEST_STATUS(tb_scene_load(file, &options, &scene, &error), TB_INVALID_ARGUMENT, NULL);
    ck_assert_str_eq(error.field, "density");
    options = tb_import_defaults();
    options.depth_limit = 0;
    TEST_STATUS(tb_scene_load(file, &options, &scene, &error), TB_INVALID_ARGUMENT, NULL);
    ck_assert_str_eq(error.field, "depth_limit");
    remove_file();
}
END_TEST

START_TEST(a_mesh_asset_is_scaled_by_axis)
{
    tb_scene *scene;
    const tb_scene_def def = tb_scene_defaults();
    tb_handle mesh;
    const char *file = file_with(".obj", CUBE);
    const double scale[3] = {0.5, -2, 3}, zero[3] = {1, 0, 1};
    TEST_OK(tb_scene_create(&def, &scene, &error), &error);
    TEST_OK(tb_scene_load_mesh(scene, file, "m", scale, TB_MESH_INERTIA_EXACT, NULL, &mesh, &error),
            &error);
    ck_assert_int_eq(tb_scene_find(scene, TB_HANDLE_MESH, "m").index, mesh.index);

    /* a reflection leaves the volume positive: the triangles were turned */
    tb_body_def body = tb_body_defaults();
    tb_joint_def joint = tb_joint_defaults();
    tb_shape_def shape = tb_shape_defaults();
    tb_model *model;
    TEST_OK(tb_scene_add_body(scene, &body, &joint.body, &error), &error);
    joint.type = TB_JOINT_FREE;
    TEST_OK(tb_scene_add_joint(scene, &joint, NULL, &error), &error);
    shape.body = joint.body;
    shape.type = TB_SHAPE_MESH;
    shape.asset = mesh;
    TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    TEST_NEAR(tb_model_total_mass(model), 6000, 1e-9);
    tb_model_destroy(model);

    TEST_STATUS(
        tb_scene_load_mesh(scene, file, "n", zero, TB_MESH_INERTIA_EXACT, NULL, &mesh, &error),
        TB_INVALID_ARGUMENT, NULL);
    ck_assert_str_eq(error.field, "scale");
    tb_scene_destroy(scene);
    remove_file();
}
END_TEST

TEST_MAIN(a_convex_mesh_becomes_a_free_hull, another_mesh_keeps_its_triangles,
          a_mesh_that_faces_inwards_is_turned_round, a_mesh_with_a_hole_weighs_as_its_hull,
          a_cloud_of_points_becomes_its_hull, xml_is_told_by_its_root, every_mistake_names_the_file,
          options_are_checked, a_mesh_asset_is_scaled_by_axis)
