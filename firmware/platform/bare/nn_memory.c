/* Prepares memory as C expects it before main: initialized variables, zeroed .bss; also paints the stack. */
#include "nn_memory.h"

#define PAINT 0xa5a5a5a5u

#ifndef NN_FAST_CODE
#define NN_FAST_CODE 0 /* the model's code executes in flash */
#endif

/* Boundaries from the linker script; all are multiples of 4. */
extern uint32_t       nn_stack_low[];
extern uint32_t       nn_stack_high[];
extern uint32_t       nn_data_begin[];
extern uint32_t       nn_data_end[];
extern const uint32_t nn_data_load[];
extern uint32_t       nn_bss_begin[];
extern uint32_t       nn_bss_end[];
extern uint32_t       nn_context_begin[];
extern uint32_t       nn_context_end[];
#if NN_FAST_CODE
extern uint32_t       nn_fast_begin[];
extern uint32_t       nn_fast_end[];
extern const uint32_t nn_fast_load[];
#endif

/* The stores are volatile, because the compiler might otherwise turn the loop into a call of memset. */
static void fill(volatile uint32_t *from, const volatile uint32_t *to, uint32_t word)
{
    while (from < to) {
        *from++ = word;
    }
}

static void copy(volatile uint32_t *to, const volatile uint32_t *end, const uint32_t *from)
{
    while (to < end) {
        *to++ = *from++;
    }
}

void nn_memory_start(void)
{
    copy(nn_data_begin, nn_data_end, nn_data_load);
#if NN_FAST_CODE
    copy(nn_fast_begin, nn_fast_end, nn_fast_load);
#endif
    fill(nn_bss_begin, nn_bss_end, 0);
    fill(nn_context_begin, nn_context_end, 0);
    fill(nn_stack_low, nn_stack_high, PAINT);
}
