/* net: one function a step, made for its shapes. */
/*
 * Floats are computed as written, each operation rounded once, whatever the compiler's flags: so they have the same
 * bits everywhere. No flag is needed; those that could not be undone are refused.
 */

#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || \
    defined(__NO_SIGNED_ZEROS__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__) || \
    defined(__ARM_FP_FAST) || defined(_M_FP_FAST)
#error "float operations must be done as written: no -ffast-math, and none of the flags that it stands for"
#endif
/* 16 is 0 for floats: it speaks of narrower ones. */
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 16
#error "float operations must be done as written and in float: on 32-bit x86 give -msse2 -mfpmath=sse"
#endif

/* No product becomes one with a sum. IAR's and other compilers follow C99; Microsoft's has a spelling of its own. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#pragma clang fp reassociate(off)
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off")
#elif defined(_MSC_VER)
#pragma fp_contract(off)
#else
#pragma STDC FP_CONTRACT OFF
#endif

#include "depthwise_private.h"

/*
 * a * b, rounded before anything is added to it. Clang's -ffp-contract=fast heeds no pragma, hence the empty assembly
 * where its processor has an instruction for a * b + c.
 */
static inline float depthwise_product(float a, float b)
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

/* op: depthwise_conv2d [3][3][1] -> [1][1][3], 27 MACs, scalar, about 321 cycles */
void depthwise_00_op(const float *restrict in, float *restrict out, int32_t begin, int32_t end)
{
    const float *bias = depthwise_00_op_bias;
    for (int32_t y = begin; y < end; ++y) {
        const int32_t top = y;
        for (int32_t x = 0; x < 1; ++x) {
            const int32_t left = x;
            float *to = out + (y + x) * 3;
            for (int32_t c = 0; c < 3; ++c) {
                float sum = bias[c];
                for (int32_t ky = 0; ky < 3; ++ky) {
                    const float *row = in + ((top + ky) * 3 + left) + c / 3;
                    const float *k = depthwise_00_op_kernel + ky * 9 + c;
                    for (int32_t kx = 0; kx < 3; ++kx) {
                        const float x0 = row[kx];
                        const float w0 = k[kx * 3];
                        sum += depthwise_product(x0, w0);
                    }
                }
                to[c] = sum;
            }
        }
    }
}
