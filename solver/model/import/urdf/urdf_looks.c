/* Looks of a URDF: colours of materials, and <visual> elements.
 *
 * A collision shape bears the colour of its link's first visual that has one, since viewers draw the
 * shapes that collide. With tb_import_options.visuals the visuals become shapes of their own, which
 * neither collide nor weigh. */
#include <string.h>

#include "model/import/urdf/urdf.h"

#define TRY(call)                                                                                  \
    do {                                                                                           \
        const tb_status try_status_ = (call);                                                      \
        if (try_status_ != TB_OK) return try_status_;                                              \
    } while (0)

/* Kind of materials in the importer's names, which need one that no other use has. */
#define MATERIAL_KIND TB_HANDLE_KEYFRAME

/* The <color> of a <material> element; false if it has none. */
static bool read_colour(const xmlNode *material, double colour[4])
{
    tb_error ignored;
    int32_t count = 0;
    const xmlNode *node = tb_xml_first_named(material, "color");
    colour[0] = colour[1] = colour[2] = colour[3] = 1;
    return node != NULL && tb_xml_numbers(node, "rgba", 4, 4, colour, &count, &ignored) == TB_OK &&
           count == 4;
}

/* The first material of a name that has a colour counts. */
static tb_status note_material(urdf *u, const xmlNode *node)
{
    const char *name = tb_xml_attribute(node, "name");
    urdf_material material;
    if (name == NULL || !read_colour(node, material.colour)) return TB_OK;
    if (tb_names_find(&u->names, MATERIAL_KIND, name) >= 0) return TB_OK;
    const int32_t index = u->number_of_materials;
    if (index == u->material_capacity) {
        urdf_material *grown =
            tb_grow(u->materials, index + 1, &u->material_capacity, sizeof *grown);
        if (grown == NULL)
            return tb_fail_memory(u->error, (size_t)index * sizeof *grown, "materials");
        u->materials = grown;
    }
    if (!tb_names_insert(&u->names, MATERIAL_KIND, name, index))
        return tb_fail_memory(u->error, strlen(name), "materials");
    u->materials[u->number_of_materials++] = material;
    return TB_OK;
}

tb_status urdf_read_materials(urdf *u)
{
    const xmlNode *robot = tb_xml_root(u->xml);
    for (const xmlNode *c = tb_xml_first_named(robot, "material"); c != NULL;
         c = tb_xml_next_named(c, "material"))
        TRY(note_material(u, c));
    for (int32_t i = 0; i < u->number_of_links; i++)
        for (const xmlNode *v = tb_xml_first_named(u->links[i].node, "visual"); v != NULL;
             v = tb_xml_next_named(v, "visual"))
            for (const xmlNode *c = tb_xml_first_named(v, "material"); c != NULL;
                 c = tb_xml_next_named(c, "material"))
                TRY(note_material(u, c));
    return TB_OK;
}

void urdf_look(const urdf *u, const xmlNode *visual, tb_shape_def *def)
{
    const xmlNode *material = tb_xml_first_named(visual, "material");
    const char *why = "";
    if (material == NULL) return;
    const char *name = tb_xml_attribute(material, "name");
    const int32_t known = name != NULL ? tb_names_find(&u->names, MATERIAL_KIND, name) : -1;
    double colour[4];
    if (read_colour(material, colour))
        memcpy(def->colour, colour, sizeof colour);
    else if (known >= 0)
        memcpy(def->colour, u->materials[known].colour, sizeof def->colour);
    else
        return;
    for (int i = 0; i < 4; i++) def->colour[i] = tb_clamp(def->colour[i], 0, 1);
    def->has_colour = true;
    def->material = name != NULL && tb_name_is_valid(name, &why) ? name : NULL;
}

void urdf_link_look(const urdf *u, const urdf_link *link, tb_shape_def *def)
{
    for (const xmlNode *v = tb_xml_first_named(link->node, "visual"); v != NULL && !def->has_colour;
         v = tb_xml_next_named(v, "visual"))
        urdf_look(u, v, def);
}
