/* Forks share contacts until they step, invisibly: for any order of forks, steps, restores and
 * destructions, on any thread, each state has the bytes of its history. */
#include <pthread.h>

#include "base/random.h"
#include "test_util.h"

enum { BODIES = 10, HISTORY = 60 };

/* Ten boxes that fall onto a plane and each other, so that contacts come and go. */
static tb_model *heap(void)
{
    tb_error error = {0};
    tb_scene *scene = NULL;
    tb_model *model = NULL;
    TEST_OK(tb_scene_create(NULL, &scene, &error), &error);
    tb_shape_def plane = tb_shape_defaults();
    plane.type = TB_SHAPE_PLANE;
    TEST_OK(tb_scene_add_shape(scene, &plane, NULL, &error), &error);
    for (int i = 0; i < BODIES; i++) {
        tb_handle body;
        tb_body_def def = tb_body_defaults();
        def.position[0] = 0.07 * (i % 3);
        def.position[1] = 0.05 * (i % 2);
        def.position[2] = 0.12 + 0.21 * i;
        TEST_OK(tb_scene_add_body(scene, &def, &body, &error), &error);
        tb_joint_def joint = tb_joint_defaults();
        joint.body = body;
        joint.type = TB_JOINT_FREE;
        TEST_OK(tb_scene_add_joint(scene, &joint, NULL, &error), &error);
        tb_shape_def box = tb_shape_defaults();
        box.body = body;
        box.type = TB_SHAPE_BOX;
        box.size[0] = box.size[1] = box.size[2] = 0.1;
        TEST_OK(tb_scene_add_shape(scene, &box, NULL, &error), &error);
    }
    TEST_OK(tb_scene_compile(scene, &model, &error), &error);
    tb_scene_destroy(scene);
    return model;
}

/* A snapshot for each number of steps, from a world that was never forked. */
typedef struct history {
    unsigned char *bytes[HISTORY + 1];
    size_t size[HISTORY + 1];
    int32_t contacts[HISTORY + 1];
} history;

static history *write_history(const tb_model *model)
{
    tb_error error = {0};
    tb_state *state = NULL;
    tb_stepper *stepper = NULL;
    history *h = calloc(1, sizeof *h);
    ck_assert_ptr_nonnull(h);
    TEST_OK(tb_state_create(model, &state, &error), &error);
    TEST_OK(tb_stepper_create(NULL, &stepper, &error), &error);
    for (int i = 0; i <= HISTORY; i++) {
        TEST_OK(tb_state_snapshot(state, &h->bytes[i], &h->size[i], &error), &error);
        h->contacts[i] = tb_state_number_of_contacts(state);
        TEST_OK(tb_step(stepper, state, 4, NULL, &error), &error);
    }
    tb_stepper_destroy(stepper);
    tb_state_destroy(state);
    return h;
}

static void free_history(history *h)
{
    for (int i = 0; i <= HISTORY; i++) tb_bytes_destroy(h->bytes[i]);
    free(h);
}

static bool is_at(const tb_state *state, const history *h, int place)
{
    unsigned char *bytes = NULL;
    size_t size = 0;
    if (tb_state_snapshot(state, &bytes, &size, NULL) != TB_OK) return false;
    const bool same = size == h->size[place] && memcmp(bytes, h->bytes[place], size) == 0;
    tb_bytes_destroy(bytes);
    return same;
}

START_TEST(a_tree_of_forks_has_the_bytes_of_its_history)
{
    enum { STATES = 8, MOVES = 500 };
    tb_model *model = heap();
    history *h = write_history(model);
    ck_assert_int_gt(h->contacts[HISTORY], 15);
    tb_error error = {0};
    tb_stepper *stepper = NULL;
    tb_state *states[STATES] = {NULL};
    int places[STATES] = {0};
    TEST_OK(tb_stepper_create(NULL, &stepper, &error), &error);
    TEST_OK(tb_state_create(model, &states[0], &error), &error);

    tb_random random = tb_random_stream(7, 1);
    int counts[4] = {0};
    for (int move = 0; move < MOVES; move++) {
        const int a = (int)(tb_random_u32(&random) % STATES);
        const int b = (int)(tb_random_u32(&random) % STATES);
        const int what = (int)(tb_random_u32(&random) % 8);
        if (states[a] == NULL || (what == 0 && a == b)) continue;
        if (what <= 2 && a != b) { /* fork a into b's place */
            tb_state_destroy(states[b]);
            TEST_OK(tb_state_fork(states[a], &states[b], &error), &error);
            places[b] = places[a];
            counts[0]++;
        } else if (what <= 5 && places[a] < HISTORY) {
            TEST_OK(tb_step(stepper, states[a], 4, NULL, &error), &error);
            places[a]++;
            counts[1]++;
        } else if (what == 6) {
            places[a] = (int)(tb_random_u32(&random) % (HISTORY + 1));
            TEST_OK(tb_state_restore(states[a], h->bytes[places[a]], h->size[places[a]], &error),
                    &error);
            counts[2]++;
        } else if (what == 7 && move % 5 == 0) {
            TEST_OK(tb_state_reset(states[a], -1, &error), &error);
            places[a] = 0;
            counts[3]++;
        }
        for (int i = 0; i < STATES; i++)
            ck_assert_msg(states[i] == NULL || is_at(states[i], h, places[i]),
                          "state %d is not what it was after move %d", i, move);
    }
    for (int i = 0; i < 4; i++) ck_assert_int_gt(counts[i], 8);
    for (int i = 0; i < STATES; i++) tb_state_destroy(states[i]);
    tb_stepper_destroy(stepper);
    free_history(h);
    tb_model_destroy(model);
}
END_TEST

START_TEST(a_fork_outlives_its_origin)
{
    tb_model *model = heap();
    history *h = write_history(model);
    tb_error error = {0};
    tb_stepper *stepper = NULL;
    tb_state *origin = NULL, *fork = NULL, *of_fork = NULL;
    TEST_OK(tb_stepper_create(NULL, &stepper, &error), &error);
    TEST_OK(tb_state_create(model, &origin, &error), &error);
    TEST_OK(tb_state_restore(origin, h->bytes[40], h->size[40], &error), &error);
    TEST_OK(tb_state_fork(origin, &fork, &error), &error);
    tb_state_destroy(origin);
    TEST_OK(tb_state_fork(fork, &of_fork, &error), &error);
    tb_state_destroy(fork);
    TEST_OK(tb_step(stepper, of_fork, 80, NULL, &error), &error);
    ck_assert(is_at(of_fork, h, 60));
    tb_state_destroy(of_fork);
    tb_stepper_destroy(stepper);
    free_history(h);
    tb_model_destroy(model);
}
END_TEST

typedef struct branch {
    const history *history;
    tb_state *state;
    bool right;
} branch;

static void *step_branch(void *context)
{
    branch *b = context;
    tb_stepper *stepper = NULL;
    tb_step_options options = tb_step_defaults();
    options.threads = 1;
    b->right = tb_stepper_create(&options, &stepper, NULL) == TB_OK;
    for (int place = 41; place <= HISTORY && b->right; place++)
        b->right = tb_step(stepper, b->state, 4, NULL, NULL) == TB_OK &&
                   is_at(b->state, b->history, place);
    tb_stepper_destroy(stepper);
    tb_state_destroy(b->state);
    return NULL;
}

START_TEST(forks_step_on_threads_of_their_own)
{
    enum { BRANCHES = 6 };
    tb_model *model = heap();
    history *h = write_history(model);
    tb_error error = {0};
    tb_state *origin = NULL;
    branch branches[BRANCHES];
    pthread_t threads[BRANCHES];
    TEST_OK(tb_state_create(model, &origin, &error), &error);
    TEST_OK(tb_state_restore(origin, h->bytes[40], h->size[40], &error), &error);
    for (int i = 0; i < BRANCHES; i++) {
        branches[i] = (branch){.history = h};
        TEST_OK(tb_state_fork(origin, &branches[i].state, &error), &error);
        ck_assert_int_eq(pthread_create(&threads[i], NULL, step_branch, &branches[i]), 0);
    }
    ck_assert(is_at(origin, h, 40));
    tb_state_destroy(origin);
    for (int i = 0; i < BRANCHES; i++) {
        pthread_join(threads[i], NULL);
        ck_assert(branches[i].right);
    }
    free_history(h);
    tb_model_destroy(model);
}
END_TEST

/* A snapshot as an earlier build would have marked it. */
static unsigned char *older_format(const unsigned char *bytes, size_t size)
{
    unsigned char *older = malloc(size);
    ck_assert_ptr_nonnull(older);
    memcpy(older, bytes, size);
    older[8] = 5;
    return older;
}

START_TEST(a_snapshot_with_a_changed_bit_is_refused_and_leaves_the_state)
{
    tb_model *model = heap();
    history *h = write_history(model);
    tb_error error = {0};
    tb_state *state = NULL;
    TEST_OK(tb_state_create(model, &state, &error), &error);
    unsigned char *bytes = h->bytes[HISTORY];
    const size_t size = h->size[HISTORY];
    const uint64_t before = tb_state_hash(state);
    /* every byte once, each bit in turn */
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= (unsigned char)(1u << i % 8);
        const tb_status status = tb_state_restore(state, bytes, size, &error);
        const bool version = i >= 9 && i < 12; /* byte 8: 6 becomes 7, a format too */
        ck_assert_msg(status == (version ? TB_FAILED_PRECONDITION : TB_DATA_LOSS), "byte %zu: %s",
                      i, tb_status_name(status));
        bytes[i] ^= (unsigned char)(1u << i % 8);
    }
    TEST_STATUS(tb_state_restore(state, bytes, size - 8, &error), TB_DATA_LOSS, &error);
    TEST_STATUS(tb_state_restore(state, bytes, 116, &error), TB_DATA_LOSS, &error);
    ck_assert(tb_state_hash(state) == before);

    /* one of the format before is refused by its version */
    unsigned char *older = older_format(bytes, size);
    TEST_STATUS(tb_state_restore(state, older, size, &error), TB_FAILED_PRECONDITION, &error);
    ck_assert_ptr_nonnull(strstr(error.message, "snapshot version 5, this build reads 6 to 11"));
    ck_assert(tb_state_hash(state) == before);
    free(older);
    tb_state_destroy(state);
    free_history(h);
    tb_model_destroy(model);
}
END_TEST

TEST_MAIN(a_snapshot_with_a_changed_bit_is_refused_and_leaves_the_state,
          a_tree_of_forks_has_the_bytes_of_its_history, a_fork_outlives_its_origin,
          forks_step_on_threads_of_their_own)
