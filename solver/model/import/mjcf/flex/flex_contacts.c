/* Balls, elements and elastics of soft flexes, beside their bodies and tendons: a ball of the flex's radius at each vertex on its
 * outside, an element over each of its segments or outer triangles, and its elastic simplices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/import/mjcf/flex/flex.h"
#include "model/model_internal.h"

tb_status mjcf_read_flex_vertex(mjcf *m, const xmlNode *node, const mjcf_pose *frame,
                                tb_handle body)
{
    tb_shape_def def = tb_shape_defaults();
    tb_error refusal = {0};
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
    if (m->no_contact) def.category = def.mask = 0;
    if (tb_scene_add_shape(m->scene, &def, NULL, &refusal) != TB_OK)
        return mjcf_refused(m, node, &refusal);
    return TB_OK;
}

tb_status mjcf_read_flex(mjcf *m, const xmlNode *node)
{
    MJCF_TRY(mjcf_grow(m, (void **)&m->flexes, m->number_of_flexes, &m->flex_capacity,
                       sizeof *m->flexes));
    m->flexes[m->number_of_flexes++] = (mjcf_flex){node, m->suffix};
    return TB_OK;
}

/* The ball or the site of a vertex in the flex's replica. */
static tb_handle find_vertex(const mjcf *m, const mjcf_flex *f, tb_handle_kind kind, double vertex)
{
    char name[640];
    snprintf(name, sizeof name, "%.500s_%d%.100s", tb_xml_attribute(f->node, "name"), (int)vertex,
             f->suffix);
    return tb_scene_find(m->scene, kind, name);
}

/* Elements over all faces, which the attribute `faces` lists; of one group where the flex does not touch itself. */
static tb_status add_elements(mjcf *m, const mjcf_flex *f, int32_t group)
{
    double *faces = NULL;
    int32_t count = 0;
    tb_error refusal = {0};
    const bool touches_itself = tb_xml_attribute(f->node, "touches_itself") != NULL;
    tb_element_def def = {.group = touches_itself ? 0 : group};
    MJCF_TRY(tb_xml_integer(f->node, "corners", &def.corners, m->error));
    tb_status status = tb_xml_number_list(f->node, "faces", &faces, &count, m->error);
    for (int32_t i = 0; i < count && status == TB_OK; i += def.corners) {
        for (int32_t k = 0; k < def.corners; k++)
            def.balls[k] = find_vertex(m, f, TB_HANDLE_SHAPE, faces[i + k]);
        if (tb_scene_add_element(m->scene, &def, &refusal) != TB_OK)
            status = mjcf_refused(m, f->node, &refusal);
    }
    free(faces);
    return status;
}

/* Elastics of one kind, between the points that an attribute lists; none without it. */
static tb_status add_elastics_of(mjcf *m, const mjcf_flex *f, const char *attribute,
                                 tb_elastic_kind kind)
{
    double *points = NULL, numbers[4] = {0};
    int32_t count = 0;
    tb_error refusal = {0};
    if (tb_xml_attribute(f->node, attribute) == NULL) return TB_OK;
    MJCF_TRY(tb_xml_numbers(f->node, "elasticity", 4, 4, numbers, NULL, m->error));
    tb_elastic_def def = {.kind = kind,
                          .young = numbers[0],
                          .poisson = numbers[1],
                          .thickness = numbers[2],
                          .damping = numbers[3]};
    const int corners = kind == TB_ELASTIC_TRIANGLE ? 3 : 4;
    tb_status status = tb_xml_number_list(f->node, attribute, &points, &count, m->error);
    for (int32_t i = 0; i < count && status == TB_OK; i += corners) {
        for (int k = 0; k < corners; k++)
            def.sites[k] = find_vertex(m, f, TB_HANDLE_SITE, points[i + k]);
        if (tb_scene_add_elastic(m->scene, &def, &refusal) != TB_OK)
            status = mjcf_refused(m, f->node, &refusal);
    }
    free(points);
    return status;
}

static tb_status add_elastics(mjcf *m, const mjcf_flex *f)
{
    int32_t corners = 0;
    MJCF_TRY(tb_xml_integer(f->node, "simplex_corners", &corners, m->error));
    MJCF_TRY(add_elastics_of(m, f, "simplices",
                             corners == 3 ? TB_ELASTIC_TRIANGLE : TB_ELASTIC_TETRAHEDRON));
    return add_elastics_of(m, f, "hinges", TB_ELASTIC_HINGE);
}

tb_status mjcf_add_flexes(mjcf *m)
{
    for (int32_t i = 0; i < m->number_of_flexes; i++) {
        if (!m->no_contact) MJCF_TRY(add_elements(m, &m->flexes[i], i + 1));
        MJCF_TRY(add_elastics(m, &m->flexes[i]));
    }
    return TB_OK;
}
