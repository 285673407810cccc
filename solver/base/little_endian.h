/* Numbers of binary files, least byte first. */
#ifndef TB_LITTLE_ENDIAN_H
#define TB_LITTLE_ENDIAN_H

#include <stdint.h>
#include <string.h>

/* The integer of four bytes. */
static inline int32_t tb_read_i32(const unsigned char *bytes)
{
    const uint32_t u = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                       (uint32_t)bytes[3] << 24;
    int32_t i;
    memcpy(&i, &u, sizeof i);
    return i;
}

/* The double of eight bytes. */
static inline double tb_read_double(const unsigned char *bytes)
{
    uint64_t u = 0;
    double x;
    for (int i = 0; i < 8; i++) u |= (uint64_t)bytes[i] << (8 * i);
    memcpy(&x, &u, sizeof x);
    return x;
}

#endif
