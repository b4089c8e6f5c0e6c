/* uses: none */
#include "nn_libm.h"

/*
 * Compare size bytes as unsigned: below, equal to or above zero.
 */
int nn_memcmp(const void *a, const void *b, size_t size)
{
    const unsigned char *left = a;
    const unsigned char *right = b;

    for (; size; size--, left++, right++) {
        if (*left != *right)
            return *left - *right;
        __asm__ volatile("" ::: "memory"); /* or the compiler may make the loop a call of memcmp */
    }
    return 0;
}
