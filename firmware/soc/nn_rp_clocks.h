/* RP2040 and RP2350: the system's PLL from the crystal of 12 MHz that boards have. RP2040 data sheet 2.15 to 2.18, RP2350
 * data sheet 8.1 to 8.6: the same registers at other addresses. The including file defines these, and the PLL's dividers. */
#ifndef NN_RP_CLOCKS_H
#define NN_RP_CLOCKS_H

#include "nn_bare.h"

#define RESETS_CLEAR        NN_REG(RESETS_BASE + 0x3000u) /* the register RESET, where ones clear its bits */
#define RESETS_DONE         NN_REG(RESETS_BASE + 0x08u)
#define CLOCKS_REF_CTRL     NN_REG(CLOCKS_BASE + 0x30u)
#define CLOCKS_REF_SELECTED NN_REG(CLOCKS_BASE + 0x38u)
#define CLOCKS_SYS_CTRL     NN_REG(CLOCKS_BASE + 0x3cu)
#define CLOCKS_SYS_SELECTED NN_REG(CLOCKS_BASE + 0x44u)
#define CLOCKS_PERI_CTRL    NN_REG(CLOCKS_BASE + 0x48u)
#define XOSC_CTRL           NN_REG(XOSC_BASE + 0x00u)
#define XOSC_STATUS         NN_REG(XOSC_BASE + 0x04u)
#define XOSC_STARTUP        NN_REG(XOSC_BASE + 0x0cu)
#define PLL_CS              NN_REG(PLL_BASE + 0x00u)
#define PLL_PWR             NN_REG(PLL_BASE + 0x04u)
#define PLL_FBDIV           NN_REG(PLL_BASE + 0x08u)
#define PLL_PRIM            NN_REG(PLL_BASE + 0x0cu)
#define GPIO_CTRL(pin)      NN_REG(IO_BASE + 4u + 8u * (pin))

#define XOSC_ENABLE      0x00fabaa0u
#define XOSC_STABLE      (1u << 31)
#define XOSC_STARTUP_1MS 47u /* times 256 of its periods */
#define PLL_LOCK         (1u << 31)
#define PLL_POWER_DOWN   0x2du
#define PLL_POSTDIV_DOWN (1u << 3)
#define REF_XOSC         2u
#define SYS_AUX          1u /* the PLL */
#define PERI_ENABLE      (1u << 11)
#define GPIO_UART        2u

#define XOSC_HERTZ 12000000u
#define PLL_HERTZ  (XOSC_HERTZ * NN_PLL_N / (PLL_FIRST * PLL_SECOND))

/* 1 when the PLL feeds the processor. */
static inline int nn_rp_full_speed(void)
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
    PLL_PRIM = (PLL_FIRST << 16) | (PLL_SECOND << 12);
    PLL_PWR = PLL_POWER_DOWN & PLL_POSTDIV_DOWN; /* all on but the dividers behind it */
    if (!nn_ready(&PLL_CS, PLL_LOCK, PLL_LOCK)) {
        return 0;
    }
    PLL_PWR = 0;
    CLOCKS_SYS_CTRL = SYS_AUX;
    return nn_ready(&CLOCKS_SYS_SELECTED, 1u << SYS_AUX, 1u << SYS_AUX);
}

/* Out of their reset, and the serial port fed by the processor's clock and on its pins. */
static inline void nn_rp_serial_port(uint32_t wanted)
{
    CLOCKS_PERI_CTRL = PERI_ENABLE;
    RESETS_CLEAR = wanted;
    (void)nn_ready(&RESETS_DONE, wanted, wanted);
    GPIO_CTRL(NN_UART_TX_PIN) = GPIO_UART;
    GPIO_CTRL(NN_UART_RX_PIN) = GPIO_UART;
}

#endif
