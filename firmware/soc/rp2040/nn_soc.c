/* RP2040: the system's PLL from the crystal of 12 MHz that boards have. RP2040 data sheet. */
#include "nn_bare.h"

#define RESETS_CLEAR       NN_REG(0x4000f000u) /* the register RESET, where ones clear its bits */
#define RESETS_DONE        NN_REG(0x4000c008u)
#define CLOCKS_REF_CTRL    NN_REG(0x40008030u)
#define CLOCKS_REF_SELECTED NN_REG(0x40008038u)
#define CLOCKS_SYS_CTRL    NN_REG(0x4000803cu)
#define CLOCKS_SYS_SELECTED NN_REG(0x40008044u)
#define CLOCKS_PERI_CTRL   NN_REG(0x40008048u)
#define XOSC_CTRL          NN_REG(0x40024000u)
#define XOSC_STATUS        NN_REG(0x40024004u)
#define XOSC_STARTUP       NN_REG(0x4002400cu)
#define PLL_CS             NN_REG(0x40028000u)
#define PLL_PWR            NN_REG(0x40028004u)
#define PLL_FBDIV          NN_REG(0x40028008u)
#define PLL_PRIM           NN_REG(0x4002800cu)
#define GPIO_CTRL(pin)     NN_REG(0x40014004u + 8u * (pin))

#define RESET_IO         (1u << 5)
#define RESET_PADS       (1u << 8)
#define RESET_PLL        (1u << 12)
#define RESET_UART0      (1u << 22)
#define XOSC_ENABLE      0x00fabaa0u
#define XOSC_STABLE      (1u << 31)
#define XOSC_STARTUP_1MS 47u /* times 256 of its periods */
#define PLL_LOCK         (1u << 31)
#define PLL_POWER_DOWN   0x2du
#define PLL_POSTDIV_DOWN (1u << 3)
#define PLL_DIVIDERS     ((6u << 16) | (2u << 12))
#define REF_XOSC         2u
#define SYS_AUX          1u /* the PLL */
#define PERI_ENABLE      (1u << 11)
#define GPIO_UART        2u

#define XOSC_HERTZ 12000000u
#define RING_HERTZ 6500000u /* what the chip starts with, roughly */
#define PLL_HERTZ  (XOSC_HERTZ * NN_PLL_N / 12u)

/* 1 when the PLL feeds the processor. */
static int full_speed(void)
{
    XOSC_STARTUP = XOSC_STARTUP_1MS;
    XOSC_CTRL = XOSC_ENABLE;
    if (!nn_ready(&XOSC_STATUS, XOSC_STABLE, XOSC_STABLE)) {
        return 0;
    }
    CLOCKS_REF_CTRL = REF_XOSC;
    if (!nn_ready(&CLOCKS_REF_SELECTED, 1u << REF_XOSC, 1u << REF_XOSC)) {
        return 0;
    }
    RESETS_CLEAR = RESET_PLL;
    if (!nn_ready(&RESETS_DONE, RESET_PLL, RESET_PLL)) {
        return 0;
    }
    PLL_CS = 1u;
    PLL_FBDIV = NN_PLL_N;
    PLL_PRIM = PLL_DIVIDERS;
    PLL_PWR = PLL_POWER_DOWN & PLL_POSTDIV_DOWN; /* all on but the dividers behind it */
    if (!nn_ready(&PLL_CS, PLL_LOCK, PLL_LOCK)) {
        return 0;
    }
    PLL_PWR = 0;
    CLOCKS_SYS_CTRL = SYS_AUX;
    return nn_ready(&CLOCKS_SYS_SELECTED, 1u << SYS_AUX, 1u << SYS_AUX);
}

nn_clocks nn_soc_start(void)
{
    uint32_t  hertz = full_speed() ? PLL_HERTZ : RING_HERTZ;
    nn_clocks clocks = {hertz, hertz};
    uint32_t  wanted = RESET_IO | RESET_PADS | RESET_UART0;

    CLOCKS_PERI_CTRL = PERI_ENABLE;
    RESETS_CLEAR = wanted;
    (void)nn_ready(&RESETS_DONE, wanted, wanted);
    GPIO_CTRL(NN_UART_TX_PIN) = GPIO_UART;
    GPIO_CTRL(NN_UART_RX_PIN) = GPIO_UART;
    return clocks;
}
