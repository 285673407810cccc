/* Sets of small numbers as the bits of 64-bit words. */
#ifndef TB_BITS_H
#define TB_BITS_H

#include "base/device.h"

#include <stdbool.h>
#include <stdint.h>

/* How many bits are set. */
TB_FN int32_t tb_bits_count(uint64_t word)
{
#ifdef __CUDA_ARCH__
    return __popcll(word);
#else
    return __builtin_popcountll(word);
#endif
}

/* The place of the lowest bit that is set; there must be one. */
TB_FN int32_t tb_bits_lowest(uint64_t word)
{
#ifdef __CUDA_ARCH__
    return __ffsll((long long)word) - 1;
#else
    return __builtin_ctzll(word);
#endif
}

TB_FN bool tb_bits_equal(const uint64_t *a, const uint64_t *b, int32_t words)
{
    for (int32_t w = 0; w < words; w++)
        if (a[w] != b[w]) return false;
    return true;
}

#endif
