/* Subscripts that need no check: an iterator plus a constant, where the loop's ends are the array's. */
#include "modelica/emit.h"

int64_t tb_mo_linear(const mo_x *x, const mo_x **base)
{
    enum { FAR = 1 << 30 };
    int64_t offset = 0;
    for (;;) {
        const mo_x *p = x->operand[0], *q = x->operand[1];
        if (offset > FAR || offset < -FAR) break;
        if (x->op == MO_X_ADD && q->op == MO_X_CONSTANT && q->integer < FAR && q->integer > -FAR) {
            offset += q->integer;
            x = p;
        } else if (x->op == MO_X_ADD && p->op == MO_X_CONSTANT && p->integer < FAR &&
                   p->integer > -FAR) {
            offset += p->integer;
            x = q;
        } else if (x->op == MO_X_SUBTRACT && q->op == MO_X_CONSTANT && q->integer < FAR &&
                   q->integer > -FAR) {
            offset -= q->integer;
            x = p;
        } else {
            break;
        }
    }
    *base = x;
    if (x->op == MO_X_CONSTANT && x->base == MO_T_INTEGER && x->integer < FAR &&
        x->integer > -FAR) {
        *base = NULL;
        offset += x->integer;
    }
    return offset;
}

const mo_x *tb_mo_lasting_size(const mo_function *f, int32_t variable, int32_t dimension,
                               mo_x *storage)
{
    const mo_variable *v = &f->variables[variable];
    if (v->size[dimension] != NULL) return v->size[dimension];
    if (v->role != MO_IN || v->optional) return NULL;
    *storage =
        (mo_x){.op = MO_X_SIZE, .base = MO_T_INTEGER, .variable = variable, .dimension = dimension};
    return storage;
}

static bool same(const mo_x *a, const mo_x *b)
{
    if (a == NULL || b == NULL) return a == b;
    if (a->op != b->op || a->base != b->base || a->count != b->count) return false;
    if (a->op == MO_X_CONSTANT) return a->integer == b->integer && a->base == MO_T_INTEGER;
    if (a->variable != b->variable || a->dimension != b->dimension) return false;
    for (int32_t k = 0; k < a->count; k++)
        if (!same(a->operand[k], b->operand[k])) return false;
    return true;
}

static const mo_s *loop_of(const mo_emit *e, const mo_x *x)
{
    if (x == NULL || x->op != MO_X_VARIABLE) return NULL;
    for (int32_t k = e->loops; k-- > 0;)
        if (e->loop[k]->variable == x->variable) return e->loop[k];
    return NULL;
}

static bool counts_up(const mo_s *loop)
{
    return loop->step->op == MO_X_CONSTANT && loop->step->integer > 0;
}

bool tb_mo_is_inside(const mo_emit *e, const mo_x *subscript, int32_t variable, int32_t dimension)
{
    mo_x storage;
    const mo_x *base, *from, *to, *size_base, *size;
    const int64_t offset = tb_mo_linear(subscript, &base);
    size = tb_mo_lasting_size(e->function, variable, dimension, &storage);
    if (size == NULL) return false;
    const int64_t size_offset = tb_mo_linear(size, &size_base);
    if (base == NULL) return size_base == NULL && offset >= 1 && offset <= size_offset;
    const mo_s *loop = loop_of(e, base);
    if (loop == NULL || !counts_up(loop)) return false;
    const int64_t first = tb_mo_linear(loop->value, &from), last = tb_mo_linear(loop->limit, &to);
    return from == NULL && first + offset >= 1 && same(to, size_base) &&
           last + offset <= size_offset;
}

bool tb_mo_is_small(const mo_emit *e, const mo_x *x)
{
    const mo_x *from, *to, *base;
    if (x->op == MO_X_SIZE) return true;
    tb_mo_linear(x, &base);
    if (base == NULL || base->op == MO_X_SIZE) return true;
    const mo_s *loop = loop_of(e, base);
    if (loop == NULL || !counts_up(loop)) return false;
    tb_mo_linear(loop->value, &from);
    tb_mo_linear(loop->limit, &to);
    return from == NULL && (to == NULL || to->op == MO_X_SIZE);
}
