/* The stages of the backward pass and of updates, from those of the forward pass.
 *
 * A backward node lies between two bounds: not after the stages of its cotangents, and not before
 * the stages of the parameters whose gradients it leads to. Between them it goes to the latest
 * stage that has most of its operands of the forward pass; in a second walk, from the end, a node
 * whose result is larger than its operands moves down to its readers, so that the operands are
 * sent. */
#include "ir/opdef.h"
#include "op/flops.h"
#include "op/op.h"
#include "plan/pipeline/stage_builder.h"

enum { VERY_MANY = 256 };

/* Demands: the stage whose state a node leads to. */
enum { OF_SEVERAL = SF_NONE - 1 };

typedef struct demands {
    uint32_t *of_node;   /* a stage, OF_SEVERAL, or SF_NONE: of nothing that has a stage */
    uint32_t *of_result; /* the same */
} demands;

static bool is_stage(uint32_t demand)
{
    return demand < OF_SEVERAL;
}

static uint32_t join_demands(uint32_t a, uint32_t b)
{
    if (a == b || b == SF_NONE)
        return a;
    return a == SF_NONE ? b : OF_SEVERAL;
}

/* The new state that a node computes decides, then its readers. */
static uint32_t join_results(const demands *d, const sf_node *node)
{
    uint32_t demand = SF_NONE;
    for (uint32_t r = 0; r < node->nresults; r++)
        demand = join_demands(demand, d->of_result[node->result + r]);
    return demand;
}

/* Readers that lead to several stages are heard where no other is. */
static uint32_t join_readers(const sf_staging *s, const demands *d, const sf_node *node)
{
    uint32_t one = SF_NONE, several = SF_NONE;
    for (uint32_t r = 0; r < node->nresults; r++) {
        sf_value value = node->result + r;
        for (uint32_t u = s->flow.uses.first[value]; u < s->flow.uses.first[value + 1]; u++) {
            uint32_t reader = s->flow.uses.at[u].node;
            uint32_t demand = reader == SF_NONE ? SF_NONE : d->of_node[reader];
            if (is_stage(demand))
                one = join_demands(one, demand);
            else if (demand == OF_SEVERAL)
                several = OF_SEVERAL;
        }
    }
    return one == SF_NONE ? several : one;
}

static uint32_t find_demand(const sf_staging *s, const demands *d, const sf_node *node)
{
    uint32_t demand = join_results(d, node);
    return demand == SF_NONE ? join_readers(s, d, node) : demand;
}

static demands find_demands(const sf_staging *s)
{
    const sf_block *top = s->graph->top;
    demands d = {SF_ARRAY(s->arena, s->graph->nnodes, uint32_t),
                 SF_ARRAY(s->arena, s->graph->nvalues, uint32_t)};
    for (uint32_t n = 0; n < s->graph->nnodes; n++)
        d.of_node[n] = SF_NONE;
    for (uint32_t v = 0; v < s->graph->nvalues; v++)
        d.of_result[v] = SF_NONE;
    for (uint32_t i = 0; i < top->narguments; i++) {
        uint32_t next = s->graph->arguments[i].next;
        if (next != SF_NONE)
            d.of_result[top->results[next]] =
                join_demands(d.of_result[top->results[next]], s->owner[i]);
    }
    for (uint32_t i = top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(s->graph, i);
        if (node->phase == SF_UPDATE && !s->anywhere[node->id])
            d.of_node[node->id] = find_demand(s, &d, node);
    }
    return d;
}

/* The backward pass */

typedef struct descent {
    sf_staging *s;
    uint32_t *low;  /* by node: no earlier stage */
    bool *is_bound; /* by node: a gradient, which the stage `low` reads in the end */
    int64_t *width; /* by node: bytes that a stage must be sent to have its results */
} descent;

static bool is_backward(const sf_staging *s, const sf_node *node)
{
    return node->phase == SF_BACKWARD && !s->anywhere[node->id];
}

static int64_t bytes_of(const sf_staging *s, sf_value value)
{
    return sf_type_bytes(sf_type_of(s->graph, value));
}

static void raise(uint32_t *low, uint32_t stage)
{
    if (stage > *low)
        *low = stage;
}

static void bind_gradients(descent *d, const demands *wanted)
{
    const sf_staging *s = d->s;
    const sf_block *top = s->graph->top;
    for (uint32_t i = 0; i < top->narguments; i++) {
        sf_value gradient = s->graph->arguments[i].gradient;
        const sf_node *maker =
            gradient == SF_NONE || s->owner[i] == SF_NONE ? NULL : sf_maker(s->graph, gradient);
        if (!maker)
            continue;
        raise(&d->low[maker->id], s->owner[i]);
        d->is_bound[maker->id] = true;
    }
    for (uint32_t i = top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(s->graph, i);
        for (uint32_t o = 0; o < node->noperands; o++) {
            const sf_node *maker = sf_staged_maker(s, sf_read_of(s, node, o));
            if (!maker || !is_backward(s, maker))
                continue;
            if (is_backward(s, node))
                raise(&d->low[maker->id], d->low[node->id]);
            else if (is_stage(wanted->of_node[node->id])) {
                raise(&d->low[maker->id], wanted->of_node[node->id]);
                d->is_bound[maker->id] = true;
            }
        }
    }
}

/* The earliest stage that hands it a cotangent. */
static uint32_t find_high(const sf_staging *s, const sf_node *node)
{
    uint32_t high = s->count - 1;
    for (uint32_t o = 0; o < node->noperands; o++) {
        const sf_node *maker = sf_staged_maker(s, sf_read_of(s, node, o));
        if (maker && is_backward(s, maker) && s->stage[maker->id] < high)
            high = s->stage[maker->id];
    }
    return high;
}

/* The latest stage from `low` to `high` that has most of the node's operands of the forward
 * pass. */
static uint32_t find_at_hand(sf_staging *s, const sf_node *node, uint32_t low, uint32_t high)
{
    for (uint32_t t = low; t <= high; t++)
        s->tally[t] = 0;
    for (uint32_t o = 0; o < node->noperands; o++) {
        sf_value v = sf_read_of(s, node, o);
        for (uint32_t k = s->hand.first[v]; k < s->hand.end[v]; k++)
            if (s->hand.at[k] >= low && s->hand.at[k] <= high)
                s->tally[s->hand.at[k]] += bytes_of(s, v);
    }
    uint32_t best = high;
    for (uint32_t t = high; t-- > low;)
        if (s->tally[t] > s->tally[best])
            best = t;
    return best;
}

static bool reads_forward(const sf_staging *s, sf_value value)
{
    return s->hand.first[value] < s->hand.end[value];
}

/* The bytes that are sent instead of the node's results: these, or its operands. */
static int64_t find_width(const descent *d, const sf_node *node)
{
    int64_t makes = 0, reads = 0;
    for (uint32_t r = 0; r < node->nresults; r++)
        makes += bytes_of(d->s, node->result + r);
    for (uint32_t o = 0; o < node->noperands; o++) {
        sf_value v = sf_read_of(d->s, node, o);
        const sf_node *maker = sf_staged_maker(d->s, v);
        if (reads_forward(d->s, v))
            return makes;
        if (maker)
            reads +=
                sf_uses_count(&d->s->flow.uses, v) == 1 ? d->width[maker->id] : bytes_of(d->s, v);
    }
    return reads < makes ? reads : makes;
}

/* Whether the backward pass of the stage has the value for another reader than `node`. A value of
 * very many readers is on all stages. */
static bool is_read_at(const sf_staging *s, sf_value value, uint32_t stage, const sf_node *node)
{
    if (sf_uses_count(&s->flow.uses, value) > VERY_MANY)
        return true;
    for (uint32_t u = s->flow.uses.first[value]; u < s->flow.uses.first[value + 1]; u++) {
        uint32_t reader = s->flow.uses.at[u].node;
        if (reader != SF_NONE && reader != node->id && s->stage[reader] == stage &&
            is_backward(s, s->graph->nodes[reader]))
            return true;
    }
    return false;
}

static bool is_at_hand(const sf_staging *s, sf_value value, uint32_t stage)
{
    for (uint32_t k = s->hand.first[value]; k < s->hand.end[value]; k++)
        if (s->hand.at[k] == stage)
            return true;
    return false;
}

/* Bytes that the stage is sent so that the node, in it, has its operands. */
static int64_t count_sent(const descent *d, const sf_node *node, uint32_t stage)
{
    const sf_staging *s = d->s;
    int64_t bytes = 0;
    for (uint32_t o = 0; o < node->noperands; o++) {
        sf_value v = sf_read_of(s, node, o);
        const sf_node *maker = sf_staged_maker(s, v);
        if (is_at_hand(s, v, stage) || !(maker || reads_forward(s, v)) ||
            (maker && is_backward(s, maker) && s->stage[maker->id] == stage) ||
            is_read_at(s, v, stage, node))
            continue;
        bool alone = maker && is_backward(s, maker) && sf_uses_count(&s->flow.uses, v) == 1;
        bytes += alone ? d->width[maker->id] : bytes_of(s, v);
    }
    return bytes;
}

/* Whether all that the node reads of the forward pass is at hand in the stage. */
static bool has_kept(const sf_staging *s, const sf_node *node, uint32_t stage)
{
    for (uint32_t o = 0; o < node->noperands; o++)
        if (reads_forward(s, sf_read_of(s, node, o)) &&
            !is_at_hand(s, sf_read_of(s, node, o), stage))
            return false;
    return true;
}

/* Moves the node down to the last stage that reads it, where less is sent then. */
static void sink(descent *d, const sf_node *node)
{
    sf_staging *s = d->s;
    uint32_t now = s->stage[node->id], to = d->low[node->id];
    int64_t makes = 0;
    for (uint32_t r = 0; r < node->nresults; r++) {
        bool is_read = d->is_bound[node->id];
        for (uint32_t u = s->flow.uses.first[node->result + r];
             u < s->flow.uses.first[node->result + r + 1]; u++) {
            uint32_t reader = s->flow.uses.at[u].node;
            if (reader == SF_NONE || !is_backward(s, s->graph->nodes[reader]))
                continue;
            raise(&to, s->stage[reader]);
            is_read = true;
        }
        makes += is_read ? bytes_of(s, node->result + r) : 0;
    }
    if (to < now && has_kept(s, node, to) &&
        count_sent(d, node, to) - count_sent(d, node, now) < makes)
        s->stage[node->id] = to;
}

/* The gradient of a lookup reads of the forward pass only token ids, which every stage has: it is
 * where the lookup by the same indices is. SF_NONE: it is none. */
static uint32_t stage_of_lookup(const sf_staging *s, const sf_node *node)
{
    if (!sf_is(node, SF_OP_SCATTER) || node->noperands != 3)
        return SF_NONE;
    sf_value indices = node->operands[1];
    for (uint32_t u = s->flow.uses.first[indices]; u < s->flow.uses.first[indices + 1]; u++) {
        uint32_t id = s->flow.uses.at[u].node;
        const sf_node *reader = id == SF_NONE ? NULL : s->graph->nodes[id];
        if (reader && sf_is(reader, SF_OP_GATHER) && reader->phase == SF_FORWARD &&
            !s->anywhere[id] && reader->operands[1] == indices &&
            sf_type_of(s->graph, reader->operands[0]) == sf_type_of(s->graph, node->result))
            return s->stage[id];
    }
    return SF_NONE;
}

void sf_stage_backward(sf_staging *s)
{
    const sf_block *top = s->graph->top;
    demands wanted = find_demands(s);
    descent d = {s, SF_ARRAY(s->arena, s->graph->nnodes, uint32_t),
                 SF_ARRAY(s->arena, s->graph->nnodes, bool),
                 SF_ARRAY(s->arena, s->graph->nnodes, int64_t)};
    bind_gradients(&d, &wanted);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(s->graph, i);
        if (!is_backward(s, node))
            continue;
        uint32_t high = find_high(s, node), lookup = stage_of_lookup(s, node);
        s->stage[node->id] = lookup >= d.low[node->id] && lookup <= high
                                 ? lookup
                                 : find_at_hand(s, node, d.low[node->id], high);
        d.width[node->id] = find_width(&d, node);
    }
    for (uint32_t i = top->nnodes; i-- > 0;)
        if (is_backward(s, sf_top_node(s->graph, i)) && !sf_is_dear(sf_top_node(s->graph, i)))
            sink(&d, sf_top_node(s->graph, i));
}

/* Updates */

static void own_backward(sf_staging *s)
{
    const sf_block *top = s->graph->top;
    for (uint32_t i = 0; i < top->narguments; i++) {
        sf_value v = top->arguments[i];
        for (uint32_t u = s->flow.uses.first[v]; u < s->flow.uses.first[v + 1]; u++) {
            uint32_t reader = s->flow.uses.at[u].node;
            if (s->owner[i] == SF_NONE && reader != SF_NONE &&
                is_backward(s, s->graph->nodes[reader]) &&
                !sf_is_handed_in(&s->graph->arguments[i]))
                s->owner[i] = s->stage[reader];
        }
    }
}

/* The stage of most of the node's operands; the first of equals, SF_NONE if none of them has a
 * stage. */
static uint32_t find_most(sf_staging *s, const sf_node *node)
{
    uint32_t best = 0;
    bool is_tie = false, is_known = false;
    for (uint32_t t = 0; t < s->count; t++)
        s->tally[t] = 0;
    for (uint32_t o = 0; o < node->noperands; o++) {
        sf_value v = sf_read_of(s, node, o);
        const sf_node *maker = sf_staged_maker(s, v);
        uint32_t stage = maker                   ? s->stage[maker->id]
                         : sf_maker(s->graph, v) ? SF_NONE
                                                 : s->owner[s->graph->values[v].index];
        if (stage == SF_NONE)
            continue;
        s->tally[stage] += bytes_of(s, v);
        is_known = true;
    }
    for (uint32_t t = 1; t < s->count; t++) {
        is_tie = s->tally[t] > s->tally[best] ? false : is_tie || s->tally[t] == s->tally[best];
        best = s->tally[t] > s->tally[best] ? t : best;
    }
    if (!is_known)
        return SF_NONE;
    return is_tie ? 0 : best;
}

/* The stage that reads the node's results; the first if several do, or none. */
static uint32_t find_reading(const sf_staging *s, const sf_node *node)
{
    uint32_t stage = SF_NONE;
    for (uint32_t r = 0; r < node->nresults; r++) {
        sf_value value = node->result + r;
        for (uint32_t u = s->flow.uses.first[value]; u < s->flow.uses.first[value + 1]; u++)
            if (s->flow.uses.at[u].node != SF_NONE)
                stage = join_demands(stage, s->stage[s->flow.uses.at[u].node]);
    }
    return is_stage(stage) ? stage : 0;
}

/* Unplaced nodes over state alone, such as a part of an average of weights or of a moment that the
 * next step reads, go where their result is read: the rest of it is there. */
static void stage_rest(sf_staging *s)
{
    for (uint32_t i = s->graph->top->nnodes; i-- > 0;) {
        const sf_node *node = sf_top_node(s->graph, i);
        if (node->phase == SF_UPDATE && !s->anywhere[node->id] && s->stage[node->id] == SF_NONE)
            s->stage[node->id] = find_reading(s, node);
    }
}

void sf_stage_updates(sf_staging *s)
{
    const sf_block *top = s->graph->top;
    own_backward(s);
    demands wanted = find_demands(s);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(s->graph, i);
        uint32_t demand = wanted.of_node[node->id];
        if (node->phase == SF_UPDATE && !s->anywhere[node->id])
            s->stage[node->id] = is_stage(demand) ? demand : find_most(s, node);
    }
    stage_rest(s);
    for (uint32_t i = 0; i < top->narguments; i++) {
        uint32_t next = s->graph->arguments[i].next;
        const sf_node *maker = next == SF_NONE ? NULL : sf_staged_maker(s, top->results[next]);
        if (s->owner[i] == SF_NONE && maker && !sf_is_handed_in(&s->graph->arguments[i]))
            s->owner[i] = s->stage[maker->id];
    }
}
