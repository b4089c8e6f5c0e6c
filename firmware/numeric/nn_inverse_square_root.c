/* uses: high_multiply, leading_zeros */
#include "nn_numeric.h"

/*
 * 1 / sqrt(x) as the multiplier returned / 2^(31 + *right), for x >= 1. x is brought into [2^27, 2^29) by powers of
 * four; then five Newton-Raphson steps with three bits before the point, and a factor of sqrt(1/2). None of these x
 * exceeds 32 bits in a step; the multiplier is below 379,624,594 where *right is above 0.
 */
int32_t nn_inverse_square_root(int32_t x, int32_t *right)
{
    int32_t shift = 11, pairs, half, root = (int32_t)1 << 28;

    if (x <= 1) {
        *right = 0;
        return INT32_MAX;
    }
    while (x >= (int32_t)1 << 29) {
        x >>= 2;
        ++shift;
    }
    pairs = (nn_leading_zeros((uint32_t)x) - 1) / 2 - 1;
    x = (int32_t)((uint32_t)x << (2 * pairs));
    shift -= pairs;
    half = ((x >> 1) + 1) >> 1;
    for (int32_t i = 0; i < 5; ++i) {
        const int32_t cube = nn_high_multiply(nn_high_multiply(root, root), root) * 64;
        const int32_t step = nn_high_multiply(((int32_t)1 << 28) + ((int32_t)1 << 27), root);
        root = (step - nn_high_multiply(half, cube)) * 8;
    }
    root = nn_high_multiply(root, 1518500250);
    if (shift < 0) {
        root = (int32_t)((uint32_t)root << -shift);
        shift = 0;
    }
    *right = shift;
    return root;
}
