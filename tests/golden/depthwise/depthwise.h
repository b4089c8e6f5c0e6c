/* net: printed by nnbuild 0.1.0, so change the model instead. */
/*
 * Floats have the same bits with every compiler and all its flags; those that the files cannot undo, as -ffast-math,
 * they refuse. The processor must round to nearest and keep subnormal numbers.
 */
#ifndef DEPTHWISE_H
#define DEPTHWISE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DEPTHWISE_HASH "316c5b7af343b019"
#define DEPTHWISE_ARENA_BYTES 64
#define DEPTHWISE_STATE_BYTES 0
#define DEPTHWISE_STEPS 1
#define DEPTHWISE_INPUTS 1
#define DEPTHWISE_OUTPUTS 1

/* input 0, "x0": float [3][3][1] */
#define DEPTHWISE_INPUT0_SIZE 9
#define DEPTHWISE_INPUT0_DIM0 3
#define DEPTHWISE_INPUT0_DIM1 3
#define DEPTHWISE_INPUT0_DIM2 1

/* output 0, "y0": float [1][1][3] */
#define DEPTHWISE_OUTPUT0_SIZE 3
#define DEPTHWISE_OUTPUT0_DIM0 1
#define DEPTHWISE_OUTPUT0_DIM1 1
#define DEPTHWISE_OUTPUT0_DIM2 3

#if defined(__GNUC__)
#define DEPTHWISE_ALIGNED __attribute__((aligned(16)))
#else
#define DEPTHWISE_ALIGNED
#endif

/* All the memory a run works in. The caller owns it; it may be static, and there may be several. */
typedef struct depthwise_context {
    union {
        float f32[16];
    } arena;
} DEPTHWISE_ALIGNED depthwise_context;

/* Begins a new sequence: clears what the model carries from run to run. Call it once before the first run. */
void depthwise_init(depthwise_context *context);

/* Where to write input `index`; null when there is no such input. Write every input before every run. */
float *depthwise_input(depthwise_context *context, unsigned index);

/* Computes the outputs from the inputs, and may overwrite the inputs. 0 when all went well. */
int depthwise_run(depthwise_context *context);

/* One of DEPTHWISE_STEPS parts of a run, which must be taken in order: for those who cannot stay away for a whole one.
   */
int depthwise_step(depthwise_context *context, unsigned step);

/* Where output `index` lies until an input is written again; null when there is no such output. */
const float *depthwise_output(const depthwise_context *context, unsigned index);

#ifdef __cplusplus
}
#endif

#endif
