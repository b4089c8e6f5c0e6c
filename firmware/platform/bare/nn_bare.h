/* The parts of a firmware. Each is one file or folder, selected by the board's table:
 * an architecture (arch/), a family of chips (soc/), a serial port (uart/) and a timer (timer/). */
#ifndef NN_BARE_H
#define NN_BARE_H

#include <stdint.h>

/* A hardware register at an address. */
#define NN_REG(address) (*(volatile uint32_t *)(uintptr_t)(address))

/* A ready flag not set after this many polls never will be: emulators lack some flags. */
#define NN_READY_LOOKS 20000u

/* 1 once the masked bits have the wanted value, 0 if they never do. */
static inline int nn_ready(volatile uint32_t *place, uint32_t mask, uint32_t wanted)
{
    for (uint32_t look = 0; look < NN_READY_LOOKS; look++) {
        if ((*place & mask) == wanted) {
            return 1;
        }
    }
    return 0;
}

/* --- soc/: clocks and pins ------------------------------------------------------------------------------------- */

typedef struct nn_clocks {
    uint32_t cpu;  /* the actual Hz, which may differ from the requested ones */
    uint32_t uart; /* Hz of the serial port's clock */
} nn_clocks;

/* Full speed, and the serial port's pins and clock. */
nn_clocks nn_soc_start(void);

/* --- uart/: the serial port -------------------------------------------------------------------------------------- */

/* clock * scale / baud, to nearest: audits forbid 64-bit divisions. */
static inline uint32_t nn_uart_divider(uint32_t clock, uint32_t scale, uint32_t baud)
{
    return clock / baud * scale + (clock % baud * scale + baud / 2u) / baud;
}

/* The first bits of baud / clock, which is below 1. */
static inline uint32_t nn_uart_share(uint32_t baud, uint32_t clock, uint32_t bits)
{
    uint32_t share = 0;

    for (uint32_t rest = baud; bits > 0; bits--) {
        rest *= 2u;
        share *= 2u;
        if (rest >= clock) {
            rest -= clock;
            share |= 1u;
        }
    }
    return share;
}

/* Starts it, with an interrupt for every received byte. */
void nn_uart_start(uint32_t clock, uint32_t baud);

/* 1 and a byte if one has been received; 0 otherwise. */
int nn_uart_take(uint8_t *byte);

/* Waits for room, then sends. */
void nn_uart_send(uint8_t byte);

/* Waits until the last byte has left. */
void nn_uart_drain(void);

/* --- timer/: the clock where the core has no running cycle counter --------------------------------------------- */

/* Starts it; returns its ticks per second. */
uint32_t nn_timer_start(uint32_t cpu_clock);

/* Ticks since the last call. */
uint32_t nn_timer_elapsed(void);

/* --- arch/: the processor ------------------------------------------------------------------------------------------ */

/* Interrupts off, and on again. */
void nn_arch_mask(void);
void nn_arch_unmask(void);

/* Waits until an interrupt is pending, also while they are off. */
void nn_arch_sleep(void);

/* Enables the serial port's interrupt. */
void nn_arch_listen(void);

/* Starts the counter of nn_platform_ticks. */
void nn_arch_count(uint32_t cpu_clock);

/* Starts the chip anew. */
void nn_arch_reset(void);

/* --- bare/: called by the serial port's interrupt ------------------------------------------------------------- */

void nn_serial_interrupt(void);

int main(void);

#endif
