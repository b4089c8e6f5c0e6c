/* uses: nn_roundf */
#include "nn_libm.h"

float roundf(float x);

float roundf(float x)
{
    return nn_roundf(x);
}
