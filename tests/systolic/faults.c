/* Breaks the simulated device in a random way, many times, and counts what its driver lets through.
 *
 * faults SCENARIOS TRIALS SEED: prints a line for each kind of fault. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn_device.h"
#include "systolic_port.h"
#include "systolic_registers.h"
#include "systolic_sim.h"

#define MEMORY 0x100000u
#define AT     0x400u /* behind what belongs to the driver */

typedef struct scenario {
    uint32_t       bytes, tasks, cycles, out, size;
    const uint8_t *image, *descriptors, *expected;
} scenario;

enum { RESET_UNDER_WAY = 20, WRONG_ORDER, BROKEN_IN_MEMORY, KINDS };
static const int kinds[] = {SYSTOLIC_FAULT_HANG,     SYSTOLIC_FAULT_LOST_IRQ, SYSTOLIC_FAULT_SPURIOUS,
                            SYSTOLIC_FAULT_DESCRIPTOR, SYSTOLIC_FAULT_CONSTANTS, SYSTOLIC_FAULT_REGISTER,
                            SYSTOLIC_FAULT_ERROR,    SYSTOLIC_FAULT_STUCK,    RESET_UNDER_WAY,
                            WRONG_ORDER,             BROKEN_IN_MEMORY};
static const char *const names[KINDS] = {
    [SYSTOLIC_FAULT_HANG] = "hang",
    [SYSTOLIC_FAULT_LOST_IRQ] = "lost interrupt",
    [SYSTOLIC_FAULT_SPURIOUS] = "spurious interrupt",
    [SYSTOLIC_FAULT_DESCRIPTOR] = "descriptor on the bus",
    [SYSTOLIC_FAULT_CONSTANTS] = "constants on the bus",
    [SYSTOLIC_FAULT_REGISTER] = "bad status, once",
    [SYSTOLIC_FAULT_ERROR] = "memory error",
    [SYSTOLIC_FAULT_STUCK] = "bad status, until reset",
    [RESET_UNDER_WAY] = "reset under way",
    [WRONG_ORDER] = "wrong order",
    [BROKEN_IN_MEMORY] = "descriptor in memory"};

static systolic_sim *sim;
static uint64_t      seed;

static uint32_t drawn(uint32_t below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((seed >> 33) % below);
}

static uint64_t some_bits(uint32_t width)
{
    uint64_t bits = 0;

    for (uint32_t i = 0, count = 1u + drawn(4); i < count; i++) {
        bits |= (uint64_t)1 << drawn(width);
    }
    return bits;
}

/* --- the port --- */

int systolic_attach(void)
{
    return sim == 0;
}

void systolic_detach(void)
{
}

uint32_t systolic_get(uint32_t offset)
{
    return systolic_sim_read(sim, offset);
}

void systolic_set(uint32_t offset, uint32_t value)
{
    systolic_sim_write(sim, offset, value);
}

volatile uint8_t *systolic_memory(void)
{
    return systolic_sim_memory(sim);
}

uint32_t systolic_wait(uint32_t cycles)
{
    return systolic_sim_step(sim, cycles);
}

/* --- a run --- */

static int begin(nn_device *device, const scenario *s, uint32_t broken, uint32_t deadline)
{
    uint8_t descriptor[64];
    int     status = nn_device_write(device, AT, s->image, s->bytes);

    for (uint32_t i = 0; i < s->tasks && status == NN_DEVICE_OK; i++) {
        memcpy(descriptor, s->descriptors + 64u * i, sizeof descriptor);
        if (i == broken) {
            descriptor[drawn(64)] ^= (uint8_t)(1u << drawn(8));
        }
        const uint16_t tag = (uint16_t)(s->descriptors[64u * i + 2u] | s->descriptors[64u * i + 3u] << 8);
        status = nn_device_submit(device, descriptor, sizeof descriptor, tag, deadline);
    }
    return status == NN_DEVICE_OK ? nn_device_commit(device) : status;
}

static int run(nn_device *device, const scenario *s, uint32_t broken, uint8_t *result)
{
    const uint32_t deadline = 2u * s->cycles + 2000u;
    int            status = begin(device, s, broken, deadline);

    if (status == NN_DEVICE_OK) {
        status = nn_device_wait(device, device->submitted, deadline);
    }
    return status == NN_DEVICE_OK ? nn_device_read(device, s->out, result, s->size) : status;
}

static void prepare(int kind, const scenario *s, uint32_t *broken)
{
    static const uint32_t registers[] = {SYSTOLIC_REG_STATUS, SYSTOLIC_REG_DONE, SYSTOLIC_REG_TAG};
    const uint32_t        where = registers[drawn(3)];

    *broken = NN_DEVICE_NOWHERE;
    switch (kind) {
    case SYSTOLIC_FAULT_HANG:
        systolic_sim_fault(sim, kind, drawn(s->cycles / 8u), 0, 0);
        break;
    case SYSTOLIC_FAULT_SPURIOUS:
        systolic_sim_fault(sim, kind, drawn(s->cycles), 0, 1u + drawn(50));
        break;
    case SYSTOLIC_FAULT_DESCRIPTOR:
        systolic_sim_fault(sim, kind, drawn(8u * s->tasks), 0, some_bits(64));
        break;
    case SYSTOLIC_FAULT_CONSTANTS:
    case SYSTOLIC_FAULT_ERROR:
        systolic_sim_fault(sim, kind, drawn(60), 0, some_bits(64));
        break;
    case SYSTOLIC_FAULT_REGISTER:
        systolic_sim_fault(sim, kind, drawn(3u * s->tasks), where, some_bits(32));
        break;
    case SYSTOLIC_FAULT_STUCK:
        systolic_sim_fault(sim, kind, drawn(3u * s->tasks), where, some_bits(32));
        break;
    case WRONG_ORDER: /* the tag of another task, from some moment on */
        systolic_sim_fault(sim, SYSTOLIC_FAULT_STUCK, drawn(3u * s->tasks), SYSTOLIC_REG_TAG, 1u + drawn(3));
        break;
    case BROKEN_IN_MEMORY:
        *broken = drawn(s->tasks);
        break;
    case RESET_UNDER_WAY:
        break;
    default:
        systolic_sim_fault(sim, kind, 0, 0, 0);
        break;
    }
}

static const scenario *read_scenarios(const char *name, uint32_t *count)
{
    FILE     *file = fopen(name, "rb");
    uint32_t  head[5];
    scenario *all;

    if (file == 0 || fread(count, 4, 1, file) != 1 || (all = calloc(*count, sizeof *all)) == 0) {
        exit(2);
    }
    for (uint32_t i = 0; i < *count; i++) {
        if (fread(head, 4, 5, file) != 5) {
            exit(2);
        }
        const size_t rest = (size_t)head[0] + 64u * head[1] + head[4];
        uint8_t     *bytes = malloc(rest);
        if (bytes == 0 || fread(bytes, 1, rest, file) != rest) {
            exit(2);
        }
        all[i] = (scenario){head[0], head[1], head[2], head[3], head[4], bytes, bytes + head[0], bytes + head[0] + 64u * head[1]};
    }
    fclose(file);
    return all;
}

int main(int argc, char **argv)
{
    static uint32_t tried[KINDS], struck[KINDS], accepted[KINDS], refused[KINDS], wrong, lost, overdue;
    static uint8_t  result[MEMORY];
    uint32_t        count;
    nn_device       device;

    if (argc != 4) {
        return 2;
    }
    const scenario *all = read_scenarios(argv[1], &count);
    const uint32_t  trials = (uint32_t)atoi(argv[2]);
    seed = (uint64_t)atoi(argv[3]);
    sim = systolic_sim_open(MEMORY, 8);
    if (nn_device_open(&device) != NN_DEVICE_OK) {
        return 2;
    }
    for (uint32_t i = 0; i < trials; i++) {
        const int       kind = kinds[i % (sizeof kinds / sizeof *kinds)];
        const scenario *s = &all[drawn(count)];
        uint32_t        broken;

        memset(result, 0x55, s->size);
        prepare(kind, s, &broken);
        const uint64_t before = systolic_sim_cycles(sim);
        if (kind == RESET_UNDER_WAY) { /* and restarted at once */
            begin(&device, s, NN_DEVICE_NOWHERE, s->cycles * 2u + 2000u);
            systolic_sim_step(sim, drawn(s->cycles / 2u));
            nn_device_cancel(&device);
        }
        const int status = run(&device, s, broken, result);
        /* A submit waits as long as a wait does, at most; looking takes cycles, too. */
        overdue += systolic_sim_cycles(sim) - before > 3u * (2u * s->cycles + 2000u) + 4000u;
        tried[kind]++;
        struck[kind] += systolic_sim_struck(sim) != 0 || broken != NN_DEVICE_NOWHERE || kind == RESET_UNDER_WAY;
        if (status == NN_DEVICE_OK) {
            accepted[kind]++;
            wrong += memcmp(result, s->expected, s->size) != 0;
        } else {
            refused[kind]++;
        }
        /* Afterwards it works again; a fault that has not struck yet is taken away first. */
        if (systolic_sim_struck(sim) == 0) {
            systolic_sim_fault(sim, SYSTOLIC_FAULT_NONE, 0, 0, 0);
        }
        nn_device_reset(&device);
        systolic_sim_fault(sim, SYSTOLIC_FAULT_NONE, 0, 0, 0);
        memset(result, 0x55, s->size);
        lost += run(&device, s, NN_DEVICE_NOWHERE, result) != NN_DEVICE_OK || memcmp(result, s->expected, s->size) != 0;
        nn_device_reset(&device);
    }
    for (int kind = 0; kind < KINDS; kind++) {
        if (tried[kind] != 0) {
            printf("%-24s %5u tried, %5u struck, %5u refused, %5u right all the same\n", names[kind], tried[kind],
                   struck[kind], refused[kind], accepted[kind]);
        }
    }
    printf("%u wrong accepted, %u past the deadline, %u not recovered\n", wrong, overdue, lost);
    nn_device_close(&device);
    systolic_sim_close(sim);
    return wrong != 0 || overdue != 0 || lost != 0;
}
