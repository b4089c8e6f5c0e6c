/* net: printed by nnbuild 0.1.0, so change the model instead. */
#ifndef DEPTHWISE_DSP_H
#define DEPTHWISE_DSP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DEPTHWISE_DSP_HASH "0b2fb6e8abc4fac1"
#define DEPTHWISE_DSP_ARENA_BYTES 560
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

/* All the memory a run works in. The caller owns it; it may be static, and there may be several. */
typedef struct depthwise_dsp_context {
    union {
        int8_t i8[560];
        int32_t i32[140];
    } arena;
} DEPTHWISE_DSP_ALIGNED depthwise_dsp_context;

/* Begins a new sequence: clears what the model carries from run to run. Call it once before the first run. */
void depthwise_dsp_init(depthwise_dsp_context *context);

/* Where to write input `index`; null when there is no such input. Write every input before every run. */
int8_t *depthwise_dsp_input(depthwise_dsp_context *context, unsigned index);

/* Computes the outputs from the inputs, and may overwrite the inputs. 0 when all went well. */
int depthwise_dsp_run(depthwise_dsp_context *context);

/* One of DEPTHWISE_DSP_STEPS parts of a run, which must be taken in order: for those who cannot stay away for a whole
   one. */
int depthwise_dsp_step(depthwise_dsp_context *context, unsigned step);

/* Where output `index` lies until an input is written again; null when there is no such output. */
const int8_t *depthwise_dsp_output(const depthwise_dsp_context *context, unsigned index);

#ifdef __cplusplus
}
#endif

#endif
