/* uses: nn_log1pf */
#include "nn_libm.h"

float log1pf(float x);

float log1pf(float x)
{
    return nn_log1pf(x);
}
