/* The substeps of a world whose fields lie on a card. */
#ifndef TB_SOFT_CARD_STEPS_H
#define TB_SOFT_CARD_STEPS_H

#include "backend/backend.h"
#include "grid/card/fields.h"
#include "grid/grid.h"
#include "qp/facet_coordinates.h"

/* Where the card has a found cell. */
typedef struct tb_soft_card_place {
    uint64_t key;
    int32_t place;
} tb_soft_card_place;

/* A world's place on a card. The host's copy is fetched when it is wanted. */
typedef struct tb_soft_card {
    const tb_backend *backend;
    void *context;
    tb_soft_card_outcome outcomes[TB_SOFT_MOST_BODIES];
    double impulses[6 * TB_SOFT_MOST_BODIES]; /* clamps x 6, of the last substep */
    /* of the last search, from the arena of the step: keys and their places, ascending */
    struct tb_soft_card_place *places;
    int32_t number_of_places;
    void *rooms[2]; /* of the two programs, from substep to substep: tb_qp_card_program */
    bool brought;   /* the card has the present fields */
    bool stale;     /* the host has not */
    bool measured;  /* the outcomes are those of the present fields */
    /* the contacts of the last substep: the card has them; the host has not */
    bool contacts_there, contacts_stale;
} tb_soft_card;

/* Opens the world's card, if its options ask for one and the backend takes soft bodies. */
tb_status tb_soft_card_open(tb_soft_world *w, tb_error *error);
void tb_soft_card_close(tb_soft_world *w);
/* Makes the card's copy, or the host's, the present one. */
tb_status tb_soft_card_bring(tb_soft_world *w, tb_error *error);
tb_status tb_soft_card_fetch(tb_soft_world *w, tb_error *error);
/* The host's fields have changed. */
void tb_soft_card_forget(tb_soft_world *w);
/* Keeps the present fields on the card, and makes the kept ones present again. */
tb_status tb_soft_card_keep(tb_soft_world *w, tb_error *error);
tb_status tb_soft_card_undo(tb_soft_world *w, tb_error *error);
/* MEASURE, FORCES or TRANSPORT for all bodies. */
tb_status tb_soft_card_do(tb_soft_world *w, tb_soft_card_part part, double dt, tb_error *error);
/* After FORCES: the rigid bodies of a body's clamps get the impulses of the held nodes. */
void tb_soft_card_receive(tb_soft_world *w, int32_t body);
/* The contacts of a substep from their search to the new velocities, all on the card; *solved is false where the
 * processor has to solve the programs: the exact cone is asked for, programs are the processor's, or the card
 * does not take or solve one. Nothing has changed then. */
tb_status tb_soft_card_solve_contacts(tb_soft_world *w, double dt, tb_soft_certificate *c,
                                      bool *solved, tb_error *error);
/* The contacts of the last substep to the host, if it has not got them. */
tb_status tb_soft_card_fetch_contacts(tb_soft_world *w, tb_error *error);
/* tb_soft_find_contacts on the card. Also sets masses, velocities and held nodes of the host's fields at
 * the corners of the cells in contact. */
tb_status tb_soft_card_find_contacts(tb_soft_world *w, tb_soft_contact **contacts, int32_t *count,
                                     tb_error *error);
/* H of the contacts with number[i] >= 0, which the last search has found: on the card for `program`, whose n and
 * half-bandwidth are set, in the coordinates of its rows; or `host` is not NULL, and H is written there. */
tb_status tb_soft_card_make_hessian(tb_soft_world *w, const tb_soft_contact *contacts,
                                    int32_t count, const int32_t *number, int32_t columns,
                                    tb_qp_card_program *program, double *host, tb_error *error);
/* All sweeps over the contacts; their shares are of nodes. */
tb_status tb_soft_card_sweep(tb_soft_world *w, tb_soft_sweeps *sweeps, tb_error *error);
/* Velocities that contact impulses have changed. */
tb_status tb_soft_card_push_velocities(tb_soft_world *w, const tb_soft_card_push *push,
                                       int32_t count, tb_error *error);

#endif
