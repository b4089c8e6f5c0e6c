/* uses: none */
#include "nn_bits.h"
#include "nn_libm.h"

/*
 * |x|: x without its sign bit. Exact.
 */
float nn_fabsf(float x)
{
    return nn_float_of(nn_bits_of(x) & 0x7fffffff);
}
