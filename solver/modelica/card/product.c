/* Products of matrices by tiles: a block computes MO_TILE x MO_TILE elements from strips of both factors in
 * shared memory. Each element is summed in the order of the source, a product and a sum at a time, 4 x 4
 * elements a thread, so that the bytes are those of the plain loop. In a function with the annotation
 * __Tribod_reorder = true the tensor cores do it, which fuse a product with its sum and choose the order. */
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
/* The tiles of both kinds: the strips that follow are read while those in shared memory are used. X, Y and
 * Z are left, right and result, m x n elements of depth products; T threads, K products a strip. */
static const char TILES[] =
    "#define MO_STRIP 16\n"
    "#define MO_TILES(T) \\\n"
    "    const mo_int m = p.to[0], n = p.to[1], lx = X->size[1], ly = Y->size[1], lz = Z->size[1]; \\\n"
    "    const double *const x = (const double *)X->data, *const y = (const double *)Y->data; \\\n"
    "    double *const z = (double *)Z->data; \\\n"
    "    const int columns = (int)((n + 63) / 64), t = threadIdx.x; \\\n"
    "    const mo_int i0 = (mo_int)(blockIdx.x / columns) * 64; \\\n"
    "    const mo_int j0 = (mo_int)(blockIdx.x % columns) * 64; \\\n"
    "    double na[1024 / T], nb[1024 / T];\n"
    "#define MO_READ(T, k0) \\\n"
    "    _Pragma(\"unroll\") for (int q = 0; q < 1024 / T; q++) { \\\n"
    "        const int e = t + T * q, r = e / 16, k = e % 16, l = e / 64, s = e % 64; \\\n"
    "        na[q] = i0 + r < m && k0 + k < depth ? x[(i0 + r) * lx + k0 + k] : 0; \\\n"
    "        nb[q] = j0 + s < n && k0 + l < depth ? y[(k0 + l) * ly + j0 + s] : 0; }\n";
static const char IN_ORDER[] =
    "    __shared__ double a[2][16][66], b[2][16][64];\n"
    "    MO_TILES(256)\n"
    "    const int tx = t % 16, ty = t / 16;\n"
    "    double c[4][4];\n"
    "    _Pragma(\"unroll\") for (int i = 0; i < 4; i++)\n"
    "        _Pragma(\"unroll\") for (int j = 0; j < 4; j++) c[i][j] = c0;\n"
    "    MO_READ(256, 0)\n"
    "    int w = 0;\n"
    "    for (mo_int k0 = 0; k0 < depth; k0 += 16, w ^= 1) {\n"
    "        _Pragma(\"unroll\") for (int q = 0; q < 4; q++) {\n"
    "            const int e = t + 256 * q;\n"
    "            a[w][e % 16][e / 16] = na[q], b[w][e / 64][e % 64] = nb[q];\n"
    "        }\n"
    "        __syncthreads();\n"
    "        if (k0 + 16 < depth) MO_READ(256, k0 + 16)\n"
    "        const int top = depth - k0 < 16 ? (int)(depth - k0) : 16;\n"
    "        if (top == 16) {\n"
    "            _Pragma(\"unroll\") for (int k = 0; k < 16; k++)\n"
    "                _Pragma(\"unroll\") for (int i = 0; i < 4; i++)\n"
    "                    _Pragma(\"unroll\") for (int j = 0; j < 4; j++)\n"
    "                        c[i][j] = c[i][j] + a[w][k][ty * 4 + i] * b[w][k][tx + 16 * j];\n"
    "        } else {\n"
    "            for (int k = 0; k < top; k++)\n"
    "                _Pragma(\"unroll\") for (int i = 0; i < 4; i++)\n"
    "                    _Pragma(\"unroll\") for (int j = 0; j < 4; j++)\n"
    "                        c[i][j] = c[i][j] + a[w][k][ty * 4 + i] * b[w][k][tx + 16 * j];\n"
    "        }\n"
    "    }\n"
    "    _Pragma(\"unroll\") for (int i = 0; i < 4; i++)\n"
    "        _Pragma(\"unroll\") for (int j = 0; j < 4; j++)\n"
    "            if (i0 + ty * 4 + i < m && j0 + tx + 16 * j < n)\n"
    "                z[(i0 + ty * 4 + i) * lz + j0 + tx + 16 * j] = c[i][j];\n"
    "}\n\n";
/* Four warps, 32 x 32 elements each, by 16 x 8 x 8 products of the tensor cores (PTX ISA, mma.m16n8k8
 * of .f64): lane 4 g + h holds rows g and g + 8, columns 2 h and 2 h + 1 of the sums. */
static const char BY_TENSOR_CORES[] =
    "    __shared__ double a[2][64][20], b[2][16][68];\n"
    "    MO_TILES(128)\n"
    "    const int g = t % 32 / 4, h = t % 4, wi = t / 64 * 32, wj = t / 32 % 2 * 32;\n"
    "    double c[2][4][4];\n"
    "    _Pragma(\"unroll\") for (int i = 0; i < 2; i++)\n"
    "        _Pragma(\"unroll\") for (int j = 0; j < 4; j++)\n"
    "            _Pragma(\"unroll\") for (int q = 0; q < 4; q++) c[i][j][q] = c0;\n"
    "    MO_READ(128, 0)\n"
    "    int w = 0;\n"
    "    for (mo_int k0 = 0; k0 < depth; k0 += 16, w ^= 1) {\n"
    "        _Pragma(\"unroll\") for (int q = 0; q < 8; q++) {\n"
    "            const int e = t + 128 * q;\n"
    "            a[w][e / 16][e % 16] = na[q], b[w][e / 64][e % 64] = nb[q];\n"
    "        }\n"
    "        __syncthreads();\n"
    "        if (k0 + 16 < depth) MO_READ(128, k0 + 16)\n"
    "        _Pragma(\"unroll\") for (int k = 0; k < 16; k += 8) {\n"
    "            double u[2][4], v[4][2];\n"
    "            _Pragma(\"unroll\") for (int i = 0; i < 2; i++)\n"
    "                _Pragma(\"unroll\") for (int q = 0; q < 4; q++)\n"
    "                    u[i][q] = a[w][wi + 16 * i + g + 8 * (q % 2)][k + h + 4 * (q / 2)];\n"
    "            _Pragma(\"unroll\") for (int j = 0; j < 4; j++)\n"
    "                _Pragma(\"unroll\") for (int q = 0; q < 2; q++)\n"
    "                    v[j][q] = b[w][k + h + 4 * q][wj + 8 * j + g];\n"
    "            _Pragma(\"unroll\") for (int i = 0; i < 2; i++)\n"
    "                _Pragma(\"unroll\") for (int j = 0; j < 4; j++)\n"
    "                    asm volatile(\"mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 \"\n"
    "                        \"{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\"\n"
    "                        : \"+d\"(c[i][j][0]), \"+d\"(c[i][j][1]), \"+d\"(c[i][j][2]), \"+d\"(c[i][j][3])\n"
    "                        : \"d\"(u[i][0]), \"d\"(u[i][1]), \"d\"(u[i][2]), \"d\"(u[i][3]),\n"
    "                          \"d\"(v[j][0]), \"d\"(v[j][1]));\n"
    "        }\n"
    "    }\n"
    "    _Pragma(\"unroll\") for (int i = 0; i < 2; i++)\n"
    "        _Pragma(\"unroll\") for (int j = 0; j < 4; j++)\n"
    "            _Pragma(\"unroll\") for (int q = 0; q < 4; q++) {\n"
    "                const mo_int r = i0 + wi + 16 * i + g + 8 * (q / 2);\n"
    "                const mo_int s = j0 + wj + 8 * j + 2 * h + q % 2;\n"
    "                if (r < m && s < n) z[r * lz + s] = c[i][j][q];\n"
    "            }\n"
    "}\n";
/* clang-format on */

static void append(mo_text *text, const char *piece, size_t size)
{
    if (tb_bytes_append(&text->bytes, piece, size) != TB_OK) text->failed = true;
}

static void emit_tiles(mo_emit *e, const mo_function *f, const mo_kernel *k, const char *prefix)
{
    const mo_loop *nest = k->loop->loop;
    e->function = f;
    e->loops = 0;
    tb_mo_emit_head(e, f, k, prefix);
    tb_mo_print(e->text, "    struct mo_run own = {p.fault, p.launch, 0, p.rounds}, *const run = "
                         "&own;\n    const mo_int depth = ");
    tb_mo_emit_expression(e, k->product->limit);
    tb_mo_print(e->text, ";\n    const double c0 = ");
    tb_mo_emit_expression(e, nest->nest[1]->body->value);
    tb_mo_print(e->text, ";\n    struct mo_array *const X = A%d, *const Y = A%d, *const Z = A%d;\n",
                k->left, k->right, k->result);
}

void tb_mo_emit_product(mo_emit *e, const mo_function *f, const mo_kernel *k)
{
    append(e->text, TILES, sizeof TILES - 1);
    emit_tiles(e, f, k, "t");
    append(e->text, IN_ORDER, sizeof IN_ORDER - 1);
    if (!f->reorder) return;
    tb_mo_print(e->text, "#if __CUDA_ARCH__ >= 900\n");
    emit_tiles(e, f, k, "m");
    append(e->text, BY_TENSOR_CORES, sizeof BY_TENSOR_CORES - 1);
    tb_mo_print(e->text, "#endif\n\n");
}
