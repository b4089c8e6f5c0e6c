#include "nn_cores_link.h"

#include "nn_link.h"

#define KNOWN 3u

static void tell(void)
{
    const nn_cores_failure lost = nn_cores_failed();
    uint32_t               words[KNOWN + NN_CORES_WORDS];

    words[0] = (uint32_t)lost.core;
    words[1] = (uint32_t)lost.reason;
    words[2] = lost.order;
    for (uint32_t i = 0; i < NN_CORES_WORDS; i++) {
        words[KNOWN + i] = lost.words[i];
    }
    if (lost.reason != NN_CORES_FINE) {
        nn_link_fault(NN_LINK_FAULT_CORE, words, KNOWN + NN_CORES_WORDS);
    }
}

void nn_cores_link_start(int32_t cores)
{
    if (nn_cores_start(cores) != 0) {
        tell();
    }
}

int nn_cores_link_told(int status)
{
    if (status != 0) {
        tell();
    }
    return status;
}
