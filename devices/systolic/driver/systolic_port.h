/* How the driver reaches its device: by memory-mapped registers, through Linux, or in the simulator. */
#ifndef SYSTOLIC_PORT_H
#define SYSTOLIC_PORT_H

#include <stdint.h>

#define SYSTOLIC_MEMORY_BYTES 0x1000000u

/* 0 when the device can be reached. */
int  systolic_attach(void);
void systolic_detach(void);

uint32_t systolic_get(uint32_t offset);
void     systolic_set(uint32_t offset, uint32_t value);

/* The memory that the device and the core share, as the core sees it. */
volatile uint8_t *systolic_memory(void);

/* Waits for the interrupt, or until so many cycles of the device have passed; returns how many, at least 1. */
uint32_t systolic_wait(uint32_t cycles);

#endif
