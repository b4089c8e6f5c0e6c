/* Instances: a model's working memory, one per user; and a few per CPU for callers that cannot allocate. */
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/moduleparam.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "nn_kmod.h"

#define NN_MOST_SLOTS 16u

static unsigned int pool = 1;
module_param(pool, uint, 0444);
MODULE_PARM_DESC(pool, "instances kept ready for each CPU, 0 to 16 (1)");

static struct nn_instance **pool_slots; /* [CPU][pool] */
static unsigned long       *pool_taken; /* a bit per slot, a word per CPU */

/* Values of any width; a float32 zero has the same bytes as an integer zero. */
static void fill(void *memory, const nn_filling *filling)
{
    u32 count = filling->size / filling->width;

    switch (filling->width) {
    case 1:
        memset(memory, filling->value, count);
        break;
    case 2:
        memset16(memory, (u16)filling->value, count);
        break;
    default:
        memset32(memory, (u32)filling->value, count);
        break;
    }
}

/* Starts a new sequence: clears recurrent state and abandons a stepwise run. */
void nn_reset(struct nn_instance *instance)
{
    for (u32 i = 0; i < nn_model_filling_count; i++) {
        fill((u8 *)instance->context + nn_model_fillings[i].offset, &nn_model_fillings[i]);
    }
    if (instance->weights != NULL) {
        nn_weights_put(instance->weights);
        instance->weights = NULL;
    }
}

struct nn_instance *nn_create(gfp_t gfp)
{
    struct nn_instance *instance = nn_take(sizeof *instance, gfp);

    if (instance == NULL) {
        return ERR_PTR(-ENOMEM);
    }
    instance->context = nn_take(nn_model_context_bytes, gfp);
    if (instance->context == NULL) {
        nn_give(instance);
        return ERR_PTR(-ENOMEM);
    }
    instance->slot = -1;
    nn_reset(instance);
    return instance;
}

void nn_destroy(struct nn_instance *instance)
{
    if (IS_ERR_OR_NULL(instance)) {
        return;
    }
    nn_reset(instance);
    nn_give(instance->context);
    nn_give(instance);
}

/* The address and size of a region; null if there is none. */
void *nn_region(struct nn_instance *instance, u32 kind, u32 index, u32 *size)
{
    for (u32 i = 0; i < nn_model_place_count; i++) {
        const nn_place *place = &nn_model_places[i];

        if (place->kind == kind && place->index == index) {
            *size = place->size;
            return (u8 *)instance->context + place->offset;
        }
    }
    return NULL;
}

int nn_pool_start(void)
{
    u32 count;

    if (pool > NN_MOST_SLOTS) {
        pr_err("%s: pool=%u is more than %u\n", nn_model_name, pool, NN_MOST_SLOTS);
        return -EINVAL;
    }
    count = pool * nr_cpu_ids;
    if (count == 0) {
        return 0;
    }
    pool_slots = nn_take(count * sizeof *pool_slots, GFP_KERNEL);
    pool_taken = nn_take(nr_cpu_ids * sizeof *pool_taken, GFP_KERNEL);
    if (pool_slots == NULL || pool_taken == NULL) {
        return -ENOMEM;
    }
    for (u32 i = 0; i < count; i++) {
        struct nn_instance *instance;

        if (!cpu_possible(i / pool)) {
            continue;
        }
        instance = nn_create(GFP_KERNEL);
        if (IS_ERR(instance)) {
            return PTR_ERR(instance);
        }
        instance->cpu = (int)(i / pool);
        instance->slot = (s32)(i % pool);
        pool_slots[i] = instance;
    }
    return 0;
}

/* Also after a partly failed start. */
void nn_pool_stop(void)
{
    for (u32 i = 0; pool_slots != NULL && i < pool * nr_cpu_ids; i++) {
        nn_destroy(pool_slots[i]);
    }
    nn_give(pool_slots);
    nn_give(pool_taken);
    pool_slots = NULL;
    pool_taken = NULL;
}

/* A free instance of this CPU, at the start of a sequence, or null. For any context; never waits. */
struct nn_instance *nn_pool_get(void)
{
    int cpu = raw_smp_processor_id();

    for (u32 slot = 0; slot < pool; slot++) {
        if (!test_and_set_bit_lock(slot, &pool_taken[cpu])) {
            struct nn_instance *instance = pool_slots[(u32)cpu * pool + slot];

            nn_reset(instance);
            return instance;
        }
    }
    return NULL;
}

/* From any CPU. */
void nn_pool_put(struct nn_instance *instance)
{
    if (instance != NULL) {
        clear_bit_unlock((unsigned long)instance->slot, &pool_taken[instance->cpu]);
    }
}
