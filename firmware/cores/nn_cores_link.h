/* Reports to the host over the link which core was lost, and how. */
#ifndef NN_CORES_LINK_H
#define NN_CORES_LINK_H

#include <stdint.h>

#include "nn_cores.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Starts so many cores. */
void nn_cores_link_start(int32_t cores);

/* Returns a run's result; reports a lost core to the host first. */
int nn_cores_link_told(int status);

#ifdef __cplusplus
}
#endif

#endif
