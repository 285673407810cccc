/* Closing to a width: limits the two fingers of a parallel jaw so that their facing surfaces
 * stop at this distance. */
#include <stdlib.h>

#include "base/error.h"
#include "grasp/grasp.h"

/* axes count as opposed up to this cosine */
static const double OPPOSED = 0.999;

typedef struct slides {
    int32_t joints[2];
    int32_t count; /* may be more than two */
} slides;

static void add_slide(const tb_model *m, slides *s, int32_t joint)
{
    if (joint < 0 || m->joints[joint].type != TB_JOINT_SLIDE) return;
    for (int32_t i = 0; i < s->count && i < 2; i++)
        if (s->joints[i] == joint) return;
    if (s->count < 2) s->joints[s->count] = joint;
    s->count++;
}

/* Joint of a dof. */
static int32_t joint_of(const tb_model *m, int32_t dof)
{
    return m->dofs[dof].joint;
}

/* Slides that the closing actuators move: directly, through tendons, and through equalities. */
static slides find_slides(const tb_grasp_plan *plan, const tb_model *m)
{
    slides s = {.count = 0};
    for (int32_t i = 0; i < plan->number_of_closing; i++) {
        const tb_model_actuator *a = &m->actuators[plan->closing[i]];
        add_slide(m, &s, a->joint);
        if (a->tendon < 0) continue;
        const tb_model_tendon *tendon = &m->tendons[a->tendon];
        for (int32_t k = 0; k < tendon->count; k++)
            add_slide(m, &s, joint_of(m, m->tendon_dofs[tendon->first + k]));
    }
    for (int32_t i = 0; i < m->number_of_equalities; i++) {
        const tb_model_equality *e = &m->equalities[i];
        if (e->type != TB_EQUALITY_JOINT || e->b < 0 || e->disabled) continue;
        for (int32_t k = 0; k < s.count && k < 2; k++) {
            if (e->a == s.joints[k]) add_slide(m, &s, e->b);
            if (e->b == s.joints[k]) add_slide(m, &s, e->a);
        }
    }
    return s;
}

static bool hangs_on(const tb_model *m, int32_t body, int32_t on)
{
    while (body > on) body = m->bodies[body].parent;
    return body == on;
}

/* Largest extent of the shapes of a body and its children along n, m. */
static double reach_along(const tb_model *m, const tb_body_motion *motions, int32_t body, tb_vec3 n)
{
    double largest = -INFINITY;
    for (int32_t s = 0; s < m->number_of_shapes; s++) {
        const int32_t own = m->shapes[s].body;
        if (!hangs_on(m, own, body)) continue;
        const grasp_frame frame = grasp_frame_of(&motions[own]);
        largest = fmax(largest, grasp_support(m, s, &frame, n));
    }
    return largest;
}

static tb_status no_jaw(tb_error *error)
{
    return tb_fail_field(error, TB_UNSUPPORTED, "protocol.width",
                         "a width is for hands whose closing actuators move two opposed sliding "
                         "fingers");
}

tb_status grasp_hand_stop(const tb_grasp_plan *plan, grasp_hand *hand, double width,
                          tb_error *error)
{
    const tb_model *m = hand->bare;
    const slides s = find_slides(plan, m);
    if (s.count != 2) return no_jaw(error);
    tb_state *state = NULL;
    tb_body_motion *motions = calloc((size_t)m->number_of_bodies, sizeof *motions);
    tb_status status = motions == NULL ? tb_fail_memory(error, 0, "a hand") : TB_OK;
    if (status == TB_OK) status = tb_state_create(m, &state, error);
    if (status == TB_OK)
        status = tb_state_set_q(state, plan->open_q, m->number_of_coordinates, error);
    if (status == TB_OK) status = tb_state_body_motions(state, motions);
    tb_state_destroy(state);
    if (status != TB_OK) goto done;

    const tb_model_joint *joints[2] = {&m->joints[s.joints[0]], &m->joints[s.joints[1]]};
    tb_vec3 axis[2], centre[2];
    for (int i = 0; i < 2; i++) {
        const tb_body_motion *at = &motions[joints[i]->body];
        axis[i] = tb_q_rotate(tb_q_load(at->orientation), tb_v3_load(joints[i]->axis));
        centre[i] = tb_v3_load(at->com);
    }
    if (!(fabs(tb_v3_dot(axis[0], axis[1])) > OPPOSED)) {
        status = no_jaw(error);
        goto done;
    }
    /* from the first finger towards the second */
    tb_vec3 way = axis[0];
    if (tb_v3_dot(way, tb_v3_sub(centre[1], centre[0])) < 0) way = tb_v3_negate(way);
    const double face = reach_along(m, motions, joints[0]->body, way);
    const double other = -reach_along(m, motions, joints[1]->body, tb_v3_negate(way));
    const double travel = (other - face - width) / 2;
    if (!(travel >= 0)) {
        status = tb_fail_field(error, TB_INVALID_ARGUMENT, "protocol.width",
                               "protocol.width is %g m, but the open hand is %g m wide", width,
                               other - face);
        goto done;
    }
    for (int i = 0; i < 2; i++) {
        const tb_vec3 inwards = i == 0 ? way : tb_v3_negate(way);
        const double q = plan->open_q[joints[i]->coordinate];
        const bool up = tb_v3_dot(axis[i], inwards) > 0;
        const double lower = joints[i]->limited ? joints[i]->lower : -1e3;
        const double upper = joints[i]->limited ? joints[i]->upper : 1e3;
        const int32_t first = m->bodies[joints[i]->body].joint;
        hand->stop_bodies[i] = joints[i]->body;
        hand->stop_slides[i] = 0;
        for (int32_t j = first; j < s.joints[i]; j++)
            if (m->joints[j].type == TB_JOINT_SLIDE) hand->stop_slides[i]++;
        hand->stop_lower[i] = up ? fmin(lower, q) : fmax(lower, q - travel);
        hand->stop_upper[i] = up ? fmin(upper, q + travel) : fmax(upper, q);
    }
    hand->number_of_stops = 2;
done:
    free(motions);
    return status;
}
