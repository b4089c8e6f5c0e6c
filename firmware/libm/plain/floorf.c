/* uses: nn_floorf */
#include "nn_libm.h"

float floorf(float x);

float floorf(float x)
{
    return nn_floorf(x);
}
