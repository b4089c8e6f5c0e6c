/* In the place of a model: a program whose first input byte says what is to go wrong. */
#include "nn_target.h"

#include "nn_link.h"

static uint8_t  wish[4];
static uint64_t ticks[1];

const char nn_target_descriptor[] =
    "{\"name\":\"faulty\",\"hash\":\"0\",\"version\":\"0\",\"inputs\":[{\"name\":\"x\",\"shape\":[4],\"type\":\"int8\"}],"
    "\"outputs\":[{\"name\":\"y\",\"shape\":[4],\"type\":\"int8\"}],"
    "\"steps\":[{\"layer\":\"a\",\"op\":\"b\",\"kernel\":\"c\",\"macs\":0,\"output\":null}]}";
const uint32_t nn_target_descriptor_size = sizeof nn_target_descriptor - 1u;

void nn_target_init(void)
{
}

static uint32_t deeper(volatile uint32_t *above, uint32_t depth)
{
    volatile uint32_t here[16];

    here[depth % 16u] = depth + (above != 0 ? above[0] : 0);
    return depth == 0 ? here[0] : deeper(here, depth - 1u) + here[1];
}

int nn_target_run(void)
{
    switch (wish[0]) {
    case 1:
        return (int)*(volatile uint32_t *)(uintptr_t)BAD_ADDRESS;
    case 2:
        return (int)deeper(0, 45u); /* just too deep: anything beside the stack would be overwritten unseen */
    case 3:
#if defined(__riscv)
        __asm__ volatile(".4byte 0xffffffff");
#else
        __asm__ volatile(".inst.n 0xde00");
#endif
        return 0;
    case 4:
        return (int)(deeper(0, 8u) & 0u); /* deep, but not too deep */
    case 5:
        nn_link_log("five");
        return 0;
    default:
        return 0;
    }
}

uint32_t nn_target_steps(void)
{
    return 1;
}

int nn_target_step(uint32_t index)
{
    (void)index;
    return nn_target_run();
}

void *nn_target_region(uint32_t kind, uint32_t index, uint32_t *size)
{
    (void)index;
    if (kind == NN_TARGET_TICKS) {
        *size = sizeof ticks;
        return ticks;
    }
    *size = sizeof wish;
    return wish;
}
