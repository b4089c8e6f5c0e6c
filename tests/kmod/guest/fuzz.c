/* fuzz DEVICE SEED COUNT INPUT_BYTES: so many random operations on the device, many of them nearly right. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#define NN_IOCTL_RESET _IO('n', 0xe0)
#define NN_IOCTL_MODE  _IOW('n', 0xe1, uint32_t)
#define FILES          4

static uint64_t state;
static uint8_t buffer[8192], frame[4096];
static size_t input_bytes;

static uint32_t chance(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

static uint32_t crc(const uint8_t *bytes, size_t size)
{
    uint32_t value = ~0u;

    for (size_t i = 0; i < size; i++) {
        value ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            value = (value >> 1) ^ (value & 1u ? 0xedb88320u : 0u);
        }
    }
    return ~value;
}

/* A request with a right checksum and right stuffing, and random contents. */
static size_t request(uint32_t session, uint16_t sequence)
{
    static uint8_t message[2048];
    size_t size = 8 + (chance(3) == 0 ? chance(1100) : chance(24)), at = 0, begin = 0;
    uint32_t sum;

    for (size_t i = 0; i < size; i++) {
        message[i] = (uint8_t)(chance(3) ? chance(8) : chance(256));
    }
    message[0] = (uint8_t)(chance(10) ? 1 + chance(10) : chance(256));
    if (chance(2)) {
        message[0] = (uint8_t)(chance(3) ? 4 : 1); /* a whole run, a greeting: these have no contents */
        size = 8;
    }
    memcpy(message + 2, &sequence, 2);
    memcpy(message + 4, &session, 4);
    sum = crc(message, size);
    memcpy(message + size, &sum, 4);
    size += 4;
    frame[at++] = 0;
    for (;;) {
        size_t run = 0;

        while (begin + run < size && run < 254 && message[begin + run] != 0) {
            run++;
        }
        frame[at++] = (uint8_t)(run + 1);
        memcpy(frame + at, message + begin, run);
        at += run;
        begin += run;
        if (begin == size) {
            break;
        }
        if (run < 254) {
            begin++;
        }
    }
    frame[at++] = 0;
    if (chance(8) == 0) {
        frame[chance((uint32_t)at)] ^= (uint8_t)(1u << chance(8));
    }
    return at;
}

static void act(int *files, const char *path, uint32_t session, uint16_t *sequence)
{
    uint32_t which = chance(FILES), mode = chance(3);
    struct iovec parts[3];
    struct pollfd wanted;
    size_t size;

    switch (chance(13)) {
    case 0:
        close(files[which]);
        files[which] = open(path, O_RDWR | O_NONBLOCK);
        break;
    case 1:
        size = chance(sizeof buffer);
        for (size_t i = 0; i < size; i++) {
            buffer[i] = (uint8_t)chance(256);
        }
        (void)!write(files[which], buffer, size);
        break;
    case 2:
        ioctl(files[which], NN_IOCTL_MODE, &mode);
        break;
    case 3:
        ioctl(files[which], chance(2) ? NN_IOCTL_RESET : chance(1u << 31), chance(2) ? (void *)buffer : (void *)16);
        break;
    case 4:
        wanted = (struct pollfd){files[which], POLLIN | POLLOUT, 0};
        poll(&wanted, 1, 0);
        break;
    case 5:
        (void)!write(files[which], (void *)(uintptr_t)chance(1u << 31), chance(4096));
        (void)!read(files[which], (void *)(uintptr_t)chance(1u << 31), chance(4096));
        break;
    case 6:
        for (int i = 0; i < 3; i++) {
            parts[i] = (struct iovec){buffer + chance(1000), chance(1000)};
        }
        (void)!(chance(2) ? readv(files[which], parts, 3) : writev(files[which], parts, 3));
        break;
    case 7:
        (void)!read(files[which], buffer, chance(sizeof buffer));
        break;
    case 8:
        (void)!write(files[which], buffer, input_bytes);
        break;
    default:
        *sequence = (uint16_t)(*sequence + (chance(10) ? 1 : chance(65536)));
        size = request(chance(20) ? session : chance(1u << 31), *sequence);
        (void)!write(files[which], frame, chance(16) ? size : chance((uint32_t)size));
        (void)!read(files[which], buffer, sizeof buffer);
        break;
    }
}

int main(int argc, char **argv)
{
    int files[FILES];
    uint16_t sequence = 0;
    long count = argc > 3 ? atol(argv[3]) : 0;

    state = argc > 2 ? (uint64_t)atoll(argv[2]) : 0;
    input_bytes = argc > 4 ? (size_t)atol(argv[4]) : 0;
    for (int i = 0; i < FILES; i++) {
        files[i] = open(argv[1], O_RDWR | O_NONBLOCK);
    }
    for (long i = 0; i < count; i++) {
        act(files, argv[1], 7, &sequence);
    }
    printf("fuzz: %ld operations, errno %d\n", count, errno);
    return 0;
}
