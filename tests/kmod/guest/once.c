/* once DEVICE INPUT_BYTES OUTPUT_BYTES RUNS [HEX...]: runs the model from the start of a sequence on zeros, so many times.
 * Without HEX it prints the output; with it, every output must be one of these. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define NN_IOCTL_RESET _IO('n', 0xe0)
#define NN_IOCTL_MODE  _IOW('n', 0xe1, uint32_t)

int main(int argc, char **argv)
{
    static uint8_t in[1 << 20], out[1 << 16];
    static char text[1 << 17];
    int device = open(argv[1], O_RDWR);
    size_t in_size = (size_t)atol(argv[2]), out_size = (size_t)atol(argv[3]);
    long runs = atol(argv[4]), seen[8] = {0}, wrong = 0;
    uint32_t mode = 1;

    if (device < 0 || ioctl(device, NN_IOCTL_MODE, &mode) != 0) {
        perror(argv[1]);
        return 2;
    }
    for (long run = 0; run < runs; run++) {
        int known = argc <= 5;

        ioctl(device, NN_IOCTL_RESET, 0);
        if (write(device, in, in_size) != (ssize_t)in_size || read(device, out, out_size) != (ssize_t)out_size) {
            perror("run");
            return 2;
        }
        for (size_t i = 0; i < out_size; i++) {
            sprintf(text + 2 * i, "%02x", out[i]);
        }
        for (int i = 5; i < argc; i++) {
            if (strcmp(text, argv[i]) == 0) {
                seen[(i - 5) % 8]++;
                known = 1;
            }
        }
        wrong += !known;
    }
    printf("once: %s wrong %ld seen %ld %ld\n", text, wrong, seen[0], seen[1]);
    return wrong != 0;
}
