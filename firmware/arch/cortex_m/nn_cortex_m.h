/* Registers of every Cortex-M, named as in the architecture reference manuals, and those that this core has. */
#ifndef NN_CORTEX_M_H
#define NN_CORTEX_M_H

#include <stdint.h>

#include "nn_bare.h"

#define SYST_CSR   NN_REG(0xe000e010u)
#define SYST_RVR   NN_REG(0xe000e014u)
#define SYST_CVR   NN_REG(0xe000e018u)
#define NVIC_ISER(n) NN_REG(0xe000e100u + 4u * (n))
#define SCB_ICSR   NN_REG(0xe000ed04u)
#define SCB_VTOR   NN_REG(0xe000ed08u)
#define SCB_AIRCR  NN_REG(0xe000ed0cu)
#define SCB_CCR    NN_REG(0xe000ed14u)
#define SCB_CFSR   NN_REG(0xe000ed28u)
#define SCB_HFSR   NN_REG(0xe000ed2cu)
#define SCB_MMFAR  NN_REG(0xe000ed34u)
#define SCB_BFAR   NN_REG(0xe000ed38u)
#define SCB_CCSIDR NN_REG(0xe000ed80u)
#define SCB_CSSELR NN_REG(0xe000ed84u)
#define SCB_ICIALLU NN_REG(0xe000ef50u)
#define SCB_DCISW  NN_REG(0xe000ef60u)
#define DEMCR      NN_REG(0xe000edfcu)
#define DWT_CTRL   NN_REG(0xe0001000u)
#define DWT_CYCCNT NN_REG(0xe0001004u)
#define DWT_LAR    NN_REG(0xe0001fb0u)

#define SYST_CSR_ENABLE    (1u << 0)
#define SYST_CSR_TICKINT   (1u << 1)
#define SYST_CSR_CLKSOURCE (1u << 2)
#define SCB_ICSR_PENDSTCLR (1u << 25)
#define SCB_ICSR_PENDSTSET (1u << 26)
#define SCB_AIRCR_RESET    0x05fa0004u /* the key, and SYSRESETREQ */
#define SCB_CCR_IC         (1u << 17)
#define SCB_CCR_DC         (1u << 16)
#define SCB_CCR_LOB        (1u << 19)
#define DEMCR_TRCENA       (1u << 24)
#define DWT_CTRL_CYCCNTENA (1u << 0)
#define DWT_LAR_KEY        0xc5acce55u

#if defined(__ARM_ARCH_6M__)
#define NN_IS_ARMV6M 1
#else
#define NN_IS_ARMV6M 0
#endif

#if defined(__ARM_FP) && !defined(__SOFTFP__)
#define NN_HAS_FPU 1
#else
#define NN_HAS_FPU 0
#endif

#if defined(__ARM_ARCH_8M_MAIN__) || defined(__ARM_ARCH_8_1M_MAIN__)
#define NN_HAS_STACK_LIMITS 1
#else
#define NN_HAS_STACK_LIMITS 0
#endif

#if defined(__ARM_ARCH_8_1M_MAIN__)
#define NN_HAS_LOW_OVERHEAD_LOOPS 1
#else
#define NN_HAS_LOW_OVERHEAD_LOOPS 0
#endif

#define NN_HAS_VTOR         (!NN_IS_ARMV6M) /* optional on Armv6-M, and absent on nRF51 */
#define NN_HAS_FAULT_STATUS (!NN_IS_ARMV6M)
#define NN_HAS_DWT          (!NN_IS_ARMV6M)

#ifndef NN_HAS_CACHES
#define NN_HAS_CACHES 0 /* Cortex-M7; no compiler macro distinguishes it from a Cortex-M4, so its boards define it */
#endif

void nn_prepare(void);
void nn_fault(void);
void nn_systick_handler(void);

static inline void nn_barrier(void)
{
    __asm__ volatile("dsb\n\tisb" ::: "memory");
}

#endif
