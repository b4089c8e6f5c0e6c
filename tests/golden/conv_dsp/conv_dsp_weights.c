/* The constants, each in the order in which its kernel reads it. */
#include "conv_dsp_private.h"

/* op: kernel of conv2d, packed for patches_wide; several per word, lowest bits first */
const int64_t conv_dsp_00_op_kernel[15] = {
    (int64_t)0xffff9e20fffeab40u, (int64_t)0xffffb69800000e80u, (int64_t)0xfe60f6e006a0f880u,
    (int64_t)0xffdcff2414c0e140u, (int64_t)0x00000760f950fbd0u, (int64_t)0x0064fe1402c007c0u,
    (int64_t)0x000598044c9f08b3u, (int64_t)0x000598085be6a8beu, (int64_t)0x0005981046c64048u,
    (int64_t)0x0005980168fa8d17u, (int64_t)0xfffff18000014810u, (int64_t)0x0150007405b004a0u,
    (int64_t)0xff48fe74fdb00350u, (int64_t)0x00059804497e38c5u, (int64_t)0x0005980148649d5fu,
};
