/* uses: nn_memset */
#include "nn_libm.h"

void *memset(void *to, int byte, size_t size);

void *memset(void *to, int byte, size_t size)
{
    return nn_memset(to, byte, size);
}
