/* The UART of ESP32-C3 and C6, with FIFOs of 128 bytes. Its divider counts sixteenths; NN_UART_UPDATE takes it over. */
#include "nn_bare.h"

#define UART_FIFO   NN_REG(NN_UART_BASE + 0x00u)
#define UART_CLKDIV NN_REG(NN_UART_BASE + 0x14u)
#define UART_STATUS NN_REG(NN_UART_BASE + 0x1cu)
#define UART_FSM    NN_REG(NN_UART_BASE + NN_UART_FSM)
#define UART_UPDATE NN_REG(NN_UART_BASE + NN_UART_UPDATE)

#define STATUS_RECEIVED 0xffu
#define STATUS_TO_SEND  (0xffu << 16)
#define FIFO_ROOM       (126u << 16)
#define FSM_SENDING     (15u << 4)

void nn_uart_start(uint32_t clock, uint32_t baud)
{
    uint32_t divider = nn_uart_divider(clock, 16, baud);

    UART_CLKDIV = divider / 16u | divider % 16u << 20;
    UART_UPDATE |= 1u << NN_UART_UPDATE_BIT;
    (void)nn_ready(&UART_UPDATE, 1u << NN_UART_UPDATE_BIT, 0);
}

int nn_uart_take(uint8_t *byte)
{
    if ((UART_STATUS & STATUS_RECEIVED) == 0) {
        return 0;
    }
    *byte = (uint8_t)UART_FIFO;
    return 1;
}

void nn_uart_send(uint8_t byte)
{
    while ((UART_STATUS & STATUS_TO_SEND) > FIFO_ROOM) {
    }
    UART_FIFO = byte;
}

void nn_uart_drain(void)
{
    while ((UART_STATUS & STATUS_TO_SEND) != 0 || (UART_FSM & FSM_SENDING) != 0) {
    }
}
