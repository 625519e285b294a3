#include "search/device_subsets.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "cluster/part.h"
#include "search/finalists.h"
#include "search/pipeline_search.h"

enum { MOST_FREE = 3, MOST_SORTS = 32 };

/* Some sorts of devices, with all their nodes. */
typedef struct part {
    uint32_t sorts;     /* a bit each */
    bool is_transposed; /* the last nodes come first */
    bool is_tried;      /* then: */
    double seconds;     /* of the best plan on it; HUGE_VAL: none was found */
    double bound;       /* no plan on it takes less, */
    double unstaged,
        alike; /* nor one without stages, nor one in which all ranks do the same, than this */
    size_t nranges;
    sf_node_range *ranges;
    sf_cluster *cluster;
} part;

typedef struct parting {
    const sf_graph *graph;
    const sf_search_options *options;
    sf_diag *diag;
    sf_arena arena;
    const sf_efforts *efforts;     /* of the step, whatever it is planned for */
    int nsorts, sorts[MOST_SORTS]; /* kinds of devices that nodes have */
    part *parts;
    size_t count, capacity;
    sf_plan *plan; /* the best, and where it is */
    const part *at;
} parting;

static bool is_mixed(uint32_t sorts)
{
    return (sorts & (sorts - 1)) != 0;
}

static bool has_sort(const parting *p, uint32_t sorts, int kind)
{
    for (int s = 0; s < p->nsorts; s++)
        if (p->sorts[s] == kind)
            return sorts >> s & 1;
    return false;
}

static void find_sorts(parting *p)
{
    const sf_cluster *cluster = p->options->cluster;
    for (int r = 0; r < cluster->nruns && p->nsorts < MOST_SORTS; r++)
        if (!has_sort(p, UINT32_MAX, cluster->nodes[r].kind))
            p->sorts[p->nsorts++] = cluster->nodes[r].kind;
}

/* Parts have whole racks. */
static bool can_part(const parting *p)
{
    const sf_cluster *cluster = p->options->cluster;
    bool can = p->nsorts > 1 && p->nsorts < MOST_SORTS;
    for (int r = 0; r < cluster->nruns && cluster->rack_nodes > 0; r++)
        can = can && cluster->nodes[r].count % cluster->rack_nodes == 0;
    return can;
}

/* Parts ------------------------------------------------------------------------------------------- */

static void list_ranges(parting *p, part *at)
{
    const sf_cluster *cluster = p->options->cluster;
    at->ranges = SF_ARRAY(&p->arena, cluster->nruns, sf_node_range);
    for (int i = 0; i < cluster->nruns; i++) {
        const sf_nodes *run = &cluster->nodes[at->is_transposed ? cluster->nruns - 1 - i : i];
        if (!has_sort(p, at->sorts, run->kind))
            continue;
        sf_node_range *last = at->nranges > 0 ? &at->ranges[at->nranges - 1] : NULL;
        if (last && last->last + 1 == run->first_node)
            last->last += run->count;
        else
            at->ranges[at->nranges++] =
                (sf_node_range){run->first_node, run->first_node + run->count - 1};
    }
}

/* The slowest sets the pace: as if all were of its kind, of which the part with that alone tells. */
static double find_alike(const parting *p, const part *at)
{
    double most = at->unstaged;
    for (size_t i = 0; i < p->count; i++) {
        const part *alone = &p->parts[i];
        if (!is_mixed(alone->sorts) && alone->sorts & at->sorts)
            most = fmax(most, alone->unstaged * alone->cluster->ndevices / at->cluster->ndevices);
    }
    return most;
}

static bool may_pipe(const parting *p)
{
    return p->options->stages != 1 && sf_may_pipe(p->options);
}

static sf_status add_part(parting *p, const sf_efforts *efforts, uint32_t sorts, bool is_transposed)
{
    part at = {.sorts = sorts, .is_transposed = is_transposed, .seconds = HUGE_VAL};
    sf_costs *costs;
    list_ranges(p, &at);
    SF_TRY(sf_cluster_part(p->options->cluster, at.nranges, at.ranges, &p->arena, p->diag,
                           &at.cluster));
    sf_mesh all = {.naxes = 1, .axes = {{"all", at.cluster->ndevices}}};
    SF_TRY(sf_mesh_costs(at.cluster, &all, &p->arena, p->diag, &costs));
    at.unstaged = sf_least_unstaged_estimate(efforts, costs, at.cluster->ndevices);
    at.bound = may_pipe(p) ? sf_least_estimate(efforts, costs) : at.unstaged;
    at.alike = find_alike(p, &at);
    if (!p->options->mesh || sf_mesh_size(p->options->mesh) == at.cluster->ndevices)
        SF_PUSH(&p->arena, p->parts, p->count, p->capacity, at);
    return is_mixed(sorts) && !is_transposed && !p->options->mesh
               ? add_part(p, efforts, sorts, true)
               : SF_OK;
}

static int by_bound(const void *left, const void *right)
{
    const part *a = left, *b = right;
    return a->bound != b->bound ? (a->bound < b->bound ? -1 : 1)
                                : (a->sorts > b->sorts) - (a->sorts < b->sorts);
}

/* What has one kind alone comes first, then what has two, and of those what promises most: it tells soonest what is not
 * worth looking at. */
static int by_promise(const void *left, const void *right)
{
    const part *a = left, *b = right;
    if (is_mixed(a->sorts) != is_mixed(b->sorts))
        return is_mixed(a->sorts) ? 1 : -1;
    return a->is_transposed != b->is_transposed ? a->is_transposed - b->is_transposed
                                                : by_bound(left, right);
}

static sf_status list_parts(parting *p)
{
    const sf_efforts *efforts = p->efforts =
        sf_efforts_new(p->graph, p->options->target, &p->arena);
    uint32_t all = (1u << p->nsorts) - 1, faster = 0;
    for (int s = 0; s < p->nsorts; s++)
        SF_TRY(add_part(p, efforts, 1u << s, false));
    size_t singles = p->count;
    if (singles > 0)
        qsort(p->parts, singles, sizeof *p->parts, by_bound);
    for (uint32_t sorts = 1; sorts <= all && p->nsorts <= MOST_FREE; sorts++)
        if (is_mixed(sorts))
            SF_TRY(add_part(p, efforts, sorts, false));
    for (size_t i = 0; i < singles && p->nsorts > MOST_FREE; i++) {
        faster |= p->parts[i].sorts;
        if (i > 0)
            SF_TRY(add_part(p, efforts, faster, false));
    }
    if (p->count > 0)
        qsort(p->parts, p->count, sizeof *p->parts, by_promise);
    return SF_OK;
}

/* Plans ------------------------------------------------------------------------------------------- */

static int64_t least_memory(const sf_cluster *cluster)
{
    int64_t least = INT64_MAX;
    for (int r = 0; r < cluster->nruns; r++) {
        const sf_device_kind *kind = &cluster->kinds[cluster->nodes[r].kind];
        int64_t memory = kind->memory - kind->reserve;
        least = memory < least ? memory : least;
    }
    return least;
}

static void try_part(parting *p, part *at)
{
    sf_search_options options = *p->options;
    sf_plan *plan = NULL;
    double known = p->plan ? p->plan->predicted->seconds : HUGE_VAL;
    options.cluster = at->cluster;
    options.efforts = p->efforts;
    options.only_stages = options.only_stages || at->is_transposed || at->alike >= known;
    int64_t least = least_memory(at->cluster);
    options.memory = options.limited && options.memory < least ? options.memory : least;
    if (p->plan)
        options.worth = p->plan->predicted->seconds;
    at->is_tried = true;
    if (sf_choose_plan(p->graph, &options, NULL, NULL, &plan) != SF_OK)
        return;
    at->seconds = plan->predicted->seconds;
    if (p->plan && p->plan->predicted->seconds <= at->seconds) {
        sf_plan_free(plan);
        return;
    }
    sf_plan_free(p->plan);
    p->plan = plan;
    p->at = at;
}

/* What is said --------------------------------------------------------------------------------------- */

static const char *keep(parting *p, sf_buf *text)
{
    const char *kept = sf_arena_string(&p->plan->arena, text->text, text->length);
    sf_buf_free(text);
    return kept;
}

/* The best that is known of plans that use them beside, or else instead of, those that are used. */
static const char *say_why(parting *p, uint32_t sort)
{
    double taken = p->plan->predicted->seconds, least = HUGE_VAL;
    bool is_found = false, is_tried = false;
    sf_buf text = {0};
    for (size_t i = 0; i < p->count; i++) {
        const part *at = &p->parts[i];
        bool found = at->seconds < HUGE_VAL;
        double seconds = found ? at->seconds : at->bound;
        if (!(at->sorts & sort))
            continue;
        if (at->is_tried && !found) {
            is_tried = is_tried || at->sorts & p->at->sorts;
        } else if (found > is_found || (found == is_found && seconds < least)) {
            is_found = found;
            least = seconds;
        }
    }
    if (is_found || (least < HUGE_VAL && !is_tried))
        sf_buf_printf(&text, "with them a step takes %s%s, %.0f %% longer",
                      is_found ? "" : "about ", sf_text_seconds(least).at,
                      100 * (least / taken - 1));
    else
        sf_buf_puts(&text, "no plan was found that is faster with them");
    return keep(p, &text);
}

static sf_unused_devices describe_idle(parting *p, int sort)
{
    part at = {.sorts = 1u << sort};
    const sf_cluster *cluster = p->options->cluster;
    sf_buf nodes = {0}, what = {0};
    int devices = 0;
    list_ranges(p, &at);
    for (int r = 0; r < cluster->nruns; r++)
        if (cluster->nodes[r].kind == p->sorts[sort])
            devices += cluster->nodes[r].count * cluster->nodes[r].devices;
    sf_node_ranges_text(at.nranges, at.ranges, &nodes);
    sf_buf_printf(&what, "%d x %s", devices, cluster->kinds[p->sorts[sort]].name);
    return (sf_unused_devices){keep(p, &nodes), keep(p, &what), say_why(p, at.sorts)};
}

static void say_parts(parting *p)
{
    sf_prediction *predicted = p->plan->predicted;
    sf_buf nodes = {0};
    predicted->cluster_hash = sf_cluster_hash(p->options->cluster);
    predicted->unused = SF_ARRAY(&p->plan->arena, p->nsorts, sf_unused_devices);
    for (int s = 0; s < p->nsorts; s++)
        if (!(p->at->sorts >> s & 1))
            predicted->unused[predicted->nunused++] = describe_idle(p, s);
    if (predicted->nunused == 0 && !p->at->is_transposed)
        return;
    sf_node_ranges_text(p->at->nranges, p->at->ranges, &nodes);
    predicted->nodes = keep(p, &nodes);
}

static sf_status choose_part(parting *p)
{
    SF_TRY(list_parts(p));
    for (size_t i = 0; i < p->count; i++)
        if (!p->plan || p->parts[i].bound < p->plan->predicted->seconds)
            try_part(p, &p->parts[i]);
    if (p->plan)
        say_parts(p);
    return SF_OK;
}

sf_status sf_choose_on_parts(const sf_graph *graph, const sf_search_options *options,
                             sf_buf *misfit, sf_diag *diag, sf_plan **out)
{
    parting p = {.graph = graph, .options = options, .diag = diag};
    sf_status status = SF_OK;
    find_sorts(&p);
    if (can_part(&p))
        status = choose_part(&p);
    sf_arena_free(&p.arena);
    if (status == SF_OK && !p.plan) /* or to say why there is none */
        return sf_choose_plan(graph, options, misfit, diag, out);
    *out = p.plan;
    return status;
}
