/* net: printed by nnbuild 0.1.0, so change the model instead. */
/*
 * Float results are identical with every compiler and all its flags; flags that the files cannot undo, such as
 * -ffast-math, are rejected. The processor must round to nearest and keep subnormal numbers.
 */
#ifndef LSTM_H
#define LSTM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LSTM_HASH "e26423b72b311d58"
#define LSTM_ARENA_BYTES 32
#define LSTM_STATE_BYTES 32
#define LSTM_STEPS 1
#define LSTM_INPUTS 1
#define LSTM_OUTPUTS 2

/* input 0, "x0": float [1][1] */
#define LSTM_INPUT0_SIZE 1
#define LSTM_INPUT0_DIM0 1
#define LSTM_INPUT0_DIM1 1

/* output 0, "y0": float [2] */
#define LSTM_OUTPUT0_SIZE 2
#define LSTM_OUTPUT0_DIM0 2

/* output 1, "y1": float [2] */
#define LSTM_OUTPUT1_SIZE 2
#define LSTM_OUTPUT1_DIM0 2

#if defined(__GNUC__)
#define LSTM_ALIGNED __attribute__((aligned(16)))
#else
#define LSTM_ALIGNED
#endif

/* All memory of a run. The caller owns it; it may be static, and there may be several instances. */
typedef struct lstm_context {
    union {
        float f32[8];
    } arena;
    union {
        float f32[8];
    } state;
} LSTM_ALIGNED lstm_context;

/*
 * A program and the code of the model must come from the same files. If the linker finds no lstm_init_7a68dad9,
 * one of them is of another model or version: compile both anew.
 */
#define lstm_init lstm_init_7a68dad9

/* Starts a new sequence: resets the state that persists between runs. Call it once before the first run. */
void lstm_init(lstm_context *context);

/* Where to write input `index`; null if there is no such input. Write every input before every run. */
float *lstm_input(lstm_context *context, unsigned index);

/* Computes the outputs from the inputs, and may overwrite the inputs. Returns 0 on success. */
int lstm_run(lstm_context *context);

/* Computes one of LSTM_STEPS steps; call them in order. For callers that cannot block for a whole run. */
int lstm_step(lstm_context *context, unsigned step);

/* Output `index`, valid until an input is written again; null if there is no such output. */
const float *lstm_output(const lstm_context *context, unsigned index);

#if defined(__GNUC__)
#define LSTM_INLINE static inline __attribute__((unused))
#else
#define LSTM_INLINE static inline
#endif

#ifndef __KERNEL__
/* Writes input `index` from values in the model's own units. */
LSTM_INLINE void lstm_quantize_input(lstm_context *context, unsigned index, const float *values)
{
    if (index == 0) {
        float *to = lstm_input(context, 0);
        for (int32_t i = 0; i < LSTM_INPUT0_SIZE; ++i) {
            to[i] = values[i];
        }
    }
}

/* Reads output `index` in the model's own units. */
LSTM_INLINE void lstm_dequantize_output(const lstm_context *context, unsigned index, float *values)
{
    if (index == 0) {
        const float *from = lstm_output(context, 0);
        for (int32_t i = 0; i < LSTM_OUTPUT0_SIZE; ++i) {
            values[i] = from[i];
        }
    } else if (index == 1) {
        const float *from = lstm_output(context, 1);
        for (int32_t i = 0; i < LSTM_OUTPUT1_SIZE; ++i) {
            values[i] = from[i];
        }
    }
}
#endif

#ifdef __cplusplus
}
#endif

#endif
