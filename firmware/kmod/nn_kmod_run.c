/* Runs a model in pieces.
 *
 * While the FPU is in use nothing else may run on this CPU, so a run that needs it is split into sections: after
 * NN_SECTION_NS the FPU is released, and waiting tasks get the CPU. A section ends between two steps or inside a long
 * step; and before a part that would make it much longer, or whose duration is still unknown. The number of work items
 * taken together is learned from their duration. */
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/sched.h>
#include <linux/timekeeping.h>

#include "nn_kmod.h"

#define NN_SECTION_NS 40000u /* a section is ended at the first boundary after this time */
#define NN_LONGER_NS  70000u /* no part starts that would end after this time */
#define NN_PART_NS    20000u /* a part that took longer is halved the next time */
#define NN_LEARN_NS   2500u  /* one that took less is doubled */

#ifdef NN_FPU
#ifdef CONFIG_X86
#include <asm/cpufeature.h>
#include <asm/fpu/api.h>
#include <asm/fpu/xcr.h>
#else
#include <asm/cpufeature.h>
#include <asm/neon.h>
#include <asm/simd.h>
#endif
#endif

struct nn_counters nn_counters;

/* -ENODEV where the CPU, or the kernel on it, lacks what the model was compiled for. */
int nn_processor_serves(void)
{
#if defined(NN_FPU) && defined(CONFIG_X86)
    if (!boot_cpu_has(X86_FEATURE_XMM2)) {
        return -ENODEV;
    }
#ifdef NN_ISA_AVX2_FMA
    if (!boot_cpu_has(X86_FEATURE_AVX2) || !boot_cpu_has(X86_FEATURE_FMA) || !boot_cpu_has(X86_FEATURE_BMI2) ||
        !boot_cpu_has(X86_FEATURE_OSXSAVE) || !cpu_has_xfeatures(XFEATURE_MASK_SSE | XFEATURE_MASK_YMM, NULL)) {
        return -ENODEV;
    }
#endif
#elif defined(NN_FPU)
    if (!cpu_have_named_feature(ASIMD)) {
        return -ENODEV;
    }
#if defined(NN_ISA_NEON_DOTPROD) || defined(NN_ISA_NEON_I8MM)
    if (!cpu_have_named_feature(ASIMDDP)) {
        return -ENODEV;
    }
#endif
#ifdef NN_ISA_NEON_I8MM
    if (!cpu_have_named_feature(I8MM)) {
        return -ENODEV;
    }
#endif
#endif
    return 0;
}

#ifndef NN_FPU

/* An integer model does not use the FPU and may run anywhere. */
bool nn_fpu_begin(void)
{
    return true;
}

void nn_fpu_end(void)
{
}

#elif defined(NN_WITHOUT_FPU_SECTIONS)

/* Only for tests that show the effect of sections. */
bool nn_fpu_begin(void)
{
    return true;
}

void nn_fpu_end(void)
{
}

#elif defined(CONFIG_X86)

bool nn_fpu_begin(void)
{
    if (!irq_fpu_usable()) {
        return false;
    }
    kernel_fpu_begin();
    return true;
}

void nn_fpu_end(void)
{
    kernel_fpu_end();
}

#else

bool nn_fpu_begin(void)
{
    if (!may_use_simd()) {
        return false;
    }
    kernel_neon_begin();
    return true;
}

void nn_fpu_end(void)
{
    kernel_neon_end();
}

#endif

static s32 widths[NN_STEPS]; /* work items taken together; 0 before the first run */
static u32 times[NN_STEPS];  /* nanoseconds of the last part; 0 before the first run */

static s32 width_of(u32 step)
{
    s32 width = READ_ONCE(widths[step]);

    return width > 0 ? width : nn_model_step_table[step].width;
}

/* Two CPUs may learn at the same time; either is right. */
static void learn(u32 step, s32 width, u64 took)
{
    WRITE_ONCE(times[step], clamp_t(u64, took, 1, U32_MAX));
    if (took > NN_PART_NS && width > 1) {
        WRITE_ONCE(widths[step], width / 2);
    } else if (took < NN_LEARN_NS && width < nn_model_step_table[step].extent) {
        WRITE_ONCE(widths[step], width * 2);
    }
}

static void note_section(u64 took)
{
    atomic64_inc(&nn_counters.sections);
    if (took > (u64)atomic64_read(&nn_counters.longest_section)) {
        atomic64_set(&nn_counters.longest_section, (s64)took);
    }
}

/* Whether a section of this age ends before the next part. */
static bool is_over(u64 since, u32 step)
{
#ifdef NN_WITHOUT_CHUNKS
    return false;
#else
    u32 took = READ_ONCE(times[step]);

    return since >= NN_SECTION_NS || took == 0 || since + took > NN_LONGER_NS;
#endif
}

/* Ends a section and lets others run where that is allowed. */
static void rest(u64 took, gfp_t gfp)
{
    nn_fpu_end();
    note_section(took);
    if (gfpflags_allow_blocking(gfp)) {
        cond_resched();
    }
}

/* Runs the parts of the steps [begin, end). -EBUSY, without any change, when the FPU may not be used here. */
static int run_parts(struct nn_instance *instance, const u8 *weights, u32 begin, u32 end, gfp_t gfp)
{
    u64 began = 0;
    u64 now = 0;
    bool inside = false;

    for (u32 step = begin; step < end; step++) {
        s32 extent = nn_model_step_table[step].extent;

        for (s32 from = 0; from < extent;) {
            s32 width = width_of(step);
            s32 to = extent - from > width ? from + width : extent;
            u64 before;

            if (inside && is_over(now - began, step)) {
                rest(now - began, gfp);
                inside = false;
            }
            if (!inside) {
                if (!nn_fpu_begin()) {
                    WARN_ON_ONCE(step != begin || from != 0);
                    return -EBUSY;
                }
                inside = true;
                began = now = ktime_get_mono_fast_ns();
            }
            before = now;
            nn_model_part(instance->context, weights, step, from, to);
            now = ktime_get_mono_fast_ns();
            learn(step, width, now - before);
            from = to;
        }
    }
    if (inside) {
        rest(now - began, gfp);
    }
    return 0;
}

static void drop_weights(struct nn_instance *instance)
{
    if (instance->weights != NULL) {
        nn_weights_put(instance->weights);
        instance->weights = NULL;
    }
}

/* Some steps of a run, in order. A run keeps the weights it started with. */
int nn_run_steps(struct nn_instance *instance, u32 begin, u32 end, gfp_t gfp)
{
    int error;

    if (begin > end || end > nn_model_steps) {
        return -EINVAL;
    }
    if (test_and_set_bit(0, &instance->running)) {
        atomic64_inc(&nn_counters.refused_busy);
        return -EBUSY;
    }
    if (begin == 0) {
        drop_weights(instance);
        instance->weights = nn_weights_get();
    }
    error = run_parts(instance, instance->weights != NULL ? instance->weights->data : NULL, begin, end, gfp);
    if (error != 0) {
        atomic64_inc(&nn_counters.refused_fpu);
    }
    if (error != 0 || end == nn_model_steps) {
        drop_weights(instance);
    }
    clear_bit_unlock(0, &instance->running);
    return error;
}

/* One whole run. -EBUSY where the FPU may not be used, or when this instance is already running. */
int nn_run(struct nn_instance *instance, gfp_t gfp)
{
    u64 before = ktime_get_mono_fast_ns();
    int error = nn_run_steps(instance, 0, nn_model_steps, gfp);
    u64 took = ktime_get_mono_fast_ns() - before;

    if (error == 0) {
        atomic64_inc(&nn_counters.runs);
        atomic64_inc(&nn_counters.latency[min_t(u32, took != 0 ? ilog2(took) : 0, NN_BUCKETS - 1)]);
    }
    return error;
}
