/* uses: none */
#include "nn_bits.h"
#include "nn_libm.h"

/*
 * The error function of x. Largest error: 0.987 ULP.
 *
 * |x| < 7/8: x + x p(x^2). Up to 3.92, where it rounds to 1, six pieces of width 1/2: a float near the middle value
 * plus a polynomial in the distance from the middle.
 */
static const float nn_erff_pieces[6][8] = {
    {0x1.c6dad2p-1f, 0x1.1d1db2p-26f, 0x1.45e9acp-2f, -0x1.6ea6f4p-2f,
     0x1.4ca2b4p-3f, 0x1.caecfap-6f, -0x1.edca62p-5f, 0x1.e1d7cp-7f},
    {0x1.f4f694p-1f, -0x1.20fabap-27f, 0x1.499d1cp-4f, -0x1.0bcfd2p-3f,
     0x1.d678b8p-4f, -0x1.9743c6p-5f, -0x1.6ed33cp-9f, 0x1.d58932p-7f},
    {0x1.fea422p-1f, -0x1.d5905p-27f, 0x1.9461e2p-7f, -0x1.ada7e8p-6f,
     0x1.0eb20cp-5f, -0x1.b009b6p-6f, 0x1.92ad38p-7f, -0x1.aaeeaap-10f},
    {0x1.ffe514p-1f, 0x1.77896ep-26f, 0x1.2ce9c8p-10f, -0x1.8af124p-9f,
     0x1.4059bp-8f, -0x1.62d97p-8f, 0x1.19367p-8f, -0x1.25badep-9f},
    {0x1.fffeb4p-1f, -0x1.4138f4p-29f, 0x1.0fa5d4p-14f, -0x1.a86cb6p-13f,
     0x1.a27ca6p-12f, -0x1.23f5f4p-11f, 0x1.3de336p-11f, -0x1.eaa2d2p-12f},
    {0x1.fffff6p-1f, 0x1.8ceb28p-29f, 0x1.298872p-19f, -0x1.0d995ep-17f,
     0x1.376ccep-16f, -0x1.045d94p-15f, 0x1.69c75ap-15f, -0x1.63b854p-15f},
};

float nn_erff(float x)
{
    const uint32_t sign = nn_bits_of(x) & 0x80000000;
    const uint32_t magnitude = nn_bits_of(x) ^ sign;
    const float ax = nn_float_of(magnitude);
    const float *piece;
    int index;
    float t, p;

    if (magnitude < 0x3f600000) {
        t = nn_product(ax, ax);
        p = -0x1.a5ac12p-11f + nn_product(t, 0x1.4e03dep-14f);
        p = 0x1.544166p-8f + nn_product(t, p);
        p = -0x1.b80074p-6f + nn_product(t, p);
        p = 0x1.ce2d6p-4f + nn_product(t, p);
        p = -0x1.81274p-2f + nn_product(t, p);
        p = 0x1.06eba8p-3f + nn_product(t, p);
        p = ax + nn_product(ax, p);
    } else if (magnitude < 0x407ad445) {
        index = (int)nn_product(ax - 0.875f, 2.0f);
        index = index < 5 ? index : 5;
        piece = nn_erff_pieces[index];
        t = ax - (1.125f + nn_product((float)index, 0.5f)); /* exact */
        p = piece[6] + nn_product(t, piece[7]);
        p = piece[5] + nn_product(t, p);
        p = piece[4] + nn_product(t, p);
        p = piece[3] + nn_product(t, p);
        p = piece[2] + nn_product(t, p);
        p = piece[1] + nn_product(t, p);
        p = piece[0] + p;
    } else {
        if (magnitude > 0x7f800000)
            return nn_float_of(0x7fc00000);
        p = 1.0f;
    }
    return nn_float_of(nn_bits_of(p) | sign);
}
