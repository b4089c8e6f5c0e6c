/* The constants, each in the order in which its kernel reads it. */
#include "conv_vnni_private.h"

/* op: kernel of conv2d, packed for avx512_vnni_integers */
const int8_t conv_vnni_00_op_kernel[64] = {
    -68, 1, -120, -55, -93, -70, -73, 74, 106, -127, -123, 29, -68, 1, -120, -55, -93, -70,
    -73, 74, 106, -127, -123, 29, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
};

/* op: bias of conv2d, packed for avx512_vnni_integers */
const int32_t conv_vnni_00_op_bias[16] = {
    22376, 17427, 12106, 22376, 17427, 12106, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0,
};

/* op: multiplier of conv2d, packed for avx512_vnni_integers */
const int32_t conv_vnni_00_op_multiplier[16] = {
    1285490867, 1541843134, 1187397704, 1285490867, 1541843134, 1187397704, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0,
};

/* op: addend of conv2d, packed for avx512_vnni_integers */
const int64_t conv_vnni_00_op_addend[16] = {
    INT64_C(196814728855552), INT64_C(49205292826624), INT64_C(98408438169600), INT64_C(0),
    INT64_C(0), INT64_C(0), INT64_C(0), INT64_C(0),
    INT64_C(98408438169600), INT64_C(196814728855552), INT64_C(49205292826624), INT64_C(0),
    INT64_C(0), INT64_C(0), INT64_C(0), INT64_C(0),
};

/* op: shift of conv2d, packed for avx512_vnni_integers */
const int32_t conv_vnni_00_op_shift[16] = {
    9, 8, 7, 9, 8, 7, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0,
};
