/* tiny dense: printed by nnbuild 0.1.0, so change the model instead. */
/*
 * Float results are identical with every compiler and all its flags; flags that the files cannot undo, such as
 * -ffast-math, are rejected. The processor must round to nearest and keep subnormal numbers.
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

/* All memory of a run. The caller owns it; it may be static, and there may be several instances. */
typedef struct dense_context {
    union {
        float f32[8];
    } arena;
} DENSE_ALIGNED dense_context;

/*
 * A program and the code of the model must come from the same files. If the linker finds no dense_init_5e48c702,
 * one of them is of another model or version: compile both anew.
 */
#define dense_init dense_init_5e48c702

/* Starts a new sequence: resets the state that persists between runs. Call it once before the first run. */
void dense_init(dense_context *context);

/* Where to write input `index`; null if there is no such input. Write every input before every run. */
float *dense_input(dense_context *context, unsigned index);

/* Computes the outputs from the inputs, and may overwrite the inputs. Returns 0 on success. */
int dense_run(dense_context *context);

/* Computes one of DENSE_STEPS steps; call them in order. For callers that cannot block for a whole run. */
int dense_step(dense_context *context, unsigned step);

/* Output `index`, valid until an input is written again; null if there is no such output. */
const float *dense_output(const dense_context *context, unsigned index);

#if defined(__GNUC__)
#define DENSE_INLINE static inline __attribute__((unused))
#else
#define DENSE_INLINE static inline
#endif

#ifndef __KERNEL__
/* Writes input `index` from values in the model's own units. */
DENSE_INLINE void dense_quantize_input(dense_context *context, unsigned index, const float *values)
{
    if (index == 0) {
        float *to = dense_input(context, 0);
        for (int32_t i = 0; i < DENSE_INPUT0_SIZE; ++i) {
            to[i] = values[i];
        }
    }
}

/* Reads output `index` in the model's own units. */
DENSE_INLINE void dense_dequantize_output(const dense_context *context, unsigned index, float *values)
{
    if (index == 0) {
        const float *from = dense_output(context, 0);
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
