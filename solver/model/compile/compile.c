/* Compiling a scene into a model, stage by stage; see model_internal.h. A compiled model never
 * changes, and compiling never changes the scene. */
#include "model/model_internal.h"

#include "base/budget.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- warnings and names ---- */

tb_status tb_compile_warn(tb_compiler *c, const char *format, ...)
{
    char text[TB_ERROR_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const int32_t count = c->model->number_of_warnings;
    if (count >= c->warning_capacity) {
        const char **grown =
            tb_grow(c->warnings, count + 1, &c->warning_capacity, sizeof *c->warnings);
        if (grown == NULL) return tb_fail_memory(c->error, sizeof *grown, "warnings");
        c->warnings = grown;
    }
    const char *copy = tb_arena_string(&c->model->arena, text);
    if (copy == NULL) return tb_fail_memory(c->error, strlen(text), "warning");
    c->warnings[count] = copy;
    c->model->number_of_warnings = count + 1;
    return TB_OK;
}

const char *tb_compile_body_name(const tb_compiler *c, int32_t body)
{
    return body == 0 ? "world" : c->scene->bodies[c->scene_body[body]].name;
}

/* Enters an element's name for tb_model_find and tb_model_thing_name. */
static bool enter(tb_compiler *c, tb_handle_kind kind, const char **list, int32_t index,
                  const char *name)
{
    tb_names *names = c->model->name_index;
    list[index] = "";
    if (name[0] == 0) return true;
    list[index] = tb_names_keep(names, name);
    if (list[index] == NULL) return false;
    /* "NAME_x" of a planar joint may also be another joint's name: the first joint keeps it */
    if (tb_names_find(names, kind, name) >= 0) return true;
    return tb_names_insert(names, kind, list[index], index);
}

static bool enter_joints(tb_compiler *c, const char **list)
{
    static const char *const parts[3] = {"_x", "_y", "_angle"};
    for (int32_t i = 0; i < c->scene->number_of_joints; i++) {
        const tb_joint_def *def = &c->scene->joints[c->scene_joint[i]];
        const int32_t joint = c->model_joint[c->scene_joint[i]];
        if (def->type == TB_JOINT_FIXED) continue;
        if (def->type != TB_JOINT_PLANAR) {
            if (!enter(c, TB_HANDLE_JOINT, list, joint, def->name)) return false;
            continue;
        }
        for (int k = 0; k < 3; k++) {
            char name[TB_NAME_LENGTH_LIMIT + 8] = "";
            if (def->name[0] != 0) snprintf(name, sizeof name, "%s%s", def->name, parts[k]);
            if (!enter(c, TB_HANDLE_JOINT, list, joint + k, name)) return false;
        }
    }
    return true;
}

static tb_status compile_names(tb_compiler *c)
{
    const tb_scene *s = c->scene;
    tb_model *m = c->model;
    const int32_t counts[TB_HANDLE_SENSOR + 1] = {
        [TB_HANDLE_BODY] = m->number_of_bodies,
        [TB_HANDLE_JOINT] = m->number_of_joints,
        [TB_HANDLE_SHAPE] = m->number_of_shapes,
        [TB_HANDLE_MESH] = m->number_of_mesh_assets,
        [TB_HANDLE_HEIGHT_FIELD] = s->number_of_height_fields,
        [TB_HANDLE_SITE] = m->number_of_sites,
        [TB_HANDLE_TENDON] = m->number_of_tendons,
        [TB_HANDLE_ACTUATOR] = m->number_of_actuators,
        [TB_HANDLE_EQUALITY] = m->number_of_equalities,
        [TB_HANDLE_PAIR] = m->number_of_pairs,
        [TB_HANDLE_KEYFRAME] = m->number_of_keyframes,
        [TB_HANDLE_SENSOR] = m->number_of_sensors,
    };
    const char **lists[TB_HANDLE_SENSOR + 1];
    bool ok = true;
    for (int kind = 0; kind <= TB_HANDLE_SENSOR; kind++) {
        lists[kind] = TB_ARENA_ARRAY(&m->arena, const char *, counts[kind]);
        ok = ok && lists[kind] != NULL;
        m->names[kind] = lists[kind];
        m->number_of_names[kind] = counts[kind];
    }
    if (ok) lists[TB_HANDLE_BODY][0] = "world";
    for (int32_t i = 1; ok && i < m->number_of_bodies; i++)
        ok = enter(c, TB_HANDLE_BODY, lists[TB_HANDLE_BODY], i, s->bodies[c->scene_body[i]].name);
    if (ok && tb_names_find(m->name_index, TB_HANDLE_BODY, "world") < 0)
        ok = tb_names_insert(m->name_index, TB_HANDLE_BODY, "world", 0);
    ok = ok && enter_joints(c, lists[TB_HANDLE_JOINT]);
#define ENTER(KIND, array, index)                                                                  \
    for (int32_t i = 0; ok && i < counts[TB_HANDLE_##KIND]; i++)                                   \
        ok = enter(c, TB_HANDLE_##KIND, lists[TB_HANDLE_##KIND], i, s->array[index].name);
    ENTER(SHAPE, shapes, c->scene_shape[i])
    ENTER(MESH, meshes, i)
    ENTER(HEIGHT_FIELD, height_fields, i)
    ENTER(SITE, sites, c->scene_site[i])
    ENTER(TENDON, tendons, i)
    ENTER(ACTUATOR, actuators, i)
    ENTER(EQUALITY, equalities, i)
    ENTER(PAIR, pairs, c->scene_pair[i])
    ENTER(KEYFRAME, keyframes, i)
    ENTER(SENSOR, sensors, i)
#undef ENTER
    return ok ? TB_OK : tb_fail_memory(c->error, 0, "names");
}

/* ---- the whole ---- */

static tb_status compile_options(tb_compiler *c)
{
    const tb_scene_def *options = &c->scene->options;
    tb_model *model = c->model;
    memcpy(model->gravity, options->gravity, sizeof model->gravity);
    memcpy(model->wind, options->wind, sizeof model->wind);
    model->density = options->density;
    model->viscosity = options->viscosity;
    model->dt = options->dt;
    model->filter_parent = options->filter_parent;
    model->name = tb_names_keep(model->name_index, options->name);
    if (model->name == NULL) return tb_fail_memory(c->error, strlen(options->name), "name");
    if (c->scene->soft != NULL) {
        unsigned char *soft =
            TB_ARENA_ZEROED(&model->arena, unsigned char, c->scene->soft_size + 1);
        if (soft == NULL) return tb_fail_memory(c->error, c->scene->soft_size, "soft bodies");
        memcpy(soft, c->scene->soft, c->scene->soft_size);
        model->soft = soft;
        model->soft_size = c->scene->soft_size;
    }
    for (int32_t i = 0; i < c->scene->number_of_warnings; i++) {
        const tb_status status = tb_compile_warn(c, "%s", c->scene->warnings[i]);
        if (status != TB_OK) return status;
    }
    return TB_OK;
}

static tb_status finish(tb_compiler *c)
{
    tb_model *model = c->model;
    tb_bytes bytes = {0};
    const size_t warnings = (size_t)model->number_of_warnings;
    const char **kept = TB_ARENA_ARRAY(&model->arena, const char *, warnings);
    if (kept == NULL) return tb_fail_memory(c->error, warnings * sizeof *kept, "warnings");
    if (warnings > 0) memcpy(kept, c->warnings, warnings * sizeof *kept);
    model->warnings = kept;
    const tb_status status = tb_canonical_write(c, &bytes, c->error);
    if (status != TB_OK) return status;
    model->bytes = bytes.base;
    model->bytes_size = bytes.size;
    tb_sha256_hex(bytes.base, bytes.size, model->sha256);
    return TB_OK;
}

tb_status tb_scene_compile(const tb_scene *scene, tb_model **model, tb_error *error)
{
    static tb_status (*const stages[])(tb_compiler *) = {compile_options,
                                                         tb_compile_order,
                                                         tb_compile_tree,
                                                         tb_compile_mass,
                                                         tb_compile_geometry,
                                                         tb_compile_fluid,
                                                         tb_compile_parts,
                                                         tb_compile_dynamics,
                                                         tb_compile_sleep,
                                                         compile_names,
                                                         finish};
    tb_compiler compiler = {.scene = scene, .error = error};
    tb_status status = TB_OK;
    *model = NULL;
    tb_arena_init(&compiler.scratch, 0);
    compiler.model = calloc(1, sizeof *compiler.model);
    if (compiler.model == NULL) return tb_fail_memory(error, sizeof *compiler.model, "model");
    tb_arena_init(&compiler.model->arena, 0);
    compiler.model->name_index = malloc(sizeof *compiler.model->name_index);
    if (compiler.model->name_index == NULL) {
        status = tb_fail_memory(error, sizeof *compiler.model->name_index, "names");
    } else {
        tb_names_init(compiler.model->name_index);
        for (size_t i = 0; i < sizeof stages / sizeof stages[0] && status == TB_OK; i++) {
            status = tb_budget_check(error);
            if (status == TB_OK) status = stages[i](&compiler);
        }
    }
    tb_arena_destroy(&compiler.scratch);
    free(compiler.warnings);
    if (status != TB_OK)
        tb_model_destroy(compiler.model);
    else
        *model = compiler.model;
    return status;
}
