/* The link's interface to its platform. Each platform implements it. */
#ifndef NN_PLATFORM_H
#define NN_PLATFORM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sends bytes to the host; returns when they are sent or safely queued. */
void nn_platform_write(const uint8_t *bytes, uint32_t size);

/* A monotonic counter, its rate, and its unit: "instructions", "cycles" or "ns". */
uint64_t                 nn_platform_ticks(void);
uint32_t                 nn_platform_hertz(void);
extern const char *const nn_platform_unit;

/* Maximum stack bytes used since the start, and the stack's size. 0 and 0 if unknown. */
void nn_platform_stack(uint32_t *used, uint32_t *size);

/* Restarts the device, like its reset button, after sending pending bytes. It may return if the restart takes effect
 * later. */
void nn_platform_reset(void);

#ifdef __cplusplus
}
#endif

#endif
