/* /dev/nn_<model>: what programs may ask of it beside read, write and poll. docs/kernel.md has an example. */
#ifndef NN_KMOD_IOCTL_H
#define NN_KMOD_IOCTL_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Starts a new sequence, and forgets what was written and not yet read. */
#define NN_IOCTL_RESET _IO('n', 0xe0)

/* How the device is talked to from now on. In frames (at first): requests of the link are written, replies are read.
 * Plain: all inputs are written at once, which runs the model; then all outputs are read at once. */
#define NN_IOCTL_MODE _IOW('n', 0xe1, __u32)
#define NN_MODE_LINK  0u
#define NN_MODE_PLAIN 1u

#endif
