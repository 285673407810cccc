/* Pairs of shapes that are near each other, with their points: the result of a card's search (search_team.c),
 * from which rows are made (detect_team.c). */
#ifndef TB_NEAR_LIST_H
#define TB_NEAR_LIST_H

#include "step/stages/stages.h"

/* One pair of shapes that are near each other. */
typedef struct tb_near {
    int32_t a, b;       /* model shapes */
    int32_t count;      /* points; without those of pairs that cannot move */
    int32_t contact;    /* number of its first one */
    int32_t row, value; /* of its first contact, from the first of all; row also list_waiting's */
    int32_t rows;       /* of a contact */
    int32_t chains;     /* in the list of unions; before, -1 - p: that of pair p */
    int32_t leaves[2];  /* before: places of the shapes in the list of those that collide */
    tb_contact_point *points;
} tb_near;

/* A union of chains, and its leaves. */
typedef struct tb_union {
    tb_chains chains;
    int32_t leaves[2];
} tb_union;

typedef struct tb_near_list {
    tb_near *pairs;
    tb_union *unions;
    int32_t number_of_pairs, number_of_unions, number_of_contacts;
    int32_t number_of_rows, number_of_values; /* of all contacts */
    int32_t *pair_of;                         /* contacts */
} tb_near_list;

/* A search's result. Its arrays lie in the arena of the world that searched. */
typedef struct tb_found {
    tb_near_list list;
    const tb_segment *segments; /* of that world, with those of the unions */
    int32_t number_of_segments;
    tb_status status; /* OK, DIVERGED; RESOURCE_EXHAUSTED: nothing was found out */
    uint32_t flags;   /* tb_world.collide_flags */
} tb_found;

#endif
