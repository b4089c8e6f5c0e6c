/* Each core's own memory. A model made for it computes every step on copies there, which the core itself makes. One file
 * per kind of processor gives the memory's address. */
#ifndef NN_LOCAL_H
#define NN_LOCAL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `size` bytes of the calling core's own memory. */
unsigned char *nn_local_begin(int32_t size);

void nn_local_copy(void *to, const void *from, int32_t size);

/* Between these two calls, code writes only to `local` and to `size` bytes at `open`; where this is checked, any other
 * access faults. */
#if defined(NN_LOCAL_CHECKED)
void nn_local_confine(unsigned char *local, void *open, int32_t size);
void nn_local_release(void);
#else
#define nn_local_confine(local, open, size) ((void)(open), (void)(size))
#define nn_local_release()                  ((void)0)
#endif

/* The start of an object of which a part is in `local`. */
static inline void *nn_local_whole(unsigned char *local, int32_t offset)
{
    return (void *)((uintptr_t)local + (uintptr_t)(intptr_t)offset);
}

#ifdef __cplusplus
}
#endif

#endif
