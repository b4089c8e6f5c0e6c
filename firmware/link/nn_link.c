#include "nn_link.h"

#include <string.h>

#include "nn_platform.h"
#include "nn_target.h"

#define SHORT_DATA_BYTES 68u /* the longest message that is built outside the reply buffer: a fault report */

/* Otherwise the compiler may move work of the model out of the measured interval. */
#if defined(__GNUC__)
#define BARRIER() __asm__ volatile("" ::: "memory")
#else
#define BARRIER() ((void)0)
#endif

/* A request being executed: its data, and the buffer for its reply. */
typedef struct exchange {
    const uint8_t *data;
    uint32_t       size;
    uint8_t       *answer;
    uint32_t       answer_size;
} exchange;

static void put_header(uint8_t *message, uint32_t type, nn_link_status status, uint16_t sequence, uint32_t session)
{
    message[0] = (uint8_t)type;
    message[1] = (uint8_t)status;
    nn_put16(message + 2, sequence);
    nn_put32(message + 4, session);
}

/* Sends an unsolicited message, or a refusal that keeps the remembered reply. */
static void send_short(const uint8_t header[NN_LINK_HEADER_BYTES], const uint8_t *data, uint32_t size)
{
    uint8_t message[NN_LINK_HEADER_BYTES + SHORT_DATA_BYTES + NN_FRAME_CRC_BYTES];

    memcpy(message, header, NN_LINK_HEADER_BYTES);
    if (size > 0) {
        memcpy(message + NN_LINK_HEADER_BYTES, data, size);
    }
    nn_frame_send(message, NN_LINK_HEADER_BYTES + size);
}

static void send_unsolicited(nn_link_type type, const uint8_t *data, uint32_t size)
{
    uint8_t header[NN_LINK_HEADER_BYTES];

    put_header(header, type, NN_LINK_OK, 0, 0);
    send_short(header, data, size);
}

void nn_link_log(const char *text)
{
    while (*text != 0) {
        uint32_t size = 0;
        while (size < SHORT_DATA_BYTES && text[size] != 0) {
            size++;
        }
        send_unsolicited(NN_LINK_LOG, (const uint8_t *)text, size);
        text += size;
    }
}

void nn_link_fault(nn_link_fault_kind kind, const uint32_t *words, uint32_t count)
{
    uint8_t data[4u + 4u * NN_LINK_FAULT_WORDS];

    if (count > NN_LINK_FAULT_WORDS) {
        count = NN_LINK_FAULT_WORDS;
    }
    nn_put32(data, (uint32_t)kind);
    for (uint32_t i = 0; i < count; i++) {
        nn_put32(data + 4u + 4u * i, words[i]);
    }
    send_unsolicited(NN_LINK_FAULT, data, 4u + 4u * count);
}

void nn_link_init(nn_link *link)
{
    memset(link, 0, sizeof *link);
    nn_frame_reader_init(&link->reader, link->request, NN_LINK_FRAME_BYTES);
}

static void new_sequence(nn_link *link)
{
    nn_target_init();
    link->next_step = 0;
    link->complete = 0;
}

static uint8_t big_endian(void)
{
    const uint16_t last = 1;

    return ((const uint8_t *)&last)[1];
}

static nn_link_status hello(exchange *x)
{
    uint32_t unit_size = 0;

    while (unit_size < 16u && nn_platform_unit[unit_size] != 0) {
        unit_size++;
    }
    x->answer[0] = NN_LINK_VERSION;
    x->answer[1] = big_endian();
    nn_put16(x->answer + 2, NN_LINK_PAYLOAD);
    nn_put32(x->answer + 4, nn_target_descriptor_size);
    nn_put32(x->answer + 8, nn_frame_crc(0, (const uint8_t *)nn_target_descriptor, nn_target_descriptor_size));
    nn_put32(x->answer + 12, nn_target_steps());
    nn_put32(x->answer + 16, nn_platform_hertz());
    memcpy(x->answer + 20, nn_platform_unit, unit_size);
    x->answer_size = 20u + unit_size;
    return NN_LINK_OK;
}

static int within(uint32_t offset, uint32_t length, uint32_t size)
{
    return offset <= size && length <= size - offset;
}

static nn_link_status answer_with(exchange *x, const uint8_t *bytes, uint32_t size, const uint8_t *where)
{
    uint32_t offset = nn_get32(where);
    uint32_t length = nn_get16(where + 4);

    if (length > NN_LINK_PAYLOAD || !within(offset, length, size)) {
        return NN_LINK_RANGE;
    }
    if (length > 0) {
        memcpy(x->answer, bytes + offset, length);
    }
    x->answer_size = length;
    return NN_LINK_OK;
}

static nn_link_status describe(exchange *x)
{
    return answer_with(x, (const uint8_t *)nn_target_descriptor, nn_target_descriptor_size, x->data);
}

static nn_link_status write_input(nn_link *link, exchange *x)
{
    uint32_t size = 0;
    uint32_t length = x->size - 6u;
    uint32_t offset = nn_get32(x->data + 2);
    uint8_t *region = nn_target_region(NN_TARGET_INPUT, nn_get16(x->data), &size);

    if (region == 0 || !within(offset, length, size)) {
        return NN_LINK_RANGE;
    }
    if (length > 0) {
        memcpy(region + offset, x->data + 6, length);
    }
    link->next_step = 0;
    link->complete = 0;
    return NN_LINK_OK;
}

static nn_link_status read_region(const nn_link *link, exchange *x)
{
    uint32_t kind = x->data[0];
    uint32_t size = 0;
    uint8_t *region = nn_target_region(kind, nn_get16(x->data + 2), &size);

    if (region == 0) {
        return NN_LINK_RANGE;
    }
    if (kind == NN_TARGET_OUTPUT && !link->complete) {
        return NN_LINK_ORDER;
    }
    if (kind == NN_TARGET_STEP_OUTPUT && nn_get16(x->data + 2) + 1u != link->next_step) {
        return NN_LINK_ORDER; /* a later step may have taken its memory */
    }
    return answer_with(x, region, size, x->data + 4);
}

static nn_link_status answer_run(exchange *x, int code, uint64_t ticks)
{
    if (code != 0) {
        nn_put32(x->answer, (uint32_t)code);
        x->answer_size = 4;
        return NN_LINK_MODEL;
    }
    nn_put64(x->answer, ticks);
    x->answer_size = 8;
    return NN_LINK_OK;
}

static nn_link_status run(nn_link *link, exchange *x)
{
    uint64_t begin;
    uint64_t end;
    int      code;

    link->next_step = 0;
    begin = nn_platform_ticks();
    BARRIER();
    code = nn_target_run();
    BARRIER();
    end = nn_platform_ticks();
    link->complete = (uint8_t)(code == 0);
    return answer_run(x, code, end - begin);
}

/* Runs steps [begin, end); stores the cost of each if `each` is given. */
static nn_link_status run_steps(nn_link *link, exchange *x, uint32_t begin, uint32_t end, uint8_t *each)
{
    uint64_t total = 0;

    link->complete = 0;
    for (uint32_t i = begin; i < end; i++) {
        uint64_t before = nn_platform_ticks();
        uint64_t ticks;
        int      code;

        BARRIER();
        code = nn_target_step(i);
        BARRIER();
        ticks = nn_platform_ticks() - before;
        if (code != 0) {
            link->next_step = 0;
            return answer_run(x, code, 0);
        }
        total += ticks;
        if (each != 0) {
            nn_put64(each + 8u * i, ticks);
        }
    }
    link->next_step = end;
    link->complete = (uint8_t)(end == nn_target_steps());
    return answer_run(x, 0, total);
}

static nn_link_status steps(nn_link *link, exchange *x)
{
    uint32_t begin = nn_get32(x->data);
    uint32_t end = nn_get32(x->data + 4);

    if (begin > end || end > nn_target_steps()) {
        return NN_LINK_RANGE;
    }
    if (begin != 0 && begin != link->next_step) {
        return NN_LINK_ORDER;
    }
    return run_steps(link, x, begin, end, 0);
}

static nn_link_status profile(nn_link *link, exchange *x)
{
    uint32_t size = 0;
    uint8_t *each = nn_target_region(NN_TARGET_TICKS, 0, &size);

    if (each == 0 || size / 8u < nn_target_steps()) {
        return NN_LINK_RANGE;
    }
    return run_steps(link, x, 0, nn_target_steps(), each);
}

static nn_link_status stack(exchange *x)
{
    uint32_t used = 0;
    uint32_t size = 0;

    nn_platform_stack(&used, &size);
    nn_put32(x->answer, used);
    nn_put32(x->answer + 4, size);
    x->answer_size = 8;
    return NN_LINK_OK;
}

static nn_link_status init(nn_link *link, exchange *x)
{
    uint64_t begin = nn_platform_ticks();

    BARRIER();
    new_sequence(link);
    BARRIER();
    return answer_run(x, 0, nn_platform_ticks() - begin);
}

/* The required size of a request's data; for a write, the minimum. */
static uint32_t fields_size(uint32_t type)
{
    switch (type) {
    case NN_LINK_DESCRIBE:
    case NN_LINK_WRITE:
        return 6;
    case NN_LINK_STEPS:
        return 8;
    case NN_LINK_READ:
        return 10;
    default:
        return 0;
    }
}

static nn_link_status execute(nn_link *link, uint32_t type, exchange *x)
{
    uint32_t fields = fields_size(type);

    if (x->size < fields || (x->size > fields && type != NN_LINK_WRITE)) {
        return NN_LINK_MALFORMED;
    }
    switch (type) {
    case NN_LINK_HELLO:
        return hello(x);
    case NN_LINK_DESCRIBE:
        return describe(x);
    case NN_LINK_WRITE:
        return write_input(link, x);
    case NN_LINK_RUN:
        return run(link, x);
    case NN_LINK_STEPS:
        return steps(link, x);
    case NN_LINK_PROFILE:
        return profile(link, x);
    case NN_LINK_READ:
        return read_region(link, x);
    case NN_LINK_STACK:
        return stack(x);
    case NN_LINK_INIT:
        return init(link, x);
    case NN_LINK_RESET:
        return NN_LINK_OK; /* after the reply is sent */
    default:
        return NN_LINK_UNKNOWN;
    }
}

/* Whether to execute a request. A repeated one is answered from memory: it may have run already. */
static int is_new(nn_link *link, uint32_t type, uint16_t sequence, uint32_t session)
{
    uint16_t ahead = (uint16_t)(sequence - link->sequence);
    uint8_t  header[NN_LINK_HEADER_BYTES];

    if (link->in_session && session == link->session) {
        if (ahead == 0) {
            nn_frame_send(link->reply, link->reply_size);
            return 0;
        }
        if (ahead < 0x8000u) {
            return 1;
        }
        put_header(header, type | NN_LINK_REPLY, NN_LINK_STALE, sequence, session);
    } else if (type == NN_LINK_HELLO) {
        link->in_session = 1;
        link->session = session;
        new_sequence(link);
        return 1;
    } else {
        put_header(header, type | NN_LINK_REPLY, NN_LINK_NO_SESSION, sequence, session);
    }
    send_short(header, 0, 0);
    return 0;
}

static void handle(nn_link *link, uint32_t size)
{
    uint32_t       type = link->request[0];
    uint16_t       sequence = nn_get16(link->request + 2);
    uint32_t       session = nn_get32(link->request + 4);
    exchange       x;
    nn_link_status status;

    if (size < NN_LINK_HEADER_BYTES || (type & NN_LINK_REPLY) != 0 || !is_new(link, type, sequence, session)) {
        return;
    }
    x.data = link->request + NN_LINK_HEADER_BYTES;
    x.size = size - NN_LINK_HEADER_BYTES;
    x.answer = link->reply + NN_LINK_HEADER_BYTES;
    x.answer_size = 0;
    status = execute(link, type, &x);
    link->sequence = sequence;
    link->reply_size = NN_LINK_HEADER_BYTES + x.answer_size;
    put_header(link->reply, type | NN_LINK_REPLY, status, sequence, session);
    nn_frame_send(link->reply, link->reply_size);
    if (type == NN_LINK_RESET && status == NN_LINK_OK) {
        nn_link_init(link);
        nn_platform_reset();
    }
}

void nn_link_receive(nn_link *link, uint8_t byte)
{
    uint32_t size = 0;

    switch (nn_frame_take(&link->reader, byte, &size)) {
    case NN_FRAME_VALID:
        handle(link, size);
        break;
    case NN_FRAME_GARBLED:
        send_unsolicited(NN_LINK_GARBLED, 0, 0);
        break;
    case NN_FRAME_NONE:
        break;
    }
}
