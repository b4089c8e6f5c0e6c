/* A program for a board of several cores that loses one of them after the other: at a random point a core hangs or takes
 * a fault. Each must be named by the run, and the run after the next start must be right.
 *
 * Compiled with LOSSES, SEED and CORES; stop.h is put in front of everything. */
#include <stdint.h>
#include <string.h>

#include "mnist.h"
#include "nn_app.h"
#include "nn_cores.h"
#include "nn_cores_port.h"

#define NOBODY 99u
#define INPUTS 4
#define POINTS 40u /* more than a run has of one core */
#define RUNS   60

static mnist_context model NN_CONTEXT;
static uint8_t       wanted[INPUTS][MNIST_OUTPUT0_SIZE];
static uint32_t      state = 2u * SEED + 1u;

static uint32_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state >> 8;
}

static void give(uint32_t which)
{
    uint8_t *bytes = (uint8_t *)mnist_input(&model, 0);

    for (uint32_t i = 0; i < MNIST_INPUT0_SIZE; i++) {
        bytes[i] = (uint8_t)((i * 2654435761u + which * 40503u) >> 13);
    }
}

/* 0 when it is computed and right, -1 when it is wrong. */
static int run(uint32_t which)
{
    int status;

    give(which);
    status = mnist_run_parallel(&model, nn_cores_run, 0);
    if (status == 0 && memcmp(mnist_output(&model, 0), wanted[which], MNIST_OUTPUT0_SIZE) != 0) {
        return -1;
    }
    return status;
}

static void say(int number, const char *what)
{
    nn_print_whole(number);
    nn_print(what);
}

int main(void)
{
    int      unharmed = 0;
    int      unnamed = 0;
    int      wrong = 0;
    uint32_t longest = 0;

    STOP[0] = NOBODY;
    mnist_init(&model);
    for (uint32_t which = 0; which < INPUTS; which++) {
        give(which);
        mnist_run(&model);
        memcpy(wanted[which], mnist_output(&model, 0), MNIST_OUTPUT0_SIZE);
    }
    if (nn_cores_start(CORES) != 0) {
        nn_print("a core did not start\n");
        return 1;
    }
    for (int loss = 0; loss < LOSSES; loss++) {
        const uint32_t core = 1u + next_random() % (CORES - 1u);
        const uint32_t fault = next_random() % 3u == 0;
        int            status = 0;
        uint32_t       begin = 0;

        STOP[1] = 1u + next_random() % POINTS;
        STOP[2] = fault;
        STOP[3] = 0;
        STOP[0] = core;
        for (int again = 0; status == 0 && again < RUNS; again++) {
            begin = nn_cores_port_clock();
            status = run(next_random() % INPUTS);
        }
        begin = nn_cores_port_clock() - begin;
        longest = begin > longest ? begin : longest;
        if (status == 0) {
            unharmed++;
        } else if (status == -1) {
            wrong++;
        } else if (nn_cores_failed().core != (int32_t)core ||
                   nn_cores_failed().reason != (fault ? NN_CORES_FAULTED : NN_CORES_LATE)) {
            unnamed++;
        }
        STOP[0] = NOBODY;
        wrong += nn_cores_start(CORES) != 0 || run(next_random() % INPUTS) != 0;
    }
    say(LOSSES, " lost, ");
    say(unharmed, " never, ");
    say(unnamed, " not named, ");
    say(wrong, " wrong after the next start, an error after ");
    say((int)(longest / nn_cores_port_millisecond()), " ms at most\n");
    return 0;
}
