/* All allocations of the module go through here, to detect leaks at unload and to let a test make any one of them fail. */
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>

#include "nn_kmod.h"

static atomic_long_t held = ATOMIC_LONG_INIT(0);

#ifdef NN_TEST_HOOKS
static atomic_t fail_in = ATOMIC_INIT(0);

static int set_fail(const char *text, const struct kernel_param *parameter)
{
    int value;
    int error = kstrtoint(text, 0, &value);

    if (error == 0) {
        atomic_set(&fail_in, value);
    }
    return error;
}

static int get_fail(char *text, const struct kernel_param *parameter)
{
    return sysfs_emit(text, "%d\n", atomic_read(&fail_in));
}

static const struct kernel_param_ops fail_ops = {.set = set_fail, .get = get_fail};
module_param_cb(fail_allocation, &fail_ops, NULL, 0644);
MODULE_PARM_DESC(fail_allocation, "which request for memory from now on is to fail; 0 for none (tests only)");

static bool is_to_fail(void)
{
    return atomic_read(&fail_in) > 0 && atomic_dec_return(&fail_in) == 0;
}
#else
static bool is_to_fail(void)
{
    return false;
}
#endif

/* Zeroed memory aligned to NN_ALIGNMENT bytes; the allocation's own address is stored in front of it. */
void *nn_take(size_t size, gfp_t gfp)
{
    void *raw;
    void *aligned;

    if (is_to_fail()) {
        return NULL;
    }
    raw = kvzalloc(size + NN_ALIGNMENT + sizeof raw, gfp);
    if (raw == NULL) {
        return NULL;
    }
    aligned = PTR_ALIGN((u8 *)raw + sizeof raw, NN_ALIGNMENT);
    ((void **)aligned)[-1] = raw;
    atomic_long_inc(&held);
    return aligned;
}

void nn_give(const void *memory)
{
    if (memory != NULL) {
        kvfree(((void *const *)memory)[-1]);
        atomic_long_dec(&held);
    }
}

/* For allocations that the kernel makes on our behalf: whether this one should fail. Counts as allocated until freed. */
int nn_may_fail(void)
{
    if (is_to_fail()) {
        return -ENOMEM;
    }
    atomic_long_inc(&held);
    return 0;
}

void nn_put_back(void)
{
    atomic_long_dec(&held);
}

long nn_held(void)
{
    return atomic_long_read(&held);
}
