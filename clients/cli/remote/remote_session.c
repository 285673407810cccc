/* Steps worlds on a daemon and restores their snapshots here. See remote_session.h. */
#include "remote/remote_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cli.h"
#include "tribo/v1/simulation.pb-c.h"

struct remote_session {
    tbc_client *client;
    char id[33];
    int32_t worlds, actuators;
    double *controls; /* worlds x actuators */
};

/* ---- opening ---- */

static tb_status create(remote_session *s, const char *scene, const remote_step *step,
                        tb_error *error)
{
    const tb_step_options *o = step->options;
    char label[] = "tribo run", *solver = strdup(o->solve.solver), *scene_id = strdup(scene);
    Tribo__V1__SolveOptions solve = TRIBO__V1__SOLVE_OPTIONS__INIT;
    Tribo__V1__StepOptions options = TRIBO__V1__STEP_OPTIONS__INIT;
    Tribo__V1__CreateSessionRequest request = TRIBO__V1__CREATE_SESSION_REQUEST__INIT;
    Tribo__V1__CreateSessionResponse *answer = NULL;
    tb_status status = TB_RESOURCE_EXHAUSTED;
    if (solver == NULL || scene_id == NULL) {
        cli_fail(error, status, "", 0, NULL, "out of memory");
        goto done;
    }
    solve.solver = solver;
    solve.tolerance = o->solve.tolerance;
    solve.maximum_iterations = o->solve.maximum_iterations;
    solve.omega = o->solve.omega;
    solve.colouring = (Tribo__V1__Colouring)(o->solve.colouring + 1);
    solve.colours = o->solve.colours;
    options.dt = o->dt;
    static const Tribo__V1__Scheme SCHEMES[] = {
        TRIBO__V1__SCHEME__SCHEME_STEWART_TRINKLE, TRIBO__V1__SCHEME__SCHEME_MOREAU,
        TRIBO__V1__SCHEME__SCHEME_PLANAR, TRIBO__V1__SCHEME__SCHEME_VOLUME};
    options.scheme = SCHEMES[o->scheme];
    options.precision = o->precision == TB_FLOAT ? TRIBO__V1__PRECISION__PRECISION_SINGLE
                                                 : TRIBO__V1__PRECISION__PRECISION_DOUBLE;
    options.solve = &solve;
    options.recovery_speed = o->recovery_speed;
    options.contact_merge = o->contact_merge;
    options.report_energy = o->report_energy;
    request.scene_id = scene_id;
    request.worlds = step->worlds;
    request.options = &options;
    request.device = (char *)(uintptr_t)step->device; /* a message that is packed stays as it is */
    request.label = label;
    request.use_keyframe = step->keyframe >= 0;
    request.keyframe = step->keyframe >= 0 ? step->keyframe : 0;
    status = TBC_CALL(s->client, "tribo.v1.Simulation/CreateSession", &request,
                      create_session_response, &answer, error);
    if (status == TB_OK) snprintf(s->id, sizeof s->id, "%s", answer->session_id);
    tbc_free(answer);
done:
    free(solver);
    free(scene_id);
    return status;
}

tb_status remote_session_open(const remote_options *remote, const char *path, const tb_model *model,
                              const remote_step *step, remote_session **out, tb_error *error)
{
    char scene[65];
    *out = NULL;
    remote_session *s = calloc(1, sizeof *s);
    if (s == NULL) return cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL, "out of memory");
    s->worlds = step->worlds;
    s->actuators = tb_model_count(model).actuators;
    s->controls = calloc((size_t)s->worlds * (size_t)s->actuators + 1, sizeof(double));
    tb_status status = s->controls != NULL
                           ? remote_connect(remote, &s->client, error)
                           : cli_fail(error, TB_RESOURCE_EXHAUSTED, "", 0, NULL, "out of memory");
    if (status == TB_OK) status = tbc_load_scene_as(s->client, path, step->import, scene, error);
    if (status == TB_OK && strcmp(scene, tb_model_sha256(model)) != 0)
        status = cli_fail(error, TB_FAILED_PRECONDITION, path, 0, NULL,
                          "the daemon at %s makes another model of it (%.12s, here %.12s): is it "
                          "another version?",
                          remote_address(remote), scene, tb_model_sha256(model));
    if (status == TB_OK) status = create(s, scene, step, error);
    if (status != TB_OK) {
        remote_session_close(s);
        return status;
    }
    *out = s;
    return TB_OK;
}

void remote_session_close(remote_session *s)
{
    if (s == NULL) return;
    if (s->id[0] != '\0') {
        Tribo__V1__DeleteSessionRequest request = TRIBO__V1__DELETE_SESSION_REQUEST__INIT;
        Tribo__V1__DeleteSessionResponse *answer = NULL;
        request.session_id = s->id;
        TBC_CALL(s->client, "tribo.v1.Simulation/DeleteSession", &request, delete_session_response,
                 &answer, NULL);
        tbc_free(answer);
    }
    tbc_disconnect(s->client);
    free(s->controls);
    free(s);
}

/* ---- stepping ---- */

void remote_read_certificate(const Tribo__V1__Certificate *from, tb_certificate *to)
{
    *to = (tb_certificate){.step = from->step,
                           .time = from->time,
                           .residual = from->residual,
                           .penetration = from->penetration,
                           .cone_error = from->cone_error,
                           .complementarity_error = from->complementarity_error,
                           .closure_error = from->closure_error,
                           .energy = from->energy,
                           .energy_change = from->energy_change,
                           .contacts = from->contacts,
                           .rows = from->rows,
                           .iterations = from->iterations,
                           .known_statuses = from->known_statuses,
                           .kept_statuses = from->kept_statuses,
                           .linear_solves = from->linear_solves,
                           .factorizations = from->factorizations,
                           .resets = from->resets,
                           .energy_recovery = from->energy_recovery,
                           .energy_motors = from->energy_motors,
                           .energy_damping = from->energy_damping,
                           .energy_friction = from->energy_friction,
                           .energy_applied = from->energy_applied,
                           .energy_unexplained = from->energy_unexplained,
                           .energy_bound = from->energy_bound,
                           .asleep = from->asleep,
                           .faults = from->faults};
    to->worst_fault =
        (tb_fault){(int32_t)from->fault_kind, from->fault_a, from->fault_b, from->fault_amount};
    if (from->faults > 0) to->flags |= TB_CERTIFICATE_INFEASIBLE;
    switch (from->outcome) {
    case TRIBO__V1__OUTCOME__OUTCOME_OK: to->status = TB_OK; break;
    case TRIBO__V1__OUTCOME__OUTCOME_DIVERGED: to->status = TB_DIVERGED; break;
    default: to->status = TB_NOT_CONVERGED; break;
    }
    if (to->status == TB_NOT_CONVERGED) to->flags |= TB_CERTIFICATE_NOT_CONVERGED;
    if (to->status == TB_DIVERGED) to->flags |= TB_CERTIFICATE_DIVERGED;
    if (from->capacity_grew) to->flags |= TB_CERTIFICATE_OVERFLOW;
    if (from->relaxation_halved) to->flags |= TB_CERTIFICATE_HALVED;
    if (from->degenerate_pair) to->flags |= TB_CERTIFICATE_DEGENERATE;
    snprintf(to->solver, sizeof to->solver, "%s", from->solver);
}

/* The daemon's worlds into the states here. */
static tb_status fetch(remote_session *s, tb_state *const *worlds, tb_error *error)
{
    Tribo__V1__SnapshotRequest request = TRIBO__V1__SNAPSHOT_REQUEST__INIT;
    Tribo__V1__SnapshotResponse *answer = NULL;
    request.session_id = s->id;
    request.transient = true;
    request.want_data = true;
    tb_status status = TBC_CALL(s->client, "tribo.v1.Simulation/Snapshot", &request,
                                snapshot_response, &answer, error);
    if (status != TB_OK) return status;
    if (answer->n_data != (size_t)s->worlds)
        status =
            cli_fail(error, TB_DATA_LOSS, "", 0, NULL, "the daemon sent %zu worlds instead of %d",
                     answer->n_data, (int)s->worlds);
    for (int32_t i = 0; i < s->worlds && status == TB_OK; i++)
        status = tb_state_restore(worlds[i], answer->data[i].data, answer->data[i].len, error);
    tbc_free(answer);
    return status;
}

tb_status remote_session_step(remote_session *s, tb_state *const *worlds, int32_t steps,
                              tb_certificate *certificates, tb_error *error)
{
    int64_t shape[2] = {s->worlds, s->actuators};
    Tribo__V1__Array controls = TRIBO__V1__ARRAY__INIT;
    Tribo__V1__StepRequest request = TRIBO__V1__STEP_REQUEST__INIT;
    Tribo__V1__StepResponse *answer = NULL;
    request.session_id = s->id;
    request.steps = steps;
    if (s->actuators > 0) {
        const size_t row = (size_t)s->actuators;
        for (int32_t i = 0; i < s->worlds; i++)
            memcpy(s->controls + (size_t)i * row, tb_state_controls(worlds[i]),
                   row * sizeof(double));
        controls.dtype = TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64;
        controls.n_shape = 2;
        controls.shape = shape;
        controls.data.len = (size_t)s->worlds * row * sizeof(double);
        controls.data.data = (uint8_t *)s->controls;
        request.controls = &controls;
    }
    tb_status status =
        TBC_CALL(s->client, "tribo.v1.Simulation/Step", &request, step_response, &answer, error);
    if (status != TB_OK) return status;
    if (answer->n_certificates != (size_t)s->worlds)
        status = cli_fail(error, TB_DATA_LOSS, "", 0, NULL,
                          "the daemon sent %zu certificates for %d worlds", answer->n_certificates,
                          (int)s->worlds);
    for (int32_t i = 0; i < s->worlds && status == TB_OK; i++)
        remote_read_certificate(answer->certificates[i], &certificates[i]);
    tbc_free(answer);
    if (status == TB_OK) status = fetch(s, worlds, error);
    for (int32_t i = 0; i < s->worlds && status == TB_OK; i++)
        if (certificates[i].status == TB_DIVERGED)
            status = cli_fail(error, TB_DIVERGED, "", 0, NULL, "world %d diverged in step %lld",
                              (int)i, (long long)certificates[i].step + 1);
    return status;
}
