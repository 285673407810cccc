/* Looks of a model for viewers: shapes with colours, triangles, height fields; and their place in the
 * canonical bytes. */
#include "model_util.h"

#include "mjcf_util.h"

static const char COLOURED[] = MJCF(
    "<default><geom rgba='.1 .2 .3 1'/></default>"
    "<asset><material name='steel' rgba='.5 .6 .7 1' shininess='.5'/>"
    "<mesh name='tetra' vertex='0 0 0  1 0 0  0 1 0  0 0 1' face='0 2 1 0 1 3 0 3 2 1 2 3'/>"
    "<mesh name='same' vertex='0 0 0  1 0 0  0 1 0  0 0 1' face='0 2 1 0 1 3 0 3 2 1 2 3'/>"
    "<mesh name='cloud' vertex='0 0 0  2 0 0  0 2 0  0 0 2'/></asset>"
    "<worldbody><geom name='floor' type='plane' size='1 1 .1' group='2'/>"
    "<body name='b' pos='0 0 1'><joint name='j' type='slide' axis='0 0 2' range='-1 1'/>"
    "<geom name='red' size='.1' rgba='2 0 0 .5' material='steel'/>"
    "<geom name='hull' type='mesh' mesh='tetra'/>"
    "<geom name='cloud' type='mesh' mesh='cloud'/>"
    "<geom name='seen' type='mesh' mesh='same' contype='0' conaffinity='0' mass='0' "
    "pos='0 0 .5'/><site name='s' pos='.1 .2 .3'/></body></worldbody>"
    "<actuator><position name='servo' joint='j' ctrlrange='-1 1' forcerange='-5 5'/></actuator>");

static tb_model *load(const char *text, bool visuals)
{
    tb_import_options options = tb_import_defaults();
    tb_scene *scene = NULL;
    tb_model *model = NULL;
    tb_error error = {0};
    options.visuals = visuals;
    TEST_OK(tb_scene_load_mjcf(text, strlen(text), "t.xml", &options, &scene, &error), &error);
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    tb_scene_destroy(scene);
    return model;
}

static tb_shape_info shape(const tb_model *model, const char *name)
{
    tb_shape_info info;
    const int32_t index = tb_model_find(model, TB_HANDLE_SHAPE, name);
    ck_assert_int_ge(index, 0);
    ck_assert_int_eq(tb_model_shape_info(model, index, &info), TB_OK);
    return info;
}

START_TEST(shapes_have_the_colours_of_their_file)
{
    tb_model *model = load(COLOURED, false);
    const tb_shape_info floor = shape(model, "floor"), red = shape(model, "red");
    ck_assert_int_eq(floor.type, TB_SHAPE_PLANE);
    ck_assert_int_eq(floor.group, 2);
    ck_assert(floor.has_colour && floor.collides);
    TEST_NEAR(floor.colour[2], 0.3, 1e-15);
    ck_assert_str_eq(floor.material, "");
    ck_assert_str_eq(red.material, "steel");
    TEST_NEAR(red.colour[0], 1, 0); /* no brighter than 1 */
    TEST_NEAR(red.colour[3], 0.5, 0);
    ck_assert_int_eq(red.mesh, -1);
    ck_assert_int_eq(tb_model_find(model, TB_HANDLE_SHAPE, "seen"), -1);

    tb_shape_info none;
    ck_assert_int_eq(tb_model_shape_info(model, 99, &none), TB_INVALID_ARGUMENT);
    tb_model_destroy(model);
}
END_TEST

START_TEST(visuals_are_kept_on_request_and_weigh_nothing)
{
    tb_model *without = load(COLOURED, false), *with = load(COLOURED, true);
    const tb_shape_info seen = shape(with, "seen");
    ck_assert_int_eq(tb_model_count(with).shapes, tb_model_count(without).shapes + 1);
    ck_assert(!seen.collides);
    TEST_NEAR(seen.position[2], 0.5, 1e-15);
    ck_assert_str_eq(tb_model_thing_name(with, TB_HANDLE_MESH, seen.mesh), "same");
    TEST_NEAR(tb_model_total_mass(with), tb_model_total_mass(without), 0);
    ck_assert_str_ne(tb_model_sha256(with), tb_model_sha256(without));
    tb_model_destroy(with);
    tb_model_destroy(without);

    /* an unreadable one is left out with a warning, one that collides is an error */
    const char *lost = WORLD("<geom type='mesh' mesh='lost' contype='0' conaffinity='0'/>");
    with = load(lost, true);
    ck_assert_int_eq(tb_model_count(with).shapes, 0);
    ck_assert_int_eq(tb_model_count(with).warnings, 1);
    ck_assert_ptr_nonnull(strstr(tb_model_warning(with, 0), "left out"));
    tb_model_destroy(with);
    mjcf_refuses(WORLD("<geom type='mesh' mesh='lost'/>"), TB_NOT_FOUND, 1, "no mesh 'lost'");
}
END_TEST

/* Six times the volume within closed triangles: outward ones count positive. */
static double six_volumes(const tb_triangles *t)
{
    double sum = 0;
    for (int32_t i = 0; i < t->number_of_triangles; i++) {
        tb_vec3 p[3];
        for (int k = 0; k < 3; k++) {
            const float *v = t->vertices + 3 * t->triangles[3 * i + k];
            p[k] = tb_v3((double)v[0], (double)v[1], (double)v[2]);
        }
        sum += tb_v3_dot(p[0], tb_v3_cross(p[1], p[2]));
    }
    return sum;
}

START_TEST(meshes_come_as_triangles_and_as_the_hull_that_collides)
{
    tb_model *model = load(COLOURED, true);
    const int32_t tetra = shape(model, "hull").mesh, same = shape(model, "seen").mesh;
    const int32_t cloud = shape(model, "cloud").mesh;
    char a[65], b[65], c[65];
    tb_triangles t;
    tb_error error = {0};
    TEST_OK(tb_model_mesh(model, tetra, false, &t, &error), &error);
    ck_assert_int_eq(t.number_of_vertices, 4);
    ck_assert_int_eq(t.number_of_triangles, 4);
    TEST_NEAR(six_volumes(&t), 1, 1e-6);
    tb_triangles_free(&t);
    TEST_OK(tb_model_mesh(model, tetra, true, &t, &error), &error);
    TEST_NEAR(six_volumes(&t), 1, 1e-6);
    tb_triangles_free(&t);
    /* points alone: their hull */
    TEST_OK(tb_model_mesh(model, cloud, false, &t, &error), &error);
    TEST_NEAR(six_volumes(&t), 8, 1e-6);
    tb_triangles_free(&t);
    ck_assert_int_eq(tb_model_mesh(model, same, true, &t, &error), TB_NOT_FOUND);
    ck_assert_int_eq(tb_model_mesh(model, 7, false, &t, &error), TB_INVALID_ARGUMENT);

    /* digests are of the geometry, whatever its name */
    tb_model_asset_sha256(model, TB_HANDLE_MESH, tetra, a);
    tb_model_asset_sha256(model, TB_HANDLE_MESH, same, b);
    tb_model_asset_sha256(model, TB_HANDLE_MESH, cloud, c);
    ck_assert_str_eq(a, b);
    ck_assert_str_ne(a, c);
    tb_model_asset_sha256(model, TB_HANDLE_MESH, 7, a);
    ck_assert_str_eq(a, "");
    tb_model_destroy(model);
}
END_TEST

START_TEST(height_fields_come_as_they_were_given)
{
    tb_model *model = load(
        MJCF("<asset><hfield name='h' nrow='2' ncol='3' size='2 1 .5 .25' elevation='0 1 2 2 1 0'/>"
             "</asset><worldbody><geom name='g' type='hfield' hfield='h'/></worldbody>"),
        false);
    tb_height_field_def def;
    tb_error error = {0};
    float *heights = NULL;
    ck_assert_int_eq(shape(model, "g").height_field, 0);
    ck_assert_int_eq(tb_model_number_of_height_fields(model), 1);
    TEST_OK(tb_model_height_field(model, 0, &def, &heights, &error), &error);
    ck_assert_int_eq(def.rows, 2);
    ck_assert_int_eq(def.columns, 3);
    TEST_NEAR(def.half_x, 2, 0);
    TEST_NEAR(def.half_y, 1, 0);
    TEST_NEAR(def.base, 0.25, 0);
    float highest = 0;
    for (int i = 0; i < 6; i++) highest = heights[i] > highest ? heights[i] : highest;
    TEST_NEAR((double)highest, 0.5, 1e-6);
    free(heights);
    ck_assert_int_eq(tb_model_height_field(model, 1, &def, &heights, &error), TB_INVALID_ARGUMENT);
    tb_model_destroy(model);
}
END_TEST

START_TEST(joints_sites_and_actuators_say_where_they_are)
{
    tb_model *model = load(COLOURED, false);
    tb_joint_info joint;
    tb_site_info site;
    tb_actuator_info actuator;
    tb_body_info body;
    ck_assert_int_eq(tb_model_joint_info(model, 0, &joint), TB_OK);
    TEST_NEAR(joint.axis[2], 1, 1e-15);
    ck_assert_int_eq(tb_model_site_info(model, 0, &site), TB_OK);
    ck_assert_int_eq(site.body, 1);
    TEST_NEAR(site.position[1], 0.2, 1e-15);
    ck_assert_int_eq(tb_model_actuator_info(model, 0, &actuator), TB_OK);
    ck_assert_int_eq(actuator.target_kind, TB_HANDLE_JOINT);
    ck_assert_int_eq(actuator.target, 0);
    ck_assert(actuator.control_limited && actuator.force_limited);
    TEST_NEAR(actuator.force_upper, 5, 0);
    ck_assert_int_eq(tb_model_body_info(model, 1, &body), TB_OK);
    TEST_NEAR(body.position[2], 1, 1e-15);
    ck_assert_int_eq(tb_model_site_info(model, 1, &site), TB_INVALID_ARGUMENT);
    ck_assert_int_eq(tb_model_actuator_info(model, -1, &actuator), TB_INVALID_ARGUMENT);
    tb_model_destroy(model);
}
END_TEST

START_TEST(tendons_say_what_they_are_threaded_through)
{
    tb_model *model = load(
        "<mujoco><worldbody><site name='w' pos='1 0 0'/><body name='p'><joint name='j'/>"
        "<geom name='g' type='sphere' size='.1'/><site name='s' pos='0 2 0'/></body></worldbody>"
        "<tendon><fixed name='f'><joint joint='j' coef='2'/></fixed><spatial name='t'>"
        "<site site='w'/><geom geom='g'/><site site='s'/><pulley divisor='2'/><site site='s'/>"
        "<site site='w'/></spatial></tendon></mujoco>",
        false);
    static const int32_t BODIES[] = {0, 1, -1, 1, 0};
    tb_tendon_waypoint places[5] = {
        {.body = 7}, {.body = 7}, {.body = 7}, {.body = 7}, {.body = 7}};
    ck_assert_int_eq(tb_model_tendon_waypoints(model, 1, NULL, 0), 5);
    ck_assert_int_eq(tb_model_tendon_waypoints(model, 1, places, 2), 5);
    ck_assert_int_eq(places[2].body, 7);
    ck_assert_int_eq(tb_model_tendon_waypoints(model, 1, places, 5), 5);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(places[i].body, BODIES[i]);
        TEST_NEAR(places[i].position[0], BODIES[i] == 0, 0);
        TEST_NEAR(places[i].position[1], 2 * (BODIES[i] == 1), 0);
    }
    ck_assert_int_eq(tb_model_tendon_waypoints(model, 0, places, 5), 0);
    ck_assert_int_eq(tb_model_tendon_waypoints(model, 2, places, 5), 0);
    ck_assert_int_eq(tb_model_tendon_waypoints(model, -1, places, 5), 0);
    tb_model_destroy(model);
}
END_TEST

START_TEST(bytes_keep_colours_and_are_checked)
{
    tb_model *model = load(COLOURED, true), *again = NULL;
    tb_error error = {0};
    size_t size = 0;
    const unsigned char *bytes = tb_model_bytes(model, &size);
    TEST_OK(tb_model_from_bytes(bytes, size, &again, &error), &error);
    ck_assert_str_eq(tb_model_sha256(again), tb_model_sha256(model));
    const tb_shape_info red = shape(again, "red");
    ck_assert_str_eq(red.material, "steel");
    TEST_NEAR(red.colour[3], 0.5, 0);
    tb_model_destroy(again);

    /* cut anywhere in the extra, with a checksum that fits: an error, no crash */
    tb_scene *scene = NULL;
    for (size_t cut = 33; cut < 33 + 60; cut++)
        ck_assert_int_eq(tb_canonical_read(bytes, size - cut, &scene, &error), TB_DATA_LOSS);
    tb_model_destroy(model);

    /* a model without colours keeps the bytes of a build that knew no colours */
    model = load(WORLD("<geom size='1'/>"), false);
    bytes = tb_model_bytes(model, &size);
    ck_assert_int_eq(bytes[8], TB_CANONICAL_VERSION);
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_urdf_gives_colours_and_on_request_visuals)
{
    static const char TEXT[] =
        "<robot name='r'><material name='blue'><color rgba='0 0 1 1'/></material>"
        "<link name='a'><visual><geometry><sphere radius='.2'/></geometry>"
        "<material name='blue'/></visual>"
        "<visual><geometry><mesh filename='nowhere.stl'/></geometry></visual>"
        "<collision><geometry><box size='1 1 1'/></geometry></collision></link></robot>";
    tb_import_options options = tb_import_defaults();
    tb_error error = {0};
    for (int visuals = 0; visuals < 2; visuals++) {
        tb_scene *scene = NULL;
        tb_model *model = NULL;
        options.visuals = visuals == 1;
        TEST_OK(tb_scene_load_urdf(TEXT, strlen(TEXT), "/nowhere/t.urdf", &options, &scene, &error),
                &error);
        TEST_OK(tb_scene_compile(scene, &model, &error), &error);
        ck_assert_int_eq(tb_model_count(model).shapes, 1 + visuals);
        ck_assert_int_eq(tb_model_count(model).warnings, visuals);
        int colliding = 0;
        for (int32_t i = 0; i <= visuals; i++) {
            tb_shape_info info;
            ck_assert_int_eq(tb_model_shape_info(model, i, &info), TB_OK);
            ck_assert(info.has_colour);
            TEST_NEAR(info.colour[2], 1, 0);
            TEST_NEAR(info.colour[0], 0, 0);
            ck_assert_str_eq(info.material, "blue");
            colliding += info.collides;
        }
        ck_assert_int_eq(colliding, 1);
        tb_model_destroy(model);
        tb_scene_destroy(scene);
    }
}
END_TEST

TEST_MAIN(shapes_have_the_colours_of_their_file, visuals_are_kept_on_request_and_weigh_nothing,
          meshes_come_as_triangles_and_as_the_hull_that_collides,
          height_fields_come_as_they_were_given, joints_sites_and_actuators_say_where_they_are,
          tendons_say_what_they_are_threaded_through, bytes_keep_colours_and_are_checked,
          a_urdf_gives_colours_and_on_request_visuals)
