/* Compiling a model with an eye on the pairs that overlap in its first pose.
 *
 * A pair that overlaps is pushed apart from the first step on. Where a joint's axis keeps the two
 * together the push never ends; where it does not, the mechanism moves away before any controller
 * runs. So compilation reports such pairs: the default keeps the contacts, since a silently dropped
 * contact lets fingers pass through the palm, and warns with both names and the depth. IGNORE drops
 * pairs of one mechanism and pairs that no joint parts; a mug 10 um deep in a table still rests on
 * it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/merge.h"
#include "step/stages/stages.h"

enum {
    WARNED_PAIRS = 8, /* named one by one; more are counted */
    PARTING_SAMPLES = 64,
    PAIR_TEXT = 400
};

/* "'name' of 'body'", or "number 12 of 'body'" */
static void print_shape(const tb_model *m, int32_t shape, int32_t body, char *text, size_t size)
{
    const char *name = tb_model_thing_name(m, TB_HANDLE_SHAPE, shape);
    const char *owner = tb_model_thing_name(m, TB_HANDLE_BODY, body);
    if (name[0] != 0)
        snprintf(text, size, "'%.60s' of '%.60s'", name, owner);
    else
        snprintf(text, size, "number %d of '%.60s'", (int)shape, owner);
}

static void print_pair(const tb_model *m, const tb_overlap *o, char text[PAIR_TEXT])
{
    char a[136], b[136], across[48] = "";
    print_shape(m, o->shape_a, o->body_a, a, sizeof a);
    print_shape(m, o->shape_b, o->body_b, b, sizeof b);
    if (o->linked && o->joints == 1)
        snprintf(across, sizeof across, " across a joint");
    else if (o->linked)
        snprintf(across, sizeof across, " across %d joints", (int)o->joints);
    const double mm = 1e3 * o->depth;
    snprintf(text, PAIR_TEXT, "shapes %s and %s overlap by %.3g mm in the first pose%s", a, b, mm,
             across);
}

/* ---- treatment of the pairs ---- */

/* A name, or a number from 0. */
static tb_status find_keyframe(const tb_model *m, const char *keyframe, int32_t *index,
                               tb_error *error)
{
    *index = -1;
    if (keyframe == NULL || keyframe[0] == 0) return TB_OK;
    *index = tb_model_find(m, TB_HANDLE_KEYFRAME, keyframe);
    if (*index >= 0) return TB_OK;
    char *end = NULL;
    const long number = strtol(keyframe, &end, 10);
    if (end != keyframe && *end == 0 && number >= 0 && number < m->number_of_keyframes) {
        *index = (int32_t)number;
        return TB_OK;
    }
    char list[256] = "";
    size_t used = 0;
    for (int32_t i = 0; i < m->number_of_keyframes && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "",
                                 tb_model_thing_name(m, TB_HANDLE_KEYFRAME, i));
    return tb_fail_field(error, TB_NOT_FOUND, "overlap_keyframe",
                         "no keyframe '%.100s'; there are: %s", keyframe, list);
}

static bool is_left_out(const tb_overlap *o)
{
    return o->linked || o->persists;
}

/* Names the pairs that stay, or the dropped ones, the deepest first. */
static tb_status warn_of(tb_model *m, const tb_overlap *overlaps, int32_t count, int64_t total,
                         bool ignore, bool left_out, tb_error *error)
{
    char pair[PAIR_TEXT], text[TB_ERROR_MESSAGE_SIZE];
    const char *effect = left_out ? "they do not collide (overlaps: ignore)"
                                  : "they push each other apart from the first step on";
    int32_t said = 0;
    int64_t unsaid = left_out ? 0 : total - count; /* pairs that are not listed stay in */
    tb_status status = TB_OK;
    for (int32_t i = 0; i < count && status == TB_OK; i++) {
        if (left_out != (ignore && is_left_out(&overlaps[i]))) continue;
        if (said == WARNED_PAIRS) {
            unsaid++;
            continue;
        }
        said++;
        print_pair(m, &overlaps[i], pair);
        snprintf(text, sizeof text, "%s: %s", pair, effect);
        status = tb_model_warn(m, text, error);
    }
    if (status != TB_OK || unsaid == 0) return status;
    snprintf(text, sizeof text, "%lld more pairs of shapes overlap less: %s", (long long)unsaid,
             effect);
    return tb_model_warn(m, text, error);
}

static tb_status refuse(const tb_model *m, const tb_overlap *overlaps, int64_t total,
                        tb_error *error)
{
    char pair[PAIR_TEXT], more[48] = "";
    print_pair(m, &overlaps[0], pair);
    if (total > 1) snprintf(more, sizeof more, ", and %lld more pairs", (long long)total - 1);
    return tb_fail_field(error, TB_FAILED_PRECONDITION, "overlaps", "%s%s", pair, more);
}

/* `*model` is replaced by one in which the pairs to leave out do not collide. */
static tb_status leave_out(const tb_overlap *overlaps, int32_t count, tb_model **model,
                           tb_error *error)
{
    tb_model *without = NULL;
    int32_t number = 0;
    int32_t *pairs = malloc((2 * (size_t)count + 1) * sizeof *pairs);
    if (pairs == NULL) return tb_fail_memory(error, 0, "overlaps");
    for (int32_t i = 0; i < count; i++) {
        if (!is_left_out(&overlaps[i])) continue;
        pairs[2 * number] = overlaps[i].shape_a;
        pairs[2 * number + 1] = overlaps[i].shape_b;
        number++;
    }
    const tb_status status =
        number > 0 ? tb_model_leave_out(*model, pairs, number, &without, error) : TB_OK;
    free(pairs);
    if (status != TB_OK || number == 0) return status;
    tb_model_destroy(*model);
    *model = without;
    return TB_OK;
}

/* The pairs that overlap in the first pose: the reference pose, or a keyframe's. To leave pairs out
 * all must be known; to name them the deepest are enough. */
static tb_status list_first(const tb_model *model, const char *keyframe, bool all,
                            tb_overlap **overlaps, int32_t *count, int64_t *total, tb_error *error)
{
    tb_state *state = NULL;
    int32_t index = -1;
    tb_status status = find_keyframe(model, keyframe, &index, error);
    if (status == TB_OK) status = tb_state_create(model, &state, error);
    if (status == TB_OK && index >= 0) status = tb_state_reset(state, index, error);
    if (status == TB_OK)
        status = tb_state_deepest_overlaps(
            state, tb_step_defaults().contact_slop, all ? PARTING_SAMPLES : 0,
            all ? INT32_MAX / 4 : WARNED_PAIRS, overlaps, count, total, error);
    tb_state_destroy(state);
    return status;
}

static tb_status treat_overlaps(tb_overlap_policy policy, const char *keyframe, tb_model **model,
                                tb_error *error)
{
    const bool ignore = policy == TB_OVERLAPS_IGNORE;
    tb_overlap *overlaps = NULL;
    int32_t count = 0;
    int64_t total = 0;
    tb_status status = list_first(*model, keyframe, ignore, &overlaps, &count, &total, error);
    if (status == TB_OK && count > 0 && policy == TB_OVERLAPS_ERROR)
        status = refuse(*model, overlaps, total, error);
    if (status == TB_OK && count > 0 && ignore) status = leave_out(overlaps, count, model, error);
    if (status == TB_OK) status = warn_of(*model, overlaps, count, total, ignore, true, error);
    if (status == TB_OK) status = warn_of(*model, overlaps, count, total, ignore, false, error);
    tb_overlaps_destroy(overlaps);
    return status;
}

tb_status tb_scene_compile_apart(const tb_scene *scene, tb_overlap_policy policy,
                                 const char *keyframe, tb_model **model, tb_error *error)
{
    *model = NULL;
    if (policy < TB_OVERLAPS_KEEP || policy > TB_OVERLAPS_ERROR)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "overlaps",
                             "overlaps is %d, expected keep, ignore or error", (int)policy);
    tb_status status = tb_scene_compile(scene, model, error);
    if (status == TB_OK) status = treat_overlaps(policy, keyframe, model, error);
    if (status != TB_OK) {
        tb_model_destroy(*model);
        *model = NULL;
    }
    return status;
}

tb_status tb_model_load(const char *path, const tb_import_options *options, tb_model **model,
                        tb_error *error)
{
    const tb_import_options defaults = tb_import_defaults();
    if (options == NULL) options = &defaults;
    tb_scene *scene = NULL;
    *model = NULL;
    tb_status status = tb_scene_load(path, options, &scene, error);
    if (status == TB_OK)
        status = tb_scene_compile_apart(scene, options->overlaps, options->overlap_keyframe, model,
                                        error);
    tb_scene_destroy(scene);
    return status;
}
