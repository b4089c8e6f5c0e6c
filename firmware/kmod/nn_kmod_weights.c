/* The weights, and their replacement while the model runs.
 *
 * A run references the current weights at its start and releases them at its end, so every run uses one set throughout.
 * The old set is freed when its last run has ended. */
#include <linux/err.h>
#include <linux/firmware.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "nn_frame.h"
#include "nn_kmod.h"

#ifdef NN_SWAPPABLE

#define NN_BLOB_MAGIC  0x314e4e57u /* "WNN1" */
#define NN_BLOB_HEADER 64u
#define NN_HASH_CHARS  16u

/* The head of a blob, all numbers little-endian: magic, CRC-32 of what follows this head, bytes that follow it, 4 bytes
 * kept at 0, the hash of the plan, the hash of the model; then the weights. */
struct blob {
    u32       crc;
    u32       size;
    const u8 *plan;
    const u8 *model;
    const u8 *data;
};

static struct nn_weights         built_in = {.built_in = true};
static struct nn_weights __rcu  *current_weights;
static DEFINE_MUTEX(exchange);
static struct workqueue_struct  *releases;

static void release(struct work_struct *work)
{
    struct nn_weights *weights = container_of(work, struct nn_weights, release);

    synchronize_rcu(); /* a reader may be reading its count */
    nn_give(weights->data);
    nn_give(weights);
}

struct nn_weights *nn_weights_get(void)
{
    struct nn_weights *weights;

    rcu_read_lock();
    do {
        weights = rcu_dereference(current_weights);
    } while (!refcount_inc_not_zero(&weights->users));
    rcu_read_unlock();
    return weights;
}

/* From any context: a worker does the slow part. */
void nn_weights_put(struct nn_weights *weights)
{
    if (refcount_dec_and_test(&weights->users) && !weights->built_in) {
        queue_work(releases, &weights->release);
    }
}

void nn_weights_hash(char hash[17])
{
    struct nn_weights *weights = nn_weights_get();

    memcpy(hash, weights->hash, sizeof weights->hash);
    nn_weights_put(weights);
}

/* -EINVAL for a blob that does not match this model's plan, -EBADMSG for a damaged one. */
static int parse(const u8 *bytes, size_t size, struct blob *blob)
{
    if (size < NN_BLOB_HEADER || nn_get32(bytes) != NN_BLOB_MAGIC) {
        pr_err("%s: this is no file of weights\n", nn_model_name);
        return -EINVAL;
    }
    blob->crc = nn_get32(bytes + 4);
    blob->size = nn_get32(bytes + 8);
    blob->plan = bytes + 16;
    blob->model = bytes + 16 + NN_HASH_CHARS;
    blob->data = bytes + NN_BLOB_HEADER;
    if (memcmp(blob->plan, nn_model_plan, NN_HASH_CHARS) != 0) {
        pr_err("%s: these weights are for the plan %.16s, this module has %s\n", nn_model_name, blob->plan,
               nn_model_plan);
        return -EINVAL;
    }
    if (blob->size != nn_model_weight_bytes || size != NN_BLOB_HEADER + (size_t)blob->size) {
        pr_err("%s: the file of weights has %zu bytes, not %u\n", nn_model_name, size,
               NN_BLOB_HEADER + nn_model_weight_bytes);
        return -EINVAL;
    }
    if (nn_frame_crc(nn_frame_crc(0, bytes + 16, NN_BLOB_HEADER - 16u), blob->data, blob->size) != blob->crc) {
        pr_err("%s: the file of weights is damaged: its CRC is wrong\n", nn_model_name);
        return -EBADMSG;
    }
    return 0;
}

static struct nn_weights *copy_of(const struct blob *blob)
{
    struct nn_weights *weights = nn_take(sizeof *weights, GFP_KERNEL);
    u8                *data = nn_take(blob->size, GFP_KERNEL);

    if (weights == NULL || data == NULL) {
        nn_give(weights);
        nn_give(data);
        return ERR_PTR(-ENOMEM);
    }
    memcpy(data, blob->data, blob->size);
    memcpy(weights->hash, blob->model, NN_HASH_CHARS);
    weights->data = data;
    refcount_set(&weights->users, 1);
    INIT_WORK(&weights->release, release);
    return weights;
}

static int exchange_for(const struct blob *blob)
{
    struct nn_weights *fresh = copy_of(blob);
    struct nn_weights *old;

    if (IS_ERR(fresh)) {
        return PTR_ERR(fresh);
    }
    mutex_lock(&exchange);
    old = rcu_replace_pointer(current_weights, fresh, lockdep_is_held(&exchange));
    mutex_unlock(&exchange);
    nn_weights_put(old);
    return 0;
}

/* Loads weights from a firmware file. On any error the model keeps its current weights. */
int nn_weights_load(const char *name)
{
    const struct firmware *file;
    struct blob            blob;
    int                    error = nn_may_fail();

    if (error != 0) {
        atomic64_inc(&nn_counters.swaps_refused);
        return error;
    }
    error = request_firmware(&file, name, nn_device());
    if (error == 0) {
        error = parse(file->data, file->size, &blob);
        if (error == 0) {
            error = exchange_for(&blob);
        }
        release_firmware(file);
    }
    nn_put_back();
    atomic64_inc(error == 0 ? &nn_counters.swaps : &nn_counters.swaps_refused);
    return error;
}

int nn_weights_start(void)
{
    int error = nn_may_fail();

    if (error != 0) {
        return error;
    }
    releases = alloc_workqueue("nn_%s", 0, 0, nn_model_name);
    if (releases == NULL) {
        nn_put_back();
        return -ENOMEM;
    }
    built_in.data = nn_model_weights;
    memcpy(built_in.hash, nn_model_hash, NN_HASH_CHARS);
    refcount_set(&built_in.users, 1);
    rcu_assign_pointer(current_weights, &built_in);
    return 0;
}

/* When nothing runs any more; also after a failed start. */
void nn_weights_stop(void)
{
    if (releases == NULL) {
        return;
    }
    nn_weights_put(rcu_dereference_protected(current_weights, true));
    destroy_workqueue(releases); /* waits for pending frees */
    nn_put_back();
}

#else

struct nn_weights *nn_weights_get(void)
{
    return NULL;
}

void nn_weights_put(struct nn_weights *weights)
{
}

void nn_weights_hash(char hash[17])
{
    memcpy(hash, nn_model_hash, 17);
}

int nn_weights_load(const char *name)
{
    return -EOPNOTSUPP;
}

int nn_weights_start(void)
{
    return 0;
}

void nn_weights_stop(void)
{
}

#endif
