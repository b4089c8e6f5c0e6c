/* /dev/nn_<model>: every open file has its own instance and speaks the link. */
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <linux/wait.h>

#include "nn_kmod.h"
#include "nn_kmod_ioctl.h"
#include "nn_link.h"
#include "nn_platform.h"
#include "nn_target.h"

/* An encoded frame: byte stuffing adds one byte in 254, and zeros delimit it. */
#define NN_LONGEST_REPLY (NN_LINK_FRAME_BYTES + NN_LINK_FRAME_BYTES / 254u + 3u)
#define NN_QUEUE_BYTES   (4u * NN_LONGEST_REPLY)
#define NN_COPY_BYTES    256u

struct nn_open {
    struct mutex        lock;
    struct nn_instance *instance;
    nn_link             link;
    u32                 mode;
    bool                has_outputs; /* in plain mode: a run succeeded since the last reset */
    wait_queue_head_t   change;
    u32                 head; /* bytes taken out of the queue since it was empty */
    u32                 tail; /* bytes put in */
    u64                 ticks[NN_STEPS];
    u8                  queue[NN_QUEUE_BYTES];
    struct list_head    entry; /* in the list of files whose link is executing a request */
    struct task_struct *task;
};

const char *const nn_platform_unit = "ns";

/* The link knows only one device, not instances: it is the one whose bytes this task is feeding. */
static LIST_HEAD(serving);
static DEFINE_SPINLOCK(serving_lock);

static struct nn_open *served(void)
{
    struct nn_open *open;
    struct nn_open *found = NULL;

    spin_lock(&serving_lock);
    list_for_each_entry(open, &serving, entry) {
        if (open->task == current) {
            found = open;
            break;
        }
    }
    spin_unlock(&serving_lock);
    return found;
}

static void serve(struct nn_open *open)
{
    open->task = current;
    spin_lock(&serving_lock);
    list_add(&open->entry, &serving);
    spin_unlock(&serving_lock);
}

static void unserve(struct nn_open *open)
{
    spin_lock(&serving_lock);
    list_del(&open->entry);
    spin_unlock(&serving_lock);
}

/* The link's platform. */

void nn_platform_write(const uint8_t *bytes, uint32_t size)
{
    struct nn_open *open = served();

    memcpy(open->queue + open->tail, bytes, size);
    WRITE_ONCE(open->tail, open->tail + size);
}

uint64_t nn_platform_ticks(void)
{
    return ktime_get_ns();
}

uint32_t nn_platform_hertz(void)
{
    return NSEC_PER_SEC;
}

void nn_platform_stack(uint32_t *used, uint32_t *size)
{
    *used = 0;
    *size = 0;
}

/* Only the instance could be restarted, which the next hello does. */
void nn_platform_reset(void)
{
    nn_reset(served()->instance);
}

/* The link's model. */

void nn_target_init(void)
{
    nn_reset(served()->instance);
}

int nn_target_run(void)
{
    return nn_run(served()->instance, GFP_KERNEL);
}

uint32_t nn_target_steps(void)
{
    return nn_model_steps;
}

int nn_target_step(uint32_t index)
{
    return nn_run_steps(served()->instance, index, index + 1u, GFP_KERNEL);
}

void *nn_target_region(uint32_t kind, uint32_t index, uint32_t *size)
{
    struct nn_open *open = served();

    if (kind != NN_TARGET_TICKS) {
        return nn_region(open->instance, kind, index, size);
    }
    *size = nn_model_steps * 8u;
    return index == 0 ? open->ticks : NULL;
}

/* The device. */

static bool has_reply(struct nn_open *open)
{
    return READ_ONCE(open->tail) != READ_ONCE(open->head);
}

/* Whether the longest answer to one more byte fits. */
static bool has_room(struct nn_open *open)
{
    return NN_QUEUE_BYTES - READ_ONCE(open->tail) >= NN_LONGEST_REPLY;
}

static bool is_readable(struct nn_open *open)
{
    return READ_ONCE(open->mode) == NN_MODE_PLAIN ? READ_ONCE(open->has_outputs) : has_reply(open);
}

static bool is_writable(struct nn_open *open)
{
    return READ_ONCE(open->mode) == NN_MODE_PLAIN || has_room(open);
}

static void start_over(struct nn_open *open)
{
    nn_reset(open->instance);
    nn_link_init(&open->link);
    open->has_outputs = false;
    WRITE_ONCE(open->head, 0);
    WRITE_ONCE(open->tail, 0);
}

static int nn_open_file(struct inode *inode, struct file *file)
{
    struct nn_open *open = nn_take(sizeof *open, GFP_KERNEL);
    int             error;

    if (open == NULL) {
        return -ENOMEM;
    }
    open->instance = nn_create(GFP_KERNEL);
    if (IS_ERR(open->instance)) {
        error = PTR_ERR(open->instance);
        nn_give(open);
        return error;
    }
    mutex_init(&open->lock);
    init_waitqueue_head(&open->change);
    nn_link_init(&open->link);
    file->private_data = open;
    return stream_open(inode, file);
}

static int nn_release_file(struct inode *inode, struct file *file)
{
    struct nn_open *open = file->private_data;

    nn_destroy(open->instance);
    nn_give(open);
    return 0;
}

/* Feeds bytes to the link while there is room for its answers; returns the number of bytes taken. */
static ssize_t feed(struct nn_open *open, const char __user *from, size_t count)
{
    size_t taken = 0;
    u8     bytes[NN_COPY_BYTES];

    while (taken < count && has_room(open)) {
        u32 part = (u32)min_t(size_t, count - taken, sizeof bytes);
        u32 i = 0;

        if (copy_from_user(bytes, from + taken, part) != 0) {
            return taken != 0 ? (ssize_t)taken : -EFAULT;
        }
        serve(open);
        while (i < part && has_room(open)) {
            nn_link_receive(&open->link, bytes[i]);
            i++;
        }
        unserve(open);
        taken += i;
        if (signal_pending(current)) {
            break;
        }
    }
    return (ssize_t)taken;
}

static u32 size_of_all(u32 kind, u32 count, struct nn_instance *instance)
{
    u32 total = 0;

    for (u32 i = 0; i < count; i++) {
        u32 size = 0;

        nn_region(instance, kind, i, &size);
        total += size;
    }
    return total;
}

/* Plain mode: all inputs, one after the other; runs the model. */
static ssize_t write_inputs(struct nn_open *open, const char __user *from, size_t count)
{
    int error;

    if (count != size_of_all(NN_TARGET_INPUT, nn_model_inputs, open->instance)) {
        return -EINVAL;
    }
    WRITE_ONCE(open->has_outputs, false);
    for (u32 i = 0; i < nn_model_inputs; i++) {
        u32   size = 0;
        void *at = nn_region(open->instance, NN_TARGET_INPUT, i, &size);

        if (copy_from_user(at, from, size) != 0) {
            return -EFAULT;
        }
        from += size;
    }
    error = nn_run(open->instance, GFP_KERNEL);
    if (error != 0) {
        return error;
    }
    WRITE_ONCE(open->has_outputs, true);
    return (ssize_t)count;
}

/* Plain mode: all outputs of the last run. */
static ssize_t read_outputs(struct nn_open *open, char __user *to, size_t count)
{
    size_t whole = size_of_all(NN_TARGET_OUTPUT, nn_model_outputs, open->instance);

    if (!open->has_outputs) {
        return -ENODATA;
    }
    if (count < whole) {
        return -EINVAL;
    }
    for (u32 i = 0; i < nn_model_outputs; i++) {
        u32         size = 0;
        const void *at = nn_region(open->instance, NN_TARGET_OUTPUT, i, &size);

        if (copy_to_user(to, at, size) != 0) {
            return -EFAULT;
        }
        to += size;
    }
    return (ssize_t)whole;
}

/* Releases the lock while waiting; holds it again on success. */
static int wait_until(struct nn_open *open, struct file *file, bool (*ready)(struct nn_open *))
{
    while (!ready(open)) {
        mutex_unlock(&open->lock);
        if ((file->f_flags & O_NONBLOCK) != 0) {
            return -EAGAIN;
        }
        if (wait_event_interruptible(open->change, ready(open)) != 0) {
            return -ERESTARTSYS;
        }
        if (mutex_lock_interruptible(&open->lock) != 0) {
            return -ERESTARTSYS;
        }
    }
    return 0;
}

static ssize_t nn_write_file(struct file *file, const char __user *from, size_t count, loff_t *position)
{
    struct nn_open *open = file->private_data;
    ssize_t         result;

    if (mutex_lock_interruptible(&open->lock) != 0) {
        return -ERESTARTSYS;
    }
    result = wait_until(open, file, is_writable);
    if (result != 0) {
        return result;
    }
    result = open->mode == NN_MODE_PLAIN ? write_inputs(open, from, count) : feed(open, from, count);
    mutex_unlock(&open->lock);
    wake_up_interruptible(&open->change);
    return result;
}

static ssize_t read_replies(struct nn_open *open, char __user *to, size_t count)
{
    u32 part = (u32)min_t(size_t, count, open->tail - open->head);

    if (copy_to_user(to, open->queue + open->head, part) != 0) {
        return -EFAULT;
    }
    WRITE_ONCE(open->head, open->head + part);
    if (open->head == open->tail) {
        WRITE_ONCE(open->head, 0);
        WRITE_ONCE(open->tail, 0);
    }
    return (ssize_t)part;
}

static ssize_t nn_read_file(struct file *file, char __user *to, size_t count, loff_t *position)
{
    struct nn_open *open = file->private_data;
    ssize_t         result;

    if (mutex_lock_interruptible(&open->lock) != 0) {
        return -ERESTARTSYS;
    }
    if (open->mode == NN_MODE_PLAIN) {
        result = read_outputs(open, to, count);
    } else {
        result = count != 0 ? wait_until(open, file, is_readable) : 0;
        if (result != 0) {
            return result;
        }
        result = open->mode == NN_MODE_PLAIN ? read_outputs(open, to, count) : read_replies(open, to, count);
    }
    mutex_unlock(&open->lock);
    wake_up_interruptible(&open->change);
    return result;
}

static __poll_t nn_poll_file(struct file *file, poll_table *table)
{
    struct nn_open *open = file->private_data;
    __poll_t        events = 0;

    poll_wait(file, &open->change, table);
    if (is_readable(open)) {
        events |= EPOLLIN | EPOLLRDNORM;
    }
    if (is_writable(open)) {
        events |= EPOLLOUT | EPOLLWRNORM;
    }
    return events;
}

static long set_mode(struct nn_open *open, const u32 __user *from)
{
    u32 mode;

    if (get_user(mode, from) != 0) {
        return -EFAULT;
    }
    if (mode != NN_MODE_LINK && mode != NN_MODE_PLAIN) {
        return -EINVAL;
    }
    start_over(open);
    WRITE_ONCE(open->mode, mode);
    return 0;
}

static long nn_ioctl_file(struct file *file, unsigned int command, unsigned long argument)
{
    struct nn_open *open = file->private_data;
    long            result = 0;

    if (command != NN_IOCTL_RESET && command != NN_IOCTL_MODE) {
        return -ENOTTY;
    }
    if (mutex_lock_interruptible(&open->lock) != 0) {
        return -ERESTARTSYS;
    }
    if (command == NN_IOCTL_RESET) {
        start_over(open);
    } else {
        result = set_mode(open, (const u32 __user *)argument);
    }
    mutex_unlock(&open->lock);
    wake_up_interruptible(&open->change);
    return result;
}

static const struct file_operations operations = {
    .owner = THIS_MODULE,
    .open = nn_open_file,
    .release = nn_release_file,
    .read = nn_read_file,
    .write = nn_write_file,
    .poll = nn_poll_file,
    .unlocked_ioctl = nn_ioctl_file,
    .compat_ioctl = compat_ptr_ioctl,
};

static struct miscdevice device = {
    .minor = MISC_DYNAMIC_MINOR,
    .name = NN_DEVICE,
    .fops = &operations,
    .groups = nn_groups,
    .mode = 0600,
};

struct device *nn_device(void)
{
    return device.this_device;
}

int nn_device_start(void)
{
    int error = nn_may_fail();

    if (error == 0) {
        error = misc_register(&device);
        if (error != 0) {
            nn_put_back();
        }
    }
    return error;
}

void nn_device_stop(void)
{
    misc_deregister(&device);
    nn_put_back();
}
