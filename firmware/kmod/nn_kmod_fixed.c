/* Values with 16 fractional bits in and out of a model, in integers alone: for callers that have no floating point. */
#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/minmax.h>

#include "nn_kmod.h"
#include "nn_target.h"

/* The float32 nearest to value / 2^16, halves to even. */
static u32 float_bits(s32 value)
{
    u32 sign = value < 0 ? 0x80000000u : 0u;
    u32 size = value < 0 ? 0u - (u32)value : (u32)value;
    int top;
    u32 mantissa;

    if (size == 0) {
        return 0;
    }
    top = fls(size) - 1;
    if (top <= 23) {
        mantissa = size << (23 - top);
    } else {
        u32 rest = size & ((1u << (top - 23)) - 1u);
        u32 half = 1u << (top - 24);

        mantissa = size >> (top - 23);
        mantissa += rest > half || (rest == half && (mantissa & 1u) != 0u) ? 1u : 0u;
    }
    /* A mantissa that was rounded up to 2^24 carries into the exponent, as it should. */
    return sign + ((u32)(top - 16 + 127 - 1) << 23) + mantissa;
}

/* A float32 by 2^16, towards zero; saturated, with 0 for what is not a number. */
static s32 from_float_bits(u32 bits)
{
    s32 exponent = (s32)((bits >> 23) & 0xffu) - 127 - 23 + 16;
    u32 mantissa = (bits & 0x7fffffu) | 0x800000u;
    bool negative = (bits >> 31) != 0;
    s64 size;

    if ((bits & 0x7f800000u) == 0x7f800000u && (bits & 0x7fffffu) != 0u) {
        return 0;
    }
    if (exponent < -24) {
        return 0;
    }
    size = exponent >= 8 ? (s64)S32_MAX + 1 : exponent >= 0 ? (s64)mantissa << exponent : mantissa >> -exponent;
    return (s32)(negative ? max_t(s64, -size, S32_MIN) : min_t(s64, size, S32_MAX));
}

/* value * scale / 2^shift, halves away from zero. */
static s64 scaled(s64 value, u32 scale, u32 shift)
{
    s64 size = (value < 0 ? -value : value) * scale;

    size = shift == 0 ? size : (size + ((s64)1 << (shift - 1))) >> shift;
    return value < 0 ? -size : size;
}

static void write_one(const nn_port *port, u8 *at, s32 value)
{
    s64 number;

    if (port->to_scale == 0) {
        u32 bits = float_bits(value);

        memcpy(at, &bits, sizeof bits);
        return;
    }
    number = scaled(value, port->to_scale, port->to_shift) + port->zero_point;
    if (port->width == 1) {
        *(s8 *)at = (s8)clamp_t(s64, number, S8_MIN, S8_MAX);
    } else {
        *(s16 *)at = (s16)clamp_t(s64, number, S16_MIN, S16_MAX);
    }
}

static s32 read_one(const nn_port *port, const u8 *at)
{
    s64 number;

    if (port->from_scale == 0) {
        u32 bits;

        memcpy(&bits, at, sizeof bits);
        return from_float_bits(bits);
    }
    number = port->width == 1 ? *(const s8 *)at : *(const s16 *)at;
    return (s32)clamp_t(s64, scaled(number - port->zero_point, port->from_scale, port->from_shift), S32_MIN, S32_MAX);
}

/* All values of an input. -EINVAL when there is no such input, or it has another number of values. */
int nn_write_q16(struct nn_instance *instance, u32 input, const s32 *values, u32 count)
{
    u32 size = 0;
    u8 *at;

    if (input >= nn_model_inputs || count != nn_model_input_ports[input].count) {
        return -EINVAL;
    }
    at = nn_region(instance, NN_TARGET_INPUT, input, &size);
    for (u32 i = 0; i < count; i++) {
        write_one(&nn_model_input_ports[input], at + i * nn_model_input_ports[input].width, values[i]);
    }
    return 0;
}

int nn_read_q16(struct nn_instance *instance, u32 output, s32 *values, u32 count)
{
    u32 size = 0;
    const u8 *at;

    if (output >= nn_model_outputs || count != nn_model_output_ports[output].count) {
        return -EINVAL;
    }
    at = nn_region(instance, NN_TARGET_OUTPUT, output, &size);
    for (u32 i = 0; i < count; i++) {
        values[i] = read_one(&nn_model_output_ports[output], at + i * nn_model_output_ports[output].width);
    }
    return 0;
}
