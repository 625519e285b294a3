#include "search/pipes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"
#include "local/rank.h"
#include "plan/complete.h"
#include "plan/pin.h"
#include "plan/pipe/pipeline_by.h"
#include "plan/pipe/rounds.h"
#include "plan/pipe/schedules.h"
#include "plan/recipe.h"
#include "plan/recompute.h"
#include "plan/sets.h"
#include "search/meshes.h"
#include "search/price/estimate.h"
#include "search/stage_loads.h"

/* So many are lowered, of small steps more, and only what may be faster than so much of what is known. */
enum {
    MOST_LOWERED = 8,
    MOST_LOWERED_SMALL = 24,
    MOST_TENSOR = 8,
    MOST_TURNS = 64,
    MOST_LAYOUTS = 2
};
/* Of the time that groups wait for, what gradients of weights fill at most. */
#define FILLED 0.33
/* Different numbers of turns. */
enum { MOST_COUNTS = 16 };

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
    const char *schedule;
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
    double nodes;       /* that were lowered */
    double shared;      /* of the parameters' bytes, what interlaced would share; 0: nothing */
    const char *passes; /* the schedule for several forward passes; NULL: there is one */
    sf_names names;     /* of the step, where there are pins */
    refusal *refused;
    size_t nrefused, refused_capacity;
    double worth;
    sf_plan *best;
    sf_price price;
    prospect taken; /* that it was made of */
    sf_status why;  /* the last was not made */
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
        if (c->turns % p->refused[i].turns == 0 && parts_of(c) % p->refused[i].parts == 0 &&
            strcmp(c->schedule, p->refused[i].schedule) == 0)
            return true;
    return false;
}

static bool is_over(const piping *p)
{
    return p->options->deadline > 0 && sf_now() > p->options->deadline;
}

/* Pins hold in what is completed, or it is no plan. */
static sf_status complete_pinned(const piping *p, sf_plan *plan, sf_diag *diag)
{
    const sf_search_options *o = p->options;
    sf_ground ground = {.graph = p->graph, .npins = o->npins, .pins = o->pins, .names = &p->names};
    sf_arena arena = {0};
    sf_rules rules;
    int broken = -1;
    sf_status status = sf_plan_add_pins(plan, o->npins, o->pins, diag);
    if (status == SF_OK)
        status = sf_plan_complete(p->graph, plan, diag);
    if (status == SF_OK)
        status = sf_ground_rules(&ground, &plan->mesh, &arena, diag, &rules);
    if (status == SF_OK)
        broken = sf_rules_broken(&rules, plan);
    if (broken >= 0)
        status = sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "pin \"%s\" does not hold in these stages",
                         o->pins[broken]);
    sf_arena_free(&arena);
    return status;
}

/* The plan without stages, on a mesh whose first axis does nothing. */
static sf_status make_unstaged(const piping *p, const prospect *c, sf_diag *diag, sf_plan **out)
{
    if (c->plan || (!c->recipe && p->options->npins == 0)) {
        *out = c->plan ? sf_plan_copy(c->plan, p->graph) : sf_plan_new(p->graph, &c->mesh);
        (*out)->mesh.axes[0].name = SF_PIPE_AXIS;
        return SF_OK;
    }
    if (c->recipe)
        SF_TRY(sf_recipe_plan(p->graph, c->recipe, 0, &c->mesh, diag, out));
    else
        *out = sf_plan_new(p->graph, &c->mesh);
    sf_status status = p->options->npins > 0 ? complete_pinned(p, *out, diag)
                                             : sf_plan_complete(p->graph, *out, diag);
    if (status != SF_OK) {
        sf_plan_free(*out);
        *out = NULL;
    }
    return status;
}

/* Prospects -------------------------------------------------------------------------------------- */

/* What is known of a plan before it is in stages. */
typedef struct unstaged {
    size_t count;
    sf_turn_work work[MOST_COUNTS]; /* by number of turns */
    double exposed;                 /* seconds of communication */
    double latency;                 /* of a message to another group */
} unstaged;

/* Estimates of a small step are less exact, and it is soon lowered. */
static double near_of(const piping *p)
{
    return p->graph->nnodes <= SF_SMALL_STEP ? SF_ESTIMATE_NEAR_SMALL : 1;
}

/* The groups share the work, and wait while the pipeline fills and drains: for a turn, in as many parts as a group has stages;
 * or, where gradients of weights are tasks of their own, for what these do not fill. No step takes less than a turn does on
 * its way through all stages. What runs once is on all groups alike. */
static double estimate_staged(const prospect *c, const unstaged *u, const sf_turn_work *work,
                              bool splits)
{
    bool in_turns = sf_mesh_axis(&c->mesh, sf_str_of("model")) >= 0;
    double turns = c->turns, groups = c->groups, speed = 0,
           turn =
               work->forward + work->backward + work->weights + (in_turns ? u->exposed / turns : 0),
           once = work->once + (in_turns ? 0 : u->exposed);
    for (int g = 0; g < c->groups; g++)
        speed += c->speeds[g];
    double waits = splits ? turn - fmin(work->weights, FILLED * turn) : turn * groups / c->stages;
    double seconds = fmax(turns * turn + waits * (groups - 1), turn * groups) + once;
    return seconds / speed + 2 * (c->stages - 1) * u->latency;
}

static void add_prospect(piping *p, prospect c, const unstaged *u, const sf_turn_work *work,
                         bool splits)
{
    c.seconds = estimate_staged(&c, u, work, splits);
    if (c.seconds < near_of(p) * WORTH_STAGES * p->worth)
        SF_PUSH(&p->arena, p->list, p->count, p->capacity, c);
}

/* What a table of tokens and scores of them hold, of all parameters. */
static double find_shared(const sf_graph *graph, sf_arena *arena)
{
    bool *first, *last, *seen = SF_ARRAY(arena, graph->top->narguments, bool);
    double shared = 0, all = 0;
    if (sf_find_vocabulary(graph, arena, NULL, &first, &last) != SF_OK)
        return 0;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].role == SF_ROLE_PARAM)
            all += (double)sf_type_bytes(sf_argument_type(graph, i));
    for (uint32_t n = 0; n < graph->top->nnodes; n++) {
        const sf_node *node = sf_top_node(graph, n);
        for (uint32_t o = 0; o < node->noperands && (first[node->id] || last[node->id]); o++) {
            const sf_value_info *info = &graph->values[node->operands[o]];
            bool counts = info->node == SF_NONE && !seen[info->index] &&
                          graph->arguments[info->index].role == SF_ROLE_PARAM;
            if (!counts)
                continue;
            seen[info->index] = true;
            shared += (double)sf_type_bytes(sf_argument_type(graph, info->index));
        }
    }
    return all > 0 ? shared / all : 0;
}

/* What of the step other schedules are for. */
static void find_kinds(piping *p)
{
    enum { MOST_PASSES = 8 };
    if (p->options->schedule)
        return;
    uint32_t rounds = sf_find_rounds(p->graph, &p->arena, NULL);
    char name[32];
    snprintf(name, sizeof name, "3f1b:%u", rounds);
    if (rounds > 1 && rounds <= MOST_PASSES)
        p->passes = sf_arena_string(&p->arena, name, strlen(name));
    p->shared = find_shared(p->graph, &p->arena);
}

/* Whether the schedule is tried on so many groups: two stages a group where turns divide; gradients of weights by themselves
 * where there are turns to fill; a shared vocabulary where it would take half of what a group has. */
static bool is_worth(const piping *p, const prospect *c)
{
    if (strcmp(c->schedule, "interleaved:2") == 0)
        return c->turns % (uint32_t)c->groups == 0;
    if (strcmp(c->schedule, "zb-h1") == 0)
        return c->turns > 1;
    return strcmp(c->schedule, "interlaced") != 0 || p->shared * c->groups >= 0.5;
}

/* With those that suit most steps and what else suits this one, or as asked. */
static void add_schedules(piping *p, prospect c, const unstaged *u, const sf_turn_work *work)
{
    const char *asked = p->options->schedule;
    sf_schedule_kind kind;
    const char *const names[] = {"1f1b", "zb-h1", "interleaved:2", "zb-v", "interlaced", p->passes};
    c.turns = work->turns;
    for (size_t i = 0; i < (asked ? 1 : sizeof names / sizeof *names); i++) {
        c.schedule = asked ? asked : names[i];
        if (!c.schedule || sf_schedule_parse(c.schedule, &kind, NULL) != SF_OK)
            continue;
        c.stages = sf_schedule_stages(kind, (uint32_t)c.groups);
        bool wanted = !p->options->stages || (uint32_t)p->options->stages == c.stages;
        if (wanted && (asked || is_worth(p, &c)))
            add_prospect(p, c, u, work, sf_schedule_splits_weights(kind));
    }
}

/* As asked; or one, which takes the least memory for what is not in the batch, some, as many as groups, and more. */
static void list_turns(const piping *p, uint32_t groups, unstaged *u)
{
    uint32_t asked = (uint32_t)p->options->micro_batches;
    u->count = 0;
    for (uint32_t turns = 1; turns < groups && !asked; turns *= 2)
        u->work[u->count++] = (sf_turn_work){.turns = turns};
    for (uint32_t turns = groups; turns <= MOST_TURNS && !asked; turns *= 2)
        u->work[u->count++] = (sf_turn_work){.turns = turns};
    if (asked)
        u->work[u->count++] = (sf_turn_work){.turns = asked};
}

static sf_status estimate_unstaged(piping *p, prospect *c, unstaged *out)
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
        list_turns(p, (uint32_t)c->groups, out);
        sf_add_turn_work(p->efforts, plan, costs, out->count, out->work);
        out->exposed = price.exposed;
        out->latency = sf_costs_collective(costs, SF_PERMUTE, 1, 0);
        c->speeds = sf_group_speeds(p->efforts, plan, costs, c->groups, &p->arena);
    }
    sf_plan_free(plan);
    sf_arena_free(&arena);
    return status;
}

/* In all numbers of turns, by all schedules. */
static void add_unstaged(piping *p, prospect c)
{
    unstaged u;
    if (estimate_unstaged(p, &c, &u) != SF_OK)
        return;
    for (size_t i = 0; i < u.count; i++)
        add_schedules(p, c, &u, &u.work[i]);
}

static void add_recipe(piping *p, int groups, int data, int model, const char *recipe)
{
    prospect c = {.groups = groups, .recipe = recipe, .mesh = {1, {{SF_PIPE_AXIS, groups}}}};
    if (data > 1)
        c.mesh.axes[c.mesh.naxes++] = (sf_axis){"data", data};
    if (model > 1)
        c.mesh.axes[c.mesh.naxes++] = (sf_axis){"model", model};
    add_unstaged(p, c);
}

/* Groups of so many devices that all do the same, where a step may be too small for more. */
static void add_idle(piping *p, int groups, int inner)
{
    prospect c = {.groups = groups, .mesh = {2, {{SF_PIPE_AXIS, groups}, {SF_IDLE_AXIS, inner}}}};
    if (p->graph->nnodes <= SF_SMALL_STEP)
        add_unstaged(p, c);
}

/* The recipes for a group whose devices stand so. */
static void add_recipes(piping *p, int groups, int data, int model)
{
    add_recipe(p, groups, data, model, model == 1 ? "dp" : data == 1 ? "megatron" : "2d");
    if (data > 1)
        add_recipe(p, groups, data, model, model == 1 ? "zero1" : "2d+zero1");
}

/* On the mesh that is given: what recipes say of its axes, and what pins say alone. */
static void add_given(piping *p)
{
    const sf_mesh *mesh = p->options->mesh;
    int data = sf_mesh_axis(mesh, sf_str_of("data")),
        model = sf_mesh_axis(mesh, sf_str_of("model"));
    int known = (data > 0) + (model > 0);
    add_unstaged(p, (prospect){.groups = mesh->axes[0].size, .mesh = *mesh});
    if (known > 0 && known + 1 == mesh->naxes && (data < 0 || data == 1))
        add_recipes(p, mesh->axes[0].size, data > 0 ? mesh->axes[data].size : 1,
                    model > 0 ? mesh->axes[model].size : 1);
}

/* An axis that a pin names, and recipes do not know, has all devices of a group. */
static void add_named(piping *p, int groups, int inner)
{
    prospect c = {.groups = groups, .mesh = {2, {{SF_PIPE_AXIS, groups}, {"", inner}}}};
    if (p->options->npins == 0)
        return;
    sf_str name = sf_pin_axis_name(p->options->pins[0]);
    c.mesh.axes[1].name = sf_arena_string(&p->arena, name.at, name.length);
    if (name.length > 0)
        add_unstaged(p, c);
}

static void list_prospects(piping *p)
{
    int devices = p->options->cluster->ndevices;
    if (p->options->mesh) {
        add_given(p);
        return;
    }
    for (int groups = 2; groups <= devices && groups <= SF_MOST_GROUPS && !is_over(p); groups++) {
        if (devices % groups != 0)
            continue;
        int inner = devices / groups;
        if (inner == 1)
            add_recipe(p, groups, 1, 1, NULL);
        else
            add_idle(p, groups, inner);
        for (int model = 1; model <= MOST_TENSOR && inner > 1; model *= 2)
            if (inner % model == 0)
                add_recipes(p, groups, inner / model, model);
        if (inner > 1)
            add_named(p, groups, inner);
    }
}

static int by_promise(const void *a, const void *b)
{
    const prospect *x = a, *y = b;
    if (x->seconds != y->seconds)
        return x->seconds < y->seconds ? -1 : 1;
    if (x->groups != y->groups)
        return x->groups < y->groups ? -1 : 1;
    if (x->turns != y->turns)
        return x->turns < y->turns ? -1 : 1;
    return strcmp(x->schedule, y->schedule);
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
    const char *scopes = p->options->stage_scopes;
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
    sf_pipeline_wish wish = {.stages = scopes ? scopes : stages,
                             .schedule = c->schedule,
                             .turns = c->turns,
                             .time = sf_node_times(p->efforts, plan, costs, &p->arena),
                             .again = sf_again_by(p->graph, how->recompute, &p->arena),
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
                ((refusal){c->schedule, c->turns, parts_of(c)}));
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
    int lowered = 0, most = graph->nnodes <= SF_SMALL_STEP ? MOST_LOWERED_SMALL : MOST_LOWERED;
    p.efforts = sf_efforts_new(graph, options->target, &p.arena);
    if (options->npins > 0)
        p.names = sf_names_of(graph, &p.arena);
    find_kinds(&p);
    list_prospects(&p);
    if (p.count > 0)
        qsort(p.list, p.count, sizeof *p.list, by_promise);
    for (size_t i = 0; i < p.count && lowered < most && !is_over(&p); i++) {
        if (p.list[i].seconds > near_of(&p) * p.worth)
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
