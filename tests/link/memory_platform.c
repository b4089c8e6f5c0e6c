/* A platform without a line: the test hands bytes in and takes bytes out. It is loaded into the test's process. */
#include <string.h>

#include "nn_link.h"
#include "nn_platform.h"

#define KEPT_BYTES (1u << 20)

void     memory_start(void);
void     memory_feed(const uint8_t *bytes, uint32_t size);
uint32_t memory_take(uint8_t *bytes, uint32_t size);
void     memory_log(const char *text);
void     memory_fault(uint32_t kind, const uint32_t *words, uint32_t count);

const char *const nn_platform_unit = "instructions";

static nn_link  memory_link;
static uint8_t  kept[KEPT_BYTES];
static uint32_t kept_size;
static uint64_t clock_ticks;

void nn_platform_write(const uint8_t *bytes, uint32_t size)
{
    if (size <= KEPT_BYTES - kept_size) {
        memcpy(kept + kept_size, bytes, size);
        kept_size += size;
    }
}

uint64_t nn_platform_ticks(void)
{
    return clock_ticks += 7;
}

uint32_t nn_platform_hertz(void)
{
    return 168000000u;
}

void nn_platform_stack(uint32_t *used, uint32_t *size)
{
    *used = 1234;
    *size = 4096;
}

void nn_platform_reset(void)
{
    /* The link has started anew by then; what it sent before is still on its way. */
}

void memory_start(void)
{
    kept_size = 0;
    nn_link_init(&memory_link);
}

void memory_feed(const uint8_t *bytes, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        nn_link_receive(&memory_link, bytes[i]);
    }
}

uint32_t memory_take(uint8_t *bytes, uint32_t size)
{
    uint32_t count = kept_size < size ? kept_size : size;

    memcpy(bytes, kept, count);
    memmove(kept, kept + count, kept_size - count);
    kept_size -= count;
    return count;
}

void memory_log(const char *text)
{
    nn_link_log(text);
}

void memory_fault(uint32_t kind, const uint32_t *words, uint32_t count)
{
    nn_link_fault((nn_link_fault_kind)kind, words, count);
}
