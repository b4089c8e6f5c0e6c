/* net: one function a step, made for its shapes. */
#define NN_TARGET_FMA
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

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-ter", "no-predictive-commoning")
#endif
#if defined(__x86_64__) && defined(__GNUC__) && !defined(NN_PORTABLE)
#include <immintrin.h>
#elif defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-loop-vectorize")
#endif

#include "conv_avx2_private.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(NN_PORTABLE)
#define CONV_AVX2_TARGET __attribute__((target("sse2,ssse3,avx2,fma,bmi2")))
#else
#define CONV_AVX2_TARGET
#endif

/*
 * a * b, rounded before anything is added to it. Clang's -ffp-contract=fast heeds no pragma, hence the empty assembly
 * where its processor has an instruction for a * b + c.
 */
#if defined(__GNUC__)
__attribute__((unused)) /* vectors need it in portable C only */
#endif
static inline float conv_avx2_product(float a, float b)
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

#if defined(__x86_64__) && defined(__GNUC__) && !defined(NN_PORTABLE)

typedef __m256 conv_avx2_avx2_fma_floats;

CONV_AVX2_TARGET static inline conv_avx2_avx2_fma_floats conv_avx2_avx2_fma_f_each(float a)
{
    return _mm256_set1_ps(a);
}

CONV_AVX2_TARGET static inline conv_avx2_avx2_fma_floats conv_avx2_avx2_fma_f_load(const float *from)
{
    return _mm256_loadu_ps(from);
}

CONV_AVX2_TARGET static inline conv_avx2_avx2_fma_floats conv_avx2_avx2_fma_f_repeat_2(const float *from)
{
    return _mm256_castsi256_ps(_mm256_broadcastq_epi64(_mm_loadl_epi64((const __m128i *)(const void *)from)));
}

CONV_AVX2_TARGET static inline conv_avx2_avx2_fma_floats conv_avx2_avx2_fma_f_fma(conv_avx2_avx2_fma_floats a,
        conv_avx2_avx2_fma_floats b, conv_avx2_avx2_fma_floats c)
{
    return _mm256_fmadd_ps(a, b, c);
}

CONV_AVX2_TARGET static inline conv_avx2_avx2_fma_floats conv_avx2_avx2_fma_f_join_2x2x3(conv_avx2_avx2_fma_floats a,
        conv_avx2_avx2_fma_floats b)
{
    __m256 sum = _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xdd));
    sum = _mm256_permutevar8x32_ps(sum, _mm256_set_epi32(1, 0, 6, 3, 2, 4, 1, 0));
    return sum;
}

CONV_AVX2_TARGET static inline conv_avx2_avx2_fma_floats conv_avx2_avx2_fma_f_load_first_6(const float *from)
{
    return _mm256_maskload_ps(from, _mm256_set_epi32(0, 0, -1, -1, -1, -1, -1, -1));
}

CONV_AVX2_TARGET static inline conv_avx2_avx2_fma_floats conv_avx2_avx2_fma_f_add(conv_avx2_avx2_fma_floats a,
        conv_avx2_avx2_fma_floats b)
{
    return _mm256_add_ps(a, b);
}

CONV_AVX2_TARGET static inline void conv_avx2_avx2_fma_f_store_first_6(float *to, conv_avx2_avx2_fma_floats a)
{
    _mm256_maskstore_ps(to, _mm256_set_epi32(0, 0, -1, -1, -1, -1, -1, -1), a);
}

CONV_AVX2_TARGET static inline conv_avx2_avx2_fma_floats conv_avx2_avx2_fma_f_join_2x1x3(conv_avx2_avx2_fma_floats a)
{
    __m256 sum = _mm256_add_ps(_mm256_shuffle_ps(a, a, 0x88), _mm256_shuffle_ps(a, a, 0xdd));
    sum = _mm256_permutevar8x32_ps(sum, _mm256_set_epi32(1, 0, 4, 1, 0, 4, 1, 0));
    return sum;
}

CONV_AVX2_TARGET static inline conv_avx2_avx2_fma_floats conv_avx2_avx2_fma_f_load_first_3(const float *from)
{
    return _mm256_maskload_ps(from, _mm256_set_epi32(0, 0, 0, 0, 0, -1, -1, -1));
}

CONV_AVX2_TARGET static inline void conv_avx2_avx2_fma_f_store_first_3(float *to, conv_avx2_avx2_fma_floats a)
{
    _mm256_maskstore_ps(to, _mm256_set_epi32(0, 0, 0, 0, 0, -1, -1, -1), a);
}

#else /* the same in portable C */

typedef struct { float at[8]; } conv_avx2_avx2_fma_floats;

CONV_AVX2_TARGET static inline conv_avx2_avx2_fma_floats conv_avx2_avx2_fma_f_each(float a)
{
    conv_avx2_avx2_fma_floats r;

    for (int32_t i = 0; i < 8; ++i) r.at[i] = a;
    return r;
}

CONV_AVX2_TARGET static inline conv_avx2_avx2_fma_floats conv_avx2_avx2_fma_f_load(const float *from)
{
    conv_avx2_avx2_fma_floats r;

    for (int32_t i = 0; i < 8; ++i) r.at[i] = from[i];
    return r;
}

CONV_AVX2_TARGET static inline conv_avx2_avx2_fma_floats conv_avx2_avx2_fma_f_repeat_2(const float *from)
{
    conv_avx2_avx2_fma_floats r;

    for (int32_t i = 0; i < 8; ++i) r.at[i] = from[i % 2];
    return r;
}

CONV_AVX2_TARGET static inline conv_avx2_avx2_fma_floats conv_avx2_avx2_fma_f_fma(conv_avx2_avx2_fma_floats a,
        conv_avx2_avx2_fma_floats b, conv_avx2_avx2_fma_floats c)
{
    conv_avx2_avx2_fma_floats r;

    for (int32_t i = 0; i < 8; ++i) r.at[i] = c.at[i] + conv_avx2_product(a.at[i], b.at[i]);
    return r;
}

CONV_AVX2_TARGET static inline conv_avx2_avx2_fma_floats conv_avx2_avx2_fma_f_join_2x2x3(conv_avx2_avx2_fma_floats a,
        conv_avx2_avx2_fma_floats b)
{
    conv_avx2_avx2_fma_floats r = a;
    for (int32_t i = 0; i < 8; i += 2) a.at[i] = a.at[i] + a.at[i + 1];
    for (int32_t i = 0; i < 3; ++i) r.at[i] = a.at[i * 2];
    for (int32_t i = 0; i < 8; i += 2) b.at[i] = b.at[i] + b.at[i + 1];
    for (int32_t i = 0; i < 3; ++i) r.at[3 + i] = b.at[i * 2];
    return r;
}

CONV_AVX2_TARGET static inline conv_avx2_avx2_fma_floats conv_avx2_avx2_fma_f_load_first_6(const float *from)
{
    conv_avx2_avx2_fma_floats r;

    for (int32_t i = 0; i < 8; ++i) r.at[i] = i < 6 ? from[i] : 0.0f;
    return r;
}

CONV_AVX2_TARGET static inline conv_avx2_avx2_fma_floats conv_avx2_avx2_fma_f_add(conv_avx2_avx2_fma_floats a,
        conv_avx2_avx2_fma_floats b)
{
    conv_avx2_avx2_fma_floats r;

    for (int32_t i = 0; i < 8; ++i) r.at[i] = a.at[i] + b.at[i];
    return r;
}

CONV_AVX2_TARGET static inline void conv_avx2_avx2_fma_f_store_first_6(float *to, conv_avx2_avx2_fma_floats a)
{
    for (int32_t i = 0; i < 6; ++i) to[i] = a.at[i];
}

CONV_AVX2_TARGET static inline conv_avx2_avx2_fma_floats conv_avx2_avx2_fma_f_join_2x1x3(conv_avx2_avx2_fma_floats a)
{
    conv_avx2_avx2_fma_floats r = a;
    for (int32_t i = 0; i < 8; i += 2) a.at[i] = a.at[i] + a.at[i + 1];
    for (int32_t i = 0; i < 3; ++i) r.at[i] = a.at[i * 2];
    return r;
}

CONV_AVX2_TARGET static inline conv_avx2_avx2_fma_floats conv_avx2_avx2_fma_f_load_first_3(const float *from)
{
    conv_avx2_avx2_fma_floats r;

    for (int32_t i = 0; i < 8; ++i) r.at[i] = i < 3 ? from[i] : 0.0f;
    return r;
}

CONV_AVX2_TARGET static inline void conv_avx2_avx2_fma_f_store_first_3(float *to, conv_avx2_avx2_fma_floats a)
{
    for (int32_t i = 0; i < 3; ++i) to[i] = a.at[i];
}

#endif

/* op: conv2d [5][5][4] -> [3][3][3], 108 MACs, avx2_fma_by_2, about 100 cycles */
CONV_AVX2_TARGET void conv_avx2_00_op(const float *restrict in, float *restrict out, int32_t begin, int32_t end)
{
    for (int32_t y = begin; y < end; ++y) {
        const int32_t top = y * 2;
        const float *taps = conv_avx2_00_op_kernel;
        const float *bias = conv_avx2_00_op_bias;
        int32_t channel = 0;
        conv_avx2_avx2_fma_floats sum00 = conv_avx2_avx2_fma_f_each(0.0f);
        conv_avx2_avx2_fma_floats sum10 = conv_avx2_avx2_fma_f_each(0.0f);
        conv_avx2_avx2_fma_floats sum20 = conv_avx2_avx2_fma_f_each(0.0f);
        const float *row = in + top * 20;
        const float *k = taps;
        for (int32_t i = 0; i < 4; i += 2) {
            conv_avx2_avx2_fma_floats w0 = conv_avx2_avx2_fma_f_load(k);
            conv_avx2_avx2_fma_floats x0 = conv_avx2_avx2_fma_f_repeat_2(row + i);
            sum00 = conv_avx2_avx2_fma_f_fma(x0, w0, sum00);
            conv_avx2_avx2_fma_floats x1 = conv_avx2_avx2_fma_f_repeat_2(row + 8 + i);
            sum10 = conv_avx2_avx2_fma_f_fma(x1, w0, sum10);
            conv_avx2_avx2_fma_floats x2 = conv_avx2_avx2_fma_f_repeat_2(row + 16 + i);
            sum20 = conv_avx2_avx2_fma_f_fma(x2, w0, sum20);
            k += 8;
        }
        float *to = out + y * 9 + channel;
        sum00 = conv_avx2_avx2_fma_f_join_2x2x3(sum00, sum10);
        sum00 = conv_avx2_avx2_fma_f_add(sum00, conv_avx2_avx2_fma_f_load_first_6(bias));
        conv_avx2_avx2_fma_f_store_first_6(to, sum00);
        sum20 = conv_avx2_avx2_fma_f_join_2x1x3(sum20);
        sum20 = conv_avx2_avx2_fma_f_add(sum20, conv_avx2_avx2_fma_f_load_first_3(bias));
        conv_avx2_avx2_fma_f_store_first_3(to + 6, sum20);
        taps += 16;
        bias += 4;
        channel += 3;
    }
}
