#include "search/pipes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "local/rank.h"
#include "plan/co_shard.h"
#include "plan/pipe/pipeline_by.h"
#include "plan/recipe/sets.h"
#include "plan/recompute.h"
#include "search/meshes.h"
#include "search/prospects.h"
#include "search/stage_loads.h"

/* So many are lowered, of small steps more; and of layouts inside of groups. */
enum { MOST_LOWERED = 8, MOST_LOWERED_SMALL = 24, MOST_LAYOUTS = 2 };

/* Nodes that are lowered, those of each turn counted: of one plan, and of all; more where pipelines are asked for. */
enum { MOST_NODES = 1500000, MOST_NODES_ASKED = 2000000 };

/* A batch that is not divided into so many turns and parts is not into multiples of them. */
typedef struct refusal {
    const char *schedule;
    uint32_t turns;
    int parts;
} refusal;

typedef struct piping {
    sf_prospects on;
    sf_diag *diag;
    double nodes; /* that were lowered */
    refusal *refused;
    size_t nrefused, refused_capacity;
    sf_plan *best;
    sf_price price;
    sf_prospect taken;   /* that it was made of */
    const uint32_t *cut; /* by node, the stages that were lowered last */
    sf_status why;       /* the last was not made */
} piping;

bool sf_mesh_is_piped(const sf_mesh *mesh)
{
    return mesh && mesh->naxes > 0 && strcmp(mesh->axes[0].name, SF_PIPE_AXIS) == 0 &&
           mesh->axes[0].size > 1;
}

static bool is_asked(const sf_search_options *options)
{
    return options->stages > 1 || options->schedule || sf_mesh_is_piped(options->mesh);
}

bool sf_may_pipe(const sf_search_options *options)
{
    bool asked = is_asked(options);
    return options->cluster->ndevices > 1 && (!options->mesh || sf_mesh_is_piped(options->mesh)) &&
           (asked || !options->recipes_only);
}

/* All groups are lowered, each with its part of every turn. */
static double count_nodes(const piping *p, const sf_prospect *c)
{
    return (double)p->on.graph->nnodes * c->turns;
}

static bool is_too_large(const piping *p, const sf_prospect *c)
{
    double most = is_asked(p->on.options) ? MOST_NODES_ASKED : MOST_NODES;
    return count_nodes(p, c) > most || p->nodes + count_nodes(p, c) > 2 * most;
}

static int parts_of(const sf_prospect *c)
{
    int data = sf_mesh_axis(&c->mesh, sf_str_of("data"));
    return data >= 0 ? c->mesh.axes[data].size : 1;
}

static bool is_refused(const piping *p, const sf_prospect *c)
{
    for (size_t i = 0; i < p->nrefused; i++)
        if (c->turns % p->refused[i].turns == 0 && parts_of(c) % p->refused[i].parts == 0 &&
            strcmp(c->schedule, p->refused[i].schedule) == 0)
            return true;
    return false;
}

/* One of the ways to make a plan of a prospect. */
typedef struct attempt {
    const char *recompute;
    int shards;   /* of heads and features; 0: as asked, or none */
    bool limited; /* stages are cut so that they fit, by what is known before they are lowered */
} attempt;

static sf_status make_pipeline(piping *p, const sf_prospect *c, const attempt *how,
                               const sf_costs *costs, const sf_plan *plan, sf_pipeline *out)
{
    const char *scopes = p->on.options->stage_scopes;
    char stages[16];
    sf_stage_wish loads;
    snprintf(stages, sizeof stages, "%u", c->stages);
    sf_load_wish load = {.efforts = p->on.efforts,
                         .plan = plan,
                         .costs = costs,
                         .schedule = c->schedule,
                         .stages = c->stages,
                         .groups = (uint32_t)c->groups,
                         .turns = c->turns,
                         .speeds = c->speeds,
                         .limited = how->limited,
                         .memory = p->on.options->limited ? p->on.options->memory : 0,
                         .keeps = strcmp(how->recompute, "none") == 0};
    SF_TRY(sf_stage_loads(&load, &p->on.arena, p->diag, &loads));
    sf_pipeline_wish wish = {.stages = scopes ? scopes : stages,
                             .schedule = c->schedule,
                             .turns = c->turns,
                             .time = sf_node_times(p->on.efforts, plan, costs, &p->on.arena),
                             .again = sf_again_by(p->on.graph, how->recompute, &p->on.arena),
                             .loads = &loads};
    SF_TRY(sf_pipeline_by(p->on.graph, &wish, &p->on.arena, p->diag, out));
    out->axis = 0;
    return SF_OK;
}

/* Whether all ranks fit, each in its device or in what the user allows. */
static bool fits_staged(const piping *p, const sf_price *price)
{
    return sf_rank_fits(price->memory,
                        p->on.options->limited ? p->on.options->memory : price->room);
}

/* Whether those stages were lowered last: a cut by memory, too, may be the one that does not fit. */
static bool is_same_cut(const piping *p, const sf_pipeline *pipeline)
{
    return p->cut &&
           memcmp(p->cut, pipeline->stages.of_node, p->on.graph->nnodes * sizeof *p->cut) == 0;
}

static sf_status price_attempt(piping *p, const sf_prospect *c, const attempt *how,
                               const sf_costs *costs, sf_plan *plan, sf_price *out)
{
    sf_pipeline pipeline;
    SF_TRY(make_pipeline(p, c, how, costs, plan, &pipeline));
    if (how->limited && how->shards == 0 && is_same_cut(p, &pipeline))
        return SF_EWRONG;
    p->cut = pipeline.stages.of_node;
    SF_TRY(sf_plan_set_pipeline(plan, p->on.graph, &pipeline, p->diag));
    SF_TRY(sf_plan_split_sets(p->on.graph, plan, p->diag));
    SF_TRY(sf_plan_recompute(p->on.graph, plan, how->recompute, p->diag));
    sf_plan_co_shard(plan, p->on.options->co_shard,
                     how->shards ? how->shards : p->on.options->co_shards);
    sf_status status =
        sf_price_plan(p->on.graph, plan, p->on.options->target, costs, NULL, NULL, p->diag, out);
    if (status == SF_OK)
        p->nodes += count_nodes(p, c);
    else if (c->turns > 1 && how->shards == 0)
        SF_PUSH(&p->on.arena, p->refused, p->nrefused, p->refused_capacity,
                ((refusal){c->schedule, c->turns, parts_of(c)}));
    return status;
}

static void take_staged(piping *p, const sf_prospect *c, sf_plan *plan, const sf_price *price)
{
    sf_plan_free(p->best);
    p->taken = *c;
    p->best = plan;
    p->price = *price;
    p->on.worth = price->seconds;
}

/* Makes, prices and, where it is the best, keeps the plan. */
static sf_status try_attempt(piping *p, const sf_prospect *c, const attempt *how,
                             const sf_costs *costs, bool *fits)
{
    sf_plan *plan = NULL;
    sf_price price = {0};
    sf_status status = sf_prospect_plan(&p->on, c, p->diag, &plan);
    if (status == SF_OK)
        status = price_attempt(p, c, how, costs, plan, &price);
    *fits = status == SF_OK && fits_staged(p, &price);
    if (*fits && price.seconds < p->on.worth)
        take_staged(p, c, plan, &price);
    else
        sf_plan_free(plan);
    return status;
}

/* As it is asked for; or as it is, and where that does not fit, in stages that are cut by memory, too, then with layers
 * computed again; where nothing is known that fits, with heads and features in turns as well. */
static sf_status try_prospect(piping *p, const sf_prospect *c)
{
    const sf_search_options *options = p->on.options;
    const char *asked = options->recompute;
    const char *first = asked ? asked : options->as_text ? "text" : "none";
    const char *last = asked ? asked : "layer";
    const attempt ways[] = {{first, 0, false}, {first, 0, true}, {last, 0, false},
                            {last, 0, true},   {last, 2, true},  {last, 4, true}};
    sf_arena arena = {0};
    sf_costs *costs;
    bool fits = false;
    sf_status status = sf_mesh_costs(options->cluster, &c->mesh, &arena, p->diag, &costs);
    for (size_t i = 0; i < sizeof ways / sizeof *ways && status == SF_OK && !fits; i++) {
        bool is_same = asked && i >= 2, in_turns = ways[i].shards > 0;
        if (in_turns ? options->co_shards || p->on.worth < HUGE_VAL : is_same)
            continue;
        sf_status tried = try_attempt(p, c, &ways[i], costs, &fits);
        status = ways[i].limited ? status : tried; /* there may be no stages that have room */
    }
    sf_arena_free(&arena);
    return status;
}

/* Layouts that are searched for inside of groups, for the pipeline that turned out best by recipes: the search is for one of as
 * many groups that all do the same, which is what a pipeline is before its stages are told apart. */
static void search_layouts(piping *p)
{
    sf_search_options options = *p->on.options;
    sf_found_plans found;
    sf_prospect c = p->taken;
    int tried = 0;
    if (!p->best || c.mesh.naxes == 1 || options.mesh || options.recipes_only ||
        sf_prospects_are_over(&p->on) || !sf_meshes_can_idle(options.cluster, c.groups))
        return;
    options.groups = c.groups;
    options.level = 2;
    options.memory *= c.groups; /* of stages, each holds its own */
    if (sf_search_plans(p->on.graph, &options, NULL, &found) == SF_OK)
        for (size_t i = 0;
             i < found.count && tried < MOST_LAYOUTS && !sf_prospects_are_over(&p->on); i++) {
            if (!found.candidates[i].at.plan)
                continue;
            c.recipe = NULL;
            c.plan = found.candidates[i].at.plan;
            c.mesh = c.plan->mesh;
            c.mesh.axes[0].name = SF_PIPE_AXIS;
            tried++;
            if (!is_too_large(p, &c))
                try_prospect(p, &c);
        }
    p->taken.plan = NULL;
    sf_found_plans_free(&found);
}

sf_status sf_search_pipes(const sf_graph *graph, const sf_search_options *options, double worth,
                          sf_diag *diag, sf_plan **out, sf_price *price)
{
    piping p = {.on = {.graph = graph, .options = options, .worth = worth}};
    int lowered = 0, most = graph->nnodes <= SF_SMALL_STEP ? MOST_LOWERED_SMALL : MOST_LOWERED;
    p.on.efforts = sf_efforts_new(graph, options->target, &p.on.arena);
    sf_prospects_list(&p.on);
    for (size_t i = 0; i < p.on.count && lowered < most && !sf_prospects_are_over(&p.on); i++) {
        const sf_prospect *c = &p.on.list[i];
        if (c->seconds > sf_prospects_near(&p.on) * p.on.worth || is_too_large(&p, c) ||
            is_refused(&p, c))
            continue;
        p.why = try_prospect(&p, c);
        lowered += p.why == SF_OK;
    }
    search_layouts(&p);
    if (!p.best && p.on.count > 0 && p.why != SF_OK) { /* once more, for the message */
        p.diag = diag;
        p.why = try_prospect(&p, &p.on.list[0]);
    }
    *out = p.best;
    *price = p.price;
    sf_arena_free(&p.on.arena);
    return p.best || p.on.count == 0 ? SF_OK : p.why;
}
