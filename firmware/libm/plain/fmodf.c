/* uses: nn_fmodf */
#include "nn_libm.h"

float fmodf(float x, float y);

float fmodf(float x, float y)
{
    return nn_fmodf(x, y);
}
