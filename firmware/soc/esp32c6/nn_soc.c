/* ESP32-C6 behind its direct boot: the PLL of 480 MHz by 3 or 6 where the ROM left it running, else the crystal's 40 MHz,
 * which is then what the program reports. UART0 keeps the pins and the frame that the ROM gave it, and is fed by the crystal.
 * Technical reference manual: Reset and Clock, Watchdog Timers, UART Controller. */
#include "nn_esp.h"

#define UART0_SCLK_CONF NN_REG(0x60096004u)
#define SYSCLK_CONF     NN_REG(0x60096110u)
#define CPU_FREQ_CONF   NN_REG(0x60096118u)

#define TIMG0 0x60008000u
#define TIMG1 0x60009000u
#define LP_WATCHDOG_CONFIG 0x600b1c00u
#define LP_WATCHDOG_LOCK   0x600b1c18u
#define SUPER_CONFIG       0x600b1c1cu
#define SUPER_LOCK         0x600b1c20u
#define SUPER_FEEDS_ITSELF (1u << 18)

#define SYSCLK_SEL   (3u << 16)
#define SYSCLK_PLL   (1u << 16)
#define CPU_HS_DIV   (0x1ffu << 8) /* and the bit that forces 120 MHz */
#define UART_XTAL    (3u << 20)
#define UART_CLOCK   (1u << 22)

#define PLL_480_HERTZ 480000000u
#define UART_HERTZ    40000000u

static uint32_t full_speed(void)
{
    if ((SYSCLK_CONF & SYSCLK_SEL) != SYSCLK_PLL) {
        return UART_HERTZ;
    }
    CPU_FREQ_CONF = (CPU_FREQ_CONF & ~CPU_HS_DIV) | ((NN_PLL_DIVIDER / 3u - 1u) << 8);
    return PLL_480_HERTZ / NN_PLL_DIVIDER;
}

nn_clocks nn_soc_start(void)
{
    nn_clocks clocks = {0, UART_HERTZ};

    nn_esp_timers_watchdogs(TIMG0, TIMG1);
    nn_esp_unlocked(LP_WATCHDOG_LOCK, WATCHDOG_KEY, LP_WATCHDOG_CONFIG, 0);
    nn_esp_unlocked(SUPER_LOCK, WATCHDOG_KEY, SUPER_CONFIG, NN_REG(SUPER_CONFIG) | SUPER_FEEDS_ITSELF);
    clocks.cpu = full_speed();
    UART0_SCLK_CONF = UART_XTAL | UART_CLOCK;
    return clocks;
}
