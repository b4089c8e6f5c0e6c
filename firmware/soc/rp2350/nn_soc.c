/* RP2350, with its Arm or its RISC-V cores. Its data sheet: 2.2 (addresses), 7.5.4 (what is reset), 7.4 (PSM), 9.11.3
 * (pads), 12.14.6 (the flash's clock). */
#define RESETS_BASE 0x40020000u
#define CLOCKS_BASE 0x40010000u
#define XOSC_BASE   0x40048000u
#define PLL_BASE    0x40050000u
#define IO_BASE     0x40028000u
#define RESET_PLL   (1u << 14)
#define PLL_FIRST   5u
#define PLL_SECOND  2u

#include "nn_rp_clocks.h"

#define PADS(pin)     NN_REG(0x40038004u + 4u * (pin))
#define PSM_WDSEL     NN_REG(0x40018008u)
#define QMI_M0_TIMING NN_REG(0x400d000cu)

#define RESET_IO    (1u << 6)
#define RESET_PADS  (1u << 9)
#define RESET_UART0 (1u << 26)

#define PAD_INPUT     (1u << 6)
#define PAD_4MA       (1u << 4)
#define PAD_PULL_UP   (1u << 3)
#define PAD_SCHMITT   (1u << 1) /* and without the bit that isolates a pad */
#define PSM_ALL       0x01fffff3u /* but the two oscillators */
#define FLASH_DIVIDER 255u
#define FLASH_SLOWEST 4u

#define RING_HERTZ 11000000u /* what the chip starts with, roughly */

/* Flash runs by a part of the processor's clock: at 150 MHz by a fourth, which every command of every chip bears. What the
 * ROM found by trying it leaves as it is where that is slower. */
static void slow_flash(void)
{
    uint32_t timing = QMI_M0_TIMING;
    uint32_t divider = timing & FLASH_DIVIDER; /* 0 stands for 256 */

    if (divider != 0 && divider < FLASH_SLOWEST) {
        QMI_M0_TIMING = (timing & ~FLASH_DIVIDER) | FLASH_SLOWEST;
    }
}

nn_clocks nn_soc_start(void)
{
    uint32_t  hertz;
    nn_clocks clocks;

    slow_flash();
    hertz = nn_rp_full_speed() ? PLL_HERTZ : RING_HERTZ;
    nn_rp_serial_port(RESET_IO | RESET_PADS | RESET_UART0);
    PADS(NN_UART_TX_PIN) = PAD_INPUT | PAD_4MA | PAD_SCHMITT;
    PADS(NN_UART_RX_PIN) = PAD_INPUT | PAD_4MA | PAD_SCHMITT | PAD_PULL_UP;
    PSM_WDSEL = PSM_ALL; /* what the watchdog resets, by which RISC-V cores start anew */
    clocks.cpu = hertz;
    clocks.uart = hertz;
    return clocks;
}
