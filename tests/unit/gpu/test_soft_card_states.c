/* States with soft and rigid bodies whose soft fields lie on a card, beside the processor: the same bytes.
 * Where there is no card, one that the processor plays runs the kernels. */
#include <fcntl.h>
#include <unistd.h>

#include "grid/card/steps.h"
#include "grid/grid_internal.h"
#include "grid/nodes/sweeps.h"
#include "gpu_qp_util.h"
#include "soft_util.h"

static tb_error error;

/* A pad on a jaw that slides meets a box, a wedge and the wall. */
static const char PAD[] =
    "<soft model=\"pad\">\n"
    "  <option timestep=\"0.001\" gravity=\"5 0.5 -2\" friction=\"0.5\"/>\n"
    "  <grid lower=\"-0.9 -0.9 -0.9\" upper=\"0.9 0.9 0.9\" spacing=\"0.15\"/>\n"
    "  <material name=\"m\" density=\"1000\" young=\"2e4\" poisson=\"0.3\" damping=\"0.01\"/>\n"
    "  <body name=\"pad\" material=\"m\" type=\"box\" size=\"0.15 0.2 0.2\"/>\n"
    "  <clamp body=\"pad\" lower=\"-1 -1 -1\" upper=\"-0.05 1 1\" rigid=\"jaw\"/>\n"
    "  <wall name=\"floor\" type=\"plane\" pos=\"0 0 -0.2\"/>\n"
    "  <rigid file=\"rigid.xml\"/>\n"
    "</soft>\n";

static const char JAW[] =
    "<mujoco><asset><mesh name=\"wedge\" vertex=\"-.3 -.3 -.1 .3 -.3 -.1 0 .3 -.1 0 0 .3\"/>"
    "</asset><worldbody>\n"
    "  <body name=\"jaw\" pos=\"-0.2 0 0\"><joint type=\"slide\" axis=\"1 0 0\"/>\n"
    "    <geom type=\"box\" size=\"0.05 0.2 0.2\" mass=\"20\"/></body>\n"
    "  <body name=\"box\" pos=\"0.22 0 0\"><freejoint/>\n"
    "    <geom type=\"box\" size=\"0.06 0.1 0.1\" mass=\"1\"/></body>\n"
    "  <body name=\"wedge\" pos=\"0.02 0 0.31\"><freejoint/>\n"
    "    <geom type=\"mesh\" mesh=\"wedge\" mass=\"1\"/></body>\n"
    "</worldbody></mujoco>\n";

/* A block between two plates, one of which slides on the floor. */
static const char PLATES[] =
    "<soft model=\"plates\">\n"
    "  <option timestep=\"0.001\" gravity=\"4 1 -8\" friction=\"0.5\"/>\n"
    "  <grid lower=\"-0.9 -0.9 -0.9\" upper=\"0.9 0.9 0.9\" spacing=\"0.15\"/>\n"
    "  <material name=\"m\" density=\"1000\" young=\"3e4\" poisson=\"0.3\" damping=\"0.02\"/>\n"
    "  <body name=\"block\" material=\"m\" type=\"box\" size=\"0.3 0.3 0.16\" "
    "pos=\"0 0 0.13\"/>\n"
    "  <rigid file=\"two.xml\"/>\n"
    "</soft>\n";

static const char TWO[] = "<mujoco><option timestep=\"0.001\" gravity=\"4 1 -8\"/><worldbody>\n"
                          "  <geom type=\"plane\" size=\"2 2 1\" pos=\"0 0 -0.11\"/>\n"
                          "  <body name=\"low\" pos=\"0 0 -0.07\"><freejoint/>\n"
                          "    <geom type=\"box\" size=\"0.4 0.4 0.041\" mass=\"3\"/></body>\n"
                          "  <body name=\"high\" pos=\"0.02 0 0.35\"><freejoint/>\n"
                          "    <geom type=\"box\" size=\"0.2 0.3 0.061\" mass=\"10\"/></body>\n"
                          "</worldbody></mujoco>\n";

static const char BALL[] = "<mujoco><option timestep=\"0.001\"/><worldbody><body pos=\"0 0 1\">"
                           "<freejoint/><geom type=\"sphere\" size=\"0.1\"/></body></worldbody>"
                           "</mujoco>\n";

static char box[512];                 /* see box_of */
static char fine[sizeof PLATES + 16]; /* the plates' scene on smaller cells */

static const char *fine_plates(void)
{
    const char *spacing = strstr(PLATES, "0.15\"");
    snprintf(fine, sizeof fine, "%.*s0.06%s", (int)(spacing - PLATES), PLATES, spacing + 4);
    return fine;
}

static tb_status read_file(void *context, const char *path, unsigned char **bytes, size_t *size,
                           tb_error *cause)
{
    const char *text = strcmp(path, "rigid.xml") == 0    ? JAW
                       : strcmp(path, "ball.xml") == 0   ? BALL
                       : strcmp(path, "two.xml") == 0    ? TWO
                       : strcmp(path, "box.xml") == 0    ? box
                       : strcmp(path, "plates.xml") == 0 ? PLATES
                       : strcmp(path, "fine.xml") == 0   ? fine_plates()
                                                         : PAD;
    (void)context, (void)cause;
    *bytes = (unsigned char *)strdup(text);
    *size = strlen(text);
    return TB_OK;
}

static tb_model *load(const char *name)
{
    const tb_file_source source = {read_file, NULL};
    tb_import_options options = tb_import_defaults();
    tb_model *model = NULL;
    options.files = &source;
    TEST_OK(tb_model_load(name, &options, &model, &error), &error);
    return model;
}

static tb_state *make_state(const tb_model *model)
{
    tb_state *state = NULL;
    TEST_OK(tb_state_create(model, &state, &error), &error);
    return state;
}

static tb_stepper *make_stepper(tb_backend_choice backend)
{
    tb_step_options options = tb_step_defaults();
    tb_stepper *stepper = NULL;
    options.backend = backend;
    options.threads = 1;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    return stepper;
}

/* Fields on the card, programs on the processor: the order of their sums differs. */
static void place_fields(tb_state *state)
{
    tb_soft_world *w = tb_state_soft_world(state);
    TEST_OK(tb_soft_world_place(w, TB_BACKEND_GPU, 0, &error), &error);
    w->scene.options.programs = TB_BACKEND_CPU;
    ck_assert_ptr_nonnull(w->card);
}

START_TEST(rigid_bodies_touch_soft_ones_on_a_card_with_the_processors_bytes)
{
    (void)card_is_played();
    tb_model *model = load("main.xml");
    tb_state *here = make_state(model), *there = make_state(model), *fork = NULL;
    tb_stepper *processor = make_stepper(TB_BACKEND_CPU), *card = make_stepper(TB_BACKEND_GPU);
    const tb_soft_world *w = tb_state_soft_world(there);
    tb_soft_certificate c, d;
    bool hull = false;
    place_fields(there);
    for (int i = 0; i < 2; i++) {
        TEST_OK(tb_step(processor, here, 1, NULL, &error), &error);
        TEST_OK(tb_step(card, there, 1, NULL, &error), &error);
        ck_assert(w->card != NULL && w->card->brought && w->card->stale);
        ck_assert(tb_state_soft_certificate(here, &c) && tb_state_soft_certificate(there, &d));
        ck_assert_mem_eq(&c, &d, offsetof(tb_soft_certificate, projections));
    }
    for (int32_t i = 0; i < w->number_of_contacts; i++)
        hull = hull || (w->contacts[i].b > 0 && w->now[w->contacts[i].b - 1].kind == TB_SOFT_HULL);
    ck_assert_msg(hull, "the wedge does not touch the pad");
    ck_assert_int_ge(c.contacts, 8);
    ck_assert_double_ne(w->rigid[0].before[0], 0);
    ck_assert_uint_eq(tb_state_hash(here), tb_state_hash(there));

    /* a fork goes on elsewhere, and a world comes back from the card */
    TEST_OK(tb_state_fork(there, &fork, &error), &error);
    TEST_OK(tb_step(processor, here, 1, NULL, &error), &error);
    TEST_OK(tb_step(processor, there, 1, NULL, &error), &error);
    ck_assert_ptr_null(w->card);
    TEST_OK(tb_step(card, fork, 1, NULL, &error), &error);
    ck_assert_uint_eq(tb_state_hash(here), tb_state_hash(there));
    ck_assert_uint_eq(tb_state_hash(here), tb_state_hash(fork));
    check_hessians(tb_state_soft_world(fork), 8);
    tb_stepper_destroy(processor);
    tb_stepper_destroy(card);
    tb_state_destroy(here);
    tb_state_destroy(there);
    tb_state_destroy(fork);
    tb_model_destroy(model);
}
END_TEST

/* How many rigid bodies the contacts of the last substep move. */
static int32_t moved_bodies(const tb_soft_world *w)
{
    int32_t moved = 0;
    for (int32_t r = 0; r < w->number_of_rigid; r++) {
        bool touched = false;
        for (int32_t i = 0; i < w->number_of_contacts; i++) {
            const int32_t wall = w->contacts[i].b - w->scene.number_of_bodies;
            touched = touched || (wall >= 0 && w->scene.obstacles[wall].rigid == r + 1);
        }
        moved += touched && w->rigid[r].moves;
    }
    return moved;
}

/* Contacts wholly on the card, beside fields and contacts of the processor whose programs the card solves. */
static void touch_rigid(const char *name, int32_t contacts, int32_t steps)
{
    (void)card_is_played();
    tb_model *model = load(name);
    tb_state *here = make_state(model), *there = make_state(model);
    tb_stepper *processor = make_stepper(TB_BACKEND_CPU), *card = make_stepper(TB_BACKEND_GPU);
    tb_soft_world *v = tb_state_soft_world(here), *w = tb_state_soft_world(there);
    tb_soft_certificate c, d;
    v->scene.options.programs = TB_BACKEND_GPU; /* their order of sums differs on the processor */
    for (int32_t i = 0; i < steps; i++) {
        TEST_OK(tb_step(processor, here, 1, NULL, &error), &error);
        TEST_OK(tb_step(card, there, 1, NULL, &error), &error);
        ck_assert(w->card->contacts_there && w->card->contacts_stale);
        ck_assert(tb_state_soft_certificate(here, &c) && tb_state_soft_certificate(there, &d));
        ck_assert_mem_eq(&c, &d, offsetof(tb_soft_certificate, normal));
        ck_assert_int_eq(c.normal.solves, d.normal.solves);
        ck_assert_int_eq(c.tangential.solves, d.tangential.solves);
        ck_assert_int_eq(c.normal.half_bandwidth, d.normal.half_bandwidth);
        ck_assert_int_eq(c.tangential.half_bandwidth, d.tangential.half_bandwidth);
        ck_assert_mem_eq(&c.cone_error, &d.cone_error, sizeof c.cone_error);
        ck_assert_mem_eq(&c.prediction_error, &d.prediction_error, sizeof c.prediction_error);
        for (int32_t r = 0; r < w->number_of_rigid; r++)
            ck_assert_mem_eq(v->rigid[r].before, w->rigid[r].before, sizeof w->rigid[r].before);
    }
    ck_assert_int_eq(d.normal.fallbacks + d.tangential.fallbacks, 0);
    ck_assert_int_gt(d.tangential.solves, 0);
    ck_assert_int_ge(d.contacts, contacts);
    ck_assert_int_eq(moved_bodies(v), 2);
    ck_assert_uint_eq(tb_state_hash(here), tb_state_hash(there));
    tb_stepper_destroy(processor);
    tb_stepper_destroy(card);
    tb_state_destroy(here);
    tb_state_destroy(there);
    tb_model_destroy(model);
}

/* The wedge and the box touch a pad that the jaw holds. */
START_TEST(a_clamped_pads_contacts_stay_on_the_card_with_the_processors_bytes)
{
    touch_rigid("main.xml", 8, 2);
}
END_TEST

/* Contacts of one colour move one rigid body, in more than one group. */
START_TEST(contacts_between_rigid_bodies_stay_on_the_card_with_the_processors_bytes)
{
    touch_rigid("plates.xml", 24, 3);
}
END_TEST

/* So many that all of a colour are visited at the same time. */
START_TEST(many_contacts_of_rigid_bodies_stay_on_the_card_with_the_processors_bytes)
{
    touch_rigid("fine.xml", TB_SOFT_FEW_CONTACTS + 1, 1);
}
END_TEST

START_TEST(a_batch_has_worlds_with_and_without_soft_bodies)
{
    (void)card_is_played();
    tb_model *soft = load("main.xml"), *ball = load("ball.xml");
    tb_state *alone[] = {make_state(ball), make_state(soft), make_state(ball)};
    tb_state *mixed[] = {make_state(ball), make_state(soft), make_state(ball)};
    tb_stepper *card = make_stepper(TB_BACKEND_GPU);
    tb_certificate certificates[3];
    for (int i = 0; i < 3; i++)
        TEST_OK(tb_step(card, alone[i], 1, &certificates[i], &error), &error);
    TEST_OK(tb_step_batch(card, mixed, 3, 1, certificates, &error), &error);
    ck_assert_ptr_nonnull(tb_state_soft_world(mixed[1])->card);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(certificates[i].step, 1);
        ck_assert_uint_eq(tb_state_hash(alone[i]), tb_state_hash(mixed[i]));
        tb_state_destroy(alone[i]);
        tb_state_destroy(mixed[i]);
    }
    tb_stepper_destroy(card);
    tb_model_destroy(soft);
    tb_model_destroy(ball);
}
END_TEST

/* A box that has `edge` nodes along each axis, with the layers around it. */
static tb_model *box_of(int32_t edge)
{
    const double half = 0.05 * (edge - 1 - 2 * TB_SOFT_LAYERS), far = half + 0.45;
    snprintf(box, sizeof box,
             "<soft model=\"box\"><option timestep=\"0.001\"/>"
             "<grid lower=\"%g %g %g\" upper=\"%g %g %g\" spacing=\"0.1\"/>"
             "<material name=\"m\" density=\"1000\" young=\"1e4\" poisson=\"0.3\"/>"
             "<body name=\"b\" material=\"m\" type=\"box\" size=\"%g %g %g\"/></soft>",
             -far, -far, -far, far, far, far, half, half, half);
    return load("box.xml");
}

START_TEST(auto_takes_a_card_for_many_nodes)
{
    (void)card_is_played();
    const int32_t edge = (int32_t)ceil(cbrt(TB_SOFT_CARD_NODES));
    tb_stepper *any = make_stepper(TB_BACKEND_AUTO), *processor = make_stepper(TB_BACKEND_CPU);
    for (int few = 0; few < 2; few++) {
        tb_model *model = box_of(few ? edge - 2 : edge + 1);
        tb_state *state = make_state(model), *here = make_state(model);
        ck_assert((tb_soft_model_nodes(model) < TB_SOFT_CARD_NODES) == (few == 1));
        TEST_OK(tb_step(any, state, 1, NULL, &error), &error);
        TEST_OK(tb_step(processor, here, 1, NULL, &error), &error);
        ck_assert((tb_state_soft_world(state)->card == NULL) == (few == 1));
        ck_assert_str_eq(tb_stepper_measure(any).backend, few ? "cpu" : "gpu");
        ck_assert_uint_eq(tb_state_hash(state), tb_state_hash(here));
        tb_state_destroy(state);
        tb_state_destroy(here);
        tb_model_destroy(model);
    }
    tb_stepper_destroy(any);
    tb_stepper_destroy(processor);
}
END_TEST

START_TEST(memory_of_soft_worlds_on_a_card_is_counted)
{
    (void)card_is_played();
    tb_model *model = load("main.xml");
    tb_state *states[] = {make_state(model), make_state(model)};
    tb_stepper *card = make_stepper(TB_BACKEND_GPU);
    tb_device_use use;
    const uint64_t empty = tb_stepper_measure(card).device_bytes;
    const uint64_t fields = tb_soft_model_card_bytes(model);
    uint64_t before = empty;
    ck_assert_uint_gt(fields, 100000);
    for (int i = 0; i < 2; i++) {
        TEST_OK(tb_step(card, states[i], 1, NULL, &error), &error);
        const uint64_t now = tb_stepper_measure(card).device_bytes;
        ck_assert_uint_ge(now, before + fields);
        before = now;
        TEST_OK(tb_device_measure(TB_BACKEND_GPU, 0, &use, &error), &error);
        ck_assert_int_eq(use.worlds, i + 1);
        ck_assert_uint_ge(use.memory_bytes, (uint64_t)(i + 1) * fields);
    }
    for (int i = 0; i < 2; i++) tb_state_destroy(states[i]);
    ck_assert_uint_eq(tb_stepper_measure(card).device_bytes, empty);
    TEST_OK(tb_device_measure(TB_BACKEND_GPU, 0, &use, &error), &error);
    ck_assert_int_eq(use.worlds, 0);
    tb_stepper_destroy(card);
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_step_on_a_lost_card_is_aborted)
{
    char lost[] = "/tmp/tribo_soft_card_XXXXXX";
    const int file = mkstemp(lost);
    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(unlink(lost), 0);
    ck_assert_int_eq(setenv("TRIBO_TEST_LOSE", lost, 1), 0);
    if (!card_is_played()) return;
    tb_model *model = load("main.xml");
    tb_state *state = make_state(model);
    tb_stepper *card = make_stepper(TB_BACKEND_GPU);
    tb_certificate certificate;
    TEST_OK(tb_step(card, state, 1, NULL, &error), &error);
    close(open(lost, O_CREAT | O_WRONLY, 0600));
    TEST_STATUS(tb_step(card, state, 1, &certificate, &error), TB_ABORTED, &error);
    ck_assert_int_eq(unlink(lost), 0);
    ck_assert_int_ne(certificate.status, TB_DIVERGED);
    ck_assert_int_eq(tb_state_steps(state), 1);
    tb_stepper_destroy(card);
    tb_state_destroy(state);
    tb_model_destroy(model);
}
END_TEST

TEST_MAIN(rigid_bodies_touch_soft_ones_on_a_card_with_the_processors_bytes,
          a_clamped_pads_contacts_stay_on_the_card_with_the_processors_bytes,
          contacts_between_rigid_bodies_stay_on_the_card_with_the_processors_bytes,
          many_contacts_of_rigid_bodies_stay_on_the_card_with_the_processors_bytes,
          a_batch_has_worlds_with_and_without_soft_bodies, auto_takes_a_card_for_many_nodes,
          memory_of_soft_worlds_on_a_card_is_counted, a_step_on_a_lost_card_is_aborted)
