/* Converts values with 16 fractional bits to and from a model with integers only, for callers without floating point. */
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/minmax.h>

#include "nn_kmod.h"
#include "nn_q16.h"
#include "nn_target.h"

static void write_one(const nn_port *port, u8 *at, s32 value)
{
    s64 number;

    if (port->to_scale == 0) {
        u32 bits = nn_q16_to_float(value);

        memcpy(at, &bits, sizeof bits);
        return;
    }
    number = nn_q16_scale(value, port->to_scale, port->to_shift) + port->zero_point;
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
        return nn_q16_from_float(bits);
    }
    number = port->width == 1 ? *(const s8 *)at : *(const s16 *)at;
    return (s32)clamp_t(s64, nn_q16_scale(number - port->zero_point, port->from_scale, port->from_shift), S32_MIN, S32_MAX);
}

/* All values of an input. -EINVAL for an unknown input or a wrong number of values. */
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
