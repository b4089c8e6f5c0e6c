/* registers DEVICE INPUT_BYTES SWITCHES: fills the vector registers with a pattern, lets the kernel run a model in this
 * process and in another one, and looks whether they are as they were. Ends after so many context switches. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define NN_IOCTL_MODE _IOW('n', 0xe1, uint32_t)

static int wide;

#define EACH(m) m(0) m(1) m(2) m(3) m(4) m(5) m(6) m(7) m(8) m(9) m(10) m(11) m(12) m(13) m(14) m(15)
#define LOAD_X(n) "movdqu 32*" #n "(%[from]), %%xmm" #n "\n"
#define SAVE_X(n) "movdqu %%xmm" #n ", 32*" #n "(%[to])\n"
#define LOAD_Y(n) "vmovdqu 32*" #n "(%[from]), %%ymm" #n "\n"
#define SAVE_Y(n) "vmovdqu %%ymm" #n ", 32*" #n "(%[to])\n"
#define CLOBBERS                                                                                                       \
    "rcx", "r11", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",    \
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

/* A system call between loading and saving, with nothing of the compiler's in between. */
static long call_between(long number, long a, const void *b, long c, const uint8_t *from, uint8_t *to)
{
    long result;

    if (wide) {
        __asm__ volatile(EACH(LOAD_Y) "syscall\n" EACH(SAVE_Y)
                         : "=a"(result)
                         : "a"(number), "D"(a), "S"(b), "d"(c), [from] "r"(from), [to] "r"(to)
                         : CLOBBERS);
    } else {
        __asm__ volatile(EACH(LOAD_X) "syscall\n" EACH(SAVE_X)
                         : "=a"(result)
                         : "a"(number), "D"(a), "S"(b), "d"(c), [from] "r"(from), [to] "r"(to)
                         : CLOBBERS);
    }
    return result;
}

static int open_plain(const char *path)
{
    uint32_t mode = 1;
    int device = open(path, O_RDWR);

    if (device < 0 || ioctl(device, NN_IOCTL_MODE, &mode) != 0) {
        perror(path);
        exit(2);
    }
    return device;
}

static int is_wrong(const uint8_t *from, const uint8_t *to, uint32_t control)
{
    uint32_t now;

    __asm__ volatile("stmxcsr %0" : "=m"(now));
    if (now != control) {
        __asm__ volatile("ldmxcsr %0" : : "m"(control));
        return 1;
    }
    for (int i = 0; i < 16; i++) {
        if (memcmp(from + 32 * i, to + 32 * i, wide ? 32 : 16) != 0) {
            return 1;
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    static uint8_t from[512], to[512], input[1 << 16];
    uint32_t control = 0x1f80u | 0x6000u; /* rounding towards zero */
    long corrupted = 0, calls = 0, wanted = argc > 3 ? atol(argv[3]) : 1000, size = argc > 2 ? atol(argv[2]) : 0;
    struct rusage usage;
    pid_t other;
    int device;

    if (argc < 4) {
        return 2;
    }
    wide = __builtin_cpu_supports("avx");
    other = fork();
    device = open_plain(argv[1]);
    srand(other == 0 ? 1u : 2u);
    for (unsigned i = 0; i < sizeof from; i++) {
        from[i] = (uint8_t)rand();
    }
    __asm__ volatile("ldmxcsr %0" : : "m"(control));
    do {
        long result = call_between(SYS_write, device, input, size, from, to);

        if (result != size) {
            printf("registers: a write gave %ld\n", result);
            return 2;
        }
        corrupted += is_wrong(from, to, control);
        call_between(SYS_sched_yield, 0, 0, 0, from, to);
        corrupted += is_wrong(from, to, control);
        calls += 2;
        getrusage(RUSAGE_SELF, &usage);
    } while (usage.ru_nvcsw + usage.ru_nivcsw < wanted / 2);
    printf("registers: %s %ld calls, %ld switches, %ld corrupted\n", wide ? "ymm" : "xmm", calls,
           usage.ru_nvcsw + usage.ru_nivcsw, corrupted);
    fflush(stdout);
    if (other != 0) {
        int status = 0;

        kill(other, 0);
        waitpid(other, &status, 0);
        return corrupted != 0 || status != 0;
    }
    return corrupted != 0;
}
