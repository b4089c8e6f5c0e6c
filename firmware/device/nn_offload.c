/* Executes the actions of a printed model. The first failure remains the device's status, so that the rest of the region
 * does nothing, and the model's own code computes the region without the device. */
#include "nn_offload.h"

#define CHUNK 256u

static nn_device the_device;

nn_device *nn_offload_device(void)
{
    return &the_device;
}

static int begin(const nn_offload_program *program)
{
    int status;

    if (!the_device.is_open) {
        const uint32_t rescued = the_device.rescued, late = the_device.late, faults = the_device.faults;
        const uint32_t resets = the_device.resets;
        nn_device_open(&the_device);
        the_device.resets = resets;
        the_device.rescued = rescued;
        the_device.late = late;
        the_device.faults = faults;
    }
    status = nn_device_status_of(&the_device);
    if (status == NN_DEVICE_OK && the_device.resident != program) {
        if (program->resident != 0) {
            status = nn_device_write(&the_device, program->address, program->constants, program->resident);
        }
        the_device.resident = status == NN_DEVICE_OK ? program : 0;
    }
    return status;
}

static void move(uint8_t *to, const uint8_t *from, uint32_t count, uint32_t bytes, uint32_t apart_to, uint32_t apart_from)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < bytes; k++) {
            to[i * apart_to + k] = from[i * apart_from + k];
        }
    }
}

/* Pieces at a distance in the device's memory: as many at a time as fit into a buffer with zeros between them, or one by
 * one where other data is between them. */
static int copy_pieces(const nn_offload_action *action, uint8_t *arena, int to_device)
{
    uint8_t        chunk[CHUNK];
    const uint32_t bytes = action->bytes, pitch = action->pitch, apart = action->apart;
    const uint32_t single = pitch > CHUNK || (to_device && apart != bytes);
    const uint32_t most = single ? 1u : CHUNK / pitch;
    uint8_t       *place = arena + action->place;
    uint32_t       address = action->address, left = action->count;
    int            status = NN_DEVICE_OK;

    for (uint32_t i = 0; i < CHUNK; i++) {
        chunk[i] = 0;
    }
    while (left != 0 && status == NN_DEVICE_OK) {
        const uint32_t pieces = left < most ? left : most;
        if (single) {
            status = to_device ? nn_device_write(&the_device, address, place, bytes)
                               : nn_device_read(&the_device, address, place, bytes);
        } else if (to_device) {
            move(chunk, place, pieces, bytes, pitch, apart);
            status = nn_device_write(&the_device, address, chunk, pieces * pitch);
        } else {
            status = nn_device_read(&the_device, address, chunk, pieces * pitch);
            move(place, chunk, pieces, bytes, apart, pitch);
        }
        place += pieces * apart;
        address += pieces * pitch;
        left -= pieces;
    }
    return status;
}

static int copy(const nn_offload_action *action, uint8_t *arena, int to_device)
{
    if (action->count > 1) {
        return copy_pieces(action, arena, to_device);
    }
    return to_device ? nn_device_write(&the_device, action->address, arena + action->place, action->bytes)
                     : nn_device_read(&the_device, action->address, arena + action->place, action->bytes);
}

static int act(const nn_offload_program *program, const nn_offload_action *action, uint8_t *arena)
{
    const uint8_t *descriptor;

    switch (action->kind) {
    case NN_OFFLOAD_BEGIN:
        return begin(program);
    case NN_OFFLOAD_WRITE:
        return copy(action, arena, 1);
    case NN_OFFLOAD_READ:
        return copy(action, arena, 0);
    case NN_OFFLOAD_CONSTANTS:
        return nn_device_write(&the_device, action->address, program->constants + action->place, action->bytes);
    case NN_OFFLOAD_SUBMIT:
        descriptor = program->descriptors + action->place * program->descriptor_bytes;
        return nn_device_submit(
            &the_device, descriptor, program->descriptor_bytes, (uint16_t)action->count, action->pitch);
    default:
        nn_device_commit(&the_device);
        return nn_device_wait(&the_device, the_device.submitted - action->count, action->pitch);
    }
}

int nn_offload_act(const nn_offload_program *program, uint8_t *arena, uint32_t first, uint32_t last)
{
    int status = nn_device_status_of(&the_device), submitted = 0;

    for (uint32_t i = first; i < last; i++) {
        const nn_offload_action *action = &program->actions[i];
        if (status != NN_DEVICE_OK && action->kind != NN_OFFLOAD_BEGIN) {
            return status;
        }
        status = act(program, action, arena);
        submitted = action->kind == NN_OFFLOAD_SUBMIT;
    }
    return status == NN_DEVICE_OK && submitted ? nn_device_commit(&the_device) : status;
}

void nn_offload_rescue(uint32_t steps)
{
    the_device.rescued += steps;
    if (the_device.is_open) {
        nn_device_reset(&the_device);
    }
}

void nn_offload_tell(uint64_t told[NN_OFFLOAD_TOLD])
{
    nn_device_counters counters;

    nn_device_count(&the_device, &counters);
    told[0] = the_device.resets;
    told[1] = the_device.late;
    told[2] = the_device.faults;
    told[3] = the_device.rescued;
    told[4] = counters.cycles;
    told[5] = counters.busy;
    told[6] = counters.idle;
    told[7] = counters.stall;
    told[8] = counters.macs;
    told[9] = counters.read;
    told[10] = counters.written;
    told[11] = counters.tasks;
}
