/* uses: nn_powf */
#include "nn_libm.h"

float powf(float x, float y);

float powf(float x, float y)
{
    return nn_powf(x, y);
}
