/* A program with the code that its back ends made of it. */
#ifndef TB_MODELICA_FUNCTION_H
#define TB_MODELICA_FUNCTION_H

#include <pthread.h>

#include "modelica/native.h"
#include "modelica/run.h"

struct tb_function_program {
    mo_program program;
    pthread_mutex_t lock; /* of the fields below, which calls make when they first need them */
    struct mo_native *native;
    struct mo_card_program *card;
};

/* ---- the card's side, in modelica/card ---- */

/* Loads the card and the kernels of a function. UNAVAILABLE without a card or without NVRTC. */
tb_status tb_mo_card_load(const mo_program *program, const mo_function *function,
                          const tb_function_options *options, struct mo_card_program **loaded,
                          struct mo_card **card, double *compile_seconds, tb_error *error);
void tb_mo_card_unload(struct mo_card_program *loaded);
/* Around a call: begin waits until the card is free. */
void tb_mo_card_begin(mo_run *run);
void tb_mo_card_end(mo_run *run);

#endif
