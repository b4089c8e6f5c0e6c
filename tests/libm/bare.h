/* What a program without an operating system's library has: a start, text output and an end. */
#ifndef BARE_H
#define BARE_H

#include <stdint.h>

void start(void); /* the program */
void say(const char *text);
void finish(void);

static inline void say_hexadecimal(uint32_t value)
{
    char text[9];

    for (int i = 0; i < 8; i++)
        text[i] = "0123456789abcdef"[value >> (28 - 4 * i) & 15];
    text[8] = 0;
    say(text);
}

#endif
