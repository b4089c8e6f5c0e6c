/* Starts a program with stdin and stdout of the host on the emulated Cortex-M55, through semihosting. */
#include <stdlib.h>

extern char stack_top[];
extern void initialise_monitor_handles(void);
int main(void);
void reset(void);
void start(void);
void fault(void);
void _fini(void);

__attribute__((section(".vectors"), used)) static const struct {
    const void *stack;
    void (*handlers[15])(void);
} vectors = {stack_top, {reset, fault, fault, fault, fault, fault}};

/* Naked: vectors must be on before a compiler's prologue may save their registers. */
__attribute__((naked)) void reset(void)
{
    __asm__ volatile(
#ifdef __ARM_FP
        "ldr r0, =0xe000ed88\n" /* CPACR */
        "ldr r1, [r0]\n"
        "orr r1, r1, #0xf00000\n"
        "str r1, [r0]\n"
        "dsb\n"
        "isb\n"
#endif
        "bl start\n");
}

void start(void)
{
    initialise_monitor_handles();
    exit(main());
}

void fault(void)
{
    _Exit(99);
}

void _fini(void) /* the library wants it */
{
}
