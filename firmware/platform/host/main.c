/* The link on a PC: requests come in on standard input, replies go out on standard output.
 *
 * The link runs on a thread whose stack was painted beforehand, so that the deepest use can be measured as on a
 * microcontroller. Link with -z now: binding a symbol at its first call takes 3 KB of stack.
 * Under QEMU the time is instructions: NN_COUNTER is the number of an open file that starts with their count. */
#define _GNU_SOURCE /* sigaltstack, pthread_attr_setstack and MAP_ANONYMOUS are hidden in strict C99 otherwise */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "nn_link.h"
#include "nn_platform.h"

#define STACK_BYTES  (8u * 1024u * 1024u)
#define SIGNAL_BYTES (64u * 1024u)
#define PAINT        0xa5a5a5a5u

#if defined(__GNUC__)
#define UNCHECKED __attribute__((no_sanitize("address", "undefined")))
#else
#define UNCHECKED
#endif

const char *const nn_platform_unit = "ns";

static nn_link   host_link;
static uint32_t *stack_bottom; /* the lowest address: stacks grow towards it */
static uintptr_t stack_start;  /* where the link's own frames begin */

static const volatile uint64_t *counter; /* of an emulator's instructions, where there is one */

uint64_t nn_platform_ticks(void)
{
    struct timespec now;

    if (counter != 0) {
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        return __builtin_bswap64(*counter); /* the emulator runs on a little-endian PC */
#else
        return *counter;
#endif
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint32_t nn_platform_hertz(void)
{
    return 1000000000u;
}

/* Whether to retry a failed read or write; waits until a retry makes sense. */
static int try_again(int descriptor, short events)
{
    struct pollfd wanted;

    wanted.fd = descriptor;
    wanted.events = events;
    wanted.revents = 0;
    return errno == EINTR || (errno == EAGAIN && poll(&wanted, 1, -1) >= 0);
}

void nn_platform_write(const uint8_t *bytes, uint32_t size)
{
    while (size > 0) {
        ssize_t sent = write(STDOUT_FILENO, bytes, size);
        if (sent > 0) {
            bytes += sent;
            size -= (uint32_t)sent;
        } else if (sent < 0 && !try_again(STDOUT_FILENO, POLLOUT)) {
            _exit(0); /* nobody listens any more */
        }
    }
}

UNCHECKED void nn_platform_stack(uint32_t *used, uint32_t *size)
{
    const uint32_t *lowest = stack_bottom;

    while ((uintptr_t)lowest < stack_start && *lowest == PAINT) {
        lowest++;
    }
    *used = (uint32_t)(stack_start - (uintptr_t)lowest);
    *size = STACK_BYTES;
}

void nn_platform_reset(void)
{
    static char  name[] = "nn";
    static char *arguments[] = {name, 0};

    execv("/proc/self/exe", arguments);
    _exit(3);
}

static void report_signal(int number)
{
    uint32_t word = (uint32_t)number;

    nn_link_fault(NN_LINK_FAULT_SIGNAL, &word, 1);
    _exit(128 + number);
}

/* Handlers get their own stack: a stack overflow is one of the faults to report. */
static void catch_faults(void)
{
    static uint8_t   handler_stack[SIGNAL_BYTES];
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    stack_t          alternate;
    struct sigaction action;

    memset(&alternate, 0, sizeof alternate);
    alternate.ss_sp = handler_stack;
    alternate.ss_size = sizeof handler_stack;
    sigaltstack(&alternate, 0);
    memset(&action, 0, sizeof action);
    action.sa_handler = report_signal;
    action.sa_flags = SA_ONSTACK;
    for (unsigned i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        sigaction(numbers[i], &action, 0);
    }
}

static void *serve(void *unused)
{
    static uint8_t bytes[4096];

    stack_start = (uintptr_t)&unused;
    catch_faults();
    nn_link_init(&host_link);
    for (;;) {
        ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
        if (count == 0 || (count < 0 && !try_again(STDIN_FILENO, POLLIN))) {
            exit(0); /* the host is gone */
        }
        for (ssize_t i = 0; i < count; i++) {
            nn_link_receive(&host_link, bytes[i]);
        }
    }
}

static void find_counter(void)
{
    const char *number = getenv("NN_COUNTER");
    void       *page = number ? mmap(0, sizeof *counter, PROT_READ, MAP_SHARED, atoi(number), 0) : MAP_FAILED;

    counter = page != MAP_FAILED ? page : 0;
}

int main(void)
{
    pthread_attr_t attributes;
    pthread_t      thread;
    void          *memory = mmap(0, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        return 1;
    }
    find_counter();
    stack_bottom = memory;
    for (uint32_t i = 0; i < STACK_BYTES / 4u; i++) {
        stack_bottom[i] = PAINT;
    }
    if (pthread_attr_init(&attributes) != 0 || pthread_attr_setstack(&attributes, memory, STACK_BYTES) != 0 ||
        pthread_create(&thread, &attributes, serve, 0) != 0) {
        return 1;
    }
    pthread_join(thread, 0);
    return 0;
}
