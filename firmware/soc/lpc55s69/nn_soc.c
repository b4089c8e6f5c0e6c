/* LPC55S69: 96 MHz of its internal oscillator, at the voltage that the ROM leaves: only 100 MHz and more need another one.
 * UM11126: SYSCON, flash, IOCON, analog control. */
#include "nn_bare.h"

#define SYSCON(offset) NN_REG(0x40000000u + (offset))

#define PRESETCTRLCLR1 SYSCON(0x144u)
#define PRESETCTRLCLR2 SYSCON(0x148u)
#define AHBCLKCTRLSET0 SYSCON(0x220u)
#define AHBCLKCTRLSET1 SYSCON(0x224u)
#define AHBCLKCTRLSET2 SYSCON(0x228u)
#define MAINCLKSELA    SYSCON(0x280u)
#define MAINCLKSELB    SYSCON(0x284u)
#define FCCLKSEL0      SYSCON(0x2b0u)
#define FLEXFRG0CTRL   SYSCON(0x320u)
#define AHBCLKDIV      SYSCON(0x380u)
#define FMCCR          SYSCON(0x400u)
#define IOCON(pin)     NN_REG(0x40001000u + 4u * (pin)) /* of port 0 */
#define FRO192M_CTRL   NN_REG(0x40013010u)
#define FLASH_CMD      NN_REG(0x40034000u)
#define FLASH_DATAW0   NN_REG(0x40034080u)
#define FLASH_STATUS   NN_REG(0x40034fe0u)
#define FLASH_CLEAR    NN_REG(0x40034fe8u)

#define IOCON_CLOCK     (1u << 13)
#define FLEXCOMM0       (1u << 11)
#define ANALOG_CONTROL  (1u << 27)
#define FRO192M_96MHZ   (1u << 30)
#define MAIN_FRO_HF     3u
#define FLEXCOMM_MAIN   0u
#define FRACTION_WHOLE  0xffu
#define FLASH_SET_READ  2u
#define FLASH_DONE      (1u << 2)
#define FLASH_ALL       0x1fu
#define FMCCR_FLASHTIM  (15u << 12)
#define PIN_DIGITAL     (1u << 8)

#define UART_HERTZ 96000000u

/* The flash is told first, then what reads it. */
static void set_waits(void)
{
    FLASH_CLEAR = FLASH_ALL;
    FLASH_DATAW0 = (FLASH_DATAW0 & ~15u) | NN_FLASH_WAITS;
    FLASH_CMD = FLASH_SET_READ;
    (void)nn_ready(&FLASH_STATUS, FLASH_DONE, FLASH_DONE);
    FMCCR = (FMCCR & ~FMCCR_FLASHTIM) | (NN_FLASH_WAITS << 12);
}

nn_clocks nn_soc_start(void)
{
    nn_clocks clocks = {UART_HERTZ, UART_HERTZ};

    PRESETCTRLCLR2 = ANALOG_CONTROL;
    AHBCLKCTRLSET2 = ANALOG_CONTROL;
    FRO192M_CTRL |= FRO192M_96MHZ;
    set_waits();
    AHBCLKDIV = 0;
    MAINCLKSELA = MAIN_FRO_HF;
    MAINCLKSELB = 0;
    AHBCLKCTRLSET0 = IOCON_CLOCK;
    IOCON(NN_UART_TX_PIN) = PIN_DIGITAL | NN_UART_AF;
    IOCON(NN_UART_RX_PIN) = PIN_DIGITAL | NN_UART_AF;
    FCCLKSEL0 = FLEXCOMM_MAIN;
    FLEXFRG0CTRL = FRACTION_WHOLE;
    AHBCLKCTRLSET1 = FLEXCOMM0;
    PRESETCTRLCLR1 = FLEXCOMM0;
    return clocks;
}
