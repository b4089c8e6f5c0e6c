/* net: what its own files share; a program needs conv_dsp.h only. */
#ifndef CONV_DSP_PRIVATE_H
#define CONV_DSP_PRIVATE_H

#include "conv_dsp.h"

extern const int64_t conv_dsp_00_op_kernel[15];

void conv_dsp_00_op(const int8_t *in, int8_t *out, int64_t *scratch, int32_t begin, int32_t end);

#endif
