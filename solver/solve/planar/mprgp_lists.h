/* Y as the solver mprgp reads it, by rows and by dofs, so that neighbouring lanes of a card read
 * neighbouring numbers. */
#ifndef TB_MPRGP_LISTS_H
#define TB_MPRGP_LISTS_H

#include "contact/problem.h"

enum { TB_MPRGP_SLICE = 32 /* dofs whose numbers are interleaved */ };

/* Shorter rows and dofs are padded with zeros. */
#define tb_mprgp_lists TB_SYMBOL(tb_mprgp_lists)
typedef struct tb_mprgp_lists {
    int32_t width;         /* most columns of a row */
    const tb_real *of_row; /* width x rows: number j of a row at j rows + row, and ... */
    const int32_t *dof;    /* ... its dof */
    const int32_t *slice;  /* slices + 1: first entry of a slice of TB_MPRGP_SLICE dofs */
    const tb_real
        *of_dof;        /* entries: number e of a dof at slice + e TB_MPRGP_SLICE + dof, and ... */
    const int32_t *row; /* ... its row */
} tb_mprgp_lists;

TB_FN int32_t tb_mprgp_slices(int32_t dofs)
{
    return (dofs + TB_MPRGP_SLICE - 1) / TB_MPRGP_SLICE;
}

#endif
