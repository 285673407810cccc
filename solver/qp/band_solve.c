/* Block substitution.
 *
 * Y_i = D_i (B_i - sum C Y), then X_i = D_i' (Y_i - sum C' X): algorithm 5.3 with its transposes.
 * Right-hand sides lie in panels; BAND_PANELS panels share a walk through the factor; a single one
 * has its own walk, with the same sums. */
#include "qp/band_kernel.h"

#include <string.h>

typedef struct band_walk {
    const tb_band *band;
    int32_t panels, width;      /* width: BAND_WIDTH, or 1 */
    int64_t panel_size;         /* numbers of a panel */
    int32_t first[BAND_PANELS]; /* the first block of a panel that is not zero */
} band_walk;

/* a part of panel p += sign (block times another part of it); `across`: the transposed block */
static void walk_product(const band_walk *w, tb_real *to, const tb_real *block, const tb_real *from,
                         bool across, tb_real sign)
{
    const int32_t size = w->band->block;
    if (w->width > 1)
        band_product(to, BAND_WIDTH, block, across ? 1 : size, across ? size : 1, from, size, size,
                     sign, (int64_t)size * size);
    else if (across)
        band_product_across(to, block, size, from, sign);
    else
        band_product_along(to, block, size, from, sign);
}

/* a part of each panel <- (diagonal block) part */
static void walk_diagonal(const band_walk *w, tb_real *rows, int32_t k, bool across)
{
    const int32_t size = w->band->block;
    const int64_t part = (int64_t)size * w->width;
    const int64_t column = (w->band->below + 1) * (int64_t)size * size;
    tb_real *spare = w->band->work;
    for (int32_t p = 0; p < w->panels; p++) {
        tb_real *own = rows + p * w->panel_size + k * part;
        if (k < w->first[p]) continue;
        memcpy(spare, own, (size_t)part * sizeof *own);
        memset(own, 0, (size_t)part * sizeof *own);
        walk_product(w, own, w->band->factor + k * column, spare, across, 1);
    }
}

static void walk_down(const band_walk *w, tb_real *rows)
{
    const tb_band *band = w->band;
    const int64_t square = (int64_t)band->block * band->block, column = (band->below + 1) * square;
    const int64_t part = (int64_t)band->block * w->width;
    for (int32_t k = 0; k < band->blocks; k++) {
        walk_diagonal(w, rows, k, false);
        for (int32_t i = 1; i <= band->below && k + i < band->blocks; i++)
            for (int32_t p = 0; p < w->panels; p++) {
                tb_real *own = rows + p * w->panel_size + k * part;
                if (k >= w->first[p])
                    walk_product(w, own + i * part, band->factor + k * column + i * square, own,
                                 false, -1);
            }
    }
}

static void walk_up(const band_walk *w, tb_real *rows)
{
    const tb_band *band = w->band;
    const int64_t square = (int64_t)band->block * band->block, column = (band->below + 1) * square;
    const int64_t part = (int64_t)band->block * w->width;
    for (int32_t k = band->blocks - 1; k >= 0; k--) {
        for (int32_t i = 1; i <= band->below && k + i < band->blocks; i++)
            for (int32_t p = 0; p < w->panels; p++) {
                tb_real *own = rows + p * w->panel_size + k * part;
                walk_product(w, own, band->factor + k * column + i * square, own + i * part, true,
                             -1);
            }
        walk_diagonal(w, rows, k, true);
    }
}

/* to the panels, or back; finds where each begins */
static void fill_panels(band_walk *w, int32_t count, const tb_real *x, int64_t stride)
{
    const int32_t n = w->band->n, width = w->width;
    tb_real *rows = w->band->rows;
    memset(rows, 0, (size_t)(w->panels * w->panel_size) * sizeof *rows);
    for (int32_t p = 0; p < w->panels; p++) w->first[p] = w->band->blocks;
    for (int32_t c = 0; c < count; c++) {
        const tb_real *from = x + c * stride;
        tb_real *to = rows + c / width * w->panel_size + c % width;
        int32_t first = 0;
        while (first < n && from[first] == 0) first++;
        for (int32_t i = first; i < n; i++) to[(int64_t)i * width] = from[i];
        first /= w->band->block;
        if (first < w->first[c / width]) w->first[c / width] = first;
    }
}

static void empty_panels(const band_walk *w, int32_t count, tb_real *x, int64_t stride)
{
    const int32_t n = w->band->n, width = w->width;
    for (int32_t c = 0; c < count; c++) {
        const tb_real *from = w->band->rows + c / width * w->panel_size + c % width;
        for (int32_t i = 0; i < n; i++) x[c * stride + i] = from[(int64_t)i * width];
    }
}

static void walk(tb_band *band, int32_t columns, tb_real *x, int64_t stride, bool down, bool up)
{
    enum { TOGETHER = BAND_WIDTH * BAND_PANELS };
    for (int32_t first = 0; first < columns; first += TOGETHER) {
        const int32_t count = columns - first < TOGETHER ? columns - first : TOGETHER;
        band_walk w = {.band = band, .width = count > 1 ? BAND_WIDTH : 1};
        w.panels = (count + w.width - 1) / w.width;
        w.panel_size = (int64_t)band->blocks * band->block * w.width;
        fill_panels(&w, count, x + first * stride, stride);
        if (down) walk_down(&w, band->rows);
        memset(w.first, 0, sizeof w.first);
        if (up) walk_up(&w, band->rows);
        empty_panels(&w, count, x + first * stride, stride);
    }
}

TB_EXTERN void tb_band_solve(tb_band *band, int32_t columns, tb_real *x, int64_t stride)
{
    walk(band, columns, x, stride, true, true);
}

TB_EXTERN void tb_band_forward(tb_band *band, int32_t columns, tb_real *x, int64_t stride)
{
    walk(band, columns, x, stride, true, false);
}

TB_EXTERN void tb_band_backward(tb_band *band, int32_t columns, tb_real *x, int64_t stride)
{
    walk(band, columns, x, stride, false, true);
}
