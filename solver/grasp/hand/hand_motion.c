/* Which end of each actuator's range opens the hand: the one that moves the fingertips apart.
 *
 * Every actuator is simulated alone at both ends of its range, the others idle. The joints' ways add
 * up to a good guess of the pose at any combination of ends, because joints that one actuator couples
 * (by a tendon, or by an equality) move in its simulation. The search then chooses the ends s whose
 * spread, the mean distance of the fingertips, exceeds that of the opposite ends the most:
 *
 *     D(s) = spread(q + sum of ways(s)) - spread(q + sum of ways(-s))
 *
 * by changing one actuator after the other as long as D grows. A finger that curls alone moves away
 * from its neighbours, therefore no actuator is judged alone. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "grasp/grasp.h"

/* an actuator that contributes less than this part of D does not close the hand: wrists, spreads */
static const double LEAST_SHARE = 0.05;
enum { ROUNDS = 8 };

typedef struct search {
    const grasp_hand *hand;
    int32_t count, coordinates;
    const double *idle; /* coordinates at rest, all actuators idle */
    const double
        *ways[2]; /* count x coordinates, from there to an actuator's lower and upper end */
    int8_t *ends; /* 0: the lower end opens; 1: the upper end */
    bool *moves;  /* false: idle in both poses */
    double *q;    /* scratch */
    tb_state *state;
    tb_body_motion *motions; /* all bodies */
} search;

/* Spread with every actuator at its opening end, or at the opposite one. */
static tb_status spread_at(search *s, bool open, double *spread, tb_error *error)
{
    memcpy(s->q, s->idle, (size_t)s->coordinates * sizeof *s->q);
    for (int32_t i = 0; i < s->count; i++) {
        const double *way =
            s->ways[s->ends[i] == (open ? 1 : 0)] + (size_t)i * (size_t)s->coordinates;
        for (int32_t k = 0; k < s->coordinates && s->moves[i]; k++) s->q[k] += way[k];
    }
    const tb_status status = grasp_hand_motions(s->hand, s->state, s->q, s->motions, error);
    if (status == TB_OK) *spread = grasp_hand_spread(s->hand, s->motions);
    return status;
}

static tb_status difference(search *s, double *d, tb_error *error)
{
    double open = 0, closed = 0;
    tb_status status = spread_at(s, true, &open, error);
    if (status == TB_OK) status = spread_at(s, false, &closed, error);
    *d = open - closed;
    return status;
}

/* Changes ends one after the other while the difference grows. */
static tb_status climb(search *s, double *best, tb_error *error)
{
    tb_status status = difference(s, best, error);
    bool better = true;
    if (status == TB_OK && *best < 0) { /* exactly the other way round */
        for (int32_t i = 0; i < s->count; i++) s->ends[i] = !s->ends[i];
        *best = -*best;
    }
    for (int round = 0; round < ROUNDS && better && status == TB_OK; round++) {
        better = false;
        for (int32_t i = 0; i < s->count && status == TB_OK; i++) {
            double d;
            s->ends[i] = !s->ends[i];
            status = difference(s, &d, error);
            if (status == TB_OK && d > *best * (1 + 1e-9) + 1e-9) {
                *best = d;
                better = true;
            } else {
                s->ends[i] = !s->ends[i];
            }
        }
    }
    return status;
}

/* Finds the actuators that contribute. */
static tb_status choose(search *s, double best, bool *closes, tb_error *error)
{
    tb_status status = TB_OK;
    for (int32_t i = 0; i < s->count && status == TB_OK; i++) {
        double without;
        s->moves[i] = false;
        status = difference(s, &without, error);
        s->moves[i] = true;
        closes[i] = best - without > LEAST_SHARE * best;
    }
    return status;
}

/* Simulates every actuator at both ends. */
static tb_status find_ways(const tb_grasp_plan *plan, const grasp_motion *motion,
                           const double *start, const double *idle, double *ways[2],
                           double *controls, tb_error *error)
{
    const size_t n = (size_t)plan->hand_coordinates;
    tb_status status = TB_OK;
    for (int32_t i = 0; i < motion->count && status == TB_OK; i++)
        for (int end = 0; end < 2 && status == TB_OK; end++) {
            const int32_t actuator = motion->actuators[i];
            double *way = ways[end] + (size_t)i * n;
            const double kept = controls[actuator];
            controls[actuator] = end == 0 ? motion->lower[i] : motion->upper[i];
            status = grasp_hand_rest(plan, motion->hand, start, controls, way, NULL, error);
            controls[actuator] = kept;
            for (size_t k = 0; k < n; k++) way[k] -= idle[k];
        }
    return status;
}

tb_status grasp_motion_find(const tb_grasp_plan *plan, const grasp_motion *motion,
                            const double *start, tb_error *error)
{
    const tb_model *m = motion->hand->bare;
    const size_t n = (size_t)plan->hand_coordinates, count = (size_t)motion->count;
    const size_t actuators = (size_t)m->number_of_actuators;
    double *numbers = calloc(2 * n + 2 * count * n + actuators + 1, sizeof *numbers), best = 0;
    double *idle = numbers, *q = idle + n;
    double *ways[2] = {q + n, q + n + count * n}, *controls = ways[1] + count * n;
    search s = {.hand = motion->hand,
                .count = motion->count,
                .coordinates = plan->hand_coordinates,
                .idle = idle,
                .ways = {ways[0], ways[1]},
                .q = q};
    s.ends = calloc(count + 1, sizeof *s.ends);
    s.moves = calloc(count + 1, sizeof *s.moves);
    s.motions = calloc((size_t)m->number_of_bodies, sizeof *s.motions);
    tb_status status = TB_OK;
    if (numbers == NULL || s.ends == NULL || s.moves == NULL || s.motions == NULL)
        status = tb_fail_memory(error, 0, "a hand's motion");
    if (status == TB_OK) {
        memcpy(controls, plan->controls, actuators * sizeof *controls);
        for (size_t i = 0; i < count; i++) s.moves[i] = true;
        status = tb_state_create(m, &s.state, error);
    }
    if (status == TB_OK)
        status = grasp_hand_rest(plan, motion->hand, start, controls, idle, NULL, error);
    if (status == TB_OK) status = find_ways(plan, motion, start, idle, ways, controls, error);
    if (status == TB_OK) status = climb(&s, &best, error);
    if (status == TB_OK && best > 0) status = choose(&s, best, motion->closes, error);
    for (size_t i = 0; i < count && status == TB_OK; i++) {
        motion->open[i] = s.ends[i] ? motion->upper[i] : motion->lower[i];
        motion->close[i] = s.ends[i] ? motion->lower[i] : motion->upper[i];
        if (!(best > 0)) motion->closes[i] = true; /* nothing to go by */
    }
    tb_state_destroy(s.state);
    free(numbers);
    free(s.ends);
    free(s.moves);
    free(s.motions);
    return status;
}
