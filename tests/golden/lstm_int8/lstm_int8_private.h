/* net: what its own files share; a program needs lstm_int8.h only. */
#ifndef LSTM_INT8_PRIVATE_H
#define LSTM_INT8_PRIVATE_H

#include "lstm_int8.h"

extern const int8_t lstm_int8_00_op_kernel[8];
extern const int32_t lstm_int8_00_op_kernel_start[8];
extern const int32_t lstm_int8_00_op_kernel_multiplier[8];
extern const int8_t lstm_int8_00_op_kernel_right[8];
extern const int8_t lstm_int8_00_op_recurrent[16];
extern const int32_t lstm_int8_00_op_recurrent_multiplier[8];
extern const int8_t lstm_int8_00_op_recurrent_right[8];
extern const int32_t lstm_int8_00_op_sigmoid[257];

/*
 * Where gcc 12 knows the object in which two arrays lie, as with -flto or in one file, it may compute an address in
 * one from that in the other, take this for an access to address 0, and drop the call. So calls tell a step nothing.
 */
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define LSTM_INT8_APART __attribute__((noipa))
#elif defined(__GNUC__) && !defined(__clang__)
#define LSTM_INT8_APART __attribute__((noinline, noclone))
#else
#define LSTM_INT8_APART
#endif

LSTM_INT8_APART void lstm_int8_00_op(const int8_t *restrict in, int16_t *restrict out0, int32_t *restrict out1,
        int16_t *restrict scratch, int32_t begin, int32_t end);

#endif
