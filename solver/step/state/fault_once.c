/* Faults in words: which gap of a world cannot be closed, by the names of the model. */
#include <stdio.h>

#include "step/step.h"

/* The thing's name, or its kind and number as the command line counts them. */
static const char *name_of(const tb_model *m, tb_handle_kind kind, const char *what, int32_t index,
                           char text[64])
{
    const char *name = tb_model_thing_name(m, kind, index);
    if (name[0] != '\0') return name;
    snprintf(text, 64, "%s%d", what, (int)index + (kind != TB_HANDLE_BODY));
    return text;
}

static const char *body_of_shape(const tb_model *m, int32_t shape, char text[64])
{
    if (shape < 0 || shape >= m->number_of_shapes) return "?";
    const int32_t body = m->shapes[shape].body;
    return body == 0 ? "world" : name_of(m, TB_HANDLE_BODY, "body", body, text);
}

/* "0.52 mm", "0.52 rad" */
static const char *amount_of(double amount, bool angle, char text[32])
{
    if (angle)
        snprintf(text, 32, "%.3g rad", amount);
    else
        snprintf(text, 32, "%.3g mm", 1000 * amount);
    return text;
}

static bool joint_turns(const tb_model *m, int32_t joint)
{
    return joint >= 0 && joint < m->number_of_joints && m->joints[joint].type != TB_JOINT_SLIDE;
}

void tb_fault_describe(const tb_model *model, const tb_fault *fault, char *text, size_t size)
{
    const tb_model *m = model;
    char a[64], b[64], amount[32];
    switch (fault->kind) {
    case TB_FAULT_OVERLAP:
        snprintf(text, size, "'%.60s' and '%.60s' overlap by %s and nothing can part them",
                 body_of_shape(m, fault->a, a), body_of_shape(m, fault->b, b),
                 amount_of(fault->amount, false, amount));
        break;
    case TB_FAULT_JOINT_LIMIT:
        snprintf(text, size,
                 "joint '%.60s' is beyond its limit by %s and nothing can bring it back",
                 name_of(m, TB_HANDLE_JOINT, "joint", fault->a, a),
                 amount_of(fault->amount, joint_turns(m, fault->a), amount));
        break;
    case TB_FAULT_TENDON_LIMIT:
        snprintf(text, size,
                 "tendon '%.60s' is beyond its limit by %.3g and nothing can bring it back",
                 name_of(m, TB_HANDLE_TENDON, "tendon", fault->a, a), fault->amount);
        break;
    case TB_FAULT_EQUALITY:
        snprintf(text, size, "equality '%.60s' is open by %.3g (m or rad) and nothing can close it",
                 name_of(m, TB_HANDLE_EQUALITY, "equality", fault->a, a), fault->amount);
        break;
    default: snprintf(text, size, "all gaps can be closed"); break;
    }
}
