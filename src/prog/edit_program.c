#include "prog/edit_program.h"

#include <string.h>

#include "base/hash.h"

/* Keeping */

/* Arrays for the lists of a program. */
typedef struct room {
    sf_buffer *buffers;
    sf_view *results, *views; /* views: of all instructions */
    uint32_t *next;
    sf_inst *insts;
    sf_exchange *exchanges; /* by instruction */
} room;

struct sf_kept {
    sf_program lists; /* copies of the arrays; other fields are unused */
    sf_nest *nests;   /* by instruction that has bodies */
    sf_kept ***bodies;
    room *
        handed; /* in the arena of the program, which gets the same at each put_back; NULL: none yet */
};

static room *make_room(const sf_program *p, sf_arena *arena)
{
    room *r = SF_NEW(arena, room);
    size_t views = 0;
    for (size_t i = 0; i < p->ninsts; i++)
        views += (size_t)p->insts[i].nin + p->insts[i].nout;
    r->buffers = SF_ARRAY(arena, p->nbuffers, sf_buffer);
    r->results = SF_ARRAY(arena, p->nresults, sf_view);
    r->views = SF_ARRAY(arena, views, sf_view);
    r->next = SF_ARRAY(arena, p->narguments, uint32_t);
    r->insts = SF_ARRAY(arena, p->ninsts, sf_inst);
    r->exchanges = SF_ARRAY(arena, p->ninsts, sf_exchange);
    return r;
}

#define COPY(to, from, count)                                                                      \
    do {                                                                                           \
        if ((count) > 0)                                                                           \
            memcpy(to, from, (count) * sizeof *(to));                                              \
    } while (0)

static void copy_insts(const sf_program *from, const room *r)
{
    sf_view *views = r->views;
    COPY(r->insts, from->insts, from->ninsts);
    for (size_t i = 0; i < from->ninsts; i++) {
        sf_inst *inst = &r->insts[i];
        COPY(views, inst->in, inst->nin);
        inst->in = views;
        views += inst->nin;
        COPY(views, inst->out, inst->nout);
        inst->out = views;
        views += inst->nout;
        if (inst->kind != SF_INST_COMM)
            continue;
        r->exchanges[i] = *inst->exchange;
        inst->exchange = &r->exchanges[i];
    }
}

/* The lists of `to` are those of `from`, in that room. */
static void copy_lists(const sf_program *from, const room *r, sf_program *to)
{
    COPY(r->buffers, from->buffers, from->nbuffers);
    COPY(r->results, from->results, from->nresults);
    COPY(r->next, from->next, from->narguments);
    copy_insts(from, r);
    to->buffers = r->buffers;
    to->results = r->results;
    to->next = r->next;
    to->insts = r->insts;
    to->nbuffers = to->buffer_capacity = from->nbuffers;
    to->narguments = from->narguments;
    to->nresults = from->nresults;
    to->ninsts = to->inst_capacity = from->ninsts;
    to->nevents = from->nevents;
    to->state_bytes = from->state_bytes;
    to->host_state_bytes = from->host_state_bytes;
    to->constant_bytes = from->constant_bytes;
    memcpy(to->arena_bytes, from->arena_bytes, sizeof to->arena_bytes);
}

sf_kept *sf_program_keep(const sf_program *p, sf_arena *arena)
{
    sf_kept *kept = SF_NEW(arena, sf_kept);
    copy_lists(p, make_room(p, arena), &kept->lists);
    kept->nests = SF_ARRAY(arena, p->ninsts, sf_nest);
    kept->bodies = SF_ARRAY(arena, p->ninsts, sf_kept **);
    for (size_t i = 0; i < p->ninsts; i++) {
        uint32_t count = sf_body_count(&p->insts[i]);
        if (count == 0)
            continue;
        kept->nests[i] = *p->insts[i].nest;
        kept->bodies[i] = SF_ARRAY(arena, count, sf_kept *);
        for (uint32_t b = 0; b < count; b++)
            kept->bodies[i][b] = sf_program_keep(p->insts[i].nest->bodies[b], arena);
    }
    return kept;
}

void sf_program_put_back(sf_program *p, sf_kept *kept)
{
    if (!kept->handed)
        kept->handed = make_room(&kept->lists, &p->arena);
    copy_lists(&kept->lists, kept->handed, p);
    for (size_t i = 0; i < p->ninsts; i++)
        for (uint32_t b = 0; b < sf_body_count(&p->insts[i]); b++) {
            *p->insts[i].nest = kept->nests[i];
            sf_program_put_back(p->insts[i].nest->bodies[b], kept->bodies[i][b]);
        }
}

/* Lists */

void sf_program_arrange(sf_program *p, const uint32_t *order, size_t count)
{
    sf_inst *insts = SF_ARRAY(&p->arena, count, sf_inst);
    for (size_t i = 0; i < count; i++)
        insts[i] = p->insts[order[i]];
    p->insts = insts;
    p->ninsts = p->inst_capacity = count;
}

uint32_t sf_program_add(sf_program *p, const sf_inst *inst)
{
    SF_PUSH(&p->arena, p->insts, p->ninsts, p->inst_capacity, *inst);
    return (uint32_t)p->ninsts - 1;
}

uint32_t sf_program_add_buffer(sf_program *p, int64_t bytes, sf_value value)
{
    sf_buffer buffer = {.home = SF_HOME_ARENA, .bytes = bytes, .value = value, .first = SF_NONE};
    SF_PUSH(&p->arena, p->buffers, p->nbuffers, p->buffer_capacity, buffer);
    return (uint32_t)p->nbuffers - 1;
}

void sf_program_read_instead(sf_program *p, uint32_t after, uint32_t from, uint32_t to)
{
    for (size_t i = (size_t)after + 1; i < p->ninsts; i++)
        for (uint32_t j = 0; j < p->insts[i].nin; j++)
            if (p->insts[i].in[j].buffer == from)
                p->insts[i].in[j].buffer = to;
}

/* Bodies */

static void shift_views(sf_view *views, uint32_t count, uint32_t at, uint32_t by)
{
    for (uint32_t i = 0; i < count; i++)
        views[i].buffer += views[i].buffer >= at ? by : 0;
}

/* So many more arguments, at this place. */
static void add_arguments(sf_program *body, uint32_t at, const int64_t *bytes, uint32_t count)
{
    sf_buffer *buffers = SF_ARRAY(&body->arena, body->nbuffers + count, sf_buffer);
    uint32_t *next = SF_ARRAY(&body->arena, body->narguments + count, uint32_t);
    for (uint32_t b = 0; b < body->nbuffers; b++) {
        uint32_t to = b + (b >= at ? count : 0);
        buffers[to] = body->buffers[b];
        if (body->buffers[b].home == SF_HOME_ARGUMENT)
            buffers[to].argument = to;
    }
    for (uint32_t i = 0; i < body->narguments; i++)
        next[i + (i >= at ? count : 0)] = body->next[i];
    for (uint32_t i = 0; i < count; i++) {
        buffers[at + i] = (sf_buffer){.home = SF_HOME_ARGUMENT,
                                      .bytes = bytes[i],
                                      .argument = at + i,
                                      .value = SF_NONE,
                                      .first = SF_NONE};
        next[at + i] = SF_NONE;
    }
    body->buffers = buffers;
    body->buffer_capacity = body->nbuffers += count;
    body->next = next;
    body->narguments += count;
    for (size_t i = 0; i < body->ninsts; i++) {
        shift_views(body->insts[i].in, body->insts[i].nin, at, count);
        shift_views(body->insts[i].out, body->insts[i].nout, at, count);
    }
    shift_views(body->results, body->nresults, at, count);
}

uint32_t sf_nest_capture(sf_program *p, uint32_t index, const sf_view *views, uint32_t count)
{
    sf_inst *inst = &p->insts[index];
    sf_nest *nest = inst->nest;
    uint32_t taken = inst->kind == SF_INST_WHILE ? nest->noperands : 0;
    uint32_t at = taken + nest->ncaptured;
    sf_view *in = SF_ARRAY(&p->arena, inst->nin + count, sf_view);
    int64_t *bytes = SF_ARRAY(&p->arena, count, int64_t);
    if (inst->nin > 0)
        memcpy(in, inst->in, inst->nin * sizeof *in);
    for (uint32_t i = 0; i < count; i++) {
        in[inst->nin++] = views[i];
        bytes[i] = p->buffers[views[i].buffer].bytes;
    }
    inst->in = in;
    nest->ncaptured += count;
    for (uint32_t b = 0; b < nest->nbodies; b++)
        add_arguments(nest->bodies[b], at, bytes, count);
    return at;
}

/* Collectives */

static sf_part_origin *copy_parts(sf_program *p, const sf_inst *inst)
{
    sf_part_origin *parts = SF_ARRAY(&p->arena, inst->nout, sf_part_origin);
    for (uint32_t i = 0; i < inst->nout; i++)
        parts[i] = sf_exchange_part(inst->exchange, i);
    return parts;
}

void sf_join_exchanges(sf_program *p, const uint32_t *insts, size_t count)
{
    uint32_t total = 0, at = 0;
    for (size_t i = 0; i < count; i++)
        total += p->insts[insts[i]].nout;
    sf_view *in = SF_ARRAY(&p->arena, total, sf_view), *out = SF_ARRAY(&p->arena, total, sf_view);
    sf_part_origin *parts = SF_ARRAY(&p->arena, total, sf_part_origin);
    for (size_t i = 0; i < count; i++) {
        const sf_inst *inst = &p->insts[insts[i]];
        for (uint32_t j = 0; j < inst->nout; j++, at++) {
            in[at] = inst->in[j];
            out[at] = inst->out[j];
            parts[at] = sf_exchange_part(inst->exchange, j);
        }
    }
    sf_inst *first = &p->insts[insts[0]];
    sf_exchange *exchange = sf_arena_copy(&p->arena, first->exchange, sizeof *exchange);
    exchange->parts = parts;
    first->exchange = exchange;
    first->nin = first->nout = total;
    first->in = in;
    first->out = out;
}

void sf_part_exchange(sf_program *p, uint32_t index)
{
    sf_inst whole = p->insts[index];
    const sf_part_origin *parts = copy_parts(p, &whole);
    for (uint32_t i = whole.nout; i-- > 0;) {
        sf_inst one = whole;
        one.exchange = sf_arena_copy(&p->arena, whole.exchange, sizeof *whole.exchange);
        one.exchange->parts = &parts[i];
        one.nin = one.nout = 1;
        one.in = &whole.in[i];
        one.out = &whole.out[i];
        if (i == 0)
            p->insts[index] = one;
        else
            sf_program_add(p, &one);
    }
}

bool sf_drop_parts(sf_program *p, sf_inst *inst, const bool *gone)
{
    uint32_t left = 0;
    sf_part_origin *parts = SF_ARRAY(&p->arena, inst->nout, sf_part_origin);
    sf_view *in = SF_ARRAY(&p->arena, inst->nout, sf_view);
    sf_view *out = SF_ARRAY(&p->arena, inst->nout, sf_view);
    for (uint32_t j = 0; j < inst->nout; j++) {
        if (gone[j])
            continue;
        parts[left] = sf_exchange_part(inst->exchange, j);
        in[left] = inst->in[j];
        out[left++] = inst->out[j];
    }
    inst->exchange = sf_arena_copy(&p->arena, inst->exchange, sizeof *inst->exchange);
    inst->exchange->parts = parts;
    inst->nin = inst->nout = left;
    inst->in = in;
    inst->out = out;
    return left > 0;
}

static int64_t number_from(sf_program *p, int64_t number)
{
    for (size_t i = 0; i < p->ninsts; i++) {
        sf_inst *inst = &p->insts[i];
        for (uint32_t b = 0; b < sf_body_count(inst); b++)
            number = number_from(inst->nest->bodies[b], number);
        if (inst->kind != SF_INST_COMM || sf_is_one_way(inst->exchange))
            continue;
        sf_exchange *exchange = sf_arena_copy(&p->arena, inst->exchange, sizeof *exchange);
        exchange->parts = copy_parts(p, inst);
        exchange->number = number++;
        inst->exchange = exchange;
    }
    return number;
}

void sf_program_number(sf_program *p)
{
    number_from(p, 0);
}

static uint64_t add_traffic(uint64_t hash, const sf_program *p)
{
    for (size_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        for (uint32_t b = 0; b < sf_body_count(inst); b++)
            hash = sf_hash_mix(add_traffic(hash, inst->nest->bodies[b]), b);
        if (inst->kind != SF_INST_COMM || sf_is_one_way(inst->exchange))
            continue;
        hash = sf_hash_mix(sf_hash_mix(hash, (uint64_t)inst->exchange->kind), inst->exchange->axes);
        for (uint32_t j = 0; j < inst->nout; j++) {
            hash = sf_hash_mix(hash, (uint64_t)sf_view_count(&inst->out[j]));
            hash = sf_hash_mix(hash, (uint64_t)inst->out[j].dtype);
        }
    }
    return hash;
}

uint64_t sf_program_traffic(const sf_program *p)
{
    return add_traffic(0, p);
}
