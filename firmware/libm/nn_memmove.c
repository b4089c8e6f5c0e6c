/* uses: nn_memcpy */
#include "nn_libm.h"

/*
 * Copy size bytes between places that may overlap.
 */
void *nn_memmove(void *to, const void *from, size_t size)
{
    unsigned char *target = to;
    const unsigned char *source = from;

    if ((uintptr_t)target - (uintptr_t)source >= size) /* reading stays ahead of writing */
        return nn_memcpy(to, from, size);
    while (size--) {
        target[size] = source[size];
        __asm__ volatile("" ::: "memory"); /* or the compiler may make the loop a call of memmove */
    }
    return to;
}
