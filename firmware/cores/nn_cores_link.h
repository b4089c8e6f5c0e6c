/* Tells the host by the link which core was lost, and how. */
#ifndef NN_CORES_LINK_H
#define NN_CORES_LINK_H

#include <stdint.h>

#include "nn_cores.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Starts so many cores. */
void nn_cores_link_start(int32_t cores);

/* What a run gave, after a word to the host where a core is to blame. */
int nn_cores_link_told(int status);

#ifdef __cplusplus
}
#endif

#endif
