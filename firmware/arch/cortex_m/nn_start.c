/* Cortex-M: the vector table, and start-up from reset to main.
 *
 * main runs on the process stack, at the bottom of the RAM: an overflow leaves the RAM and faults instead of overwriting
 * data. Interrupts and faults use the main stack. */
#include "nn_bare.h"
#include "nn_cortex_m.h"
#include "nn_memory.h"

extern uint32_t nn_handler_stack_high[];

void nn_reset(void);

typedef union nn_vector {
    const uint32_t *stack;
    void (*handler)(void);
} nn_vector;

/* Only the interrupts of the serial port and of an accelerator are ever enabled; the table ends with them. */
#ifdef NN_DEVICE_IRQ
void nn_device_interrupt(void);
#define LAST_IRQ (NN_DEVICE_IRQ > NN_UART_IRQ ? NN_DEVICE_IRQ : NN_UART_IRQ)
#else
#define LAST_IRQ NN_UART_IRQ
#endif
#define VECTORS (16u + LAST_IRQ + 1u)

__attribute__((section(".vectors"), used)) const nn_vector nn_vectors[VECTORS] = {
    [0] = {.stack = nn_handler_stack_high},
    [1] = {.handler = nn_reset},
    [2] = {.handler = nn_fault},            /* NMI */
    [3] = {.handler = nn_fault},            /* HardFault: the others below escalate to it, but may be enabled */
    [4] = {.handler = nn_fault},            /* MemManage */
    [5] = {.handler = nn_fault},            /* BusFault */
    [6] = {.handler = nn_fault},            /* UsageFault */
    [7] = {.handler = nn_fault},            /* SecureFault (Armv8-M) */
    [11] = {.handler = nn_fault},           /* SVCall */
    [14] = {.handler = nn_fault},           /* PendSV */
    [15] = {.handler = nn_systick_handler},
    [16u + NN_UART_IRQ] = {.handler = nn_serial_interrupt},
#ifdef NN_DEVICE_IRQ
    [16u + NN_DEVICE_IRQ] = {.handler = nn_device_interrupt},
#endif
};

/* In assembly, because a compiler may use the FPU in the first instruction of any C function. Also sets the stack
 * pointer, because a bootloader that jumps here may have left its own. */
__attribute__((naked, noreturn, used)) void nn_reset(void)
{
    __asm__ volatile(
        "cpsid i\n"
#if NN_HAS_FPU
        "ldr r0, =0xe000ed88\n" /* CPACR: full access to the FPU */
        "ldr r1, [r0]\n"
        "ldr r2, =0x00f00000\n"
        "orrs r1, r1, r2\n"
        "str r1, [r0]\n"
        "dsb\n"
        "isb\n"
#endif
        "movs r0, #0\n"
        "msr control, r0\n"
        "isb\n"
#if NN_HAS_STACK_LIMITS
        "ldr r0, =nn_handler_stack_low\n" /* a bootloader may also have left its own limit */
        "msr msplim, r0\n"
#endif
        "ldr r0, =nn_handler_stack_high\n"
        "mov sp, r0\n"
        "bl nn_prepare\n"
        "ldr r0, =nn_stack_high\n"
        "msr psp, r0\n"
#if NN_HAS_STACK_LIMITS
        "ldr r0, =nn_stack_low\n"
        "msr psplim, r0\n"
#endif
        "movs r0, #2\n" /* CONTROL.SPSEL: from here on, the process stack */
        "msr control, r0\n"
        "isb\n"
        "bl main\n"
        "b .\n"
        ".ltorg\n");
}

#if NN_HAS_CACHES
/* No other bus master writes to memory, so the caches never need cleaning. Their contents are undefined after a reset,
 * so they are invalidated before they are enabled. */
static void start_caches(void)
{
    uint32_t shape;
    uint32_t sets;
    uint32_t ways;

    SCB_ICIALLU = 0;
    SCB_CSSELR = 0;
    nn_barrier();
    shape = SCB_CCSIDR;
    sets = (shape >> 13) & 0x7fffu;
    ways = (shape >> 3) & 0x3ffu;
    for (uint32_t set = 0; set <= sets; set++) {
        for (uint32_t way = 0; way <= ways; way++) {
            SCB_DCISW = (set << 5) | (way << 30);
        }
    }
    nn_barrier();
    SCB_CCR |= SCB_CCR_IC | SCB_CCR_DC;
    nn_barrier();
}
#endif

void nn_prepare(void)
{
#ifdef NN_RAM_ENABLE
    NN_REG(NN_RAM_ENABLE) = NN_RAM_ENABLE_BITS; /* only the RAM of the stacks is on at first */
#endif
#if NN_HAS_VTOR
    SCB_VTOR = (uint32_t)(uintptr_t)nn_vectors; /* a bootloader has its own table */
#endif
#if NN_HAS_LOW_OVERHEAD_LOOPS
    SCB_CCR |= SCB_CCR_LOB;
#endif
    nn_memory_start();
#if NN_HAS_CACHES
    start_caches(); /* not before: copied code must be visible to instruction fetches */
#endif
    nn_barrier();
}
