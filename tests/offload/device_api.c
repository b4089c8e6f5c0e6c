/* A driver that obeys what a test sets, and the calls of the test. Prints nothing; returns the line that failed. */
#include "nn_device.h"

static uint8_t          memory[64];
static nn_device_state  seen;
static uint16_t         queue[8];
static uint32_t         queued, relaxed, deaf, background;
static nn_device_counters counted;

int nn_driver_open(void)
{
    return 0;
}

void nn_driver_close(void)
{
}

int nn_driver_write(uint32_t address, const void *from, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        memory[address + i] = ((const uint8_t *)from)[i];
    }
    seen.copying = background;
    return background != 0 ? -1 : 0;
}

int nn_driver_read(uint32_t address, void *to, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        ((uint8_t *)to)[i] = memory[address + i];
    }
    return 0;
}

int nn_driver_submit(const void *descriptor, uint32_t bytes)
{
    (void)bytes;
    queue[queued++ % 8u] = *(const uint8_t *)descriptor;
    seen.room--;
    return 0;
}

int nn_driver_commit(void)
{
    return 0;
}

void nn_driver_poll(nn_device_state *state)
{
    *state = seen;
}

uint32_t nn_driver_relax(uint32_t cycles)
{
    relaxed++;
    seen.copying = 0;
    if (!deaf && seen.done < queued) {
        seen.tag = queue[seen.done % 8u];
        seen.done++;
        seen.room++;
        counted.tasks++;
    }
    return cycles < 10u ? cycles : 10u;
}

int nn_driver_reset(void)
{
    seen.done = 0;
    seen.error = 0;
    seen.room = 2;
    queued = 0;
    deaf = 0;
    return 0;
}

void nn_driver_counters(nn_device_counters *counters)
{
    *counters = counted;
}

#define EXPECT(condition) \
    do { \
        if (!(condition)) { \
            return __LINE__; \
        } \
    } while (0)

static int memory_is_handed_out(nn_device *device)
{
    uint32_t first, second;

    EXPECT(nn_device_allocate(device, 4, 1) == NN_DEVICE_NOWHERE);
    nn_device_region(device, 3, 40);
    first = nn_device_allocate(device, 10, 8);
    second = nn_device_allocate(device, 10, 4);
    EXPECT(first == 8 && second == 20);
    EXPECT(nn_device_allocate(device, 20, 1) == NN_DEVICE_NOWHERE);
    nn_device_free(device, first);
    EXPECT(nn_device_allocate(device, 12, 4) == 4);
    EXPECT(nn_device_allocate(device, 0, 4) == NN_DEVICE_NOWHERE);
    EXPECT(nn_device_allocate(device, 5, 5) == 30);
    return 0;
}

static int tasks_are_counted(nn_device *device)
{
    const uint8_t tags[] = {7, 8, 9};

    for (unsigned i = 0; i < 3; i++) {
        EXPECT(nn_device_submit(device, &tags[i], 1, tags[i], 100) == NN_DEVICE_OK);
    }
    EXPECT(device->done == 1); /* there was room for two: the third waited for one to be done */
    EXPECT(nn_device_commit(device) == NN_DEVICE_OK);
    EXPECT(nn_device_wait(device, 2, 100) == NN_DEVICE_OK && device->done == 2);
    EXPECT(nn_device_wait(device, 3, 100) == NN_DEVICE_OK && device->done == 3);
    EXPECT(nn_device_wait(device, 1, 0) == NN_DEVICE_OK);
    return 0;
}

static int failures_stay(nn_device *device)
{
    const uint8_t tag = 5;

    deaf = 1;
    relaxed = 0;
    EXPECT(nn_device_submit(device, &tag, 1, tag, 100) == NN_DEVICE_OK);
    EXPECT(nn_device_wait(device, device->submitted, 95) == NN_DEVICE_LATE && relaxed == 10);
    EXPECT(nn_device_commit(device) == NN_DEVICE_LATE && device->late == 1);
    EXPECT(nn_device_reset(device) == NN_DEVICE_OK && device->resets == 1);
    EXPECT(nn_device_submit(device, &tag, 1, 6, 100) == NN_DEVICE_OK); /* not the tag in the descriptor */
    EXPECT(nn_device_wait(device, 1, 100) == NN_DEVICE_ORDER && device->fault_tag == 5);
    EXPECT(nn_device_cancel(device) == NN_DEVICE_OK);
    seen.done = 1;
    EXPECT(nn_device_poll(device) == NN_DEVICE_ORDER); /* nothing was submitted */
    EXPECT(nn_device_reset(device) == NN_DEVICE_OK);
    EXPECT(nn_device_submit(device, &tag, 1, tag, 100) == NN_DEVICE_OK);
    seen.error = 3;
    seen.failed = 5;
    EXPECT(nn_device_wait(device, 1, 100) == NN_DEVICE_FAULT && device->fault == 3 && device->fault_tag == 5);
    EXPECT(device->faults == 3 && nn_device_reset(device) == NN_DEVICE_OK);
    EXPECT(nn_device_wait(device, 1, 10) == NN_DEVICE_RANGE);
    EXPECT(nn_device_reset(device) == NN_DEVICE_OK && nn_device_submit(device, 0, 1, 0, 1) == NN_DEVICE_RANGE);
    EXPECT(nn_device_reset(device) == NN_DEVICE_OK && nn_device_status_of(device) == NN_DEVICE_OK);
    return 0;
}

static int copies_may_take_time(nn_device *device)
{
    char back[4];

    EXPECT(nn_device_write(device, 8, "abc", 4) == NN_DEVICE_OK);
    background = 1;
    EXPECT(nn_device_write_async(device, 12, "def", 4) == NN_DEVICE_OK && seen.copying == 1);
    EXPECT(nn_device_copied(device, 100) == NN_DEVICE_OK && seen.copying == 0);
    EXPECT(nn_device_read(device, 12, back, 4) == NN_DEVICE_OK && back[0] == 'd' && back[3] == 0);
    return 0;
}

int main(void)
{
    static nn_device   device;
    nn_device_counters counters;
    int                line;

    EXPECT(nn_device_poll(&device) == NN_DEVICE_ABSENT && nn_device_reset(&device) == NN_DEVICE_ABSENT);
    EXPECT(nn_device_open(&device) == NN_DEVICE_OK);
    if ((line = memory_is_handed_out(&device)) != 0 || (line = tasks_are_counted(&device)) != 0 ||
        (line = failures_stay(&device)) != 0 || (line = copies_may_take_time(&device)) != 0) {
        return line;
    }
    nn_device_count(&device, &counters);
    EXPECT(counters.tasks == 4 && counters.cycles == 0);
    nn_device_close(&device);
    EXPECT(nn_device_commit(&device) == NN_DEVICE_ABSENT);
    return 0;
}
