/* uses: none */
#include "nn_bits.h"
#include "nn_libm.h"

/*
 * log(2^k (1 + f)) + c for 1 + f in [sqrt(1/2), sqrt(2)), f exact and c tiny: the common part of logf and log1pf.
 *
 * log(1+f) = f - f^2/2 + f^3 q(f); the sum of k ln2 and f keeps its rounding error.
 */
float nn_logpartsf(float f, int32_t k, float c)
{
    const float n = (float)k;
    const float high = nn_product(n, 0x1.62e4p-1f); /* exact */
    const float sum = high + f;
    const float rest = f - (sum - high);
    const float square = nn_product(f, f);
    float q;

    q = 0x1.07d0fp-3f - nn_product(f, 0x1.41ee1ap-4f);
    q = -0x1.0ce078p-3f + nn_product(f, q);
    q = 0x1.226e4ap-3f + nn_product(f, q);
    q = -0x1.54788cp-3f + nn_product(f, q);
    q = 0x1.99a596p-3f + nn_product(f, q);
    q = -0x1.00022p-2f + nn_product(f, q);
    q = 0x1.55554ap-2f + nn_product(f, q);
    return sum + (rest + ((nn_product(n, 0x1.7f7d1cp-20f) + c) - nn_product(square, 0.5f - nn_product(f, q))));
}
