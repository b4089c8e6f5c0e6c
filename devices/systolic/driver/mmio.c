/* The device behind a microcontroller's memory map. NN_SYSTOLIC_REGISTERS and NN_SYSTOLIC_MEMORY say where; a program
 * that uses the interrupt defines NN_DEVICE_IRQ, its number, and has nn_device_interrupt in its vector table. */
#include "systolic_port.h"
#include "systolic_registers.h"

#ifndef NN_SYSTOLIC_REGISTERS
#define NN_SYSTOLIC_REGISTERS 0x50060000u
#endif
#ifndef NN_SYSTOLIC_MEMORY
#define NN_SYSTOLIC_MEMORY 0x60000000u
#endif
#define LOOK  64u  /* cycles until the driver looks again: most tasks end without an interrupt */
#define SPINS 256u /* a clock that stands still is not waited for */

/* Elsewhere the interrupt is not used: the driver looks. */
#if defined(NN_DEVICE_IRQ) && defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
#define TAKES_INTERRUPTS 1
#else
#define TAKES_INTERRUPTS 0
#endif
#define NVIC_ENABLE  0xe000e100u
#define NVIC_DISABLE 0xe000e180u

static volatile uint32_t interrupts;

void nn_device_interrupt(void);

#if TAKES_INTERRUPTS
static void interrupt_at(uint32_t set)
{
    *(volatile uint32_t *)(uintptr_t)(set + 4u * (NN_DEVICE_IRQ / 32u)) = 1u << (NN_DEVICE_IRQ % 32u);
}
#endif

int systolic_attach(void)
{
#if TAKES_INTERRUPTS
    interrupt_at(NVIC_ENABLE);
#endif
    return 0;
}

void systolic_detach(void)
{
#if TAKES_INTERRUPTS
    interrupt_at(NVIC_DISABLE);
#endif
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

/* Quietens the device, and ends a wait. */
void nn_device_interrupt(void)
{
    systolic_set(SYSTOLIC_REG_IRQ, SYSTOLIC_IRQ_DONE | SYSTOLIC_IRQ_ERROR);
    interrupts++;
}

uint32_t systolic_wait(uint32_t cycles)
{
    const uint32_t begin = systolic_get(SYSTOLIC_REG_CYCLES), before = interrupts;
    uint32_t       passed = 0;

    for (uint32_t i = 0; i < SPINS && passed < cycles && passed < LOOK; i++) {
        passed = systolic_get(SYSTOLIC_REG_CYCLES) - begin;
        if (interrupts != before || systolic_get(SYSTOLIC_REG_IRQ) != 0) {
            break;
        }
    }
    return passed != 0 ? passed : 1u;
}
