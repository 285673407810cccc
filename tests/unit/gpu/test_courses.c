/* Courses: one call gives the bytes of a loop that applies inputs and steps a world, on the
 * processor and on a card (a real one if there is one, else the played one). The recorded outputs
 * equal those read between the steps. */
#include "card_util.h"

enum { STEPS = 24, ROOM = 64 };

static tb_error error;

/* A hand of two sliding fingers and a hinged one on a body that is carried, beside it another such
 * body, and between the fingers a box on the floor. */
static tb_model *carried_hand(void)
{
    tb_scene *scene = floor_scene();
    const tb_handle none = {0};
    tb_body_def body = tb_body_defaults();
    tb_handle hand, told;
    body.kinematic = true;
    body.name = "told";
    body.position[0] = 1;
    TEST_OK(tb_scene_add_body(scene, &body, &told, &error), &error);
    add_shape(scene, told, TB_SHAPE_SPHERE, 0.05, 0, 0);
    body.name = "hand";
    body.position[0] = 0;
    TEST_OK(tb_scene_add_body(scene, &body, &hand, &error), &error);
    for (int i = 0; i < 3; i++) {
        const tb_handle finger = add_body(scene, hand, (const char *[]){"a", "b", "c"}[i]);
        tb_joint_def joint = tb_joint_defaults();
        tb_shape_def shape = tb_shape_defaults();
        tb_actuator_def actuator = tb_actuator_defaults();
        joint.body = shape.body = finger;
        joint.type = i < 2 ? TB_JOINT_SLIDE : TB_JOINT_HINGE;
        joint.axis[0] = i < 2, joint.axis[2] = 0, joint.axis[1] = i == 2;
        TEST_OK(tb_scene_add_joint(scene, &joint, &actuator.target, &error), &error);
        shape.type = TB_SHAPE_BOX;
        shape.size[0] = 0.01, shape.size[1] = 0.02, shape.size[2] = 0.03;
        shape.position[0] = i < 2 ? 0.075 * (2 * i - 1) : 0.2;
        TEST_OK(tb_scene_add_shape(scene, &shape, NULL, &error), &error);
        TEST_OK(tb_scene_add_actuator(scene, &actuator, NULL, &error), &error);
    }
    place(scene, TB_SHAPE_BOX, (const double[]){0, 0, 0.0399}, (const double[]){0.05, 0.03, 0.04},
          none);
    return finish(scene);
}

/* ---- a course and its outputs, step by step ---- */

typedef struct rows {
    tb_course course;
    double kinematic[ROOM * 2 * 13], accelerations[ROOM * 2 * 6], controls[ROOM * 3];
    double q[ROOM * 10], moved[ROOM * 2 * 13];
    tb_touch touches[ROOM * 3];
    tb_certificate certificates[ROOM];
} rows;

static tb_watch watch_of(const tb_model *m, const char *a, const char *b)
{
    const int32_t i = a ? tb_model_find(m, TB_HANDLE_BODY, a) : 0;
    const int32_t k = b ? tb_model_find(m, TB_HANDLE_BODY, b) : m->number_of_bodies - 1;
    return (tb_watch){i, i + 1, k, k + 1};
}

/* The hand is lifted and turned in jerks; its fingers close. The other body rests. */
static void lay_out(rows *r, const tb_model *m, int32_t steps, double dt)
{
    memset(r, 0, sizeof *r);
    double velocity[6] = {0};
    double height = 0.04, turn = 0;
    for (int32_t i = 0; i < steps; i++) {
        double *k = r->kinematic + 26 * i, *a = r->accelerations + 12 * i;
        const double last[6] = {0, 0, velocity[2], 0, 0, velocity[5]};
        velocity[2] = i < 8 ? 0 : 0.1 * sin(0.4 * (i - 8));
        velocity[5] = i < 10 ? 0 : 0.3 * sin(0.3 * (i - 10));
        k[0] = 1, k[2] = 0.3, k[3] = 2; /* not yet a unit quaternion */
        k[13 + 2] = height;
        k[13 + 3] = cos(turn / 2), k[13 + 6] = 1.5 * sin(turn / 2);
        k[13 + 9] = velocity[2], k[13 + 12] = velocity[5];
        for (int n = 0; n < 6; n++) a[6 + n] = (velocity[n] - last[n]) / dt;
        height += velocity[2] * dt;
        turn += velocity[5] * dt;
        r->controls[3 * i] = fmin(4, 0.5 * i);
        r->controls[3 * i + 1] = -fmin(4, 0.5 * i);
        r->controls[3 * i + 2] = 0.01 * i;
    }
    r->course = (tb_course){.steps = steps,
                            .kinematic = r->kinematic,
                            .accelerations = r->accelerations,
                            .controls = r->controls,
                            .q = r->q,
                            .moved = r->moved,
                            .touches = r->touches,
                            .certificates = r->certificates,
                            .number_of_watches = 3};
    r->course.watches[0] = watch_of(m, "a", NULL);
    r->course.watches[1] = watch_of(m, NULL, NULL);
    r->course.watches[2] = watch_of(m, "a", "b");
}

/* Wrenches on the fingers that replace the hand's acceleration, in the hand's frame. */
static void carry_fingers(tb_state *state, const double *hand, const double *a)
{
    const tb_model *m = tb_state_model(state);
    const tb_vec3 linear = tb_v3_load(a), turning = tb_v3_load(a + 3);
    for (int i = 0; i < 3; i++) {
        const int32_t b = tb_model_find(m, TB_HANDLE_BODY, (const char *[]){"a", "b", "c"}[i]);
        double wrench[6] = {0};
        tb_body_motion at;
        TEST_OK(tb_state_body_motion(state, b, &at), NULL);
        const tb_vec3 arm = tb_v3_sub(tb_v3_load(at.com), tb_v3_load(hand));
        const tb_vec3 felt = tb_v3_add(linear, tb_v3_cross(turning, arm));
        const tb_quaternion q = tb_q_load(at.orientation);
        const tb_mat33 inertia = tb_m33_symmetric(m->bodies[b].inertia);
        const tb_vec3 own = tb_m33_mul_v3(&inertia, tb_q_rotate(tb_q_conjugate(q), turning));
        if (tb_v3_length2(linear) + tb_v3_length2(turning) > 0) {
            tb_v3_store(wrench, tb_v3_scale(felt, -m->bodies[b].mass));
            tb_v3_store(wrench + 3, tb_v3_negate(tb_q_rotate(q, own)));
        }
        TEST_OK(tb_state_set_body_wrench(state, b, wrench, &error), &error);
    }
}

static void tell(tb_state *state, const rows *r, int32_t i)
{
    const tb_model *m = tb_state_model(state);
    for (int k = 0; k < 2; k++) {
        const double *n = r->kinematic + 26 * i + 13 * k;
        const int32_t body = tb_model_find(m, TB_HANDLE_BODY, k == 0 ? "told" : "hand");
        TEST_OK(tb_state_set_kinematic(state, body, n, n + 3, n + 7, n + 10, &error), &error);
    }
    TEST_OK(tb_state_set_controls(state, r->controls + 3 * i, 3, &error), &error);
    carry_fingers(state, r->kinematic + 26 * i + 13, r->accelerations + 12 * i + 6);
}

static tb_touch look(const tb_state *state, const tb_watch *w)
{
    const tb_model *m = tb_state_model(state);
    tb_touch touch = {.gap = INFINITY, .margin = 1, .nearest = {-1, -1}, .weakest = {-1, -1}};
    for (int pass = 0; pass < 2; pass++)
        for (int32_t i = 0; i < tb_state_number_of_contacts(state); i++) {
            tb_contact_info c;
            TEST_OK(tb_state_contact(state, i, &c), NULL);
            const int32_t a = m->shapes[c.shape_a].body, b = m->shapes[c.shape_b].body;
            if (!(a == w->first_a && b == w->first_b) && !(b == w->first_a && a == w->first_b))
                continue;
            if (pass == 0 && c.gap < touch.gap) {
                touch.gap = c.gap;
                touch.nearest[0] = c.shape_a;
                touch.nearest[1] = c.shape_b;
                memcpy(touch.nearest_position, c.position, sizeof c.position);
            }
            if (pass == 0) touch.impulse = fmax(touch.impulse, c.impulse[0]);
            if (pass == 0 || !(c.impulse[0] > 0) || c.impulse[0] < 0.1 * touch.impulse) continue;
            const double limit =
                tb_model_pair_surface(m, c.shape_a, c.shape_b).friction * c.impulse[0];
            const double used = sqrt(c.impulse[1] * c.impulse[1] + c.impulse[2] * c.impulse[2]);
            const double margin = limit > used ? 1 - used / limit : 0;
            if (touch.weakest[0] >= 0 && margin >= touch.margin) continue;
            touch.margin = margin;
            touch.weakest[0] = c.shape_a;
            touch.weakest[1] = c.shape_b;
            memcpy(touch.weakest_position, c.position, sizeof c.position);
        }
    return touch;
}

/* Row `i` of a course's outputs, against a state after the same steps. */
static void check_row(const rows *r, int32_t i, const tb_state *state, tb_state *shown,
                      const tb_certificate *certificate)
{
    ck_assert_mem_eq(r->q + 10 * i, tb_state_q(state), 10 * sizeof(double));
    ck_assert_mem_eq(r->moved + 26 * i, state->kinematic, 26 * sizeof(double));
    ck_assert_mem_eq(&r->certificates[i], certificate, sizeof *certificate);
    for (int w = 0; w < 3; w++) {
        const tb_touch touch = look(state, &r->course.watches[w]);
        ck_assert_mem_eq(&r->touches[3 * i + w], &touch, sizeof touch);
    }
    tb_course_show(&r->course, i, shown);
    tb_body_motion there, here;
    const int32_t c = tb_model_find(tb_state_model(state), TB_HANDLE_BODY, "c");
    TEST_OK(tb_state_body_motion(state, c, &there), NULL);
    TEST_OK(tb_state_body_motion(shown, c, &here), NULL);
    ck_assert_mem_eq(there.com, here.com, sizeof here.com);
}

/* Some worlds by courses of different lengths in one call, each against its device copy. */
static void compare(tb_backend_choice backend, tb_precision precision)
{
    enum { WORLDS = 3 };
    tb_model *model = carried_hand();
    tb_stepper *courses = stepper_on(backend, precision), *steps = stepper_on(backend, precision);
    static rows all[WORLDS];
    tb_course given[WORLDS];
    tb_state *states[WORLDS], *shown = state_of(model);
    tb_certificate merged[WORLDS];
    for (int w = 0; w < WORLDS; w++) {
        states[w] = state_of(model);
        lay_out(&all[w], model, STEPS + 3 * w, model->dt);
        given[w] = all[w].course;
    }
    TEST_OK(tb_step_courses(courses, states, given, WORLDS, merged, &error), &error);
    double least = INFINITY, most = 0;
    for (int w = 0; w < WORLDS; w++) {
        tb_state *state = state_of(model);
        tb_certificate sum = {0};
        for (int32_t i = 0; i < all[w].course.steps; i++) {
            tb_certificate certificate;
            tell(state, &all[w], i);
            TEST_OK(tb_step(steps, state, 1, &certificate, &error), &error);
            check_row(&all[w], i, state, shown, &certificate);
            tb_certificate_merge(&sum, &certificate);
            least = fmin(least, all[w].touches[3 * i].gap);
            most = fmax(most, all[w].touches[3 * i].impulse);
        }
        ck_assert_uint_eq(tb_state_hash(states[w]), tb_state_hash(state));
        ck_assert_mem_eq(tb_state_certificate(states[w]), tb_state_certificate(state),
                         sizeof(tb_certificate));
        ck_assert_mem_eq(&merged[w], &sum, sizeof sum);
        /* the last input stays, and single numbers of it can be set */
        for (int i = 0; i < 2; i++) {
            tb_state *s = i == 0 ? states[w] : state;
            TEST_OK(tb_state_set_control(s, 1, -1, &error), &error);
            TEST_OK(tb_state_set_body_wrench(s, 5, (double[6]){0, 0, 0.1}, &error), &error);
            TEST_OK(tb_step(steps, s, 2, NULL, &error), &error);
            ck_assert(tb_state_controls(s)[0] == 4 && tb_state_controls(s)[1] == -1);
        }
        ck_assert_uint_eq(tb_state_hash(states[w]), tb_state_hash(state));
        tb_state_destroy(state);
        tb_state_destroy(states[w]);
    }
    ck_assert(most > 0 && least < 1e-3); /* or nothing was shown */
    tb_state_destroy(shown);
    tb_stepper_destroy(steps);
    tb_stepper_destroy(courses);
    tb_model_destroy(model);
}

START_TEST(a_course_is_telling_and_stepping)
{
    compare(TB_BACKEND_CPU, TB_DOUBLE);
    compare(TB_BACKEND_CPU, TB_FLOAT);
}
END_TEST

START_TEST(a_course_on_a_card_is_telling_and_stepping)
{
    /* double on a real card rounds as the processor does, but for its own functions */
    if (!find_card()) return;
    compare(TB_BACKEND_GPU, TB_DOUBLE);
}
END_TEST

/* ---- how steps are dealt out ---- */

/* The same world by courses of `piece` steps each. */
static uint64_t played(const tb_model *model, tb_precision precision, int32_t piece, double *q)
{
    static rows r;
    tb_step_options options = tb_step_defaults();
    tb_stepper *stepper = NULL;
    options.backend = TB_BACKEND_GPU;
    options.precision = precision;
    options.resident = true;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    tb_state *state = state_of(model);
    lay_out(&r, model, STEPS, model->dt);
    for (int32_t i = 0; i < STEPS; i += piece) {
        tb_course c = r.course;
        c.steps = STEPS - i < piece ? STEPS - i : piece;
        c.kinematic += 26 * i, c.accelerations += 12 * i, c.controls += 3 * i;
        c.q += 10 * i, c.moved = NULL, c.touches = NULL, c.certificates += i;
        TEST_OK(tb_step_courses(stepper, &state, &c, 1, NULL, &error), &error);
    }
    memcpy(q, r.q, STEPS * 10 * sizeof *q);
    const uint64_t hash = tb_state_hash(state);
    tb_state_destroy(state);
    tb_stepper_destroy(stepper);
    return hash;
}

START_TEST(how_steps_are_dealt_out_to_courses_cannot_be_seen)
{
    double once[STEPS * 10], by_five[STEPS * 10], one_by_one[STEPS * 10];
    find_card();
    tb_model *model = carried_hand();
    for (int p = 0; p < 2; p++) {
        const tb_precision precision = p == 0 ? TB_DOUBLE : TB_FLOAT;
        const uint64_t hash = played(model, precision, STEPS, once);
        ck_assert_uint_eq(played(model, precision, 5, by_five), hash);
        ck_assert_uint_eq(played(model, precision, 1, one_by_one), hash);
        ck_assert_mem_eq(once, by_five, sizeof once);
        ck_assert_mem_eq(once, one_by_one, sizeof once);
    }
    tb_model_destroy(model);
}
END_TEST

/* ---- failures ---- */

static void refuse(tb_stepper *stepper, tb_state *state, const rows *r, const char *why)
{
    const uint64_t before = tb_state_hash(state);
    memset(&error, 0, sizeof error);
    TEST_STATUS(tb_step_courses(stepper, &state, &r->course, 1, NULL, &error), TB_INVALID_ARGUMENT,
                &error);
    ck_assert_str_eq(error.field, "courses");
    ck_assert_msg(strstr(error.message, why) != NULL, "%s", error.message);
    ck_assert_uint_eq(tb_state_hash(state), before);
}

START_TEST(courses_that_make_no_sense_are_refused)
{
    static rows r;
    tb_model *model = carried_hand();
    tb_state *state = state_of(model);
    tb_stepper *stepper = stepper_on(TB_BACKEND_CPU, TB_DOUBLE);
    lay_out(&r, model, STEPS, model->dt);
    r.kinematic[26 * 5 + 1] = NAN, refuse(stepper, state, &r, "kinematic");
    lay_out(&r, model, STEPS, model->dt);
    memset(r.kinematic + 26 * 3 + 3, 0, 4 * sizeof(double));
    refuse(stepper, state, &r, "orientations");
    lay_out(&r, model, STEPS, model->dt);
    r.accelerations[7] = INFINITY, refuse(stepper, state, &r, "accelerations");
    lay_out(&r, model, STEPS, model->dt);
    r.controls[3 * STEPS - 1] = NAN, refuse(stepper, state, &r, "controls");
    lay_out(&r, model, STEPS, model->dt);
    r.course.number_of_watches = TB_COURSE_WATCHES + 1, refuse(stepper, state, &r, "watches");
    lay_out(&r, model, STEPS, model->dt);
    r.course.steps = -1, refuse(stepper, state, &r, "steps");
    TEST_STATUS(tb_step_courses(stepper, &state, NULL, 1, NULL, &error), TB_INVALID_ARGUMENT,
                &error);
    TEST_OK(tb_step_courses(stepper, NULL, NULL, 0, NULL, &error), &error);
    tb_state_destroy(state);
    tb_stepper_destroy(stepper);
    tb_model_destroy(model);
}
END_TEST

static void diverge(tb_backend_choice backend)
{
    static rows r;
    tb_model *model = carried_hand();
    tb_state *state = state_of(model);
    tb_stepper *stepper = stepper_on(backend, TB_DOUBLE);
    const tb_certificate untouched = {.iterations = 77};
    lay_out(&r, model, STEPS, model->dt);
    for (int i = 0; i < STEPS; i++) r.certificates[i] = untouched;
    r.accelerations[12 * 9 + 6] = 1e308; /* its product with a mass is still a number */
    r.accelerations[12 * 9 + 11] = 1e308;
    tb_certificate merged;
    TEST_STATUS(tb_step_courses(stepper, &state, &r.course, 1, &merged, &error), TB_DIVERGED,
                &error);
    ck_assert_int_eq(merged.status, TB_DIVERGED);
    ck_assert_int_eq(tb_state_steps(state), 9);
    ck_assert_int_ne(r.certificates[8].status, TB_DIVERGED);
    ck_assert_int_eq(r.certificates[9].status, TB_DIVERGED);
    ck_assert_mem_eq(&r.certificates[10], &untouched, sizeof untouched);
    ck_assert(r.q[8 * 10 + 8] != 0 && r.touches[3 * 9].gap == 0);
    /* and again: frozen from the first step on */
    TEST_STATUS(tb_step_courses(stepper, &state, &r.course, 1, &merged, &error), TB_DIVERGED,
                &error);
    ck_assert_int_eq(r.certificates[0].status, TB_DIVERGED);
    ck_assert_int_eq(tb_state_steps(state), 9);
    tb_state_destroy(state);
    tb_stepper_destroy(stepper);
    tb_model_destroy(model);
}

START_TEST(a_course_ends_where_its_world_diverges)
{
    diverge(TB_BACKEND_CPU);
    find_card();
    diverge(TB_BACKEND_GPU);
}
END_TEST

TEST_MAIN(a_course_is_telling_and_stepping, a_course_on_a_card_is_telling_and_stepping,
          how_steps_are_dealt_out_to_courses_cannot_be_seen, courses_that_make_no_sense_are_refused,
          a_course_ends_where_its_world_diverges)
