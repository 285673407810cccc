/* Adds compiled models to a scene, and makes variants of a compiled model.
 *
 * tb_scene_add_model builds one world from several files: a hand, an object and a table, for
 * example. The compiled masses are used, because a file's mass options (minimum, total, groups)
 * apply to that file alone. A variant is the same model with different friction, masses or
 * forces: it shares all large arrays and costs a few kilobytes. */
#ifndef TB_MERGE_H
#define TB_MERGE_H

#include "model/model.h"

/* How a model enters a scene. Start from tb_merge_defaults. */
typedef struct tb_merge_def {
    const char *prefix; /* prefix of all names; NULL: none */
    tb_handle parent;   /* new parent of the children of the model's world; zeroed: the world */
    /* body of the model (child of its world) that loses its own joints and gets this pose in the
     * parent's frame; 0: none, and the children of the world keep their poses */
    int32_t base;
    double position[3], orientation[4];
    bool recentre;     /* moves the base's frame to its centre of mass (a body without children) */
    bool world_shapes; /* false: leaves out shapes of the model's world. With a parent, planes
                          and height fields are always left out */
    bool convex;       /* meshes collide as their convex hulls */
    double friction;   /* >= 0: mu of all shapes and pairs; < 0: the model's own */
    double spin;       /* m, > 0, with a friction: all shapes resist spin about the normal, by this
                          lever times the normal force; 0: the model's own */
    double mass_scale; /* factor on the mass of every body */
    /* out, may be NULL: scene index of each of the model's actuators, -1: left out (its joint
     * was the base's) */
    int32_t *actuators;
} tb_merge_def;

tb_merge_def tb_merge_defaults(void);

/* Adds bodies, joints, shapes, assets, sites, tendons, actuators, equalities, pairs, excludes and
 * sensors of a model. Elements that refer to an omitted joint or shape, equalities between the base and the world,
 * and keyframes are left out. Statuses are those of the builder. */
tb_status tb_scene_add_model(tb_scene *scene, const tb_model *model, const tb_merge_def *def,
                             tb_error *error);

/* Adds a free joint to a body (scene index) that is a child of the world without joints. */
tb_status tb_scene_free_body(tb_scene *scene, int32_t body, const char *name, tb_error *error);
/* Sets the limits (m) of the `nth` (from 0) slide of a body, both in the scene's order. */
tb_status tb_scene_stop_slide(tb_scene *scene, int32_t body, int32_t nth, double lower,
                              double upper, tb_error *error);

/* The same model in which pairs of shapes (count x 2, model indices) never collide. The result
 * is a complete model: with canonical bytes, hash, and the warnings of the first. Statuses:
 * as the builder and the compiler return them. */
tb_status tb_model_leave_out(const tb_model *model, const int32_t *pairs, int32_t count,
                             tb_model **without, tb_error *error);
/* Adds a warning to a model that no other thread uses yet. */
tb_status tb_model_warn(tb_model *model, const char *text, tb_error *error);

/* Changes of a variant. */
typedef struct tb_variation {
    double friction_scale;         /* factor on the friction of every shape and pair */
    int32_t first_body, last_body; /* bodies [first, last) ... */
    double mass_scale;             /* ... have their mass and inertia multiplied by this */
    const int32_t *actuators;      /* number_of_actuators indices of actuators whose force ... */
    int32_t number_of_actuators;   /* ... is limited to +- this, before the gear; N */
    double force;                  /* or N m; 0: the model's limit */
} tb_variation;

/* Makes a variant, which borrows the unchanged arrays of `model`: destroy the variant by
 * tb_model_destroy before `model`. The variant's hash is computed from the model's hash and the
 * variation; a variant has no canonical bytes. Bodies that change mass must have zero armature. */
tb_status tb_model_vary(const tb_model *model, const tb_variation *variation, tb_model **variant,
                        tb_error *error);

/* Numbers of a model that its variants may change, each array complete. */
typedef struct tb_model_values {
    const double *friction;               /* shapes: mu of the shape's surface */
    const double *mass;                   /* bodies, kg */
    const double *gain, *bias;            /* actuators x 3, as in tb_actuator_def */
    const double *damping, *dry_friction; /* joints: of every dof of the joint */
    const double *size;                   /* shapes x 3: of shapes without an asset */
} tb_model_values;

/* Makes a variant with these values, in the numbers that a scene written with them compiles to; the
 * inertia about the centre of mass scales with the mass. *variant is NULL where all values are the
 * model's own. The values of the world and of a muscle are not used. The variant's hash is computed
 * from the model's hash and the values. INVALID_ARGUMENT for a mass that no inverse exists for. */
tb_status tb_model_vary_values(const tb_model *model, const tb_model_values *values,
                               tb_model **variant, tb_error *error);

#endif
