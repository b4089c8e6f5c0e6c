/* The device behind a microcontroller's memory map. NN_SYSTOLIC_REGISTERS and NN_SYSTOLIC_MEMORY say where; a program
 * that uses the interrupt calls nn_systolic_interrupt from its handler. */
#include "systolic_port.h"
#include "systolic_registers.h"

#ifndef NN_SYSTOLIC_REGISTERS
#define NN_SYSTOLIC_REGISTERS 0x50060000u
#endif
#ifndef NN_SYSTOLIC_MEMORY
#define NN_SYSTOLIC_MEMORY 0x60000000u
#endif
#define SPINS 100000u /* a clock that stands still is not waited for */

static volatile uint32_t interrupts;

void nn_systolic_interrupt(void);

int systolic_attach(void)
{
    return 0;
}

void systolic_detach(void)
{
}

uint32_t systolic_get(uint32_t offset)
{
    return *(volatile uint32_t *)((uintptr_t)NN_SYSTOLIC_REGISTERS + offset);
}

void systolic_set(uint32_t offset, uint32_t value)
{
    *(volatile uint32_t *)((uintptr_t)NN_SYSTOLIC_REGISTERS + offset) = value;
}

volatile uint8_t *systolic_memory(void)
{
    return (volatile uint8_t *)(uintptr_t)NN_SYSTOLIC_MEMORY;
}

/* For the interrupt's handler: quietens the device, and ends a wait. */
void nn_systolic_interrupt(void)
{
    systolic_set(SYSTOLIC_REG_IRQ, SYSTOLIC_IRQ_DONE | SYSTOLIC_IRQ_ERROR);
    interrupts++;
}

uint32_t systolic_wait(uint32_t cycles)
{
    const uint32_t begin = systolic_get(SYSTOLIC_REG_CYCLES), before = interrupts;
    uint32_t       passed = 0;

    for (uint32_t i = 0; i < SPINS && passed < cycles; i++) {
        passed = systolic_get(SYSTOLIC_REG_CYCLES) - begin;
        if (interrupts != before || systolic_get(SYSTOLIC_REG_IRQ) != 0) {
            break;
        }
    }
    return passed != 0 ? passed : 1u;
}
