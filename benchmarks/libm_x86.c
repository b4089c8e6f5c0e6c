/* One function a measured function and library, for callgrind to count; see libm.py. */
#include <math.h>

#include "libm_calls.h"
#include "nn_libm.h"

static volatile float sink;

__attribute__((noinline)) static float same(float x)
{
    __asm__ volatile("" : "+x"(x));
    return x;
}

__attribute__((noinline)) static float first(float x, float y)
{
    __asm__ volatile("" : "+x"(x), "+x"(y));
    return x;
}

#define ONE(label, f) \
    __attribute__((noinline)) static void measure_##label(void) \
    { \
        for (unsigned i = 0; i < CALLS; i++) \
            sink = f(inputs[i]); \
    }
#define TWO(label, f) \
    __attribute__((noinline)) static void measure_##label(void) \
    { \
        for (unsigned i = 0; i < CALLS; i++) \
            sink = f(inputs[i], inputs[CALLS + i]); \
    }
#define logisticf plain_logisticf
#define BOTH_ONE(name, low, high) ONE(ours_##name, nn_##name) ONE(theirs_##name, name)
#define BOTH_TWO(name, low, high) TWO(ours_##name, nn_##name) TWO(theirs_##name, name)
#define CALL(name, low, high) \
    fill(low, high); \
    measure_ours_##name(); \
    measure_theirs_##name();

ONE(empty_one, same)
TWO(empty_two, first)
ONE_ARGUMENT(BOTH_ONE)
TWO_ARGUMENTS(BOTH_TWO)

/* The dynamic linker's first call of each function would be counted too, so the program is linked with -z now. */
int main(void)
{
    measure_empty_one();
    measure_empty_two();
    ONE_ARGUMENT(CALL)
    TWO_ARGUMENTS(CALL)
    return 0;
}
