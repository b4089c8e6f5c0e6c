/* Threads as cores. A thread polls for a while before it sleeps, because the next order comes soon and waking up takes
 * longer than many steps; after the first polls it yields the processor to others. */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <time.h>

#include "nn_cores_port.h"

#define LOOKS  2000
#define AWAKE  1000000 /* nanoseconds in which it yields */
#define SECOND 1000000000

static struct {
    pthread_mutex_t lock;
    pthread_cond_t  bell;
} beds[NN_CORES];

static pthread_once_t made = PTHREAD_ONCE_INIT;

static void make_beds(void)
{
    for (int32_t core = 0; core < NN_CORES; core++) {
        pthread_mutex_init(&beds[core].lock, NULL);
        pthread_cond_init(&beds[core].bell, NULL);
    }
}

static void *thread_of(void *which)
{
    const uintptr_t both = (uintptr_t)which;

    nn_cores_serve((int32_t)(both % NN_CORES), (uint32_t)(both / NN_CORES));
    return NULL;
}

void nn_cores_port_start(int32_t core, uint32_t life)
{
    pthread_t thread;

    pthread_once(&made, make_beds);
    if (pthread_create(&thread, NULL, thread_of, (void *)((uintptr_t)life * NN_CORES + (uintptr_t)core)) == 0) {
        pthread_detach(thread);
    }
}

/* The lock keeps the wake-up from arriving between reading the word and going to sleep. */
void nn_cores_port_wake(int32_t core)
{
    pthread_mutex_lock(&beds[core].lock);
    pthread_cond_signal(&beds[core].bell);
    pthread_mutex_unlock(&beds[core].lock);
}

static int differs(const uint32_t *word, uint32_t value)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE) != value;
}

static int64_t nanoseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * SECOND + now.tv_nsec;
}

static int changes(const uint32_t *word, uint32_t value)
{
    int64_t begin;

    for (int look = 0; look < LOOKS; look++) {
        if (differs(word, value)) {
            return 1;
        }
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
    }
    begin = nanoseconds();
    do {
        if (differs(word, value)) {
            return 1;
        }
        sched_yield();
    } while (nanoseconds() - begin < AWAKE);
    return 0;
}

/* Wakes up from time to time: another thread may have replaced it. */
static void sleep_until(int32_t core, const uint32_t *word, uint32_t value, long milliseconds)
{
    struct timespec until;

    if (changes(word, value)) {
        return;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += milliseconds / 1000;
    until.tv_nsec += milliseconds % 1000 * 1000000;
    if (until.tv_nsec >= SECOND) {
        until.tv_nsec -= SECOND;
        until.tv_sec += 1;
    }
    pthread_mutex_lock(&beds[core].lock);
    if (!differs(word, value)) {
        pthread_cond_timedwait(&beds[core].bell, &beds[core].lock, &until);
    }
    pthread_mutex_unlock(&beds[core].lock);
}

void nn_cores_port_sleep(int32_t core, const uint32_t *word, uint32_t value)
{
    sleep_until(core, word, value, 10000);
}

void nn_cores_port_nap(const uint32_t *word, uint32_t value)
{
    sleep_until(0, word, value, 5);
}

uint32_t nn_cores_port_clock(void)
{
    return (uint32_t)(nanoseconds() / 1000000);
}

uint32_t nn_cores_port_millisecond(void)
{
    return 1;
}
