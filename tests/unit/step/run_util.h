/* One world of an MJCF text that steps, with the certificates of its steps. Any failure ends the test. */
#ifndef RUN_UTIL_H
#define RUN_UTIL_H

#include "model/mjcf_util.h"

static tb_error error;

typedef struct run {
    mjcf_case scene;
    tb_stepper *stepper;
    tb_state *state;
    tb_certificate sum, last; /* of all steps, of the last one */
} run;

static inline run begin_with(const char *text, const tb_step_options *options)
{
    run r = {.scene = mjcf_load(text)};
    TEST_OK(tb_stepper_create(options, &r.stepper, &error), &error);
    TEST_OK(tb_state_create(r.scene.model, &r.state, &error), &error);
    return r;
}

/* By the text's own dt, with energies. */
static inline run begin(const char *text, tb_scheme scheme)
{
    tb_step_options options = tb_step_defaults();
    options.scheme = scheme;
    options.report_energy = true;
    return begin_with(text, &options);
}

static inline void go(run *r, int steps)
{
    for (int i = 0; i < steps; i++) {
        TEST_OK(tb_step(r->stepper, r->state, 1, &r->last, &error), &error);
        if (tb_state_steps(r->state) == 1)
            r->sum = r->last;
        else
            tb_certificate_merge(&r->sum, &r->last);
    }
}

static inline void end(run *r)
{
    tb_state_destroy(r->state);
    tb_stepper_destroy(r->stepper);
    mjcf_free(&r->scene);
}

#endif
