/* SysTick, the 24-bit timer in the core: restarted with every query, so that equal work always gives the same
 * count. Its exception counts wraps. */
#include "nn_bare.h"
#include "nn_cortex_m.h"

#define PERIOD 0x1000000u

static volatile uint32_t wraps;

void nn_systick_handler(void)
{
    wraps = wraps + 1u;
}

static void begin(void)
{
    SYST_CVR = 0;
    SCB_ICSR = SCB_ICSR_PENDSTCLR;
    wraps = 0;
}

uint32_t nn_timer_start(uint32_t cpu_clock)
{
    SYST_RVR = PERIOD - 1u;
    SYST_CVR = 0;
    SYST_CSR = SYST_CSR_ENABLE | SYST_CSR_TICKINT | SYST_CSR_CLKSOURCE;
    return cpu_clock;
}

uint32_t nn_timer_elapsed(void)
{
    uint32_t count;

    nn_arch_mask();
    count = SYST_CVR;
    if (SCB_ICSR & SCB_ICSR_PENDSTSET) { /* it wrapped just now, before or after that read */
        wraps = wraps + 1u;
        count = SYST_CVR;
    }
    count = wraps * PERIOD + ((PERIOD - count) & (PERIOD - 1u));
    begin();
    nn_arch_unmask();
    return count;
}
