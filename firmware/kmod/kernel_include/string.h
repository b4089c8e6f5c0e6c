/* For sources that are shared with other boards: the kernel's own memcpy and memset. */
#ifndef NN_KERNEL_STRING_H
#define NN_KERNEL_STRING_H

#include <linux/string.h>

#endif
