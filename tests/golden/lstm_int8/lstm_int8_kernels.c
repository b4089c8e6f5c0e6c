/* net: one function a step, made for its shapes. */
#include "lstm_int8_private.h"

/*
 * The logistic function of x / 2^20 in 2^-20, from 0 to 2^20, for |x| < 2^27. The table holds logistic(i / 16) * 2^30
 * for i from 0 to 256; from the nearest entry s it is Taylor's series to the square, with the derivatives s (1 - s)
 * and s (1 - s) (1 - 2 s).
 */
static int32_t lstm_int8_fine_sigmoid(const int32_t *table, int32_t x)
{
    const int32_t limit = 16 << 20, positive = x < 0 ? -x : x;
    const int32_t size = positive < limit ? positive : limit;
    const int32_t index = (size + (1 << 15)) >> 16, rest = size - index * 65536;
    const int32_t near = table[index]; /* all of these fit 32 bits, and each product is a long one of two such */
    const int32_t slope = (int32_t)(((int64_t)near * ((1 << 30) - near)) >> 30);
    const int32_t bend = (int32_t)(((int64_t)slope * ((1 << 29) - near)) >> 30);
    const int32_t tilted = slope + (int32_t)(((int64_t)rest * bend) >> 20);
    const int32_t result = (near + (int32_t)(((int64_t)rest * tilted) >> 20) + (1 << 9)) >> 10;

    return x < 0 ? (1 << 20) - result : result;
}

/* tanh of x / 2^20 in 2^-20, from -2^20 to 2^20, for |x| < 2^26; by lstm_int8_fine_sigmoid's table. */
static int32_t lstm_int8_fine_tanh(const int32_t *table, int32_t x)
{
    return 2 * lstm_int8_fine_sigmoid(table, 2 * x) - (1 << 20);
}

/* x within -limit ... limit. */
static int32_t lstm_int8_hold(int64_t x, int32_t limit)
{
    const int32_t low = (int32_t)x; /* all of it, but for numbers that are far out */

    if (low != x)
        return x < 0 ? -limit : limit;
    return low < -limit ? -limit : low > limit ? limit : low;
}

/* A sum times a multiplier / 2^right, for `right` from 1 to 62, rounded once, halves up; it fits 32 bits. */
static int32_t lstm_int8_scale_long(int64_t acc, int32_t multiplier, int32_t right)
{
    return (int32_t)((acc * multiplier + ((int64_t)1 << (right - 1))) >> right);
}

/* op: lstm [2][1] -> [2], [2], 48 MACs, integer, about 2,192 cycles */
void lstm_int8_00_op(const int8_t *restrict in, int16_t *restrict out0, int32_t *restrict out1,
        int16_t *restrict scratch, int32_t begin, int32_t end)
{
    if (begin == 0) {
        for (int32_t unit = 0; unit < 2; ++unit) {
            out0[unit] = 0;
            out1[unit] = 0;
        }
    }
    for (int32_t t = begin; t < end; ++t) {
        const int8_t *x = in + t;
        for (int32_t unit = 0; unit < 2; ++unit) {
            int32_t let_in_x_sum = lstm_int8_00_op_kernel_start[unit * 4];
            int32_t forget_x_sum = lstm_int8_00_op_kernel_start[unit * 4 + 1];
            int32_t candidate_x_sum = lstm_int8_00_op_kernel_start[unit * 4 + 2];
            int32_t let_out_x_sum = lstm_int8_00_op_kernel_start[unit * 4 + 3];
            const int32_t value = x[0];
            let_in_x_sum += value * lstm_int8_00_op_kernel[unit * 4];
            forget_x_sum += value * lstm_int8_00_op_kernel[unit * 4 + 1];
            candidate_x_sum += value * lstm_int8_00_op_kernel[unit * 4 + 2];
            let_out_x_sum += value * lstm_int8_00_op_kernel[unit * 4 + 3];
            const int32_t let_in_x = lstm_int8_scale_long(let_in_x_sum, lstm_int8_00_op_kernel_multiplier[unit * 4],
                    lstm_int8_00_op_kernel_right[unit * 4]);
            const int32_t forget_x = lstm_int8_scale_long(forget_x_sum, lstm_int8_00_op_kernel_multiplier[unit * 4 + 1],
                    lstm_int8_00_op_kernel_right[unit * 4 + 1]);
            const int32_t candidate_x = lstm_int8_scale_long(candidate_x_sum,
                    lstm_int8_00_op_kernel_multiplier[unit * 4 + 2], lstm_int8_00_op_kernel_right[unit * 4 + 2]);
            const int32_t let_out_x = lstm_int8_scale_long(let_out_x_sum,
                    lstm_int8_00_op_kernel_multiplier[unit * 4 + 3], lstm_int8_00_op_kernel_right[unit * 4 + 3]);
            int32_t let_in_h_sum = 0;
            int32_t forget_h_sum = 0;
            int32_t candidate_h_sum = 0;
            int32_t let_out_h_sum = 0;
            for (int32_t i = 0; i < 2; ++i) {
                const int32_t value_2 = out0[i];
                let_in_h_sum += value_2 * lstm_int8_00_op_recurrent[(unit * 2 + i) * 4];
                forget_h_sum += value_2 * lstm_int8_00_op_recurrent[(unit * 2 + i) * 4 + 1];
                candidate_h_sum += value_2 * lstm_int8_00_op_recurrent[(unit * 2 + i) * 4 + 2];
                let_out_h_sum += value_2 * lstm_int8_00_op_recurrent[(unit * 2 + i) * 4 + 3];
            }
            const int32_t let_in_h = lstm_int8_scale_long(let_in_h_sum, lstm_int8_00_op_recurrent_multiplier[unit * 4],
                    lstm_int8_00_op_recurrent_right[unit * 4]);
            const int32_t forget_h = lstm_int8_scale_long(forget_h_sum,
                    lstm_int8_00_op_recurrent_multiplier[unit * 4 + 1], lstm_int8_00_op_recurrent_right[unit * 4 + 1]);
            const int32_t candidate_h = lstm_int8_scale_long(candidate_h_sum,
                    lstm_int8_00_op_recurrent_multiplier[unit * 4 + 2], lstm_int8_00_op_recurrent_right[unit * 4 + 2]);
            const int32_t let_out_h = lstm_int8_scale_long(let_out_h_sum,
                    lstm_int8_00_op_recurrent_multiplier[unit * 4 + 3], lstm_int8_00_op_recurrent_right[unit * 4 + 3]);
            int32_t let_in = (int32_t)(let_in_x + let_in_h);
            let_in = lstm_int8_fine_sigmoid(lstm_int8_00_op_sigmoid, let_in);
            int32_t forget = (int32_t)(forget_x + forget_h);
            forget = lstm_int8_fine_sigmoid(lstm_int8_00_op_sigmoid, forget);
            int32_t candidate = (int32_t)(candidate_x + candidate_h);
            candidate = lstm_int8_fine_tanh(lstm_int8_00_op_sigmoid, candidate);
            int32_t let_out = (int32_t)(let_out_x + let_out_h);
            let_out = lstm_int8_fine_sigmoid(lstm_int8_00_op_sigmoid, let_out);
            const int32_t cell = lstm_int8_hold((((int64_t)forget * out1[unit] + 524288) >> 20)
                    + (((int64_t)let_in * candidate + 524288) >> 20), INT32_MAX);
            int32_t shown = lstm_int8_hold((int64_t)cell, 33554432);
            shown = lstm_int8_fine_tanh(lstm_int8_00_op_sigmoid, shown);
            out1[unit] = cell;
            scratch[unit] = (int16_t)lstm_int8_hold(((int64_t)let_out * shown + 16777216) >> 25, 32767);
        }
        for (int32_t unit = 0; unit < 2; ++unit) {
            out0[unit] = (int16_t)scratch[unit];
        }
    }
}
