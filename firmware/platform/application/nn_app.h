/* For a program of your own on a bare chip: what there is instead of a C library.
 *
 * Write int main(void). When it is called, the clocks run at full speed, variables have their first values, and the serial
 * port is open; when it returns, the chip sleeps. */
#ifndef NN_APP_H
#define NN_APP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For the model's context: puts it into the memory that the board's table gives to models. */
#define NN_CONTEXT __attribute__((section(".bss.nn_context")))

/* Text, and numbers as text, to the serial port. Of a real number so many digits stand behind the point, 7 at most. */
void nn_print(const char *text);
void nn_print_whole(int32_t number);
void nn_print_real(float number, unsigned digits);

/* 1 and a byte when one has come in; 0 otherwise. 256 bytes are kept. */
int nn_take(uint8_t *byte);

/* Sleeps until something happens: a byte comes in, or an interrupt of your own. */
void nn_sleep(void);

/* A counter that only grows, and how fast it grows: the processor's cycles, where it counts them. */
uint64_t nn_platform_ticks(void);
uint32_t nn_platform_hertz(void);

#ifdef __cplusplus
}
#endif

#endif
