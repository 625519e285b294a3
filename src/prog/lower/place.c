/* The places of buffers in the arena: by their lives, the largest first. */
#include <stdlib.h>
#include <string.h>

#include "prog/lower/build.h"

/* A buffer while it is placed: its bytes from offset on, its time from first to last. */
typedef struct placed {
    int64_t bytes, offset;
    uint32_t first, last, buffer;
    bool has_gaps; /* of the buffer, which is not looked at where it has none */
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

/* What stands at one offset, one after the other. Steps repeat layers and turns, so that many stand at few offsets. */
typedef struct column {
    int64_t offset, end;
    uint64_t times; /* in which of 64 parts of time something may stand */
    placed *lives;  /* by time; what has gaps is by itself */
    size_t count, capacity;
    placed longest; /* of the lives */
    bool has_gaps;
} column;

enum { SHELF = 64 };

/* Columns that follow each other. Where much is kept for long, thousands of them are in the way of each that is placed: whoever meets
 * the longest life of each column of a shelf passes by the shelf as a whole. */
typedef struct shelf {
    column columns[SHELF]; /* by offset */
    size_t count;
    int64_t end;          /* the highest of its columns, */
    uint64_t times;       /* and those of all */
    bool is_dense;        /* the longest of each column reach to that end, */
    uint32_t first, last; /* the last of them begins, and the first of them ends then, */
    int64_t gap;          /* and the largest that is between them */
} shelf;

typedef struct standing {
    const sf_program *p;
    int shift;       /* a part of time is 1 << shift instructions */
    shelf **shelves; /* by offset */
    size_t count, capacity;
    sf_arena *scratch;
} standing;

/* The first instruction from `from` on that is not in a gap. */
static uint32_t behind_gap(const sf_buffer *b, uint32_t from)
{
    for (uint32_t g = 0; g < b->ngaps; g++)
        if (from >= b->gaps[g].first && from <= b->gaps[g].last)
            from = b->gaps[g].last + 1;
    return from;
}

/* Whether two whose lives meet, seen as a whole, do so beside their gaps, too. */
static bool meets_beside_gaps(const sf_program *p, const placed *x, const placed *y)
{
    const sf_buffer *a = &p->buffers[x->buffer], *b = &p->buffers[y->buffer];
    uint32_t at = x->first > y->first ? x->first : y->first;
    if (!x->has_gaps && !y->has_gaps)
        return true;
    for (;;) {
        uint32_t next = behind_gap(b, behind_gap(a, at));
        if (next > x->last || next > y->last)
            return false;
        if (next == at)
            return true;
        at = next;
    }
}

/* A bit for each part of time that a life is in. */
static uint64_t times_of(const standing *s, const placed *x)
{
    uint32_t end = (uint32_t)s->p->ninsts, first = x->first >> s->shift,
             last = (x->last < end ? x->last : end) >> s->shift;
    return UINT64_MAX >> (63 - last) & UINT64_MAX << first;
}

/* The first of the column that does not end before the instruction. */
static size_t find_life(const column *c, uint32_t from)
{
    size_t low = 0, high = c->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c->lives[middle].last < from)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Where what stands there at the same time ends; 0: nothing does. */
static int64_t find_end(const standing *s, const column *c, const placed *x)
{
    int64_t end = 0;
    for (size_t i = find_life(c, x->first); i < c->count && c->lives[i].first <= x->last; i++)
        if (c->offset + c->lives[i].bytes > end && meets_beside_gaps(s->p, x, &c->lives[i]))
            end = c->offset + c->lives[i].bytes;
    return end;
}

/* Whether the shelf has no place for it: in all of its columns something is in the way, with no room between. */
static bool is_solid(const shelf *s, const placed *x)
{
    return s->is_dense && !x->has_gaps && s->first <= x->last && x->first <= s->last &&
           s->gap < x->bytes;
}

/* The first gap that is large enough below the columns of the shelf: true. Else *end is where the last that is in the way ends. Columns
 * that end below one that is in the way say nothing more. */
static bool find_gap(const standing *s, const shelf *at, const placed *x, uint64_t times,
                     int64_t *end)
{
    if (is_solid(at, x)) {
        bool found = at->columns[0].offset - *end >= x->bytes;
        *end = found ? *end : at->end;
        return found;
    }
    for (size_t i = 0; i < at->count; i++) {
        const column *c = &at->columns[i];
        if (c->end <= *end || !(c->times & times))
            continue;
        int64_t ends = find_end(s, c, x);
        if (ends > 0 && c->offset - *end >= x->bytes)
            return true;
        if (ends > *end)
            *end = ends;
    }
    return false;
}

/* The first gap that is large enough between those that stand in the arena at the same time; else the end of the
 * last of these. */
static int64_t find_place(const standing *s, const placed *x)
{
    int64_t end = 0;
    uint64_t times = times_of(s, x);
    for (size_t i = 0; i < s->count; i++) {
        const shelf *at = s->shelves[i];
        if (at->end > end && (at->times & times) && find_gap(s, at, x, times, &end))
            break;
    }
    return end;
}

static void insert_shelf(standing *s, size_t at, shelf *fresh)
{
    SF_PUSH(s->scratch, s->shelves, s->count, s->capacity, fresh);
    memmove(&s->shelves[at + 1], &s->shelves[at], (s->count - 1 - at) * sizeof fresh);
    s->shelves[at] = fresh;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void sum_up(shelf *s)
{
    int64_t reached = s->columns[0].offset;
    bool has_gaps = false;
    s->end = s->gap = 0;
    s->times = 0;
    s->first = 0;
    s->last = SF_NONE;
    for (size_t i = 0; i < s->count; i++) {
        const column *c = &s->columns[i];
        s->gap = larger(s->gap, c->offset - reached);
        reached = larger(reached, c->offset + c->longest.bytes);
        s->end = larger(s->end, c->end);
        s->times |= c->times;
        s->first = c->longest.first > s->first ? c->longest.first : s->first;
        s->last = c->longest.last < s->last ? c->longest.last : s->last;
        has_gaps = has_gaps || c->has_gaps;
    }
    s->is_dense = !has_gaps && reached == s->end;
}

/* The shelf that has the offset, which is cut in two where it is full. */
static shelf *find_shelf(standing *s, int64_t offset)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (s->shelves[middle]->columns[0].offset <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    size_t at = low > 0 ? low - 1 : 0;
    if (s->count == 0)
        insert_shelf(s, 0, SF_NEW(s->scratch, shelf));
    shelf *found = s->shelves[at];
    if (found->count < SHELF)
        return found;
    shelf *behind = SF_NEW(s->scratch, shelf);
    found->count = behind->count = SHELF / 2;
    memcpy(behind->columns, &found->columns[SHELF / 2], sizeof behind->columns / 2);
    sum_up(found);
    sum_up(behind);
    insert_shelf(s, at + 1, behind);
    return behind->columns[0].offset <= offset ? behind : found;
}

/* The column of the shelf at the offset, which may be new. */
static column *find_column(shelf *s, const placed *x)
{
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (s->columns[middle].offset < x->offset)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i < s->count && s->columns[i].offset == x->offset && !x->has_gaps; i++)
        if (!s->columns[i].has_gaps)
            return &s->columns[i];
    memmove(&s->columns[low + 1], &s->columns[low], (s->count++ - low) * sizeof *s->columns);
    s->columns[low] = (column){.offset = x->offset, .has_gaps = x->has_gaps, .longest = *x};
    return &s->columns[low];
}

static void add_standing(standing *s, const placed *x)
{
    shelf *in = find_shelf(s, x->offset);
    column *c = find_column(in, x);
    size_t at = find_life(c, x->first);
    SF_PUSH(s->scratch, c->lives, c->count, c->capacity, *x);
    memmove(&c->lives[at + 1], &c->lives[at], (c->count - 1 - at) * sizeof *x);
    c->lives[at] = *x;
    c->times |= times_of(s, x);
    c->end = larger(c->end, x->offset + x->bytes);
    if (x->last - x->first > c->longest.last - c->longest.first)
        c->longest = *x;
    sum_up(in);
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
                                    .last = buffer->is_result ? SF_NONE : buffer->last,
                                    .buffer = i,
                                    .has_gaps = buffer->ngaps > 0};
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
    while (p->ninsts >> s.shift >= 64)
        s.shift++;
    p->arena_bytes[space] = 0;
    for (size_t i = 0; i < count; i++) {
        placed *x = &list[i];
        x->offset = find_place(&s, x);
        add_standing(&s, x);
        p->buffers[x->buffer].offset = x->offset;
        if (x->offset + x->bytes > p->arena_bytes[space])
            p->arena_bytes[space] = x->offset + x->bytes;
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
