/* STM32F4 and F7: the PLL from the internal 16 MHz oscillator, so that no board's crystal has to be known. RM0090, RM0383,
 * RM0390, RM0410. */
#include "nn_bare.h"
#include "nn_st_gpio.h"

#define RCC_CR      NN_REG(0x40023800u)
#define RCC_PLLCFGR NN_REG(0x40023804u)
#define RCC_CFGR    NN_REG(0x40023808u)
#define RCC_AHB1ENR NN_REG(0x40023830u)
#define RCC_APB1ENR NN_REG(0x40023840u)
#define RCC_APB2ENR NN_REG(0x40023844u)
#define PWR_CR      NN_REG(0x40007000u)
#define PWR_CSR     NN_REG(0x40007004u)
#define FLASH_ACR   NN_REG(0x40023c00u)

#define RCC_CR_HSION       (1u << 0)
#define RCC_CR_HSIRDY      (1u << 1)
#define RCC_CR_PLLON       (1u << 24)
#define RCC_CR_PLLRDY      (1u << 25)
#define RCC_CFGR_SW_PLL    2u
#define RCC_CFGR_SWS_MASK  (3u << 2)
#define RCC_CFGR_SWS_PLL   (2u << 2)
#define RCC_CFGR_PPRE1_4   (5u << 10)
#define RCC_CFGR_PPRE2_2   (4u << 13)
#define RCC_APB1ENR_PWREN  (1u << 28)
#define PWR_CR_ODEN        (1u << 16)
#define PWR_CR_ODSWEN      (1u << 17)
#define PWR_CSR_ODRDY      (1u << 16)
#define PWR_CSR_ODSWRDY    (1u << 17)
#define FLASH_ACR_PRFTEN   (1u << 8)
#define FLASH_ACR_ICEN     (1u << 9)
#define FLASH_ACR_DCEN     (1u << 10) /* reserved on the F7, whose processor has caches of its own */
#define PWR_CR_VOS(scale)  ((scale) << 14)
#define PWR_CSR_VOSRDY     (1u << 14)

#define GPIO_BASE(port) (0x40020000u + 0x400u * (port))

#define HSI_HERTZ 16000000u
#define PLL_M     16u /* 1 MHz into the PLL */
#define PLL_P     2u
#define PLL_Q     7u
#define PLL_HERTZ (HSI_HERTZ / PLL_M * NN_PLL_N / PLL_P)
#define UART_HERTZ (PLL_HERTZ / (NN_UART_ON_APB2 ? 2u : 4u))

/* More voltage for more than 168 MHz; parts that have no over-drive never need it. */
static int boost(void)
{
#if NN_OVERDRIVE
    PWR_CR |= PWR_CR_ODEN;
    if (!nn_ready(&PWR_CSR, PWR_CSR_ODRDY, PWR_CSR_ODRDY)) {
        return 0;
    }
    PWR_CR |= PWR_CR_ODSWEN;
    return nn_ready(&PWR_CSR, PWR_CSR_ODSWRDY, PWR_CSR_ODSWRDY);
#else
    return 1;
#endif
}

/* 1 when the PLL feeds the processor. Every step waits for the one before it, or leaves the clock as it was. */
static int full_speed(void)
{
    RCC_CR |= RCC_CR_HSION;
    if (!nn_ready(&RCC_CR, RCC_CR_HSIRDY, RCC_CR_HSIRDY)) {
        return 0;
    }
    RCC_APB1ENR |= RCC_APB1ENR_PWREN;
#ifdef NN_VOLTAGE_SCALE
    PWR_CR = (PWR_CR & ~PWR_CR_VOS(3u)) | PWR_CR_VOS(NN_VOLTAGE_SCALE);
#endif
    RCC_PLLCFGR = PLL_M | (NN_PLL_N << 6) | ((PLL_P / 2u - 1u) << 16) | (PLL_Q << 24);
    RCC_CR |= RCC_CR_PLLON;
    if (!boost() || !nn_ready(&RCC_CR, RCC_CR_PLLRDY, RCC_CR_PLLRDY)) {
        return 0;
    }
#ifdef NN_VOLTAGE_SCALE
    if (!nn_ready(&PWR_CSR, PWR_CSR_VOSRDY, PWR_CSR_VOSRDY)) {
        return 0;
    }
#endif
    FLASH_ACR = NN_FLASH_WAITS | FLASH_ACR_PRFTEN | FLASH_ACR_ICEN | (NN_HAS_DATA_BUFFER ? FLASH_ACR_DCEN : 0u);
    RCC_CFGR = RCC_CFGR_PPRE1_4 | RCC_CFGR_PPRE2_2 | RCC_CFGR_SW_PLL;
    return nn_ready(&RCC_CFGR, RCC_CFGR_SWS_MASK, RCC_CFGR_SWS_PLL);
}

nn_clocks nn_soc_start(void)
{
    int       fast = full_speed();
    nn_clocks clocks = {HSI_HERTZ, HSI_HERTZ};

    RCC_AHB1ENR |= 1u << NN_UART_PORT;
#if NN_UART_ON_APB2
    RCC_APB2ENR |= 1u << NN_UART_ENABLE_BIT;
#else
    RCC_APB1ENR |= 1u << NN_UART_ENABLE_BIT;
#endif
    nn_gpio_alternate(GPIO_BASE(NN_UART_PORT), NN_UART_TX_PIN, NN_UART_AF);
    nn_gpio_alternate(GPIO_BASE(NN_UART_PORT), NN_UART_RX_PIN, NN_UART_AF);
    if (fast) {
        clocks.cpu = PLL_HERTZ;
        clocks.uart = UART_HERTZ;
    }
    return clocks;
}
