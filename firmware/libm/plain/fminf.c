/* uses: nn_fminf */
#include "nn_libm.h"

float fminf(float x, float y);

float fminf(float x, float y)
{
    return nn_fminf(x, y);
}
