#include "search/offload_fallback.h"

#include <string.h>

#include "local/rank.h"
#include "search/price/price.h"

enum { MOST_TRIED = 6 };

typedef struct hosting {
    const sf_graph *graph;
    const sf_search_options *options;
    const char *passes;
} hosting;

static const char *passes_with_offload(const sf_search_options *options, sf_arena *arena)
{
    sf_buf text = {0};
    if (options->passes)
        sf_buf_printf(&text, "%s,", options->passes);
    sf_buf_puts(&text, "offload");
    const char *passes = sf_arena_string(arena, text.text, text.length);
    sf_buf_free(&text);
    return passes;
}

/* The one that takes least and has not been tried. */
static sf_candidate *next_smallest(sf_found_plans *found, const bool *tried)
{
    sf_candidate *least = NULL;
    for (size_t i = 0; i < found->count; i++) {
        sf_candidate *c = &found->candidates[i];
        if (!tried[i] && c->is_lowered && c->at.plan && !c->at.plan->pipeline &&
            (!least || c->lowered.memory < least->lowered.memory))
            least = c;
    }
    return least;
}

static bool fits_on_host(const hosting *h, sf_candidate *c, sf_price *out)
{
    sf_arena arena = {0};
    sf_costs *costs;
    sf_plan_set_passes(c->at.plan, &(sf_plan_passes){h->passes, "", h->options->memory, true});
    bool good =
        sf_mesh_costs(h->options->cluster, &c->at.plan->mesh, &arena, NULL, &costs) == SF_OK &&
        sf_price_plan(h->graph, c->at.plan, h->options->target, costs, NULL, NULL, NULL, out) ==
            SF_OK;
    sf_arena_free(&arena);
    return good && sf_rank_fits(out->memory, h->options->memory);
}

/* Other passes that make room may be faster for what fits. */
static void take_other_passes(hosting *h, sf_candidate *c)
{
    static const char *const others[] = {"offload:recompute=1", "fsdp,prefetch,balance"};
    const char *best = h->passes;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        sf_price price;
        h->passes = others[i];
        if (!fits_on_host(h, c, &price) || price.seconds >= c->lowered.seconds)
            continue;
        c->lowered = price;
        best = others[i];
    }
    sf_plan_set_passes(c->at.plan, &(sf_plan_passes){best, "", h->options->memory, true});
}

sf_candidate *sf_find_on_host(const sf_graph *graph, const sf_search_options *options,
                              sf_found_plans *found)
{
    sf_arena arena = {0};
    sf_candidate *best = NULL, *c;
    bool *tried = SF_ARRAY(&arena, found->count, bool);
    hosting h = {graph, options, passes_with_offload(options, &arena)};
    for (int t = 0; t < MOST_TRIED && (c = next_smallest(found, tried)); t++) {
        sf_price price;
        tried[c - found->candidates] = true;
        if (!fits_on_host(&h, c, &price))
            continue;
        c->lowered = price;
        c->at.fits = true;
        if (!best || price.seconds < best->lowered.seconds)
            best = c;
    }
    if (best && !options->passes)
        take_other_passes(&h, best);
    sf_arena_free(&arena);
    return best;
}
