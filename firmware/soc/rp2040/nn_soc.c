/* RP2040. Its data sheet: 2.2 (addresses), 2.14.3 (what is reset). */
#define RESETS_BASE 0x4000c000u
#define CLOCKS_BASE 0x40008000u
#define XOSC_BASE   0x40024000u
#define PLL_BASE    0x40028000u
#define IO_BASE     0x40014000u
#define RESET_PLL   (1u << 12)
#define PLL_FIRST   6u
#define PLL_SECOND  2u

#include "nn_rp_clocks.h"

#define RESET_IO    (1u << 5)
#define RESET_PADS  (1u << 8)
#define RESET_UART0 (1u << 22)

#define RING_HERTZ 6500000u /* what the chip starts with, roughly */

nn_clocks nn_soc_start(void)
{
    uint32_t  hertz = nn_rp_full_speed() ? PLL_HERTZ : RING_HERTZ;
    nn_clocks clocks = {hertz, hertz};

    nn_rp_serial_port(RESET_IO | RESET_PADS | RESET_UART0);
    return clocks;
}
