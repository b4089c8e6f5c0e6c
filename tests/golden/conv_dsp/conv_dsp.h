/* net: printed by nnbuild 0.1.0, so change the model instead. */
#ifndef CONV_DSP_H
#define CONV_DSP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CONV_DSP_HASH "49e529ef3770457e"
#define CONV_DSP_ARENA_BYTES 176
#define CONV_DSP_STATE_BYTES 0
#define CONV_DSP_STEPS 1
#define CONV_DSP_INPUTS 1
#define CONV_DSP_OUTPUTS 1

/* input 0, "x0": int8_t [5][5][4], real = 0.0201783348f * (value - -29) */
#define CONV_DSP_INPUT0_SIZE 100
#define CONV_DSP_INPUT0_DIM0 5
#define CONV_DSP_INPUT0_DIM1 5
#define CONV_DSP_INPUT0_DIM2 4
#define CONV_DSP_INPUT0_SCALE 0.0201783348f
#define CONV_DSP_INPUT0_ZERO_POINT -29

/* output 0, "y0": int8_t [5][5][6], real = 0.142717317f * (value - 89) */
#define CONV_DSP_OUTPUT0_SIZE 150
#define CONV_DSP_OUTPUT0_DIM0 5
#define CONV_DSP_OUTPUT0_DIM1 5
#define CONV_DSP_OUTPUT0_DIM2 6
#define CONV_DSP_OUTPUT0_SCALE 0.142717317f
#define CONV_DSP_OUTPUT0_ZERO_POINT 89

#if defined(__GNUC__)
#define CONV_DSP_ALIGNED __attribute__((aligned(16)))
#else
#define CONV_DSP_ALIGNED
#endif

/* All memory of a run. The caller owns it; it may be static, and there may be several instances. */
typedef struct conv_dsp_context {
    union {
        int8_t i8[176];
        int64_t i64[22];
    } arena;
} CONV_DSP_ALIGNED conv_dsp_context;

/*
 * A program and the code of the model must come from the same files. If the linker finds no conv_dsp_init_beb189b2,
 * one of them is of another model or version: compile both anew.
 */
#define conv_dsp_init conv_dsp_init_beb189b2

/* Starts a new sequence: resets the state that persists between runs. Call it once before the first run. */
void conv_dsp_init(conv_dsp_context *context);

/* Where to write input `index`; null if there is no such input. Write every input before every run. */
int8_t *conv_dsp_input(conv_dsp_context *context, unsigned index);

/* Computes the outputs from the inputs, and may overwrite the inputs. Returns 0 on success. */
int conv_dsp_run(conv_dsp_context *context);

/* Computes one of CONV_DSP_STEPS steps; call them in order. For callers that cannot block for a whole run. */
int conv_dsp_step(conv_dsp_context *context, unsigned step);

/* Output `index`, valid until an input is written again; null if there is no such output. */
const int8_t *conv_dsp_output(const conv_dsp_context *context, unsigned index);

#if defined(__GNUC__)
#define CONV_DSP_INLINE static inline __attribute__((unused))
#else
#define CONV_DSP_INLINE static inline
#endif

#ifdef __cplusplus
#define CONV_DSP_CAST(type, value) static_cast<type>(value)
#else
#define CONV_DSP_CAST(type, value) ((type)(value))
#endif

#ifndef __KERNEL__
/* Rounds x / scale to nearest, halves away from zero; adds the zero point and saturates. */
CONV_DSP_INLINE int32_t conv_dsp_nearest(float x, float scale, int32_t zero_point, int32_t low, int32_t high)
{
    const float quotient = x / scale;
    if (!(quotient > CONV_DSP_CAST(float, low - zero_point))) {
        return low;
    }
    if (quotient >= CONV_DSP_CAST(float, high - zero_point)) {
        return high;
    }
    const int32_t whole = CONV_DSP_CAST(int32_t, quotient);
    const float rest = quotient - CONV_DSP_CAST(float, whole);
    return whole + zero_point + (rest >= 0.5f) - (rest <= -0.5f);
}

/* Writes input `index` from values in the model's own units. */
CONV_DSP_INLINE void conv_dsp_quantize_input(conv_dsp_context *context, unsigned index, const float *values)
{
    if (index == 0) {
        int8_t *to = conv_dsp_input(context, 0);
        for (int32_t i = 0; i < CONV_DSP_INPUT0_SIZE; ++i) {
            to[i] = CONV_DSP_CAST(int8_t, conv_dsp_nearest(values[i], CONV_DSP_INPUT0_SCALE, CONV_DSP_INPUT0_ZERO_POINT,
                    -128, 127));
        }
    }
}

/* Reads output `index` in the model's own units. */
CONV_DSP_INLINE void conv_dsp_dequantize_output(const conv_dsp_context *context, unsigned index, float *values)
{
    if (index == 0) {
        const int8_t *from = conv_dsp_output(context, 0);
        for (int32_t i = 0; i < CONV_DSP_OUTPUT0_SIZE; ++i) {
            values[i] = CONV_DSP_OUTPUT0_SCALE * CONV_DSP_CAST(float, from[i] - CONV_DSP_OUTPUT0_ZERO_POINT);
        }
    }
}
#endif

#ifdef __cplusplus
}
#endif

#endif
