/* uses: nn_memmove */
#include "nn_libm.h"

void *memmove(void *to, const void *from, size_t size);

void *memmove(void *to, const void *from, size_t size)
{
    return nn_memmove(to, from, size);
}
