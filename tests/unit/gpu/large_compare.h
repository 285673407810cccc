/* A step of large-world mode beside the general step of the CPU. */
#ifndef LARGE_COMPARE_H
#define LARGE_COMPARE_H

#include "large_scenes.h"

/* a sanitizer needs every path once; three rounds have both schemes */
#ifdef __SANITIZE_ADDRESS__
enum { ROUNDS = 3 };
#else
enum { ROUNDS = 6 };
#endif

/* One step from the same state: contacts to rounding, and velocities to `most` where there is one
 * solution (0: there are more), after solves to the tolerance. Without recovery, which is part of the velocities in a large world alone. */
static inline void compare_steps(const char *name, tb_model *model, double most, double tolerance)
{
    tb_step_options options = options_of(tolerance);
    options.recovery_speed = 0;
    tb_state *state = state_of(model);
    move_kinematic(state);
    for (int round = 0; round < ROUNDS; round++) {
        tb_state *large = NULL, *cpu = NULL;
        tb_error error;
        large_view view;
        TEST_OK(tb_state_fork(state, &large, &error), &error);
        TEST_OK(tb_state_fork(state, &cpu, &error), &error);
        options.scheme = round % 3 == 2 ? TB_SCHEME_MOREAU : TB_SCHEME_STEWART_TRINKLE;
        const tb_certificate a = step_large(large, &options, 1, 0, &view);
        const tb_certificate b = step_cpu(cpu, &options, 1);
        ck_assert_int_eq(a.contacts, b.contacts);
        ck_assert_int_eq(a.rows, b.rows);
        ck_assert_double_le(fabs(a.penetration - b.penetration), 1e-12);
        check_contacts(large, cpu, 1e-12);
        if (most > 0 && a.status == TB_OK && b.status == TB_OK) {
            const double du = largest_difference(large->u, cpu->u, model->number_of_dofs);
            if (du > most) fprintf(stderr, "%s, step %d: %g\n", name, round, du);
            ck_assert_double_le(du, most);
        }
        for (int32_t c = 0; c < view.colours; c++) {
            bool *used = calloc((size_t)model->number_of_shapes, sizeof *used);
            for (int32_t i = view.colour_from[c]; i < view.colour_from[c + 1]; i++)
                for (int side = 0; side < 2; side++) {
                    const int32_t body = view.links[2 * i + side];
                    if (body < 0) continue;
                    ck_assert(!used[body]);
                    used[body] = true;
                }
            free(used);
        }
        tb_state_destroy(large);
        tb_state_destroy(cpu);
        options.scheme = TB_SCHEME_STEWART_TRINKLE;
        step_cpu(state, &options, 30);
    }
    tb_state_destroy(state);
    tb_model_destroy(model);
}

#endif
