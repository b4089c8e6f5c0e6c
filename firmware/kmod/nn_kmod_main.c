/* Loading and unloading. */
#include <linux/init.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

#include "nn_kmod.h"

static bool selftest = true;
module_param(selftest, bool, 0444);
MODULE_PARM_DESC(selftest, "compare the model's results with the right ones before anything else (1)");

static int start_model(void)
{
    int error = selftest ? nn_selftest() : 0;

    if (error == 0) {
        error = nn_pool_start();
    }
    if (error == 0) {
        error = nn_device_start();
    }
    return error;
}

static int __init nn_init(void)
{
    int error = nn_processor_serves();

    if (error != 0) {
        pr_err("%s: this processor lacks what the module was built for\n", nn_model_name);
        return error;
    }
    error = nn_weights_start();
    if (error != 0) {
        return error;
    }
    error = start_model();
    if (error != 0) {
        nn_pool_stop();
        nn_weights_stop();
        pr_err("%s: not loaded, %ld allocations left\n", nn_model_name, nn_held());
        return error;
    }
    nn_report_start();
    return 0;
}

static void __exit nn_exit(void)
{
    nn_report_stop();
    nn_device_stop();
    nn_pool_stop();
    nn_weights_stop();
    pr_info("%s: unloaded, %ld allocations left\n", nn_model_name, nn_held());
    WARN_ON(nn_held() != 0);
}

module_init(nn_init);
module_exit(nn_exit);
MODULE_LICENSE("GPL");
MODULE_AUTHOR("nnbuild");
