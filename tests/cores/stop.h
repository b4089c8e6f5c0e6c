/* Put in front of everything by -include: one core stops, or takes a fault, where cores meet for the n-th time.
 *
 * Words in RAM: which core, at which point, how (0: it hangs, 1: a fault), a counter. */
#ifndef STOP_H
#define STOP_H

#include <stdint.h>

#define STOP ((volatile uint32_t *)NN_STOP)

static inline void stop_here(void)
{
    uint32_t core;

#if defined(__riscv)
    __asm__ volatile("csrr %0, mhartid" : "=r"(core));
#else
    core = *(volatile uint32_t *)0x5001f000u;
#endif
    if (core == STOP[0] && (STOP[3] = STOP[3] + 1u) == STOP[1]) {
        if (STOP[2] != 0) {
            __builtin_trap();
        }
        for (;;) {
        }
    }
}

#define NN_CORES_POINT()      stop_here()
#define NN_CORES_IDLE_POINT() ((void)0) /* how often it looks around while it waits is chance */
#endif
