/* The rules by which integers are scaled and rounded: the same bits as the reference, in plain C. */
#ifndef NN_NUMERIC_H
#define NN_NUMERIC_H

#include <stdint.h>

int32_t nn_requantize(int32_t acc, int32_t multiplier, int32_t shift);
int32_t nn_requantize64(int64_t acc, int32_t multiplier, int32_t shift);
int32_t nn_scale_once(int64_t acc, int64_t multiplier, int32_t shift, int32_t away);

int32_t nn_high_multiply16(int32_t a, int32_t b);
int32_t nn_halves_away16(int32_t x, int32_t amount);
int32_t nn_shift_left16(int32_t x, int32_t amount);
int32_t nn_reciprocal_of_sum16(int32_t a);
int32_t nn_exp_negative16(int32_t a, int32_t before);
int32_t nn_gate_logistic16(int32_t a, int32_t before);
int32_t nn_gate_tanh16(int32_t a, int32_t before);

#endif
