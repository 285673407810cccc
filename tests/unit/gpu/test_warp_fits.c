/* Which worlds the kernel of small worlds takes: none with a contact law that it does not have. */
#include "gpu/batch/small/warp_fits.h"

#include "gpu_util.h"
#include "step/stages/contact_terms.h"

static const tb_surface SLIDES = {.kind = TB_CONTACT_COULOMB, .friction = 0.5};
static const tb_surface SMOOTH = {.kind = TB_CONTACT_FRICTIONLESS, .friction = 0.5};
static const tb_surface SPINS = {.kind = TB_CONTACT_SPIN, .friction = 0.5, .spin_radius = 0.01};
static const tb_surface ROLLS = {
    .kind = TB_CONTACT_ROLLING, .friction = 0.5, .rolling_length = 0.01};
/* the kind of one and the radius of the other make a law that neither has alone */
static const tb_surface SPINS_BY_ZERO = {.kind = TB_CONTACT_SPIN, .friction = 0.5};
static const tb_surface SLIDES_WITH_RADIUS = {
    .kind = TB_CONTACT_COULOMB, .friction = 0.5, .spin_radius = 0.01};
static const tb_surface ROLLS_BY_ZERO = {.kind = TB_CONTACT_ROLLING, .friction = 0.5};
static const tb_surface SLIDES_WITH_LENGTH = {
    .kind = TB_CONTACT_COULOMB, .friction = 0.5, .rolling_length = 0.01};

/* A ball on a plane. */
static tb_model *ball_with(const tb_surface *floor, const tb_surface *ball)
{
    const tb_handle none = {0};
    tb_error error;
    tb_scene *scene = new_scene();
    for (int i = 0; i < 2; i++) {
        tb_shape_def shape = tb_shape_defaults();
        shape.body = none;
        if (i > 0) {
            tb_body_def body = tb_body_defaults();
            body.position[2] = 0.06;
            TEST_OK(tb_scene_add_body(scene, &body, &shape.body, &error), &error);
            add_joint(scene, shape.body, TB_JOINT_FREE, NULL);
        }
        shape.type = i > 0 ? TB_SHAPE_SPHERE : TB_SHAPE_PLANE;
        shape.size[0] = i > 0 ? 0.05 : 0;
        shape.surface = i > 0 ? *ball : *floor;
        TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);
    }
    return finish(scene);
}

/* Whether the kernel takes the world, and whether it has the law of its one pair of shapes. */
static bool fits(const tb_surface *floor, const tb_surface *ball, bool *knows)
{
    const tb_step_options options = tb_step_defaults();
    tb_model *model = ball_with(floor, ball);
    const tb_surface both = tb_model_pair_surface(model, 0, 1);
    const bool takes = tb_gpu_warp_fits(model, &options);
    *knows = tb_gpu_warp_knows(tb_contact_law(&both));
    tb_model_destroy(model);
    return takes;
}

/* Also laws of no more rows than Coulomb's, to which the kernel would give no friction. */
START_TEST(the_kernel_has_sliding_friction_alone)
{
    for (int32_t law = TB_LAW_UNILATERAL; law <= TB_LAW_BOX; law++)
        ck_assert(tb_gpu_warp_knows((tb_law)law) ==
                  (law == TB_LAW_UNILATERAL || law == TB_LAW_COULOMB));
}
END_TEST

START_TEST(worlds_of_other_laws_are_left_to_the_general_kernels)
{
    static const struct {
        const tb_surface *floor, *ball;
        bool fits;
    } cases[] = {
        {&SLIDES, &SLIDES, true},
        {&SLIDES, &SMOOTH, true},
        {&SPINS_BY_ZERO, &SLIDES, true},
        {&SPINS, &SLIDES, false},
        {&SLIDES, &ROLLS, false},
        {&SPINS_BY_ZERO, &SLIDES_WITH_RADIUS, false},
        {&ROLLS_BY_ZERO, &SLIDES_WITH_LENGTH, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool knows = false;
        ck_assert(fits(cases[i].floor, cases[i].ball, &knows) == cases[i].fits);
        ck_assert(knows == cases[i].fits);
    }
}
END_TEST

/* A block on the floor, as a box or as the hull of its corners. */
static tb_model *block(bool as_hull)
{
    static const double half[3] = {0.06, 0.05, 0.04}, position[3] = {0, 0, 0.04};
    tb_error error;
    double vertices[24];
    int32_t triangles[36];
    tb_handle asset = {0};
    tb_scene *scene = floor_scene();
    box_mesh(half, vertices, triangles);
    tb_mesh_def mesh = tb_mesh_defaults();
    mesh.vertices = vertices;
    mesh.number_of_vertices = 8;
    mesh.triangles = triangles;
    mesh.number_of_triangles = 12;
    if (as_hull) TEST_OK(tb_scene_add_mesh(scene, &mesh, &asset, &error), &error);
    place(scene, as_hull ? TB_SHAPE_CONVEX : TB_SHAPE_BOX, position, as_hull ? NULL : half, asset);
    return finish(scene);
}

START_TEST(hulls_are_left_to_the_general_kernels)
{
    const tb_step_options options = tb_step_defaults();
    for (int as_hull = 0; as_hull < 2; as_hull++) {
        tb_model *model = block(as_hull);
        ck_assert(tb_gpu_warp_fits(model, &options) == !as_hull);
        tb_model_destroy(model);
    }
}
END_TEST

/* One free body is a small world, up to six are a pile. */
START_TEST(up_to_six_free_bodies_are_a_pile)
{
    const tb_step_options options = tb_step_defaults();
    for (int boxes = 1; boxes < 8; boxes++) {
        tb_model *model = stack(boxes);
        ck_assert(tb_gpu_warp_fits(model, &options) == (boxes == 1));
        ck_assert(tb_gpu_pile_fits(model, &options) == (boxes <= 6));
        tb_model_destroy(model);
    }
    tb_model *model = boxes_and_pendulum(); /* a hinge turns the axes of its rows */
    ck_assert(!tb_gpu_pile_fits(model, &options));
    tb_model_destroy(model);
}
END_TEST

TEST_MAIN(the_kernel_has_sliding_friction_alone,
          worlds_of_other_laws_are_left_to_the_general_kernels,
          hulls_are_left_to_the_general_kernels, up_to_six_free_bodies_are_a_pile)
