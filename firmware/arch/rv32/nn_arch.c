/* RISC-V, machine mode: start-up, trap report, and the instruction counter. */
#include "nn_bare.h"
#include "nn_link.h"
#include "nn_memory.h"
#include "nn_platform.h"

#define READ_ONLY 0x9du /* locked even for machine mode, a naturally aligned power of two, readable, executable */

#ifndef NN_HAS_PMP
#define NN_HAS_PMP 1
#endif
#if !NN_HAS_PMP
#define NN_LOCKED_BEGIN 0u
#define NN_LOCKED_SIZE  0u
#endif

#define PLIC_PRIORITY(irq) NN_REG(NN_PLIC_BASE + 4u * (irq))
#define PLIC_ENABLE        NN_REG(NN_PLIC_BASE + 0x002000u)
#define PLIC_THRESHOLD     NN_REG(NN_PLIC_BASE + 0x200000u)
#define PLIC_CLAIM         NN_REG(NN_PLIC_BASE + 0x200004u)
#define MIE_MEIE           (1u << 11)

#define CSR_READ(name, value) __asm__ volatile("csrr %0, " name : "=r"(value))

#if defined(NN_STK_BASE) /* QingKe cores count by a timer of their own */
#define STK_CTLR NN_REG(NN_STK_BASE + 0x00u)
#define STK_CNTL NN_REG(NN_STK_BASE + 0x08u)
#define STK_CNTH NN_REG(NN_STK_BASE + 0x0cu)

#define STK_CTLR_STE   (1u << 0)
#define STK_CTLR_STCLK (1u << 2) /* the processor's clock, undivided */
#endif

#if defined(NN_PLIC_BASE) /* emulated: time is meaningless there */
const char *const nn_platform_unit = "instructions";
#else
const char *const nn_platform_unit = "cycles";
#endif

#ifndef NN_TRAP_ALIGNMENT
#define NN_TRAP_ALIGNMENT 4 /* of what mtvec takes */
#endif

static uint32_t hertz;

void nn_reset(void);
void nn_trap(void);
void nn_trap_report(uint32_t return_address, uint32_t stack_pointer);

/* Must be the first code of the image: the machine starts at its first byte. Makes the memory below the RAM read-only, so
 * that a stack overflow into it faults. */
__attribute__((naked, noreturn, used, section(".vectors"))) void nn_reset(void)
{
    __asm__ volatile(
        "csrci mstatus, 8\n" /* interrupts off, whatever ran before; not every core has mie */
        "lui t0, %%hi(1f)\n" /* some chips start at an alias of their flash */
        "jr t0, %%lo(1f)\n"
        "1:\n"
#if defined(__riscv_flen)
        "li t0, 0x6000\n" /* the FPU is off at first */
        "csrs mstatus, t0\n"
#endif
#if defined(__riscv_vector)
        "li t0, 0x200\n" /* vectors are off at first */
        "csrs mstatus, t0\n"
#endif
        "la t0, nn_trap\n"
        "csrw mtvec, t0\n"
#if NN_HAS_PMP && !defined(NN_LOCAL_CHECKED) /* which protects all memory itself */
        "li t0, %0\n"
        "csrw pmpaddr0, t0\n"
        "li t0, %1\n"
        "csrw pmpcfg0, t0\n"
#endif
#if NN_CORES > 1
        "csrr t0, mhartid\n"
        "bnez t0, nn_hart_begin\n"
#endif
        "la sp, nn_handler_stack_high\n"
        "call nn_memory_start\n"
        "la sp, nn_stack_high\n"
        "call main\n"
        "j .\n" ::"i"((NN_LOCKED_BEGIN >> 2) | (NN_LOCKED_SIZE / 8u - 1u)),
        "i"(READ_ONLY));
}

/* A trap never returns: all registers but these two may be lost. */
__attribute__((naked, noreturn, used, aligned(NN_TRAP_ALIGNMENT))) void nn_trap(void)
{
    __asm__ volatile(
        "mv a0, ra\n"
        "mv a1, sp\n"
        "la sp, nn_handler_stack_high\n"
        "call nn_trap_report\n"
        "j .\n");
}

__attribute__((used)) void nn_trap_report(uint32_t return_address, uint32_t stack_pointer)
{
    uint32_t words[5];

    CSR_READ("mcause", words[0]);
    CSR_READ("mepc", words[1]);
    CSR_READ("mtval", words[2]);
    words[3] = return_address;
    words[4] = stack_pointer;
    nn_link_fault(NN_LINK_FAULT_RISCV, words, 5);
    nn_uart_drain();
    nn_arch_reset();
}

/* No interrupt is ever taken: the serial port's only ends a sleep, and the port is polled then; where the chip has its
 * own interrupt controller, the port is polled continuously. */
void nn_arch_mask(void)
{
}

void nn_arch_unmask(void)
{
}

void nn_arch_sleep(void)
{
#if defined(NN_PLIC_BASE)
    __asm__ volatile("wfi" ::: "memory");
    PLIC_CLAIM = PLIC_CLAIM; /* claimed by reading, completed by writing back */
#endif
}

void nn_arch_listen(void)
{
#if defined(NN_PLIC_BASE)
    PLIC_PRIORITY(NN_UART_IRQ) = 1;
    PLIC_THRESHOLD = 0;
    PLIC_ENABLE = 1u << NN_UART_IRQ;
    __asm__ volatile("csrw mie, %0" ::"r"(MIE_MEIE));
#endif
}

void nn_arch_count(uint32_t cpu_clock)
{
    hertz = cpu_clock;
#if defined(NN_STK_BASE)
    STK_CTLR = STK_CTLR_STE | STK_CTLR_STCLK;
#elif defined(NN_PERFORMANCE_COUNTER)
    __asm__ volatile(
        "csrwi 0x7e0, 1\n" /* mpcer: cycles */
        "csrwi 0x7e1, 1\n" /* mpcmr: on */
    );
#elif !defined(NN_PLIC_BASE)
    __asm__ volatile("csrwi 0x320, 0"); /* mcountinhibit: some cores start with their counters off */
#endif
}

void nn_arch_reset(void)
{
    NN_REG(NN_RESET_REGISTER) = NN_RESET_VALUE;
    for (;;) {
    }
}

#if defined(NN_PERFORMANCE_COUNTER)
/* Espressif's 32-bit counters wrap after 26 s at 160 MHz; this sum does not. */
uint64_t nn_platform_ticks(void)
{
    static uint64_t ticks;
    static uint32_t last;
    uint32_t        now;

    CSR_READ("0x7e2", now);
    ticks += now - last;
    last = now;
    return ticks;
}
#else
static uint32_t count_low(void)
{
    uint32_t count;

#if defined(NN_STK_BASE)
    count = STK_CNTL;
#elif defined(NN_PLIC_BASE)
    CSR_READ("minstret", count);
#else
    CSR_READ("mcycle", count);
#endif
    return count;
}

static uint32_t count_high(void)
{
    uint32_t count;

#if defined(NN_STK_BASE)
    count = STK_CNTH;
#elif defined(NN_PLIC_BASE)
    CSR_READ("minstreth", count);
#else
    CSR_READ("mcycleh", count);
#endif
    return count;
}

/* The upper half may change between two reads of the lower one. */
uint64_t nn_platform_ticks(void)
{
    uint32_t high;
    uint32_t low;

    do {
        high = count_high();
        low = count_low();
    } while (high != count_high());
    return ((uint64_t)high << 32) | low;
}
#endif

uint32_t nn_platform_hertz(void)
{
    return hertz;
}
