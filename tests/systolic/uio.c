/* The port through Linux' userspace I/O, with a file in the place of the device: argument 1 says what is expected. */
#include <stdlib.h>

#include "nn_device.h"

int main(int argc, char **argv)
{
    const uint8_t data[5] = {1, 2, 3, 4, 5};
    uint8_t       back[5] = {0, 0, 0, 0, 0};
    uint8_t       descriptor[64] = {0};
    nn_device     device;

    if (argc != 2 || nn_device_open(&device) != atoi(argv[1])) {
        return 1;
    }
    if (!device.is_open) {
        return 0;
    }
    if (nn_device_write(&device, 0x1003, data, 5) != NN_DEVICE_OK || nn_device_read(&device, 0x1003, back, 5) != NN_DEVICE_OK) {
        return 2;
    }
    for (int i = 0; i < 5; i++) {
        if (back[i] != data[i]) {
            return 3;
        }
    }
    if (nn_device_submit(&device, descriptor, 64, 1, 50) != NN_DEVICE_OK || nn_device_commit(&device) != NN_DEVICE_OK) {
        return 4;
    }
    if (nn_device_wait(&device, 1, 50) != NN_DEVICE_LATE) {
        return 5;
    }
    nn_device_close(&device);
    return 0;
}
