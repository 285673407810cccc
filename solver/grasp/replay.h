/* Trials of grasps to be looked at: films of chosen trials while a job plays them, and single trials
 * played again. */
#ifndef TB_GRASP_REPLAY_H
#define TB_GRASP_REPLAY_H

#include "tribo.h"

/* ---- films ---- */

/* The trials of a job whose motion is kept. */
typedef struct tb_grasp_film_options {
    const bool *poses; /* number_of_poses: kept whatever their verdict; NULL: none. Copied */
    uint32_t verdicts; /* trials with these verdicts are kept: bits 1 << tb_grasp_verdict */
    int32_t copies;    /* the first ones of each grasp; 0: 1, the unperturbed one */
    double interval;   /* s between two frames; 0: 0.02 */
} tb_grasp_film_options;

/* The motion of one trial: its first state, one every interval, and its last. */
typedef struct tb_grasp_film {
    int32_t copy, frames, bodies;
    const double *times; /* frames; s since the protocol began */
    const float *poses;  /* frames x bodies x 7: position (m), orientation (w x y z), world axes */
} tb_grasp_film;

/* Films the trials from the next one on; to be called before the job's first advance. The films are
 * the same bytes for any budget and any number of threads. INVALID_ARGUMENT: "interval" (also where
 * the films of one grasp would take more than 64 MiB), "copies". */
tb_status tb_grasp_job_film(tb_grasp_job *, const tb_grasp_film_options *, tb_error *);
/* Bytes that all films of the job take at most at one time. */
uint64_t tb_grasp_job_film_bytes(const tb_grasp_job *);
/* Film of a copy of the result that tb_grasp_job_next gave last, valid as long as that result; false:
 * this trial is not kept. */
bool tb_grasp_job_filmed(const tb_grasp_job *, int32_t copy, tb_grasp_film *);

/* ---- one trial again ---- */

/* Called with each shown state of a replay: `time` s since the protocol began, `step` the
 * certificate of the last step. Both are the library's. A status other than OK ends the replay. */
typedef tb_status tb_grasp_show(void *context, tb_state *state, double time,
                                const tb_certificate *step, tb_error *);
/* Plays one trial of a grasp again, as its job played it, and shows its first state, one every
 * `interval` s, and the last. An object that the hand loses is followed to the end of the protocol.
 * The request has one pose; `copy` counts from 0, the copy that is not perturbed. On success the
 * caller owns *model, the world of the unperturbed copies, by whose indices the states go.
 * INVALID_ARGUMENT as tb_grasp_job_create, and for another copy. */
tb_status tb_grasp_replay(const tb_grasp_request *, int32_t copy, double interval, tb_grasp_show *,
                          void *context, tb_model **model, tb_error *);

#endif
