/* Overlaps by BSP trees whose triangles go down on a card: five ways, beside the processor's third generation and its
 * convex pieces. Where there is no card, one that the processor plays runs the kernels. */
#include "card_util.h"
#include "scene_util.h"
#include "tribo.h"

#include <math.h>

/* The state borrows the model. */
static tb_state *state_after(const char *name, int32_t steps, tb_model **model)
{
    tb_state *state = NULL;
    tb_stepper *stepper = NULL;
    tb_error error;
    tb_step_options options = tb_step_defaults();
    options.scheme = TB_SCHEME_VOLUME;
    *model = named_model(name);
    TEST_OK(tb_state_create(*model, &state, &error), &error);
    TEST_OK(tb_state_reset(state, tb_model_find(*model, TB_HANDLE_KEYFRAME, "start"), &error),
            &error);
    TEST_OK(tb_stepper_create(&options, &stepper, &error), &error);
    TEST_OK(tb_step(stepper, state, steps, NULL, &error), &error);
    tb_stepper_destroy(stepper);
    return state;
}

START_TEST(every_way_gives_the_processors_volumes)
{
    static const char *const WAYS[] = {"gpu_recursive", "gpu_iterative", "gpu_hybrid", "gpu_shared",
                                       "gpu_own"};
    static const struct {
        const char *scene;
        int32_t steps;
    } SCENES[] = {{"prisms_27", 460}, {"fork_ring", 60}};
    find_card();
    for (int s = 0; s < 2; s++) {
        tb_model *model = NULL;
        tb_state *state = state_after(SCENES[s].scene, SCENES[s].steps, &model);
        tb_volume_measure here, pieces, m;
        tb_error error;
        TEST_OK(tb_state_measure_volume(state, "traversal", 0, &here, &error), &error);
        TEST_OK(tb_state_measure_volume(state, "pieces", 0, &pieces, &error), &error);
        ck_assert_double_gt(here.volume, 0);
        double first = 0;
        for (int w = 0; w < 5; w++) {
            /* a limit of 20 parts, so that the hybrid way uses both */
            TEST_OK(tb_state_measure_volume(state, WAYS[w], 20, &m, &error), &error);
            printf("%s, %s: %.17g m3 in %.3g s (processor %.3g s), %d mended\n", SCENES[s].scene,
                   WAYS[w], m.volume, m.parts[0], here.seconds, (int)m.mended);
            ck_assert_int_eq(m.pairs, here.pairs);
            ck_assert_int_eq(m.mended, 0);
            ck_assert_double_le(fabs(m.volume / here.volume - 1), 1e-12);
            ck_assert_double_le(fabs(m.volume / pieces.volume - 1), 1e-12);
            if (w == 0) first = m.volume;
            ck_assert_double_eq(m.volume, first);
        }
        tb_state_destroy(state);
        tb_model_destroy(model);
    }
}
END_TEST

TEST_MAIN(every_way_gives_the_processors_volumes)
