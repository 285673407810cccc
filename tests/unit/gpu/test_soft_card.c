/* Soft bodies with their fields on a card, beside the processor: the same bytes. Where there is no card, one that
 * the processor plays runs the kernels. TRIBO_TEST_SOFT_STEPS asks for more steps than a played card has
 * time for. */
#include "grid/card/steps.h"
#include "grid/grid_internal.h"
#include "gpu_qp_util.h"
#include "soft_util.h"

static tb_error error;

/* the advection, law and body of a text, and more elements */
#define TEXT(gravity, advection, law, body, more)                                                  \
    "<soft model=\"s\"><option timestep=\"0.002\" gravity=\"" gravity                              \
    "\" friction=\"0.5\" advection=\"" advection "\"/>"                                            \
    "<grid lower=\"-0.9 -0.75 -0.75\" upper=\"0.9 0.75 0.75\" spacing=\"0.15\"/>"                  \
    "<material name=\"m\" law=\"" law "\" density=\"1000\" young=\"1e4\" poisson=\"0.3\" "         \
    "damping=\"0.02\"/><body name=\"b\" material=\"m\" " body "/>" more "</soft>"

static const char CYLINDER[] =
    TEXT("0 0 -9.81", "first", "corotated",
         "type=\"cylinder\" size=\"0.14 0.13\" velocity=\"0.3 0 0.1\" angular=\"3 0.2 0\"", "");
static const char CLAMPED[] =
    TEXT("0 0 -9.81", "second", "neo-hookean", "type=\"box\" size=\"0.29 0.12 0.14\"",
         "<clamp body=\"b\" lower=\"-1 -1 -1\" upper=\"-0.05 1 1\" velocity=\"0.1 0 0\"/>");
static const char HELD[] =
    TEXT("0 0 -9.81", "first", "st-venant-kirchhoff", "type=\"box\" size=\"0.29 0.12 0.14\"",
         "<clamp body=\"b\" lower=\"-1 -1 -1\" upper=\"-0.15 1 1\"/>");
static const char TOUCHING[] =
    "<soft model=\"s\"><option timestep=\"0.0005\" gravity=\"5.6 0 -8\" friction=\"0.5\"/>"
    "<grid lower=\"-0.9 -0.9 -0.6\" upper=\"0.9 0.9 0.9\" spacing=\"0.15\"/>"
    "<material name=\"m\" density=\"1000\" young=\"1e5\" poisson=\"0.3\" damping=\"0.02\"/>"
    "<body name=\"b\" material=\"m\" type=\"box\" size=\"0.3 0.3 0.15\" pos=\"0 0 0.15\"/>"
    "<wall name=\"floor\" type=\"plane\"/></soft>";

static const char MESH[] =
    "<soft model=\"s\"><option timestep=\"0.002\" gravity=\"0 0 -9.81\"/>"
    "<grid lower=\"-0.9 -0.9 -0.9\" upper=\"0.9 0.9 0.9\" spacing=\"0.15\"/>"
    "<material name=\"m\" density=\"1000\" young=\"1e4\" poisson=\"0.3\"/>"
    "<mesh name=\"t\" vertex=\"-.28 -.28 -.28 .28 -.28 -.28 -.28 .28 -.28 .28 .28 -.28 "
    "-.28 -.28 .28 .28 -.28 .28 -.28 .28 .28 .28 .28 .28\" "
    "face=\"0 2 1 1 2 3 4 5 6 5 7 6 0 1 4 1 5 4 2 6 3 3 6 7 0 4 2 2 4 6 1 3 5 3 7 5\"/>"
    "<body name=\"b\" material=\"m\" type=\"mesh\" mesh=\"t\" "
    "velocity=\"0.3 0 0\" angular=\"0 2 1\"/></soft>";

/* Cells with contacts of several pairs, moving walls and held nodes: the block sits in a corner and under another
 * one that a clamp pushes down; it overlaps the floor so far that the overlap is pushed apart more slowly. */
static const char CROWD[] =
    "<soft model=\"s\"><option timestep=\"0.001\" gravity=\"4 1 -8\" friction=\"0.4\"/>"
    "<grid lower=\"-0.9 -0.9 -0.75\" upper=\"0.9 0.9 1.2\" spacing=\"0.15\"/>"
    "<material name=\"m\" density=\"1000\" young=\"1e5\" poisson=\"0.3\" damping=\"0.02\"/>"
    "<body name=\"low\" material=\"m\" type=\"box\" size=\"0.3 0.3 0.16\" pos=\"0 0 0.13\"/>"
    "<body name=\"high\" material=\"m\" type=\"box\" size=\"0.16 0.2 0.12\" pos=\"0.05 0 0.42\" "
    "velocity=\"0 0 -0.5\"/>"
    "<clamp body=\"high\" lower=\"-1 -1 0.5\" upper=\"1 1 2\" velocity=\"0.1 0 -0.2\"/>"
    "<wall name=\"floor\" type=\"plane\"/>"
    "<wall name=\"side\" type=\"box\" size=\"0.2 0.5 0.5\" pos=\"0.49 0 0.2\" velocity=\"-0.1 0 "
    "0.05\"/>"
    "</soft>";

static int32_t steps_of(int32_t played)
{
    const char *asked = getenv("TRIBO_TEST_SOFT_STEPS");
    return asked != NULL ? atoi(asked) : played;
}

static tb_soft_world *load(const char *text, tb_backend_choice backend)
{
    const tb_soft_load_options options = {.threads = 1, .backend = backend};
    tb_soft_world *w;
    TEST_OK(tb_soft_world_load(text, strlen(text), "text", &options, &w, &error), &error);
    ck_assert((w->card != NULL) == (backend == TB_BACKEND_GPU));
    w->scene.options.programs = TB_BACKEND_CPU; /* their order of sums differs */
    return w;
}

static void same_bytes(tb_soft_world *a, tb_soft_world *b)
{
    unsigned char *x, *y;
    size_t n, m;
    TEST_OK(tb_soft_world_save(a, &x, &n, &error), &error);
    TEST_OK(tb_soft_world_save(b, &y, &m, &error), &error);
    ck_assert_uint_eq(n, m);
    ck_assert(memcmp(x, y, n) == 0);
    tb_bytes_destroy(x);
    tb_bytes_destroy(y);
}

static void step_both(const char *text, int32_t steps, int32_t contacts)
{
    (void)card_is_played();
    tb_soft_world *here = load(text, TB_BACKEND_CPU), *there = load(text, TB_BACKEND_GPU);
    tb_soft_certificate c, d;
    TEST_OK(tb_soft_step(here, steps, &c, &error), &error);
    TEST_OK(tb_soft_step(there, steps, &d, &error), &error);
    ck_assert_int_ge(c.contacts, contacts);
    ck_assert_int_eq(c.contacts, d.contacts);
    ck_assert_mem_eq(&c, &d, offsetof(tb_soft_certificate, projections));
    same_bytes(here, there);
    tb_soft_world_destroy(here);
    tb_soft_world_destroy(there);
}

START_TEST(a_cylinder_in_flight_has_the_processors_bytes)
{
    step_both(CYLINDER, steps_of(1), 0);
}
END_TEST

START_TEST(moving_clamps_have_the_processors_bytes)
{
    step_both(CLAMPED, steps_of(1), 0);
}
END_TEST

START_TEST(bodies_in_contact_have_the_processors_bytes)
{
    step_both(TOUCHING, steps_of(1), 8);
}
END_TEST

START_TEST(a_mesh_has_the_processors_bytes)
{
    step_both(MESH, steps_of(1), 0);
}
END_TEST

START_TEST(fields_stay_on_the_card_until_they_are_wanted)
{
    (void)card_is_played();
    tb_soft_world *here = load(HELD, TB_BACKEND_CPU), *there = load(HELD, TB_BACKEND_GPU);
    tb_soft_world *fork = load(HELD, TB_BACKEND_GPU);
    unsigned char *state;
    size_t size;
    double energy[2][3];
    TEST_OK(tb_soft_step(here, 1, NULL, &error), &error);
    TEST_OK(tb_soft_step(there, 1, NULL, &error), &error);
    ck_assert(there->card->brought && there->card->stale);
    /* a copy goes on elsewhere, and what is on that card gives way */
    TEST_OK(tb_soft_world_save(there, &state, &size, &error), &error);
    ck_assert(there->card->brought && !there->card->stale);
    TEST_OK(tb_soft_world_restore(fork, state, size, &error), &error);
    ck_assert(!fork->card->brought);
    TEST_OK(tb_soft_step(here, 1, NULL, &error), &error);
    TEST_OK(tb_soft_step(there, 1, NULL, &error), &error);
    TEST_OK(tb_soft_step(fork, 1, NULL, &error), &error);
    tb_soft_world_measure(here, 0, energy[0], NULL, NULL);
    tb_soft_world_measure(there, 0, energy[1], NULL, NULL);
    ck_assert_mem_eq(energy[0], energy[1], sizeof energy[0]);
    same_bytes(here, there);
    same_bytes(here, fork);
    tb_bytes_destroy(state);
    tb_soft_world_destroy(here);
    tb_soft_world_destroy(there);
    tb_soft_world_destroy(fork);
}
END_TEST

/* Steps with programs on a device that solves none of them; `taken`: it opens them. */
static void step_with_unsolved_programs(bool taken)
{
    const char *fork = getenv("CK_FORK");
    if (fork != NULL && strcmp(fork, "no") == 0) {
        printf("SKIPPED programs that a card leaves: a process without forks has loaded the other "
               "plug-in\n");
        return;
    }
    char path[1024];
    tb_soft_certificate c, d;
    snprintf(path, sizeof path, "%s/tests/plugin/failing.so", build_folder());
    ck_assert_int_eq(setenv("TRIBO_GPU_PLUGIN", path, 1), 0);
    if (taken) ck_assert_int_eq(setenv("TRIBO_TEST_PROGRAMS", "unsolved", 1), 0);
    const tb_soft_load_options options = {.threads = 1, .backend = TB_BACKEND_GPU};
    tb_soft_world *here = load(TOUCHING, TB_BACKEND_CPU), *there;
    TEST_OK(tb_soft_world_load(TOUCHING, strlen(TOUCHING), "text", &options, &there, &error),
            &error);
    TEST_OK(tb_soft_step(here, 2, &c, &error), &error);
    TEST_OK(tb_soft_step(there, 2, &d, &error), &error);
    ck_assert_int_eq(d.status, TB_OK);
    ck_assert_int_eq(c.normal.fallbacks + c.tangential.fallbacks, 0);
    ck_assert_int_ge(d.normal.fallbacks, 2);
    ck_assert_int_ge(d.tangential.fallbacks, 2);
    ck_assert_double_le(d.normal.residual, 1e-10);
    same_bytes(here, there);
    tb_soft_world_destroy(here);
    tb_soft_world_destroy(there);
}

START_TEST(the_processor_solves_programs_that_a_card_does_not_take)
{
    step_with_unsolved_programs(false);
}
END_TEST

START_TEST(the_processor_solves_programs_that_do_not_converge_on_a_card)
{
    step_with_unsolved_programs(true);
}
END_TEST

START_TEST(a_step_on_the_card_is_undone)
{
    (void)card_is_played();
    tb_soft_world *here = load(CLAMPED, TB_BACKEND_CPU), *there = load(CLAMPED, TB_BACKEND_GPU);
    tb_soft_certificate c = {.smallest_volume = 1e300};
    tb_bytes kept = {0};
    TEST_OK(tb_soft_step(here, 1, NULL, &error), &error);
    TEST_OK(tb_soft_step(there, 1, NULL, &error), &error);
    TEST_OK(tb_soft_world_begin_step(there, &kept, &error), &error);
    ck_assert(there->card->stale); /* the copy is on the card */
    TEST_OK(tb_soft_advance(there, 0.002, &c, &error), &error);
    TEST_OK(tb_soft_world_undo_step(there, &kept, &error), &error);
    same_bytes(here, there);
    /* and it goes on */
    TEST_OK(tb_soft_step(here, 1, NULL, &error), &error);
    TEST_OK(tb_soft_step(there, 1, NULL, &error), &error);
    same_bytes(here, there);
    tb_bytes_free(&kept);
    tb_soft_world_destroy(here);
    tb_soft_world_destroy(there);
}
END_TEST

START_TEST(programs_are_made_and_solved_on_the_card)
{
    const tb_soft_load_options options = {.threads = 1, .backend = TB_BACKEND_GPU};
    (void)card_is_played();
    tb_soft_world *here = load(TOUCHING, TB_BACKEND_CPU), *there;
    tb_soft_certificate c, d;
    double centre[2][3];
    TEST_OK(tb_soft_world_load(TOUCHING, strlen(TOUCHING), "text", &options, &there, &error),
            &error);
    TEST_OK(tb_soft_step(here, 1, &c, &error), &error);
    TEST_OK(tb_soft_step(there, 1, &d, &error), &error);
    ck_assert_int_eq(d.status, TB_OK);
    ck_assert_int_eq(d.normal.fallbacks + d.tangential.fallbacks, 0);
    ck_assert_double_le(fmax(d.normal.residual, d.tangential.residual), 1e-10);
    ck_assert_int_eq(c.tangential.variables, d.tangential.variables);
    ck_assert_int_gt(d.tangential.variables, 0);
    TEST_NEAR(d.kinetic, c.kinetic, 1e-10 * c.kinetic);
    TEST_NEAR(d.contact_work, c.contact_work, 1e-8 * fabs(c.contact_work));
    tb_soft_world_measure(here, 0, NULL, NULL, centre[0]);
    tb_soft_world_measure(there, 0, NULL, NULL, centre[1]);
    for (int a = 0; a < 3; a++) TEST_NEAR(centre[0][a], centre[1][a], 1e-12);
    check_hessians(there, 8);

    /* the next step has the memory of this one's programs, and the bytes of a world that has new memory */
    unsigned char *state;
    size_t size;
    ck_assert(there->card->rooms[0] != NULL && there->card->rooms[1] != NULL);
    TEST_OK(tb_soft_world_save(there, &state, &size, &error), &error);
    tb_soft_world_destroy(here);
    TEST_OK(tb_soft_world_load(TOUCHING, strlen(TOUCHING), "text", &options, &here, &error),
            &error);
    TEST_OK(tb_soft_world_restore(here, state, size, &error), &error);
    ck_assert(here->card->rooms[0] == NULL && here->card->rooms[1] == NULL);
    TEST_OK(tb_soft_step(here, 1, &c, &error), &error);
    TEST_OK(tb_soft_step(there, 1, &d, &error), &error);
    ck_assert_int_gt(d.normal.solves, 0);
    same_bytes(here, there);
    tb_bytes_destroy(state);
    tb_soft_world_destroy(here);
    tb_soft_world_destroy(there);
}
END_TEST

/* Contacts and programs wholly on the card, beside fields and contacts of the processor whose programs a card
 * solves: the same bytes, also from first sets that need more iterations, and after the way to the host
 * and back. */
static void solve_on_card(const char *text, tb_soft_first_sets sets, tb_soft_contact_method method,
                          int32_t steps, int32_t contacts)
{
    const tb_soft_load_options options = {.threads = 1,
                                          .choose_contact = true,
                                          .contact = method,
                                          .backend = TB_BACKEND_GPU,
                                          .first_sets = sets};
    (void)card_is_played();
    tb_soft_world *here = load(text, TB_BACKEND_CPU), *there;
    tb_soft_certificate c, d;
    here->scene.options.programs = TB_BACKEND_GPU;
    here->scene.options.first_sets = sets;
    here->scene.options.contact = method;
    TEST_OK(tb_soft_world_load(text, strlen(text), "text", &options, &there, &error), &error);
    for (int32_t i = 0; i < steps; i++) {
        TEST_OK(tb_soft_step(here, 1, &c, &error), &error);
        TEST_OK(tb_soft_step(there, 1, &d, &error), &error);
        ck_assert(there->card->contacts_there && there->card->contacts_stale);
        ck_assert_int_ge(d.contacts, contacts);
        ck_assert_mem_eq(&c, &d, offsetof(tb_soft_certificate, normal));
        ck_assert_int_eq(c.normal.iterations, d.normal.iterations);
        ck_assert_int_eq(c.tangential.iterations, d.tangential.iterations);
        ck_assert_int_eq(c.tangential.warm, d.tangential.warm);
        ck_assert_int_eq(c.normal.active, d.normal.active);
        ck_assert_int_eq(c.tangential.free_variables, d.tangential.free_variables);
        ck_assert_int_eq(c.normal.half_bandwidth, d.normal.half_bandwidth);
        ck_assert_int_eq(c.tangential.half_bandwidth, d.tangential.half_bandwidth);
        ck_assert(memcmp(&c.cone_error, &d.cone_error, sizeof c.cone_error) == 0);
        ck_assert(memcmp(&c.penetration, &d.penetration, sizeof c.penetration) == 0);
        ck_assert_double_eq(c.bytes, d.bytes);
        if (i % 2 == 1) same_bytes(here, there);
    }
    ck_assert_int_gt(d.tangential.solves, 0);
    same_bytes(here, there);
    tb_soft_world_destroy(here);
    tb_soft_world_destroy(there);
}

START_TEST(contacts_stay_on_the_card_with_the_processors_bytes)
{
    solve_on_card(TOUCHING, TB_SOFT_SETS_SWEPT, TB_SOFT_SCHURPA, steps_of(1), 8);
    solve_on_card(CROWD, TB_SOFT_SETS_SWEPT, TB_SOFT_SCHURPA, steps_of(3), 12);
}
END_TEST

START_TEST(contacts_from_other_first_sets_have_the_processors_bytes)
{
    solve_on_card(CROWD, TB_SOFT_SETS_RECALLED, TB_SOFT_DIRECT, steps_of(2), 12);
    solve_on_card(CROWD, TB_SOFT_SETS_EMPTY, TB_SOFT_SCHURPA, steps_of(1), 12);
}
END_TEST

/* The card has no memory for a substep's contacts, and then it has. */
START_TEST(contacts_that_find_no_memory_on_the_card_are_the_processors)
{
    if (!card_is_played()) return; /* a real card has room */
    tb_soft_world *here = load(TOUCHING, TB_BACKEND_CPU), *there = load(TOUCHING, TB_BACKEND_GPU);
    tb_soft_certificate c, d;
    TEST_OK(tb_soft_step(here, 2, NULL, &error), &error);
    TEST_OK(tb_soft_step(there, 2, NULL, &error), &error); /* memory for found cells */
    there->scene.options.programs = TB_BACKEND_GPU;
    ck_assert_int_eq(setenv("TRIBO_TEST_CARD_MEMORY", "1", 1), 0);
    TEST_OK(tb_soft_step(here, 1, &c, &error), &error);
    TEST_OK(tb_soft_step(there, 1, &d, &error), &error);
    ck_assert_int_eq(unsetenv("TRIBO_TEST_CARD_MEMORY"), 0);
    ck_assert(!there->card->contacts_there && !there->card->contacts_stale);
    ck_assert_int_ge(d.normal.fallbacks, 1);
    ck_assert_int_ge(d.tangential.fallbacks, 1);
    ck_assert_int_eq(d.normal.solves, c.normal.solves);
    same_bytes(here, there);
    here->scene.options.programs = TB_BACKEND_GPU;
    TEST_OK(tb_soft_step(here, 1, NULL, &error), &error);
    TEST_OK(tb_soft_step(there, 1, &d, &error), &error);
    ck_assert(there->card->contacts_there);
    ck_assert_int_eq(d.normal.fallbacks + d.tangential.fallbacks, 0);
    same_bytes(here, there);
    tb_soft_world_destroy(here);
    tb_soft_world_destroy(there);
}
END_TEST

START_TEST(a_grid_larger_than_the_card_is_refused)
{
    static const char large[] =
        "<soft model=\"s\"><grid lower=\"-6 -6 -1\" upper=\"6 6 1\" spacing=\"0.05\"/>"
        "<material name=\"m\" density=\"1000\" young=\"1e4\" poisson=\"0.3\"/>"
        "<body name=\"b\" material=\"m\" type=\"sphere\" size=\"0.3\"/></soft>";
    const tb_soft_load_options options = {.threads = 1, .backend = TB_BACKEND_GPU};
    tb_soft_world *w;
    if (!card_is_played()) return; /* a real card has room */
    TEST_STATUS(tb_soft_world_load(large, strlen(large), "text", &options, &w, &error),
                TB_RESOURCE_EXHAUSTED, &error);
    ck_assert_ptr_null(w);
}
END_TEST

TEST_MAIN(a_cylinder_in_flight_has_the_processors_bytes, moving_clamps_have_the_processors_bytes,
          bodies_in_contact_have_the_processors_bytes, a_mesh_has_the_processors_bytes,
          fields_stay_on_the_card_until_they_are_wanted, a_step_on_the_card_is_undone,
          programs_are_made_and_solved_on_the_card,
          contacts_stay_on_the_card_with_the_processors_bytes,
          contacts_from_other_first_sets_have_the_processors_bytes,
          contacts_that_find_no_memory_on_the_card_are_the_processors,
          the_processor_solves_programs_that_a_card_does_not_take,
          the_processor_solves_programs_that_do_not_converge_on_a_card,
          a_grid_larger_than_the_card_is_refused)
