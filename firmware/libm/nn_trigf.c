/* uses: none */
#include "nn_bits.h"
#include "nn_libm.h"

/*
 * sin(x + quarter*pi/2), the common part of sinf and cosf, equally good for every finite x.
 *
 * Outside [-pi/4, pi/4], x*2/pi modulo 4 is taken from the 96 bits of 2/pi that matter for x's exponent (the way of
 * Payne and Hanek): two bits of quadrant and 62 of fraction. The rest r is carried as high + low.
 */
/* 2/pi after 32 zero bits. */
static const uint32_t nn_trigf_two_over_pi[8] = {
    0x00000000, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab,
};

/* The 32 bits of 2/pi that begin at the given bit. */
static uint32_t nn_trigf_window(uint32_t bit)
{
    const uint32_t *word = nn_trigf_two_over_pi + (bit >> 5);
    const uint32_t shift = bit & 31;

    return shift ? word[0] << shift | word[1] >> (32 - shift) : word[0];
}

/* |x| = n pi/2 + high + low for |x| > pi/4; returns n modulo 4. */
static uint32_t nn_trigf_reduce(uint32_t magnitude, float *high, float *low)
{
    const uint32_t mantissa = (magnitude & 0x7fffff) | 0x800000;
    const uint32_t bit = (magnitude >> 23) - 120; /* bits of 2/pi before this one make multiples of 4 */
    const uint64_t turns = ((uint64_t)(mantissa * nn_trigf_window(bit)) << 32)
        + (uint64_t)mantissa * nn_trigf_window(bit + 32)
        + ((uint64_t)mantissa * nn_trigf_window(bit + 64) >> 32);
    const uint64_t fraction = turns << 2; /* of a quarter turn, signed, in 64 bits */
    const int32_t top = (int32_t)(uint32_t)(fraction >> 32);
    /* times pi/2: r in 62 fraction bits */
    const int64_t r = (int64_t)top * 0x6487ed51 + (int64_t)((fraction & 0xffffffff) * 0x6487ed51 >> 32);
    const int32_t whole = (int32_t)((r + 0x4000000000) >> 39); /* to nearest, so that a small r is all in low */

    *high = nn_product((float)whole, 0x1p-23f);
    *low = nn_product((float)(int32_t)((r - whole * ((int64_t)1 << 39)) >> 7), 0x1p-55f);
    return (uint32_t)((turns + 0x2000000000000000) >> 62);
}

float nn_trigf(float x, uint32_t quarter)
{
    const uint32_t magnitude = nn_bits_of(x) & 0x7fffffff;
    const int negative = magnitude != nn_bits_of(x);
    float high = x, low = 0.0f;
    float r, u, p, y, half, most;
    uint32_t n;

    if (magnitude > 0x3f490fda) {
        if (magnitude >= 0x7f800000)
            return nn_float_of(0x7fc00000);
        n = nn_trigf_reduce(magnitude, &high, &low);
        if (negative) {
            high = -high;
            low = -low;
            n = 0 - n;
        }
        quarter += n;
    }
    r = high + low;
    u = nn_product(r, r);
    if (quarter & 1) {
        p = 0x1.a075ep-16f - nn_product(u, 0x1.37205ep-22f);
        p = -0x1.6c1762p-10f + nn_product(u, p);
        p = 0x1.555556p-5f + nn_product(u, p);
        half = nn_product(nn_product(0.5f, high), high);
        most = 1.0f - half;
        y = most + (((1.0f - most) - half) + (nn_product(nn_product(u, u), p) - nn_product(high, low)));
    } else if (magnitude < 0x39800000) { /* |x| < 2^-12, zeros of either sign too */
        y = x;
    } else {
        p = -0x1.a05bb2p-13f + nn_product(u, 0x1.7cd428p-19f);
        p = 0x1.111176p-7f + nn_product(u, p);
        p = -0x1.555556p-3f + nn_product(u, p);
        y = high + (low + nn_product(r, nn_product(u, p)));
    }
    return quarter & 2 ? -y : y;
}
