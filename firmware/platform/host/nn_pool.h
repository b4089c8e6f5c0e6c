/* A pool of threads for models that were built with threads. */
#ifndef NN_POOL_H
#define NN_POOL_H

#include <stdint.h>

/* The pool, made at the first call: so many threads compute, the caller's among them. */
void *nn_pool(int32_t threads);

/* Calls part(job, 0) to part(job, parts - 1) on the pool's threads and the caller's; returns when all have returned. */
void nn_pool_run(void *pool, void (*part)(void *job, int32_t index), void *job, int32_t parts);

#endif
