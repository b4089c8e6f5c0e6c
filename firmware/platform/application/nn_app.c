/* Run-time for the user's own program on a bare chip: starts the chip, calls main, prints, and reports faults. */
#include "nn_app.h"
#include "nn_bare.h"
#include "nn_link.h"
#include "nn_platform.h"

#define RING_BYTES  256u /* a power of two */
#define END_OF_TEXT 4u   /* tells nnbuild monitor that main has returned */
#define MOST_DIGITS 7u

int nn_application(void); /* the user's main, compiled under this name */

static volatile uint8_t  ring[RING_BYTES];
static volatile uint32_t ring_in;
static volatile uint32_t ring_out;

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

int nn_take(uint8_t *byte)
{
    nn_arch_mask();
    nn_serial_interrupt(); /* where no interrupt is delivered */
    nn_arch_unmask();
    if (ring_in == ring_out) {
        return 0;
    }
    *byte = ring[ring_out % RING_BYTES];
    ring_out = ring_out + 1u;
    return 1;
}

void nn_sleep(void)
{
    nn_arch_mask();
    nn_serial_interrupt();
    if (ring_in == ring_out) {
        nn_arch_sleep();
    }
    nn_arch_unmask();
}

void nn_print(const char *text)
{
    while (*text != 0) {
        if (*text == '\n') {
            nn_uart_send('\r');
        }
        nn_uart_send((uint8_t)*text++);
    }
}

static void print_digits(uint32_t number, unsigned least)
{
    char     text[11];
    unsigned at = sizeof text - 1u;

    text[at] = 0;
    do {
        text[--at] = (char)('0' + number % 10u);
        number /= 10u;
    } while (number != 0 || sizeof text - 1u - at < least);
    nn_print(text + at);
}

void nn_print_whole(int32_t number)
{
    if (number < 0) {
        nn_print("-");
    }
    print_digits(number < 0 ? 0u - (uint32_t)number : (uint32_t)number, 1u);
}

void nn_print_real(float number, unsigned digits)
{
    uint32_t scale = 1;
    uint32_t whole;
    uint32_t fraction;
    unsigned tens = 0;

    if (number != number) {
        nn_print("nan");
        return;
    }
    if (number < 0.0f) {
        nn_print("-");
        number = -number;
    }
    if (number > 3.4e38f) {
        nn_print("inf");
        return;
    }
    while (number >= (tens == 0 ? 1e9f : 10.0f)) { /* a large one as a digit followed by the power of ten */
        number /= 10.0f;
        tens++;
    }
    digits = digits > MOST_DIGITS ? MOST_DIGITS : digits;
    for (unsigned i = 0; i < digits; i++) {
        scale *= 10u;
    }
    whole = (uint32_t)number;
    fraction = (uint32_t)((number - (float)whole) * (float)scale + 0.5f);
    if (fraction >= scale) {
        fraction -= scale;
        whole++;
    }
    print_digits(whole, 1u);
    if (digits > 0) {
        nn_print(".");
        print_digits(fraction, digits);
    }
    if (tens > 0) {
        nn_print("e+");
        print_digits(tens, 2u);
    }
}

void nn_link_fault(nn_link_fault_kind kind, const uint32_t *words, uint32_t count)
{
    static const char hexadecimal[] = "0123456789abcdef";

    nn_print(kind == NN_LINK_FAULT_RISCV ? "\nfault: mcause mepc mtval ra sp"
                                         : "\nfault: r0 r1 r2 r3 r12 lr pc xpsr cfsr hfsr mmfar bfar frame");
    for (uint32_t i = 0; i < count; i++) {
        nn_print(" ");
        for (uint32_t shift = 32; shift != 0; shift -= 4u) {
            nn_uart_send((uint8_t)hexadecimal[(words[i] >> (shift - 4u)) & 15u]);
        }
    }
    nn_print("\n");
    nn_uart_send(END_OF_TEXT);
}

int main(void)
{
    nn_clocks clocks = nn_soc_start();

    nn_uart_start(clocks.uart, NN_BAUD);
    nn_arch_count(clocks.cpu);
    nn_arch_listen();
    nn_arch_unmask();
    (void)nn_application();
    nn_uart_send(END_OF_TEXT);
    nn_uart_drain();
    for (;;) {
        nn_sleep();
    }
}
