/* uses: nn_scalbnf */
#include "nn_libm.h"

float scalbnf(float x, int n);

float scalbnf(float x, int n)
{
    return nn_scalbnf(x, n);
}
