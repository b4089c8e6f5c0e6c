/* uses: none */
#include "../nn_numeric.h"

/* a * b / 2^31 to the nearest integer, halves up; by products of halves, where a processor multiplies 32 bits only. */
int32_t nn_high_multiply(int32_t a, int32_t b)
{
    const int32_t a_high = a >> 16, a_low = a & 0xffff, b_high = b >> 16, b_low = b & 0xffff;
    const int32_t first = a_high * b_low + (int32_t)(((uint32_t)a_low * (uint32_t)b_low) >> 16);
    const int32_t second = a_low * b_high + (first & 0xffff) + 0x4000;

    return (int32_t)((uint32_t)(a_high * b_high + (first >> 16)) * 2 + (uint32_t)(second >> 15));
}
