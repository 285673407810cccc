/* Options of attached models under compiler/conflict "merge" and "error".
 *
 * With "merge" the document's options become those of both, field by field: a value that only one
 * side gives, the smaller time step, the union of flags; other contradictions are refused. With
 * "error" any two values that differ are refused. Source: MuJoCo's documentation, "Attribute
 * Merging". Options without effect on motion are left out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/import/mjcf/mjcf.h"

typedef enum merge_rule { MERGE_LEAST, MERGE_EQUAL, MERGE_UNION } merge_rule;

static const struct {
    const char *name;
    merge_rule rule;
} OPTIONS[] = {{"timestep", MERGE_LEAST},
               {"gravity", MERGE_EQUAL},
               {"wind", MERGE_EQUAL},
               {"density", MERGE_EQUAL},
               {"viscosity", MERGE_EQUAL},
               {"o_friction", MERGE_EQUAL},
               {"sleep_tolerance", MERGE_EQUAL},
               {"actuatorgroupdisable", MERGE_UNION}};

/* Flags that are off unless they are enabled; of all others "disable" outweighs. */
static const char *const ENABLED = "override energy fwdinv invdiscrete multiccd sleep diagexact";

/* The last word on an attribute of the document's options, or of their flags; NULL: none. */
static const char *last_text(const xmlNode *root, bool flag, const char *name)
{
    const char *text = NULL;
    for (const xmlNode *o = tb_xml_first_named(root, "option"); o != NULL;
         o = tb_xml_next_named(o, "option")) {
        if (!flag && tb_xml_attribute(o, name) != NULL) text = tb_xml_attribute(o, name);
        for (const xmlNode *f = tb_xml_first_named(o, "flag"); flag && f != NULL;
             f = tb_xml_next_named(f, "flag"))
            if (tb_xml_attribute(f, name) != NULL) text = tb_xml_attribute(f, name);
    }
    return text;
}

/* Whether two lists of numbers are the same; numbers are checked where the options are read. */
static bool same_numbers(const char *a, const char *b)
{
    for (;;) {
        char *end_a = NULL, *end_b = NULL;
        const double x = strtod(a, &end_a), y = strtod(b, &end_b);
        if (end_a == a || end_b == b) return end_a == a && end_b == b;
        if (!(x == y)) return false;
        a = end_a;
        b = end_b;
    }
}

/* An option element at the end of the document, in which it has the last word. */
static xmlNode *last_option(mjcf *m, const xmlNode *place, bool flag)
{
    xmlNode *option = xmlNewDocNode(m->xml->document, NULL, (const xmlChar *)"option", NULL);
    if (option == NULL) return NULL;
    tb_xml_set_origin(option, place, 0);
    xmlAddChild(tb_xml_root(m->xml), option);
    if (!flag) return option;
    xmlNode *node = xmlNewDocNode(m->xml->document, NULL, (const xmlChar *)"flag", NULL);
    if (node == NULL) return NULL;
    tb_xml_set_origin(node, place, 0);
    xmlAddChild(option, node);
    return node;
}

static tb_status set(mjcf *m, const xmlNode *place, bool flag, const char *name, const char *value)
{
    xmlNode *node = last_option(m, place, flag);
    if (node != NULL && xmlSetProp(node, (const xmlChar *)name, (const xmlChar *)value) != NULL)
        return TB_OK;
    return tb_fail_memory(m->error, strlen(value), "a merged option");
}

static tb_status conflict(mjcf *m, const xmlNode *place, const char *name, const char *own,
                          const char *its)
{
    return tb_xml_fail(m->error, TB_INVALID_ARGUMENT, place, name,
                       "option %s=\"%.60s\" of the attached model is another than \"%.60s\" here",
                       name, its, own);
}

static tb_status merge_option(mjcf *m, const xmlNode *place, const xmlNode *root, bool strict,
                              int index)
{
    const char *name = OPTIONS[index].name;
    const char *own = last_text(tb_xml_root(m->xml), false, name);
    const char *its = last_text(root, false, name);
    if (its == NULL || (own != NULL && same_numbers(own, its))) return TB_OK;
    if (own == NULL) return strict ? TB_OK : set(m, place, false, name, its);
    if (strict || OPTIONS[index].rule == MERGE_EQUAL) return conflict(m, place, name, own, its);
    if (OPTIONS[index].rule == MERGE_LEAST)
        return strtod(its, NULL) < strtod(own, NULL) ? set(m, place, false, name, its) : TB_OK;
    return set(m, place, false, name, its); /* a list that is read adds to the ones before it */
}

static tb_status merge_flag(mjcf *m, const xmlNode *place, bool strict, const char *name,
                            const char *its)
{
    const char *own = last_text(tb_xml_root(m->xml), true, name);
    const char *outweighs = tb_xml_in_words(ENABLED, name) ? "enable" : "disable";
    if (own != NULL && strcmp(own, its) == 0) return TB_OK;
    if (strict) return own == NULL ? TB_OK : conflict(m, place, name, own, its);
    if (own == NULL || strcmp(its, outweighs) == 0) return set(m, place, true, name, its);
    return TB_OK;
}

mjcf_conflict mjcf_conflict_rule(const mjcf *m)
{
    mjcf_conflict rule = MJCF_CONFLICT_WARNING;
    for (const xmlNode *c = tb_xml_first_named(tb_xml_root(m->xml), "compiler"); c != NULL;
         c = tb_xml_next_named(c, "compiler")) {
        const char *text = tb_xml_attribute(c, "conflict");
        if (text == NULL) continue;
        rule = strcmp(text, "merge") == 0   ? MJCF_CONFLICT_MERGE
               : strcmp(text, "error") == 0 ? MJCF_CONFLICT_ERROR
                                            : MJCF_CONFLICT_WARNING;
    }
    return rule;
}

tb_status mjcf_merge_options(mjcf *m, const xmlNode *root, const xmlNode *place)
{
    const mjcf_conflict rule = mjcf_conflict_rule(m);
    const bool strict = rule == MJCF_CONFLICT_ERROR;
    if (rule == MJCF_CONFLICT_WARNING) return TB_OK;
    for (size_t i = 0; i < sizeof OPTIONS / sizeof OPTIONS[0]; i++)
        MJCF_TRY(merge_option(m, place, root, strict, (int)i));
    for (const xmlNode *o = tb_xml_first_named(root, "option"); o != NULL;
         o = tb_xml_next_named(o, "option"))
        for (const xmlNode *f = tb_xml_first_named(o, "flag"); f != NULL;
             f = tb_xml_next_named(f, "flag"))
            for (const xmlAttr *at = f->properties; at != NULL; at = at->next) {
                const char *name = (const char *)at->name;
                MJCF_TRY(merge_flag(m, place, strict, name, last_text(root, true, name)));
            }
    return TB_OK;
}
