#include "plan/refine.h"

#include <math.h>
#include <string.h>

#include "plan/pin.h"
#include "solve/solve.h"

enum { MOST_TRIES = 3, MOST_GUESSES = 8 };

bool sf_priced_better(const sf_priced *a, const sf_priced *b)
{
    if (a->fits != b->fits)
        return a->fits;
    return a->fits ? a->price.seconds < b->price.seconds : a->price.memory < b->price.memory;
}

sf_status sf_price_on(const sf_ground *ground, const sf_costs *costs, sf_diag *diag, sf_priced *at)
{
    SF_TRY(sf_price_plan(ground->efforts, at->plan, costs, NULL, NULL, diag, &at->price));
    at->fits = at->price.memory <= ground->memory;
    return SF_OK;
}

static const sf_axis_space *space_of(const sf_ground *ground, int parts)
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
    sf_fixed *fixed; /* by axis */
    /* What an axis is solved to follows from the layouts of the others: how often those of an axis have
     * changed, and the sum over the others when it was solved for a guess, plus one. */
    uint32_t changes[SF_MAX_AXES], solved[SF_MAX_AXES][MOST_GUESSES];
    sf_diag *diag;
    sf_arena arena;
    sf_priced *at;
} refiner;

/* The share that a pin stands for on this tensor, if it fits there. */
static bool pinned_share(const refiner *r, const sf_pin *pin, sf_value value, sf_share *out)
{
    const sf_mesh *mesh = &r->at->plan->mesh;
    const sf_type *type = sf_type_of(r->ground->graph, value);
    sf_layout layout = {0};
    *out = pin->share;
    if (out->kind == SF_SPLIT && out->dim >= type->rank)
        return false;
    if (out->kind == SF_SPLIT && out->period == 0)
        out->period = sf_layout_period(&layout, mesh, pin->axis, out->dim, type->dims[out->dim]);
    layout.axes[pin->axis] = *out;
    return sf_layout_fits(&layout, mesh, type->rank, type->dims, NULL);
}

static void fix_pin(refiner *r, const sf_pin *pin, const sf_names *names)
{
    sf_fixed *fixed = &r->fixed[pin->axis];
    size_t count;
    const sf_named **found = sf_names_match(names, pin->pattern, &r->arena, &count);
    if (!fixed->has) {
        fixed->has = SF_ARRAY(&r->arena, r->ground->graph->nvalues, bool);
        fixed->shares = SF_ARRAY(&r->arena, r->ground->graph->nvalues, sf_share);
    }
    for (size_t i = 0; i < count; i++)
        for (sf_value v = found[i]->first; v != SF_NONE; v = names->same[v]) {
            sf_share share;
            if (fixed->has[v] || !pinned_share(r, pin, v, &share))
                continue;
            fixed->has[v] = true;
            fixed->shares[v] = share;
        }
}

static sf_status fix_pins(refiner *r)
{
    r->fixed = SF_ARRAY(&r->arena, SF_MAX_AXES, sf_fixed);
    if (r->ground->npins == 0)
        return SF_OK;
    sf_names names = sf_names_of(r->ground->graph, &r->arena);
    for (int p = 0; p < r->ground->npins; p++) {
        sf_pin pin;
        SF_TRY(sf_pin_parse(r->ground->pins[p], &r->at->plan->mesh, &r->arena, r->diag, &pin));
        fix_pin(r, &pin, &names);
    }
    return SF_OK;
}

/* Solves one axis within `memory` on a copy of the plan. */
static sf_status solve_axis(refiner *r, int axis, double exposed, int64_t memory, sf_priced *out,
                            bool *feasible)
{
    const sf_ground *ground = r->ground;
    const sf_plan *plan = r->at->plan;
    sf_axis_options options = {.axis = axis,
                               .exposed = exposed,
                               .memory = memory,
                               .folded = ground->folded,
                               .work = ground->work,
                               .gap = ground->gap,
                               .cache = &r->cache,
                               .threads = r->options->threads,
                               .has_pin = r->fixed[axis].has,
                               .pins = r->fixed[axis].shares};
    sf_axis_result result;
    out->plan = sf_plan_copy(plan, ground->graph);
    out->exposed = exposed;
    sf_status status =
        sf_axis_solve(ground->efforts, space_of(ground, plan->mesh.axes[axis].size),
                      ground->classes, r->costs, &options, out->plan, r->diag, &result);
    if (status == SF_OK)
        status = sf_price_on(ground, r->costs, r->diag, out);
    *feasible = status == SF_OK && result.feasible;
    if (status != SF_OK)
        sf_plan_free(out->plan);
    return status;
}

static void take(refiner *r, int axis, sf_priced *found)
{
    sf_plan_free(r->at->plan);
    *r->at = *found;
    found->plan = NULL;
    r->changes[axis]++;
}

/* One axis, one guess; *improved is set when the plan changed for the better. `room`: how many times the
 * memory may be taken, because axes that are not solved yet will cut it. */
static sf_status try_axis(refiner *r, int axis, double exposed, double room, bool *improved)
{
    double most = (double)r->ground->memory * room, limit = most;
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        sf_priced found = {0};
        bool feasible;
        SF_TRY(solve_axis(r, axis, exposed, limit < 9e18 ? (int64_t)limit : 0, &found, &feasible));
        double memory = (double)found.price.memory;
        if (room > 1 || sf_priced_better(&found, r->at)) {
            take(r, axis, &found);
            *improved = true;
        }
        sf_plan_free(found.plan);
        if (!feasible || memory <= most)
            return SF_OK;
        limit = fmin(0.98 * limit, limit * most / memory);
    }
    return SF_OK;
}

/* Whether the axis has not been solved for the guess since another one changed. */
static bool is_new(refiner *r, int axis, int guess)
{
    uint32_t stamp = 1;
    for (int a = 0; a < r->at->plan->mesh.naxes; a++)
        stamp += a == axis ? 0 : r->changes[a];
    bool new = r->solved[axis][guess] != stamp;
    r->solved[axis][guess] = stamp;
    return new;
}

static sf_status run_round(refiner *r, bool cold, bool *improved)
{
    sf_mesh mesh = r->at->plan->mesh; /* the plan is replaced on the way */
    double room = 1;
    for (int a = 0; a < mesh.naxes && cold; a++)
        room *= mesh.axes[a].size;
    for (int a = 0; a < mesh.naxes; a++) {
        room = cold ? room / mesh.axes[a].size : 1;
        if (r->options->axes && !(r->options->axes >> a & 1))
            continue;
        int guesses = room > 1 ? 1 : r->options->nguesses;
        for (int g = 0; g < guesses; g++) {
            if (!cold && sf_now() > r->ground->deadline)
                return SF_OK;
            if (is_new(r, a, g))
                SF_TRY(try_axis(r, a, r->options->guesses[g], room, improved));
        }
    }
    return SF_OK;
}

static sf_status refine(refiner *r)
{
    const sf_mesh *mesh = &r->at->plan->mesh;
    int sizes[SF_MAX_AXES];
    for (int a = 0; a < mesh->naxes; a++)
        sizes[a] = mesh->axes[a].size;
    SF_TRY(sf_costs_new(r->ground->cluster, mesh->naxes, sizes, 0, &r->arena, r->diag, &r->costs));
    SF_TRY(fix_pins(r));
    SF_TRY(sf_price_on(r->ground, r->costs, r->diag, r->at));
    for (int round = 0; round < r->ground->rounds; round++) {
        bool improved = false;
        SF_TRY(run_round(r, r->options->cold && round == 0, &improved));
        if (!improved)
            break;
    }
    return SF_OK;
}

sf_status sf_refine(const sf_ground *ground, const sf_refine_options *options, sf_diag *diag,
                    sf_priced *at)
{
    refiner r = {.ground = ground, .options = options, .diag = diag, .at = at};
    SF_ASSERT(options->nguesses <= MOST_GUESSES);
    sf_status status = refine(&r);
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
    return lifted;
}
