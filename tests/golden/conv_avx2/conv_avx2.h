/* net: printed by nnbuild 0.1.0, so change the model instead. */
/*
 * Float results are identical with every compiler and all its flags; flags that the files cannot undo, such as
 * -ffast-math, are rejected. The processor must round to nearest and keep subnormal numbers.
 */
#ifndef CONV_AVX2_H
#define CONV_AVX2_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CONV_AVX2_HASH "cd442f34169fc038"
#define CONV_AVX2_ARENA_BYTES 512
#define CONV_AVX2_STATE_BYTES 0
#define CONV_AVX2_STEPS 1
#define CONV_AVX2_INPUTS 1
#define CONV_AVX2_OUTPUTS 1

/* input 0, "x0": float [5][5][4] */
#define CONV_AVX2_INPUT0_SIZE 100
#define CONV_AVX2_INPUT0_DIM0 5
#define CONV_AVX2_INPUT0_DIM1 5
#define CONV_AVX2_INPUT0_DIM2 4

/* output 0, "y0": float [3][3][3] */
#define CONV_AVX2_OUTPUT0_SIZE 27
#define CONV_AVX2_OUTPUT0_DIM0 3
#define CONV_AVX2_OUTPUT0_DIM1 3
#define CONV_AVX2_OUTPUT0_DIM2 3

#if defined(__GNUC__)
#define CONV_AVX2_ALIGNED __attribute__((aligned(16)))
#else
#define CONV_AVX2_ALIGNED
#endif

/* All memory of a run. The caller owns it; it may be static, and there may be several instances. */
typedef struct conv_avx2_context {
    union {
        float f32[128];
    } arena;
} CONV_AVX2_ALIGNED conv_avx2_context;

/*
 * A program and the code of the model must come from the same files. If the linker finds no conv_avx2_init_7de3c914,
 * one of them is of another model or version: compile both anew.
 */
#define conv_avx2_init conv_avx2_init_7de3c914

/* Starts a new sequence: resets the state that persists between runs. Call it once before the first run. */
void conv_avx2_init(conv_avx2_context *context);

/* Where to write input `index`; null if there is no such input. Write every input before every run. */
float *conv_avx2_input(conv_avx2_context *context, unsigned index);

/* Computes the outputs from the inputs, and may overwrite the inputs. Returns 0 on success. */
int conv_avx2_run(conv_avx2_context *context);

/* Computes one of CONV_AVX2_STEPS steps; call them in order. For callers that cannot block for a whole run. */
int conv_avx2_step(conv_avx2_context *context, unsigned step);

/* Output `index`, valid until an input is written again; null if there is no such output. */
const float *conv_avx2_output(const conv_avx2_context *context, unsigned index);

#if defined(__GNUC__)
#define CONV_AVX2_INLINE static inline __attribute__((unused))
#else
#define CONV_AVX2_INLINE static inline
#endif

#ifndef __KERNEL__
/* Writes input `index` from values in the model's own units. */
CONV_AVX2_INLINE void conv_avx2_quantize_input(conv_avx2_context *context, unsigned index, const float *values)
{
    if (index == 0) {
        float *to = conv_avx2_input(context, 0);
        for (int32_t i = 0; i < CONV_AVX2_INPUT0_SIZE; ++i) {
            to[i] = values[i];
        }
    }
}

/* Reads output `index` in the model's own units. */
CONV_AVX2_INLINE void conv_avx2_dequantize_output(const conv_avx2_context *context, unsigned index, float *values)
{
    if (index == 0) {
        const float *from = conv_avx2_output(context, 0);
        for (int32_t i = 0; i < CONV_AVX2_OUTPUT0_SIZE; ++i) {
            values[i] = from[i];
        }
    }
}
#endif

#ifdef __cplusplus
}
#endif

#endif
