#include "search/climb.h"

#include <math.h>
#include <string.h>

#include "base/guard.h"
#include "base/machine.h"
#include "local/rank.h"
#include "plan/pipeline/schedules.h"
#include "plan/propagate.h"
#include "plan/recompute_policy.h"
#include "search/fit.h"
#include "sheaf/pass.h"

enum { MOST_CHANGES = 16 };

/* Nodes of programs that are simulated: a few seconds of one processor; and at level 2. */
#define MOST_WORK 6e5
#define MOST_WORK_SOON 2e5

/* What a plan has beside layouts. */
typedef struct setting {
    const char *passes;
    const char *recompute; /* a policy; NULL: as the plan that the climb began with */
    int micro_batches;
    const char *
        schedule; /* of its stages, on the same pipeline ranks; NULL: as the plan that the climb began with */
    bool anew;    /* layouts of nodes follow from those of arguments */
    bool between; /* parameters are sharded as their update is */
} setting;

typedef struct trial {
    setting rest;
    sf_price price; /* of one that does not fit: see sf_price_within */
    bool is_priced, fits;
} trial;

typedef struct climb {
    const sf_graph *graph;
    const sf_search_options *options;
    const sf_plan *from;
    sf_costs *costs;
    setting at;
    sf_price price;
    double left; /* nodes that may yet be simulated */
    int count;
    trial trials[MOST_CHANGES];
    size_t ntried, tried_capacity;
    setting *tried; /* in the arena */
    sf_arena arena;
} climb;

/* The plan with the rest --------------------------------------------------------------------------------- */

/* Whether the plan shards, along the axis, an argument of the optimizer's state, and which dimension is so for a
 * parameter's update: that of the node that makes it. */
static bool find_update(const sf_graph *graph, const sf_plan *plan, uint32_t argument, int axis,
                        sf_share *out)
{
    uint32_t next = graph->arguments[argument].next;
    if (graph->arguments[argument].role != SF_ROLE_PARAM || next == SF_NONE)
        return false;
    const sf_layout *made = sf_plan_layout(plan, graph, graph->top->results[next]);
    if (!made || made->axes[axis].kind != SF_SPLIT ||
        plan->arguments[argument].axes[axis].kind != SF_REPLICATED)
        return false;
    *out = made->axes[axis];
    return true;
}

/* Parameters that are whole between steps, and whose update is sharded along an axis, are sharded so, too: the next step gathers them
 * where they are used. Returns how many there are; plan->arguments are changed only where `apply`. */
static int shard_between(const sf_graph *graph, sf_plan *plan, bool apply)
{
    int found = 0;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        for (int a = 0; a < plan->mesh.naxes; a++) {
            sf_share share;
            if (sf_plan_pipes(plan, a) || !find_update(graph, plan, i, a, &share))
                continue;
            found++;
            if (!apply)
                continue;
            plan->arguments[i].axes[a] = share;
            plan->results[graph->arguments[i].next].axes[a] = share;
        }
    return found;
}

/* Its pins are not kept. */
static void forget_recipe(const sf_graph *graph, sf_plan *plan)
{
    plan->recipe = "";
    plan->npins = plan->nrules;
    for (size_t v = 0; plan->pinned && v < graph->nvalues; v++)
        plan->pinned[v] = plan->pinned[v] < plan->npins ? plan->pinned[v] : -1;
}

static sf_status recompute_as(const climb *c, const char *how, sf_plan *plan)
{
    sf_arena arena = {0};
    sf_recompute_spec spec = sf_recompute_of(how, &arena);
    plan->recomputed = plan->recomputed_per_part = NULL;
    plan->recompute = "";
    sf_status status = sf_plan_recompute(c->graph, plan, &spec, NULL);
    sf_arena_free(&arena);
    return status;
}

/* Whether stages stay where they are: state moves with them. */
static bool has_same_hosts(const sf_pipe *a, const sf_pipe *b)
{
    bool same = a->nstages == b->nstages && a->ngroups == b->ngroups;
    for (uint32_t s = 0; same && s < a->nstages; s++)
        for (uint32_t m = 0; same && m < b->nmicrobatches; m++)
            same = sf_pipe_hosts(a, s, 0) == sf_pipe_hosts(b, s, m);
    return same;
}

/* SF_EMISMATCH where the schedule is not for these stages. */
static sf_status schedule_as(const climb *c, const setting *rest, sf_plan *plan)
{
    sf_pipeline *own = plan->pipeline;
    const char *name = rest->schedule ? rest->schedule : own->name;
    sf_schedule_kind kind;
    sf_pipe pipe;
    sf_schedule schedule;
    SF_TRY(sf_schedule_parse(name, &kind, NULL));
    if (sf_schedule_get(kind.name)->goes_by_times ||
        sf_schedule_stages(kind, own->schedule.pipe.ngroups) != own->stages.count)
        return SF_EMISMATCH;
    sf_pipe_of_stages(c->graph, &own->stages, (uint32_t)rest->micro_batches,
                      own->schedule.pipe.ngroups, &plan->arena, &pipe);
    SF_TRY(sf_schedule_make(kind, &pipe, NULL, &plan->arena, &schedule, NULL));
    if (!has_same_hosts(&own->schedule.pipe, &schedule.pipe))
        return SF_EMISMATCH;
    own->schedule = schedule;
    own->name = sf_arena_string(&plan->arena, name, strlen(name));
    return SF_OK;
}

/* As pins of all arguments would have it. */
static sf_status propagate_anew(const sf_graph *graph, sf_plan *plan)
{
    sf_arena arena = {0};
    const bool *fixed = SF_ARRAY(&arena, graph->nnodes, bool);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(graph, i);
        uint32_t count = node->noperands + node->nresults;
        if (count > 0)
            memset(plan->nodes[node->id], 0, count * sizeof **plan->nodes);
    }
    sf_status status = sf_plan_propagate_around(graph, plan, fixed, NULL);
    sf_arena_free(&arena);
    return status;
}

static sf_status put_rest(const climb *c, const setting *rest, sf_plan *plan)
{
    sf_search_options options = *c->options;
    if (rest->anew)
        SF_TRY(propagate_anew(c->graph, plan));
    options.passes = rest->passes;
    plan->micro_batches = rest->micro_batches;
    sf_fit_passes(plan, &options);
    if (rest->between) {
        shard_between(c->graph, plan, true);
        forget_recipe(c->graph, plan);
    }
    if (plan->pipeline &&
        (rest->schedule || rest->micro_batches != (int)plan->pipeline->schedule.pipe.nmicrobatches))
        SF_TRY(schedule_as(c, rest, plan));
    return rest->recompute ? recompute_as(c, rest->recompute, plan) : SF_OK;
}

/* Trials ------------------------------------------------------------------------------------------------- */

static sf_status price_rest(const climb *c, const setting *rest, bool unplaced, sf_plan *plan,
                            sf_price *price, sf_group_runs *runs)
{
    sf_group_limits limits = {.unplaced = unplaced,
                              .memory = c->options->limited ? c->options->memory : 0,
                              .seconds = c->price.seconds};
    SF_TRY(put_rest(c, rest, plan));
    SF_TRY(sf_group_runs_within(c->graph, plan, c->options->target, c->costs, &limits, NULL, runs));
    sf_price_within(runs, c->costs, price);
    return SF_OK;
}

/* Without places it takes no more memory than with them. */
static void simulate_trial(climb *c, trial *t, bool unplaced)
{
    sf_group_runs runs = {0};
    sf_plan *plan = sf_plan_copy(c->from, c->graph);
    t->is_priced = price_rest(c, &t->rest, unplaced, plan, &t->price, &runs) == SF_OK;
    t->fits = t->is_priced && !runs.is_beyond && sf_rank_fits(t->price.memory, c->options->memory);
    sf_group_runs_free(&runs);
    sf_plan_free(plan);
}

static void try_one(void *context, int64_t i, int part)
{
    climb *c = context;
    (void)part;
    simulate_trial(c, &c->trials[i], true);
}

/* Nodes of the programs of all pipeline ranks. */
static double count_work(const climb *c, const setting *rest)
{
    return (double)c->graph->nnodes * (c->from->pipeline ? rest->micro_batches : 1);
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_same_setting(const setting *a, const setting *b)
{
    return is_same_text(a->passes, b->passes) && is_same_text(a->recompute, b->recompute) &&
           a->micro_batches == b->micro_batches && is_same_text(a->schedule, b->schedule) &&
           a->anew == b->anew && a->between == b->between;
}

/* What was tried and not taken is no better than where the climb is now. */
static bool is_tried(const climb *c, const setting *rest)
{
    for (size_t i = 0; i < c->ntried; i++)
        if (is_same_setting(&c->tried[i], rest))
            return true;
    return false;
}

/* As long as there is time for it. */
static void add_trial(climb *c, setting rest)
{
    double work = count_work(c, &rest);
    if (c->count == MOST_CHANGES || work > c->left || is_tried(c, &rest))
        return;
    c->left -= work;
    SF_PUSH(&c->arena, c->tried, c->ntried, c->tried_capacity, rest);
    c->trials[c->count++] = (trial){.rest = rest};
}

static bool is_over(const climb *c)
{
    const sf_search_options *o = c->options;
    return (o->deadline > 0 && sf_now() > o->deadline) ||
           sf_interrupt_is_raised(o->audience.interrupt);
}

/* The fastest of those that take less time, of those that fit, or of all; or NULL. */
static trial *find_fastest(climb *c, double least, bool fits)
{
    trial *best = NULL;
    for (int i = 0; i < c->count; i++) {
        trial *t = &c->trials[i];
        if (t->is_priced && (t->fits || !fits) &&
            t->price.seconds < (best ? best->price.seconds : least))
            best = t;
    }
    return best;
}

static void count_programs(const climb *c, const trial *t)
{
    if (c->options->spent)
        c->options->spent->programs += t->is_priced ? t->price.nprograms : 1;
}

/* Tries them, without places, and the best of them with places. *best is the fastest that fits and *large the fastest at all, of those
 * that take less time; or NULL. */
static void run_trials(climb *c, double least, trial **best, trial **large)
{
    bool is_placed[MOST_CHANGES] = {false};
    sf_guarded_each(c->options->threads, c->count, try_one, c);
    for (int i = 0; i < c->count; i++)
        count_programs(c, &c->trials[i]);
    while ((*best = find_fastest(c, least, true)) && !is_placed[*best - c->trials]) {
        is_placed[*best - c->trials] = true;
        simulate_trial(c, *best, false);
        count_programs(c, *best);
    }
    *large = find_fastest(c, least, false);
    c->count = 0;
}

/* What is computed again, of these. */
static void add_recompute(climb *c, const setting *rest)
{
    static const char *const policies[] = {"none", "cheap", "layer", "full"};
    for (size_t i = 0; !c->options->recompute && i < sizeof policies / sizeof *policies; i++) {
        setting r = *rest;
        r.recompute = policies[i];
        if (!rest->recompute || strcmp(policies[i], rest->recompute) != 0)
            add_trial(c, r);
    }
}

/* What the text computes again is a wish: it is kept where it costs no more than the margin. */
static double recompute_worth(const climb *c)
{
    bool is_wish =
        c->options->as_text && !c->at.recompute && strcmp(c->from->recompute, "text") == 0;
    return is_wish ? c->options->margin : 0;
}

static double least_time(const climb *c, double share)
{
    return (1 - fmax(share, SF_CLIMB_STEP)) * c->price.seconds;
}

/* The best of the trials, if it saves so much of the time, is where the climb is. Where none does, that which does but is too
 * large is tried with more computed again. */
static bool take_best(climb *c, double share)
{
    trial *best, *large;
    run_trials(c, least_time(c, share), &best, &large);
    if (!best && large && !large->rest.recompute) {
        setting r = large->rest;
        add_recompute(c, &r);
        run_trials(c, least_time(c, recompute_worth(c)), &best, &large);
    }
    if (!best)
        return false;
    c->at = best->rest;
    c->price = best->price;
    return true;
}

/* Changes ------------------------------------------------------------------------------------------------ */

static bool are_passes_open(const sf_search_options *options)
{
    return !options->passes && options->on_host;
}

/* Other lists; and the one at hand, with a pass behind it. */
static bool climb_passes(climb *c)
{
    static const char *const lists[] = {"",
                                        "overlap",
                                        "defer-gradient-readers",
                                        "overlap,defer-gradient-readers",
                                        "prefetch",
                                        SF_FULL_STATE_PASSES,
                                        SF_BETWEEN_PASSES};
    sf_buf more = {0};
    setting r = c->at;
    if (!are_passes_open(c->options))
        return false;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        r.passes = lists[i];
        if (strcmp(lists[i], c->at.passes) != 0)
            add_trial(c, r);
    }
    sf_buf_printf(&more, "%s,overlap", c->at.passes);
    r.passes = sf_arena_string(&c->arena, more.text, more.length);
    sf_buf_free(&more);
    if (*c->at.passes && !strstr(c->at.passes, "overlap"))
        add_trial(c, r);
    return take_best(c, 0);
}

/* What the search made of nodes one axis at a time may be worse than what follows from arguments. */
static bool climb_layouts(climb *c)
{
    setting r = c->at;
    bool is_open = c->options->npins == 0 && c->from->npins == 0 && !c->from->pipeline;
    r.anew = true;
    if (c->at.anew || !is_open)
        return false;
    add_trial(c, r);
    return take_best(c, 0);
}

static bool climb_state(climb *c)
{
    const sf_search_options *o = c->options;
    sf_plan *plan = (sf_plan *)c->from;
    setting r = c->at;
    r.between = true;
    if (c->at.between || o->full_state || o->npins > 0 || shard_between(c->graph, plan, false) == 0)
        return false;
    add_trial(c, r);
    r.passes = SF_BETWEEN_PASSES;
    if (are_passes_open(o))
        add_trial(c, r);
    return take_best(c, 0);
}

static bool climb_recompute(climb *c)
{
    add_recompute(c, &c->at);
    return take_best(c, recompute_worth(c));
}

static bool climb_turns(climb *c)
{
    if (c->options->micro_batches)
        return false;
    setting more = c->at, fewer = c->at;
    more.micro_batches *= 2;
    fewer.micro_batches /= 2;
    add_trial(c, more);
    if (fewer.micro_batches > 0)
        add_trial(c, fewer);
    return take_best(c, 0);
}

static bool climb_schedule(climb *c)
{
    const sf_pipeline *pipeline = c->from->pipeline;
    static const char *const names[] = {"gpipe",         "1f1b",          "zb-h1",
                                        "interleaved:2", "interleaved:3", "zb-v",
                                        "3f1b:3",        "interleaved:4", "interleaved:8"};
    const char *now = c->at.schedule ? c->at.schedule : pipeline ? pipeline->name : "";
    for (size_t i = 0; pipeline && !c->options->schedule && i < sizeof names / sizeof *names; i++) {
        setting r = c->at;
        r.schedule = names[i];
        if (strcmp(names[i], now) != 0)
            add_trial(c, r);
    }
    return take_best(c, 0);
}

static bool climb_all(climb *c)
{
    typedef bool change(climb * c);
    static change *const changes[] = {climb_turns, climb_schedule, climb_layouts,
                                      climb_state, climb_passes,   climb_recompute};
    enum { KINDS = sizeof changes / sizeof *changes };
    bool any = false;
    for (int kind = 0, failures = 0; failures < KINDS && !is_over(c); kind = (kind + 1) % KINDS) {
        bool helps = changes[kind](c);
        failures = helps ? 0 : failures + 1;
        any = any || helps;
    }
    return any;
}

/* Of the plan as it is now, while its costs are there. */
static const sf_full_price *tell(const climb *c, sf_plan *plan, sf_group_runs *runs)
{
    sf_group_runs found = {0};
    if (put_rest(c, &c->at, plan) != SF_OK ||
        sf_group_runs_new(c->graph, plan, c->options->target, c->costs, NULL, &found) != SF_OK)
        return NULL;
    sf_group_runs_free(runs);
    *runs = found;
    return sf_tell_groups(runs, c->costs, &plan->arena);
}

const sf_full_price *sf_climb(const sf_graph *graph, const sf_search_options *options,
                              sf_plan *plan, double seconds, sf_group_runs *runs)
{
    climb c = {.graph = graph,
               .options = options,
               .from = plan,
               .price = {.seconds = seconds},
               .left = options->level == 2 ? MOST_WORK_SOON : MOST_WORK,
               .at = {.passes = plan->passes.list,
                      .micro_batches = plan->micro_batches > 1 ? plan->micro_batches : 1}};
    const sf_full_price *told = NULL;
    double worth = *plan->recipe ? options->margin : 0;
    if (sf_mesh_costs(options->cluster, &plan->mesh, &c.arena, NULL, &c.costs) == SF_OK &&
        climb_all(&c) && c.price.seconds <= (1 - worth) * seconds)
        told = tell(&c, plan, runs);
    sf_arena_free(&c.arena);
    return told;
}
