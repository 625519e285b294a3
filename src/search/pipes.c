#include "search/pipes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"
#include "local/rank.h"
#include "plan/complete.h"
#include "plan/pipe/pipeline_by.h"
#include "plan/pipe/schedules.h"
#include "plan/recipe.h"
#include "plan/recompute.h"
#include "plan/sets.h"
#include "search/meshes.h"
#include "search/price/estimate.h"
#include "search/stage_loads.h"

/* So many are lowered, and only what may be faster than so much of what is known. */
enum { MOST_LOWERED = 8, MOST_TENSOR = 8, MOST_TURNS = 64, MOST_LAYOUTS = 2 };

/* Nodes that are lowered, those of each turn counted: of one plan, and of all; more where pipelines are asked for. */
enum { MOST_NODES = 300000, MOST_NODES_ASKED = 2000000 };
#define WORTH_STAGES 0.98

typedef struct prospect {
    int groups;
    uint32_t stages, turns;
    const char *recipe;  /* or NULL: groups of one, or */
    const sf_plan *plan; /* searched for, without stages */
    const char *schedule;
    sf_mesh mesh;
    const double *speeds; /* by group (search/stage_loads.h) */
    double seconds;       /* about */
} prospect;

/* A batch that is not divided into so many turns and parts is not into multiples of them. */
typedef struct refusal {
    uint32_t turns;
    int parts;
} refusal;

typedef struct piping {
    const sf_graph *graph;
    const sf_search_options *options;
    sf_diag *diag;
    sf_arena arena;
    const sf_efforts *efforts;
    prospect *list;
    size_t count, capacity;
    double nodes; /* that were lowered */
    refusal *refused;
    size_t nrefused, refused_capacity;
    double worth;
    sf_plan *best;
    sf_price price;
    prospect taken; /* that it was made of */
    sf_status why;  /* the last was not made */
} piping;

static bool is_asked(const sf_search_options *options)
{
    return options->stages > 1 || options->schedule;
}

bool sf_may_pipe(const sf_search_options *options)
{
    bool asked = is_asked(options);
    return options->cluster->ndevices > 1 && !options->mesh && options->npins == 0 &&
           options->co_shards <= 1 && (asked || !options->recipes_only);
}

/* All groups are lowered, each with its part of every turn. */
static double count_nodes(const piping *p, const prospect *c)
{
    return (double)p->graph->nnodes * c->turns;
}

static bool is_too_large(const piping *p, const prospect *c)
{
    double most = is_asked(p->options) ? MOST_NODES_ASKED : MOST_NODES;
    return count_nodes(p, c) > most || p->nodes + count_nodes(p, c) > 2 * most;
}

static int parts_of(const prospect *c)
{
    int data = sf_mesh_axis(&c->mesh, sf_str_of("data"));
    return data >= 0 ? c->mesh.axes[data].size : 1;
}

static bool is_refused(const piping *p, const prospect *c)
{
    for (size_t i = 0; i < p->nrefused; i++)
        if (c->turns % p->refused[i].turns == 0 && parts_of(c) % p->refused[i].parts == 0)
            return true;
    return false;
}

static bool is_over(const piping *p)
{
    return p->options->deadline > 0 && sf_now() > p->options->deadline;
}

/* The plan without stages, on a mesh whose first axis does nothing. */
static sf_status make_unstaged(const piping *p, const prospect *c, sf_diag *diag, sf_plan **out)
{
    if (!c->recipe) {
        *out = c->plan ? sf_plan_copy(c->plan, p->graph) : sf_plan_new(p->graph, &c->mesh);
        (*out)->mesh.axes[0].name = SF_PIPE_AXIS;
        return SF_OK;
    }
    SF_TRY(sf_recipe_plan(p->graph, c->recipe, 0, &c->mesh, diag, out));
    sf_status status = sf_plan_complete(p->graph, *out, diag);
    if (status != SF_OK) {
        sf_plan_free(*out);
        *out = NULL;
    }
    return status;
}

/* Prospects -------------------------------------------------------------------------------------- */

static void add_prospect(piping *p, prospect c, double unstaged)
{
    double filling = (double)(c.groups - 1) / (double)c.turns * c.groups / c.stages, speed = 0;
    for (int g = 0; g < c.groups; g++)
        speed += c.speeds[g];
    c.seconds = unstaged / speed * (1 + filling);
    if (c.seconds < WORTH_STAGES * p->worth)
        SF_PUSH(&p->arena, p->list, p->count, p->capacity, c);
}

/* With 1f1b, and, where there are many turns, with two stages a group. */
static void add_schedules(piping *p, prospect c, double unstaged)
{
    const char *asked = p->options->schedule;
    sf_schedule_kind kind;
    const char *const names[] = {asked ? asked : "1f1b", asked ? NULL : "interleaved:2"};
    for (size_t i = 0; i < sizeof names / sizeof *names && names[i]; i++) {
        if (sf_schedule_parse(names[i], &kind, NULL) != SF_OK)
            continue;
        c.schedule = names[i];
        c.stages = sf_schedule_stages(kind, (uint32_t)c.groups);
        bool wanted = !p->options->stages || (uint32_t)p->options->stages == c.stages;
        if (wanted && (i == 0 || c.turns % (uint32_t)c.groups == 0))
            add_prospect(p, c, unstaged);
    }
}

/* One, which takes the least memory for what is not in the batch, or as many as groups, and more. */
static void add_turns(piping *p, prospect c, double unstaged)
{
    uint32_t groups = (uint32_t)c.groups;
    c.turns = p->options->micro_batches > 0 ? (uint32_t)p->options->micro_batches : 1;
    add_schedules(p, c, unstaged);
    for (c.turns = groups; c.turns <= MOST_TURNS && !p->options->micro_batches; c.turns *= 2)
        add_schedules(p, c, unstaged);
}

static sf_status estimate_unstaged(piping *p, prospect *c, double *out)
{
    sf_arena arena = {0};
    sf_costs *costs;
    sf_plan *plan = NULL;
    sf_price price = {0};
    sf_status status = sf_mesh_costs(p->options->cluster, &c->mesh, &arena, NULL, &costs);
    if (status == SF_OK)
        status = make_unstaged(p, c, NULL, &plan);
    if (status == SF_OK)
        status = sf_estimate_plan(p->efforts, plan, costs, NULL, NULL, NULL, &price);
    if (status == SF_OK) {
        *out = price.seconds;
        c->speeds = sf_group_speeds(p->efforts, plan, costs, c->groups, &p->arena);
    }
    sf_plan_free(plan);
    sf_arena_free(&arena);
    return status;
}

static void add_recipe(piping *p, int groups, int data, int model, const char *recipe)
{
    prospect c = {.groups = groups, .recipe = recipe, .mesh = {1, {{SF_PIPE_AXIS, groups}}}};
    double unstaged;
    if (data > 1)
        c.mesh.axes[c.mesh.naxes++] = (sf_axis){"data", data};
    if (model > 1)
        c.mesh.axes[c.mesh.naxes++] = (sf_axis){"model", model};
    if (estimate_unstaged(p, &c, &unstaged) == SF_OK)
        add_turns(p, c, unstaged);
}

static void list_prospects(piping *p)
{
    int devices = p->options->cluster->ndevices;
    for (int groups = 2; groups <= devices && groups <= SF_MOST_GROUPS && !is_over(p); groups++) {
        if (devices % groups != 0)
            continue;
        int inner = devices / groups;
        if (inner == 1)
            add_recipe(p, groups, 1, 1, NULL);
        for (int model = 1; model <= MOST_TENSOR && inner > 1; model *= 2) {
            int data = inner / model;
            if (inner % model != 0)
                continue;
            add_recipe(p, groups, data, model, model == 1 ? "dp" : data == 1 ? "megatron" : "2d");
            if (data > 1)
                add_recipe(p, groups, data, model, model == 1 ? "zero1" : "2d+zero1");
        }
    }
}

static int by_promise(const void *a, const void *b)
{
    const prospect *x = a, *y = b;
    if (x->seconds != y->seconds)
        return x->seconds < y->seconds ? -1 : 1;
    return x->groups != y->groups ? (x->groups > y->groups) - (x->groups < y->groups)
                                  : (x->turns > y->turns) - (x->turns < y->turns);
}

/* Plans ------------------------------------------------------------------------------------------ */

/* One of the ways to make a plan of a prospect. */
typedef struct attempt {
    const char *recompute;
    bool limited; /* stages are cut so that they fit, by what is known before they are lowered */
} attempt;

static sf_status make_pipeline(piping *p, const prospect *c, const attempt *how,
                               const sf_costs *costs, const sf_plan *plan, sf_pipeline *out)
{
    char stages[16];
    sf_stage_wish loads;
    snprintf(stages, sizeof stages, "%u", c->stages);
    sf_load_wish load = {.efforts = p->efforts,
                         .plan = plan,
                         .costs = costs,
                         .schedule = c->schedule,
                         .stages = c->stages,
                         .groups = (uint32_t)c->groups,
                         .turns = c->turns,
                         .speeds = c->speeds,
                         .limited = how->limited,
                         .memory = p->options->limited ? p->options->memory : 0,
                         .keeps = strcmp(how->recompute, "none") == 0};
    SF_TRY(sf_stage_loads(&load, &p->arena, p->diag, &loads));
    sf_pipeline_wish wish = {.stages = stages,
                             .schedule = c->schedule,
                             .turns = c->turns,
                             .time = sf_node_times(p->efforts, plan, costs, &p->arena),
                             .loads = &loads};
    SF_TRY(sf_pipeline_by(p->graph, &wish, &p->arena, p->diag, out));
    out->axis = 0;
    return SF_OK;
}

/* Whether all ranks fit, each in its device or in what the user allows. */
static bool fits_staged(const piping *p, const sf_price *price)
{
    return sf_rank_fits(price->memory, p->options->limited ? p->options->memory : price->room);
}

static sf_status price_attempt(piping *p, const prospect *c, const attempt *how,
                               const sf_costs *costs, sf_plan *plan, sf_price *out)
{
    sf_pipeline pipeline;
    SF_TRY(make_pipeline(p, c, how, costs, plan, &pipeline));
    SF_TRY(sf_plan_set_pipeline(plan, p->graph, &pipeline, p->diag));
    SF_TRY(sf_plan_split_sets(p->graph, plan, p->diag));
    SF_TRY(sf_plan_recompute(p->graph, plan, how->recompute, p->diag));
    sf_status status =
        sf_price_plan(p->graph, plan, p->options->target, costs, NULL, NULL, p->diag, out);
    if (status == SF_OK)
        p->nodes += count_nodes(p, c);
    else if (c->turns > 1)
        SF_PUSH(&p->arena, p->refused, p->nrefused, p->refused_capacity,
                ((refusal){c->turns, parts_of(c)}));
    return status;
}

static void take_staged(piping *p, const prospect *c, sf_plan *plan, const sf_price *price)
{
    sf_plan_free(p->best);
    p->taken = *c;
    p->best = plan;
    p->price = *price;
    p->worth = price->seconds;
}

/* Makes, prices and, where it is the best, keeps the plan. */
static sf_status try_attempt(piping *p, const prospect *c, const attempt *how,
                             const sf_costs *costs, bool *fits)
{
    sf_plan *plan = NULL;
    sf_price price = {0};
    sf_status status = make_unstaged(p, c, p->diag, &plan);
    if (status == SF_OK)
        status = price_attempt(p, c, how, costs, plan, &price);
    *fits = status == SF_OK && fits_staged(p, &price);
    if (*fits && price.seconds < p->worth)
        take_staged(p, c, plan, &price);
    else
        sf_plan_free(plan);
    return status;
}

/* As it is asked for; or as it is, and where that does not fit, in stages that are cut by memory, too, then with layers
 * computed again. */
static sf_status try_prospect(piping *p, const prospect *c)
{
    const char *asked = p->options->recompute;
    const char *first = asked ? asked : p->options->as_text ? "text" : "none";
    const attempt ways[] = {{first, false}, {first, true}, {"layer", false}, {"layer", true}};
    size_t count = asked ? 2 : sizeof ways / sizeof *ways;
    sf_arena arena = {0};
    sf_costs *costs;
    bool fits = false;
    sf_status status = sf_mesh_costs(p->options->cluster, &c->mesh, &arena, p->diag, &costs);
    for (size_t i = 0; i < count && status == SF_OK && !fits; i++) {
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
    sf_search_options options = *p->options;
    sf_found_plans found;
    prospect c = p->taken;
    int tried = 0;
    if (!p->best || c.mesh.naxes == 1 || options.recipes_only || is_over(p) ||
        !sf_meshes_can_idle(options.cluster, c.groups))
        return;
    options.groups = c.groups;
    options.level = 2;
    options.memory *= c.groups; /* of stages, each holds its own */
    if (sf_search_plans(p->graph, &options, NULL, &found) == SF_OK)
        for (size_t i = 0; i < found.count && tried < MOST_LAYOUTS && !is_over(p); i++) {
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
    piping p = {.graph = graph, .options = options, .worth = worth};
    int lowered = 0;
    p.efforts = sf_efforts_new(graph, options->target, &p.arena);
    list_prospects(&p);
    if (p.count > 0)
        qsort(p.list, p.count, sizeof *p.list, by_promise);
    for (size_t i = 0; i < p.count && lowered < MOST_LOWERED && !is_over(&p); i++) {
        if (p.list[i].seconds > p.worth)
            break;
        if (is_too_large(&p, &p.list[i]) || is_refused(&p, &p.list[i]))
            continue;
        p.why = try_prospect(&p, &p.list[i]);
        lowered += p.why == SF_OK;
    }
    search_layouts(&p);
    if (!p.best && p.count > 0 && p.why != SF_OK) { /* once more, for the message */
        p.diag = diag;
        p.why = try_prospect(&p, &p.list[0]);
    }
    *out = p.best;
    *price = p.price;
    sf_arena_free(&p.arena);
    return p.best || p.count == 0 ? SF_OK : p.why;
}
