/* Names: the tree of classes, look-ups through it, types, and the fields of records. */
#include <stdio.h>
#include <string.h>

#include "modelica/lower/build.h"

/* ---- declaration ---- */

static bool is_built_in_type(const char *name)
{
    return strcmp(name, "Real") == 0 || strcmp(name, "Integer") == 0 ||
           strcmp(name, "Boolean") == 0 || strcmp(name, "String") == 0;
}

/* elements of a class; names are unique within it */
static void check_elements(mo_build *b, const mo_class *class)
{
    static const char *const KINDS[] = {"package", "function", "record"};
    const int kind = class->node->op;
    int algorithms = 0;
    for (const mo_node *e = class->node->first; e != NULL; e = e->next) {
        if (e->kind == MO_ARGUMENT) continue;
        if (e->kind == MO_ALGORITHM) {
            if (kind != MO_FUNCTION || ++algorithms > 1)
                tb_mo_fail(b->source, e->place, "%s '%s' has %s algorithm section", KINDS[kind],
                           class->name, kind == MO_FUNCTION ? "a second" : "an");
            continue;
        }
        if (is_built_in_type(e->text))
            tb_mo_fail(b->source, e->place, "'%s' is the name of a type", e->text);
        for (const mo_node *o = class->node->first; o != e; o = o->next)
            if (o->kind != MO_ARGUMENT && e->text[0] != '\0' && strcmp(o->text, e->text) == 0)
                tb_mo_fail(b->source, e->place, "'%s' is declared twice, first at line %d", e->text,
                           o->place.line);
        if (e->kind != MO_COMPONENT) continue;
        if (kind == MO_PACKAGE && !(e->op & (MO_CONSTANT | MO_PARAMETER)))
            tb_mo_fail(b->source, e->place, "'%s' is a variable of a package, expected a constant",
                       e->text);
        if (kind != MO_FUNCTION && (e->op & (MO_INPUT | MO_OUTPUT)))
            tb_mo_fail(b->source, e->place, "'%s' is an input or output of a %s", e->text,
                       KINDS[kind]);
        if (kind == MO_FUNCTION &&
            !(e->op & (MO_INPUT | MO_OUTPUT | MO_PROTECTED | MO_CONSTANT | MO_PARAMETER)))
            tb_mo_fail(b->source, e->place,
                       "'%s' is public but neither input nor output: declare it protected",
                       e->text);
    }
}

static void add_function(mo_build *b, mo_class *class)
{
    enum { MOST = 4096 };
    mo_program *program = b->program;
    if (program->count == program->capacity) {
        const int32_t capacity = program->capacity < 16 ? 16 : 2 * program->capacity;
        mo_function **grown =
            capacity > MOST ? NULL : TB_ARENA_ZEROED(b->arena, mo_function *, capacity);
        if (grown == NULL) {
            tb_mo_fail_as(b->source, TB_RESOURCE_EXHAUSTED, class->node->place,
                          "a source has at most %d functions", MOST);
            return;
        }
        if (program->count > 0)
            memcpy(grown, program->functions, (size_t)program->count * sizeof(mo_function *));
        program->functions = grown;
        program->capacity = capacity;
    }
    mo_function *f = TB_ARENA_ZEROED(b->arena, mo_function, 1);
    if (f == NULL) {
        tb_mo_fail_as(b->source, TB_RESOURCE_EXHAUSTED, class->node->place, "no memory");
        return;
    }
    f->name = class->name;
    f->place = class->node->place;
    f->index = program->count;
    for (const mo_node *e = class->node->first; e != NULL; e = e->next) {
        if (e->kind != MO_ARGUMENT || e->first == NULL) continue;
        const bool is_true = e->first->kind == MO_BOOLEAN && e->first->integer;
        if (strcmp(e->text, "gpuFunction") == 0) f->on_card = is_true;
        if (strcmp(e->text, "__Tribod_reorder") == 0) f->reorder = is_true;
    }
    class->function = f;
    program->functions[program->count++] = f;
}

static void declare(mo_build *b, mo_class *parent, const mo_node *node)
{
    if (b->source->failed) return;
    mo_class *class = TB_ARENA_ZEROED(b->arena, mo_class, 1);
    if (class == NULL) {
        tb_mo_fail_as(b->source, TB_RESOURCE_EXHAUSTED, node->place, "no memory for classes");
        return;
    }
    class->node = node;
    class->parent = parent;
    class->name = parent->name[0] == '\0'
                      ? node->text
                      : tb_mo_dotted(b->source, parent->name, node->text, node->place);
    if (is_built_in_type(node->text))
        tb_mo_fail(b->source, node->place, "'%s' is the name of a type", node->text);
    mo_class **at = &parent->classes;
    for (; *at != NULL; at = &(*at)->next)
        if (strcmp((*at)->node->text, node->text) == 0)
            tb_mo_fail(b->source, node->place, "'%s' is declared twice, first at line %d",
                       node->text, (*at)->node->place.line);
    *at = class;
    check_elements(b, class);
    if (node->op == MO_FUNCTION) add_function(b, class);
    for (const mo_node *e = node->first; e != NULL; e = e->next)
        if (e->kind == MO_CLASS) declare(b, class, e);
}

tb_status tb_mo_declare(mo_build *b, const mo_node *classes)
{
    b->root = TB_ARENA_ZEROED(b->arena, mo_class, 1);
    if (b->root == NULL)
        return tb_mo_fail_as(b->source, TB_RESOURCE_EXHAUSTED, (mo_place){1, 1}, "no memory");
    b->root->name = "";
    for (const mo_node *c = classes->first; c != NULL; c = c->next) declare(b, b->root, c);
    return b->source->failed ? TB_INVALID_ARGUMENT : TB_OK;
}

/* ---- look-up ---- */

static size_t head_of(const char *name)
{
    const char *point = strchr(name, '.');
    return point != NULL ? (size_t)(point - name) : strlen(name);
}

static bool is_head(const char *text, const char *name, size_t head)
{
    return strlen(text) == head && memcmp(text, name, head) == 0;
}

/* the name with an imported first part replaced by the full name */
static const char *apply_imports(mo_build *b, const char *name, const mo_class *scope)
{
    const size_t head = head_of(name);
    for (const mo_class *c = scope; c != NULL && c->node != NULL; c = c->parent)
        for (const mo_node *e = c->node->first; e != NULL; e = e->next) {
            if (e->kind != MO_IMPORT) continue;
            const char *last = strrchr(e->type, '.');
            const char *alias = e->text[0] != '\0' ? e->text : last != NULL ? last + 1 : e->type;
            if (is_head(alias, name, head)) return tb_mo_format(b, "%s%s", e->type, name + head);
        }
    return name;
}

static mo_class *find_below(const mo_class *class, const char *name)
{
    while (class != NULL) {
        const size_t head = head_of(name);
        mo_class *c = class->classes;
        while (c != NULL && !is_head(c->node->text, name, head)) c = c->next;
        if (c == NULL || name[head] == '\0') return c;
        name += head + 1;
        class = c;
    }
    return NULL;
}

mo_class *tb_mo_find_class(mo_build *b, const char *name, mo_class *scope)
{
    name = apply_imports(b, name, scope);
    for (mo_class *c = scope; c != NULL; c = c->parent) {
        mo_class *found = find_below(c, name);
        if (found != NULL) return found;
    }
    return NULL;
}

/* the element of a kind with a dotted name, and the class that holds it */
static const mo_node *find_element(mo_build *b, const char *name, mo_class **scope,
                                   mo_node_kind kind)
{
    name = apply_imports(b, name, *scope);
    const char *point = strrchr(name, '.');
    mo_class *from = *scope;
    if (point != NULL) {
        const char *path = tb_mo_text(b->source, name, (size_t)(point - name));
        from = tb_mo_find_class(b, path, *scope);
        name = point + 1;
    }
    for (mo_class *c = from; c != NULL && c->node != NULL; c = c->parent) {
        for (const mo_node *e = c->node->first; e != NULL; e = e->next)
            if (e->kind == kind && strcmp(e->text, name) == 0 &&
                (kind != MO_COMPONENT || c->node->op == MO_PACKAGE)) {
                *scope = c;
                return e;
            }
        if (point != NULL) break;
    }
    return NULL;
}

const mo_node *tb_mo_find_constant(mo_build *b, const char *name, mo_class **scope)
{
    return find_element(b, name, scope, MO_COMPONENT);
}

const char *tb_mo_plain_name(mo_build *b, const char *name)
{
    static const char MATHEMATICS[] = "Modelica.Math.";
    name = apply_imports(b, name, b->scope);
    return strncmp(name, MATHEMATICS, sizeof MATHEMATICS - 1) == 0 ? name + sizeof MATHEMATICS - 1
                                                                   : name;
}

static bool begins_with(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

bool tb_mo_find_type(mo_build *b, const char *name, mo_class *scope, mo_place place, mo_type *type,
                     const mo_node **sizes)
{
    enum { ALIASES = 20 };
    *type = (mo_type){MO_T_REAL, NULL};
    for (int k = 0; k < ALIASES; k++) {
        name = apply_imports(b, name, scope);
        if (strcmp(name, "Real") == 0 || begins_with(name, "Modelica.Units.SI.") ||
            begins_with(name, "Modelica.SIunits."))
            return true;
        if (strcmp(name, "Integer") == 0 || strcmp(name, "Boolean") == 0) {
            type->base = name[0] == 'I' ? MO_T_INTEGER : MO_T_BOOLEAN;
            return true;
        }
        if (strcmp(name, "String") == 0) {
            tb_mo_fail_as(b->source, TB_UNSUPPORTED, place,
                          "'String' is left out: types are Real, Integer, Boolean and records");
            return false;
        }
        mo_class *class = tb_mo_find_class(b, name, scope);
        if (class != NULL && class->node->op == MO_RECORD) {
            type->record = class;
            return true;
        }
        const mo_node *alias = find_element(b, name, &scope, MO_ALIAS);
        if (alias == NULL) break;
        if (alias->first != NULL && alias->first->count > 0) {
            if (*sizes != NULL) {
                tb_mo_fail_as(b->source, TB_UNSUPPORTED, place,
                              "type '%s' has sizes of its own: arrays of it are left out", name);
                return false;
            }
            *sizes = alias->first;
        }
        name = alias->type;
    }
    tb_mo_fail(b->source, place,
               "no type '%s', expected Real, Integer, Boolean or a record of this source", name);
    return false;
}

/* ---- records ---- */

static bool add_leaf(mo_build *b, mo_leaves *leaves, mo_leaf leaf, mo_place place)
{
    enum { MOST = 4096 };
    if (leaves->count == leaves->capacity) {
        const int32_t capacity = leaves->capacity < 8 ? 8 : 2 * leaves->capacity;
        mo_leaf *grown = capacity > MOST ? NULL : TB_ARENA_ARRAY(b->arena, mo_leaf, capacity);
        if (grown == NULL) {
            tb_mo_fail_as(b->source, TB_RESOURCE_EXHAUSTED, place,
                          "a record has more than %d fields", leaves->count);
            return false;
        }
        if (leaves->count > 0) memcpy(grown, leaves->leaf, (size_t)leaves->count * sizeof *grown);
        leaves->leaf = grown;
        leaves->capacity = capacity;
    }
    leaves->leaf[leaves->count++] = leaf;
    return true;
}

static bool open_record(mo_build *b, mo_class *record, mo_place place, const mo_leaf *outer,
                        mo_leaves *leaves)
{
    if (record->visiting) {
        tb_mo_fail(b->source, place, "record '%s' holds itself", record->name);
        return false;
    }
    record->visiting = 1;
    for (const mo_node *e = record->node->first; e != NULL && !b->source->failed; e = e->next) {
        if (e->kind != MO_COMPONENT) continue;
        mo_leaf leaf = *outer;
        mo_type type;
        const mo_node *sizes = e->first != NULL && e->first->count > 0 ? e->first : NULL;
        if (!tb_mo_find_type(b, e->type, record, e->place, &type, &sizes)) break;
        leaf.base = type.base;
        leaf.scope = record;
        leaf.suffix = outer->suffix[0] == '\0'
                          ? e->text
                          : tb_mo_dotted(b->source, outer->suffix, e->text, e->place);
        for (const mo_node *d = sizes != NULL ? sizes->first : NULL; d != NULL; d = d->next) {
            if (leaf.rank == MO_RANK) {
                tb_mo_fail_as(b->source, TB_UNSUPPORTED, e->place,
                              "'%s' has more than %d dimensions", e->text, MO_RANK);
                break;
            }
            leaf.sizes[leaf.rank++] = d;
        }
        if (b->source->failed) break;
        if (type.record != NULL)
            open_record(b, type.record, e->place, &leaf, leaves);
        else
            add_leaf(b, leaves, leaf, e->place);
    }
    record->visiting = 0;
    return !b->source->failed;
}

bool tb_mo_open_record(mo_build *b, mo_class *record, mo_place place, mo_leaves *leaves)
{
    const mo_leaf outer = {.suffix = ""};
    if (!open_record(b, record, place, &outer, leaves)) return false;
    if (leaves->count == 0) tb_mo_fail(b->source, place, "record '%s' is empty", record->name);
    return !b->source->failed;
}
