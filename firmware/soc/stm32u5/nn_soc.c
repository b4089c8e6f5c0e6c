/* STM32U5: the first PLL from the internal 16 MHz oscillator, so that no board's crystal has to be known. RM0456. */
#include "nn_bare.h"
#include "nn_st_gpio.h"

#define RCC_CR       NN_REG(0x46020c00u)
#define RCC_CFGR1    NN_REG(0x46020c1cu)
#define RCC_PLL1CFGR NN_REG(0x46020c28u)
#define RCC_PLL1DIVR NN_REG(0x46020c34u)
#define RCC_AHB2ENR1 NN_REG(0x46020c8cu)
#define RCC_AHB3ENR  NN_REG(0x46020c94u)
#define PWR_VOSR     NN_REG(0x4602080cu)
#define FLASH_ACR    NN_REG(0x40022000u)
#define ICACHE_CR    NN_REG(0x40030400u)

#define RCC_CR_HSION            (1u << 8)
#define RCC_CR_HSIRDY           (1u << 10)
#define RCC_CR_PLL1ON           (1u << 24)
#define RCC_CR_PLL1RDY          (1u << 25)
#define RCC_CFGR1_SW_PLL1       3u
#define RCC_CFGR1_SWS_MASK      (3u << 2)
#define RCC_CFGR1_SWS_PLL1      (3u << 2)
#define RCC_PLL1CFGR_HSI        2u
#define RCC_PLL1CFGR_8_TO_16    (3u << 2) /* MHz into the PLL */
#define RCC_PLL1CFGR_PLL1REN    (1u << 18)
#define RCC_AHB3ENR_PWREN       (1u << 2)
#define PWR_VOSR_BOOSTRDY       (1u << 14)
#define PWR_VOSR_VOSRDY         (1u << 15)
#define PWR_VOSR_RANGE_1        (3u << 16)
#define PWR_VOSR_BOOSTEN        (1u << 18)
#define FLASH_ACR_LATENCY       15u
#define FLASH_ACR_PRFTEN        (1u << 8)
#define ICACHE_CR_EN            (1u << 0)

#define GPIO_BASE(port) (0x42020000u + 0x400u * (port))

#define MSI_HERTZ 4000000u /* what the chip starts with */
#define HSI_HERTZ 16000000u
#define PLL_R     2u
#define PLL_HERTZ (HSI_HERTZ * NN_PLL_N / PLL_R)

/* 1 when the PLL feeds the processor. More than 55 MHz needs the core's voltage boosted, for which the PLL's source is the
 * clock. */
static int full_speed(void)
{
    RCC_CR |= RCC_CR_HSION;
    if (!nn_ready(&RCC_CR, RCC_CR_HSIRDY, RCC_CR_HSIRDY)) {
        return 0;
    }
    RCC_AHB3ENR |= RCC_AHB3ENR_PWREN;
    PWR_VOSR |= PWR_VOSR_RANGE_1;
    if (!nn_ready(&PWR_VOSR, PWR_VOSR_VOSRDY, PWR_VOSR_VOSRDY)) {
        return 0;
    }
    RCC_PLL1CFGR = RCC_PLL1CFGR_HSI | RCC_PLL1CFGR_8_TO_16 | RCC_PLL1CFGR_PLL1REN;
    RCC_PLL1DIVR = (NN_PLL_N - 1u) | (1u << 9) | (1u << 16) | ((PLL_R - 1u) << 24);
    PWR_VOSR |= PWR_VOSR_BOOSTEN;
    if (!nn_ready(&PWR_VOSR, PWR_VOSR_BOOSTRDY, PWR_VOSR_BOOSTRDY)) {
        return 0;
    }
    RCC_CR |= RCC_CR_PLL1ON;
    if (!nn_ready(&RCC_CR, RCC_CR_PLL1RDY, RCC_CR_PLL1RDY)) {
        return 0;
    }
    FLASH_ACR = NN_FLASH_WAITS | FLASH_ACR_PRFTEN;
    if (!nn_ready(&FLASH_ACR, FLASH_ACR_LATENCY, NN_FLASH_WAITS)) {
        return 0;
    }
    ICACHE_CR |= ICACHE_CR_EN;
    RCC_CFGR1 = RCC_CFGR1_SW_PLL1;
    return nn_ready(&RCC_CFGR1, RCC_CFGR1_SWS_MASK, RCC_CFGR1_SWS_PLL1);
}

nn_clocks nn_soc_start(void)
{
    uint32_t  hertz = full_speed() ? PLL_HERTZ : MSI_HERTZ;
    nn_clocks clocks = {hertz, hertz};

    RCC_AHB2ENR1 |= 1u << NN_UART_PORT;
    NN_REG(NN_UART_ENABLE) |= 1u << NN_UART_ENABLE_BIT;
    nn_gpio_alternate(GPIO_BASE(NN_UART_PORT), NN_UART_TX_PIN, NN_UART_AF);
    nn_gpio_alternate(GPIO_BASE(NN_UART_PORT), NN_UART_RX_PIN, NN_UART_AF);
    return clocks;
}
