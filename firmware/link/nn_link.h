/* The device's side of the link: receives requests, executes them, replies. docs/link.md has the byte layouts.
 *
 * Feed it every received byte. It never allocates or waits, reads no clock except to measure, and makes no assumption
 * about the received bytes. */
#ifndef NN_LINK_H
#define NN_LINK_H

#include <stdint.h>

#include "nn_frame.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Maximum data bytes in one frame. Two frames are buffered: the request being received and the last reply. */
#ifndef NN_LINK_PAYLOAD
#define NN_LINK_PAYLOAD 1024u
#endif

#if NN_LINK_PAYLOAD < 64 || NN_LINK_PAYLOAD > 32768
#error "NN_LINK_PAYLOAD must be 64 to 32768"
#endif

#define NN_LINK_VERSION      1u
#define NN_LINK_HEADER_BYTES 8u
#define NN_LINK_FIELDS_BYTES 12u /* the longest fixed fields before a request's data */
#define NN_LINK_FRAME_BYTES  (NN_LINK_HEADER_BYTES + NN_LINK_FIELDS_BYTES + NN_LINK_PAYLOAD + NN_FRAME_CRC_BYTES)

typedef enum nn_link_type {
    NN_LINK_HELLO = 0x01,
    NN_LINK_DESCRIBE = 0x02,
    NN_LINK_WRITE = 0x03,
    NN_LINK_RUN = 0x04,
    NN_LINK_STEPS = 0x05,
    NN_LINK_PROFILE = 0x06,
    NN_LINK_READ = 0x07,
    NN_LINK_STACK = 0x08,
    NN_LINK_INIT = 0x09,
    NN_LINK_RESET = 0x0a,
    NN_LINK_LOG = 0x60,     /* unsolicited: text */
    NN_LINK_FAULT = 0x61,   /* unsolicited: the processor's state at a fault */
    NN_LINK_GARBLED = 0x62, /* unsolicited: a corrupt frame arrived, resend at once */
    NN_LINK_REPLY = 0x80    /* added to the request's type */
} nn_link_type;

typedef enum nn_link_status {
    NN_LINK_OK = 0,
    NN_LINK_UNKNOWN = 1,    /* no such command */
    NN_LINK_MALFORMED = 2,  /* a request of the wrong length */
    NN_LINK_RANGE = 3,      /* no such region, or not that many bytes in it */
    NN_LINK_MODEL = 4,      /* the model reported an error; its code follows */
    NN_LINK_ORDER = 5,      /* steps out of order, or an output read before a complete run */
    NN_LINK_NO_SESSION = 6, /* say hello first; after a restart this is the answer to everything else */
    NN_LINK_STALE = 7       /* older than the last request */
} nn_link_status;

/* The first word of a fault report defines the others; docs/link.md lists them. */
typedef enum nn_link_fault_kind {
    NN_LINK_FAULT_CORTEX_M = 1,
    NN_LINK_FAULT_RISCV = 2,
    NN_LINK_FAULT_SIGNAL = 3,
    NN_LINK_FAULT_CORE = 4 /* another core was lost; the device continues */
} nn_link_fault_kind;

#define NN_LINK_FAULT_WORDS 16u

typedef struct nn_link {
    uint8_t         request[NN_LINK_FRAME_BYTES];
    uint8_t         reply[NN_LINK_FRAME_BYTES]; /* the last one, kept to answer a repeated request */
    uint32_t        reply_size;
    nn_frame_reader reader;
    uint32_t        session;
    uint32_t        next_step;  /* the step that may run next */
    uint16_t        sequence;   /* of the last request executed */
    uint8_t         in_session; /* a host has said hello since the start */
    uint8_t         complete;   /* the outputs belong to a finished run */
} nn_link;

void nn_link_init(nn_link *link);
void nn_link_receive(nn_link *link, uint8_t byte);

/* Text for the host, split into frames as needed. Not from an interrupt: it could interleave with a reply. */
void nn_link_log(const char *text);

/* A fault report. For fault handlers: it needs no nn_link and about 320 bytes of stack. */
void nn_link_fault(nn_link_fault_kind kind, const uint32_t *words, uint32_t count);

#ifdef __cplusplus
}
#endif

#endif
