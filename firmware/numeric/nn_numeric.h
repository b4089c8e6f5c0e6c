/* The rules by which integers are scaled and rounded: the same bits as the reference, in plain C. */
#ifndef NN_NUMERIC_H
#define NN_NUMERIC_H

#include <stdint.h>

int32_t nn_requantize(int32_t acc, int32_t multiplier, int32_t shift);
int32_t nn_requantize64(int64_t acc, int32_t multiplier, int32_t shift);
int32_t nn_scale_once(int64_t acc, int64_t multiplier, int32_t shift, int32_t away);
int32_t nn_scale_float(int64_t acc, int64_t multiplier, int32_t shift);
int32_t nn_scale_long(int64_t acc, int32_t multiplier, int32_t right);
int32_t nn_scale_wide(int64_t acc, int32_t multiplier, int32_t right);
int32_t nn_divide(int32_t a, int32_t b, int32_t multiplier, int32_t right);
int64_t nn_divide_long(int64_t x, int32_t by, uint32_t inverse);
uint32_t nn_divide_short(uint32_t x, uint32_t by, uint32_t inverse);
uint32_t nn_quotient16(uint32_t x, uint32_t by);

int32_t nn_high_multiply(int32_t a, int32_t b);
int32_t nn_rounding_shift(int64_t x, int32_t amount);
int32_t nn_hold(int64_t x, int32_t limit);
int32_t nn_shift_left(int32_t x, int32_t amount);
int32_t nn_leading_zeros(uint32_t x);
int32_t nn_reciprocal(uint32_t x, int32_t headroom);
int32_t nn_inverse_square_root(int32_t x, int32_t *right);
int32_t nn_log_of_sum(int32_t x);

int32_t nn_interpolate16(const int16_t *table, int32_t x);
int32_t nn_logistic16(const uint16_t *table, int32_t x, int32_t multiplier, int32_t shift);
int32_t nn_fine_sigmoid(const int32_t *table, int32_t x);
int32_t nn_fine_tanh(const int32_t *table, int32_t x);
int32_t nn_tanh16(const uint16_t *table, int32_t x, int32_t multiplier, int32_t shift);

int32_t nn_quantizef(float x, float scale, int32_t zero_point, int32_t low, int32_t high);
int32_t nn_quantize_bits(float x, uint32_t mantissa, uint32_t inverse, int32_t exponent, int32_t zero_point,
                         int32_t low, int32_t high);
float nn_real_bits(int32_t x, uint32_t mantissa, int32_t exponent);

int32_t nn_high_multiply16(int32_t a, int32_t b);
int32_t nn_halves_away16(int32_t x, int32_t amount);
int32_t nn_reciprocal_of_sum16(int32_t a);
int32_t nn_exp_negative16(int32_t a, int32_t before);
int32_t nn_gate_logistic16(int32_t a, int32_t before);
int32_t nn_gate_tanh16(int32_t a, int32_t before);

#endif
