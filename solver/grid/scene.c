/* The checks of a scene of soft bodies, and its defaults. */
#include <string.h>

#include "grid/grid_internal.h"

enum { FEWEST_NODES = 2 * TB_SOFT_LAYERS + 3, MOST_NODES = 200000000 };

tb_soft_options tb_soft_options_defaults(void)
{
    return (tb_soft_options){.dt = 5e-3,
                             .friction = 0.5,
                             .advection = TB_SOFT_SECOND_ORDER,
                             .most_substeps = 100,
                             .contact = TB_SOFT_SCHURPA,
                             .tolerance = 1e-6,
                             .most_projections = 50,
                             .maximum_solves = 500};
}

static tb_status check_lattice(const tb_soft_lattice *l, tb_error *error)
{
    double nodes = 1;
    for (int a = 0; a < 3; a++) {
        if (l->nodes[a] < FEWEST_NODES)
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "nodes",
                                 "the grid has %d nodes along %c; at least %d are needed",
                                 l->nodes[a], 'x' + a, FEWEST_NODES);
        if (!(l->spacing[a] > 0 && l->spacing[a] <= 1e6) || !(fabs(l->origin[a]) <= 1e9))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "spacing",
                                 "the grid's spacing along %c is %g m, its origin %g m", 'x' + a,
                                 l->spacing[a], l->origin[a]);
        nodes *= l->nodes[a];
    }
    if (nodes > MOST_NODES)
        return tb_fail_field(error, TB_RESOURCE_EXHAUSTED, "nodes",
                             "the grid has %.0f nodes; at most %d are possible", nodes, MOST_NODES);
    return TB_OK;
}

static tb_status check_material(const tb_soft_body *b, tb_error *error)
{
    const tb_soft_material *m = &b->material;
    const char *field = !(m->density > 0 && m->density <= 1e6)    ? "density"
                        : !(m->young > 0 && m->young <= 1e15)     ? "young"
                        : !(m->poisson >= 0 && m->poisson < 0.5)  ? "poisson"
                        : !(m->damping >= 0 && m->damping <= 1e6) ? "damping"
                                                                  : NULL;
    if (field == NULL) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, field,
                         "body '%s': density %g kg/m^3 and Young's modulus %g Pa must be positive, "
                         "Poisson's ratio %g in [0, 0.5), damping %g s not negative",
                         b->name, m->density, m->young, m->poisson, m->damping);
}

static tb_status check_shape(const tb_soft_solid *s, const char *name, bool obstacle,
                             tb_error *error)
{
    static const int sizes[] = {3, 1, 2, 2, 0, 3, 3, 3};
    const bool of_obstacles = s->kind >= TB_SOFT_PLANE && s->kind <= TB_SOFT_HULL;
    if ((int)s->kind < 0 || s->kind > TB_SOFT_MESH || of_obstacles > obstacle ||
        (s->kind == TB_SOFT_MESH && obstacle))
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "shape",
                             "'%s' has shape %d, which a %s cannot have", name, (int)s->kind,
                             obstacle ? "wall" : "body");
    for (int i = 0; i < sizes[s->kind]; i++)
        if (!(s->size[i] > 0 && s->size[i] <= 1e6))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "size",
                                 "'%s': a size is %g m and must be positive", name, s->size[i]);
    return TB_OK;
}

/* Half lengths of the shape's box in the world. */
static void extent(const tb_soft_solid *s, double half[3])
{
    const double *z = s->size, r = z[0];
    const bool three = s->kind == TB_SOFT_BOX || s->kind == TB_SOFT_ELLIPSOID ||
                       s->kind == TB_SOFT_HULL || s->kind == TB_SOFT_MESH;
    const double local[3] = {r, three ? z[1] : r,
                             three                         ? z[2]
                             : s->kind == TB_SOFT_SPHERE   ? r
                             : s->kind == TB_SOFT_CYLINDER ? z[1]
                                                           : z[1] + r};
    for (int a = 0; a < 3; a++) {
        half[a] = 0;
        for (int b = 0; b < 3; b++) half[a] += fabs(s->pose.rotation.m[3 * a + b]) * local[b];
        /* a ball is as wide along every axis */
        if (s->kind == TB_SOFT_SPHERE) half[a] = r;
    }
}

void tb_soft_bounds(const tb_soft_solid *s, double lower[3], double upper[3])
{
    double half[3], middle[3];
    extent(s, half);
    const bool off = s->kind == TB_SOFT_HULL || s->kind == TB_SOFT_MESH;
    const tb_vec3 local = off ? tb_v3_load(s->middle) : tb_v3(0, 0, 0);
    tb_v3_store(middle, tb_pose_point(&s->pose, local));
    for (int a = 0; a < 3; a++) {
        const double reach = s->kind == TB_SOFT_PLANE ? 1e300 : half[a];
        lower[a] = middle[a] - reach;
        upper[a] = middle[a] + reach;
    }
}

static tb_status check_inside(const tb_soft_lattice *l, const tb_soft_body *b, tb_error *error)
{
    double from[3], to[3];
    tb_soft_bounds(&b->shape, from, to);
    for (int a = 0; a < 3; a++) {
        const double margin = (TB_SOFT_LAYERS + 1) * l->spacing[a];
        const double lower = l->origin[a] + margin;
        const double upper = l->origin[a] + (l->nodes[a] - 1) * l->spacing[a] - margin;
        if (!(from[a] >= lower - 1e-9 * l->spacing[a] && to[a] <= upper + 1e-9 * l->spacing[a]))
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "pos",
                                 "body '%s' reaches from %g to %g m along %c; the grid has room "
                                 "from %g to %g m, %d cells inside its faces",
                                 b->name, from[a], to[a], 'x' + a, lower, upper,
                                 TB_SOFT_LAYERS + 1);
    }
    return TB_OK;
}

static tb_status check_options(const tb_soft_options *o, tb_error *error)
{
    const char *field = !(o->dt > 0 && o->dt <= 1e3)                ? "timestep"
                        : !(o->friction >= 0 && o->friction <= 1e3) ? "friction"
                        : o->most_substeps < 1                      ? "substeps"
                        : !(o->tolerance > 0 && o->tolerance < 1)   ? "tolerance"
                        : o->most_projections < 1                   ? "projections"
                        : o->maximum_solves < 1                     ? "solves"
                                                                    : NULL;
    if (field == NULL) return TB_OK;
    return tb_fail_field(error, TB_INVALID_ARGUMENT, field,
                         "option %s is out of its range: time step %g s > 0, friction %g >= 0, "
                         "substeps %d >= 1, tolerance %g in (0, 1), projections %d >= 1, solves %d "
                         ">= 1",
                         field, o->dt, o->friction, o->most_substeps, o->tolerance,
                         o->most_projections, o->maximum_solves);
}

/* Takes a mesh's box and volume over to the shape that it is; samples follow when a world is made. */
static tb_status take_mesh(const tb_soft_scene *s, tb_soft_body *b, tb_error *error)
{
    double lower[3], upper[3];
    if (b->shape.kind != TB_SOFT_MESH) return TB_OK;
    if (b->mesh < 0 || b->mesh >= s->number_of_meshes)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "mesh", "body '%s' has no mesh", b->name);
    tb_soft_mesh_bounds(s->meshes[b->mesh], lower, upper);
    b->shape.volume = tb_soft_mesh_volume(s->meshes[b->mesh]);
    for (int a = 0; a < 3; a++) {
        b->shape.middle[a] = 0.5 * (lower[a] + upper[a]);
        b->shape.size[a] = 0.5 * (upper[a] - lower[a]);
    }
    return TB_OK;
}

tb_status tb_soft_scene_add_mesh(tb_soft_scene *s, tb_soft_mesh *mesh, tb_error *error)
{
    if (s->number_of_meshes < TB_SOFT_MOST_BODIES) {
        s->meshes[s->number_of_meshes++] = mesh;
        return TB_OK;
    }
    tb_soft_mesh_release(mesh);
    return tb_fail_field(error, TB_RESOURCE_EXHAUSTED, "mesh", "more than %d meshes",
                         TB_SOFT_MOST_BODIES);
}

void tb_soft_scene_clear(tb_soft_scene *s)
{
    while (s->number_of_meshes > 0) tb_soft_mesh_release(s->meshes[--s->number_of_meshes]);
}

tb_status tb_soft_scene_check(tb_soft_scene *s, tb_error *error)
{
    tb_status status = check_lattice(&s->lattice, error);
    if (status == TB_OK) status = check_options(&s->options, error);
    if (status == TB_OK && s->number_of_bodies < 1)
        status = tb_fail_field(error, TB_INVALID_ARGUMENT, "body", "the scene has no body");
    for (int32_t i = 0; status == TB_OK && i < s->number_of_bodies; i++) {
        tb_soft_body *b = s->bodies + i;
        status = check_material(b, error);
        if (status == TB_OK) status = take_mesh(s, b, error);
        if (status == TB_OK) status = check_shape(&b->shape, b->name, false, error);
        if (status == TB_OK) status = check_inside(&s->lattice, b, error);
        tb_soft_material_lame(&b->material);
    }
    for (int32_t i = 0; status == TB_OK && i < s->number_of_obstacles; i++)
        status = check_shape(&s->obstacles[i].shape, s->obstacles[i].name, true, error);
    for (int32_t i = 0; status == TB_OK && i < s->number_of_clamps; i++)
        if (s->clamps[i].body < 0 || s->clamps[i].body >= s->number_of_bodies)
            status = tb_fail_field(error, TB_INVALID_ARGUMENT, "clamp", "clamp %d has no body", i);
    return status;
}
