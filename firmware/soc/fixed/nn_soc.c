/* A machine whose clock needs no setting: the evaluation images of Arm's boards, and emulated machines. */
#include "nn_bare.h"

nn_clocks nn_soc_start(void)
{
    nn_clocks clocks = {NN_CPU_HERTZ, NN_UART_HERTZ};

    return clocks;
}
