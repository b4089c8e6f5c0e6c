/* TIM2 of the STM32 families where it has 32 bits. Used only where the core's cycle counter does not run. */
#include "nn_bare.h"
#include "nn_cortex_m.h"

#define TIM2_CR1  NN_REG(0x40000000u)
#define TIM2_EGR  NN_REG(0x40000014u)
#define TIM2_CNT  NN_REG(0x40000024u)
#define TIM2_PSC  NN_REG(0x40000028u)
#define TIM2_ARR  NN_REG(0x4000002cu)

#define TIM_CR1_CEN (1u << 0)
#define TIM_EGR_UG  (1u << 0)

#define TIM2EN (1u << 0) /* in the RCC register that the board's table names */

static uint32_t last;

void nn_systick_handler(void)
{
}

uint32_t nn_timer_start(uint32_t cpu_clock)
{
    NN_REG(NN_TIM2_ENABLE) |= TIM2EN;
    TIM2_PSC = 0;
    TIM2_ARR = 0xffffffffu;
    TIM2_EGR = TIM_EGR_UG;
    TIM2_CR1 = TIM_CR1_CEN;
    last = TIM2_CNT;
    return cpu_clock / NN_TIM2_DIVIDER;
}

uint32_t nn_timer_elapsed(void)
{
    uint32_t now = TIM2_CNT;
    uint32_t since = now - last;

    last = now;
    return since;
}
