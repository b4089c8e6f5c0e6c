/* The SERCOM of SAM parts as a USART: sends on its pad 0, receives on pad 1. */
#include "nn_bare.h"

#define HALF(offset) (*(volatile uint16_t *)(uintptr_t)(NN_UART_BASE + (offset)))
#define BYTE(offset) (*(volatile uint8_t *)(uintptr_t)(NN_UART_BASE + (offset)))

#define SERCOM_CTRLA    NN_REG(NN_UART_BASE + 0x00u)
#define SERCOM_CTRLB    NN_REG(NN_UART_BASE + 0x04u)
#define SERCOM_BAUD     HALF(0x0cu)
#define SERCOM_INTENSET BYTE(0x16u)
#define SERCOM_INTFLAG  BYTE(0x18u)
#define SERCOM_STATUS   HALF(0x1au)
#define SERCOM_SYNCBUSY NN_REG(NN_UART_BASE + 0x1cu)
#define SERCOM_DATA     NN_REG(NN_UART_BASE + 0x28u)

#define CTRLA_ENABLE   (1u << 1)
#define CTRLA_INTERNAL (1u << 2)
#define CTRLA_RX_PAD1  (1u << 20)
#define CTRLA_LSB      (1u << 30)
#define CTRLB_TXEN     (1u << 16)
#define CTRLB_RXEN     (1u << 17)
#define INT_DRE        (1u << 0)
#define INT_TXC        (1u << 1)
#define INT_RXC        (1u << 2)
#define STATUS_ERRORS  7u
#define SYNC           7u

void nn_uart_start(uint32_t clock, uint32_t baud)
{
    uint32_t share = nn_uart_share(baud, clock, 20); /* sixteen clocks a bit, in 65536ths */

    SERCOM_CTRLA = CTRLA_INTERNAL | CTRLA_RX_PAD1 | CTRLA_LSB;
    SERCOM_CTRLB = CTRLB_TXEN | CTRLB_RXEN;
    (void)nn_ready(&SERCOM_SYNCBUSY, SYNC, 0);
    SERCOM_BAUD = (uint16_t)(65536u - share);
    SERCOM_INTENSET = INT_RXC;
    SERCOM_CTRLA |= CTRLA_ENABLE;
    (void)nn_ready(&SERCOM_SYNCBUSY, SYNC, 0);
}

int nn_uart_take(uint8_t *byte)
{
    if ((SERCOM_INTFLAG & INT_RXC) == 0) {
        return 0;
    }
    SERCOM_STATUS = STATUS_ERRORS; /* what was lost, the link asks for again */
    *byte = (uint8_t)SERCOM_DATA;
    return 1;
}

void nn_uart_send(uint8_t byte)
{
    while ((SERCOM_INTFLAG & INT_DRE) == 0) {
    }
    SERCOM_DATA = byte;
}

void nn_uart_drain(void)
{
    while ((SERCOM_INTFLAG & INT_TXC) == 0) {
    }
}
