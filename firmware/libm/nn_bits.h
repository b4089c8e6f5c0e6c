/* A float's value and its bits, and the product of two. Used by every function of the library. */
#ifndef NN_BITS_H
#define NN_BITS_H

#include "nn_floats.h"

#include <stdint.h>

/* The bits of a float. A union, not memcpy: even an unoptimised build then makes no call. */
static inline uint32_t nn_bits_of(float x)
{
    union { float value; uint32_t bits; } u;
    u.value = x;
    return u.bits;
}

/* The float of some bits. */
static inline float nn_float_of(uint32_t bits)
{
    union { float value; uint32_t bits; } u;
    u.bits = bits;
    return u.value;
}

/*
 * a * b, rounded before anything is added to it. Clang's -ffp-contract=fast heeds no pragma, hence the empty assembly
 * where its processor has an instruction for a * b + c.
 */
#if defined(__GNUC__)
__attribute__((unused)) /* vectors need it in portable C only */
#endif
static inline float nn_product(float a, float b)
{
    float product = a * b;

#if !defined(__clang__)
#elif defined(__i386__) || defined(__x86_64__)
#if defined(__FMA__) || defined(__FMA4__) || defined(NN_TARGET_FMA)
    __asm__("" : "+x"(product));
#endif
#elif defined(__aarch64__)
    __asm__("" : "+w"(product));
#elif defined(__arm__)
#if defined(__ARM_FEATURE_FMA)
    __asm__("" : "+t"(product));
#endif
#elif defined(__riscv)
#if defined(__riscv_flen)
    __asm__("" : "+f"(product));
#endif
#else
    __asm__("" : "+m"(product));
#endif
    return product;
}

#endif
