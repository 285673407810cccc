/* The interpreter: walks the intermediate form with the arithmetic of prelude.inc. It is always
 * there, it is the reference of the other back ends, and it is the host's side of the card: loops
 * that are kernels are launched, everything else happens here. */
#include <stdlib.h>
#include <string.h>

#include "modelica/arithmetic.h"
#include "modelica/run.h"

typedef enum mo_outcome { MO_NEXT, MO_BROKEN, MO_RETURNED } mo_outcome;

static int64_t integer(mo_run *run, mo_frame *f, const mo_x *x);
static double real(mo_run *run, mo_frame *f, const mo_x *x);

static int64_t at(mo_place place)
{
    return (int64_t)place.line << 32 | place.column;
}

/* ---- arrays ---- */

/* position of an element in its array, checked */
static int64_t offset(mo_run *run, mo_frame *f, const mo_array *array, int32_t variable,
                      int32_t count, const mo_x *const *subscript, mo_place place)
{
    int64_t position = 0;
    for (int32_t d = 0; d < count; d++) {
        const int64_t i = integer(run, f, subscript[d]), n = array->size[d];
        if (i < 1 || i > n)
            run->fail(run, MO_FAIL_INDEX, at(place),
                      (int64_t)f->function->index << 32 | (int64_t)variable << 3 | d, i, n);
        position = position * n + i - 1;
    }
    return position;
}

static mo_array *host_array(mo_run *run, mo_array *array)
{
    if (!(array->where & MO_ON_HOST))
        tb_mo_card_fetch(run, array);
    else if (array->data == NULL)
        tb_mo_need_host(run, array);
    return array;
}

/* the element that an expression reads: its array, and its position in *position */
static const void *element(mo_run *run, mo_frame *f, const mo_x *x, int64_t *position)
{
    mo_array *array = host_array(run, f->slot[x->variable].array);
    *position = offset(run, f, array, x->variable, x->count, x->operand, x->place);
    return array->data;
}

/* ---- expressions ---- */

static bool compare(mo_run *run, mo_frame *f, const mo_x *x)
{
    if (x->operand[0]->base == MO_T_REAL) {
        const double p = real(run, f, x->operand[0]), q = real(run, f, x->operand[1]);
        return x->op == MO_X_LESS         ? p < q
               : x->op == MO_X_LESS_EQUAL ? p <= q
               : x->op == MO_X_EQUAL      ? p == q
                                          : p != q;
    }
    const int64_t p = integer(run, f, x->operand[0]), q = integer(run, f, x->operand[1]);
    return x->op == MO_X_LESS         ? p < q
           : x->op == MO_X_LESS_EQUAL ? p <= q
           : x->op == MO_X_EQUAL      ? p == q
                                      : p != q;
}

static int64_t binary_integer(mo_run *run, mo_frame *f, const mo_x *x)
{
    const int64_t p = integer(run, f, x->operand[0]), q = integer(run, f, x->operand[1]);
    switch (x->op) {
    case MO_X_ADD: return mo_add(run, at(x->place), p, q);
    case MO_X_SUBTRACT: return mo_subtract(run, at(x->place), p, q);
    case MO_X_MULTIPLY: return mo_multiply(run, at(x->place), p, q);
    case MO_X_DIV: return mo_div_integer(run, at(x->place), p, q);
    case MO_X_MOD: return mo_mod_integer(run, at(x->place), p, q);
    case MO_X_REM: return mo_rem_integer(run, at(x->place), p, q);
    case MO_X_MINIMUM: return mo_min_integer(p, q);
    default: return mo_max_integer(p, q);
    }
}

static int64_t integer(mo_run *run, mo_frame *f, const mo_x *x)
{
    int64_t position;
    const void *data;
    switch (x->op) {
    case MO_X_CONSTANT: return x->integer;
    case MO_X_VARIABLE: return f->slot[x->variable].integer;
    case MO_X_SIZE: return f->slot[x->variable].array->size[x->dimension];
    case MO_X_ELEMENT:
        data = element(run, f, x, &position);
        return x->base == MO_T_BOOLEAN ? ((const uint8_t *)data)[position]
                                       : ((const int64_t *)data)[position];
    case MO_X_LESS:
    case MO_X_LESS_EQUAL:
    case MO_X_EQUAL:
    case MO_X_NOT_EQUAL: return compare(run, f, x);
    case MO_X_AND: return integer(run, f, x->operand[0]) && integer(run, f, x->operand[1]);
    case MO_X_OR: return integer(run, f, x->operand[0]) || integer(run, f, x->operand[1]);
    case MO_X_NOT: return !integer(run, f, x->operand[0]);
    case MO_X_SELECT: return integer(run, f, x->operand[integer(run, f, x->operand[0]) ? 1 : 2]);
    case MO_X_NEGATE: return mo_negate(run, at(x->place), integer(run, f, x->operand[0]));
    case MO_X_ABS: return mo_abs_integer(run, at(x->place), integer(run, f, x->operand[0]));
    case MO_X_SIGN:
        return x->operand[0]->base == MO_T_REAL ? mo_sign(real(run, f, x->operand[0]))
                                                : mo_sign((double)integer(run, f, x->operand[0]));
    case MO_X_INTEGER: return mo_integer(run, at(x->place), real(run, f, x->operand[0]));
    default: return binary_integer(run, f, x);
    }
}

static double unary_real(mo_run *run, const mo_x *x, double p)
{
    switch (x->op) {
    case MO_X_NEGATE: return -p;
    case MO_X_ABS: return fabs(p);
    case MO_X_FLOOR: return floor(p);
    case MO_X_CEIL: return ceil(p);
    case MO_X_SQRT: return sqrt(mo_within(run, at(x->place), MO_X_SQRT, p, 0, HUGE_VAL));
    case MO_X_SIN: return sin(p);
    case MO_X_COS: return cos(p);
    case MO_X_TAN: return tan(p);
    case MO_X_ASIN: return asin(mo_within(run, at(x->place), MO_X_ASIN, p, -1, 1));
    case MO_X_ACOS: return acos(mo_within(run, at(x->place), MO_X_ACOS, p, -1, 1));
    case MO_X_ATAN: return atan(p);
    case MO_X_SINH: return sinh(p);
    case MO_X_COSH: return cosh(p);
    case MO_X_TANH: return tanh(p);
    case MO_X_EXP: return exp(p);
    case MO_X_LOG: return log(mo_positive(run, at(x->place), MO_X_LOG, p));
    default: return log10(mo_positive(run, at(x->place), MO_X_LOG10, p));
    }
}

static double real(mo_run *run, mo_frame *f, const mo_x *x)
{
    int64_t position;
    const void *data;
    switch (x->op) {
    case MO_X_CONSTANT: return x->real;
    case MO_X_VARIABLE: return f->slot[x->variable].real;
    case MO_X_ELEMENT:
        data = element(run, f, x, &position);
        return ((const double *)data)[position];
    case MO_X_CAST: return (double)integer(run, f, x->operand[0]);
    case MO_X_SELECT: return real(run, f, x->operand[integer(run, f, x->operand[0]) ? 1 : 2]);
    default: break;
    }
    const double p = real(run, f, x->operand[0]);
    if (x->count == 1) return unary_real(run, x, p);
    const double q = real(run, f, x->operand[1]);
    switch (x->op) {
    case MO_X_ADD: return p + q;
    case MO_X_SUBTRACT: return p - q;
    case MO_X_MULTIPLY: return p * q;
    case MO_X_DIVIDE: return mo_divide(run, at(x->place), p, q);
    case MO_X_POWER: return mo_power(run, at(x->place), p, q);
    case MO_X_DIV: return mo_div_real(run, at(x->place), p, q);
    case MO_X_MOD: return mo_mod_real(run, at(x->place), p, q);
    case MO_X_REM: return mo_rem_real(run, at(x->place), p, q);
    case MO_X_MINIMUM: return mo_min_real(p, q);
    case MO_X_MAXIMUM: return mo_max_real(p, q);
    default: return atan2(p, q);
    }
}

int64_t tb_mo_evaluate_integer(mo_run *run, mo_frame *frame, const mo_x *x)
{
    return integer(run, frame, x);
}
/* ---- statements ---- */

static mo_outcome block(mo_run *run, mo_frame *f, const mo_s *s);

struct mo_tree *tb_mo_tree_of(const mo_frame *frame, const mo_s *s)
{
    mo_array *array = (mo_array *)(void *)(frame->slot + frame->function->count);
    return (struct mo_tree *)(void *)(array + frame->function->count) + s->tree - 1;
}

static void step_tree(mo_run *run, mo_frame *f, const mo_s *s)
{
    struct mo_tree *tree = tb_mo_tree_of(f, s);
    switch (s->tree_step) {
    case MO_TREE_OPEN: mo_tree_open(tree); break;
    case MO_TREE_ADD: mo_tree_add(tree, real(run, f, s->value->operand[1])); break;
    case MO_TREE_CLOSE: f->slot[s->variable].real = mo_tree_total(tree); break;
    }
}

static void assign(mo_run *run, mo_frame *f, const mo_s *s)
{
    mo_slot *slot = &f->slot[s->variable];
    if (s->tree > 0) {
        step_tree(run, f, s);
        return;
    }
    if (f->function->variables[s->variable].base == MO_T_REAL)
        slot->real = real(run, f, s->value);
    else
        slot->integer = integer(run, f, s->value);
}

static void store(mo_run *run, mo_frame *f, const mo_s *s)
{
    mo_array *array = host_array(run, f->slot[s->variable].array);
    const int64_t position = offset(run, f, array, s->variable, s->count, s->subscript, s->place);
    if (array->base == MO_T_REAL)
        ((double *)array->data)[position] = real(run, f, s->value);
    else if (array->base == MO_T_INTEGER)
        ((int64_t *)array->data)[position] = integer(run, f, s->value);
    else
        ((uint8_t *)array->data)[position] = (uint8_t)integer(run, f, s->value);
    array->where = MO_ON_HOST;
    array->zero = false;
}

static void allocate(mo_run *run, mo_frame *f, const mo_s *s)
{
    int64_t size[MO_RANK] = {0};
    for (int32_t d = 0; d < s->count; d++) size[d] = integer(run, f, s->subscript[d]);
    mo_array *array = f->slot[s->variable].array;
    memcpy(array->size, size, sizeof size);
    run->allocate(run, array, at(s->place));
}

static void copy(mo_run *run, mo_array *to, mo_array *from, mo_place place)
{
    if (run->card == NULL || !tb_mo_card_copy(run, to, from, at(place)))
        run->copy(run, to, from, at(place));
}

static mo_outcome loop(mo_run *run, mo_frame *f, const mo_s *s)
{
    const int64_t step = integer(run, f, s->step);
    const int64_t from = integer(run, f, s->value), to = integer(run, f, s->limit);
    if (step == 0) run->fail(run, MO_FAIL_STEP, at(s->place), 0, 0, 0);
    if (step > 0 ? from > to : from < to) return MO_NEXT;
    const uint64_t width = step > 0 ? (uint64_t)to - (uint64_t)from : (uint64_t)from - (uint64_t)to;
    const uint64_t rounds = width / (step > 0 ? (uint64_t)step : 0 - (uint64_t)step);
    int64_t i = from;
    for (uint64_t k = 0;; k++) {
        f->slot[s->variable].integer = i;
        if (--run->budget < 0) run->poll(run);
        const mo_outcome outcome = block(run, f, s->body);
        if (outcome == MO_RETURNED) return outcome;
        if (outcome == MO_BROKEN || k == rounds) return MO_NEXT;
        i = (int64_t)((uint64_t)i + (uint64_t)step);
    }
}

static void call(mo_run *run, mo_frame *f, const mo_s *s);

static mo_outcome block(mo_run *run, mo_frame *f, const mo_s *s)
{
    mo_outcome outcome = MO_NEXT;
    for (; s != NULL && outcome == MO_NEXT; s = s->next) {
        switch (s->op) {
        case MO_S_ASSIGN: assign(run, f, s); break;
        case MO_S_STORE: store(run, f, s); break;
        case MO_S_ALLOCATE: allocate(run, f, s); break;
        case MO_S_MOVE: run->move(run, f->slot[s->variable].array, f->slot[s->source].array); break;
        case MO_S_COPY:
            copy(run, f->slot[s->variable].array, f->slot[s->source].array, s->place);
            break;
        case MO_S_FOR:
            if (run->card == NULL || s->loop == NULL || !tb_mo_card_loop(run, f, s))
                outcome = loop(run, f, s);
            break;
        case MO_S_WHILE:
            while (outcome == MO_NEXT) {
                if (--run->budget < 0) run->poll(run);
                outcome = block(run, f, s->body);
            }
            if (outcome == MO_BROKEN) outcome = MO_NEXT;
            break;
        case MO_S_IF:
            outcome = block(run, f, integer(run, f, s->value) ? s->body : s->orelse);
            break;
        case MO_S_BREAK: outcome = MO_BROKEN; break;
        case MO_S_RETURN: outcome = MO_RETURNED; break;
        case MO_S_ASSERT:
            if (!integer(run, f, s->value))
                run->fail(run, MO_FAIL_ASSERT, at(s->place), 0, s->source, 0);
            break;
        case MO_S_CALL: call(run, f, s); break;
        }
    }
    return outcome;
}

void tb_mo_interpret_rounds(mo_run *run, mo_frame *frame, const mo_s *s, int64_t from, int64_t to)
{
    for (int64_t i = from; i <= to; i++) {
        frame->slot[s->variable].integer = i;
        if (--run->budget < 0) run->poll(run);
        block(run, frame, s->body);
    }
}

/* ---- calls ---- */

mo_slot *tb_mo_open_frame(mo_run *run, const mo_function *function)
{
    const int64_t count = function->count;
    const int64_t bytes = count * (int64_t)(sizeof(mo_slot) + sizeof(mo_array)) +
                          function->trees * (int64_t)sizeof(struct mo_tree);
    mo_slot *slot = tb_mo_take(run, bytes);
    if (slot == NULL) run->fail(run, MO_FAIL_MEMORY, at(function->place), 0, bytes, 0);
    mo_array *array = (mo_array *)(void *)(slot + count);
    for (int64_t k = 0; k < count; k++) {
        if (function->variables[k].rank == 0) continue;
        slot[k].array = &array[k];
        array[k] = (mo_array){.base = function->variables[k].base,
                              .rank = function->variables[k].rank,
                              .where = MO_ON_HOST};
    }
    return slot;
}

void tb_mo_close_frame(mo_run *run, const mo_function *function, mo_slot *slot)
{
    mo_array *array = (mo_array *)(void *)(slot + function->count);
    for (int32_t k = 0; k < function->count; k++)
        if (function->variables[k].rank > 0) tb_mo_close_array(run, &array[k]);
    tb_mo_give_back(run, slot);
}

static void call(mo_run *run, mo_frame *f, const mo_s *s)
{
    const mo_function *callee = s->callee;
    if (++run->depth > MO_DEEPEST_CALL) run->fail(run, MO_FAIL_DEPTH, at(s->place), 0, 0, 0);
    mo_frame inner = {callee, tb_mo_open_frame(run, callee)};
    for (int32_t k = 0; k < callee->inputs + callee->flags; k++) {
        const mo_argument *argument = &s->arguments[k];
        if (argument->value == NULL)
            inner.slot[k].array = f->slot[argument->variable].array;
        else if (callee->variables[k].base == MO_T_REAL)
            inner.slot[k].real = real(run, f, argument->value);
        else
            inner.slot[k].integer = integer(run, f, argument->value);
    }
    tb_mo_interpret(run, &inner);
    for (int32_t k = 0; k < callee->outputs; k++) {
        const int32_t output = callee->inputs + callee->flags + k;
        mo_slot *result = &f->slot[s->results[k]];
        if (callee->variables[output].rank > 0)
            run->move(run, result->array, inner.slot[output].array);
        else
            *result = inner.slot[output];
    }
    tb_mo_close_frame(run, callee, inner.slot);
    run->depth--;
}

void tb_mo_interpret(mo_run *run, mo_frame *frame)
{
    const mo_function *outer = run->function;
    run->function = frame->function;
    block(run, frame, frame->function->body);
    run->function = outer;
}
