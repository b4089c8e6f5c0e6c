/* net: what its own files share; a program needs lstm.h only. */
#ifndef LSTM_PRIVATE_H
#define LSTM_PRIVATE_H

#include "lstm.h"

extern const float lstm_00_op_kernel[8];
extern const float lstm_00_op_recurrent[16];

void lstm_00_op(const float *in0, const float *in1, const float *in2, float *out0, float *out1, float *scratch,
        int32_t begin, int32_t end);

#endif
