/* Contacts between named bodies or shapes, summed: see wire.h. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "wire/wire.h"

enum { MOST_PAIRS = 1000 };

/* One side of a pair: a body, a shape, or anything. */
static tb_status find_side(const tb_model *model, const char *name, size_t pair, char side,
                           td_wire_side *found, tb_error *error)
{
    char field[64];
    *found = (td_wire_side){.body = tb_model_find(model, TB_HANDLE_BODY, name), .shape = -1};
    if (name[0] == '\0') found->any = true;
    if (found->any || found->body >= 0) return TB_OK;
    found->shape = tb_model_find(model, TB_HANDLE_SHAPE, name);
    if (found->shape >= 0) return TB_OK;
    snprintf(field, sizeof field, "want.pairs[%zu].%c", pair, side);
    return tb_fail_field(error, TB_NOT_FOUND, field, "%s: there is no body or shape '%.80s'", field,
                         name);
}

tb_status td_wire_find_pairs(td_wire *wire, const tb_model *model,
                             const Tribo__V1__StepReturn *message, const td_wire_pair **pairs,
                             int32_t *count, tb_error *error)
{
    const size_t n = message != NULL ? message->n_pairs : 0;
    *pairs = NULL;
    *count = 0;
    if (n == 0) return TB_OK;
    if (n > MOST_PAIRS)
        return tb_fail_field(error, TB_INVALID_ARGUMENT, "want.pairs",
                             "%zu pairs, at most %d are taken", n, (int)MOST_PAIRS);
    td_wire_pair *made = td_wire_take(wire, n * sizeof *made);
    if (made == NULL) return tb_fail_memory(error, n * sizeof *made, "pairs");
    for (size_t i = 0; i < n; i++) {
        const Tribo__V1__ContactPair *p = message->pairs[i];
        if (p->a[0] == '\0')
            return tb_fail_field(error, TB_INVALID_ARGUMENT, "want.pairs",
                                 "want.pairs[%zu].a is empty", i);
        tb_status status = find_side(model, p->a, i, 'a', &made[i].a, error);
        if (status == TB_OK) status = find_side(model, p->b, i, 'b', &made[i].b, error);
        if (status != TB_OK) return status;
    }
    *pairs = made;
    *count = (int32_t)n;
    return TB_OK;
}

static bool is_on(td_wire_side side, int32_t shape, int32_t body)
{
    return side.any || (side.shape >= 0 ? side.shape == shape : side.body == body);
}

/* Adds a contact to the pairs that it is of; forces are on the pair's second side. */
static void add_contact(const tb_contact_info *c, int32_t body_a, int32_t body_b, double dt,
                        const td_wire_pair *pairs, int32_t count,
                        double (*rows)[TD_WIRE_PAIR_NUMBERS])
{
    for (int32_t i = 0; i < count; i++) {
        const td_wire_pair *p = &pairs[i];
        const bool forth = is_on(p->a, c->shape_a, body_a) && is_on(p->b, c->shape_b, body_b);
        const bool back = is_on(p->a, c->shape_b, body_b) && is_on(p->b, c->shape_a, body_a);
        if (!forth && !back) continue;
        double *row = rows[i];
        row[0] += 1;
        row[1] = fmin(row[1], c->gap);
        row[2] += c->impulse[0] / dt;
        for (int k = 0; k < 3; k++)
            row[3 + k] += (forth ? 1 : -1) *
                          (c->impulse[0] * c->normal[k] + c->impulse[1] * c->tangent1[k] +
                           c->impulse[2] * c->tangent2[k]) /
                          dt;
    }
}

Tribo__V1__Array *td_wire_pair_contacts(td_wire *wire, tb_state *const *states, int32_t worlds,
                                        const td_wire_pair *pairs, int32_t count, double dt)
{
    const tb_model *model = tb_state_model(states[0]);
    const int32_t shapes = tb_model_count(model).shapes;
    int32_t *bodies = td_wire_take(wire, (size_t)shapes * sizeof *bodies);
    double(*rows)[TD_WIRE_PAIR_NUMBERS] =
        td_wire_take(wire, (size_t)worlds * (size_t)count * sizeof *rows);
    int64_t *shape = td_wire_take(wire, 3 * sizeof *shape);
    if (bodies == NULL || rows == NULL || shape == NULL) return NULL;
    for (int32_t i = 0; i < shapes; i++) {
        tb_shape_info info;
        tb_model_shape_info(model, i, &info);
        bodies[i] = info.body;
    }
    for (int32_t w = 0; w < worlds; w++) {
        double(*row)[TD_WIRE_PAIR_NUMBERS] = rows + (size_t)w * (size_t)count;
        for (int32_t i = 0; i < count; i++) row[i][1] = (double)INFINITY;
        for (int32_t c = 0; c < tb_state_number_of_contacts(states[w]); c++) {
            tb_contact_info info;
            if (tb_state_contact(states[w], c, &info) != TB_OK) continue;
            add_contact(&info, bodies[info.shape_a], bodies[info.shape_b], dt, pairs, count, row);
        }
    }
    Tribo__V1__Array *array = td_wire_array(wire, TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT64, rows,
                                            (int64_t)worlds * count, TD_WIRE_PAIR_NUMBERS);
    if (array == NULL) return NULL;
    shape[0] = worlds;
    shape[1] = count;
    shape[2] = TD_WIRE_PAIR_NUMBERS;
    array->shape = shape;
    array->n_shape = 3;
    return array;
}
