#include "search/pipeline_search.h"

#include <math.h>
#include <string.h>

#include "base/guard.h"
#include "local/rank.h"
#include "plan/co_shard.h"
#include "plan/pipeline/schedules.h"
#include "plan/recompute_policy.h"
#include "search/fit.h"
#include "search/meshes.h"
#include "search/stage_estimate.h"

/* So many are lowered, of small steps more; and of layouts inside of groups. */
enum { MOST_LOWERED = 8, MOST_LOWERED_SMALL = 24, MOST_LAYOUTS = 2 };

/* Nodes that are lowered, those of each turn counted: of one plan, and of all; more where pipelines are asked for. */
enum { MOST_NODES = 1500000, MOST_NODES_ASKED = 2000000 };

/* By what is known before it is lowered, a pipeline may seem to take so much longer than what is known. */
#define DRAFT_NEAR 1.1

/* What may fit, but rarely does, is tried behind what takes so much longer: about as long as with layers computed again. */
#define DOUBT 1.4
#define SURELY_FULL 1.2 /* by what is known before stages are cut */

/* What a pipeline turned out to take tells of others in the same stages, in other turns: those that would take so much of the best. */
#define TOLD 1.01
#define TOLD_LARGE 1.1 /* and those that would take so much of their memory */
#define SAME_SECONDS 0.003

/* More turns hold less: fewer are not looked at where more of them seem to take no more than this much of the time. */
#define SURELY_FASTER 0.98

/* The ways in which a prospect is tried, one after the other, until it fits. */
enum { WAYS = 6 };

/* A batch that is not divided into so many turns and parts is not into multiples of them. What a split leaves to each of so many
 * groups, and is too large for them however it is tried, is so in as many turns, or fewer. */
typedef struct refusal {
    const char *schedule;
    uint32_t microbatches;
    int parts;
    bool is_large;
    int groups;
    const char *recipe; /* of those that prospects are made of, or NULL */
} refusal;

/* A prospect that may fit in one of the ways, and is not lowered yet. */
typedef struct waiting {
    const sf_prospect *of;
    size_t way;
    double seconds; /* about, */
    double rank;    /* and what it is in the line by */
    double about;   /* of its memory, what the fullest group takes */
    bool is_likely; /* to fit; else other ways may be in the line, too */
} waiting;

/* What a prospect turned out to take, of what it seemed to: seconds where it fits, or else memory. */
typedef struct lesson {
    sf_prospect of;
    size_t way;
    double ratio;
    bool is_large;
} lesson;

/* A draft of a prospect in one of the ways, to be looked at; made on any thread. Its plan is gone. */
typedef struct drafted {
    const struct piping *p;
    const sf_prospect *of;
    size_t way;
    sf_arena arena;
    sf_draft draft;
    sf_status status;
    bool is_made;
} drafted;

typedef struct piping {
    sf_prospects on;
    sf_diag *diag;
    double nodes; /* that were lowered */
    sf_stage_way ways[WAYS];
    refusal *refused;
    size_t nrefused, refused_capacity;
    waiting *line;
    size_t waits, line_capacity;
    lesson *lessons;
    size_t nlessons, lesson_capacity;
    drafted *drafts; /* of each prospect in all ways, as far as they are made and not looked at; */
    drafted own;     /* and of one that is not listed */
    bool *seen,
        *hopeful; /* by prospect: it was cut into stages; and may fit: it waits, or has been tried */
    double *delays; /* of those, for messages: see sf_draft.waits */
    sf_plan *best;
    const sf_full_price *simulated; /* of it, in its arena */
    sf_group_runs runs;             /* of it */
    sf_prospect taken;              /* that it was made of */
    /* The stages that were cut last, by node, and of what. */
    uint32_t *cut;
    const sf_prospect *cut_of;
    const char *cut_with;
    sf_status why; /* the last was not made */
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

static double most_nodes(const sf_search_options *options)
{
    return is_asked(options) ? MOST_NODES_ASKED : MOST_NODES;
}

/* All groups are lowered, each with its part of every turn. */
static double count_nodes(const piping *p, const sf_prospect *c)
{
    return (double)p->on.graph->nnodes * c->microbatches;
}

static bool is_too_large(const piping *p, const sf_prospect *c)
{
    double most = p->on.most_nodes;
    return count_nodes(p, c) > most || p->nodes + count_nodes(p, c) > 2 * most;
}

static int parts_of(const sf_prospect *c)
{
    int data = sf_mesh_axis(&c->mesh, sf_str_of("data"));
    return data >= 0 ? c->mesh.axes[data].size : 1;
}

/* Whether groups hold the same by both: not where one of them shares a vocabulary, or has forward passes of the same weights on the
 * same groups. */
static bool hold_alike(const piping *p, const char *a, const char *b)
{
    const char *passes = p->on.passes;
    return sf_shares_vocabulary(a) == sf_shares_vocabulary(b) &&
           (!passes || (strcmp(a, passes) == 0) == (strcmp(b, passes) == 0));
}

/* Whether the prospect holds what one of these did that was too large. */
static bool is_as_large(const piping *p, const refusal *r, const sf_prospect *c)
{
    return c->microbatches > 1 && c->microbatches <= r->microbatches && c->groups == r->groups &&
           c->recipe == r->recipe && !c->plan && parts_of(c) == r->parts &&
           hold_alike(p, c->schedule, r->schedule);
}

static bool is_refused(const piping *p, const sf_prospect *c)
{
    for (size_t i = 0; i < p->nrefused; i++) {
        const refusal *r = &p->refused[i];
        if (r->is_large ? is_as_large(p, r, c)
                        : c->microbatches % r->microbatches == 0 && parts_of(c) % r->parts == 0 &&
                              strcmp(c->schedule, r->schedule) == 0)
            return true;
    }
    return false;
}

static bool is_same_but_turns(const sf_prospect *a, const sf_prospect *b)
{
    return a->stages == b->stages && strcmp(a->schedule, b->schedule) == 0 &&
           sf_prospects_split_alike(a, b);
}

/* Whether the other, which may fit, is the same in more turns, holds no more in any stage, and seems to be faster. */
static bool outdoes(const sf_prospect *other, double delay, const sf_prospect *c)
{
    bool adds_up =
        c->microbatches > (uint32_t)c->groups ||
        (c->microbatches > 1 && c->stages <= (uint32_t)c->groups); /* gradients, in both */
    return adds_up && other->microbatches > c->microbatches &&
           delay * other->seconds < SURELY_FASTER * c->seconds && is_same_but_turns(other, c);
}

static bool is_outdone(const piping *p, const sf_prospect *c)
{
    for (size_t i = 0; i < p->on.count; i++)
        if (p->hopeful[i] && outdoes(&p->on.list[i], p->delays[i], c) &&
            !is_refused(p, &p->on.list[i]))
            return true;
    return false;
}

static void refuse(piping *p, const sf_prospect *c, uint32_t microbatches, bool is_large)
{
    refusal r = {c->schedule, microbatches, parts_of(c), is_large, c->groups, c->recipe};
    SF_PUSH(&p->on.arena, p->refused, p->nrefused, p->refused_capacity, r);
}

/* Ways ------------------------------------------------------------------------------------------- */

/* As it is asked for; or as it is, and where that does not fit, in stages that are cut by memory, too, then with layers
 * computed again; where nothing is known that fits, with heads and features in chunks as well. */
static void list_ways(piping *p)
{
    const sf_search_options *options = p->on.options;
    const char *asked = options->recompute;
    const char *first = asked ? asked : options->as_text ? "text" : "none";
    const char *last = asked ? asked : "layer";
    sf_recompute_spec by_first = sf_recompute_of(first, &p->on.arena),
                      by_last = sf_recompute_of(last, &p->on.arena);
    const bool *kept = sf_recomputed_by(p->on.graph, &by_first, &p->on.arena),
               *recomputed = asked ? kept : sf_recomputed_by(p->on.graph, &by_last, &p->on.arena);
    const sf_stage_way ways[WAYS] = {{first, kept, 0, false},      {first, kept, 0, true},
                                     {last, recomputed, 0, false}, {last, recomputed, 0, true},
                                     {last, recomputed, 2, true},  {last, recomputed, 4, true}};
    memcpy(p->ways, ways, sizeof ways);
}

static bool is_open(const piping *p, size_t way)
{
    const sf_search_options *options = p->on.options;
    bool is_same = options->recompute && way >= 2, in_turns = p->ways[way].shards > 0;
    return in_turns ? !options->co_shards && p->on.worth == HUGE_VAL : !is_same;
}

/* Whether those stages were cut last: a cut by memory, too, may be the one that does not fit. */
static bool is_same_cut(const piping *p, const sf_prospect *c, const sf_stage_way *way,
                        const sf_draft *draft)
{
    return p->cut_of == c && p->cut_with == way->recompute && way->shards == 0 &&
           memcmp(p->cut, draft->cut, p->on.graph->nnodes * sizeof *p->cut) == 0;
}

static void remember_cut(piping *p, const sf_prospect *c, const sf_stage_way *way,
                         const sf_draft *draft)
{
    size_t count = p->on.graph->nnodes;
    p->cut = p->cut ? p->cut : SF_ARRAY(&p->on.arena, count, uint32_t);
    memcpy(p->cut, draft->cut, count * sizeof *p->cut);
    p->cut_of = c;
    p->cut_with = way->recompute;
}

/* Whether all ranks fit, each in its device or in what the user allows. */
static bool fits_staged(const piping *p, const sf_price *price)
{
    return sf_rank_fits(price->memory,
                        p->on.options->limited ? p->on.options->memory : price->room);
}

/* Small steps are soon lowered, and what they hold is little beside what comes and goes. Passes may bring some of it elsewhere. */
static bool cannot_fit(const piping *p, const sf_draft *draft)
{
    return p->on.graph->nnodes > SF_SMALL_STEP && !p->on.options->passes && draft->least > 1;
}

/* Whether two seem to take the same, and differ in what a group splits alone. */
static bool is_nearly_same(const sf_prospect *a, const sf_prospect *b)
{
    return a->stages == b->stages && a->groups == b->groups && a->microbatches == b->microbatches &&
           strcmp(a->schedule, b->schedule) == 0 &&
           fabs(a->seconds - b->seconds) < SAME_SECONDS * a->seconds;
}

/* Whether one that differs in its turns alone, or hardly, says that it takes too long. */
static bool is_told(const piping *p, const waiting *w, double most)
{
    bool is_large = p->on.graph->nnodes > SF_SMALL_STEP;
    for (size_t i = 0; i < p->nlessons; i++) {
        const lesson *l = &p->lessons[i];
        bool tells =
            is_same_but_turns(&l->of, w->of) || (is_large && is_nearly_same(&l->of, w->of));
        if (!l->is_large && l->way == w->way && tells && l->ratio * w->seconds > TOLD * most)
            return true;
    }
    return false;
}

/* Whether one that differs in its turns alone says, of a large step, that it does not fit. */
static bool is_told_large(const piping *p, const waiting *w)
{
    for (size_t i = 0; i < p->nlessons && p->on.graph->nnodes > SF_SMALL_STEP; i++) {
        const lesson *l = &p->lessons[i];
        if (l->is_large && l->way == w->way && is_same_but_turns(&l->of, w->of) &&
            l->ratio * w->about > TOLD_LARGE)
            return true;
    }
    return false;
}

/* What will hardly fit is worth it where nothing else is known to, or it seems much faster. */
static bool seems_fast(const piping *p, const waiting *w)
{
    double most = sf_prospects_near(&p->on) * p->on.worth;
    if (is_told(p, w, most))
        return false;
    return w->is_likely || !p->best ? w->seconds < DRAFT_NEAR * most : w->rank < most;
}

/* Whether it is clear before stages are cut, of a large step, that they do not fit in that way. */
static bool is_surely_full(const piping *p, const sf_prospect *c, size_t way)
{
    const sf_search_options *options = p->on.options;
    bool keeps_all = !options->recompute && !options->as_text && way < 2;
    return keeps_all && p->on.graph->nnodes > SF_SMALL_STEP && !options->passes &&
           (p->ways[way].limited ? c->mean : c->full) > SURELY_FULL;
}

/* Drafts ----------------------------------------------------------------------------------------- */

static bool is_worth_it(const piping *p, const sf_prospect *c)
{
    return c->seconds <= sf_prospects_near(&p->on) * p->on.worth && !is_too_large(p, c) &&
           !is_refused(p, c);
}

/* Whether it cannot seem fast in that way, however its stages are cut: groups have, on the average, recompute to do. */
static bool is_slow_way(const piping *p, const sf_prospect *c, size_t way)
{
    bool is_small = p->on.graph->nnodes <= SF_SMALL_STEP;
    double slower = p->ways[way].recomputed && p->ways[way].recomputed == p->on.recomputed
                        ? 1 + c->repeated
                        : 1;
    return !is_small && slower * c->seconds >= DRAFT_NEAR * sf_prospects_near(&p->on) * p->on.worth;
}

static sf_status make_draft(drafted *d)
{
    const piping *p = d->p;
    sf_costs *costs;
    SF_TRY(sf_mesh_costs(p->on.options->cluster, &d->of->mesh, &d->arena, p->diag, &costs));
    SF_TRY(sf_draft_make(&p->on, d->of, &p->ways[d->way], costs, false, &d->arena, p->diag,
                         &d->draft));
    sf_plan_free(d->draft.plan);
    d->draft.plan = NULL;
    return SF_OK;
}

static void make_listed(void *context, int64_t i, int part)
{
    drafted *d = ((drafted *const *)context)[i];
    (void)part;
    d->status = make_draft(d);
}

/* Whether the draft of a prospect that was not looked at yet is likely to be asked for. */
static bool is_likely_wanted(const piping *p, size_t at, size_t way)
{
    const sf_prospect *c = &p->on.list[at];
    const drafted *ways = &p->drafts[at * WAYS];
    bool was_likely = false, any = way == 0 || is_surely_full(p, c, 0);
    for (size_t w = 0; w < way; w++) {
        any = any || ways[w].is_made;
        was_likely = was_likely || (ways[w].is_made && ways[w].draft.about <= SF_LIKELY_FULL);
    }
    return any && !was_likely && !ways[way].is_made && !p->seen[at] && is_worth_it(p, c) &&
           !is_outdone(p, c) && !is_slow_way(p, c, way) && !is_surely_full(p, c, way);
}

/* Beside the one that is asked for, on threads that would wait, those in the same way of the prospects that follow. */
static void draft_ahead(piping *p, size_t at, size_t way)
{
    size_t most = (size_t)sf_threads_count(p->on.options->threads), count = 0;
    drafted *batch[SF_SPLITS_KEPT];
    most = p->diag ? 1 : most < SF_SPLITS_KEPT ? most : SF_SPLITS_KEPT;
    for (size_t i = at; i < p->on.count && count < most; i++) {
        drafted *d = &p->drafts[i * WAYS + way];
        if (i > at && !is_likely_wanted(p, i, way))
            continue;
        *d = (drafted){.p = p, .of = &p->on.list[i], .way = way, .is_made = true};
        sf_prospects_keep(&p->on, d->of);
        batch[count++] = d;
    }
    sf_guarded_each(p->on.options->threads, (int64_t)count, make_listed, batch);
}

static bool is_listed(const piping *p, const sf_prospect *c)
{
    return c >= p->on.list && c < p->on.list + p->on.count;
}

/* The draft, with which the caller is done before the next is asked for. */
static drafted *find_draft(piping *p, const sf_prospect *c, size_t way)
{
    bool listed = is_listed(p, c);
    size_t at = listed ? (size_t)(c - p->on.list) : 0;
    drafted *d = listed ? &p->drafts[at * WAYS + way] : &p->own;
    if (listed && !d->is_made)
        draft_ahead(p, at, way);
    if (!listed) {
        *d = (drafted){.p = p, .of = c, .way = way};
        d->status = make_draft(d);
    }
    return d;
}

static void free_draft(drafted *d)
{
    sf_arena_free(&d->arena);
    *d = (drafted){0};
}

/* What comes of a prospect in the ways in which it is tried. */
typedef struct hope {
    bool may_fit, is_likely; /* in the last of them */
    bool any;                /* may fit */
    bool none;               /* in no stages, with what was computed again in the last */
    bool is_slow;            /* in one that was not tried, it would be */
    double held;             /* the least of a group that was full, see sf_draft */
} hope;

/* Puts the prospect into the line in that way, where it may fit. */
static sf_status wait_in_way(piping *p, const sf_prospect *c, size_t way, hope *h)
{
    const sf_stage_way *how = &p->ways[way];
    drafted *found = find_draft(p, c, way);
    sf_status status = found->status;
    const sf_draft *draft = &found->draft;
    h->may_fit = h->is_likely = h->none = false;
    if (p->on.options->spent)
        p->on.options->spent->drafts++;
    if (status == SF_OK) {
        bool is_small = p->on.graph->nnodes <= SF_SMALL_STEP;
        double seconds = c->seconds * draft->waits *
                         (is_small ? 1 : draft->slower); /* starts of kernels tell more */
        h->may_fit = !cannot_fit(p, draft) && !is_same_cut(p, c, how, draft);
        h->is_likely = h->may_fit && (draft->about <= SF_LIKELY_FULL || is_small);
        h->any = h->any || h->may_fit;
        h->none = draft->mean > 1 && p->on.graph->nnodes > SF_SMALL_STEP;
        h->held = fmin(h->held, draft->held);
        waiting w = {.of = c,
                     .way = way,
                     .seconds = seconds,
                     .rank = (draft->about <= SF_LIKELY_FULL ? 1 : DOUBT * fmax(1, draft->about)) *
                             seconds,
                     .about = draft->about,
                     .is_likely = h->is_likely};
        if (h->may_fit && seems_fast(p, &w))
            SF_PUSH(&p->on.arena, p->line, p->waits, p->line_capacity, w);
        remember_cut(p, c, how, draft);
        if (is_listed(p, c))
            p->delays[c - p->on.list] = draft->waits;
    }
    free_draft(found);
    return status;
}

/* From that way on; *may_fit: in one of them. There may be no stages that have room. */
static sf_status wait_from(piping *p, const sf_prospect *c, size_t way, bool *may_fit)
{
    hope h = {.held = HUGE_VAL};
    sf_status status = SF_OK;
    for (; way < WAYS && status == SF_OK && !h.is_likely; way++) {
        if (!is_open(p, way) || (h.none && p->ways[way].limited && p->ways[way].shards == 0))
            continue;
        if (is_surely_full(p, c, way)) {
            h.held = fmin(h.held, 1);
            continue;
        }
        bool is_slow = is_slow_way(p, c, way);
        h.is_slow = h.is_slow || is_slow;
        if (is_slow)
            continue;
        sf_status tried = wait_in_way(p, c, way, &h);
        status = p->ways[way].limited ? status : tried;
    }
    if (status == SF_OK && !h.any && !h.is_slow)
        refuse(p, c, h.held > 1 ? UINT32_MAX : c->microbatches, true);
    *may_fit = h.any;
    return status;
}

/* Lowering --------------------------------------------------------------------------------------- */

static sf_status price_draft(piping *p, const sf_prospect *c, const sf_stage_way *way,
                             const sf_costs *costs, sf_plan *plan, sf_group_runs *runs,
                             sf_price *out)
{
    sf_recompute_spec how = sf_recompute_of(way->recompute, &plan->arena);
    SF_TRY(sf_plan_recompute(p->on.graph, plan, &how, p->diag));
    sf_fit_passes(plan, p->on.options);
    sf_search_co_shard(plan, p->on.options, way->shards ? way->shards : p->on.options->co_shards);
    const sf_search_options *options = p->on.options;
    sf_group_limits limits = {.memory = options->limited ? options->memory : 0,
                              .seconds = p->on.worth,
                              .threads = options->threads};
    sf_status status =
        sf_group_runs_within(p->on.graph, plan, options->target, costs, &limits, p->diag, runs);
    if (status == SF_OK)
        sf_price_within(runs, costs, out);
    if (status == SF_OK && options->spent)
        options->spent->programs += out->nprograms;
    if (status == SF_OK)
        p->nodes += count_nodes(p, c);
    else if (c->microbatches > 1 && way->shards == 0)
        refuse(p, c, c->microbatches, false);
    return status;
}

/* The plan, and what its groups run, are ours from now on. */
static void take_staged(piping *p, const sf_prospect *c, const sf_costs *costs, sf_plan *plan,
                        sf_group_runs *runs)
{
    sf_plan_free(p->best);
    sf_group_runs_free(&p->runs);
    p->taken = *c;
    p->best = plan;
    p->simulated = sf_tell_groups(runs, costs, &plan->arena);
    p->runs = *runs;
    p->on.worth = p->simulated->price.seconds;
    *runs = (sf_group_runs){0};
}

/* Makes, prices and, where it is the best, keeps the plan. */
static sf_status try_way(piping *p, const sf_prospect *c, size_t way, bool *fits, sf_price *price)
{
    sf_arena arena = {0};
    sf_costs *costs;
    sf_draft draft = {0};
    sf_group_runs runs = {0};
    sf_status status = sf_mesh_costs(p->on.options->cluster, &c->mesh, &arena, p->diag, &costs);
    if (status == SF_OK)
        status = sf_draft_make(&p->on, c, &p->ways[way], costs, true, &arena, p->diag, &draft);
    if (status == SF_OK) {
        remember_cut(p, c, &p->ways[way], &draft);
        status = price_draft(p, c, &p->ways[way], costs, draft.plan, &runs, price);
    }
    *fits = status == SF_OK && fits_staged(p, price);
    if (*fits && price->seconds < p->on.worth)
        take_staged(p, c, costs, draft.plan, &runs);
    else
        sf_plan_free(draft.plan);
    sf_group_runs_free(&runs);
    sf_arena_free(&arena);
    return status;
}

/* And where it does not fit, lets it wait in the next way. */
static sf_status try_waiting(piping *p, waiting w)
{
    bool fits = false;
    sf_price price = {0};
    sf_status status = SF_OK;
    if (!is_told_large(p, &w)) {
        status = try_way(p, w.of, w.way, &fits, &price);
        double room = (double)(p->on.options->limited ? p->on.options->memory : price.room);
        lesson l = {*w.of, w.way,
                    fits ? price.seconds / w.seconds : (double)price.memory / room / w.about,
                    !fits};
        if (status == SF_OK)
            SF_PUSH(&p->on.arena, p->lessons, p->nlessons, p->lesson_capacity, l);
    }
    if (fits || !w.is_likely || (status != SF_OK && !p->ways[w.way].limited))
        return status;
    bool may_fit;
    return wait_from(p, w.of, w.way + 1, &may_fit);
}

/* The one that seems fastest; NULL: none waits. */
static waiting *find_first(const piping *p)
{
    waiting *first = NULL;
    for (size_t i = 0; i < p->waits; i++)
        if (!first || p->line[i].rank < first->rank)
            first = &p->line[i];
    return first;
}

static waiting take_from_line(piping *p, waiting *at)
{
    waiting w = *at;
    *at = p->line[--p->waits];
    return w;
}

/* The first from there on that is to be cut into stages; the end of the list: none is. */
static size_t next_prospect(const piping *p, size_t at)
{
    while (at < p->on.count &&
           (p->seen[at] || !is_worth_it(p, &p->on.list[at]) || is_outdone(p, &p->on.list[at])))
        at++;
    return at;
}

/* Lowers those that wait, the one that seems fastest first, once no prospect that has not been cut into stages could seem faster. Where
 * a batch turns out not to divide, those in fewer turns are looked at after all. */
static void try_prospects(piping *p, int most)
{
    int lowered = 0;
    size_t next = 0, nrefused = 0;
    while (lowered < most && !sf_prospects_are_over(&p->on)) {
        waiting *first = find_first(p);
        next = next_prospect(p, p->nrefused > nrefused ? 0 : next);
        nrefused = p->nrefused;
        const sf_prospect *c = next < p->on.count ? &p->on.list[next] : NULL;
        if (c && (!first || c->seconds <= first->rank)) {
            p->seen[next] = true;
            p->why = wait_from(p, c, 0, &p->hopeful[next]);
            continue;
        }
        if (!first)
            return;
        waiting w = take_from_line(p, first);
        if (!is_worth_it(p, w.of) || !seems_fast(p, &w))
            continue;
        p->why = try_waiting(p, w);
        lowered += p->why == SF_OK;
    }
}

/* All ways of one, at once. */
static sf_status try_prospect(piping *p, const sf_prospect *c)
{
    p->waits = 0;
    p->cut_of = NULL;
    bool may_fit;
    sf_status status = wait_from(p, c, 0, &may_fit);
    while (p->waits > 0)
        status = try_waiting(p, take_from_line(p, p->line));
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
    /* What no layouts bring down, they do not improve either. */
    options.impatient = p->on.graph->nnodes > SF_SMALL_STEP;
    if (sf_search_plans(p->on.graph, &options, NULL, &found) == SF_OK)
        for (size_t i = 0;
             i < found.count && tried < MOST_LAYOUTS && !sf_prospects_are_over(&p->on); i++) {
            bool is_small = p->on.graph->nnodes <= SF_SMALL_STEP; /* recipes are soon tried again */
            if (!found.candidates[i].at.plan ||
                (!is_small && !sf_candidate_is_searched(&found.candidates[i])))
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
                          sf_diag *diag, sf_plan **out, const sf_full_price **simulated,
                          sf_group_runs *runs)
{
    piping p = {
        .on = {
            .graph = graph, .options = options, .worth = worth, .most_nodes = most_nodes(options)}};
    int most = graph->nnodes <= SF_SMALL_STEP ? MOST_LOWERED_SMALL : MOST_LOWERED;
    p.on.efforts = options->efforts;
    list_ways(&p);
    p.on.recomputed = p.ways[WAYS - 1].recomputed;
    sf_prospects_list(&p.on);
    p.drafts = SF_ARRAY(&p.on.arena, p.on.count * WAYS, drafted);
    p.seen = SF_ARRAY(&p.on.arena, p.on.count, bool);
    p.hopeful = SF_ARRAY(&p.on.arena, p.on.count, bool);
    p.delays = SF_ARRAY(&p.on.arena, p.on.count, double);
    try_prospects(&p, most);
    search_layouts(&p);
    if (!p.best && p.on.count > 0 && p.why != SF_OK) { /* once more, for the message */
        p.diag = diag;
        p.why = try_prospect(&p, &p.on.list[0]);
    }
    for (size_t i = 0; i < p.on.count * WAYS; i++)
        free_draft(&p.drafts[i]);
    *out = p.best;
    *simulated = p.simulated;
    *runs = p.runs;
    sf_prospects_free(&p.on);
    return p.best || p.on.count == 0 ? SF_OK : p.why;
}
