/* Frames: the encoding of messages for a line that loses, adds and changes bytes.
 *
 * A message is followed by its CRC-32, byte-stuffed with COBS so that it contains no zero byte, and delimited by zero
 * bytes. The leading zero ends any preceding noise; a receiver out of sync resynchronizes at the next zero. */
#ifndef NN_FRAME_H
#define NN_FRAME_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NN_FRAME_CRC_BYTES 4u

typedef struct nn_frame_reader {
    uint8_t *bytes;       /* the decoded message */
    uint32_t capacity;    /* its capacity, including the CRC */
    uint32_t filled;
    uint8_t  block_code;  /* length code of the COBS block being read; 0 before the first one */
    uint8_t  block_left;  /* bytes of that block still to come */
    uint8_t  overrun;     /* the message did not fit: skip to the next zero */
} nn_frame_reader;

typedef enum nn_frame_event {
    NN_FRAME_NONE,    /* in the middle of a frame, or between frames */
    NN_FRAME_VALID,   /* a whole message is in the buffer */
    NN_FRAME_GARBLED  /* a corrupt frame ended */
} nn_frame_event;

/* CRC-32 of IEEE 802.3 (that of zlib); `crc` is 0, or the result so far. */
uint32_t nn_frame_crc(uint32_t crc, const uint8_t *bytes, uint32_t size);

void nn_frame_reader_init(nn_frame_reader *reader, uint8_t *bytes, uint32_t capacity);

/* Processes one received byte. After NN_FRAME_VALID `*size` is the length of the message without its CRC; the
 * message stays in the buffer until the next byte is given. */
nn_frame_event nn_frame_take(nn_frame_reader *reader, uint8_t byte, uint32_t *size);

/* Sends a message through nn_platform_write. `message` must have room for the CRC after its `size` bytes. */
void nn_frame_send(uint8_t *message, uint32_t size);

uint16_t nn_get16(const uint8_t *bytes);
uint32_t nn_get32(const uint8_t *bytes);
void     nn_put16(uint8_t *bytes, uint16_t value);
void     nn_put32(uint8_t *bytes, uint32_t value);
void     nn_put64(uint8_t *bytes, uint64_t value);

#ifdef __cplusplus
}
#endif

#endif
