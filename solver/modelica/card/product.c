/* Products of matrices by tiles: a block computes MO_TILE x MO_TILE elements, a thread 4 x 4 of them
 * in registers, from strips of both factors in shared memory. Each element is summed in the order of
 * the source, a product and a sum at a time, so that the bytes are those of the plain loop. */
#include "modelica/card/kernels.h"

static bool is_variable(const mo_x *x, int32_t variable)
{
    return x->op == MO_X_VARIABLE && x->variable == variable;
}

static bool is_element(const mo_x *x, int32_t row, int32_t column)
{
    return x->op == MO_X_ELEMENT && x->base == MO_T_REAL && x->count == 2 &&
           is_variable(x->operand[0], row) && is_variable(x->operand[1], column);
}

static bool is_one(const mo_x *x)
{
    return x->op == MO_X_CONSTANT && x->integer == 1;
}

/* s := c; for k in 1:n loop s := s + A[i, k] * B[k, j]; end for; C[i, j] := s; */
void tb_mo_find_product(const mo_function *f, mo_kernel *kernel)
{
    const mo_loop *nest = kernel->loop->loop;
    if (nest->depth != 2) return;
    const mo_s *start = nest->nest[1]->body;
    const mo_s *loop = start != NULL ? start->next : NULL;
    const mo_s *store = loop != NULL ? loop->next : NULL;
    if (store == NULL || store->next != NULL || start->op != MO_S_ASSIGN || loop->op != MO_S_FOR ||
        store->op != MO_S_STORE || store->count != 2)
        return;
    const int32_t i = nest->nest[0]->variable, j = nest->nest[1]->variable, k = loop->variable;
    const int32_t total = start->variable;
    const mo_s *sum = loop->body;
    if (start->value->op != MO_X_CONSTANT || f->variables[total].base != MO_T_REAL ||
        f->variables[store->variable].base != MO_T_REAL || !is_variable(store->value, total) ||
        !is_variable(store->subscript[0], i) || !is_variable(store->subscript[1], j))
        return;
    if (!is_one(loop->value) || !is_one(loop->step) || sum == NULL || sum->next != NULL ||
        sum->op != MO_S_ASSIGN || sum->variable != total || sum->value->op != MO_X_ADD ||
        !is_variable(sum->value->operand[0], total))
        return;
    const mo_x *term = sum->value->operand[1];
    if (term->op != MO_X_MULTIPLY || !is_element(term->operand[0], i, k) ||
        !is_element(term->operand[1], k, j) || tb_mo_x_mentions(loop->limit, i) ||
        tb_mo_x_mentions(loop->limit, j))
        return;
    kernel->left = term->operand[0]->variable;
    kernel->right = term->operand[1]->variable;
    kernel->result = store->variable;
    kernel->product = loop;
}

/* clang-format off */
static const char BODY[] =
    "    __shared__ double a[16][66], b[16][64];\n"
    "    const mo_int m = p.to[0], n = p.to[1], lx = X->size[1], ly = Y->size[1], lz = Z->size[1];\n"
    "    const double *const x = (const double *)X->data, *const y = (const double *)Y->data;\n"
    "    double *const z = (double *)Z->data;\n"
    "    const int columns = (int)((n + 63) / 64), t = threadIdx.x, tx = t % 16, ty = t / 16;\n"
    "    const mo_int i0 = (mo_int)(blockIdx.x / columns) * 64;\n"
    "    const mo_int j0 = (mo_int)(blockIdx.x % columns) * 64;\n"
    "    double c[4][4];\n"
    "    for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++) c[i][j] = c0;\n"
    "    for (mo_int k0 = 0; k0 < depth; k0 += 16) {\n"
    "        for (int q = 0; q < 4; q++) {\n"
    "            const int e = t + 256 * q, r = e / 16, k = e % 16, l = e / 64, s = e % 64;\n"
    "            a[k][r] = i0 + r < m && k0 + k < depth ? x[(i0 + r) * lx + k0 + k] : 0;\n"
    "            b[l][s] = j0 + s < n && k0 + l < depth ? y[(k0 + l) * ly + j0 + s] : 0;\n"
    "        }\n"
    "        __syncthreads();\n"
    "        const int top = depth - k0 < 16 ? (int)(depth - k0) : 16;\n"
    "        if (top == 16) {\n"
    "            _Pragma(\"unroll\") for (int k = 0; k < 16; k++)\n"
    "                _Pragma(\"unroll\") for (int i = 0; i < 4; i++)\n"
    "                    _Pragma(\"unroll\") for (int j = 0; j < 4; j++)\n"
    "                        c[i][j] = c[i][j] + a[k][ty * 4 + i] * b[k][tx + 16 * j];\n"
    "        } else {\n"
    "            for (int k = 0; k < top; k++)\n"
    "                _Pragma(\"unroll\") for (int i = 0; i < 4; i++)\n"
    "                    _Pragma(\"unroll\") for (int j = 0; j < 4; j++)\n"
    "                        c[i][j] = c[i][j] + a[k][ty * 4 + i] * b[k][tx + 16 * j];\n"
    "        }\n"
    "        __syncthreads();\n"
    "    }\n"
    "    for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++)\n"
    "        if (i0 + ty * 4 + i < m && j0 + tx + 16 * j < n)\n"
    "            z[(i0 + ty * 4 + i) * lz + j0 + tx + 16 * j] = c[i][j];\n"
    "}\n\n";
/* clang-format on */

void tb_mo_emit_product(mo_emit *e, const mo_function *f, const mo_kernel *k, int32_t number)
{
    const mo_loop *nest = k->loop->loop;
    e->function = f;
    e->loops = 0;
    tb_mo_emit_head(e, f, k, "t", number);
    tb_mo_print(e->text, "    struct mo_run own = {p.fault, p.launch, 0, p.rounds}, *const run = "
                         "&own;\n    const mo_int depth = ");
    tb_mo_emit_expression(e, k->product->limit);
    tb_mo_print(e->text, ";\n    const double c0 = ");
    tb_mo_emit_expression(e, nest->nest[1]->body->value);
    tb_mo_print(e->text, ";\n    struct mo_array *const X = A%d, *const Y = A%d, *const Z = A%d;\n",
                k->left, k->right, k->result);
    if (tb_bytes_append(&e->text->bytes, BODY, sizeof BODY - 1) != TB_OK) e->text->failed = true;
}
