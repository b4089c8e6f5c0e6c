/* tiny conv: printed by nnbuild 0.1.0, so change the model instead. */
/*
 * Float results are identical with every compiler and all its flags; flags that the files cannot undo, such as
 * -ffast-math, are rejected. The processor must round to nearest and keep subnormal numbers.
 */
#ifndef CONV_H
#define CONV_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CONV_HASH "15135afd8d524bbb"
#define CONV_ARENA_BYTES 208
#define CONV_STATE_BYTES 0
#define CONV_STEPS 4
#define CONV_INPUTS 1
#define CONV_OUTPUTS 1

/* input 0, "x": float [4][4][1] */
#define CONV_INPUT0_SIZE 16
#define CONV_INPUT0_DIM0 4
#define CONV_INPUT0_DIM1 4
#define CONV_INPUT0_DIM2 1

/* output 0, "choice": float [3] */
#define CONV_OUTPUT0_SIZE 3
#define CONV_OUTPUT0_DIM0 3

#if defined(__GNUC__)
#define CONV_ALIGNED __attribute__((aligned(16)))
#else
#define CONV_ALIGNED
#endif

/* All memory of a run. The caller owns it; it may be static, and there may be several instances. */
typedef struct conv_context {
    union {
        float f32[52];
    } arena;
} CONV_ALIGNED conv_context;

/*
 * A program and the code of the model must come from the same files. If the linker finds no conv_init_94b7e9cb,
 * one of them is of another model or version: compile both anew.
 */
#define conv_init conv_init_94b7e9cb

/* Starts a new sequence: resets the state that persists between runs. Call it once before the first run. */
void conv_init(conv_context *context);

/* Where to write input `index`; null if there is no such input. Write every input before every run. */
float *conv_input(conv_context *context, unsigned index);

/* Computes the outputs from the inputs, and may overwrite the inputs. Returns 0 on success. */
int conv_run(conv_context *context);

/* Computes one of CONV_STEPS steps; call them in order. For callers that cannot block for a whole run. */
int conv_step(conv_context *context, unsigned step);

/* Output `index`, valid until an input is written again; null if there is no such output. */
const float *conv_output(const conv_context *context, unsigned index);

#if defined(__GNUC__)
#define CONV_INLINE static inline __attribute__((unused))
#else
#define CONV_INLINE static inline
#endif

#ifndef __KERNEL__
/* Writes input `index` from values in the model's own units. */
CONV_INLINE void conv_quantize_input(conv_context *context, unsigned index, const float *values)
{
    if (index == 0) {
        float *to = conv_input(context, 0);
        for (int32_t i = 0; i < CONV_INPUT0_SIZE; ++i) {
            to[i] = values[i];
        }
    }
}

/* Reads output `index` in the model's own units. */
CONV_INLINE void conv_dequantize_output(const conv_context *context, unsigned index, float *values)
{
    if (index == 0) {
        const float *from = conv_output(context, 0);
        for (int32_t i = 0; i < CONV_OUTPUT0_SIZE; ++i) {
            values[i] = from[i];
        }
    }
}
#endif

#ifdef __cplusplus
}
#endif

#endif
