/* Declarations shared by the module's parts. */
#ifndef NN_KMOD_H
#define NN_KMOD_H

#include <linux/atomic.h>
#include <linux/kref.h>
#include <linux/module.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "nn_bridge.h"

#define NN_ALIGNMENT 64u
#define NN_BUCKETS   40u

/* One set of weights; every run holds a reference to the set it started with. */
struct nn_weights {
    refcount_t         users;
    struct work_struct release;
    struct rcu_head    rcu;
    const u8          *data;
    char               hash[17];
    bool               built_in;
};

struct nn_instance {
    void              *context;
    struct nn_weights *weights; /* of the started run, otherwise null */
    unsigned long      running;
    u32                next_step;
    s32                slot; /* in its CPU's pool; -1 outside any pool */
    int                cpu;
};

/* Counters since the module was loaded. */
struct nn_counters {
    atomic64_t runs;
    atomic64_t refused_fpu;  /* where the FPU may not be used */
    atomic64_t refused_busy; /* the instance was already running */
    atomic64_t sections;
    atomic64_t longest_section;
    atomic64_t swaps;
    atomic64_t swaps_refused;
    atomic64_t latency[NN_BUCKETS]; /* runs that took 2^i to 2^(i+1)-1 ns */
};

extern struct nn_counters nn_counters;

/* nn_kmod_memory.c */
void *nn_take(size_t size, gfp_t gfp);
void  nn_give(const void *memory);
int   nn_may_fail(void);
void  nn_put_back(void);
long  nn_held(void);

/* nn_kmod_run.c */
int  nn_processor_serves(void);
int  nn_run_steps(struct nn_instance *instance, u32 begin, u32 end, gfp_t gfp);
int  nn_run(struct nn_instance *instance, gfp_t gfp);
bool nn_fpu_begin(void);
void nn_fpu_end(void);

/* nn_kmod_instance.c */
struct nn_instance *nn_create(gfp_t gfp);
void                nn_destroy(struct nn_instance *instance);
void                nn_reset(struct nn_instance *instance);
void               *nn_region(struct nn_instance *instance, u32 kind, u32 index, u32 *size);
int                 nn_pool_start(void);
void                nn_pool_stop(void);
struct nn_instance *nn_pool_get(void);
void                nn_pool_put(struct nn_instance *instance);

/* nn_kmod_fixed.c */
int nn_write_q16(struct nn_instance *instance, u32 input, const s32 *values, u32 count);
int nn_read_q16(struct nn_instance *instance, u32 output, s32 *values, u32 count);

/* nn_kmod_weights.c */
struct nn_weights *nn_weights_get(void);
void               nn_weights_put(struct nn_weights *weights);
void               nn_weights_hash(char hash[17]);
int                nn_weights_load(const char *name);
int                nn_weights_start(void);
void               nn_weights_stop(void);

/* nn_kmod_selftest.c */
int nn_selftest(void);

/* nn_kmod_device.c */
int  nn_device_start(void);
void nn_device_stop(void);
struct device *nn_device(void);

/* nn_kmod_report.c */
extern const struct attribute_group *nn_groups[];
void nn_report_start(void);
void nn_report_stop(void);

#endif
