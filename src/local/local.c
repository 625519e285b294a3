#include "local/local.h"

#include "base/mem.h"
#include "local/shard/shard_builder.h"
#include "local/time/schedule_step.h"

sf_status sf_local_new(const sf_graph *whole, const sf_plan *plan, int rank, sf_diag *diag,
                       sf_local **out)
{
    const sf_graph *step = whole;
    sf_pool *pool = sf_pool_derive(whole->pool);
    sf_timed *timed = sf_alloc(sizeof *timed);
    sf_status status = sf_put_in_time(&whole, &plan, rank, pool, diag, timed);
    if (status == SF_OK)
        status = local_new_within(whole, plan, rank, pool, 0, false, diag, out);
    if (status == SF_OK) {
        (*out)->step = step;
        (*out)->timed = timed;
    } else {
        sf_timed_free(timed);
        sf_free(timed);
    }
    sf_pool_release(pool);
    return status;
}

bool sf_local_has_microbatches(const sf_local *local)
{
    const sf_timed *timed = local->timed;
    return timed && (timed->microbatched.graph || timed->nsharded > 0);
}

sf_value sf_local_value_of_step(const sf_local *local, sf_value whole)
{
    return sf_timed_value_of_step(local->timed, whole);
}

void sf_local_free(sf_local *local)
{
    if (!local)
        return;
    sf_timed *timed = local->timed;
    local_free(local);
    sf_timed_free(timed);
    sf_free(timed);
}
