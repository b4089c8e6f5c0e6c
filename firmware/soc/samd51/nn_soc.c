/* SAM D51: 120 MHz by the first PLL from the internal 48 MHz loop, so that no board's crystal has to be known. DS60001507. */
#include "nn_bare.h"

#define BYTE(address) (*(volatile uint8_t *)(uintptr_t)(address))

#define GCLK_SYNCBUSY        NN_REG(0x40001c04u)
#define GCLK_GENCTRL(n)      NN_REG(0x40001c20u + 4u * (n))
#define GCLK_PCHCTRL(n)      NN_REG(0x40001c80u + 4u * (n))
#define OSCCTRL_DPLLCTRLA    BYTE(0x40001030u)
#define OSCCTRL_DPLLRATIO    NN_REG(0x40001034u)
#define OSCCTRL_DPLLCTRLB    NN_REG(0x40001038u)
#define OSCCTRL_DPLLSYNCBUSY NN_REG(0x4000103cu)
#define OSCCTRL_DPLLSTATUS   NN_REG(0x40001040u)
#define MCLK_APBBMASK        NN_REG(0x40000818u)
#define CMCC_CTRL            NN_REG(0x41006008u)
#define PORTA_PMUX(pin)      BYTE(0x41008030u + (pin) / 2u)
#define PORTA_PINCFG(pin)    BYTE(0x41008040u + (pin))

#define GENCTRL_DFLL       6u
#define GENCTRL_DPLL0      7u
#define GENCTRL_GENEN      (1u << 8)
#define GENCTRL_DIV(n)     ((n) << 16)
#define PCHCTRL_CHEN       (1u << 6)
#define DPLLCTRLA_ENABLE   (1u << 1)
#define DPLLCTRLB_LBYPASS  (1u << 11)
#define DPLLSYNC           6u /* its ratio and its switch */
#define DPLLSTATUS_LOCKED  3u
#define PINCFG_PMUXEN      1u
#define CMCC_CEN           1u

#define CHANNEL_DPLL0 1u
#define DFLL_HERTZ    48000000u
#define REFERENCE     48u /* 1 MHz into the PLL */
#define PLL_HERTZ     (DFLL_HERTZ / REFERENCE * NN_PLL_N)
#define UART_HERTZ    DFLL_HERTZ /* the PLL is too fast for the port */

static int generator(uint32_t number, uint32_t source, uint32_t divider)
{
    GCLK_GENCTRL(number) = source | GENCTRL_GENEN | GENCTRL_DIV(divider);
    return nn_ready(&GCLK_SYNCBUSY, 4u << number, 0);
}

/* 1 when the PLL feeds the processor. The flash sets its wait states by itself. */
static int full_speed(void)
{
    if (!generator(1u, GENCTRL_DFLL, REFERENCE)) {
        return 0;
    }
    GCLK_PCHCTRL(CHANNEL_DPLL0) = 1u | PCHCTRL_CHEN;
    OSCCTRL_DPLLRATIO = NN_PLL_N - 1u;
    OSCCTRL_DPLLCTRLB = DPLLCTRLB_LBYPASS;
    OSCCTRL_DPLLCTRLA = DPLLCTRLA_ENABLE;
    if (!nn_ready(&OSCCTRL_DPLLSYNCBUSY, DPLLSYNC, 0) ||
        !nn_ready(&OSCCTRL_DPLLSTATUS, DPLLSTATUS_LOCKED, DPLLSTATUS_LOCKED)) {
        return 0;
    }
    return generator(0u, GENCTRL_DPLL0, 1u);
}

nn_clocks nn_soc_start(void)
{
    nn_clocks clocks = {DFLL_HERTZ, UART_HERTZ};

    if (full_speed()) {
        clocks.cpu = PLL_HERTZ;
    }
    CMCC_CTRL = CMCC_CEN;
    (void)generator(2u, GENCTRL_DFLL, 1u);
    MCLK_APBBMASK |= 1u << NN_UART_ENABLE_BIT;
    GCLK_PCHCTRL(NN_UART_CHANNEL) = 2u | PCHCTRL_CHEN;
    PORTA_PMUX(NN_UART_TX_PIN) = (uint8_t)(NN_UART_AF | (NN_UART_AF << 4)); /* both pins, an even one and the next */
    PORTA_PINCFG(NN_UART_TX_PIN) = PINCFG_PMUXEN;
    PORTA_PINCFG(NN_UART_RX_PIN) = PINCFG_PMUXEN;
    return clocks;
}
