/* uses: nn_memcmp */
#include "nn_libm.h"

int memcmp(const void *a, const void *b, size_t size);

int memcmp(const void *a, const void *b, size_t size)
{
    return nn_memcmp(a, b, size);
}
