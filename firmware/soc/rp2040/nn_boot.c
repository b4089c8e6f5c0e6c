/* The first 256 bytes of an RP2040's flash: its ROM copies them to RAM, verifies their checksum and calls them. They
 * map flash into memory, with the read command of every flash chip, and continue at the vectors after them. RP2040 data
 * sheet, 2.8.1 and 4.10. */
#include <stdint.h>

#define CODE_WORDS 126u

typedef struct nn_boot {
    uint16_t code[CODE_WORDS];
    uint32_t check; /* CRC-32, highest bit first, of what stands before it */
} nn_boot;

__attribute__((section(".boot"), used)) const nn_boot nn_boot_stage = {
    .code = {
        0x4b0au, /* ldr r3, =XIP_SSI */
        0x2100u, /* movs r1, #0 */
        0x6099u, /* str r1, SSIENR: off */
        0x2104u, /* movs r1, #4 */
        0x6159u, /* str r1, BAUDR: a fourth of the clock */
        0x4909u, /* ldr r1, =0x001f0300 */
        0x6019u, /* str r1, CTRLR0: 32 bits a frame, a read behind a command */
        0x2100u, /* movs r1, #0 */
        0x6059u, /* str r1, CTRLR1: one frame */
        0x4908u, /* ldr r1, =0x03000218 */
        0x4808u, /* ldr r0, =SPI_CTRLR0 */
        0x6001u, /* str r1, SPI_CTRLR0: command 03, then 24 bits of address */
        0x2101u, /* movs r1, #1 */
        0x6099u, /* str r1, SSIENR: on */
        0x4807u, /* ldr r0, =0x10000100, the vectors */
        0x4908u, /* ldr r1, =VTOR */
        0x6008u, /* str r0, VTOR */
        0x6801u, /* ldr r1, their stack */
        0xf381u, /* msr msp, r1 */
        0x8808u,
        0x6841u, /* ldr r1, their reset */
        0x4708u, /* bx r1 */
        0x0000u, /* literals: XIP_SSI */
        0x1800u,
        0x0300u, /* CTRLR0 */
        0x001fu,
        0x0218u, /* what SPI_CTRLR0 takes */
        0x0300u,
        0x00f4u, /* SPI_CTRLR0 */
        0x1800u,
        0x0100u, /* the vectors */
        0x1000u,
        0xed08u, /* VTOR */
        0xe000u,
    },
    .check = 0x48c9507eu,
};
