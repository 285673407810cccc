/* Defaults, and checking a request before anything is compiled. Errors name fields in the
 * caller's notation: "poses[3].position". */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "grasp/grasp.h"

enum {
    MOST_ITERATIONS = 50000,
    COPIES_LIMIT = 1000000,
    POSES_LIMIT = 10000000,
    SHAKES_LIMIT = 1000
};

tb_grasp_request tb_grasp_defaults(void)
{
    tb_grasp_request r = {0};
    r.object.orientation[0] = 1;
    r.hand.tool_orientation[0] = 1;
    r.protocol.gravity[2] = -9.81;
    r.protocol.approach[2] = 1;
    r.protocol.approach_speed = 0.25;
    r.protocol.lift = 0.1;
    r.protocol.lift_seconds = 0.4;
    r.protocol.hold_seconds = 0.5;
    r.protocol.slip_limit = 0.005;
    r.perturbation.count = 1;
    r.step = tb_step_defaults();
    /* a step above the tolerance costs the trial its verdict, a thousand more sweeps cost nothing */
    r.step.solve.maximum_iterations = MOST_ITERATIONS;
    r.step.threads = 0;
    r.confidence = 0.95;
    return r;
}

tb_grasp_pose tb_grasp_pose_defaults(void)
{
    tb_grasp_pose pose = {0};
    pose.orientation[0] = 1;
    return pose;
}

tb_grasp_shake tb_grasp_shake_defaults(void)
{
    tb_grasp_shake shake = {0};
    shake.axis[2] = 1;
    shake.amplitude = 0.01;
    shake.frequency = 2;
    shake.seconds = 0.5;
    return shake;
}

const char *tb_grasp_verdict_name(tb_grasp_verdict verdict)
{
    static const char *const NAMES[] = {"held",     "slipped",  "dropped",
                                        "collided", "diverged", "uncertified"};
    return (unsigned)verdict < sizeof NAMES / sizeof NAMES[0] ? NAMES[verdict] : "unknown";
}

/* ---- one number, one vector ---- */

/* lower <= x <= upper; NaN fails */
static tb_status number(double x, double lower, double upper, const char *field, const char *unit,
                        tb_error *error)
{
    if (x >= lower && x <= upper) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, field, "%s is %g%s, expected %g to %g", field,
                         x, unit, lower, upper);
}

static tb_status vector(const double *x, int count, const char *field, tb_error *error)
{
    for (int i = 0; i < count; i++)
        if (!(fabs(x[i]) <= 1e6))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, field,
                                 "%s has %g, which is not finite or too large", field, x[i]);
    return TB_OK;
}

/* A direction or a quaternion: not zero. */
static tb_status direction(const double *x, int count, const char *field, tb_error *error)
{
    tb_status status = vector(x, count, field, error);
    double length2 = 0;
    for (int i = 0; i < count; i++) length2 += x[i] * x[i];
    if (status == TB_OK && !(length2 > 1e-20))
        status = tb_fail_field(error, TB_INVALID_ARGUMENT, field, "%s is zero", field);
    return status;
}

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const tb_status try_status = (call);                                                       \
        if (try_status != TB_OK) return try_status;                                                \
    } while (0)

/* ---- parts ---- */

static tb_status check_object(const tb_grasp_object *o, tb_error *error)
{
    if (o->scene == NULL)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "object.scene", "there is no object");
    TRY(number(o->mass, 0, 1e9, "object.mass", " kg", error));
    TRY(number(o->friction, 0, 1e3, "object.friction", "", error));
    TRY(number(o->own_friction, 0, 1e3, "object.own_friction", "", error));
    TRY(number(o->own_spin, 0, 1e3, "object.own_spin", " m", error));
    TRY(vector(o->position, 3, "object.position", error));
    return direction(o->orientation, 4, "object.orientation", error);
}

tb_status grasp_check_hand(const tb_grasp_hand *h, tb_error *error)
{
    if (h->scene == NULL)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "hand.scene", "there is no hand");
    if (h->number_of_closing < 0 || (h->number_of_closing > 0 && h->closing == NULL))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "hand.closing", "%d names",
                             (int)h->number_of_closing);
    if (h->number_of_closing == 0 && (h->open_controls != NULL || h->close_controls != NULL))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "hand.closing",
                             "controls are given, but not of which actuators");
    const double *controls[2] = {h->open_controls, h->close_controls};
    const char *const names[2] = {"hand.open_controls", "hand.close_controls"};
    for (int i = 0; i < 2; i++)
        if (controls[i] != NULL) TRY(vector(controls[i], h->number_of_closing, names[i], error));
    TRY(vector(h->tool_position, 3, "hand.tool.position", error));
    return direction(h->tool_orientation, 4, "hand.tool.orientation", error);
}

static tb_status check_shakes(const tb_grasp_protocol *p, tb_error *error)
{
    char field[64];
    TRY(number(p->number_of_shakes, 0, SHAKES_LIMIT, "protocol.number_of_shakes", "", error));
    for (int32_t i = 0; i < p->number_of_shakes; i++) {
        const tb_grasp_shake *s = &p->shakes[i];
        snprintf(field, sizeof field, "protocol.shakes[%d].axis", (int)i);
        TRY(direction(s->axis, 3, field, error));
        snprintf(field, sizeof field, "protocol.shakes[%d].amplitude", (int)i);
        TRY(number(s->amplitude, -10, 10, field, " m", error));
        snprintf(field, sizeof field, "protocol.shakes[%d].angle", (int)i);
        TRY(number(s->angle, -3.2, 3.2, field, " rad", error));
        snprintf(field, sizeof field, "protocol.shakes[%d].frequency", (int)i);
        TRY(number(s->frequency, 0, 1e3, field, " Hz", error));
        snprintf(field, sizeof field, "protocol.shakes[%d].seconds", (int)i);
        TRY(number(s->seconds, 0, 1e4, field, " s", error));
    }
    return TB_OK;
}

static tb_status check_protocol(const tb_grasp_protocol *p, tb_error *error)
{
    TRY(vector(p->gravity, 3, "protocol.gravity", error));
    TRY(direction(p->approach, 3, "protocol.approach", error));
    TRY(number(p->approach_distance, 0, 100, "protocol.approach_distance", " m", error));
    TRY(number(p->approach_speed, 1e-6, 1e3, "protocol.approach_speed", " m/s", error));
    TRY(number(p->close_seconds, 0, 1e4, "protocol.close_seconds", " s", error));
    TRY(number(p->force, 0, 1e9, "protocol.force", " N", error));
    TRY(number(p->width, 0, 1e3, "protocol.width", " m", error));
    TRY(number(p->lift, 0, 100, "protocol.lift", " m", error));
    TRY(number(p->lift_seconds, p->lift > 0 ? 1e-6 : 0, 1e4, "protocol.lift_seconds", " s", error));
    TRY(number(p->hold_seconds, 0, 1e4, "protocol.hold_seconds", " s", error));
    TRY(number(p->slip_limit, 0, 1e3, "protocol.slip_limit", " m", error));
    return check_shakes(p, error);
}

static tb_status check_perturbation(const tb_grasp_perturbation *p, tb_error *error)
{
    TRY(number(p->count, 1, COPIES_LIMIT, "perturbation.count", "", error));
    TRY(number(p->position, 0, 10, "perturbation.position", " m", error));
    TRY(number(p->angle, 0, 10, "perturbation.angle", " rad", error));
    TRY(number(p->friction, 0, 10, "perturbation.friction", "", error));
    return number(p->mass, 0, 10, "perturbation.mass", "", error);
}

static tb_status check_poses(const tb_grasp_request *r, tb_error *error)
{
    char field[64];
    if (r->number_of_poses < 1 || r->poses == NULL)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "poses", "there are no poses");
    TRY(number(r->number_of_poses, 1, POSES_LIMIT, "poses", "", error));
    for (int32_t i = 0; i < r->number_of_poses; i++) {
        const tb_grasp_pose *pose = &r->poses[i];
        snprintf(field, sizeof field, "poses[%d].position", (int)i);
        TRY(vector(pose->position, 3, field, error));
        snprintf(field, sizeof field, "poses[%d].orientation", (int)i);
        TRY(direction(pose->orientation, 4, field, error));
        snprintf(field, sizeof field, "poses[%d].force", (int)i);
        TRY(number(pose->force, 0, 1e9, field, " N", error));
    }
    return TB_OK;
}

tb_status grasp_check(const tb_grasp_request *r, tb_error *error)
{
    TRY(check_object(&r->object, error));
    TRY(grasp_check_hand(&r->hand, error));
    TRY(check_poses(r, error));
    TRY(check_protocol(&r->protocol, error));
    TRY(check_perturbation(&r->perturbation, error));
    if (!(r->confidence > 0 && r->confidence < 1))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "confidence",
                             "confidence is %g, not between 0 and 1", r->confidence);
    return TB_OK;
}
