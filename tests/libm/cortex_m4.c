/* Start, text output and exit on the emulated Cortex-M4F, through semihosting. */
#include "bare.h"

extern uint32_t stack_top[];
void reset(void);

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {stack_top, (void *)reset};

/* Naked: the floating-point unit must be on before a compiler's prologue may save its registers. */
__attribute__((naked)) void reset(void)
{
    __asm__ volatile(
        "ldr r0, =0xe000ed88\n" /* CPACR */
        "ldr r1, [r0]\n"
        "orr r1, r1, #0xf00000\n"
        "str r1, [r0]\n"
        "dsb\n"
        "isb\n"
        "bl start\n");
}

static uint32_t host_call(uint32_t operation, const void *argument)
{
    register uint32_t r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;

    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void say(const char *text)
{
    host_call(4, text); /* SYS_WRITE0 */
}

void finish(void)
{
    host_call(0x18, (const void *)0x20026); /* SYS_EXIT, ADP_Stopped_ApplicationExit */
    for (;;)
        ;
}
