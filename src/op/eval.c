#include "op/eval.h"

#include <inttypes.h>
#include <string.h>

#include "base/mem.h"

static sf_status allocate_tensor(sf_eval *eval, sf_tensor *tensor, const sf_type *type, sf_loc loc)
{
    int64_t bytes = sf_type_bytes(type), limit = eval->setup.limit;
    char text[SF_TYPE_TEXT];
    if (limit && bytes > limit - eval->live)
        return sf_fail(eval->diag, SF_ENOMEM, loc,
                       "%s needs %" PRId64 " byte%s, with %" PRId64 " of %" PRId64 " in use",
                       sf_type_text(type, text), bytes, sf_plural((uint64_t)bytes), eval->live,
                       limit);
    *tensor = (sf_tensor){.type = type, .data = sf_alloc((size_t)bytes)};
    eval->live += bytes;
    if (eval->live > eval->peak)
        eval->peak = eval->live;
    return SF_OK;
}

static void release_tensor(sf_eval *eval, sf_tensor *tensor)
{
    if (!tensor->data)
        return;
    eval->live -= sf_type_bytes(tensor->type);
    sf_free(tensor->data);
    tensor->data = NULL;
}

static sf_status copy_into(sf_eval *eval, sf_value value, const sf_tensor *from)
{
    sf_tensor *to = &eval->values[value];
    release_tensor(eval, to);
    SF_TRY(allocate_tensor(eval, to, from->type, SF_NOWHERE));
    memcpy(to->data, from->data, (size_t)sf_type_bytes(from->type));
    return SF_OK;
}

static sf_status eval_node(sf_eval *eval, const sf_node *node)
{
    sf_mark mark = sf_arena_mark(&eval->scratch);
    const sf_type **types =
        SF_ARRAY(&eval->scratch, node->noperands + node->nresults, const sf_type *);
    sf_tensor *in = SF_ARRAY(&eval->scratch, node->noperands, sf_tensor);
    sf_op op = sf_op_of(eval->graph, node, types);
    for (uint32_t i = 0; i < node->noperands; i++)
        in[i] = eval->values[node->operands[i]];
    for (uint32_t i = 0; i < node->nresults; i++)
        SF_TRY(allocate_tensor(eval, &eval->values[node->result + i], op.out[i], node->loc));
    sf_tensor *out = &eval->values[node->result];
    const sf_eval_setup *setup = &eval->setup;
    bool is_exchange = sf_is_collective(node) || sf_is_message(node);
    sf_status status = setup->collective && is_exchange
                           ? setup->collective(setup->context, node, in, out, eval->diag)
                           : node->def->eval(eval, &op, in, out);
    sf_arena_reset(&eval->scratch, mark);
    return status;
}

/* For every node of a block, which values die after it: a value dies after the last node of the
 * block that uses it, directly or inside its regions. Values of other blocks are not this block's. */
static void mark_uses(const sf_eval *eval, const sf_node *node, uint32_t at, uint32_t *last_use)
{
    for (uint32_t i = 0; i < node->noperands; i++)
        last_use[node->operands[i]] = at;
    for (uint32_t r = 0; r < node->nregions; r++) {
        const sf_block *region = node->regions[r];
        for (uint32_t i = 0; i < region->nnodes; i++)
            mark_uses(eval, eval->graph->nodes[region->nodes[i]], at, last_use);
        for (uint32_t i = 0; i < region->nresults; i++)
            last_use[region->results[i]] = at;
    }
}

/* The steps of the top block; values are released after their last reader. Nested blocks are small
 * and run many times: their values are overwritten, and released at the end. */
static sf_status eval_top(sf_eval *eval, const sf_block *block)
{
    size_t nvalues = eval->graph->nvalues;
    uint32_t *last_use = sf_alloc(nvalues * sizeof *last_use);
    for (size_t i = 0; i < nvalues; i++)
        last_use[i] = SF_NONE;
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = eval->graph->nodes[block->nodes[i]];
        for (uint32_t j = 0; j < node->nresults; j++)
            last_use[node->result + j] = i;
        mark_uses(eval, node, i, last_use);
    }
    for (uint32_t i = 0; i < block->nresults; i++)
        last_use[block->results[i]] = SF_NONE;
    sf_status status = SF_OK;
    for (uint32_t i = 0; i < block->nnodes && status == SF_OK; i++) {
        const sf_node *node = eval->graph->nodes[block->nodes[i]];
        status = eval_node(eval, node);
        for (uint32_t j = 0; j < node->noperands; j++)
            if (last_use[node->operands[j]] == i)
                release_tensor(eval, &eval->values[node->operands[j]]);
        for (uint32_t j = 0; j < node->nresults; j++)
            if (last_use[node->result + j] == i)
                release_tensor(eval, &eval->values[node->result + j]);
    }
    sf_free(last_use);
    return status;
}

sf_status sf_eval_block(sf_eval *eval, const sf_block *block, const sf_tensor *arguments,
                        sf_tensor *results)
{
    for (uint32_t i = 0; i < block->narguments; i++)
        SF_TRY(copy_into(eval, block->arguments[i], &arguments[i]));
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = eval->graph->nodes[block->nodes[i]];
        for (uint32_t j = 0; j < node->nresults; j++)
            release_tensor(eval, &eval->values[node->result + j]);
        SF_TRY(eval_node(eval, node));
    }
    for (uint32_t i = 0; i < block->nresults; i++) {
        const sf_tensor *from = &eval->values[block->results[i]];
        memcpy(results[i].data, from->data, (size_t)sf_type_bytes(from->type));
    }
    return SF_OK;
}

void sf_eval_close(sf_eval *eval)
{
    if (!eval->values)
        return;
    for (size_t i = 0; i < eval->graph->nvalues; i++)
        release_tensor(eval, &eval->values[i]);
    sf_free(eval->values);
    sf_arena_free(&eval->scratch);
}

/* A check is the one effect there is. */
static bool has_effects(const sf_graph *graph, const sf_block *block)
{
    for (uint32_t i = 0; i < block->nnodes; i++)
        if (sf_node_has_effect(graph, graph->nodes[block->nodes[i]]))
            return true;
    return false;
}

sf_status sf_eval_measured(const sf_graph *graph, const sf_tensor *arguments, sf_tensor *results,
                           const sf_eval_setup *setup, int64_t *peak, sf_diag *diag)
{
    sf_eval eval = {.graph = graph, .diag = diag, .setup = *setup};
    eval.literal = has_effects(graph, graph->top);
    eval.values = sf_alloc(graph->nvalues * sizeof *eval.values);
    sf_status status = SF_OK;
    for (uint32_t i = 0; i < graph->top->narguments && status == SF_OK; i++)
        status = copy_into(&eval, graph->top->arguments[i], &arguments[i]);
    if (status == SF_OK)
        status = eval_top(&eval, graph->top);
    for (uint32_t i = 0; i < graph->top->nresults && status == SF_OK; i++) {
        const sf_tensor *from = &eval.values[graph->top->results[i]];
        results[i] = (sf_tensor){.type = from->type};
        results[i].data = sf_alloc((size_t)sf_type_bytes(from->type));
        memcpy(results[i].data, from->data, (size_t)sf_type_bytes(from->type));
    }
    if (peak)
        *peak = eval.peak;
    sf_eval_close(&eval);
    return status;
}

sf_status sf_eval_graph(const sf_graph *graph, const sf_tensor *arguments, sf_tensor *results,
                        int64_t limit, sf_diag *diag)
{
    sf_eval_setup setup = {.limit = limit};
    return sf_eval_measured(graph, arguments, results, &setup, NULL, diag);
}

sf_status sf_eval_op(const sf_op *op, const sf_tensor *in, sf_tensor *out, sf_diag *diag)
{
    static const sf_graph empty;
    sf_eval eval = {.graph = op->graph ? op->graph : &empty, .diag = diag};
    eval.values = sf_alloc(eval.graph->nvalues * sizeof *eval.values);
    for (int i = 0; i < op->nresults; i++) {
        const sf_type *type = out[i].type ? out[i].type : op->out[i];
        out[i].type = type;
        out[i].data = sf_alloc((size_t)sf_type_bytes(type));
    }
    sf_status status = op->def->eval(&eval, op, in, out);
    sf_eval_close(&eval);
    return status;
}
