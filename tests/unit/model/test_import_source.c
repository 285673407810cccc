/* Importers read through a source of files where one is given, and through nothing else. */
#include "test_util.h"

#include <unistd.h>

#include "base/file.h"

/* A folder in memory; `asked` lists the requested names, each between bars. */
typedef struct folder {
    const char *const *entries; /* path, text, ..., NULL */
    char asked[4096];
} folder;

static tb_status read_entry(void *context, const char *path, unsigned char **bytes, size_t *size,
                            tb_error *error)
{
    folder *f = context;
    const size_t used = strlen(f->asked);
    snprintf(f->asked + used, sizeof f->asked - used, "|%s|", path);
    for (int i = 0; f->entries[i] != NULL; i += 2) {
        if (strcmp(f->entries[i], path) != 0) continue;
        *size = strlen(f->entries[i + 1]);
        *bytes = malloc(*size > 0 ? *size : 1);
        ck_assert_ptr_nonnull(*bytes);
        memcpy(*bytes, f->entries[i + 1], *size);
        return TB_OK;
    }
    snprintf(error->message, sizeof error->message, "no entry '%.200s'", path);
    return error->status = TB_NOT_FOUND;
}

/* a tetrahedron of volume 1/6 */
#define TETRAHEDRON "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
#define BODY_WITH_MESH                                                                             \
    "<worldbody><body name='b'><freejoint/><geom type='mesh' mesh='m'/></body></worldbody>"

static tb_error error;

/* Loads `path` out of the folder. */
static tb_status load(folder *f, const char *path, const tb_import_options *like, tb_model **model)
{
    const tb_file_source source = {read_entry, f};
    tb_import_options options = like != NULL ? *like : tb_import_defaults();
    options.files = &source;
    memset(&error, 0, sizeof error);
    f->asked[0] = 0;
    *model = NULL;
    return tb_model_load(path, &options, model, &error);
}

static void check_normalised(const char *path, const char *expected)
{
    char text[128];
    snprintf(text, sizeof text, "%s", path);
    tb_path_normalise(text);
    ck_assert_msg(strcmp(text, expected) == 0, "'%s' became '%s', not '%s'", path, text, expected);
}

START_TEST(paths_are_normalised_as_text)
{
    check_normalised("a/b.obj", "a/b.obj");
    check_normalised("./a//b/./c.obj", "a/b/c.obj");
    check_normalised("a/../b.obj", "b.obj");
    check_normalised("a/b/../../c", "c");
    check_normalised("../a", "../a");
    check_normalised("a/../../b", "../b");
    check_normalised("../../a/../b", "../../b");
    check_normalised("/../../etc/passwd", "/etc/passwd");
    check_normalised("/a/./../b/", "/b");
    check_normalised("package://p/../../q/a.stl", "package://q/a.stl");
    check_normalised("package://p/meshes/../a.stl", "package://p/a.stl");
    check_normalised("..a/...", "..a/...");
    check_normalised("..", "..");
    check_normalised("/", "/");
    check_normalised("", "");
}
END_TEST

START_TEST(mjcf_finds_includes_and_meshes_in_the_source)
{
    static const char *const FILES[] = {
        "robots/main.xml",
        "<mujoco><compiler meshdir='../meshes'/><include file='parts/body.xml'/></mujoco>",
        "robots/parts/body.xml",
        "<mujoco><asset><mesh name='m' file='./t.obj'/></asset>" BODY_WITH_MESH "</mujoco>",
        "meshes/t.obj",
        TETRAHEDRON,
        NULL};
    folder f = {FILES, ""};
    tb_model *model;
    TEST_OK(load(&f, "robots/main.xml", NULL, &model), &error);
    TEST_NEAR_RELATIVE(tb_model_total_mass(model), 1000.0 / 6, 1e-6);
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_height_field_comes_from_the_source)
{
    static const char *const FILES[] = {
        "h.xml",
        "<mujoco><asset><hfield name='h' file='h.bin' size='1 1 1 1'/></asset>"
        "<worldbody><geom type='hfield' hfield='h'/></worldbody></mujoco>",
        "h.bin", "short", NULL};
    folder f = {FILES, ""};
    tb_model *model;
    /* five bytes are not a height field; the test checks that they were read */
    TEST_STATUS(load(&f, "h.xml", NULL, &model), TB_DATA_LOSS, &error);
    ck_assert_ptr_nonnull(strstr(f.asked, "|h.bin|"));
}
END_TEST

#define URDF(address)                                                                              \
    "<robot name='r'><link name='l'><collision><geometry><mesh filename='" address                 \
    "'/></geometry></collision></link></robot>"

START_TEST(urdf_finds_meshes_by_package_beside_and_above)
{
    static const char *const BY_ADDRESS[] = {"r.urdf", URDF("package://arm/m/t.obj"),
                                             "package://arm/m/t.obj", TETRAHEDRON, NULL};
    static const char *const ABOVE[] = {"arm/urdf/r.urdf", URDF("package://arm/m/t.obj"),
                                        "arm/m/t.obj", TETRAHEDRON, NULL};
    static const char *const BESIDE[] = {"x/r.urdf", URDF("../m/t.obj"), "m/t.obj", TETRAHEDRON,
                                         NULL};
    static const char *const ABSOLUTE[] = {"r.urdf", URDF("file:///m/t.obj"), "/m/t.obj",
                                           TETRAHEDRON, NULL};
    static const char *const *const CASES[] = {BY_ADDRESS, ABOVE, BESIDE, ABSOLUTE};
    for (int i = 0; i < 4; i++) {
        folder f = {CASES[i], ""};
        tb_model *model;
        TEST_OK(load(&f, CASES[i][0], NULL, &model), &error);
        ck_assert_int_eq(tb_model_count(model).meshes, 1);
        tb_model_destroy(model);
    }
}
END_TEST

START_TEST(a_mesh_alone_and_a_mesh_of_a_scene_come_from_the_source)
{
    static const char *const FILES[] = {"a/t.obj", TETRAHEDRON, NULL};
    folder f = {FILES, ""};
    tb_model *model;
    TEST_OK(load(&f, "a/./b/../t.obj", NULL, &model), &error);
    tb_model_destroy(model);

    const tb_file_source source = {read_entry, &f};
    tb_import_options options = tb_import_defaults();
    options.files = &source;
    tb_scene_def def = tb_scene_defaults();
    tb_scene *scene;
    tb_handle handle;
    TEST_OK(tb_scene_create(&def, &scene, &error), &error);
    TEST_OK(tb_scene_load_mesh(scene, "a/t.obj", "t", NULL, TB_MESH_INERTIA_EXACT, &options,
                               &handle, &error),
            &error);
    tb_scene_destroy(scene);
}
END_TEST

/* The disk has the file, the source has not: it is not found, wherever it is named. */
START_TEST(what_the_source_lacks_is_not_taken_from_the_disk)
{
    char disk[64], mjcf_include[256], mjcf_mesh[256], urdf[512];
    snprintf(disk, sizeof disk, "/tmp/tribo_source_%d.obj", (int)getpid());
    FILE *file = fopen(disk, "w");
    ck_assert_ptr_nonnull(file);
    fputs(TETRAHEDRON, file);
    fclose(file);
    snprintf(mjcf_include, sizeof mjcf_include, "<mujoco><include file='%s'/></mujoco>", disk);
    snprintf(mjcf_mesh, sizeof mjcf_mesh,
             "<mujoco><asset><mesh name='m' file='../../../../..%s'/></asset></mujoco>", disk);
    snprintf(urdf, sizeof urdf, URDF("%s"), disk);
    const char *const texts[] = {mjcf_include, mjcf_mesh, urdf};
    for (int i = 0; i < 3; i++) {
        const char *const files[] = {"main", texts[i], NULL};
        folder f = {files, ""};
        tb_model *model;
        TEST_STATUS(load(&f, "main", NULL, &model), TB_NOT_FOUND, &error);
        ck_assert_ptr_null(model);
    }
    const char *const none[] = {NULL};
    folder f = {none, ""};
    tb_model *model;
    TEST_STATUS(load(&f, disk, NULL, &model), TB_NOT_FOUND, &error);
    ck_assert_msg(strstr(error.message, "no entry") != NULL, "%s", error.message);
    unlink(disk);
}
END_TEST

START_TEST(limits_and_cycles_hold_with_a_source)
{
    static const char *const LARGE[] = {
        "m.xml", "<mujoco><asset><mesh name='m' file='t.obj'/></asset>" BODY_WITH_MESH "</mujoco>",
        "t.obj", TETRAHEDRON TETRAHEDRON TETRAHEDRON, NULL};
    folder f = {LARGE, ""};
    tb_model *model;
    tb_import_options options = tb_import_defaults();
    options.file_limit = 150;
    TEST_STATUS(load(&f, "m.xml", &options, &model), TB_RESOURCE_EXHAUSTED, &error);

    static const char *const CYCLE[] = {"a/m.xml",
                                        "<mujoco><include file='../a/./m.xml'/></mujoco>", NULL};
    folder g = {CYCLE, ""};
    TEST_STATUS(load(&g, "a/m.xml", NULL, &model), TB_INVALID_ARGUMENT, &error);
    ck_assert_msg(strstr(error.message, "cycle") != NULL, "%s", error.message);
}
END_TEST

START_TEST(no_files_is_honoured_everywhere)
{
    static const char *const MESH[] = {"r.urdf", URDF("t.obj"), "t.obj", TETRAHEDRON, NULL};
    static const char *const INCLUDE[] = {"m.xml", "<mujoco><include file='b.xml'/></mujoco>",
                                          "b.xml", "<mujoco/>", NULL};
    static const char *const *const CASES[] = {MESH, INCLUDE};
    tb_import_options options = tb_import_defaults();
    options.no_files = true;
    for (int i = 0; i < 2; i++) {
        folder f = {CASES[i], ""};
        tb_model *model;
        TEST_STATUS(load(&f, CASES[i][0], &options, &model), TB_INVALID_ARGUMENT, &error);
        ck_assert_msg(strstr(error.message, "no files may be read") != NULL, "%s", error.message);
        ck_assert_ptr_null(strstr(f.asked, CASES[i][2]));
    }
    tb_scene_def def = tb_scene_defaults();
    tb_scene *scene;
    tb_handle handle;
    TEST_OK(tb_scene_create(&def, &scene, &error), &error);
    TEST_STATUS(tb_scene_load_mesh(scene, "/tmp/t.obj", "t", NULL, TB_MESH_INERTIA_EXACT, &options,
                                   &handle, &error),
                TB_INVALID_ARGUMENT, &error);
    tb_scene_destroy(scene);
}
END_TEST

TEST_MAIN(paths_are_normalised_as_text, mjcf_finds_includes_and_meshes_in_the_source,
          a_height_field_comes_from_the_source, urdf_finds_meshes_by_package_beside_and_above,
          a_mesh_alone_and_a_mesh_of_a_scene_come_from_the_source,
          what_the_source_lacks_is_not_taken_from_the_disk, limits_and_cycles_hold_with_a_source,
          no_files_is_honoured_everywhere)
