/*
 * Instructions per call on the emulated Cortex-M4F, one line a function: its name, ours, newlib's, in hundredths,
 * hexadecimal.
 */
#include <math.h>

#include "bare.h"
#include "libm_calls.h"
#include "nn_libm.h"

#define TIMER ((volatile uint32_t *)0x40000000) /* TIM2: with -icount shift=0, one tick an instruction */

static volatile float sink;

__attribute__((noinline)) static float same(float x)
{
    __asm__ volatile("" : "+t"(x));
    return x;
}

__attribute__((noinline)) static float first(float x, float y)
{
    __asm__ volatile("" : "+t"(x), "+t"(y));
    return x;
}

__attribute__((noinline)) static uint32_t time_one(float (*f)(float))
{
    const uint32_t begin = TIMER[9];
    for (unsigned i = 0; i < CALLS; i++)
        sink = f(inputs[i]);
    return TIMER[9] - begin;
}

__attribute__((noinline)) static uint32_t time_two(float (*f)(float, float))
{
    const uint32_t begin = TIMER[9];
    for (unsigned i = 0; i < CALLS; i++)
        sink = f(inputs[i], inputs[CALLS + i]);
    return TIMER[9] - begin;
}

/* The call and return are counted with the function: the empty one is a single instruction. */
static void report(const char *name, uint32_t ours, uint32_t theirs, uint32_t empty)
{
    say(name);
    say(" ");
    say_hexadecimal((ours - empty) * 100 / CALLS + 100);
    say(" ");
    say_hexadecimal((theirs - empty) * 100 / CALLS + 100);
    say("\n");
}

#define logisticf plain_logisticf
#define MEASURE_ONE(name, low, high) \
    fill(low, high); \
    report(#name, time_one(nn_##name), time_one(name), time_one(same));
#define MEASURE_TWO(name, low, high) \
    fill(low, high); \
    report(#name, time_two(nn_##name), time_two(name), time_two(first));

void start(void)
{
    TIMER[0] = 1;
    ONE_ARGUMENT(MEASURE_ONE)
    TWO_ARGUMENTS(MEASURE_TWO)
    finish();
}
