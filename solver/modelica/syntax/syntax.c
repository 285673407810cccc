/* Nodes of syntax trees, and diagnoses. */
#include "modelica/syntax/syntax.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- diagnoses ---- */

static tb_status fail_at(mo_source *source, tb_status status, mo_place place, const char *format,
                         va_list arguments)
{
    if (source->failed) return source->error != NULL ? source->error->status : status;
    char text[TB_ERROR_MESSAGE_SIZE];
    vsnprintf(text, sizeof text, format, arguments);
    source->failed = true;
    source->fault = place;
    tb_fail(source->error, status, "%s:%d:%d: %s", source->name, place.line, place.column, text);
    if (source->error != NULL) {
        source->error->line = place.line;
        snprintf(source->error->file, sizeof source->error->file, "%s", source->name);
    }
    return status;
}

tb_status tb_mo_fail(mo_source *source, mo_place place, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const tb_status status = fail_at(source, TB_INVALID_ARGUMENT, place, format, arguments);
    va_end(arguments);
    return status;
}

tb_status tb_mo_fail_as(mo_source *source, tb_status status, mo_place place, const char *format,
                        ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail_at(source, status, place, format, arguments);
    va_end(arguments);
    return status;
}

/* ---- nodes ---- */

mo_node *tb_mo_node(mo_source *source, mo_node_kind kind, mo_place place)
{
    static mo_node empty; /* never written: a failed source gets no children */
    mo_node *node = source->failed ? NULL : TB_ARENA_ZEROED(source->arena, mo_node, 1);
    if (node == NULL) {
        tb_mo_fail_as(source, TB_RESOURCE_EXHAUSTED, place,
                      "the syntax tree needs more than the limit of %d MiB", MO_TREE_BYTES >> 20);
        return &empty;
    }
    node->kind = kind;
    node->place = place;
    node->text = node->type = "";
    return node;
}

mo_node *tb_mo_push(mo_source *source, mo_node *parent, mo_node *child)
{
    if (child == NULL || source->failed) return parent;
    if (parent->last != NULL)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
    parent->count++;
    if (child->depth + 1 > parent->depth) parent->depth = child->depth + 1;
    if (parent->depth > MO_NESTING)
        tb_mo_fail_as(source, TB_RESOURCE_EXHAUSTED, child->place, "nested deeper than %d levels",
                      MO_NESTING);
    return parent;
}

mo_node *tb_mo_adopt(mo_source *source, mo_node *parent, mo_node *list)
{
    for (mo_node *child = list->first, *next; child != NULL && !source->failed; child = next) {
        next = child->next;
        child->next = NULL;
        tb_mo_push(source, parent, child);
    }
    return parent;
}

mo_node *tb_mo_node_of(mo_source *source, mo_node_kind kind, mo_place place, int op, mo_node *a,
                       mo_node *b)
{
    mo_node *node = tb_mo_node(source, kind, place);
    if (source->failed) return node;
    node->op = op;
    tb_mo_push(source, node, a);
    return tb_mo_push(source, node, b);
}

mo_node *tb_mo_child(const mo_node *node, int32_t index)
{
    mo_node *child = node->first;
    while (index-- > 0 && child != NULL) child = child->next;
    return child;
}

const char *tb_mo_text(mo_source *source, const char *bytes, size_t size)
{
    char *text = TB_ARENA_ARRAY(source->arena, char, size + 1);
    if (text == NULL) return "";
    memcpy(text, bytes, size);
    text[size] = '\0';
    return text;
}

const char *tb_mo_dotted(mo_source *source, const char *a, const char *b, mo_place place)
{
    char joined[MO_NAME_BYTES + 1];
    const int size = snprintf(joined, sizeof joined, "%s.%s", a, b);
    if (size < 0 || (size_t)size >= sizeof joined) {
        tb_mo_fail(source, place, "a name has more than %d characters", MO_NAME_BYTES);
        return "";
    }
    return tb_mo_text(source, joined, (size_t)size);
}
