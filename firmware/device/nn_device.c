/* The device-independent part: tickets, tags, deadlines, and the first failure. */
#include "nn_device.h"

#define BEGUN (-1)

static int failed(nn_device *device, int status)
{
    if (device->status == NN_DEVICE_OK) {
        device->status = status;
        device->late += status == NN_DEVICE_LATE ? 1u : 0u;
        device->faults += status == NN_DEVICE_FAULT || status == NN_DEVICE_ORDER ? 1u : 0u;
    }
    return device->status;
}

static int usable(const nn_device *device)
{
    return device->is_open ? device->status : NN_DEVICE_ABSENT;
}

static void forget(nn_device *device)
{
    device->submitted = 0;
    device->done = 0;
    device->resident = 0;
}

int nn_device_open(nn_device *device)
{
    device->is_open = 0;
    device->status = NN_DEVICE_OK;
    device->fault = 0;
    device->fault_tag = 0;
    device->resets = 0;
    device->late = 0;
    device->faults = 0;
    device->rescued = 0;
    forget(device);
    nn_device_region(device, 0, 0);
    if (nn_driver_open() != 0) {
        return failed(device, NN_DEVICE_ABSENT);
    }
    device->is_open = 1;
    if (nn_driver_reset() != 0) {
        return failed(device, NN_DEVICE_BROKEN);
    }
    return NN_DEVICE_OK;
}

void nn_device_close(nn_device *device)
{
    if (device->is_open) {
        nn_driver_close();
    }
    device->is_open = 0;
}

void nn_device_region(nn_device *device, uint32_t begin, uint32_t end)
{
    device->region[0] = begin;
    device->region[1] = end;
    for (uint32_t i = 0; i < NN_DEVICE_BLOCKS; i++) {
        device->sizes[i] = 0;
    }
}

/* The end of an overlapping block, or NN_DEVICE_NOWHERE. */
static uint32_t in_the_way(const nn_device *device, uint32_t at, uint32_t bytes)
{
    for (uint32_t i = 0; i < NN_DEVICE_BLOCKS; i++) {
        const uint32_t begin = device->begins[i], size = device->sizes[i];
        if (size != 0 && at < begin + size && begin < at + bytes) {
            return begin + size;
        }
    }
    return NN_DEVICE_NOWHERE;
}

/* The lowest free address: the search restarts after each overlapping block, and addresses only grow. */
static uint32_t lowest(const nn_device *device, uint32_t bytes, uint32_t alignment)
{
    uint32_t at = device->region[0];

    for (;;) {
        const uint32_t over = at % alignment, end = device->region[1];
        at += over != 0 ? alignment - over : 0u;
        if (at > end || end - at < bytes) {
            return NN_DEVICE_NOWHERE;
        }
        const uint32_t behind = in_the_way(device, at, bytes);
        if (behind == NN_DEVICE_NOWHERE) {
            return at;
        }
        at = behind;
    }
}

uint32_t nn_device_allocate(nn_device *device, uint32_t bytes, uint32_t alignment)
{
    for (uint32_t i = 0; bytes != 0 && alignment != 0 && i < NN_DEVICE_BLOCKS; i++) {
        if (device->sizes[i] == 0) {
            const uint32_t at = lowest(device, bytes, alignment);
            if (at != NN_DEVICE_NOWHERE) {
                device->begins[i] = at;
                device->sizes[i] = bytes;
            }
            return at;
        }
    }
    return NN_DEVICE_NOWHERE;
}

void nn_device_free(nn_device *device, uint32_t address)
{
    for (uint32_t i = 0; i < NN_DEVICE_BLOCKS; i++) {
        if (device->sizes[i] != 0 && device->begins[i] == address) {
            device->sizes[i] = 0;
        }
    }
}

/* Compares the device's report with its orders: a completion too many, or of a task other than the next, is an error. */
static int look(nn_device *device, nn_device_state *state)
{
    nn_driver_poll(state);
    if (state->error != 0) {
        device->fault = state->error;
        device->fault_tag = state->failed;
        return failed(device, NN_DEVICE_FAULT);
    }
    if (state->done - device->done > device->submitted - device->done) {
        return failed(device, NN_DEVICE_ORDER);
    }
    if (state->done != 0 && state->tag != device->tags[(state->done - 1u) % NN_DEVICE_WINDOW]) {
        device->fault_tag = state->tag;
        return failed(device, NN_DEVICE_ORDER);
    }
    device->done = state->done;
    return NN_DEVICE_OK;
}

int nn_device_poll(nn_device *device)
{
    nn_device_state state;
    const int       status = usable(device);

    return status != NN_DEVICE_OK ? status : look(device, &state);
}

typedef enum goal { DONE, ROOM, COPIED } goal;

static int reached(const nn_device *device, const nn_device_state *state, goal wanted, uint32_t ticket)
{
    switch (wanted) {
    case DONE:
        return device->submitted - ticket >= device->submitted - device->done;
    case ROOM:
        return state->room != 0 && device->submitted - device->done < NN_DEVICE_WINDOW;
    default:
        return state->copying == 0;
    }
}

/* Polls once more when the time is up: an interrupt may have been lost. */
static int until(nn_device *device, goal wanted, uint32_t ticket, uint32_t deadline)
{
    nn_device_state state;
    uint32_t        left = deadline;

    for (;;) {
        const int status = look(device, &state);
        if (status != NN_DEVICE_OK || reached(device, &state, wanted, ticket)) {
            return status;
        }
        if (left == 0) {
            return failed(device, NN_DEVICE_LATE);
        }
        const uint32_t passed = nn_driver_relax(left);
        left -= passed < left ? passed : left;
        left -= passed == 0 ? 1u : 0u;
    }
}

static int copy_begun(nn_device *device, int said)
{
    return said == NN_DEVICE_OK || said == BEGUN ? NN_DEVICE_OK : failed(device, NN_DEVICE_FAULT);
}

/* The time limit of a copy without a deadline: one cycle per byte, and a margin. */
static uint32_t time_for(uint32_t bytes)
{
    return bytes > (NN_DEVICE_NOWHERE - 10000u) / 8u ? NN_DEVICE_NOWHERE : 8u * bytes + 10000u;
}

int nn_device_write_async(nn_device *device, uint32_t address, const void *from, uint32_t bytes)
{
    const int status = usable(device);

    return status != NN_DEVICE_OK ? status : copy_begun(device, nn_driver_write(address, from, bytes));
}

int nn_device_read_async(nn_device *device, uint32_t address, void *to, uint32_t bytes)
{
    const int status = usable(device);

    return status != NN_DEVICE_OK ? status : copy_begun(device, nn_driver_read(address, to, bytes));
}

int nn_device_copied(nn_device *device, uint32_t deadline)
{
    const int status = usable(device);

    return status != NN_DEVICE_OK ? status : until(device, COPIED, 0, deadline);
}

int nn_device_write(nn_device *device, uint32_t address, const void *from, uint32_t bytes)
{
    const int status = nn_device_write_async(device, address, from, bytes);

    return status != NN_DEVICE_OK ? status : until(device, COPIED, 0, time_for(bytes));
}

int nn_device_read(nn_device *device, uint32_t address, void *to, uint32_t bytes)
{
    const int status = nn_device_read_async(device, address, to, bytes);

    return status != NN_DEVICE_OK ? status : until(device, COPIED, 0, time_for(bytes));
}

int nn_device_submit(nn_device *device, const void *descriptor, uint32_t bytes, uint16_t tag, uint32_t deadline)
{
    nn_device_state state;
    int             status = usable(device);

    if (status == NN_DEVICE_OK && (descriptor == 0 || bytes == 0)) {
        status = failed(device, NN_DEVICE_RANGE);
    }
    if (status == NN_DEVICE_OK) {
        status = look(device, &state);
    }
    if (status == NN_DEVICE_OK && !reached(device, &state, ROOM, 0)) {
        status = nn_device_commit(device);
        status = status == NN_DEVICE_OK ? until(device, ROOM, 0, deadline) : status;
    }
    if (status != NN_DEVICE_OK) {
        return status;
    }
    device->tags[device->submitted % NN_DEVICE_WINDOW] = tag;
    device->submitted++;
    return nn_driver_submit(descriptor, bytes) == 0 ? NN_DEVICE_OK : failed(device, NN_DEVICE_FAULT);
}

int nn_device_commit(nn_device *device)
{
    const int status = usable(device);

    if (status != NN_DEVICE_OK) {
        return status;
    }
    return nn_driver_commit() == 0 ? NN_DEVICE_OK : failed(device, NN_DEVICE_FAULT);
}

int nn_device_wait(nn_device *device, uint32_t ticket, uint32_t deadline)
{
    const int status = usable(device);

    if (status != NN_DEVICE_OK) {
        return status;
    }
    if (ticket > device->submitted) {
        return failed(device, NN_DEVICE_RANGE);
    }
    return until(device, DONE, ticket, deadline);
}

int nn_device_reset(nn_device *device)
{
    if (!device->is_open) {
        return NN_DEVICE_ABSENT;
    }
    device->resets++;
    device->status = NN_DEVICE_OK;
    forget(device);
    return nn_driver_reset() == 0 ? NN_DEVICE_OK : failed(device, NN_DEVICE_BROKEN);
}

int nn_device_cancel(nn_device *device)
{
    return nn_device_reset(device);
}

int nn_device_status_of(const nn_device *device)
{
    return usable(device);
}

void nn_device_count(const nn_device *device, nn_device_counters *counters)
{
    uint8_t *bytes = (uint8_t *)counters;

    for (uint32_t i = 0; i < sizeof *counters; i++) {
        bytes[i] = 0;
    }
    if (device->is_open) {
        nn_driver_counters(counters);
    }
}
