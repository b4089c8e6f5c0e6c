/* What the link needs from the place it runs on. One of these is written per platform. */
#ifndef NN_PLATFORM_H
#define NN_PLATFORM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sends bytes to the host; returns when they are sent or safely queued. */
void nn_platform_write(const uint8_t *bytes, uint32_t size);

/* A counter that only grows, how fast it grows, and what it counts: "instructions", "cycles" or "ns". */
uint64_t                 nn_platform_ticks(void);
uint32_t                 nn_platform_hertz(void);
extern const char *const nn_platform_unit;

/* Most stack bytes in use at any time since the start, and how many there are. 0 and 0 where it cannot be known. */
void nn_platform_stack(uint32_t *used, uint32_t *size);

/* Starts the device anew, as its reset button does, after what was written has left. It may return where that takes
 * effect later. */
void nn_platform_reset(void);

#ifdef __cplusplus
}
#endif

#endif
