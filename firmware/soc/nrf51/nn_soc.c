/* nRF51 and nRF52: the clock from the crystal where that starts; of 16 MHz for all but the processor of the nRF52. */
#include "nn_bare.h"

#define CLOCK_TASKS_HFCLKSTART    NN_REG(0x40000000u)
#define CLOCK_EVENTS_HFCLKSTARTED NN_REG(0x40000100u)
#define GPIO_OUTSET               NN_REG(0x50000508u)
#define GPIO_DIRSET               NN_REG(0x50000518u)

#define UART_HERTZ 16000000u

nn_clocks nn_soc_start(void)
{
    nn_clocks clocks = {NN_CPU_HERTZ, UART_HERTZ};

    /* The crystal is only more accurate: without it the chip keeps its own oscillator at the same rate. */
    CLOCK_TASKS_HFCLKSTART = 1;
    (void)nn_ready(&CLOCK_EVENTS_HFCLKSTARTED, 1, 1);
    GPIO_OUTSET = 1u << NN_UART_TX_PIN; /* an idle line is high */
    GPIO_DIRSET = 1u << NN_UART_TX_PIN;
    return clocks;
}
