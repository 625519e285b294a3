/* Adaptive offload (DeepCompile, section 4.4, Algorithm 2), of any buffer that is in memory and
 * unused for a while.
 *
 * Between two instructions that touch a buffer it has an idle interval (a rest). Buffers that do
 * not fit into memory spend rests on the host: a buffer is copied there right after the instruction
 * before the rest, concurrent with compute; the copy is waited for where its memory is first
 * needed, and not before; and it is copied back as soon as there is memory for it until its next
 * use. A rest that is not needed to fit causes no copy. State that only the update touches rests
 * from the beginning of the step to there, and goes first; then activations and parameters.
 *
 * Rests are taken one after the other, until the curve is below the limit everywhere. The next one
 * taken covers an instruction above the limit, with the least time of copies that does not overlap
 * with compute, and then the fewest unneeded bytes. In the end unneeded rests are dropped. */
#include "pass/offload.h"

#include <math.h>
#include <stdlib.h>

#include "prog/memory_spaces.h"

/* Rests */

static void add_rest(sf_offload *o, uint32_t buffer, uint32_t before, uint32_t after, bool state)
{
    if (before != SF_NONE && after <= before + 1)
        return;
    sf_rest rest = {
        .buffer = buffer, .before = before, .after = after, .is_state = state, .rival = SF_NONE};
    SF_PUSH(o->arena, o->rests, o->nrests, o->rest_capacity, rest);
}

static void touch_buffer(sf_offload *o, uint32_t buffer, uint32_t inst, uint32_t *last)
{
    const sf_buffer *b = &o->program->buffers[buffer];
    bool update = o->program->insts[inst].origin.phase == SF_UPDATE;
    if (b->space != SF_SPACE_DEVICE || sf_is_fixed(b) || b->bytes < o->least ||
        last[buffer] == inst)
        return;
    bool is_argument = b->home == SF_HOME_ARGUMENT;
    if (last[buffer] != SF_NONE || is_argument)
        add_rest(o, buffer, last[buffer], inst, is_argument && update && last[buffer] == SF_NONE);
    last[buffer] = inst;
}

/* A rest after an asynchronous instruction begins when some instruction has waited for it. */
static uint32_t end_of_touch(const sf_program *p, uint32_t inst)
{
    if (p->insts[inst].stream == 0 || p->insts[inst].raises == SF_NONE)
        return inst;
    for (uint32_t i = inst + 1; i < p->ninsts; i++)
        for (uint32_t w = 0; w < p->insts[i].nwaits && p->insts[i].stream == 0; w++)
            if (p->insts[i].waits[w] == p->insts[inst].raises)
                return i - 1;
    return (uint32_t)p->ninsts - 1;
}

/* An argument may have its home on the host: it is there from its last use in a step to the first in the next. */
static void add_housed(sf_offload *o, const uint32_t *last)
{
    size_t count = o->nrests;
    for (size_t r = 0; r < count; r++) {
        sf_rest rest = o->rests[r];
        if (rest.before != SF_NONE)
            continue;
        rest.is_housed = true;
        rest.tail = end_of_touch(o->program, last[rest.buffer]) + 1;
        rest.rival = (uint32_t)r;
        o->rests[r].rival = (uint32_t)o->nrests;
        SF_PUSH(o->arena, o->rests, o->nrests, o->rest_capacity, rest);
    }
}

void sf_offload_find(sf_offload *o)
{
    sf_program *p = o->program;
    uint32_t *last = SF_ARRAY(o->arena, p->nbuffers, uint32_t);
    for (size_t b = 0; b < p->nbuffers; b++)
        last[b] = SF_NONE;
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        for (uint32_t j = 0; j < inst->nin; j++)
            touch_buffer(o, inst->in[j].buffer, i, last);
        for (uint32_t j = 0; j < inst->nout; j++)
            touch_buffer(o, inst->out[j].buffer, i, last);
    }
    add_housed(o, last);
    o->next_over = SF_ARRAY(o->arena, p->ninsts + 1, uint32_t);
    o->last_over = SF_ARRAY(o->arena, p->ninsts + 1, uint32_t);
    for (size_t r = 0; r < o->nrests; r++) {
        sf_rest *rest = &o->rests[r];
        rest->first = rest->before == SF_NONE ? 0 : end_of_touch(p, rest->before) + 1;
        rest->bytes = (p->buffers[rest->buffer].bytes + p->target->align - 1) / p->target->align *
                      p->target->align;
        rest->seconds = sf_costs_copy(o->costs, (double)p->buffers[rest->buffer].bytes);
    }
    sf_recompute_find(o);
}

/* The cost of a rest */

static double start_of(const sf_offload *o, uint32_t inst)
{
    return inst < o->program->ninsts ? o->sim->insts[inst].start : o->sim->seconds;
}

/* Whether it frees its memory while the instruction runs. */
static bool covers(const sf_rest *rest, uint32_t inst)
{
    return (inst >= rest->first && inst < rest->after) || (rest->is_housed && inst >= rest->tail);
}

/* Seconds of its copies that are waited for, as far as it and earlier traffic on the link determine
 * that: it must be gone by the first instruction above the limit, and can come back after the last.
 * A buffer with its home on the host need not be copied at the beginning, but at the end. */
static double find_exposed(const sf_offload *o, const sf_rest *rest)
{
    uint32_t first = o->next_over[rest->first], last = rest->after > 0 ? rest->after - 1 : 0;
    last = o->last_over[last] == SF_NONE ? 0 : o->last_over[last];
    double in = start_of(o, rest->after) - start_of(o, last + 1);
    double exposed = fmax(0, rest->seconds - fmax(0, in));
    if (rest->is_housed)
        return exposed + fmax(0, rest->seconds - (o->sim->seconds - start_of(o, rest->tail)));
    double out = start_of(o, first) - start_of(o, rest->first);
    return exposed + fmax(0, rest->seconds + (rest->is_state ? o->queued : 0) - fmax(0, out));
}

/* The time by which the links to the host exceed a step with this and all earlier copies, if there
 * is other work to overlap with. */
static double find_crowded(const sf_offload *o, const sf_rest *rest)
{
    return o->with_recompute ? fmin(rest->seconds, o->copying + rest->seconds - o->sim->seconds)
                             : 0;
}

/* Which of two helpful rests is taken: state, then the one with the least wait per useful byte,
 * then the one used last. If some are recomputed, state may have to wait where others need not. */
static bool is_taken_before(const sf_offload *o, const sf_rest *a, double x, const sf_rest *b,
                            double y)
{
    if (a->is_state != b->is_state && (!o->with_recompute || x == y))
        return a->is_state;
    if (x != y)
        return x < y;
    if (a->is_housed != b->is_housed)
        return b->is_housed;
    return a->after != b->after ? a->after > b->after : a->buffer > b->buffer;
}

static void change_curve(const sf_offload *o, const sf_rest *rest, int64_t by)
{
    for (uint32_t i = rest->first; i < rest->after; i++)
        o->curve[i] += by;
    for (uint32_t i = rest->tail; rest->is_housed && i < o->program->ninsts; i++)
        o->curve[i] += by;
}

void sf_offload_take(sf_offload *o, sf_rest *rest)
{
    rest->is_taken = true;
    change_curve(o, rest, -rest->bytes);
    o->ntaken[rest->buffer]++;
    o->copying += rest->is_recomputed ? 0 : rest->seconds;
    o->queued += rest->is_state && !rest->is_housed ? rest->seconds : 0;
}

static void give_up(sf_offload *o, sf_rest *rest)
{
    o->copying -= rest->is_recomputed ? 0 : rest->seconds;
    rest->is_taken = rest->is_recomputed = false;
    change_curve(o, rest, rest->bytes);
    o->ntaken[rest->buffer]--;
    o->queued -= rest->is_state && !rest->is_housed ? rest->seconds : 0;
}

/* A buffer with its home on the host is not copied there at the beginning, and vice versa; NULL: it
 * has neither. */
static sf_rest *find_rival(const sf_offload *o, const sf_rest *rest)
{
    sf_rest *other = rest->rival == SF_NONE ? NULL : &o->rests[rest->rival];
    return other && other->is_taken ? other : NULL;
}

/* Where there is too much, from an instruction on and up to it; and where there is most. */
static uint32_t find_over(const sf_offload *o)
{
    uint32_t worst = 0, count = (uint32_t)o->program->ninsts;
    for (uint32_t i = 0; i < count; i++) {
        bool over = o->curve[i] > o->limit;
        o->last_over[i] = over ? i : i > 0 ? o->last_over[i - 1] : SF_NONE;
        worst = o->curve[i] > o->curve[worst] ? i : worst;
    }
    o->next_over[count] = count;
    for (uint32_t i = count; i-- > 0;)
        o->next_over[i] = o->curve[i] > o->limit ? i : o->next_over[i + 1];
    return worst;
}

/* One that helps where there is most; false: there is none. */
static bool take_next(sf_offload *o)
{
    uint32_t worst = find_over(o);
    int64_t over = o->curve[worst] - o->limit;
    sf_rest *best = NULL;
    double least = 0;
    bool is_recomputed = false;
    for (size_t r = 0; r < o->nrests; r++) {
        sf_rest *rest = &o->rests[r];
        if (rest->is_taken || !covers(rest, worst) || (rest->is_housed && o->without_housed) ||
            o->is_pinned[rest->buffer])
            continue;
        const sf_rest *rival = find_rival(o, rest);
        if (rival && (rival->is_housed || covers(rival, worst)))
            continue;
        double help = (double)(over < rest->bytes ? over : rest->bytes);
        double exposed = fmax(find_exposed(o, rest), find_crowded(o, rest));
        bool makes =
            rest->recomputed >= 0 && rest->recomputed < exposed && sf_recompute_can(o, rest);
        exposed = (makes ? rest->recomputed : exposed) / help;
        if (!best || is_taken_before(o, rest, exposed, best, least)) {
            best = rest;
            is_recomputed = makes;
            least = exposed;
        }
    }
    if (!best)
        return false;
    sf_rest *rival = find_rival(o, best);
    if (rival)
        give_up(o, rival);
    if (is_recomputed)
        sf_recompute_take(o, best);
    sf_offload_take(o, best);
    return true;
}

static bool is_over(const sf_offload *o)
{
    for (uint32_t i = 0; i < o->program->ninsts; i++)
        if (o->curve[i] > o->limit)
            return true;
    return false;
}

/* Whether all is below the limit without it, too. */
static bool is_spare(const sf_offload *o, const sf_rest *rest)
{
    for (uint32_t i = rest->first; i < o->program->ninsts; i++)
        if (covers(rest, i) && o->curve[i] + rest->bytes > o->limit)
            return false;
    return true;
}

static void give_up_spare(sf_offload *o)
{
    for (size_t r = 0; r < o->nrests; r++)
        if (o->rests[r].is_taken && is_spare(o, &o->rests[r]))
            give_up(o, &o->rests[r]);
}

void sf_offload_choose(sf_offload *o)
{
    while (is_over(o) && take_next(o))
        ;
    if (!is_over(o))
        give_up_spare(o);
}

/* When they come and go */

/* The curve counts taken rests as a whole. A rest whose memory is not needed in its first part is
 * copied late, and one whose memory is free in its last part comes back early. */
static uint32_t find_join(const sf_offload *o, const sf_rest *rest)
{
    uint32_t at = rest->first;
    while (at < rest->after && o->curve[at] + rest->bytes <= o->limit)
        o->curve[at++] += rest->bytes;
    return at;
}

/* After the lives of buffers that began since the join, as many as use its memory: only they can be
 * there. */
static uint32_t behind_guests(const sf_offload *o, const sf_rest *rest, uint32_t back)
{
    const sf_program *p = o->program;
    int64_t room = rest->bytes;
    while (room > 0) {
        uint32_t best = SF_NONE;
        for (uint32_t b = p->narguments; b < p->nbuffers; b++) {
            const sf_buffer *buffer = &p->buffers[b];
            if (buffer->home == SF_HOME_ARENA && !buffer->is_result && buffer->first != SF_NONE &&
                buffer->bytes > 0 && !o->is_guest[b] && buffer->first >= rest->join &&
                buffer->last < rest->after &&
                (best == SF_NONE || buffer->last < p->buffers[best].last))
                best = b;
        }
        if (best == SF_NONE)
            return back;
        o->is_guest[best] = true;
        room -= p->buffers[best].bytes;
        back = p->buffers[best].last + 1 > back ? p->buffers[best].last + 1 : back;
    }
    return back;
}

static uint32_t find_return(const sf_offload *o, const sf_rest *rest)
{
    uint32_t at = rest->after,
             least = o->with_guests ? behind_guests(o, rest, rest->join) : rest->join;
    while (at > least && o->curve[at - 1] + rest->bytes <= o->limit)
        o->curve[--at] += rest->bytes;
    return at;
}

static int used_first(const void *a, const void *b)
{
    const sf_rest *x = *(sf_rest *const *)a, *y = *(sf_rest *const *)b;
    if (x->after != y->after)
        return x->after < y->after ? -1 : 1;
    return (x->buffer > y->buffer) - (x->buffer < y->buffer);
}

/* As they go over the link: those that begin first, and of these the last used first, for they are away longest. */
static int left_first(const void *a, const void *b)
{
    const sf_rest *x = *(sf_rest *const *)a, *y = *(sf_rest *const *)b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return -used_first(a, b);
}

size_t sf_offload_taken(sf_offload *o, sf_rest ***out)
{
    size_t count = 0;
    sf_rest **list = SF_ARRAY(o->arena, o->nrests, sf_rest *);
    for (size_t r = 0; r < o->nrests; r++)
        if (o->rests[r].is_taken)
            list[count++] = &o->rests[r];
    *out = list;
    return count;
}

/* Memory is free in the order in which copies end: who goes first is waited for first. */
void sf_offload_schedule(sf_offload *o)
{
    sf_rest **list;
    size_t count = sf_offload_taken(o, &list);
    if (count == 0)
        return;
    qsort(list, count, sizeof *list, left_first);
    o->is_guest = SF_ARRAY(o->arena, o->program->nbuffers, bool);
    for (size_t i = count; i-- > 0;)
        list[i]->join = list[i]->is_housed       ? 0
                        : list[i]->is_recomputed ? list[i]->first
                                                 : find_join(o, list[i]);
    for (size_t i = 1; i < count; i++)
        if (list[i]->first == list[i - 1]->first && list[i]->join < list[i - 1]->join &&
            !list[i]->is_housed)
            list[i]->join = list[i - 1]->join; /* it is there no earlier */
    qsort(list, count, sizeof *list, used_first);
    for (size_t i = 0; i < count; i++)
        list[i]->back = list[i]->is_recomputed ? list[i]->after : find_return(o, list[i]);
}

/* Insertion */

typedef struct placed_inst {
    sf_insertion at;
    size_t order; /* of those before one instruction */
} placed_inst;

static int by_place(const void *a, const void *b)
{
    const placed_inst *x = a, *y = b;
    if (x->at.before != y->at.before)
        return x->at.before < y->at.before ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

enum { GOES, JOINS, COMES, TURNS };

static placed_inst placed_at(uint32_t before, int turn, size_t order, sf_inst inst)
{
    return (placed_inst){{before, inst}, (size_t)turn * SF_NONE + order};
}

static sf_origin origin_of_move(const sf_program *p, const sf_rest *rest)
{
    uint32_t at = rest->after < p->ninsts ? rest->after : rest->before;
    return at < p->ninsts ? p->insts[at].origin : SF_NO_ORIGIN;
}

/* Those whose home is the host are buffers of the device from now on; so are their other rests. */
static void house(sf_offload *o, sf_rest **list, size_t count)
{
    uint32_t *arguments = SF_ARRAY(o->arena, count, uint32_t);
    uint32_t *buffers = SF_ARRAY(o->arena, count, uint32_t);
    uint32_t *named = SF_ARRAY(o->arena, o->program->nbuffers, uint32_t);
    size_t housed = 0;
    for (size_t i = 0; i < count; i++)
        if (list[i]->is_housed)
            arguments[housed++] = list[i]->host = list[i]->buffer;
    if (housed == 0)
        return;
    sf_house_on_host(o->program, arguments, housed, buffers);
    for (size_t a = 0; a < housed; a++)
        named[arguments[a]] = buffers[a];
    for (size_t r = 0; r < o->nrests; r++)
        if (named[o->rests[r].buffer] > 0)
            o->rests[r].buffer = named[o->rests[r].buffer];
}

/* By buffer: somebody writes it. */
static bool *find_written(const sf_offload *o)
{
    const sf_program *p = o->program;
    bool *written = SF_ARRAY(o->arena, p->nbuffers, bool);
    for (size_t i = 0; i < p->ninsts; i++)
        for (uint32_t j = 0; j < p->insts[i].nout; j++)
            written[p->insts[i].out[j].buffer] = true;
    return written;
}

/* How it goes, and is waited for. */
static size_t add_leaving(sf_offload *o, sf_rest *rest, bool writes, size_t order, placed_inst *out)
{
    sf_program *p = o->program;
    if (!rest->is_housed) {
        rest->host = sf_add_host_buffer(p, rest->buffer);
        if (p->buffers[rest->buffer].home == SF_HOME_ARGUMENT)
            p->buffers[rest->buffer].is_lent = true;
    }
    sf_inst copy = sf_copy_inst(p, rest->buffer, rest->host);
    sf_inst join = sf_join_inst(p, &rest->host, 1);
    copy.origin = join.origin = origin_of_move(p, rest);
    if (rest->is_housed) {
        uint32_t at = rest->tail;
        while (at < p->ninsts && o->curve[at] + rest->bytes <= o->limit)
            o->curve[at++] += rest->bytes;
        out[0] = placed_at(rest->tail, GOES, order, copy);
        out[1] = placed_at(at, JOINS, order, join);
        return writes ? at < p->ninsts ? 2 : 1 : 0;
    }
    out[0] = placed_at(rest->first, GOES, order, copy);
    out[1] = placed_at(rest->join, JOINS, order, join);
    return 2;
}

/* From the last on: who is read from there on is read by those before as it was. Those that are left are moved; how many. */
static size_t add_made(sf_offload *o, sf_rest **list, size_t count, placed_inst *out, size_t *made)
{
    size_t moved = 0;
    qsort(list, count, sizeof *list, used_first);
    for (size_t i = count; i-- > 0;)
        if (list[i]->is_recomputed)
            out[(*made)++] = placed_at(list[i]->after, COMES, i, sf_recompute_inst(o, list[i]));
    for (size_t i = 0; i < count; i++)
        if (!list[i]->is_recomputed)
            list[moved++] = list[i];
    return moved;
}

void sf_offload_insert(sf_offload *o)
{
    sf_program *p = o->program;
    sf_rest **list;
    size_t count = sf_offload_taken(o, &list), at = 0;
    if (count == 0)
        return;
    placed_inst *all = SF_ARRAY(o->arena, TURNS * count, placed_inst);
    count = add_made(o, list, count, all, &at);
    qsort(list, count, sizeof *list, left_first);
    house(o, list, count);
    const bool *written = find_written(o);
    for (size_t i = 0; i < count; i++)
        at += add_leaving(o, list[i], !list[i]->is_housed || written[list[i]->buffer], i, &all[at]);
    qsort(list, count, sizeof *list, used_first);
    for (size_t i = 0; i < count; i++) {
        sf_inst in = sf_copy_inst(p, list[i]->host, list[i]->buffer);
        in.origin = origin_of_move(p, list[i]);
        all[at++] = placed_at(list[i]->back, COMES, i, in);
    }
    qsort(all, at, sizeof *all, by_place);
    sf_insertion *insertions = SF_ARRAY(o->arena, at, sf_insertion);
    for (size_t i = 0; i < at; i++)
        insertions[i] = all[i].at;
    sf_insert_insts(p, insertions, at);
}
