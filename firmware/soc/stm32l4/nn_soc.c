/* STM32L4+: 120 MHz from the internal 16 MHz oscillator, so that no board's crystal has to be known. RM0432. */
#include "nn_bare.h"
#include "nn_st_gpio.h"

#define RCC_CR       NN_REG(0x40021000u)
#define RCC_CFGR     NN_REG(0x40021008u)
#define RCC_PLLCFGR  NN_REG(0x4002100cu)
#define RCC_AHB2ENR  NN_REG(0x4002104cu)
#define RCC_APB1ENR1 NN_REG(0x40021058u)
#define RCC_APB1ENR2 NN_REG(0x4002105cu)
#define PWR_CR2      NN_REG(0x40007004u)
#define PWR_CR5      NN_REG(0x40007080u)
#define FLASH_ACR    NN_REG(0x40022000u)

#define RCC_CR_HSION         (1u << 8)
#define RCC_CR_HSIRDY        (1u << 10)
#define RCC_CR_PLLON         (1u << 24)
#define RCC_CR_PLLRDY        (1u << 25)
#define RCC_CFGR_SW_PLL      3u
#define RCC_CFGR_SWS_MASK    (3u << 2)
#define RCC_CFGR_SWS_PLL     (3u << 2)
#define RCC_CFGR_HPRE_MASK   (15u << 4)
#define RCC_CFGR_HPRE_2      (8u << 4)
#define RCC_PLLCFGR_HSI      2u
#define RCC_PLLCFGR_REN      (1u << 24)
#define RCC_APB1ENR1_PWREN   (1u << 28)
#define RCC_APB1ENR2_LPUART1EN (1u << 0)
#define PWR_CR2_IOSV         (1u << 9)
#define PWR_CR5_R1MODE       (1u << 8)
#define FLASH_ACR_5_WAITS    5u
#define FLASH_ACR_LATENCY    15u
#define FLASH_ACR_PRFTEN     (1u << 8)
#define FLASH_ACR_ICEN       (1u << 9)
#define FLASH_ACR_DCEN       (1u << 10)

#define GPIO_BASE(port) (0x48000000u + 0x400u * (port))

#define MSI_HERTZ 4000000u /* what the chip starts with */
#define HSI_HERTZ 16000000u
#define PLL_M     2u
#define PLL_N     NN_PLL_N
#define PLL_R     2u
#define PLL_HERTZ (HSI_HERTZ / PLL_M * PLL_N / PLL_R)

/* 1 when the PLL feeds the processor. Over 80 MHz the core's voltage must be boosted, and the step up be taken in two
 * halves a microsecond apart. */
static int full_speed(void)
{
    RCC_CR |= RCC_CR_HSION;
    if (!nn_ready(&RCC_CR, RCC_CR_HSIRDY, RCC_CR_HSIRDY)) {
        return 0;
    }
    PWR_CR5 &= ~PWR_CR5_R1MODE;
    RCC_PLLCFGR = RCC_PLLCFGR_HSI | ((PLL_M - 1u) << 4) | (PLL_N << 8) | RCC_PLLCFGR_REN | ((PLL_R / 2u - 1u) << 25);
    RCC_CR |= RCC_CR_PLLON;
    if (!nn_ready(&RCC_CR, RCC_CR_PLLRDY, RCC_CR_PLLRDY)) {
        return 0;
    }
    FLASH_ACR = FLASH_ACR_5_WAITS | FLASH_ACR_PRFTEN | FLASH_ACR_ICEN | FLASH_ACR_DCEN;
    if (!nn_ready(&FLASH_ACR, FLASH_ACR_LATENCY, FLASH_ACR_5_WAITS)) {
        return 0;
    }
    RCC_CFGR = RCC_CFGR_HPRE_2 | RCC_CFGR_SW_PLL;
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
    uint32_t  hertz;
    nn_clocks clocks;

    RCC_APB1ENR1 |= RCC_APB1ENR1_PWREN;
    hertz = full_speed() ? PLL_HERTZ : MSI_HERTZ;
    PWR_CR2 |= PWR_CR2_IOSV; /* port G has a supply of its own */
    RCC_AHB2ENR |= 1u << NN_UART_PORT;
    RCC_APB1ENR2 |= RCC_APB1ENR2_LPUART1EN;
    nn_gpio_alternate(GPIO_BASE(NN_UART_PORT), NN_UART_TX_PIN, NN_UART_AF);
    nn_gpio_alternate(GPIO_BASE(NN_UART_PORT), NN_UART_RX_PIN, NN_UART_AF);
    clocks.cpu = hertz;
    clocks.uart = hertz;
    return clocks;
}
