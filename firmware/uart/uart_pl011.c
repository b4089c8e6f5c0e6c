/* Arm's PL011, with FIFOs. Its divider counts 64ths of sixteen clocks. */
#include "nn_bare.h"

#define UART_DR    NN_REG(NN_UART_BASE + 0x00u)
#define UART_FR    NN_REG(NN_UART_BASE + 0x18u)
#define UART_IBRD  NN_REG(NN_UART_BASE + 0x24u)
#define UART_FBRD  NN_REG(NN_UART_BASE + 0x28u)
#define UART_LCR_H NN_REG(NN_UART_BASE + 0x2cu)
#define UART_CR    NN_REG(NN_UART_BASE + 0x30u)
#define UART_IFLS  NN_REG(NN_UART_BASE + 0x34u)
#define UART_IMSC  NN_REG(NN_UART_BASE + 0x38u)
#define UART_ICR   NN_REG(NN_UART_BASE + 0x44u)

#define UART_FR_BUSY    (1u << 3)
#define UART_FR_RXFE    (1u << 4)
#define UART_FR_TXFF    (1u << 5)
#define UART_LCR_H_8N1  (3u << 5)
#define UART_LCR_H_FEN  (1u << 4)
#define UART_CR_UARTEN  (1u << 0)
#define UART_CR_TXE     (1u << 8)
#define UART_CR_RXE     (1u << 9)
#define UART_RX         (1u << 4) /* the FIFO is an eighth full */
#define UART_RX_TIMEOUT (1u << 6) /* something has lain in it for a while */
#define UART_ERRORS     (15u << 7)

void nn_uart_start(uint32_t clock, uint32_t baud)
{
    uint32_t divider = nn_uart_divider(clock, 4, baud);

    UART_CR = 0;
    UART_IBRD = divider / 64u;
    UART_FBRD = divider % 64u;
    UART_LCR_H = UART_LCR_H_8N1 | UART_LCR_H_FEN; /* takes the divider over */
    UART_IFLS = 0;
    UART_IMSC = UART_RX | UART_RX_TIMEOUT;
    UART_CR = UART_CR_UARTEN | UART_CR_TXE | UART_CR_RXE;
}

int nn_uart_take(uint8_t *byte)
{
    if (UART_FR & UART_FR_RXFE) {
        UART_ICR = UART_RX | UART_RX_TIMEOUT | UART_ERRORS;
        return 0;
    }
    *byte = (uint8_t)UART_DR;
    return 1;
}

void nn_uart_send(uint8_t byte)
{
    while (UART_FR & UART_FR_TXFF) {
    }
    UART_DR = byte;
}

void nn_uart_drain(void)
{
    while (UART_FR & UART_FR_BUSY) {
    }
}
