/* Reports a fault with the processor's state to the host, then resets the chip. */
#include "nn_bare.h"
#include "nn_cortex_m.h"
#include "nn_link.h"

#define FRAME_WORDS 8u /* r0 r1 r2 r3 r12 lr pc xpsr, as the processor stacks them */

extern uint32_t nn_ram_begin[];
extern uint32_t nn_ram_end[];

void nn_fault_report(uintptr_t frame);

/* Restarts the handler stack at its top: nothing returns to its contents. The frame is on the process stack when bit 2
 * of the return code is set. */
__attribute__((naked, noreturn, used)) void nn_fault(void)
{
    __asm__ volatile(
        "cpsid i\n"
        "mov r1, lr\n"
        "movs r2, #4\n"
        "mrs r0, msp\n"
        "tst r1, r2\n"
        "beq 1f\n"
        "mrs r0, psp\n"
        "1:\n"
#if NN_HAS_STACK_LIMITS
        "movs r1, #0\n"
        "msr psplim, r1\n"
#endif
        "ldr r1, =nn_handler_stack_high\n"
        "mov sp, r1\n"
        "bl nn_fault_report\n"
        "b .\n"
        ".ltorg\n");
}

/* Whether a complete frame is in RAM: after a stack overflow there is none. */
static int readable(uintptr_t frame)
{
    return (frame & 3u) == 0 && frame >= (uintptr_t)nn_ram_begin &&
           frame + 4u * FRAME_WORDS <= (uintptr_t)nn_ram_end;
}

void nn_fault_report(uintptr_t frame)
{
    uint32_t words[FRAME_WORDS + 5u];

    for (uint32_t i = 0; i < FRAME_WORDS; i++) {
        words[i] = readable(frame) ? ((const volatile uint32_t *)frame)[i] : 0;
    }
#if NN_HAS_FAULT_STATUS
    words[FRAME_WORDS] = SCB_CFSR;
    words[FRAME_WORDS + 1u] = SCB_HFSR;
    words[FRAME_WORDS + 2u] = SCB_MMFAR;
    words[FRAME_WORDS + 3u] = SCB_BFAR;
#else
    for (uint32_t i = 0; i < 4u; i++) {
        words[FRAME_WORDS + i] = 0;
    }
#endif
    words[FRAME_WORDS + 4u] = (uint32_t)frame;
    nn_link_fault(NN_LINK_FAULT_CORTEX_M, words, FRAME_WORDS + 5u);
    nn_uart_drain();
    nn_arch_reset();
}
