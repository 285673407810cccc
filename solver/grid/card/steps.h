/* The substeps of a world whose fields lie on a card. */
#ifndef TB_SOFT_CARD_STEPS_H
#define TB_SOFT_CARD_STEPS_H

#include "backend/backend.h"
#include "grid/card/fields.h"
#include "grid/grid.h"

/* A world's place on a card. The host's copy is fetched when it is wanted. */
typedef struct tb_soft_card {
    const tb_backend *backend;
    void *context;
    tb_soft_card_outcome outcomes[TB_SOFT_MOST_BODIES];
    bool brought;  /* the card has the present fields */
    bool stale;    /* the host has not */
    bool measured; /* the outcomes are those of the present fields */
} tb_soft_card;

/* Opens the world's card, if its options ask for one. UNSUPPORTED: the scene has rigid bodies. */
tb_status tb_soft_card_open(tb_soft_world *w, tb_error *error);
void tb_soft_card_close(tb_soft_world *w);
/* Makes the card's copy, or the host's, the present one. */
tb_status tb_soft_card_bring(tb_soft_world *w, tb_error *error);
tb_status tb_soft_card_fetch(tb_soft_world *w, tb_error *error);
/* The host's fields have changed. */
void tb_soft_card_forget(tb_soft_world *w);
/* A part of a substep for all bodies. */
tb_status tb_soft_card_do(tb_soft_world *w, tb_soft_card_part part, double dt, tb_error *error);
/* Whether bodies or obstacles are so near that cells may be in contact. */
bool tb_soft_card_may_touch(const tb_soft_world *w);

#endif
