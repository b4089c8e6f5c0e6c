/* FreeRTOS-SMP tasks, each pinned to one core; all their memory is static. The task that runs the network should be
 * pinned to core 0. Tasks wake each other by notifications. */
#include "FreeRTOS.h"
#include "nn_cores_port.h"
#include "task.h"

/* Words of stack of each task. */
#ifndef NN_CORES_STACK
#define NN_CORES_STACK 768
#endif

/* Higher than tasks that may run while a network computes. */
#ifndef NN_CORES_PRIORITY
#define NN_CORES_PRIORITY (configMAX_PRIORITIES - 1)
#endif

static StaticTask_t       tasks[NN_CORES];
static StackType_t        stacks[NN_CORES][NN_CORES_STACK];
static TaskHandle_t       handles[NN_CORES];
static volatile uint32_t  lives[NN_CORES];

static void task_of(void *core)
{
    const int32_t own = (int32_t)(intptr_t)core;

    nn_cores_serve(own, lives[own]);
    for (;;) { /* replaced: it is deleted when its successor starts */
        vTaskSuspend(NULL);
    }
}

/* Called by the task that will run the network. */
void nn_cores_port_start(int32_t core, uint32_t life)
{
    handles[0] = xTaskGetCurrentTaskHandle();
    if (handles[core] != NULL) {
        vTaskDelete(handles[core]);
        vTaskDelay(2); /* the idle task of its core frees it */
    }
    lives[core] = life;
    handles[core] = xTaskCreateStaticAffinitySet(task_of, "nn_core", NN_CORES_STACK, (void *)(intptr_t)core,
                                                 NN_CORES_PRIORITY, stacks[core], &tasks[core],
                                                 (UBaseType_t)1u << (uint32_t)core);
}

void nn_cores_port_wake(int32_t core)
{
    if (handles[core] != NULL) {
        xTaskNotifyGive(handles[core]);
    }
}

/* A notification that arrived before the word was read ends the sleep at once. */
void nn_cores_port_sleep(int32_t core, const uint32_t *word, uint32_t value)
{
    (void)core;
    (void)word;
    (void)value;
    (void)ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
}

void nn_cores_port_nap(const uint32_t *word, uint32_t value)
{
    (void)word;
    (void)value;
    (void)ulTaskNotifyTake(pdTRUE, pdMS_TO_TICKS(4) + 1);
}

uint32_t nn_cores_port_clock(void)
{
    return (uint32_t)xTaskGetTickCount();
}

uint32_t nn_cores_port_millisecond(void)
{
    return (uint32_t)(configTICK_RATE_HZ / 1000u) > 0u ? (uint32_t)(configTICK_RATE_HZ / 1000u) : 1u;
}
