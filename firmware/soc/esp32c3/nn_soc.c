/* ESP32-C3 behind its direct boot: the PLL of 480 MHz, which is on from reset, by 3 or 6. UART0 keeps the pins and the frame
 * that the ROM gave it, and is fed by the crystal. Technical reference manual: Reset and Clock, Low-power Management, Watchdog
 * Timers, System Registers, UART Controller. */
#include "nn_esp.h"

#define CPU_PER_CONF   NN_REG(0x600c0008u)
#define SYSCLK_CONF    NN_REG(0x600c0058u)
#define UART0_CLK_CONF NN_REG(0x60000078u)

#define TIMG0 0x6001f000u
#define TIMG1 0x60020000u
#define RTC_WATCHDOG_CONFIG 0x60008090u
#define RTC_WATCHDOG_LOCK   0x600080a8u
#define SUPER_CONFIG        0x600080acu
#define SUPER_LOCK          0x600080b0u
#define SUPER_KEY           0x8f1d312au
#define SUPER_FEEDS_ITSELF  (1u << 31)

#define CPU_PERIOD      3u
#define CPU_PLL_480     (1u << 2)
#define SYSCLK_SEL      (3u << 10)
#define SYSCLK_PLL      (1u << 10)
#define UART_XTAL       (3u << 20)
#define UART_CLOCKS     ((1u << 22) | (1u << 24) | (1u << 25))

#define PLL_480_HERTZ 480000000u
#define UART_HERTZ    40000000u

nn_clocks nn_soc_start(void)
{
    nn_clocks clocks = {PLL_480_HERTZ / NN_PLL_DIVIDER, UART_HERTZ};

    nn_esp_timers_watchdogs(TIMG0, TIMG1);
    nn_esp_unlocked(RTC_WATCHDOG_LOCK, WATCHDOG_KEY, RTC_WATCHDOG_CONFIG, 0);
    nn_esp_unlocked(SUPER_LOCK, SUPER_KEY, SUPER_CONFIG, NN_REG(SUPER_CONFIG) | SUPER_FEEDS_ITSELF);
    CPU_PER_CONF = (CPU_PER_CONF & ~CPU_PERIOD) | CPU_PLL_480 | (NN_PLL_DIVIDER == 3u);
    SYSCLK_CONF = (SYSCLK_CONF & ~SYSCLK_SEL) | SYSCLK_PLL;
    UART0_CLK_CONF = UART_XTAL | UART_CLOCKS;
    return clocks;
}
