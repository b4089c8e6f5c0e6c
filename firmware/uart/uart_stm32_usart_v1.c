/* The USART of STM32F1, F2 and F4: one data register, and a status register that reading the data clears. */
#include "nn_bare.h"

#define USART_SR  NN_REG(NN_UART_BASE + 0x00u)
#define USART_DR  NN_REG(NN_UART_BASE + 0x04u)
#define USART_BRR NN_REG(NN_UART_BASE + 0x08u)
#define USART_CR1 NN_REG(NN_UART_BASE + 0x0cu)

#define USART_SR_ORE     (1u << 3)
#define USART_SR_RXNE    (1u << 5)
#define USART_SR_TC      (1u << 6)
#define USART_SR_TXE     (1u << 7)
#define USART_CR1_RE     (1u << 2)
#define USART_CR1_TE     (1u << 3)
#define USART_CR1_RXNEIE (1u << 5)
#define USART_CR1_UE     (1u << 13)

void nn_uart_start(uint32_t clock, uint32_t baud)
{
    USART_CR1 = 0;
    USART_BRR = (clock + baud / 2u) / baud;
    USART_CR1 = USART_CR1_UE | USART_CR1_TE | USART_CR1_RE | USART_CR1_RXNEIE;
}

int nn_uart_take(uint8_t *byte)
{
    if ((USART_SR & (USART_SR_RXNE | USART_SR_ORE)) == 0) {
        return 0;
    }
    *byte = (uint8_t)USART_DR; /* clears both flags; what an overrun lost, the link asks for again */
    return 1;
}

void nn_uart_send(uint8_t byte)
{
    while ((USART_SR & USART_SR_TXE) == 0) {
    }
    USART_DR = byte;
}

void nn_uart_drain(void)
{
    while ((USART_SR & USART_SR_TC) == 0) {
    }
}
