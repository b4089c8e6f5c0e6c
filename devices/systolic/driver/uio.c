/* The device behind Linux' userspace I/O: map 0 holds the registers, map 1 the shared memory, and reading the file
 * waits for the interrupt. NN_SYSTOLIC_UIO names the file; /dev/uio0 otherwise. */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "systolic_port.h"
#include "systolic_registers.h"

#define MILLISECONDS 1 /* longest wait before the count is looked at again: an interrupt may be lost */

static int                file = -1;
static volatile uint32_t *registers;
static volatile uint8_t  *memory;

static void *mapped(int index, size_t bytes)
{
    const off_t at = (off_t)index * (off_t)sysconf(_SC_PAGESIZE);
    void       *found = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, at);

    return found == MAP_FAILED ? 0 : found;
}

static size_t page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

int systolic_attach(void)
{
    const char *name = getenv("NN_SYSTOLIC_UIO");

    file = open(name != 0 ? name : "/dev/uio0", O_RDWR | O_CLOEXEC);
    if (file < 0) {
        return 1;
    }
    registers = mapped(0, page());
    memory = mapped(1, SYSTOLIC_MEMORY_BYTES);
    if (registers == 0 || memory == 0) {
        systolic_detach();
        return 1;
    }
    return 0;
}

void systolic_detach(void)
{
    if (registers != 0) {
        munmap((void *)registers, page());
    }
    if (memory != 0) {
        munmap((void *)memory, SYSTOLIC_MEMORY_BYTES);
    }
    if (file >= 0) {
        close(file);
    }
    registers = 0;
    memory = 0;
    file = -1;
}

uint32_t systolic_get(uint32_t offset)
{
    return registers[offset / 4u];
}

void systolic_set(uint32_t offset, uint32_t value)
{
    registers[offset / 4u] = value;
}

volatile uint8_t *systolic_memory(void)
{
    return memory;
}

uint32_t systolic_wait(uint32_t cycles)
{
    const uint32_t begin = systolic_get(SYSTOLIC_REG_CYCLES), again = 1;
    struct pollfd  waiting = {file, POLLIN, 0};
    uint32_t       passed, times;

    if (write(file, &again, sizeof again) == (ssize_t)sizeof again && poll(&waiting, 1, MILLISECONDS) > 0) {
        passed = (uint32_t)(read(file, &times, sizeof times) == (ssize_t)sizeof times);
    }
    passed = systolic_get(SYSTOLIC_REG_CYCLES) - begin;
    passed = passed < cycles ? passed : cycles;
    return passed != 0 ? passed : 1u;
}
