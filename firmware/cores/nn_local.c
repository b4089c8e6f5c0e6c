#include "nn_local.h"

#include "nn_cores_port.h"

typedef uint32_t __attribute__((may_alias)) word;

#define AT_ONCE 8 /* words */

/* Source and destination have the same offset within a word, as plans ensure; copies words from the first boundary on. */
NN_CORES_COPYING void nn_local_copy(void *to, const void *from, int32_t size)
{
    unsigned char       *target = to;
    const unsigned char *source = from;

    for (; size > 0 && (((uintptr_t)target | (uintptr_t)source) & 3u) != 0; size--) {
        *target++ = *source++;
    }
    for (; size >= 4 * AT_ONCE; size -= 4 * AT_ONCE) {
        word *const       words = (word *)(void *)target;
        const word *const given = (const word *)(const void *)source;

        words[0] = given[0];
        words[1] = given[1];
        words[2] = given[2];
        words[3] = given[3];
        words[4] = given[4];
        words[5] = given[5];
        words[6] = given[6];
        words[7] = given[7];
        target += 4 * AT_ONCE;
        source += 4 * AT_ONCE;
    }
    for (; size > 0; size--) {
        *target++ = *source++;
        __asm__ volatile("" ::: "memory"); /* otherwise the loop becomes a call of memcpy */
    }
}
