/* MJCF geoms and assets: sizes, surfaces, masses, meshes in every file form, height fields. */
#include <sys/stat.h>
#include <unistd.h>

#include "mjcf_util.h"

#define TETRAHEDRON "vertex='0 0 0  1 0 0  0 1 0  0 0 1' "
#define FACES       "face='0 2 1  0 1 3  0 3 2  1 2 3' "

START_TEST(surfaces_have_mujocos_defaults_and_units)
{
    mjcf_case c = mjcf_load(WORLD("<geom name='a' size='1'/><geom name='b' size='1' condim='6' "
                                  "friction='.5 .02 .003'/><geom name='c' size='1' condim='1' "
                                  "friction='0' contype='2' conaffinity='-1'/>"));
    const tb_model_shape *a = mjcf_shape(&c, "a"), *b = mjcf_shape(&c, "b"),
                         *d = mjcf_shape(&c, "c");
    ck_assert_int_eq(a->surface.kind, TB_CONTACT_COULOMB);
    TEST_NEAR(a->surface.friction, 1, 0);
    TEST_NEAR(a->surface.restitution, 0, 0);
    ck_assert_uint_eq(a->category, 1);
    ck_assert_uint_eq(a->mask, 1);
    /* torque of spin: 2/3 mu radius lambda = 0.02 lambda */
    ck_assert_int_eq(b->surface.kind, TB_CONTACT_ROLLING);
    TEST_NEAR(2.0 / 3.0 * b->surface.friction * b->surface.spin_radius, 0.02, 1e-15);
    TEST_NEAR(b->surface.rolling_length, 0.003, 0);
    ck_assert_int_eq(d->surface.kind, TB_CONTACT_FRICTIONLESS);
    ck_assert_uint_eq(d->category, 2);
    ck_assert_uint_eq(d->mask, UINT32_MAX);
    mjcf_free(&c);

    c = mjcf_load(
        MJCF("<option o_friction='.3 .3 .01'><flag override='enable'/></option><worldbody>"
             "<geom name='a' size='1' friction='2'/></worldbody>"));
    TEST_NEAR(mjcf_shape(&c, "a")->surface.friction, 0.3, 0);
    mjcf_free(&c);
}
END_TEST

START_TEST(masses_come_from_density_or_are_given)
{
    mjcf_case c =
        mjcf_load(WORLD("<body name='a'><joint/><geom size='.1' density='500'/></body>"
                        "<body name='b'><joint/><geom type='box' size='.1 .2 .3' mass='3'/>"
                        "</body><body name='c'><joint/><geom type='box' size='.5 .5 .5' "
                        "shellinertia='true' density='2'/><geom size='9' mass='0'/></body>"));
    TEST_NEAR_RELATIVE(mjcf_body(&c, "a")->mass, 2.0943951023931953, 1e-14);
    TEST_NEAR(mjcf_body(&c, "b")->mass, 3, 1e-15);
    TEST_NEAR(mjcf_body(&c, "b")->inertia[0], 3.0 / 3 * (0.04 + 0.09), 1e-14);
    TEST_NEAR_RELATIVE(mjcf_body(&c, "c")->mass, 12, 1e-14);
    mjcf_free(&c);
}
END_TEST

START_TEST(geoms_that_are_only_seen_are_left_out)
{
    mjcf_case c = mjcf_load(MJCF(
        "<default><default class='v'><geom contype='0' conaffinity='0' group='2'/></default>"
        "</default><asset><mesh name='flat' vertex='0 0 0 1 0 0 0 1 0 1 1 0'/></asset><worldbody>"
        "<geom class='v' size='1'/><body><joint/><inertial pos='0 0 0' mass='1' "
        "diaginertia='1 1 1'/><geom class='v' type='mesh' mesh='flat'/><geom class='v' "
        "type='capsule' mesh='flat'/><geom class='v' name='kept' size='1'/></body>"
        "<body name='b'><joint/><geom class='v' size='.1' name='weighs'/><geom class='v' size='.1' "
        "mass='0'/></body></worldbody>"
        "<contact><pair geom1='kept' geom2='weighs'/></contact>"));
    ck_assert_int_eq(c.model->number_of_shapes, 2);
    TEST_NEAR_RELATIVE(mjcf_body(&c, "b")->mass, 4.1887902047863905, 1e-14);
    mjcf_free(&c);
}
END_TEST

START_TEST(contact_can_be_disabled)
{
    static const char *const FLAGS[] = {"contact", "constraint"};
    for (int i = 0; i < 2; i++) {
        char text[500];
        snprintf(text, sizeof text,
                 "<mujoco><option><flag %s='disable'/></option><worldbody><geom name='a' size='1'/>"
                 "<body><joint range='0 1' frictionloss='1'/><geom name='b' size='1'/></body>"
                 "</worldbody><contact><pair geom1='a' geom2='b'/></contact><equality>"
                 "<weld body1='world' body2='p'/></equality></mujoco>",
                 FLAGS[i]);
        char *place = strstr(text, "<body>");
        memmove(place + 14, place + 5, strlen(place + 5) + 1);
        memcpy(place, "<body name='p'", 14);
        mjcf_case c = mjcf_load(text);
        ck_assert_uint_eq(mjcf_shape(&c, "a")->mask, 0);
        ck_assert_int_eq(c.model->number_of_pairs, 0);
        ck_assert_int_eq(c.model->joints[0].limited, i == 0);
        ck_assert_int_eq(c.model->dofs[0].dry_friction > 0, i == 0);
        ck_assert_int_eq(c.model->equalities[0].disabled, i == 1);
        mjcf_free(&c);
    }
}
END_TEST

START_TEST(inline_meshes_are_moved_turned_and_scaled)
{
    /* (v - p) turned back by refquat, then scaled: MuJoCo's vertices in the body */
    mjcf_case c = mjcf_load(MJCF("<asset><mesh name='m' " TETRAHEDRON FACES
                                 "inertia='exact' scale='1 2 3' refpos='0.5 0.25 0.75' "
                                 "refquat='1 1 0 0'/></asset><worldbody><body "
                                 "name='b'><freejoint/><geom name='g' type='mesh' "
                                 "mesh='m' pos='1 1 1'/></body></worldbody>"));
    const tb_model_shape *g = mjcf_shape(&c, "g");
    ck_assert_int_eq(g->type, TB_SHAPE_CONVEX);
    TEST_NEAR_RELATIVE(mjcf_body(&c, "b")->mass, 1000, 1e-12);
    /* centroid (1/4, 1/4, 1/4) - p = (-1/4, 0, -1/2), turned by -90 about x, scaled,
     * at (1, 1, 1) */
    MJCF_NEAR3(mjcf_body(&c, "b")->com, 0.75, 0, 1);
    mjcf_free(&c);

    c = mjcf_load(
        MJCF("<asset><mesh name='m' " TETRAHEDRON FACES "inertia='exact' scale='2 2 2' "
             "refpos='0.5 0.25 0.75' refquat='1 1 0 0'/></asset><worldbody><body name='b'>"
             "<freejoint/><geom name='g' type='mesh' mesh='m'/></body></worldbody>"));
    MJCF_NEAR3(mjcf_body(&c, "b")->com, -0.5, -1, 0);
    mjcf_free(&c);

    /* a mirrored mesh keeps its inside inside; points alone are a hull */
    c = mjcf_load(
        MJCF("<default><mesh scale='1 1 -1'/></default><asset><mesh name='m' " TETRAHEDRON FACES
             "inertia='exact'/><mesh name='n' " TETRAHEDRON "/></asset><worldbody>"
             "<body name='b'><freejoint/><geom type='mesh' mesh='m'/></body>"
             "<body name='c'><freejoint/><geom type='mesh' mesh='n'/></body></worldbody>"));
    TEST_NEAR_RELATIVE(mjcf_body(&c, "b")->mass, 1000.0 / 6, 1e-12);
    TEST_NEAR_RELATIVE(mjcf_body(&c, "c")->mass, 1000.0 / 6, 1e-12);
    MJCF_NEAR3(mjcf_body(&c, "b")->com, 0.25, 0.25, -0.25);
    mjcf_free(&c);
}
END_TEST

/* ---- files ---- */

static char folder[] = "/tmp/tribo_mjcf_XXXXXX";

static void write_file(const char *name, const void *data, size_t size)
{
    char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(data, 1, size, file), size);
    fclose(file);
}

static void make_folder(void)
{
    char path[200];
    memcpy(folder + strlen(folder) - 6, "XXXXXX", 6);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/meshes", folder);
    ck_assert_int_eq(mkdir(path, 0700), 0);
}

static void remove_folder(void)
{
    static const char *const NAMES[] = {"meshes/t.obj", "meshes/t.msh", "meshes/t.stl", "h.bin",
                                        "meshes"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        char path[200];
        snprintf(path, sizeof path, "%s/%s", folder, NAMES[i]);
        remove(path);
    }
    rmdir(folder);
}

/* loads a document that lies in the folder */
static tb_status load_there(const char *text, mjcf_case *c)
{
    char path[200];
    memset(c, 0, sizeof *c);
    snprintf(path, sizeof path, "%s/model.xml", folder);
    const tb_status status =
        tb_scene_load_mjcf(text, strlen(text), path, NULL, &c->scene, &c->error);
    if (status == TB_OK) TEST_OK(tb_scene_compile(c->scene, &c->model, &c->error), &c->error);
    return status;
}

START_TEST(sdf_of_points_without_faces_is_their_hull)
{
    mjcf_case c = mjcf_load(
        MJCF("<asset><mesh name='m' " TETRAHEDRON "/><mesh name='f' " TETRAHEDRON FACES
             "/></asset><worldbody><body name='b'><freejoint/><geom name='g' type='sdf' mesh='m'/>"
             "</body><geom name='h' type='sdf' mesh='f'/></worldbody>"));
    ck_assert_int_eq(mjcf_shape(&c, "g")->type, TB_SHAPE_CONVEX);
    ck_assert_int_eq(mjcf_shape(&c, "h")->type, TB_SHAPE_MESH);
    TEST_NEAR_RELATIVE(mjcf_body(&c, "b")->mass, 1000.0 / 6, 1e-14);
    mjcf_free(&c);
}
END_TEST

START_TEST(mesh_files_are_found_by_meshdir_and_named_by_their_stem)
{
    static const char OBJ[] =
        "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n";
    unsigned char msh[16 + 12 * 4 + 12 * 4];
    const int32_t counts[4] = {4, 0, 0, 4}, faces[12] = {0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3};
    const float vertices[12] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1};
    memcpy(msh, counts, 16);
    memcpy(msh + 16, vertices, 48);
    memcpy(msh + 64, faces, 48);
    make_folder();
    write_file("meshes/t.obj", OBJ, strlen(OBJ));
    write_file("meshes/t.msh", msh, sizeof msh);
    mjcf_case c;
#define MESHES(compiler, assets)                                                                   \
    MJCF("<compiler " compiler "/><asset>" assets "</asset><worldbody><body name='b'><freejoint/>" \
         "<geom type='mesh' mesh='t'/></body></worldbody>")
    static const char *const GOOD[] = {
        MESHES("meshdir='meshes'", "<mesh file='t.obj'/>"),
        MESHES("meshdir='meshes/'", "<mesh file='t.msh'/>"),
        MESHES("assetdir='meshes'", "<mesh file='t.obj'/>"),
        MESHES("assetdir='nowhere' meshdir='meshes'", "<mesh file='t.obj'/>"),
        MESHES("meshdir='meshes' strippath='true'", "<mesh file='C:\\robots/hand\\t.obj'/>"),
        MESHES("", "<mesh name='t' file='meshes/t.msh' content_type='model/vnd.mujoco.msh'/>"),
    };
    for (size_t i = 0; i < sizeof GOOD / sizeof GOOD[0]; i++) {
        TEST_OK(load_there(GOOD[i], &c), &c.error);
        TEST_NEAR_RELATIVE(mjcf_body(&c, "b")->mass, 1000.0 / 6, 1e-12);
        mjcf_free(&c);
    }

    TEST_STATUS(load_there(MESHES("", "<mesh file='t.obj'/>"), &c), TB_NOT_FOUND, NULL);
    ck_assert(strstr(c.error.message, "model.xml:1: mesh: cannot read file") != NULL);
    ck_assert(strstr(c.error.message, "t.obj") != NULL);
    write_file("meshes/t.msh", msh, sizeof msh - 1);
    TEST_STATUS(load_there(MESHES("meshdir='meshes'", "<mesh file='t.msh'/>"), &c), TB_DATA_LOSS,
                NULL);
    write_file("meshes/t.stl", OBJ, 3);
    ck_assert_int_ne(load_there(MESHES("meshdir='meshes'", "<mesh file='t.stl'/>"), &c), TB_OK);
    ck_assert(strstr(c.error.message, "model.xml:1: mesh: ") != NULL);
    remove_folder();
}
END_TEST

START_TEST(height_fields_are_scaled_to_their_range)
{
    mjcf_case c = mjcf_load(MJCF("<asset><hfield name='h' nrow='2' ncol='3' size='1 2 3 .1' "
                                 "elevation='1 2 3 4 5 6'/></asset><worldbody><geom type='hfield' "
                                 "hfield='h'/></worldbody>"));
    const tb_height_field *h = &c.model->height_fields[0];
    static const double EXPECTED[] = {1.8, 2.4, 3, 0, 0.6, 1.2};
    ck_assert_int_eq(h->rows, 2);
    for (int i = 0; i < 6; i++) TEST_NEAR(h->heights[i], EXPECTED[i], 1e-15);
    TEST_NEAR(h->half_y, 2, 0);
    TEST_NEAR(h->base, 0.1, 0);
    mjcf_free(&c);

    unsigned char file[8 + 16];
    const int32_t counts[2] = {2, 2};
    const float heights[4] = {5, 6, 7, 9};
    memcpy(file, counts, 8);
    memcpy(file + 8, heights, 16);
    make_folder();
    write_file("h.bin", file, sizeof file);
#define FIELD                                                                                      \
    MJCF("<asset><hfield file='h.bin' size='1 1 4 1'/></asset><worldbody><geom type='hfield' "     \
         "hfield='h'/></worldbody>")
    TEST_OK(load_there(FIELD, &c), &c.error);
    TEST_NEAR(c.model->height_fields[0].heights[1], 1, 1e-15);
    TEST_NEAR(c.model->height_fields[0].heights[3], 4, 1e-15);
    mjcf_free(&c);
    write_file("h.bin", file, sizeof file - 4);
    TEST_STATUS(load_there(FIELD, &c), TB_DATA_LOSS, NULL);
    remove_folder();
}
END_TEST

START_TEST(geoms_and_pairs_rebound_as_written)
{
    mjcf_case c = mjcf_load(
        MJCF("<default><geom restitution='.5'/><pair tangential_restitution='.75'/>"
             "<default class='ball'><geom tangential_restitution='.25'/></default></default>"
             "<worldbody><geom name='floor' type='plane' size='1 1 1'/>"
             "<body name='b' pos='0 0 2'><freejoint/>"
             "<geom name='a' size='.1' class='ball'/></body>"
             "<body pos='0 0 3'><freejoint/><geom name='g' size='.1' restitution='1'/></body>"
             "</worldbody><contact><pair geom1='a' geom2='g' restitution='.125'/></contact>"));
    const tb_surface *floor = &c.model->shapes[mjcf_index(&c, TB_HANDLE_SHAPE, "floor")].surface;
    const tb_surface *a = &c.model->shapes[mjcf_index(&c, TB_HANDLE_SHAPE, "a")].surface;
    const tb_surface *g = &c.model->shapes[mjcf_index(&c, TB_HANDLE_SHAPE, "g")].surface;
    tb_shape_info info;
    TEST_NEAR(floor->restitution, 0.5, 0);
    TEST_NEAR(floor->tangential_restitution, 0, 0);
    TEST_NEAR(a->restitution, 0.5, 0);
    TEST_NEAR(a->tangential_restitution, 0.25, 0);
    TEST_NEAR(g->restitution, 1, 0);
    ck_assert_int_eq(c.model->number_of_pairs, 1);
    TEST_NEAR(c.model->pairs[0].surface.restitution, 0.125, 0);
    TEST_NEAR(c.model->pairs[0].surface.tangential_restitution, 0.75, 0);
    ck_assert(c.model->has_tangential_restitution);
    TEST_OK(tb_model_shape_info(c.model, mjcf_index(&c, TB_HANDLE_SHAPE, "a"), &info), NULL);
    TEST_NEAR(info.restitution, 0.5, 0);
    TEST_NEAR(info.tangential_restitution, 0.25, 0);
    mjcf_free(&c);
}
END_TEST

START_TEST(geoms_and_assets_that_make_no_sense_are_refused)
{
    static const struct {
        const char *text;
        tb_status status;
        const char *words;
    } CASES[] = {
        {WORLD("<geom/>"), TB_INVALID_ARGUMENT, "geom: size 1 is 0, not positive"},
        {WORLD("<geom name='g' size='-1'/>"), TB_INVALID_ARGUMENT, "geom 'g': size 1 is -1"},
        {WORLD("<geom type='box' size='1 2'/>"), TB_INVALID_ARGUMENT, "size 3"},
        {WORLD("<geom type='wheel'/>"), TB_INVALID_ARGUMENT, "type=\"wheel\""},
        {WORLD("<geom type='sdf'/>"), TB_INVALID_ARGUMENT, "mesh"},
        {WORLD("<geom size='1' mass='-1'/>"), TB_INVALID_ARGUMENT, "mass is -1"},
        {WORLD("<geom size='1' density='-1'/>"), TB_INVALID_ARGUMENT, "density is -1"},
        {WORLD("<geom size='1' condim='2'/>"), TB_INVALID_ARGUMENT, "condim is 2"},
        {WORLD("<geom size='1' friction='-1'/>"), TB_INVALID_ARGUMENT, "negative"},
        {WORLD("<geom size='1' contype='1.5'/>"), TB_INVALID_ARGUMENT, "contype"},
        {WORLD("<geom size='1' adhesion='-1'/>"), TB_INVALID_ARGUMENT, "adhesion is less than 0"},
        {WORLD("<geom size='1' restitution='1.5'/>"), TB_INVALID_ARGUMENT,
         "restitution is 1.5, not from 0 to 1"},
        {WORLD("<geom size='1' tangential_restitution='-1'/>"), TB_INVALID_ARGUMENT,
         "tangential_restitution is -1, not from 0 to 1"},
        {WORLD("<geom size='1' restitution='nan'/>"), TB_INVALID_ARGUMENT, "restitution"},
        {WORLD("<geom size='1' surfacevel='1 0 0 0 0 0 0'/>"), TB_INVALID_ARGUMENT, "surfacevel"},
        {WORLD("<geom size='1' colour='1'/>"), TB_INVALID_ARGUMENT, "unknown attribute 'colour'"},
        {WORLD("<geom size='1'><plugin/></geom>"), TB_UNSUPPORTED, "plugins"},
        {WORLD("<geom type='mesh'/>"), TB_INVALID_ARGUMENT, "'mesh' is missing"},
        {WORLD("<geom type='mesh' mesh='x'/>"), TB_NOT_FOUND, "there is no mesh 'x'"},
        {WORLD("<geom type='hfield'/>"), TB_INVALID_ARGUMENT, "'hfield' is missing"},
        {WORLD("<geom type='hfield' hfield='x'/>"), TB_NOT_FOUND, "there is no height field 'x'"},
        {MJCF("<asset><mesh name='m'/></asset>"), TB_INVALID_ARGUMENT,
         "none of file, vertex and builtin"},
        {MJCF("<asset><mesh file='a.obj' vertex='1 2 3'/></asset>"), TB_INVALID_ARGUMENT,
         "more than one of file, vertex and builtin"},
        {MJCF("<asset><mesh file='/nowhere/a.obj'/></asset>"), TB_NOT_FOUND, "/nowhere/a.obj"},
        {MJCF("<asset><mesh name='a' " TETRAHEDRON "/><mesh name='a' " TETRAHEDRON "/></asset>"),
         TB_INVALID_ARGUMENT, "'a' is used twice"},
        {MJCF("<asset><mesh name='a' " TETRAHEDRON "><plugin/></mesh></asset>"), TB_UNSUPPORTED,
         "plugins"},
        {MJCF("<asset><sound/></asset>"), TB_INVALID_ARGUMENT, "sound: unknown element"},
#define USED(mesh)                                                                                 \
    MJCF("<asset><mesh name='m' " mesh                                                             \
         "/></asset><worldbody><geom type='mesh' mesh='m'/></worldbody>")
        {USED("vertex='0 0 0 1 0 0 0 1'"), TB_INVALID_ARGUMENT, "vertex has 8 numbers"},
        {USED(TETRAHEDRON "face='0 1 9'"), TB_INVALID_ARGUMENT, "face has 9"},
        {USED(TETRAHEDRON "face='0 1'"), TB_INVALID_ARGUMENT, "face has 2 numbers"},
        {USED(TETRAHEDRON "scale='1 0 1'"), TB_INVALID_ARGUMENT, "scale has a zero"},
        {USED(TETRAHEDRON "refquat='0 0 0 0'"), TB_INVALID_ARGUMENT, "refquat is zero"},
        {USED(TETRAHEDRON "inertia='heavy'"), TB_INVALID_ARGUMENT, "inertia=\"heavy\""},
#define FIELD_OF(field)                                                                            \
    MJCF("<asset><hfield name='h' " field "/></asset><worldbody><geom type='hfield' hfield='h'/>"  \
         "</worldbody>")
        {FIELD_OF("nrow='2' ncol='2'"), TB_INVALID_ARGUMENT, "'size' is missing"},
        {FIELD_OF("nrow='2' ncol='2' size='1 1 0 1'"), TB_INVALID_ARGUMENT, "size 3 is 0"},
        {FIELD_OF("nrow='2' ncol='1' size='1 1 1 1'"), TB_INVALID_ARGUMENT, "2 rows by 1 columns"},
        {FIELD_OF("nrow='2' ncol='2' size='1 1 1 1' elevation='1 2 3'"), TB_INVALID_ARGUMENT,
         "elevation has 3 numbers, not 4"},
        {FIELD_OF("file='/nowhere/h.png' size='1 1 1 1'"), TB_NOT_FOUND, "/nowhere/h.png"},
        {FIELD_OF("file='h.exr' content_type='image/exr' size='1 1 1 1'"), TB_UNSUPPORTED,
         "content_type \"image/exr\""},
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        mjcf_refuses(CASES[i].text, CASES[i].status, 1, CASES[i].words);
}
END_TEST

TEST_MAIN(surfaces_have_mujocos_defaults_and_units, masses_come_from_density_or_are_given,
          geoms_that_are_only_seen_are_left_out, contact_can_be_disabled,
          inline_meshes_are_moved_turned_and_scaled, sdf_of_points_without_faces_is_their_hull,
          mesh_files_are_found_by_meshdir_and_named_by_their_stem,
          height_fields_are_scaled_to_their_range, geoms_and_pairs_rebound_as_written,
          geoms_and_assets_that_make_no_sense_are_refused)
