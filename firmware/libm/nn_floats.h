/*
 * Floats are computed as written, each operation rounded once, whatever the compiler's flags: so they have the same
 * bits everywhere. No flag is needed; those that could not be undone are refused.
 */
#ifndef NN_FLOATS_H
#define NN_FLOATS_H

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

#endif
