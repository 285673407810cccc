/* MJCF sensors. A sensor of a type that is not computed, or of an element that the model does not
 * keep (a geom without contact, for example), is left out with a warning. */
#include <string.h>

#include "model/import/mjcf/mjcf.h"

static const mjcf_words WORDS = {
    .used = "name joint tendon actuator site body objtype objname reftype refname cutoff",
    .silent = "noise user nsample interp delay interval",
};

static tb_status leave_out(mjcf *m, const xmlNode *node, const char *why)
{
    const char *name = tb_xml_attribute(node, "name");
    return tb_xml_warn(m->scene, node, m->error, "%s%.64s%s%s is left out: %s",
                       name != NULL ? "'" : "", name != NULL ? name : "", name != NULL ? "': " : "",
                       tb_xml_name(node), why);
}

static bool type_of(const xmlNode *node, tb_sensor_type *type)
{
    for (int t = 0; t < TB_SENSOR_TYPES; t++)
        if (tb_xml_is(node, tb_sensor_type_name((tb_sensor_type)t))) {
            *type = (tb_sensor_type)t;
            return true;
        }
    return false;
}

static bool find(const mjcf *m, tb_handle_kind kind, const char *name, tb_handle *handle)
{
    if (name == NULL) return false;
    *handle = tb_scene_find(m->scene, kind, name);
    return !tb_handle_is_none(*handle) || (kind == TB_HANDLE_BODY && strcmp(name, "world") == 0);
}

/* A body ("body": its centre of mass; "xbody": its frame), geom or site. */
static bool find_frame(const mjcf *m, const xmlNode *node, const char *kind, const char *name,
                       tb_handle *handle, bool *at_com)
{
    const char *word = tb_xml_attribute(node, kind), *what = tb_xml_attribute(node, name);
    if (word == NULL) return false;
    *at_com = strcmp(word, "body") == 0;
    if (*at_com || strcmp(word, "xbody") == 0) return find(m, TB_HANDLE_BODY, what, handle);
    if (strcmp(word, "geom") == 0) return find(m, TB_HANDLE_SHAPE, what, handle);
    return strcmp(word, "site") == 0 && find(m, TB_HANDLE_SITE, what, handle);
}

static bool find_object(const mjcf *m, const xmlNode *node, tb_sensor_def *def)
{
    switch (tb_sensor_type_object(def->type)) {
    case TB_HANDLE_NONE: return true;
    case TB_HANDLE_JOINT:
        return find(m, TB_HANDLE_JOINT, tb_xml_attribute(node, "joint"), &def->object);
    case TB_HANDLE_TENDON:
        return find(m, TB_HANDLE_TENDON, tb_xml_attribute(node, "tendon"), &def->object);
    case TB_HANDLE_ACTUATOR:
        return find(m, TB_HANDLE_ACTUATOR, tb_xml_attribute(node, "actuator"), &def->object);
    case TB_HANDLE_SITE:
        return find(m, TB_HANDLE_SITE, tb_xml_attribute(node, "site"), &def->object);
    default:
        if (tb_xml_attribute(node, "objtype") == NULL)
            return find(m, TB_HANDLE_BODY, tb_xml_attribute(node, "body"), &def->object);
        return find_frame(m, node, "objtype", "objname", &def->object, &def->object_at_com);
    }
}

/* Orientations of MuJoCo's inertial frames are principal axes, which a model does not keep. */
static bool needs_principal_axes(const tb_sensor_def *def)
{
    const bool own = def->type == TB_SENSOR_FRAME_ORIENTATION ||
                     (def->type >= TB_SENSOR_FRAME_X_AXIS && def->type <= TB_SENSOR_FRAME_Z_AXIS);
    return (own && def->object_at_com) || def->reference_at_com;
}

static tb_status read_sensor(mjcf *m, const xmlNode *node)
{
    tb_sensor_def def = tb_sensor_defaults();
    tb_error refusal = {0};
    if (!type_of(node, &def.type))
        return mjcf_note_past(m, node, tb_xml_name(node), "is not computed");
    MJCF_TRY(mjcf_check_attributes(m, node, &WORDS));
    MJCF_TRY(mjcf_name(m, node, &def.name));
    MJCF_TRY(tb_xml_number(node, "cutoff", &def.cutoff, m->error));
    if (!find_object(m, node, &def))
        return leave_out(m, node, "the model has no such element to measure");
    def.has_reference = tb_xml_attribute(node, "reftype") != NULL;
    if (def.has_reference &&
        !find_frame(m, node, "reftype", "refname", &def.reference, &def.reference_at_com))
        return leave_out(m, node, "the model has no such reference");
    if (needs_principal_axes(&def))
        return leave_out(m, node, "principal axes of inertia are not kept; use xbody");
    if (def.type == TB_SENSOR_TOUCH) {
        const mjcf_zone *zone = &m->zones[def.object.index - 1];
        def.zone_type = zone->type;
        memcpy(def.zone_size, zone->size, sizeof def.zone_size);
    }
    if (tb_scene_add_sensor(m->scene, &def, NULL, &refusal) == TB_OK) return TB_OK;
    if (refusal.status != TB_INVALID_ARGUMENT || strcmp(refusal.field, "object") != 0)
        return mjcf_refused(m, node, &refusal);
    return leave_out(m, node, refusal.message);
}

tb_status mjcf_read_sensors(mjcf *m)
{
    const xmlNode *root = tb_xml_root(m->xml);
    for (const xmlNode *s = tb_xml_first_named(root, "sensor"); s != NULL;
         s = tb_xml_next_named(s, "sensor"))
        for (const xmlNode *c = tb_xml_first(s); c != NULL; c = tb_xml_next(c))
            MJCF_TRY(read_sensor(m, c));
    return TB_OK;
}
