/* The second core of an RP2040 (Cortex-M0+) or of an RP2350 (Cortex-M33). After a reset it waits in the ROM for six words
 * from the first core, which it echoes one by one: RP2040 data sheet, 2.8.2, RP2350 data sheet, 5.3. A lost
 * core is reset by the power-on state machine. */
#include "nn_cores_arm.h"
#include "nn_platform.h"

#define SIO_BASE       0xd0000000u
#define FIFO_ST        NN_REG(SIO_BASE + 0x50u)
#define FIFO_WR        NN_REG(SIO_BASE + 0x54u)
#define FIFO_RD        NN_REG(SIO_BASE + 0x58u)
#define FIFO_ST_VALID  (1u << 0)
#define FIFO_ST_READY  (1u << 1)
#define FRCE_OFF       NN_REG(NN_PSM_BASE + 0x4u)
#define FRCE_OFF_SET   NN_REG(NN_PSM_BASE + 0x2004u) /* registers have aliases that set and clear single bits */
#define FRCE_OFF_CLEAR NN_REG(NN_PSM_BASE + 0x3004u)

#define LOOKS 1000000u
#define TRIES 8u

static const core_vector core_vectors[16] __attribute__((aligned(256))) = {CORE_VECTORS};

__attribute__((naked, noreturn, used)) void nn_core_reset(void)
{
    __asm__ volatile(
        "cpsid i\n"
#if NN_HAS_FPU
        "ldr r0, =0xe000ed88\n" /* CPACR: full access to the FPU */
        "ldr r1, [r0]\n"
        "ldr r2, =0x00f00000\n"
        "orrs r1, r1, r2\n"
        "str r1, [r0]\n"
        "dsb\n"
        "isb\n"
#endif
        "ldr r0, =nn_core_stacks_high - " HANDLER_BYTES "\n"
        "msr psp, r0\n"
#if NN_HAS_STACK_LIMITS
        "ldr r0, =nn_core_stacks_low\n"
        "msr psplim, r0\n"
#endif
        "movs r0, #2\n" /* CONTROL.SPSEL: the process stack */
        "msr control, r0\n"
        "isb\n"
        "bl nn_core_main\n"
        "b .\n"
        ".ltorg\n");
}

/* It never receives interrupts. */
__attribute__((used)) void nn_core_main(void)
{
    core_lives();
}

__attribute__((naked, used)) void nn_core_fault(void)
{
    __asm__ volatile(
        "cpsid i\n"
        "mrs r0, psp\n"
        "ldr r1, =nn_core_stacks_high\n"
        "mov sp, r1\n"
        "bl nn_core_report\n"
        "b .\n"
        ".ltorg\n");
}

/* It is reset before it is started again. */
__attribute__((used)) void nn_core_report(const uint32_t *frame)
{
    core_faulted(frame);
    for (;;) {
        __asm__ volatile("wfe" ::: "memory");
    }
}

static int soon(volatile uint32_t *place, uint32_t mask, uint32_t value)
{
    for (uint32_t look = 0; look < LOOKS; look++) {
        if ((*place & mask) == value) {
            return 1;
        }
    }
    return 0;
}

static void drain(void)
{
    while (FIFO_ST & FIFO_ST_VALID) {
        (void)FIFO_RD;
    }
}

/* 1 when the core echoes the word. Before a word of zero, earlier answers are discarded. */
static int send(uint32_t word)
{
    if (word == 0) {
        drain();
        __asm__ volatile("sev" ::: "memory");
    }
    if (!soon(&FIFO_ST, FIFO_ST_READY, FIFO_ST_READY)) {
        return 0;
    }
    FIFO_WR = word;
    __asm__ volatile("dsb\n\tsev" ::: "memory");
    return soon(&FIFO_ST, FIFO_ST_VALID, FIFO_ST_VALID) && FIFO_RD == word;
}

/* A core that does not start is detected by its `ready` word, like any lost core. */
void nn_cores_port_start(int32_t core, uint32_t life)
{
    const uint32_t words[6] = {0,
                               0,
                               1,
                               (uint32_t)(uintptr_t)core_vectors,
                               (uint32_t)(uintptr_t)nn_core_stacks_high,
                               (uint32_t)(uintptr_t)nn_core_reset};
    uint32_t       sent = 0;

    (void)core;
    __atomic_store_n(&wanted, life, __ATOMIC_RELEASE);
    FRCE_OFF_SET = NN_PSM_CORE;
    (void)soon(&FRCE_OFF, NN_PSM_CORE, NN_PSM_CORE);
    FRCE_OFF_CLEAR = NN_PSM_CORE;
    (void)soon(&FRCE_OFF, NN_PSM_CORE, 0);
    for (uint32_t tries = 0; tries < TRIES && sent < 6u; tries++) {
        for (sent = 0; sent < 6u && send(words[sent]); sent++) {
        }
    }
    drain();
}

/* It polls again at once: its timer counts cycles, so nothing would end its sleep if the other core were lost. */
NN_CORES_WAITING void nn_cores_port_nap(const uint32_t *word, uint32_t value)
{
    (void)word;
    (void)value;
    __asm__ volatile("nop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop\n\tnop" ::: "memory");
}

NN_CORES_WAITING uint32_t nn_cores_port_clock(void)
{
    return (uint32_t)nn_platform_ticks();
}

NN_CORES_WAITING uint32_t nn_cores_port_millisecond(void)
{
    return nn_platform_hertz() / 1000u;
}
