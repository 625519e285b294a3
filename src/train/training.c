/* What both halves of a run need, that before the first step and that after it. */
#include "base/mem.h"
#include "op/op.h"
#include "run/comm/agree.h"
#include "train/train.h"

static double block_flops(const sf_graph *graph, const sf_block *block, const sf_type **types)
{
    double flops = 0;
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = graph->nodes[block->nodes[i]];
        bool control = sf_is(node, SF_OP_WHILE) || sf_is(node, SF_OP_CASE);
        for (uint32_t r = 0; control && r < node->nregions; r++)
            flops += block_flops(graph, node->regions[r], types);
        if (control)
            continue;
        sf_op op = sf_op_of(graph, node, types);
        flops += sf_op_flops(&op);
    }
    return flops;
}

double sf_step_flops(const sf_graph *graph)
{
    size_t most = 0;
    for (size_t i = 0; i < graph->nnodes; i++) {
        size_t count = (size_t)graph->nodes[i]->noperands + graph->nodes[i]->nresults;
        most = count > most ? count : most;
    }
    const sf_type **types = sf_alloc(most * sizeof *types);
    double flops = block_flops(graph, graph->top, types);
    sf_free(types);
    return flops;
}

void sf_fill_keys(const sf_graph *graph, uint64_t seed, int64_t step, const sf_tensor *arguments)
{
    uint32_t number = 0, root[2], key[2];
    sf_jax_key(seed, root);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_tensor *to = &arguments[i];
        if (graph->arguments[i].role != SF_ROLE_KEY || graph->arguments[i].next != SF_NONE)
            continue;
        if (number++ > 0)
            sf_jax_fold_in(root, number, root);
        sf_jax_fold_in(root, (uint32_t)step, key);
        for (int64_t k = 0; k < to->type->count; k++)
            sf_store_i64(to->type->dtype, to->data, k, key[k % 2]);
    }
}

sf_status sf_training_note(sf_training *run, sf_status status)
{
    run->settled = status != SF_OK && status != SF_EPEER;
    return status;
}

sf_status sf_training_settle(sf_training *run, sf_status mine, const char *what)
{
    return sf_training_note(run, sf_agree(run->comm, mine, what, run->diag));
}

bool sf_training_is_first(const sf_training *run)
{
    return run->course.seat.pieces.rank == 0;
}
