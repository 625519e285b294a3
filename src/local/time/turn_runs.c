#include "local/time/looping.h"

#include <string.h>

#include "base/mem.h"
#include "prog/view.h"

static uint32_t later(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* A node that is wanted wants what it reads, a barrier only what it hands on to who wants it. */
static void want_read(const looping *o, const sf_node *node, uint32_t operand, uint32_t version,
                      bool *wanted)
{
    bool wants = !sf_is_transparent(node) || wanted[o->t->b->moves->made[node->result + operand]];
    wanted[version] = wanted[version] || wants;
}

/* Where all turns of the batch are there anyway, in the last loop; else as soon as can be. */
static uint32_t loop_of_landing(const looping *o, uint32_t index)
{
    bool early = o->t->recipe || o->t->blocks[index];
    return early ? o->t->landing_behind[index] - 1 : o->t->nloops - 1;
}

/* What leaves different loops, of those that could be one. */
uint32_t loop_part_of(const looping *o, uint32_t index)
{
    const sf_node *maker = sf_maker(o->t->step, o->t->b->moves->moves[index].value);
    return maker && o->t->apart ? o->t->apart[maker->id] : 0;
}

bool loop_leaves(const looping *o, uint32_t index, const loop_at *loop)
{
    return turn_lands(o->t, &o->t->b->moves->moves[index]) &&
           loop_of_landing(o, index) == loop->number && loop_part_of(o, index) == loop->part;
}

/* Which of them the loop runs: what leads to what lands behind it. */
void loop_find_runs(looping *o, const loop_at *loop)
{
    const sf_moves *m = o->t->b->moves;
    bool *wanted = SF_ARRAY(&o->t->arena, m->nversions, bool);
    memset(o->runs, 0, m->nsteps * sizeof *o->runs);
    memset(o->landing_of, 0, m->nversions * sizeof *o->landing_of);
    o->nlandings = 0;
    for (size_t i = m->nsteps; i-- > 0;) {
        uint32_t index = m->steps[i].index, count;
        if (m->steps[i].is_move) {
            const sf_moving *move = &m->moves[index];
            if (turn_lands(o->t, move)) {
                if (loop_leaves(o, index, loop)) {
                    leaving l = {.of = turn_land(o->t, index), .other = o->landing_of[move->from]};
                    SF_PUSH(&o->t->arena, o->landings, o->nlandings, o->landing_capacity, l);
                    o->landing_of[move->from] = o->nlandings;
                    wanted[move->from] = true;
                }
                if (turns_version(o->t, move->to) && wanted[move->to])
                    o->runs[i] = true;
                continue;
            }
            o->runs[i] = turns_version(o->t, move->to) && wanted[move->to];
            if (o->runs[i])
                wanted[move->from] = true;
            continue;
        }
        const sf_node *node = o->t->step->nodes[index];
        const uint32_t *reads = turn_reads(o->t, index, &count);
        for (uint32_t r = 0; r < node->nresults; r++)
            o->runs[i] = o->runs[i] || (wanted[m->made[node->result + r]] &&
                                        turns_version(o->t, m->made[node->result + r]));
        for (uint32_t r = 0; r < count && o->runs[i]; r++)
            want_read(o, node, r, reads[r], wanted);
    }
}

bool loop_stands_with_readers(const sf_node *node)
{
    bool is_number = sf_is(node, SF_OP_CONSTANT) && node->attrs[0]->dense.splat;
    return is_number || sf_is_view_op(node) || sf_is_transparent(node);
}

void loop_find_places(looping *o)
{
    const sf_moves *m = o->t->b->moves;
    for (size_t i = 0; i < m->nsteps; i++) {
        uint32_t index = m->steps[i].index, count, behind = 0;
        if (m->steps[i].is_move) {
            const sf_moving *move = &m->moves[index];
            if (turns_version(o->t, move->to))
                continue;
            o->t->behind[move->to] =
                turn_lands(o->t, move) ? loop_of_landing(o, index) + 1 : o->t->behind[move->from];
            continue;
        }
        const sf_node *node = o->t->step->nodes[index];
        const uint32_t *reads = turn_reads(o->t, index, &count);
        if (turns_node(o->t, node) && !sf_is_transparent(node))
            continue;
        for (uint32_t r = 0; r < count; r++)
            behind = later(behind, turns_version(o->t, reads[r]) ? 0 : o->t->behind[reads[r]]);
        for (uint32_t r = 0; r < node->nresults; r++)
            if (!turns_version(o->t, m->made[node->result + r]))
                o->t->behind[m->made[node->result + r]] =
                    sf_is_transparent(node) ? o->t->behind[reads[r]] : behind;
    }
}

bool loop_is_still(const looping *o, const sf_step_item *item)
{
    if (item->is_move)
        return false;
    const sf_node *node = o->t->step->nodes[item->index];
    return !loop_stands_with_readers(node) && !turns_node(o->t, node);
}

const bool *loop_find_before(const looping *o)
{
    const sf_moves *m = o->t->b->moves;
    bool *wanted = SF_ARRAY(&o->t->arena, m->nversions, bool);
    bool *before = SF_ARRAY(&o->t->arena, m->nsteps, bool);
    for (size_t i = m->nsteps; i-- > 0;) {
        uint32_t index = m->steps[i].index, count;
        bool needs = o->runs[i];
        if (m->steps[i].is_move) {
            const sf_moving *move = &m->moves[index];
            needs = needs || (wanted[move->to] && !turn_lands(o->t, move));
            wanted[move->from] = wanted[move->from] || needs;
            continue;
        }
        const sf_node *node = o->t->step->nodes[index];
        const uint32_t *reads = turn_reads(o->t, index, &count);
        for (uint32_t r = 0; r < node->nresults && !turns_node(o->t, node); r++)
            needs = needs || wanted[m->made[node->result + r]];
        before[i] = needs && loop_is_still(o, &m->steps[i]);
        for (uint32_t r = 0; r < count && needs; r++)
            want_read(o, node, r, reads[r], wanted);
    }
    return before;
}
