/* The part of <string.h> for generated code and the link, for toolchains without a C library. */
#ifndef NN_STRING_H
#define NN_STRING_H

#include <stddef.h>

void *memcpy(void *to, const void *from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int byte, size_t size);
int   memcmp(const void *left, const void *right, size_t size);

#endif
