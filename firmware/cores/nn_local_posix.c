/* Threads with their own memory, to run on a PC what other processors do. */
#include "nn_local.h"

#ifndef NN_LOCAL_BYTES
#define NN_LOCAL_BYTES 65536
#endif

static _Thread_local unsigned char memory[NN_LOCAL_BYTES] __attribute__((aligned(64)));

unsigned char *nn_local_begin(int32_t size)
{
    for (int32_t i = 0; i < size; i++) {
        memory[i] = 0xa5;
    }
    return memory;
}
