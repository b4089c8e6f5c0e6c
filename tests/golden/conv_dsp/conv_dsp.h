/* net: printed by nnbuild 0.1.0, so change the model instead. */
#ifndef CONV_DSP_H
#define CONV_DSP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CONV_DSP_HASH "3253e5001a4a0f38"
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

/* All the memory a run works in. The caller owns it; it may be static, and there may be several. */
typedef struct conv_dsp_context {
    union {
        int8_t i8[176];
        int64_t i64[22];
    } arena;
} CONV_DSP_ALIGNED conv_dsp_context;

/* Begins a new sequence: clears what the model carries from run to run. Call it once before the first run. */
void conv_dsp_init(conv_dsp_context *context);

/* Where to write input `index`; null when there is no such input. Write every input before every run. */
int8_t *conv_dsp_input(conv_dsp_context *context, unsigned index);

/* Computes the outputs from the inputs, and may overwrite the inputs. 0 when all went well. */
int conv_dsp_run(conv_dsp_context *context);

/* One of CONV_DSP_STEPS parts of a run, which must be taken in order: for those who cannot stay away for a whole one.
   */
int conv_dsp_step(conv_dsp_context *context, unsigned step);

/* Where output `index` lies until an input is written again; null when there is no such output. */
const int8_t *conv_dsp_output(const conv_dsp_context *context, unsigned index);

#ifdef __cplusplus
}
#endif

#endif
