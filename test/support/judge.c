#include "support/judge.h"

#include "api/verify/noise_range.h"

int test_judge(sf_comparison *comparison, sf_arena *arena, sf_difference *out)
{
    const sf_graph *graph = comparison->graph;
    sf_runner_options options = {.with = {.threads = 1}};
    sf_unstable *unstable = SF_ARRAY(arena, graph->top->nresults, sf_unstable);
    sf_noise_range spread;
    int worst = sf_compare(comparison, arena, out);
    if (sf_all_hold(graph, out))
        return worst;
    sf_noise_range_init(graph, &options, arena, &spread);
    while (spread.pairs < SF_NOISE_PAIRS && !sf_all_hold(graph, out) &&
           sf_noise_range_widen(&spread, comparison->arguments, comparison->theirs, NULL) ==
               SF_OK) {
        sf_find_unstable(comparison, spread.at, arena, unstable);
        comparison->unstable = unstable;
        worst = sf_compare(comparison, arena, out);
    }
    sf_noise_range_close(&spread);
    return worst;
}
