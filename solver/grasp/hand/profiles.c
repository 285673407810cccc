/* Profiles of known hands: their tool frames and closing controls.
 *
 * A profile finds its hand by the names of joints, which several sources share behind a prefix of
 * their own ("robot0:FFJ2", "rh_FFJ3"), so files of menagerie, robosuite and gymnasium-robotics
 * need no configuration. The tool frame of every profile has its closing axis along y and its
 * approach along z, in the middle between the fingertips. It is described in the frame of a body
 * near the fingers, because the files of one hand begin at different flanges. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "grasp/hand/profiles.h"

static const grasp_posture SHADOW[] = {{"FFJ3", 0.3, 1.1}, {"MFJ3", 0.3, 1.1}, {"RFJ3", 0.3, 1.1},
                                       {"LFJ3", 0.3, 1.1}, {"FFJ2", 0.3, 0.9}, {"MFJ2", 0.3, 0.9},
                                       {"RFJ2", 0.3, 0.9}, {"LFJ2", 0.3, 0.9}, {"FFJ1", 0.2, 0.6},
                                       {"MFJ1", 0.2, 0.6}, {"RFJ1", 0.2, 0.6}, {"LFJ1", 0.2, 0.6},
                                       {"THJ5", 0.2, 0.2}, {"THJ4", 1.2, 1.2}, {"THJ2", 0, 0.5},
                                       {"THJ1", 0, 0.8},   {NULL, 0, 0}};
/* joints counted from the tip, from 0 */
static const grasp_posture SHADOW_FROM_0[] = {
    {"FFJ2", 0.3, 1.1}, {"MFJ2", 0.3, 1.1}, {"RFJ2", 0.3, 1.1}, {"LFJ2", 0.3, 1.1},
    {"FFJ1", 0.3, 0.9}, {"MFJ1", 0.3, 0.9}, {"RFJ1", 0.3, 0.9}, {"LFJ1", 0.3, 0.9},
    {"THJ4", 0.2, 0.2}, {"THJ3", 1.2, 1.2}, {"THJ1", 0, -0.5},  {"THJ0", 0, -0.8},
    {NULL, 0, 0}};
static const grasp_posture ALLEGRO[] = {{"ffj1", 0.4, 1.2}, {"mfj1", 0.4, 1.2}, {"rfj1", 0.4, 1.2},
                                        {"ffj2", 0.4, 1.1}, {"mfj2", 0.4, 1.1}, {"rfj2", 0.4, 1.1},
                                        {"ffj3", 0.4, 0.8}, {"mfj3", 0.4, 0.8}, {"rfj3", 0.4, 0.8},
                                        {"thj0", 1.3, 1.3}, {"thj1", 0.3, 0.6}, {"thj2", 0.2, 0.8},
                                        {"thj3", 0.3, 0.9}, {NULL, 0, 0}};
static const grasp_posture LEAP[] = {
    {"if_mcp", 0.4, 1.3}, {"mf_mcp", 0.4, 1.3}, {"rf_mcp", 0.4, 1.3}, {"if_pip", 0.4, 1.0},
    {"mf_pip", 0.4, 1.0}, {"rf_pip", 0.4, 1.0}, {"if_dip", 0.3, 0.7}, {"mf_dip", 0.3, 0.7},
    {"rf_dip", 0.3, 0.7}, {"th_cmc", 1.2, 1.2}, {"th_axl", 0.5, 0.5}, {"th_mcp", 0, 0.6},
    {"th_ipl", 0.2, 0.9}, {NULL, 0, 0}};

static const grasp_profile PROFILES[] = {
    {.name = "panda",
     .title = "Franka Emika Panda hand",
     .joints = {"finger_joint1", "finger_joint2"},
     .anchor = "finger_joint1",
     .own_body = true,
     .position = {0, 0, 0.045},
     .axis = {0, 1, 0},
     .approach = {0, 0, 1}},
    /* the fourth version of menagerie closes along x */
    {.name = "robotiq_2f85",
     .title = "Robotiq 2F-85",
     .joints = {"right_driver_joint", "left_driver_joint", "left_follower"},
     .anchor = "right_driver_joint",
     .position = {0, 0, 0.15},
     .axis = {1, 0, 0},
     .approach = {0, 0, 1}},
    {.name = "robotiq_2f85",
     .title = "Robotiq 2F-85",
     .joints = {"right_driver_joint", "left_driver_joint"},
     .anchor = "right_driver_joint",
     .position = {0, 0, 0.145},
     .axis = {0, 1, 0},
     .approach = {0, 0, 1}},
    {.name = "robotiq_2f85",
     .title = "Robotiq 2F-85",
     .joints = {"finger_joint", "right_outer_knuckle_joint", "left_inner_knuckle_joint"},
     .anchor = "finger_joint",
     .position = {0, 0, 0.145},
     .axis = {0, 1, 0},
     .approach = {0, 0, 1}},
    {.name = "robotiq_3f",
     .title = "Robotiq 3-finger (S model)",
     .joints = {"palm_finger_1_joint", "palm_finger_2_joint", "finger_middle_joint_1"},
     .anchor = "palm_finger_1_joint",
     .position = {0, 0.14, 0},
     .axis = {1, 0, 0},
     .approach = {0, 1, 0}},
    {.name = "shadow",
     .title = "Shadow Dexterous Hand",
     .joints = {"FFJ4", "MFJ4", "RFJ4", "LFJ5", "THJ5"},
     .anchor = "FFJ4",
     .position = {0.015, -0.068, 0.088},
     .axis = {0, 0, 1},
     .approach = {0, -1, 0},
     .posture = SHADOW},
    {.name = "shadow",
     .title = "Shadow Dexterous Hand",
     .joints = {"FFJ0", "MFJ0", "RFJ0", "LFJ4", "THJ0"},
     .anchor = "FFJ3",
     .position = {0.015, -0.068, 0.088},
     .axis = {0, 0, 1},
     .approach = {0, -1, 0},
     .posture = SHADOW_FROM_0},
    {.name = "allegro",
     .title = "Wonik Allegro hand",
     .joints = {"ffj0", "mfj0", "rfj0", "thj0"},
     .anchor = "ffj0",
     .position = {0.075, 0.005, 0.02},
     .axis = {0, 0, 1},
     .approach = {1, 0, 0},
     .posture = ALLEGRO},
    {.name = "leap",
     .title = "LEAP hand",
     .joints = {"if_mcp", "mf_mcp", "rf_mcp", "th_cmc"},
     .anchor = "if_mcp",
     .position = {0, -0.02, -0.095},
     .axis = {1, 0, 0},
     .approach = {0, 0, -1},
     .posture = LEAP},
    {.name = "barrett",
     .title = "Barrett BH8-282",
     .joints = {"finger_1_prox_joint", "finger_2_prox_joint", "finger_3_med_joint"},
     .anchor = "finger_3_med_joint",
     .position = {0, 0, 0.17},
     .axis = {0, 1, 0},
     .approach = {0, 0, 1}},
    {.name = "jaco",
     .title = "Kinova Jaco three-finger hand",
     .joints = {"joint_thumb", "joint_index", "joint_pinky"},
     .anchor = "joint_thumb",
     .position = {0, 0, 0.17},
     .axis = {0, 1, 0},
     .approach = {0, 0, 1}}};

enum { COUNT = sizeof PROFILES / sizeof PROFILES[0] };

/* ---- finding ---- */

int32_t grasp_profile_joint(const tb_model *file, const char *end)
{
    const size_t length = strlen(end);
    for (int32_t j = 0; j < file->number_of_joints; j++) {
        const char *name = tb_model_thing_name(file, TB_HANDLE_JOINT, j);
        const size_t size = strlen(name);
        if (size < length || strcmp(name + size - length, end) != 0) continue;
        if (size == length || !isalnum((unsigned char)name[size - length - 1])) return j;
    }
    return -1;
}

/* The first joint of a profile that the file lacks; NULL: it has all. */
static const char *lacks(const grasp_profile *profile, const tb_model *file)
{
    for (int i = 0; i < 6 && profile->joints[i] != NULL; i++)
        if (grasp_profile_joint(file, profile->joints[i]) < 0) return profile->joints[i];
    return NULL;
}

tb_status grasp_profile_find(const char *name, const tb_model *file, const grasp_profile **found,
                             tb_error *error)
{
    const char *missing = NULL;
    *found = NULL;
    if (name == NULL || name[0] == '\0') return TB_OK;
    for (int i = 0; i < COUNT; i++) {
        if (strcmp(PROFILES[i].name, name) != 0) continue;
        missing = lacks(&PROFILES[i], file);
        if (missing != NULL) continue;
        *found = &PROFILES[i];
        return TB_OK;
    }
    if (missing != NULL)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "hand.profile",
                             "the hand is no '%.60s': it has no joint whose name ends in '%s'",
                             name, missing);
    char names[256] = "";
    for (int32_t i = 0; tb_hand_profile_name(i) != NULL; i++) {
        const size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "",
                 tb_hand_profile_name(i));
    }
    return tb_fail_field(error, TB_NOT_FOUND, "hand.profile",
                         "there is no profile '%.60s', only %s", name, names);
}

/* Entries of one name follow each other. */
static const grasp_profile *named(int32_t index)
{
    for (int i = 0; i < COUNT; i++) {
        if (i > 0 && strcmp(PROFILES[i].name, PROFILES[i - 1].name) == 0) continue;
        if (index-- == 0) return &PROFILES[i];
    }
    return NULL;
}

const char *tb_hand_profile_name(int32_t index)
{
    const grasp_profile *profile = named(index);
    return profile != NULL ? profile->name : NULL;
}

const char *tb_hand_profile_title(int32_t index)
{
    const grasp_profile *profile = named(index);
    return profile != NULL ? profile->title : NULL;
}

const char *tb_hand_profile_match(const tb_scene *hand)
{
    tb_model *file = NULL;
    tb_error error = {0};
    const char *name = NULL;
    if (tb_scene_compile(hand, &file, &error) != TB_OK) return NULL;
    for (int i = 0; i < COUNT && name == NULL; i++)
        if (lacks(&PROFILES[i], file) == NULL) name = PROFILES[i].name;
    tb_model_destroy(file);
    return name;
}

/* ---- a file of a profile ---- */

grasp_frame grasp_profile_tool(const grasp_profile *profile, const tb_model *file, int32_t base)
{
    const tb_vec3 y = tb_v3_load(profile->axis), z = tb_v3_load(profile->approach);
    const tb_vec3 x = tb_v3_cross(y, z);
    const tb_mat33 turn = {{x.x, y.x, z.x, x.y, y.y, z.y, x.z, y.z, z.z}};
    grasp_frame tool = {tb_v3_load(profile->position), tb_q_from_matrix(&turn)};
    const int32_t joint = grasp_profile_joint(file, profile->anchor);
    int32_t body = file->joints[joint].body;
    if (!profile->own_body) body = file->bodies[body].parent;
    for (; body > base; body = file->bodies[body].parent) {
        const tb_model_body *b = &file->bodies[body];
        const grasp_frame frame = grasp_frame_make(b->position, b->orientation);
        tool = grasp_frame_mul(&frame, &tool);
    }
    return tool;
}

static const grasp_posture *posture_of(const grasp_profile *profile, const tb_model *file,
                                       int32_t joint)
{
    for (const grasp_posture *p = profile->posture; p->joint != NULL; p++)
        if (grasp_profile_joint(file, p->joint) == joint) return p;
    return NULL;
}

bool grasp_profile_controls(const grasp_profile *profile, const tb_model *file, int32_t actuator,
                            double *open, double *close)
{
    const tb_model_actuator *a = &file->actuators[actuator];
    bool any = false;
    *open = *close = 0;
    if (profile->posture == NULL || !(a->gain[0] > 0) || !(a->bias[1] < 0)) return false;
    if (a->joint >= 0) {
        const grasp_posture *p = posture_of(profile, file, a->joint);
        if (p == NULL) return false;
        *open = p->open * a->gear[0];
        *close = p->close * a->gear[0];
        any = true;
    }
    for (int32_t k = 0; a->tendon >= 0 && k < file->tendons[a->tendon].count; k++) {
        const int32_t at = file->tendons[a->tendon].first + k;
        const grasp_posture *p = posture_of(profile, file, file->dofs[file->tendon_dofs[at]].joint);
        if (p == NULL || file->tendons[a->tendon].number_of_points > 0) continue;
        *open += p->open * file->tendon_coefficients[at] * a->gear[0];
        *close += p->close * file->tendon_coefficients[at] * a->gear[0];
        any = true;
    }
    /* the control at which a servo's force is zero */
    const double scale = -a->bias[1] / a->gain[0];
    *open *= scale;
    *close *= scale;
    if (a->control_limited) {
        *open = fmin(fmax(*open, a->control_lower), a->control_upper);
        *close = fmin(fmax(*close, a->control_lower), a->control_upper);
    }
    return any;
}
