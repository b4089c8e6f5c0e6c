/* Conversions of numbers with 16 fractional bits to float32 and to scaled integers, using integers only. */
#ifndef NN_Q16_H
#define NN_Q16_H

#include <stdint.h>

/* The bits of the float32 nearest to value / 2^16; ties to even. */
uint32_t nn_q16_to_float(int32_t value);

/* A float32, given by its bits, times 2^16, towards zero; saturated, and 0 for NaN. */
int32_t nn_q16_from_float(uint32_t bits);

/* value * scale / 2^shift for a shift of at most 62, halves away from zero. The product must be below 2^62 in size. */
int64_t nn_q16_scale(int64_t value, uint32_t scale, uint32_t shift);

#endif
