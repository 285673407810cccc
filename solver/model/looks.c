/* Questions of viewers: shapes, sites and actuators of a model, and triangles to draw.
 *
 * A model keeps the vertices of a mesh once, in its canonical bytes: the hull or the tree of a shape
 * that collides is made from them, and a viewer asks for them once. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/little_endian.h"
#include "base/sha256.h"
#include "model/model_internal.h"

/* ---- a scene's side ---- */

void tb_scene_keep_look(tb_scene *scene, tb_check *check, tb_shape_def *shape)
{
    const char *why = "";
    if (!shape->has_colour) memset(shape->colour, 0, sizeof shape->colour);
    tb_check_not_negative(check, "colour", shape->colour, 4);
    for (int i = 0; i < 4; i++) shape->colour[i] = tb_min(shape->colour[i], 1);
    if (shape->material == NULL || shape->material[0] == 0) {
        shape->material = "";
        return;
    }
    if (!tb_name_is_valid(shape->material, &why)) tb_check_fail(check, "material", "%s", why);
    if (check->status != TB_OK) return;
    shape->material = tb_names_keep(&scene->names, shape->material);
    if (shape->material == NULL)
        check->status = tb_fail_memory(check->error, TB_NAME_LENGTH_LIMIT, "a material");
}

/* ---- shapes, sites, actuators ---- */

tb_status tb_model_shape_info(const tb_model *model, int32_t index, tb_shape_info *info)
{
    memset(info, 0, sizeof *info);
    if (index < 0 || index >= model->number_of_shapes) return TB_INVALID_ARGUMENT;
    const tb_model_shape *shape = &model->shapes[index];
    const tb_model_look *look = &model->looks[index];
    info->type = shape->type;
    info->body = shape->body;
    memcpy(info->position, shape->position, sizeof info->position);
    memcpy(info->orientation, shape->orientation, sizeof info->orientation);
    memcpy(info->size, shape->size, sizeof info->size);
    info->group = look->group;
    info->friction = shape->surface.friction;
    info->restitution = shape->surface.restitution;
    info->tangential_restitution = shape->surface.tangential_restitution;
    info->has_colour = look->has_colour;
    memcpy(info->colour, look->colour, sizeof info->colour);
    info->material = look->material;
    info->mesh = info->height_field = -1;
    if (shape->type == TB_SHAPE_CONVEX || shape->type == TB_SHAPE_MESH)
        info->mesh = look->asset;
    else if (shape->type == TB_SHAPE_HEIGHT_FIELD)
        info->height_field = look->asset;
    /* ascending, so that one search finds whether the shape is among them */
    int32_t low = 0, high = model->number_of_colliding_shapes;
    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        if (model->colliding_shapes[middle] < index)
            low = middle + 1;
        else
            high = middle;
    }
    info->collides =
        low < model->number_of_colliding_shapes && model->colliding_shapes[low] == index;
    return TB_OK;
}

tb_status tb_model_sensor_info(const tb_model *model, int32_t index, tb_sensor_info *info)
{
    memset(info, 0, sizeof *info);
    if (index < 0 || index >= model->number_of_sensors) return TB_INVALID_ARGUMENT;
    const tb_model_sensor *sensor = &model->sensors[index];
    info->type = sensor->type;
    info->object_kind = sensor->object_kind;
    info->object = sensor->object;
    info->first = sensor->first;
    info->numbers = sensor->numbers;
    return TB_OK;
}

tb_status tb_model_site_info(const tb_model *model, int32_t index, tb_site_info *info)
{
    memset(info, 0, sizeof *info);
    if (index < 0 || index >= model->number_of_sites) return TB_INVALID_ARGUMENT;
    const tb_model_site *site = &model->sites[index];
    info->body = site->body;
    memcpy(info->position, site->position, sizeof info->position);
    memcpy(info->orientation, site->orientation, sizeof info->orientation);
    return TB_OK;
}

int32_t tb_model_tendon_waypoints(const tb_model *model, int32_t tendon, tb_tendon_waypoint *places,
                                  int32_t capacity)
{
    if (tendon < 0 || tendon >= model->number_of_tendons) return 0;
    const tb_model_tendon *t = &model->tendons[tendon];
    int32_t count = 0;
    for (int32_t i = t->first_point; i < t->first_point + t->number_of_points; i++) {
        const tb_model_tendon_point *point = &model->tendon_points[i];
        const bool pulley = point->kind == TB_TENDON_PULLEY;
        if (!pulley && point->kind != TB_TENDON_SITE) continue;
        if (places != NULL && count < capacity) {
            tb_tendon_waypoint *place = &places[count];
            *place = (tb_tendon_waypoint){.body = pulley ? -1 : point->body};
            if (!pulley) memcpy(place->position, point->position, sizeof place->position);
        }
        count++;
    }
    return count;
}

tb_status tb_model_actuator_info(const tb_model *model, int32_t index, tb_actuator_info *info)
{
    memset(info, 0, sizeof *info);
    if (index < 0 || index >= model->number_of_actuators) return TB_INVALID_ARGUMENT;
    const tb_model_actuator *a = &model->actuators[index];
    info->target_kind = a->joint >= 0    ? TB_HANDLE_JOINT
                        : a->tendon >= 0 ? TB_HANDLE_TENDON
                        : a->site >= 0   ? TB_HANDLE_SITE
                                         : TB_HANDLE_BODY;
    info->target = a->joint >= 0    ? a->joint
                   : a->tendon >= 0 ? a->tendon
                   : a->site >= 0   ? a->site
                                    : a->body;
    info->control_limited = a->control_limited;
    info->control_lower = a->control_lower;
    info->control_upper = a->control_upper;
    info->force_limited = a->force_limited;
    info->force_lower = a->force_lower;
    info->force_upper = a->force_upper;
    memcpy(info->gear, a->gear, sizeof info->gear);
    return TB_OK;
}

/* ---- contents in the canonical bytes ---- */

/* A variant's bytes are those of its origin. */
static const unsigned char *bytes_of(const tb_model *model)
{
    return model->origin != NULL ? model->origin->bytes : model->bytes;
}

static const tb_model_content *content_of(const tb_model *model, tb_handle_kind kind, int32_t index)
{
    const bool mesh = kind == TB_HANDLE_MESH;
    const int32_t count =
        mesh ? model->number_of_mesh_assets : model->number_of_height_field_assets;
    if ((!mesh && kind != TB_HANDLE_HEIGHT_FIELD) || index < 0 || index >= count) return NULL;
    return mesh ? &model->mesh_contents[index] : &model->height_field_contents[index];
}

void tb_model_asset_sha256(const tb_model *model, tb_handle_kind kind, int32_t index, char hex[65])
{
    const tb_model_content *content = content_of(model, kind, index);
    hex[0] = 0;
    if (content != NULL) tb_sha256_hex(bytes_of(model) + content->first, content->size, hex);
}

void tb_model_mesh_size(const tb_model *model, int32_t mesh, int32_t *vertices, int32_t *triangles)
{
    const tb_model_content *content = content_of(model, TB_HANDLE_MESH, mesh);
    *vertices = *triangles = 0;
    if (content == NULL) return;
    const unsigned char *from = bytes_of(model) + content->first;
    *vertices = tb_read_i32(from);
    *triangles = tb_read_i32(from + 4 + 24 * (size_t)*vertices);
}

/* ---- triangles ---- */

static tb_status take_triangles(tb_triangles *t, int32_t vertices, int32_t triangles,
                                tb_error *error)
{
    t->vertices = malloc((3 * (size_t)vertices + 1) * sizeof *t->vertices);
    t->triangles = malloc((3 * (size_t)triangles + 1) * sizeof *t->triangles);
    if (t->vertices == NULL || t->triangles == NULL)
        return tb_fail_memory(error, 12 * ((size_t)vertices + (size_t)triangles), "triangles");
    t->number_of_vertices = vertices;
    t->number_of_triangles = triangles;
    return TB_OK;
}

/* The polygons of a hull as fans. */
static tb_status draw_hull(const tb_hull *hull, tb_triangles *out, tb_error *error)
{
    const int32_t triangles = hull->number_of_face_indices - 2 * hull->number_of_faces;
    const tb_status status = take_triangles(out, hull->number_of_vertices, triangles, error);
    if (status != TB_OK) return status;
    for (int32_t i = 0; i < 3 * hull->number_of_vertices; i++)
        out->vertices[i] = (float)hull->vertices[i];
    int32_t *at = out->triangles;
    for (int32_t f = 0; f < hull->number_of_faces; f++) {
        const int32_t *polygon = hull->face_vertices + hull->face_start[f];
        const int32_t corners = hull->face_start[f + 1] - hull->face_start[f];
        for (int32_t k = 2; k < corners; k++) {
            *at++ = polygon[0];
            *at++ = polygon[k - 1];
            *at++ = polygon[k];
        }
    }
    return TB_OK;
}

/* The hull of a point cloud that no shape collides as. */
static tb_status draw_cloud(const unsigned char *from, int32_t vertices, tb_triangles *out,
                            tb_error *error)
{
    tb_arena arena;
    tb_hull hull;
    tb_arena_init(&arena, 0);
    double *points = TB_ARENA_ARRAY(&arena, double, 3 * (size_t)vertices);
    tb_status status =
        points != NULL ? TB_OK : tb_fail_memory(error, 24 * (size_t)vertices, "a point cloud");
    for (int32_t i = 0; status == TB_OK && i < 3 * vertices; i++)
        points[i] = tb_read_double(from + 8 * (size_t)i);
    if (status == TB_OK) status = tb_hull_build(points, vertices, &arena, &hull, error);
    if (status == TB_OK) status = draw_hull(&hull, out, error);
    tb_arena_destroy(&arena);
    return status;
}

tb_status tb_model_mesh(const tb_model *model, int32_t mesh, bool hull, tb_triangles *out,
                        tb_error *error)
{
    const tb_model_content *content = content_of(model, TB_HANDLE_MESH, mesh);
    int32_t vertices = 0, triangles = 0;
    memset(out, 0, sizeof *out);
    if (content == NULL)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "mesh", "mesh is %d, the model has %d",
                             (int)mesh, (int)model->number_of_mesh_assets);
    if (hull && content->hull < 0)
        return tb_fail_field(error, TB_NOT_FOUND, "mesh",
                             "no shape collides as the hull of mesh %d", (int)mesh);
    tb_model_mesh_size(model, mesh, &vertices, &triangles);
    if (content->hull >= 0 && (hull || triangles == 0))
        return draw_hull(&model->hulls[content->hull], out, error);
    const unsigned char *from = bytes_of(model) + content->first + 4;
    if (triangles == 0) return draw_cloud(from, vertices, out, error);

    const tb_status status = take_triangles(out, vertices, triangles, error);
    if (status != TB_OK) return status;
    for (int32_t i = 0; i < 3 * vertices; i++)
        out->vertices[i] = (float)tb_read_double(from + 8 * (size_t)i);
    from += 24 * (size_t)vertices + 4;
    for (int32_t i = 0; i < 3 * triangles; i++)
        out->triangles[i] = tb_read_i32(from + 4 * (size_t)i);
    return TB_OK;
}

void tb_triangles_free(tb_triangles *t)
{
    free(t->vertices);
    free(t->triangles);
    memset(t, 0, sizeof *t);
}

/* ---- height fields ---- */

int32_t tb_model_number_of_height_fields(const tb_model *model)
{
    return model->number_of_height_field_assets;
}

tb_status tb_model_height_field(const tb_model *model, int32_t field, tb_height_field_def *def,
                                float **heights, tb_error *error)
{
    const tb_model_content *content = content_of(model, TB_HANDLE_HEIGHT_FIELD, field);
    *def = tb_height_field_defaults();
    *heights = NULL;
    if (content == NULL)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "height_field",
                             "height_field is %d, the model has %d", (int)field,
                             (int)model->number_of_height_field_assets);
    const unsigned char *from = bytes_of(model) + content->first;
    def->rows = tb_read_i32(from);
    def->columns = tb_read_i32(from + 4);
    const size_t count = (size_t)def->rows * (size_t)def->columns;
    const unsigned char *ends = from + 8 + 8 * count;
    def->half_x = tb_read_double(ends);
    def->half_y = tb_read_double(ends + 8);
    def->base = tb_read_double(ends + 16);
    *heights = malloc((count + 1) * sizeof **heights);
    if (*heights == NULL) return tb_fail_memory(error, count * sizeof **heights, "heights");
    for (size_t i = 0; i < count; i++) (*heights)[i] = (float)tb_read_double(from + 8 + 8 * i);
    return TB_OK;
}
