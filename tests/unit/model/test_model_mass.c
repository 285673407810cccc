/* Masses and inertias against closed forms: every shape, solid and shell, turned and moved, summed;
 * the rules of minimum, balance and total. */
#include "model_util.h"

static const double PI = 3.141592653589793;

/* Compiles one free body with this shape and gives its body. */
static tb_model_body body_with(const tb_shape_def *def)
{
    const tb_handle none = {0};
    tb_error error = {0};
    tb_scene *scene = new_scene();
    tb_shape_def shape = *def;
    shape.body = add_body(scene, none, "body");
    add_joint(scene, shape.body, TB_JOINT_FREE, NULL);
    TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);
    tb_model *model = compile(scene);
    const tb_model_body body = model->bodies[1];
    tb_model_destroy(model);
    tb_scene_destroy(scene);
    return body;
}

static tb_model_body simple(tb_shape_type type, bool shell, double a, double b, double c)
{
    tb_shape_def def = tb_shape_defaults();
    def.type = type;
    def.shell = shell;
    def.density = 10;
    def.size[0] = a, def.size[1] = b, def.size[2] = c;
    return body_with(&def);
}

static void expect(const tb_model_body *body, double mass, double xx, double yy, double zz)
{
    TEST_NEAR_RELATIVE(body->mass, mass, 1e-14);
    TEST_NEAR_RELATIVE(body->inertia[0], xx, 1e-14);
    TEST_NEAR_RELATIVE(body->inertia[1], yy, 1e-14);
    TEST_NEAR_RELATIVE(body->inertia[2], zz, 1e-14);
    for (int k = 3; k < 6; k++) TEST_NEAR(body->inertia[k], 0, 1e-14 * zz);
}

START_TEST(solids_have_their_textbook_moments)
{
    tb_model_body b = simple(TB_SHAPE_SPHERE, false, 0.5, 0, 0);
    double m = 10 * 4.0 / 3 * PI * 0.125;
    expect(&b, m, 0.1 * m, 0.1 * m, 0.1 * m);
    b = simple(TB_SHAPE_BOX, false, 1, 2, 3);
    expect(&b, 480, 480 * 13.0 / 3, 480 * 10.0 / 3, 480 * 5.0 / 3);
    b = simple(TB_SHAPE_CYLINDER, false, 1, 2, 0);
    m = 10 * PI * 4;
    expect(&b, m, m * (3 + 16) / 12, m * (3 + 16) / 12, m / 2);
    b = simple(TB_SHAPE_ELLIPSOID, false, 1, 2, 3);
    m = 10 * 4.0 / 3 * PI * 6;
    expect(&b, m, m * 13 / 5, m * 10 / 5, m * 5 / 5);
}
END_TEST

/* A capsule as two hemispheres and a cylinder, integrated by slices along z. */
START_TEST(a_capsule_has_the_moments_of_its_slices)
{
    const double r = 0.3, h = 0.7;
    const int n = 200000;
    double mass = 0, xx = 0, zz = 0;
    for (int i = 0; i < n; i++) {
        const double z = -(h + r) + 2 * (h + r) * (i + 0.5) / n, dz = 2 * (h + r) / n;
        const double beyond = fabs(z) > h ? fabs(z) - h : 0, r2 = r * r - beyond * beyond;
        const double slice = 10 * PI * r2 * dz;
        mass += slice;
        zz += slice * r2 / 2;
        xx += slice * (r2 / 4 + z * z);
    }
    const tb_model_body b = simple(TB_SHAPE_CAPSULE, false, r, h, 0);
    TEST_NEAR_RELATIVE(b.mass, mass, 1e-9);
    TEST_NEAR_RELATIVE(b.inertia[0], xx, 1e-9);
    TEST_NEAR_RELATIVE(b.inertia[1], xx, 1e-9);
    TEST_NEAR_RELATIVE(b.inertia[2], zz, 1e-9);
}
END_TEST

START_TEST(shells_have_the_moments_of_thin_solids)
{
    /* the difference of two solids that differ by a layer, extrapolated to none:
     * central difference */
    static const tb_shape_type types[] = {TB_SHAPE_SPHERE, TB_SHAPE_CAPSULE, TB_SHAPE_CYLINDER,
                                          TB_SHAPE_BOX};
    const double d = 1e-5, size[3] = {0.3, 0.7, 0.4};
    for (int t = 0; t < 4; t++) {
        /* a capsule's layer does not lengthen its segment */
        const double along = types[t] == TB_SHAPE_CAPSULE ? 0 : d;
        const tb_model_body shell = simple(types[t], true, size[0], size[1], size[2]);
        const tb_model_body in =
            simple(types[t], false, size[0] - d, size[1] - along, size[2] - along);
        const tb_model_body out =
            simple(types[t], false, size[0] + d, size[1] + along, size[2] + along);
        TEST_NEAR_RELATIVE(shell.mass, (out.mass - in.mass) / (2 * d), 1e-7);
        for (int k = 0; k < 3; k++)
            TEST_NEAR_RELATIVE(shell.inertia[k], (out.inertia[k] - in.inertia[k]) / (2 * d), 1e-7);
    }
}
END_TEST

START_TEST(a_given_mass_overrules_the_density)
{
    tb_shape_def def = tb_shape_defaults();
    def.size[0] = 0.5;
    def.mass = 3;
    const tb_model_body b = body_with(&def);
    expect(&b, 3, 0.3, 0.3, 0.3);
}
END_TEST

START_TEST(a_turned_and_moved_shape_keeps_its_moments_along_its_axes)
{
    tb_shape_def def = tb_shape_defaults();
    def.type = TB_SHAPE_BOX;
    def.mass = 12;
    def.size[0] = 1, def.size[1] = 2, def.size[2] = 3;
    def.position[1] = 5;
    const double s = sqrt(0.5), turn[4] = {s, 0, 0, s}; /* x goes to y */
    memcpy(def.orientation, turn, sizeof turn);
    const tb_model_body b = body_with(&def);
    TEST_NEAR(b.com[1], 5, 0);
    TEST_NEAR_RELATIVE(b.inertia[0], 40, 1e-14);
    TEST_NEAR_RELATIVE(b.inertia[1], 52, 1e-14);
    TEST_NEAR_RELATIVE(b.inertia[2], 20, 1e-14);
}
END_TEST

/* Two half cubes make a cube, however they are turned. */
START_TEST(parts_add_up_to_the_whole)
{
    const tb_handle none = {0};
    tb_error error = {0};
    tb_scene *scene = new_scene();
    tb_shape_def def = tb_shape_defaults();
    def.body = add_body(scene, none, "halves");
    add_joint(scene, def.body, TB_JOINT_FREE, NULL);
    def.type = TB_SHAPE_BOX;
    def.density = 1;
    tb_quaternion turn = tb_q_normalize(tb_q(1, 2, 3, 4));
    tb_q_store(def.orientation, turn);
    for (int side = -1; side <= 1; side += 2) {
        def.size[0] = 0.5, def.size[1] = 1, def.size[2] = 1;
        tb_v3_store(def.position,
                    tb_v3_add(tb_v3(7, 8, 9), tb_q_rotate(turn, tb_v3(0.5 * side, 0, 0))));
        TEST_OK(tb_scene_add_shape(scene, &def, NULL, &error), &error);
    }
    tb_model *model = compile(scene);
    const tb_model_body *b = &model->bodies[1];
    TEST_NEAR(b->mass, 8, 1e-14);
    TEST_NEAR(b->com[0], 7, 1e-14);
    TEST_NEAR(b->com[2], 9, 1e-14);
    for (int k = 0; k < 6; k++) TEST_NEAR(b->inertia[k], k < 3 ? 16.0 / 3 : 0, 1e-13);
    tb_model_destroy(model);
    tb_scene_destroy(scene);
}
END_TEST

START_TEST(only_shapes_of_the_inertia_groups_count)
{
    tb_error error = {0};
    tb_scene *scene = new_scene();
    tb_shape_def def = tb_shape_defaults();
    def.body = add_ball(scene, "ball");
    def.type = TB_SHAPE_SPHERE;
    def.size[0] = 1;
    def.group = 6;
    TEST_OK(tb_scene_add_shape(scene, &def, NULL, &error), &error);
    tb_model *model = compile(scene);
    TEST_NEAR_RELATIVE(tb_model_total_mass(model), 4.0 / 3 * PI, 1e-14);
    tb_model_destroy(model);
    tb_scene_destroy(scene);
}
END_TEST

static tb_model *model_of_given(const tb_scene_def *options, const double inertia[3], double mass)
{
    tb_error error = {0};
    tb_scene *scene = NULL;
    tb_handle body;
    TEST_OK(tb_scene_create(options, &scene, &error), &error);
    tb_body_def def = tb_body_defaults();
    def.has_inertia = true;
    def.mass = mass;
    memcpy(def.inertia, inertia, 3 * sizeof *inertia);
    TEST_OK(tb_scene_add_body(scene, &def, &body, &error), &error);
    add_joint(scene, body, TB_JOINT_FREE, NULL);
    add_shape(scene, body, TB_SHAPE_SPHERE, 0.5, 0, 0);
    tb_model *model = compile(scene);
    tb_scene_destroy(scene);
    return model;
}

START_TEST(the_source_of_inertia_can_be_chosen)
{
    static const double inertia[3] = {1, 2, 2};
    static const double masses[3] = {
        [TB_INERTIA_AUTO] = 7, [TB_INERTIA_SHAPES] = 523.59877559829887, [TB_INERTIA_GIVEN] = 7};
    for (int source = 0; source < 3; source++) {
        tb_scene_def options = tb_scene_defaults();
        options.inertia_source = (tb_inertia_source)source;
        tb_model *model = model_of_given(&options, inertia, 7);
        TEST_NEAR_RELATIVE(model->bodies[1].mass, masses[source], 1e-14);
        tb_model_destroy(model);
    }
}
END_TEST

START_TEST(moments_are_raised_then_balanced_then_scaled)
{
    static const double inertia[3] = {0.001, 0.3, 0.8};
    tb_scene_def options = tb_scene_defaults();
    options.minimum_mass = 2;
    options.minimum_inertia = 0.1;
    options.balance_inertia = true;
    options.total_mass = 6;
    tb_model *model = model_of_given(&options, inertia, 1);
    const tb_model_body *b = &model->bodies[1];
    TEST_NEAR_RELATIVE(b->mass, 6, 1e-15);
    for (int k = 0; k < 3; k++) TEST_NEAR_RELATIVE(b->inertia[k], 3 * 0.4, 1e-14);
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_lone_free_body_gets_its_inverses)
{
    tb_scene *scene = new_scene();
    const tb_handle none = {0}, body = add_body(scene, none, "box");
    add_joint(scene, body, TB_JOINT_FREE, NULL);
    add_shape(scene, body, TB_SHAPE_BOX, 0.1, 0.2, 0.3);
    tb_model *model = compile(scene);
    const tb_model_tree *tree = &model->trees[0];
    ck_assert(tree->single_free);
    TEST_NEAR_RELATIVE(tree->inverse_mass * model->bodies[1].mass, 1, 1e-14);
    for (int k = 0; k < 3; k++) {
        TEST_NEAR_RELATIVE(tree->inverse_inertia[4 * k] * model->bodies[1].inertia[k], 1, 1e-14);
        TEST_NEAR_RELATIVE(tree->inverse_root[4 * k] * tree->inverse_root[4 * k],
                           tree->inverse_inertia[4 * k], 1e-14);
    }
    TEST_NEAR_RELATIVE(tree->inverse_mass_root * tree->inverse_mass_root, tree->inverse_mass,
                       1e-14);
    tb_model_destroy(model);
    tb_scene_destroy(scene);
}
END_TEST

TEST_MAIN(solids_have_their_textbook_moments, a_capsule_has_the_moments_of_its_slices,
          shells_have_the_moments_of_thin_solids, a_given_mass_overrules_the_density,
          a_turned_and_moved_shape_keeps_its_moments_along_its_axes, parts_add_up_to_the_whole,
          only_shapes_of_the_inertia_groups_count, the_source_of_inertia_can_be_chosen,
          moments_are_raised_then_balanced_then_scaled, a_lone_free_body_gets_its_inverses)
