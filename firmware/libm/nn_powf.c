/* uses: none */
#include "nn_bits.h"
#include "nn_libm.h"

/*
 * x^y. Largest error found: 0.55 ULP.
 *
 * In integers: log2(x) = k + log2(c) + log2(1 + r) with 62 fraction bits, its product with y with 32, and 2 to the
 * power of that with 31, rounded once, subnormal results too.
 */
/* 1/c in 7 fraction bits for 16 pieces of [0.734, 1.469), and log2(c) in 62. */
static const uint8_t nn_powf_inverse[16] = {
    171, 164, 158, 152, 146, 141, 137, 132, 128, 120, 114, 108, 102, 98, 93, 89,
};
static const int64_t nn_powf_log2c[16] = {
    -0x1abe18797f1f48e2, -0x16e221cd9d0cde58, -0x137124cea4cdecda, -0xfde0b5c81340512,
    -0xc2615e81781d97f, -0x8ee68cbaa95bdaf, -0x646285b918cd6ac, -0x2d75a6eb1dfb0e6,
    0x0, 0x5f58125b3eed31a, 0xab1ee14ffd65906, 0xfafec54831f1a48,
    0x14f6fbb2cec59879, 0x18a8980abfbd3266, 0x1d7e6c0abc3578c4, 0x218d955e18ab2df4,
};

static uint32_t nn_powf_high(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b >> 32);
}

static int32_t nn_powf_signed_high(int32_t a, int32_t b)
{
    return (int32_t)((int64_t)a * b >> 32);
}

/* By hand, for some compilers call a function to shift 64 bits; drop is 0 to 63. */
static uint64_t nn_powf_shifted(uint64_t value, uint32_t drop)
{
    const uint32_t high = (uint32_t)(value >> 32);

    if (drop >= 32)
        return high >> (drop - 32);
    return drop ? (uint64_t)(high >> drop) << 32 | high << (32 - drop) | (uint32_t)value >> drop : value;
}

/* log2 of the positive normal number with these bits times 2^scale, in *point fraction bits. */
static int64_t nn_powf_log2(uint32_t bits, int32_t scale, int32_t *point)
{
    const uint32_t offset = bits - 0x3f3c0000;
    const int32_t k = ((int32_t)offset >> 23) + scale;
    const uint32_t piece = offset >> 19 & 15;
    const uint32_t z = bits - (offset & 0xff800000);
    const uint32_t mantissa = ((z & 0x7fffff) | 0x800000) << (z >> 23 & 1); /* 24 fraction bits */
    const int32_t r = (int32_t)(mantissa * nn_powf_inverse[piece] - 0x80000000); /* exact, 31 fraction bits */
    const uint64_t square = (uint64_t)((int64_t)r * r);
    int32_t q;
    int64_t sum;

    /* log2(1+r) = r log2(e) + r^2 q(r) */
    q = 0x24fdfb06 + nn_powf_signed_high(-0x1edd0cd0, 2 * r);
    q = -0x2e2a8933 + nn_powf_signed_high(q, 2 * r);
    q = 0x3d8e11cb + nn_powf_signed_high(q, 2 * r);
    q = -0x5c551d95 + nn_powf_signed_high(q, 2 * r);
    sum = r * (int64_t)0xb8aa3b29 + (r * (int64_t)0x5c17f0bb >> 32);
    sum += (int64_t)(square >> 32) * q * 2 + ((int64_t)(square & 0xffffffff) * q >> 31);
    sum += nn_powf_log2c[piece];
    *point = k == 0 ? 62 : 55;
    return k == 0 ? sum : k * ((int64_t)1 << 55) + (sum >> 7);
}

/* The bits of 2^power, power in 32 fraction bits. */
static uint32_t nn_powf_exp2(int64_t power)
{
    const int64_t n = power >> 32;
    const uint32_t f = (uint32_t)(power & 0xffffffff);
    uint32_t p, mantissa, half, exponent = 0, drop = 8;

    if (n >= 128)
        return 0x7f800000;
    if (n < -150)
        return 0;
    p = 0x96c36 + nn_powf_high(0x16783, f);
    p = 0x57f139 + nn_powf_high(p, f);
    p = 0x2761501 + nn_powf_high(p, f);
    p = 0xe3593ba + nn_powf_high(p, f);
    p = 0x3d7f7a4b + nn_powf_high(p, f);
    p = 0xb1721808 + nn_powf_high(p, f);
    mantissa = 0x80000000 + (nn_powf_high(p, f) >> 1);
    if (n >= -126)
        exponent = (uint32_t)(n + 126) << 23; /* less one, for the mantissa's leading bit adds one */
    else
        drop += (uint32_t)(-126 - n);
    /* To nearest, ties to even. */
    half = mantissa >> (drop - 1);
    half += half & ((half >> 1) | (mantissa << (33 - drop) != 0)) & 1;
    return exponent + (half >> 1);
}

/* Whether the positive number with these bits is an odd integer (1), an even one (2) or none (0). */
static int nn_powf_parity(uint32_t magnitude)
{
    const uint32_t exponent = magnitude >> 23;
    const uint32_t mantissa = (magnitude & 0x7fffff) | 0x800000;

    if (exponent < 127)
        return 0;
    if (exponent > 150)
        return 2;
    if (mantissa & ((1u << (150 - exponent)) - 1))
        return 0;
    return mantissa >> (150 - exponent) & 1 ? 1 : 2;
}

/* The bits of x^y for positive finite x other than 1 and finite y other than 0. */
static uint32_t nn_powf_positive(uint32_t x, uint32_t y)
{
    const uint32_t mantissa = (y & 0x7fffff) | 0x800000;
    int32_t scale = 0, point, drop;
    int64_t log2x;
    uint64_t product;
    int negative;

    if (x < 0x00800000) {
        x = nn_bits_of(nn_product(nn_float_of(x), 0x1p23f));
        scale = -23;
    }
    log2x = nn_powf_log2(x, scale, &point);
    negative = (log2x < 0) != (int)(y >> 31);
    product = (uint64_t)(log2x < 0 ? -log2x : log2x);
    if (product < (uint64_t)1 << 47) {
        product <<= 16;
        point += 16;
    }
    if (product < (uint64_t)1 << 55) {
        product <<= 8;
        point += 8;
    }
    product = (product >> 32) * mantissa + ((product & 0xffffffff) * mantissa >> 32);
    drop = point - 41 - (int32_t)(y >> 23 & 0xff) + 127; /* leaves 32 fraction bits */
    if (drop < 0)
        return negative ? 0 : 0x7f800000;
    product = drop < 64 ? nn_powf_shifted(product, (uint32_t)drop) : 0;
    return nn_powf_exp2(negative ? -(int64_t)product : (int64_t)product);
}

float nn_powf(float x, float y)
{
    const uint32_t base = nn_bits_of(x) & 0x7fffffff;
    const uint32_t magnitude = nn_bits_of(y) & 0x7fffffff;
    uint32_t sign = 0;
    int parity;

    if (y == 0 || x == 1.0f)
        return 1.0f;
    if (x != x || y != y)
        return nn_float_of(0x7fc00000);
    if (nn_bits_of(x) >> 31) {
        parity = nn_powf_parity(magnitude);
        if (parity == 0 && base != 0 && base != 0x7f800000)
            return nn_float_of(0x7fc00000);
        sign = parity == 1 ? 0x80000000 : 0;
    }
    if (base == 0x3f800000)
        return nn_float_of(sign | 0x3f800000);
    if (magnitude == 0x7f800000)
        return nn_float_of((base > 0x3f800000) == (y > 0) ? 0x7f800000 : 0);
    if (base == 0 || base == 0x7f800000)
        return nn_float_of(sign | ((base == 0) == (y < 0) ? 0x7f800000 : 0));
    return nn_float_of(sign | nn_powf_positive(base, nn_bits_of(y)));
}
