#include "support/moves.h"

#include <stdlib.h>

#include "prog/memory_spaces.h"

enum { MOST_MOVES = 64 };

typedef struct moves {
    sf_program *p;
    test_random *random;
    sf_insertion list[4 * MOST_MOVES];
    size_t count;
    int nmoves;
} moves;

static bool touches(const sf_inst *inst, uint32_t buffer, bool writes)
{
    for (uint32_t i = 0; i < inst->nout; i++)
        if (inst->out[i].buffer == buffer)
            return true;
    for (uint32_t i = 0; !writes && i < inst->nin; i++)
        if (inst->in[i].buffer == buffer)
            return true;
    return false;
}

static uint32_t draw_from(moves *m, uint32_t first, uint32_t last)
{
    return (uint32_t)test_draw(m->random, first, last);
}

static void insert(moves *m, uint32_t before, sf_inst inst)
{
    m->list[m->count++] = (sf_insertion){before, inst};
}

/* Away some time between the end of instruction from - 1 and the beginning of instruction `to`. */
static void move_away(moves *m, uint32_t buffer, uint32_t from, uint32_t to)
{
    uint32_t host = sf_add_host_buffer(m->p, buffer);
    uint32_t out = draw_from(m, from, to), join = draw_from(m, out, to);
    insert(m, out, sf_copy_inst(m->p, buffer, host));
    if (draw_from(m, 0, 4) > 0)
        insert(m, join, sf_join_inst(m->p, &host, 1));
    insert(m, draw_from(m, join, to), sf_copy_inst(m->p, host, buffer));
    m->nmoves++;
}

static void move_some(moves *m, uint32_t buffer)
{
    const sf_buffer *b = &m->p->buffers[buffer];
    bool is_argument = b->home == SF_HOME_ARGUMENT, stays = is_argument || b->is_result;
    bool moved = false, begun = is_argument;
    uint32_t from = 0;
    for (uint32_t i = 0; i <= m->p->ninsts && m->nmoves < MOST_MOVES; i++) {
        bool touched = i < m->p->ninsts && touches(&m->p->insts[i], buffer, false);
        if (!touched && !(i == m->p->ninsts && stays))
            continue;
        if (begun && draw_from(m, 0, 1)) {
            move_away(m, buffer, from, i);
            moved = true;
        }
        begun = true;
        from = i + 1;
    }
    m->p->buffers[buffer].is_lent = is_argument && moved;
}

/* It comes in before it is first touched and goes out when it was written last. */
static void house_argument(moves *m, uint32_t argument)
{
    uint32_t buffer, first = SF_NONE, written = SF_NONE;
    sf_house_on_host(m->p, &argument, 1, &buffer);
    for (uint32_t i = 0; i < m->p->ninsts; i++) {
        if (first == SF_NONE && touches(&m->p->insts[i], buffer, false))
            first = i;
        if (touches(&m->p->insts[i], buffer, true))
            written = i;
    }
    if (first == SF_NONE)
        return;
    insert(m, draw_from(m, 0, first), sf_copy_inst(m->p, argument, buffer));
    if (written != SF_NONE)
        insert(m, draw_from(m, written + 1, (uint32_t)m->p->ninsts),
               sf_copy_inst(m->p, buffer, argument));
    m->nmoves++;
}

/* Those of one buffer are in their order, so the sort keeps it. */
static void sort_insertions(moves *m)
{
    for (size_t i = 1; i < m->count; i++) {
        sf_insertion x = m->list[i];
        size_t at = i;
        for (; at > 0 && m->list[at - 1].before > x.before; at--)
            m->list[at] = m->list[at - 1];
        m->list[at] = x;
    }
}

int test_move_buffers(sf_program *p, test_random *random)
{
    moves m = {.p = p, .random = random};
    size_t nbuffers = p->nbuffers;
    for (uint32_t b = 0; b < nbuffers && m.nmoves < MOST_MOVES; b++) {
        const sf_buffer *buffer = &p->buffers[b];
        bool stands = buffer->home == SF_HOME_ARGUMENT || buffer->first != SF_NONE;
        if (buffer->home == SF_HOME_CONSTANT || !stands || buffer->bytes == 0 ||
            draw_from(&m, 0, 2) == 0)
            continue;
        if (buffer->home == SF_HOME_ARGUMENT && draw_from(&m, 0, 2) == 0)
            house_argument(&m, b);
        else
            move_some(&m, b);
    }
    sort_insertions(&m);
    sf_insert_insts(p, m.list, m.count);
    sf_program_settle(p);
    return m.nmoves;
}
