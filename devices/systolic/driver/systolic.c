/* The driver of the systolic accelerator: ten functions for nn_device.c, over whichever port there is. */
#include "nn_device.h"
#include "systolic_port.h"
#include "systolic_registers.h"

#define RING  16u /* descriptors in the reserved bytes: more than queue and engines can hold unread */
#define TRIES 4u

static uint32_t           slot;
static uint32_t           last[7]; /* the device's counters when they were looked at last */
static nn_device_counters total;

static uint32_t field(uint32_t value, uint32_t mask, uint32_t shift)
{
    return (value & mask) >> shift;
}

static void copy_in(volatile uint8_t *to, const uint8_t *from, uint32_t bytes)
{
    uint32_t i = 0;

    if ((((uintptr_t)to | (uintptr_t)from) & 3u) == 0) {
        for (; i + 4u <= bytes; i += 4u) {
            *(volatile uint32_t *)(volatile void *)(to + i) = *(const uint32_t *)(const void *)(from + i);
        }
    }
    for (; i < bytes; i++) {
        to[i] = from[i];
    }
}

static void copy_out(uint8_t *to, const volatile uint8_t *from, uint32_t bytes)
{
    uint32_t i = 0;

    if ((((uintptr_t)to | (uintptr_t)from) & 3u) == 0) {
        for (; i + 4u <= bytes; i += 4u) {
            *(uint32_t *)(void *)(to + i) = *(const volatile uint32_t *)(const volatile void *)(from + i);
        }
    }
    for (; i < bytes; i++) {
        to[i] = from[i];
    }
}

static int reachable(uint32_t address, uint32_t bytes)
{
    return address <= SYSTOLIC_MEMORY_BYTES && SYSTOLIC_MEMORY_BYTES - address >= bytes;
}

int nn_driver_open(void)
{
    if (systolic_attach() != 0) {
        return 1;
    }
    if (systolic_get(SYSTOLIC_REG_ID) != SYSTOLIC_ID || (systolic_get(SYSTOLIC_REG_VERSION) & 0xffu) != SYSTOLIC_VERSION) {
        systolic_detach();
        return 1;
    }
    systolic_set(SYSTOLIC_REG_CTRL, SYSTOLIC_CTRL_CLEAR);
    total = (nn_device_counters){0, 0, 0, 0, 0, 0, 0, 0};
    for (uint32_t i = 0; i < sizeof last / sizeof *last; i++) {
        last[i] = 0;
    }
    last[0] = systolic_get(SYSTOLIC_REG_CYCLES);
    return 0;
}

void nn_driver_close(void)
{
    systolic_set(SYSTOLIC_REG_CTRL, SYSTOLIC_CTRL_RESET);
    systolic_detach();
}

int nn_driver_write(uint32_t address, const void *from, uint32_t bytes)
{
    if (!reachable(address, bytes)) {
        return 1;
    }
    copy_in(systolic_memory() + address, (const uint8_t *)from, bytes);
    return 0;
}

int nn_driver_read(uint32_t address, void *to, uint32_t bytes)
{
    if (!reachable(address, bytes)) {
        return 1;
    }
    copy_out((uint8_t *)to, systolic_memory() + address, bytes);
    return 0;
}

int nn_driver_submit(const void *descriptor, uint32_t bytes)
{
    const uint32_t address = slot * SYSTOLIC_DESCRIPTOR;

    if (bytes != SYSTOLIC_DESCRIPTOR) {
        return 1;
    }
    slot = (slot + 1u) % RING;
    copy_in(systolic_memory() + address, (const uint8_t *)descriptor, bytes);
    __sync_synchronize(); /* the descriptor is in memory before the device is told */
    systolic_set(SYSTOLIC_REG_DOORBELL, address);
    return 0;
}

int nn_driver_commit(void)
{
    return 0;
}

/* The count and the tag are of one moment: both are looked at until the count stands still. */
void nn_driver_poll(nn_device_state *state)
{
    const uint32_t status = systolic_get(SYSTOLIC_REG_STATUS);
    const uint32_t queued = field(status, SYSTOLIC_STATUS_QUEUED, SYSTOLIC_STATUS_QUEUED_SHIFT);
    uint32_t       done = systolic_get(SYSTOLIC_REG_DONE), tag = systolic_get(SYSTOLIC_REG_TAG);

    for (uint32_t i = 0; i < TRIES && systolic_get(SYSTOLIC_REG_DONE) != done; i++) {
        done = systolic_get(SYSTOLIC_REG_DONE);
        tag = systolic_get(SYSTOLIC_REG_TAG);
    }
    __sync_synchronize(); /* results are read after the count that says they are there */
    state->done = done;
    state->room = queued < SYSTOLIC_QUEUE && (status & SYSTOLIC_STATUS_FULL) == 0 ? SYSTOLIC_QUEUE - queued : 0u;
    state->error = field(status, SYSTOLIC_STATUS_ERROR, SYSTOLIC_STATUS_ERROR_SHIFT);
    state->tag = (uint16_t)field(tag, SYSTOLIC_TAG_DONE, SYSTOLIC_TAG_DONE_SHIFT);
    state->failed = (uint16_t)field(tag, SYSTOLIC_TAG_FAILED, SYSTOLIC_TAG_FAILED_SHIFT);
    state->copying = 0;
}

uint32_t nn_driver_relax(uint32_t cycles)
{
    const uint32_t passed = systolic_wait(cycles);

    systolic_set(SYSTOLIC_REG_IRQ, SYSTOLIC_IRQ_DONE | SYSTOLIC_IRQ_ERROR);
    return passed;
}

static uint32_t grown(uint32_t index, uint32_t offset)
{
    const uint32_t now = systolic_get(offset), more = now - last[index];

    last[index] = now;
    return more;
}

static void count(void)
{
    const uint32_t idle = grown(2, SYSTOLIC_REG_IDLE);

    total.cycles += grown(0, SYSTOLIC_REG_CYCLES);
    total.busy += grown(1, SYSTOLIC_REG_SPAN) - idle;
    total.idle += idle;
    total.stall += grown(3, SYSTOLIC_REG_STALL);
    total.macs += (uint64_t)grown(4, SYSTOLIC_REG_MAC) * SYSTOLIC_LANES * SYSTOLIC_LANES;
    total.read += (uint64_t)grown(5, SYSTOLIC_REG_READS) * SYSTOLIC_LANES;
    total.written += (uint64_t)grown(6, SYSTOLIC_REG_WRITES) * SYSTOLIC_LANES;
}

/* What was asked of memory before a reset is dropped by the device when it comes. */
int nn_driver_reset(void)
{
    count();
    total.tasks += systolic_get(SYSTOLIC_REG_DONE);
    systolic_set(SYSTOLIC_REG_CTRL, SYSTOLIC_CTRL_ENABLE | SYSTOLIC_CTRL_IRQ_ENABLE | SYSTOLIC_CTRL_RESET);
    slot = 0;
    for (uint32_t i = 0; i < TRIES; i++) {
        if (systolic_get(SYSTOLIC_REG_STATUS) == 0 && systolic_get(SYSTOLIC_REG_DONE) == 0) {
            return 0;
        }
    }
    return 1;
}

void nn_driver_counters(nn_device_counters *counters)
{
    count();
    *counters = total;
    counters->tasks += systolic_get(SYSTOLIC_REG_DONE);
}
