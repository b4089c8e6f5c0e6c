/* For your own program on a bare chip: the replacement for a C library.
 *
 * Write int main(void). When it is called, the clocks run at full speed, variables are initialized, and the serial port
 * is open; when it returns, the chip sleeps. */
#ifndef NN_APP_H
#define NN_APP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For the model's context: puts it into the memory that the board's table gives to models. */
#define NN_CONTEXT __attribute__((section(".bss.nn_context")))

/* Text, and numbers as text, to the serial port. Real numbers have this many digits after the point, at most 7. */
void nn_print(const char *text);
void nn_print_whole(int32_t number);
void nn_print_real(float number, unsigned digits);

/* 1 and a byte if one has been received; 0 otherwise. 256 bytes are buffered. */
int nn_take(uint8_t *byte);

/* Sleeps until a byte arrives or one of your own interrupts occurs. */
void nn_sleep(void);

/* A monotonic counter, and its rate: the processor's cycles, where it counts them. */
uint64_t nn_platform_ticks(void);
uint32_t nn_platform_hertz(void);

#ifdef __cplusplus
}
#endif

#endif
