/* uses: nn_cosf */
#include "nn_libm.h"

float cosf(float x);

float cosf(float x)
{
    return nn_cosf(x);
}
