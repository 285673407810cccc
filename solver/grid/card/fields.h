/* Soft bodies on a card: the calls that grid/card/steps.c makes to a backend.
 *
 * A world's fields stay on the card from call to call. A call works on all bodies; their outcomes come
 * back with it, so that the processor can choose the next substep. */
#ifndef TB_SOFT_CARD_FIELDS_H
#define TB_SOFT_CARD_FIELDS_H

#include "grid/nodes/clamps.h"
#include "grid/nodes/motion.h"
#include "grid/nodes/sweeps.h"
#include "grid/nodes/touch.h"
#include "tribo_qp.h"
#include "tribo_soft.h"

typedef struct tb_soft_card_body {
    tb_soft_solid shape; /* at the start */
    tb_soft_material material;
    bool clamped; /* by at least one clamp */
} tb_soft_card_body;

typedef struct tb_soft_card_clamp {
    int32_t body;
    double lower[3], upper[3]; /* m, at the start */
} tb_soft_card_clamp;

typedef struct tb_soft_card_scene {
    tb_soft_space space;
    size_t nodes;
    int32_t bodies, clamps, obstacles;
    const tb_soft_card_body *body;
    const tb_soft_card_clamp *clamp;
    const tb_soft_solid *obstacle; /* kinds, and planes of hulls */
} tb_soft_card_scene;

typedef enum tb_soft_card_part {
    TB_SOFT_CARD_BRING,   /* fields to the card; then as MEASURE */
    TB_SOFT_CARD_MEASURE, /* stress and momentum of the present fields */
    TB_SOFT_CARD_FORCES, /* clamps take their nodes; v by stress and gravity over dt; clamps hold */
    TB_SOFT_CARD_TRANSPORT, /* transport over dt, masses, repair of momentum; momentum at the end */
    TB_SOFT_CARD_FETCH,     /* all fields to the host */
    TB_SOFT_CARD_SEARCH,    /* cells in contact */
    TB_SOFT_CARD_HESSIAN,   /* H of one of the two programs, of cells that the last search found */
    TB_SOFT_CARD_SWEEP,     /* sweeps over single contacts */
    TB_SOFT_CARD_CONTACT,   /* search, programs and velocities of a substep */
    TB_SOFT_CARD_RECALL,    /* the contacts of the last CONTACT to the host */
    TB_SOFT_CARD_PUSH,      /* velocities of nodes that contact impulses have changed */
    TB_SOFT_CARD_KEEP,      /* a copy of the fields, on the card */
    TB_SOFT_CARD_UNDO       /* the fields of the copy; then as MEASURE */
} tb_soft_card_part;

/* A body after a call. */
typedef struct tb_soft_card_outcome {
    tb_soft_sums stress;   /* of MEASURE and FORCES */
    tb_soft_sums momentum; /* of MEASURE; of FORCES, before v changes; of TRANSPORT, at its end */
    tb_soft_sums was;      /* of TRANSPORT: momentum at its begin */
    tb_soft_repair repair; /* of TRANSPORT; zero of clamped bodies */
    double mass_error;     /* of TRANSPORT: see tb_soft_certificate */
    double scale;          /* of TRANSPORT: of the octants' masses */
    int32_t lower[3], upper[3];
    int32_t outside;
} tb_soft_card_outcome;

/* ---- contacts ---- */

/* Two things and the cells, upper excluded, in which they may touch. */
typedef struct tb_soft_card_pair {
    int32_t a, b; /* bodies; b >= bodies: obstacle b - bodies */
    int32_t lower[3], upper[3];
    int64_t first; /* number of its first cell among the cells of all pairs */
} tb_soft_card_pair;

typedef struct tb_soft_card_obstacle {
    tb_soft_solid solid; /* where it is now */
    int32_t rigid;       /* number of the rigid body, from 0; -1: a wall */
    double velocity[3];  /* m/s, of a wall */
} tb_soft_card_obstacle;

/* A cell in contact, and its corners' nodes in a and in b. */
typedef struct tb_soft_card_found {
    tb_soft_contact contact;
    double mass[2][8], v[2][8][3]; /* kg, m/s; 0 of an obstacle */
    uint8_t held[2][8];            /* number of the clamp, from 1; 0: free */
} tb_soft_card_found;

typedef struct tb_soft_card_search {
    const tb_soft_card_pair *pair;
    const tb_soft_card_obstacle *obstacle; /* the scene's */
    const tb_soft_partner *rigid;          /* rigid bodies */
    const int32_t *followed;               /* clamps: their rigid bodies, or -1 */
    int32_t pairs, rigids;
    int64_t cells; /* of all pairs */
    /* out; borrowed from the card until the next search; in no order */
    const tb_soft_card_found *found;
    int32_t count;
} tb_soft_card_search;

/* H in the order of the contacts whose places in `found` are given, tb_soft_links_hessian. `turned`: in the
 * coordinates of the facets, as qp/facet_coordinates.h turns it. */
typedef struct tb_soft_card_hessian {
    const int32_t *found; /* contacts */
    int32_t contacts, columns, half_bandwidth;
    bool turned;
    double *host; /* half_bandwidth + 1 by columns x contacts, to fill; NULL: H stays on the card */
    /* out: on the card, a column `stride` numbers behind the one before; until the next H of as many columns */
    const double *band;
    int64_t stride;
} tb_soft_card_hessian;

/* The contacts of a substep, from the search to the new velocities. */
typedef struct tb_soft_card_contacts {
    tb_soft_card_search search;    /* pairs, obstacles and cells */
    const tb_soft_contact *before; /* of the last substep */
    int32_t befores;               /* -1: the card has them */
    const double *push_rate;       /* bodies, 1/s: tb_soft_push_rate */
    double dt, least_spacing;      /* s, m */
    double most_pushed;            /* J */
    double friction, tolerance;    /* tb_soft_options */
    int32_t most_projections;
    tb_soft_first_sets sets;
    const tb_qp_options *programs;
    void **rooms; /* 2: tb_qp_card_program */
    /* out */
    bool solved;            /* false: nothing has changed, and the processor solves the programs */
    int32_t count;          /* contacts, which the card remembers */
    double external[3];     /* N s, on bodies without clamps */
    double *answers;        /* rigid bodies x 12: y (grid/partners.c), impulse and its moment */
    tb_soft_certificate *c; /* is worsened */
} tb_soft_card_contacts;

/* A node's new velocity. */
typedef struct tb_soft_card_push {
    int32_t body, node;
    double v[3]; /* m/s */
} tb_soft_card_push;

typedef struct tb_soft_card_call {
    tb_soft_card_part part;
    double dt;                      /* s */
    uint64_t followers;             /* bit c: clamp c moves with a rigid body */
    const tb_soft_frame *frames;    /* clamps; of FORCES and TRANSPORT */
    tb_soft_field *fields;          /* bodies, of the host; of BRING and FETCH */
    tb_soft_card_outcome *outcomes; /* bodies; of BRING, MEASURE, FORCES, TRANSPORT and UNDO */
    double *impulses; /* clamps x 6, of FORCES: impulse that a follower's rigid body gets, moment */
    tb_soft_card_search *search;     /* of SEARCH */
    tb_soft_card_hessian *hessian;   /* of HESSIAN */
    tb_soft_card_contacts *contacts; /* of CONTACT */
    tb_soft_contact *recalled;       /* of RECALL: as many as CONTACT said */
    /* of SWEEP: arrays of the host, shares of nodes alone; the contacts come back */
    tb_soft_sweeps *sweeps;
    const tb_soft_card_push *push;
    int32_t pushes;
} tb_soft_card_call;

#endif
