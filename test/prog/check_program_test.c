/* The checker lets every program pass that lowering makes, and no broken one: programs are broken on purpose, in
 * every way that a pass could break them, and each mutant must be refused with a message.
 *
 * Some mutants are valid: the two instructions that changed places are independent, the dropped
 * wait was not needed. An independent check detects these: it runs both programs on memory that
 * holds hashes instead of numbers, and compares every pair of instructions that may be in flight
 * together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "prog/check_program.h"
#include "support/indexing.h"
#include "support/moves.h"
#include "support/programs.h"
#include "support/sanitized.h"

/* Good programs */

/* By itself and, where the step is split, beside another rank's. */
static bool is_refused(const sf_program *program, const sf_program *other, sf_diag *diag)
{
    return sf_program_check(program, diag) != SF_OK ||
           (other && sf_program_match(program, other, diag) != SF_OK);
}

static void expect_good(void *context, const char *what, const sf_program *program,
                        const sf_program *other)
{
    (void)context;
    sf_diag *diag = sf_diag_new();
    if (is_refused(program, other, diag))
        fail_msg("%s: %s", what, sf_diag_text(diag, 0));
    sf_diag_free(diag);
}

static void test_good_programs(void **state)
{
    (void)state;
    int count = test_each_program(expect_good, NULL);
    print_message("%d good programs\n", count);
    assert_true(count > 140);
}

/* Mutants */

/* `p` is that of the copy. */
typedef struct mutant {
    test_copy copy;
    sf_program *p;
    test_random *random;
} mutant;

static uint32_t draw(mutant *m, size_t below)
{
    return (uint32_t)test_draw(m->random, 0, (int64_t)below - 1);
}

/* The judge: memory */

enum { CELL = 64 }; /* bytes of one hash: buffers are at multiples of it */

/* Cells of the arenas, then of every argument and every constant. */
typedef struct memory {
    const sf_program *p;
    sf_arena arena;
    size_t *first; /* by buffer */
    uint64_t *cells;
} memory;

static size_t cells_of(const sf_buffer *buffer)
{
    return (size_t)(buffer->bytes + CELL - 1) / CELL;
}

static void open_memory(memory *m, const sf_program *p)
{
    *m = (memory){.p = p};
    size_t host = (size_t)p->arena_bytes[SF_SPACE_DEVICE] / CELL + 1;
    size_t count = host + (size_t)p->arena_bytes[SF_SPACE_HOST] / CELL + 1;
    m->first = SF_ARRAY(&m->arena, p->nbuffers, size_t);
    for (size_t b = 0; b < p->nbuffers; b++) {
        const sf_buffer *buffer = &p->buffers[b];
        size_t place = (size_t)buffer->offset / CELL;
        m->first[b] = !sf_in_arena(buffer)               ? count
                      : buffer->space == SF_SPACE_DEVICE ? place
                                                         : host + place;
        count += sf_in_arena(buffer) ? 0 : cells_of(buffer);
    }
    m->cells = SF_ARRAY(&m->arena, count, uint64_t);
    for (size_t b = 0; b < p->nbuffers; b++)
        for (size_t c = 0; p->buffers[b].home != SF_HOME_ARENA && c < cells_of(&p->buffers[b]); c++)
            m->cells[m->first[b] + c] = sf_hash_mix(b + 1, c + 1);
}

static uint64_t hash_buffer(const memory *m, uint32_t buffer, uint64_t hash)
{
    for (size_t c = 0; c < cells_of(&m->p->buffers[buffer]); c++)
        hash = sf_hash_mix(hash, m->cells[m->first[buffer] + c]);
    return hash;
}

static uint64_t hash_view(const sf_view *view, uint64_t hash)
{
    hash = sf_hash_mix(hash, (uint64_t)view->offset);
    for (int i = 0; i < view->rank; i++)
        hash = sf_hash_mix(sf_hash_mix(hash, (uint64_t)view->dims[i]), (uint64_t)view->strides[i]);
    return hash;
}

static uint64_t hash_kind(const sf_inst *inst)
{
    uint64_t hash = sf_hash_mix(inst->kind, (uint64_t)(uintptr_t)inst->loop);
    if (inst->kind != SF_INST_COMM)
        return sf_hash_mix(hash, (uint64_t)(uintptr_t)inst->dot);
    const sf_exchange *x = inst->exchange;
    hash = sf_hash_mix(sf_hash_mix(hash, (uint64_t)x->kind), x->axes);
    hash = sf_hash_mix(sf_hash_mix(hash, (uint64_t)x->size), (uint64_t)x->to);
    return sf_hash_mix(sf_hash_mix(hash, (uint64_t)x->monoid), (uint64_t)x->number);
}

/* The instruction itself makes the operand that its epilogue reads. */
static bool is_inner(const sf_inst *inst, uint32_t input)
{
    return inst->loop && inst->kind != SF_INST_LOOP && input >= 2 &&
           inst->in[input].buffer == inst->out[0].buffer;
}

/* A copy moves data, a join does nothing. */
static void run_copy(memory *m, const sf_inst *inst)
{
    for (uint32_t i = 0; i < inst->nout; i++)
        memcpy(&m->cells[m->first[inst->out[i].buffer]], &m->cells[m->first[inst->in[i].buffer]],
               cells_of(&m->p->buffers[inst->out[i].buffer]) * sizeof *m->cells);
}

static void run_inst(memory *m, const sf_inst *inst)
{
    if (inst->kind == SF_INST_COPY || inst->kind == SF_INST_JOIN) {
        run_copy(m, inst);
        return;
    }
    uint64_t hash = hash_kind(inst);
    for (uint32_t i = 0; i < inst->nin; i++)
        if (!is_inner(inst, i))
            hash = hash_buffer(m, inst->in[i].buffer, hash_view(&inst->in[i], hash));
    for (uint32_t i = 0; i < inst->nout; i++) {
        uint32_t buffer = inst->out[i].buffer;
        uint64_t made = hash_view(&inst->out[i], sf_hash_mix(hash, i));
        for (size_t c = 0; c < cells_of(&m->p->buffers[buffer]); c++)
            m->cells[m->first[buffer] + c] = sf_hash_mix(made, c);
    }
}

/* The hash of the program's results, run one by one, and of its exchanges with other ranks. */
static uint64_t hash_run(const sf_program *p)
{
    memory m;
    uint64_t hash = 0;
    open_memory(&m, p);
    for (size_t i = 0; i < p->ninsts; i++) {
        run_inst(&m, &p->insts[i]);
        if (p->insts[i].kind == SF_INST_COMM)
            hash = sf_hash_mix(hash, hash_kind(&p->insts[i]));
    }
    for (uint32_t i = 0; i < p->narguments; i++)
        hash = hash_buffer(&m, i, hash);
    for (uint32_t i = 0; i < p->nresults; i++)
        hash = hash_buffer(&m, p->results[i].buffer, hash_view(&p->results[i], hash));
    sf_arena_free(&m.arena);
    return hash;
}

/* The judge: races */

/* By instruction, a bit for every instruction that has ended when it begins. False where an event is waited for
 * that nobody before raises. */
static bool find_ended(const sf_program *p, sf_arena *arena, uint64_t **ended)
{
    size_t words = p->ninsts / 64 + 1;
    uint32_t *before = SF_ARRAY(arena, p->nstreams, uint32_t); /* by stream, plus one */
    for (uint32_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        uint32_t last = before[inst->stream];
        ended[i] = SF_ARRAY(arena, words, uint64_t);
        if (last > 0)
            memcpy(ended[i], ended[last - 1], words * sizeof *ended[i]);
        if (last > 0 && inst->stream == 0)
            ended[i][(last - 1) / 64] |= UINT64_C(1) << (last - 1) % 64;
        for (uint32_t w = 0; w < inst->nwaits; w++) {
            uint32_t raiser = 0;
            while (raiser < i && p->insts[raiser].raises != inst->waits[w])
                raiser++;
            if (raiser == i)
                return false;
            for (size_t n = 0; n < words; n++)
                ended[i][n] |= ended[raiser][n];
            ended[i][raiser / 64] |= UINT64_C(1) << raiser % 64;
        }
        before[inst->stream] = i + 1;
    }
    return true;
}

static bool overlap(const sf_program *p, uint32_t a, uint32_t b)
{
    const sf_buffer *x = &p->buffers[a], *y = &p->buffers[b];
    if (a == b)
        return true;
    return sf_in_arena(x) && sf_in_arena(y) && x->space == y->space && x->bytes > 0 &&
           y->bytes > 0 && x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes;
}

static bool conflict(const sf_program *p, const sf_inst *a, const sf_inst *b)
{
    for (uint32_t i = 0; i < a->nin + a->nout; i++)
        for (uint32_t j = i < a->nin ? b->nin : 0; j < b->nin + b->nout; j++)
            if (overlap(p, i < a->nin ? a->in[i].buffer : a->out[i - a->nin].buffer,
                        j < b->nin ? b->in[j].buffer : b->out[j - b->nin].buffer))
                return true;
    return false;
}

static bool has_race(const sf_program *p)
{
    sf_arena arena = {0};
    uint64_t **ended = SF_ARRAY(&arena, p->ninsts, uint64_t *);
    bool found = !find_ended(p, &arena, ended);
    for (uint32_t i = 0; i < p->ninsts && !found; i++)
        for (uint32_t j = i + 1; j < p->ninsts && !found; j++)
            found = (p->insts[i].stream != 0 || p->insts[j].stream != 0) &&
                    !(ended[j][i / 64] >> i % 64 & 1) && conflict(p, &p->insts[i], &p->insts[j]);
    sf_arena_free(&arena);
    return found;
}

/* Faults: each is planted at a drawn place; false where the draw found none. */

static bool in_arena(const sf_program *p, uint32_t buffer)
{
    return p->buffers[buffer].home == SF_HOME_ARENA && p->buffers[buffer].bytes > 0 &&
           p->buffers[buffer].first != SF_NONE;
}

static bool move_buffer(mutant *m)
{
    sf_buffer *buffer = &m->p->buffers[draw(m, m->p->nbuffers)];
    int64_t room = m->p->arena_bytes[buffer->space] - buffer->bytes;
    if (!in_arena(m->p, (uint32_t)(buffer - m->p->buffers)) || room < CELL)
        return false;
    int64_t offset = (int64_t)draw(m, (size_t)(room / CELL) + 1) * CELL;
    if (offset == buffer->offset)
        return false;
    buffer->offset = offset;
    return true;
}

static bool misalign_buffer(mutant *m)
{
    sf_buffer *buffer = &m->p->buffers[draw(m, m->p->nbuffers)];
    buffer->offset += draw(m, 2) ? CELL / 2 : -CELL;
    return in_arena(m->p, (uint32_t)(buffer - m->p->buffers)) &&
           (buffer->offset < 0 || buffer->offset % CELL != 0);
}

static sf_inst *draw_inst(mutant *m)
{
    return &m->p->insts[draw(m, m->p->ninsts)];
}

static bool read_unwritten(mutant *m)
{
    uint32_t at = draw(m, m->p->ninsts), other = draw(m, m->p->nbuffers);
    sf_inst *inst = &m->p->insts[at];
    if (inst->nin == 0)
        return false;
    sf_view *view = &inst->in[draw(m, inst->nin)];
    const sf_buffer *buffer = &m->p->buffers[other];
    if (!in_arena(m->p, other) || buffer->first <= at ||
        buffer->bytes < m->p->buffers[view->buffer].bytes)
        return false;
    view->buffer = other;
    return true;
}

static bool drop_nth(mutant *m, uint32_t at)
{
    for (uint32_t w = at + 1; w < m->p->ninsts; w++) /* of its event nobody hears */
        for (uint32_t i = 0; i < m->p->insts[w].nwaits; i++)
            if (m->p->insts[w].waits[i] == m->p->insts[at].raises)
                m->p->insts[w].waits[i] = m->p->insts[w].waits[--m->p->insts[w].nwaits];
    memmove(&m->p->insts[at], &m->p->insts[at + 1], (m->p->ninsts - at - 1) * sizeof *m->p->insts);
    m->p->ninsts--;
    return true;
}

static bool drop_inst(mutant *m)
{
    uint32_t at = draw(m, m->p->ninsts);
    return m->p->insts[at].kind != SF_INST_COPY && drop_nth(m, at);
}

static bool swap_insts(mutant *m)
{
    uint32_t at = draw(m, m->p->ninsts), to = at + 1 + draw(m, 3);
    if (to >= m->p->ninsts)
        return false;
    sf_inst first = m->p->insts[at];
    m->p->insts[at] = m->p->insts[to];
    m->p->insts[to] = first;
    return true;
}

static bool remove_wait(mutant *m)
{
    sf_inst *inst = draw_inst(m);
    if (inst->nwaits == 0)
        return false;
    inst->waits[draw(m, inst->nwaits)] = inst->waits[inst->nwaits - 1];
    inst->nwaits--;
    return true;
}

static bool raise_twice(mutant *m)
{
    sf_inst *inst = draw_inst(m), *other = draw_inst(m);
    if (inst == other || other->raises == SF_NONE)
        return false;
    inst->raises = other->raises;
    return true;
}

static bool raise_never(mutant *m)
{
    sf_inst *inst = draw_inst(m);
    uint32_t event = inst->raises;
    bool heard = false;
    for (size_t i = 0; i < m->p->ninsts; i++)
        for (uint32_t w = 0; w < m->p->insts[i].nwaits; w++)
            heard = heard || m->p->insts[i].waits[w] == event;
    inst->raises = SF_NONE;
    return event != SF_NONE && heard;
}

static bool reads_later(const sf_program *p, uint32_t at, uint32_t buffer)
{
    for (size_t i = at + 1; i < p->ninsts; i++)
        for (uint32_t j = 0; j < p->insts[i].nin; j++)
            if (p->insts[i].in[j].buffer == buffer)
                return true;
    return false;
}

static void rename_buffer(sf_program *p, uint32_t from, uint32_t to)
{
    for (size_t i = 0; i < p->ninsts; i++) {
        for (uint32_t j = 0; j < p->insts[i].nin; j++)
            if (p->insts[i].in[j].buffer == from)
                p->insts[i].in[j].buffer = to;
        for (uint32_t j = 0; j < p->insts[i].nout; j++)
            if (p->insts[i].out[j].buffer == from)
                p->insts[i].out[j].buffer = to;
    }
    for (uint32_t i = 0; i < p->nresults; i++)
        if (p->results[i].buffer == from)
            p->results[i].buffer = to;
}

/* The result goes to the place of an operand that a later instruction reads. */
static bool write_over(mutant *m)
{
    uint32_t at = draw(m, m->p->ninsts);
    const sf_inst *inst = &m->p->insts[at];
    if (inst->nin == 0 || inst->nout == 0 || inst->kind == SF_INST_COPY)
        return false;
    uint32_t in = inst->in[draw(m, inst->nin)].buffer, out = inst->out[draw(m, inst->nout)].buffer;
    if (in == out || !in_arena(m->p, in) || !in_arena(m->p, out) ||
        m->p->buffers[in].bytes != m->p->buffers[out].bytes || !reads_later(m->p, at, in))
        return false;
    rename_buffer(m->p, out, in);
    return true;
}

/* An instruction between a collective and its first wait reads or writes its data. */
static bool touch_under_way(mutant *m)
{
    uint32_t at = draw(m, m->p->ninsts);
    const sf_inst *comm = &m->p->insts[at];
    if (comm->stream == 0 || at + 1 == m->p->ninsts)
        return false;
    sf_inst *inst = &m->p->insts[at + 1];
    bool writes = draw(m, 2);
    if (inst->stream != 0 || inst->nin == 0 || inst->nout == 0)
        return false;
    for (uint32_t w = 0; w < inst->nwaits; w++)
        if (inst->waits[w] == comm->raises)
            return false;
    sf_view *view = writes ? &inst->out[draw(m, inst->nout)] : &inst->in[draw(m, inst->nin)];
    uint32_t other = writes ? comm->in[0].buffer : comm->out[0].buffer;
    if (m->p->buffers[other].bytes < m->p->buffers[view->buffer].bytes || view->buffer == other)
        return false;
    view->buffer = other;
    return true;
}

static sf_inst *draw_comm(mutant *m)
{
    sf_inst *inst = draw_inst(m);
    return inst->kind == SF_INST_COMM ? inst : NULL;
}

static bool change_kind(mutant *m)
{
    sf_inst *inst = draw_comm(m);
    sf_collective kind = (sf_collective)draw(m, SF_COLLECTIVE_COUNT);
    if (!inst || inst->exchange->kind == kind)
        return false;
    inst->exchange->kind = kind;
    return true;
}

static bool change_axes(mutant *m)
{
    sf_inst *inst = draw_comm(m);
    sf_axes axes = (sf_axes)draw(m, (size_t)1 << (m->p->mesh.naxes + 1));
    if (!inst || inst->exchange->axes == axes)
        return false;
    inst->exchange->axes = axes;
    return true;
}

static bool change_size(mutant *m)
{
    sf_inst *inst = draw_comm(m);
    int size = (int)draw(m, 9);
    if (!inst || inst->exchange->size == size)
        return false;
    inst->exchange->size = size;
    return true;
}

static bool change_number(mutant *m)
{
    sf_inst *inst = draw_comm(m), *other = draw_comm(m);
    if (!inst || !other || inst == other)
        return false;
    inst->exchange->number = other->exchange->number;
    return true;
}

static bool drop_part(mutant *m)
{
    sf_inst *inst = draw_comm(m);
    if (!inst)
        return false;
    inst->nin--;
    inst->nout -= draw(m, 2);
    return true;
}

static bool change_peak(mutant *m)
{
    int64_t by = draw(m, 2) ? CELL : -CELL;
    switch (draw(m, 4)) {
    case 0:
        m->p->state_bytes += by;
        break;
    case 1:
        m->p->constant_bytes += by;
        break;
    case 2:
        m->p->arena_bytes[SF_SPACE_HOST] += CELL;
        break;
    default:
        m->p->arena_bytes[SF_SPACE_DEVICE] += by;
    }
    return true;
}

static bool change_life(mutant *m)
{
    sf_buffer *buffer = &m->p->buffers[draw(m, m->p->nbuffers)];
    uint32_t which = draw(m, 3), by = draw(m, 2) ? 1 : UINT32_MAX;
    if (which == 0)
        buffer->first += by;
    else if (which == 1)
        buffer->last += by;
    else
        buffer->is_result = !buffer->is_result;
    return true;
}

static bool reach_beyond(mutant *m)
{
    sf_inst *inst = draw_inst(m);
    uint32_t which = draw(m, inst->nin + inst->nout + 1);
    sf_view *view = which < inst->nin                ? &inst->in[which]
                    : which < inst->nin + inst->nout ? &inst->out[which - inst->nin]
                                                     : &m->p->results[draw(m, m->p->nresults)];
    int64_t bytes = m->p->buffers[view->buffer].bytes;
    if (bytes == 0 || sf_view_count(view) == 0)
        return false;
    int64_t room = bytes / sf_dtype_get(view->dtype)->bytes;
    int dim = view->rank > 0 ? (int)draw(m, (size_t)view->rank) : 0;
    if (draw(m, 2) || view->rank == 0) {
        view->offset = draw(m, 2) ? room : -room;
        return true;
    }
    view->dims[dim] += room + 1;
    return view->strides[dim] != 0;
}

static bool write_kept(mutant *m)
{
    sf_inst *inst = draw_inst(m);
    uint32_t other = draw(m, m->p->nbuffers);
    const sf_buffer *buffer = &m->p->buffers[other];
    bool kept = buffer->home == SF_HOME_CONSTANT ||
                (buffer->home == SF_HOME_ARGUMENT && m->p->next[buffer->argument] == SF_NONE);
    bool brings_back = inst->kind == SF_INST_COPY && buffer->is_lent;
    if (inst->nout == 0 || !kept || brings_back)
        return false;
    sf_view *view = &inst->out[draw(m, inst->nout)];
    if (buffer->bytes < m->p->buffers[view->buffer].bytes || m->p->buffers[view->buffer].bytes == 0)
        return false;
    view->buffer = other;
    return true;
}

static bool compute_on_host(mutant *m)
{
    sf_inst *inst = draw_inst(m);
    uint32_t other = draw(m, m->p->nbuffers);
    if (inst->nin == 0 || inst->kind == SF_INST_COPY || inst->kind == SF_INST_JOIN)
        return false;
    sf_view *view = &inst->in[draw(m, inst->nin)];
    if (m->p->buffers[other].bytes < m->p->buffers[view->buffer].bytes ||
        m->p->buffers[other].space == SF_SPACE_DEVICE)
        return false;
    view->buffer = other;
    return true;
}

static bool change_space(mutant *m)
{
    sf_buffer *buffer = &m->p->buffers[draw(m, m->p->nbuffers)];
    buffer->space = buffer->space == SF_SPACE_HOST ? SF_SPACE_DEVICE : SF_SPACE_HOST;
    return buffer->bytes > 0 && buffer->first != SF_NONE;
}

static bool change_gap(mutant *m)
{
    sf_buffer *buffer = &m->p->buffers[draw(m, m->p->nbuffers)];
    if (buffer->ngaps == 0)
        return false;
    sf_gap *gap = sf_arena_copy(&m->copy.arena, buffer->gaps, buffer->ngaps * sizeof *buffer->gaps);
    buffer->gaps = gap;
    if (draw(m, 3) == 0)
        buffer->ngaps--;
    else
        *(draw(m, 2) ? &gap->first : &gap->last) += draw(m, 2) ? 1 : UINT32_MAX;
    return true;
}

static bool lend_other(mutant *m)
{
    sf_buffer *buffer = &m->p->buffers[draw(m, m->p->nbuffers)];
    buffer->is_lent = !buffer->is_lent;
    return buffer->bytes > 0;
}

static bool drop_copy(mutant *m)
{
    uint32_t at = draw(m, m->p->ninsts);
    return m->p->insts[at].kind == SF_INST_COPY && drop_nth(m, at);
}

static bool drop_join(mutant *m)
{
    uint32_t at = draw(m, m->p->ninsts);
    return m->p->insts[at].kind == SF_INST_JOIN && drop_nth(m, at);
}

static const struct fault {
    const char *name;
    bool (*plant)(mutant *m);
    bool always;   /* it is one wherever it is planted */
    bool of_comm;  /* only where there are collectives */
    bool of_moves; /* only where there are moves between spaces */
} faults[] = {
    {"buffer moved", move_buffer, false, false, false},
    {"buffer between places", misalign_buffer, true, false, false},
    {"unwritten buffer read", read_unwritten, true, false, false},
    {"instruction dropped", drop_inst, false, false, false},
    {"instructions swapped", swap_insts, false, false, false},
    {"wait removed", remove_wait, false, true, false},
    {"event raised twice", raise_twice, true, true, false},
    {"event never raised", raise_never, true, true, false},
    {"operand written over", write_over, false, false, false},
    {"collective touched under way", touch_under_way, true, true, false},
    {"kind of a collective", change_kind, true, true, false},
    {"axes of a collective", change_axes, true, true, false},
    {"group size of a collective", change_size, true, true, false},
    {"number of a collective", change_number, true, true, false},
    {"part of a collective dropped", drop_part, true, true, false},
    {"announced bytes", change_peak, true, false, false},
    {"announced life", change_life, true, false, false},
    {"view beyond its buffer", reach_beyond, true, false, false},
    {"constant or argument written", write_kept, true, false, false},
    {"host read by what computes", compute_on_host, true, false, true},
    {"space of a buffer", change_space, true, false, false},
    {"announced gap", change_gap, true, false, true},
    {"argument lent, or not", lend_other, true, false, false},
    {"copy dropped", drop_copy, true, false, true},
    {"join dropped", drop_join, false, false, true},
};
enum { FAULTS = sizeof faults / sizeof *faults, TRIES = 300 };

typedef struct counts {
    int drawn, refused, equal, missed;
    char first[600]; /* the first that was missed */
} counts;

typedef struct breaking {
    test_random random;
    uint64_t whole; /* the current program's results */
    int moves, programs;
    counts counts[FAULTS];
} breaking;

/* A valid mutant passes once its records are recomputed. */
static void expect_settled(const char *what, const char *fault, mutant *m, const sf_program *other)
{
    sf_diag *diag = sf_diag_new();
    sf_program_settle(m->p);
    if (is_refused(m->p, other, diag))
        fail_msg("%s: %s: %s", what, fault, sf_diag_text(diag, 0));
    sf_diag_free(diag);
}

static void judge(breaking *b, int kind, const char *what, mutant *m, const sf_program *other)
{
    counts *n = &b->counts[kind];
    sf_diag *diag = sf_diag_new();
    bool refused = is_refused(m->p, other, diag);
    const char *text = sf_diag_text(diag, 0);
    if (refused && (!text || !strstr(text, "program: ")))
        fail_msg("%s: %s: refused without a message", what, faults[kind].name);
    sf_diag_free(diag);
    n->drawn++;
    if (!faults[kind].always && hash_run(m->p) == b->whole && !has_race(m->p)) {
        n->equal++;
        expect_settled(what, faults[kind].name, m, other);
    } else if (refused) {
        n->refused++;
    } else if (n->missed++ == 0) {
        snprintf(n->first, sizeof n->first, "%s", what);
    }
}

static void break_program(void *context, const char *what, const sf_program *program,
                          const sf_program *other)
{
    breaking *b = context;
    if (test_short() && b->programs++ % 4)
        return;
    b->whole = hash_run(program);
    assert_false(has_race(program));
    for (int kind = 0; kind < FAULTS; kind++)
        for (int i = 0, tries = 0; i < (test_short() ? 1 : 3) && tries < TRIES; tries++) {
            mutant m = {.p = &m.copy.p, .random = &b->random};
            test_copy_program(program, &m.copy);
            if (faults[kind].plant(&m)) {
                judge(b, kind, what, &m, other);
                i++;
            }
            test_copy_free(&m.copy);
        }
}

/* The same with moves between spaces, which change nothing. */
static void break_moved(void *context, const char *what, const sf_program *program,
                        const sf_program *other)
{
    breaking *b = context;
    test_copy moved;
    sf_diag *diag = sf_diag_new();
    test_copy_program(program, &moved);
    b->moves += test_move_buffers(&moved.p, &b->random);
    if (is_refused(&moved.p, other, diag))
        fail_msg("%s: %s", what, sf_diag_text(diag, 0));
    if (hash_run(&moved.p) != hash_run(program))
        fail_msg("%s: moves changed it", what);
    break_program(context, what, &moved.p, other);
    sf_diag_free(diag);
    test_copy_free(&moved);
}

static void expect_all_refused(test_with_program *with, breaking *b)
{
    int programs = test_each_program(with, b), missed = 0, drawn = 0;
    print_message("%-32s %7s %7s %7s %7s\n", "fault", "mutants", "refused", "equal", "missed");
    for (int kind = 0; kind < FAULTS; kind++) {
        const counts *n = &b->counts[kind];
        print_message("%-32s %7d %7d %7d %7d %s\n", faults[kind].name, n->drawn, n->refused,
                      n->equal, n->missed, n->first);
        missed += n->missed;
        drawn += n->drawn;
        assert_true(n->drawn > (test_short()           ? 3
                                : faults[kind].of_comm ? 20
                                                       : 100) ||
                    (faults[kind].of_moves && b->moves == 0));
    }
    print_message("%d mutants of %d programs\n", drawn, programs);
    assert_int_equal(missed, 0);
}

static void test_mutants(void **state)
{
    (void)state;
    static breaking b = {.random = {.key = 5}};
    expect_all_refused(break_program, &b);
}

static void test_moved_mutants(void **state)
{
    (void)state;
    static breaking b = {.random = {.key = 6}};
    expect_all_refused(break_moved, &b);
    print_message("%d moves between device and host\n", b.moves);
    assert_true(b.moves > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_programs),
        cmocka_unit_test(test_mutants),
        cmocka_unit_test(test_moved_mutants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
