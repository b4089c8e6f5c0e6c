/* The APB timer of Arm's Cortex-M System Design Kit: counts down at the system's clock, and restarts with every
 * query, so that equal work always gives the same count. */
#include "nn_bare.h"
#include "nn_cortex_m.h"

#define TIMER_CTRL   NN_REG(NN_TIMER_BASE + 0x00u)
#define TIMER_VALUE  NN_REG(NN_TIMER_BASE + 0x04u)
#define TIMER_RELOAD NN_REG(NN_TIMER_BASE + 0x08u)

#define TIMER_CTRL_EN (1u << 0)

#define FULL 0xffffffffu

void nn_systick_handler(void)
{
}

uint32_t nn_timer_start(uint32_t cpu_clock)
{
    TIMER_RELOAD = FULL;
    TIMER_VALUE = FULL;
    TIMER_CTRL = TIMER_CTRL_EN;
    return cpu_clock;
}

uint32_t nn_timer_elapsed(void)
{
    uint32_t since = FULL - TIMER_VALUE;

    TIMER_VALUE = FULL;
    return since;
}
