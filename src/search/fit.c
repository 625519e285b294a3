#include "search/fit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/rank.h"
#include "op/flops.h"
#include "plan/recompute.h"

/* It is looked for how much must be computed again down to such a part of it; turns are no more than so many. */
enum { FINEST = 512, MOST_TURNS = 64 };

/* Small steps are soon lowered: so often, to improve on what is found. */
enum { SMALL_STEP = 5000, MANY_TRIES = 64 };

typedef struct ranked_node {
    uint32_t node;
    double ratio; /* seconds of it for the bytes that it makes */
} ranked_node;

typedef struct fitting {
    const sf_graph *graph;
    const sf_search_options *options;
    const sf_costs *costs;
    sf_plan *plan;
    sf_diag *diag;
    sf_arena arena;
    ranked_node *ranked; /* what can be computed again, what gains most for its time first */
    size_t count;
    uint32_t nlayers; /* of the step */
    sf_price tried;   /* the last */
    /* The best so far. */
    bool has_best, fits;
    sf_price price;
    bool *again; /* or NULL */
    int turns;
} fitting;

static int by_ratio(const void *a, const void *b)
{
    const ranked_node *x = a, *y = b;
    if (x->ratio != y->ratio)
        return x->ratio < y->ratio ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* Seconds of an unsplit node on one device, for the bytes that it makes. */
static ranked_node rank_node(const fitting *f, const sf_node *node)
{
    sf_effort effort = {.product = sf_is(node, SF_OP_DOT_GENERAL) || sf_is(node, SF_OP_CONVOLUTION),
                        .flops = sf_node_flops(f->graph, node)};
    double made = 0;
    for (uint32_t r = 0; r < node->nresults; r++)
        made += (double)sf_type_bytes(sf_type_of(f->graph, node->result + r));
    effort.bytes = effort.product ? made : 0; /* others run in one loop with what reads them */
    double seconds = sf_costs_op(f->costs, &effort);
    return (ranked_node){node->id, made > 0 ? seconds / made : 0};
}

/* Ranks what the plan marks. */
static void rank_marked(fitting *f)
{
    const sf_block *top = f->graph->top;
    f->count = 0;
    f->ranked = SF_ARRAY(&f->arena, top->nnodes, ranked_node);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(f->graph, i);
        if (f->plan->again[node->id])
            f->ranked[f->count++] = rank_node(f, node);
    }
    if (f->count > 0)
        qsort(f->ranked, f->count, sizeof *f->ranked, by_ratio);
}

static void mark_first(fitting *f, size_t count)
{
    memset(f->plan->again, 0, f->graph->nnodes * sizeof *f->plan->again);
    for (size_t i = 0; i < count; i++)
        f->plan->again[f->ranked[i].node] = true;
}

static bool is_better_fit(const fitting *f, bool fits, const sf_price *price)
{
    if (!f->has_best || fits != f->fits)
        return !f->has_best || fits;
    return fits ? price->seconds < f->price.seconds : price->memory < f->price.memory;
}

/* Prices the plan with what is marked computed again, in so many turns. */
static sf_status try_marked(fitting *f, bool *again, int turns, bool *fits)
{
    sf_price price;
    sf_plan *plan = f->plan;
    bool *marked = plan->again;
    *fits = false;
    plan->again = again;
    plan->micro_batches = turns;
    sf_status status = sf_price_plan(f->graph, plan, f->options->target, f->costs, NULL, NULL,
                                     turns > 1 ? NULL : f->diag, &price);
    plan->again = marked;
    SF_TRY(status);
    f->tried = price;
    *fits = sf_rank_fits(price.memory, f->options->memory);
    if (is_better_fit(f, *fits, &price)) {
        f->has_best = true;
        f->fits = *fits;
        f->price = price;
        f->turns = turns;
        f->again = again ? sf_arena_copy(&f->arena, again, f->graph->nnodes * sizeof *again) : NULL;
    }
    return SF_OK;
}

/* The same with the first of what can be computed again. */
static sf_status try_first(fitting *f, size_t count, int turns, bool *fits)
{
    if (count > 0)
        mark_first(f, count);
    return try_marked(f, count > 0 ? f->plan->again : NULL, turns, fits);
}

/* Marks what can be computed again, where the user leaves that open with so many layers together. */
static sf_status mark_group(fitting *f, uint32_t group)
{
    const char *said = f->options->recompute;
    char how[32];
    snprintf(how, sizeof how, "full:%" PRIu32, group);
    SF_TRY(sf_plan_recompute(f->graph, f->plan, said ? said : how, f->diag));
    if (f->plan->again)
        rank_marked(f);
    return SF_OK;
}

/* All of each layer, and where that is not enough, more layers together, as long as that helps. */
static sf_status group_layers(fitting *f, int turns, bool *fits)
{
    int64_t before = INT64_MAX;
    *fits = false;
    for (uint32_t group = 1; !*fits && group <= f->nlayers / 2 + 1; group *= 2) {
        SF_TRY(mark_group(f, group));
        SF_TRY(try_first(f, f->count, turns, fits));
        if (f->tried.memory >= before)
            break;
        before = f->tried.memory;
    }
    return SF_OK;
}

/* As little computed again as fits with so many turns: *fits. */
static sf_status find_least(fitting *f, int turns, bool *fits)
{
    SF_TRY(group_layers(f, turns, fits));
    size_t low = 0, high = f->count;
    while (*fits && high - low > f->count / FINEST + 1) {
        size_t middle = (low + high) / 2;
        bool enough;
        SF_TRY(try_first(f, middle, turns, &enough));
        if (enough)
            high = middle;
        else
            low = middle;
    }
    return SF_OK;
}

/* Keeps after all what need not be computed again for it to fit: what takes the most time first, many nodes at once, then
 * fewer, as long as there are tries. */
static sf_status keep_more(fitting *f)
{
    int tries = f->graph->nnodes <= SMALL_STEP ? MANY_TRIES : 0;
    uint32_t *marked = SF_ARRAY(&f->arena, f->count, uint32_t), count = 0;
    bool fits;
    if (!f->fits || !f->again || f->options->recompute)
        return SF_OK;
    for (size_t i = f->count; i-- > 0;)
        if (f->again[f->ranked[i].node])
            marked[count++] = f->ranked[i].node;
    for (uint32_t chunk = count / 2; chunk > 0 && tries > 0; chunk /= 2)
        for (uint32_t first = 0; first < count && tries > 0; first += chunk) {
            bool *again = sf_arena_copy(&f->arena, f->again, f->graph->nnodes * sizeof *again);
            bool any = false;
            for (uint32_t i = first; i < first + chunk && i < count; i++) {
                any = any || again[marked[i]];
                again[marked[i]] = false;
            }
            tries -= any;
            if (any)
                SF_TRY(try_marked(f, again, f->turns, &fits));
        }
    return SF_OK;
}

/* More turns until it fits, as long as they help: by themselves, or with what can be computed again. A step that cannot be
 * cut is left as it is. */
static void find_turns(fitting *f, bool again)
{
    bool fits = false;
    int64_t before = INT64_MAX;
    for (int turns = 2; turns <= MOST_TURNS && !fits; turns *= 2) {
        if ((again ? find_least(f, turns, &fits) : try_first(f, 0, turns, &fits)) != SF_OK ||
            f->tried.memory >= before)
            return;
        before = f->tried.memory;
    }
}

/* What the user leaves open is tried, from what costs least on. */
static sf_status find_fit(fitting *f)
{
    const sf_search_options *o = f->options;
    bool is_free = !o->recompute, fits;
    int turns = o->micro_batches > 1 ? o->micro_batches : 1;
    SF_TRY(try_first(f, is_free ? 0 : f->count, turns, &fits));
    if (fits || (!is_free && o->micro_batches))
        return SF_OK;
    if (is_free)
        SF_TRY(find_least(f, turns, &fits));
    if (o->micro_batches)
        return SF_OK;
    find_turns(f, !is_free);
    if (is_free && !f->fits)
        find_turns(f, true);
    return SF_OK;
}

sf_status sf_fit_in_time(const sf_graph *graph, const sf_search_options *options,
                         const sf_costs *costs, sf_plan *plan, sf_diag *diag, sf_price *out)
{
    fitting f = {.graph = graph, .options = options, .costs = costs, .plan = plan, .diag = diag};
    f.nlayers = options->recompute ? 0 : sf_count_layers(graph);
    sf_status status = mark_group(&f, 1);
    if (status == SF_OK)
        status = find_fit(&f);
    if (status == SF_OK)
        status = keep_more(&f);
    if (status == SF_OK) {
        *out = f.price;
        plan->micro_batches = f.turns;
        plan->again =
            f.again ? sf_arena_copy(&plan->arena, f.again, graph->nnodes * sizeof *plan->again)
                    : NULL;
        plan->recompute = !plan->again ? "" : options->recompute ? plan->recompute : "auto";
    }
    sf_arena_free(&f.arena);
    return status;
}
