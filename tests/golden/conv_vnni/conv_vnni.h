/* net: printed by nnbuild 0.1.0, so change the model instead. */
#ifndef CONV_VNNI_H
#define CONV_VNNI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CONV_VNNI_HASH "cc07b580ea2a143b"
#define CONV_VNNI_ARENA_BYTES 320
#define CONV_VNNI_STATE_BYTES 0
#define CONV_VNNI_STEPS 1
#define CONV_VNNI_INPUTS 1
#define CONV_VNNI_OUTPUTS 1

/* input 0, "x0": int8_t [5][5][4], real = 0.0201783348f * (value - -29) */
#define CONV_VNNI_INPUT0_SIZE 100
#define CONV_VNNI_INPUT0_DIM0 5
#define CONV_VNNI_INPUT0_DIM1 5
#define CONV_VNNI_INPUT0_DIM2 4
#define CONV_VNNI_INPUT0_SCALE 0.0201783348f
#define CONV_VNNI_INPUT0_ZERO_POINT -29

/* output 0, "y0": int8_t [3][3][3], real = 0.142717317f * (value - 89) */
#define CONV_VNNI_OUTPUT0_SIZE 27
#define CONV_VNNI_OUTPUT0_DIM0 3
#define CONV_VNNI_OUTPUT0_DIM1 3
#define CONV_VNNI_OUTPUT0_DIM2 3
#define CONV_VNNI_OUTPUT0_SCALE 0.142717317f
#define CONV_VNNI_OUTPUT0_ZERO_POINT 89

#if defined(__GNUC__)
#define CONV_VNNI_ALIGNED __attribute__((aligned(16)))
#else
#define CONV_VNNI_ALIGNED
#endif

/* All memory of a run. The caller owns it; it may be static, and there may be several instances. */
typedef struct conv_vnni_context {
    union {
        int8_t i8[320];
    } arena;
} CONV_VNNI_ALIGNED conv_vnni_context;

/*
 * A program and the code of the model must come from the same files. If the linker finds no conv_vnni_init_de0f15ae,
 * one of them is of another model or version: compile both anew.
 */
#define conv_vnni_init conv_vnni_init_de0f15ae

/* Starts a new sequence: resets the state that persists between runs. Call it once before the first run. */
void conv_vnni_init(conv_vnni_context *context);

/* Where to write input `index`; null if there is no such input. Write every input before every run. */
int8_t *conv_vnni_input(conv_vnni_context *context, unsigned index);

/* Computes the outputs from the inputs, and may overwrite the inputs. Returns 0 on success. */
int conv_vnni_run(conv_vnni_context *context);

/* Computes one of CONV_VNNI_STEPS steps; call them in order. For callers that cannot block for a whole run. */
int conv_vnni_step(conv_vnni_context *context, unsigned step);

/* Output `index`, valid until an input is written again; null if there is no such output. */
const int8_t *conv_vnni_output(const conv_vnni_context *context, unsigned index);

#if defined(__GNUC__)
#define CONV_VNNI_INLINE static inline __attribute__((unused))
#else
#define CONV_VNNI_INLINE static inline
#endif

#ifdef __cplusplus
#define CONV_VNNI_CAST(type, value) static_cast<type>(value)
#else
#define CONV_VNNI_CAST(type, value) ((type)(value))
#endif

#ifndef __KERNEL__
/* Rounds x / scale to nearest, halves away from zero; adds the zero point and saturates. */
CONV_VNNI_INLINE int32_t conv_vnni_nearest(float x, float scale, int32_t zero_point, int32_t low, int32_t high)
{
    const float quotient = x / scale;
    if (!(quotient > CONV_VNNI_CAST(float, low - zero_point))) {
        return low;
    }
    if (quotient >= CONV_VNNI_CAST(float, high - zero_point)) {
        return high;
    }
    const int32_t whole = CONV_VNNI_CAST(int32_t, quotient);
    const float rest = quotient - CONV_VNNI_CAST(float, whole);
    return whole + zero_point + (rest >= 0.5f) - (rest <= -0.5f);
}

/* Writes input `index` from values in the model's own units. */
CONV_VNNI_INLINE void conv_vnni_quantize_input(conv_vnni_context *context, unsigned index, const float *values)
{
    if (index == 0) {
        int8_t *to = conv_vnni_input(context, 0);
        for (int32_t i = 0; i < CONV_VNNI_INPUT0_SIZE; ++i) {
            to[i] = CONV_VNNI_CAST(int8_t, conv_vnni_nearest(values[i], CONV_VNNI_INPUT0_SCALE,
                    CONV_VNNI_INPUT0_ZERO_POINT, -128, 127));
        }
    }
}

/* Reads output `index` in the model's own units. */
CONV_VNNI_INLINE void conv_vnni_dequantize_output(const conv_vnni_context *context, unsigned index, float *values)
{
    if (index == 0) {
        const int8_t *from = conv_vnni_output(context, 0);
        for (int32_t i = 0; i < CONV_VNNI_OUTPUT0_SIZE; ++i) {
            values[i] = CONV_VNNI_OUTPUT0_SCALE * CONV_VNNI_CAST(float, from[i] - CONV_VNNI_OUTPUT0_ZERO_POINT);
        }
    }
}
#endif

#ifdef __cplusplus
}
#endif

#endif
