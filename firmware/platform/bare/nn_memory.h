#ifndef NN_MEMORY_H
#define NN_MEMORY_H

#include <stdint.h>

/* Called once by each architecture's start-up code, on the handler stack, before main gets its own. */
void nn_memory_start(void);

#endif
