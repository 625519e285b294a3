/* Barriers of a micro-batched step: values that must be whole before it can go on, as sums over the
 * batch, and rows of all of it.
 *
 * Values that follow from the batch alone are computed whole, before all micro-batches. Values that
 * are only reported, or lie between two such sums, are computed whole as well, if they are small, a
 * number for each example. Others need a pass of their own over all micro-batches, and there may be
 * one such pass: steps that need more do not decompose over the batch. */
#include <string.h>

#include "ir/name.h"
#include "local/time/microbatch_builder.h"
#include "op/flops.h"
#include "plan/recipe/batch_rows.h"

enum { MOST_LOOPS = 2 };

static bool reads_any(const microbatching *t, const sf_node *node, const bool *by_version)
{
    uint32_t count;
    const uint32_t *reads = microbatch_reads(t, node->id, &count);
    for (uint32_t r = 0; r < count; r++)
        if (by_version[reads[r]])
            return true;
    return false;
}

static bool makes_any(const microbatching *t, const sf_node *node, const bool *by_version)
{
    for (uint32_t r = 0; r < node->nresults; r++)
        if (by_version[t->b->reshards->made[node->result + r]])
            return true;
    return false;
}

/* Settings of the nodes in its regions are settings of micro-batches. */
static void forget_inside(microbatching *t, const sf_node *node)
{
    for (uint32_t r = 0; r < node->nregions; r++)
        for (uint32_t i = 0; i < node->regions[r]->nnodes; i++) {
            const sf_node *inner = t->step->nodes[node->regions[r]->nodes[i]];
            t->time->nodes[inner->id] = NULL;
            forget_inside(t, inner);
        }
}

void microbatch_settle_node(microbatching *t, const sf_node *node)
{
    forget_inside(t, node);
    memset(t->time->nodes[node->id], 0,
           (node->noperands + node->nresults) * sizeof *t->time->nodes[node->id]);
}

/* Micro-batched nodes that lead to the output of the reshard run whole instead, if they follow from
 * the batch alone. */
static bool settle_upstream(microbatching *t, uint32_t blocking)
{
    const sf_reshards *m = t->b->reshards;
    bool *wanted = SF_ARRAY(&t->arena, m->nversions, bool), any = false;
    if (t->weighs[m->reshards[blocking].from])
        return false;
    wanted[m->reshards[blocking].from] = true;
    for (size_t i = m->nsteps; i-- > 0;) {
        uint32_t index = m->steps[i].index, count;
        if (m->steps[i].is_reshard) {
            const sf_resharding *reshard = &m->reshards[index];
            wanted[reshard->from] = wanted[reshard->from] || wanted[reshard->to];
            continue;
        }
        const sf_node *node = t->step->nodes[index];
        const uint32_t *reads = microbatch_reads(t, index, &count);
        bool leads = makes_any(t, node, wanted);
        if (!leads || !is_microbatched_node(t, node))
            continue;
        for (uint32_t r = 0; r < count; r++)
            wanted[reads[r]] = true;
        microbatch_settle_node(t, node);
        any = true;
    }
    return any;
}

/* A linear op: applied to the sum of parts, it gives the sum of its results. */
static bool is_linear_in_parts(const microbatching *t, const sf_node *node)
{
    const sf_layout *layouts = t->time->nodes[node->id];
    for (uint32_t i = 0; i < node->noperands + node->nresults; i++)
        if (is_microbatched_layout(&layouts[i]) &&
            layouts[i].axes[MICROBATCH_AXIS].kind != SF_PARTIAL)
            return false;
    return node->def->control == SF_CONTROL_NONE;
}

/* Most bytes that all micro-batches together may have of a value that is computed whole: as many as
 * the whole inputs. */
static int64_t little_bytes(const microbatching *t)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < t->step->top->narguments; i++)
        if (sf_has_rows(t->step, i))
            bytes += sf_type_bytes(sf_argument_type(t->step, i));
    return bytes;
}

/* It takes little to do it for the whole batch at once: a number for each example, say. */
static bool is_little(const microbatching *t, const sf_node *node, int64_t most)
{
    bool little = !sf_is_dear(node);
    for (uint32_t o = 0; o < node->noperands; o++)
        little = little && sf_type_bytes(sf_type_of(t->step, node->operands[o])) <= most;
    for (uint32_t r = 0; r < node->nresults; r++)
        little = little && sf_type_bytes(sf_type_of(t->step, node->result + r)) <= most;
    return little;
}

/* By version: it follows from the output of a blocking reshard; or of this one. */
static bool *find_following(const microbatching *t, sf_arena *arena, uint32_t blocking)
{
    const sf_reshards *m = t->b->reshards;
    bool *follows = SF_ARRAY(arena, m->nversions, bool);
    for (size_t i = 0; i < m->nsteps; i++) {
        uint32_t index = m->steps[i].index;
        if (m->steps[i].is_reshard) {
            bool begins = blocking == SF_NONE ? t->blocks[index] : index == blocking;
            follows[m->reshards[index].to] |= begins || follows[m->reshards[index].from];
            continue;
        }
        const sf_node *node = t->step->nodes[index];
        bool reached = reads_any(t, node, follows);
        for (uint32_t r = 0; r < node->nresults; r++)
            follows[m->made[node->result + r]] = reached;
    }
    return follows;
}

/* Micro-batched nodes that only follow the output of the reshard use the sums instead of parts. */
static bool settle_sums(microbatching *t, uint32_t blocking)
{
    const sf_block *top = t->step->top;
    const bool *follows = find_following(t, &t->arena, blocking);
    bool any = false;
    for (int settles = 0; settles < 2; settles++)
        for (uint32_t i = 0; i < top->nnodes; i++) {
            const sf_node *node = sf_top_node(t->step, i);
            if (!is_microbatched_node(t, node) || !reads_any(t, node, follows))
                continue;
            if (!settles && !is_linear_in_parts(t, node))
                return false;
            if (settles)
                microbatch_settle_node(t, node);
            any = true;
        }
    return any;
}

/* Nodes that follow outputs of blocking reshards, that only report, and that no micro-batched node
 * follows, run after all micro-batches, if they are small. */
static bool settle_reports(microbatching *t)
{
    const sf_reshards *m = t->b->reshards;
    const bool *follows = find_following(t, &t->arena, SF_NONE);
    bool *microbatched = SF_ARRAY(&t->arena, m->nversions, bool), any = false;
    int64_t most = little_bytes(t);
    for (size_t i = m->nsteps; i-- > 0;) {
        uint32_t index = m->steps[i].index, count;
        if (m->steps[i].is_reshard) {
            microbatched[m->reshards[index].from] |= microbatched[m->reshards[index].to];
            continue;
        }
        const sf_node *node = t->step->nodes[index];
        const uint32_t *reads = microbatch_reads(t, index, &count);
        bool stays = makes_any(t, node, microbatched);
        if (!stays && is_microbatched_node(t, node)) {
            stays = !reads_any(t, node, follows) || !is_little(t, node, most);
            if (!stays)
                microbatch_settle_node(t, node);
            any = any || !stays;
        }
        for (uint32_t r = 0; r < count; r++)
            microbatched[reads[r]] |= stays;
    }
    return any;
}

/* By version: the output of a blocking reshard follows from it. */
static bool *find_leading(const microbatching *t, sf_arena *arena)
{
    const sf_reshards *m = t->b->reshards;
    bool *leads = SF_ARRAY(arena, m->nversions, bool);
    for (size_t i = m->nsteps; i-- > 0;) {
        uint32_t index = m->steps[i].index, count;
        if (m->steps[i].is_reshard) {
            leads[m->reshards[index].from] |= t->blocks[index] || leads[m->reshards[index].to];
            continue;
        }
        const sf_node *node = t->step->nodes[index];
        const uint32_t *reads = microbatch_reads(t, index, &count);
        bool all = makes_any(t, node, leads);
        for (uint32_t r = 0; r < count; r++)
            leads[reads[r]] |= all;
    }
    return leads;
}

/* If the step needs all micro-batches more than once, the nodes in between work on the whole batch,
 * if they are small: one pass over all micro-batches then finds their operands. */
static bool settle_between(microbatching *t)
{
    const sf_block *top = t->step->top;
    const bool *follows = find_following(t, &t->arena, SF_NONE);
    const bool *leads = find_leading(t, &t->arena);
    int64_t most = little_bytes(t);
    bool any = false;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(t->step, i);
        bool lies = makes_any(t, node, leads) && reads_any(t, node, follows);
        if (!lies || !is_microbatched_node(t, node) || !is_little(t, node, most))
            continue;
        microbatch_settle_node(t, node);
        any = true;
    }
    return any;
}

/* Which arguments were taken for the batch. */
static void hint_batch(microbatching *t)
{
    const char **names = sf_clean_names(t->step, &t->arena);
    sf_buf list = {0};
    for (uint32_t i = 0; i < t->step->top->narguments; i++)
        if (sf_has_rows(t->step, i))
            sf_buf_printf(&list, "%s%s", list.length > 0 ? ", " : "", names[i]);
    if (list.length > 0)
        sf_hint(t->b->diag, "the batch is taken to be the first dimension of %s", list.text);
    sf_buf_free(&list);
}

static sf_status refuse_blocking(microbatching *t, uint32_t blocking)
{
    const sf_resharding *reshard = &t->b->reshards->reshards[blocking];
    const sf_node *maker = sf_maker(t->step, reshard->value);
    const sf_node *wants = reshard->wanted == SF_NONE ? maker : t->step->nodes[reshard->wanted];
    sf_buf name = {0};
    const char *value = sf_value_name(t->step, reshard->value, &name);
    sf_status status = sf_fail(
        t->b->diag, SF_EMISMATCH, wants ? wants->loc : SF_NOWHERE,
        "micro-batches: %s%s%s reads %s of the whole batch, and the step uses it further: its "
        "loss does not decompose over the batch",
        wants ? wants->def->name : "a result", wants && *wants->scope->path ? " in " : "",
        wants ? wants->scope->path : "", value);
    sf_buf_free(&name);
    hint_batch(t);
    return status;
}

/* A blocking reshard that no pass over all micro-batches resolves: it concatenates many rows, or
 * comes after another. SF_NONE: none. */
static uint32_t find_unsettled(const microbatching *t)
{
    const sf_reshards *m = t->b->reshards;
    int64_t most = little_bytes(t);
    uint32_t first = SF_NONE;
    for (uint32_t i = 0; i < m->nreshards; i++) {
        bool is_sum = sf_move_reduces(m->reshards[i].kind);
        bool is_much = !is_sum && sf_type_bytes(sf_type_of(t->step, m->reshards[i].value)) > most;
        if (!t->blocks[i] || (!is_much && t->nloops <= MOST_LOOPS))
            continue;
        if (first == SF_NONE || (!is_sum && sf_move_reduces(m->reshards[first].kind)))
            first = i;
    }
    return first;
}

/* Whether any node was changed: then all is checked once more. */
sf_status microbatch_settle_blocking(microbatching *t, bool *any)
{
    const sf_reshards *m = t->b->reshards;
    *any = false;
    for (uint32_t i = 0; i < m->nreshards; i++)
        if (t->blocks[i])
            *any = settle_upstream(t, i) || settle_sums(t, i) || *any;
    *any = *any || settle_reports(t);
    if (*any)
        return SF_OK;
    uint32_t unsettled = find_unsettled(t);
    if (unsettled != SF_NONE)
        *any = settle_between(t);
    return unsettled == SF_NONE || *any ? SF_OK : refuse_blocking(t, unsettled);
}
