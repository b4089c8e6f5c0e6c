/* The APB UART of Arm's Cortex-M System Design Kit. */
#include "nn_bare.h"

#define UART_DATA     NN_REG(NN_UART_BASE + 0x00u)
#define UART_STATE    NN_REG(NN_UART_BASE + 0x04u)
#define UART_CTRL     NN_REG(NN_UART_BASE + 0x08u)
#define UART_INTCLEAR NN_REG(NN_UART_BASE + 0x0cu)
#define UART_BAUDDIV  NN_REG(NN_UART_BASE + 0x10u)

#define UART_STATE_TXBF   (1u << 0)
#define UART_STATE_RXBF   (1u << 1)
#define UART_CTRL_TXEN    (1u << 0)
#define UART_CTRL_RXEN    (1u << 1)
#define UART_CTRL_RXIRQEN (1u << 3)
#define UART_INT_RX       (1u << 1)

#define SMALLEST_DIVIDER 16u

void nn_uart_start(uint32_t clock, uint32_t baud)
{
    uint32_t divider = (clock + baud / 2u) / baud;

    UART_BAUDDIV = divider < SMALLEST_DIVIDER ? SMALLEST_DIVIDER : divider;
    UART_CTRL = UART_CTRL_TXEN | UART_CTRL_RXEN | UART_CTRL_RXIRQEN;
}

int nn_uart_take(uint8_t *byte)
{
    if ((UART_STATE & UART_STATE_RXBF) == 0) {
        return 0;
    }
    UART_INTCLEAR = UART_INT_RX;
    *byte = (uint8_t)UART_DATA;
    return 1;
}

void nn_uart_send(uint8_t byte)
{
    while (UART_STATE & UART_STATE_TXBF) {
    }
    UART_DATA = byte;
}

void nn_uart_drain(void)
{
    while (UART_STATE & UART_STATE_TXBF) {
    }
}
