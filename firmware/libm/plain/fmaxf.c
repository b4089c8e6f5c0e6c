/* uses: nn_fmaxf */
#include "nn_libm.h"

float fmaxf(float x, float y);

float fmaxf(float x, float y)
{
    return nn_fmaxf(x, y);
}
