#include "local/rank.h"

#include "base/guard.h"
#include "local/check_local.h"
#include "local/messages.h"
#include "prog/program.h"

int64_t sf_rank_bytes(const sf_local *local, const sf_target *target)
{
    sf_lower_options options = {.target = target, .mesh = &local->plan->mesh, .rank = local->rank};
    sf_program *program = sf_lower(local->graph, &options, NULL);
    int64_t bytes = sf_program_bytes(program);
    sf_program_free(program);
    return bytes;
}

/* Checking */

enum { MOST_CHECKED = 2 * SF_MAX_AXES + 2 };

/* A rank that is checked, and against the first, if it is another. */
typedef struct checked_rank {
    const sf_local *first;
    int rank;
    sf_diag *diag; /* or NULL */
    sf_status status;
} checked_rank;

static sf_status check_rank(const checked_rank *c)
{
    sf_local *local;
    if (c->rank == c->first->rank)
        return sf_check_local(c->first, c->diag);
    SF_TRY(sf_local_new(c->first->whole, c->first->plan, c->rank, c->diag, &local));
    sf_status status = sf_check_local(local, c->diag);
    if (status == SF_OK)
        status = sf_check_match(c->first, local, c->diag);
    sf_local_free(local);
    return status;
}

static void check_one(void *context, int64_t i, int part)
{
    checked_rank *c = (checked_rank *)context + i;
    (void)part;
    c->status = check_rank(c);
}

static void add_rank(checked_rank *all, int *count, const sf_local *first, int rank)
{
    bool known = false;
    for (int i = 0; i < *count; i++)
        known = known || all[i].rank == rank;
    if (!known)
        all[(*count)++] = (checked_rank){.first = first, .rank = rank};
}

static sf_axes axes_of_layouts(const sf_layout *layouts, uint32_t count)
{
    sf_axes axes = 0;
    for (uint32_t i = 0; i < count; i++)
        for (int a = 0; a < SF_MAX_AXES; a++)
            if (layouts[i].axes[a].kind != SF_REPLICATED || layouts[i].axes[a].on != 0)
                axes |= 1u << a;
    return axes;
}

/* Axes along which ranks differ. Along the others their programs are equal: unused axes, and the
 * pipeline's axis. */
static sf_axes find_axes(const sf_local *first)
{
    const sf_graph *graph = first->whole;
    const sf_plan *plan = first->plan;
    sf_axes axes = axes_of_layouts(plan->arguments, graph->top->narguments) |
                   axes_of_layouts(plan->results, graph->top->nresults);
    for (uint32_t n = 0; n < graph->nnodes; n++)
        if (plan->nodes[n])
            axes |= axes_of_layouts(plan->nodes[n],
                                    graph->nodes[n]->noperands + graph->nodes[n]->nresults);
    return axes;
}

/* The first itself comes first. */
static int choose_ranks(const sf_local *first, checked_rank out[MOST_CHECKED])
{
    const sf_mesh *mesh = &first->plan->mesh;
    sf_axes axes = find_axes(first);
    int stride = sf_mesh_size(mesh), last = first->rank, count = 0;
    add_rank(out, &count, first, first->rank);
    for (int a = 0; a < mesh->naxes; a++) {
        int size = mesh->axes[a].size, own = sf_mesh_coordinate(mesh, first->rank, a);
        stride /= size;
        if (!(axes >> a & 1))
            continue;
        add_rank(out, &count, first, first->rank + (size / 2 - own) * stride);
        add_rank(out, &count, first, first->rank + (size - 1 - own) * stride);
        last += (size - 1 - own) * stride;
    }
    add_rank(out, &count, first, last);
    return count;
}

/* Reports the first rank that has a fault, which is checked once more for the message. */
static sf_status check_all(checked_rank *all, int count, sf_threads *threads, sf_diag *diag)
{
    sf_guarded_each(threads, count, check_one, all);
    for (int i = 0; i < count; i++)
        if (all[i].status != SF_OK) {
            all[i].diag = diag;
            SF_TRY(check_rank(&all[i]));
        }
    return SF_OK;
}

sf_status sf_check_groups(int count, sf_local *const *firsts, sf_threads *threads, sf_diag *diag)
{
    sf_arena arena = {0};
    checked_rank *all = SF_ARRAY(&arena, count * MOST_CHECKED, checked_rank);
    int nchecked = 0;
    for (int g = 0; g < count; g++)
        nchecked += choose_ranks(firsts[g], all + nchecked);
    sf_status status = check_all(all, nchecked, threads, diag);
    sf_arena_free(&arena);
    return status == SF_OK ? sf_check_messages(count, firsts, diag) : status;
}

/* The first rank of each pipeline rank, as far as they can be made. */
static sf_status make_firsts(const sf_graph *graph, const sf_plan *plan, int count, sf_diag *diag,
                             sf_local **firsts)
{
    for (int g = 0; g < count; g++)
        SF_TRY(sf_local_new(graph, plan, sf_plan_group_rank(plan, g), diag, &firsts[g]));
    return SF_OK;
}

sf_status sf_check_plan(const sf_graph *graph, const sf_plan *plan, sf_threads *threads,
                        const sf_target *target, int64_t *bytes, sf_diag *diag)
{
    sf_arena arena = {0};
    int count = sf_plan_groups(plan);
    sf_local **firsts = SF_ARRAY(&arena, count, sf_local *);
    sf_status status = make_firsts(graph, plan, count, diag, firsts);
    if (status == SF_OK)
        status = sf_check_groups(count, firsts, threads, diag);
    if (bytes)
        *bytes = 0;
    for (int g = 0; g < count; g++) {
        int64_t own = bytes && status == SF_OK ? sf_rank_bytes(firsts[g], target) : 0;
        if (bytes && own > *bytes)
            *bytes = own;
        sf_local_free(firsts[g]);
    }
    sf_arena_free(&arena);
    return status;
}
