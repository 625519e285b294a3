#include "run/comm/message_schedule.h"

#include <string.h>

#include "base/checked.h"

enum { DIRECT_BYTES = 16 << 20 }; /* of a chunk that only goes from one rank of a host to another */

static int wrap_place(int64_t place, int members)
{
    return (int)((place % members + members) % members);
}

/* Elements that lie together in a part's memory. */
typedef struct stretch {
    int64_t first, count;
} stretch;

static int64_t segment_count(const sf_transfer_part *part, int members, int segment)
{
    return sf_comm_segment(part->count, members, segment + 1) -
           sf_comm_segment(part->count, members, segment);
}

static bool has_segments(const sf_schedule *s)
{
    return s->info->reduces && s->info->gathers;
}

/* The range of a segment in a part, on that side. */
static stretch find_stretch(const sf_schedule *s, sf_hop_side side, const sf_transfer_part *part,
                            int segment)
{
    if (has_segments(s))
        return (stretch){sf_comm_segment_of(part, s->members, segment),
                         segment_count(part, s->members, segment)};
    bool blocks = side == SF_SIDE_IN ? s->info->in_blocks : s->info->out_blocks;
    return (stretch){blocks ? segment * sf_comm_stride(part) : 0, part->count};
}

/* The elements of a segment, all parts together. The first segment is the longest. */
static int64_t segment_length(const sf_schedule *s, int segment)
{
    const sf_transfer *transfer = &s->request->transfer;
    int64_t length = 0;
    for (int i = 0; i < transfer->nparts; i++)
        length += find_stretch(s, SF_SIDE_IN, &transfer->parts[i], segment).count;
    return length;
}

int64_t sf_schedule_inline_bytes(const sf_schedule *s)
{
    const sf_transfer *transfer = &s->request->transfer;
    int64_t count = 0;
    for (int i = 0; i < transfer->nparts; i++)
        count += transfer->parts[i].count;
    return count * s->request->bytes;
}

bool sf_schedule_sends_to(const sf_schedule *s, int place)
{
    const sf_transfer *transfer = &s->request->transfer;
    if (place == s->place)
        return false;
    if (s->info->route == SF_ROUTE_PEER)
        return place == transfer->to;
    if (s->inlined)
        return s->info->route != SF_ROUTE_CHAIN || s->place == transfer->from;
    if (s->info->route == SF_ROUTE_DIRECT)
        return true;
    if (place != wrap_place(s->place + 1, s->members))
        return false;
    return s->info->route != SF_ROUTE_CHAIN || place != transfer->from;
}

bool sf_schedule_hears_from(const sf_schedule *s, int place)
{
    const sf_transfer *transfer = &s->request->transfer;
    if (place == s->place)
        return false;
    if (s->info->route == SF_ROUTE_PEER)
        return place == transfer->from;
    if (s->inlined)
        return s->info->route != SF_ROUTE_CHAIN || place == transfer->from;
    if (s->info->route == SF_ROUTE_DIRECT)
        return true;
    if (place != wrap_place((int64_t)s->place - 1, s->members))
        return false;
    return s->info->route != SF_ROUTE_CHAIN || s->place != transfer->from;
}

static void count_messages(sf_schedule *s)
{
    int before = wrap_place((int64_t)s->place - 1, s->members);
    int after = wrap_place(s->place + 1, s->members);
    const sf_transfer *transfer = &s->request->transfer;
    s->rounds = 1;
    switch (s->info->route) {
    case SF_ROUTE_RING:
        s->first_round = s->info->reduces ? 0 : s->members - 1;
        s->rounds = (s->info->reduces + s->info->gathers) * (s->members - 1);
        break;
    case SF_ROUTE_DIRECT:
        s->rounds = s->members - 1;
        break;
    case SF_ROUTE_PEER:
        before = transfer->from < 0 ? s->place : transfer->from;
        after = transfer->to < 0 ? s->place : transfer->to;
        break;
    case SF_ROUTE_CHAIN:
    case SF_ROUTE_NONE:
        break;
    }
    s->sends = sf_schedule_sends_to(s, after) ? s->chunks * s->rounds : 0;
    s->receives = sf_schedule_hears_from(s, before) ? s->chunks * s->rounds : 0;
}

void sf_schedule_init(const sf_request *request, sf_schedule *out)
{
    const sf_transfer *transfer = &request->transfer;
    *out = (sf_schedule){.request = request,
                         .info = sf_collective_get(transfer->kind),
                         .members = request->group->count,
                         .place = request->group->place};
    out->inlined = sf_schedule_inline_bytes(out) <= SF_INLINE_BYTES;
    if (out->inlined)
        return;
    bool onward = out->info->route == SF_ROUTE_RING || out->info->route == SF_ROUTE_CHAIN;
    bool passed_on = onward && (out->members > 2 || out->info->reduces);
    bool cut = passed_on || request->group->spans_hosts;
    int64_t longest = segment_length(out, 0);
    out->chunks = sf_ceil_div(longest * request->bytes, cut ? SF_CHUNK_BYTES : DIRECT_BYTES);
    out->chunk_bytes = sf_ceil_div(longest, out->chunks) * request->bytes;
    for (int i = 0; i < transfer->nparts; i++)
        out->in_place |= transfer->parts[i].in == transfer->parts[i].out;
    count_messages(out);
}

/* Fills in the elements of chunk `chunk` of a segment. */
static void cut_chunk(const sf_schedule *s, int segment, int64_t chunk, sf_hop *move)
{
    int64_t length = segment_length(s, segment);
    move->segment = segment;
    move->first = sf_comm_segment(length, s->chunks, chunk);
    move->count = sf_comm_segment(length, s->chunks, chunk + 1) - move->first;
}

/* The position of message `index` of a ring: its round, its chunk, and how many chunks its block
 * has. */
typedef struct ring_spot {
    int64_t round, chunk, width;
} ring_spot;

static ring_spot find_spot(const sf_schedule *s, int64_t index)
{
    int64_t whole = (int64_t)SF_RING_BLOCK * s->rounds, block = index / whole, rest = index % whole;
    int64_t width = s->chunks - block * SF_RING_BLOCK;
    width = width < SF_RING_BLOCK ? width : SF_RING_BLOCK;
    return (ring_spot){.round = s->first_round + rest / width,
                       .chunk = block * SF_RING_BLOCK + rest % width,
                       .width = width};
}

static sf_hop ring_send(const sf_schedule *s, int64_t index)
{
    ring_spot spot = find_spot(s, index);
    bool first = spot.round == s->first_round, reduced = spot.round >= s->members - 1;
    sf_hop move = {.peer = wrap_place(s->place + 1, s->members),
                   .side = first     ? SF_SIDE_IN
                           : reduced ? SF_SIDE_OUT
                                     : SF_SIDE_SLOT,
                   .slot = index - spot.width,
                   .receives = first ? 0 : index - spot.width + 1};
    cut_chunk(s, wrap_place(s->place - 1 - spot.round, s->members), spot.chunk, &move);
    return move;
}

/* A slot is reused once its content has been sent. In place, memory that was sent in the first half
 * must have left before the second half writes there. */
static sf_hop ring_receive(const sf_schedule *s, int64_t index)
{
    ring_spot spot = find_spot(s, index);
    int64_t last = s->members - 2;
    sf_hop move = {.peer = wrap_place((int64_t)s->place - 1, s->members),
                   .side = spot.round < last ? SF_SIDE_SLOT : SF_SIDE_OUT,
                   .combine = spot.round <= last};
    if (s->first_round == 0)
        move.sends = index - SF_RING_BLOCK + 1;
    if (s->in_place && spot.round > last) {
        int64_t sent = index - spot.width * (s->members - 1) + 1;
        move.sends = sent > move.sends ? sent : move.sends;
    }
    cut_chunk(s, wrap_place(s->place - 2 - spot.round, s->members), spot.chunk, &move);
    return move;
}

/* An all_to_all: the chunks for one place after those for another. */
static sf_hop direct_move(const sf_schedule *s, int64_t index, int direction, sf_hop_side side)
{
    int64_t distance = 1 + index / s->chunks;
    sf_hop move = {.peer = wrap_place(s->place + direction * distance, s->members), .side = side};
    cut_chunk(s, move.peer, index % s->chunks, &move);
    return move;
}

sf_hop sf_schedule_send(const sf_schedule *s, int64_t index)
{
    const sf_transfer *transfer = &s->request->transfer;
    bool is_chain = s->info->route == SF_ROUTE_CHAIN;
    if (s->info->route == SF_ROUTE_DIRECT)
        return direct_move(s, index, 1, SF_SIDE_IN);
    if (s->info->route == SF_ROUTE_RING)
        return ring_send(s, index);
    bool passes = is_chain && s->place != transfer->from;
    int next = wrap_place(s->place + 1, s->members);
    sf_hop move = {.peer = is_chain ? next : transfer->to,
                   .side = passes ? SF_SIDE_OUT : SF_SIDE_IN,
                   .receives = passes ? index + 1 : 0};
    cut_chunk(s, 0, index, &move);
    return move;
}

sf_hop sf_schedule_receive(const sf_schedule *s, int64_t index)
{
    const sf_transfer *transfer = &s->request->transfer;
    bool is_chain = s->info->route == SF_ROUTE_CHAIN;
    if (s->info->route == SF_ROUTE_DIRECT)
        return direct_move(s, index, -1, SF_SIDE_OUT);
    if (s->info->route == SF_ROUTE_RING)
        return ring_receive(s, index);
    int before = wrap_place((int64_t)s->place - 1, s->members);
    sf_hop move = {.peer = is_chain ? before : transfer->from, .side = SF_SIDE_OUT};
    cut_chunk(s, 0, index, &move);
    return move;
}

static char *memory_at(const sf_schedule *s, sf_hop_side side, const sf_transfer_part *part,
                       int64_t element)
{
    char *memory = side == SF_SIDE_IN ? (char *)(uintptr_t)part->in : part->out;
    return memory + element * s->request->bytes;
}

/* Parts lie apart: walks to the one that holds element `first` of the segment. */
char *sf_schedule_memory(const sf_schedule *s, sf_hop_side side, int segment, int64_t first,
                         int64_t count, int64_t *run)
{
    const sf_transfer *transfer = &s->request->transfer;
    for (int i = 0; i < transfer->nparts; i++) {
        const sf_transfer_part *part = &transfer->parts[i];
        stretch here = find_stretch(s, side, part, segment);
        if (first < here.count) {
            *run = here.count - first < count ? here.count - first : count;
            return memory_at(s, side, part, here.first + first);
        }
        first -= here.count;
    }
    *run = 0;
    return NULL;
}

int64_t sf_schedule_kept(const sf_schedule *s)
{
    bool from_one = s->info->route == SF_ROUTE_CHAIN || s->info->route == SF_ROUTE_PEER;
    bool self = from_one ? s->request->transfer.from == s->place : s->info->out_blocks;
    return self ? segment_length(s, s->place) : 0;
}

void sf_schedule_inline_pack(const sf_schedule *s, int place, char *out)
{
    const sf_transfer *transfer = &s->request->transfer;
    bool all = has_segments(s);
    for (int i = 0; i < transfer->nparts; i++) {
        const sf_transfer_part *part = &transfer->parts[i];
        for (int p = all ? 0 : place; p < (all ? s->members : place + 1); p++) {
            stretch own = find_stretch(s, SF_SIDE_IN, part, p);
            size_t size = (size_t)(own.count * s->request->bytes);
            if (size > 0)
                memcpy(out, memory_at(s, SF_SIDE_IN, part, own.first), size);
            out += size;
        }
    }
}

/* Folds `count` elements at `at` in every payload and at `own` in our memory. */
static void fold_inline(const sf_schedule *s, const char *const *payloads, const void **sources,
                        int64_t at, const char *own, int segment, char *out, int64_t count)
{
    for (int p = 0; p < s->members; p++)
        sources[p] = p == s->place ? own : payloads[p] + at * s->request->bytes;
    sf_comm_fold(&s->request->combine, sources, s->members, segment, out, count);
}

/* In an all_reduce every segment is folded, in a reduce_scatter the own one. */
static void reduce_inline(const sf_schedule *s, const char *const *payloads, const void **sources)
{
    const sf_transfer *transfer = &s->request->transfer;
    bool all = has_segments(s);
    int64_t before = 0;
    for (int i = 0; i < transfer->nparts; i++) {
        const sf_transfer_part *part = &transfer->parts[i];
        for (int p = all ? 0 : s->place; p < (all ? s->members : s->place + 1); p++) {
            stretch from = find_stretch(s, SF_SIDE_IN, part, p);
            stretch to = find_stretch(s, SF_SIDE_OUT, part, p);
            int64_t packed = all ? sf_comm_segment(part->count, s->members, p) : 0;
            if (to.count > 0)
                fold_inline(s, payloads, sources, before + packed,
                            memory_at(s, SF_SIDE_IN, part, from.first), p,
                            memory_at(s, SF_SIDE_OUT, part, to.first), to.count);
        }
        before += part->count;
    }
}

void sf_schedule_inline_finish(const sf_schedule *s, const char *const *payloads,
                               const void **scratch)
{
    if (s->info->reduces) {
        reduce_inline(s, payloads, scratch);
        return;
    }
    for (int p = 0; p < s->members; p++) {
        int64_t length = segment_length(s, p), run;
        if (!sf_schedule_hears_from(s, p))
            continue;
        for (int64_t at = 0; at < length; at += run) {
            char *memory = sf_schedule_memory(s, SF_SIDE_OUT, p, at, length - at, &run);
            memcpy(memory, payloads[p] + at * s->request->bytes, (size_t)(run * s->request->bytes));
        }
    }
}
