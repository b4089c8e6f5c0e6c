/* /dev/nn_<model>: requests besides read, write and poll. docs/kernel.md has an example. */
#ifndef NN_KMOD_IOCTL_H
#define NN_KMOD_IOCTL_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Starts a new sequence, and discards unprocessed input and unread output. */
#define NN_IOCTL_RESET _IO('n', 0xe0)

/* Selects the protocol. Frames (the default): write requests of the link, read replies. Plain: write all inputs at once,
 * which runs the model; then read all outputs at once. */
#define NN_IOCTL_MODE _IOW('n', 0xe1, __u32)
#define NN_MODE_LINK  0u
#define NN_MODE_PLAIN 1u

#endif
