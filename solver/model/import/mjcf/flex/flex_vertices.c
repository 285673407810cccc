/* Contacts of soft flexes. With a plane a flex touches at its vertices alone, for they are the corners of its
 * elements: so each vertex has a ball of the flex's radius, which other things do not see. Contacts of elements,
 * with other shapes or with each other, do not exist: a model where other shapes may touch a flex is refused, one
 * whose flex may touch itself warns. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/import/mjcf/flex/flex.h"
#include "model/model_internal.h"

static bool meet(uint32_t category, uint32_t mask, uint32_t other_category, uint32_t other_mask)
{
    return (category & other_mask) != 0 || (other_category & mask) != 0;
}

tb_status mjcf_read_flex_vertex(mjcf *m, const xmlNode *node, const mjcf_pose *frame,
                                tb_handle body)
{
    tb_shape_def def = tb_shape_defaults();
    tb_error refusal = {0};
    tb_handle shape;
    double point[3] = {0};
    MJCF_TRY(flex_read_contact(m, node, &def));
    MJCF_TRY(mjcf_name(m, node, &def.name));
    MJCF_TRY(tb_xml_numbers(node, "pos", 3, 3, point, NULL, m->error));
    MJCF_TRY(tb_xml_number(node, "size", &def.size[0], m->error));
    tb_v3_store(def.position,
                tb_v3_add(tb_q_rotate(frame->orientation, tb_v3_load(point)), frame->position));
    def.body = body;
    def.type = TB_SHAPE_SPHERE;
    def.mass = 0;
    def.category &= ~def.mask; /* balls of one flex do not see each other */
    if (m->no_contact) def.category = def.mask = 0;
    if (tb_scene_add_shape(m->scene, &def, &shape, &refusal) != TB_OK)
        return mjcf_refused(m, node, &refusal);
    MJCF_TRY(mjcf_grow(m, (void **)&m->flex_vertices, m->number_of_flex_vertices,
                       &m->flex_vertex_capacity, sizeof *m->flex_vertices));
    m->flex_vertices[m->number_of_flex_vertices++] =
        (mjcf_flex_vertex){(int32_t)scene_index(shape), tb_xml_attribute(node, "flex"), m->suffix};
    return TB_OK;
}

tb_status mjcf_read_flex(mjcf *m, const xmlNode *node)
{
    tb_shape_def def = tb_shape_defaults();
    MJCF_TRY(flex_read_contact(m, node, &def));
    if (tb_xml_attribute(node, "touches_itself") != NULL && !m->no_contact)
        MJCF_TRY(mjcf_note_past(m, node, "flexcomp",
                                "could touch itself, and does not: selfcollide is ignored"));
    MJCF_TRY(mjcf_grow(m, (void **)&m->flexes, m->number_of_flexes, &m->flex_capacity,
                       sizeof *m->flexes));
    m->flexes[m->number_of_flexes++] = (mjcf_flex){node, m->suffix, def.category, def.mask};
    return TB_OK;
}

/* Sets the flex of each shape that is a vertex. */
static void find_owners(const mjcf *m, int32_t *owner)
{
    for (int32_t i = 0; i < m->number_of_flex_vertices; i++) {
        const mjcf_flex_vertex *v = &m->flex_vertices[i];
        for (int32_t f = 0; f < m->number_of_flexes; f++)
            if (strcmp(v->suffix, m->flexes[f].suffix) == 0 &&
                strcmp(v->flex, tb_xml_attribute(m->flexes[f].node, "name")) == 0)
                owner[v->shape] = f;
    }
}

/* Refuses a flex that a shape other than a plane may touch, or whose balls a plane does not see as it should. */
static tb_status check(mjcf *m, int32_t index, const int32_t *owner)
{
    const mjcf_flex *f = &m->flexes[index];
    for (int32_t i = 0; i < m->scene->number_of_shapes; i++) {
        const tb_shape_def *s = &m->scene->shapes[i];
        if (owner[i] == index) continue;
        const mjcf_flex *other = owner[i] >= 0 ? &m->flexes[owner[i]] : NULL;
        const uint32_t category = other != NULL ? other->category : s->category;
        const uint32_t mask = other != NULL ? other->mask : s->mask;
        if (!meet(f->category, f->mask, category, mask)) continue;
        const bool seen = meet(f->category & ~f->mask, f->mask, category, mask);
        if (s->type == TB_SHAPE_PLANE && seen) continue;
        const bool named = s->name != NULL && s->name[0] != 0, fixed = tb_handle_is_none(s->body);
        const char *body = fixed ? "world" : m->scene->bodies[scene_index(s->body)].name;
        return tb_xml_fail(m->error, TB_UNSUPPORTED, f->node, NULL,
                           "it may touch %s '%.100s': soft flexcomps touch planes alone",
                           named ? "geom" : "a geom of body", named ? s->name : body);
    }
    return TB_OK;
}

tb_status mjcf_check_flexes(mjcf *m)
{
    const int32_t shapes = m->scene->number_of_shapes;
    if (m->number_of_flexes == 0 || m->no_contact) return TB_OK;
    int32_t *owner = malloc(((size_t)shapes + 1) * sizeof *owner);
    if (owner == NULL) return tb_fail_memory(m->error, (size_t)shapes * 4, "flexes");
    for (int32_t i = 0; i < shapes; i++) owner[i] = -1;
    find_owners(m, owner);
    tb_status status = TB_OK;
    for (int32_t f = 0; f < m->number_of_flexes && status == TB_OK; f++)
        status = check(m, f, owner);
    free(owner);
    return status;
}
