#include "local/time/microbatch_loop.h"

#include <stdlib.h>

#include "base/mem.h"
#include "prog/view.h"

static uint32_t later(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* In the last loop, if it needs the whole batch in any case; else in the first possible loop. */
static uint32_t loop_of_output(const looping *o, uint32_t index)
{
    bool early = o->t->recipe || o->t->blocks[index];
    return early ? o->t->output_after[index] - 1 : o->t->nloops - 1;
}

/* Outputs of different loops that could otherwise be one loop. */
static uint32_t part_of(const looping *o, uint32_t index)
{
    const sf_node *maker = sf_maker(o->t->step, o->t->b->reshards->reshards[index].value);
    return maker && o->t->apart ? o->t->apart[maker->id] : 0;
}

/* Ends of one loop together, the last of the step first. */
static int by_loop(const void *a, const void *b)
{
    const loop_end *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    if (x->part != y->part)
        return x->part < y->part ? -1 : 1;
    return (x->item < y->item) - (x->item > y->item);
}

static int by_first_move(const void *a, const void *b)
{
    const loop_ends *x = a, *y = b;
    if (x->at->number != y->at->number)
        return x->at->number < y->at->number ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

static loop_end *list_ends(looping *o, size_t *count)
{
    const sf_reshards *m = o->t->b->reshards;
    loop_end *all = SF_ARRAY(&o->t->arena, m->nreshards, loop_end);
    *count = 0;
    for (uint32_t i = 0; i < m->nsteps; i++) {
        uint32_t index = m->steps[i].index;
        if (m->steps[i].is_reshard && is_loop_output(o->t, &m->reshards[index]))
            all[(*count)++] = (loop_end){loop_of_output(o, index), part_of(o, index), index, i};
    }
    if (*count > 0)
        qsort(all, *count, sizeof *all, by_loop);
    return all;
}

static void find_makers(looping *o)
{
    const sf_reshards *m = o->t->b->reshards;
    o->asked = SF_ARRAY(&o->t->arena, m->nversions, uint32_t);
    o->made_by = SF_ARRAY(&o->t->arena, m->nversions, uint32_t);
    for (size_t v = 0; v < m->nversions; v++)
        o->made_by[v] = SF_NONE;
    for (uint32_t i = 0; i < m->nsteps; i++) {
        const sf_node *node = m->steps[i].is_reshard ? NULL : o->t->step->nodes[m->steps[i].index];
        if (!node)
            o->made_by[m->reshards[m->steps[i].index].to] = i;
        for (uint32_t r = 0; node && r < node->nresults; r++)
            o->made_by[m->made[node->result + r]] = i;
    }
}

void loop_find_ends(looping *o)
{
    size_t count;
    const loop_end *all = list_ends(o, &count);
    o->ends = SF_ARRAY(&o->t->arena, count, loop_ends);
    for (size_t i = 0; i < count; i++) {
        bool is_same =
            i > 0 && all[i].number == all[i - 1].number && all[i].part == all[i - 1].part;
        if (!is_same)
            o->ends[o->nends++] = (loop_ends){&all[i], 0, all[i].reshard};
        loop_ends *loop = &o->ends[o->nends - 1];
        loop->count++;
        loop->first = all[i].reshard < loop->first ? all[i].reshard : loop->first;
    }
    if (o->nends > 0)
        qsort(o->ends, o->nends, sizeof *o->ends, by_first_move);
    find_makers(o);
}

/* Marking predecessors */

static void begin_asking(looping *o)
{
    o->question++;
    o->nstack = 0;
}

static void ask_for(looping *o, uint32_t version)
{
    if (o->asked[version] == o->question)
        return;
    o->asked[version] = o->question;
    SF_PUSH(&o->t->arena, o->stack, o->nstack, o->stack_capacity, version);
}

/* Marks the operands of a node that is needed for a version; of a barrier only the operand of that
 * version. */
static void ask_for_reads(looping *o, const sf_node *node, uint32_t version)
{
    uint32_t count;
    const uint32_t *reads = microbatch_reads(o->t, node->id, &count);
    for (uint32_t r = 0; r < count; r++)
        if (!sf_is_transparent(node) || o->t->b->reshards->made[node->result + r] == version)
            ask_for(o, reads[r]);
}

static void take_item(looping *o, loop_items *list, uint32_t item)
{
    SF_PUSH(&o->t->arena, list->at, list->count, list->capacity, item);
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* In the order of the step, each once. */
static void put_in_order(loop_items *list)
{
    size_t kept = 0;
    if (list->count > 0)
        qsort(list->at, list->count, sizeof *list->at, by_number);
    for (size_t i = 0; i < list->count; i++)
        if (kept == 0 || list->at[kept - 1] != list->at[i])
            list->at[kept++] = list->at[i];
    list->count = kept;
}

static void forget_loop(looping *o)
{
    for (size_t i = 0; i < o->running.count; i++)
        o->runs[o->running.at[i]] = false;
    for (size_t i = 0; i < o->nloop_outputs; i++)
        o->output_of[o->t->b->reshards->reshards[o->loop_outputs[i].of.reshard].from] = 0;
    o->running.count = o->before.count = o->nloop_outputs = 0;
}

/* Runs the maker of a marked version in the loop. Outputs of earlier loops are inputs of this
 * one. */
static void run_maker(looping *o, uint32_t version)
{
    const sf_reshards *m = o->t->b->reshards;
    uint32_t item = o->made_by[version];
    if (item == SF_NONE || !is_microbatched_version(o->t, version))
        return;
    o->runs[item] = true;
    take_item(o, &o->running, item);
    if (!m->steps[item].is_reshard)
        ask_for_reads(o, o->t->step->nodes[m->steps[item].index], version);
    else if (!is_loop_output(o->t, &m->reshards[m->steps[item].index]))
        ask_for(o, m->reshards[m->steps[item].index].from);
}

/* Finds invariant operands of the loop, and their predecessors, that are not available yet: many
 * loops take the time of one. */
static void find_before(looping *o)
{
    const sf_reshards *m = o->t->b->reshards;
    begin_asking(o);
    for (size_t i = 0; i < o->running.count; i++) {
        const sf_step_item *item = &m->steps[o->running.at[i]];
        const sf_node *node = item->is_reshard ? NULL : o->t->step->nodes[item->index];
        if (!node)
            ask_for(o, m->reshards[item->index].from);
        else if (!sf_is_transparent(node))
            ask_for_reads(o, node, SF_NONE);
    }
    while (o->nstack > 0) {
        uint32_t version = o->stack[--o->nstack], item = o->made_by[version];
        if (item == SF_NONE)
            continue;
        const sf_node *node =
            m->steps[item].is_reshard ? NULL : o->t->step->nodes[m->steps[item].index];
        const sf_resharding *reshard = node ? NULL : &m->reshards[m->steps[item].index];
        if (reshard && !is_loop_output(o->t, reshard))
            ask_for(o, reshard->from);
        if (!node || o->is_added[node->id] || (!o->runs[item] && is_microbatched_node(o->t, node)))
            continue;
        if (loop_is_invariant(o, &m->steps[item]))
            take_item(o, &o->before, item);
        ask_for_reads(o, node, version);
    }
    put_in_order(&o->before);
}

/* The items that the loop runs: the predecessors of its outputs. */
void loop_find_runs(looping *o, const loop_ends *loop)
{
    forget_loop(o);
    begin_asking(o);
    for (size_t i = 0; i < loop->count; i++) {
        uint32_t from = o->t->b->reshards->reshards[loop->at[i].reshard].from;
        leaving l = {.of = loop_output_of(o->t, loop->at[i].reshard), .other = o->output_of[from]};
        SF_PUSH(&o->t->arena, o->loop_outputs, o->nloop_outputs, o->output_capacity, l);
        o->output_of[from] = o->nloop_outputs;
        ask_for(o, from);
    }
    while (o->nstack > 0)
        run_maker(o, o->stack[--o->nstack]);
    put_in_order(&o->running);
    find_before(o);
}

bool loop_stands_with_readers(const sf_node *node)
{
    bool is_number = sf_is(node, SF_OP_CONSTANT) && node->attrs[0]->dense.splat;
    return is_number || sf_is_view_op(node) || sf_is_transparent(node);
}

void loop_find_places(looping *o)
{
    const sf_reshards *m = o->t->b->reshards;
    for (size_t i = 0; i < m->nsteps; i++) {
        uint32_t index = m->steps[i].index, count, after = 0;
        if (m->steps[i].is_reshard) {
            const sf_resharding *reshard = &m->reshards[index];
            if (is_microbatched_version(o->t, reshard->to))
                continue;
            o->t->after[reshard->to] = is_loop_output(o->t, reshard) ? loop_of_output(o, index) + 1
                                                                     : o->t->after[reshard->from];
            continue;
        }
        const sf_node *node = o->t->step->nodes[index];
        const uint32_t *reads = microbatch_reads(o->t, index, &count);
        if (is_microbatched_node(o->t, node) && !sf_is_transparent(node))
            continue;
        for (uint32_t r = 0; r < count; r++)
            after =
                later(after, is_microbatched_version(o->t, reads[r]) ? 0 : o->t->after[reads[r]]);
        for (uint32_t r = 0; r < node->nresults; r++)
            if (!is_microbatched_version(o->t, m->made[node->result + r]))
                o->t->after[m->made[node->result + r]] =
                    sf_is_transparent(node) ? o->t->after[reads[r]] : after;
    }
}

bool loop_is_invariant(const looping *o, const sf_step_item *item)
{
    if (item->is_reshard)
        return false;
    const sf_node *node = o->t->step->nodes[item->index];
    return !loop_stands_with_readers(node) && !is_microbatched_node(o->t, node);
}
