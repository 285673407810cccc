/* Fields and forces of soft bodies on a card: the calls that grid/card/fields_card.c makes to a backend.
 *
 * A world's fields stay on the card from call to call. A call works on all bodies; their outcomes come
 * back with it, so that the processor can choose the next substep. */
#ifndef TB_SOFT_CARD_FIELDS_H
#define TB_SOFT_CARD_FIELDS_H

#include "grid/nodes/motion.h"

typedef struct tb_soft_card_body {
    tb_soft_solid shape; /* at the start */
    tb_soft_material material;
    bool clamped; /* by at least one clamp */
} tb_soft_card_body;

/* A clamp without a rigid body: its frame stands or moves with a constant velocity. */
typedef struct tb_soft_card_clamp {
    int32_t body;
    double lower[3], upper[3], velocity[3];
} tb_soft_card_clamp;

typedef struct tb_soft_card_scene {
    tb_soft_space space;
    size_t nodes;
    int32_t bodies, clamps;
    const tb_soft_card_body *body;
    const tb_soft_card_clamp *clamp;
} tb_soft_card_scene;

typedef enum tb_soft_card_part {
    TB_SOFT_CARD_BRING,     /* fields to the card; then as MEASURE */
    TB_SOFT_CARD_MEASURE,   /* stress and momentum of the present fields */
    TB_SOFT_CARD_FORCES,    /* clamps take their nodes; v by stress and gravity over dt */
    TB_SOFT_CARD_TRANSPORT, /* transport over dt, masses, repair of momentum; momentum at the end */
    TB_SOFT_CARD_FETCH,     /* all fields to the host */
    TB_SOFT_CARD_SEE,       /* X, v, masses, depths, layers and held nodes to the host */
    TB_SOFT_CARD_PUSH       /* v of the host to the card */
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

typedef struct tb_soft_card_call {
    tb_soft_card_part part;
    double time, dt;                /* s; time of the substep's begin */
    tb_soft_field *fields;          /* bodies, of the host */
    tb_soft_card_outcome *outcomes; /* bodies; of BRING, MEASURE, FORCES and TRANSPORT */
} tb_soft_card_call;

#endif
