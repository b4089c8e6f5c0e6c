/* uses: none */
#include "nn_numeric.h"

/* How many of 32 bits are zero before the first that is not. */
int32_t nn_leading_zeros(uint32_t x)
{
#if defined(__GNUC__) && (defined(__ARM_FEATURE_CLZ) || defined(__x86_64__) || defined(__riscv_zbb))
    return x == 0 ? 32 : (int32_t)__builtin_clz(x);
#else
    int32_t count = x == 0 ? 1 : 0;

    for (int32_t step = 16; step > 0; step /= 2) {
        if (x >> (32 - step) == 0) {
            x <<= step;
            count += step;
        }
    }
    return count;
#endif
}
