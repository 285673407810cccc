/* Results of the compiler: numbering, trees, references, filters, and errors that only show in
 * the whole model. */
#include "model_util.h"

static const tb_handle NONE = {0};

START_TEST(bodies_are_numbered_depth_first)
{
    /* added breadth first: a, b, a/c, b/d, a/e, a/c/f */
    tb_scene *scene = new_scene();
    const tb_handle a = add_body(scene, NONE, "a"), b = add_body(scene, NONE, "b");
    const tb_handle c = add_body(scene, a, "c"), d = add_body(scene, b, "d");
    const tb_handle e = add_body(scene, a, "e"), f = add_body(scene, c, "f");
    const tb_handle bodies[6] = {a, b, c, d, e, f};
    for (int i = 0; i < 6; i++) add_shape(scene, bodies[i], TB_SHAPE_SPHERE, 1 + i, 0, 0);
    add_joint(scene, f, TB_JOINT_HINGE, "jf");
    add_joint(scene, a, TB_JOINT_HINGE, "ja");
    add_joint(scene, d, TB_JOINT_SLIDE, "jd");
    add_joint(scene, e, TB_JOINT_BALL, "je");
    tb_model *model = compile(scene);

    static const char *const order[7] = {"world", "a", "c", "f", "e", "b", "d"};
    static const int parents[7] = {0, 0, 1, 2, 1, 0, 5}, trees[7] = {-1, 0, 0, 0, 0, -1, 1};
    static const int last_dofs[7] = {-1, 0, 0, 1, 4, -1, 5}, fixed_to[7] = {0, 1, 1, 3, 4, 0, 6};
    static const double radii[6] = {1, 3, 6, 5, 2, 4};
    for (int i = 0; i < 7; i++) {
        ck_assert_str_eq(tb_model_thing_name(model, TB_HANDLE_BODY, i), order[i]);
        ck_assert_int_eq(tb_model_find(model, TB_HANDLE_BODY, order[i]), i);
        ck_assert_int_eq(model->bodies[i].parent, parents[i]);
        ck_assert_int_eq(model->bodies[i].tree, trees[i]);
        ck_assert_int_eq(model->bodies[i].last_dof, last_dofs[i]);
        ck_assert_int_eq(model->bodies[i].fixed_to, fixed_to[i]);
    }
    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(model->shapes[i].body, i + 1);
        TEST_NEAR(model->shapes[i].size[0], radii[i], 0);
    }
    static const char *const joints[4] = {"ja", "jf", "je", "jd"};
    static const int dofs[4] = {0, 1, 2, 5}, coordinates[4] = {0, 1, 2, 6};
    for (int i = 0; i < 4; i++) {
        ck_assert_str_eq(tb_model_thing_name(model, TB_HANDLE_JOINT, i), joints[i]);
        ck_assert_int_eq(model->joints[i].dof, dofs[i]);
        ck_assert_int_eq(model->joints[i].coordinate, coordinates[i]);
    }
    static const int dof_parents[6] = {-1, 0, 0, 2, 3, -1}, dof_ends[6] = {5, 2, 5, 5, 5, 6};
    static const int dof_lasts[6] = {0, 1, 4, 4, 4, 5}; /* je's dofs are a run */
    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(model->dofs[i].parent, dof_parents[i]);
        ck_assert_int_eq(model->dofs[i].end, dof_ends[i]);
        ck_assert_int_eq(model->dofs[i].last, dof_lasts[i]);
    }
    /* bodies by level: the world; a, b; c, e, d; f. dofs by depth: ja, jd; jf, then je's */
    static const int level_bodies[7] = {0, 1, 5, 2, 4, 6, 3}, level_start[5] = {0, 1, 3, 6, 7};
    static const int depth_dofs[6] = {0, 5, 1, 2, 3, 4}, depth_start[5] = {0, 2, 4, 5, 6};
    ck_assert_int_eq(model->number_of_levels, 4);
    ck_assert_int_eq(model->longest_chain, 4);
    for (int i = 0; i < 7; i++) ck_assert_int_eq(model->level_bodies[i], level_bodies[i]);
    for (int i = 0; i < 6; i++) ck_assert_int_eq(model->depth_dofs[i], depth_dofs[i]);
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(model->level_start[i], level_start[i]);
        ck_assert_int_eq(model->depth_start[i], depth_start[i]);
    }
    ck_assert_int_eq(model->number_of_trees, 2);
    ck_assert_int_eq(model->trees[0].number_of_bodies, 4);
    ck_assert_int_eq(model->trees[0].number_of_dofs, 5);
    ck_assert_int_eq(model->trees[0].number_of_coordinates, 6);
    ck_assert_int_eq(model->trees[1].body, 6);
    TEST_NEAR(model->q_reference[2], 1, 0);
    tb_model_destroy(model);
    tb_scene_destroy(scene);
}
END_TEST

START_TEST(a_planar_joint_becomes_two_slides_and_a_hinge)
{
    tb_scene *scene = new_scene();
    tb_error error = {0};
    tb_joint_def def = tb_joint_defaults();
    def.body = add_body(scene, NONE, "puck");
    def.name = "table";
    def.type = TB_JOINT_PLANAR;
    def.axis[0] = 3, def.axis[1] = 0, def.axis[2] = 4;
    TEST_OK(tb_scene_add_joint(scene, &def, NULL, &error), &error);
    add_shape(scene, def.body, TB_SHAPE_SPHERE, 1, 0, 0);
    tb_model *model = compile(scene);
    ck_assert_int_eq(model->number_of_joints, 3);
    ck_assert_int_eq(tb_model_find(model, TB_HANDLE_JOINT, "table_x"), 0);
    ck_assert_int_eq(tb_model_find(model, TB_HANDLE_JOINT, "table_y"), 1);
    ck_assert_int_eq(tb_model_find(model, TB_HANDLE_JOINT, "table_angle"), 2);
    ck_assert_int_eq(tb_model_find(model, TB_HANDLE_JOINT, "table"), -1);
    const tb_vec3 x = tb_v3_load(model->joints[0].axis), y = tb_v3_load(model->joints[1].axis);
    const tb_vec3 n = tb_v3_load(model->joints[2].axis);
    TEST_NEAR(n.x, 0.6, 1e-15);
    TEST_NEAR(tb_v3_length(tb_v3_sub(tb_v3_cross(x, y), n)), 0, 1e-15);
    ck_assert_int_eq(model->joints[1].type, TB_JOINT_SLIDE);
    ck_assert_int_eq(model->joints[2].type, TB_JOINT_HINGE);
    tb_model_destroy(model);
    tb_scene_destroy(scene);
}
END_TEST

START_TEST(equalities_take_their_references_from_the_described_pose)
{
    tb_scene *scene = new_scene();
    tb_error error = {0};
    tb_handle a, b;
    tb_body_def def = tb_body_defaults();
    const double s = sqrt(0.5), turn[4] = {s, 0, 0, s};
    def.position[0] = 1;
    memcpy(def.orientation, turn, sizeof turn);
    TEST_OK(tb_scene_add_body(scene, &def, &a, &error), &error);
    def.parent = a;
    TEST_OK(tb_scene_add_body(scene, &def, &b, &error), &error);
    add_shape(scene, a, TB_SHAPE_SPHERE, 1, 0, 0);
    add_shape(scene, b, TB_SHAPE_SPHERE, 1, 0, 0);
    tb_joint_def joint = tb_joint_defaults();
    tb_handle first, second;
    joint.body = a;
    joint.reference = 0.25;
    TEST_OK(tb_scene_add_joint(scene, &joint, &first, &error), &error);
    joint.body = b;
    joint.reference = -0.5;
    TEST_OK(tb_scene_add_joint(scene, &joint, &second, &error), &error);
    tb_equality_def equality = tb_equality_defaults();
    equality.type = TB_EQUALITY_WELD;
    equality.a = b;
    equality.anchor_a[0] = 2;
    TEST_OK(tb_scene_add_equality(scene, &equality, NULL, &error), &error);
    equality.type = TB_EQUALITY_JOINT;
    equality.a = first;
    equality.b = second;
    TEST_OK(tb_scene_add_equality(scene, &equality, NULL, &error), &error);
    tb_model *model = compile(scene);
    /* b lies at (1, 1, 0), turned by 180 degrees about Z; its point (2, 0, 0) lies at (-1, 1, 0) */
    const tb_model_equality *weld = &model->equalities[0];
    ck_assert_int_eq(weld->a, 2);
    ck_assert_int_eq(weld->b, 0);
    TEST_NEAR(weld->anchor_b[0], -1, 1e-14);
    TEST_NEAR(weld->anchor_b[1], 1, 1e-14);
    TEST_NEAR(fabs(weld->orientation[3]), 1, 1e-15);
    TEST_NEAR(model->equalities[1].reference_a, 0.25, 0);
    TEST_NEAR(model->equalities[1].reference_b, -0.5, 0);
    TEST_NEAR(model->q_reference[1], -0.5, 0);
    tb_model_destroy(model);
    tb_scene_destroy(scene);
}
END_TEST

START_TEST(keyframes_must_fit_the_model)
{
    static const double q[8] = {1, 2, 3, 0, 2, 0, 0, 9};
    tb_scene *scene = new_scene();
    tb_error error = {0};
    add_ball(scene, "ball");
    tb_keyframe_def key = tb_keyframe_defaults();
    key.q = q;
    key.number_of_q = 7;
    TEST_OK(tb_scene_add_keyframe(scene, &key, NULL, &error), &error);
    tb_model *model = compile(scene);
    TEST_NEAR(model->keyframes[0].q[4], 1, 0);
    TEST_NEAR(model->keyframes[0].u[5], 0, 0);
    tb_model_destroy(model);
    key.name = "late";
    key.number_of_q = 8;
    TEST_OK(tb_scene_add_keyframe(scene, &key, NULL, &error), &error);
    compile_fails(scene, TB_INVALID_ARGUMENT, "q", "late");
    tb_scene_destroy(scene);
}
END_TEST

START_TEST(what_moves_needs_mass)
{
    tb_scene *scene = new_scene();
    tb_error error = {0};
    tb_handle body = add_body(scene, NONE, "ghost");
    add_joint(scene, body, TB_JOINT_FREE, NULL);
    compile_fails(scene, TB_INVALID_ARGUMENT, "mass", "ghost");
    tb_scene_destroy(scene);

    /* a point mass resists a hinge beside it, not one through it */
    for (int through = 0; through < 2; through++) {
        scene = new_scene();
        tb_body_def def = tb_body_defaults();
        def.name = "bob";
        def.has_inertia = true;
        def.mass = 1;
        def.com[0] = through ? 0 : 1;
        TEST_OK(tb_scene_add_body(scene, &def, &body, &error), &error);
        add_joint(scene, body, TB_JOINT_HINGE, NULL);
        if (through)
            compile_fails(scene, TB_INVALID_ARGUMENT, "mass", "bob");
        else
            tb_model_destroy(compile(scene));
        tb_scene_destroy(scene);
    }

    /* two joints that make the same motion leave a direction without inertia */
    scene = new_scene();
    body = add_body(scene, NONE, "twice");
    add_joint(scene, body, TB_JOINT_HINGE, NULL);
    add_joint(scene, body, TB_JOINT_BALL, NULL);
    add_shape(scene, body, TB_SHAPE_SPHERE, 1, 0, 0);
    compile_fails(scene, TB_INVALID_ARGUMENT, "mass", "twice");
    tb_scene_destroy(scene);

    /* a massless link between joints is fine if the bodies behind it have inertia */
    scene = new_scene();
    const tb_handle link = add_body(scene, NONE, "link");
    add_joint(scene, link, TB_JOINT_SLIDE, NULL);
    const tb_handle tip = add_body(scene, link, "tip");
    add_joint(scene, tip, TB_JOINT_HINGE, NULL);
    add_shape(scene, tip, TB_SHAPE_SPHERE, 1, 0, 0);
    tb_model_destroy(compile(scene));
    tb_scene_destroy(scene);
}
END_TEST

START_TEST(planes_and_height_fields_must_not_move)
{
    tb_scene *scene = new_scene();
    const tb_handle ball = add_ball(scene, "ball");
    const tb_handle nested = add_body(scene, ball, "carpet");
    add_shape(scene, nested, TB_SHAPE_PLANE, 0, 0, 0);
    compile_fails(scene, TB_INVALID_ARGUMENT, "type", "carpet");
    tb_scene_destroy(scene);
}
END_TEST

START_TEST(visual_shapes_need_no_hull)
{
    static const double flat[12] = {0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0};
    tb_scene *scene = new_scene();
    tb_error error = {0};
    tb_handle asset;
    tb_mesh_def mesh = tb_mesh_defaults();
    mesh.name = "decal";
    mesh.vertices = flat;
    mesh.number_of_vertices = 4;
    TEST_OK(tb_scene_add_mesh(scene, &mesh, &asset, &error), &error);
    tb_shape_def shape = tb_shape_defaults();
    shape.body = add_ball(scene, "ball");
    shape.type = TB_SHAPE_CONVEX;
    shape.asset = asset;
    shape.mass = 0;
    shape.category = shape.mask = 0;
    TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);
    tb_model *model = compile(scene);
    ck_assert_int_eq(model->shapes[1].asset, -1);
    ck_assert_int_eq(model->number_of_colliding_shapes, 1);
    TEST_NEAR(model->shapes[1].reach, sqrt(2), 1e-15);

    /* and a step succeeds */
    tb_state *state = NULL;
    tb_stepper *stepper = NULL;
    TEST_OK(tb_state_create(model, &state, &error), &error);
    TEST_OK(tb_stepper_create(NULL, &stepper, &error), &error);
    TEST_OK(tb_step(stepper, state, 2, NULL, &error), &error);
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    tb_model_destroy(model);
    shape.category = 1;
    TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);
    compile_fails(scene, TB_INVALID_ARGUMENT, "vertices", "decal");
    tb_scene_destroy(scene);
}
END_TEST

START_TEST(assets_are_built_once)
{
    tb_scene *scene = rich_scene();
    tb_error error = {0};
    tb_shape_def shape = tb_shape_defaults();
    shape.type = TB_SHAPE_CONVEX;
    shape.asset = tb_scene_find(scene, TB_HANDLE_MESH, "block");
    for (int i = 0; i < 5; i++) TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);
    tb_model *model = compile(scene);
    ck_assert_int_eq(model->number_of_hulls, 1);
    ck_assert_int_eq(model->number_of_meshes, 1);
    ck_assert_int_eq(model->number_of_height_fields, 1);
    ck_assert_int_eq(model->hulls[0].number_of_faces, 6);
    tb_model_destroy(model);
    tb_scene_destroy(scene);
}
END_TEST

/* ground; base -(fixed)- mount -(hinge)- arm -(hinge)- hand -(fixed)- nail; ball; puppet */
START_TEST(shapes_collide_by_the_rules)
{
    tb_scene *scene = new_scene();
    tb_error error = {0};
    tb_handle shapes[7], bodies[7] = {NONE};
    bodies[1] = add_body(scene, NONE, "mount");
    bodies[2] = add_body(scene, bodies[1], "arm");
    bodies[3] = add_body(scene, bodies[2], "hand");
    bodies[4] = add_body(scene, bodies[3], "nail");
    bodies[5] = add_body(scene, NONE, "ball");
    tb_body_def def = tb_body_defaults();
    def.kinematic = true;
    TEST_OK(tb_scene_add_body(scene, &def, &bodies[6], &error), &error);
    add_joint(scene, bodies[2], TB_JOINT_HINGE, NULL);
    add_joint(scene, bodies[3], TB_JOINT_HINGE, NULL);
    add_joint(scene, bodies[5], TB_JOINT_FREE, NULL);
    for (int i = 0; i < 7; i++) shapes[i] = add_shape(scene, bodies[i], TB_SHAPE_SPHERE, 1, 0, 0);
    tb_model *model = compile(scene);
    enum { GROUND, MOUNT, ARM, HAND, NAIL, BALL, PUPPET };
    static const bool expected[7][7] = {
        [GROUND] = {0, 0, 1, 1, 1, 1, 0}, [MOUNT] = {0, 0, 1, 1, 1, 1, 0},
        [ARM] = {1, 1, 0, 0, 0, 1, 1},    [HAND] = {1, 1, 0, 0, 0, 1, 1},
        [NAIL] = {1, 1, 0, 0, 0, 1, 1},   [BALL] = {1, 1, 1, 1, 1, 0, 1},
        [PUPPET] = {0, 0, 1, 1, 1, 1, 0}};
    for (int i = 0; i < 7; i++)
        for (int j = 0; j < 7; j++)
            ck_assert_msg(tb_model_shapes_collide(model, i, j) == expected[i][j], "%d and %d", i,
                          j);
    tb_model_destroy(model);

    /* excludes and listed pairs; a pair overrules parent and child and an exclude */
    TEST_OK(tb_scene_add_exclude(scene, bodies[5], bodies[2], &error), &error);
    TEST_OK(tb_scene_add_exclude(scene, bodies[5], bodies[3], &error), &error);
    tb_pair_def pair = tb_pair_defaults();
    pair.surface.friction = 0.125;
    pair.a = shapes[HAND];
    pair.b = shapes[ARM];
    TEST_OK(tb_scene_add_pair(scene, &pair, NULL, &error), &error);
    pair.a = shapes[HAND];
    pair.b = shapes[BALL];
    TEST_OK(tb_scene_add_pair(scene, &pair, NULL, &error), &error);
    model = compile(scene);
    ck_assert(!tb_model_shapes_collide(model, BALL, ARM));
    ck_assert(tb_model_shapes_collide(model, BALL, HAND));
    ck_assert(tb_model_shapes_collide(model, ARM, HAND));
    ck_assert(!tb_model_shapes_collide(model, ARM, NAIL));
    TEST_NEAR(tb_model_pair_surface(model, BALL, HAND).friction, 0.125, 0);
    TEST_NEAR(tb_model_pair_surface(model, BALL, GROUND).friction, 1, 0);
    ck_assert_ptr_nonnull(tb_model_find_pair(model, BALL, HAND));
    ck_assert_ptr_null(tb_model_find_pair(model, BALL, GROUND));
    tb_model_destroy(model);
    tb_scene_destroy(scene);
}
END_TEST

START_TEST(of_two_surfaces_the_larger_counts)
{
    tb_scene *scene = new_scene();
    tb_error error = {0};
    tb_shape_def def = tb_shape_defaults();
    def.body = add_body(scene, NONE, "body");
    def.size[0] = 1;
    add_joint(scene, def.body, TB_JOINT_FREE, NULL);
    def.surface = (tb_surface){TB_CONTACT_SPIN, 0.2, 0.9, 0.3, 0.1, 0.02, 1, 0.5};
    TEST_OK(tb_scene_add_shape(scene, &def, NULL, &error), &error);
    def.body = NONE;
    def.surface = (tb_surface){TB_CONTACT_ROLLING, 0.5, 0.1, 0.4, 0.05, 0.03, 2, 0.25};
    TEST_OK(tb_scene_add_shape(scene, &def, NULL, &error), &error);
    tb_model *model = compile(scene);
    const tb_surface s = tb_model_pair_surface(model, 0, 1);
    ck_assert_int_eq(s.kind, TB_CONTACT_ROLLING);
    TEST_NEAR(s.friction, 0.5, 0);
    TEST_NEAR(s.restitution, 0.9, 0);
    TEST_NEAR(s.tangential_restitution, 0.4, 0);
    TEST_NEAR(s.friction * s.spin_radius, 0.5 * 0.05, 1e-17); /* the larger torque */
    TEST_NEAR(s.rolling_length, 0.03, 0);
    TEST_NEAR(s.adhesion, 3, 0);
    TEST_NEAR(s.adhesion_range, 0.75, 0);
    tb_model_destroy(model);
    tb_scene_destroy(scene);
}
END_TEST

START_TEST(a_model_tells_about_itself)
{
    tb_scene *scene = rich_scene();
    tb_model *model = compile(scene);
    tb_scene_destroy(scene);
    const tb_model_counts n = tb_model_count(model);
    ck_assert_int_eq(n.bodies, 7);
    ck_assert_int_eq(n.joints, 7);
    ck_assert_int_eq(n.coordinates, 16);
    ck_assert_int_eq(n.dofs, 14);
    ck_assert_int_eq(n.shapes, 8);
    ck_assert_int_eq(n.meshes, 1);
    ck_assert_int_eq(n.tendons, 1);
    ck_assert_int_eq(n.actuators, 2);
    ck_assert_int_eq(n.activations, 1);
    ck_assert_int_eq(n.equalities, 2);
    ck_assert_int_eq(n.kinematic_bodies, 1);
    ck_assert_int_eq(n.trees, 2);
    ck_assert_int_eq(n.warnings, 1);
    ck_assert_str_eq(tb_model_name(model), "rich");
    ck_assert_str_eq(tb_model_warning(model, 0), "something was ignored");
    ck_assert_str_eq(tb_model_thing_name(model, TB_HANDLE_TENDON, 0), "cord");
    ck_assert_str_eq(tb_model_thing_name(model, TB_HANDLE_TENDON, 1), "");
    ck_assert_str_eq(tb_model_thing_name(model, (tb_handle_kind)99, 0), "");
    ck_assert_int_eq(tb_model_find(model, TB_HANDLE_KEYFRAME, "home"), 0);
    ck_assert_int_eq(tb_model_find(model, TB_HANDLE_SHAPE, ""), -1);
    ck_assert_int_eq(tb_model_find(model, TB_HANDLE_BODY, "world"), 0);
    tb_body_info body;
    TEST_OK(tb_model_body_info(model, tb_model_find(model, TB_HANDLE_BODY, "puppet"), &body), NULL);
    ck_assert(body.kinematic);
    TEST_NEAR(body.mass, 2, 0);
    TEST_NEAR(body.principal[2], 0.5, 0);
    ck_assert_int_eq(tb_model_body_info(model, 7, &body), TB_INVALID_ARGUMENT);
    tb_joint_info joint;
    TEST_OK(tb_model_joint_info(model, tb_model_find(model, TB_HANDLE_JOINT, "thumb"), &joint),
            NULL);
    ck_assert_int_eq(joint.coordinates, 4);
    ck_assert_int_eq(joint.dofs, 3);
    ck_assert_int_eq(tb_model_joint_info(model, -1, &joint), TB_INVALID_ARGUMENT);
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_hundred_thousand_named_bodies_compile)
{
    tb_scene *scene = new_scene();
    tb_handle chain = NONE;
    char name[32];
    for (int i = 0; i < 50000; i++) {
        snprintf(name, sizeof name, "ball %d", i);
        add_ball(scene, name);
        snprintf(name, sizeof name, "link %d", i); /* a chain as deep as it is long */
        chain = add_body(scene, chain, name);
        add_joint(scene, chain, TB_JOINT_HINGE, NULL);
        add_shape(scene, chain, TB_SHAPE_SPHERE, 0.1, 0, 0);
    }
    tb_model *model = compile(scene);
    ck_assert_int_eq(model->number_of_bodies, 100001);
    ck_assert_int_eq(model->number_of_trees, 50001);
    ck_assert_int_eq(tb_model_find(model, TB_HANDLE_BODY, "ball 49999"), 100000);
    tb_model_destroy(model);
    tb_scene_destroy(scene);
}
END_TEST

TEST_MAIN(bodies_are_numbered_depth_first, a_planar_joint_becomes_two_slides_and_a_hinge,
          equalities_take_their_references_from_the_described_pose, keyframes_must_fit_the_model,
          what_moves_needs_mass, planes_and_height_fields_must_not_move, visual_shapes_need_no_hull,
          assets_are_built_once, shapes_collide_by_the_rules, of_two_surfaces_the_larger_counts,
          a_model_tells_about_itself, a_hundred_thousand_named_bodies_compile)
