/* Philox-4x32-10, a counter-based random generator: the same numbers on every platform, in any
 * order, from any thread. Salmon, Moraes, Dror, Shaw: Parallel Random Numbers: As Easy as 1, 2, 3,
 * SC 2011. */
#ifndef TB_RANDOM_H
#define TB_RANDOM_H

#include "base/real.h"

typedef struct tb_random4 {
    uint32_t v[4];
} tb_random4;

/* four words for a 128-bit counter and a 64-bit key */
TB_FN tb_random4 tb_philox(const uint32_t counter[4], const uint32_t key[2])
{
    tb_random4 c;
    uint32_t k0 = key[0], k1 = key[1];
    for (int i = 0; i < 4; i++) c.v[i] = counter[i];
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)0xD2511F53u * c.v[0];
        const uint64_t p1 = (uint64_t)0xCD9E8D57u * c.v[2];
        const uint32_t v0 = (uint32_t)(p1 >> 32) ^ c.v[1] ^ k0;
        const uint32_t v2 = (uint32_t)(p0 >> 32) ^ c.v[3] ^ k1;
        c.v[1] = (uint32_t)p1;
        c.v[3] = (uint32_t)p0;
        c.v[0] = v0;
        c.v[2] = v2;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

/* A stream of random numbers: (seed, stream) select it, `position` counts the numbers drawn. */
typedef struct tb_random {
    uint64_t seed, stream, position;
} tb_random;

TB_FN tb_random tb_random_stream(uint64_t seed, uint64_t stream)
{
    tb_random r;
    r.seed = seed;
    r.stream = stream;
    r.position = 0;
    return r;
}

TB_FN uint32_t tb_random_u32(tb_random *r)
{
    uint32_t counter[4], key[2];
    const uint64_t block = r->position >> 2;
    counter[0] = (uint32_t)block;
    counter[1] = (uint32_t)(block >> 32);
    counter[2] = (uint32_t)r->stream;
    counter[3] = (uint32_t)(r->stream >> 32);
    key[0] = (uint32_t)r->seed;
    key[1] = (uint32_t)(r->seed >> 32);
    const tb_random4 v = tb_philox(counter, key);
    return v.v[r->position++ & 3];
}

/* uniform in [0, 1), 53 bits */
TB_FN double tb_random_uniform(tb_random *r)
{
    const uint64_t high = tb_random_u32(r), low = tb_random_u32(r);
    return (double)(((high << 32) | low) >> 11) * (1.0 / 9007199254740992.0);
}

TB_FN double tb_random_between(tb_random *r, double lower, double upper)
{
    return lower + (upper - lower) * tb_random_uniform(r);
}

/* standard normal, by Box and Muller */
TB_FN double tb_random_normal(tb_random *r)
{
    const double u = 1.0 - tb_random_uniform(r);
    const double v = tb_random_uniform(r);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

#endif
