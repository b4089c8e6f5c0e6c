/* STM32F1, and GD32VF103 and CH32V307 after its model: the PLL from the internal 8 MHz oscillator, so that no board's
 * crystal has to be known. RM0041, GD32VF103 user manual, CH32FV2x_V3x reference manual. */
#include "nn_bare.h"

#define RCC_CR      NN_REG(0x40021000u)
#define RCC_CFGR    NN_REG(0x40021004u)
#define RCC_APB2ENR NN_REG(0x40021018u)
#define GPIOA_CRH   NN_REG(0x40010804u)

#define RCC_CR_PLLON        (1u << 24)
#define RCC_CR_PLLRDY       (1u << 25)
#define RCC_CFGR_SW_PLL     2u
#define RCC_CFGR_SWS_MASK   (3u << 2)
#define RCC_CFGR_SWS_PLL    (2u << 2)
#define EXTEN_CTR_HSIPRE    (1u << 4) /* CH32: the oscillator whole, not half of it */
#define RCC_APB2ENR_IOPAEN  (1u << 2)
#define RCC_APB2ENR_USART1EN (1u << 14)

/* PA9 sends (alternate function, push-pull, 50 MHz), PA10 receives (input, floating). */
#define CRH_MASK 0x00000ff0u
#define CRH_PINS 0x000004b0u

#define HSI_HERTZ 8000000u
#define PLL_HERTZ (HSI_HERTZ / NN_PLL_DIVIDER * NN_PLL_TIMES)

/* 1 when the PLL feeds the processor. None of these chips has wait states to be set. */
static int full_speed(void)
{
#ifdef NN_EXTEN_CTR
    NN_REG(NN_EXTEN_CTR) |= EXTEN_CTR_HSIPRE;
#endif
    RCC_CFGR = NN_PLL_BITS;
    RCC_CR |= RCC_CR_PLLON;
    if (!nn_ready(&RCC_CR, RCC_CR_PLLRDY, RCC_CR_PLLRDY)) {
        return 0;
    }
    RCC_CFGR = NN_PLL_BITS | RCC_CFGR_SW_PLL;
    return nn_ready(&RCC_CFGR, RCC_CFGR_SWS_MASK, RCC_CFGR_SWS_PLL);
}

nn_clocks nn_soc_start(void)
{
    uint32_t  hertz = full_speed() ? PLL_HERTZ : HSI_HERTZ;
    nn_clocks clocks = {hertz, hertz};

    RCC_APB2ENR |= RCC_APB2ENR_IOPAEN | RCC_APB2ENR_USART1EN;
    GPIOA_CRH = (GPIOA_CRH & ~CRH_MASK) | CRH_PINS;
    return clocks;
}
