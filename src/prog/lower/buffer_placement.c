/* The offsets of buffers in the arena: by their lives, the largest first, each at the lowest free
 * offset.
 *
 * A tree over time records free memory. A node covers a span of time, its children the halves. A
 * life is the few largest nodes whose spans it fills; their ancestors it only touches. Each node
 * has the memory that no buffer takes that fills its span, and the memory that no buffer takes that
 * touches it. A buffer fits where its life's nodes have free memory of the second kind and all
 * their ancestors have free memory of the first kind. */
#include <stdlib.h>
#include <string.h>

#include "prog/lower/lowering.h"

/* A buffer while it is placed. */
typedef struct placed {
    int64_t bytes;
    uint32_t first, buffer;
} placed;

static int largest_first(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? 1 : -1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return x->buffer < y->buffer ? -1 : 1;
}

/* Offsets from `from` to before `to`. */
typedef struct room {
    int64_t from, to;
} room;

/* Free ranges, by offset; the last has no end. Empty list: all is free. */
typedef struct rooms {
    room *at;
    size_t count, capacity;
    size_t near;          /* the one that was found last, */
    int64_t bytes, floor; /* and no room below the floor has so many bytes */
} rooms;

/* The first range that ends after the offset. */
static size_t find_room(rooms *r, int64_t offset)
{
    size_t low = 0, high = r->count - 1;
    if (r->near <= high && r->at[r->near].to > offset) {
        high = r->near;
        low = high > 0 && r->at[high - 1].to <= offset ? high : 0;
    }
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (r->at[middle].to <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    r->near = low;
    return low;
}

/* The lowest offset from `from` on where so many bytes are free. */
static int64_t find_place(rooms *r, int64_t from, int64_t bytes)
{
    if (r->count == 0)
        return from;
    if (r->bytes != bytes) {
        r->bytes = bytes;
        r->floor = 0;
    }
    bool is_lowest = from <= r->floor;
    if (is_lowest)
        from = r->floor;
    size_t i = find_room(r, from);
    from = r->at[i].from > from ? r->at[i].from : from;
    while (r->at[i].to - from < bytes)
        from = r->at[++i].from;
    if (is_lowest)
        r->floor = from;
    return from;
}

static void take_room(rooms *r, int64_t from, int64_t to, sf_arena *scratch)
{
    if (r->count == 0)
        SF_PUSH(scratch, r->at, r->count, r->capacity, (room){.to = INT64_MAX});
    size_t i = find_room(r, from), end = i;
    if (r->at[i].from < from && r->at[i].to > to) {
        SF_PUSH(scratch, r->at, r->count, r->capacity, (room){0});
        memmove(&r->at[i + 1], &r->at[i], (r->count - 1 - i) * sizeof *r->at);
        r->at[i].to = from;
        r->at[i + 1].from = to;
        return;
    }
    if (r->at[i].from < from) {
        r->at[i].to = from;
        end = ++i;
    }
    while (r->at[end].to <= to)
        end++;
    if (r->at[end].from < to)
        r->at[end].from = to;
    if (end > i)
        memmove(&r->at[i], &r->at[end], (r->count - end) * sizeof *r->at);
    r->count -= end - i;
}

typedef struct span {
    rooms filled, touched; /* free of buffers that fill the span, and of buffers that touch it */
} span;

/* A node of the tree in a life. */
typedef struct visit {
    span *span;
    bool is_filled;
} visit;

typedef struct standing {
    const sf_program *p;
    /* of instructions: how many instructions that begin a life lie between the first of those
     * and there */
    uint32_t *ranks;
    span *spans;    /* the root is 1, the children of i are 2 i and 2 i + 1 */
    uint32_t width; /* of the root */
    visit *visits;  /* of the current life */
    size_t nvisits, capacity;
    sf_arena *scratch;
} standing;

/* Which nodes of those below one, which begins at a time, a life has. */
static void visit_spans(standing *s, size_t node, uint32_t begin, uint32_t width, uint32_t first,
                        uint32_t last)
{
    visit v = {&s->spans[node], first <= begin && begin + width - 1 <= last};
    SF_PUSH(s->scratch, s->visits, s->nvisits, s->capacity, v);
    if (v.is_filled)
        return;
    uint32_t half = width / 2, middle = begin + half;
    if (first < middle)
        visit_spans(s, 2 * node, begin, half, first, last);
    if (last >= middle)
        visit_spans(s, 2 * node + 1, middle, half, first, last);
}

/* A part of a life, between gaps. */
typedef struct part {
    uint32_t first, last;
} part;

static uint32_t part_count(const sf_buffer *b)
{
    return b->ngaps + 1;
}

/* Results live until after the last instruction. */
static part part_of(const sf_program *p, const sf_buffer *b, uint32_t i)
{
    uint32_t end = b->is_result ? (uint32_t)p->ninsts : b->last;
    return (part){i > 0 ? b->gaps[i - 1].last + 1 : b->first,
                  i < b->ngaps ? b->gaps[i].first - 1 : end};
}

/* Two lives overlap at the begin of one of them, or not at all: other times need not be
 * distinguished. */
static void open_standing(standing *s, const placed *list, size_t count)
{
    const sf_program *p = s->p;
    uint32_t n = 0;
    s->ranks = SF_ARRAY(s->scratch, p->ninsts + 1, uint32_t);
    for (size_t i = 0; i < count; i++) {
        const sf_buffer *b = &p->buffers[list[i].buffer];
        for (uint32_t j = 0; j < part_count(b); j++)
            s->ranks[part_of(p, b, j).first] = 1;
    }
    for (size_t i = 0; i <= p->ninsts; i++) {
        n += s->ranks[i];
        s->ranks[i] = n - 1;
    }
    s->width = 1;
    while (s->width < n)
        s->width *= 2;
    s->spans = SF_ARRAY(s->scratch, 2 * (size_t)s->width, span);
}

/* The lowest offset at which all that the life visits have room. */
static int64_t find_offset(const standing *s, int64_t bytes)
{
    int64_t offset = 0;
    for (size_t i = 0, agreed = 0; agreed < s->nvisits; i = i + 1 < s->nvisits ? i + 1 : 0) {
        span *at = s->visits[i].span;
        int64_t found =
            find_place(s->visits[i].is_filled ? &at->touched : &at->filled, offset, bytes);
        agreed = found == offset ? agreed + 1 : 1;
        offset = found;
    }
    return offset;
}

static int64_t place_buffer(standing *s, const placed *x)
{
    const sf_buffer *b = &s->p->buffers[x->buffer];
    s->nvisits = 0;
    for (uint32_t i = 0; i < part_count(b); i++) {
        part at = part_of(s->p, b, i);
        visit_spans(s, 1, 0, s->width, s->ranks[at.first], s->ranks[at.last]);
    }
    int64_t offset = find_offset(s, x->bytes);
    for (size_t i = 0; i < s->nvisits; i++) {
        take_room(&s->visits[i].span->touched, offset, offset + x->bytes, s->scratch);
        if (s->visits[i].is_filled)
            take_room(&s->visits[i].span->filled, offset, offset + x->bytes, s->scratch);
    }
    return offset;
}

static size_t list_buffers(const sf_program *p, sf_space_kind space, placed *out)
{
    int64_t grain = p->target->align;
    size_t count = 0;
    for (uint32_t i = 0; i < p->nbuffers; i++) {
        const sf_buffer *buffer = &p->buffers[i];
        if (sf_in_arena(buffer) && buffer->space == space && buffer->first != SF_NONE &&
            buffer->bytes > 0)
            out[count++] = (placed){.bytes = (buffer->bytes + grain - 1) / grain * grain,
                                    .first = buffer->first,
                                    .buffer = i};
    }
    if (count > 0)
        qsort(out, count, sizeof *out, largest_first);
    return count;
}

static void place_in_space(sf_program *p, sf_space_kind space, sf_arena *scratch)
{
    placed *list = SF_ARRAY(scratch, p->nbuffers, placed);
    size_t count = list_buffers(p, space, list);
    standing s = {.p = p, .scratch = scratch};
    p->arena_bytes[space] = 0;
    if (count > 0)
        open_standing(&s, list, count);
    for (size_t i = 0; i < count; i++) {
        int64_t offset = place_buffer(&s, &list[i]);
        p->buffers[list[i].buffer].offset = offset;
        if (offset + list[i].bytes > p->arena_bytes[space])
            p->arena_bytes[space] = offset + list[i].bytes;
    }
}

static int64_t constants_of(const sf_program *p)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < p->nbuffers; i++)
        if (sf_is_fixed(&p->buffers[i]))
            bytes += p->buffers[i].bytes;
    for (size_t i = 0; i < p->ninsts; i++)
        for (uint32_t j = 0; j < sf_body_count(&p->insts[i]); j++)
            bytes += p->insts[i].nest->bodies[j]->constant_bytes;
    return bytes;
}

void place_buffers(sf_program *p)
{
    sf_arena scratch = {0};
    p->constant_bytes = constants_of(p);
    for (int space = 0; space < SF_SPACE_COUNT; space++)
        place_in_space(p, (sf_space_kind)space, &scratch);
    sf_arena_free(&scratch);
}
