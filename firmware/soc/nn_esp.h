/* Common part of ESP32-C3 and C6: they execute from flash without Espressif's image format when it starts with a repeated
 * word ("direct boot"), and start with watchdogs on. Technical reference manuals: Chip Boot Control, Watchdog Timers. */
#ifndef NN_ESP_H
#define NN_ESP_H

#include "nn_bare.h"

#define WATCHDOG_KEY 0x50d83aa1u

void nn_boot(void);

/* The first bytes of flash. The ROM continues after the two words, with the first 4 MB of flash in the memory map. */
__attribute__((naked, used, section(".boot"))) void nn_boot(void)
{
    __asm__ volatile(
        ".word 0xaedb041d\n"
        ".word 0xaedb041d\n"
        "j nn_reset\n");
}

/* One watchdog: its register is locked by another one. */
static inline void nn_esp_unlocked(uint32_t lock, uint32_t key, uint32_t place, uint32_t value)
{
    NN_REG(lock) = key;
    NN_REG(place) = value;
    NN_REG(lock) = 0;
}

/* Those of the two groups of timers. */
static inline void nn_esp_timers_watchdogs(uint32_t first, uint32_t second)
{
    nn_esp_unlocked(first + 0x64u, WATCHDOG_KEY, first + 0x48u, 0);
    nn_esp_unlocked(second + 0x64u, WATCHDOG_KEY, second + 0x48u, 0);
}

#endif
