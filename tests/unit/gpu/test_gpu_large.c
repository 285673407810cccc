/* Large-world mode as the backend runs it: large worlds, or smaller ones that are
 * stepped so, against the CPU; and worlds that stay on the card between calls. The tests use a card if there is
 * one, else one that the processor plays (tests/plugin/card), with fewer balls and steps. */
#include "card_scenes.h"
#include "large_trees.h"

#include <dlfcn.h>

#include "step/large/large_plan.h"

#include "../../plugin/card/large.h"

/* ---- steppers and comparisons ---- */

static tb_stepper *stepper_of(tb_backend_choice backend, tb_precision precision, const char *solver,
                              double tolerance, int32_t sweeps)
{
    tb_error error;
    tb_stepper *stepper = NULL;
    tb_step_options options = tb_step_defaults();
    options.solve.solver = solver;
    options.solve.tolerance = tolerance;
    options.solve.maximum_iterations = sweeps;
    options.backend = backend;
    options.precision = precision;
    options.threads = backend == TB_BACKEND_GPU ? 0 : 1;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    return stepper;
}

/* Worlds of so many shapes or more step as large ones; after find_card. */
static void choose_large(int32_t shapes)
{
    fix_schedule((tb_backend_schedule){.alone = -1, .overlap = -1, .large = shapes});
}

static double difference(const tb_state *a, const tb_state *b, bool velocities)
{
    const tb_model_counts n = tb_model_count(tb_state_model(a));
    const int32_t count = velocities ? n.dofs : n.coordinates;
    const double *x = velocities ? tb_state_u(a) : tb_state_q(a);
    const double *y = velocities ? tb_state_u(b) : tb_state_q(b);
    double largest = 0;
    for (int32_t i = 0; i < count; i++) largest = fmax(largest, fabs(x[i] - y[i]));
    return largest;
}

/* ---- tests ---- */

static void agree_with(const char *reference, const char *name, tb_model *model, const char *solver,
                       int32_t steps, double tolerance)
{
    tb_error error;
    tb_certificate a, b;
    tb_stepper *cpu = stepper_of(TB_BACKEND_CPU, TB_DOUBLE, reference, 1e-12, 20000);
    tb_stepper *gpu = stepper_of(TB_BACKEND_GPU, TB_DOUBLE, solver, 1e-12, 20000);
    tb_state *x = state_of(model), *y = state_of(model);
    for (int32_t i = 0; i < steps; i += 10) {
        TEST_OK(tb_step(cpu, x, 10, &a, &error), &error);
        TEST_OK(tb_step(gpu, y, 10, &b, &error), &error);
    }
    const double du = difference(x, y, true), dq = difference(x, y, false);
    printf("%-40s %-4s after %d steps: u %.2g, q %.2g; contacts %d, %d\n", name, solver, steps, du,
           dq, a.contacts, b.contacts);
    ck_assert_int_eq(a.contacts, b.contacts);
    ck_assert_double_le(dq, tolerance);
    tb_state_destroy(x);
    tb_state_destroy(y);
    tb_stepper_destroy(cpu);
    tb_stepper_destroy(gpu);
    tb_model_destroy(model);
}

static void agree(const char *name, tb_model *model, const char *solver, int32_t steps,
                  double tolerance)
{
    agree_with("sor", name, model, solver, steps, tolerance);
}

/* Dolls, doors with balls, chains and bodies off their centres of mass above a plane. */
static tb_model *orchard(int32_t count, int condim)
{
    tree_text t = begin_text(condim);
    add_text(&t, "<geom type='plane' size='1 1 1'/>");
    for (int32_t k = 0; k < count; k++) {
        const double x = 1.2 * (k % 8), y = 1.6 * (k / 8);
        add_doll(&t, x, y, 0.4 + 0.01 * (k % 5), 35 * k, 0.01 * (k % 2));
        add_lump(&t, x, y + 0.5, 0.13 + 0.02 * (k % 3), 17 * k);
        add_door(&t, x + 0.2, y + 0.9, 0.004);
        add_text(&t, "<body pos='%g %g 0.2'><freejoint/><geom size='0.04'/></body>", x + 0.3,
                 y + 0.955);
        add_chain(&t, x + 0.6, y, 0.6, 1 + k % 6);
    }
    return finish_text(&t);
}

START_TEST(scenes_agree_with_the_cpu)
{
    find_card();
    choose_large(1);
    agree("spheres", spheres(), "sor", 1000, 1e-9);
    agree("spheres", spheres(), "jor", 200, 1e-9);
    agree("four boxes in a stack", boxes(), "sor", 200, 1e-6);
    agree("boxes that tumble in the air", tumbling(), "sor", 1000, 1e-9);
    agree("capsule, cylinder, ellipsoid, hulls", round_things(), "sor", 200, 1e-6);
    agree("216 balls without friction", small_pile(), "sor", 100, 1e-7);
    agree_with("newton", "balls with rolling friction", leaning(), "sor", 200, 1e-9);
    agree_with("newton", "balls with rolling friction", leaning(), "jor", 100, 1e-9);
    agree("shapes in a basin of triangles", basin(MESH_BASIN, 40, 0), "sor", 60, 1e-9);
    agree("shapes in a basin of heights", basin(FIELD_BASIN, 40, 0), "sor", 60, 1e-9);
    agree("shapes and meshes in a basin", basin(MESHES_BASIN, 40, 0), "sor", 50, 1e-9);
    agree("trees that fall", orchard(6, 3), "sor", 60, 1e-9);
    agree("trees that fall", orchard(6, 3), "jor", 60, 1e-9);
    agree_with("newton", "trees that fall and roll", orchard(6, 6), "sor", 60, 1e-9);
}
END_TEST

/* Repeated runs, and runs in other pieces, have the same bytes; the CPU continues from their
 * result. */
static void repeat(double rolling)
{
    const bool played = find_card();
    const int32_t balls = played ? 300 : 3000, runs = played ? 2 : 10;
    tb_error error;
    tb_certificate certificate;
    if (played) choose_large(100);
    tb_model *model = rolling_pile(balls, 0.5, rolling);
    for (int p = 0; p < 2; p++) {
        const tb_precision precision = p ? TB_FLOAT : TB_DOUBLE;
        tb_stepper *gpu = stepper_of(TB_BACKEND_GPU, precision, "sor", 1e-4, 30);
        tb_stepper *cpu = stepper_of(TB_BACKEND_CPU, precision, "sor", 1e-4, 30);
        tb_state *first = state_of(model), *again = NULL;
        TEST_OK(tb_step(gpu, first, 40, &certificate, &error), &error);
        ck_assert_int_gt(certificate.contacts, balls);
        for (int run = 0; run < runs; run++) {
            again = state_of(model);
            for (int i = 0; i < 40; i += run == 0 ? 1 : 40)
                TEST_OK(tb_step(gpu, again, run == 0 ? 1 : 40, &certificate, &error), &error);
            ck_assert(difference(first, again, true) == 0);
            ck_assert(difference(first, again, false) == 0);
            if (run < runs - 1) tb_state_destroy(again);
        }
        TEST_OK(tb_step(cpu, again, 1, &certificate, &error), &error);
        TEST_OK(tb_step(gpu, first, 1, &certificate, &error), &error);
        ck_assert_double_le(difference(first, again, false), 1e-3);
        tb_state_destroy(first);
        tb_state_destroy(again);
        tb_stepper_destroy(gpu);
        tb_stepper_destroy(cpu);
    }
    tb_model_destroy(model);
}

START_TEST(runs_have_the_same_bytes)
{
    repeat(0);
    repeat(0.005);
}
END_TEST

/* The same world on both sides, and what steps it. */
static void destroy_both(tb_state *x, tb_state *y, tb_stepper *gpu, tb_stepper *cpu)
{
    tb_state_destroy(x);
    tb_state_destroy(y);
    tb_stepper_destroy(gpu);
    tb_stepper_destroy(cpu);
}

/* Every kernel of a step, in as little time as there can be: for compute-sanitizer as well. */
static void some_steps(tb_model *model)
{
    enum { STEPS = 4 };
    find_card();
    choose_large(1);
    tb_error error;
    for (int p = 0; p < 4; p++) {
        const tb_precision precision = p % 2 ? TB_FLOAT : TB_DOUBLE;
        const char *solver = p / 2 ? "jor" : "sor";
        tb_certificate a, b;
        tb_stepper *gpu = stepper_of(TB_BACKEND_GPU, precision, solver, 1e-3, 10);
        tb_stepper *cpu = stepper_of(TB_BACKEND_CPU, precision, solver, 1e-3, 200);
        tb_state *x = state_of(model), *y = state_of(model);
        TEST_OK(tb_step(gpu, x, STEPS, &a, &error), &error);
        TEST_OK(tb_step(cpu, y, STEPS, &b, &error), &error);
        ck_assert_int_eq(a.step, STEPS);
        ck_assert_int_eq(a.contacts, b.contacts);
        ck_assert_int_gt(a.contacts, 50);
        ck_assert_double_lt(a.residual, 0.1); /* m/s, of ten sweeps */
        ck_assert_double_lt(difference(x, y, false), 1e-3);
        destroy_both(x, y, gpu, cpu);
    }
    tb_model_destroy(model);
}

START_TEST(some_steps_of_a_small_pile)
{
    some_steps(pile(64, 0.5));
}
END_TEST

START_TEST(some_steps_of_a_small_pile_that_rolls)
{
    some_steps(rolling_pile(64, 0.5, 0.005));
    some_steps(boxes_that_roll());
}
END_TEST

/* A few steps on either side from a state that the processor has come to: as many contacts, and velocities
 * within 1e-3 m/s. Destroys the model. */
static void compare_some_steps(tb_model *model, tb_stepper *gpu, tb_stepper *cpu, int skipped,
                               int fewest_contacts)
{
    enum { STEPS = 3 };
    tb_error error;
    tb_certificate a, b;
    tb_state *x = state_of(model), *y = NULL;
    TEST_OK(tb_step(cpu, x, skipped, &a, &error), &error);
    TEST_OK(tb_state_fork(x, &y, &error), &error);
    TEST_OK(tb_step(gpu, x, STEPS, &a, &error), &error);
    TEST_OK(tb_step(cpu, y, STEPS, &b, &error), &error);
    ck_assert_int_eq(a.step, skipped + STEPS);
    ck_assert_int_ge(a.contacts, b.contacts - 2);
    ck_assert_int_le(a.contacts, b.contacts + 2);
    ck_assert_int_gt(a.contacts, fewest_contacts);
    ck_assert_double_lt(difference(x, y, false), 1e-3);
    destroy_both(x, y, gpu, cpu);
    tb_model_destroy(model);
}

START_TEST(some_steps_in_a_basin)
{
    find_card();
    choose_large(1);
    for (int i = 0; i < 6; i++) {
        const tb_precision precision = i % 2 ? TB_FLOAT : TB_DOUBLE;
        compare_some_steps(basin((basin_kind)(i / 2), 48, 0.5),
                           stepper_of(TB_BACKEND_GPU, precision, "sor", 1e-3, 10),
                           stepper_of(TB_BACKEND_CPU, precision, "sor", 1e-3, 200), 80, 20);
    }
}
END_TEST

START_TEST(some_steps_of_trees)
{
    find_card();
    choose_large(1);
    for (int i = 0; i < 4; i++) {
        const tb_precision precision = i % 2 ? TB_FLOAT : TB_DOUBLE;
        compare_some_steps(orchard(8, i / 2 ? 6 : 3),
                           stepper_of(TB_BACKEND_GPU, precision, i == 3 ? "jor" : "sor", 1e-4, 60),
                           stepper_of(TB_BACKEND_CPU, precision, "auto", 1e-4, 400), 200, 15);
    }
}
END_TEST

START_TEST(runs_of_trees_have_the_same_bytes)
{
    const bool played = find_card();
    const int32_t count = played ? 6 : 200, runs = played ? 2 : 5;
    if (played) choose_large(1);
    tb_error error;
    tb_certificate certificate;
    tb_model *model = orchard(count, 3);
    for (int p = 0; p < 2; p++) {
        tb_stepper *gpu = stepper_of(TB_BACKEND_GPU, p ? TB_FLOAT : TB_DOUBLE, "sor", 1e-4, 30);
        uint64_t first = 0;
        for (int run = 0; run < runs; run++) {
            tb_state *state = state_of(model);
            for (int i = 0; i < 200; i += run == 0 ? 10 : 200)
                TEST_OK(tb_step(gpu, state, run == 0 ? 10 : 200, &certificate, &error), &error);
            if (run == 0) first = tb_state_hash(state);
            ck_assert_uint_eq(tb_state_hash(state), first);
            tb_state_destroy(state);
        }
        ck_assert_int_gt(certificate.contacts, count);
        tb_stepper_destroy(gpu);
    }
    tb_model_destroy(model);
}
END_TEST

/* Teams take their points in any order: the bytes are the same each time. */
START_TEST(runs_in_a_basin_have_the_same_bytes)
{
    const bool played = find_card();
    const int32_t shapes = played ? 60 : 3000, runs = played ? 2 : 5;
    if (played) choose_large(1);
    tb_error error;
    tb_certificate certificate;
    for (int kind = MESH_BASIN; kind <= MESHES_BASIN; kind++) {
        tb_model *model = basin((basin_kind)kind, shapes, 0.5);
        tb_stepper *gpu = stepper_of(TB_BACKEND_GPU, TB_FLOAT, "sor", 1e-4, 30);
        uint64_t first = 0;
        for (int run = 0; run < runs; run++) {
            tb_state *state = state_of(model);
            for (int i = 0; i < 100; i += run == 0 ? 10 : 100)
                TEST_OK(tb_step(gpu, state, run == 0 ? 10 : 100, &certificate, &error), &error);
            if (run == 0) first = tb_state_hash(state);
            ck_assert_uint_eq(tb_state_hash(state), first);
            tb_state_destroy(state);
        }
        ck_assert_int_gt(certificate.contacts, shapes);
        tb_stepper_destroy(gpu);
        tb_model_destroy(model);
    }
}
END_TEST

/* A card takes triangles of many shapes, and the backend that chooses leaves those of few shapes to
 * the processor. */
START_TEST(auto_takes_a_card_for_meshes_among_many_shapes)
{
    find_card();
    choose_large(0);
    tb_error error;
    tb_stepper *any = stepper_of(TB_BACKEND_AUTO, TB_DOUBLE, "sor", 1e-3, 3);
    for (int many = 0; many < 2; many++) {
        tb_model *model = basin(MESH_BASIN, many ? TB_LARGE_WORLD : 30, 0.5);
        tb_state *state = state_of(model);
        TEST_OK(tb_step(any, state, 1, NULL, &error), &error);
        ck_assert_str_eq(tb_stepper_measure(any).backend, many ? "gpu" : "cpu");
        tb_state_destroy(state);
        tb_model_destroy(model);
    }
    tb_stepper_destroy(any);
}
END_TEST

/* A world that leaves the range of numbers is frozen where it was; small ones beside it go on. */
START_TEST(a_large_world_that_diverges_is_frozen)
{
    const bool played = find_card();
    if (played) choose_large(100);
    tb_error error;
    tb_certificate certificates[2];
    tb_model *model = pile(played ? 216 : 2500, 0.5), *few = spheres();
    tb_stepper *gpu = stepper_of(TB_BACKEND_GPU, TB_DOUBLE, "sor", 1e-4, 30);
    tb_state *both[2] = {state_of(model), state_of(few)};
    const int32_t dofs = tb_model_count(model).dofs;
    double *u = calloc((size_t)dofs, sizeof *u);
    u[603] = 1e300; /* a turn that leaves the range of numbers */
    TEST_OK(tb_state_set_u(both[0], u, dofs, &error), &error);
    ck_assert_int_eq(tb_step_batch(gpu, both, 2, 5, certificates, &error), TB_DIVERGED);
    ck_assert_int_eq(certificates[0].status, TB_DIVERGED);
    ck_assert_int_eq(certificates[1].status, TB_OK);
    ck_assert(certificates[1].step == 5);
    free(u);
    for (int i = 0; i < 2; i++) tb_state_destroy(both[i]);
    tb_stepper_destroy(gpu);
    tb_model_destroy(model);
    tb_model_destroy(few);
}
END_TEST

/* A course is followed step by step, and its outputs are the steps' results. */
START_TEST(a_large_world_follows_a_course)
{
    enum { STEPS = 4, CHECKED = 100 };
    const bool played = find_card();
    if (played) choose_large(100);
    tb_error error;
    tb_certificate certificates[STEPS];
    tb_touch touches[STEPS];
    tb_model *model = pile(played ? 216 : 2500, 0.5);
    tb_stepper *gpu = stepper_of(TB_BACKEND_GPU, TB_DOUBLE, "sor", 1e-4, 30);
    tb_state *a = state_of(model), *b = state_of(model);
    const tb_model_counts n = tb_model_count(model);
    double *q = calloc((size_t)n.coordinates * STEPS, sizeof *q);
    ck_assert_ptr_nonnull(q);
    const tb_course course = {.steps = STEPS,
                              .q = q,
                              .touches = touches,
                              .certificates = certificates,
                              .watches = {{0, 1, 1, n.bodies}},
                              .number_of_watches = 1};
    TEST_OK(tb_step(gpu, a, CHECKED, NULL, &error), &error);
    TEST_OK(tb_step(gpu, b, CHECKED, NULL, &error), &error);
    TEST_OK(tb_step_courses(gpu, &a, &course, 1, NULL, &error), &error);
    for (int i = 0; i < STEPS; i++) {
        tb_certificate certificate;
        TEST_OK(tb_step(gpu, b, 1, &certificate, &error), &error);
        ck_assert_mem_eq(q + i * n.coordinates, tb_state_q(b), (size_t)n.coordinates * sizeof *q);
        ck_assert_int_eq(certificates[i].step, certificate.step);
        ck_assert_int_eq(certificates[i].contacts, certificate.contacts);
    }
    ck_assert(touches[0].impulse > 0); /* of the floor */
    ck_assert_uint_eq(tb_state_hash(a), tb_state_hash(b));
    free(q);
    tb_state_destroy(a);
    tb_state_destroy(b);
    tb_stepper_destroy(gpu);
    tb_model_destroy(model);
}
END_TEST

/* ---- data that stays on the card ---- */

/* The number of the played card; a real one keeps none, and 0 comes back. */
static int64_t imports(bool played)
{
    if (!played) return 0;
    void *plugin = dlopen(getenv("TRIBO_GPU_PLUGIN"), RTLD_NOW | RTLD_NOLOAD);
    ck_assert_ptr_nonnull(plugin);
    const int64_t *count = dlsym(plugin, "played_large_imports");
    ck_assert_ptr_nonnull(count);
    dlclose(plugin);
    return *count;
}

/* The state's content as if it came from somewhere else. */
static void restore(tb_state *state, const tb_state *from)
{
    tb_error error;
    unsigned char *bytes = NULL;
    size_t size = 0;
    TEST_OK(tb_state_snapshot(from, &bytes, &size, &error), &error);
    TEST_OK(tb_state_restore(state, bytes, size, &error), &error);
    tb_bytes_destroy(bytes);
}

/* Contacts are read from records once; later steps use the cache, until another world has used
 * it, or the state's contacts came from the host. */
START_TEST(contacts_of_a_large_world_stay_on_the_card)
{
    const bool played = find_card();
    choose_large(100);
    tb_error error;
    tb_model *model = pile(216, 0.5);
    tb_state *a = state_of(model), *b = state_of(model), *fork = NULL;
    tb_stepper *stays = resident_stepper(0);
    step(stays, a, 20);
    const tb_device_use before = use_of(0);
    const int64_t imported = imports(played);
    for (int i = 0; i < 10; i++) step(stays, a, 1 + i % 3);
    const tb_device_use after = use_of(0);
    ck_assert_int_eq(after.fetches, before.fetches);
    ck_assert_int_eq(after.uploads, before.uploads);
    ck_assert_int_eq(after.moves, before.moves);
    /* the launches of a step are captured once */
    ck_assert_int_gt(before.captures, 0);
    ck_assert_int_eq(after.captures, before.captures);
    /* a control block there and back with each call, and nothing else */
    ck_assert_uint_le(after.copied_bytes - before.copied_bytes, 10 * 4096);
    ck_assert_int_eq(imports(played), imported);

    /* the same with every contact from the host each time */
    step(stays, b, 20);
    for (int i = 0; i < 10; i++) {
        restore(b, b);
        step(stays, b, 1 + i % 3);
    }
    ck_assert_int_eq(imports(played), imported + (played ? 11 : 0));
    ck_assert_uint_eq(tb_state_hash(a), tb_state_hash(b));

    /* of two worlds that share the cache, the first finds it and the second does not */
    TEST_OK(tb_state_fork(b, &fork, &error), &error);
    step(stays, fork, 2);
    ck_assert_int_eq(imports(played), imported + (played ? 11 : 0));
    step(stays, b, 2);
    ck_assert_int_eq(imports(played), imported + (played ? 12 : 0));
    step(stays, a, 2);
    ck_assert_int_eq(imports(played), imported + (played ? 13 : 0));
    ck_assert_uint_eq(tb_state_hash(a), tb_state_hash(b));
    ck_assert_uint_eq(tb_state_hash(a), tb_state_hash(fork));

    tb_state_destroy(a);
    tb_state_destroy(b);
    tb_state_destroy(fork);
    tb_stepper_destroy(stays);
    tb_model_destroy(model);
}
END_TEST

/* Wider margins find more pairs than fit, while contacts are in the cache. */
START_TEST(room_grows_and_nothing_is_lost)
{
    const bool played = find_card();
    choose_large(100);
    tb_error error;
    tb_stepper *narrow = NULL, *wide = NULL;
    tb_step_options options = tb_step_defaults();
    options.backend = TB_BACKEND_GPU;
    options.solve.solver = "sor";
    options.solve.maximum_iterations = 20;
    TEST_OK(tb_stepper_create(&options, &narrow, &error), &error);
    options.contact_margin = 0.03;
    TEST_OK(tb_stepper_create(&options, &wide, &error), &error);
    tb_model *model = pile(512, 0.5);
    tb_state *first = state_of(model), *again = state_of(model);
    step(narrow, first, 30);
    const int64_t grown = tb_stepper_measure(narrow).regrowths, imported = imports(played);
    step(wide, first, 10);
    ck_assert_int_gt(tb_stepper_measure(wide).regrowths, grown);
    ck_assert_int_eq(imports(played), imported);
    /* with all the room from the start */
    step(narrow, again, 30);
    step(wide, again, 10);
    ck_assert_uint_eq(tb_state_hash(first), tb_state_hash(again));
    tb_state_destroy(first);
    tb_state_destroy(again);
    tb_stepper_destroy(narrow);
    tb_stepper_destroy(wide);
    tb_model_destroy(model);
}
END_TEST

START_TEST(warming_up_keeps_no_memory)
{
    find_card();
    tb_error error;
    tb_stepper *stays = resident_stepper(0); /* and warm */
    const tb_device_use once = use_of(0);
    TEST_OK(tb_stepper_warm(stays, &error), &error);
    ck_assert_uint_eq(use_of(0).memory_bytes, once.memory_bytes);
    ck_assert_uint_lt(once.memory_bytes, 1 << 20);
    tb_stepper_destroy(stays);
}
END_TEST

/* Steps worlds of other models until the card drops the least recently used ones. */
static void crowd_models_out(tb_stepper *stays)
{
    uint64_t bytes = 0;
    for (int i = 0; i < 400; i++) {
        tb_model *model = pile(60, 0.001 * (i + 1));
        tb_state *state = state_of(model);
        step(stays, state, 1);
        tb_state_destroy(state);
        tb_model_destroy(model);
        if (use_of(0).model_bytes < bytes) return;
        bytes = use_of(0).model_bytes;
    }
    ck_abort_msg("%llu bytes of models and none has left", (unsigned long long)bytes);
}

/* On the played card, which can be small. */
START_TEST(a_large_world_finds_its_model_where_it_has_moved)
{
    play_card("16777216", NULL, NULL);
    find_card();
    choose_large(100);
    tb_error error = {0};
    tb_model *model = pile(216, 0.3);
    tb_state *state = state_of(model), *alone = state_of(model);
    tb_stepper *stays = resident_stepper(0);
    step(stays, alone, 6);
    step(stays, state, 3);
    const uint64_t with_it = use_of(0).model_bytes;
    crowd_models_out(stays);
    step(stays, state, 3);
    ck_assert_uint_gt(with_it, 0);
    TEST_OK(tb_states_fetch(&state, 1, true, &error), &error);
    TEST_OK(tb_states_fetch(&alone, 1, true, &error), &error);
    ck_assert_uint_eq(tb_state_hash(state), tb_state_hash(alone));
    tb_state_destroy(state);
    tb_state_destroy(alone);
    tb_stepper_destroy(stays);
    tb_model_destroy(model);
}
END_TEST

TEST_MAIN(scenes_agree_with_the_cpu, runs_have_the_same_bytes, some_steps_of_a_small_pile,
          some_steps_of_a_small_pile_that_rolls, some_steps_in_a_basin, some_steps_of_trees,
          runs_of_trees_have_the_same_bytes, auto_takes_a_card_for_meshes_among_many_shapes,
          runs_in_a_basin_have_the_same_bytes, a_large_world_that_diverges_is_frozen,
          a_large_world_follows_a_course, contacts_of_a_large_world_stay_on_the_card,
          room_grows_and_nothing_is_lost, warming_up_keeps_no_memory,
          a_large_world_finds_its_model_where_it_has_moved)
