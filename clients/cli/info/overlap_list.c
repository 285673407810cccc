/* Prints pairs of shapes that overlap, as a table and as JSON. See overlap_list.h. */
#include "info/overlap_list.h"

#include <stdio.h>

#include "common/cli.h"
#include "common/json.h"

/* The shape's name, or its index as "#12". */
static const char *shape_name(const tb_model *model, int32_t shape, char number[16])
{
    const char *name = tb_model_thing_name(model, TB_HANDLE_SHAPE, shape);
    if (name[0] != '\0') return name;
    snprintf(number, 16, "#%d", (int)shape);
    return number;
}

static const char *between(const tb_overlap *o, char text[32])
{
    if (!o->linked) return "separate";
    if (o->joints == 1) return "a joint";
    snprintf(text, 32, "%d joints", (int)o->joints);
    return text;
}

void overlap_list_print(const tb_model *model, const tb_overlap *overlaps, int32_t count)
{
    if (count == 0) {
        printf("\nno shapes overlap\n");
        return;
    }
    printf("\n%10s %10s  %-9s %-20s %-20s %-20s %s\n", "overlap", "least", "between", "body",
           "shape", "body", "shape");
    for (int32_t i = 0; i < count; i++) {
        const tb_overlap *o = &overlaps[i];
        char a[16], b[16], text[32];
        printf("%7.3g mm %7.3g mm  %-9s %-20.20s %-20.20s %-20.20s %.20s\n", 1e3 * o->depth,
               1e3 * o->least_depth, between(o, text),
               tb_model_thing_name(model, TB_HANDLE_BODY, o->body_a),
               shape_name(model, o->shape_a, a),
               tb_model_thing_name(model, TB_HANDLE_BODY, o->body_b),
               shape_name(model, o->shape_b, b));
    }
}

json_t *overlap_list_json(const tb_model *model, const tb_overlap *overlaps, int32_t count)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < count; i++) {
        const tb_overlap *o = &overlaps[i];
        json_t *pair = json_object();
        json_object_set_new(pair, "depth", json_finite(o->depth));
        json_object_set_new(pair, "least_depth", json_finite(o->least_depth));
        json_object_set_new(pair, "persists", json_boolean(o->persists));
        json_object_set_new(pair, "linked", json_boolean(o->linked));
        json_object_set_new(pair, "joints", json_integer(o->joints));
        const int32_t shapes[2] = {o->shape_a, o->shape_b}, bodies[2] = {o->body_a, o->body_b};
        json_t *ends = json_array();
        for (int k = 0; k < 2; k++) {
            json_t *end = json_object();
            json_object_set_new(end, "body",
                                json_text(tb_model_thing_name(model, TB_HANDLE_BODY, bodies[k])));
            json_object_set_new(end, "shape",
                                json_text(tb_model_thing_name(model, TB_HANDLE_SHAPE, shapes[k])));
            json_object_set_new(end, "index", json_integer(shapes[k]));
            json_array_append_new(ends, end);
        }
        json_object_set_new(pair, "pair", ends);
        json_array_append_new(list, pair);
    }
    return list;
}

tb_status overlap_list_refuse(const char *path, int32_t count, tb_error *error)
{
    return cli_fail(error, TB_FAILED_PRECONDITION, path, 0, "overlaps",
                    "%s: %d pairs of shapes overlap", path, (int)count);
}
