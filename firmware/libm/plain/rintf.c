/* uses: nn_rintf */
#include "nn_libm.h"

float rintf(float x);

float rintf(float x)
{
    return nn_rintf(x);
}
