/* uses: nn_memcpy */
#include "nn_libm.h"

void *memcpy(void *to, const void *from, size_t size);

void *memcpy(void *to, const void *from, size_t size)
{
    return nn_memcpy(to, from, size);
}
