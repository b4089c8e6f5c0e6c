/* uses: none */
#include "nn_libm.h"

/*
 * Copy size bytes between places that do not overlap; by words where both are aligned. The empty assembly keeps the
 * compiler from making a loop a call of memcpy, and from counting it by a place instead of by what is left: a bound of
 * time knows how much is copied, but not from where.
 */
typedef uint32_t __attribute__((__may_alias__)) nn_memcpy_word;

void *nn_memcpy(void *to, const void *from, size_t size)
{
    unsigned char *target = to;
    const unsigned char *source = from;

    if ((((uintptr_t)target | (uintptr_t)source) & 3) == 0) {
        for (; size >= 4; size -= 4, target += 4, source += 4) {
            *(nn_memcpy_word *)(void *)target = *(const nn_memcpy_word *)(const void *)source;
            __asm__ volatile("" : "+r"(size) : : "memory");
        }
    }
    for (; size; size--) {
        *target++ = *source++;
        __asm__ volatile("" : "+r"(size) : : "memory");
    }
    return to;
}
