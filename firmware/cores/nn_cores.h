/* Cores that compute the parts of a step together: the caller's, and others that wait to be asked.
 *
 * Static, without heap and without an operating system; what differs from processor to processor is in one file, of
 * which nn_cores_port.h says what it must do. There is one such group in a program, and one run at a time.
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

/* Most cores, the caller's among them. */
#ifndef NN_CORES
#define NN_CORES 8
#endif

/* Milliseconds after which a core that does not come back is given up, beyond eight times what the caller's own part
 * took. */
#ifndef NN_CORES_BOUND
#define NN_CORES_BOUND 1000
#endif

typedef enum nn_cores_reason {
    NN_CORES_FINE = 0,
    NN_CORES_LATE = 1,   /* it did not come back within the bound */
    NN_CORES_FAULTED = 2, /* its processor reported a fault */
    NN_CORES_ABSENT = 3  /* it did not start, or not again */
} nn_cores_reason;

#define NN_CORES_WORDS 5u

typedef struct nn_cores_failure {
    nn_cores_reason reason;
    int32_t         core;
    uint32_t        order;                 /* how many orders there had been, this one among them */
    uint32_t        words[NN_CORES_WORDS]; /* of the processor, where it reported a fault */
} nn_cores_failure;

/* Starts the others, or those of them anew that were lost. 0 when all are there; else the first that is not. */
int32_t nn_cores_start(int32_t cores);

/* Calls part(job, 0) to part(job, parts - 1), core k those numbered k, k + cores ..., and returns when all have
 * returned, or when one of the cores is lost; then nn_cores_failed says which, and nothing is computed any more until
 * they are started again. `unused` is there for the shape of NAME_parallel. */
void nn_cores_run(void *unused, void (*part)(void *job, int32_t index), void *job, int32_t parts);

/* What went wrong since the last start. */
nn_cores_failure nn_cores_failed(void);

/* Called once by each core after everything it computed: where instructions are counted, what follows counts anew. */
void nn_cores_mark(void);

#ifdef __cplusplus
}
#endif

#endif
