/* Runs a network over threads that are held up at random wherever they meet, or one of which is lost there.
 *
 *     stress delays RUNS SEED     every run's outputs against those of one thread
 *     stress kills RUNS SEED      in every run a thread ends or hangs; the run after the next start is right
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "net.h"
#include "nn_cores.h"
#include "points.h"

#define CORES NET_PARTS

static net_context         context;
static net_context         alone;
static pthread_t           first;
static int                 delays;
static int                 left = -1; /* points until a thread is lost */
static int                 hangs;
static int                 released;
static __thread uint64_t   state;
static uint64_t            seeds;

static uint32_t next_random(void)
{
    if (state == 0) {
        state = __atomic_add_fetch(&seeds, 0x9e3779b97f4a7c15u, __ATOMIC_RELAXED) | 1u;
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32);
}

void point(void)
{
    if (delays) {
        uint32_t chosen = next_random();

        if (chosen % 64 == 0) {
            usleep(chosen >> 26);
        } else if (chosen % 8 == 0) {
            sched_yield();
        } else {
            for (volatile uint32_t i = chosen >> 24; i > 0; i = i - 1) {
            }
        }
    }
    if (!pthread_equal(pthread_self(), first) && __atomic_load_n(&left, __ATOMIC_RELAXED) >= 0 &&
        __atomic_fetch_sub(&left, 1, __ATOMIC_RELAXED) == 0) {
        while (hangs && !__atomic_load_n(&released, __ATOMIC_ACQUIRE)) {
            usleep(1000);
        }
        pthread_exit(0);
    }
}

static void (*inner)(void *job, int32_t index);

static void between(void *job, int32_t index)
{
    point();
    inner(job, index);
    point();
}

static void spread(void *pool, void (*part)(void *job, int32_t index), void *job, int32_t parts)
{
    inner = part;
    nn_cores_run(pool, between, job, parts);
}

static void give(net_context *to, uint32_t seed)
{
    uint8_t *bytes = (uint8_t *)net_input(to, 0);

    for (uint32_t i = 0; i < NET_INPUT0_SIZE; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(seed >> 24);
    }
}

static int same(uint32_t seed)
{
    give(&alone, seed);
    net_run(&alone);
    return memcmp(net_output(&alone, 0), net_output(&context, 0), NET_OUTPUT0_SIZE) == 0;
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int with_delays(int runs)
{
    int wrong = 0;

    for (int run = 0; run < runs; run++) {
        give(&context, (uint32_t)run);
        if (net_run_parallel(&context, spread, 0) != 0) {
            nn_cores_failure lost = nn_cores_failed();
            fprintf(stderr, "run %d: core %d lost, reason %d\n", run, lost.core, (int)lost.reason);
            return 1;
        }
        wrong += !same((uint32_t)run);
    }
    printf("%d runs, %d differ\n", runs, wrong);
    return wrong != 0;
}

static int with_kills(int runs)
{
    double longest = 0;
    int    unharmed = 0;
    int    late = 0;

    for (int run = 0; run < runs; run++) {
        double begin = now();
        int    status = 0;

        __atomic_store_n(&released, 0, __ATOMIC_RELEASE);
        hangs = next_random() % 2;
        __atomic_store_n(&left, (int)(next_random() % 40), __ATOMIC_RELAXED);
        for (int again = 0; status == 0 && again < 100; again++) {
            give(&context, (uint32_t)run);
            begin = now();
            status = net_run_parallel(&context, spread, 0);
        }
        if (status == 0) {
            unharmed++;
        } else if (now() - begin > longest) {
            longest = now() - begin;
        }
        if (status != 0 && nn_cores_failed().reason == NN_CORES_FINE) {
            fprintf(stderr, "run %d: an error without a lost core\n", run);
            return 1;
        }
        __atomic_store_n(&left, -1, __ATOMIC_RELAXED);
        __atomic_store_n(&released, 1, __ATOMIC_RELEASE);
        status = -1;
        for (int again = 0; status != 0 && again < 5; again++) { /* a busy machine may hold up any of them */
            late += again;
            give(&context, (uint32_t)run);
            status = nn_cores_start(CORES) != 0 ? -1 : net_run_parallel(&context, spread, 0);
        }
        if (status != 0 || !same((uint32_t)run)) {
            fprintf(stderr, "run %d: the run after the next start %s\n", run, status ? "fails" : "is wrong");
            return 1;
        }
    }
    fprintf(stderr, "%d starts more, for threads that came late without being killed\n", late);
    printf("%d kills, %d unharmed, an error after %.3f s at most\n", runs, unharmed, longest);
    return unharmed != 0;
}

int main(int count, char **words)
{
    int runs = count > 2 ? atoi(words[2]) : 1000;

    first = pthread_self();
    seeds = count > 3 ? (uint64_t)atoll(words[3]) : 1;
    delays = count < 2 || strcmp(words[1], "kills") != 0;
    net_init(&context);
    net_init(&alone);
    if (nn_cores_start(CORES) != 0) {
        return 2;
    }
    return delays ? with_delays(runs) : with_kills(runs);
}
