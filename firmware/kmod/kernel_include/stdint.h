/* For sources that are shared with other boards: the kernel's own names of these types. */
#ifndef NN_KERNEL_STDINT_H
#define NN_KERNEL_STDINT_H

#include <linux/types.h>

#endif
