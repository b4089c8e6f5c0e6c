#ifndef CORTEX_M4_H
#define CORTEX_M4_H

#include <stdint.h>

void start(void); /* the program */
void say(const char *text);
void say_hexadecimal(uint32_t value);
void finish(void);

#endif
