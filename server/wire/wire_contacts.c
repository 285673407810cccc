/* Contacts between named bodies or shapes, summed, and the evaluations of the volume law: see
 * wire.h. */
#include <math.h>
#include <stdio.h>
#include <stddef.h>
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
    if (bodies == NULL || rows == NULL) return NULL;
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
    return td_wire_cube(wire, array, worlds, count, TD_WIRE_PAIR_NUMBERS);
}

/* ---- evaluations ---- */

/* `columns` numbers at the same place of each of `rows` records, of the wanted type. */
static Tribo__V1__Array *column(td_wire *wire, const void *records, size_t size, int64_t rows,
                                int64_t columns, Tribo__V1__DataType dtype)
{
    const bool narrow = dtype == TRIBO__V1__DATA_TYPE__DATA_TYPE_FLOAT32;
    const size_t width = (size_t)(columns > 0 ? columns : 1);
    char *made =
        td_wire_take(wire, (size_t)rows * width * (narrow ? sizeof(float) : sizeof(double)));
    if (made == NULL) return NULL;
    for (int64_t r = 0; r < rows; r++) {
        const double *from =
            (const double *)(const void *)((const char *)records + (size_t)r * size);
        for (size_t k = 0; k < width; k++) {
            const size_t at = (size_t)r * width + k;
            if (narrow)
                ((float *)(void *)made)[at] = (float)from[k];
            else
                ((double *)(void *)made)[at] = from[k];
        }
    }
    return td_wire_array(wire, dtype, made, rows, columns);
}

static Tribo__V1__Array *integers(td_wire *wire, const void *records, size_t size, int64_t rows,
                                  int64_t columns)
{
    const size_t width = (size_t)(columns > 0 ? columns : 1);
    int32_t *made = td_wire_take(wire, (size_t)rows * width * sizeof *made);
    if (made == NULL) return NULL;
    for (int64_t r = 0; r < rows; r++)
        memcpy(made + (size_t)r * width, (const char *)records + (size_t)r * size,
               width * sizeof *made);
    return td_wire_array(wire, TRIBO__V1__DATA_TYPE__DATA_TYPE_INT32, made, rows, columns);
}

static void fill_evaluation(td_wire *wire, const tb_evaluations *all, int32_t index, int32_t bodies,
                            Tribo__V1__DataType dtype, Tribo__V1__Evaluation *out)
{
    const tb_evaluation *e = &all->evaluations[index];
    const int32_t n = e->number_of_contacts, m = e->number_of_triangles;
    const int32_t boxes = all->number_of_box_shapes;
    const tb_evaluation_contact *c = n > 0 ? all->contacts + e->first_contact : NULL;
    const tb_evaluation_triangle *t = m > 0 ? all->triangles + e->first_triangle : NULL;
    static const tb_evaluation_contact NO_CONTACT;
    static const tb_evaluation_triangle NO_TRIANGLE;
    if (c == NULL) c = &NO_CONTACT;
    if (t == NULL) t = &NO_TRIANGLE;
    tribo__v1__evaluation__init(out);
    out->time = e->time;
    out->poses = column(wire, all->poses + (size_t)index * (size_t)bodies * 7, 7 * sizeof(double),
                        bodies, 7, dtype);
    if (boxes > 0) {
        out->box_shapes = integers(wire, all->box_shapes, sizeof(int32_t), boxes, 0);
        out->boxes = column(wire, all->boxes + (size_t)index * (size_t)boxes * 6,
                            6 * sizeof(double), boxes, 6, dtype);
    }
    out->shapes = integers(wire, &c->shape_a, sizeof *c, n, 2);
    out->centroids = column(wire, c->centroid, sizeof *c, n, 3, dtype);
    out->normals = column(wire, c->normal, sizeof *c, n, 3, dtype);
    out->volumes = column(wire, &c->volume, sizeof *c, n, 0, dtype);
    out->depths = column(wire, &c->depth, sizeof *c, n, 0, dtype);
    out->forces = column(wire, c->force, sizeof *c, n, 3, dtype);
    out->torques = column(wire, c->torque, sizeof *c, n, 3, dtype);
    out->triangles = column(wire, t->vertices, sizeof *t, m, 9, dtype);
    out->triangle_contacts = integers(wire, &t->contact, sizeof *t, m, 0);
    out->triangle_forces = column(wire, t->force, sizeof *t, m, 3, dtype);
}

Tribo__V1__Evaluations **td_wire_evaluations(td_wire *wire, tb_state *const *states, int32_t worlds,
                                             Tribo__V1__DataType dtype)
{
    const int32_t bodies = tb_model_count(tb_state_model(states[0])).bodies;
    const size_t n = (size_t)worlds;
    Tribo__V1__Evaluations **pointers = td_wire_take(wire, n * sizeof *pointers);
    Tribo__V1__Evaluations *messages = td_wire_take(wire, n * sizeof *messages);
    if (pointers == NULL || messages == NULL) return NULL;
    for (size_t w = 0; w < n; w++) {
        const tb_evaluations all = tb_state_evaluations(states[w]);
        const size_t count = (size_t)all.number_of_evaluations;
        Tribo__V1__Evaluation *made = td_wire_take(wire, count * sizeof *made);
        pointers[w] = &messages[w];
        tribo__v1__evaluations__init(&messages[w]);
        messages[w].left_out = all.left_out;
        messages[w].evaluations = td_wire_take(wire, count * sizeof *messages[w].evaluations);
        if (made == NULL || messages[w].evaluations == NULL) return NULL;
        messages[w].n_evaluations = count;
        for (size_t i = 0; i < count; i++) {
            fill_evaluation(wire, &all, (int32_t)i, bodies, dtype, &made[i]);
            messages[w].evaluations[i] = &made[i];
        }
    }
    return wire->failed ? NULL : pointers;
}

size_t td_wire_evaluations_bytes(const tb_state *state, size_t number)
{
    enum { HEADS = 256 };
    const tb_evaluations all = tb_state_evaluations(state);
    if (all.number_of_evaluations == 0) return 0;
    const tb_evaluation *last = &all.evaluations[all.number_of_evaluations - 1];
    const size_t contacts = (size_t)(last->first_contact + last->number_of_contacts);
    const size_t triangles = (size_t)(last->first_triangle + last->number_of_triangles);
    const size_t bodies = (size_t)tb_model_count(tb_state_model(state)).bodies;
    const size_t boxes = (size_t)all.number_of_box_shapes;
    return (size_t)all.number_of_evaluations *
               (HEADS + 7 * bodies * number + boxes * (6 * number + sizeof(int32_t))) +
           contacts * (14 * number + 2 * sizeof(int32_t)) +
           triangles * (12 * number + sizeof(int32_t));
}
