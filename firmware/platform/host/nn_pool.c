/* A pool of threads that wait for parts of a job, and take one after the other as long as there are any. */
#include "nn_pool.h"

#include <pthread.h>
#include <stddef.h>

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t  work; /* there are parts to take */
    pthread_cond_t  done; /* the last part has returned */
    void (*part)(void *job, int32_t index);
    void   *job;
    int32_t parts;
    int32_t next;     /* the first part that nobody has taken */
    int32_t finished; /* parts that have returned */
    int     started;
} pool_state;

static pool_state the_pool = {
    PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL, NULL, 0, 0, 0, 0,
};

/* Takes parts until none is left; the lock is held before and after. */
static void take(pool_state *pool)
{
    while (pool->next < pool->parts) {
        const int32_t index = pool->next++;

        pthread_mutex_unlock(&pool->lock);
        pool->part(pool->job, index);
        pthread_mutex_lock(&pool->lock);
        if (++pool->finished == pool->parts) {
            pthread_cond_signal(&pool->done);
        }
    }
}

static void *worker(void *argument)
{
    pool_state *const pool = argument;

    pthread_mutex_lock(&pool->lock);
    for (;;) {
        take(pool);
        pthread_cond_wait(&pool->work, &pool->lock);
    }
    return NULL;
}

void *nn_pool(int32_t threads)
{
    if (!the_pool.started) {
        the_pool.started = 1;
        for (int32_t i = 1; i < threads; ++i) {
            pthread_t thread;

            if (pthread_create(&thread, NULL, worker, &the_pool) != 0) {
                break; /* fewer threads compute the same */
            }
            pthread_detach(thread);
        }
    }
    return &the_pool;
}

void nn_pool_run(void *argument, void (*part)(void *job, int32_t index), void *job, int32_t parts)
{
    pool_state *const pool = argument;

    pthread_mutex_lock(&pool->lock);
    pool->part = part;
    pool->job = job;
    pool->parts = parts;
    pool->next = 0;
    pool->finished = 0;
    pthread_cond_broadcast(&pool->work);
    take(pool);
    while (pool->finished < parts) {
        pthread_cond_wait(&pool->done, &pool->lock);
    }
    pool->parts = 0;
    pool->next = 0;
    pthread_mutex_unlock(&pool->lock);
}
