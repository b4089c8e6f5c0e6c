/* uses: nn_expm1f */
#include "nn_libm.h"

float expm1f(float x);

float expm1f(float x)
{
    return nn_expm1f(x);
}
