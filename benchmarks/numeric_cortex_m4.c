/*
 * Instructions per call of the integer rules on the emulated Cortex-M4, one line a function: its name and the count in
 * hundredths, hexadecimal.
 */
#include "bare.h"
#include "nn_numeric.h"

#define TIMER ((volatile uint32_t *)0x40000000) /* TIM2: with -icount shift=0, one tick an instruction */

enum { CALLS = 256 };

static volatile int32_t sink;
static int32_t inputs[CALLS], ignored;
static int16_t words[514];
static uint16_t logistic[257];
static int32_t fine[258];

__attribute__((noinline)) static int32_t same(int32_t x)
{
    __asm__ volatile("" : "+r"(x));
    return x;
}

/* X(name, magnitude of x, call): `x` is one of numbers spread between -magnitude and magnitude. */
#define RULES(X) \
    X(requantize, 1 << 20, nn_requantize(x, 1518500250, -9)) \
    X(requantize64, 1 << 30, nn_requantize64((int64_t)x << 8, 15185, -14)) \
    X(rounding_shift, 1 << 30, nn_rounding_shift((int64_t)x << 4, 9)) \
    X(scale_long, 1 << 20, nn_scale_long(x, 1518500250, 40)) \
    X(scale_wide, 1 << 30, nn_scale_wide((int64_t)x << 8, 15185, 30)) \
    X(scale_once, 1 << 20, nn_scale_once(x, 1518500250LL << 20, 61, 1)) \
    X(scale_float, 1 << 20, nn_scale_float(x, 1518500250LL << 20, 61)) \
    X(hold, 1 << 20, nn_hold(x, 1 << 19)) \
    X(divide, 1 << 15, nn_divide(x, 1000, 1518500250, 31)) \
    X(divide_long, 1 << 30, nn_divide_long((int64_t)(x < 0 ? -x : x) << 16, 1000, 4294967)) \
    X(divide_short, 1 << 30, nn_divide_short((uint32_t)(x < 0 ? -x : x), 1000, 4294967)) \
    X(leading_zeros, 1 << 30, nn_leading_zeros((uint32_t)x)) \
    X(reciprocal, 1 << 30, nn_reciprocal((uint32_t)x | 1 << 30, 1)) \
    X(inverse_square_root, 1 << 30, nn_inverse_square_root(x < 0 ? -x : x, &ignored)) \
    X(log_of_sum, 1 << 30, nn_log_of_sum((x < 0 ? -x : x) | 1 << 19)) \
    X(interpolate16, 1 << 15, nn_interpolate16(words, x)) \
    X(logistic16, 1 << 15, nn_logistic16(logistic, x, 1 << 14, 12)) \
    X(tanh16, 1 << 15, nn_tanh16(logistic, x, 1 << 14, 12)) \
    X(fine_sigmoid, 1 << 24, nn_fine_sigmoid(fine, x)) \
    X(fine_tanh, 1 << 24, nn_fine_tanh(fine, x)) \
    X(gate_logistic16, 1 << 15, nn_gate_logistic16(x, 3)) \
    X(gate_tanh16, 1 << 15, nn_gate_tanh16(x, 3)) \
    X(halves_away16, 1 << 15, nn_halves_away16(x, 5)) \
    X(quantizef, 1 << 20, nn_quantizef((float)x, 8000.0f, 3, -128, 127)) \
    X(quantize_bits, 1 << 20, nn_quantize_bits((float)x, 16384000, 2199023255U, 156, 3, -128, 127)) \
    X(real_bits, 1 << 8, (int32_t)nn_real_bits(x, 16384000, 156))
#define DEFINE(name, magnitude, call) \
    __attribute__((noinline)) static int32_t time_##name(int32_t x) \
    { \
        return call; \
    }
RULES(DEFINE)

__attribute__((noinline)) static uint32_t time_of(int32_t (*rule)(int32_t))
{
    const uint32_t begin = TIMER[9];
    for (unsigned i = 0; i < CALLS; i++)
        sink = rule(inputs[i]);
    return TIMER[9] - begin;
}

static void report(const char *name, int32_t (*rule)(int32_t), uint32_t magnitude)
{
    for (uint32_t i = 0; i < CALLS; i++)
        inputs[i] = (int32_t)((uint64_t)(i * 2654435761u) * (2 * magnitude) >> 32) - (int32_t)magnitude;
    const uint32_t empty = time_of(same);
    say(name);
    say(" ");
    say_hexadecimal((time_of(rule) - empty) * 100 / CALLS + 100);
    say("\n");
}

#define MEASURE(name, magnitude, call) report(#name, time_##name, magnitude);

void start(void)
{
    TIMER[0] = 1;
    RULES(MEASURE)
    finish();
}
