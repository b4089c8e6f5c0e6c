/* net: printed by nnbuild 0.1.0, so change the model instead. */
/*
 * Floats have the same bits with every compiler and all its flags; those that the files cannot undo, as -ffast-math,
 * they refuse. The processor must round to nearest and keep subnormal numbers.
 */
#ifndef LSTM_H
#define LSTM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LSTM_HASH "50dfd60c9f59e6cb"
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

/* All the memory a run works in. The caller owns it; it may be static, and there may be several. */
typedef struct lstm_context {
    union {
        float f32[8];
    } arena;
    union {
        float f32[8];
    } state;
} LSTM_ALIGNED lstm_context;

/* Begins a new sequence: clears what the model carries from run to run. Call it once before the first run. */
void lstm_init(lstm_context *context);

/* Where to write input `index`; null when there is no such input. Write every input before every run. */
float *lstm_input(lstm_context *context, unsigned index);

/* Computes the outputs from the inputs, and may overwrite the inputs. 0 when all went well. */
int lstm_run(lstm_context *context);

/* One of LSTM_STEPS parts of a run, which must be taken in order: for those who cannot stay away for a whole one. */
int lstm_step(lstm_context *context, unsigned step);

/* Where output `index` lies until an input is written again; null when there is no such output. */
const float *lstm_output(const lstm_context *context, unsigned index);

#if defined(__GNUC__)
#define LSTM_INLINE static inline __attribute__((unused))
#else
#define LSTM_INLINE static inline
#endif

#ifndef __KERNEL__
/* Writes input `index` from values in the model's own units, as a check does. */
LSTM_INLINE void lstm_quantize_input(lstm_context *context, unsigned index, const float *values)
{
    if (index == 0) {
        float *to = (float *)lstm_input(context, 0);
        for (int32_t i = 0; i < LSTM_INPUT0_SIZE; ++i) {
            to[i] = values[i];
        }
    }
}

/* Reads output `index` in the model's own units. */
LSTM_INLINE void lstm_dequantize_output(const lstm_context *context, unsigned index, float *values)
{
    if (index == 0) {
        const float *from = (const float *)lstm_output(context, 0);
        for (int32_t i = 0; i < LSTM_OUTPUT0_SIZE; ++i) {
            values[i] = from[i];
        }
    } else if (index == 1) {
        const float *from = (const float *)lstm_output(context, 1);
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
