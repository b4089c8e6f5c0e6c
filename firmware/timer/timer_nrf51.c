/* TIMER0 of the nRF51: 32 bits at 16 MHz, which is also the processor's clock. */
#include "nn_bare.h"
#include "nn_cortex_m.h"

#define TIMER0_TASKS_START    NN_REG(0x40008000u)
#define TIMER0_TASKS_CLEAR    NN_REG(0x4000800cu)
#define TIMER0_TASKS_CAPTURE0 NN_REG(0x40008040u)
#define TIMER0_MODE           NN_REG(0x40008504u)
#define TIMER0_BITMODE        NN_REG(0x40008508u)
#define TIMER0_PRESCALER      NN_REG(0x40008510u)
#define TIMER0_CC0            NN_REG(0x40008540u)

#define BITMODE_32 3u

void nn_systick_handler(void)
{
}

uint32_t nn_timer_start(uint32_t cpu_clock)
{
    TIMER0_MODE = 0;
    TIMER0_BITMODE = BITMODE_32;
    TIMER0_PRESCALER = 0;
    TIMER0_TASKS_CLEAR = 1;
    TIMER0_TASKS_START = 1;
    return cpu_clock;
}

/* Restarts with every query, so that equal work always gives the same count. */
uint32_t nn_timer_elapsed(void)
{
    TIMER0_TASKS_CAPTURE0 = 1;
    TIMER0_TASKS_CLEAR = 1;
    return TIMER0_CC0;
}
