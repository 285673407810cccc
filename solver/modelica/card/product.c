/* Products of matrices by tiles: a block computes a tile of elements from strips of both factors in shared
 * memory. Each element is summed in the order of the source, a product and a sum at a time, some elements a
 * thread, so that the bytes are those of the plain loop. In a function with the annotation
 * __Tribod_reorder = true the tensor cores do it, which fuse a product with its sum and choose the order. */
#include <math.h>

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
    /* a sum that begins at -0 could stay there, which the zeros beyond a matrix would change */
    if (start->value->op != MO_X_CONSTANT || signbit(start->value->real) ||
        f->variables[total].base != MO_T_REAL || f->variables[store->variable].base != MO_T_REAL ||
        !is_variable(store->value, total) || !is_variable(store->subscript[0], i) ||
        !is_variable(store->subscript[1], j))
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
/* Strips of both factors, 16 products deep, on their way into shared memory while earlier ones are used. X, Y
 * and Z are left, right and result, m x n elements of depth products; MO_ROWS x MO_COLUMNS of them are the
 * block's, which has MO_COUNT threads and MO_STAGES strips. Elements outside of a matrix are 0: a sum that
 * began at 0 does not change by them. Where the low bits of a row turn the columns, the lanes of a warp read
 * from different banks. Pairs of elements are fetched at once where rows begin at even elements. */
static const char FETCH[] =
    "#ifndef MO_FETCH\n#define MO_FETCH\n"
    "#if MO_ARCHITECTURE >= 80\n"
    "MO_FN void mo_fetch(double *to, const double *from, int bytes)\n"
    "{ asm volatile(\"cp.async.ca.shared.global [%0], [%1], 8, %2;\" ::\n"
    "    \"r\"((unsigned)__cvta_generic_to_shared(to)), \"l\"(from), \"r\"(bytes) : \"memory\"); }\n"
    "MO_FN void mo_fetch_pair(double *to, const double *from, int bytes)\n"
    "{ asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16, %2;\" ::\n"
    "    \"r\"((unsigned)__cvta_generic_to_shared(to)), \"l\"(from), \"r\"(bytes) : \"memory\"); }\n"
    "#define MO_SENT asm volatile(\"cp.async.commit_group;\" ::: \"memory\")\n"
    "#define MO_ARRIVED(left) asm volatile(\"cp.async.wait_group %0;\" :: \"n\"(left) : \"memory\")\n"
    "#else\n"
    "MO_FN void mo_fetch(double *to, const double *from, int bytes) { *to = bytes > 0 ? *from : 0; }\n"
    "MO_FN void mo_fetch_pair(double *to, const double *from, int bytes)\n"
    "{ mo_fetch(to, from, bytes); mo_fetch(to + 1, from + 1, bytes - 8); }\n"
    "#define MO_SENT\n#define MO_ARRIVED(left)\n"
    "#endif\n"
    "MO_FN void mo_fetch_two(double *to, const double *from, int count, bool pairs)\n"
    "{\n"
    "    const int bytes = count >= 2 ? 16 : count == 1 ? 8 : 0;\n"
    "    if (pairs) { mo_fetch_pair(to, from, bytes); return; }\n"
    "    mo_fetch(to, from, bytes < 8 ? bytes : 8);\n"
    "    mo_fetch(to + 1, bytes > 8 ? from + 1 : from, bytes - 8 > 0 ? 8 : 0);\n"
    "}\n"
    "#endif\n";
static const char STRIPS[] =
    "    __shared__ __align__(16) double strip[MO_STAGES * 16 * (MO_ROWS + MO_COLUMNS)];\n"
    "    double (*const a)[MO_ROWS][16] = (double (*)[MO_ROWS][16])strip;\n"
    "    double (*const b)[16][MO_COLUMNS] =\n"
    "        (double (*)[16][MO_COLUMNS])(strip + MO_STAGES * 16 * MO_ROWS);\n"
    "    const mo_int m = p.to[0], n = p.to[1], lx = X->size[1], ly = Y->size[1], lz = Z->size[1];\n"
    "    const double *const x = (const double *)X->data, *const y = (const double *)Y->data;\n"
    "    double *const z = (double *)Z->data;\n"
    "    const int columns = (int)((n + MO_COLUMNS - 1) / MO_COLUMNS), t = threadIdx.x;\n"
    "    const mo_int i0 = (mo_int)(blockIdx.x / columns) * MO_ROWS;\n"
    "    const mo_int j0 = (mo_int)(blockIdx.x % columns) * MO_COLUMNS;\n"
    "    const int strips = (int)((depth + 15) / 16);\n"
    "    const bool pairs = ((lx | ly) & 1) == 0;\n"
    "    enum { MO_HIGH = MO_ROWS * 8 / MO_COUNT, MO_ACROSS = MO_COLUMNS * 8 / MO_COUNT };\n"
    "    enum { MO_LOWER = MO_COUNT / 8, MO_DEEPER = MO_COUNT / (MO_COLUMNS / 2) };\n"
    "    const int r0 = t / 8, k0 = t % 8 * 2, l0 = t / (MO_COLUMNS / 2), s0 = t % (MO_COLUMNS / 2) * 2;\n"
    "    const double *px[MO_HIGH], *py[MO_ACROSS];\n"
    "    int nx[MO_HIGH];\n"
    "    _Pragma(\"unroll\") for (int q = 0; q < MO_HIGH; q++) {\n"
    "        const mo_int r = i0 + r0 + q * MO_LOWER;\n"
    "        nx[q] = r < m ? 2 : 0;\n"
    "        px[q] = x + (r < m ? r * lx + k0 : 0);\n"
    "    }\n"
    "    const int ny = n - j0 - s0 >= 2 ? 2 : n - j0 - s0 == 1 ? 1 : 0;\n"
    "    _Pragma(\"unroll\") for (int q = 0; q < MO_ACROSS; q++)\n"
    "        py[q] = y + (ny > 0 ? (l0 + q * MO_DEEPER) * ly + j0 + s0 : 0);\n"
    "    const auto fetch = [&](int strip, int stage) {\n"
    "        const int left = (int)(depth - (mo_int)strip * 16);\n"
    "        _Pragma(\"unroll\") for (int q = 0; q < MO_HIGH; q++) {\n"
    "            const int r = r0 + q * MO_LOWER, count = left - k0 < nx[q] ? left - k0 : nx[q];\n"
    "            mo_fetch_two(&a[stage][r][k0 ^ (r & 3) << 2], count > 0 ? px[q] : x, count, pairs);\n"
    "            px[q] += nx[q] > 0 ? 16 : 0;\n"
    "        }\n"
    "        _Pragma(\"unroll\") for (int q = 0; q < MO_ACROSS; q++) {\n"
    "            const int k = l0 + q * MO_DEEPER, count = k < left ? ny : 0;\n"
    "            mo_fetch_two(&b[stage][k][s0 ^ (k & 3) << 2], count > 0 ? py[q] : y, count, pairs);\n"
    "            py[q] += ny > 0 ? 16 * ly : 0;\n"
    "        }\n"
    "    };\n"
    "    for (int s = 0; s < MO_STAGES - 1; s++) { if (s < strips) fetch(s, s); MO_SENT; }\n";
/* The begin of a round over strip s in stage w, which has arrived, and its end: the stage of the strip before,
 * which all threads have left, takes another. */
static const char ROUND[] =
    "    for (int s = 0, w = 0; s < strips; s++, w = w + 1 == MO_STAGES ? 0 : w + 1) {\n"
    "        MO_ARRIVED(MO_STAGES - 2);\n"
    "        __syncthreads();\n";
static const char ROUND_END[] =
    "        if (s + MO_STAGES - 1 < strips) fetch(s + MO_STAGES - 1, w == 0 ? MO_STAGES - 1 : w - 1);\n"
    "        MO_SENT;\n"
    "    }\n";
/* 4 x MO_COLUMNS / 16 elements a thread, each summed in the order of the source. */
static const char IN_ORDER[] =
    "        _Pragma(\"unroll\") for (int k = 0; k < 16; k++)\n"
    "            _Pragma(\"unroll\") for (int i = 0; i < 4; i++)\n"
    "                _Pragma(\"unroll\") for (int j = 0; j < MO_COLUMNS / 16; j++)\n"
    "                    c[i][j] = c[i][j] + a[w][ty * 4 + i][k ^ i << 2] *\n"
    "                                            b[w][k][(tx + 16 * j) ^ (k & 3) << 2];\n";
static const char IN_ORDER_STORE[] =
    "    _Pragma(\"unroll\") for (int i = 0; i < 4; i++)\n"
    "        _Pragma(\"unroll\") for (int j = 0; j < MO_COLUMNS / 16; j++)\n"
    "            if (i0 + ty * 4 + i < m && j0 + tx + 16 * j < n)\n"
    "                z[(i0 + ty * 4 + i) * lz + j0 + tx + 16 * j] = c[i][j];\n"
    "}\n\n";
static const char IN_ORDER_BEGIN[] =
    "    const int tx = t % 16, ty = t / 16;\n"
    "    double c[4][MO_COLUMNS / 16];\n"
    "    _Pragma(\"unroll\") for (int i = 0; i < 4; i++)\n"
    "        _Pragma(\"unroll\") for (int j = 0; j < MO_COLUMNS / 16; j++) c[i][j] = c0;\n";
/* Four warps, side by side in pairs, of MO_TALL x 16 by MO_WIDE x 8 elements. Products of 16 x 8 elements, 8 deep,
 * are the tensor cores' (PTX ISA, mma.m16n8k8 of .f64): lane 4 g + h holds rows g and g + 8, columns 2 h and
 * 2 h + 1 of the sums. */
static const char BY_TENSOR_CORES_BEGIN[] =
    "    enum { MO_TALL = MO_ROWS / 32, MO_WIDE = MO_COLUMNS / 16 };\n"
    "    const int g = t % 32 / 4, h = t % 4, wi = t / 64 * 16 * MO_TALL, wj = t / 32 % 2 * 8 * MO_WIDE;\n"
    "    double c[MO_TALL][MO_WIDE][4];\n"
    "    _Pragma(\"unroll\") for (int i = 0; i < MO_TALL; i++)\n"
    "        _Pragma(\"unroll\") for (int j = 0; j < MO_WIDE; j++)\n"
    "            _Pragma(\"unroll\") for (int q = 0; q < 4; q++) c[i][j][q] = c0;\n";
static const char BY_TENSOR_CORES[] =
    "        _Pragma(\"unroll\") for (int k = 0; k < 16; k += 8) {\n"
    "            double u[MO_TALL][4], v[MO_WIDE][2];\n"
    "            _Pragma(\"unroll\") for (int i = 0; i < MO_TALL; i++)\n"
    "                _Pragma(\"unroll\") for (int q = 0; q < 4; q++)\n"
    "                    u[i][q] = a[w][wi + 16 * i + g + 8 * (q % 2)][(k + h + 4 * (q / 2)) ^ (g & 3) << 2];\n"
    "            _Pragma(\"unroll\") for (int j = 0; j < MO_WIDE; j++)\n"
    "                _Pragma(\"unroll\") for (int q = 0; q < 2; q++)\n"
    "                    v[j][q] = b[w][k + h + 4 * q][(wj + 8 * j + g) ^ h << 2];\n"
    "            _Pragma(\"unroll\") for (int i = 0; i < MO_TALL; i++)\n"
    "                _Pragma(\"unroll\") for (int j = 0; j < MO_WIDE; j++)\n"
    "                    asm volatile(\"mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 \"\n"
    "                        \"{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\"\n"
    "                        : \"+d\"(c[i][j][0]), \"+d\"(c[i][j][1]), \"+d\"(c[i][j][2]), \"+d\"(c[i][j][3])\n"
    "                        : \"d\"(u[i][0]), \"d\"(u[i][1]), \"d\"(u[i][2]), \"d\"(u[i][3]),\n"
    "                          \"d\"(v[j][0]), \"d\"(v[j][1]));\n"
    "        }\n";
static const char BY_TENSOR_CORES_STORE[] =
    "    _Pragma(\"unroll\") for (int i = 0; i < MO_TALL; i++)\n"
    "        _Pragma(\"unroll\") for (int j = 0; j < MO_WIDE; j++)\n"
    "            _Pragma(\"unroll\") for (int q = 0; q < 4; q++) {\n"
    "                const mo_int r = i0 + wi + 16 * i + g + 8 * (q / 2);\n"
    "                const mo_int s = j0 + wj + 8 * j + 2 * h + q % 2;\n"
    "                if (r < m && s < n) z[r * lz + s] = c[i][j][q];\n"
    "            }\n"
    "}\n";
static const char END[] =
    "#undef MO_ROWS\n#undef MO_COLUMNS\n#undef MO_COUNT\n#undef MO_STAGES\n";
/* clang-format on */

/* Of each kind, from the largest to the smallest. Tensor cores hide their latency by two blocks a processor. */
const mo_tile tb_mo_tiles[MO_TILES] = {
    {"t", false, 64, 64, 256, 3, 0.9}, {"u", false, 64, 32, 256, 4, 0.9},
    {"v", false, 32, 32, 128, 4, 0},   {"m", true, 64, 64, 128, 3, 1.5},
    {"n", true, 64, 32, 128, 4, 1.5},  {"o", true, 32, 32, 128, 6, 0},
};

static void append(mo_text *text, const char *piece, size_t size)
{
    if (tb_bytes_append(&text->bytes, piece, size) != TB_OK) text->failed = true;
}

static void emit_tile(mo_emit *e, const mo_function *f, const mo_kernel *k, const mo_tile *tile)
{
    const mo_loop *nest = k->loop->loop;
    mo_text *text = e->text;
    e->function = f;
    e->loops = 0;
    tb_mo_print(text,
                "#define MO_ROWS %d\n#define MO_COLUMNS %d\n#define MO_COUNT %d\n"
                "#define MO_STAGES %d\n",
                tile->rows, tile->columns, tile->threads, tile->stages);
    tb_mo_emit_head(e, f, k, tile->prefix);
    tb_mo_print(text, "    struct mo_run own = {p.fault, p.launch, 0, p.rounds}, *const run = "
                      "&own;\n    const mo_int depth = ");
    tb_mo_emit_expression(e, k->product->limit);
    tb_mo_print(text, ";\n    const double c0 = ");
    tb_mo_emit_expression(e, nest->nest[1]->body->value);
    tb_mo_print(text, ";\n    struct mo_array *const X = A%d, *const Y = A%d, *const Z = A%d;\n",
                k->left, k->right, k->result);
    append(text, STRIPS, sizeof STRIPS - 1);
    if (tile->tensor) {
        append(text, BY_TENSOR_CORES_BEGIN, sizeof BY_TENSOR_CORES_BEGIN - 1);
        append(text, ROUND, sizeof ROUND - 1);
        append(text, BY_TENSOR_CORES, sizeof BY_TENSOR_CORES - 1);
        append(text, ROUND_END, sizeof ROUND_END - 1);
        append(text, BY_TENSOR_CORES_STORE, sizeof BY_TENSOR_CORES_STORE - 1);
    } else {
        append(text, IN_ORDER_BEGIN, sizeof IN_ORDER_BEGIN - 1);
        append(text, ROUND, sizeof ROUND - 1);
        append(text, IN_ORDER, sizeof IN_ORDER - 1);
        append(text, ROUND_END, sizeof ROUND_END - 1);
        append(text, IN_ORDER_STORE, sizeof IN_ORDER_STORE - 1);
    }
    append(text, END, sizeof END - 1);
}

void tb_mo_emit_product(mo_emit *e, const mo_function *f, const mo_kernel *k)
{
    append(e->text, FETCH, sizeof FETCH - 1);
    if (f->reorder) tb_mo_print(e->text, "#if MO_ARCHITECTURE >= 90\n");
    for (int q = 0; f->reorder && q < MO_TILES; q++)
        if (tb_mo_tiles[q].tensor) emit_tile(e, f, k, &tb_mo_tiles[q]);
    if (f->reorder) tb_mo_print(e->text, "#else\n");
    for (int q = 0; q < MO_TILES; q++)
        if (!tb_mo_tiles[q].tensor) emit_tile(e, f, k, &tb_mo_tiles[q]);
    if (f->reorder) tb_mo_print(e->text, "#endif\n\n");
}
