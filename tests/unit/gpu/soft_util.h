/* The Hessians that a card makes of the contacts of a world with its fields there, beside the processor's. */
#ifndef SOFT_UTIL_H
#define SOFT_UTIL_H

#include "grid/card/steps.h"
#include "grid/programs.h"
#include "test_util.h"

/* Searches for contacts on the card and compares H^C, and H^F without every third cell: the same bytes. */
static inline void check_hessians(tb_soft_world *w, int32_t fewest)
{
    tb_error error;
    tb_soft_contact *contacts;
    tb_soft_links links;
    int32_t count;
    tb_arena_reset(&w->step);
    tb_soft_partners_begin(w, 1e-4);
    TEST_OK(tb_soft_card_find_contacts(w, &contacts, &count, &error), &error);
    ck_assert_int_ge(count, fewest);
    TEST_OK(tb_soft_links_make(w, contacts, count, &links, &error), &error);
    int32_t *number = malloc((size_t)count * sizeof *number);
    ck_assert_ptr_nonnull(number);
    for (int32_t columns = 1; columns <= 2; columns++) {
        tb_qp_card_program card = {0};
        tb_qp_program *program = &card.program;
        double *here, sum = 0;
        int32_t n = 0;
        for (int32_t i = 0; i < count; i++) number[i] = columns == 2 && i % 3 == 0 ? -1 : n++;
        program->n = n * columns;
        program->half_bandwidth = tb_soft_links_half_bandwidth(&links, number, columns);
        const size_t numbers = (size_t)program->n * ((size_t)program->half_bandwidth + 1);
        double *there = malloc(numbers * sizeof *there);
        ck_assert_ptr_nonnull(there);
        TEST_OK(tb_soft_links_hessian(w, &links, number, columns, program->half_bandwidth, &here,
                                      &error),
                &error);
        TEST_OK(
            tb_soft_card_make_hessian(w, contacts, count, number, columns, &card, there, &error),
            &error);
        for (size_t i = 0; i < numbers; i++) sum += fabs(there[i]);
        ck_assert(sum > 0);
        ck_assert(memcmp(here, there, numbers * sizeof *here) == 0);
        free(there);
    }
    free(number);
}

#endif
