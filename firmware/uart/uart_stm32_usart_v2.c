/* The USART and LPUART of STM32L4 and H7: data registers for each way, flags cleared through a register of their own.
 * The LPUART counts its clock in 256ths; NN_UART_BRR_SCALE says so. */
#include "nn_bare.h"

#define USART_CR1 NN_REG(NN_UART_BASE + 0x00u)
#define USART_BRR NN_REG(NN_UART_BASE + 0x0cu)
#define USART_ISR NN_REG(NN_UART_BASE + 0x1cu)
#define USART_ICR NN_REG(NN_UART_BASE + 0x20u)
#define USART_RDR NN_REG(NN_UART_BASE + 0x24u)
#define USART_TDR NN_REG(NN_UART_BASE + 0x28u)

#define USART_CR1_UE     (1u << 0)
#define USART_CR1_RE     (1u << 2)
#define USART_CR1_TE     (1u << 3)
#define USART_CR1_RXNEIE (1u << 5)
#define USART_ISR_ORE    (1u << 3)
#define USART_ISR_RXNE   (1u << 5)
#define USART_ISR_TC     (1u << 6)
#define USART_ISR_TXE    (1u << 7)
#define USART_ICR_ERRORS 0x0fu /* parity, framing, noise, overrun */

void nn_uart_start(uint32_t clock, uint32_t baud)
{
    USART_CR1 = 0;
    USART_BRR = nn_uart_divider(clock, NN_UART_BRR_SCALE, baud);
    USART_CR1 = USART_CR1_UE | USART_CR1_TE | USART_CR1_RE | USART_CR1_RXNEIE;
}

int nn_uart_take(uint8_t *byte)
{
    uint32_t status = USART_ISR;

    if (status & USART_ISR_ORE) {
        USART_ICR = USART_ICR_ERRORS; /* or its interrupt would never end; what was lost, the link asks for again */
    }
    if ((status & USART_ISR_RXNE) == 0) {
        return 0;
    }
    *byte = (uint8_t)USART_RDR;
    return 1;
}

void nn_uart_send(uint8_t byte)
{
    while ((USART_ISR & USART_ISR_TXE) == 0) {
    }
    USART_TDR = byte;
}

void nn_uart_drain(void)
{
    while ((USART_ISR & USART_ISR_TC) == 0) {
    }
}
