/* STM32H743 and H7A3: the first PLL from the internal 64 MHz oscillator, so that no board's crystal has to be known.
 * RM0433, RM0455: what the second calls CD and SRD are the first's domains D1, D2 and D3. */
#include "nn_bare.h"
#include "nn_st_gpio.h"

#define RCC_CR        NN_REG(0x58024400u)
#define RCC_CFGR      NN_REG(0x58024410u)
#define RCC_D1CFGR    NN_REG(0x58024418u)
#define RCC_D2CFGR    NN_REG(0x5802441cu)
#define RCC_D3CFGR    NN_REG(0x58024420u)
#define RCC_PLLCKSELR NN_REG(0x58024428u)
#define RCC_PLLCFGR   NN_REG(0x5802442cu)
#define RCC_PLL1DIVR  NN_REG(0x58024430u)
#define RCC_AHB4ENR   NN_REG(NN_GPIO_ENABLE)
#define RCC_APB1LENR  NN_REG(NN_UART_ENABLE)
#define PWR_CSR1      NN_REG(0x58024804u)
#define PWR_CR3       NN_REG(0x5802480cu)
#define PWR_D3CR      NN_REG(0x58024818u)
#define FLASH_ACR     NN_REG(0x52002000u)

#define RCC_CR_HSION          (1u << 0)
#define RCC_CR_HSIRDY         (1u << 2)
#define RCC_CR_PLL1ON         (1u << 24)
#define RCC_CR_PLL1RDY        (1u << 25)
#define RCC_CFGR_SW_PLL1      3u
#define RCC_CFGR_SWS_MASK     (7u << 3)
#define RCC_CFGR_SWS_PLL1     (3u << 3)
#define RCC_D1CFGR_HPRE_2     (8u << 0) /* all but the processor at half its clock */
#define RCC_D1CFGR_D1PPRE_2   (4u << 4)
#define RCC_D2CFGR_D2PPRE1_2  (4u << 4)
#define RCC_D2CFGR_D2PPRE2_2  (4u << 8)
#define RCC_D3CFGR_D3PPRE_2   (4u << 4)
#define RCC_PLLCFGR_4_TO_8    (2u << 2) /* MHz into the PLL */
#define RCC_PLLCFGR_8_TO_16   (3u << 2)
#define RCC_PLLCFGR_DIVP1EN   (1u << 16)
#define RCC_APB1LENR_USART3EN (1u << 18)
#define PWR_CSR1_ACTVOSRDY    (1u << 13)
#define PWR_D3CR_VOS_HIGHEST  (3u << 14)
#define PWR_D3CR_VOSRDY       (1u << 13)
#define FLASH_ACR_WRHIGHFREQ  (NN_FLASH_WRITES << 4)

#define GPIO_BASE(port) (0x58020000u + 0x400u * (port))

#define HSI_HERTZ 64000000u
#define PLL_P     2u
#define PLL_HERTZ (HSI_HERTZ / NN_PLL_M * NN_PLL_N / PLL_P)
#define BUS_HERTZ (PLL_HERTZ / (NN_BUS_HALVED ? 2u : 1u))
#define UART_HERTZ (BUS_HERTZ / 2u)

/* 1 when the chip's regulator gives the voltage that the highest clock needs. */
static int full_voltage(void)
{
    PWR_CR3 = NN_SUPPLY; /* how the board supplies the core; the voltage can be raised only after writing it once */
    if (!nn_ready(&PWR_CSR1, PWR_CSR1_ACTVOSRDY, PWR_CSR1_ACTVOSRDY)) {
        return 0;
    }
    PWR_D3CR = PWR_D3CR_VOS_HIGHEST;
    return nn_ready(&PWR_D3CR, PWR_D3CR_VOSRDY, PWR_D3CR_VOSRDY);
}

/* 1 when the PLL feeds the processor. */
static int full_speed(void)
{
    RCC_CR |= RCC_CR_HSION;
    if (!full_voltage() || !nn_ready(&RCC_CR, RCC_CR_HSIRDY, RCC_CR_HSIRDY)) {
        return 0;
    }
    RCC_PLLCKSELR = NN_PLL_M << 4;
    RCC_PLLCFGR = (HSI_HERTZ / NN_PLL_M > 8000000u ? RCC_PLLCFGR_8_TO_16 : RCC_PLLCFGR_4_TO_8) | RCC_PLLCFGR_DIVP1EN;
    RCC_PLL1DIVR = (NN_PLL_N - 1u) | ((PLL_P - 1u) << 9) | (1u << 16) | (1u << 24);
    RCC_CR |= RCC_CR_PLL1ON;
    if (!nn_ready(&RCC_CR, RCC_CR_PLL1RDY, RCC_CR_PLL1RDY)) {
        return 0;
    }
    FLASH_ACR = NN_FLASH_WAITS | FLASH_ACR_WRHIGHFREQ;
    if (!nn_ready(&FLASH_ACR, 15u, NN_FLASH_WAITS)) {
        return 0;
    }
    RCC_D1CFGR = (NN_BUS_HALVED ? RCC_D1CFGR_HPRE_2 : 0u) | RCC_D1CFGR_D1PPRE_2;
    RCC_D2CFGR = RCC_D2CFGR_D2PPRE1_2 | RCC_D2CFGR_D2PPRE2_2;
    RCC_D3CFGR = RCC_D3CFGR_D3PPRE_2;
    RCC_CFGR = RCC_CFGR_SW_PLL1;
    return nn_ready(&RCC_CFGR, RCC_CFGR_SWS_MASK, RCC_CFGR_SWS_PLL1);
}

nn_clocks nn_soc_start(void)
{
    int       fast = full_speed();
    nn_clocks clocks = {HSI_HERTZ, HSI_HERTZ};

    RCC_AHB4ENR |= 1u << NN_UART_PORT;
    RCC_APB1LENR |= RCC_APB1LENR_USART3EN;
    nn_gpio_alternate(GPIO_BASE(NN_UART_PORT), NN_UART_TX_PIN, NN_UART_AF);
    nn_gpio_alternate(GPIO_BASE(NN_UART_PORT), NN_UART_RX_PIN, NN_UART_AF);
    if (fast) {
        clocks.cpu = PLL_HERTZ;
        clocks.uart = UART_HERTZ;
    }
    return clocks;
}
