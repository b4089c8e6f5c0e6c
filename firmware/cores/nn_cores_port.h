/* The interface of nn_cores.c to a processor or an operating system; one file implements it for each. */
#ifndef NN_CORES_PORT_H
#define NN_CORES_PORT_H

#include <stdint.h>

#include "nn_cores.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Waiting has its own section, by which an instruction counter distinguishes it from work. */
#if defined(__GNUC__) && defined(__ELF__)
#define NN_CORES_WAITING __attribute__((section(".text.nn_waiting"), noinline))
#define NN_CORES_COPYING __attribute__((section(".text.nn_copying"), noinline))
#else
#define NN_CORES_WAITING
#define NN_CORES_COPYING
#endif

/* A hook for tests where cores synchronize. */
#ifndef NN_CORES_POINT
#define NN_CORES_POINT() ((void)0)
#endif
#ifndef NN_CORES_IDLE_POINT /* the same, for a core that waits for an order */
#define NN_CORES_IDLE_POINT() NN_CORES_POINT()
#endif

/* Makes core `core`, from 1 on, call nn_cores_serve(core, life): for the first time, or by interrupting its work. */
void nn_cores_port_start(int32_t core, uint32_t life);

/* Ends the sleep of a core, or its next one. */
void nn_cores_port_wake(int32_t core);

/* Sleeps until the word is no longer `value`; may return earlier. */
void nn_cores_port_sleep(int32_t core, const uint32_t *word, uint32_t value);

/* The same for the first core, which must wake up every few milliseconds. */
void nn_cores_port_nap(const uint32_t *word, uint32_t value);

/* A clock that wraps around, and its ticks per millisecond. */
uint32_t nn_cores_port_clock(void);
uint32_t nn_cores_port_millisecond(void);

/* Called by a port: the loop of a core, which returns when the core is no longer needed; and the report of a fault. */
void nn_cores_serve(int32_t core, uint32_t life);
void nn_cores_fault(int32_t core, const uint32_t words[NN_CORES_WORDS]);

#ifdef __cplusplus
}
#endif

#endif
