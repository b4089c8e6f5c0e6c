/* The link on a bare chip: an interrupt puts received bytes into a ring buffer, and the main loop answers them. */
#include "nn_bare.h"
#include "nn_link.h"
#include "nn_platform.h"

#define RING_BYTES 256u /* a power of two; the host waits for an answer before it sends more than a frame */
#define PAINT      0xa5a5a5a5u

extern uint32_t nn_stack_low[];
extern uint32_t nn_stack_high[];

static volatile uint8_t  ring[RING_BYTES];
static volatile uint32_t ring_in;  /* counts up; only ever changed with the interrupt held off or from within it */
static volatile uint32_t ring_out; /* counts up; only changed by the main program */
static nn_link           bare_link;

/* Puts every available byte into the ring; bytes that do not fit are lost, and the link requests them again. */
void nn_serial_interrupt(void)
{
    uint8_t byte;

    while (nn_uart_take(&byte)) {
        if (ring_in - ring_out < RING_BYTES) {
            ring[ring_in % RING_BYTES] = byte;
            ring_in = ring_in + 1u;
        }
    }
}

/* Polls the port when the ring is empty, so that it also works without interrupts. Sleeps until an event if the port is
 * empty too; an event after the poll ends the sleep at once. */
static uint8_t next_byte(void)
{
    uint8_t byte;

    while (ring_in == ring_out) {
        nn_arch_mask();
        nn_serial_interrupt();
        if (ring_in == ring_out) {
            nn_arch_sleep();
        }
        nn_arch_unmask();
    }
    byte = ring[ring_out % RING_BYTES];
    ring_out = ring_out + 1u;
    return byte;
}

void nn_platform_write(const uint8_t *bytes, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        nn_uart_send(bytes[i]);
    }
}

/* Start-up painted the stack; the lowest overwritten word is the deepest use. */
void nn_platform_stack(uint32_t *used, uint32_t *size)
{
    const volatile uint32_t *lowest = nn_stack_low;

    while (lowest < nn_stack_high && *lowest == PAINT) {
        lowest++;
    }
    *used = (uint32_t)((uintptr_t)nn_stack_high - (uintptr_t)lowest);
    *size = (uint32_t)((uintptr_t)nn_stack_high - (uintptr_t)nn_stack_low);
}

void nn_platform_reset(void)
{
    nn_uart_drain();
    nn_arch_reset();
}

int main(void)
{
    nn_clocks clocks = nn_soc_start();

    nn_uart_start(clocks.uart, NN_BAUD);
    nn_arch_count(clocks.cpu);
    nn_link_init(&bare_link);
    nn_arch_listen();
    nn_arch_unmask();
    for (;;) {
        nn_link_receive(&bare_link, next_byte());
    }
}
