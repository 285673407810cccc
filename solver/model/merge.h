/* Putting compiled models into a scene, and variants of a compiled model.
 *
 * A hand, an object and a table that come from three files become one world by tb_scene_add_model.
 * Masses are taken as they were compiled, because what a file says about masses (smallest ones,
 * totals, groups) holds for that file alone. A variant is the same model with other friction,
 * masses or forces: it shares all that is large and costs a few kilobytes. */
#ifndef TB_MERGE_H
#define TB_MERGE_H

#include "model/model.h"

/* How a model enters a scene. Start from tb_merge_defaults. */
typedef struct tb_merge_def {
    const char *prefix; /* before all names; NULL: none */
    tb_handle parent;   /* what hung on the model's world hangs on this body; zeroed: the world */
    /* body of the model (child of its world) that loses its own joints and is placed here in the
     * parent's frame; 0: none, and what hangs on the world keeps its place */
    int32_t base;
    double position[3], orientation[4];
    bool recentre;     /* the base's frame moves to its centre of mass (a body without children) */
    bool world_shapes; /* false: shapes of the model's world stay behind. Planes and height fields
                        * always do where there is a parent */
    bool convex;       /* meshes collide as their convex hulls */
    double friction;   /* >= 0: of every shape and pair; < 0: as the model has it */
    double mass_scale; /* of every body */
    /* out, may be NULL: index in the scene of each of the model's actuators, -1: left behind (its
     * joint was the base's) */
    int32_t *actuators;
} tb_merge_def;

tb_merge_def tb_merge_defaults(void);

/* Adds bodies, joints, shapes, assets, sites, tendons, actuators, equalities, pairs and excludes of
 * a model. What refers to a joint that is left behind stays behind too, and so do equalities of the
 * base with the world, and keyframes. Statuses are those of the builder. */
tb_status tb_scene_add_model(tb_scene *scene, const tb_model *model, const tb_merge_def *def,
                             tb_error *error);

/* Gives a body (index in the scene) that hangs on the world without joints a free joint. */
tb_status tb_scene_free_body(tb_scene *scene, int32_t body, const char *name, tb_error *error);
/* Gives the `nth` (from 0) slide of a body, both in the scene's order, these limits (m). */
tb_status tb_scene_stop_slide(tb_scene *scene, int32_t body, int32_t nth, double lower,
                              double upper, tb_error *error);

/* The same model in which pairs of shapes (count x 2, model indices) never collide. A model of its
 * own: with canonical bytes, hash, and the warnings of the first. Statuses are those of the builder
 * and the compiler. */
tb_status tb_model_leave_out(const tb_model *model, const int32_t *pairs, int32_t count,
                             tb_model **without, tb_error *error);
/* Adds a warning to a model that no other thread knows yet. */
tb_status tb_model_warn(tb_model *model, const char *text, tb_error *error);

/* What a variant changes. */
typedef struct tb_variation {
    double friction_scale;         /* of every shape and pair */
    int32_t first_body, last_body; /* bodies [first, last) ... */
    double mass_scale;             /* ... get this times their mass and inertia */
    const int32_t *actuators;      /* number_of_actuators indices whose force ... */
    int32_t number_of_actuators;   /* ... is limited to +- this, before the gear; N */
    double force;                  /* or N m; 0: as the model has it */
} tb_variation;

/* A model that borrows what it does not change: destroy it by tb_model_destroy before the model
 * that it was made of. Its hash is its own, of that model's and of the variation; it has no canonical
 * bytes. Armature of the bodies that change mass must be zero. */
tb_status tb_model_vary(const tb_model *model, const tb_variation *variation, tb_model **variant,
                        tb_error *error);

#endif
