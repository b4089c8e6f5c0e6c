/* uses: nn_logf */
#include "nn_libm.h"

float logf(float x);

float logf(float x)
{
    return nn_logf(x);
}
