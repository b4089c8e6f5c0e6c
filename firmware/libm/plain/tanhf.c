/* uses: nn_tanhf */
#include "nn_libm.h"

float tanhf(float x);

float tanhf(float x)
{
    return nn_tanhf(x);
}
