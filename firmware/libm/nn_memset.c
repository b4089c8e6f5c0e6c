/* uses: none */
#include "nn_libm.h"

/*
 * Set size bytes to one value; by words where aligned.
 */
typedef uint32_t __attribute__((__may_alias__)) nn_memset_word;

void *nn_memset(void *to, int byte, size_t size)
{
    unsigned char *target = to;
    const uint32_t word = (uint32_t)(unsigned char)byte * 0x01010101;

    if (((uintptr_t)target & 3) == 0) {
        for (; size >= 4; size -= 4, target += 4) {
            *(nn_memset_word *)(void *)target = word;
            __asm__ volatile("" ::: "memory"); /* or the compiler may make the loop a call of memset */
        }
    }
    for (; size; size--) {
        *target++ = (unsigned char)byte;
        __asm__ volatile("" ::: "memory");
    }
    return to;
}
