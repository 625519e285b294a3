#include "search/price/estimate.h"

#include "search/price/estimate_memory.h"
#include "search/price/estimate_time.h"
#include "search/price/spare.h"

sf_status sf_estimate_plan(const sf_efforts *efforts, const sf_plan *plan, const sf_costs *costs,
                           sf_see_reshard *see, void *context, sf_diag *diag, sf_price *out)
{
    sf_arena arena = {0};
    sf_reshards *reshards;
    efforts = sf_efforts_under(efforts, plan);
    sf_status status = sf_reshards_of(efforts->graph, plan, &arena, diag, &reshards);
    if (status == SF_OK) {
        *out = (sf_price){.peak = SF_NO_ORIGIN};
        const uint32_t *moments =
            sf_estimate_time(efforts, reshards, costs, &arena, see, context, out);
        sf_estimate_memory(efforts, reshards, moments, &arena, out);
        if (efforts->spare) {
            out->recomputed =
                sf_spare_seconds(efforts, reshards, moments, costs, out->memory, &arena);
            out->compute += out->recomputed;
            out->seconds += out->recomputed;
        }
    }
    sf_arena_free(&arena);
    return status;
}
