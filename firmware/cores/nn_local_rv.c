/* RISC-V harts, whose memories are adjacent. A checking program computes in user mode, where physical memory protection
 * gives a hart access only to its own memory, its stack, code, and constants that are not weights. */
#include "nn_local.h"

#include "nn_cores_port.h"

#if defined(NN_LOCAL_CHECKED)
#define POISON 0xa5a5a5a5u

extern uint32_t nn_code_begin[];
extern uint32_t nn_code_end[];
extern uint32_t nn_rodata_begin[];
extern uint32_t nn_rodata_end[];
extern uint32_t nn_stack_low[];
extern uint32_t nn_stack_high[];
extern uint32_t nn_core_stacks_low[];
extern uint32_t nn_core_stack_bytes[];

void nn_trap(void);
void nn_hart_trap(void);
void nn_local_enter(void);
void nn_local_leave(void);
void nn_local_trap(void);
#endif

static uint32_t hart(void)
{
    uint32_t number;

    __asm__ volatile("csrr %0, mhartid" : "=r"(number));
    return number;
}

NN_CORES_COPYING unsigned char *nn_local_begin(int32_t size)
{
    unsigned char *const own = (unsigned char *)(uintptr_t)(NN_LOCAL_ORIGIN + hart() * NN_LOCAL_BYTES);

#if defined(NN_LOCAL_CHECKED)
    for (uint32_t i = 0; i < NN_LOCAL_BYTES / 4u; i++) {
        ((volatile uint32_t *)(void *)own)[i] = POISON;
    }
#endif
    (void)size;
    return own;
}

#if defined(NN_LOCAL_CHECKED)
#define READ    1u
#define WRITE   2u
#define EXECUTE 4u
#define UP_TO   8u /* from the entry before it to its own address */

#define ENTRY(number, address) __asm__ volatile("csrw pmpaddr" #number ", %0" ::"r"((uint32_t)(uintptr_t)(address) >> 2))
#define RIGHTS(number, first, second) \
    __asm__ volatile("csrw pmpcfg" #number ", %0" ::"r"(((first) | UP_TO) << 8 | ((second) | UP_TO) << 24))

static void allow(const unsigned char *local, const unsigned char *open, int32_t size)
{
    const uint32_t        own = hart();
    const unsigned char  *stack = (const unsigned char *)(own == 0 ? nn_stack_low : nn_core_stacks_low);
    const uintptr_t       each = (uintptr_t)nn_core_stack_bytes;
    const uintptr_t       bytes = own == 0 ? (uintptr_t)nn_stack_high - (uintptr_t)nn_stack_low : each;

    stack += own == 0 ? 0 : (own - 1u) * each;
    ENTRY(0, nn_code_begin);
    ENTRY(1, nn_code_end);
    ENTRY(2, nn_rodata_begin);
    ENTRY(3, nn_rodata_end);
    ENTRY(4, stack);
    ENTRY(5, stack + bytes);
    ENTRY(6, local);
    ENTRY(7, local + NN_LOCAL_BYTES);
    ENTRY(8, open);
    ENTRY(9, open + size + 3);
    RIGHTS(0, READ | EXECUTE, READ);
    RIGHTS(1, READ | WRITE, READ | WRITE);
    __asm__ volatile("csrw pmpcfg2, %0" ::"r"(size > 0 ? (READ | WRITE | UP_TO) << 8 : 0u));
}

/* Returns in user mode. */
__attribute__((naked, noinline, used)) void nn_local_enter(void)
{
    __asm__ volatile(
        "la t0, nn_local_trap\n"
        "csrw mtvec, t0\n"
        "li t0, 0x1800\n" /* mstatus.MPP */
        "csrc mstatus, t0\n"
        "csrw mepc, ra\n"
        "mret\n");
}

/* Returns in machine mode. */
__attribute__((naked, noinline, used)) void nn_local_leave(void)
{
    __asm__ volatile(
        "ecall\n"
        "ret\n");
}

/* Anything but a call from user mode is a fault, or an interrupt that aborts the hart's work. */
__attribute__((naked, used, aligned(4))) void nn_local_trap(void)
{
    __asm__ volatile(
        "csrw mscratch, t0\n"
        "csrr t0, mcause\n"
        "addi t0, t0, -8\n"
        "bnez t0, 1f\n"
        "li t0, 0x1800\n"
        "csrs mstatus, t0\n"
        "csrr t0, mepc\n"
        "addi t0, t0, 4\n"
        "csrw mepc, t0\n"
        "csrr t0, mscratch\n"
        "mret\n"
        "1: csrr t0, mhartid\n"
        "bnez t0, 2f\n"
        "csrr t0, mscratch\n"
        "j nn_trap\n"
        "2: csrr t0, mscratch\n"
        "j nn_hart_trap\n");
}

/* In user mode every enabled interrupt is taken; the first hart has one that must never be. */
static uint32_t enabled;

void nn_local_confine(unsigned char *local, void *open, int32_t size)
{
    allow(local, open, size);
    if (hart() == 0) {
        __asm__ volatile("csrrw %0, mie, zero" : "=r"(enabled)::"memory");
    }
    nn_local_enter();
}

void nn_local_release(void)
{
    nn_local_leave();
    if (hart() == 0) {
        __asm__ volatile("csrci mstatus, 8\n\tcsrw mtvec, %0\n\tcsrw mie, %1" ::"r"(nn_trap), "r"(enabled) : "memory");
    } else {
        __asm__ volatile("csrw mtvec, %0\n\tcsrsi mstatus, 8" ::"r"(nn_hart_trap) : "memory"); /* MIE */
    }
}
#endif
