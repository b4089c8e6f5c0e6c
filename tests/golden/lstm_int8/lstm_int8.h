/* net: printed by nnbuild 0.1.0, so change the model instead. */
#ifndef LSTM_INT8_H
#define LSTM_INT8_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LSTM_INT8_HASH "2fb943fba84b7f6f"
#define LSTM_INT8_ARENA_BYTES 64
#define LSTM_INT8_STATE_BYTES 0
#define LSTM_INT8_STEPS 1
#define LSTM_INT8_INPUTS 1
#define LSTM_INT8_OUTPUTS 2

/* input 0, "x0": int8_t [2][1], real = 0.0217146724f * (value - 33) */
#define LSTM_INT8_INPUT0_SIZE 2
#define LSTM_INT8_INPUT0_DIM0 2
#define LSTM_INT8_INPUT0_DIM1 1
#define LSTM_INT8_INPUT0_SCALE 0.0217146724f
#define LSTM_INT8_INPUT0_ZERO_POINT 33

/* output 0, "y0": int16_t [2], real = 3.05175781e-05f * (value - 0) */
#define LSTM_INT8_OUTPUT0_SIZE 2
#define LSTM_INT8_OUTPUT0_DIM0 2
#define LSTM_INT8_OUTPUT0_SCALE 3.05175781e-05f
#define LSTM_INT8_OUTPUT0_ZERO_POINT 0

/* output 1, "y1": int32_t [2], real = 9.53674316e-07f * (value - 0) */
#define LSTM_INT8_OUTPUT1_SIZE 2
#define LSTM_INT8_OUTPUT1_DIM0 2
#define LSTM_INT8_OUTPUT1_SCALE 9.53674316e-07f
#define LSTM_INT8_OUTPUT1_ZERO_POINT 0

#if defined(__GNUC__)
#define LSTM_INT8_ALIGNED __attribute__((aligned(16)))
#else
#define LSTM_INT8_ALIGNED
#endif

/* All memory of a run. The caller owns it; it may be static, and there may be several instances. */
typedef struct lstm_int8_context {
    union {
        int8_t i8[64];
        int16_t i16[32];
        int32_t i32[16];
    } arena;
} LSTM_INT8_ALIGNED lstm_int8_context;

/*
 * A program and the code of the model must come from the same files. If the linker finds no lstm_int8_init_99c590a1,
 * one of them is of another model or version: compile both anew.
 */
#define lstm_int8_init lstm_int8_init_99c590a1

/* Starts a new sequence: resets the state that persists between runs. Call it once before the first run. */
void lstm_int8_init(lstm_int8_context *context);

/* Where to write input `index`; null if there is no such input. Write every input before every run. */
int8_t *lstm_int8_input(lstm_int8_context *context, unsigned index);

/* Computes the outputs from the inputs, and may overwrite the inputs. Returns 0 on success. */
int lstm_int8_run(lstm_int8_context *context);

/* Computes one of LSTM_INT8_STEPS steps; call them in order. For callers that cannot block for a whole run. */
int lstm_int8_step(lstm_int8_context *context, unsigned step);

/* Output `index`, valid until an input is written again; null if there is no such output. */
const void *lstm_int8_output(const lstm_int8_context *context, unsigned index);

#if defined(__GNUC__)
#define LSTM_INT8_INLINE static inline __attribute__((unused))
#else
#define LSTM_INT8_INLINE static inline
#endif

#ifdef __cplusplus
#define LSTM_INT8_CAST(type, value) static_cast<type>(value)
#else
#define LSTM_INT8_CAST(type, value) ((type)(value))
#endif

#ifndef __KERNEL__
/* Rounds x / scale to nearest, halves away from zero; adds the zero point and saturates. */
LSTM_INT8_INLINE int32_t lstm_int8_nearest(float x, float scale, int32_t zero_point, int32_t low, int32_t high)
{
    const float quotient = x / scale;
    if (!(quotient > LSTM_INT8_CAST(float, low - zero_point))) {
        return low;
    }
    if (quotient >= LSTM_INT8_CAST(float, high - zero_point)) {
        return high;
    }
    const int32_t whole = LSTM_INT8_CAST(int32_t, quotient);
    const float rest = quotient - LSTM_INT8_CAST(float, whole);
    return whole + zero_point + (rest >= 0.5f) - (rest <= -0.5f);
}

/* Writes input `index` from values in the model's own units. */
LSTM_INT8_INLINE void lstm_int8_quantize_input(lstm_int8_context *context, unsigned index, const float *values)
{
    if (index == 0) {
        int8_t *to = lstm_int8_input(context, 0);
        for (int32_t i = 0; i < LSTM_INT8_INPUT0_SIZE; ++i) {
            to[i] = LSTM_INT8_CAST(int8_t, lstm_int8_nearest(values[i], LSTM_INT8_INPUT0_SCALE,
                    LSTM_INT8_INPUT0_ZERO_POINT, -128, 127));
        }
    }
}

/* Reads output `index` in the model's own units. */
LSTM_INT8_INLINE void lstm_int8_dequantize_output(const lstm_int8_context *context, unsigned index, float *values)
{
    if (index == 0) {
        const int16_t *from = LSTM_INT8_CAST(const int16_t *, lstm_int8_output(context, 0));
        for (int32_t i = 0; i < LSTM_INT8_OUTPUT0_SIZE; ++i) {
            values[i] = LSTM_INT8_OUTPUT0_SCALE * LSTM_INT8_CAST(float, from[i] - LSTM_INT8_OUTPUT0_ZERO_POINT);
        }
    } else if (index == 1) {
        const int32_t *from = LSTM_INT8_CAST(const int32_t *, lstm_int8_output(context, 1));
        for (int32_t i = 0; i < LSTM_INT8_OUTPUT1_SIZE; ++i) {
            values[i] = LSTM_INT8_OUTPUT1_SCALE * LSTM_INT8_CAST(float, from[i] - LSTM_INT8_OUTPUT1_ZERO_POINT);
        }
    }
}
#endif

#ifdef __cplusplus
}
#endif

#endif
