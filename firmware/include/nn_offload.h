/* The actions of a printed model's steps on a device, as a table. A program need not include this. */
#ifndef NN_OFFLOAD_H
#define NN_OFFLOAD_H

#include "nn_device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum nn_offload_kind {
    NN_OFFLOAD_BEGIN = 0,     /* opens the device if necessary, and writes constants that its memory lacks */
    NN_OFFLOAD_WRITE = 1,     /* from `place` in the arena to `address`: `count` pieces of `bytes`, `apart` from begin to
                               * begin in the arena, `pitch` on the device */
    NN_OFFLOAD_READ = 2,      /* the same, the other way */
    NN_OFFLOAD_CONSTANTS = 3, /* `bytes` from `place` in the constants to `address` */
    NN_OFFLOAD_SUBMIT = 4,    /* the descriptor number `place`, with the tag `count` */
    NN_OFFLOAD_WAIT = 5       /* until at most `count` tasks are unfinished */
} nn_offload_kind;

typedef struct nn_offload_action {
    uint32_t kind;
    uint32_t address;
    uint32_t place;
    uint32_t count;
    uint32_t bytes;
    uint32_t pitch; /* of NN_OFFLOAD_SUBMIT and NN_OFFLOAD_WAIT: the deadline in cycles of the device */
    uint32_t apart;
} nn_offload_action;

typedef struct nn_offload_program {
    const nn_offload_action *actions;
    const uint8_t           *descriptors;
    uint32_t                 descriptor_bytes;
    const uint8_t           *constants;
    uint32_t                 resident; /* bytes of constants that are written once, to `address` */
    uint32_t                 address;
} nn_offload_program;

/* The program's device, opened or not: its counters say how often it failed. */
nn_device *nn_offload_device(void);

/* Executes actions `first` to `last` - 1. Returns an nn_device_status; stops at the first failure. */
int nn_offload_act(const nn_offload_program *program, uint8_t *arena, uint32_t first, uint32_t last);

/* For a check, in this order: resets, missed deadlines, faults, steps that the processor computed instead of the device,
 * and the counters of nn_device_counters. */
#define NN_OFFLOAD_TOLD 12
void nn_offload_tell(uint64_t told[NN_OFFLOAD_TOLD]);

/* Counts steps that the processor is about to compute instead of the device, and resets the device. */
void nn_offload_rescue(uint32_t steps);

#ifdef __cplusplus
}
#endif

#endif
