/* An accelerator beside the core: its memory, its tasks, and what to do when it fails.
 *
 * A program has one device. Its driver is ten functions, nn_driver_open to nn_driver_counters, which know its registers.
 * The rest is nn_device.c, the same for every device: it counts tasks and tags, enforces deadlines, and accepts
 * completions only in order. Nothing here allocates from a heap, takes a lock or
 * starts a thread; one thread at a time may use a device.
 *
 *     nn_device device;
 *
 *     if (nn_device_open(&device) == NN_DEVICE_OK) {
 *         nn_device_write(&device, 0x100, samples, sizeof samples);
 *         nn_device_submit(&device, descriptor, sizeof descriptor, 1, 5000);
 *         nn_device_commit(&device);
 *         if (nn_device_wait(&device, device.submitted, 5000) == NN_DEVICE_OK) {
 *             nn_device_read(&device, 0x200, results, sizeof results);
 *         }
 *     }
 *
 * Functions that return an int return an nn_device_status, except driver functions that say otherwise. The first
 * failure remains the device's status, and all functions but close and reset refuse to work until it is reset. */
#ifndef NN_DEVICE_H
#define NN_DEVICE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum nn_device_status {
    NN_DEVICE_OK = 0,
    NN_DEVICE_ABSENT = 1, /* it is missing, or a different one */
    NN_DEVICE_LATE = 2,   /* the deadline has passed and the task is not done */
    NN_DEVICE_FAULT = 3,  /* the device reports an error: see `fault` and `fault_tag` */
    NN_DEVICE_ORDER = 4,  /* tasks completed out of order, or more than were submitted */
    NN_DEVICE_RANGE = 5,  /* no such address, task or descriptor */
    NN_DEVICE_BROKEN = 6  /* it could not be reset */
} nn_device_status;

/* The device's state as read by its driver. */
typedef struct nn_device_state {
    uint32_t done;    /* tasks finished since the reset; they retire in the order in which they were submitted */
    uint32_t room;    /* free places in its queue */
    uint32_t error;   /* 0, or the device's own error number */
    uint16_t tag;     /* of the task that finished last, once one has */
    uint16_t failed;  /* the task that `error` is about */
    uint32_t copying; /* copies under way */
} nn_device_state;

/* Counted by the device since it was opened; counters that a device lacks stay 0. */
typedef struct nn_device_counters {
    uint64_t cycles; /* since it was opened */
    uint64_t busy;   /* a task was under way */
    uint64_t idle;   /* between the first task and the last, none was */
    uint64_t stall;  /* a running task waited for memory */
    uint64_t macs;   /* multiplications */
    uint64_t read;   /* bytes of memory */
    uint64_t written;
    uint64_t tasks; /* finished */
} nn_device_counters;

#define NN_DEVICE_WINDOW  64u /* tasks whose tags are remembered; no more may be unfinished */
#define NN_DEVICE_BLOCKS  16u /* pieces of memory that nn_device_allocate can hand out */
#define NN_DEVICE_NOWHERE 0xffffffffu

/* The state of the device. Programs may read it; only these functions change it. */
typedef struct nn_device {
    int         status;
    int         is_open;
    uint32_t    submitted; /* tasks since the reset: the ticket of the last one */
    uint32_t    done;
    uint32_t    fault;
    uint16_t    fault_tag;
    uint16_t    tags[NN_DEVICE_WINDOW];
    const void *resident; /* owner of the constants in its memory; none after a reset */
    uint32_t    region[2];
    uint32_t    begins[NN_DEVICE_BLOCKS];
    uint32_t    sizes[NN_DEVICE_BLOCKS]; /* 0: this block is free */
    uint32_t    resets;                  /* since it was opened */
    uint32_t    late;                    /* deadlines missed */
    uint32_t    faults;                  /* errors it reported, including wrong orders */
    uint32_t    rescued;                 /* steps that the core computed instead */
} nn_device;

/* --- opening ------------------------------------------------------------------------------------------------ */

/* Finds the device and resets it. */
int nn_device_open(nn_device *device);

/* Stops it; what is unfinished is lost. */
void nn_device_close(nn_device *device);

/* --- memory: for programs of your own; a planned program knows its addresses and allocates nothing -------------- */

/* Allocates bytes of the device's memory at a multiple of `alignment`; NN_DEVICE_NOWHERE if there are none. It uses the
 * range given to nn_device_region. */
void     nn_device_region(nn_device *device, uint32_t begin, uint32_t end);
uint32_t nn_device_allocate(nn_device *device, uint32_t bytes, uint32_t alignment);
void     nn_device_free(nn_device *device, uint32_t address);

/* Copies, and returns when it is done. */
int nn_device_write(nn_device *device, uint32_t address, const void *from, uint32_t bytes);
int nn_device_read(nn_device *device, uint32_t address, void *to, uint32_t bytes);

/* Starts a copy. Neither side may be accessed before nn_device_copied, which waits for all copies. With a driver that
 * cannot copy in the background, the copy completes at once. */
int nn_device_write_async(nn_device *device, uint32_t address, const void *from, uint32_t bytes);
int nn_device_read_async(nn_device *device, uint32_t address, void *to, uint32_t bytes);
int nn_device_copied(nn_device *device, uint32_t deadline);

/* --- tasks --------------------------------------------------------------------------------------------------- */

/* Appends a task to the queue. If the queue is full, commits its tasks and waits for room, at most this many cycles of
 * the device. `tag` is the descriptor's own. device->submitted is the task's ticket afterwards. */
int nn_device_submit(nn_device *device, const void *descriptor, uint32_t bytes, uint16_t tag, uint32_t deadline);

/* Lets the device start all submitted tasks. It may have started already. */
int nn_device_commit(nn_device *device);

/* Polls once: device->done is up to date afterwards. */
int nn_device_poll(nn_device *device);

/* Waits until the task of this ticket and all before it are done, at most this many cycles of the device. Detects
 * completion by the deadline even if the interrupt was lost. */
int nn_device_wait(nn_device *device, uint32_t ticket, uint32_t deadline);

/* Aborts unfinished tasks by a reset. The status is NN_DEVICE_OK afterwards unless the reset fails. */
int nn_device_cancel(nn_device *device);

/* The same after a failure: the queue is empty, and the contents of its memory must be written again. */
int nn_device_reset(nn_device *device);

/* The first failure since the reset. */
int nn_device_status_of(const nn_device *device);

void nn_device_count(const nn_device *device, nn_device_counters *counters);

/* --- the driver: ten functions to write for each device -------------------------------------------------
 *
 * They need not check their arguments: nn_device.c does. */

/* Finds the device and brings it to a state in which reset works. */
int  nn_driver_open(void);
void nn_driver_close(void);

/* Copies between the core's memory and the device's. NN_DEVICE_OK when done; -1 when started, and counted as `copying`
 * until done. */
int nn_driver_write(uint32_t address, const void *from, uint32_t bytes);
int nn_driver_read(uint32_t address, void *to, uint32_t bytes);

/* Adds a descriptor to the queue, which has room. It may start the task now, and must when commit is called. */
int nn_driver_submit(const void *descriptor, uint32_t bytes);
int nn_driver_commit(void);

/* Reads the device's state; never waits. */
void nn_driver_poll(nn_device_state *state);

/* Waits briefly, for example for an interrupt, at most this many cycles of the device. Returns the number of cycles
 * passed, at least 1. A simulated device advances here. */
uint32_t nn_driver_relax(uint32_t cycles);

/* Stops everything, including copies, and empties the queue: afterwards no earlier result can arrive. */
int nn_driver_reset(void);

void nn_driver_counters(nn_device_counters *counters);

#ifdef __cplusplus
}
#endif

#endif
