/* net: printed by nnbuild 0.1.0, so change the model instead. */
#ifndef DEPTHWISE_DSP_H
#define DEPTHWISE_DSP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DEPTHWISE_DSP_HASH "65fc1b6299893b0e"
#define DEPTHWISE_DSP_ARENA_BYTES 608
#define DEPTHWISE_DSP_STATE_BYTES 0
#define DEPTHWISE_DSP_STEPS 1
#define DEPTHWISE_DSP_INPUTS 1
#define DEPTHWISE_DSP_OUTPUTS 1

/* input 0, "x0": int8_t [6][7][3], real = 0.0201783348f * (value - -29) */
#define DEPTHWISE_DSP_INPUT0_SIZE 126
#define DEPTHWISE_DSP_INPUT0_DIM0 6
#define DEPTHWISE_DSP_INPUT0_DIM1 7
#define DEPTHWISE_DSP_INPUT0_DIM2 3
#define DEPTHWISE_DSP_INPUT0_SCALE 0.0201783348f
#define DEPTHWISE_DSP_INPUT0_ZERO_POINT -29

/* output 0, "y0": int8_t [6][7][3], real = 0.214075968f * (value - 89) */
#define DEPTHWISE_DSP_OUTPUT0_SIZE 126
#define DEPTHWISE_DSP_OUTPUT0_DIM0 6
#define DEPTHWISE_DSP_OUTPUT0_DIM1 7
#define DEPTHWISE_DSP_OUTPUT0_DIM2 3
#define DEPTHWISE_DSP_OUTPUT0_SCALE 0.214075968f
#define DEPTHWISE_DSP_OUTPUT0_ZERO_POINT 89

#if defined(__GNUC__)
#define DEPTHWISE_DSP_ALIGNED __attribute__((aligned(16)))
#else
#define DEPTHWISE_DSP_ALIGNED
#endif

/* All memory of a run. The caller owns it; it may be static, and there may be several instances. */
typedef struct depthwise_dsp_context {
    union {
        int8_t i8[608];
        int32_t i32[152];
    } arena;
} DEPTHWISE_DSP_ALIGNED depthwise_dsp_context;

/*
 * A program and the code of the model must come from the same files. If the linker finds no depthwise_dsp_init_e29a4ef3,
 * one of them is of another model or version: compile both anew.
 */
#define depthwise_dsp_init depthwise_dsp_init_e29a4ef3

/* Starts a new sequence: resets the state that persists between runs. Call it once before the first run. */
void depthwise_dsp_init(depthwise_dsp_context *context);

/* Where to write input `index`; null if there is no such input. Write every input before every run. */
int8_t *depthwise_dsp_input(depthwise_dsp_context *context, unsigned index);

/* Computes the outputs from the inputs, and may overwrite the inputs. Returns 0 on success. */
int depthwise_dsp_run(depthwise_dsp_context *context);

/* Computes one of DEPTHWISE_DSP_STEPS steps; call them in order. For callers that cannot block for a whole run. */
int depthwise_dsp_step(depthwise_dsp_context *context, unsigned step);

/* Output `index`, valid until an input is written again; null if there is no such output. */
const int8_t *depthwise_dsp_output(const depthwise_dsp_context *context, unsigned index);

#if defined(__GNUC__)
#define DEPTHWISE_DSP_INLINE static inline __attribute__((unused))
#else
#define DEPTHWISE_DSP_INLINE static inline
#endif

#ifdef __cplusplus
#define DEPTHWISE_DSP_CAST(type, value) static_cast<type>(value)
#else
#define DEPTHWISE_DSP_CAST(type, value) ((type)(value))
#endif

#ifndef __KERNEL__
/* Rounds x / scale to nearest, halves away from zero; adds the zero point and saturates. */
DEPTHWISE_DSP_INLINE int32_t depthwise_dsp_nearest(float x, float scale, int32_t zero_point, int32_t low, int32_t high)
{
    const float quotient = x / scale;
    if (!(quotient > DEPTHWISE_DSP_CAST(float, low - zero_point))) {
        return low;
    }
    if (quotient >= DEPTHWISE_DSP_CAST(float, high - zero_point)) {
        return high;
    }
    const int32_t whole = DEPTHWISE_DSP_CAST(int32_t, quotient);
    const float rest = quotient - DEPTHWISE_DSP_CAST(float, whole);
    return whole + zero_point + (rest >= 0.5f) - (rest <= -0.5f);
}

/* Writes input `index` from values in the model's own units. */
DEPTHWISE_DSP_INLINE void depthwise_dsp_quantize_input(depthwise_dsp_context *context, unsigned index,
        const float *values)
{
    if (index == 0) {
        int8_t *to = depthwise_dsp_input(context, 0);
        for (int32_t i = 0; i < DEPTHWISE_DSP_INPUT0_SIZE; ++i) {
            to[i] = DEPTHWISE_DSP_CAST(int8_t, depthwise_dsp_nearest(values[i], DEPTHWISE_DSP_INPUT0_SCALE,
                    DEPTHWISE_DSP_INPUT0_ZERO_POINT, -128, 127));
        }
    }
}

/* Reads output `index` in the model's own units. */
DEPTHWISE_DSP_INLINE void depthwise_dsp_dequantize_output(const depthwise_dsp_context *context, unsigned index,
        float *values)
{
    if (index == 0) {
        const int8_t *from = depthwise_dsp_output(context, 0);
        for (int32_t i = 0; i < DEPTHWISE_DSP_OUTPUT0_SIZE; ++i) {
            values[i] = DEPTHWISE_DSP_OUTPUT0_SCALE * DEPTHWISE_DSP_CAST(float, from[i]
                    - DEPTHWISE_DSP_OUTPUT0_ZERO_POINT);
        }
    }
}
#endif

#ifdef __cplusplus
}
#endif

#endif
