/* Each core has two words: the order it should execute, and the last order it has executed. Each word has one writer,
 * which writes it after all data that the other side reads. */
#include "nn_cores_port.h"

#define LINE 64u /* bytes: no two cores write to one cache line */

#define READ(place)         __atomic_load_n(&(place), __ATOMIC_ACQUIRE)
#define WRITE(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELEASE)

typedef struct core_state {
    uint32_t asked; /* by the first core */
    uint32_t done;  /* by the core itself */
    uint32_t life;  /* by the first core: number of starts */
    uint32_t ready; /* by the core itself: the number of its current start */
    uint32_t faulted;
    uint32_t words[NN_CORES_WORDS];
} __attribute__((aligned(LINE))) core_state;

static core_state others[NN_CORES];

static struct {
    void (*part)(void *job, int32_t index);
    void   *job;
    int32_t parts;
    int32_t cores;
} order;

static int32_t          running = 1; /* cores */
static uint32_t         orders;
static nn_cores_failure failure;

__attribute__((__noinline__)) void nn_cores_mark(void)
{
    __asm__ volatile("" ::: "memory");
}

static void carry_out(int32_t core)
{
    for (int32_t index = core; index < order.parts; index += order.cores) {
        order.part(order.job, index);
    }
}

/* 0 when the core is no longer wanted. */
NN_CORES_WAITING static int wait_for_order(int32_t core, uint32_t life)
{
    core_state *const own = &others[core];
    const uint32_t    done = own->done;

    for (;;) {
        NN_CORES_IDLE_POINT();
        if (READ(own->life) != life) {
            return 0;
        }
        if (READ(own->asked) != done) {
            return 1;
        }
        nn_cores_port_sleep(core, &own->asked, done);
    }
}

void nn_cores_serve(int32_t core, uint32_t life)
{
    core_state *const own = &others[core];

    if (READ(own->life) != life) {
        return; /* too late: another core has replaced it */
    }
    WRITE(own->ready, life);
    nn_cores_port_wake(0);
    while (wait_for_order(core, life)) {
        const uint32_t asked = READ(own->asked);

        NN_CORES_POINT();
        carry_out(core);
        if (READ(own->life) != life) {
            return; /* given up meanwhile: another core has replaced it */
        }
        nn_cores_mark();
        NN_CORES_POINT();
        WRITE(own->done, asked);
        NN_CORES_POINT();
        nn_cores_port_wake(0);
    }
}

void nn_cores_fault(int32_t core, const uint32_t words[NN_CORES_WORDS])
{
    for (uint32_t i = 0; i < NN_CORES_WORDS; i++) {
        others[core].words[i] = words[i];
    }
    WRITE(others[core].faulted, 1u);
    nn_cores_port_wake(0);
}

/* Whether a word becomes `value` within the time limit and without a fault of its core. */
NN_CORES_WAITING static nn_cores_reason wait_for(const core_state *other, const uint32_t *word, uint32_t value,
                                                 uint32_t bound)
{
    const uint32_t begin = nn_cores_port_clock();

    for (;;) {
        const uint32_t now = READ(*word);

        NN_CORES_POINT();
        if (READ(other->faulted)) {
            return NN_CORES_FAULTED;
        }
        if (now == value) {
            return NN_CORES_FINE;
        }
        if (nn_cores_port_clock() - begin > bound) {
            return NN_CORES_LATE;
        }
        nn_cores_port_nap(word, now);
    }
}

static uint32_t patience(void)
{
    return NN_CORES_BOUND * nn_cores_port_millisecond();
}

static void fail(int32_t core, nn_cores_reason reason)
{
    failure.reason = reason;
    failure.core = core;
    failure.order = orders;
    for (uint32_t i = 0; i < NN_CORES_WORDS; i++) {
        failure.words[i] = reason == NN_CORES_FAULTED ? others[core].words[i] : 0;
    }
}

/* A core that is running and idle is left alone. */
static int start_one(int32_t core)
{
    core_state *const other = &others[core];

    if (other->life != 0 && READ(other->ready) == other->life &&
        wait_for(other, &other->done, other->asked, patience()) == NN_CORES_FINE) {
        return 1;
    }
    WRITE(other->life, other->life + 1u);
    WRITE(other->faulted, 0u);
    WRITE(other->asked, orders);
    WRITE(other->done, orders);
    nn_cores_port_start(core, other->life);
    return wait_for(other, &other->ready, other->life, patience()) == NN_CORES_FINE;
}

int32_t nn_cores_start(int32_t cores)
{
    running = cores < NN_CORES ? cores : NN_CORES;
    failure.reason = NN_CORES_FINE;
    for (int32_t core = 1; core < running; core++) {
        if (!start_one(core)) {
            fail(core, NN_CORES_ABSENT);
            return core;
        }
    }
    return 0;
}

void nn_cores_run(void *unused, void (*part)(void *job, int32_t index), void *job, int32_t parts)
{
    const int32_t cores = parts < running ? parts : running;
    uint32_t      begin;
    uint32_t      bound;

    (void)unused;
    if (failure.reason != NN_CORES_FINE) {
        return;
    }
    order.part = part;
    order.job = job;
    order.parts = parts;
    order.cores = cores;
    orders++;
    for (int32_t core = 1; core < cores; core++) {
        NN_CORES_POINT();
        WRITE(others[core].asked, orders);
        NN_CORES_POINT();
        nn_cores_port_wake(core);
    }
    begin = nn_cores_port_clock();
    carry_out(0);
    bound = patience() + 8u * (nn_cores_port_clock() - begin);
    for (int32_t core = 1; core < cores; core++) {
        const nn_cores_reason reason = wait_for(&others[core], &others[core].done, orders, bound);

        if (reason != NN_CORES_FINE) {
            fail(core, reason);
            return;
        }
    }
}

nn_cores_failure nn_cores_failed(void)
{
    return failure;
}
