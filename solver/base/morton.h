/* Morton codes: the bits of three cell numbers by turns, 21 of each. */
#ifndef TB_MORTON_H
#define TB_MORTON_H

#include <stdint.h>

#include "base/device.h"

/* Moves bit k of x to bit 3k, for 21 bits. */
TB_FN uint64_t tb_morton_spread(uint32_t x)
{
    uint64_t v = x & 0x1fffff;
    v = (v | v << 32) & 0x001f00000000ffffu;
    v = (v | v << 16) & 0x001f0000ff0000ffu;
    v = (v | v << 8) & 0x100f00f00f00f00fu;
    v = (v | v << 4) & 0x10c30c30c30c30c3u;
    v = (v | v << 2) & 0x1249249249249249u;
    return v;
}

TB_FN uint64_t tb_morton_code(uint32_t x, uint32_t y, uint32_t z)
{
    return tb_morton_spread(x) | tb_morton_spread(y) << 1 | tb_morton_spread(z) << 2;
}

#endif
