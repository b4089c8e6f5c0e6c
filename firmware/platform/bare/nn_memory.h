#ifndef NN_MEMORY_H
#define NN_MEMORY_H

#include <stdint.h>

/* Called once by the start of each architecture, on the stack for handlers, before main gets its own. */
void nn_memory_start(void);

#endif
