/* The device in this process: every access to a register moves its clock, and so does waiting. */
#include <stdlib.h>

#include "systolic_port.h"
#include "systolic_sim.h"

#define LATENCY 8u
#define LOOK    64u /* cycles until the driver looks again: most tasks end without an interrupt */

static systolic_sim *sim;

static void tell(void)
{
    if (sim != 0) {
        systolic_sim_tell(sim);
    }
}

int systolic_attach(void)
{
    static int registered;

    sim = systolic_sim_open(SYSTOLIC_MEMORY_BYTES, LATENCY);
    if (sim == 0 || (!registered && atexit(tell) != 0)) {
        return 1;
    }
    registered = 1;
    systolic_sim_fault_wished(sim);
    return 0;
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
    const uint32_t passed = systolic_sim_step(sim, cycles < LOOK ? cycles : LOOK);

    return passed != 0 ? passed : 1u;
}
