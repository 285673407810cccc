/* EvaluateGrasps and SolveProblem through their handlers. */
#include <math.h>

#include "server/server_util.h"

#include "base/file.h"
#include "handlers/grasp_request.h"
#include "tribo/v1/grasp.pb-c.h"
#include "tribo/v1/runs.pb-c.h"
#include "tribo/v1/solve.pb-c.h"

/* ---- a jaw, a block, a request ---- */

static const char BLOCK[] =
    "<mujoco><worldbody><body name='block'><freejoint/>"
    "<geom type='box' size='0.02 0.045 0.02' mass='0.1'/></body></worldbody></mujoco>";

enum { MOST_POSES = 300 };

/* A request with memory for its parts; poses sink one after the other from 8 mm above the
 * middle. */
typedef struct asking {
    Tribo__V1__EvaluateGraspsRequest request;
    Tribo__V1__GraspObject object;
    Tribo__V1__GraspHand hand;
    Tribo__V1__GraspAsset object_asset, hand_asset;
    Tribo__V1__GraspProtocol protocol;
    Tribo__V1__GraspPerturbation perturbation;
    Tribo__V1__GraspPose poses[MOST_POSES], *pose_list[MOST_POSES];
    Tribo__V1__Pose frames[MOST_POSES];
    double positions[MOST_POSES][3];
    char names[MOST_POSES][16];
} asking;

static void set_asset(Tribo__V1__GraspAsset *asset, const char *text, const char *path)
{
    tribo__v1__grasp_asset__init(asset);
    asset->main_case = TRIBO__V1__GRASP_ASSET__MAIN_DATA;
    asset->data.data = (uint8_t *)(uintptr_t)text;
    asset->data.len = strlen(text);
    asset->path = (char *)(uintptr_t)path;
}

static void ask(asking *a, int poses, int copies)
{
    memset(a, 0, sizeof *a);
    tribo__v1__evaluate_grasps_request__init(&a->request);
    tribo__v1__grasp_object__init(&a->object);
    tribo__v1__grasp_hand__init(&a->hand);
    tribo__v1__grasp_protocol__init(&a->protocol);
    tribo__v1__grasp_perturbation__init(&a->perturbation);
    set_asset(&a->object_asset, BLOCK, "block.xml");
    set_asset(&a->hand_asset, TEST_JAW, "jaw.xml");
    a->object.asset = &a->object_asset;
    a->object.friction = 0.5;
    a->hand.asset = &a->hand_asset;
    a->protocol.dt = 0.004;
    a->protocol.close_seconds = 0.2;
    a->protocol.lift_seconds = 0.2;
    a->protocol.lift = 0.03;
    a->protocol.hold_seconds = 0.1;
    a->perturbation.count = copies;
    a->perturbation.seed = 3;
    a->perturbation.position = 0.001;
    a->perturbation.friction = 0.3;
    for (int i = 0; i < poses; i++) {
        tribo__v1__grasp_pose__init(&a->poses[i]);
        tribo__v1__pose__init(&a->frames[i]);
        snprintf(a->names[i], sizeof a->names[i], "grasp %d", i);
        a->positions[i][2] = 0.008 - 0.00001 * i;
        a->frames[i].n_position = 3;
        a->frames[i].position = a->positions[i];
        a->poses[i].pose = &a->frames[i];
        a->poses[i].name = a->names[i];
        a->pose_list[i] = &a->poses[i];
    }
    a->request.object = &a->object;
    a->request.hand = &a->hand;
    a->request.protocol = &a->protocol;
    a->request.perturbation = &a->perturbation;
    a->request.n_poses = (size_t)poses;
    a->request.poses = a->pose_list;
    a->request.label = (char *)(uintptr_t) "a test";
}

/* The same for the library. */
static void ask_library(const asking *a, tb_grasp_request *r, tb_grasp_pose *poses)
{
    tb_error error = {0};
    tb_scene *hand, *object;
    TEST_OK(tb_scene_load_mjcf(TEST_JAW, strlen(TEST_JAW), NULL, NULL, &hand, &error), &error);
    TEST_OK(tb_scene_load_mjcf(BLOCK, strlen(BLOCK), NULL, NULL, &object, &error), &error);
    *r = tb_grasp_defaults();
    r->hand.scene = hand;
    r->object.scene = object;
    r->object.friction = a->object.friction;
    r->step.dt = a->protocol.dt;
    r->step.threads = 1;
    r->protocol.close_seconds = a->protocol.close_seconds;
    r->protocol.lift_seconds = a->protocol.lift_seconds;
    r->protocol.lift = a->protocol.lift;
    r->protocol.hold_seconds = a->protocol.hold_seconds;
    r->perturbation = (tb_grasp_perturbation){.count = a->perturbation.count,
                                              .seed = a->perturbation.seed,
                                              .position = a->perturbation.position,
                                              .friction = a->perturbation.friction};
    for (size_t i = 0; i < a->request.n_poses; i++) {
        poses[i] = tb_grasp_pose_defaults();
        memcpy(poses[i].position, a->positions[i], sizeof poses[i].position);
    }
    r->poses = poses;
    r->number_of_poses = (int32_t)a->request.n_poses;
}

static void free_library(tb_grasp_request *r)
{
    tb_scene_destroy((tb_scene *)(uintptr_t)r->hand.scene);
    tb_scene_destroy((tb_scene *)(uintptr_t)r->object.scene);
}

static const char *const EVALUATE = "tribo.v1.Grasp/EvaluateGrasps";

/* The run of this id, once it is in the store. */
static void get_run(td_server *s, const char *id, db_run *run)
{
    db_id key;
    tb_error error = {0};
    ck_assert(td_id_parse(id, &key));
    TEST_OK(db_get_run(s->db, &key, run, &error), &error);
}

/* ---- results ---- */

/* One result against the library's. */
static void compare(const Tribo__V1__GraspResult *m, const tb_grasp_result *r, const char *name)
{
    ck_assert_int_eq(m->index, r->index);
    ck_assert_str_eq(m->name, name);
    ck_assert(m->success == r->success && m->success_lower == r->lower);
    ck_assert(m->slip == r->slip && m->epsilon_quality == r->epsilon);
    ck_assert(m->volume_quality == r->volume && m->weakest_margin == r->margin);
    ck_assert_int_eq((int)m->verdict, (int)r->trials[0].verdict + 1);
    ck_assert_uint_eq(m->n_trials, (size_t)r->number_of_trials);
    for (int32_t i = 0; i < r->number_of_trials; i++) {
        ck_assert(m->trials[i]->slip == r->trials[i].slip);
        ck_assert(m->trials[i]->friction == r->trials[i].friction);
        ck_assert_int_eq((int)m->trials[i]->verdict, (int)r->trials[i].verdict + 1);
    }
    const size_t n = (size_t)r->number_of_contacts;
    ck_assert_uint_eq(m->wrenches->data.len, 48 * n);
    ck_assert_uint_eq(m->contact_positions->data.len, 24 * n);
    for (size_t i = 0; i < n; i++)
        ck_assert_mem_eq(m->wrenches->data.data + 48 * i, r->contacts[i].wrench, 48);
    ck_assert_uint_eq(m->n_finger_names, (size_t)r->number_of_fingers);
    for (size_t i = 0; i < m->n_finger_names; i++) {
        ck_assert_str_eq(m->finger_names[i], r->fingers[i].body);
        ck_assert(m->finger_forces[i] == r->fingers[i].force);
    }
    ck_assert(m->certificate->residual == r->certificate.residual);
    ck_assert_int_eq(m->certificate->iterations, r->certificate.iterations);
}

START_TEST(results_are_the_librarys_and_come_in_order)
{
    enum { POSES = 3, COPIES = 4 };
    static asking a;
    test_server t;
    tb_error error = {0};
    tb_grasp_request like;
    tb_grasp_pose poses[POSES];
    tb_grasp_job *job;
    test_server_init(&t, true);
    test_server_start(&t);
    ask(&a, POSES, COPIES);
    test_call *call = test_call_begin(&t.server, EVALUATE, "one");
    test_call_request(call, &a.request.base);
    test_call_wait(call, NULL, 0);
    ck_assert_msg(call->status == TB_OK, "%s", call->error.message);

    ask_library(&a, &like, poses);
    TEST_OK(tb_grasp_job_create(&like, &job, &error), &error);
    int results = 0, held = 0, summaries = 0;
    for (int i = 0; i < call->sent; i++) {
        Tribo__V1__EvaluateGraspsResponse *m = test_call_answer(call, i);
        if (m->event_case == TRIBO__V1__EVALUATE_GRASPS_RESPONSE__EVENT_RESULT) {
            const tb_grasp_result *r;
            bool finished;
            while ((r = tb_grasp_job_next(job)) == NULL)
                TEST_OK(tb_grasp_job_advance(job, 1000000, &finished, &error), &error);
            compare(m->result, r, a.names[results++]);
            held += r->trials[0].verdict == TB_GRASP_HELD;
        } else if (m->event_case == TRIBO__V1__EVALUATE_GRASPS_RESPONSE__EVENT_SUMMARY) {
            db_run run;
            summaries++;
            ck_assert_int_eq(i, call->sent - 1);
            ck_assert_int_eq(m->summary->grasps, POSES);
            ck_assert_int_eq(m->summary->trials, POSES * COPIES);
            ck_assert_int_gt(m->summary->world_steps, 0);
            ck_assert_str_eq(m->summary->object_sha256, tb_model_sha256(tb_grasp_job_model(job)));
            const tb_hand_info *hand = tb_grasp_job_hand(job);
            ck_assert(m->summary->hand->opening == hand->opening && hand->opening > 0.09);
            ck_assert(m->summary->hand->least_opening == hand->least_opening);
            get_run(&t.server, m->summary->run_id, &run);
            ck_assert_int_eq(run.kind, TRIBO__V1__RUN_KIND__RUN_KIND_GRASPS);
            ck_assert_int_eq(run.status, TRIBO__V1__RUN_STATUS__RUN_STATUS_DONE);
            ck_assert_int_eq(run.grasps, POSES);
            ck_assert_int_eq(run.grasps_held, held);
            ck_assert_int_eq(run.steps, m->summary->world_steps);
            ck_assert_str_eq(run.owner, "one");
            ck_assert_str_eq(run.label, "a test");
            ck_assert_ptr_nonnull(strstr(run.options_json, "\"closeSeconds\":0.2"));
            ck_assert_ptr_null(strstr(run.options_json, "poses"));
            free((void *)(uintptr_t)run.options_json);
        }
        tribo__v1__evaluate_grasps_response__free_unpacked(m, NULL);
    }
    ck_assert_int_eq(results, POSES);
    ck_assert_int_eq(summaries, 1);
    ck_assert_int_gt(held, 0);
    tb_grasp_job_destroy(job);
    free_library(&like);
    test_call_end(call);
    test_server_stop(&t);
    test_server_remove(&t);
}
END_TEST

/* ---- refusals ---- */

static void refused(td_server *s, asking *a, tb_status status, const char *field)
{
    test_call *call = test_call_begin(s, EVALUATE, "one");
    test_call_request(call, &a->request.base);
    test_call_wait(call, NULL, 0);
    ck_assert_msg(call->status == status && strcmp(call->error.field, field) == 0,
                  "expected %s of '%s', got %s of '%s': %s", tb_status_name(status), field,
                  tb_status_name(call->status), call->error.field, call->error.message);
    ck_assert_int_eq(call->sent, 0);
    test_call_end(call);
}

START_TEST(what_makes_no_sense_is_refused_by_its_name)
{
    static asking a;
    test_server t;
    const tb_status bad = TB_INVALID_ARGUMENT;
    double four[4] = {0}, two[2] = {1, 2};
    char *names[1] = {(char *)(uintptr_t) "thumb"};
    test_server_init(&t, false);
    t.config.grasps_per_request = 8;
    test_server_start(&t);
    td_server *s = &t.server;

    ask(&a, 0, 1);
    refused(s, &a, bad, "poses");
    ask(&a, 3, 3);
    refused(s, &a, TB_RESOURCE_EXHAUSTED, "poses");
    ask(&a, 2, -1);
    refused(s, &a, bad, "perturbation.count");
    ask(&a, 2, 1);
    a.frames[1].n_position = 2;
    refused(s, &a, bad, "poses[1].pose.position");
    ask(&a, 2, 1);
    a.frames[1].n_orientation = 4;
    a.frames[1].orientation = four;
    refused(s, &a, bad, "poses[1].pose.orientation");
    ask(&a, 2, 1);
    a.positions[1][0] = NAN;
    refused(s, &a, bad, "poses[1].pose.position");
    a.positions[1][0] = 1e9;
    refused(s, &a, bad, "poses[1].pose.position");
    ask(&a, 1, 1);
    a.poses[0].force = -1;
    refused(s, &a, bad, "poses[0].force");
    ask(&a, 1, 1);
    a.request.object = NULL;
    refused(s, &a, bad, "object");
    ask(&a, 1, 1);
    a.hand.asset = NULL;
    refused(s, &a, bad, "hand.asset");
    ask(&a, 1, 1);
    a.hand_asset.main_case = TRIBO__V1__GRASP_ASSET__MAIN__NOT_SET;
    refused(s, &a, bad, "hand.asset.main");
    ask(&a, 1, 1);
    a.object.mass = INFINITY;
    refused(s, &a, bad, "object.mass");
    ask(&a, 1, 1);
    a.protocol.dt = 2;
    refused(s, &a, bad, "protocol.dt");
    ask(&a, 1, 1);
    a.protocol.approach = two;
    a.protocol.n_approach = 2;
    refused(s, &a, bad, "protocol.approach");
    ask(&a, 1, 1);
    a.hand.closing_actuators = names;
    a.hand.n_closing_actuators = 1;
    refused(s, &a, TB_NOT_FOUND, "hand.closing_actuators");
    ask(&a, 1, 1);
    a.hand.open_controls = two;
    a.hand.n_open_controls = 2;
    refused(s, &a, bad, "hand.open_controls");
    ask(&a, 1, 1);
    a.request.confidence = 1.5;
    refused(s, &a, bad, "confidence");
    ask(&a, 1, 1);
    a.object_asset.main_case = TRIBO__V1__GRASP_ASSET__MAIN_SHA256;
    a.object_asset.sha256 =
        (char *)(uintptr_t) "00000000000000000000000000000000000000000000000000000000000000aa";
    test_call *call = test_call_begin(s, EVALUATE, "one");
    test_call_request(call, &a.request.base);
    test_call_wait(call, NULL, 0);
    ck_assert_int_eq(call->status, TB_NOT_FOUND);
    test_call_end(call);
    test_server_stop(&t);
}
END_TEST

/* ---- slow readers, cancellation ---- */

static int count_results(test_call *call)
{
    int results = 0;
    for (int i = 0; i < call->sent; i++) {
        Tribo__V1__EvaluateGraspsResponse *m = test_call_answer(call, i);
        results += m->event_case == TRIBO__V1__EVALUATE_GRASPS_RESPONSE__EVENT_RESULT;
        tribo__v1__evaluate_grasps_response__free_unpacked(m, NULL);
    }
    return results;
}

START_TEST(a_reader_that_stalls_pauses_the_work_and_loses_nothing)
{
    enum { POSES = 150 };
    static asking a;
    test_server t;
    test_server_init(&t, false);
    test_server_start(&t);
    ask(&a, POSES, 1);
    a.protocol.lift_seconds = a.protocol.close_seconds = a.protocol.hold_seconds = 0.01;
    a.protocol.lift = 0.001;
    test_call *call = test_call_begin(&t.server, EVALUATE, "one");
    call->stalled = true;
    test_call_request(call, &a.request.base);
    test_call_wait(call, &call->sent, 64);
    test_sleep(0.3);
    pthread_mutex_lock(&call->mutex);
    const int before = call->sent;
    pthread_mutex_unlock(&call->mutex);
    ck_assert_int_le(before, 66);
    ck_assert_int_eq(td_scheduler_queued(t.server.devices[0].scheduler), 0);
    test_call_flow(call);
    test_call_wait(call, NULL, 0);
    ck_assert_msg(call->status == TB_OK, "%s", call->error.message);
    ck_assert_int_eq(count_results(call), POSES);
    test_call_end(call);

    /* one that stalls and goes away */
    call = test_call_begin(&t.server, EVALUATE, "one");
    call->stalled = true;
    test_call_request(call, &a.request.base);
    test_call_wait(call, &call->sent, 64);
    test_sleep(0.1);
    td_call_cancel(&call->call);
    test_call_wait(call, NULL, 0);
    ck_assert_int_eq(call->status, TB_CANCELLED);
    test_call_end(call);
    test_server_stop(&t);
}
END_TEST

START_TEST(cancellation_stops_the_rest_at_once)
{
    static asking a;
    test_server t;
    db_run run;
    int32_t count = 0;
    char next[DB_TOKEN_SIZE];
    tb_error error = {0};
    test_server_init(&t, true);
    test_server_start(&t);
    ask(&a, MOST_POSES, 50);
    test_call *call = test_call_begin(&t.server, EVALUATE, "one");
    test_call_request(call, &a.request.base);
    test_call_wait(call, &call->sent, 1);
    const int64_t begin = td_monotonic_ns();
    td_call_cancel(&call->call);
    test_call_wait(call, NULL, 0);
    /* a slice of a few milliseconds; a machine under load gets a second */
    ck_assert_int_lt(td_monotonic_ns() - begin, 1000000000);
    ck_assert_int_eq(call->status, TB_CANCELLED);
    test_call_end(call);
    const db_run_filter filter = {.kind = TRIBO__V1__RUN_KIND__RUN_KIND_GRASPS};
    TEST_OK(db_list_runs(t.server.db, &filter, "", &run, 1, &count, next, &error), &error);
    ck_assert_int_eq(count, 1);
    ck_assert_int_eq(run.status, TRIBO__V1__RUN_STATUS__RUN_STATUS_CANCELLED);
    ck_assert_int_gt(run.end_time_us, 0);
    free((void *)(uintptr_t)run.options_json);

    /* past its deadline */
    call = test_call_begin(&t.server, EVALUATE, "one");
    call->call.deadline_ns = td_monotonic_ns() + 300000000;
    test_call_request(call, &a.request.base);
    test_call_wait(call, NULL, 0);
    ck_assert_int_eq(call->status, TB_DEADLINE_EXCEEDED);
    test_call_end(call);
    test_server_stop(&t);
    test_server_remove(&t);
}
END_TEST

/* ---- problems ---- */

static const char *const SOLVE = "tribo.v1.Solve/SolveProblem";

START_TEST(a_problem_is_solved_as_the_library_solves_it)
{
    test_server t;
    db_run run;
    int32_t count = 0;
    char next[DB_TOKEN_SIZE];
    tb_error error = {0};
    tb_bytes file = {0};
    tb_problem_file *problem = NULL;
    tb_problem_result result;
    tb_status status;
    test_server_init(&t, true);
    test_server_start(&t);
    TEST_OK(tb_file_read("tests/data/problems/grasp_lifts.dat", 0, &file, &error), &error);

    Tribo__V1__SolveProblemRequest r = TRIBO__V1__SOLVE_PROBLEM_REQUEST__INIT;
    r.source_case = TRIBO__V1__SOLVE_PROBLEM_REQUEST__SOURCE_DATA;
    r.data.data = file.base;
    r.data.len = file.size;
    r.name = (char *)(uintptr_t) "grasp_lifts.dat";
    r.want_solution = true;
    Tribo__V1__SolveProblemResponse *m = test_unary(&t.server, SOLVE, "one", &r, &status, &error);
    TEST_OK(status, &error);

    TEST_OK(tb_problem_load_memory(file.base, file.size, NULL, &problem, &error), &error);
    const tb_problem_info info = tb_problem_describe(problem);
    tb_solve_options options = tb_solve_defaults();
    options.tolerance = 1e-8;
    options.maximum_iterations = 100000;
    double *reactions = calloc((size_t)info.rows, sizeof *reactions);
    TEST_OK(tb_problem_solve(problem, &options, reactions, NULL, &result, &error), &error);
    ck_assert_int_eq(m->contacts, info.contacts);
    ck_assert_int_eq(m->outcome, TRIBO__V1__OUTCOME__OUTCOME_OK);
    ck_assert(m->residual == result.residual && m->iterations == result.iterations);
    ck_assert_uint_eq(m->reactions->data.len, (size_t)info.rows * 8);
    ck_assert_mem_eq(m->reactions->data.data, reactions, (size_t)info.rows * 8);
    ck_assert_int_eq(m->reactions->shape[0], info.contacts);
    ck_assert_int_eq(m->reactions->shape[1], info.dimension);
    tribo__v1__solve_problem_response__free_unpacked(m, NULL);

    /* answered jobs are in the store */
    const db_run_filter filter = {.kind = TRIBO__V1__RUN_KIND__RUN_KIND_SOLVE};
    TEST_OK(db_list_runs(t.server.db, &filter, "", &run, 1, &count, next, &error), &error);
    ck_assert_int_eq(count, 1);
    ck_assert_int_eq(run.status, TRIBO__V1__RUN_STATUS__RUN_STATUS_DONE);
    ck_assert_str_eq(run.label, "grasp_lifts.dat");
    ck_assert(run.certificate.residual == result.residual);
    free((void *)(uintptr_t)run.options_json);

    free(reactions);
    tb_problem_destroy(problem);
    tb_bytes_free(&file);
    test_server_stop(&t);
    test_server_remove(&t);
}
END_TEST

static void solve_refused(td_server *s, Tribo__V1__SolveProblemRequest *r, const char *field)
{
    tb_status status;
    tb_error error = {0};
    ck_assert_ptr_null(test_unary(s, SOLVE, "one", r, &status, &error));
    ck_assert_msg(status == TB_INVALID_ARGUMENT && strcmp(error.field, field) == 0,
                  "%s of '%s': %s", tb_status_name(status), error.field, error.message);
}

START_TEST(files_that_are_no_problems_are_refused)
{
    test_server t;
    static const unsigned char FAKE[16] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
    test_server_init(&t, false);
    test_server_start(&t);
    Tribo__V1__SolveOptions options = TRIBO__V1__SOLVE_OPTIONS__INIT;
    Tribo__V1__SolveProblemRequest r = TRIBO__V1__SOLVE_PROBLEM_REQUEST__INIT;
    solve_refused(&t.server, &r, "source");
    r.source_case = TRIBO__V1__SOLVE_PROBLEM_REQUEST__SOURCE_DATA;
    solve_refused(&t.server, &r, "dimension"); /* the first thing that an empty text lacks */
    r.data.data = (uint8_t *)(uintptr_t)FAKE;  /* HDF5 by its first bytes alone */
    r.data.len = sizeof FAKE;
    solve_refused(&t.server, &r, "data");
    r.options = &options; /* options are looked at before the file */
    options.maximum_iterations = 2000000000;
    solve_refused(&t.server, &r, "options.maximum_iterations");
    options.maximum_iterations = 0;
    options.tolerance = -1;
    solve_refused(&t.server, &r, "options.tolerance");
    test_server_stop(&t);
}
END_TEST

START_TEST(a_problem_ends_with_its_deadline)
{
    test_server t;
    tb_error error = {0};
    tb_bytes file = {0};
    test_server_init(&t, false);
    test_server_start(&t);
    TEST_OK(tb_file_read("tests/data/problems/grasp_lifts.dat", 0, &file, &error), &error);
    Tribo__V1__SolveOptions options = TRIBO__V1__SOLVE_OPTIONS__INIT;
    Tribo__V1__SolveProblemRequest r = TRIBO__V1__SOLVE_PROBLEM_REQUEST__INIT;
    r.source_case = TRIBO__V1__SOLVE_PROBLEM_REQUEST__SOURCE_DATA;
    r.data.data = file.base;
    r.data.len = file.size;
    r.options = &options;
    options.solver = "sor"; /* Newton sees when only rounding is left */
    options.maximum_iterations = 1000000;
    options.tolerance = 1e-300; /* never met */
    test_call *call = test_call_begin(&t.server, SOLVE, "one");
    call->call.deadline_ns = td_monotonic_ns() + 200000000;
    test_call_request(call, &r.base);
    test_call_wait(call, NULL, 0);
    ck_assert_int_eq(call->status, TB_DEADLINE_EXCEEDED);
    test_call_end(call);
    tb_bytes_free(&file);
    test_server_stop(&t);
}
END_TEST

static int32_t iterations_of(td_server *s, const asking *a)
{
    td_grasp_request r;
    tb_error error = {0};
    TEST_OK(td_grasp_request_read(s, &a->request, &r, &error), &error);
    const int32_t found = r.request.step.solve.maximum_iterations;
    td_grasp_request_free(&r);
    return found;
}

START_TEST(a_grasp_has_the_librarys_limit_of_iterations)
{
    test_server t;
    asking *a = calloc(1, sizeof *a);
    ck_assert_ptr_nonnull(a);
    ask(a, 1, 1);
    test_server_init(&t, false);
    test_server_start(&t);
    const int32_t own = tb_grasp_defaults().step.solve.maximum_iterations;
    ck_assert_int_gt(own, tb_solve_defaults().maximum_iterations);
    ck_assert_int_eq(iterations_of(&t.server, a), own);
    Tribo__V1__SolveOptions solve = TRIBO__V1__SOLVE_OPTIONS__INIT;
    solve.tolerance = 1e-8;
    a->request.solve = &solve;
    ck_assert_int_eq(iterations_of(&t.server, a), own);
    solve.maximum_iterations = 7;
    ck_assert_int_eq(iterations_of(&t.server, a), 7);
    test_server_stop(&t);
    free(a);
}
END_TEST

TEST_MAIN(results_are_the_librarys_and_come_in_order, a_grasp_has_the_librarys_limit_of_iterations,
          what_makes_no_sense_is_refused_by_its_name,
          a_reader_that_stalls_pauses_the_work_and_loses_nothing,
          cancellation_stops_the_rest_at_once, a_problem_is_solved_as_the_library_solves_it,
          files_that_are_no_problems_are_refused, a_problem_ends_with_its_deadline)
