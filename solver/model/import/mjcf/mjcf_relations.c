/* MJCF contact and equality: relations between two existing elements. */
#include <string.h>

#include "model/import/mjcf/mjcf.h"

static const mjcf_words PAIR = {
    .used = "name class geom1 geom2 condim friction adhesion gap restitution "
            "tangential_restitution",
    .soft = "solref solimp solreffriction margin",
};

static const mjcf_words EXCLUDE = {.used = "name body1 body2"};

static const mjcf_words EQUALITY = {
    .used =
        "name class active body1 body2 site1 site2 anchor relpose joint1 joint2 tendon1 tendon2 "
        "polycoef torquescale",
    .soft = "solref solimp",
};

/* The body of that name; "world" is the world. NOT_FOUND naming the attribute. */
static tb_status find_body(mjcf *m, const xmlNode *node, const char *attribute, const char *name,
                           tb_handle *body)
{
    const tb_handle none = {0};
    *body = none;
    if (strcmp(name, "world") == 0) return TB_OK;
    *body = tb_scene_find(m->scene, TB_HANDLE_BODY, name);
    if (!tb_handle_is_none(*body)) return TB_OK;
    return tb_xml_fail(m->error, TB_NOT_FOUND, node, attribute, "there is no body '%.100s'", name);
}

/* The thing that an attribute names; INVALID_ARGUMENT if it is absent. */
static tb_status find(mjcf *m, const xmlNode *node, const char *attribute, tb_handle_kind kind,
                      tb_handle *handle)
{
    const char *name = NULL;
    MJCF_TRY(tb_xml_require(node, attribute, &name, m->error));
    MJCF_TRY(mjcf_reference(m, node, attribute, &name));
    if (kind == TB_HANDLE_BODY) return find_body(m, node, attribute, name, handle);
    *handle = tb_scene_find(m->scene, kind, name);
    if (!tb_handle_is_none(*handle)) return TB_OK;
    return tb_xml_fail(m->error, TB_NOT_FOUND, node, attribute, "there is no %s '%.100s'",
                       kind == TB_HANDLE_SHAPE ? "geom" : tb_handle_kind_name(kind), name);
}

/* ---- contact ---- */

tb_status mjcf_note_pairs(mjcf *m)
{
    const xmlNode *root = tb_xml_root(m->xml);
    for (const xmlNode *s = tb_xml_first_named(root, "contact"); s != NULL;
         s = tb_xml_next_named(s, "contact"))
        for (const xmlNode *c = tb_xml_first_named(s, "pair"); c != NULL;
             c = tb_xml_next_named(c, "pair"))
            for (int i = 0; i < 2; i++) {
                const char *name = tb_xml_attribute(c, i == 0 ? "geom1" : "geom2");
                if (name == NULL || tb_names_find(&m->names, TB_HANDLE_PAIR, name) >= 0) continue;
                const char *kept = tb_names_keep(&m->names, name);
                if (kept == NULL || !tb_names_insert(&m->names, TB_HANDLE_PAIR, kept, 0))
                    return tb_fail_memory(m->error, strlen(name), "a name");
            }
    return TB_OK;
}

static tb_status read_pair(mjcf *m, const xmlNode *node)
{
    mjcf_element element;
    tb_error refusal = {0};
    double friction[5] = {1, 1, 0.005, 0.0001, 0.0001};
    int32_t condim = 3;
    tb_pair_def def = tb_pair_defaults();
    MJCF_TRY(mjcf_open(m, node, "pair", m->main_class, &PAIR, &element));
    MJCF_TRY(mjcf_integer(m, &element, "condim", &condim));
    int32_t given = 0;
    MJCF_TRY(mjcf_numbers(m, &element, "friction", 1, 5, friction, &given));
    if (given == 1 && condim > 1 && friction[1] != friction[0]) {
        MJCF_TRY(tb_xml_warn(m->scene, node, m->error,
                             "pair: friction has one number, which counts for both tangents"));
        friction[1] = friction[0];
    }
    if (m->override) memcpy(friction, m->override_friction, sizeof friction);
    if (condim == 6 && friction[3] != friction[4])
        return tb_xml_fail(m->error, TB_UNSUPPORTED, node, "friction",
                           "friction with two different rolling coefficients is not supported");
    MJCF_TRY(mjcf_surface(m, node, condim, friction[0], friction[2], friction[3], &def.surface));
    MJCF_TRY(mjcf_adhesion(m, &element, &def.surface));
    MJCF_TRY(mjcf_restitution(m, &element, &def.surface));
    if (friction[1] < 0)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "friction",
                           "friction has a negative coefficient");
    if (condim > 1 &&
        friction[1] != friction[0]) /* along which of the tangents would be arbitrary */
        return tb_xml_fail(m->error, TB_UNSUPPORTED, node, "friction",
                           "friction with two different sliding coefficients is not supported");
    MJCF_TRY(find(m, node, "geom1", TB_HANDLE_SHAPE, &def.a));
    MJCF_TRY(find(m, node, "geom2", TB_HANDLE_SHAPE, &def.b));
    MJCF_TRY(mjcf_name(m, node, &def.name));
    if (m->no_contact) return TB_OK;
    if (tb_scene_add_pair(m->scene, &def, NULL, &refusal) != TB_OK)
        return mjcf_refused(m, node, &refusal);
    return TB_OK;
}

static tb_status read_exclude(mjcf *m, const xmlNode *node)
{
    tb_handle a, b;
    tb_error refusal = {0};
    MJCF_TRY(mjcf_check_attributes(m, node, &EXCLUDE));
    MJCF_TRY(find(m, node, "body1", TB_HANDLE_BODY, &a));
    MJCF_TRY(find(m, node, "body2", TB_HANDLE_BODY, &b));
    if (a.index == b.index) return TB_OK; /* a body never touches itself */
    if (tb_scene_add_exclude(m->scene, a, b, &refusal) != TB_OK)
        return mjcf_refused(m, node, &refusal);
    return TB_OK;
}

static tb_status read_contact(mjcf *m, const xmlNode *node)
{
    MJCF_TRY(tb_xml_check_children(node, "", m->error));
    if (tb_xml_is(node, "pair")) return read_pair(m, node);
    if (tb_xml_is(node, "exclude")) return read_exclude(m, node);
    return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, NULL, "unknown element in 'contact'");
}

tb_status mjcf_read_contacts(mjcf *m)
{
    static const mjcf_reference_kind REFERENCES[] = {{"geom1", TB_HANDLE_SHAPE},
                                                     {"geom2", TB_HANDLE_SHAPE},
                                                     {"body1", TB_HANDLE_BODY},
                                                     {"body2", TB_HANDLE_BODY},
                                                     {NULL, TB_HANDLE_NONE}};
    return mjcf_for_section(m, "contact", REFERENCES, read_contact);
}

/* ---- equality ---- */

/* A site's body and pose in it, from the document: the builder keeps sites to itself. */
static tb_status find_site(mjcf *m, const xmlNode *node, const char *attribute, tb_site_def *site)
{
    tb_handle handle;
    MJCF_TRY(find(m, node, attribute, TB_HANDLE_SITE, &handle));
    *site = m->sites[handle.index - 1];
    return TB_OK;
}

/* connect and weld between two sites: body A holds site1, body B site2 */
static tb_status read_sites(mjcf *m, const xmlNode *node, tb_equality_def *def)
{
    tb_site_def a = {0}, b = {0};
    MJCF_TRY(find_site(m, node, "site1", &a));
    MJCF_TRY(find_site(m, node, "site2", &b));
    static const char *const OTHERS[] = {"body1", "body2", "anchor", "relpose"};
    for (size_t i = 0; i < sizeof OTHERS / sizeof OTHERS[0]; i++)
        if (tb_xml_attribute(node, OTHERS[i]) != NULL)
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, OTHERS[i],
                               "%s stands beside site1 and site2", OTHERS[i]);
    def->a = a.body;
    def->b = b.body;
    memcpy(def->anchor_a, a.position, sizeof def->anchor_a);
    memcpy(def->anchor_b, b.position, sizeof def->anchor_b);
    def->has_anchor_b = true;
    if (def->type == TB_EQUALITY_WELD) {
        /* B's axes in A where both sites' axes agree */
        const tb_quaternion q =
            tb_q_mul(tb_q_load(a.orientation), tb_q_conjugate(tb_q_load(b.orientation)));
        tb_q_store(def->orientation, tb_q_normalize(q));
        def->has_orientation = true;
    }
    return TB_OK;
}

static tb_status find_bodies(mjcf *m, const xmlNode *node, tb_handle *one, tb_handle *two)
{
    const tb_handle world = {0};
    MJCF_TRY(find(m, node, "body1", TB_HANDLE_BODY, one));
    *two = world;
    if (tb_xml_attribute(node, "body2") != NULL)
        MJCF_TRY(find(m, node, "body2", TB_HANDLE_BODY, two));
    if (one->index == two->index)
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, "body2",
                           "both bodies are the same");
    return TB_OK;
}

static tb_status read_connect(mjcf *m, const xmlNode *node, tb_equality_def *def)
{
    const char *text = NULL;
    def->type = TB_EQUALITY_CONNECT;
    if (tb_xml_attribute(node, "site1") != NULL || tb_xml_attribute(node, "site2") != NULL)
        return read_sites(m, node, def);
    MJCF_TRY(find_bodies(m, node, &def->a, &def->b));
    MJCF_TRY(tb_xml_require(node, "anchor", &text, m->error));
    return tb_xml_numbers(node, "anchor", 3, 3, def->anchor_a, NULL, m->error);
}

static tb_status read_weld(mjcf *m, const xmlNode *node, tb_equality_def *def)
{
    double anchor[3] = {0}, relative[7] = {0, 1, 0, 0, 0, 0, 0}, scale = 1;
    tb_handle one, two;
    def->type = TB_EQUALITY_WELD;
    MJCF_TRY(tb_xml_number(node, "torquescale", &scale, m->error));
    if (scale == 0) def->type = TB_EQUALITY_CONNECT; /* no torque at all */
    if (tb_xml_attribute(node, "site1") != NULL || tb_xml_attribute(node, "site2") != NULL)
        return read_sites(m, node, def);
    MJCF_TRY(find_bodies(m, node, &one, &two));
    MJCF_TRY(tb_xml_numbers(node, "anchor", 3, 3, anchor, NULL, m->error));
    MJCF_TRY(tb_xml_numbers(node, "relpose", 7, 7, relative, NULL, m->error));
    const tb_quaternion turn = tb_q_load(relative + 3);
    if (turn.w == 0 && turn.x == 0 && turn.y == 0 && turn.z == 0) {
        /* the pose is that of the document; the anchor is given in body2, which therefore comes
         * first */
        def->a = two;
        def->b = one;
        memcpy(def->anchor_a, anchor, sizeof anchor);
        return TB_OK;
    }
    def->a = one;
    def->b = two;
    memcpy(def->anchor_a, relative, sizeof def->anchor_a);
    memcpy(def->anchor_b, anchor, sizeof anchor);
    def->has_anchor_b = true;
    tb_q_store(def->orientation, tb_q_normalize(turn));
    def->has_orientation = true;
    return TB_OK;
}

/* joint and tendon: the first follows a polynomial of the second */
static tb_status read_polynomial(mjcf *m, const xmlNode *node, tb_equality_type type,
                                 tb_equality_def *def)
{
    const bool joints = type == TB_EQUALITY_JOINT;
    const char *const one = joints ? "joint1" : "tendon1", *const two =
                                                               joints ? "joint2" : "tendon2";
    const tb_handle_kind kind = joints ? TB_HANDLE_JOINT : TB_HANDLE_TENDON;
    double polynomial[5] = {0, 1, 0, 0, 0};
    def->type = type;
    MJCF_TRY(find(m, node, one, kind, &def->a));
    MJCF_TRY(tb_xml_numbers(node, "polycoef", 1, 5, polynomial, NULL, m->error));
    if (tb_xml_attribute(node, two) != NULL) {
        MJCF_TRY(find(m, node, two, kind, &def->b));
        if (def->a.index == def->b.index)
            return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, two, "both are the same");
    } else {
        /* held where it was described, plus a constant */
        for (int i = 1; i < 5; i++) polynomial[i] = 0;
    }
    memcpy(def->polynomial, polynomial, sizeof polynomial);
    return TB_OK;
}

static tb_status read_equality(mjcf *m, const xmlNode *node)
{
    mjcf_element element;
    tb_error refusal = {0};
    bool active = true;
    tb_equality_def def = tb_equality_defaults();
    MJCF_TRY(tb_xml_check_children(node, "", m->error));
    if (tb_xml_in_words("flex flexvert flexstrain distance", tb_xml_name(node)))
        return tb_xml_fail(m->error, TB_UNSUPPORTED, node, NULL,
                           "equalities of this kind are not supported");
    MJCF_TRY(mjcf_open(m, node, "equality", m->main_class, &EQUALITY, &element));
    MJCF_TRY(mjcf_bool(m, &element, "active", &active));
    if (tb_xml_is(node, "connect"))
        MJCF_TRY(read_connect(m, node, &def));
    else if (tb_xml_is(node, "weld"))
        MJCF_TRY(read_weld(m, node, &def));
    else if (tb_xml_is(node, "joint"))
        MJCF_TRY(read_polynomial(m, node, TB_EQUALITY_JOINT, &def));
    else if (tb_xml_is(node, "tendon"))
        MJCF_TRY(read_polynomial(m, node, TB_EQUALITY_TENDON, &def));
    else
        return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, node, NULL,
                           "unknown element in 'equality'");
    MJCF_TRY(mjcf_name(m, node, &def.name));
    def.disabled = !active || m->no_equality;
    if (tb_scene_add_equality(m->scene, &def, NULL, &refusal) != TB_OK)
        return mjcf_refused(m, node, &refusal);
    return TB_OK;
}

tb_status mjcf_read_equalities(mjcf *m)
{
    static const mjcf_reference_kind REFERENCES[] = {
        {"body1", TB_HANDLE_BODY},     {"body2", TB_HANDLE_BODY},     {"site1", TB_HANDLE_SITE},
        {"site2", TB_HANDLE_SITE},     {"joint1", TB_HANDLE_JOINT},   {"joint2", TB_HANDLE_JOINT},
        {"tendon1", TB_HANDLE_TENDON}, {"tendon2", TB_HANDLE_TENDON}, {NULL, TB_HANDLE_NONE}};
    return mjcf_for_section(m, "equality", REFERENCES, read_equality);
}
