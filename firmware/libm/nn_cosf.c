/* uses: nn_trigf */
#include "nn_bits.h"
#include "nn_libm.h"

/*
 * The cosine of x. Largest error: 0.903 ULP, for every finite x.
 */
float nn_cosf(float x)
{
    return nn_trigf(x, 1);
}
