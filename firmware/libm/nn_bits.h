/* The two views of a float: its value and its bits. Used by every function of the library. */
#ifndef NN_BITS_H
#define NN_BITS_H

#include <stdint.h>

#if defined(__FAST_MATH__) || (defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0)
#error "float operations must be done as written and in float: no -ffast-math, and on 32-bit x86 -msse2 -mfpmath=sse"
#endif

/* Unions, not memcpy: even an unoptimised build then makes no call. */
static inline uint32_t nn_bits_of(float x)
{
    union { float value; uint32_t bits; } u;
    u.value = x;
    return u.bits;
}

static inline float nn_float_of(uint32_t bits)
{
    union { float value; uint32_t bits; } u;
    u.bits = bits;
    return u.value;
}

#endif
