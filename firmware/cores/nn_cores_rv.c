/* RISC-V harts in machine mode, with a CLINT. The software interrupt ends their sleep and is never taken; their timer
 * interrupt aborts their current work. */
#include "nn_bare.h"
#include "nn_cores_port.h"

#define MSIP(hart)          NN_REG(NN_CLINT_BASE + 4u * (uint32_t)(hart))
#define MTIMECMP_LOW(hart)  NN_REG(NN_CLINT_BASE + 0x4000u + 8u * (uint32_t)(hart))
#define MTIMECMP_HIGH(hart) NN_REG(NN_CLINT_BASE + 0x4004u + 8u * (uint32_t)(hart))
#define MTIME_LOW           NN_REG(NN_CLINT_BASE + 0xbff8u)
#define MTIME_HIGH          NN_REG(NN_CLINT_BASE + 0xbffcu)
#define MIE_SOFTWARE   (1u << 3)
#define MIE_TIMER      (1u << 7)
#define STATUS_ENABLED "8"

static uint32_t lives[NN_CORES];

void nn_hart_begin(void);
void nn_hart_trap(void);
void nn_hart_main(int32_t core);
void nn_hart_report(uint32_t return_address, uint32_t stack_pointer, int32_t core);

/* Entry of all harts but the first after reset, after a trap, and when no longer needed: they sleep until they are
 * started, with an empty stack. */
__attribute__((naked, noreturn, used)) void nn_hart_begin(void)
{
    __asm__ volatile(
        "csrci mstatus, " STATUS_ENABLED "\n"
#if defined(__riscv_vector)
        "li t0, 0x200\n"
        "csrs mstatus, t0\n"
#endif
        "la t0, nn_hart_trap\n"
        "csrw mtvec, t0\n"
        "li t0, %0\n"
        "csrw mie, t0\n"
        "1: wfi\n"
        "csrr t0, mip\n"
        "andi t0, t0, %0\n"
        "beqz t0, 1b\n"
        "csrr a0, mhartid\n"
        "slli t0, a0, 2\n"
        "li t1, %1\n"
        "add t0, t0, t1\n"
        "sw zero, 0(t0)\n"
        "la sp, nn_core_stacks_low\n"
        "lui t0, %%hi(nn_core_stack_bytes)\n"
        "addi t0, t0, %%lo(nn_core_stack_bytes)\n"
        "mul t0, t0, a0\n"
        "add sp, sp, t0\n"
        "call nn_hart_main\n"
        "j nn_hart_begin\n" ::"i"(MIE_SOFTWARE),
        "i"(NN_CLINT_BASE));
}

/* Only a hart that must restart gets an interrupt; its work is discarded. */
__attribute__((naked, noreturn, used, aligned(4))) void nn_hart_trap(void)
{
    __asm__ volatile(
        "csrr t0, mcause\n"
        "bltz t0, nn_hart_begin\n"
        "mv a0, ra\n"
        "mv a1, sp\n"
        "csrr a2, mhartid\n"
        "la sp, nn_core_stacks_low\n"
        "lui t0, %hi(nn_core_stack_bytes)\n"
        "addi t0, t0, %lo(nn_core_stack_bytes)\n"
        "mul t0, t0, a2\n"
        "add sp, sp, t0\n"
        "call nn_hart_report\n"
        "j nn_hart_begin\n");
}

__attribute__((used)) void nn_hart_main(int32_t core)
{
    MTIMECMP_HIGH(core) = 0xffffffffu;
    __asm__ volatile("csrw mie, %0\n\tcsrsi mstatus, " STATUS_ENABLED ::"r"(MIE_TIMER) : "memory");
    nn_cores_serve(core, __atomic_load_n(&lives[core], __ATOMIC_ACQUIRE));
}

__attribute__((used)) void nn_hart_report(uint32_t return_address, uint32_t stack_pointer, int32_t core)
{
    uint32_t words[NN_CORES_WORDS];

    __asm__ volatile("csrr %0, mcause" : "=r"(words[0]));
    __asm__ volatile("csrr %0, mepc" : "=r"(words[1]));
    __asm__ volatile("csrr %0, mtval" : "=r"(words[2]));
    words[3] = return_address;
    words[4] = stack_pointer;
    nn_cores_fault(core, words);
}

void nn_cores_port_start(int32_t core, uint32_t life)
{
    __atomic_store_n(&lives[core], life, __ATOMIC_RELEASE);
    MTIMECMP_LOW(core) = 0;
    MTIMECMP_HIGH(core) = 0;
    nn_cores_port_wake(core); /* last: it disables its timer when it starts */
}

void nn_cores_port_wake(int32_t core)
{
    __asm__ volatile("fence" ::: "memory");
    MSIP(core) = 1;
}

/* An interrupt after reading the word ends the sleep at once. None is taken before it ends. */
NN_CORES_WAITING void nn_cores_port_sleep(int32_t core, const uint32_t *word, uint32_t value)
{
    (void)word;
    (void)value;
    __asm__ volatile(
        "csrci mstatus, " STATUS_ENABLED "\n"
        "csrw mie, %0\n"
        "wfi\n"
        "csrw mie, %1\n"
        "csrsi mstatus, " STATUS_ENABLED "\n" ::"r"(MIE_SOFTWARE | MIE_TIMER),
        "r"(MIE_TIMER)
        : "memory");
    MSIP(core) = 0;
    __asm__ volatile("fence" ::: "memory");
}

NN_CORES_WAITING uint32_t nn_cores_port_clock(void)
{
    return MTIME_LOW;
}

NN_CORES_WAITING uint32_t nn_cores_port_millisecond(void)
{
    return NN_CLINT_HERTZ / 1000u;
}

/* Its own timer also wakes it; the serial port's interrupt does not. */
NN_CORES_WAITING void nn_cores_port_nap(const uint32_t *word, uint32_t value)
{
    uint32_t before;
    uint32_t until;

    (void)word;
    (void)value;
    MTIMECMP_HIGH(0) = 0xffffffffu;
    until = MTIME_LOW + 4u * nn_cores_port_millisecond();
    MTIMECMP_LOW(0) = until;
    MTIMECMP_HIGH(0) = MTIME_HIGH + (until < 4u * nn_cores_port_millisecond());
    __asm__ volatile("csrrw %0, mie, %1" : "=r"(before) : "r"(MIE_SOFTWARE | MIE_TIMER) : "memory");
    __asm__ volatile("wfi" ::: "memory");
    __asm__ volatile("csrw mie, %0" ::"r"(before) : "memory");
    MTIMECMP_HIGH(0) = 0xffffffffu;
    MSIP(0) = 0;
    __asm__ volatile("fence" ::: "memory");
}
