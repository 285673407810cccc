/* Grasp jobs from the inside: the world made of hand, object and table, the changes of a variant,
 * the effect of the carrier's acceleration on fingers, refusals, samples. */
#include "grasp/replay.h"
#include "grasp_util.h"

static void make_plan(const tb_grasp_request *r, tb_grasp_plan *plan)
{
    memset(&error, 0, sizeof error);
    TEST_OK(grasp_plan_make(r, plan, &error), &error);
}

static bool warned(const tb_grasp_plan *plan, const char *words)
{
    for (int32_t i = 0; i < plan->number_of_warnings; i++)
        if (strstr(plan->warnings[i], words) != NULL) return true;
    return false;
}

/* ---- composing ---- */

START_TEST(the_base_is_carried_and_its_own_joints_are_left_out)
{
    const tb_grasp_pose pose = pose_at(0, 0, 0.005);
    tb_grasp_request r = request_of(mjcf(JAW), mjcf(BLOCK), &pose);
    r.object.position[2] = 0.5;
    tb_grasp_plan plan;
    make_plan(&r, &plan);
    const tb_model *m = plan.model;
    const tb_model_counts n = tb_model_count(m);
    ck_assert_int_eq(n.bodies, 1 + 4 + 1); /* world; carrier, hand, fingers; block */
    ck_assert_int_eq(n.dofs, 2 + 6);
    ck_assert_int_eq(n.actuators, 2);
    ck_assert_int_eq(n.kinematic_bodies, 1);
    ck_assert(warned(&plan, "'x'") && warned(&plan, "'lift'"));
    ck_assert_int_eq(plan.number_of_closing, 2);
    ck_assert(plan.open[0] == 0 && plan.close[0] == 10);

    /* the hand's frame lies in the carrier's, wherever its file has it; the plane stayed behind */
    const int32_t hand = tb_model_find(m, TB_HANDLE_BODY, "hand/hand");
    ck_assert_int_eq(hand, plan.carrier + 1);
    for (int k = 0; k < 3; k++) ck_assert(m->bodies[hand].position[k] == 0);
    ck_assert_int_eq(tb_model_find(m, TB_HANDLE_SHAPE, "hand/floor"), -1);
    ck_assert_int_ge(tb_model_find(m, TB_HANDLE_SHAPE, "table"), 0);
    /* the block's frame is at its centre, and the block rests on the table where it was placed */
    ck_assert(m->trees[m->bodies[plan.object].tree].single_free);
    TEST_NEAR(plan.table_height, 0.5 - 0.02, 1e-12);
    TEST_NEAR(plan.object_origin.y, 0.001, 1e-12);
    TEST_NEAR(plan.object_radius, sqrt(2 * 0.02 * 0.02 + 0.045 * 0.045), 1e-12);
    TEST_NEAR(plan.object_mass, 0.1, 1e-12);
    grasp_plan_free(&plan);
    free_request(&r);
}
END_TEST

/* The last state that a replay shows: the left finger's height by its sensor and by its body. */
typedef struct reading {
    double sensor, body, force, actuator;
} reading;

static tb_status read_sensors(void *context, tb_state *state, double time,
                              const tb_certificate *step, tb_error *problem)
{
    reading *r = context;
    const tb_model *m = tb_state_model(state);
    double numbers[16];
    tb_sensor_info place, force;
    tb_body_motion motions[8];
    (void)time;
    (void)step;
    tb_model_sensor_info(m, tb_model_find(m, TB_HANDLE_SENSOR, "hand/place"), &place);
    tb_model_sensor_info(m, tb_model_find(m, TB_HANDLE_SENSOR, "hand/pull"), &force);
    const tb_status status = tb_state_sensors(state, 0.002, numbers, problem);
    if (status != TB_OK) return status;
    tb_state_body_motions(state, motions);
    r->sensor = numbers[place.first + 2];
    r->body = motions[tb_model_find(m, TB_HANDLE_BODY, "hand/left")].position[2];
    r->force = numbers[force.first];
    r->actuator = tb_state_actuator_force(state, 0);
    return TB_OK;
}

START_TEST(the_hands_sensors_are_kept)
{
    static const char SENSORS[] =
        "<sensor><jointpos name='gone' joint='x'/><jointpos name='way' joint='left'/>"
        "<actuatorfrc name='pull' actuator='left'/><actuatorfrc name='lost' actuator='lift'/>"
        "<framepos name='place' objtype='body' objname='left'/>"
        "<framepos name='ground' objtype='geom' objname='floor'/><clock name='clock'/></sensor>"
        "</mujoco>";
    char text[4096];
    const tb_grasp_pose pose = pose_at(0, 0, 0.005);
    snprintf(text, sizeof text, "%.*s%s", (int)(sizeof JAW - sizeof "</mujoco>"), JAW, SENSORS);
    tb_grasp_request r = request_of(mjcf(text), mjcf(BLOCK), &pose);
    tb_grasp_plan plan;
    make_plan(&r, &plan);
    const tb_model *m = plan.model;
    ck_assert_int_eq(tb_model_count(m).sensors, 4);
    for (int i = 0; i < 7; i++) {
        const char *const names[] = {"way", "pull", "place", "clock", "gone", "lost", "ground"};
        char name[32];
        snprintf(name, sizeof name, "hand/%s", names[i]);
        ck_assert_int_eq(tb_model_find(m, TB_HANDLE_SENSOR, name) >= 0, i < 4);
    }
    grasp_plan_free(&plan);

    /* a replay reads them, and the grasp's result is that of a hand without sensors */
    reading last = {0};
    tb_model *model = NULL;
    TEST_OK(tb_grasp_replay(&r, 0, 0.05, read_sensors, &last, &model, &error), &error);
    ck_assert(last.sensor == last.body && last.sensor != 0);
    ck_assert(last.force == last.actuator && last.force > 0);
    tb_model_destroy(model);
    tb_grasp_request plain = request_of(mjcf(JAW), mjcf(BLOCK), &pose);
    tb_grasp_trial with, without;
    play(&r, keep, &with);
    play(&plain, keep, &without);
    ck_assert_int_eq(with.verdict, without.verdict);
    ck_assert(with.slip == without.slip);
    ck_assert(with.certificate.residual == without.certificate.residual);
    free_request(&r);
    free_request(&plain);
}
END_TEST

START_TEST(masses_are_those_of_the_files)
{
    /* each file has rules for masses of its own: they hold for it alone */
    static const char HAND[] =
        "<mujoco><compiler boundmass='0.02' settotalmass='2'/><worldbody><body name='palm'>"
        "<geom type='sphere' size='0.01'/><body name='f'><joint type='slide' axis='0 1 0'"
        " name='f'/><geom type='box' size='0.01 0.01 0.01' density='1'/></body></body>"
        "</worldbody><actuator><motor name='f' joint='f' ctrlrange='0 1'/></actuator></mujoco>";
    const tb_grasp_pose pose = pose_at(0, 0, 0);
    tb_grasp_request r = request_of(mjcf(HAND), mjcf(BLOCK), &pose);
    r.object.mass = 0.7;
    tb_model *own;
    TEST_OK(tb_scene_compile(r.hand.scene, &own, &error), &error);
    tb_grasp_plan plan;
    make_plan(&r, &plan);
    for (int32_t b = 1; b < own->number_of_bodies; b++) {
        const tb_model_body *x = &own->bodies[b], *y = &plan.model->bodies[plan.carrier + b];
        TEST_NEAR_RELATIVE(y->mass, x->mass, 1e-14);
        for (int k = 0; k < 3; k++) TEST_NEAR_RELATIVE(y->inertia[k], x->inertia[k], 1e-12);
    }
    TEST_NEAR(plan.model->bodies[plan.object].mass, 0.7, 1e-12);
    tb_model_destroy(own);
    grasp_plan_free(&plan);
    free_request(&r);
}
END_TEST

/* The block is 90 mm wide and 40 mm high. Turned by 30 degrees about x it stands on an edge and falls
 * back to its side, except without a table, where its weight is borne; turned by 90 degrees it
 * stands. */
START_TEST(objects_that_move_before_the_fingers_close_are_warned_of)
{
    static const struct {
        double degrees;
        bool no_table, moves;
    } CASES[] = {{0, false, false}, {30, false, true}, {90, false, false}, {30, true, false}};
    const tb_grasp_pose pose = pose_at(0, 0, 0);
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        tb_grasp_request r = request_of(mjcf(JAW), mjcf(BLOCK), &pose);
        const double half = CASES[i].degrees / 360 * 3.14159265358979323846;
        tb_grasp_plan plan;
        r.object.orientation[0] = cos(half);
        r.object.orientation[1] = sin(half);
        r.object.no_table = CASES[i].no_table;
        make_plan(&r, &plan);
        ck_assert_int_eq(warned(&plan, "the object does not rest"), CASES[i].moves);
        for (int32_t k = 0; k < plan.number_of_warnings && CASES[i].moves; k++) {
            double mm = 0, after = 0, moved = 0, degrees = 0, closed = 0;
            if (sscanf(plan.warnings[k],
                       "the object does not rest: alone on the table it has moved by more than "
                       "%lf mm after %lf s, and by %lf mm and %lf degrees after %lf s",
                       &mm, &after, &moved, &degrees, &closed) != 5)
                continue;
            /* the centre of mass sinks by 16 mm, which takes 57 ms in free fall; a point at the
             * block's radius, 53 mm, moves by 2 sin(15 degrees) of it about the centre */
            TEST_NEAR(mm, 5, 1e-9);
            ck_assert(after > 0.03 && after < 0.2);
            ck_assert(moved > 25 && moved < 60);
            TEST_NEAR(degrees, 30, 0.5);
            ck_assert(closed >= after && closed <= (double)plan.phases.close * plan.dt + 0.01);
        }
        grasp_plan_free(&plan);
        free_request(&r);
    }
}
END_TEST

START_TEST(a_hand_fixed_to_its_world_is_carried_whole)
{
    static const char URDF[] =
        "<robot name='h'><link name='base'><collision><geometry><box size='0.1 0.1 0.02'/>"
        "</geometry></collision></link><link name='a'><inertial><mass value='0.1'/><inertia"
        " ixx='1e-4' iyy='1e-4' izz='1e-4' ixy='0' ixz='0' iyz='0'/></inertial><collision>"
        "<geometry><sphere radius='0.01'/></geometry></collision></link><joint name='a'"
        " type='prismatic'><parent link='base'/><child link='a'/><origin xyz='0 0.05 0.05'/>"
        "<axis xyz='0 -1 0'/><limit lower='0' upper='0.05' effort='5' velocity='1'/></joint>"
        "</robot>";
    tb_scene *hand = NULL;
    TEST_OK(tb_scene_load_urdf(URDF, strlen(URDF), NULL, NULL, &hand, &error), &error);
    const tb_grasp_pose pose = pose_at(0, 0, 0.3);
    tb_grasp_request r = request_of(hand, mjcf(BLOCK), &pose);
    tb_grasp_plan plan;
    make_plan(&r, &plan);
    /* the base's shape is fixed to the carrier, the finger keeps its joint and its place */
    int32_t on_carrier = 0;
    for (int32_t s = 0; s < plan.model->number_of_shapes; s++)
        on_carrier += plan.model->bodies[plan.model->shapes[s].body].fixed_to == plan.carrier;
    ck_assert_int_eq(on_carrier, 1);
    const int32_t a = tb_model_find(plan.model, TB_HANDLE_BODY, "hand/a");
    ck_assert_int_gt(a, 0);
    TEST_NEAR(plan.model->bodies[a].position[1], 0.05, 1e-12);
    ck_assert_int_eq(plan.model->bodies[a].number_of_dofs, 1);
    grasp_plan_free(&plan);
    free_request(&r);
}
END_TEST

/* ---- hands with servos ---- */

/* Three fingers around Z, hinges at their roots, position servos; straight down is 0. */
#define FINGER "<geom type='capsule' size='0.008' fromto='0 0 0 0 0 -0.07' mass='0.03'/></body>"
static const char FINGERS[] =
    "<mujoco><compiler angle='radian'/><default><joint type='hinge' axis='0 1 0' damping='0.05'"
    " range='-0.6 1'/><position kp='5' kv='0.1' ctrlrange='-0.5 0.9' forcerange='-2 2'/>"
    "<geom friction='0.9'/></default><worldbody><body name='palm'>"
    "<geom type='cylinder' size='0.04 0.01' mass='0.3'/>"
    "<body name='f1' pos='0.04 0 -0.01'><joint name='f1'/>" FINGER
    "<body name='f2' pos='-0.02 0.034641 -0.01' euler='0 0 2.0943951'><joint name='f2'/>" FINGER
    "<body name='f3' pos='-0.02 -0.034641 -0.01' euler='0 0 -2.0943951'><joint name='f3'/>" FINGER
    "</body></worldbody><actuator><position name='f1' joint='f1'/>"
    "<position name='f2' joint='f2'/><position name='f3' joint='f3'/></actuator>%s</mujoco>";
static const char BALL[] = "<mujoco><worldbody><body name='ball'><freejoint/>"
                           "<geom type='sphere' size='0.03' mass='0.1' friction='0.9'/></body>"
                           "</worldbody></mujoco>";

static void keep_fingers(void *context, const tb_grasp_result *result)
{
    int *fingers = context;
    ck_assert_msg(result->trials[0].verdict == TB_GRASP_HELD, "%s, slip %g, drop %g",
                  tb_grasp_verdict_name(result->trials[0].verdict), result->trials[0].slip,
                  result->trials[0].drop_time);
    *fingers = result->number_of_fingers;
    ck_assert(result->epsilon > 0 && result->volume > 0);
}

START_TEST(three_fingers_with_servos_hold_a_ball)
{
    char text[2048];
    static const char *const KEYS[] = {
        "", "<keyframe><key name='open' qpos='-0.4 -0.4 -0.4' ctrl='-0.4 -0.4 -0.4'/>"
            "<key name='closed' ctrl='0.8 0.8 0.8'/></keyframe>"};
    static const char *const NAMES[3] = {"f1", "f2", "f3"};
    static const double OPEN[3] = {-0.3, -0.3, -0.3}, CLOSE[3] = {0.7, 0.7, 0.7};
    /* the ball's middle between the fingers' lower halves */
    const tb_grasp_pose pose = pose_at(0, 0, 0.06);
    for (int how = 0; how < 3; how++) {
        snprintf(text, sizeof text, FINGERS, KEYS[how == 1]);
        tb_grasp_request r = request_of(mjcf(text), mjcf(BALL), &pose);
        r.protocol.close_seconds = 0.8;
        if (how == 2) {
            r.hand.closing = NAMES;
            r.hand.number_of_closing = 3;
            r.hand.open_controls = OPEN;
            r.hand.close_controls = CLOSE;
        }
        tb_grasp_plan plan;
        make_plan(&r, &plan);
        ck_assert_int_eq(plan.number_of_closing, 3);
        /* by the ranges, the keyframes, the caller: positive angles close */
        static const double EXPECTED[3][2] = {{-0.5, 0.9}, {-0.4, 0.8}, {-0.3, 0.7}};
        ck_assert(plan.open[1] == EXPECTED[how][0] && plan.close[1] == EXPECTED[how][1]);
        TEST_NEAR(plan.open_q[0], plan.open[0], 0.05); /* servos give way a little */
        grasp_plan_free(&plan);
        int fingers = 0;
        play(&r, keep_fingers, &fingers);
        ck_assert_int_eq(fingers, 3);
        free_request(&r);
    }
}
END_TEST

/* ---- variants ---- */

START_TEST(a_variant_is_the_model_compiled_anew)
{
    const tb_grasp_pose pose = pose_at(0, 0, 0.005);
    tb_grasp_request r = request_of(mjcf(JAW), mjcf(BLOCK), &pose);
    r.object.friction = 0.5;
    tb_grasp_plan base;
    make_plan(&r, &base);
    const tb_variation variation = {.friction_scale = 1.6,
                                    .first_body = base.object,
                                    .last_body = base.object_end,
                                    .mass_scale = 3,
                                    .actuators = base.closing,
                                    .number_of_actuators = base.number_of_closing,
                                    .force = 4};
    tb_model *variant;
    TEST_OK(tb_model_vary(base.model, &variation, &variant, &error), &error);
    /* a cache by hash must not take it for the base */
    ck_assert_str_ne(tb_model_sha256(variant), tb_model_sha256(base.model));
    r.object.friction = 0.8;
    r.object.mass = 0.3;
    tb_grasp_plan anew;
    make_plan(&r, &anew);
    const tb_model_body *x = &variant->bodies[base.object], *y = &anew.model->bodies[base.object];
    TEST_NEAR_RELATIVE(x->mass, y->mass, 1e-14);
    for (int k = 0; k < 6; k++) TEST_NEAR(x->inertia[k], y->inertia[k], 1e-18);
    const tb_model_tree *t = &variant->trees[x->tree], *u = &anew.model->trees[y->tree];
    TEST_NEAR_RELATIVE(t->inverse_mass, u->inverse_mass, 1e-14);
    TEST_NEAR_RELATIVE(t->inverse_mass_root, u->inverse_mass_root, 1e-14);
    for (int k = 0; k < 9; k += 4) {
        TEST_NEAR_RELATIVE(t->inverse_inertia[k], u->inverse_inertia[k], 1e-12);
        TEST_NEAR_RELATIVE(t->inverse_root[k], u->inverse_root[k], 1e-12);
    }
    for (int32_t s = 0; s < variant->number_of_shapes; s++)
        TEST_NEAR_RELATIVE(variant->shapes[s].surface.friction,
                           anew.model->shapes[s].surface.friction, 1e-14);
    for (int i = 0; i < 2; i++) {
        ck_assert(variant->actuators[i].force_limited && variant->actuators[i].force_upper == 4);
        ck_assert(!base.model->actuators[i].force_limited);
    }
    TEST_NEAR_RELATIVE(variant->total_mass, anew.model->total_mass, 1e-14);
    /* the model it was made of is as it was */
    ck_assert(base.model->shapes[0].surface.friction == 0.5);
    tb_model_destroy(variant);
    grasp_plan_free(&anew);
    grasp_plan_free(&base);
    free_request(&r);
}
END_TEST

/* ---- the carrier ---- */

/* Fingers that nothing holds along their slides stay where they are in the world while the hand is
 * shaken along them; along another axis they come with it. */
START_TEST(free_fingers_stay_behind_when_the_hand_is_shaken)
{
    tb_grasp_shake shake = tb_grasp_shake_defaults();
    const tb_grasp_pose pose = pose_at(0, 0, 0.4);
    shake.axis[1] = 1;
    shake.axis[2] = 0;
    for (int turning = 0; turning < 2; turning++) {
        tb_grasp_request r = request_of(mjcf(JAW), mjcf(BLOCK), &pose);
        r.protocol.shakes = &shake;
        r.protocol.number_of_shakes = 1;
        r.protocol.lift = 0;
        r.protocol.lift_seconds = 0;
        r.protocol.close_seconds = 0.01;
        r.step.dt = 0.0005;
        /* neither control pushes */
        static const char *const NAMES[2] = {"left", "right"};
        static const double ZERO[2] = {0, 0};
        r.hand.closing = NAMES;
        r.hand.number_of_closing = 2;
        r.hand.open_controls = r.hand.close_controls = ZERO;
        shake.amplitude = turning ? 0 : 0.01;
        shake.angle = turning ? 0.1 : 0;
        if (turning) {
            shake.axis[1] = 0; /* about X: slides point out of the plane of motion by little */
            shake.axis[0] = 1;
        }
        tb_grasp_plan plan;
        make_plan(&r, &plan);
        grasp_world world;
        tb_stepper *stepper;
        TEST_OK(tb_stepper_create(&plan.step, &stepper, &error), &error);
        TEST_OK(grasp_world_take(&plan, &world, &error), &error);
        TEST_OK(grasp_world_begin(&world, 0, 0, &error), &error);
        const int32_t left = tb_model_find(plan.model, TB_HANDLE_BODY, "hand/left");
        tb_body_motion first, now;
        TEST_OK(tb_state_body_motion(world.state, left, &first), &error);
        double worst = 0, reached = 0;
        bool done = false;
        for (int64_t s = 0; s < plan.phases.shake && !done; s++) {
            TEST_OK(grasp_world_play(&world, stepper, 1, &done, &error), &error);
            TEST_OK(tb_state_body_motion(world.state, left, &now), &error);
            const grasp_frame carrier = grasp_carrier_at(&plan, &world.target, world.step);
            reached = fmax(reached, fabs(carrier.position.y) +
                                        tb_v3_length(tb_q_rotation_vector(carrier.orientation)));
            worst = fmax(worst, fabs(now.com[1] - first.com[1]));
        }
        if (!turning) {
            ck_assert(reached > 0.005);
            /* a closed form: at rest in the world */
            ck_assert_msg(worst < 1e-5, "the finger moved by %g", worst);
        } else {
            /* the second-order motion by the slide's reaction and gravity along the tilted slide
             * is bounded by g angle t^2 / 2 */
            ck_assert(reached > 0.05);
            ck_assert_msg(worst < 0.1 * 9.81 * 0.5 * 0.5 / 2, "the finger moved by %g", worst);
        }
        grasp_world_give(&world);
        tb_stepper_destroy(stepper);
        grasp_plan_free(&plan);
        free_request(&r);
    }
}
END_TEST

/* The carrier is where the path says after every step, to rounding. */
START_TEST(the_carrier_follows_its_path_exactly)
{
    tb_grasp_shake shake = tb_grasp_shake_defaults();
    shake.axis[0] = 1;
    shake.angle = 0.3;
    const tb_grasp_pose pose = pose_at(0, 0, 0.3);
    tb_grasp_request r = request_of(mjcf(JAW), mjcf(BLOCK), &pose);
    r.protocol.shakes = &shake;
    r.protocol.number_of_shakes = 1;
    r.protocol.approach_distance = 0.05;
    r.hand.tool_position[2] = -0.1;
    tb_grasp_plan plan;
    make_plan(&r, &plan);
    grasp_world world;
    tb_stepper *stepper;
    TEST_OK(tb_stepper_create(&plan.step, &stepper, &error), &error);
    TEST_OK(grasp_world_take(&plan, &world, &error), &error);
    TEST_OK(grasp_world_begin(&world, 0, 0, &error), &error);
    bool done = false;
    double worst = 0;
    while (!done) {
        TEST_OK(grasp_world_play(&world, stepper, 1, &done, &error), &error);
        tb_body_motion motion;
        TEST_OK(tb_state_body_motion(world.state, plan.carrier, &motion), &error);
        const grasp_frame tool = grasp_tool_at(&plan, &world.target, world.step);
        const grasp_frame carrier = grasp_frame_of(&motion);
        const tb_vec3 at = grasp_frame_out(&carrier, plan.tool.position);
        worst = fmax(worst, tb_v3_length(tb_v3_sub(at, tool.position)));
    }
    TEST_NEAR(worst, 0, 1e-12);
    grasp_world_give(&world);
    tb_stepper_destroy(stepper);
    grasp_plan_free(&plan);
    free_request(&r);
}
END_TEST

/* ---- refusals ---- */

static void refused(const tb_grasp_request *r, tb_status status, const char *field)
{
    tb_grasp_job *job = NULL;
    memset(&error, 0, sizeof error);
    const tb_status got = tb_grasp_job_create(r, &job, &error);
    ck_assert_msg(got == status && strcmp(error.field, field) == 0 && job == NULL,
                  "expected %s of '%s', got %s of '%s': %s", tb_status_name(status), field,
                  tb_status_name(got), error.field, error.message);
}

START_TEST(requests_that_make_no_sense_are_refused_by_name)
{
    const tb_status bad = TB_INVALID_ARGUMENT;
    tb_grasp_pose poses[2] = {pose_at(0, 0, 0), pose_at(0, 0, 0)};
    tb_scene *jaw = mjcf(JAW), *block = mjcf(BLOCK);
    const tb_grasp_request good = request_of(jaw, block, poses);
    tb_grasp_request r = good;
    r.number_of_poses = 2;
    poses[1].position[1] = NAN;
    refused(&r, bad, "poses[1].position");
    poses[1].position[1] = 0;
    poses[1].orientation[0] = 0;
    refused(&r, bad, "poses[1].orientation");
    r = good;
    r.number_of_poses = 0;
    refused(&r, bad, "poses");
    r = good;
    r.object.scene = NULL;
    refused(&r, bad, "object.scene");
    r = good;
    r.protocol.lift_seconds = 0;
    refused(&r, bad, "protocol.lift_seconds");
    r = good;
    r.perturbation.count = 0;
    refused(&r, bad, "perturbation.count");
    r = good;
    r.confidence = 1;
    refused(&r, bad, "confidence");
    r = good;
    r.step.solve.tolerance = -1;
    refused(&r, bad, "solve.tolerance");
    r = good;
    r.protocol.hold_seconds = 1e4;
    r.step.dt = 1e-6;
    refused(&r, bad, "protocol");
    static const char *const UNKNOWN[1] = {"thumb"}, *const BASE[1] = {"lift"},
                             *const TWICE[2] = {"left", "left"};
    r = good;
    r.hand.closing = UNKNOWN;
    r.hand.number_of_closing = 1;
    refused(&r, TB_NOT_FOUND, "hand.closing");
    r.hand.closing = BASE;
    refused(&r, bad, "hand.closing");
    r.hand.closing = TWICE;
    r.hand.number_of_closing = 2;
    refused(&r, bad, "hand.closing");

    /* objects that are none */
    static const char *const OBJECTS[] = {
        "<mujoco><worldbody><geom type='sphere' size='1'/></worldbody></mujoco>",
        "<mujoco><worldbody><body><freejoint/><geom size='1'/></body><body><freejoint/>"
        "<geom size='1'/></body></worldbody></mujoco>",
        "<mujoco><worldbody><body name='b'><joint/><geom size='1'/></body></worldbody></mujoco>",
        "<mujoco><worldbody><body name='b'><freejoint/><inertial pos='0 0 0' mass='1'"
        " diaginertia='1 1 1'/></body></worldbody></mujoco>"};
    for (size_t i = 0; i < sizeof OBJECTS / sizeof OBJECTS[0]; i++) {
        r = good;
        tb_scene *object = mjcf(OBJECTS[i]);
        r.object.scene = object;
        refused(&r, bad, "object");
        tb_scene_destroy(object);
    }
    tb_scene_destroy(jaw);
    tb_scene_destroy(block);
}
END_TEST

/* ---- samples ---- */

START_TEST(samples_are_antipodal_and_repeatable)
{
    enum { COUNT = 50 };
    static tb_grasp_pose poses[COUNT], again[COUNT];
    tb_scene *ball = mjcf(BALL), *block = mjcf(BLOCK);
    tb_grasp_sampling s = tb_grasp_sampling_defaults();
    int32_t found, found_again;
    s.count = COUNT;
    s.friction = 0.3;
    TEST_OK(tb_grasp_sample(ball, &s, poses, &found, &error), &error);
    ck_assert_int_eq(found, COUNT);
    const double slope = atan(0.3);
    for (int i = 0; i < found; i++) {
        /* two points of the sphere whose chord lies in both cones: its middle is at most r
         * sin(slope) from the centre, and on the plane normal to the chord */
        const tb_vec3 p = tb_v3_load(poses[i].position);
        const tb_quaternion q = tb_q_load(poses[i].orientation);
        const tb_vec3 axis = tb_q_rotate(q, tb_v3(0, 1, 0));
        const tb_vec3 down = tb_q_rotate(q, tb_v3(0, 0, 1));
        ck_assert_msg(tb_v3_length(p) <= 0.03 * sin(slope) + 2e-3, "pose %d: %g", i,
                      tb_v3_length(p));
        TEST_NEAR(tb_v3_dot(p, axis), 0, 2e-3);
        ck_assert(acos(fmin(1, -down.z)) <= s.spread + 1e-9);
    }
    /* fewer samples are the first of more */
    s.count = 7;
    TEST_OK(tb_grasp_sample(ball, &s, again, &found_again, &error), &error);
    ck_assert_int_eq(found_again, 7);
    ck_assert_mem_eq(again[6].position, poses[6].position, sizeof poses[6].position);
    s.seed = 1;
    TEST_OK(tb_grasp_sample(ball, &s, again, &found_again, &error), &error);
    ck_assert(memcmp(again[6].position, poses[6].position, sizeof poses[6].position) != 0);

    /* a block too wide for the hand one way is taken the other ways only */
    s.opening = 0.05;
    s.count = COUNT;
    TEST_OK(tb_grasp_sample(block, &s, poses, &found, &error), &error);
    ck_assert_int_gt(found, 0);
    for (int i = 0; i < found; i++) {
        const tb_vec3 axis = tb_q_rotate(tb_q_load(poses[i].orientation), tb_v3(0, 1, 0));
        ck_assert(fabs(axis.y) < sin(slope) + 1e-6);
    }
    s.opening = 0.01;
    TEST_OK(tb_grasp_sample(block, &s, poses, &found, &error), &error);
    ck_assert_int_eq(found, 0);
    s.approach[1] = 1;
    TEST_STATUS(tb_grasp_sample(block, &s, poses, &found, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_str_eq(error.field, "sampling.approach");
    tb_scene_destroy(ball);
    tb_scene_destroy(block);
}
END_TEST

/* Tangent of the angle between a pose's closing axis and the nearest of these normals. */
static double lean(const tb_grasp_pose *pose, const double (*normals)[3], int count)
{
    const tb_vec3 axis = tb_q_rotate(tb_q_load(pose->orientation), tb_v3(0, 1, 0));
    double cosine = 0;
    for (int i = 0; i < count; i++)
        cosine = fmax(cosine, fabs(tb_v3_dot(axis, tb_v3_load(normals[i]))));
    return sqrt(fmax(0, 1 - cosine * cosine)) / cosine;
}

/* Flat pads turn an object whose faces lean to them: parallel faces are gripped along their normal,
 * faces of a wedge as far as friction allows. */
START_TEST(samples_lean_no_more_than_the_object_demands)
{
    enum { COUNT = 30 };
    static tb_grasp_pose poses[COUNT];
    static const char WEDGE[] = /* 200 mm long; its sides enclose 30 degrees */
        "<mujoco><asset><mesh name='w' vertex='-.1 -.0268 0 -.1 .0268 0 -.1 0 .1 "
        ".1 -.0268 0 .1 .0268 0 .1 0 .1'/></asset><worldbody><body><freejoint/>"
        "<geom type='mesh' mesh='w' mass='.1'/></body></worldbody></mujoco>";
    static const double FACES[][3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    tb_scene *block = mjcf(BLOCK), *wedge = mjcf(WEDGE);
    tb_grasp_sampling s = tb_grasp_sampling_defaults();
    int32_t found = 0;
    s.count = COUNT;
    s.opening = 0.1;
    TEST_OK(tb_grasp_sample(block, &s, poses, &found, &error), &error);
    ck_assert_int_eq(found, COUNT);
    for (int i = 0; i < COUNT; i++) ck_assert(lean(&poses[i], FACES, 3) < 0.1 * s.friction + 1e-9);
    /* a line across a wedge leans to one of its sides by half the angle at least */
    TEST_OK(tb_grasp_sample(wedge, &s, poses, &found, &error), &error);
    ck_assert_int_gt(found, 0);
    const double half = atan2(0.0268, 0.1);
    const double sides[][3] = {{0, cos(half), sin(half)}, {0, cos(half), -sin(half)}};
    for (int i = 0; i < found; i++) {
        const double further = fmax(lean(&poses[i], sides, 1), lean(&poses[i], sides + 1, 1));
        ck_assert_msg(further > tan(half) - 1e-6 && further < 0.75 * s.friction, "leans %g",
                      further);
    }
    s.friction = 0.9 * tan(half);
    TEST_OK(tb_grasp_sample(wedge, &s, poses, &found, &error), &error);
    ck_assert_int_eq(found, 0);
    tb_scene_destroy(block);
    tb_scene_destroy(wedge);
}
END_TEST

/* Poses need a frame of the object, and the parent chain must end. */
START_TEST(an_object_of_two_bodies_on_the_world_is_not_sampled)
{
    tb_grasp_pose pose;
    int32_t found = -1;
    const tb_grasp_sampling s = tb_grasp_sampling_defaults();
    tb_scene *two = mjcf("<mujoco><worldbody><body><freejoint/><geom size='0.02'/></body>"
                         "<body pos='1 0 0'><freejoint/><geom size='0.02'/>"
                         "<body pos='0 0 0.1'><geom size='0.02'/></body></body>"
                         "</worldbody></mujoco>");
    tb_scene *none = mjcf("<mujoco><worldbody><geom size='0.02'/></worldbody></mujoco>");
    TEST_STATUS(tb_grasp_sample(two, &s, &pose, &found, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_str_eq(error.field, "object");
    ck_assert_ptr_nonnull(strstr(error.message, "2 bodies on the world, not one"));
    ck_assert_int_eq(found, 0);
    TEST_STATUS(tb_grasp_sample(none, &s, &pose, &found, &error), TB_INVALID_ARGUMENT, &error);
    ck_assert_ptr_nonnull(strstr(error.message, "0 bodies on the world, not one"));
    tb_scene_destroy(two);
    tb_scene_destroy(none);
}
END_TEST

TEST_MAIN(the_base_is_carried_and_its_own_joints_are_left_out, the_hands_sensors_are_kept,
          masses_are_those_of_the_files, objects_that_move_before_the_fingers_close_are_warned_of,
          a_hand_fixed_to_its_world_is_carried_whole, three_fingers_with_servos_hold_a_ball,
          a_variant_is_the_model_compiled_anew, free_fingers_stay_behind_when_the_hand_is_shaken,
          the_carrier_follows_its_path_exactly, requests_that_make_no_sense_are_refused_by_name,
          samples_are_antipodal_and_repeatable, samples_lean_no_more_than_the_object_demands,
          an_object_of_two_bodies_on_the_world_is_not_sampled)
