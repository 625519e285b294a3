/* Which nodes of the backward pass are those of a subgraph. */
#include "api/primitive/backward_search.h"
#include "op/slots.h"
#include "op/util.h"

static bool is_in_scopes(const backward_search *l, const sf_node *node)
{
    for (int i = 0; i < l->part->nnodes; i++)
        if (l->graph->nodes[l->part->nodes[i]]->scope == node->scope)
            return true;
    return false;
}

static bool reads_ours(const backward_search *l, const sf_node *node)
{
    for (uint32_t o = 0; o < node->noperands; o++)
        if (l->ours[node->operands[o]])
            return true;
    return false;
}

/* All its operands are ours, constants, or made in the backward pass. An operand that follows from
 * ours, and that the forward pass computes too, must follow from no gradient from elsewhere: 1 + t,
 * in the gradient of t = tanh(x). */
static bool reads_no_others(const backward_search *l, const sf_node *node)
{
    bool follows = false, meets = false;
    for (uint32_t o = 0; o < node->noperands; o++) {
        const sf_node *maker = sf_maker(l->graph, node->operands[o]);
        if (l->ours[node->operands[o]] || (maker && l->fixed[maker->id]))
            continue;
        if (!maker || l->foreign[maker->id] ||
            (maker->phase != SF_BACKWARD && !l->follows[maker->id]))
            return false;
        follows = follows || maker->phase != SF_BACKWARD;
        meets = meets || (maker->phase == SF_BACKWARD && !l->within[maker->id]);
    }
    return !follows || !meets;
}

static bool is_shared(const backward_search *l, sf_value value, int doubts)
{
    bool shared = false;
    for (int o = 0; o < l->part->noutputs && (doubts & BACKWARD_NOT_BY_RESULTS); o++)
        shared = shared || l->part->outputs[o] == value;
    for (int i = 0; i < l->part->ninputs && (doubts & BACKWARD_NOT_BY_INPUTS); i++)
        shared = shared || l->part->inputs[i] == value;
    return shared;
}

static bool is_doubtful(const backward_search *l, const sf_node *node, int doubts)
{
    bool shares = false, meets = false;
    for (uint32_t o = 0; o < node->noperands; o++) {
        if (l->ours[node->operands[o]] && !is_shared(l, node->operands[o], doubts))
            return false;
        shares = shares || l->ours[node->operands[o]];
        meets = meets || backward_comes_in(l, node->operands[o]);
    }
    return shares && meets;
}

/* Whether it follows from the forward pass alone, and not from ours: no gradient, but a factor of
 * one. */
static bool is_foreign(const backward_search *l, const sf_node *node)
{
    for (uint32_t o = 0; o < node->noperands; o++) {
        const sf_node *maker = sf_maker(l->graph, node->operands[o]);
        if (maker && maker->phase == SF_BACKWARD && !l->fixed[maker->id] && !l->foreign[maker->id])
            return false;
    }
    return true;
}

/* Nodes of the forward pass that read ours, constants and values that follow from them. */
static void find_following(backward_search *l)
{
    for (uint32_t i = 0; i < l->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(l->graph, i);
        bool follows = node->phase == SF_FORWARD && node->noperands > 0;
        for (uint32_t o = 0; o < node->noperands && follows; o++) {
            const sf_node *maker = sf_maker(l->graph, node->operands[o]);
            follows = l->ours[node->operands[o]] ||
                      (maker && (l->fixed[maker->id] || l->follows[maker->id]));
        }
        l->follows[node->id] = follows;
    }
}

static bool is_known_gradient(const backward_search *l, sf_value value)
{
    for (int i = 0; i < l->part->ninputs; i++) {
        const sf_value_info *info = &l->graph->values[l->part->inputs[i]];
        if (info->node == SF_NONE && l->graph->arguments[info->index].gradient == value)
            return true;
    }
    return false;
}

/* Of candidate nodes, those that are connected with readers of the subgraph's values, or make a
 * known gradient. */
static void keep_tied(backward_search *l)
{
    bool *tied = SF_ARRAY(l->arena, l->graph->nnodes, bool), grows = true;
    while (grows) {
        grows = false;
        for (uint32_t i = 0; i < l->graph->top->nnodes; i++) {
            const sf_node *node = sf_top_node(l->graph, i);
            if (!l->within[node->id] || tied[node->id])
                continue;
            bool ties = reads_ours(l, node) || is_known_gradient(l, node->result);
            for (uint32_t o = 0; o < node->noperands && !ties; o++) {
                const sf_node *maker = sf_maker(l->graph, node->operands[o]);
                ties = maker && tied[maker->id];
            }
            for (uint32_t u = l->uses.first[node->result];
                 u < l->uses.first[node->result + 1] && !ties; u++)
                ties = l->uses.at[u].node != SF_NONE && tied[l->uses.at[u].node];
            tied[node->id] = ties;
            grows = grows || ties;
        }
    }
    for (size_t n = 0; n < l->graph->nnodes; n++)
        l->within[n] = l->within[n] && tied[n];
}

/* The remaining op of a linear op, in the backward pass; 0: any other. */
static sf_opcode turned_op(const sf_node *node)
{
    static const sf_opcode pairs[][2] = {
        {SF_OP_ADD, SF_OP_ADD},           {SF_OP_SUBTRACT, SF_OP_NEGATE},
        {SF_OP_NEGATE, SF_OP_NEGATE},     {SF_OP_MULTIPLY, SF_OP_MULTIPLY},
        {SF_OP_DIVIDE, SF_OP_DIVIDE},     {SF_OP_TRANSPOSE, SF_OP_TRANSPOSE},
        {SF_OP_RESHAPE, SF_OP_RESHAPE},   {SF_OP_CONVERT, SF_OP_CONVERT},
        {SF_OP_REVERSE, SF_OP_REVERSE},   {SF_OP_BROADCAST_IN_DIM, SF_OP_REDUCE},
        {SF_OP_PAD, SF_OP_SLICE},         {SF_OP_REDUCE, SF_OP_BROADCAST_IN_DIM},
        {SF_OP_CONCATENATE, SF_OP_SLICE}, {SF_OP_SLICE, SF_OP_PAD},
        {SF_OP_SELECT, SF_OP_SELECT},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (sf_is(node, pairs[i][0]))
            return pairs[i][1];
    return SF_OP_COUNT;
}

/* Whether an op at that end of the subgraph has one like the node in the backward pass. */
static bool has_like_at(const backward_search *l, const sf_node *node, bool end)
{
    for (int i = 0; i < l->part->nnodes; i++) {
        const sf_node *own = l->graph->nodes[l->part->nodes[i]];
        bool outer = false;
        for (int o = 0; o < l->part->noutputs && end; o++)
            outer = outer || l->part->outputs[o] == own->result;
        for (int k = 0; k < l->part->ninputs && !end; k++)
            for (uint32_t o = 0; o < own->noperands; o++)
                outer = outer || l->part->inputs[k] == own->operands[o];
        if (outer && sf_is(node, turned_op(own)))
            return true;
    }
    return false;
}

static bool has_reader_within(const backward_search *l, sf_value value)
{
    for (uint32_t u = l->uses.first[value]; u < l->uses.first[value + 1]; u++)
        if (l->uses.at[u].node != SF_NONE && l->within[l->uses.at[u].node])
            return true;
    return false;
}

/* The one operand that is no constant, or SF_NONE if there are several, or one is ours: for ops
 * that only rescale or reshape a gradient. */
static sf_value changed_by(const backward_search *l, const sf_node *node)
{
    sf_value changed = SF_NONE;
    for (uint32_t o = 0; o < node->noperands; o++) {
        const sf_node *maker = sf_maker(l->graph, node->operands[o]);
        if (maker && l->fixed[maker->id])
            continue;
        if (changed != SF_NONE || l->ours[node->operands[o]])
            return SF_NONE;
        changed = node->operands[o];
    }
    return changed;
}

/* A sum with gradients of others: of one result, all incoming terms come before the others. */
static bool adds_others(const backward_search *l, const sf_node *node)
{
    return sf_is(node, SF_OP_ADD) && l->part->noutputs == 1 &&
           (backward_comes_in(l, node->operands[0]) || backward_comes_in(l, node->operands[1]));
}

/* Ops that only rescale or reshape a gradient may be of a neighbour in the same scope: they are
 * dropped at both ends, but for those of the subgraph itself; and so are sums with gradients of
 * others. */
static void drop_neighbours(backward_search *l)
{
    bool drops = true;
    while (drops) {
        drops = false;
        for (uint32_t i = 0; i < l->graph->top->nnodes; i++) {
            const sf_node *node = sf_top_node(l->graph, i);
            sf_value changed = changed_by(l, node);
            if (!l->within[node->id] || is_known_gradient(l, node->result))
                continue;
            bool first = changed != SF_NONE && backward_comes_in(l, changed),
                 last = changed != SF_NONE && !has_reader_within(l, node->result);
            bool goes = adds_others(l, node) || (first && !has_like_at(l, node, true)) ||
                        (last && !has_like_at(l, node, false));
            l->within[node->id] = !goes;
            drops = drops || goes;
        }
    }
}

void backward_mark_subgraph(backward_search *l, int doubts)
{
    for (int i = 0; i < l->part->ninputs; i++)
        l->ours[l->part->inputs[i]] = true;
    for (int i = 0; i < l->part->nnodes; i++) {
        const sf_node *node = l->graph->nodes[l->part->nodes[i]];
        for (uint32_t r = 0; r < node->nresults; r++)
            l->ours[node->result + r] = true;
    }
    find_following(l);
    for (uint32_t i = 0; i < l->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(l->graph, i);
        if (node->phase != SF_BACKWARD || l->fixed[node->id] || !is_in_scopes(l, node))
            continue;
        l->within[node->id] =
            node->nresults == 1 && reads_no_others(l, node) && !is_doubtful(l, node, doubts);
        l->foreign[node->id] = !l->within[node->id] && is_foreign(l, node);
    }
    keep_tied(l);
    drop_neighbours(l);
}

sf_status backward_check_inside(const backward_search *l)
{
    bool *within = SF_ARRAY(l->arena, l->graph->nnodes, bool);
    for (int i = 0; i < l->part->nnodes; i++)
        within[l->part->nodes[i]] = true;
    for (int i = 0; i < l->part->nnodes; i++) {
        const sf_node *node = l->graph->nodes[l->part->nodes[i]];
        bool ends = false;
        for (int o = 0; o < l->part->noutputs; o++)
            ends = ends || l->part->outputs[o] == node->result;
        for (uint32_t u = l->uses.first[node->result]; u < l->uses.first[node->result + 1] && !ends;
             u++) {
            uint32_t reader = l->uses.at[u].node;
            if (reader == SF_NONE ||
                (!within[reader] && l->graph->nodes[reader]->phase == SF_FORWARD))
                return sf_fail(l->diag, SF_EMISMATCH, l->loc,
                               "what the %s in %s makes is read by others, and is no result of the "
                               "subgraph: its gradients cannot be replaced",
                               node->def->name, node->scope->path);
        }
    }
    return SF_OK;
}
