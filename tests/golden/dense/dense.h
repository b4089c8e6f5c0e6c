/* tiny dense: printed by nnbuild 0.1.0, so change the model instead. */
/*
 * Floats have the same bits with every compiler and all its flags; those that the files cannot undo, as -ffast-math,
 * they refuse. The processor must round to nearest and keep subnormal numbers.
 */
#ifndef DENSE_H
#define DENSE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DENSE_HASH "121dde3a36981ab3"
#define DENSE_ARENA_BYTES 32
#define DENSE_STATE_BYTES 0
#define DENSE_STEPS 2
#define DENSE_INPUTS 1
#define DENSE_OUTPUTS 1

/* input 0, "x": float [3] */
#define DENSE_INPUT0_SIZE 3
#define DENSE_INPUT0_DIM0 3

/* output 0, "bent": float [2] */
#define DENSE_OUTPUT0_SIZE 2
#define DENSE_OUTPUT0_DIM0 2

#if defined(__GNUC__)
#define DENSE_ALIGNED __attribute__((aligned(16)))
#else
#define DENSE_ALIGNED
#endif

/* All the memory a run works in. The caller owns it; it may be static, and there may be several. */
typedef struct dense_context {
    union {
        float f32[8];
    } arena;
} DENSE_ALIGNED dense_context;

/* Begins a new sequence: clears what the model carries from run to run. Call it once before the first run. */
void dense_init(dense_context *context);

/* Where to write input `index`; null when there is no such input. Write every input before every run. */
float *dense_input(dense_context *context, unsigned index);

/* Computes the outputs from the inputs, and may overwrite the inputs. 0 when all went well. */
int dense_run(dense_context *context);

/* One of DENSE_STEPS parts of a run, which must be taken in order: for those who cannot stay away for a whole one. */
int dense_step(dense_context *context, unsigned step);

/* Where output `index` lies until an input is written again; null when there is no such output. */
const float *dense_output(const dense_context *context, unsigned index);

#if defined(__GNUC__)
#define DENSE_INLINE static inline __attribute__((unused))
#else
#define DENSE_INLINE static inline
#endif

#ifndef __KERNEL__
/* Writes input `index` from values in the model's own units, as a check does. */
DENSE_INLINE void dense_quantize_input(dense_context *context, unsigned index, const float *values)
{
    if (index == 0) {
        float *to = (float *)dense_input(context, 0);
        for (int32_t i = 0; i < DENSE_INPUT0_SIZE; ++i) {
            to[i] = values[i];
        }
    }
}

/* Reads output `index` in the model's own units. */
DENSE_INLINE void dense_dequantize_output(const dense_context *context, unsigned index, float *values)
{
    if (index == 0) {
        const float *from = (const float *)dense_output(context, 0);
        for (int32_t i = 0; i < DENSE_OUTPUT0_SIZE; ++i) {
            values[i] = from[i];
        }
    }
}
#endif

#ifdef __cplusplus
}
#endif

#endif
