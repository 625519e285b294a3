#include "search/pipeline_candidates.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/machine.h"
#include "plan/pipeline/recycling.h"
#include "plan/pipeline/schedules.h"
#include "plan/propagate.h"
#include "plan/recipe/recipe.h"
#include "search/meshes.h"
#include "search/price/estimate.h"
#include "search/stage_loads.h"

/* The most ranks along axis model, and turns. */
enum { MOST_TENSOR = 8, MOST_TURNS = 64 };
/* Different numbers of turns. */
enum { MOST_COUNTS = 16 };
/* Forward passes of the same layers; of none, and of other schedules, a group has so many stages. */
enum { MOST_PASSES = 8, MOST_STAGES = 2 };
/* Of the time that groups wait for, what gradients of weights fill at most. */
#define FILLED 0.33
/* See estimate_full. */
#define SURELY_KEPT 0.75
/* A plan in stages is worth it where it may take less than so much of what is known. */
#define WORTH_STAGES 0.98

bool sf_prospects_are_over(const sf_prospects *p)
{
    return p->options->deadline > 0 && sf_now() > p->options->deadline;
}

/* Pins hold in what is completed, or it is no plan. */
static sf_status complete_pinned(const sf_prospects *p, sf_plan *plan, sf_diag *diag)
{
    const sf_search_options *o = p->options;
    sf_ground ground = {.graph = p->graph, .npins = o->npins, .pins = o->pins, .names = &p->names};
    sf_arena arena = {0};
    sf_rules rules;
    int broken = -1;
    sf_status status = sf_plan_add_pins(plan, o->npins, o->pins, diag);
    if (status == SF_OK)
        status = sf_plan_propagate(p->graph, plan, diag);
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

/* What was searched for keeps to the pins, and a copy of it says so. */
static sf_status keep_pins(const sf_prospects *p, sf_plan *plan, sf_diag *diag)
{
    if (p->options->npins == 0)
        return SF_OK;
    SF_TRY(sf_plan_add_pins(plan, p->options->npins, p->options->pins, diag));
    sf_plan_mark_pins(plan, &p->names);
    return SF_OK;
}

sf_status sf_prospect_plan(const sf_prospects *p, const sf_prospect *c, sf_diag *diag,
                           sf_plan **out)
{
    bool pinned = p->options->npins > 0;
    sf_status status = SF_OK;
    if (c->recipe)
        SF_TRY(sf_recipe_plan(p->graph, c->recipe, 0, &c->mesh, diag, out));
    else
        *out = c->plan ? sf_plan_copy(c->plan, p->graph) : sf_plan_new(p->graph, &c->mesh);
    (*out)->mesh.axes[0].name = SF_PIPE_AXIS;
    if (c->plan)
        status = keep_pins(p, *out, diag);
    else if (pinned)
        status = complete_pinned(p, *out, diag);
    else if (c->recipe)
        status = sf_plan_propagate(p->graph, *out, diag);
    if (status != SF_OK) {
        sf_plan_free(*out);
        *out = NULL;
    }
    return status;
}

bool sf_prospects_split_alike(const sf_prospect *a, const sf_prospect *b)
{
    bool is_same = a->recipe == b->recipe && a->plan == b->plan && a->mesh.naxes == b->mesh.naxes;
    for (int i = 0; i < a->mesh.naxes && is_same; i++)
        is_same = a->mesh.axes[i].size == b->mesh.axes[i].size &&
                  strcmp(a->mesh.axes[i].name, b->mesh.axes[i].name) == 0;
    return is_same;
}

static const sf_plan *find_kept(const sf_prospects *p, const sf_prospect *c)
{
    for (size_t i = 0; i < SF_SPLITS_KEPT; i++)
        if (p->made[i].plan && sf_prospects_split_alike(&p->made[i].of, c))
            return p->made[i].plan;
    return NULL;
}

/* The plan without stages, of the split; it stays until as many others were made. */
static void keep_made(sf_prospects *p, const sf_prospect *c, sf_plan *plan)
{
    sf_made_split *oldest = &p->made[p->nmade++ % SF_SPLITS_KEPT];
    sf_plan_free(oldest->plan);
    *oldest = (sf_made_split){*c, plan};
}

void sf_prospects_keep(sf_prospects *p, const sf_prospect *c)
{
    sf_plan *plan;
    if (!find_kept(p, c) && sf_prospect_plan(p, c, NULL, &plan) == SF_OK)
        keep_made(p, c, plan);
}

sf_status sf_prospect_layouts(const sf_prospects *p, const sf_prospect *c, sf_diag *diag,
                              sf_plan **out)
{
    const sf_plan *kept = find_kept(p, c);
    if (!kept)
        return sf_prospect_plan(p, c, diag, out);
    *out = sf_plan_copy(kept, p->graph);
    return SF_OK;
}

void sf_prospects_free(sf_prospects *p)
{
    for (size_t i = 0; i < SF_SPLITS_KEPT; i++)
        sf_plan_free(p->made[i].plan);
    sf_arena_free(&p->arena);
}

static bool has_too_many_nodes(const sf_prospects *p, uint32_t microbatches)
{
    return (double)p->graph->nnodes * microbatches > p->most_nodes;
}

/* What is known of a plan before it is in stages. */
typedef struct unstaged {
    size_t count;
    sf_turn_work work[MOST_COUNTS]; /* by number of turns */
    double exposed;                 /* seconds of communication */
    double latency;                 /* of a message to another group */
    double state, gradients;        /* bytes of a rank, */
    double kept;                    /* and of what it keeps of all turns, but for scores */
} unstaged;

double sf_prospects_near(const sf_prospects *p)
{
    return p->graph->nnodes <= SF_SMALL_STEP ? SF_ESTIMATE_NEAR_SMALL : 1;
}

/* The groups share the work, and wait while the pipeline fills and drains: for a turn, in as many parts as a group has stages;
 * or, where gradients of weights are tasks of their own, for what these do not fill. No step takes less than a turn does on
 * its way through all stages. What runs once is on all groups alike. */
static double estimate_staged(const sf_prospect *c, const unstaged *u, const sf_turn_work *work,
                              bool splits)
{
    bool in_turns = sf_mesh_axis(&c->mesh, sf_str_of("model")) >= 0;
    double microbatches = c->microbatches, groups = c->groups, speed = 0,
           microbatch = work->forward + work->backward + work->weights +
                        (in_turns ? u->exposed / microbatches : 0),
           once = work->once + (in_turns ? 0 : u->exposed);
    for (int g = 0; g < c->groups; g++)
        speed += c->speeds[g];
    double waits = splits ? microbatch - fmin(work->weights, FILLED * microbatch)
                          : microbatch * groups / c->stages;
    double seconds =
        fmax(microbatches * microbatch + waits * (groups - 1), microbatch * groups) + once;
    return seconds / speed + 2 * (c->stages - 1) * u->latency;
}

/* Turns that groups have under way on the average, where those behind begin later. */
static double mean_in_flight(int groups, uint32_t microbatches)
{
    double in_flight = 0;
    for (uint32_t g = 1; g <= (uint32_t)groups; g++)
        in_flight += g < microbatches ? g : microbatches;
    return in_flight / groups;
}

bool sf_shares_vocabulary(const char *schedule)
{
    const sf_schedule_info *info = sf_schedule_find_info(schedule);
    return info && info->shared > 0;
}

/* Of its memory, what a group takes at the least that has so many turns under way, where stages take equally long: its share of the
 * state, and of what turns surely keep (search/stage_estimate.c), where no groups share stages. */
static double estimate_full(const sf_prospects *p, const sf_prospect *c, const unstaged *u,
                            double flying)
{
    bool shares = sf_shares_vocabulary(c->schedule) || c->schedule == p->passes;
    double kept =
        shares ? 0 : SURELY_KEPT * u->kept / c->microbatches * fmin(c->microbatches, flying);
    return (u->state + kept) / c->groups / (double)p->options->memory;
}

static void add_prospect(sf_prospects *p, sf_prospect c, const unstaged *u,
                         const sf_turn_work *work, bool splits)
{
    c.seconds = estimate_staged(&c, u, work, splits);
    c.full = estimate_full(p, &c, u, c.groups);
    const sf_schedule_info *info = sf_schedule_find_info(c.schedule);
    c.mean = estimate_full(
        p, &c, u, info && info->falls_to_one ? mean_in_flight(c.groups, c.microbatches) : c.groups);
    if (c.seconds < sf_prospects_near(p) * WORTH_STAGES * p->worth)
        SF_PUSH(&p->arena, p->list, p->count, p->capacity, c);
}

/* What a table of tokens and scores of them hold, of all parameters. */
static double find_shared(const sf_graph *graph, sf_arena *arena, const bool **scores)
{
    bool *first, *last, *seen = SF_ARRAY(arena, graph->top->narguments, bool);
    double shared = 0, all = 0;
    if (sf_find_vocabulary(graph, arena, NULL, &first, &last) != SF_OK)
        return 0;
    *scores = last;
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
static void find_kinds(sf_prospects *p)
{
    if (p->options->schedule)
        return;
    uint32_t rounds = sf_find_rounds(p->graph, &p->arena, NULL);
    char name[32];
    snprintf(name, sizeof name, "search:%u", rounds);
    if (rounds > 1 && rounds <= MOST_PASSES)
        p->passes = sf_arena_string(&p->arena, name, strlen(name));
    p->shared = find_shared(p->graph, &p->arena, &p->scores);
}

/* Whether the schedule is tried on so many groups: two stages a group where turns divide; gradients of weights by themselves
 * where there are turns to fill; a shared vocabulary where it would take half of what a group has. */
static bool is_worth(const sf_prospects *p, const sf_prospect *c)
{
    const sf_schedule_info *info = sf_schedule_find_info(c->schedule);
    if (info->whole_rounds)
        return c->microbatches % (uint32_t)c->groups == 0;
    return c->microbatches >= info->worth_turns &&
           (info->shared == 0 || p->shared * c->groups >= 0.5);
}

/* With those that suit most steps and what else suits this one, or as asked. */
static void add_schedules(sf_prospects *p, sf_prospect c, const unstaged *u,
                          const sf_turn_work *work)
{
    const char *asked = p->options->schedule;
    sf_schedule_kind kind;
    const char *const names[] = {"1f1b", "zb-h1", "interleaved:2", "zb-v", "interlaced", p->passes};
    c.microbatches = work->microbatches;
    for (size_t i = 0; i < (asked ? 1 : sizeof names / sizeof *names); i++) {
        c.schedule = asked ? asked : names[i];
        if (!c.schedule || sf_schedule_parse(c.schedule, &kind, NULL) != SF_OK)
            continue;
        c.stages = sf_schedule_stages(kind, (uint32_t)c.groups);
        bool wanted = !p->options->stages || (uint32_t)p->options->stages == c.stages;
        if (wanted && (asked || is_worth(p, &c)))
            add_prospect(p, c, u, work, sf_schedule_get(kind.name)->splits_weights);
    }
}

static void add_turns(const sf_prospects *p, uint32_t microbatches, unstaged *u)
{
    bool is_known = false;
    for (size_t i = 0; i < u->count; i++)
        is_known = is_known || u->work[i].microbatches == microbatches;
    if (!is_known && u->count < MOST_COUNTS && !has_too_many_nodes(p, microbatches))
        u->work[u->count++] = (sf_turn_work){.microbatches = microbatches};
}

/* As asked; or powers of two, from one, which takes the least memory for what is not in the batch; and as many as groups, and more: where
 * these are no power of two, a batch that is one is not cut so. */
static void list_turns(const sf_prospects *p, uint32_t groups, unstaged *u)
{
    uint32_t asked = (uint32_t)p->options->micro_batches;
    u->count = 0;
    for (uint32_t microbatches = 1; microbatches <= MOST_TURNS && !asked; microbatches *= 2)
        add_turns(p, microbatches, u);
    for (uint32_t microbatches = groups; microbatches <= MOST_TURNS && !asked; microbatches *= 2)
        add_turns(p, microbatches, u);
    if (asked)
        u->work[u->count++] = (sf_turn_work){.microbatches = asked};
}

/* What a rank holds of the state, and of the gradients that turns add up, which are split as the parameters are. */
static void count_held(const sf_graph *graph, const sf_plan *plan, unstaged *out)
{
    out->state = out->gradients = 0;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_argument *argument = &graph->arguments[i];
        const sf_layout *layout = &plan->arguments[i];
        if (sf_is_handed_in(argument))
            continue;
        out->state += sf_shard_bytes(sf_argument_type(graph, i), layout, &plan->mesh);
        if (argument->gradient != SF_NONE)
            out->gradients +=
                sf_shard_bytes(sf_type_of(graph, argument->gradient), layout, &plan->mesh);
    }
}

static void count_kept(const sf_prospects *p, const sf_plan *plan, sf_arena *arena, unstaged *out)
{
    sf_load_request request = {.efforts = p->efforts, .plan = plan, .microbatches = 1};
    const double *kept = sf_kept_by_nodes(&request, arena);
    out->kept = 0;
    for (uint32_t n = 0; n < p->graph->nnodes; n++)
        out->kept += p->scores && p->scores[n] ? 0 : kept[n];
}

/* What of their memory the groups hold all the time, if it is well spread. */
static double find_held(const sf_prospects *p, const sf_prospect *c, const unstaged *u,
                        uint32_t microbatches)
{
    double held = u->state + (microbatches > 1 ? u->gradients : 0);
    return held / c->groups / (double)p->options->memory;
}

static double find_repeated(const sf_prospects *p, const sf_plan *plan, const sf_costs *costs,
                            sf_arena *arena)
{
    const double *times = sf_node_times(p->efforts, plan, costs, arena);
    double all = 0, recomputed = 0;
    for (uint32_t n = 0; n < p->graph->nnodes && p->recomputed; n++) {
        all += times[n];
        recomputed += p->recomputed[n] ? times[n] : 0;
    }
    return all > 0 ? recomputed / all : 0;
}

/* A way for ranks to share what groups have, and what is known of it before it is in stages. */
typedef struct sf_split {
    const sf_prospects *p;
    sf_prospect of;
    sf_plan *plan;
    unstaged u;
    sf_arena arena;
    sf_status status;
} split;

static sf_status estimate_unstaged(void *context)
{
    split *s = context;
    const sf_prospects *p = s->p;
    sf_prospect *c = &s->of;
    sf_costs *costs;
    sf_price price = {0};
    SF_TRY(sf_mesh_costs(p->options->cluster, &c->mesh, &s->arena, NULL, &costs));
    SF_TRY(sf_prospect_plan(p, c, NULL, &s->plan));
    SF_TRY(sf_estimate_plan(p->efforts, s->plan, costs, NULL, NULL, NULL, &price));
    list_turns(p, (uint32_t)c->groups, &s->u);
    sf_add_turn_work(p->efforts, s->plan, costs, s->u.count, s->u.work);
    s->u.exposed = price.exposed;
    s->u.latency = sf_costs_collective(costs, SF_PERMUTE, 1, 0);
    c->speeds = sf_group_speeds(p->efforts, s->plan, costs, c->groups, &s->arena);
    c->repeated = find_repeated(p, s->plan, costs, &s->arena);
    count_held(p->graph, s->plan, &s->u);
    count_kept(p, s->plan, &s->arena, &s->u);
    return SF_OK;
}

static void estimate_one(void *context, int64_t i, int part)
{
    split *s = (split *)context + i;
    (void)part;
    s->status = estimate_unstaged(s);
}

/* In all numbers of turns, by all schedules; unless it cannot fit. */
static void add_split(sf_prospects *p, split *s)
{
    sf_prospect *c = &s->of;
    c->speeds = sf_arena_copy(&p->arena, c->speeds, (size_t)c->groups * sizeof *c->speeds);
    for (size_t i = 0; i < s->u.count; i++)
        if (find_held(p, c, &s->u, s->u.work[i].microbatches) <= 1)
            add_schedules(p, *c, &s->u, &s->u.work[i]);
    keep_made(p, c, s->plan);
    s->plan = NULL;
}

/* As many at once as there are threads, and as are kept. */
static void estimate_splits(sf_prospects *p)
{
    size_t most = (size_t)sf_threads_count(p->options->threads);
    most = most < SF_SPLITS_KEPT ? most : SF_SPLITS_KEPT;
    for (size_t first = 0; first < p->nsplits && !sf_prospects_are_over(p); first += most) {
        split *some = &p->splits[first];
        size_t count = p->nsplits - first < most ? p->nsplits - first : most;
        sf_guarded_each(p->options->threads, (int64_t)count, estimate_one, some);
        for (size_t i = 0; i < count; i++) {
            if (some[i].status == SF_OK)
                add_split(p, &some[i]);
            sf_plan_free(some[i].plan);
            sf_arena_free(&some[i].arena);
        }
    }
}

static void add_unstaged(sf_prospects *p, sf_prospect c)
{
    split s = {.p = p, .of = c};
    SF_PUSH(&p->arena, p->splits, p->nsplits, p->split_capacity, s);
}

/* Bytes of what the optimizer trains, and of its state. */
static void count_state(sf_prospects *p)
{
    for (uint32_t i = 0; i < p->graph->top->narguments; i++) {
        double bytes = (double)sf_type_bytes(sf_argument_type(p->graph, i));
        sf_role role = p->graph->arguments[i].role;
        p->params += role == SF_ROLE_PARAM ? bytes : 0;
        p->state += role == SF_ROLE_STATE ? bytes : 0;
    }
}

/* Whether a rank has room for its state, if that is well spread: groups have it in parts, ranks along axis model have pieces of that, and
 * with zero1 those along axis data pieces of the optimizer's. No recipe here splits more, so no layouts need be made to know. */
static bool has_room(const sf_prospects *p, int groups, int data, int model, const char *recipe)
{
    double held = (p->params + p->state / (sf_recipe_of_state(recipe) ? data : 1)) / groups / model;
    return held <= (double)p->options->memory;
}

/* Whether so many groups may be fast enough, however ranks split what these have: in some number of turns, by the schedule
 * that waits the least, with all kernels well shared, and layers computed again where groups have no room for what they make. So no
 * layouts need be made to know. */
static bool may_be_fast(const sf_prospects *p, int groups)
{
    unstaged u;
    bool may = false;
    double share =
        p->options->schedule ? 0 : fmin(1 - FILLED, 1.0 / (p->passes ? MOST_PASSES : MOST_STAGES));
    list_turns(p, (uint32_t)groups, &u);
    for (size_t i = 0; i < u.count; i++) {
        uint32_t microbatches = u.work[i].microbatches;
        double held = p->held * mean_in_flight(groups, microbatches) / microbatches;
        bool has_room = held <= (double)p->options->memory;
        double seconds =
            (has_room ? p->all : p->all_recomputed) * (1 + share * (groups - 1) / microbatches);
        may = may || seconds < sf_prospects_near(p) * WORTH_STAGES * p->worth;
    }
    return may;
}

static void add_recipe(sf_prospects *p, int groups, int data, int model, const char *recipe)
{
    sf_prospect c = {.groups = groups, .recipe = recipe, .mesh = {1, {{SF_PIPE_AXIS, groups}}}};
    if (!may_be_fast(p, groups))
        return;
    if (p->options->npins == 0 && !has_room(p, groups, data, model, recipe))
        return;
    if (data > 1)
        c.mesh.axes[c.mesh.naxes++] = (sf_axis){"data", data};
    if (model > 1)
        c.mesh.axes[c.mesh.naxes++] = (sf_axis){"model", model};
    add_unstaged(p, c);
}

/* Groups of so many devices that all do the same, where a step may be too small for more. */
static void add_idle(sf_prospects *p, int groups, int inner)
{
    sf_prospect c = {.groups = groups,
                     .mesh = {2, {{SF_PIPE_AXIS, groups}, {SF_UNUSED_AXIS, inner}}}};
    if (p->graph->nnodes <= SF_SMALL_STEP)
        add_unstaged(p, c);
}

/* The recipes for a group whose devices stand so. */
static void add_recipes(sf_prospects *p, int groups, int data, int model)
{
    add_recipe(p, groups, data, model, model == 1 ? "dp" : data == 1 ? "megatron" : "2d");
    if (data > 1)
        add_recipe(p, groups, data, model, model == 1 ? "zero1" : "2d+zero1");
}

/* On the mesh that is given: what recipes say of its axes, and what pins say alone. */
static void add_given(sf_prospects *p)
{
    const sf_mesh *mesh = p->options->mesh;
    int data = sf_mesh_axis(mesh, sf_str_of("data")),
        model = sf_mesh_axis(mesh, sf_str_of("model"));
    int known = (data > 0) + (model > 0);
    add_unstaged(p, (sf_prospect){.groups = mesh->axes[0].size, .mesh = *mesh});
    if (known > 0 && known + 1 == mesh->naxes && (data < 0 || data == 1))
        add_recipes(p, mesh->axes[0].size, data > 0 ? mesh->axes[data].size : 1,
                    model > 0 ? mesh->axes[model].size : 1);
}

/* An axis that a pin names, and recipes do not know, has all devices of a group. */
static void add_named(sf_prospects *p, int groups, int inner)
{
    sf_prospect c = {.groups = groups, .mesh = {2, {{SF_PIPE_AXIS, groups}, {"", inner}}}};
    if (p->options->npins == 0)
        return;
    sf_str name = sf_pin_axis_name(p->options->pins[0]);
    c.mesh.axes[1].name = sf_arena_string(&p->arena, name.at, name.length);
    if (name.length > 0)
        add_unstaged(p, c);
}

static void list_all(sf_prospects *p)
{
    int devices = p->options->cluster->ndevices;
    if (p->options->mesh) {
        add_given(p);
        return;
    }
    for (int groups = 2; groups <= devices && groups <= SF_MOST_GROUPS; groups++) {
        if (devices % groups != 0)
            continue;
        int inner = devices / groups;
        if (inner == 1)
            add_recipe(p, groups, 1, 1, NULL);
        else
            add_idle(p, groups, inner);
        for (int model = 1; model <= MOST_TENSOR && inner > 1; model++)
            if (inner % model == 0)
                add_recipes(p, groups, inner / model, model);
        if (inner > 1)
            add_named(p, groups, inner);
    }
}

static int by_promise(const void *a, const void *b)
{
    const sf_prospect *x = a, *y = b;
    if (x->seconds != y->seconds)
        return x->seconds < y->seconds ? -1 : 1;
    if (x->groups != y->groups)
        return x->groups < y->groups ? -1 : 1;
    if (x->microbatches != y->microbatches)
        return x->microbatches < y->microbatches ? -1 : 1;
    return strcmp(x->schedule, y->schedule);
}

static void find_all(sf_prospects *p)
{
    const sf_cluster *cluster = p->options->cluster;
    sf_mesh mesh = {.naxes = 1, .axes = {{"all", cluster->ndevices}}};
    sf_costs *costs;
    if (sf_mesh_costs(cluster, &mesh, &p->arena, NULL, &costs) != SF_OK)
        return;
    sf_plan *whole = sf_plan_new(p->graph, &mesh);
    p->all = sf_least_estimate(p->efforts, costs);
    p->all_recomputed = p->all * (1 + find_repeated(p, whole, costs, &p->arena));
    p->held = sf_memory_bound(p->efforts, cluster->ndevices);
    sf_plan_free(whole);
}

void sf_prospects_list(sf_prospects *p)
{
    if (p->options->npins > 0)
        p->names = sf_names_of(p->graph, &p->arena);
    find_kinds(p);
    count_state(p);
    find_all(p);
    list_all(p);
    estimate_splits(p);
    if (p->count > 0)
        qsort(p->list, p->count, sizeof *p->list, by_promise);
}
