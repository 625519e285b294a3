/* Small loops next to each other, for a target that launches those as one (prog/fused_launch.h).
 *
 * All other instructions keep their order. A small loop is held back until an instruction needs its
 * result, or until the end; when one has to be emitted, all ready loops whose results are needed
 * are emitted with it, also those from later in the list. So loops over arguments come first,
 * updates come last, and a loop whose place is between two others stays there. Few bytes may live
 * longer because loops are emitted early or late (MOST_KEPT). */
#include "prog/edit_program.h"
#include "prog/fused_launch.h"
#include "prog/instruction_deps.h"
#include "prog/lower/lowering.h"

/* Most bytes of the arena that live longer because their readers are held back, and as many because
 * their writers are emitted early. */
enum { MOST_KEPT = 16 << 20 };

typedef struct bringing {
    sf_program *p;
    sf_deps deps;
    uint32_t *waits;        /* by instruction: those before it that have not been taken */
    uint32_t *first, *then; /* by instruction: its dependents, as `deps` has its dependencies */
    bool *is_small, *is_done;
    /* a collective or copy on its data may be in flight: it is not moved ahead */
    bool *follows_beside;
    uint32_t *ready, *others; /* small loops that nothing is before, taken ones among them */
    uint32_t nready;
    int64_t held, ahead;
    uint32_t *order;
    uint32_t count;
} bringing;

static bool is_needed(const bringing *b, uint32_t index)
{
    return b->first[index] < b->first[index + 1];
}

static int64_t arena_bytes(const bringing *b, const sf_view *views, uint32_t count)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        const sf_buffer *buffer = &b->p->buffers[views[i].buffer];
        bytes += buffer->home == SF_HOME_ARENA ? buffer->bytes : 0;
    }
    return bytes;
}

/* Bytes that live longer because the loop is held back, or because it was moved ahead. */
static int64_t held_by(const bringing *b, uint32_t index)
{
    return arena_bytes(b, b->p->insts[index].in, b->p->insts[index].nin);
}

static int64_t ahead_by(const bringing *b, uint32_t index)
{
    return arena_bytes(b, b->p->insts[index].out, b->p->insts[index].nout);
}

static void link_behind(bringing *b, sf_arena *scratch)
{
    uint32_t count = (uint32_t)b->p->ninsts, *at = SF_ARRAY(scratch, count + 1, uint32_t);
    b->first = SF_ARRAY(scratch, count + 2, uint32_t);
    b->then = SF_ARRAY(scratch, b->deps.first[count] + 1, uint32_t);
    for (uint32_t i = 0; i < b->deps.first[count]; i++)
        b->first[b->deps.before[i] + 1]++;
    for (uint32_t i = 0; i < count; i++) {
        b->first[i + 1] += b->first[i];
        at[i] = b->first[i];
    }
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t d = b->deps.first[i]; d < b->deps.first[i + 1]; d++) {
            uint32_t before = b->deps.before[d];
            b->then[at[before]++] = i;
            b->follows_beside[i] = b->follows_beside[i] || sf_goes_beside(&b->p->insts[before]);
            b->waits[i]++;
        }
}

static void note_ready(bringing *b, uint32_t index)
{
    if (b->is_small[index] && b->waits[index] == 0)
        b->ready[b->nready++] = index;
}

static void take(bringing *b, uint32_t index)
{
    b->is_done[index] = true;
    b->order[b->count++] = index;
    for (uint32_t i = b->first[index]; i < b->first[index + 1]; i++) {
        b->waits[b->then[i]]--;
        note_ready(b, b->then[i]);
    }
}

/* Whether a small loop that is ready is emitted with those before instruction `now`. */
static bool goes_along(bringing *b, uint32_t index, uint32_t now, bool ends_too)
{
    if (!is_needed(b, index) && !ends_too)
        return false;
    if (index < now) {
        b->held -= held_by(b, index);
        return true;
    }
    if (b->follows_beside[index] || b->ahead + ahead_by(b, index) > MOST_KEPT)
        return false;
    b->ahead += ahead_by(b, index);
    return true;
}

/* Emits those that are ready now; loops that become ready thereby are for the next round. Returns
 * whether there were any. */
static bool take_round(bringing *b, uint32_t now, bool ends_too)
{
    uint32_t count = b->nready, *round = b->ready;
    uint32_t taken = b->count;
    b->ready = b->others;
    b->others = round;
    b->nready = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (goes_along(b, round[i], now, ends_too))
            take(b, round[i]);
        else
            b->ready[b->nready++] = round[i];
    }
    return b->count > taken;
}

/* Those that are needed first, so that all others can go at once. */
static void take_rest(bringing *b, uint32_t now)
{
    while (take_round(b, now, false))
        ;
    take_round(b, now, true);
}

static void come_to(bringing *b, uint32_t index)
{
    if (b->is_done[index]) {
        b->ahead -= ahead_by(b, index);
    } else if (b->is_small[index]) {
        b->held += held_by(b, index);
        if (b->held > MOST_KEPT)
            take_rest(b, index + 1);
    } else {
        while (b->waits[index] > 0)
            take_round(b, index, false);
        take(b, index);
    }
}

static void follow_order(lowering *l, const bringing *b, size_t nbefore, sf_arena *scratch)
{
    uint32_t *place = SF_ARRAY(scratch, b->count, uint32_t);
    for (uint32_t i = 0; i < b->count; i++)
        place[b->order[i]] = i;
    for (size_t i = 0; i < nbefore; i++)
        l->now[i] = place[l->now[i]];
}

void bring_together(lowering *l)
{
    sf_program *p = l->program;
    size_t count = p->ninsts;
    sf_arena scratch = {0};
    if (l->target->small_bytes == 0)
        return;
    bringing b = {.p = p, .deps = sf_deps_of(p, &scratch)};
    b.waits = SF_ARRAY(&scratch, count, uint32_t);
    b.is_small = SF_ARRAY(&scratch, count, bool);
    b.is_done = SF_ARRAY(&scratch, count, bool);
    b.follows_beside = SF_ARRAY(&scratch, count, bool);
    b.ready = SF_ARRAY(&scratch, count, uint32_t);
    b.others = SF_ARRAY(&scratch, count, uint32_t);
    b.order = SF_ARRAY(&scratch, count, uint32_t);
    link_behind(&b, &scratch);
    for (uint32_t i = 0; i < count; i++) {
        b.is_small[i] = sf_is_small_loop(p, &p->insts[i]);
        note_ready(&b, i);
    }
    for (uint32_t i = 0; i < count; i++)
        come_to(&b, i);
    while (b.count < count)
        take_rest(&b, (uint32_t)count);
    follow_order(l, &b, l->nnow, &scratch);
    sf_program_arrange(p, b.order, count);
    sf_arena_free(&scratch);
}
