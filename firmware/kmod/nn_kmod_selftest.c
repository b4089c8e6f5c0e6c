/* Before the module registers anything, checks that results equal those computed when the module was built. */
#include <linux/err.h>

#include "nn_kmod.h"
#include "nn_target.h"

static void put_inputs(struct nn_instance *instance, const u8 **from)
{
    for (u32 i = 0; i < nn_model_inputs; i++) {
        u32   size = 0;
        void *at = nn_region(instance, NN_TARGET_INPUT, i, &size);

        memcpy(at, *from, size);
        *from += size;
    }
}

static int compare_outputs(struct nn_instance *instance, u32 sample, const u8 **wanted)
{
    int right = 1;

    for (u32 i = 0; i < nn_model_outputs; i++) {
        u32       size = 0;
        const u8 *found = nn_region(instance, NN_TARGET_OUTPUT, i, &size);

        if (!nn_fpu_begin()) {
            return -EBUSY;
        }
        right &= nn_model_close(sample, i, found, *wanted);
        nn_fpu_end();
        *wanted += size;
    }
    return right ? 0 : -EIO;
}

/* -EIO when a result is wrong. */
int nn_selftest(void)
{
    struct nn_instance *instance = nn_create(GFP_KERNEL);
    const u8           *inputs = nn_model_golden.inputs;
    const u8           *outputs = nn_model_golden.outputs;
    int                 error = 0;

    if (IS_ERR(instance)) {
        return PTR_ERR(instance);
    }
    for (u32 i = 0; i < nn_model_golden.count && error == 0; i++) {
        put_inputs(instance, &inputs);
        error = nn_run(instance, GFP_KERNEL);
        if (error == 0) {
            error = compare_outputs(instance, i, &outputs);
        }
        if (error == -EIO) {
            pr_err("%s: self-test: result %u is not the one wanted\n", nn_model_name, i);
        }
    }
    nn_destroy(instance);
    return error;
}
