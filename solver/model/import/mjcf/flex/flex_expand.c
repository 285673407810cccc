/* Puts into the document what a soft flexcomp stands for: a body for each vertex that is not pinned, with slides,
 * a site and a ball; a tendon for each edge, and an equality for each edge that keeps its length. All else that a
 * document can do with such elements then works with flexes too. The flexcomp stays behind under another name, for
 * messages.
 *
 * As in MuJoCo the slides go along the axes of the body around, whatever frames are in between, and take the
 * joint defaults of that place. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/budget.h"
#include "model/import/mjcf/flex/flex.h"

/* A flexcomp that is being expanded. */
typedef struct maker {
    mjcf *m;
    const xmlNode *node; /* the flexcomp */
    const flex *f;
    const xmlNode *contact; /* its child of that name, or NULL */
    xmlNode *place;         /* new bodies come before it: the outermost frame around */
    mjcf_pose frame;        /* of the flexcomp, in the body around */
    const bool *outside;    /* points of faces: they have balls */
} maker;

static tb_status charge(const maker *k, size_t bytes)
{
    if (!tb_budget_take(bytes)) return tb_budget_check(k->m->error);
    k->m->xml->nodes += bytes;
    return TB_OK;
}

/* A new element, unlinked. */
static tb_status make_element(const maker *k, const char *name, xmlNode **made)
{
    MJCF_TRY(charge(k, sizeof(xmlNode)));
    *made = xmlNewDocNode(k->m->xml->document, NULL, (const xmlChar *)name, NULL);
    if (*made == NULL) return tb_fail_memory(k->m->error, sizeof **made, "a flexcomp");
    tb_xml_set_origin(*made, k->node, 0);
    return TB_OK;
}

static tb_status append(const maker *k, xmlNode *parent, const char *name, xmlNode **made)
{
    MJCF_TRY(make_element(k, name, made));
    xmlAddChild(parent, *made);
    return TB_OK;
}

static TB_PRINTF(4, 5) tb_status
    set(const maker *k, xmlNode *node, const char *name, const char *format, ...)
{
    char text[512];
    va_list list;
    va_start(list, format);
    const int length = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (length < 0 || (size_t)length >= sizeof text)
        return tb_xml_fail(k->m->error, TB_INVALID_ARGUMENT, k->node, "name",
                           "the name is too long");
    MJCF_TRY(charge(k, sizeof(xmlAttr) + sizeof(xmlNode) + (size_t)length));
    const xmlAttr *made = xmlSetProp(node, (const xmlChar *)name, (const xmlChar *)text);
    return made != NULL ? TB_OK : tb_fail_memory(k->m->error, (size_t)length, "a flexcomp");
}

static tb_status set_vector(const maker *k, xmlNode *node, const char *name, const double v[3])
{
    return set(k, node, name, "%.17g %.17g %.17g", v[0], v[1], v[2]);
}

/* ---- vertices ---- */

static tb_status add_slides(const maker *k, xmlNode *body, int32_t vertex, const double point[3])
{
    const int count = k->f->dofs == FLEX_FULL ? 3 : k->f->dofs == FLEX_PLANAR ? 2 : 1;
    for (int i = 0; i < count; i++) {
        xmlNode *joint = NULL;
        double axis[3] = {i == 0, i == 1, i == 2};
        if (k->f->dofs == FLEX_RADIAL) memcpy(axis, point, sizeof axis);
        MJCF_TRY(append(k, body, "joint", &joint));
        if (k->f->number_of_hinges > 0)
            MJCF_TRY(set(k, joint, "name", "%s_%d_%c", k->f->name, (int)vertex, "xyz"[i]));
        MJCF_TRY(set(k, joint, "type", "slide"));
        MJCF_TRY(set(k, joint, "pos", "0 0 0"));
        MJCF_TRY(set_vector(k, joint, "axis", axis));
    }
    return TB_OK;
}

/* Gives an element of vertex i its name and its place in its body. */
static tb_status name_and_place(const maker *k, xmlNode *node, int32_t i, const double at[3])
{
    MJCF_TRY(set(k, node, "name", "%s_%d", k->f->name, (int)i));
    return set_vector(k, node, "pos", at);
}

static tb_status add_ball(const maker *k, xmlNode *ball, int32_t i, const double at[3])
{
    MJCF_TRY(name_and_place(k, ball, i, at));
    MJCF_TRY(set(k, ball, "flex", "%s", k->f->name));
    MJCF_TRY(set(k, ball, "size", "%.17g", k->f->radius));
    if (k->contact != NULL) {
        xmlNode *contact = tb_xml_copy(k->m->xml, k->contact, 0);
        if (contact == NULL) return tb_fail_memory(k->m->error, sizeof *contact, "a flexcomp");
        xmlAddChild(ball, contact);
        MJCF_TRY(charge(k, sizeof *contact));
    }
    return TB_OK;
}

/* The site of a vertex, and its ball if it is on the outside, before `next` or at the end of `body`. */
static tb_status add_ball_and_site(const maker *k, xmlNode *body, xmlNode *next, int32_t i,
                                   const double at[3])
{
    xmlNode *made[2] = {NULL, NULL};
    for (int n = 0; n < (k->outside[i] ? 2 : 1); n++) {
        MJCF_TRY(make_element(k, n == 0 ? "site" : FLEX_VERTEX, &made[n]));
        next != NULL ? xmlAddPrevSibling(next, made[n]) : xmlAddChild(body, made[n]);
    }
    MJCF_TRY(name_and_place(k, made[0], i, at));
    return made[1] != NULL ? add_ball(k, made[1], i, at) : TB_OK;
}

static tb_status add_vertex(const maker *k, int32_t i)
{
    const flex *f = k->f;
    const double centre[3] = {0}, mass = f->mass / f->body.number_of_points;
    const double inertia = mass * 2 * f->inertia_box * f->inertia_box / 3;
    const double inertias[3] = {inertia, inertia, inertia};
    double point[3];
    tb_v3_store(point, tb_v3_add(tb_q_rotate(k->frame.orientation,
                                             tb_v3_load(f->body.points + 3 * (size_t)i)),
                                 k->frame.position));
    if (f->pinned[i]) return add_ball_and_site(k, NULL, k->place, i, point);
    xmlNode *body = NULL, *inertial = NULL;
    MJCF_TRY(make_element(k, "body", &body));
    xmlAddPrevSibling(k->place, body);
    MJCF_TRY(name_and_place(k, body, i, point));
    MJCF_TRY(append(k, body, "inertial", &inertial));
    MJCF_TRY(set_vector(k, inertial, "pos", centre));
    MJCF_TRY(set(k, inertial, "mass", "%.17g", mass));
    MJCF_TRY(set_vector(k, inertial, "diaginertia", inertias));
    MJCF_TRY(add_slides(k, body, i, point));
    return add_ball_and_site(k, body, NULL, i, centre);
}

/* ---- edges ---- */

static double length_of(const flex *f, flex_edge edge)
{
    return tb_v3_length(tb_v3_sub(tb_v3_load(f->body.points + 3 * (size_t)edge.b),
                                  tb_v3_load(f->body.points + 3 * (size_t)edge.a)));
}

static tb_status add_edge(const maker *k, xmlNode *tendons, xmlNode *equalities, flex_edge edge)
{
    const flex *f = k->f;
    const int32_t ends[2] = {edge.a, edge.b};
    xmlNode *tendon = NULL, *equality = NULL;
    if (f->pinned[edge.a] && f->pinned[edge.b]) return TB_OK;
    MJCF_TRY(append(k, tendons, "spatial", &tendon));
    MJCF_TRY(set(k, tendon, "name", "%s_%d_%d", f->name, (int)edge.a, (int)edge.b));
    MJCF_TRY(set(k, tendon, "limited", "false"));
    MJCF_TRY(set(k, tendon, "actuatorfrclimited", "false"));
    MJCF_TRY(set(k, tendon, "frictionloss", "0"));
    MJCF_TRY(set(k, tendon, "armature", "0"));
    MJCF_TRY(set(k, tendon, "springlength", "%.17g", length_of(f, edge)));
    /* springs and dampers of an edge that keeps its length have no effect */
    MJCF_TRY(set(k, tendon, "stiffness", "%.17g", f->closes_edges ? 0 : f->stiffness));
    MJCF_TRY(set(k, tendon, "damping", "%.17g", f->closes_edges ? 0 : f->damping));
    for (int i = 0; i < 2; i++) {
        xmlNode *site = NULL;
        MJCF_TRY(append(k, tendon, "site", &site));
        MJCF_TRY(set(k, site, "site", "%s_%d", f->name, (int)ends[i]));
    }
    if (!f->closes_edges) return TB_OK;
    MJCF_TRY(append(k, equalities, "tendon", &equality));
    MJCF_TRY(set(k, equality, "active", "true"));
    MJCF_TRY(set(k, equality, "polycoef", "0 1 0 0 0"));
    return set(k, equality, "tendon1", "%s_%d_%d", f->name, (int)edge.a, (int)edge.b);
}

/* A tendon of springs for each direction of a hinge. */
static tb_status add_hinge(const maker *k, xmlNode *tendons, int32_t index)
{
    const flex *f = k->f;
    const flex_hinge *h = &f->hinges[index];
    if (!h->flat) return TB_OK;
    for (int axis = 0; axis < (f->dofs == FLEX_FULL ? 3 : 2); axis++) {
        xmlNode *tendon = NULL;
        for (int i = 0; i < 4; i++) {
            xmlNode *joint = NULL;
            if (f->pinned[h->points[i]]) continue;
            if (tendon == NULL) MJCF_TRY(append(k, tendons, "fixed", &tendon));
            MJCF_TRY(append(k, tendon, "joint", &joint));
            MJCF_TRY(set(k, joint, "joint", "%s_%d_%c", f->name, (int)h->points[i], "xyz"[axis]));
            MJCF_TRY(set(k, joint, "coef", "%.17g", h->shares[i]));
        }
        if (tendon == NULL) continue;
        MJCF_TRY(set(k, tendon, "name", "%s_bend_%d_%c", f->name, (int)index, "xyz"[axis]));
        MJCF_TRY(set(k, tendon, "limited", "false"));
        MJCF_TRY(set(k, tendon, "actuatorfrclimited", "false"));
        MJCF_TRY(set(k, tendon, "frictionloss", "0"));
        MJCF_TRY(set(k, tendon, "armature", "0"));
        MJCF_TRY(set(k, tendon, "springlength", "0"));
        MJCF_TRY(set(k, tendon, "stiffness", "%.17g", h->stiffness));
        MJCF_TRY(set(k, tendon, "damping", "%.17g", h->stiffness * f->loss));
    }
    return TB_OK;
}

static tb_status add_tendons(const maker *k)
{
    xmlNode *root = tb_xml_root(k->m->xml), *tendons = NULL, *equalities = NULL;
    const flex *f = k->f;
    MJCF_TRY(append(k, root, "tendon", &tendons));
    MJCF_TRY(append(k, root, "equality", &equalities));
    for (int32_t i = 0; i < f->number_of_hinges; i++) MJCF_TRY(add_hinge(k, tendons, i));
    if (!f->closes_edges && f->stiffness == 0 && f->damping == 0) return TB_OK;
    for (int32_t i = 0; i < f->number_of_edges; i++)
        MJCF_TRY(add_edge(k, tendons, equalities, f->edges[i]));
    return TB_OK;
}

/* ---- the document ---- */

/* The frames around a flexcomp, up to its body, replicate or the world. */
static tb_status leave_frames(maker *k)
{
    for (xmlNode *up = k->place->parent; tb_xml_is(up, "frame"); up = up->parent) {
        mjcf_element element = {
            .node = up, .sources = (const xmlNode *[]){up}, .number_of_sources = 1};
        mjcf_pose pose;
        MJCF_TRY(mjcf_read_pose(k->m, &element, &pose));
        k->frame = mjcf_pose_mul(&pose, &k->frame);
        k->place = up;
    }
    return TB_OK;
}

/* Points of simplices as an attribute of the flexcomp, for when all balls and sites are there. */
static tb_status keep_points(const maker *k, xmlNode *node, const char *name, const int32_t *points,
                             size_t count)
{
    enum { LONGEST = 12 };
    char *text = malloc(count * LONGEST + 1), *end = text;
    if (text == NULL) return tb_fail_memory(k->m->error, count * LONGEST, name);
    *end = 0;
    for (size_t i = 0; i < count; i++) end += snprintf(end, LONGEST, "%d ", (int)points[i]);
    tb_status status = charge(k, (size_t)(end - text));
    if (status == TB_OK && (xmlSetProp(node, (const xmlChar *)name, (const xmlChar *)text) == NULL))
        status = tb_fail_memory(k->m->error, count, name);
    free(text);
    return status;
}

static tb_status keep_faces(const maker *k, xmlNode *node)
{
    const size_t corners = (size_t)k->f->face_corners;
    MJCF_TRY(keep_points(k, node, "faces", k->f->faces, (size_t)k->f->number_of_faces * corners));
    return set(k, node, "corners", "%d", (int)corners);
}

/* The hinges of triangles that are not flat at rest, four points each. */
static tb_status keep_hinges(const maker *k, xmlNode *node)
{
    const flex *f = k->f;
    size_t count = 0;
    int32_t *points = malloc(4 * (size_t)f->number_of_hinges * sizeof *points + 1);
    if (points == NULL)
        return tb_fail_memory(k->m->error, (size_t)f->number_of_hinges * 16, "hinges");
    for (int32_t i = 0; i < f->number_of_hinges; i++) {
        if (f->hinges[i].flat) continue;
        memcpy(points + count, f->hinges[i].points, sizeof f->hinges[i].points);
        count += 4;
    }
    const tb_status status = count > 0 ? keep_points(k, node, "hinges", points, count) : TB_OK;
    free(points);
    return status;
}

/* Simplices that stretch, hinges of plates that are bent at rest, and the material of both. */
static tb_status keep_elastics(const maker *k, xmlNode *node)
{
    const flex *f = k->f;
    const size_t corners = (size_t)f->body.dimension + 1;
    if (f->stretches) {
        MJCF_TRY(keep_points(k, node, "simplices", f->body.simplices,
                             (size_t)f->body.number_of_simplices * corners));
        MJCF_TRY(set(k, node, "simplex_corners", "%d", (int)corners));
    }
    MJCF_TRY(keep_hinges(k, node));
    return set(k, node, "elasticity", "%.17g %.17g %.17g %.17g", f->young, f->poisson, f->thickness,
               f->loss);
}

static tb_status make_elements(mjcf *m, xmlNode *node, const flex *f, const bool *outside)
{
    maker k = {.m = m,
               .node = node,
               .f = f,
               .contact = tb_xml_first_named(node, "contact"),
               .place = node,
               .frame = mjcf_pose_identity(),
               .outside = outside};
    MJCF_TRY(leave_frames(&k));
    for (int32_t i = 0; i < f->body.number_of_points; i++) {
        MJCF_TRY(add_vertex(&k, i));
        MJCF_TRY(tb_budget_check(m->error));
    }
    MJCF_TRY(add_tendons(&k));
    MJCF_TRY(keep_faces(&k, node));
    MJCF_TRY(keep_elastics(&k, node));
    /* bodies of three dimensions whose edges keep their length are rigid */
    if (f->touches_itself && !(f->body.dimension == 3 && f->closes_edges))
        MJCF_TRY(set(&k, node, "touches_itself", "true"));
    xmlNodeSetName(node, (const xmlChar *)FLEX_MADE);
    return TB_OK;
}

static tb_status make_all(mjcf *m, xmlNode *node, const flex *f)
{
    bool *outside = calloc((size_t)f->body.number_of_points, sizeof *outside);
    if (outside == NULL)
        return tb_fail_memory(m->error, (size_t)f->body.number_of_points, "a flexcomp");
    for (int32_t i = 0; i < f->number_of_faces * f->face_corners; i++) outside[f->faces[i]] = true;
    const tb_status status = make_elements(m, node, f, outside);
    free(outside);
    return status;
}

static tb_status expand(mjcf *m, xmlNode *node)
{
    flex f = {0};
    mjcf_enter(m, node);
    tb_status status = flex_read(m, node, &f);
    if (status == TB_OK) status = make_all(m, node, &f);
    flex_free(&f);
    return status;
}

/* Expands all below a node. */
static tb_status expand_below(mjcf *m, xmlNode *node)
{
    for (xmlNode *c = tb_xml_first(node), *next; c != NULL; c = next) {
        bool rigid = false;
        next = tb_xml_next(c);
        if (tb_xml_is(c, "flexcomp")) {
            MJCF_TRY(tb_xml_bool(c, "rigid", &rigid, m->error));
            if (!rigid) MJCF_TRY(expand(m, c));
        } else if (tb_xml_in_words("body frame replicate", tb_xml_name(c))) {
            MJCF_TRY(expand_below(m, c));
        }
    }
    return TB_OK;
}

tb_status mjcf_expand_flexes(mjcf *m)
{
    xmlNode *root = tb_xml_root(m->xml);
    for (xmlNode *c = tb_xml_first_named(root, "worldbody"); c != NULL;
         c = tb_xml_next_named(c, "worldbody"))
        MJCF_TRY(expand_below(m, c));
    return TB_OK;
}
