#include "search/refine.h"

#include <math.h>
#include <string.h>

#include "base/machine.h"
#include "local/rank.h"
#include "plan/pin.h"
#include "search/price/estimate.h"

/* To keep to a limit of memory; fewer where programs tell how much must be computed again. */
enum { MOST_TRIES = 5, MOST_SPARED_TRIES = 3 };

/* Guesses of what is exposed that differ by less are one. */
#define SAME_GUESS 0.1

/* After the second, another round must be likely to pay: the last one saved this share, and the plan is not far
 * slower than what is known. */
#define WORTH_A_ROUND 0.01
#define FAR_SLOWER 1.1

/* Where what comes out of a guess is so much slower, or larger than there is room, what lies half way is not looked at. */
#define FAR_OFF 1.05
#define FAR_LARGER 1.5

/* What estimates find beyond what the solver counts, as a share of the memory, before a solution tells: where little is tried. */
#define FIRST_BEYOND 0.02

/* What is hidden is not free: more of it would not be. */
#define LEAST_GUESS 0.1

bool sf_ground_is_over(const sf_ground *ground)
{
    return sf_now() > ground->deadline || (ground->asked && atomic_load(ground->asked)) ||
           sf_interrupt_is_raised(ground->interrupt);
}

bool sf_priced_better(const sf_priced *a, const sf_priced *b)
{
    if (!a->breaks != !b->breaks)
        return !a->breaks;
    if (a->fits != b->fits)
        return a->fits;
    return a->fits ? a->price.seconds < b->price.seconds : a->price.memory < b->price.memory;
}

sf_status sf_ground_rules(const sf_ground *ground, const sf_mesh *mesh, sf_arena *arena,
                          sf_diag *diag, sf_rules *out)
{
    sf_pin *pins = SF_ARRAY(arena, ground->npins, sf_pin);
    for (int p = 0; p < ground->npins; p++)
        SF_TRY(sf_pin_parse(ground->pins[p], mesh, arena, diag, &pins[p]));
    return sf_rules_new(ground->graph, ground->names, mesh, ground->npins, pins, arena, diag, out);
}

/* What a price says of the reductions that only the update waits for. */
typedef struct slack {
    const sf_efforts *efforts;
    double seconds, exposed;
    uint8_t *by_value; /* parts that are exposed (search/axis/axis.h), or NULL: nobody asks */
} slack;

static void see_slack(void *context, const sf_simulated_reshard *reshard)
{
    slack *s = context;
    if (reshard->value == SF_NONE || !s->efforts->slack[reshard->value] ||
        !sf_move_reduces(reshard->kind))
        return;
    s->seconds += reshard->seconds;
    s->exposed += reshard->exposed;
    if (s->by_value && reshard->seconds > 0) {
        double share = fmax(LEAST_GUESS, fmin(1, reshard->exposed / reshard->seconds));
        s->by_value[reshard->value] = (uint8_t)lround(share * SF_EXPOSED_ALL);
    }
}

sf_status sf_estimate_slack(const sf_efforts *efforts, const sf_plan *plan, const sf_costs *costs,
                            sf_diag *diag, uint8_t *by_value, double *exposed, sf_price *out)
{
    slack s = {.efforts = efforts, .by_value = by_value};
    if (by_value)
        memset(by_value, SF_EXPOSED_UNKNOWN, efforts->graph->nvalues);
    SF_TRY(sf_estimate_plan(efforts, plan, costs, see_slack, &s, diag, out));
    *exposed = s.seconds > 0 ? fmax(LEAST_GUESS, s.exposed / s.seconds) : -1;
    return SF_OK;
}

static sf_status price_with(const sf_ground *ground, const sf_rules *rules, const sf_costs *costs,
                            sf_diag *diag, uint8_t *by_value, sf_priced *at)
{
    SF_TRY(sf_estimate_slack(ground->efforts, at->plan, costs, diag, by_value, &at->exposed,
                             &at->price));
    at->fits = sf_rank_fits(at->price.memory, ground->memory);
    at->breaks = sf_rules_broken(rules, at->plan) + 1;
    return SF_OK;
}

sf_status sf_price_on(const sf_ground *ground, const sf_rules *rules, const sf_costs *costs,
                      sf_diag *diag, sf_priced *at)
{
    return price_with(ground, rules, costs, diag, NULL, at);
}

static const sf_axis_space *space_of_axis(const sf_ground *ground, int parts)
{
    for (int i = 0; i < ground->nspaces; i++)
        if (ground->spaces[i]->parts == parts)
            return ground->spaces[i];
    return NULL;
}

typedef struct refiner {
    const sf_ground *ground;
    const sf_refine_options *options;
    sf_costs *costs;
    sf_axis_cache cache;
    sf_rules rules;
    int grant; /* who grants wishes now */
    /* What an axis is solved to follows from the layouts of the others and the guess: how often those of an
     * axis have changed; the sum over the others when it was solved last, plus one, and for which guess. */
    uint32_t changes[SF_MAX_AXES], solved[SF_MAX_AXES];
    double guessed[SF_MAX_AXES];
    uint8_t *exposed, *fresh,
        *mixed; /* by value: in the plan at hand, in the last one, and between the two */
    sf_diag *diag;
    sf_arena arena;
    sf_priced *at;
} refiner;

/* Of what is exposed: in all, and by value. */
typedef struct hiding {
    double exposed;
    const uint8_t *by_value;
} hiding;

/* The problem of an axis, for limits of about `memory`; 0: none. */
static sf_status make_problem(refiner *r, int axis, const hiding *guess, int64_t memory,
                              sf_axis_problem **out)
{
    const sf_ground *ground = r->ground;
    sf_plan *plan = r->at->plan;
    sf_axis_options options = {.axis = axis,
                               .exposed = guess->exposed,
                               .value_exposed = guess->by_value,
                               .memory = memory,
                               .folded = ground->folded,
                               .work = memory > 0 ? ground->limited_work : ground->work,
                               .gap = ground->gap,
                               .cache = &r->cache,
                               .threads = r->options->threads,
                               .fixed = sf_rules_along(&r->rules, axis, r->grant, plan, &r->arena)};
    return sf_axis_problem_new(ground->efforts, space_of_axis(ground, plan->mesh.axes[axis].size),
                               ground->classes, r->costs, &options, plan, r->diag, out);
}

/* Solves it within the limit, on a copy of the plan. */
static sf_status solve_axis(refiner *r, sf_axis_problem *problem, int64_t memory, sf_priced *out,
                            sf_axis_result *result)
{
    out->plan = sf_plan_copy(r->at->plan, r->ground->graph);
    sf_status status = sf_axis_problem_solve(problem, memory, out->plan, result);
    if (status == SF_OK)
        status = price_with(r->ground, &r->rules, r->costs, r->diag, r->fresh, out);
    if (status != SF_OK)
        sf_plan_free(out->plan);
    return status;
}

static void take_refined(refiner *r, int axis, sf_priced *found)
{
    sf_plan_free(r->at->plan);
    *r->at = *found;
    found->plan = NULL;
    r->changes[axis]++;
    uint8_t *old = r->exposed;
    r->exposed = r->fresh;
    r->fresh = old;
}

/* One axis, one guess, while it is tried. */
typedef struct attempt {
    int axis;
    const hiding *guess;
    double
        room; /* how many times the memory may be taken: axes that are not solved yet will cut it */
    double limit;    /* of memory, that is tried now; 0: none */
    double *exposed; /* what the last plan says of it */
    bool *improved;  /* the plan changed for the better */
    bool is_far;     /* the last plan is far slower, or far larger, than would do */
    bool is_over;    /* no other limit is worth it */
} attempt;

/* What the price finds beyond what the solver counted it is expected to find again. */
static double next_limit(const refiner *r, double limit, double most, double beyond)
{
    if (limit > 0)
        return fmin(0.995 * limit, most - beyond);
    return r->ground->efforts->spare ? (1 - FIRST_BEYOND) * most : most;
}

/* Within the limit; and the next. */
static sf_status try_limit(refiner *r, sf_axis_problem *problem, attempt *a)
{
    double most = (double)r->ground->memory * a->room;
    sf_priced found = {0};
    sf_axis_result result;
    SF_TRY(solve_axis(r, problem, (int64_t)a->limit, &found, &result));
    double memory = (double)found.price.memory;
    double least = found.price.seconds - found.price.recomputed; /* within a limit it may be none */
    bool is_slow = r->ground->efforts->spare && found.price.seconds > FAR_SLOWER * r->ground->known;
    *a->exposed = found.exposed < 0 ? a->guess->exposed : found.exposed;
    if ((a->room > 1 && memory <= most) || sf_priced_better(&found, r->at)) {
        take_refined(r, a->axis, &found);
        *a->improved = true;
    }
    sf_plan_free(found.plan);
    a->is_far = r->at->fits ? found.price.seconds > FAR_OFF * r->at->price.seconds
                            : memory > FAR_LARGER * most;
    a->limit = next_limit(r, a->limit, most, memory - (double)result.memory);
    a->is_over = !result.feasible || memory <= most ||
                 (a->room <= 1 && (is_slow || least > r->ground->known)) || a->limit < 1;
    return SF_OK;
}

/* At first without a limit; the problem is the same within all others. */
static sf_status try_limits(refiner *r, attempt *a)
{
    int tries = r->ground->efforts->spare ? MOST_SPARED_TRIES : MOST_TRIES;
    for (bool limited = false; tries > 0 && !a->is_over; limited = true) {
        sf_axis_problem *problem;
        SF_TRY(make_problem(r, a->axis, a->guess, (int64_t)a->limit, &problem));
        sf_status status = SF_OK;
        do
            status = try_limit(r, problem, a);
        while (status == SF_OK && --tries > 0 && !a->is_over && limited);
        sf_axis_problem_free(problem);
        SF_TRY(status);
    }
    return SF_OK;
}

/* What is exposed in the plan as it is, or the guess of the caller. */
static hiding guess_of(const refiner *r)
{
    return (hiding){r->at->exposed < 0 ? r->options->guess : r->at->exposed, r->exposed};
}

/* Half way from the plan at hand to the last one. */
static hiding mix_guess(refiner *r, double exposed)
{
    for (size_t v = 0; v < r->ground->graph->nvalues; v++) {
        uint8_t a = r->exposed[v], b = r->fresh[v];
        bool both = a != SF_EXPOSED_UNKNOWN && b != SF_EXPOSED_UNKNOWN;
        r->mixed[v] = both ? (uint8_t)((a + b) / 2) : a != SF_EXPOSED_UNKNOWN ? a : b;
    }
    return (hiding){exposed, r->mixed};
}

static sf_status try_axis(refiner *r, int axis, double room, bool *improved)
{
    hiding first = guess_of(r);
    double exposed = first.exposed;
    bool better = false;
    attempt a = {
        .axis = axis, .guess = &first, .room = room, .exposed = &exposed, .improved = &better};
    SF_TRY(try_limits(r, &a));
    bool is_far = a.is_far && r->ground->efforts->spare;
    if (!better && room <= 1 && fabs(exposed - first.exposed) > SAME_GUESS && !is_far) {
        hiding second = mix_guess(r, (first.exposed + exposed) / 2);
        a = (attempt){
            .axis = axis, .guess = &second, .room = room, .exposed = &exposed, .improved = &better};
        SF_TRY(try_limits(r, &a));
    }
    *improved = *improved || better;
    return SF_OK;
}

static uint32_t stamp_of(const refiner *r, int axis)
{
    uint32_t stamp = 1;
    for (int a = 0; a < r->at->plan->mesh.naxes; a++)
        stamp += a == axis ? 0 : r->changes[a];
    return stamp;
}

/* Whether the axis has not been solved for what is exposed now since another one changed. */
static bool is_new_plan(const refiner *r, int axis)
{
    return r->solved[axis] != stamp_of(r, axis) ||
           fabs(guess_of(r).exposed - r->guessed[axis]) > SAME_GUESS;
}

static void mark_solved(refiner *r, int axis)
{
    r->solved[axis] = stamp_of(r, axis);
    r->guessed[axis] = guess_of(r).exposed;
}

static sf_status run_axes_round(refiner *r, bool cold, bool *improved)
{
    sf_mesh mesh = r->at->plan->mesh; /* the plan is replaced on the way */
    double room = 1;
    for (int a = 0; a < mesh.naxes && cold; a++)
        room *= mesh.axes[a].size;
    for (int a = 0; a < mesh.naxes; a++) {
        room = cold ? room / mesh.axes[a].size : 1;
        if (r->options->axes && !(r->options->axes >> a & 1))
            continue;
        if (!cold && sf_ground_is_over(r->ground))
            return SF_OK;
        if (is_new_plan(r, a)) {
            mark_solved(r, a);
            SF_TRY(try_axis(r, a, room, improved));
        }
    }
    return SF_OK;
}

static sf_status refine_axes(refiner *r)
{
    const sf_mesh *mesh = &r->at->plan->mesh;
    SF_TRY(sf_mesh_costs(r->ground->cluster, mesh, &r->arena, r->diag, &r->costs));
    SF_TRY(sf_ground_rules(r->ground, mesh, &r->arena, r->diag, &r->rules));
    r->exposed = SF_ARRAY(&r->arena, r->ground->graph->nvalues, uint8_t);
    r->fresh = SF_ARRAY(&r->arena, r->ground->graph->nvalues, uint8_t);
    r->mixed = SF_ARRAY(&r->arena, r->ground->graph->nvalues, uint8_t);
    SF_TRY(price_with(r->ground, &r->rules, r->costs, r->diag, r->exposed, r->at));
    for (int a = 0; a < mesh->naxes; a++)
        if (r->options->settled >> a & 1)
            mark_solved(r, a);
    bool helps = true;
    int rounds = r->options->rounds > 0 && r->options->rounds < r->ground->rounds
                     ? r->options->rounds
                     : r->ground->rounds;
    for (int round = 0; round < rounds && (round < 2 || helps); round++) {
        bool improved = false, fitted = r->at->fits, cold = r->options->cold && round == 0;
        double before = r->at->price.seconds;
        r->grant = cold ? r->options->grant : SF_GRANT_REST;
        SF_TRY(run_axes_round(r, cold, &improved));
        if (!improved)
            return SF_OK;
        double after = r->at->price.seconds;
        helps = (after < (1 - WORTH_A_ROUND) * before || fitted != r->at->fits) &&
                after <= FAR_SLOWER * r->ground->known;
    }
    for (int a = 0; a < r->at->plan->mesh.naxes && helps; a++)
        r->at->unsettled |= (sf_axes)is_new_plan(r, a) << a;
    return SF_OK;
}

sf_status sf_refine(const sf_ground *ground, const sf_refine_options *options, sf_diag *diag,
                    sf_priced *at)
{
    refiner r = {.ground = ground, .options = options, .diag = diag, .at = at};
    sf_status status = refine_axes(&r);
    sf_axis_cache_free(&r.cache);
    sf_arena_free(&r.arena);
    return status;
}

static void lift_layout(const sf_layout *from, const sf_mesh *mesh, int axis, sf_layout *to)
{
    *to = (sf_layout){0};
    for (int a = 0; a < mesh->naxes; a++)
        to->axes[a] = from->axes[a <= axis ? a : a - 1];
    if (to->axes[axis].kind == SF_SPLIT)
        to->axes[axis + 1].period = to->axes[axis].period / mesh->axes[axis].size;
}

bool sf_mesh_cuts(const sf_mesh *mesh, const sf_mesh *coarse, int axis)
{
    if (mesh->naxes != coarse->naxes + 1)
        return false;
    for (int a = 0; a < coarse->naxes; a++) {
        int64_t size = mesh->axes[a <= axis ? a : a + 1].size;
        if (a == axis)
            size *= mesh->axes[a + 1].size;
        if (size != coarse->axes[a].size)
            return false;
    }
    return true;
}

sf_plan *sf_plan_lift(const sf_plan *plan, const sf_graph *graph, const sf_mesh *mesh, int axis)
{
    const sf_block *top = graph->top;
    sf_plan *lifted = sf_plan_new(graph, mesh);
    for (uint32_t i = 0; i < top->narguments; i++)
        lift_layout(&plan->arguments[i], mesh, axis, &lifted->arguments[i]);
    for (uint32_t i = 0; i < top->nresults; i++)
        lift_layout(&plan->results[i], mesh, axis, &lifted->results[i]);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = graph->nodes[top->nodes[i]];
        for (uint32_t t = 0; t < node->noperands + node->nresults; t++)
            lift_layout(&plan->nodes[node->id][t], mesh, axis, &lifted->nodes[node->id][t]);
    }
    sf_plan_copy_microbatches(plan, lifted);
    sf_plan_copy_recompute(plan, graph, lifted);
    return lifted;
}
