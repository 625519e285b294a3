/* The messages that a rank sends and receives in a transfer, for ranks without shared memory.
 *
 * Pure arithmetic: message number i of the ones it sends, and of the ones it receives, is computed from
 * the transfer alone, so that both ends of a message agree on its size without a word. Between two ranks
 * messages keep their order.
 *
 * Rings (all_reduce, reduce_scatter, all_gather) send to the next place and receive from the one before.
 * Segments are cut into chunks, and chunks go around in blocks of SF_RING_BLOCK:
 *
 *     for each block: for each round: for each chunk of the block: one message
 *
 * so that a chunk is combined while the others of its block are on the wire, and memory between rounds
 * is that of two blocks, however long the tensor. Round u sends segment (place - 1 - u): the first n - 1
 * rounds reduce, after them every place has its own segment, and n - 1 more gather. A reduce_scatter is
 * the first half, an all_gather the second. A broadcast is a chain of the places after the source; an
 * all_to_all goes to the places one, two, ... further on; small transfers travel with their announcement. */
#ifndef SF_RUN_COMM_MESSAGE_SCHEDULE_H
#define SF_RUN_COMM_MESSAGE_SCHEDULE_H

#include "run/comm/comm_backend.h"

enum {
    SF_CHUNK_BYTES = 256 << 10, /* of a chunk that is combined, passed on or sent to a host */
    SF_RING_BLOCK = 4,          /* chunks of a block */
    SF_RING_QUEUE = 2 * SF_RING_BLOCK, /* messages each way that may be under way */
    SF_INLINE_BYTES = 3584, /* to one place: at most this travels with the announcement */
};

typedef enum sf_hop_side { SF_SIDE_IN, SF_SIDE_OUT, SF_SIDE_SLOT } sf_hop_side;

/* One message. A receive that combines goes into its slot first (number modulo SF_RING_QUEUE), and then
 * combined with the same elements of `in` to its side. */
typedef struct sf_hop {
    int peer;             /* its place */
    sf_hop_side side;     /* where its elements come from, or go to */
    bool combine;         /* of a receive */
    int segment;          /* with elements [first, first + count) */
    int64_t first, count; /* none: there is no message */
    int64_t slot;         /* number of the receive whose slot is sent */
    int64_t receives;     /* how many receives, */
    int64_t sends;        /* and sends, must be complete before this one may begin */
} sf_hop;

typedef struct sf_schedule {
    const sf_request *request;
    const sf_collective_info *info;
    int members, place;
    bool inlined;
    int64_t sends, receives; /* messages; 0 when inlined */
    int64_t chunks;          /* of a segment */
    int64_t chunk_bytes;     /* of the longest */
    int rounds, first_round; /* of a ring */
    bool in_place;
} sf_schedule;

void sf_schedule_init(const sf_request *request, sf_schedule *out);
sf_hop sf_schedule_send(const sf_schedule *schedule, int64_t index);
sf_hop sf_schedule_receive(const sf_schedule *schedule, int64_t index);

/* Whether this rank sends to, or receives from, that place. */
bool sf_schedule_sends_to(const sf_schedule *schedule, int place);
bool sf_schedule_hears_from(const sf_schedule *schedule, int place);

/* The memory of the elements of a segment from `first` on, and how many of at most `count` lie there
 * together. */
char *sf_schedule_memory(const sf_schedule *schedule, sf_hop_side side, int segment, int64_t first,
                         int64_t count, int64_t *run);

/* How many elements of the segment of its own place a rank copies for itself. */
int64_t sf_schedule_kept(const sf_schedule *schedule);

/* Inlined: how many bytes go to a place, these bytes, and the end of it, when the bytes from all places
 * are there (payloads[place]; the own one and those not heard from are not looked at). `scratch` has
 * room for one pointer per member. */
int64_t sf_schedule_inline_bytes(const sf_schedule *schedule);
void sf_schedule_inline_pack(const sf_schedule *schedule, int place, char *out);
void sf_schedule_inline_finish(const sf_schedule *schedule, const char *const *payloads,
                               const void **scratch);

#endif
