/* Where a pair of rigid bodies touches at several points, many distributions of the load solve
 * the problem. Gauss-Seidel would give the whole load to the first point, and a pad that presses
 * with one corner resists no twist. So the missing load of a pair is first spread evenly over
 * its points, as slightly compliant pads would do (a Jacobi step with the mass split among
 * them); the sweeps then change it only where needed. */
#ifndef TB_SPREAD_H
#define TB_SPREAD_H

#include "base/base.h"

enum {
    TB_MOST_SHARING = 64,   /* most points of a pair that share a load */
    TB_SPREADING_PASSES = 8 /* before the first sweep, where loads are new */
};
#define TB_LOAD_WORTH_SPREADING TB_R(1e-3) /* change of the load over the load before */

/* By how much a contact alone would change its normal impulse. diagonal: of G, 1/kg. */
TB_FN tb_real tb_spread_change(tb_real lambda, tb_real xi, tb_real diagonal)
{
    return diagonal > 0 ? tb_max(lambda - xi / diagonal, 0) - lambda : 0;
}

/* Whether a pair has a load to spread: `number` of its points want a change, by `change` together;
 * they bear `load`. Each of them gets its part then. */
TB_FN bool tb_spread_is_due(int32_t number, tb_real change, tb_real load)
{
    return number >= 2 && change > TB_LOAD_WORTH_SPREADING * load && change <= TB_REAL_MAX;
}

#endif
