/* Calls two models, f in floats and i in integers, from every context there is, and says what came of it. What to do is
 * a parameter, and the loading of this module does it. */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/timer.h>
#include <linux/version.h>

#include "f_kmod.h"
#include "i_kmod.h"

#define PATTERNS 8u
#define LARGEST  64u /* bytes of output */

static char *what = "shift";
module_param(what, charp, 0444);
static int seconds = 1;
module_param(seconds, int, 0444);

struct model {
    const char *name;
    void *(*create)(gfp_t gfp);
    void (*destroy)(void *instance);
    void (*reset)(void *instance);
    int (*write)(void *instance, const s32 *values, u32 count);
    const void *(*output)(void *instance, size_t *size);
    int (*run)(void *instance, gfp_t gfp);
    void *(*get)(void);
    void (*put)(void *instance);
    u32 count;
    s32 *inputs;
    size_t size;
    u8 wanted[PATTERNS][LARGEST];
};

#define MODEL(p, inputs_count)                                                                                         \
    static void *p##_make(gfp_t gfp) { return p##_create(gfp); }                                                       \
    static void p##_end(void *instance) { p##_destroy(instance); }                                                     \
    static void p##_again(void *instance) { p##_reset(instance); }                                                     \
    static int p##_put_in(void *instance, const s32 *v, u32 n) { return p##_write_q16(instance, 0, v, n); }            \
    static const void *p##_out(void *instance, size_t *size) { return p##_output(instance, 0, size); }                 \
    static int p##_go(void *instance, gfp_t gfp) { return p##_run(instance, gfp); }                                    \
    static void *p##_take(void) { return p##_pool_get(); }                                                             \
    static void p##_return(void *instance) { p##_pool_put(instance); }                                                 \
    static struct model p##_model = {#p, p##_make, p##_end, p##_again, p##_put_in, p##_out, p##_go, p##_take,          \
                                     p##_return, inputs_count}

MODEL(f, F_KMOD_INPUT0_COUNT);
MODEL(i, I_KMOD_INPUT0_COUNT);

static atomic64_t runs, wrong, refused, soft_runs, soft_refused, hard_runs, hard_refused;
static bool stopping;

/* One run from the start of a sequence; whether it was refused. */
static int one(struct model *model, void *instance, u32 pattern, gfp_t gfp)
{
    size_t size = 0;
    const void *found;
    int error;

    model->reset(instance);
    model->write(instance, model->inputs + pattern * model->count, model->count);
    error = model->run(instance, gfp);
    if (error != 0) {
        return error;
    }
    found = model->output(instance, &size);
    if (memcmp(found, model->wanted[pattern], model->size) != 0) {
        atomic64_inc(&wrong);
    }
    return 0;
}

static int learn(struct model *model)
{
    void *instance = model->create(GFP_KERNEL);

    if (IS_ERR(instance)) {
        return PTR_ERR(instance);
    }
    model->output(instance, &model->size);
    model->size = min_t(size_t, model->size, LARGEST);
    model->inputs = kmalloc_array(PATTERNS * model->count, sizeof(s32), GFP_KERNEL);
    for (u32 j = 0; j < PATTERNS * model->count; j++) {
        model->inputs[j] = (s32)(((j * 2654435761u) >> 15) & 0x1ffff) - 0x10000;
    }
    for (u32 j = 0; j < PATTERNS; j++) {
        model->reset(instance);
        model->write(instance, model->inputs + j * model->count, model->count);
        model->run(instance, GFP_KERNEL);
        memcpy(model->wanted[j], model->output(instance, NULL), model->size);
    }
    model->destroy(instance);
    return 0;
}

/* The stack at every offset a call can find it at. */
#ifdef CONFIG_X86
asmlinkage long nn_call_shifted(int (*function)(void *, gfp_t), void *first, unsigned int second, unsigned long shift);

static void try_shift(void)
{
    static const unsigned long shifts[] = {0, 8, 16, 24, 40, 56};
    void *instance = f_model.create(GFP_KERNEL);

    for (u32 j = 0; j < ARRAY_SIZE(shifts); j++) {
        f_model.reset(instance);
        f_model.write(instance, f_model.inputs, f_model.count);
        nn_call_shifted(f_model.run, instance, GFP_KERNEL, shifts[j]);
        if (memcmp(f_model.output(instance, NULL), f_model.wanted[0], f_model.size) != 0) {
            atomic64_inc(&wrong);
        }
        pr_info("nn_try: shift %lu done\n", shifts[j]);
    }
    f_model.destroy(instance);
}
#else
static void try_shift(void)
{
}
#endif

/* Threads, timers in softirq and timers in hardirq, all at once. */
struct lane {
    struct timer_list soft;
    struct hrtimer hard;
    u32 turn;
    u32 hard_turn;
};
static DEFINE_PER_CPU(struct lane, lanes);

static int thread(void *data)
{
    struct model *model = data;
    void *instance = model->create(GFP_KERNEL);
    u32 turn = 0;

    while (!READ_ONCE(stopping)) {
        if (one(model, instance, turn++ % PATTERNS, GFP_KERNEL) == 0) {
            atomic64_inc(&runs);
        } else {
            atomic64_inc(&refused);
        }
        cond_resched();
    }
    model->destroy(instance);
    while (!kthread_should_stop()) {
        msleep(1);
    }
    return 0;
}

static void from_pool(struct model *model, u32 turn, atomic64_t *good, atomic64_t *bad)
{
    void *instance = model->get();

    if (instance == NULL || one(model, instance, turn % PATTERNS, GFP_ATOMIC) != 0) {
        atomic64_inc(bad);
    } else {
        atomic64_inc(good);
    }
    if (instance != NULL) {
        model->put(instance);
    }
}

static void soft_fires(struct timer_list *timer)
{
    struct lane *lane = container_of(timer, struct lane, soft);

    from_pool(&f_model, lane->turn, &soft_runs, &soft_refused);
    from_pool(&i_model, lane->turn++, &soft_runs, &soft_refused);
    if (!READ_ONCE(stopping)) {
        mod_timer(timer, jiffies + 1);
    }
}

static enum hrtimer_restart hard_fires(struct hrtimer *timer)
{
    struct lane *lane = container_of(timer, struct lane, hard);

    from_pool(&f_model, lane->hard_turn, &hard_runs, &hard_refused);
    from_pool(&i_model, lane->hard_turn++, &hard_runs, &hard_refused);
    hrtimer_forward_now(timer, ns_to_ktime(1000ull * (3100 + 70 * (lane->hard_turn % 13))));
    return READ_ONCE(stopping) ? HRTIMER_NORESTART : HRTIMER_RESTART;
}

static void start_lane(void *unused)
{
    struct lane *lane = this_cpu_ptr(&lanes);

    timer_setup(&lane->soft, soft_fires, TIMER_PINNED);
    mod_timer(&lane->soft, jiffies + 1);
    hrtimer_init(&lane->hard, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
    lane->hard.function = hard_fires;
    hrtimer_start(&lane->hard, ns_to_ktime(2000000), HRTIMER_MODE_REL_PINNED_HARD);
}

static void try_stress(void)
{
    struct task_struct *threads[16];
    u32 started = 0;
    int cpu;

    for_each_online_cpu(cpu) {
        if (started + 2 > ARRAY_SIZE(threads)) {
            break;
        }
        threads[started++] = kthread_run(thread, &f_model, "nn_try_f%d", cpu);
        threads[started++] = kthread_run(thread, &i_model, "nn_try_i%d", cpu);
    }
    on_each_cpu(start_lane, NULL, 1);
    ssleep((unsigned int)seconds);
    WRITE_ONCE(stopping, true);
    for_each_online_cpu(cpu) {
        hrtimer_cancel(&per_cpu(lanes, cpu).hard);
        del_timer_sync(&per_cpu(lanes, cpu).soft);
    }
    for (u32 j = 0; j < started; j++) {
        kthread_stop(threads[j]);
    }
    pr_info("nn_try: threads %lld refused %lld, softirq %lld refused %lld, hardirq %lld refused %lld\n",
            atomic64_read(&runs), atomic64_read(&refused), atomic64_read(&soft_runs), atomic64_read(&soft_refused),
            atomic64_read(&hard_runs), atomic64_read(&hard_refused));
}

/* How late a thread of the highest class wakes while a long model runs on its CPU. */
static s64 worst;
static DECLARE_COMPLETION(measured);

static int sleeper(void *unused)
{
    ktime_t due = ktime_get();

    sched_set_fifo(current);
    for (int j = 0; j < 300; j++) {
        due = ktime_add_us(due, 1000 + 37 * (j % 11));
        set_current_state(TASK_UNINTERRUPTIBLE);
        schedule_hrtimeout_range(&due, 0, HRTIMER_MODE_ABS);
        worst = max_t(s64, worst, ktime_to_ns(ktime_sub(ktime_get(), due)));
        if (ktime_after(ktime_get(), due)) {
            due = ktime_get();
        }
    }
    complete(&measured);
    return 0;
}

static void try_latency(void)
{
    void *instance = f_model.create(GFP_KERNEL);
    u64 longest = 0;

    kthread_run(sleeper, NULL, "nn_sleeper");
    while (!try_wait_for_completion(&measured)) {
        u64 before = ktime_get_ns();

        f_model.run(instance, GFP_KERNEL);
        longest = max(longest, ktime_get_ns() - before);
    }
    f_model.destroy(instance);
    pr_info("nn_try: a run took up to %llu ns, the worst wake-up %lld ns\n", longest, worst);
}

/* Callers that may not wait, and an instance that is in use already. */
static void try_atomic(void)
{
    struct model *models[] = {&f_model, &i_model};

    for (u32 j = 0; j < 2; j++) {
        void *instance;
        int   error;

        preempt_disable();
        instance = models[j]->create(GFP_ATOMIC);
        error = IS_ERR(instance) ? -ENOMEM : one(models[j], instance, 1, GFP_ATOMIC);
        preempt_enable();
        models[j]->destroy(instance);
        pr_info("nn_try: atomic %s %d\n", models[j]->name, error);
    }
}

static int __init nn_try_init(void)
{
    int error = learn(&f_model);

    error = error != 0 ? error : learn(&i_model);
    if (error != 0) {
        return error;
    }
    if (strcmp(what, "shift") == 0) {
        try_shift();
    } else if (strcmp(what, "stress") == 0) {
        try_stress();
    } else if (strcmp(what, "latency") == 0) {
        try_latency();
    } else if (strcmp(what, "atomic") == 0) {
        try_atomic();
    }
    pr_info("nn_try: %s done, wrong %lld\n", what, atomic64_read(&wrong));
    return 0;
}

static void __exit nn_try_exit(void)
{
    kfree(f_model.inputs);
    kfree(i_model.inputs);
}

module_init(nn_try_init);
module_exit(nn_try_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Tests of generated models");
