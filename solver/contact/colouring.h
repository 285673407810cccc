/* Colours for the contact units of one world: units of one colour share no movable body, so a sweep
 * may process them in any order or in parallel and is still Gauss-Seidel (Poulsen ch. 4).
 *
 * A unit is all contacts of one pair of shapes. In each round every unit without a colour claims its
 * bodies with its own number, mixed so that neighbours differ at random; a unit that holds both of
 * its bodies takes the first colour that neither has (greedy; the rounds are those of Jones and
 * Plassmann, SIAM J. Sci. Comput. 14, 1993). Claims are maxima, so the colours do not depend on
 * the order of the lanes. Immovable bodies (Poulsen's hubs) are ignored. A body with more than
 * 64 neighbours exhausts its 64 colours; later units take a colour of their round, because the
 * winners of one round share no body. */
#ifndef TB_COLOURING_H
#define TB_COLOURING_H

#include "base/grid.h"

enum { TB_COLOUR_MASK_BITS = 64 };

/* Indices of a unit's two bodies, -1: an immovable body. */
typedef struct tb_colour_edge {
    int32_t a, b;
} tb_colour_edge;

typedef struct tb_colouring {
    int32_t units, bodies;
    const tb_colour_edge *links; /* units */
    uint32_t *colours;           /* units */
    uint32_t *claims[2];         /* bodies: claims of this round and of the next */
    uint64_t *masks;             /* bodies: set of the colours of their units */
    int32_t *left;               /* 3: units without a colour after each round, in turn */
} tb_colouring;

#define TB_COLOUR_NONE 0xffffffffu

/* A bijection of 32 bits without 0 for small numbers (the finalizer of MurmurHash3, of x + 1). */
TB_LANE uint32_t tb_colour_claim(int32_t unit)
{
    uint32_t x = (uint32_t)unit + 1;
    x = (x ^ x >> 16) * 0x85ebca6bu;
    x = (x ^ x >> 13) * 0xc2b2ae35u;
    return x ^ x >> 16;
}

TB_LANE void tb_colour_begin(const tb_colouring *c)
{
    TB_GRID_EACH(i, c->bodies)
    {
        c->claims[0][i] = c->claims[1][i] = 0;
        c->masks[i] = 0;
    }
    TB_GRID_EACH(i, c->units) c->colours[i] = TB_COLOUR_NONE;
    if (TB_GRID_LEADER) c->left[0] = c->left[1] = c->left[2] = 0;
}

TB_LANE void tb_colour_claim_bodies(const tb_colouring *c, int32_t round)
{
    uint32_t *claims = c->claims[round % 2];
    TB_GRID_EACH(i, c->units)
    {
        if (c->colours[i] != TB_COLOUR_NONE) continue;
        const uint32_t claim = tb_colour_claim(i);
        if (c->links[i].a >= 0) tb_grid_max_u32(&claims[c->links[i].a], claim);
        if (c->links[i].b >= 0) tb_grid_max_u32(&claims[c->links[i].b], claim);
    }
    if (TB_GRID_LEADER) c->left[(round + 1) % 3] = 0;
}

/* Colours the units that hold their bodies, and clears the bodies' claims of the next round. */
TB_LANE void tb_colour_take(const tb_colouring *c, int32_t round)
{
    const uint32_t *claims = c->claims[round % 2];
    int32_t left = 0;
    TB_GRID_EACH(i, c->units)
    {
        if (c->colours[i] != TB_COLOUR_NONE) continue;
        const int32_t a = c->links[i].a, b = c->links[i].b;
        const uint32_t claim = tb_colour_claim(i);
        /* the claim that the next round begins with; several lanes may write the same value */
        if (a >= 0) tb_grid_write((int32_t *)&c->claims[(round + 1) % 2][a], 0);
        if (b >= 0) tb_grid_write((int32_t *)&c->claims[(round + 1) % 2][b], 0);
        if ((a >= 0 && claims[a] != claim) || (b >= 0 && claims[b] != claim)) {
            left++;
            continue;
        }
        const uint64_t taken = (a >= 0 ? c->masks[a] : 0) | (b >= 0 ? c->masks[b] : 0);
        uint32_t colour = (uint32_t)(TB_COLOUR_MASK_BITS + round);
        if (~taken) {
            colour = (uint32_t)tb_trailing_zeros(~taken);
            if (a >= 0) c->masks[a] |= (uint64_t)1 << colour;
            if (b >= 0) c->masks[b] |= (uint64_t)1 << colour;
        }
        c->colours[i] = colour;
    }
    left = (int32_t)tb_block_sum((double)left);
    if (tb_block_lane() == 0 && left > 0) tb_grid_add(&c->left[round % 3], left);
}

/* Runs all rounds; all lanes must call it. Returns the number of rounds. */
TB_LANE int32_t tb_colour_all(const tb_colouring *c)
{
    tb_colour_begin(c);
    for (int32_t round = 0;; round++) {
        tb_grid_sync();
        tb_colour_claim_bodies(c, round);
        tb_grid_sync();
        tb_colour_take(c, round);
        tb_grid_sync();
        if (tb_grid_read(&c->left[round % 3]) == 0) return round + 1;
    }
}

#endif
