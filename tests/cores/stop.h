/* Put in front of the run-time by -include: one core stops, or takes a fault, where cores meet for the n-th time; the
 * next time it is another one that is drawn.
 *
 * Words in RAM that the emulator fills: which core, at which point, how (0: it hangs, 1: a fault), a counter; how many
 * other cores there are, and from what the next stop is drawn (tests/support/lost_cores.py draws the same). */
#ifndef STOP_H
#define STOP_H

#include <stdint.h>

#define STOP ((volatile uint32_t *)NN_STOP)

static inline void draw_next(void)
{
    const uint32_t drawn = STOP[5] * 1664525u + 1013904223u;

    STOP[0] = 0; /* nobody until all is written */
    STOP[1] = 10u + (drawn >> 12) % 60u;
    STOP[2] = (drawn >> 20) % 10u < 3u;
    STOP[3] = 0;
    STOP[5] = drawn;
    STOP[0] = 1u + (drawn >> 8) % STOP[4];
}

static inline void stop_here(void)
{
    uint32_t core;

#if defined(__riscv)
    __asm__ volatile("csrr %0, mhartid" : "=r"(core));
#else
    core = *(volatile uint32_t *)0x5001f000u;
#endif
    if (core == STOP[0] && (STOP[3] = STOP[3] + 1u) == STOP[1]) {
        const uint32_t fault = STOP[2];

        draw_next();
        if (fault != 0) {
            __builtin_trap();
        }
        for (;;) {
        }
    }
}

#define NN_CORES_POINT()      stop_here()
#define NN_CORES_IDLE_POINT() ((void)0) /* how often it looks around while it waits is chance */
#endif
