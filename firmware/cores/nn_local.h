/* Memory that each core has of its own. A model that was made for it computes every step on copies there; what copies is
 * the core itself. A file for each kind of processor says where that memory is. */
#ifndef NN_LOCAL_H
#define NN_LOCAL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The memory of the core that calls, of which `size` bytes are wanted. */
unsigned char *nn_local_begin(int32_t size);

void nn_local_copy(void *to, const void *from, int32_t size);

/* What is called between these two writes nowhere but in `local`, and to `size` bytes at `open`; where that is checked, a
 * core takes a fault as soon as it reads or writes anything else. */
#if defined(NN_LOCAL_CHECKED)
void nn_local_confine(unsigned char *local, void *open, int32_t size);
void nn_local_release(void);
#else
#define nn_local_confine(local, open, size) ((void)(open), (void)(size))
#define nn_local_release()                  ((void)0)
#endif

/* Where something would begin of which a part lies in `local`. */
static inline void *nn_local_whole(unsigned char *local, int32_t offset)
{
    return (void *)((uintptr_t)local + (uintptr_t)(intptr_t)offset);
}

#ifdef __cplusplus
}
#endif

#endif
