/* STM32 L4, L4+, G4, G0 and WB: the PLL from the internal 16 MHz oscillator, so that no board's crystal has to be known.
 * Their clock controls are one design at different addresses, given by the families' tables. RM0351, RM0432, RM0440,
 * RM0444, RM0434. */
#include "nn_bare.h"
#include "nn_st_gpio.h"

#define RCC_CR       NN_REG(NN_RCC_BASE + 0x00u)
#define RCC_CFGR     NN_REG(NN_RCC_BASE + 0x08u)
#define RCC_PLLCFGR  NN_REG(NN_RCC_BASE + 0x0cu)
#define RCC_APB1ENR1 NN_REG(NN_RCC_BASE + 0x58u)
#define PWR_CR2      NN_REG(0x40007004u)
#define PWR_CR5      NN_REG(0x40007080u)
#define FLASH_ACR    NN_REG(NN_FLASH_ACR)

#define RCC_CR_HSION       (1u << 8)
#define RCC_CR_HSIRDY      (1u << 10)
#define RCC_CR_PLLON       (1u << 24)
#define RCC_CR_PLLRDY      (1u << 25)
#define RCC_CFGR_SWS_MASK  (3u << NN_RCC_SWS)
#define RCC_CFGR_SWS_PLL   (NN_RCC_SW_PLL << NN_RCC_SWS)
#define RCC_CFGR_HPRE_MASK (15u << NN_RCC_HPRE)
#define RCC_CFGR_HPRE_2    (8u << NN_RCC_HPRE)
#define RCC_PLLCFGR_HSI    2u
#define RCC_APB1ENR1_PWREN (1u << 28)
#define PWR_CR2_IOSV       (1u << 9)
#define PWR_CR5_R1MODE     (1u << 8)
#define FLASH_ACR_LATENCY  7u
#define FLASH_ACR_PRFTEN   (1u << 8)
#define FLASH_ACR_ICEN     (1u << 9)
#define FLASH_ACR_DCEN     (1u << 10) /* reserved on the G0 */

#define GPIO_BASE(port) (NN_GPIO_BASE + 0x400u * (port))
#define PORT_G          6u

#define HSI_HERTZ 16000000u
#define PLL_R     2u /* as NN_PLL_R_BITS says */
#define PLL_HERTZ (HSI_HERTZ / NN_PLL_M * NN_PLL_N / PLL_R)

/* 1 when the PLL feeds the processor. For their highest clocks the L4+ and the G4 must have their core's voltage boosted,
 * and raise the clock in two steps a microsecond apart, which is harmless for the others. */
static int full_speed(void)
{
    RCC_CR |= RCC_CR_HSION;
    if (!nn_ready(&RCC_CR, RCC_CR_HSIRDY, RCC_CR_HSIRDY)) {
        return 0;
    }
#if NN_BOOST
    RCC_APB1ENR1 |= RCC_APB1ENR1_PWREN;
    PWR_CR5 &= ~PWR_CR5_R1MODE;
#endif
    RCC_PLLCFGR = RCC_PLLCFGR_HSI | ((NN_PLL_M - 1u) << 4) | (NN_PLL_N << 8) | NN_PLL_R_BITS;
    RCC_CR |= RCC_CR_PLLON;
    if (!nn_ready(&RCC_CR, RCC_CR_PLLRDY, RCC_CR_PLLRDY)) {
        return 0;
    }
    FLASH_ACR = NN_FLASH_WAITS | FLASH_ACR_PRFTEN | FLASH_ACR_ICEN | (NN_HAS_DATA_BUFFER ? FLASH_ACR_DCEN : 0u);
    if (!nn_ready(&FLASH_ACR, FLASH_ACR_LATENCY, NN_FLASH_WAITS)) {
        return 0;
    }
    RCC_CFGR = RCC_CFGR_HPRE_2 | NN_RCC_SW_PLL;
    if (!nn_ready(&RCC_CFGR, RCC_CFGR_SWS_MASK, RCC_CFGR_SWS_PLL)) {
        return 0;
    }
    for (volatile uint32_t wait = 0; wait < 100u; wait = wait + 1u) {
    }
    RCC_CFGR &= ~RCC_CFGR_HPRE_MASK;
    return 1;
}

nn_clocks nn_soc_start(void)
{
    uint32_t  hertz = full_speed() ? PLL_HERTZ : NN_RESET_HERTZ;
    nn_clocks clocks = {hertz, hertz};

#if NN_UART_PORT == PORT_G
    RCC_APB1ENR1 |= RCC_APB1ENR1_PWREN;
    PWR_CR2 |= PWR_CR2_IOSV; /* port G has a supply of its own */
#endif
    NN_REG(NN_GPIO_ENABLE) |= 1u << NN_UART_PORT;
    NN_REG(NN_UART_ENABLE) |= 1u << NN_UART_ENABLE_BIT;
    nn_gpio_alternate(GPIO_BASE(NN_UART_PORT), NN_UART_TX_PIN, NN_UART_AF);
    nn_gpio_alternate(GPIO_BASE(NN_UART_PORT), NN_UART_RX_PIN, NN_UART_AF);
    return clocks;
}
