/* A model written by hand for the tests: inputs a (float32 2x3) and b (int8 4), outputs sum (float32 3) and
 * mix (int8 4), a state, three steps. Like a real one it overwrites its inputs, and it carries its state. */
#include "nn_target.h"

#include <string.h>

#define STEPS 3u

#ifdef FAKE_OTHER
#define FAKE_NAME "other"
#else
#define FAKE_NAME "fake"
#endif

const char nn_target_descriptor[] =
    "{\"name\":\"" FAKE_NAME "\",\"hash\":\"0123456789abcdef\",\"version\":\"0.1.0\",\"quantize\":\"int8\","
    "\"inputs\":[{\"name\":\"a\",\"shape\":[2,3],\"type\":\"float32\",\"scale\":null,\"zero_point\":null},"
    "{\"name\":\"b\",\"shape\":[4],\"type\":\"int8\",\"scale\":0.5,\"zero_point\":-3}],"
    "\"outputs\":[{\"name\":\"sum\",\"shape\":[3],\"type\":\"float32\",\"scale\":null,\"zero_point\":null},"
    "{\"name\":\"mix\",\"shape\":[4],\"type\":\"int8\",\"scale\":0.25,\"zero_point\":2}],"
    "\"steps\":["
    "{\"layer\":\"double\",\"op\":\"Mul\",\"kernel\":\"scalar\",\"macs\":6,"
    "\"output\":{\"name\":\"t0\",\"shape\":[2,3],\"type\":\"float32\",\"scale\":null,\"zero_point\":null}},"
    "{\"layer\":\"sum\",\"op\":\"Add\",\"kernel\":\"scalar\",\"macs\":3,"
    "\"output\":{\"name\":\"sum\",\"shape\":[3],\"type\":\"float32\",\"scale\":null,\"zero_point\":null}},"
    "{\"layer\":\"mix\",\"op\":\"Dense\",\"kernel\":\"smlad\",\"macs\":16,"
    "\"output\":{\"name\":\"mix\",\"shape\":[4],\"type\":\"int8\",\"scale\":0.25,\"zero_point\":2}}]}";
const uint32_t nn_target_descriptor_size = sizeof nn_target_descriptor - 1u;

static float    input_a[6];
static int8_t   input_b[4];
static float    output_sum[3];
static int8_t   output_mix[4];
static int32_t  carried;
static uint64_t ticks[STEPS];

void nn_target_init(void)
{
    carried = 0;
}

uint32_t nn_target_steps(void)
{
    return STEPS;
}

static int8_t saturate(int32_t value)
{
    return (int8_t)(value > 127 ? 127 : value < -128 ? -128 : value);
}

static void mix(void)
{
    volatile uint8_t deep[3000]; /* so that the tests see the stack being measured */

    for (uint32_t i = 0; i < sizeof deep; i++) {
        deep[i] = (uint8_t)i;
    }
    carried += 1 + deep[256];
    for (uint32_t i = 0; i < 4; i++) {
        output_mix[i] = saturate(3 * input_b[i] - input_b[(i + 1u) % 4u] + carried);
    }
    memset(input_b, 0x55, sizeof input_b);
}

int nn_target_step(uint32_t index)
{
    if (index == 0) {
        for (uint32_t i = 0; i < 6; i++) {
            input_a[i] *= 2.0f;
        }
    } else if (index == 1) {
        for (uint32_t i = 0; i < 3; i++) {
            output_sum[i] = input_a[i] + input_a[3 + i];
        }
    } else if (index == 2) {
        mix();
    }
#ifdef FAKE_FAULT
    if (index == 1) {
        *(volatile int *)8 = 1;
    }
#endif
#ifdef FAKE_REFUSES
    return -7;
#else
    return 0;
#endif
}

int nn_target_run(void)
{
    for (uint32_t i = 0; i < STEPS; i++) {
        int code = nn_target_step(i);
        if (code != 0) {
            return code;
        }
    }
    return 0;
}

static void *region(void *memory, uint32_t bytes, uint32_t *size)
{
    *size = bytes;
    return memory;
}

void *nn_target_region(uint32_t kind, uint32_t index, uint32_t *size)
{
    switch (kind * 16u + (index < 15u ? index : 15u)) {
    case NN_TARGET_INPUT * 16u + 0u:
    case NN_TARGET_STEP_OUTPUT * 16u + 0u:
        return region(input_a, sizeof input_a, size);
    case NN_TARGET_INPUT * 16u + 1u:
        return region(input_b, sizeof input_b, size);
    case NN_TARGET_OUTPUT * 16u + 0u:
    case NN_TARGET_STEP_OUTPUT * 16u + 1u:
        return region(output_sum, sizeof output_sum, size);
    case NN_TARGET_OUTPUT * 16u + 1u:
    case NN_TARGET_STEP_OUTPUT * 16u + 2u:
        return region(output_mix, sizeof output_mix, size);
    case NN_TARGET_STATE * 16u + 0u:
        return region(&carried, sizeof carried, size);
    case NN_TARGET_TICKS * 16u + 0u:
        return region(ticks, sizeof ticks, size);
    default:
        return 0;
    }
}
