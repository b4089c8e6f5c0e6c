/* The rules by which integers are scaled and rounded: the same bits as the reference, in plain C. */
#ifndef NN_NUMERIC_H
#define NN_NUMERIC_H

#include <stdint.h>

int32_t nn_requantize(int32_t acc, int32_t multiplier, int32_t shift);
int32_t nn_requantize64(int64_t acc, int32_t multiplier, int32_t shift);
int32_t nn_scale_once(int64_t acc, int64_t multiplier, int32_t shift, int32_t away);

#endif
