/* The grasps of bench_warm through a daemon of its own, one step a call over gRPC: by one session,
 * then by two that take turns, the second half a second behind the first. Beside them the same
 * steps by the library in this process.
 *
 * A session's warm start is independent of other sessions: statuses, history, linear solves and the
 * bytes of the last state are the same alone, alternating and without a daemon. The program stops
 * if they differ. Times are those of a call, and of the step as the daemon reports it. */
#include "common_daemon.h"
#include "common_warm.h"
#include "tribo/v1/simulation.pb-c.h"
#include "tribo_client.h"

enum { ROUNDS = 5 };

typedef struct session {
    char id[40];
    int64_t steps;
    double computing; /* s, of all steps, as the daemon says */
    tb_certificate sum;
} session;

static void begin(tbc_client *client, const warm_scene *s, char *scene, session *run)
{
    tb_error error;
    Tribo__V1__SolveOptions solve = TRIBO__V1__SOLVE_OPTIONS__INIT;
    Tribo__V1__StepOptions options = TRIBO__V1__STEP_OPTIONS__INIT;
    Tribo__V1__CreateSessionRequest request = TRIBO__V1__CREATE_SESSION_REQUEST__INIT;
    Tribo__V1__CreateSessionResponse *answer = NULL;
    char solver[] = "auto";
    solve.solver = solver;
    solve.tolerance = WARM_TOLERANCE;
    solve.maximum_iterations = WARM_ITERATIONS;
    options.solve = &solve;
    request.scene_id = scene;
    request.options = &options;
    request.use_keyframe = s->keyframe >= 0;
    request.keyframe = s->keyframe >= 0 ? s->keyframe : 0;
    bench_check(TBC_CALL(client, "tribo.v1.Simulation/CreateSession", &request,
                         create_session_response, &answer, &error),
                &error);
    memset(run, 0, sizeof *run);
    snprintf(run->id, sizeof run->id, "%s", answer->session_id);
    tbc_free(answer);
}

static void add(tb_certificate *sum, const Tribo__V1__Certificate *c)
{
    sum->residual = fmax(sum->residual, c->residual);
    sum->iterations += c->iterations;
    sum->known_statuses += c->known_statuses;
    sum->kept_statuses += c->kept_statuses;
    sum->linear_solves += c->linear_solves;
    sum->factorizations += c->factorizations;
    sum->resets += c->resets;
}

/* doubles as they are, little endian as all machines that this runs on */
static Tribo__V1__Array array(double *numbers, int32_t count, int64_t *shape)
{
    Tribo__V1__Array a = TRIBO__V1__ARRAY__INIT;
    *shape = count;
    a.dtype = TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64;
    a.n_shape = 1;
    a.shape = shape;
    a.data.len = (size_t)count * sizeof *numbers;
    a.data.data = (uint8_t *)numbers;
    return a;
}

/* one call */
static void step(tbc_client *client, warm_scene *s, session *run)
{
    tb_error error;
    int64_t shapes[2];
    warm_command(s, run->steps++);
    Tribo__V1__Array controls = array(s->controls, s->counts.actuators, &shapes[0]);
    Tribo__V1__Array forces = array(s->forces, s->counts.dofs, &shapes[1]);
    Tribo__V1__StepRequest request = TRIBO__V1__STEP_REQUEST__INIT;
    Tribo__V1__StepResponse *answer = NULL;
    request.session_id = run->id;
    request.steps = 1;
    request.controls = &controls;
    request.forces = &forces;
    bench_check(
        TBC_CALL(client, "tribo.v1.Simulation/Step", &request, step_response, &answer, &error),
        &error);
    add(&run->sum, answer->certificates[0]);
    run->computing += 1e-6 * (double)answer->compute_time_us;
    tbc_free(answer);
}

static void same(bool good, const warm_scene *s, const char *what)
{
    if (good) return;
    fprintf(stderr, "bench: %s: %s\n", s->name, what);
    exit(1);
}

static void compare_sums(const warm_scene *s, const tb_certificate *a, const tb_certificate *b)
{
    same(a->iterations == b->iterations && a->linear_solves == b->linear_solves &&
             a->factorizations == b->factorizations && a->resets == b->resets,
         s, "the work is another than the library's");
    same(a->known_statuses == b->known_statuses && a->kept_statuses == b->kept_statuses &&
             a->residual == b->residual,
         s, "the statuses or the residual are others than the library's");
}

/* Checks that the session's bytes are those of the library's world, then ends it. */
static void end(tbc_client *client, const warm_scene *s, session *run, const unsigned char *bytes,
                size_t size)
{
    tb_error error;
    Tribo__V1__SnapshotRequest keep = TRIBO__V1__SNAPSHOT_REQUEST__INIT;
    Tribo__V1__SnapshotResponse *kept = NULL;
    keep.session_id = run->id;
    keep.transient = true;
    keep.want_data = true;
    bench_check(
        TBC_CALL(client, "tribo.v1.Simulation/Snapshot", &keep, snapshot_response, &kept, &error),
        &error);
    same(kept->n_data == 1 && kept->data[0].len == size &&
             memcmp(kept->data[0].data, bytes, size) == 0,
         s, "the state is another than the library's");
    tbc_free(kept);
    Tribo__V1__DeleteSessionRequest gone = TRIBO__V1__DELETE_SESSION_REQUEST__INIT;
    Tribo__V1__DeleteSessionResponse *answer = NULL;
    gone.session_id = run->id;
    bench_check(TBC_CALL(client, "tribo.v1.Simulation/DeleteSession", &gone,
                         delete_session_response, &answer, &error),
                &error);
    tbc_free(answer);
}

/* ---- the library's own ---- */

typedef struct own {
    tb_certificate sum;
    double seconds; /* a step */
    unsigned char *bytes;
    size_t size;
} own;

static void play_own(warm_scene *s, own *o)
{
    tb_error error;
    tb_stepper *stepper = NULL;
    tb_step_options options = tb_step_defaults();
    options.solve.tolerance = WARM_TOLERANCE;
    options.solve.solver = "auto";
    options.solve.maximum_iterations = WARM_ITERATIONS;
    options.threads = 1;
    bench_check(tb_stepper_create(&options, &stepper, &error), &error);
    tb_state *state = warm_start(s);
    memset(&o->sum, 0, sizeof o->sum);
    const double begun = bench_now();
    for (int64_t i = 0; i < WARM_STEPS; i++) {
        tb_certificate c;
        warm_command(s, i);
        bench_check(tb_state_set_controls(state, s->controls, s->counts.actuators, &error), &error);
        bench_check(tb_state_set_applied_force(state, s->forces, s->counts.dofs, &error), &error);
        bench_check(tb_step(stepper, state, 1, &c, &error), &error);
        tb_certificate_merge(&o->sum, &c);
    }
    o->seconds = (bench_now() - begun) / WARM_STEPS;
    warm_check(s, state);
    tb_bytes_destroy(o->bytes);
    bench_check(tb_state_snapshot(state, &o->bytes, &o->size, &error), &error);
    tb_state_destroy(state);
    tb_stepper_destroy(stepper);
}

/* ---- the measurement ---- */

static void measure(tbc_client *client, warm_scene *s)
{
    tb_error error;
    char scene[65], names[4][120];
    bench_figure times[4] = {{0}};
    static const char *const WHAT[4] = {"the library's step", "a call, one session",
                                        "its step as the daemon says", "a call, two by turns"};
    for (int k = 0; k < 4; k++) {
        snprintf(names[k], sizeof names[k], "%s, %s", s->name, WHAT[k]);
        times[k].name = names[k];
        times[k].unit = "s";
    }
    own o = {0};
    session one, two[2];
    bench_check(tbc_load_scene(client, s->path, NULL, scene, &error), &error);
    for (int round = 0; round < ROUNDS; round++) {
        play_own(s, &o);
        bench_add(&times[0], o.seconds);

        begin(client, s, scene, &one);
        double begun = bench_now();
        for (int i = 0; i < WARM_STEPS; i++) step(client, s, &one);
        bench_add(&times[1], (bench_now() - begun) / WARM_STEPS);
        bench_add(&times[2], one.computing / WARM_STEPS);
        compare_sums(s, &one.sum, &o.sum);
        end(client, s, &one, o.bytes, o.size);

        for (int k = 0; k < 2; k++) begin(client, s, scene, &two[k]);
        begun = bench_now();
        for (int i = 0; i < WARM_STEPS + WARM_DELAY; i++) {
            if (i < WARM_STEPS) step(client, s, &two[0]);
            if (i >= WARM_DELAY) step(client, s, &two[1]);
        }
        bench_add(&times[3], (bench_now() - begun) / (2.0 * WARM_STEPS));
        for (int k = 0; k < 2; k++) {
            compare_sums(s, &two[k].sum, &o.sum);
            end(client, s, &two[k], o.bytes, o.size);
        }
    }
    for (int k = 0; k < 4; k++) bench_print(&times[k]);
    warm_print_work(s, "one session", &one.sum);
    warm_print_work(s, "first of two sessions", &two[0].sum);
    warm_print_work(s, "second of two sessions", &two[1].sum);
    warm_print(s, "both", "states and sums as the library's", 1);
    tb_bytes_destroy(o.bytes);
}

int main(void)
{
    tb_error error;
    warm_scene scenes[WARM_SCENES];
    bench_daemon daemon;
    tbc_client *client = NULL;
    tbc_options options = tbc_options_defaults();
    warm_load(scenes);
    bench_daemon_start(&daemon);
    options.address = daemon.grpc;
    bench_check(tbc_connect(&options, &client, &error), &error);
    for (int k = 0; k < WARM_SCENES; k++) {
        measure(client, &scenes[k]);
        warm_free(&scenes[k]);
    }
    tbc_disconnect(client);
    bench_daemon_stop(&daemon);
    return 0;
}
