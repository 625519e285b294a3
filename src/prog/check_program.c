#include "prog/check_program.h"

#include <inttypes.h>
#include <stdlib.h>

#include "prog/check_shape.h"
#include "prog/split_instruction.h"

typedef struct checking {
    const sf_program *p;
    sf_diag *diag;
    sf_arena arena;
    uint32_t *raisers; /* by event: who raises it, or SF_NONE */
    uint32_t *
        ends; /* by instruction: the first of the compute stream before which it is known to have ended;
                          SF_NONE: the end of the program */
} checking;

/* Events */

static sf_status check_events(checking *c)
{
    const sf_program *p = c->p;
    c->raisers = SF_ARRAY(&c->arena, p->nevents, uint32_t);
    for (uint32_t e = 0; e < p->nevents; e++)
        c->raisers[e] = SF_NONE;
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        for (uint32_t w = 0; w < inst->nwaits; w++)
            if (inst->waits[w] >= p->nevents || c->raisers[inst->waits[w]] == SF_NONE)
                return sf_inst_fail(p, i, c->diag,
                                    "waits for event %u, which nothing before it raises",
                                    inst->waits[w]);
        if (inst->raises == SF_NONE)
            continue;
        if (inst->raises >= p->nevents || c->raisers[inst->raises] != SF_NONE)
            return sf_inst_fail(p, i, c->diag, "raises event %u, which is not its own",
                                inst->raises);
        c->raisers[inst->raises] = i;
    }
    return SF_OK;
}

/* On other streams an instruction has ended when one of the first stream has waited for it. */
static void find_ends(checking *c)
{
    const sf_program *p = c->p;
    c->ends = SF_ARRAY(&c->arena, p->ninsts, uint32_t);
    for (uint32_t i = 0; i < p->ninsts; i++)
        c->ends[i] = p->insts[i].stream == 0 ? i : SF_NONE;
    for (uint32_t i = (uint32_t)p->ninsts; i-- > 0;)
        for (uint32_t w = 0; w < p->insts[i].nwaits && p->insts[i].stream == 0; w++) {
            uint32_t raiser = c->raisers[p->insts[i].waits[w]];
            if (p->insts[raiser].stream != 0)
                c->ends[raiser] = i;
        }
}

/* Places */

/* An arena buffer: when it lives, and where. */
typedef struct life {
    uint32_t buffer, first, last;
    int64_t offset, end;
    struct life *before; /* the part of its life before a gap; NULL: there is none */
    uint32_t nparts;     /* before this one */
} life;

static void live_at(life *l, uint32_t from, uint32_t to)
{
    l->first = from < l->first ? from : l->first;
    l->last = to > l->last ? to : l->last;
}

static int earlier_inst_first(const void *a, const void *b)
{
    const life *x = a, *y = b;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->buffer > y->buffer) - (x->buffer < y->buffer);
}

/* A life is open; a copy fills all of the buffer, so its content since the last use is dead. */
static void end_part(checking *c, life *l, uint32_t index, const sf_view *filled)
{
    const sf_buffer *b = &c->p->buffers[l->buffer];
    if (sf_view_size(filled) != b->bytes || l->first == SF_NONE || l->last + 1 >= index)
        return;
    life *part = SF_NEW(&c->arena, life);
    *part = *l;
    l->before = part;
    l->nparts++;
    l->first = l->last = index;
}

/* By buffer, from the instructions alone. A lent buffer lives from the beginning. */
static life *find_lives(checking *c)
{
    const sf_program *p = c->p;
    life *all = SF_ARRAY(&c->arena, p->nbuffers, life);
    for (uint32_t b = 0; b < p->nbuffers; b++) {
        const sf_buffer *buffer = &p->buffers[b];
        all[b] = (life){.buffer = b,
                        .first = buffer->is_lent && p->ninsts > 0 ? 0 : SF_NONE,
                        .offset = buffer->offset,
                        .end = buffer->offset + buffer->bytes};
    }
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        uint32_t end = inst->stream == 0       ? i
                       : c->ends[i] == SF_NONE ? (uint32_t)p->ninsts - 1
                                               : c->ends[i] - 1;
        for (uint32_t j = 0; j < inst->nout && inst->kind == SF_INST_COPY; j++)
            end_part(c, &all[inst->out[j].buffer], i, &inst->out[j]);
        for (uint32_t j = 0; j < inst->nin; j++)
            live_at(&all[inst->in[j].buffer], i, end);
        for (uint32_t j = 0; j < inst->nout; j++)
            live_at(&all[inst->out[j].buffer], i, end);
    }
    return all;
}

/* Between its parts there are gaps, the last of them before the last part. */
static bool has_gaps(const sf_buffer *buffer, const life *l)
{
    if (buffer->ngaps != l->nparts)
        return false;
    for (uint32_t g = buffer->ngaps; g-- > 0; l = l->before)
        if (buffer->gaps[g].first != l->before->last + 1 || buffer->gaps[g].last != l->first - 1)
            return false;
    return buffer->first == l->first;
}

/* The simulator and the memory estimate read the recorded lives. */
static sf_status check_lives(checking *c, const life *all)
{
    const sf_program *p = c->p;
    bool *is_result = SF_ARRAY(&c->arena, p->nbuffers, bool);
    for (uint32_t b = 0; b < p->nbuffers; b++)
        is_result[b] = p->buffers[b].is_lent;
    for (uint32_t i = 0; i < p->nresults; i++)
        is_result[p->results[i].buffer] = true;
    for (uint32_t b = 0; b < p->nbuffers; b++) {
        const sf_buffer *buffer = &p->buffers[b];
        if (!has_gaps(buffer, &all[b]) || buffer->last != all[b].last ||
            buffer->is_result != is_result[b])
            return sf_fail(c->diag, SF_EMISMATCH, SF_NOWHERE,
                           "program: buffer %u does not live when it is announced to", b);
    }
    return SF_OK;
}

/* The parts of lives in an arena, by their beginning; results live on. */
static size_t list_lives(checking *c, const life *all, life **out)
{
    const sf_program *p = c->p;
    size_t count = 0, most = 0;
    for (uint32_t b = 0; b < p->nbuffers; b++)
        most += all[b].nparts + 1;
    life *list = SF_ARRAY(&c->arena, most, life);
    for (uint32_t b = 0; b < p->nbuffers; b++) {
        const sf_buffer *buffer = &p->buffers[b];
        if (!sf_in_arena(buffer) || all[b].first == SF_NONE || buffer->bytes == 0)
            continue;
        for (const life *l = &all[b]; l; l = l->before)
            list[count++] = *l;
        if (buffer->is_result)
            list[count - 1 - all[b].nparts].last = (uint32_t)p->ninsts;
    }
    if (count > 0)
        qsort(list, count, sizeof *list, earlier_inst_first);
    *out = list;
    return count;
}

static sf_status check_place(const checking *c, const life *l)
{
    const sf_program *p = c->p;
    const sf_buffer *buffer = &p->buffers[l->buffer];
    if (buffer->space >= SF_SPACE_COUNT || l->offset < 0 || l->offset % p->target->align != 0 ||
        l->end > p->arena_bytes[buffer->space])
        return sf_inst_fail(p, l->first, c->diag,
                            "buffer %u, %" PRId64 " bytes at %" PRId64
                            ", does not lie in the arena",
                            l->buffer, buffer->bytes, l->offset);
    return SF_OK;
}

/* Those that live are kept by offset, and do not overlap: a new one has to fit between two of them. */
static sf_status add_life(checking *c, life *living, size_t *count, const life *l)
{
    const sf_program *p = c->p;
    size_t kept = 0, at = 0;
    for (size_t i = 0; i < *count; i++)
        if (living[i].last >= l->first)
            living[kept++] = living[i];
    while (at < kept && living[at].offset < l->offset)
        at++;
    const life *before = at > 0 ? &living[at - 1] : NULL, *after = at < kept ? &living[at] : NULL;
    const life *other = before && before->end > l->offset ? before
                        : after && after->offset < l->end ? after
                                                          : NULL;
    if (other)
        return sf_inst_fail(p, l->first, c->diag,
                            "buffer %u overlaps buffer %u, which is in use until "
                            "instruction %u",
                            l->buffer, other->buffer, other->last);
    for (size_t i = kept; i > at; i--)
        living[i] = living[i - 1];
    living[at] = *l;
    *count = kept + 1;
    return SF_OK;
}

/* Those of bodies as they announce them: they are checked, too. */
static int64_t constants_of(const sf_program *p)
{
    int64_t bytes = 0;
    for (size_t b = 0; b < p->nbuffers; b++)
        bytes += sf_is_fixed(&p->buffers[b]) ? p->buffers[b].bytes : 0;
    for (size_t i = 0; i < p->ninsts; i++)
        for (uint32_t j = 0; j < sf_body_count(&p->insts[i]); j++)
            bytes += p->insts[i].nest->bodies[j]->constant_bytes;
    return bytes;
}

static sf_status check_peak(const checking *c, const int64_t *peaks)
{
    const sf_program *p = c->p;
    int64_t state = 0, host = 0, constants = constants_of(p);
    for (int space = 0; space < SF_SPACE_COUNT; space++)
        if (p->arena_bytes[space] != peaks[space])
            return sf_fail(c->diag, SF_EMISMATCH, SF_NOWHERE,
                           "program: an arena of %" PRId64 " bytes is announced, and %" PRId64
                           " are used",
                           p->arena_bytes[space], peaks[space]);
    for (uint32_t i = 0; i < p->narguments; i++) {
        bool on_host = p->buffers[i].space == SF_SPACE_HOST;
        *(on_host ? &host : &state) += p->buffers[i].is_lent ? 0 : p->buffers[i].bytes;
    }
    bool is_body = !p->argument_types; /* its arguments are memory of the program around it */
    if (!is_body && (state != p->state_bytes || host != p->host_state_bytes))
        return sf_fail(c->diag, SF_EMISMATCH, SF_NOWHERE,
                       "program: %" PRId64
                       " bytes of arguments are announced, and there are %" PRId64,
                       p->state_bytes + p->host_state_bytes, state + host);
    if (constants != p->constant_bytes)
        return sf_fail(c->diag, SF_EMISMATCH, SF_NOWHERE,
                       "program: %" PRId64
                       " bytes of constants are announced, and there are %" PRId64,
                       p->constant_bytes, constants);
    return SF_OK;
}

static sf_status check_places(checking *c)
{
    const sf_program *p = c->p;
    int64_t peaks[SF_SPACE_COUNT] = {0};
    life *all = find_lives(c), *lives, *living[SF_SPACE_COUNT];
    SF_TRY(check_lives(c, all));
    size_t counts[SF_SPACE_COUNT] = {0}, count = list_lives(c, all, &lives);
    for (int space = 0; space < SF_SPACE_COUNT; space++)
        living[space] = SF_ARRAY(&c->arena, count + 1, life);
    for (size_t i = 0; i < count; i++) {
        sf_space_kind space = p->buffers[lives[i].buffer].space;
        SF_TRY(check_place(c, &lives[i]));
        SF_TRY(add_life(c, living[space], &counts[space], &lives[i]));
        int64_t grain = p->target->align, end = (lives[i].end + grain - 1) / grain * grain;
        peaks[space] = end > peaks[space] ? end : peaks[space];
    }
    return check_peak(c, peaks);
}

/* The flow */

static bool reads_buffer(const sf_inst *inst, uint32_t buffer)
{
    for (uint32_t i = 0; i < inst->nin; i++)
        if (inst->in[i].buffer == buffer)
            return true;
    return false;
}

static sf_status check_written(const checking *c, uint32_t index, uint32_t buffer)
{
    const sf_program *p = c->p;
    const sf_buffer *b = &p->buffers[buffer];
    if (b->home == SF_HOME_CONSTANT)
        return sf_inst_fail(p, index, c->diag, "writes a constant");
    bool brings_back = p->insts[index].kind == SF_INST_COPY && b->is_lent;
    if (b->home == SF_HOME_ARGUMENT && p->argument_types && p->next[b->argument] == SF_NONE &&
        !brings_back)
        return sf_inst_fail(p, index, c->diag, "writes argument %u, which has no next value",
                            b->argument);
    if (reads_buffer(&p->insts[index], buffer) && !sf_may_write_over(&p->insts[index], buffer))
        return sf_inst_fail(p, index, c->diag, "writes over buffer %u while it reads it", buffer);
    return SF_OK;
}

static sf_status check_flow(checking *c)
{
    const sf_program *p = c->p;
    bool *written = SF_ARRAY(&c->arena, p->nbuffers, bool);
    for (uint32_t b = 0; b < p->nbuffers; b++)
        written[b] = p->buffers[b].home != SF_HOME_ARENA;
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        if (inst->loop && inst->kind != SF_INST_LOOP)
            written[inst->out[0].buffer] = true; /* the epilogue of a product reads that */
        for (uint32_t j = 0; j < inst->nin; j++)
            if (!written[inst->in[j].buffer] && p->buffers[inst->in[j].buffer].bytes > 0)
                return sf_inst_fail(p, i, c->diag, "reads buffer %u, which nothing has written",
                                    inst->in[j].buffer);
        for (uint32_t j = 0; j < inst->nout; j++) {
            SF_TRY(check_written(c, i, inst->out[j].buffer));
            written[inst->out[j].buffer] = true;
        }
    }
    for (uint32_t i = 0; i < p->nresults; i++)
        if (!written[p->results[i].buffer] && p->buffers[p->results[i].buffer].bytes > 0)
            return sf_fail(c->diag, SF_EMISMATCH, SF_NOWHERE, "program: nothing makes result %u",
                           i);
    return SF_OK;
}

/* Races */

/* Who touched a buffer last, of the first stream, plus one; and the open ones of other streams. */
typedef struct user {
    uint32_t inst;
    const sf_view *view;
    bool writes;
    struct user *next;
} user;

typedef struct racing {
    checking *c;
    uint32_t *read, *written; /* by buffer: the last of the first stream to do so, plus one */
    user **open;              /* by buffer */
    uint32_t now;             /* the last of the first stream, plus one */
    uint32_t
        *seen; /* by stream: of the first stream, this much has ended when its next one begins */
} racing;

static bool inst_waits_for(const checking *c, const sf_inst *inst, uint32_t other)
{
    for (uint32_t w = 0; w < inst->nwaits; w++)
        if (c->raisers[inst->waits[w]] == other)
            return true;
    return false;
}

/* If an instruction of another stream is still open, this one must wait for its end. */
static sf_status check_open(racing *r, uint32_t index, const sf_view *view, bool writes)
{
    uint32_t buffer = view->buffer;
    const checking *c = r->c;
    const sf_program *p = c->p;
    const sf_inst *inst = &p->insts[index];
    uint32_t after = inst->stream == 0 ? index + 1 : r->seen[inst->stream];
    for (const user *u = r->open[buffer]; u; u = u->next) {
        bool ended = u->inst == index || (c->ends[u->inst] != SF_NONE && c->ends[u->inst] < after);
        if ((writes || u->writes) && !ended && !inst_waits_for(c, inst, u->inst) &&
            sf_insts_meet(&p->insts[u->inst], u->view, inst, view))
            return sf_inst_fail(
                p, index, c->diag, "%s buffer %u while instruction %u may still %s it",
                writes ? "writes" : "reads", buffer, u->inst, u->writes ? "write" : "read");
    }
    return SF_OK;
}

/* One of another stream must know that the first is done with the buffer. */
static sf_status check_done(const racing *r, uint32_t index, uint32_t buffer, bool writes)
{
    const sf_program *p = r->c->p;
    uint32_t seen = r->seen[p->insts[index].stream];
    uint32_t last = r->written[buffer];
    if (writes && r->read[buffer] > last)
        last = r->read[buffer];
    if (p->insts[index].stream != 0 && last > seen)
        return sf_inst_fail(p, index, r->c->diag,
                            "does not wait for instruction %u, which uses buffer %u", last - 1,
                            buffer);
    return SF_OK;
}

static sf_status use_view(racing *r, uint32_t index, const sf_view *view, bool writes)
{
    uint32_t buffer = view->buffer;
    SF_TRY(check_open(r, index, view, writes));
    SF_TRY(check_done(r, index, buffer, writes));
    if (r->c->p->insts[index].stream == 0) {
        (writes ? r->written : r->read)[buffer] = index + 1;
        return SF_OK;
    }
    user *u = SF_NEW(&r->c->arena, user);
    *u = (user){index, view, writes, r->open[buffer]};
    r->open[buffer] = u;
    return SF_OK;
}

/* Reuse of memory is a conflict like reuse of a buffer: an instruction of another stream must wait
 * for all instructions of the first stream that precede it. */
static sf_status check_start(racing *r, uint32_t index)
{
    const sf_program *p = r->c->p;
    const sf_inst *inst = &p->insts[index];
    for (uint32_t w = 0; w < inst->nwaits; w++) {
        uint32_t raiser = r->c->raisers[inst->waits[w]];
        if (p->insts[raiser].stream == 0 && raiser + 1 > r->seen[inst->stream])
            r->seen[inst->stream] = raiser + 1;
    }
    if (inst->stream != 0 && r->seen[inst->stream] < r->now)
        return sf_inst_fail(p, index, r->c->diag, "does not wait for instruction %u before it",
                            r->now - 1);
    return SF_OK;
}

static sf_status check_races(checking *c)
{
    const sf_program *p = c->p;
    racing r = {.c = c};
    r.read = SF_ARRAY(&c->arena, p->nbuffers, uint32_t);
    r.written = SF_ARRAY(&c->arena, p->nbuffers, uint32_t);
    r.open = SF_ARRAY(&c->arena, p->nbuffers, user *);
    r.seen = SF_ARRAY(&c->arena, p->nstreams, uint32_t);
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        SF_TRY(check_start(&r, i));
        for (uint32_t j = 0; j < inst->nin; j++)
            SF_TRY(use_view(&r, i, &inst->in[j], false));
        for (uint32_t j = 0; j < inst->nout; j++)
            SF_TRY(use_view(&r, i, &inst->out[j], true));
        if (inst->stream == 0)
            r.now = i + 1;
    }
    return SF_OK;
}

/* Collectives */

/* Ranks match collectives by number. Messages of a pair arrive in order: sends and receives are
 * numbered separately. */
static sf_status check_numbers(const checking *c)
{
    const sf_program *p = c->p;
    int64_t last = -1;
    for (uint32_t i = 0; i < p->ninsts; i++) {
        if (p->insts[i].kind != SF_INST_COMM || sf_is_one_way(p->insts[i].exchange))
            continue;
        int64_t number = p->insts[i].exchange->number;
        if (number <= last)
            return sf_inst_fail(p, i, c->diag,
                                "is collective %" PRId64 ", after collective %" PRId64, number,
                                last);
        last = number;
    }
    return SF_OK;
}

/* All */

static sf_status check_signature(const checking *c)
{
    const sf_program *p = c->p;
    if (p->nstreams == 0 || p->streams[0].kind != SF_STREAM_COMPUTE || p->narguments > p->nbuffers)
        return sf_fail(c->diag, SF_EMISMATCH, SF_NOWHERE,
                       "program: it has no stream to compute on");
    for (uint32_t i = 0; i < p->nbuffers; i++)
        if (p->buffers[i].is_lent &&
            (i >= p->narguments || p->buffers[i].space != SF_SPACE_DEVICE || !p->argument_types))
            return sf_fail(c->diag, SF_EMISMATCH, SF_NOWHERE,
                           "program: buffer %u is lent, and is no argument on the device", i);
    for (uint32_t i = 0; i < p->narguments; i++) {
        if (p->buffers[i].home != SF_HOME_ARGUMENT || p->buffers[i].argument != i)
            return sf_fail(c->diag, SF_EMISMATCH, SF_NOWHERE,
                           "program: buffer %u is not that of argument %u", i, i);
        if (p->next[i] != SF_NONE &&
            (p->next[i] >= p->nresults || p->results[p->next[i]].buffer != i))
            return sf_fail(c->diag, SF_EMISMATCH, SF_NOWHERE,
                           "program: the next value of argument %u is not there", i);
    }
    for (uint32_t i = 0; i < p->nresults; i++)
        if (!sf_result_fits(p, i))
            return sf_fail(c->diag, SF_EMISMATCH, SF_NOWHERE, "program: result %u has no place", i);
    return SF_OK;
}

static sf_status check_nest_bodies(const checking *c)
{
    const sf_program *p = c->p;
    for (uint32_t i = 0; i < p->ninsts; i++)
        for (uint32_t j = 0; j < sf_body_count(&p->insts[i]); j++)
            SF_TRY(sf_program_check(p->insts[i].nest->bodies[j], c->diag));
    return SF_OK;
}

static sf_status check_program(checking *c)
{
    SF_TRY(check_signature(c));
    for (uint32_t i = 0; i < c->p->ninsts; i++)
        SF_TRY(sf_check_shape(c->p, i, c->diag));
    SF_TRY(check_numbers(c));
    SF_TRY(check_events(c));
    find_ends(c);
    SF_TRY(check_flow(c));
    SF_TRY(check_races(c));
    SF_TRY(check_places(c));
    return check_nest_bodies(c);
}

sf_status sf_program_check(const sf_program *program, sf_diag *diag)
{
    checking c = {.p = program, .diag = diag};
    sf_status status = check_program(&c);
    sf_arena_free(&c.arena);
    return status;
}
