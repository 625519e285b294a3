#include "search/fit.h"

#include <stdlib.h>
#include <string.h>

#include "local/rank.h"
#include "op/flops.h"
#include "plan/recompute.h"

/* How finely it is looked for how much must be computed again; turns are no more than so many. */
enum { PARTS = 64, MOST_TURNS = 64 };

typedef struct ranked_node {
    uint32_t node;
    double ratio, bytes; /* of all ranks together */
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
    size_t until[PARTS + 1]; /* by part: so many of them */
    /* The best so far. */
    bool has_best, fits;
    sf_price price;
    int part, turns;
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
    return (ranked_node){node->id, made > 0 ? seconds / made : 0, made};
}

/* Ranks what the plan marks, and cuts that into parts of equal bytes. */
static void rank_marked(fitting *f)
{
    const sf_block *top = f->graph->top;
    double all = 0, sum = 0;
    f->ranked = SF_ARRAY(&f->arena, top->nnodes, ranked_node);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(f->graph, i);
        if (!f->plan->again[node->id])
            continue;
        f->ranked[f->count] = rank_node(f, node);
        all += f->ranked[f->count++].bytes;
    }
    if (f->count > 0)
        qsort(f->ranked, f->count, sizeof *f->ranked, by_ratio);
    for (size_t i = 0, part = 0; i < f->count; i++) {
        sum += f->ranked[i].bytes;
        while (part < PARTS && sum * PARTS >= (double)part * all)
            f->until[part++] = i;
    }
    f->until[0] = 0;
    f->until[PARTS] = f->count;
}

static void mark_part(fitting *f, int part)
{
    memset(f->plan->again, 0, f->graph->nnodes * sizeof *f->plan->again);
    for (size_t i = 0; i < f->until[part]; i++)
        f->plan->again[f->ranked[i].node] = true;
}

static bool is_better_fit(const fitting *f, bool fits, const sf_price *price)
{
    if (!f->has_best || fits != f->fits)
        return !f->has_best || fits;
    return fits ? price->seconds < f->price.seconds : price->memory < f->price.memory;
}

/* Prices the plan with so many parts of what can be computed again, in so many turns. */
static sf_status try_time(fitting *f, int part, int turns, bool *fits)
{
    sf_price price;
    bool *again = f->plan->again;
    f->plan->micro_batches = turns;
    if (part > 0 && again)
        mark_part(f, part);
    else
        f->plan->again = NULL;
    sf_status status = sf_price_plan(f->graph, f->plan, f->options->target, f->costs, NULL, NULL,
                                     turns > 1 ? NULL : f->diag, &price);
    f->plan->again = again;
    *fits = false;
    if (status != SF_OK)
        return status;
    *fits = sf_rank_fits(price.memory, f->options->memory);
    if (is_better_fit(f, *fits, &price)) {
        f->has_best = true;
        f->fits = *fits;
        f->price = price;
        f->part = part;
        f->turns = turns;
    }
    return SF_OK;
}

/* As little computed again as fits with so many turns: *fits. */
static sf_status find_part(fitting *f, int turns, bool *fits)
{
    bool enough;
    int low = 0, high = PARTS;
    SF_TRY(try_time(f, PARTS, turns, fits));
    while (*fits && high - low > 1) {
        int middle = (low + high) / 2;
        SF_TRY(try_time(f, middle, turns, &enough));
        if (enough)
            high = middle;
        else
            low = middle;
    }
    return SF_OK;
}

/* More turns until it fits: first by themselves, then with all that can be computed again. A step that cannot be cut is
 * left as it is. */
static void find_turns(fitting *f, bool again)
{
    bool fits = false;
    for (int turns = 2; turns <= MOST_TURNS && !fits; turns *= 2)
        if ((again ? find_part(f, turns, &fits) : try_time(f, 0, turns, &fits)) != SF_OK)
            return;
}

/* What the user leaves open is tried, from what costs least on. */
static sf_status find_fit(fitting *f)
{
    const sf_search_options *o = f->options;
    bool is_free = !o->recompute, fits;
    int turns = o->micro_batches > 1 ? o->micro_batches : 1;
    SF_TRY(try_time(f, is_free ? 0 : PARTS, turns, &fits));
    if (fits || (!is_free && o->micro_batches))
        return SF_OK;
    if (is_free)
        SF_TRY(find_part(f, turns, &fits));
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
    SF_TRY(sf_plan_recompute(graph, plan, options->recompute ? options->recompute : "full", diag));
    if (plan->again)
        rank_marked(&f);
    sf_status status = find_fit(&f);
    if (status == SF_OK) {
        *out = f.price;
        plan->micro_batches = f.turns;
        if (f.part > 0 && plan->again)
            mark_part(&f, f.part);
        else
            plan->again = NULL;
        plan->recompute = !plan->again ? "" : options->recompute ? plan->recompute : "auto";
    }
    sf_arena_free(&f.arena);
    return status;
}
