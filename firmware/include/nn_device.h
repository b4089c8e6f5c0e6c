/* An accelerator beside the core: its memory, its tasks, and what to do when it fails.
 *
 * A program has one device. Ten functions, nn_driver_open to nn_driver_counters, know its registers; they are its
 * driver. All the rest is nn_device.c, which is the same for every device: it counts tasks and tags, keeps deadlines,
 * and accepts nothing that it has not seen finished in order. Nothing here allocates from a heap, takes a lock or
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
 * Every function that returns an int returns an nn_device_status, but for those of the driver that say otherwise. The
 * first failure stays the device's status, and all but close and reset refuse to work until it is reset. */
#ifndef NN_DEVICE_H
#define NN_DEVICE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum nn_device_status {
    NN_DEVICE_OK = 0,
    NN_DEVICE_ABSENT = 1, /* it is not there, or it is another one */
    NN_DEVICE_LATE = 2,   /* the deadline is past and the task is not done */
    NN_DEVICE_FAULT = 3,  /* the device says that something is wrong: `fault` and `fault_tag` say what */
    NN_DEVICE_ORDER = 4,  /* tasks finished that were not the next, or more than were submitted */
    NN_DEVICE_RANGE = 5,  /* no such address, task or descriptor */
    NN_DEVICE_BROKEN = 6  /* it could not be reset */
} nn_device_status;

/* What a driver sees when it looks at its device. */
typedef struct nn_device_state {
    uint32_t done;    /* tasks finished since the reset; they retire in the order in which they were submitted */
    uint32_t room;    /* how many more descriptors it takes now */
    uint32_t error;   /* 0, or the device's own number of what went wrong */
    uint16_t tag;     /* of the task that finished last, once one has */
    uint16_t failed;  /* the task that `error` is about */
    uint32_t copying; /* copies under way */
} nn_device_state;

/* Counted by the device since it was opened; what a device does not count stays 0. */
typedef struct nn_device_counters {
    uint64_t cycles; /* since it was opened */
    uint64_t busy;   /* a task was under way */
    uint64_t idle;   /* between the first task and the last, none was */
    uint64_t stall;  /* a task was under way and waited for memory */
    uint64_t macs;   /* multiplications */
    uint64_t read;   /* bytes of memory */
    uint64_t written;
    uint64_t tasks; /* finished */
} nn_device_counters;

#define NN_DEVICE_WINDOW  64u /* tasks whose tags are remembered; no more may be unfinished */
#define NN_DEVICE_BLOCKS  16u /* pieces of memory that nn_device_allocate can hand out */
#define NN_DEVICE_NOWHERE 0xffffffffu

/* What is known of the device. Read it; only these functions may change it. */
typedef struct nn_device {
    int         status;
    int         is_open;
    uint32_t    submitted; /* tasks since the reset: the ticket of the last one */
    uint32_t    done;
    uint32_t    fault;
    uint16_t    fault_tag;
    uint16_t    tags[NN_DEVICE_WINDOW];
    const void *resident; /* whose constants its memory holds; none after a reset */
    uint32_t    region[2];
    uint32_t    begins[NN_DEVICE_BLOCKS];
    uint32_t    sizes[NN_DEVICE_BLOCKS]; /* 0: this block is free */
    uint32_t    resets;                  /* since it was opened */
    uint32_t    late;                    /* deadlines missed */
    uint32_t    faults;                  /* errors it reported, wrong orders included */
    uint32_t    rescued;                 /* steps that the core computed in its stead */
} nn_device;

/* --- opening ------------------------------------------------------------------------------------------------ */

/* Finds the device and resets it. */
int nn_device_open(nn_device *device);

/* Stops it; what is unfinished is lost. */
void nn_device_close(nn_device *device);

/* --- memory: for programs of your own; a planned program knows its addresses and allocates nothing -------------- */

/* The address of so many free bytes of the device's memory, a multiple of `alignment`; NN_DEVICE_NOWHERE if there are
 * none. It hands out the range that was given to nn_device_region. */
void     nn_device_region(nn_device *device, uint32_t begin, uint32_t end);
uint32_t nn_device_allocate(nn_device *device, uint32_t bytes, uint32_t alignment);
void     nn_device_free(nn_device *device, uint32_t address);

/* Copies, and returns when it is done. */
int nn_device_write(nn_device *device, uint32_t address, const void *from, uint32_t bytes);
int nn_device_read(nn_device *device, uint32_t address, void *to, uint32_t bytes);

/* Begins a copy. Neither side may be touched before nn_device_copied, which waits for all of them. With a driver that
 * cannot copy in the background they are done at once. */
int nn_device_write_async(nn_device *device, uint32_t address, const void *from, uint32_t bytes);
int nn_device_read_async(nn_device *device, uint32_t address, void *to, uint32_t bytes);
int nn_device_copied(nn_device *device, uint32_t deadline);

/* --- tasks --------------------------------------------------------------------------------------------------- */

/* Puts a task at the end of the queue. Where the queue is full it commits what is in it and waits for room, so many
 * cycles of the device at most. `tag` is the descriptor's own. device->submitted is the task's ticket afterwards. */
int nn_device_submit(nn_device *device, const void *descriptor, uint32_t bytes, uint16_t tag, uint32_t deadline);

/* Lets the device begin with all that was submitted. It may have begun already. */
int nn_device_commit(nn_device *device);

/* Looks once: device->done is up to date afterwards. */
int nn_device_poll(nn_device *device);

/* Waits until the task of this ticket and all before it are done, so many cycles of the device at most. A device that
 * is done by the deadline but whose interrupt was lost is found done. */
int nn_device_wait(nn_device *device, uint32_t ticket, uint32_t deadline);

/* Gives up what is unfinished, by a reset. Its status is NN_DEVICE_OK afterwards unless that fails. */
int nn_device_cancel(nn_device *device);

/* The same after a failure: the queue is empty, and what its memory held must be written again. */
int nn_device_reset(nn_device *device);

/* The first failure since the reset. */
int nn_device_status_of(const nn_device *device);

void nn_device_count(const nn_device *device, nn_device_counters *counters);

/* --- the driver: ten functions that somebody writes for a device -------------------------------------------------
 *
 * They need not check what they are given: nn_device.c does. */

/* Finds the device and brings it to a state in which reset works. */
int  nn_driver_open(void);
void nn_driver_close(void);

/* Copies between the core's memory and the device's. NN_DEVICE_OK when it is done; -1 when it has begun and counts as
 * `copying` until it is done. */
int nn_driver_write(uint32_t address, const void *from, uint32_t bytes);
int nn_driver_read(uint32_t address, void *to, uint32_t bytes);

/* Takes a descriptor into the queue; there is room for it. It may begin with it, and must when commit is called. */
int nn_driver_submit(const void *descriptor, uint32_t bytes);
int nn_driver_commit(void);

/* Looks at the device; never waits. */
void nn_driver_poll(nn_device_state *state);

/* Waits a little, for an interrupt perhaps, and no longer than so many cycles of the device. Returns how many passed,
 * at least 1. A simulated device moves here. */
uint32_t nn_driver_relax(uint32_t cycles);

/* Stops everything, copies included, and empties the queue: afterwards nothing of the life before can arrive. */
int nn_driver_reset(void);

void nn_driver_counters(nn_device_counters *counters);

#ifdef __cplusplus
}
#endif

#endif
