/* The 16550, as RISC-V machines have it, with a FIFO of 16 bytes. */
#include "nn_bare.h"

#define UART_RBR NN_BYTE(0) /* read: received; write: to send; the low divisor byte while DLAB is set */
#define UART_IER NN_BYTE(1)
#define UART_FCR NN_BYTE(2)
#define UART_LCR NN_BYTE(3)
#define UART_LSR NN_BYTE(5)

#define NN_BYTE(index) (*(volatile uint8_t *)(uintptr_t)(NN_UART_BASE + (index)))

#define UART_IER_RECEIVED         0x01u
#define UART_FCR_ENABLE_AND_CLEAR 0x07u
#define UART_LCR_8N1              0x03u
#define UART_LCR_DLAB             0x80u
#define UART_LSR_DATA_READY       0x01u
#define UART_LSR_EMPTY            0x20u
#define UART_LSR_IDLE             0x40u

void nn_uart_start(uint32_t clock, uint32_t baud)
{
    uint32_t divisor = (clock + 8u * baud) / (16u * baud);

    if (divisor == 0) {
        divisor = 1;
    }
    UART_IER = 0;
    UART_LCR = UART_LCR_DLAB;
    UART_RBR = (uint8_t)divisor;
    UART_IER = (uint8_t)(divisor >> 8);
    UART_LCR = UART_LCR_8N1;
    UART_FCR = UART_FCR_ENABLE_AND_CLEAR;
    UART_IER = UART_IER_RECEIVED;
}

int nn_uart_take(uint8_t *byte)
{
    if ((UART_LSR & UART_LSR_DATA_READY) == 0) {
        return 0;
    }
    *byte = UART_RBR;
    return 1;
}

void nn_uart_send(uint8_t byte)
{
    while ((UART_LSR & UART_LSR_EMPTY) == 0) {
    }
    UART_RBR = byte;
}

void nn_uart_drain(void)
{
    while ((UART_LSR & UART_LSR_IDLE) == 0) {
    }
}
