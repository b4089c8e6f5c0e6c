/* UART0 of the nRF51: tasks start it, events tell what happened. */
#include "nn_bare.h"

#define UART0_TASKS_STARTRX  NN_REG(NN_UART_BASE + 0x000u)
#define UART0_TASKS_STARTTX  NN_REG(NN_UART_BASE + 0x008u)
#define UART0_EVENTS_RXDRDY  NN_REG(NN_UART_BASE + 0x108u)
#define UART0_EVENTS_TXDRDY  NN_REG(NN_UART_BASE + 0x11cu)
#define UART0_INTENSET       NN_REG(NN_UART_BASE + 0x304u)
#define UART0_ENABLE         NN_REG(NN_UART_BASE + 0x500u)
#define UART0_PSELTXD        NN_REG(NN_UART_BASE + 0x50cu)
#define UART0_PSELRXD        NN_REG(NN_UART_BASE + 0x514u)
#define UART0_RXD            NN_REG(NN_UART_BASE + 0x518u)
#define UART0_TXD            NN_REG(NN_UART_BASE + 0x51cu)
#define UART0_BAUDRATE       NN_REG(NN_UART_BASE + 0x524u)

#define UART_ENABLED   4u
#define UART_INT_RXDRDY (1u << 2)

void nn_uart_start(uint32_t clock, uint32_t baud)
{
    /* A 2^32nd of the clock, of which the hardware takes the upper 20 bits. */
    uint32_t rate = (nn_uart_share(baud, clock, 32) + 0x800u) & 0xfffff000u;

    UART0_PSELTXD = NN_UART_TX_PIN;
    UART0_PSELRXD = NN_UART_RX_PIN;
    UART0_BAUDRATE = rate;
    UART0_ENABLE = UART_ENABLED;
    UART0_TASKS_STARTRX = 1;
    UART0_TASKS_STARTTX = 1;
    UART0_INTENSET = UART_INT_RXDRDY;
}

int nn_uart_take(uint8_t *byte)
{
    if (UART0_EVENTS_RXDRDY == 0) {
        return 0;
    }
    UART0_EVENTS_RXDRDY = 0; /* first, since reading brings the next byte's event */
    *byte = (uint8_t)UART0_RXD;
    return 1;
}

/* A byte has left when it returns: the port has no room for more than one. */
void nn_uart_send(uint8_t byte)
{
    UART0_EVENTS_TXDRDY = 0;
    UART0_TXD = byte;
    while (UART0_EVENTS_TXDRDY == 0) {
    }
}

void nn_uart_drain(void)
{
}
