/* net: what its own files share; a program needs depthwise_dsp.h only. */
#ifndef DEPTHWISE_DSP_PRIVATE_H
#define DEPTHWISE_DSP_PRIVATE_H

#include "depthwise_dsp.h"

extern const int32_t depthwise_dsp_00_op_stream[30];

void depthwise_dsp_00_op(const int8_t *in, int8_t *out, int32_t *scratch, int32_t begin, int32_t end);

#endif
