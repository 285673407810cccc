/* A session on a card may stop anywhere and continue elsewhere: its snapshot holds all inputs of
 * its next step, warm sets included. The bytes are the same without a break, after a restart, as a
 * fork beside its origin, and by turns with another session. The tests use a card if there is one,
 * else one that the processor plays (tests/plugin/card). */
#include "card_util.h"
#include "solve/solve.h"

/* ---- scenes, and ways to step them ---- */

typedef struct scene {
    const char *name;
    tb_model *(*make)(void);
    void (*begin)(tb_state *state); /* NULL: no inputs */
    double force;                   /* to and fro, on every dof, N or N m */
    int32_t contacts;  /* with a known status before each of the last steps, at least */
    bool keeps_factor; /* few dofs: Newton's stays from step to step */
} scene;

static tb_model *six_boxes(void)
{
    return stack(6);
}

/* The fingers close. */
static void grasp_mug(tb_state *state)
{
    begin_grasp(state);
    set_actuator(state, "close_left", 20);
    set_actuator(state, "close_right", 20);
}

static const scene SCENES[] = {
    {"jaw and mug", jaw_and_mug, close_jaw, 0.02, 15, true},
    {"six boxes in a stack", six_boxes, NULL, 0.5, 24, false},
    {"five boxes and a pendulum", boxes_and_pendulum, NULL, 0.5, 20, false},
    {"hand and mug", hand_and_mug, grasp_mug, 0.02, 15, true},
};

typedef struct way {
    const char *solver;
    tb_precision precision;
    double tolerance;
} way;

/* At 1e-4 in float, contacts near the rim of their cones change between sticking and slipping in every few
 * steps. */
static const way WAYS[] = {
    {"auto", TB_DOUBLE, 1e-8},      {"newton", TB_DOUBLE, 1e-8},   {"sor", TB_DOUBLE, 1e-6},
    {"staggered", TB_DOUBLE, 1e-6}, {"auto", TB_FLOAT, 1e-5},      {"newton", TB_FLOAT, 1e-5},
    {"sor", TB_FLOAT, 1e-4},        {"staggered", TB_FLOAT, 1e-4},
};

enum {
    NUMBER_OF_SCENES = sizeof SCENES / sizeof SCENES[0],
    NUMBER_OF_WAYS = sizeof WAYS / sizeof WAYS[0],
    MIDDLE = 120,
    STEPS = 160, /* of a session, the last after a break */
    CALL = 8,    /* steps of a call */
    MOST_DOFS = 64
};

static tb_stepper *stepper_of(const way *w, tb_backend_choice backend, bool warm)
{
    tb_error error;
    tb_stepper *stepper = NULL;
    tb_step_options options = tb_step_defaults();
    options.backend = backend;
    options.resident = backend == TB_BACKEND_GPU;
    options.precision = w->precision;
    options.solve.solver = w->solver;
    options.solve.tolerance = w->tolerance;
    options.solve.maximum_iterations = 200;
    options.solve.warm_start = warm;
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    return stepper;
}

/* ---- sessions ---- */

/* A world between steps, and the sums of its certificates. */
typedef struct session {
    const scene *scene;
    const way *way;
    tb_state *state;
    int32_t shift; /* its inputs come this many calls earlier */
    tb_certificate sum;
} session;

static session begin(const scene *s, const way *w, const tb_model *model, int32_t shift)
{
    session own = {.scene = s, .way = w, .state = state_of(model), .shift = shift};
    if (s->begin) s->begin(own.state);
    return own;
}

/* Its next calls, each with other inputs. */
static void go_on(tb_stepper *stepper, session *own, int32_t steps)
{
    for (int32_t i = 0; i < steps; i += CALL) {
        tb_certificate c;
        tb_error error = {0};
        double force[MOST_DOFS] = {0};
        const int64_t call = tb_state_steps(own->state) / CALL + own->shift;
        const int32_t dofs = tb_model_count(tb_state_model(own->state)).dofs;
        ck_assert_int_le(dofs, MOST_DOFS);
        for (int32_t k = 0; k < dofs; k++)
            force[k] = own->scene->force * sin(0.7 * (double)call + k);
        TEST_OK(tb_state_set_applied_force(own->state, force, dofs, &error), &error);
        TEST_OK(tb_step(stepper, own->state, CALL, &c, &error), &error);
        tb_certificate_merge(&own->sum, &c);
    }
}

/* ---- snapshots ---- */

typedef struct snapshot {
    unsigned char *bytes;
    size_t size;
} snapshot;

static snapshot take(const session *own)
{
    snapshot s = {0};
    tb_error error;
    TEST_OK(tb_state_snapshot(own->state, &s.bytes, &s.size, &error), &error);
    return s;
}

/* Of a world before its first step. */
static session restored(const scene *s, const way *w, const tb_model *model, const snapshot *from)
{
    session own = {.scene = s, .way = w, .state = state_of(model)};
    tb_error error;
    TEST_OK(tb_state_restore(own.state, from->bytes, from->size, &error), &error);
    return own;
}

static const char *precision_of(const way *w)
{
    return w->precision == TB_FLOAT ? "float" : "double";
}

/* Ends a session, whose bytes and sums must match these. */
static void expect(session *own, const snapshot *bytes, const tb_certificate *sum, const char *what)
{
    snapshot found = take(own);
    ck_assert_msg(found.size == bytes->size && memcmp(found.bytes, bytes->bytes, found.size) == 0,
                  "%s, %s, %s: %s: other bytes", own->scene->name, own->way->solver,
                  precision_of(own->way), what);
    ck_assert_msg(memcmp(&own->sum, sum, sizeof *sum) == 0, "%s, %s, %s: %s: other sums",
                  own->scene->name, own->way->solver, precision_of(own->way), what);
    tb_bytes_destroy(found.bytes);
    tb_state_destroy(own->state);
}

/* A session from its beginning, without a break: snapshots in the middle and at the end, and the
 * sums of the way between. */
typedef struct course {
    snapshot middle, end;
    tb_certificate sum;
} course;

static course run(const scene *s, const way *w, const tb_model *model, int32_t shift)
{
    course c;
    tb_stepper *stepper = stepper_of(w, TB_BACKEND_GPU, true);
    session own = begin(s, w, model, shift);
    go_on(stepper, &own, MIDDLE);
    c.middle = take(&own);
    memset(&own.sum, 0, sizeof own.sum);
    go_on(stepper, &own, STEPS - MIDDLE);
    c.end = take(&own);
    c.sum = own.sum;
    tb_state_destroy(own.state);
    tb_stepper_destroy(stepper);
    ck_assert_uint_eq(use_of(0).memory_bytes, 0); /* nothing of it is left on the card */
    return c;
}

static void forget(course *c)
{
    tb_bytes_destroy(c->middle.bytes);
    tb_bytes_destroy(c->end.bytes);
}

/* Every scene in every way. */
static void each(const char *what, void (*test)(const scene *, const way *, const tb_model *))
{
    const bool played = find_card();
    for (int i = 0; i < NUMBER_OF_SCENES; i++) {
        tb_model *model = SCENES[i].make();
        for (int k = 0; k < NUMBER_OF_WAYS; k++) test(&SCENES[i], &WAYS[k], model);
        tb_model_destroy(model);
    }
    printf("%s: %d scenes in %d ways, on %s\n", what, NUMBER_OF_SCENES, NUMBER_OF_WAYS,
           played ? "a card that the processor plays" : "the card that is there");
}

/* ---- after a restart ---- */

/* The same steps from the same bytes by a stepper that may not use their warm data. */
static tb_certificate run_cold(const scene *s, const way *w, const tb_model *model,
                               const snapshot *from)
{
    tb_stepper *stepper = stepper_of(w, TB_BACKEND_GPU, false);
    session own = restored(s, w, model, from);
    go_on(stepper, &own, STEPS - MIDDLE);
    tb_state_destroy(own.state);
    tb_stepper_destroy(stepper);
    return own.sum;
}

/* The share of the diagonal that a snapshot's factor is of, which is at home again with it; 0: it
 * has none. */
static double kept_factor(const scene *s, const way *w, const tb_model *model, const snapshot *from)
{
    session own = restored(s, w, model, from);
    const bool few = tb_cached_factor_numbers(tb_model_count(model).dofs) > 0;
    const double weight = few ? own.state->factor[0] : 0;
    tb_state_destroy(own.state);
    return weight;
}

/* All statuses were known and nearly all kept; Newton's cached factor saved factorizations, from
 * step to step with few dofs; and without both the steps need more work. */
static void check_warm(const scene *s, const way *w, const tb_model *model, const course *c)
{
    const tb_certificate *warm = &c->sum, cold = run_cold(s, w, model, &c->middle);
    const double factor = kept_factor(s, w, model, &c->middle);
    printf("%-22s %-9s %-6s %6lld %6lld %6d %6d %6lld %6lld %6lld %6lld %9.2g\n", s->name,
           w->solver, precision_of(w), (long long)warm->known_statuses,
           (long long)warm->kept_statuses, warm->iterations, cold.iterations,
           (long long)warm->linear_solves, (long long)cold.linear_solves,
           (long long)warm->factorizations, (long long)cold.factorizations, factor);
    ck_assert_int_ge(warm->known_statuses, (int64_t)s->contacts * (STEPS - MIDDLE));
    ck_assert(10 * warm->kept_statuses >= 9 * warm->known_statuses);
    ck_assert(warm->kept_statuses <= warm->known_statuses);
    ck_assert_int_eq(cold.known_statuses, 0);
    ck_assert_int_lt(11 * warm->iterations, 10 * cold.iterations);
    if (strcmp(w->solver, "newton") != 0) return;
    ck_assert_int_lt(11 * warm->linear_solves, 10 * cold.linear_solves);
    ck_assert_int_lt(warm->factorizations, warm->linear_solves);
    ck_assert(s->keeps_factor == (factor > 0));
}

static void resume(const scene *s, const way *w, const tb_model *model)
{
    course c = run(s, w, model, 0);
    check_warm(s, w, model, &c);
    tb_stepper *stepper = stepper_of(w, TB_BACKEND_GPU, true);
    session own = restored(s, w, model, &c.middle);
    go_on(stepper, &own, STEPS - MIDDLE);
    expect(&own, &c.end, &c.sum, "after a restart");
    tb_stepper_destroy(stepper);
    forget(&c);
}

START_TEST(what_was_restored_goes_on_with_the_same_bytes)
{
    printf("%-39s %13s %13s %13s %13s\n", "over 40 steps", "statuses", "iterations",
           "linear solves", "factorizations");
    printf("%-39s %6s %6s %6s %6s %6s %6s %6s %6s %9s\n", "scene, solver", "known", "kept", "warm",
           "cold", "warm", "cold", "warm", "cold", "factor of");
    each("after a restart: same bytes, same sums", resume);
}
END_TEST

/* Newton factors more often if its factor is removed from snapshots between calls: so it does use
 * the cached one. */
START_TEST(a_factor_that_was_kept_is_used)
{
    const scene *s = &SCENES[0];
    const way *w = &WAYS[1]; /* Newton, in double */
    find_card();
    tb_model *model = s->make();
    course c = run(s, w, model, 0);
    tb_stepper *stepper = stepper_of(w, TB_BACKEND_GPU, true);
    session with = restored(s, w, model, &c.middle);
    const size_t numbers = (size_t)tb_cached_factor_numbers(tb_model_count(model).dofs);
    int64_t more = 0;
    for (int32_t i = 0; i < STEPS - MIDDLE; i += CALL) {
        snapshot now = take(&with);
        session without = restored(s, w, model, &now);
        memset(without.state->factor, 0, numbers * sizeof(double));
        go_on(stepper, &without, CALL);
        more += without.sum.factorizations;
        tb_state_destroy(without.state);
        tb_bytes_destroy(now.bytes);
        go_on(stepper, &with, CALL);
    }
    printf("%s: %lld factorizations in %d steps, %lld if they are forgotten between calls\n",
           s->name, (long long)with.sum.factorizations, STEPS - MIDDLE, (long long)more);
    ck_assert_int_lt(with.sum.factorizations, more);
    tb_state_destroy(with.state);
    tb_stepper_destroy(stepper);
    forget(&c);
    tb_model_destroy(model);
}
END_TEST

/* ---- beside others ---- */

static void fork_beside(const scene *s, const way *w, const tb_model *model)
{
    course c = run(s, w, model, 0);
    tb_error error;
    tb_stepper *stepper = stepper_of(w, TB_BACKEND_GPU, true);
    session origin = restored(s, w, model, &c.middle);
    go_on(stepper, &origin, CALL);
    session fork = origin;
    TEST_OK(tb_state_fork(origin.state, &fork.state, &error), &error);
    const tb_device_use before = use_of(0);
    for (int32_t i = MIDDLE + CALL; i < STEPS; i += CALL) {
        go_on(stepper, &fork, CALL);
        go_on(stepper, &origin, CALL);
    }
    ck_assert_int_eq(use_of(0).moves, before.moves + 1); /* made on the card */
    ck_assert_int_eq(use_of(0).fetches, before.fetches);
    expect(&origin, &c.end, &c.sum, "origin of a fork");
    expect(&fork, &c.end, &c.sum, "fork");
    tb_stepper_destroy(stepper);
    forget(&c);
}

START_TEST(a_fork_and_its_origin_go_on_side_by_side_as_if_alone)
{
    each("forks and origins side by side: same bytes, same sums", fork_beside);
}
END_TEST

static void take_turns(const scene *s, const way *w, const tb_model *model)
{
    enum { SHIFT = 5 };
    course a = run(s, w, model, 0), b = run(s, w, model, SHIFT);
    tb_stepper *stepper = stepper_of(w, TB_BACKEND_GPU, true);
    session one = begin(s, w, model, 0), other = begin(s, w, model, SHIFT);
    for (int32_t i = 0; i < STEPS; i += CALL) {
        if (i == MIDDLE) memset(&one.sum, 0, sizeof one.sum), other.sum = one.sum;
        go_on(stepper, &one, CALL);
        go_on(stepper, &other, CALL);
    }
    ck_assert(a.end.size != b.end.size || memcmp(a.end.bytes, b.end.bytes, a.end.size) != 0);
    expect(&one, &a.end, &a.sum, "the first of two sessions");
    expect(&other, &b.end, &b.sum, "the second of two sessions");
    tb_stepper_destroy(stepper);
    forget(&a);
    forget(&b);
}

START_TEST(sessions_by_turns_are_as_if_alone)
{
    each("sessions by turns: same bytes, same sums", take_turns);
}
END_TEST

/* ---- from a processor to a card, and from a card to a processor ---- */

static double farthest(const tb_state *a, const tb_state *b)
{
    double largest = 0;
    const int32_t coordinates = tb_model_count(tb_state_model(a)).coordinates;
    for (int32_t i = 0; i < coordinates; i++) {
        const double d = fabs(tb_state_q(a)[i] - tb_state_q(b)[i]);
        if (!(d <= largest)) largest = d; /* NaN stays */
    }
    return largest;
}

static void move_over(const scene *s, const way *w, const tb_model *model)
{
    const double allowed = w->precision == TB_FLOAT ? 1e-4 : 1e-6;
    const tb_backend_choice backends[2] = {TB_BACKEND_CPU, TB_BACKEND_GPU};
    for (int from = 0; from < 2; from++) {
        tb_stepper *stays = stepper_of(w, backends[from], true);
        tb_stepper *goes = stepper_of(w, backends[1 - from], true);
        session own = begin(s, w, model, 0);
        go_on(stays, &own, MIDDLE);
        snapshot middle = take(&own);
        session moved = restored(s, w, model, &middle);
        memset(&own.sum, 0, sizeof own.sum);
        go_on(stays, &own, STEPS - MIDDLE);
        go_on(goes, &moved, STEPS - MIDDLE);
        const double q = farthest(own.state, moved.state);
        printf("%-22s %-9s %-6s %-11s %10.2g %6lld %6lld\n", s->name, w->solver, precision_of(w),
               from == 0 ? "to a card" : "from a card", q, (long long)moved.sum.known_statuses,
               (long long)moved.sum.kept_statuses);
        ck_assert(q <= allowed);
        ck_assert_int_ge(moved.sum.known_statuses, (int64_t)s->contacts * (STEPS - MIDDLE));
        ck_assert(10 * moved.sum.kept_statuses >= 9 * moved.sum.known_statuses);
        tb_bytes_destroy(middle.bytes);
        tb_state_destroy(own.state);
        tb_state_destroy(moved.state);
        tb_stepper_destroy(stays);
        tb_stepper_destroy(goes);
    }
}

START_TEST(what_a_processor_began_a_card_goes_on_with_and_the_other_way_round)
{
    printf("%-51s %10s %6s %6s\n", "over 40 steps", "q", "known", "kept");
    each("between processors and card: within the tolerance", move_over);
}
END_TEST

TEST_MAIN(what_was_restored_goes_on_with_the_same_bytes, a_factor_that_was_kept_is_used,
          a_fork_and_its_origin_go_on_side_by_side_as_if_alone, sessions_by_turns_are_as_if_alone,
          what_a_processor_began_a_card_goes_on_with_and_the_other_way_round)
