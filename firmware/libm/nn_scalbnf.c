/* uses: none */
#include "nn_bits.h"
#include "nn_libm.h"

/*
 * x * 2^n, rounded once. Exact unless the result is subnormal or too large.
 */
float nn_scalbnf(float x, int n)
{
    /* Steps that stay normal until the last: the 24 bits kept in hand make the last product the only rounded one. */
    if (n > 127) {
        x = nn_product(x, 0x1p127f);
        n -= 127;
        if (n > 127) {
            x = nn_product(x, 0x1p127f);
            n = n - 127 > 127 ? 127 : n - 127;
        }
    } else if (n < -126) {
        x = nn_product(x, 0x1p-102f);
        n += 102;
        if (n < -126) {
            x = nn_product(x, 0x1p-102f);
            n = n + 102 < -126 ? -126 : n + 102;
        }
    }
    x = nn_product(x, nn_float_of((uint32_t)(n + 127) << 23));
    return x == x ? x : nn_float_of(0x7fc00000);
}
