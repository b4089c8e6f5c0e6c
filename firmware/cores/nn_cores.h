/* Cores that compute the parts of a step together: the caller's, and others that wait for orders.
 *
 * Static, without heap and operating system; the processor-specific part is one file, declared in nn_cores_port.h. A
 * program has one such group, and one run at a time.
 *
 *     nn_cores_start(2);
 *     NAME_run_parallel(&context, nn_cores_run, 0);
 */
#ifndef NN_CORES_H
#define NN_CORES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Maximum cores, including the caller's. */
#ifndef NN_CORES
#define NN_CORES 8
#endif

/* Milliseconds, in addition to eight times the caller's own time, after which a core that does not return is given up. */
#ifndef NN_CORES_BOUND
#define NN_CORES_BOUND 1000
#endif

typedef enum nn_cores_reason {
    NN_CORES_FINE = 0,
    NN_CORES_LATE = 1,   /* it did not return within the time limit */
    NN_CORES_FAULTED = 2, /* its processor reported a fault */
    NN_CORES_ABSENT = 3  /* it did not start, or not again */
} nn_cores_reason;

#define NN_CORES_WORDS 5u

typedef struct nn_cores_failure {
    nn_cores_reason reason;
    int32_t         core;
    uint32_t        order;                 /* number of orders so far, including this one */
    uint32_t        words[NN_CORES_WORDS]; /* of the processor, if it reported a fault */
} nn_cores_failure;

/* Starts the other cores, or restarts lost ones. Returns 0 when all are running, otherwise the first that is not. */
int32_t nn_cores_start(int32_t cores);

/* Calls part(job, 0) to part(job, parts - 1), core k those numbered k, k + cores ..., and returns when all have
 * returned, or when a core is lost; then nn_cores_failed reports it, and nothing is computed until the cores are
 * started again. `unused` matches the signature of NAME_parallel. */
void nn_cores_run(void *unused, void (*part)(void *job, int32_t index), void *job, int32_t parts);

/* The failure since the last start, if any. */
nn_cores_failure nn_cores_failed(void);

/* Called by each core after everything it computed: where instructions are counted, starts a new count. */
void nn_cores_mark(void);

#ifdef __cplusplus
}
#endif

#endif
