/* Common to both halves of a run, before the first step and after it. */
#include "base/mem.h"
#include "op/op.h"
#include "run/comm/rank_agreement.h"
#include "train/train.h"

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
    return run->training_run.rank_state.shards.rank == 0;
}
