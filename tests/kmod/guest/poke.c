/* poke DEVICE INPUT_BYTES OUTPUT_BYTES: uses the device in every wrong way, and says what it got. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define NN_IOCTL_RESET _IO('n', 0xe0)
#define NN_IOCTL_MODE  _IOW('n', 0xe1, uint32_t)
#define NOWHERE        ((void *)16)

static uint8_t bytes[1 << 20];

static void say(const char *what, long result)
{
    if (result < 0) {
        printf("poke: %s: %s\n", what, strerrorname_np(errno));
    } else {
        printf("poke: %s: %ld\n", what, result);
    }
    fflush(stdout);
}

static int events(int device)
{
    struct pollfd wanted = {device, POLLIN | POLLOUT, 0};

    poll(&wanted, 1, 0);
    return wanted.revents & (POLLIN | POLLOUT);
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "";
    size_t in = (size_t)atol(argv[2]), out = (size_t)atol(argv[3]);
    uint32_t mode = 1, bad = 7;
    int device = open(path, O_RDWR | O_NONBLOCK);

    say("open", device < 0 ? -1 : 0);
    say("link read of nothing", read(device, bytes, 10));
    say("link read of no bytes", read(device, bytes, 0));
    say("link write of no bytes", write(device, bytes, 0));
    say("link write from nowhere", write(device, NOWHERE, 10));
    say("link events", events(device) == POLLOUT);
    say("unknown ioctl", ioctl(device, _IO('n', 0x55), 0));
    say("terminal ioctl", ioctl(device, 0x5401, bytes));
    say("mode from nowhere", ioctl(device, NN_IOCTL_MODE, NOWHERE));
    say("mode that is none", ioctl(device, NN_IOCTL_MODE, &bad));
    say("seek", lseek(device, 4, SEEK_SET));
    say("pread", pread(device, bytes, 4, 4));
    say("mmap", mmap(0, 4096, PROT_READ, MAP_SHARED, device, 0) == MAP_FAILED ? -1 : 0);
    say("plain mode", ioctl(device, NN_IOCTL_MODE, &mode));
    say("read before run", read(device, bytes, out));
    say("events before run", events(device) == POLLOUT);
    say("short write", write(device, bytes, in - 1));
    say("long write", write(device, bytes, in + 1));
    say("empty write", write(device, bytes, 0));
    say("write from nowhere", write(device, NOWHERE, in));
    say("read after failures", read(device, bytes, out));
    say("write", write(device, bytes, in) == (ssize_t)in);
    say("events after run", events(device) == (POLLIN | POLLOUT));
    say("short read", read(device, bytes, out - 1));
    say("read to nowhere", read(device, NOWHERE, out));
    say("read", read(device, bytes, sizeof bytes) == (ssize_t)out);
    say("read again", read(device, bytes, out) == (ssize_t)out);
    say("reset", ioctl(device, NN_IOCTL_RESET, 0));
    say("read after reset", read(device, bytes, out));
    return 0;
}
