/* nRF51: 16 MHz, from the crystal where it starts. */
#include "nn_bare.h"

#define CLOCK_TASKS_HFCLKSTART    NN_REG(0x40000000u)
#define CLOCK_EVENTS_HFCLKSTARTED NN_REG(0x40000100u)
#define GPIO_OUTSET               NN_REG(0x50000508u)
#define GPIO_DIRSET               NN_REG(0x50000518u)

#define HERTZ 16000000u

nn_clocks nn_soc_start(void)
{
    nn_clocks clocks = {HERTZ, HERTZ};

    /* The crystal is only more exact: without it the chip goes on with its own oscillator at the same rate. */
    CLOCK_TASKS_HFCLKSTART = 1;
    (void)nn_ready(&CLOCK_EVENTS_HFCLKSTARTED, 1, 1);
    GPIO_OUTSET = 1u << NN_UART_TX_PIN; /* an idle line is high */
    GPIO_DIRSET = 1u << NN_UART_TX_PIN;
    return clocks;
}
