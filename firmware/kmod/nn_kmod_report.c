/* The module's attributes in sysfs and counters in debugfs. */
#include <linux/debugfs.h>
#include <linux/device.h>
#include <linux/seq_file.h>
#include <linux/sysfs.h>

#include "nn_kmod.h"

static struct dentry *folder;

static ssize_t hash_show(struct device *device, struct device_attribute *attribute, char *text)
{
    char hash[17] = "";

    nn_weights_hash(hash);
    return sysfs_emit(text, "%s\n", hash);
}

static ssize_t plan_show(struct device *device, struct device_attribute *attribute, char *text)
{
    return sysfs_emit(text, "%s\n", nn_model_plan);
}

static ssize_t version_show(struct device *device, struct device_attribute *attribute, char *text)
{
    return sysfs_emit(text, "%s\n", nn_model_version);
}

static ssize_t show_ports(char *text, const nn_port *ports, u32 count)
{
    ssize_t at = 0;

    for (u32 i = 0; i < count; i++) {
        at += sysfs_emit_at(text, (int)at, "%s\n", ports[i].text);
    }
    return at;
}

static ssize_t inputs_show(struct device *device, struct device_attribute *attribute, char *text)
{
    return show_ports(text, nn_model_input_ports, nn_model_inputs);
}

static ssize_t outputs_show(struct device *device, struct device_attribute *attribute, char *text)
{
    return show_ports(text, nn_model_output_ports, nn_model_outputs);
}

/* The name of a firmware file with other weights for the same plan. */
static ssize_t weights_store(struct device *device, struct device_attribute *attribute, const char *text, size_t size)
{
    char   name[128];
    size_t length = strcspn(text, "\n");
    int    error;

    if (length == 0 || length >= sizeof name || length + 1 < size) {
        return -EINVAL;
    }
    memcpy(name, text, length);
    name[length] = 0;
    error = nn_weights_load(name);
    return error != 0 ? error : (ssize_t)size;
}

static DEVICE_ATTR_RO(hash);
static DEVICE_ATTR_RO(plan);
static DEVICE_ATTR_RO(version);
static DEVICE_ATTR_RO(inputs);
static DEVICE_ATTR_RO(outputs);
static DEVICE_ATTR_WO(weights);

static struct attribute *attributes[] = {
    &dev_attr_hash.attr,   &dev_attr_plan.attr,    &dev_attr_version.attr,
    &dev_attr_inputs.attr, &dev_attr_outputs.attr, &dev_attr_weights.attr,
    NULL,
};
static const struct attribute_group group = {.attrs = attributes};
const struct attribute_group       *nn_groups[] = {&group, NULL};

static void show_number(struct seq_file *file, const char *name, const atomic64_t *number)
{
    seq_printf(file, "%s %lld\n", name, (long long)atomic64_read(number));
}

static int counters_show(struct seq_file *file, void *unused)
{
    show_number(file, "runs", &nn_counters.runs);
    show_number(file, "refused_fpu", &nn_counters.refused_fpu);
    show_number(file, "refused_busy", &nn_counters.refused_busy);
    show_number(file, "sections", &nn_counters.sections);
    show_number(file, "longest_section_ns", &nn_counters.longest_section);
    show_number(file, "weight_swaps", &nn_counters.swaps);
    show_number(file, "weight_swaps_refused", &nn_counters.swaps_refused);
    seq_printf(file, "allocations %ld\n", nn_held());
    return 0;
}

static int latency_show(struct seq_file *file, void *unused)
{
    for (u32 i = 0; i < NN_BUCKETS; i++) {
        s64 count = atomic64_read(&nn_counters.latency[i]);

        if (count != 0) {
            seq_printf(file, "%llu ns or more: %lld\n", 1ull << i, (long long)count);
        }
    }
    return 0;
}

DEFINE_SHOW_ATTRIBUTE(counters);
DEFINE_SHOW_ATTRIBUTE(latency);

/* Errors from debugfs are ignored; nothing depends on it. */
void nn_report_start(void)
{
    folder = debugfs_create_dir(NN_DEVICE, NULL);
    debugfs_create_file("counters", 0444, folder, NULL, &counters_fops);
    debugfs_create_file("latency", 0444, folder, NULL, &latency_fops);
}

void nn_report_stop(void)
{
    debugfs_remove_recursive(folder);
}
