/* The device in this process: every access to a register moves its clock, and so does waiting.
 *
 * NN_SYSTOLIC_FAULT in the environment breaks something at its pins: kind, after, where, mask of systolic_sim_fault. */
#include <stdlib.h>

#include "systolic_port.h"
#include "systolic_sim.h"

#define LATENCY 8u

static systolic_sim *sim;

static void break_something(const char *wish)
{
    unsigned long long numbers[4] = {0, 0, 0, 0};
    char              *at = (char *)wish;

    for (int i = 0; i < 4; i++) {
        numbers[i] = strtoull(at, &at, 0);
    }
    systolic_sim_fault(sim, (int)numbers[0], (uint32_t)numbers[1], (uint32_t)numbers[2], numbers[3]);
}

int systolic_attach(void)
{
    const char *wish = getenv("NN_SYSTOLIC_FAULT");

    sim = systolic_sim_open(SYSTOLIC_MEMORY_BYTES, LATENCY);
    if (sim != 0 && wish != 0) {
        break_something(wish);
    }
    return sim == 0;
}

void systolic_detach(void)
{
    systolic_sim_close(sim);
    sim = 0;
}

uint32_t systolic_get(uint32_t offset)
{
    return systolic_sim_read(sim, offset);
}

void systolic_set(uint32_t offset, uint32_t value)
{
    systolic_sim_write(sim, offset, value);
}

volatile uint8_t *systolic_memory(void)
{
    return systolic_sim_memory(sim);
}

uint32_t systolic_wait(uint32_t cycles)
{
    const uint32_t passed = systolic_sim_step(sim, cycles);

    return passed != 0 ? passed : 1u;
}
