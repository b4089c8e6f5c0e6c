/* A device that is simulated beside an emulated processor: what a shared object must have for a device's table to name
 * it. The emulator maps `memory` into the processor's, hands on accesses to registers, and moves the clock. */
#ifndef NN_SIMULATED_H
#define NN_SIMULATED_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The device with so many bytes of memory that it shares with the processor; 0 when there is none. */
void *nn_simulated_open(uint8_t *memory, uint32_t bytes);
void  nn_simulated_close(void *device);

/* Registers of 32 bits. */
uint32_t nn_simulated_read(void *device, uint32_t offset);
void     nn_simulated_write(void *device, uint32_t offset, uint32_t value);

/* So many cycles pass; returns whether the interrupt is raised at their end. */
int nn_simulated_step(void *device, uint32_t cycles);

#ifdef __cplusplus
}
#endif

#endif
