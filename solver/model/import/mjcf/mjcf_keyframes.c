/* MJCF keyframes. Vectors may be shorter than the model's: the rest is as described. */
#include <stdlib.h>
#include <string.h>

#include "model/import/mjcf/mjcf.h"
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

/* Vectors of a keyframe and their lengths. */
typedef struct key_memory {
    double *q, *u, *controls, *activations, *positions, *orientations, *kinematic;
    int32_t number_of_q, number_of_u, number_of_activations;
    int32_t
        number_of_pasts; /* past controls, which are activations of the model but not MuJoCo's */
} key_memory;

/* Poses of kinematic bodies, from the positions and orientations of a keyframe. */
static void join_poses(const mjcf *m, const key_memory *key)
{
    for (int32_t i = 0; i < m->number_of_mocaps; i++) {
        memcpy(key->kinematic + 7 * i, key->positions + 3 * i, 3 * sizeof(double));
        memcpy(key->kinematic + 7 * i + 3, key->orientations + 4 * i, 4 * sizeof(double));
    }
}

/* Everything as described. */
static void reset(const mjcf *m, const key_memory *key)
{
    write_reference(m, key->q);
    memset(key->u, 0, (size_t)key->number_of_u * sizeof(double));
    memset(key->controls, 0, (size_t)m->number_of_actuators * sizeof(double));
    memset(key->activations, 0,
           (size_t)(key->number_of_activations + key->number_of_pasts) * sizeof(double));
    for (int32_t i = 0; i < m->number_of_mocaps; i++) {
        memcpy(key->positions + 3 * i, m->mocaps[i].pose, 3 * sizeof(double));
        memcpy(key->orientations + 4 * i, m->mocaps[i].pose + 3, 4 * sizeof(double));
    }
}

/* Activations that MuJoCo has, too: without past controls. */
static int32_t activations_of(const tb_actuator_def *def)
{
    if (def->is_input) return 0;
    return (def->slew_rate > 0) + (def->integral_gain != 0) +
           (def->activation != TB_ACTIVATION_NONE);
}

/* The plugin's activations are integral and followed setpoint, the model's the other way round. */
static void sort_activations(const mjcf *m, const key_memory *key)
{
    double *act = key->activations;
    for (int32_t i = 0; i < m->number_of_actuators; i++) {
        if (m->actuators[i].integral_first) {
            const double integral = act[0];
            act[0] = act[1];
            act[1] = integral;
        }
        act += activations_of(&m->actuators[i].def);
    }
}

static tb_status read_key(mjcf *m, const xmlNode *node, const key_memory *key)
{
    tb_keyframe_def def = tb_keyframe_defaults();
    tb_error refusal = {0};
    bool q = false, u = false, controls = false, activations = false, places = false, turns = false;
    const int32_t mocaps = m->number_of_mocaps, actuators = m->number_of_actuators;
    MJCF_TRY(mjcf_check_attributes(m, node, &KEY));
    MJCF_TRY(tb_xml_check_children(node, "", m->error));
    MJCF_TRY(tb_xml_number(node, "time", &def.time, m->error));
    reset(m, key);
    MJCF_TRY(read_vector(m, node, "qpos", key->number_of_q, key->q, &q));
    MJCF_TRY(read_vector(m, node, "qvel", key->number_of_u, key->u, &u));
    MJCF_TRY(read_vector(m, node, "ctrl", actuators, key->controls, &controls));
    MJCF_TRY(
        read_vector(m, node, "act", key->number_of_activations, key->activations, &activations));
    MJCF_TRY(read_vector(m, node, "mpos", 3 * mocaps, key->positions, &places));
    MJCF_TRY(read_vector(m, node, "mquat", 4 * mocaps, key->orientations, &turns));
    join_poses(m, key);
    sort_activations(m, key);
    def.name = tb_xml_attribute(node, "name");
    if (q) def.q = key->q, def.number_of_q = key->number_of_q;
    if (u) def.u = key->u, def.number_of_u = key->number_of_u;
    if (controls) def.controls = key->controls, def.number_of_controls = actuators;
    if (activations)
        def.activations = key->activations,
        def.number_of_activations = key->number_of_activations + key->number_of_pasts;
    if (places || turns) def.kinematic = key->kinematic, def.number_of_kinematic = 7 * mocaps;
    if (tb_scene_add_keyframe(m->scene, &def, NULL, &refusal) != TB_OK)
        return mjcf_refused(m, node, &refusal);
    return TB_OK;
}

/* Counts the numbers of a keyframe and takes memory for them, which *memory owns. */
static tb_status take_memory(mjcf *m, key_memory *key, double **memory)
{
    for (int32_t i = 0; i < m->number_of_joints; i++) {
        key->number_of_q += tb_joint_coordinates(m->joints[i].def.type);
        key->number_of_u += tb_joint_dofs(m->joints[i].def.type);
    }
    for (int32_t i = 0; i < m->number_of_actuators; i++)
        key->number_of_activations += activations_of(&m->actuators[i].def);
    for (int32_t i = 0; i < m->number_of_actuators; i++)
        key->number_of_pasts += 2 * m->actuators[i].def.samples;
    const size_t total = (size_t)key->number_of_q + (size_t)key->number_of_u +
                         (size_t)m->number_of_actuators + (size_t)key->number_of_activations +
                         (size_t)key->number_of_pasts + 14 * (size_t)m->number_of_mocaps;
    *memory = calloc(total + 1, sizeof **memory);
    if (*memory == NULL) return tb_fail_memory(m->error, total, "a keyframe");
    key->q = *memory;
    key->u = key->q + key->number_of_q;
    key->controls = key->u + key->number_of_u;
    key->activations = key->controls + m->number_of_actuators;
    key->positions = key->activations + key->number_of_activations + key->number_of_pasts;
    key->orientations = key->positions + 3 * m->number_of_mocaps;
    key->kinematic = key->orientations + 4 * m->number_of_mocaps;
    return TB_OK;
}

tb_status mjcf_read_keyframes(mjcf *m)
{
    key_memory key = {0};
    double *memory = NULL;
    MJCF_TRY(take_memory(m, &key, &memory));
    tb_status status = TB_OK;
    const xmlNode *root = tb_xml_root(m->xml);
    for (const xmlNode *s = tb_xml_first_named(root, "keyframe"); s != NULL && status == TB_OK;
         s = tb_xml_next_named(s, "keyframe"))
        for (const xmlNode *c = tb_xml_first(s); c != NULL && status == TB_OK; c = tb_xml_next(c)) {
            if (!tb_xml_is(c, "key"))
                status = tb_xml_fail(m->error, TB_INVALID_ARGUMENT, c, NULL,
                                     "unknown element in 'keyframe'");
            else
                status = read_key(m, c, &key);
        }
    free(memory);
    return status;
}
