/* Red and black: a nest whose body stands in one `if mod(i + j + s, 2) == c` stores elements of one
 * colour. An access to a neighbour of the other colour can never meet them, whatever the rounds. */
#include "modelica/loops.h"

#include "modelica/emit.h"

enum { MOST_TERMS = 8 };

typedef struct mo_colour {
    int32_t count;
    /* subscripts whose sum, but for a constant, has the same parity in all rounds */
    int32_t variable[MOST_TERMS];
} mo_colour;

static bool add_terms(mo_colour *colour, const mo_x *x)
{
    if (x->op == MO_X_CONSTANT) return true;
    if (x->op == MO_X_ADD || x->op == MO_X_SUBTRACT)
        return add_terms(colour, x->operand[0]) && add_terms(colour, x->operand[1]);
    if (x->op != MO_X_VARIABLE || colour->count == MOST_TERMS) return false;
    colour->variable[colour->count++] = x->variable;
    return true;
}

/* the condition around the whole body of a nest, or NULL */
static const mo_x *guard_of(const mo_s *loop)
{
    const mo_s *s = loop->body;
    while (s != NULL && s->next == NULL && s->op == MO_S_FOR) s = s->body;
    return s != NULL && s->next == NULL && s->op == MO_S_IF && s->orelse == NULL ? s->value : NULL;
}

static bool find_colour(const mo_s *loop, mo_colour *colour)
{
    const mo_x *guard = guard_of(loop);
    if (guard == NULL || (guard->op != MO_X_EQUAL && guard->op != MO_X_NOT_EQUAL)) return false;
    const mo_x *mod = guard->operand[0], *value = guard->operand[1];
    return mod->op == MO_X_MOD && mod->base == MO_T_INTEGER &&
           mod->operand[1]->op == MO_X_CONSTANT && mod->operand[1]->integer == 2 &&
           value->op == MO_X_CONSTANT && (value->integer == 0 || value->integer == 1) &&
           add_terms(colour, mod->operand[0]);
}

bool tb_mo_has_other_colour(const mo_s *loop, int32_t count, const mo_x *const *p,
                            const mo_x *const *q)
{
    mo_colour colour = {.count = 0};
    int64_t difference = 0;
    if (!find_colour(loop, &colour)) return false;
    for (int32_t k = 0; k < colour.count; k++) {
        const int32_t variable = colour.variable[k];
        int32_t dimensions = 0;
        for (int32_t j = 0; j < k; j++)
            if (colour.variable[j] == variable) return false;
        for (int32_t d = 0; d < count; d++) {
            const mo_x *a, *b;
            const int64_t offset = tb_mo_linear(p[d], &a) - tb_mo_linear(q[d], &b);
            if (a == NULL || a->op != MO_X_VARIABLE || a->variable != variable) continue;
            if (b == NULL || b->op != MO_X_VARIABLE || b->variable != variable) return false;
            dimensions++;
            difference += offset;
        }
        /* a term of the colour that is no subscript must be the same in all rounds */
        if (dimensions > 1 || (dimensions == 0 &&
                               (variable == loop->variable || tb_mo_assigns(loop->body, variable))))
            return false;
    }
    return difference % 2 != 0;
}
