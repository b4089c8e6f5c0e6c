/* The second Cortex-M33 of Arm's SSE-200. An interrupt from the message unit aborts its work when it must
 * restart. */
#include "nn_cores_arm.h"

#define INITSVTOR1    NN_REG(0x50021114u)
#define CPUWAIT       NN_REG(0x50021118u)
#define MHU_STATUS    NN_REG(0x50003010u)
#define MHU_SET       NN_REG(0x50003014u)
#define MHU_CLEAR     NN_REG(0x50003018u)
#define TIMER_CTRL    NN_REG(NN_CORES_TIMER + 0x00u)
#define TIMER_VALUE   NN_REG(NN_CORES_TIMER + 0x04u)
#define TIMER_RELOAD  NN_REG(NN_CORES_TIMER + 0x08u)
#define SCB_SCR       NN_REG(0xe000ed10u)
#define SCB_SEVONPEND (1u << 4)

#define MHU_IRQ     6u
#define FRAME       "288" /* below the handlers' part, the frame with which the core restarts */
#define MILLISECOND (NN_CPU_HERTZ / 1000u)

static uint8_t released;

void nn_core_called(void);

#define VECTORS (16u + MHU_IRQ + 1u)

static const core_vector core_vectors[VECTORS] __attribute__((aligned(512))) = {
    CORE_VECTORS,
    [16u + MHU_IRQ] = {.handler = nn_core_called},
};

__attribute__((naked, noreturn, used)) void nn_core_reset(void)
{
    __asm__ volatile(
        "cpsid i\n"
        "ldr r0, =0xe000ed88\n" /* CPACR: full access to the FPU */
        "ldr r1, [r0]\n"
        "orr r1, r1, #0x00f00000\n"
        "str r1, [r0]\n"
        "dsb\n"
        "isb\n"
        "ldr r0, =nn_core_stacks_high\n"
        "sub r0, r0, #" HANDLER_BYTES "\n"
        "msr psp, r0\n"
        "ldr r0, =nn_core_stacks_low\n"
        "msr psplim, r0\n"
        "movs r0, #2\n" /* CONTROL.SPSEL: the process stack */
        "msr control, r0\n"
        "isb\n"
        "bl nn_core_main\n"
        "b .\n"
        ".ltorg\n");
}

/* Where it continues after nn_core_called. */
__attribute__((naked, noreturn, used)) static void begin_anew(void)
{
    __asm__ volatile(
        "cpsid i\n"
        "bl nn_core_main\n"
        "b .\n");
}

__attribute__((used)) void nn_core_main(void)
{
    NVIC_ISER(0) = 1u << MHU_IRQ;
    __asm__ volatile("cpsie i" ::: "memory");
    core_lives();
}

/* Aborts the core's work by returning to a synthetic frame: with an empty stack and no floats to restore. */
__attribute__((naked, used)) void nn_core_called(void)
{
    __asm__ volatile(
        "ldr r0, =0x50003018\n" /* MHU_CLEAR */
        "movs r1, #1\n"
        "str r1, [r0]\n"
        "ldr r0, =0xe000ef34\n" /* FPCCR: no lazy state preservation pending */
        "ldr r1, [r0]\n"
        "bic r1, r1, #1\n"
        "str r1, [r0]\n"
        "dsb\n"
        "ldr r0, =nn_core_stacks_high\n"
        "mov sp, r0\n"
        "sub r0, r0, #" FRAME "\n"
        "ldr r1, =%c0\n"
        "str r1, [r0, #24]\n"
        "mov r1, #0x01000000\n"
        "str r1, [r0, #28]\n"
        "msr psp, r0\n"
        "ldr lr, =0xfffffffd\n" /* a thread, on the process stack, secure, without floats in the frame */
        "bx lr\n"
        ".ltorg\n" ::"i"(begin_anew));
}

__attribute__((naked, used)) void nn_core_fault(void)
{
    __asm__ volatile(
        "cpsid i\n"
        "mrs r0, psp\n"
        "ldr r1, =nn_core_stacks_high\n"
        "mov sp, r1\n"
        "bl nn_core_report\n"
        "b nn_core_called\n"
        ".ltorg\n");
}

/* Returns when the core must restart. */
__attribute__((used)) void nn_core_report(const uint32_t *frame)
{
    const uint32_t life = __atomic_load_n(&wanted, __ATOMIC_ACQUIRE);

    core_faulted(frame);
    while (__atomic_load_n(&wanted, __ATOMIC_ACQUIRE) == life) {
        __asm__ volatile("wfe" ::: "memory");
    }
}

void nn_cores_port_start(int32_t core, uint32_t life)
{
    __atomic_store_n(&wanted, life, __ATOMIC_RELEASE);
    if (!released) {
        released = 1;
        TIMER_RELOAD = 0xffffffffu;
        TIMER_VALUE = 0xffffffffu;
        TIMER_CTRL = 1;
        INITSVTOR1 = (uint32_t)(uintptr_t)core_vectors;
        nn_barrier();
        CPUWAIT = 0;
    } else {
        MHU_SET = 1;
        nn_cores_port_wake(core);
    }
}

/* SysTick becoming pending is an event as well. No interrupt is taken. */
NN_CORES_WAITING void nn_cores_port_nap(const uint32_t *word, uint32_t value)
{
    uint32_t masked;

    (void)word;
    (void)value;
    __asm__ volatile("mrs %0, primask\n\tcpsid i" : "=r"(masked)::"memory");
    SCB_SCR |= SCB_SEVONPEND;
    SYST_RVR = 4u * MILLISECOND;
    SYST_CVR = 0;
    SYST_CSR = SYST_CSR_ENABLE | SYST_CSR_TICKINT | SYST_CSR_CLKSOURCE;
    __asm__ volatile("wfe" ::: "memory");
    SYST_CSR = 0;
    SCB_ICSR = SCB_ICSR_PENDSTCLR;
    __asm__ volatile("msr primask, %0" ::"r"(masked) : "memory");
}

NN_CORES_WAITING uint32_t nn_cores_port_clock(void)
{
    return 0xffffffffu - TIMER_VALUE;
}

NN_CORES_WAITING uint32_t nn_cores_port_millisecond(void)
{
    return MILLISECOND;
}
