/* The link's interface to a model. A generated nn_target.c binds one model to it at link time. */
#ifndef NN_TARGET_H
#define NN_TARGET_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* JSON made at build time, sent to the host unchanged: the device formats no text. See docs/link.md. */
extern const char     nn_target_descriptor[];
extern const uint32_t nn_target_descriptor_size;

typedef enum nn_target_kind {
    NN_TARGET_INPUT = 0,
    NN_TARGET_OUTPUT = 1,
    NN_TARGET_STEP_OUTPUT = 2, /* valid from the end of step `index` to the start of the next one */
    NN_TARGET_STATE = 3,
    NN_TARGET_TICKS = 4, /* one uint64_t per step, filled by a profile */
    NN_TARGET_DEVICE = 5, /* twelve uint64_t of an accelerator; see nn_offload_tell */
    NN_TARGET_TURN = 6    /* where runs rotate through slots of the state, one int32_t: the current slot */
} nn_target_kind;

/* Starts a new sequence: recurrent state is cleared. */
void nn_target_init(void);

/* One inference, as a whole or as steps 0, 1 ... nn_target_steps() - 1 in order. 0 on success. Inputs may be
 * overwritten by it. */
int      nn_target_run(void);
uint32_t nn_target_steps(void);
int      nn_target_step(uint32_t index);

/* The address and size of a region; a null pointer if there is none. */
void *nn_target_region(uint32_t kind, uint32_t index, uint32_t *size);

#ifdef __cplusplus
}
#endif

#endif
