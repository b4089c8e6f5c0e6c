/* The inputs every test of the library uses, the same on every machine. */
#ifndef INPUTS_H
#define INPUTS_H

#include <stdint.h>

#include "nn_bits.h"

/* A well-mixed 32-bit value for each index. */
static inline uint32_t scrambled(uint32_t index)
{
    index = (index ^ index >> 16) * 0x7feb352d;
    index = (index ^ index >> 15) * 0x846ca68b;
    return index ^ index >> 16;
}

/*
 * Input `index` of 2^(9+log2_strata): each sign and exponent, its mantissas cut in 2^log2_strata strata of equal size,
 * a scrambled place in each stratum.
 */
static inline float stratified(uint32_t index, unsigned log2_strata)
{
    const unsigned inside = 23 - log2_strata;

    return nn_float_of(index << inside | (scrambled(index) & ((1u << inside) - 1)));
}

/*
 * Zeros, infinities, not-a-numbers, ends of ranges, halves, floats very close to multiples of pi/2, and every value
 * where a function changes its way; each is taken with its eight neighbours on either side and with both signs.
 */
static const uint32_t special_centres[] = {
    0x00000008, 0x00800000, 0x01000000, 0x32800000, 0x33000000, 0x33800000, 0x39800000, 0x3eb17218, 0x3effffff,
    0x3f000000, 0x3f3504f3, 0x3f3c0000, 0x3f490fdb, 0x3f600000, 0x3f7c0000, 0x3f800000, 0x3f840000, 0x3fa00000,
    0x3fb504f3, 0x3fc00000, 0x3fc90fdb, 0x40000000, 0x40200000, 0x40490fdb, 0x4096cbe4, 0x40c90fdb, 0x407ad445,
    0x41102cb3, 0x418aa123, 0x41880000, 0x42480000, 0x42ae0000, 0x42b17218, 0x42cff1b5, 0x42fc0000, 0x43000000,
    0x43150000, 0x43160000, 0x43170000, 0x47800000, 0x4a800000, 0x4affffff, 0x4b000000, 0x4b7fffff, 0x4b800000,
    0x4f000000, 0x53800000, 0x543146a6, 0x5f000000, 0x6f79be45, 0x7e800000, 0x7f7ffff7, 0x7f800000, 0x7fc00000,
    0x7ffffff7,
};
enum { SPECIALS = 2 * 17 * (int)(sizeof special_centres / sizeof special_centres[0]) };

static inline float special(unsigned index)
{
    const uint32_t centre = special_centres[index / 34];

    return nn_float_of((centre - 8 + index % 34 / 2) | (index & 1) << 31);
}

#endif
