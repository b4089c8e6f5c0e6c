/* The simulated device as C sees it: its registers, its memory, its clock, and what may go wrong at its pins. */
#ifndef SYSTOLIC_SIM_H
#define SYSTOLIC_SIM_H
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif

typedef struct systolic_sim systolic_sim;

/* `latency` is how many cycles memory takes to answer. */
systolic_sim *systolic_sim_open(uint32_t memory_bytes, uint32_t latency);
/* Like the first, in memory of the caller's. */
systolic_sim *systolic_sim_open_at(uint8_t *memory, uint32_t memory_bytes, uint32_t latency);
void systolic_sim_close(systolic_sim *sim);
uint8_t *systolic_sim_memory(systolic_sim *sim);
/* An access to a register takes a cycle. */
uint32_t systolic_sim_read(systolic_sim *sim, uint32_t offset);
void systolic_sim_write(systolic_sim *sim, uint32_t offset, uint32_t value);
/* Up to so many cycles, fewer when the interrupt comes; returns how many. */
uint32_t systolic_sim_step(systolic_sim *sim, uint32_t cycles);
int systolic_sim_interrupt(systolic_sim *sim);
uint64_t systolic_sim_cycles(const systolic_sim *sim);

/* Faults at the pins. They begin once `after` more events of their kind have passed; the hardware is untouched. */
enum {
    SYSTOLIC_FAULT_NONE,
    SYSTOLIC_FAULT_HANG,        /* memory grants nothing any more, after so many grants, until a software reset */
    SYSTOLIC_FAULT_LOST_IRQ,    /* the interrupt never comes */
    SYSTOLIC_FAULT_SPURIOUS,    /* the interrupt comes after so many cycles, with no cause, for `mask` cycles */
    SYSTOLIC_FAULT_DESCRIPTOR,  /* bits of `mask` flip in one word of a descriptor that is read */
    SYSTOLIC_FAULT_CONSTANTS,   /* the same in a word of constants */
    SYSTOLIC_FAULT_REGISTER,    /* bits of `mask` flip in one read of register `where` */
    SYSTOLIC_FAULT_ERROR,       /* memory answers one read with an error */
    SYSTOLIC_FAULT_STUCK        /* bits of `mask` flip in every read of register `where`, until a software reset */
};
void systolic_sim_fault(systolic_sim *sim, int kind, uint32_t after, uint32_t where, uint64_t mask);
/* How often the fault took effect. */
uint32_t systolic_sim_struck(const systolic_sim *sim);
/* NN_SYSTOLIC_FAULT in the environment breaks something: kind, after, where, mask. */
void systolic_sim_fault_wished(systolic_sim *sim);
/* NN_SYSTOLIC_COUNTERS names a file for what was counted: a line a counter. */
void systolic_sim_tell(systolic_sim *sim);
/* The same while the model's code is measured: writes what was covered. */
void systolic_sim_coverage(systolic_sim *sim, const char *path);

#ifdef __cplusplus
}
#endif
#endif
