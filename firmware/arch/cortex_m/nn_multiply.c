/*
 * 64-bit multiplication for cores with 32-bit products only: shorter than the compiler's library function, and without
 * branches, so that the time does not depend on the operands.
 */
#include <stdint.h>

uint64_t __aeabi_lmul(uint64_t a, uint64_t b);

#if __ARM_ARCH == 6 || defined(__ARM_ARCH_8M_BASE__)
uint64_t __aeabi_lmul(uint64_t a, uint64_t b)
{
    uint32_t low = (uint32_t)a, high = (uint32_t)(a >> 32), by = (uint32_t)b, part = (uint32_t)(b >> 32), upper, least;

    /* Halves of 16 bits: low = a1 a0, by = b1 b0. */
    __asm__(".syntax unified\n\t"
            "muls %1, %2\n\t"
            "muls %3, %0\n\t"
            "adds %1, %1, %3\n\t"
            "lsrs %3, %0, #16\n\t" /* a1 */
            "uxth %0, %0\n\t"      /* a0 */
            "lsrs %4, %2, #16\n\t" /* b1 */
            "uxth %2, %2\n\t"      /* b0 */
            "movs %5, %0\n\t"
            "muls %5, %2\n\t" /* a0 b0 */
            "muls %2, %3\n\t" /* a1 b0 */
            "muls %3, %4\n\t" /* a1 b1 */
            "muls %0, %4\n\t" /* a0 b1 */
            "adds %1, %1, %3\n\t"
            "movs %3, #0\n\t"
            "adds %2, %2, %0\n\t" /* its carry is worth 2^16 in the upper word */
            "adcs %3, %3\n\t"
            "lsls %3, %3, #16\n\t"
            "adds %1, %1, %3\n\t"
            "lsls %0, %2, #16\n\t"
            "lsrs %2, %2, #16\n\t"
            "adds %0, %0, %5\n\t"
            "adcs %1, %2"
            : "+l"(low), "+l"(high), "+l"(by), "+l"(part), "=&l"(upper), "=&l"(least)
            :
            : "cc");
    return (uint64_t)high << 32 | low;
}
#endif
