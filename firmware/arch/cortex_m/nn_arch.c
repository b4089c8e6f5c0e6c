/* Interrupts, reset, and the clock: the core's cycle counter, or the chip's timer where the counter does not run. */
#include "nn_bare.h"
#include "nn_cortex_m.h"
#include "nn_platform.h"

const char *const nn_platform_unit = "cycles";

static uint64_t ticks;
static uint32_t hertz;
#if NN_HAS_DWT
static uint32_t last_cycle;
static uint8_t  cycles_count;
#endif

void nn_arch_mask(void)
{
    __asm__ volatile("cpsid i" ::: "memory");
}

void nn_arch_unmask(void)
{
    __asm__ volatile("cpsie i" ::: "memory");
}

void nn_arch_sleep(void)
{
    __asm__ volatile("dsb\n\twfi" ::: "memory");
}

void nn_arch_listen(void)
{
    NVIC_ISER(NN_UART_IRQ / 32u) = 1u << (NN_UART_IRQ % 32u);
}

void nn_arch_reset(void)
{
    nn_barrier();
    SCB_AIRCR = SCB_AIRCR_RESET;
    nn_barrier();
    for (;;) {
    }
}

#if NN_HAS_DWT
/* Emulators have the register, but it does not count. */
static int start_cycles(void)
{
    uint32_t before;

    DEMCR |= DEMCR_TRCENA;
    DWT_LAR = DWT_LAR_KEY;
    DWT_CYCCNT = 0;
    DWT_CTRL |= DWT_CTRL_CYCCNTENA;
    before = DWT_CYCCNT;
    for (volatile uint32_t i = 0; i < 16u; i = i + 1u) {
    }
    return DWT_CYCCNT != before;
}
#endif

void nn_arch_count(uint32_t cpu_clock)
{
#if NN_HAS_DWT
    cycles_count = (uint8_t)start_cycles();
    if (cycles_count) {
        hertz = cpu_clock;
        return;
    }
#endif
    hertz = nn_timer_start(cpu_clock);
}

static uint32_t elapsed(void)
{
#if NN_HAS_DWT
    if (cycles_count) {
        uint32_t now = DWT_CYCCNT;
        uint32_t since = now - last_cycle;

        last_cycle = now;
        return since;
    }
#endif
    return nn_timer_elapsed();
}

/* The 32-bit counter wraps after 25 s at 168 MHz; this sum does not. */
uint64_t nn_platform_ticks(void)
{
    ticks += elapsed();
    return ticks;
}

uint32_t nn_platform_hertz(void)
{
    return hertz;
}
