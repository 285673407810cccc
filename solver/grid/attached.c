/* The soft bodies of a state: made of a model's text and shapes, and kept with the state.
 *
 * Obstacles of such a world are the model's shapes that can collide: those of its walls, too. */
#include "grid/attached.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tribo_soft.h"

/* ---- obstacles of a model ---- */

static tb_status take_shape(const tb_model *m, int32_t i, tb_soft_obstacle *o, tb_error *error)
{
    const tb_model_shape *shape = m->shapes + i;
    memset(o, 0, sizeof *o);
    snprintf(o->name, sizeof o->name, "%s", tb_model_thing_name(m, TB_HANDLE_SHAPE, i));
    o->shape.pose.position = tb_v3_load(shape->position);
    memcpy(o->shape.pose.rotation.m, shape->rotation, sizeof shape->rotation);
    memcpy(o->shape.size, shape->size, sizeof o->shape.size);
    switch (shape->type) {
    case TB_SHAPE_PLANE: o->shape.kind = TB_SOFT_PLANE; return TB_OK;
    case TB_SHAPE_SPHERE: o->shape.kind = TB_SOFT_SPHERE; return TB_OK;
    case TB_SHAPE_CAPSULE: o->shape.kind = TB_SOFT_CAPSULE; return TB_OK;
    case TB_SHAPE_CYLINDER: o->shape.kind = TB_SOFT_CYLINDER; return TB_OK;
    case TB_SHAPE_BOX: o->shape.kind = TB_SOFT_BOX; return TB_OK;
    case TB_SHAPE_ELLIPSOID: o->shape.kind = TB_SOFT_ELLIPSOID; return TB_OK;
    case TB_SHAPE_CONVEX: {
        const tb_hull *hull = m->hulls + shape->asset;
        o->shape.kind = TB_SOFT_HULL;
        o->shape.planes = hull->planes;
        o->shape.number_of_planes = hull->number_of_faces;
        tb_v3_store(o->shape.middle, tb_v3_load(hull->middle));
        memcpy(o->shape.size, hull->half, sizeof o->shape.size);
        return TB_OK;
    }
    default:
        return tb_fail_field(error, TB_UNSUPPORTED, "shape",
                             "shape '%s' is no convex shape: soft bodies cannot touch it", o->name);
    }
}

/* The scene's obstacles and *rigid, the bodies that have them; the caller frees it. */
static tb_status take_obstacles(const tb_model *m, tb_soft_scene *s, tb_soft_rigid **rigid,
                                int32_t *count, tb_error *error)
{
    *count = 0;
    s->number_of_obstacles = 0;
    *rigid = calloc((size_t)m->number_of_bodies, sizeof **rigid);
    if (*rigid == NULL) return tb_fail_memory(error, sizeof **rigid, "rigid bodies");
    for (int32_t i = 0; i < m->number_of_shapes; i++) {
        const tb_model_shape *shape = m->shapes + i;
        if (shape->category == 0 && shape->mask == 0) continue;
        if (s->number_of_obstacles == TB_SOFT_MOST_OBSTACLES)
            return tb_fail_field(error, TB_RESOURCE_EXHAUSTED, "shape",
                                 "more than %d shapes that soft bodies could touch",
                                 TB_SOFT_MOST_OBSTACLES);
        tb_soft_obstacle *o = s->obstacles + s->number_of_obstacles++;
        const tb_status status = take_shape(m, i, o, error);
        if (status != TB_OK) return status;
        int32_t r = 0;
        while (r < *count && (*rigid)[r].body != shape->body) r++;
        if (r == *count) (*rigid)[(*count)++].body = shape->body;
        o->rigid = r + 1;
    }
    return TB_OK;
}

/* Numbers of the rigid bodies that clamps name; *rigid has room for them. */
static tb_status take_clamps(const tb_model *m, tb_soft_scene *s, tb_soft_rigid *rigid,
                             int32_t *count, tb_error *error)
{
    for (int32_t c = 0; c < s->number_of_clamps; c++) {
        tb_soft_clamp *clamp = s->clamps + c;
        if (clamp->partner[0] == 0) continue;
        const int32_t body = tb_model_find(m, TB_HANDLE_BODY, clamp->partner);
        if (body < 0)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "rigid",
                                 "a clamp moves with '%s', and no rigid body has that name",
                                 clamp->partner);
        int32_t r = 0;
        while (r < *count && rigid[r].body != body) r++;
        if (r == *count) rigid[(*count)++].body = body;
        clamp->rigid = r + 1;
    }
    return TB_OK;
}

static tb_status make_world(const tb_soft_scene *scene, const tb_soft_rigid *rigid, int32_t count,
                            tb_soft_world **world, tb_error *error)
{
    const tb_status status = tb_soft_world_create(scene, world, error);
    if (status != TB_OK) return status;
    tb_soft_world *w = *world;
    w->rigid = calloc((size_t)count + 1, sizeof *w->rigid);
    if (w->rigid == NULL) {
        tb_soft_world_destroy(w);
        *world = NULL;
        return tb_fail_memory(error, (size_t)count * sizeof *w->rigid, "rigid bodies");
    }
    if (count > 0) memcpy(w->rigid, rigid, (size_t)count * sizeof *rigid);
    w->number_of_rigid = count;
    return TB_OK;
}

/* ---- life ---- */

static tb_status make(const tb_model *model, const tb_soft_scene *scene, const tb_soft_rigid *rigid,
                      int32_t count, tb_state_soft **soft, tb_error *error)
{
    tb_state_soft *s = calloc(1, sizeof *s);
    *soft = NULL;
    if (s == NULL) return tb_fail_memory(error, sizeof *s, "soft bodies");
    const tb_status status = make_world(scene, rigid, count, &s->world, error);
    s->motions = calloc((size_t)model->number_of_bodies, sizeof *s->motions);
    if (status != TB_OK || s->motions == NULL) {
        tb_state_soft_destroy(s);
        return status != TB_OK ? status : tb_fail_memory(error, sizeof *s, "soft bodies");
    }
    *soft = s;
    return TB_OK;
}

tb_status tb_state_soft_create(const tb_model *model, tb_state_soft **soft, tb_error *error)
{
    tb_soft_scene *scene = malloc(sizeof *scene);
    tb_soft_rigid *rigid = NULL;
    tb_soft_obstacle *walls = NULL;
    int32_t count = 0, number_of_walls = 0;
    *soft = NULL;
    if (scene == NULL) return tb_fail_memory(error, sizeof *scene, "soft bodies");
    tb_status status =
        tb_soft_scene_read((const char *)model->soft, model->soft_size, model->name, scene, error);
    if (status == TB_OK) {
        number_of_walls = scene->number_of_obstacles;
        walls = calloc((size_t)number_of_walls + 1, sizeof *walls);
        if (walls == NULL) status = tb_fail_memory(error, sizeof *walls, "walls");
    }
    if (status == TB_OK) {
        memcpy(walls, scene->obstacles, (size_t)number_of_walls * sizeof *walls);
        status = take_obstacles(model, scene, &rigid, &count, error);
        if (status == TB_OK) status = take_clamps(model, scene, rigid, &count, error);
    }
    if (status == TB_OK) status = make(model, scene, rigid, count, soft, error);
    if (status == TB_OK) {
        (*soft)->walls = walls;
        (*soft)->number_of_walls = number_of_walls;
        (*soft)->fresh = true;
        walls = NULL;
    }
    free(walls);
    free(rigid);
    tb_soft_scene_clear(scene);
    free(scene);
    return status;
}

void tb_state_soft_destroy(tb_state_soft *soft)
{
    if (soft == NULL) return;
    tb_soft_world_destroy(soft->world);
    tb_bytes_free(&soft->backup);
    free(soft->motions);
    free(soft->walls);
    free(soft);
}

static tb_status copy_walls(const tb_state_soft *from, tb_state_soft *to, tb_error *error)
{
    to->walls = calloc((size_t)from->number_of_walls + 1, sizeof *to->walls);
    if (to->walls == NULL) return tb_fail_memory(error, sizeof *to->walls, "walls");
    memcpy(to->walls, from->walls, (size_t)from->number_of_walls * sizeof *to->walls);
    to->number_of_walls = from->number_of_walls;
    return TB_OK;
}

/* A copy at the start of time. */
static tb_status make_again(const tb_model *model, const tb_state_soft *from, tb_state_soft **soft,
                            tb_error *error)
{
    const tb_soft_world *w = from->world;
    tb_status status = make(model, &w->scene, w->rigid, w->number_of_rigid, soft, error);
    if (status == TB_OK) status = copy_walls(from, *soft, error);
    if (status == TB_OK) return TB_OK;
    tb_state_soft_destroy(*soft);
    *soft = NULL;
    return status;
}

/* Where the rigid bodies of clamps are in the reference pose, which the state has. */
static tb_status place_clamps(tb_state *state, tb_error *error)
{
    tb_soft_world *w = state->soft->world;
    for (int32_t c = 0; c < w->scene.number_of_clamps; c++) {
        tb_soft_clamp *clamp = w->scene.clamps + c;
        tb_body_motion motion;
        if (clamp->rigid == 0) continue;
        const tb_status status =
            tb_state_body_motion(state, w->rigid[clamp->rigid - 1].body, &motion);
        if (status != TB_OK) return tb_fail(error, status, "where '%s' is", clamp->partner);
        clamp->start.position = tb_v3_load(motion.position);
        clamp->start.rotation = tb_q_matrix(tb_q_load(motion.orientation));
    }
    return TB_OK;
}

static void move_walls(tb_state *state)
{
    const tb_model *m = state->model;
    for (int32_t i = 0; i < state->soft->number_of_walls; i++) {
        const tb_soft_obstacle *wall = state->soft->walls + i;
        const double *v = wall->velocity;
        if (v[0] == 0 && v[1] == 0 && v[2] == 0) continue;
        const int32_t body = tb_model_find(m, TB_HANDLE_BODY, wall->name);
        if (body < 0 || m->bodies[body].kinematic < 0) continue;
        memcpy(state->kinematic + TB_KINEMATIC_NUMBERS * m->bodies[body].kinematic + 7, v,
               3 * sizeof *v);
    }
}

tb_status tb_state_soft_reset(tb_state *state, tb_error *error)
{
    tb_state_soft *fresh = NULL;
    if (state->soft->fresh) {
        state->soft->fresh = false;
        move_walls(state);
        return place_clamps(state, error);
    }
    const tb_status status = make_again(state->model, state->soft, &fresh, error);
    if (status != TB_OK) return status;
    for (int32_t r = 0; r < fresh->world->number_of_rigid; r++)
        memset(fresh->world->rigid[r].before, 0, sizeof fresh->world->rigid[r].before);
    tb_state_soft_destroy(state->soft);
    state->soft = fresh;
    move_walls(state);
    return place_clamps(state, error);
}

tb_status tb_state_soft_fork(const tb_state *state, tb_state_soft **fork, tb_error *error)
{
    tb_bytes bytes = {0};
    tb_status status = make_again(state->model, state->soft, fork, error);
    if (status == TB_OK) status = tb_soft_world_keep(state->soft->world, &bytes, error);
    if (status == TB_OK) status = tb_soft_world_put_back((*fork)->world, &bytes, error);
    tb_bytes_free(&bytes);
    if (status == TB_OK) {
        (*fork)->certificate = state->soft->certificate;
        return TB_OK;
    }
    tb_state_soft_destroy(*fork);
    *fork = NULL;
    return status;
}

tb_status tb_state_soft_save(const tb_state *state, unsigned char **bytes, size_t *size,
                             tb_error *error)
{
    return tb_soft_world_save(state->soft->world, bytes, size, error);
}

tb_status tb_state_soft_read(const tb_state *state, const unsigned char *bytes, size_t size,
                             tb_state_soft **soft, tb_error *error)
{
    tb_status status = make_again(state->model, state->soft, soft, error);
    if (status == TB_OK) status = tb_soft_world_restore((*soft)->world, bytes, size, error);
    if (status == TB_OK) return TB_OK;
    tb_state_soft_destroy(*soft);
    *soft = NULL;
    return status;
}

/* ---- public ---- */

tb_soft_world *tb_state_soft_world(const tb_state *state)
{
    return state->soft != NULL ? state->soft->world : NULL;
}

bool tb_state_soft_certificate(const tb_state *state, tb_soft_certificate *certificate)
{
    if (state->soft == NULL) return false;
    *certificate = state->soft->certificate;
    return true;
}

/* The model's scene as its text has it; NULL: it has none, or memory is refused. The caller frees it. */
static tb_soft_scene *scene_of(const tb_model *model)
{
    tb_error ignored;
    if (model->soft == NULL) return NULL;
    tb_soft_scene *scene = malloc(sizeof *scene);
    if (scene != NULL && tb_soft_scene_read((const char *)model->soft, model->soft_size,
                                            model->name, scene, &ignored) != TB_OK) {
        tb_soft_scene_clear(scene);
        free(scene);
        scene = NULL;
    }
    return scene;
}

static void free_scene(tb_soft_scene *scene)
{
    if (scene != NULL) tb_soft_scene_clear(scene);
    free(scene);
}

int32_t tb_soft_model_bodies(const tb_model *model)
{
    tb_soft_scene *scene = scene_of(model);
    const int32_t bodies = scene != NULL ? scene->number_of_bodies : 0;
    free_scene(scene);
    return bodies;
}

static uint64_t nodes_of(const tb_soft_scene *scene)
{
    const int32_t *n = scene->lattice.nodes;
    return (uint64_t)n[0] * (uint64_t)n[1] * (uint64_t)n[2];
}

/* Nodes of the bodies' boxes at the start, with the layers around them. */
static int64_t body_nodes(const tb_soft_scene *scene)
{
    const tb_soft_lattice *l = &scene->lattice;
    double all = 0;
    for (int32_t b = 0; b < scene->number_of_bodies; b++) {
        double lower[3], upper[3], nodes = 1;
        tb_soft_bounds(&scene->bodies[b].shape, lower, upper);
        for (int a = 0; a < 3; a++)
            nodes *= floor((upper[a] - lower[a]) / l->spacing[a]) + 1 + 2 * TB_SOFT_LAYERS;
        all += nodes;
    }
    return (int64_t)all;
}

int64_t tb_soft_model_nodes(const tb_model *model)
{
    tb_soft_scene *scene = scene_of(model);
    const int64_t nodes = scene != NULL ? body_nodes(scene) : 0;
    free_scene(scene);
    return nodes;
}

int64_t tb_state_soft_nodes(const tb_state *state)
{
    return body_nodes(&state->soft->world->scene);
}

/* X, v, mass, depth, octants, layer and held: bytes a node and body */
enum { FIELD_BYTES = (3 + 3 + 1 + 1 + 8) * 8 + 2 };

/* The copy for the way back from a failed step is at most as large as the fields; `own` and `shared` are scratch
 * of each body and of all, bytes a node. */
static uint64_t bytes_of(const tb_model *model, uint64_t own, uint64_t shared)
{
    tb_soft_scene *scene = scene_of(model);
    const uint64_t bodies = scene != NULL ? (uint64_t)scene->number_of_bodies : 0;
    const uint64_t bytes =
        scene != NULL ? nodes_of(scene) * ((2 * FIELD_BYTES + own) * bodies + shared) : 0;
    free_scene(scene);
    return bytes;
}

uint64_t tb_soft_model_bytes(const tb_model *model)
{
    return bytes_of(model, 0, (24 + 9 + 4 * 3) * 8);
}

uint64_t tb_soft_model_card_bytes(const tb_model *model)
{
    return bytes_of(model, (2 * 9 + 4 * 3) * 8, 0);
}
