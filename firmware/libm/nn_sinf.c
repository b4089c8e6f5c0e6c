/* uses: nn_trigf */
#include "nn_bits.h"
#include "nn_libm.h"

/*
 * The sine of x. Largest error: 0.899 ULP, for every finite x.
 */
float nn_sinf(float x)
{
    return nn_trigf(x, 0);
}
