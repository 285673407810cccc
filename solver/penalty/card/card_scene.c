/* Models as scenes of a card. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "penalty/card/card_scene.h"

/* A cube is wider than the largest ball by this, so that rounding moves no partner two cubes away. */
static const double CUBE_SLACK = 1e-6;

/* The kind of thing in a model that no kernel has, NULL: none. */
static const char *missing(const tb_penalty *p, const tb_model *m)
{
    if (!p->simple)
        return "motors, springs, dampers, moved bodies, and trees other than single bodies that "
               "are free, on slides or on one hinge";
    for (int32_t i = 0; i < p->number_of_shapes; i++)
        if (!p->shapes[i].fixed && m->filters[p->shapes[i].shape].above >= 0)
            return "jointed bodies within others";
    if (m->number_of_shape_excludes > 0 || m->number_of_excludes > 0 || m->number_of_pairs > 0)
        return "excluded or listed pairs of shapes";
    if (m->number_of_past_velocities > 0) return "sensors of accelerations";
    return NULL;
}

static int32_t body_of(const tb_penalty *p, const tb_model *m, int32_t shape)
{
    const tb_law_shape *x = &p->shapes[shape];
    return x->fixed ? -1 : m->bodies[x->body].tree;
}

/* ---- balls ---- */

/* Whether every body is free and has one ball at most, and all other shapes are fixed balls and planes. */
static bool is_of_balls(const tb_penalty *p, const tb_model *m, bool *taken)
{
    for (int32_t t = 0; t < m->number_of_trees; t++)
        if (p->law_bodies[t].joints != TB_LAW_FREE) return false;
    for (int32_t i = 0; i < p->number_of_shapes; i++) {
        const tb_law_shape *x = &p->shapes[i];
        const int32_t body = body_of(p, m, i);
        if (!(x->radius > 0) && !(x->half_space && x->fixed)) return false;
        if (body >= 0 && taken[body]) return false;
        if (body >= 0) taken[body] = true;
    }
    return true;
}

static void take_ball(const tb_penalty *p, const tb_model *m, int32_t i, tb_ball *ball)
{
    const tb_law_shape *x = &p->shapes[i];
    const tb_pose *pose = &p->shape_poses[i];
    memset(ball, 0, sizeof *ball);
    ball->body = body_of(p, m, i);
    ball->category = m->filters[x->shape].category;
    ball->mask = m->filters[x->shape].mask;
    ball->radius = x->half_space ? 0 : x->radius;
    ball->constants = x->constants;
    if (x->fixed)
        tb_v3_store(ball->position, pose->position);
    else
        memcpy(ball->position, m->shapes[x->shape].position, sizeof ball->position);
    if (x->half_space) tb_v3_store(ball->normal, tb_m33_column(&pose->rotation, 2));
}

static tb_status make_balls(const tb_penalty *p, const tb_model *m, tb_balls_scene *s,
                            tb_error *error)
{
    double largest = 0;
    s->shapes = p->number_of_shapes;
    s->bodies = m->number_of_trees;
    s->balls = calloc((size_t)s->shapes + 1, sizeof *s->balls);
    s->free_bodies = calloc((size_t)s->bodies + 1, sizeof *s->free_bodies);
    s->plane = calloc((size_t)s->shapes + 1, sizeof *s->plane);
    if (!s->balls || !s->free_bodies || !s->plane)
        return tb_fail_memory(error, 0, "a scene of balls");
    for (int32_t t = 0; t < s->bodies; t++)
        s->free_bodies[t] = (tb_balls_body){p->law_bodies[t], -1};
    for (int32_t i = 0; i < s->shapes; i++) {
        tb_ball *ball = &s->balls[i];
        take_ball(p, m, i, ball);
        if (!(ball->radius > 0)) s->plane[s->planes++] = i;
        largest = fmax(largest, ball->radius);
        if (ball->body >= 0) s->free_bodies[ball->body].ball = i;
    }
    memcpy(s->gravity, m->gravity, sizeof s->gravity);
    s->cubes_per_metre = largest > 0 ? 1 / (2 * largest * (1 + CUBE_SLACK)) : 1;
    return TB_OK;
}

/* ---- solids ---- */

static void take_shape(const tb_penalty *p, const tb_model *m, int32_t i, tb_solids_shape *shape)
{
    const tb_law_shape *x = &p->shapes[i];
    const tb_model_shape *s = &m->shapes[x->shape];
    memset(shape, 0, sizeof *shape);
    shape->body = body_of(p, m, i);
    shape->solid = x->solid;
    shape->category = m->filters[x->shape].category;
    shape->mask = m->filters[x->shape].mask;
    shape->radius = x->radius;
    shape->half_space = x->half_space;
    shape->constants = x->constants;
    memcpy(shape->position, s->position, sizeof shape->position);
    memcpy(shape->rotation, s->rotation, sizeof shape->rotation);
    memcpy(shape->lower, x->lower, sizeof shape->lower);
    memcpy(shape->upper, x->upper, sizeof shape->upper);
    shape->pose = p->shape_poses[i];
    memcpy(shape->box, p->boxes + 6 * i, sizeof shape->box);
}

/* Shapes by their bodies. */
static void sort_shapes(tb_solids_scene *s)
{
    int32_t end = 0;
    for (int32_t b = 0; b < s->number_of_bodies; b++) {
        s->first_shapes[b] = end;
        for (int32_t i = 0; i < s->number_of_shapes; i++)
            if (s->shapes[i].body == b) s->body_shapes[end++] = i;
    }
    s->first_shapes[s->number_of_bodies] = end;
}

/* The kinds of solids, and the faces of a clip of any two; balls meet balls in closed form. */
static void measure_solids(tb_solids_scene *s)
{
    int32_t of_balls = 0, of_others = 0;
    s->single = true;
    s->seams = false;
    for (int32_t i = 0; i < s->number_of_shapes; i++) {
        const tb_solids_shape *shape = &s->shapes[i];
        if (shape->solid < 0) continue;
        const tb_solid *solid = &s->solids[shape->solid];
        int32_t *most = shape->radius > 0 ? &of_balls : &of_others;
        if (solid->number_of_pieces > 1) s->single = false;
        if (solid->most_faces > *most) *most = solid->most_faces;
        for (int32_t f = 0; f < solid->number_of_faces && solid->cuts && !s->seams; f++)
            s->seams = solid->cuts[f] != 0;
    }
    s->most_faces = of_others + (of_balls > of_others ? of_balls : of_others) + 4;
}

static tb_status make_solids(const tb_penalty *p, const tb_model *m, tb_solids_scene *s,
                             tb_error *error)
{
    s->number_of_shapes = p->number_of_shapes;
    s->number_of_bodies = m->number_of_trees;
    s->number_of_solids = p->number_of_solids;
    s->shapes = calloc((size_t)s->number_of_shapes + 1, sizeof *s->shapes);
    s->bodies = calloc((size_t)s->number_of_bodies + 1, sizeof *s->bodies);
    s->first_shapes = calloc((size_t)s->number_of_bodies + 1, sizeof *s->first_shapes);
    s->body_shapes = calloc((size_t)s->number_of_shapes + 1, sizeof *s->body_shapes);
    if (!s->shapes || !s->bodies || !s->first_shapes || !s->body_shapes)
        return tb_fail_memory(error, 0, "a scene of solids");
    s->solids = p->solids;
    for (int32_t i = 0; i < s->number_of_shapes; i++) take_shape(p, m, i, &s->shapes[i]);
    if (s->number_of_bodies > 0)
        memcpy(s->bodies, p->law_bodies, (size_t)s->number_of_bodies * sizeof *s->bodies);
    sort_shapes(s);
    measure_solids(s);
    memcpy(s->gravity, m->gravity, sizeof s->gravity);
    s->margin = p->margin;
    s->pairs = p->number_of_pairs;
    return TB_OK;
}

void tb_card_scene_free(tb_card_scene *scene)
{
    free(scene->balls.balls);
    free(scene->balls.free_bodies);
    free(scene->balls.plane);
    free(scene->solids.shapes);
    free(scene->solids.bodies);
    free(scene->solids.first_shapes);
    free(scene->solids.body_shapes);
    memset(scene, 0, sizeof *scene);
}

tb_status tb_card_scene_make(const tb_penalty *p, const tb_model *m, tb_card_scene *scene,
                             tb_error *error)
{
    const char *what = missing(p, m);
    if (what)
        return tb_fail_field(error, TB_UNSUPPORTED, "backend",
                             "the volume law on a GPU has no %s, and the model has", what);
    bool *taken = calloc((size_t)m->number_of_trees + 1, sizeof *taken);
    if (!taken) return tb_fail_memory(error, 0, "a scene for a GPU");
    memset(scene, 0, sizeof *scene);
    scene->number_of_bodies = m->number_of_trees;
    scene->by_balls = is_of_balls(p, m, taken);
    free(taken);
    return scene->by_balls ? make_balls(p, m, &scene->balls, error)
                           : make_solids(p, m, &scene->solids, error);
}
