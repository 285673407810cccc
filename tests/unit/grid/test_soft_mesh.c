/* Closed meshes as shapes of soft bodies: distances, faults that are named, and bodies of scenes. */
#include "grid/grid.h"
#include "test_util.h"
#include "tribo_soft.h"

static tb_error error;

/* a box from -1 to 1, -1 to 1 and 0 to 1 */
static const double BOX[24] = {-1, -1, 0, 1, -1, 0, -1, 1, 0, 1, 1, 0,
                               -1, -1, 1, 1, -1, 1, -1, 1, 1, 1, 1, 1};
static const int32_t FACES[36] = {0, 2, 3, 0, 3, 1, 4, 5, 7, 4, 7, 6, 0, 1, 5, 0, 5, 4,
                                  2, 6, 7, 2, 7, 3, 0, 4, 6, 0, 6, 2, 1, 3, 7, 1, 7, 5};

static tb_soft_mesh *mesh_of(const double *vertices, int32_t count, const int32_t *faces,
                             int32_t triangles)
{
    tb_soft_mesh *mesh = NULL;
    memset(&error, 0, sizeof error);
    TEST_OK(tb_soft_mesh_create(vertices, count, faces, triangles, &mesh, &error), &error);
    return mesh;
}

static double distance_to_box(const double x[3])
{
    const double side[3] = {fabs(x[0]) - 1, fabs(x[1]) - 1, fabs(x[2] - 0.5) - 0.5};
    double inside = -1e9, outside = 0;
    for (int a = 0; a < 3; a++) {
        inside = fmax(inside, side[a]);
        outside += fmax(side[a], 0) * fmax(side[a], 0);
    }
    return inside > 0 ? sqrt(outside) : inside;
}

START_TEST(distances_are_those_to_the_surface)
{
    int32_t inwards[36];
    for (int i = 0; i < 36; i++) inwards[i] = FACES[i % 3 == 0 ? i : i % 3 == 1 ? i + 1 : i - 1];
    for (int turn = 0; turn < 2; turn++) {
        tb_soft_mesh *mesh = mesh_of(BOX, 8, turn ? inwards : FACES, 12);
        TEST_NEAR(tb_soft_mesh_volume(mesh), 4, 1e-12);
        TEST_OK(tb_soft_mesh_measure(mesh, 0.05, 0.3, 2, &error), &error);
        const tb_soft_samples *s = tb_soft_mesh_samples(mesh);
        double worst = 0;
        for (int i = 0; i < 4000; i++) {
            /* by irrational steps */
            const double x[3] = {2.6 * fmod(0.6180339887 * i, 1) - 1.3,
                                 2.6 * fmod(0.7548776662 * i, 1) - 1.3,
                                 1.6 * fmod(0.5698402910 * i, 1) - 0.3};
            worst = fmax(worst, fabs(tb_soft_sample(s, tb_v3_load(x)) - distance_to_box(x)));
        }
        /* linear between samples: off by less than half a cube at the edges */
        ck_assert_msg(worst < 0.025, "distances are off by %g m", worst);
        tb_soft_mesh_release(mesh);
    }
}
END_TEST

START_TEST(parts_that_overlap_have_an_inside)
{
    double vertices[48];
    int32_t faces[72];
    for (int i = 0; i < 24; i++) {
        vertices[i] = BOX[i];
        vertices[24 + i] = BOX[i] + (i % 3 == 0 ? 0.5 : 0);
    }
    for (int i = 0; i < 36; i++) {
        faces[i] = FACES[i];
        faces[36 + i] = FACES[i] + 8;
    }
    tb_soft_mesh *mesh = mesh_of(vertices, 16, faces, 24);
    TEST_OK(tb_soft_mesh_measure(mesh, 0.1, 0.3, 1, &error), &error);
    const tb_soft_samples *s = tb_soft_mesh_samples(mesh);
    ck_assert(tb_soft_sample(s, tb_v3(-0.8, 0, 0.5)) < 0);
    ck_assert(tb_soft_sample(s, tb_v3(0.2, 0, 0.5)) < 0);
    ck_assert(tb_soft_sample(s, tb_v3(1.3, 0, 0.5)) < 0);
    ck_assert(tb_soft_sample(s, tb_v3(1.7, 0, 0.5)) > 0);
    ck_assert(tb_soft_sample(s, tb_v3(0.2, 0, 1.2)) > 0);
    tb_soft_mesh_release(mesh);
}
END_TEST

START_TEST(a_mesh_that_is_not_closed_is_named_with_the_place)
{
    tb_soft_mesh *mesh = NULL;
    ck_assert_int_eq(tb_soft_mesh_create(BOX, 8, FACES, 11, &mesh, &error), TB_INVALID_ARGUMENT);
    ck_assert_ptr_null(mesh);
    ck_assert_str_eq(error.field, "mesh");
    ck_assert_msg(strstr(error.message, "not closed: 3 of its edges") != NULL, "%s", error.message);
    /* the triangle 1 7 5 is missing; its neighbours have the edges of (1, -1, 0) and (1, 1, 1) */
    ck_assert_msg(strstr(error.message, "(1 -1 0)") != NULL ||
                      strstr(error.message, "(1 1 1)") != NULL,
                  "%s", error.message);
    const int32_t flat[6] = {0, 1, 2, 0, 2, 1}, wrong[6] = {0, 1, 2, 0, 2, 8};
    ck_assert_int_eq(tb_soft_mesh_create(BOX, 8, flat, 2, &mesh, &error), TB_INVALID_ARGUMENT);
    ck_assert_int_eq(tb_soft_mesh_create(BOX, 8, wrong, 2, &mesh, &error), TB_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.message, "vertex 8") != NULL, "%s", error.message);
}
END_TEST

/* ---- scenes ---- */

typedef struct files {
    const char *text, *mesh; /* of "main.xml" and "parts/block.obj"; NULL: there is none */
} files;

static tb_status read_file(void *context, const char *path, unsigned char **bytes, size_t *size,
                           tb_error *cause)
{
    const files *f = context;
    const char *text = strcmp(path, "main.xml") == 0          ? f->text
                       : strcmp(path, "parts/block.obj") == 0 ? f->mesh
                                                              : NULL;
    if (text == NULL) return tb_fail(cause, TB_NOT_FOUND, "there is no file %s", path);
    *bytes = (unsigned char *)strdup(text);
    *size = strlen(text);
    return TB_OK;
}

static tb_status load(const char *text, const char *mesh, tb_model **model)
{
    files f = {text, mesh};
    const tb_file_source source = {read_file, &f};
    tb_import_options options = tb_import_defaults();
    options.files = &source;
    memset(&error, 0, sizeof error);
    return tb_model_load("main.xml", &options, model, &error);
}

/* A block of 0.6 x 0.6 x 0.3 m on a floor, whose body is `body`. */
static const char *scene_of(const char *mesh, const char *body)
{
    static char text[1600];
    snprintf(text, sizeof text,
             "<soft model=\"block\">\n"
             "  <option timestep=\"0.002\" gravity=\"0 0 -9.81\"/>\n"
             "  <grid lower=\"-0.9 -0.9 -0.6\" upper=\"0.9 0.9 0.9\" spacing=\"0.15\"/>\n"
             "  <material name=\"jelly\" density=\"1000\" young=\"1e5\" poisson=\"0.3\" "
             "damping=\"0.02\"/>\n"
             "  %s\n"
             "  <body name=\"block\" material=\"jelly\" %s/>\n"
             "  <wall name=\"floor\" type=\"plane\"/>\n"
             "</soft>\n",
             mesh, body);
    return text;
}

static const char OBJ[] = "v -1 -1 0\nv 1 -1 0\nv -1 1 0\nv 1 1 0\n"
                          "v -1 -1 1\nv 1 -1 1\nv -1 1 1\nv 1 1 1\n"
                          "f 1 3 4 2\nf 5 6 8 7\nf 1 2 6 5\nf 3 7 8 4\nf 1 5 7 3\nf 2 4 8 6\n";
static const char MESH[] = "<mesh name=\"m\" file=\"parts/block.obj\" scale=\"0.3\"/>";

static tb_state *state_of(const tb_model *model)
{
    tb_state *state = NULL;
    TEST_OK(tb_state_create(model, &state, &error), &error);
    return state;
}

static void step(tb_state *state, int32_t steps)
{
    tb_stepper *stepper = NULL;
    TEST_OK(tb_stepper_create(NULL, &stepper, &error), &error);
    TEST_OK(tb_step(stepper, state, steps, NULL, &error), &error);
    tb_stepper_destroy(stepper);
}

START_TEST(a_box_of_triangles_moves_as_a_box)
{
    tb_model *models[2];
    double centres[2][3], energies[2][3];
    TEST_OK(load(scene_of(MESH, "type=\"mesh\" mesh=\"m\""), OBJ, &models[0]), &error);
    TEST_OK(
        load(scene_of("", "type=\"box\" size=\"0.3 0.3 0.15\" pos=\"0 0 0.15\""), NULL, &models[1]),
        &error);
    for (int i = 0; i < 2; i++) {
        tb_state *state = state_of(models[i]);
        tb_soft_certificate c;
        step(state, 40);
        ck_assert(tb_state_soft_certificate(state, &c));
        ck_assert_int_eq(c.status, TB_OK);
        ck_assert(c.mass_error < 0.02);
        tb_soft_world_measure(tb_state_soft_world(state), 0, energies[i], NULL, centres[i]);
        tb_state_destroy(state);
        tb_model_destroy(models[i]);
    }
    /* octants at the edges of triangles are cut by one distance, those of a box by three sides: two
     * cells a height are few for them */
    for (int a = 0; a < 3; a++) TEST_NEAR(centres[0][a], centres[1][a], 1e-3);
    TEST_NEAR_RELATIVE(energies[0][1], energies[1][1], 0.05);
}
END_TEST

START_TEST(a_meshs_file_belongs_to_the_model_and_its_states)
{
    tb_model *model;
    TEST_OK(load(scene_of(MESH, "type=\"mesh\" mesh=\"m\""), OBJ, &model), &error);
    ck_assert_int_eq(tb_soft_model_bodies(model), 1);
    tb_state *state = state_of(model), *fork = NULL, *other = state_of(model);
    unsigned char *bytes[3];
    size_t size[3];
    step(state, 3);
    TEST_OK(tb_state_fork(state, &fork, &error), &error);
    TEST_OK(tb_state_snapshot(state, &bytes[0], &size[0], &error), &error);
    TEST_OK(tb_state_restore(other, bytes[0], size[0], &error), &error);
    tb_bytes_destroy(bytes[0]);
    tb_state *all[3] = {state, fork, other};
    for (int i = 0; i < 3; i++) {
        step(all[i], 5);
        TEST_OK(tb_state_snapshot(all[i], &bytes[i], &size[i], &error), &error);
        ck_assert_msg(size[i] == size[0] && memcmp(bytes[i], bytes[0], size[0]) == 0,
                      "state %d is another", i);
    }
    for (int i = 0; i < 3; i++) {
        tb_state_destroy(all[i]);
        tb_bytes_destroy(bytes[i]);
    }
    tb_model_destroy(model);
}
END_TEST

static void refuse(const char *mesh, const char *body, const char *obj, const char *message)
{
    tb_model *model = NULL;
    const tb_status status = load(scene_of(mesh, body), obj, &model);
    ck_assert_int_ne(status, TB_OK);
    ck_assert_ptr_null(model);
    ck_assert_msg(strstr(error.message, message) != NULL, "'%s' is not in: %s", message,
                  error.message);
}

START_TEST(faults_of_meshes_in_scenes_are_named)
{
    const char *body = "type=\"mesh\" mesh=\"m\"";
    char open[sizeof OBJ];
    strcpy(open, OBJ);
    *strstr(open, "f 2 4") = 0;
    refuse(MESH, body, open, "parts/block.obj");
    refuse(MESH, body, open, "not closed: 4 of its edges");
    refuse(MESH, body, NULL, "parts/block.obj");
    refuse(MESH, "type=\"mesh\" mesh=\"n\"", OBJ, "main.xml:6: body 'block'");
    refuse(MESH, "type=\"mesh\"", OBJ, "mesh");
    refuse("<mesh name=\"m\" vertex=\"0 0 0 1\" face=\"0 0 0\"/>", body, NULL,
           "main.xml:5: mesh 'm'");
    refuse("<mesh name=\"m\" vertex=\"0 0 0  1 0 0  0 1 0\" face=\"0 1 2\"/>", body, NULL,
           "not closed: 3 of its edges");
    refuse("<mesh name=\"m\" vertex=\"0 0 0  1 0 0  0 1 0\" face=\"0 1 2.5\"/>", body, NULL, "2.5");
    refuse("<mesh name=\"m\" file=\"parts/block.obj\" face=\"0 1 2\"/>", body, OBJ, "file");
    refuse("<mesh name=\"m\" file=\"parts/block.obj\" scale=\"3\"/>", body, OBJ,
           "body 'block' reaches from");
}
END_TEST

TEST_MAIN(distances_are_those_to_the_surface, parts_that_overlap_have_an_inside,
          a_mesh_that_is_not_closed_is_named_with_the_place, a_box_of_triangles_moves_as_a_box,
          a_meshs_file_belongs_to_the_model_and_its_states, faults_of_meshes_in_scenes_are_named)
