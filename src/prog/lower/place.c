/* The places of buffers in the arena: by their lives, the largest first. */
#include <stdlib.h>

#include "prog/lower/build.h"

/* A buffer while it is placed: its bytes from offset on, its time from first to last. */
typedef struct placed {
    int64_t bytes, offset;
    uint32_t first, last, buffer;
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

/* Those that stand already, by offset: when, and where. Most that are looked at live at another time, so times
 * are kept apart. */
typedef struct standing {
    const sf_program *p;
    struct {
        uint32_t first, last;
    } * when;
    struct {
        int64_t offset, end;
        uint32_t buffer;
    } * where;
    size_t count;
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
static bool meets_beside_gaps(const standing *s, size_t index, const placed *x)
{
    const sf_buffer *a = &s->p->buffers[x->buffer], *b = &s->p->buffers[s->where[index].buffer];
    uint32_t last_a = x->last, last_b = s->when[index].last;
    uint32_t at = x->first > s->when[index].first ? x->first : s->when[index].first;
    if (a->ngaps == 0 && b->ngaps == 0)
        return true;
    for (;;) {
        uint32_t next = behind_gap(b, behind_gap(a, at));
        if (next > last_a || next > last_b)
            return false;
        if (next == at)
            return true;
        at = next;
    }
}

/* The first gap that is large enough between those that stand in the arena at the same time; else the end of the
 * last of these. */
static int64_t find_place(const standing *s, const placed *x)
{
    int64_t end = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (s->when[i].last < x->first || s->when[i].first > x->last || !meets_beside_gaps(s, i, x))
            continue;
        if (s->where[i].offset - end >= x->bytes)
            break;
        if (s->where[i].end > end)
            end = s->where[i].end;
    }
    return end;
}

static void add_standing(standing *s, const placed *x)
{
    size_t at = s->count++;
    for (; at > 0 && s->where[at - 1].offset > x->offset; at--) {
        s->when[at] = s->when[at - 1];
        s->where[at] = s->where[at - 1];
    }
    s->when[at].first = x->first;
    s->when[at].last = x->last;
    s->where[at].offset = x->offset;
    s->where[at].buffer = x->buffer;
    s->where[at].end = x->offset + x->bytes;
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
    standing s = {.p = p,
                  .when = sf_arena_array(scratch, count, sizeof *s.when),
                  .where = sf_arena_array(scratch, count, sizeof *s.where)};
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
