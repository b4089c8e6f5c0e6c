#include "nn_frame.h"

#include "nn_platform.h"

#define STAGE_BYTES 64u /* collects small pieces, so that the platform is not called for every byte */

typedef struct stage {
    uint8_t  bytes[STAGE_BYTES];
    uint32_t filled;
} stage;

uint16_t nn_get16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] | ((uint32_t)bytes[1] << 8));
}

uint32_t nn_get32(const uint8_t *bytes)
{
    return nn_get16(bytes) | ((uint32_t)nn_get16(bytes + 2) << 16);
}

void nn_put16(uint8_t *bytes, uint16_t value)
{
    bytes[0] = (uint8_t)value;
    bytes[1] = (uint8_t)(value >> 8);
}

void nn_put32(uint8_t *bytes, uint32_t value)
{
    nn_put16(bytes, (uint16_t)value);
    nn_put16(bytes + 2, (uint16_t)(value >> 16));
}

void nn_put64(uint8_t *bytes, uint64_t value)
{
    nn_put32(bytes, (uint32_t)value);
    nn_put32(bytes + 4, (uint32_t)(value >> 32));
}

/* Half a byte at a time: a table of 64 bytes instead of 1,024, twice as fast as bit by bit. */
uint32_t nn_frame_crc(uint32_t crc, const uint8_t *bytes, uint32_t size)
{
    static const uint32_t table[16] = {
        0x00000000u, 0x1db71064u, 0x3b6e20c8u, 0x26d930acu, 0x76dc4190u, 0x6b6b51f4u, 0x4db26158u, 0x5005713cu,
        0xedb88320u, 0xf00f9344u, 0xd6d6a3e8u, 0xcb61b38cu, 0x9b64c2b0u, 0x86d3d2d4u, 0xa00ae278u, 0xbdbdf21cu,
    };
    crc = ~crc;
    for (uint32_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        crc = (crc >> 4) ^ table[crc & 15u];
        crc = (crc >> 4) ^ table[crc & 15u];
    }
    return ~crc;
}

static void start_frame(nn_frame_reader *reader)
{
    reader->filled = 0;
    reader->block_code = 0;
    reader->block_left = 0;
    reader->overrun = 0;
}

void nn_frame_reader_init(nn_frame_reader *reader, uint8_t *bytes, uint32_t capacity)
{
    reader->bytes = bytes;
    reader->capacity = capacity;
    start_frame(reader);
}

static void append(nn_frame_reader *reader, uint8_t byte)
{
    if (reader->filled < reader->capacity) {
        reader->bytes[reader->filled++] = byte;
    } else {
        reader->overrun = 1;
    }
}

static nn_frame_event end_frame(nn_frame_reader *reader, uint32_t *size)
{
    nn_frame_event event = NN_FRAME_GARBLED;
    if (reader->block_code == 0) {
        event = NN_FRAME_NONE; /* nothing between two zeros */
    } else if (!reader->overrun && reader->block_left == 0 && reader->filled > NN_FRAME_CRC_BYTES) {
        uint32_t length = reader->filled - NN_FRAME_CRC_BYTES;
        if (nn_frame_crc(0, reader->bytes, length) == nn_get32(reader->bytes + length)) {
            *size = length;
            event = NN_FRAME_VALID;
        }
    }
    start_frame(reader);
    return event;
}

nn_frame_event nn_frame_take(nn_frame_reader *reader, uint8_t byte, uint32_t *size)
{
    if (byte == 0) {
        return end_frame(reader, size);
    }
    if (reader->block_left > 0) {
        append(reader, byte);
        reader->block_left--;
        return NN_FRAME_NONE;
    }
    /* A new block starts. Every block except a full-length one implied a zero at its end. */
    if (reader->block_code != 0 && reader->block_code != 0xff) {
        append(reader, 0);
    }
    reader->block_code = byte;
    reader->block_left = (uint8_t)(byte - 1u);
    return NN_FRAME_NONE;
}

static void put(stage *out, uint8_t byte)
{
    if (out->filled == STAGE_BYTES) {
        nn_platform_write(out->bytes, out->filled);
        out->filled = 0;
    }
    out->bytes[out->filled++] = byte;
}

void nn_frame_send(uint8_t *message, uint32_t size)
{
    stage    out;
    uint32_t begin = 0;
    uint32_t end = size + NN_FRAME_CRC_BYTES;

    nn_put32(message + size, nn_frame_crc(0, message, size));
    out.filled = 0;
    put(&out, 0);
    for (;;) {
        uint32_t run = 0;
        while (begin + run < end && run < 254u && message[begin + run] != 0) {
            run++;
        }
        put(&out, (uint8_t)(run + 1u));
        for (uint32_t i = 0; i < run; i++) {
            put(&out, message[begin + i]);
        }
        begin += run;
        if (begin == end) {
            break;
        }
        if (run < 254u) {
            begin++; /* the zero that this block implies; at the very end an empty block must follow it */
        }
    }
    put(&out, 0);
    nn_platform_write(out.bytes, out.filled);
}
