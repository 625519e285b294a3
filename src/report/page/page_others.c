/* Alternatives: the plan with more or less recompute and more or fewer micro-batches, and the
 * recipes, each lowered and simulated on the same cluster, on several threads. */
#include <stdio.h>
#include <string.h>

#include "base/guard.h"
#include "local/rank.h"
#include "plan/propagate.h"
#include "plan/recipe/recipe.h"
#include "plan/recompute_policy.h"
#include "report/page/page.h"
#include "run/runner.h"

static const char *const ways[] = {"none", "cheap", "layer", "full"};
enum { WAYS = sizeof ways / sizeof *ways, TURNS = 4 /* 1, 2, 4, 8 */ };

static const char *const recipes[] = {"dp",       "zero1",    "zero2", "zero3",
                                      "megatron", "sequence", "2d",    "2d+zero1"};
enum { RECIPES = sizeof recipes / sizeof *recipes };

typedef struct pricing {
    sf_page *page;
    sf_page_other *others;
} pricing;

/* The work of one thread. */
typedef struct trial {
    const sf_page *page;
    sf_page_other *other;
    sf_diag *diag;
} trial;

static sf_status price_trial(const trial *t, const sf_plan *plan)
{
    const sf_sim_report *r = &t->page->sim;
    sf_arena arena = {0};
    sf_costs *costs;
    sf_price price = {0};
    sf_status status = sf_mesh_costs(r->cluster, &plan->mesh, &arena, t->diag, &costs);
    if (status == SF_OK)
        status = sf_price_plan(r->graph, plan, sf_cluster_target(r->cluster), costs, NULL, NULL,
                               t->diag, &price);
    sf_arena_free(&arena);
    SF_TRY(status);
    t->other->seconds = price.seconds;
    t->other->memory = price.memory;
    t->other->fits = sf_rank_fits(price.memory, t->page->limit);
    t->other->exact = true;
    return SF_OK;
}

static sf_status make_recipe(const trial *t, sf_plan **out)
{
    const sf_sim_report *r = &t->page->sim;
    sf_buf mesh = {0};
    SF_TRY(
        sf_recipe_plan(r->graph, t->other->name, sf_mesh_size(&r->plan->mesh), NULL, t->diag, out));
    sf_mesh_print(&(*out)->mesh, &mesh);
    snprintf(t->other->mesh, sizeof t->other->mesh, "%s", mesh.text);
    sf_buf_free(&mesh);
    return sf_plan_propagate(r->graph, *out, t->diag);
}

/* The same stages with other micro-batches. A table is for its own number of micro-batches
 * alone. */
static sf_status set_microbatches_of_pipeline(const trial *t, sf_plan *plan)
{
    const sf_graph *graph = t->page->sim.graph;
    const sf_pipeline *from = t->page->sim.plan->pipeline;
    const sf_schedule_choice choice = {.name = from->name};
    uint32_t microbatches = (uint32_t)t->other->micro_batches;
    sf_arena arena = {0};
    sf_pipeline pipeline;
    if (microbatches == from->schedule.pipe.nmicrobatches)
        return SF_OK;
    if (!*from->name)
        return sf_fail(t->diag, SF_EUNSUPPORTED, SF_NOWHERE,
                       "the table of the pipeline is for %u micro-batches",
                       from->schedule.pipe.nmicrobatches);
    sf_status status = sf_pipeline_make(graph, from->stages.count, from->stages.of_node,
                                        (uint32_t)sf_plan_groups(plan), microbatches, &choice,
                                        &arena, t->diag, &pipeline);
    if (status == SF_OK) {
        pipeline.axis = from->axis;
        status = sf_plan_set_pipeline(plan, graph, &pipeline, t->diag);
    }
    sf_arena_free(&arena);
    return status;
}

static sf_status make_in_time(const trial *t, sf_plan **out)
{
    const sf_sim_report *r = &t->page->sim;
    *out = sf_plan_copy(r->plan, r->graph);
    (*out)->recomputed = (*out)->recomputed_per_part = NULL;
    (*out)->recompute = "";
    (*out)->micro_batches = t->other->micro_batches;
    if (r->plan->pipeline)
        SF_TRY(set_microbatches_of_pipeline(t, *out));
    sf_recompute_spec how = sf_recompute_of(t->other->recompute, &(*out)->arena);
    return sf_plan_recompute(r->graph, *out, &how, t->diag);
}

static sf_status run_trial(void *context)
{
    const trial *t = context;
    sf_plan *plan = NULL;
    sf_status status = *t->other->name ? make_recipe(t, &plan) : make_in_time(t, &plan);
    if (status == SF_OK)
        status = price_trial(t, plan);
    sf_plan_free(plan);
    return status;
}

static void keep_reason(sf_diag *diag, sf_page_other *other)
{
    for (int i = 0; i < diag->count && i < SF_DIAG_KEPT; i++)
        if (diag->messages[i].status != SF_OK && diag->messages[i].text) {
            snprintf(other->why, sizeof other->why, "%s", diag->messages[i].text);
            return;
        }
}

/* With a guard of its own, as its messages are cleared in any case. */
static void price_other(void *context, int64_t i, int part)
{
    const pricing *p = context;
    sf_diag diag = {0};
    trial t = {p->page, &p->others[i], &diag};
    (void)part;
    t.other->status = sf_guarded(run_trial, &t, &diag);
    keep_reason(&diag, t.other);
    sf_diag_clear(&diag);
}

/* A plan that ran out of memory is left out; an impossible one is listed. */
static sf_status price_all(sf_page *page, sf_page_other *others, size_t count)
{
    pricing p = {page, others};
    sf_guarded_each(page->threads, (int64_t)count, price_other, &p);
    for (size_t i = 0; i < count; i++)
        if (others[i].status == SF_ENOMEM)
            return sf_fail(page->diag, SF_ENOMEM, SF_NOWHERE,
                           "there is not enough memory to simulate the plans to compare with");
    return SF_OK;
}

/* Whether the plan itself goes on in time like this. */
static bool is_as_planned(const sf_plan *plan, const sf_page_other *other)
{
    const char *how = plan->recomputed ? plan->recompute : "none";
    return strcmp(how, other->recompute) == 0 &&
           (plan->micro_batches > 1 ? plan->micro_batches : 1) == other->micro_batches;
}

static sf_page_other this_plan(const sf_page *page)
{
    const sf_plan *plan = page->sim.plan;
    return (sf_page_other){.name = "",
                           .recompute = plan->recomputed ? plan->recompute : "none",
                           .micro_batches = plan->micro_batches > 1 ? plan->micro_batches : 1,
                           .seconds = page->sim.price.seconds,
                           .memory = page->sim.price.memory,
                           .fits = sf_rank_fits(page->sim.price.memory, page->limit),
                           .exact = true,
                           .chosen = true};
}

/* Every kind of recompute with every number of micro-batches; the plan is one of them, or comes
 * after them. */
static sf_status find_frontier(sf_page *page)
{
    bool listed = false;
    page->frontier = SF_ARRAY(&page->sim.arena, WAYS * TURNS + 1, sf_page_other);
    for (int w = 0; w < WAYS; w++)
        for (int t = 0; t < TURNS; t++) {
            sf_page_other *other = &page->frontier[page->nfrontier++];
            *other = (sf_page_other){.name = "", .recompute = ways[w], .micro_batches = 1 << t};
            other->chosen = is_as_planned(page->sim.plan, other);
            listed = listed || other->chosen;
        }
    SF_TRY(price_all(page, page->frontier, page->nfrontier));
    if (!listed)
        page->frontier[page->nfrontier++] = this_plan(page);
    return SF_OK;
}

/* The best of each name, of the candidates considered: alternatives are sorted. */
static void take_alternatives(sf_page *page, const sf_prediction *predicted)
{
    page->recipes = SF_ARRAY(&page->sim.arena, predicted->nalternatives + 1, sf_page_other);
    for (int i = 0; i < predicted->nalternatives; i++) {
        const sf_alternative *a = &predicted->alternatives[i];
        bool seen = false;
        for (size_t j = 0; j < page->nrecipes; j++)
            seen = seen || strcmp(page->recipes[j].name, a->name) == 0;
        if (seen)
            continue;
        sf_page_other *other = &page->recipes[page->nrecipes++];
        *other = (sf_page_other){.name = a->name,
                                 .recompute = "",
                                 .seconds = a->seconds,
                                 .memory = a->memory,
                                 .fits = a->fits,
                                 .exact = a->lowered};
        snprintf(other->mesh, sizeof other->mesh, "%s", a->mesh);
    }
}

static sf_status price_recipes(sf_page *page)
{
    page->recipes = SF_ARRAY(&page->sim.arena, RECIPES, sf_page_other);
    for (int i = 0; i < RECIPES; i++)
        page->recipes[page->nrecipes++] =
            (sf_page_other){.name = recipes[i], .recompute = "", .micro_batches = 1};
    return price_all(page, page->recipes, page->nrecipes);
}

sf_status sf_page_find_others(sf_page *page)
{
    const sf_prediction *predicted = page->sim.plan->predicted;
    SF_TRY(find_frontier(page));
    if (sf_plan_is_for(page->sim.plan, page->sim.cluster) && predicted->nalternatives > 0) {
        page->recipes_from = "candidates considered, the best of each name";
        take_alternatives(page, predicted);
        return SF_OK;
    }
    page->recipes_from = "recipes as they are, simulated on this cluster";
    return price_recipes(page);
}
