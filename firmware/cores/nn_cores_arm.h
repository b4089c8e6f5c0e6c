/* Common part of the ports for a second Cortex-M, included once by each: its exceptions, its restarts, and sleeping by
 * wfe, which the other core ends by sev. */
#ifndef NN_CORES_ARM_H
#define NN_CORES_ARM_H

#include "nn_bare.h"
#include "nn_cores_port.h"
#include "nn_cortex_m.h"

#define HANDLER_BYTES "256" /* of the stack, at its top: for handlers */

extern uint32_t nn_core_stacks_high[];

static uint32_t wanted; /* the number of the requested start */

void nn_core_reset(void);
void nn_core_main(void);
void nn_core_fault(void);
void nn_core_report(const uint32_t *frame);

typedef union core_vector {
    const uint32_t *stack;
    void (*handler)(void);
} core_vector;

/* The first 16 vectors: everything but a reset is a fault. */
#define CORE_VECTORS \
    [0] = {.stack = nn_core_stacks_high}, [1] = {.handler = nn_core_reset}, [2] = {.handler = nn_core_fault}, \
    [3] = {.handler = nn_core_fault}, [4] = {.handler = nn_core_fault}, [5] = {.handler = nn_core_fault}, \
    [6] = {.handler = nn_core_fault}, [7] = {.handler = nn_core_fault}, [11] = {.handler = nn_core_fault}, \
    [14] = {.handler = nn_core_fault}, [15] = {.handler = nn_core_fault}

/* Serves one start after the other, for ever. */
static inline void core_lives(void)
{
    uint32_t life = 0;

    for (;;) {
        const uint32_t now = __atomic_load_n(&wanted, __ATOMIC_ACQUIRE);

        if (now != life) {
            life = now;
            nn_cores_serve(1, life);
        } else {
            __asm__ volatile("wfe" ::: "memory");
        }
    }
}

/* A stack overflow leaves no frame to read the address from. */
static inline void core_faulted(const uint32_t *frame)
{
    uint32_t words[NN_CORES_WORDS] = {0, 0, 0, 0, (uint32_t)(uintptr_t)frame};

#if NN_HAS_FAULT_STATUS
    words[0] = SCB_CFSR;
    words[1] = SCB_HFSR;
    words[2] = SCB_MMFAR;
    words[3] = SCB_BFAR;
    SCB_CFSR = words[0];
#endif
    nn_cores_fault(1, words);
}

void nn_cores_port_wake(int32_t core)
{
    (void)core;
    __asm__ volatile("dsb\n\tsev" ::: "memory");
}

NN_CORES_WAITING void nn_cores_port_sleep(int32_t core, const uint32_t *word, uint32_t value)
{
    (void)core;
    (void)word;
    (void)value;
    __asm__ volatile("wfe" ::: "memory");
}

#endif
