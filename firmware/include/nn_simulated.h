/* A device simulated beside an emulated processor: the interface of the shared object that a device's table names. The
 * emulator maps `memory` into the processor's, forwards register accesses, and advances the clock. */
#ifndef NN_SIMULATED_H
#define NN_SIMULATED_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Creates the device with this many bytes of memory shared with the processor; 0 on failure. */
void *nn_simulated_open(uint8_t *memory, uint32_t bytes);
void  nn_simulated_close(void *device);

/* Registers of 32 bits. */
uint32_t nn_simulated_read(void *device, uint32_t offset);
void     nn_simulated_write(void *device, uint32_t offset, uint32_t value);

/* Advances by this many cycles; returns whether the interrupt is raised at their end. */
int nn_simulated_step(void *device, uint32_t cycles);

#ifdef __cplusplus
}
#endif

#endif
