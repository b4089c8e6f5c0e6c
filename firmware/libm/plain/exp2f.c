/* uses: nn_exp2f */
#include "nn_libm.h"

float exp2f(float x);

float exp2f(float x)
{
    return nn_exp2f(x);
}
