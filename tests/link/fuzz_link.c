/* Fuzzes the device's side of the link: random inputs, every second one a frame with a valid CRC, so that it gets
 * past the parser. Built with ASan and UBSan; besides, every frame that is sent must be sound and answer to
 * what was asked. Usage: fuzz_link COUNT SEED. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nn_link.h"
#include "nn_platform.h"
#include "nn_target.h"

#define LONGEST (2u * NN_LINK_FRAME_BYTES)

const char *const nn_platform_unit = "instructions";

static nn_link       device;
static uint64_t      random_state;
static uint64_t      clock_ticks;
static unsigned long frames_sent, executed, refused, garbled, resets, by_status[8];

/* The last reply's header, and what the device sends up to the zero that ends a frame. */
static uint8_t  answered[NN_LINK_HEADER_BYTES];
static uint8_t  sent[2u * NN_LINK_FRAME_BYTES];
static uint32_t sent_size;

static void fail(const char *why)
{
    fprintf(stderr, "fuzz_link: %s\n", why);
    abort();
}

static uint32_t random32(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 16);
}

static uint32_t below(uint32_t limit)
{
    return random32() % limit;
}

/* The test's own inverse of the stuffing, written apart from the code under test. */
static uint32_t unstuff(const uint8_t *from, uint32_t size, uint8_t *to)
{
    uint32_t filled = 0;

    for (uint32_t i = 0; i < size;) {
        uint32_t code = from[i++];
        if (code - 1u > size - i) {
            fail("a block reaches past its frame");
        }
        for (uint32_t k = 1; k < code; k++) {
            to[filled++] = from[i++];
        }
        if (code < 255 && i < size) {
            to[filled++] = 0;
        }
    }
    return filled;
}

static uint32_t slow_crc(const uint8_t *bytes, uint32_t size)
{
    uint32_t crc = 0xffffffffu;

    for (uint32_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc & 1u) != 0 ? (crc >> 1) ^ 0xedb88320u : crc >> 1;
        }
    }
    return ~crc;
}

static void check_sent_frame(void)
{
    uint8_t  message[2u * NN_LINK_FRAME_BYTES];
    uint32_t size = unstuff(sent, sent_size, message);

    if (size < NN_LINK_HEADER_BYTES + 4u || size > NN_LINK_FRAME_BYTES) {
        fail("a frame of an impossible length");
    }
    if (slow_crc(message, size - 4u) != nn_get32(message + size - 4u)) {
        fail("a frame with a wrong CRC");
    }
    frames_sent++;
    if (message[0] == NN_LINK_GARBLED) {
        garbled++;
    } else if ((message[0] & NN_LINK_REPLY) == 0 || message[1] > NN_LINK_STALE) {
        fail("a frame that is no reply");
    } else {
        memcpy(answered, message, sizeof answered);
        by_status[message[1]]++;
        *(message[1] == NN_LINK_OK ? &executed : &refused) += 1;
    }
}

void nn_platform_write(const uint8_t *bytes, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        if (bytes[i] != 0) {
            if (sent_size == sizeof sent) {
                fail("an endless frame");
            }
            sent[sent_size++] = bytes[i];
        } else if (sent_size > 0) {
            check_sent_frame();
            sent_size = 0;
        }
    }
}

uint64_t nn_platform_ticks(void)
{
    return clock_ticks += 3;
}

uint32_t nn_platform_hertz(void)
{
    return 1;
}

void nn_platform_stack(uint32_t *used, uint32_t *size)
{
    *used = 1;
    *size = 2;
}

void nn_platform_reset(void)
{
    resets++;
}

static void feed(const uint8_t *bytes, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        nn_link_receive(&device, bytes[i]);
    }
}

static void fill(uint8_t *bytes, uint32_t size)
{
    uint32_t kind = below(4);

    for (uint32_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)(kind == 0 ? random32() : kind == 1 ? 0 : kind == 2 ? 0xff : below(4));
    }
}

static uint32_t stuff(const uint8_t *from, uint32_t size, uint8_t *to)
{
    uint32_t code_at = 0;
    uint32_t filled = 1;

    for (uint32_t i = 0; i < size; i++) {
        if (from[i] != 0) {
            to[filled++] = from[i];
        }
        if (from[i] == 0 || filled - code_at == 255u) {
            to[code_at] = (uint8_t)(filled - code_at);
            code_at = filled++;
        }
    }
    to[code_at] = (uint8_t)(filled - code_at);
    return filled;
}

/* Small numbers and numbers next to the limits, where the mistakes are. */
static uint32_t odd_number(void)
{
    static const uint32_t borders[] = {0, 1, 3, 4, 8, 12, 24, 0x7fff, 0x8000, 0xffff, 0x10000, 0x7fffffff,
                                       0xfffffff8u, 0xffffffffu, NN_LINK_PAYLOAD};
    uint32_t              kind = below(4);

    if (kind == 0) {
        return below(30);
    }
    if (kind == 3) {
        return below(1024);
    }
    return kind == 1 ? borders[below(sizeof borders / sizeof borders[0])] + below(3) - 1u : random32();
}

/* A request that is right in most ways, so that what is wrong with it is met deep inside. */
static uint32_t make_request(uint8_t *message)
{
    uint32_t type = below(16) == 0 ? below(256) : 1u + below(NN_LINK_RESET);
    uint32_t size = NN_LINK_HEADER_BYTES;

    if (type == NN_LINK_RESET && below(8) != 0) {
        type = NN_LINK_RUN;
    }
    if (type == NN_LINK_HELLO && below(4) != 0) {
        type = NN_LINK_READ;
    }
    if (!device.in_session && below(2) != 0) {
        type = NN_LINK_HELLO;
    }
    message[0] = (uint8_t)type;
    message[1] = 0;
    nn_put16(message + 2, (uint16_t)(device.sequence + (below(16) == 0 ? random32() : below(16) != 0 ? 1u : 0u)));
    nn_put32(message + 4, type == NN_LINK_HELLO || below(32) == 0 ? random32() : device.session);
    if (below(8) == 0) {
        uint32_t data = below(NN_LINK_FIELDS_BYTES + NN_LINK_PAYLOAD + 1u);
        fill(message + size, data);
        return size + data;
    }
    if (type == NN_LINK_DESCRIBE) {
        nn_put32(message + size, odd_number());
        nn_put16(message + size + 4, (uint16_t)odd_number());
        size += 6;
    } else if (type == NN_LINK_WRITE) {
        uint32_t data = below(4) == 0 ? below(NN_LINK_PAYLOAD + 1u) : below(26);
        nn_put16(message + size, (uint16_t)below(3));
        nn_put32(message + size + 2, odd_number());
        fill(message + size + 6, data);
        size += 6 + data;
    } else if (type == NN_LINK_STEPS) {
        nn_put32(message + size, below(4) == 0 ? odd_number() : device.next_step);
        nn_put32(message + size + 4, below(4) == 0 ? odd_number() : device.next_step + below(3));
        size += 8;
    } else if (type == NN_LINK_READ) {
        message[size] = (uint8_t)below(6);
        message[size + 1] = 0;
        nn_put16(message + size + 2, (uint16_t)(below(8) == 0 ? odd_number() : below(3)));
        nn_put32(message + size + 4, below(2) == 0 ? odd_number() : below(4));
        nn_put16(message + size + 8, (uint16_t)(below(2) == 0 ? odd_number() : below(12)));
        size += 10;
    }
    return size;
}

static void feed_valid_frame(void)
{
    uint8_t  message[NN_LINK_FRAME_BYTES + 8u];
    uint8_t  line[LONGEST];
    uint32_t size = make_request(message);
    uint16_t last;
    unsigned long before;

    nn_put32(message + size, slow_crc(message, size));
    size = stuff(message, size + 4u, line);
    line[size++] = 0;
    nn_link_receive(&device, 0); /* ends the noise, which may have been a sound frame after all */
    last = device.sequence;
    before = executed + refused;
    feed(line, size);
    if (executed + refused != before + ((message[0] & NN_LINK_REPLY) == 0 ? 1u : 0u)) {
        fail("not one reply to one request");
    }
    if ((message[0] & NN_LINK_REPLY) == 0 && memcmp(message + 2, answered + 2, 6) != 0) {
        fail("a reply to another request");
    }
    if (answered[0] != (message[0] | NN_LINK_REPLY) && nn_get16(message + 2) != last &&
        (message[0] & NN_LINK_REPLY) == 0) {
        fail("a reply of another type");
    }
}

/* Noise, or a frame with a few bytes changed, cut or doubled. */
static void feed_noise(void)
{
    uint8_t  message[NN_LINK_FRAME_BYTES + 8u];
    uint8_t  line[LONGEST];
    uint32_t size;

    if (below(2) == 0) {
        size = below(below(8) == 0 ? LONGEST : 64u);
        fill(line, size);
        feed(line, size);
        return;
    }
    size = make_request(message);
    nn_put32(message + size, slow_crc(message, size));
    size = stuff(message, size + 4u, line);
    for (uint32_t changes = 1u + below(4); changes > 0; changes--) {
        line[below(size)] = (uint8_t)random32();
    }
    size = below(4) == 0 ? below(size) : size;
    feed(line, size);
    if (below(4) != 0) {
        nn_link_receive(&device, 0);
    }
}

int main(int count_of_words, char **words)
{
    unsigned long count = count_of_words > 1 ? strtoul(words[1], 0, 10) : 1000;

    random_state = 0x9e3779b97f4a7c15u ^ (count_of_words > 2 ? strtoul(words[2], 0, 10) : 1);
    nn_link_init(&device);
    for (unsigned long i = 0; i < count; i++) {
        if (i % 2 == 0) {
            feed_valid_frame();
        } else {
            feed_noise();
        }
    }
    printf("%lu inputs, %lu with a valid CRC; %lu frames sent: %lu executed, %lu refused, %lu garbled; %lu resets\n",
           count, (count + 1) / 2, frames_sent, executed, refused, garbled, resets);
    for (unsigned status = 0; status <= NN_LINK_STALE; status++) {
        printf("status %u: %lu\n", status, by_status[status]);
    }
    return 0;
}
