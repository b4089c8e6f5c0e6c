#include "nn_q16.h"

#define LARGEST  0x7fffffff
#define SMALLEST (-LARGEST - 1)

uint32_t nn_q16_to_float(int32_t value)
{
    uint32_t sign = value < 0 ? 0x80000000u : 0u;
    uint32_t size = value < 0 ? 0u - (uint32_t)value : (uint32_t)value;
    uint32_t mantissa;
    int      top;

    if (size == 0u) {
        return 0u;
    }
    top = 31 - __builtin_clz(size);
    if (top <= 23) {
        mantissa = size << (23 - top);
    } else {
        uint32_t rest = size & ((1u << (top - 23)) - 1u);
        uint32_t half = 1u << (top - 24);

        mantissa = size >> (top - 23);
        if (rest > half || (rest == half && (mantissa & 1u) != 0u)) {
            mantissa++;
        }
    }
    /* The mantissa's highest bit adds one to the exponent, and so does a mantissa that was rounded up to 2^24. */
    return sign + ((uint32_t)(top - 16 + 127 - 1) << 23) + mantissa;
}

int32_t nn_q16_from_float(uint32_t bits)
{
    int      shift = (int)((bits >> 23) & 0xffu) - 127 - 23 + 16;
    uint32_t mantissa = (bits & 0x7fffffu) | 0x800000u;
    int      negative = (bits >> 31) != 0u;
    uint32_t size;

    if ((bits & 0x7fffffffu) > 0x7f800000u || shift < -23) {
        return 0;
    }
    if (shift > 7) {
        return negative ? SMALLEST : LARGEST;
    }
    size = shift >= 0 ? mantissa << shift : mantissa >> -shift;
    return negative ? -(int32_t)size : (int32_t)size;
}

int64_t nn_q16_scale(int64_t value, uint32_t scale, uint32_t shift)
{
    int64_t size = (value < 0 ? -value : value) * (int64_t)scale;

    if (shift > 0u) {
        size = (size + ((int64_t)1 << (shift - 1u))) >> shift;
    }
    return value < 0 ? -size : size;
}
