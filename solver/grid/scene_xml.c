/* The scene format of soft bodies: an XML text that a person can write (README.md). */
#include <stdlib.h>
#include <string.h>

#include "grid/grid_internal.h"
#include "model/import/xml.h"

static const char *const KINDS = "box sphere cylinder capsule plane";
/* a mesh comes after the kinds of walls */
enum { MESH_OF_KINDS = 5 };
static const char *const BODY_KINDS = "box sphere cylinder capsule plane mesh";

typedef struct reader {
    tb_soft_scene *scene;
    const xmlNode *materials;                /* the root, among whose children materials are */
    const char *meshes[TB_SOFT_MOST_BODIES]; /* names of the scene's meshes, borrowed */
    tb_error *error;
} reader;

static tb_status read_name(const xmlNode *node, const char *fallback, int32_t number,
                           char name[TB_SOFT_NAME], tb_error *error)
{
    const char *given = tb_xml_attribute(node, "name");
    if (given != NULL && strlen(given) >= TB_SOFT_NAME)
        return tb_xml_fail(error, TB_INVALID_ARGUMENT, node, "name", "longer than %d characters",
                           TB_SOFT_NAME - 1);
    if (given != NULL)
        snprintf(name, TB_SOFT_NAME, "%s", given);
    else
        snprintf(name, TB_SOFT_NAME, "%s%d", fallback, number + 1);
    return TB_OK;
}

static tb_status read_option(reader *r, const xmlNode *node)
{
    tb_soft_options *o = &r->scene->options;
    int32_t advection = (int32_t)o->advection, contact = (int32_t)o->contact;
    tb_status status = tb_xml_check_attributes(
        node, "timestep gravity friction advection contact substeps tolerance projections solves",
        r->error);
    if (status == TB_OK) status = tb_xml_number(node, "timestep", &o->dt, r->error);
    if (status == TB_OK)
        status = tb_xml_numbers(node, "gravity", 3, 3, r->scene->gravity, NULL, r->error);
    if (status == TB_OK) status = tb_xml_number(node, "friction", &o->friction, r->error);
    if (status == TB_OK)
        status = tb_xml_choice(node, "advection", "first second", &advection, r->error);
    if (status == TB_OK)
        status = tb_xml_choice(node, "contact", "schurpa direct newton", &contact, r->error);
    if (status == TB_OK) status = tb_xml_integer(node, "substeps", &o->most_substeps, r->error);
    if (status == TB_OK) status = tb_xml_number(node, "tolerance", &o->tolerance, r->error);
    if (status == TB_OK)
        status = tb_xml_integer(node, "projections", &o->most_projections, r->error);
    if (status == TB_OK) status = tb_xml_integer(node, "solves", &o->maximum_solves, r->error);
    o->advection = (tb_soft_advection)advection;
    o->contact = (tb_soft_contact_method)contact;
    return status;
}

static tb_status read_grid(reader *r, const xmlNode *node)
{
    tb_soft_lattice *l = &r->scene->lattice;
    double lower[3], upper[3], spacing[3];
    int32_t n = 0;
    const char *missing = NULL;
    static const char *const names[] = {"lower", "upper", "spacing"};
    tb_status status = tb_xml_check_attributes(node, "lower upper spacing", r->error);
    for (int i = 0; status == TB_OK && i < 3; i++)
        status = tb_xml_require(node, names[i], &missing, r->error);
    if (status == TB_OK) status = tb_xml_numbers(node, "lower", 3, 3, lower, NULL, r->error);
    if (status == TB_OK) status = tb_xml_numbers(node, "upper", 3, 3, upper, NULL, r->error);
    if (status == TB_OK) status = tb_xml_numbers(node, "spacing", 1, 3, spacing, &n, r->error);
    if (status != TB_OK) return status;
    if (n == 2)
        return tb_xml_fail(r->error, TB_INVALID_ARGUMENT, node, "spacing", "one number or three");
    for (int a = 0; a < 3; a++) {
        const double h = spacing[n == 1 ? 0 : a], cells = (upper[a] - lower[a]) / h;
        if (!(h > 0 && cells >= 1 && cells < 1e6))
            return tb_xml_fail(r->error, TB_INVALID_ARGUMENT, node, "spacing",
                               "%g m from %g to %g m are not 1 to 1000000 cells along %c", h,
                               lower[a], upper[a], 'x' + a);
        l->spacing[a] = h;
        l->origin[a] = lower[a];
        l->nodes[a] = (int32_t)ceil(cells - 1e-6) + 1;
    }
    return TB_OK;
}

static tb_status read_material(reader *r, const xmlNode *node, tb_soft_material *m)
{
    int32_t law = 0;
    static const char *const needed[] = {"density", "young", "poisson"};
    double *const values[] = {&m->density, &m->young, &m->poisson};
    const char *text;
    tb_status status =
        tb_xml_check_attributes(node, "name law density young poisson damping", r->error);
    *m = (tb_soft_material){.damping = 0};
    if (status == TB_OK)
        status =
            tb_xml_choice(node, "law", "neo-hookean st-venant-kirchhoff corotated", &law, r->error);
    for (int i = 0; status == TB_OK && i < 3; i++) {
        status = tb_xml_require(node, needed[i], &text, r->error);
        if (status == TB_OK) status = tb_xml_number(node, needed[i], values[i], r->error);
    }
    if (status == TB_OK) status = tb_xml_number(node, "damping", &m->damping, r->error);
    m->law = (tb_soft_law)law;
    return status;
}

/* Fills in the body's material by the name that it gives. */
static tb_status find_material(reader *r, const xmlNode *node, tb_soft_material *m)
{
    const char *name;
    const tb_status status = tb_xml_require(node, "material", &name, r->error);
    if (status != TB_OK) return status;
    for (xmlNode *e = tb_xml_first_named(r->materials, "material"); e != NULL;
         e = tb_xml_next_named(e, "material")) {
        const char *other = tb_xml_attribute(e, "name");
        if (other != NULL && strcmp(other, name) == 0) return read_material(r, e, m);
    }
    return tb_xml_fail(r->error, TB_INVALID_ARGUMENT, node, "material", "no material '%s'", name);
}

/* Numbers of vertices, integral, as indices; *triangles is malloc'ed. */
static tb_status to_indices(const xmlNode *node, const double *numbers, int32_t count,
                            int32_t **triangles, tb_error *error)
{
    *triangles = malloc(((size_t)count + 1) * sizeof **triangles);
    if (*triangles == NULL)
        return tb_fail_memory(error, (size_t)count * sizeof **triangles, "a mesh");
    for (int32_t i = 0; i < count; i++) {
        if (!(numbers[i] >= 0 && numbers[i] < 1e9 && numbers[i] == floor(numbers[i])))
            return tb_xml_fail(error, TB_INVALID_ARGUMENT, node, "face",
                               "%g is no number of a vertex", numbers[i]);
        (*triangles)[i] = (int32_t)numbers[i];
    }
    return TB_OK;
}

static tb_status make_mesh(reader *r, const xmlNode *node, const double *vertices,
                           int32_t coordinates, const double *faces, int32_t indices)
{
    tb_soft_mesh *mesh = NULL;
    int32_t *triangles = NULL;
    tb_error cause = {0};
    if (coordinates == 0 || coordinates % 3 != 0 || indices == 0 || indices % 3 != 0)
        return tb_xml_fail(r->error, TB_INVALID_ARGUMENT, node,
                           coordinates == 0 || coordinates % 3 != 0 ? "vertex" : "face",
                           "three numbers each are needed");
    tb_status status = to_indices(node, faces, indices, &triangles, r->error);
    if (status == TB_OK) {
        status =
            tb_soft_mesh_create(vertices, coordinates / 3, triangles, indices / 3, &mesh, &cause);
        if (status != TB_OK) tb_xml_fail(r->error, status, node, NULL, "%s", cause.message);
    }
    free(triangles);
    if (status == TB_OK) status = tb_soft_scene_add_mesh(r->scene, mesh, r->error);
    return status;
}

static tb_status read_mesh(reader *r, const xmlNode *node)
{
    const char *name;
    double *vertices = NULL, *faces = NULL;
    int32_t coordinates = 0, indices = 0, lengths = 0;
    double scale[3] = {1, 1, 1};
    tb_status status = tb_xml_check_attributes(node, "name file vertex face scale", r->error);
    if (status == TB_OK) status = tb_xml_require(node, "name", &name, r->error);
    if (status == TB_OK && tb_xml_attribute(node, "file") != NULL)
        status = tb_xml_fail(r->error, TB_INVALID_ARGUMENT, node, "file",
                             "files are read by importers of scenes, and no 'vertex' may stand "
                             "beside one");
    for (int32_t i = 0; status == TB_OK && i < r->scene->number_of_meshes; i++)
        if (strcmp(r->meshes[i], name) == 0)
            status = tb_xml_fail(r->error, TB_INVALID_ARGUMENT, node, "name",
                                 "a mesh of this name stands above");
    if (status == TB_OK) status = tb_xml_numbers(node, "scale", 1, 3, scale, &lengths, r->error);
    if (status == TB_OK)
        status = tb_xml_number_list(node, "vertex", &vertices, &coordinates, r->error);
    if (status == TB_OK) status = tb_xml_number_list(node, "face", &faces, &indices, r->error);
    if (lengths == 1) scale[1] = scale[2] = scale[0];
    for (int32_t i = 0; status == TB_OK && i < coordinates; i++) vertices[i] *= scale[i % 3];
    if (status == TB_OK) status = make_mesh(r, node, vertices, coordinates, faces, indices);
    if (status == TB_OK) r->meshes[r->scene->number_of_meshes - 1] = name;
    free(vertices);
    free(faces);
    return status;
}

/* The mesh that a body names. */
static tb_status find_mesh(reader *r, const xmlNode *node, tb_soft_body *b)
{
    const char *name;
    const tb_status status = tb_xml_require(node, "mesh", &name, r->error);
    if (status != TB_OK) return status;
    b->shape.kind = TB_SOFT_MESH;
    for (b->mesh = 0; b->mesh < r->scene->number_of_meshes; b->mesh++)
        if (strcmp(r->meshes[b->mesh], name) == 0) return TB_OK;
    return tb_xml_fail(r->error, TB_INVALID_ARGUMENT, node, "mesh", "no mesh '%s'", name);
}

static tb_status read_shape(reader *r, const xmlNode *node, const char *kinds, tb_soft_solid *s)
{
    static const int32_t sizes[] = {3, 1, 2, 2, 0, 0};
    int32_t kind = 0, count = 0;
    double pos[3] = {0}, quat[4] = {1, 0, 0, 0};
    const char *text;
    tb_status status = tb_xml_require(node, "type", &text, r->error);
    if (status == TB_OK) status = tb_xml_choice(node, "type", kinds, &kind, r->error);
    if (status == TB_OK && sizes[kind] > 0)
        status = tb_xml_numbers(node, "size", sizes[kind], sizes[kind], s->size, &count, r->error);
    if (status == TB_OK && count != sizes[kind])
        status = tb_xml_fail(r->error, TB_INVALID_ARGUMENT, node, "size", "%d numbers are needed",
                             sizes[kind]);
    if (status == TB_OK) status = tb_xml_numbers(node, "pos", 3, 3, pos, NULL, r->error);
    if (status == TB_OK) status = tb_xml_numbers(node, "quat", 4, 4, quat, NULL, r->error);
    if (status == TB_OK &&
        !(quat[0] * quat[0] + quat[1] * quat[1] + quat[2] * quat[2] + quat[3] * quat[3] > 1e-12))
        status = tb_xml_fail(r->error, TB_INVALID_ARGUMENT, node, "quat", "no rotation");
    if (status != TB_OK) return status;
    s->kind = (tb_soft_shape_kind)kind;
    s->pose.position = tb_v3_load(pos);
    s->pose.rotation = tb_q_matrix(tb_q_normalize(tb_q_load(quat)));
    return TB_OK;
}

static tb_status read_body(reader *r, const xmlNode *node)
{
    tb_soft_scene *s = r->scene;
    if (s->number_of_bodies == TB_SOFT_MOST_BODIES)
        return tb_xml_fail(r->error, TB_RESOURCE_EXHAUSTED, node, NULL, "more than %d bodies",
                           TB_SOFT_MOST_BODIES);
    tb_soft_body *b = s->bodies + s->number_of_bodies;
    tb_status status = tb_xml_check_attributes(
        node, "name material type mesh size pos quat velocity angular", r->error);
    if (status == TB_OK) status = read_name(node, "body", s->number_of_bodies, b->name, r->error);
    for (int32_t i = 0; status == TB_OK && i < s->number_of_bodies; i++)
        if (strcmp(s->bodies[i].name, b->name) == 0)
            status = tb_xml_fail(r->error, TB_INVALID_ARGUMENT, node, "name",
                                 "a body of this name stands above");
    if (status == TB_OK) status = find_material(r, node, &b->material);
    if (status == TB_OK) status = read_shape(r, node, BODY_KINDS, &b->shape);
    if (status == TB_OK && (int)b->shape.kind == MESH_OF_KINDS) status = find_mesh(r, node, b);
    if (status == TB_OK)
        status = tb_xml_numbers(node, "velocity", 3, 3, b->velocity, NULL, r->error);
    if (status == TB_OK) status = tb_xml_numbers(node, "angular", 3, 3, b->angular, NULL, r->error);
    s->number_of_bodies++;
    return status;
}

static tb_status read_wall(reader *r, const xmlNode *node)
{
    tb_soft_scene *s = r->scene;
    if (s->number_of_obstacles == TB_SOFT_MOST_BODIES)
        return tb_xml_fail(r->error, TB_RESOURCE_EXHAUSTED, node, NULL, "more than %d walls",
                           TB_SOFT_MOST_BODIES);
    tb_soft_obstacle *o = s->obstacles + s->number_of_obstacles;
    tb_status status = tb_xml_check_attributes(node, "name type size pos quat velocity", r->error);
    if (status == TB_OK)
        status = read_name(node, "wall", s->number_of_obstacles, o->name, r->error);
    if (status == TB_OK) status = read_shape(r, node, KINDS, &o->shape);
    if (status == TB_OK)
        status = tb_xml_numbers(node, "velocity", 3, 3, o->velocity, NULL, r->error);
    s->number_of_obstacles++;
    return status;
}

static tb_status read_clamp(reader *r, const xmlNode *node)
{
    tb_soft_scene *s = r->scene;
    const char *name;
    int32_t lower = 0, upper = 0;
    if (s->number_of_clamps == TB_SOFT_MOST_BODIES)
        return tb_xml_fail(r->error, TB_RESOURCE_EXHAUSTED, node, NULL, "more than %d clamps",
                           TB_SOFT_MOST_BODIES);
    tb_soft_clamp *c = s->clamps + s->number_of_clamps++;
    tb_status status = tb_xml_check_attributes(node, "body lower upper velocity rigid", r->error);
    if (status == TB_OK) status = tb_xml_require(node, "body", &name, r->error);
    if (status == TB_OK) status = tb_xml_numbers(node, "lower", 3, 3, c->lower, &lower, r->error);
    if (status == TB_OK) status = tb_xml_numbers(node, "upper", 3, 3, c->upper, &upper, r->error);
    if (status != TB_OK) return status;
    status = tb_xml_numbers(node, "velocity", 3, 3, c->velocity, NULL, r->error);
    const char *partner = tb_xml_attribute(node, "rigid");
    if (status == TB_OK && partner != NULL &&
        (strlen(partner) >= TB_SOFT_NAME || tb_xml_attribute(node, "velocity") != NULL))
        status = tb_xml_fail(r->error, TB_INVALID_ARGUMENT, node, "rigid",
                             "a name of at most %d characters and no velocity beside it",
                             TB_SOFT_NAME - 1);
    if (status != TB_OK) return status;
    if (partner != NULL) snprintf(c->partner, sizeof c->partner, "%s", partner);
    c->start = tb_pose_identity();
    if (lower != 3 || upper != 3)
        return tb_xml_fail(r->error, TB_INVALID_ARGUMENT, node, lower != 3 ? "lower" : "upper",
                           "three numbers are needed");
    for (c->body = 0; c->body < s->number_of_bodies; c->body++)
        if (strcmp(s->bodies[c->body].name, name) == 0) return TB_OK;
    return tb_xml_fail(r->error, TB_INVALID_ARGUMENT, node, "body", "no body '%s' stands above",
                       name);
}

/* The file of rigid bodies: import.c loads it. */
static tb_status read_rigid(reader *r, const xmlNode *node)
{
    const char *file;
    tb_status status = tb_xml_check_attributes(node, "file", r->error);
    if (status == TB_OK) status = tb_xml_require(node, "file", &file, r->error);
    if (status != TB_OK) return status;
    if (r->scene->rigid[0] != 0)
        return tb_xml_fail(r->error, TB_INVALID_ARGUMENT, node, NULL,
                           "one file of rigid bodies is included already");
    if (file[0] == 0 || strlen(file) >= sizeof r->scene->rigid)
        return tb_xml_fail(r->error, TB_INVALID_ARGUMENT, node, "file",
                           "a path of 1 to %zu bytes is needed", sizeof r->scene->rigid - 1);
    snprintf(r->scene->rigid, sizeof r->scene->rigid, "%s", file);
    r->scene->rigid_line = tb_xml_line(node);
    return TB_OK;
}

static tb_status read_root(reader *r, const xmlNode *root)
{
    const char *model = tb_xml_attribute(root, "model");
    tb_status status;
    if (!tb_xml_is(root, "soft"))
        return tb_xml_fail(r->error, TB_INVALID_ARGUMENT, root, NULL,
                           "a scene of soft bodies begins with <soft>");
    status = tb_xml_check_attributes(root, "model", r->error);
    if (status == TB_OK)
        status = tb_xml_check_children(root, "option grid material mesh body wall clamp rigid",
                                       r->error);
    snprintf(r->scene->name, sizeof r->scene->name, "%s", model != NULL ? model : "soft");
    r->materials = root;
    const xmlNode *grid = tb_xml_first_named(root, "grid");
    if (status == TB_OK && grid == NULL)
        status = tb_xml_fail(r->error, TB_INVALID_ARGUMENT, root, NULL, "no <grid>");
    for (xmlNode *e = tb_xml_first_named(root, "mesh"); status == TB_OK && e != NULL;
         e = tb_xml_next_named(e, "mesh"))
        status = read_mesh(r, e);
    for (xmlNode *e = tb_xml_first(root); status == TB_OK && e != NULL; e = tb_xml_next(e)) {
        tb_soft_material unused;
        if (tb_xml_is(e, "option")) status = read_option(r, e);
        if (tb_xml_is(e, "grid")) status = read_grid(r, e);
        if (tb_xml_is(e, "material")) status = read_material(r, e, &unused);
        if (tb_xml_is(e, "body")) status = read_body(r, e);
        if (tb_xml_is(e, "wall")) status = read_wall(r, e);
        if (tb_xml_is(e, "clamp")) status = read_clamp(r, e);
        if (tb_xml_is(e, "rigid")) status = read_rigid(r, e);
    }
    return status;
}

tb_status tb_soft_scene_read_tree(const xmlNode *root, tb_soft_scene *scene, tb_error *error)
{
    reader r = {.scene = scene, .error = error};
    memset(scene, 0, sizeof *scene);
    scene->options = tb_soft_options_defaults();
    const tb_status status = read_root(&r, root);
    return status == TB_OK ? tb_soft_scene_check(scene, error) : status;
}

tb_status tb_soft_scene_read(const char *text, size_t size, const char *name, tb_soft_scene *scene,
                             tb_error *error)
{
    tb_xml *xml = NULL;
    memset(scene, 0, sizeof *scene);
    tb_status status = tb_xml_parse(text, size, name, NULL, &xml, error);
    if (status != TB_OK) return status;
    status = tb_soft_scene_read_tree(tb_xml_root(xml), scene, error);
    tb_xml_destroy(xml);
    return status;
}

bool tb_soft_is_scene(const char *text, size_t size)
{
    size_t i = 0;
    while (i < size) {
        /* comments, declarations and white space may precede the root */
        if (strchr(" \t\r\n", text[i]) != NULL && text[i] != 0) {
            i++;
        } else if (size - i >= 4 && memcmp(text + i, "<!--", 4) == 0) {
            const char *end = memmem(text + i, size - i, "-->", 3);
            if (end == NULL) return false;
            i = (size_t)(end - text) + 3;
        } else if (size - i >= 2 && memcmp(text + i, "<?", 2) == 0) {
            const char *end = memmem(text + i, size - i, "?>", 2);
            if (end == NULL) return false;
            i = (size_t)(end - text) + 2;
        } else {
            return size - i >= 6 && memcmp(text + i, "<soft", 5) == 0 &&
                   strchr(" \t\r\n>/", text[i + 5]) != NULL;
        }
    }
    return false;
}
