/* One request to step a session, for Step and StepStream: checked, queued behind the session's
 * jobs, submitted to the device, counted, answered. */
#ifndef SERVER_SESSION_STEP_H
#define SERVER_SESSION_STEP_H

#include "session/session_internal.h"

typedef struct td_step td_step;

struct td_step {
    td_job job;                            /* first; holds its call and its session */
    const Tribo__V1__StepRequest *message; /* inside the request */
    td_wire_want want;
    const uint8_t *mask; /* worlds; inside the request; NULL: all */
    /* with a mask: the worlds that step, in one piece, and their certificates */
    tb_state **chosen;
    tb_certificate *chosen_certificates;
    int64_t booked_ns; /* of the session's open_steps_ns */
    bool booked;
    /* The job is done (or failed: its status, its error) and the session's turn is still the
     * callee's: it answers, then calls td_step_end. On the thread that had the device, or on a worker if the
     * answer is heavy. */
    void (*answer)(td_step *);
    uint64_t tag; /* of a stream's message */
};

/* Reads a request; the step takes over `request`, also on failure. */
td_step *td_step_create(td_call *, td_request *request, const Tribo__V1__StepRequest *,
                        td_session *, void (*answer)(td_step *), tb_error *);
/* Enters the session, if its turn comes soon enough ([limits] queue_wait_seconds): else
 * RESOURCE_EXHAUSTED or DEADLINE_EXCEEDED at once. On failure the step is freed and `answer` is
 * not called. */
tb_status td_step_start(td_step *, double *retry_after, tb_error *);
/* The worlds [first, first + count) of the answer, in `wire`. False if out of memory. */
bool td_step_fill(td_step *, td_wire *wire, int32_t first, int32_t count,
                  Tribo__V1__StepResponse *);
/* About how many bytes the whole answer has. */
uint64_t td_step_bytes(const td_step *);
/* Publishes the new state, gives the turn back and frees the step. */
void td_step_end(td_step *);

#endif
