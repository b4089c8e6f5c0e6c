/* A FLEXCOMM of LPC parts as a USART, with FIFOs. UM11126, USART. */
#include "nn_bare.h"

#define USART_CFG      NN_REG(NN_UART_BASE + 0x000u)
#define USART_STAT     NN_REG(NN_UART_BASE + 0x008u)
#define USART_BRG      NN_REG(NN_UART_BASE + 0x020u)
#define USART_OSR      NN_REG(NN_UART_BASE + 0x028u)
#define USART_FIFOCFG  NN_REG(NN_UART_BASE + 0xe00u)
#define USART_FIFOSTAT NN_REG(NN_UART_BASE + 0xe04u)
#define USART_FIFOTRIG NN_REG(NN_UART_BASE + 0xe08u)
#define USART_FIFOINT  NN_REG(NN_UART_BASE + 0xe10u)
#define USART_FIFOWR   NN_REG(NN_UART_BASE + 0xe20u)
#define USART_FIFORD   NN_REG(NN_UART_BASE + 0xe30u)
#define FLEXCOMM_SEL   NN_REG(NN_UART_BASE + 0xff8u)

#define SEL_USART        1u
#define CFG_ENABLE       (1u << 0)
#define CFG_8_BITS       (1u << 2)
#define STAT_TX_IDLE     (1u << 3)
#define OSR_16           15u
#define FIFO_BOTH        3u
#define FIFO_RX_TRIGGER  (1u << 1) /* by the first byte */
#define FIFO_RX_LEVEL    (1u << 3)
#define FIFO_TX_NOT_FULL (1u << 5)
#define FIFO_TX_EMPTY    (1u << 4)
#define FIFO_RX_THERE    (1u << 6)

void nn_uart_start(uint32_t clock, uint32_t baud)
{
    FLEXCOMM_SEL = SEL_USART;
    USART_OSR = OSR_16;
    USART_BRG = (clock / 16u + baud / 2u) / baud - 1u;
    USART_FIFOCFG = FIFO_BOTH;
    USART_FIFOTRIG = FIFO_RX_TRIGGER;
    USART_FIFOINT = FIFO_RX_LEVEL;
    USART_CFG = CFG_8_BITS;
    USART_CFG = CFG_8_BITS | CFG_ENABLE;
}

int nn_uart_take(uint8_t *byte)
{
    if ((USART_FIFOSTAT & FIFO_RX_THERE) == 0) {
        return 0;
    }
    *byte = (uint8_t)USART_FIFORD;
    return 1;
}

void nn_uart_send(uint8_t byte)
{
    while ((USART_FIFOSTAT & FIFO_TX_NOT_FULL) == 0) {
    }
    USART_FIFOWR = byte;
}

void nn_uart_drain(void)
{
    while ((USART_FIFOSTAT & FIFO_TX_EMPTY) == 0 || (USART_STAT & STAT_TX_IDLE) == 0) {
    }
}
