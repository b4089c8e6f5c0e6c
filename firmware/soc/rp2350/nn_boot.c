/* The block by which an RP2350's ROM knows a program in the first 4 KB of flash, for which cores it is, and where it starts.
 * A loop of one block. RP2350 data sheet, 5.9.1, 5.9.3 and 5.9.5. */
#include <stdint.h>

#define BLOCK_BEGIN  0xffffded3u
#define BLOCK_END    0xab123579u
#define IMAGE_TYPE   0x0142u /* one word, its upper half: */
#define EXECUTABLE   (1u << 0)
#define SECURE       (2u << 4) /* Arm's; RISC-V knows no such state */
#define RISCV        (1u << 8)
#define RP2350       (1u << 12)
#define VECTOR_TABLE 0x0203u /* two words */
#define ENTRY_POINT  0x0344u /* three words */
#define LAST(words)  (0xffu | ((words) << 8))

typedef union nn_word {
    uint32_t    number;
    const void *place;
    void (*code)(void);
} nn_word;

void                   nn_reset(void);
extern const uint32_t  nn_vectors[];
extern const uint32_t  nn_handler_stack_high[];

__attribute__((section(".boot"), used)) const nn_word nn_boot_block[] = {
    {.number = BLOCK_BEGIN},
#if defined(__riscv)
    {.number = IMAGE_TYPE | (EXECUTABLE | RISCV | RP2350) << 16},
    {.number = ENTRY_POINT},
    {.code = nn_reset},
    {.place = nn_handler_stack_high},
    {.number = LAST(4u)},
#else
    {.number = IMAGE_TYPE | (EXECUTABLE | SECURE | RP2350) << 16},
    {.number = VECTOR_TABLE},
    {.place = nn_vectors},
    {.number = LAST(3u)},
#endif
    {.number = 0}, /* the next block is this one */
    {.number = BLOCK_END},
};
