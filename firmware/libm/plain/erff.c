/* uses: nn_erff */
#include "nn_libm.h"

float erff(float x);

float erff(float x)
{
    return nn_erff(x);
}
