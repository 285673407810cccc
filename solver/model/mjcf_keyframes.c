/* MJCF keyframes. Vectors may be shorter than the model's: the rest is as described. */
#include <stdlib.h>
#include <string.h>

#include "model/mjcf.h"
#include "model/model.h"

static const mjcf_words KEY = {
    .used = "name time qpos qvel ctrl act mpos mquat",
    .zero = "plastic",
};

/* Coordinates in the described pose, in the order of the joints. */
static void write_reference(const mjcf *m, double *q)
{
    for (int32_t i = 0; i < m->number_of_joints; i++) {
        const mjcf_joint *joint = &m->joints[i];
        if (joint->def.type == TB_JOINT_FREE) {
            memcpy(q, joint->reference_pose, sizeof joint->reference_pose);
        } else if (joint->def.type == TB_JOINT_BALL) {
            q[0] = 1;
            q[1] = q[2] = q[3] = 0;
        } else {
            q[0] = joint->def.reference;
        }
        q += tb_joint_coordinates(joint->def.type);
    }
}

/* Reads a vector of at most `count` numbers over the front of `values`;
 * *given is false if it is absent. */
static tb_status read_vector(mjcf *m, const xmlNode *node, const char *name, int32_t count,
                             double *values, bool *given)
{
    double *list = NULL;
    int32_t n = 0;
    MJCF_TRY(tb_xml_number_list(node, name, &list, &n, m->error));
    *given = list != NULL;
    if (n > count) {
        free(list);
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, name,
                           "%s has %d numbers, more than the model's %d", name, (int)n, (int)count);
    }
    if (n > 0) memcpy(values, list, (size_t)n * sizeof *values);
    free(list);
    return TB_OK;
}

/* Activations and poses of kinematic bodies are not part of a keyframe here. */
static tb_status note_unread(mjcf *m, const xmlNode *node)
{
    static const char *const NAMES[] = {"act", "mpos", "mquat"};
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        double *list = NULL;
        int32_t count = 0;
        MJCF_TRY(tb_xml_number_list(node, NAMES[i], &list, &count, m->error));
        free(list);
        if (count > 0)
            MJCF_TRY(mjcf_note_past(m, node, NAMES[i],
                                    "is not part of a keyframe here: set it after the reset"));
    }
    return TB_OK;
}

static tb_status read_key(mjcf *m, const xmlNode *node, double *q, double *u, double *controls,
                          int32_t number_of_q, int32_t number_of_u)
{
    tb_keyframe_def def = tb_keyframe_defaults();
    tb_error refusal = {0};
    bool given_q = false, given_u = false, given_controls = false;
    MJCF_TRY(mjcf_check_attributes(m, node, &KEY));
    MJCF_TRY(tb_xml_check_children(node, "", m->error));
    MJCF_TRY(tb_xml_number(node, "time", &def.time, m->error));
    write_reference(m, q);
    memset(u, 0, (size_t)number_of_u * sizeof *u);
    memset(controls, 0, (size_t)m->number_of_actuators * sizeof *controls);
    MJCF_TRY(read_vector(m, node, "qpos", number_of_q, q, &given_q));
    MJCF_TRY(read_vector(m, node, "qvel", number_of_u, u, &given_u));
    MJCF_TRY(read_vector(m, node, "ctrl", m->number_of_actuators, controls, &given_controls));
    MJCF_TRY(note_unread(m, node));
    def.name = tb_xml_attribute(node, "name");
    if (given_q) def.q = q, def.number_of_q = number_of_q;
    if (given_u) def.u = u, def.number_of_u = number_of_u;
    if (given_controls) def.controls = controls, def.number_of_controls = m->number_of_actuators;
    if (tb_scene_add_keyframe(m->scene, &def, NULL, &refusal) != TB_OK)
        return mjcf_refused(m, node, &refusal);
    return TB_OK;
}

tb_status mjcf_read_keyframes(mjcf *m)
{
    int32_t number_of_q = 0, number_of_u = 0;
    for (int32_t i = 0; i < m->number_of_joints; i++) {
        number_of_q += tb_joint_coordinates(m->joints[i].def.type);
        number_of_u += tb_joint_dofs(m->joints[i].def.type);
    }
    const size_t total = (size_t)number_of_q + (size_t)number_of_u + (size_t)m->number_of_actuators;
    double *memory = calloc(total + 1, sizeof *memory);
    if (memory == NULL) return tb_fail_memory(m->error, total, "a keyframe");
    double *u = memory + number_of_q, *controls = u + number_of_u;
    tb_status status = TB_OK;
    const xmlNode *root = tb_xml_root(m->xml);
    for (const xmlNode *s = tb_xml_first_named(root, "keyframe"); s != NULL && status == TB_OK;
         s = tb_xml_next_named(s, "keyframe"))
        for (const xmlNode *c = tb_xml_first(s); c != NULL && status == TB_OK; c = tb_xml_next(c)) {
            if (!tb_xml_is(c, "key"))
                status = tb_xml_fail(m->error, TB_INVALID_ARGUMENT, c, NULL,
                                     "unknown element in 'keyframe'");
            else
                status = read_key(m, c, memory, u, controls, number_of_q, number_of_u);
        }
    free(memory);
    return status;
}
