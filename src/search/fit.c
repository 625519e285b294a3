#include "search/fit.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "local/rank.h"
#include "op/flops.h"
#include "plan/co_shard.h"
#include "plan/recompute_policy.h"

/* It is looked for how much must be computed again down to such a part of it, or until so much of the memory is used;
 * turns are no more than so many, of the batch
 * and of heads and features. */
enum { FINEST = 256, MOST_TURNS = 64, MOST_SHARDS = 16 };
#define FULL 0.99

/* Tries that go by the bytes of nodes, and what of the memory they are to fill. */
enum { BY_BYTES = 3 };
#define NEARLY_FULL 0.996

/* Turns, whose programs are long, are tried where a plan that fits takes so much longer than as it is, at least. */
#define MUCH_LONGER 1.05

/* Turns and computing again together, where each alone makes it take so much longer: all of it again takes less. */
#define FAR_LONGER 1.5

/* Plans differ in what turns cost them: others tell where that would be so much more than they may take. */
#define FAR_BEYOND 1.3

/* What is computed again helps in turns where it does without, and leaves at most so much; or where little is missing. */
#define HELPS 0.9
#define LITTLE 1.25

/* Small steps are soon lowered: so often, to improve on what is found. */
enum { MANY_TRIES = 64 };

/* Of a large step, as much faster as this a plan in turns must be to be looked for; and of plans that differ by less, in time and
 * of the memory that there is, one tells of the other. */
#define WORTH_TURNS 0.99
#define SAME_TIME 0.003
#define SAME_MEMORY 0.005
#define SAME_PLAN 0.001

/* What is computed again last gains least for its time: to keep it saves so many times what bytes at the mean would. */
#define MOST_GAIN 16

/* What halves what it saves with each doubling saves no more, from then on, than the last did; or a little. */
#define AS_MUCH_AGAIN 1.25

typedef struct ranked_node {
    uint32_t node;
    double ratio; /* seconds of it for the bytes that it makes */
    double made;  /* bytes, with those of all before it */
} ranked_node;

/* How a plan goes on in time. */
typedef struct way {
    bool *recomputed;          /* by node, or NULL */
    bool *recomputed_per_part; /* likewise, as in plans */
    int microbatches, shards;
} way;

typedef struct fitting {
    const sf_graph *graph;
    const sf_search_options *options;
    const sf_costs *costs;
    sf_plan *plan;
    sf_diag *diag;
    sf_arena arena;
    ranked_node *ranked; /* what can be computed again, what gains most for its time first */
    size_t count;
    uint32_t nlayers;
    uint32_t most_together; /* layers that are computed again as one, where that may help */
    bool in_parts;          /* they are computed again in parts, */
    const bool *inner;      /* and twice what does not leave one: by node */
    sf_fit_known *known;
    bool tells;         /* others, as the last of those known */
    way asked;          /* of the user, or what goes on as it would: not in turns */
    way at;             /* that is tried now */
    sf_price unlimited; /* the plan as it is asked for, */
    int64_t least;      /* and the bytes that it takes with everything recomputed that can be, */
    double recomputed;  /* and about the seconds */
    double
        rest; /* bytes that turns leave, as far as those show that were tried without anything computed again; 0: unknown */
    sf_price tried; /* the last */
    /* The best so far. */
    bool has_best, fits;
    sf_price price;
    way best;
    sf_group_runs runs; /* of it, where it fits */
} fitting;

static int by_ratio(const void *a, const void *b)
{
    const ranked_node *x = a, *y = b;
    if (x->ratio != y->ratio)
        return x->ratio < y->ratio ? -1 : 1;
    return (x->node > y->node) - (x->node < y->node);
}

/* Seconds of an unsplit node on one device, for the bytes that it makes. */
static ranked_node rank_node(const fitting *f, const sf_node *node)
{
    sf_effort effort = {.product = sf_is_product(node->def),
                        .flops = sf_node_flops(f->graph, node)};
    double made = 0;
    for (uint32_t r = 0; r < node->nresults; r++)
        made += (double)sf_type_bytes(sf_type_of(f->graph, node->result + r));
    effort.bytes = effort.product ? made : 0; /* others run in one loop with what reads them */
    double seconds = sf_costs_op(f->costs, &effort);
    return (ranked_node){node->id, made > 0 ? seconds / made : 0, made};
}

/* Ranks what the plan marks. */
static void rank_marked(fitting *f)
{
    const sf_block *top = f->graph->top;
    f->count = 0;
    f->ranked = SF_ARRAY(&f->arena, top->nnodes, ranked_node);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(f->graph, i);
        if (f->plan->recomputed[node->id])
            f->ranked[f->count++] = rank_node(f, node);
    }
    if (f->count > 0)
        qsort(f->ranked, f->count, sizeof *f->ranked, by_ratio);
    for (size_t i = 1; i < f->count; i++)
        f->ranked[i].made += f->ranked[i - 1].made;
}

static void mark_first(fitting *f, size_t count)
{
    memset(f->plan->recomputed, 0, f->graph->nnodes * sizeof *f->plan->recomputed);
    for (size_t i = 0; i < count; i++)
        f->plan->recomputed[f->ranked[i].node] = true;
}

static bool is_better_fit(const fitting *f, bool fits, const sf_price *price)
{
    if (!f->has_best || fits != f->fits)
        return !f->has_best || fits;
    return fits ? price->seconds < f->price.seconds : price->memory < f->price.memory;
}

void sf_fit_passes(sf_plan *plan, const sf_search_options *options)
{
    if (options->passes && strcmp(plan->passes.list, options->passes) != 0)
        sf_plan_set_passes(plan, &(sf_plan_passes){options->passes, "", options->memory, true});
}

void sf_search_co_shard(sf_plan *plan, const sf_search_options *options, int chunks)
{
    const sf_co_shard_spec *said = options->co_shard;
    const sf_co_shard usual = {"megatron", "", chunks};
    if (chunks > 1 && said && said->count > 0)
        sf_plan_co_shard(plan, said->count, said->at);
    else
        sf_plan_co_shard(plan, 1, &usual);
}

static void put_in_way(sf_plan *plan, const sf_search_options *options, const way *w)
{
    plan->recomputed = w->recomputed;
    plan->recomputed_per_part = w->recomputed_per_part;
    plan->micro_batches = w->microbatches;
    sf_search_co_shard(plan, options, w->shards);
    sf_fit_passes(plan, options);
}

/* Of recompute, what is so twice; or NULL. */
static bool *find_twice(fitting *f, const bool *recomputed)
{
    bool *recomputed_per_part = NULL;
    if (!recomputed || !f->inner)
        return NULL;
    recomputed_per_part = SF_ARRAY(&f->arena, f->graph->nnodes, bool);
    for (size_t n = 0; n < f->graph->nnodes; n++)
        recomputed_per_part[n] = recomputed[n] && f->inner[n];
    return recomputed_per_part;
}

static void swap_runs(sf_group_runs *a, sf_group_runs *b)
{
    sf_group_runs kept = *a;
    *a = *b;
    *b = kept;
}

/* Prices the plan with this computed again, in the turns that are tried now. Why it cannot be in turns of which nobody
 * asked is not told. */
static sf_status try_marked(fitting *f, bool *recomputed, bool *fits)
{
    sf_price price;
    sf_plan *plan = f->plan;
    bool *marked = plan->recomputed, *marked_twice = plan->recomputed_per_part;
    bool is_asked = f->at.microbatches == f->asked.microbatches && f->at.shards == f->asked.shards;
    *fits = false;
    f->at.recomputed = recomputed;
    f->at.recomputed_per_part = find_twice(f, recomputed);
    put_in_way(plan, f->options, &f->at);
    sf_group_runs runs = {0};
    sf_status status = sf_group_runs_new(f->graph, plan, f->options->target, f->costs,
                                         is_asked ? f->diag : NULL, &runs);
    if (status == SF_OK)
        sf_price_groups(&runs, f->costs, NULL, NULL, &price);
    plan->recomputed = marked;
    plan->recomputed_per_part = marked_twice;
    if (status != SF_OK) {
        sf_group_runs_free(&runs);
        return status;
    }
    if (f->options->spent)
        f->options->spent->programs += price.nprograms;
    f->tried = price;
    *fits = sf_rank_fits(price.memory, f->options->memory);
    if (is_better_fit(f, *fits, &price)) {
        f->has_best = true;
        f->fits = *fits;
        f->price = price;
        f->best = f->at;
        if (recomputed)
            f->best.recomputed =
                sf_arena_copy(&f->arena, recomputed, f->graph->nnodes * sizeof *recomputed);
        if (*fits)
            swap_runs(&f->runs, &runs);
    }
    sf_group_runs_free(&runs);
    return SF_OK;
}

/* The same with the first of what can be computed again. */
static sf_status try_first(fitting *f, size_t count, bool *fits)
{
    if (count > 0)
        mark_first(f, count);
    return try_marked(f, count > 0 ? f->plan->recomputed : NULL, fits);
}

/* Marks what can be computed again, where the user leaves that open with so many layers together. */
static sf_status mark_group(fitting *f, uint32_t group)
{
    const char *said = f->options->recompute;
    char how[32];
    snprintf(how, sizeof how, f->in_parts ? "parts" : "full:%" PRIu32, group);
    sf_recompute_spec recompute = sf_recompute_of(said ? said : how, &f->arena);
    SF_TRY(sf_plan_recompute(f->graph, f->plan, &recompute, f->diag));
    f->inner = f->plan->recomputed_per_part;
    if (f->plan->recomputed)
        rank_marked(f);
    return SF_OK;
}

/* Bytes that are left, however often what was doubled is doubled again, of a plan that takes so much now, and took so much before. */
static double left_behind(int64_t before, int64_t now)
{
    return (double)now - AS_MUCH_AGAIN * ((double)before - (double)now);
}

/* Whether doubling what was doubled again, and again, may make a plan fit that takes so much now, and took so much before. Small
 * steps are tried anyway, as long as it helps. */
static bool may_fit_yet(const fitting *f, int64_t before, int64_t now)
{
    double rest = left_behind(before, now);
    return now < before &&
           (f->graph->nnodes <= SF_SMALL_STEP || rest <= (double)f->options->memory);
}

/* Whether more layers together cannot take less than what was tried last: what they make stands there at once, and as it is, the
 * plan has that of all layers. */
static bool is_too_much_at_once(const fitting *f, uint32_t group)
{
    double microbatches = (double)f->at.microbatches * f->at.shards;
    double layer = (double)(f->unlimited.memory - f->tried.memory) / f->nlayers / microbatches;
    return f->graph->nnodes > SF_SMALL_STEP && f->nlayers > 0 &&
           group * layer > (double)f->tried.memory;
}

/* All of each layer, and where that is not enough, more layers together, as long as that helps. What they save is kept between layers,
 * and turns have less of it: where it does not help once, it is not tried again. */
static sf_status group_layers(fitting *f, bool *fits)
{
    int64_t before = INT64_MAX;
    *fits = false;
    for (uint32_t group = 1; !*fits && group <= f->most_together; group *= 2) {
        SF_TRY(mark_group(f, group));
        SF_TRY(try_first(f, f->count, fits));
        if (!may_fit_yet(f, before, f->tried.memory))
            f->most_together = group / 2;
        else if (is_too_much_at_once(f, 2 * group))
            f->most_together = group;
        before = f->tried.memory;
    }
    return SF_OK;
}

/* How many of what is ranked are computed again, with the bytes that are taken then: too few of them fit, and enough. */
typedef struct bracket {
    size_t few, enough;
    double over, under;
    double fast, slow; /* seconds of both */
    int tries;
} bracket;

static double made_by_first(const fitting *f, size_t count)
{
    return count > 0 ? f->ranked[count - 1].made : 0;
}

/* By bytes, as if the peak fell with what is not kept; it need not, so after some tries it is in the middle, or behind that. */
static size_t guess_count(const fitting *f, const bracket *b)
{
    size_t low = b->few + 1, high = b->enough - 1;
    double most = NEARLY_FULL * (double)f->options->memory, before = made_by_first(f, b->few);
    double share = (b->over - most) / (b->over - b->under);
    double wanted = before + fmin(share, 1) * (made_by_first(f, b->enough) - before);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (f->ranked[middle - 1].made < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    size_t middle = (b->few + b->enough) / 2;
    return b->tries >= BY_BYTES && low < middle ? middle : low;
}

/* Whether it is not worth looking for less: memory is used up; or what does not fit takes too long, and what does takes longer. */
static bool is_least(const fitting *f, bool fits)
{
    return fits ? (double)f->tried.memory > FULL * (double)f->options->memory
                : f->tried.seconds > f->known->worth;
}

/* Whether the room that is left is so little that what it holds need not be computed again, or does not matter, of a large step. */
static bool is_room_little(const fitting *f, const bracket *b)
{
    double room = ((double)f->options->memory - b->under) / (b->over - b->under);
    return f->graph->nnodes > SF_SMALL_STEP &&
           MOST_GAIN * room * (b->slow - b->fast) < SAME_TIME * b->slow;
}

/* Notes what came of the last try. Returns whether, of a large step, what is left to be found is little: what does not fit is hardly
 * faster than what does, or that with less computed again was hardly faster than before. */
static bool narrow_bracket(const fitting *f, bracket *b, size_t count, bool enough)
{
    double before = b->slow;
    *(enough ? &b->enough : &b->few) = count;
    *(enough ? &b->under : &b->over) = (double)f->tried.memory;
    *(enough ? &b->slow : &b->fast) = f->tried.seconds;
    b->tries++;
    bool is_little = enough && f->tried.seconds > (1 - SAME_TIME) * before;
    return f->graph->nnodes > SF_SMALL_STEP && (is_little || b->fast > (1 - SAME_TIME) * b->slow);
}

/* As little computed again as fits: *fits. */
static sf_status find_least(fitting *f, bool *fits)
{
    SF_TRY(group_layers(f, fits));
    bracket b = {.enough = f->count,
                 .over = (double)f->unlimited.memory,
                 .under = (double)f->tried.memory,
                 .fast = f->unlimited.seconds,
                 .slow = f->tried.seconds};
    bool is_done = !*fits || is_least(f, true) || is_room_little(f, &b);
    while (!is_done && b.enough - b.few > f->count / FINEST + 1) {
        size_t count = guess_count(f, &b);
        bool enough;
        SF_TRY(try_first(f, count, &enough));
        is_done = narrow_bracket(f, &b, count, enough) || is_least(f, enough);
    }
    return SF_OK;
}

/* Keeps after all what need not be computed again for it to fit: what takes the most time first, many nodes at once, then
 * fewer, as long as there are tries. */
static sf_status keep_more(fitting *f)
{
    int tries = f->graph->nnodes <= SF_SMALL_STEP ? MANY_TRIES : 0;
    uint32_t *marked = SF_ARRAY(&f->arena, f->count, uint32_t), count = 0;
    bool fits;
    if (!f->fits || !f->best.recomputed || f->options->recompute)
        return SF_OK;
    f->at = f->best;
    for (size_t i = f->count; i-- > 0;)
        if (f->best.recomputed[f->ranked[i].node])
            marked[count++] = f->ranked[i].node;
    for (uint32_t chunk = count / 2; chunk > 0 && tries > 0; chunk /= 2)
        for (uint32_t first = 0; first < count && tries > 0; first += chunk) {
            bool *recomputed =
                sf_arena_copy(&f->arena, f->best.recomputed, f->graph->nnodes * sizeof *recomputed);
            bool any = false;
            for (uint32_t i = first; i < first + chunk && i < count; i++) {
                any = any || recomputed[marked[i]];
                recomputed[marked[i]] = false;
            }
            tries -= any;
            if (any)
                SF_TRY(try_marked(f, recomputed, &fits));
        }
    return SF_OK;
}

/* Whether more turns, which make no plan faster, may be worth it where the last that was tried does not fit. */
static bool are_worth_turns(const fitting *f)
{
    bool is_small = f->graph->nnodes <= SF_SMALL_STEP;
    return (!f->fits || f->tried.seconds < f->price.seconds) &&
           (is_small || f->tried.seconds < WORTH_TURNS * f->known->worth);
}

/* Of a large step, as many turns as it takes at the least to fit: they leave no less than their part of what it takes without them.
 * Where nothing fits, the best so far is the smallest. */
static int fewest_turns(const fitting *f, bool recomputed)
{
    int64_t memory = recomputed ? f->price.memory : f->unlimited.memory;
    int microbatches = 2;
    while (f->graph->nnodes > SF_SMALL_STEP && microbatches <= MOST_TURNS &&
           memory / microbatches > f->options->memory)
        microbatches *= 2;
    return microbatches;
}

/* How much longer plans took in as many turns as are tried now, at the least; 0: none was tried. */
static double *slower_in_turns(const fitting *f)
{
    int microbatches = f->at.microbatches > 1 ? f->at.microbatches : f->at.shards;
    bool are_both = f->at.microbatches > 1 && f->at.shards > 1;
    return &f->known->slower[are_both ? 2 : f->at.microbatches > 1]
                            [__builtin_ctz((unsigned)microbatches)];
}

static void note_turns(fitting *f)
{
    double *slower = slower_in_turns(f), now = f->tried.seconds / f->unlimited.seconds;
    *slower = *slower > 0 ? fmin(*slower, now) : now;
}

/* Whether, of a large step, others in as many turns show that this one would take far longer than it may. */
static bool is_slow_in_turns(const fitting *f)
{
    return f->graph->nnodes > SF_SMALL_STEP &&
           *slower_in_turns(f) * f->unlimited.seconds > FAR_BEYOND * f->known->worth;
}

/* More turns, *turns of what is tried, until it fits, as long as they help: by themselves, or with what can be computed
 * again. A step that cannot be cut so is left as it is. */
static void find_turns(fitting *f, int *microbatches, int most, bool recomputed)
{
    bool fits = false;
    int64_t before = recomputed ? f->least : f->unlimited.memory;
    for (*microbatches = fewest_turns(f, recomputed); *microbatches <= most && !fits;
         *microbatches *= 2) {
        if ((!recomputed && is_slow_in_turns(f)) ||
            (recomputed ? find_least(f, &fits) : try_first(f, 0, &fits)) != SF_OK)
            break;
        if (!recomputed) {
            note_turns(f);
            f->rest = left_behind(before, f->tried.memory);
        }
        if (!may_fit_yet(f, before, f->tried.memory) || !are_worth_turns(f))
            break;
        before = f->tried.memory;
    }
    *microbatches = 1;
}

/* Whether turns, however many, leave far more than there is room for: recompute in them does not help. */
static bool leave_too_much(const fitting *f)
{
    return f->graph->nnodes > SF_SMALL_STEP && f->rest > LITTLE * (double)f->options->memory;
}

/* Whether what takes so long without turns may be worth them: they make nothing faster. */
static bool may_be_worth(const fitting *f, double seconds)
{
    return f->graph->nnodes <= SF_SMALL_STEP || seconds < WORTH_TURNS * f->known->worth;
}

/* In turns: by themselves, and, where nothing else fits or what does takes far longer, with what can be computed again. No turns make
 * a plan faster than it is without a limit. */
static void find_in_turns(fitting *f, int *microbatches, int most)
{
    bool is_free = !f->options->recompute, is_small = f->graph->nnodes <= SF_SMALL_STEP;
    f->rest = 0;
    if (f->fits && !is_small && f->price.seconds < MUCH_LONGER * f->unlimited.seconds)
        return;
    if (may_be_worth(f, f->unlimited.seconds))
        find_turns(f, microbatches, most, !is_free);
    if (!is_small && (double)f->least > HELPS * (double)f->unlimited.memory &&
        (double)f->price.memory > LITTLE * (double)f->options->memory)
        return;
    if (is_free && may_be_worth(f, f->recomputed) && !leave_too_much(f) &&
        (!f->fits || f->price.seconds > FAR_LONGER * f->unlimited.seconds))
        find_turns(f, microbatches, most, true);
}

/* Both in turns, where neither alone does it, as long as that helps. */
static void find_in_both(fitting *f)
{
    bool helps = true;
    for (int shards = 2; shards <= MOST_SHARDS && !f->fits && helps; shards *= 2) {
        int64_t before = f->price.memory;
        f->at.shards = shards;
        find_in_turns(f, &f->at.microbatches, MOST_TURNS);
        helps = may_fit_yet(f, before, f->price.memory);
    }
    f->at.shards = 1;
}

/* Whether the other tells of a plan that takes as much memory as it is: what fits so takes about as long, or nothing fits, or they
 * are the same. One that is slower where it fits does not: turns may cost it what they do not cost this, such as gathers. */
static bool tells(const sf_fit_known *known, size_t at, const sf_price *price)
{
    double other = (double)known->unlimited[at].memory, fitted = known->fitted[at];
    return fitted == HUGE_VAL || WORTH_TURNS * fitted < known->unlimited[at].seconds ||
           fabs((double)price->memory - other) < SAME_PLAN * other;
}

/* Whether the plan as it is takes no less than one that was looked at, in time and in memory; or, where something fits, so little less
 * that this need not be looked at. */
static bool is_no_better(const fitting *f, size_t at)
{
    const sf_price *other = &f->known->unlimited[at];
    double less = fmax(SAME_MEMORY * (double)f->options->memory, SAME_PLAN * (double)other->memory);
    less = f->known->worth < HUGE_VAL ? less : 0;
    return f->price.seconds >= (1 - SAME_TIME) * other->seconds &&
           (double)f->price.memory >= (double)other->memory - less;
}

/* Whether one that was looked at tells of this all there is to know. */
static bool is_told(const fitting *f)
{
    bool is_told = false;
    for (size_t i = 0; i < f->known->count && f->graph->nnodes > SF_SMALL_STEP; i++)
        is_told = is_told || (is_no_better(f, i) && tells(f->known, i, &f->price));
    return is_told;
}

/* Whether it tells that no more is to be gained by recompute than it gained: that was what made it fit. */
static bool is_recomputed_by_text(const fitting *f)
{
    bool is_told = false;
    for (size_t i = 0; i < f->known->count && f->graph->nnodes > SF_SMALL_STEP; i++)
        is_told = is_told || (f->known->recomputed[i] && is_no_better(f, i));
    return is_told;
}

static void tell_others(fitting *f)
{
    sf_fit_known *known = f->known;
    if (known->count == SF_MOST_FITTED)
        return;
    if (known->count == 0)
        memset(known->slower, 0, sizeof known->slower);
    known->unlimited[known->count] = f->unlimited;
    known->recomputed[known->count] = false;
    known->fitted[known->count++] = HUGE_VAL;
    f->tells = true;
}

/* Layers in parts, where what fits takes far longer than it would without a limit; and where nothing fits that in turns. */
static sf_status find_in_parts(fitting *f, bool in_turns)
{
    bool fits;
    f->in_parts = true;
    f->most_together = 1;
    SF_TRY(find_least(f, &fits));
    f->least = f->tried.memory;
    if (!fits && !f->options->micro_batches && in_turns)
        find_turns(f, &f->at.microbatches, MOST_TURNS, true);
    return SF_OK;
}

/* What the user leaves open is tried, from what costs least on. */
static sf_status find_fit(fitting *f)
{
    const sf_search_options *o = f->options;
    bool is_free = !o->recompute, fits;
    SF_TRY(try_first(f, is_free ? 0 : f->count, &fits));
    f->unlimited = f->price;
    if (fits || f->price.seconds > f->known->worth || is_told(f))
        return SF_OK;
    bool by_turns = is_free && is_recomputed_by_text(f); /* alone */
    if (!by_turns)
        tell_others(f);
    f->least = f->tried.memory;
    f->recomputed = by_turns ? HUGE_VAL : 0;
    if (is_free && !by_turns) {
        SF_TRY(find_least(f, &fits));
        f->least = f->tried.memory;
        f->recomputed = f->tried.seconds;
    }
    bool leaves = false, leaves_in_shards = false;
    if (!o->micro_batches) {
        find_in_turns(f, &f->at.microbatches, MOST_TURNS);
        leaves = leave_too_much(f);
    }
    if (!o->co_shards) {
        find_in_turns(f, &f->at.shards, MOST_SHARDS);
        leaves_in_shards = leave_too_much(f);
    }
    if (!o->micro_batches && !o->co_shards && !(leaves && leaves_in_shards) && !by_turns)
        find_in_both(f);
    bool is_good = f->fits && f->price.seconds <= FAR_LONGER * f->unlimited.seconds;
    bool in_parts = !is_good && is_free && f->nlayers > 1 && may_be_worth(f, f->recomputed);
    return in_parts ? find_in_parts(f, !leaves && !f->fits) : SF_OK;
}

static void take_best_way(fitting *f)
{
    sf_plan *plan = f->plan;
    const char *marked = plan->recompute;
    put_in_way(plan, f->options, &f->best);
    if (plan->recomputed)
        plan->recomputed = sf_arena_copy(&plan->arena, plan->recomputed,
                                         f->graph->nnodes * sizeof *plan->recomputed);
    if (plan->recomputed_per_part)
        plan->recomputed_per_part =
            sf_arena_copy(&plan->arena, plan->recomputed_per_part,
                          f->graph->nnodes * sizeof *plan->recomputed_per_part);
    plan->recompute = !plan->recomputed ? "" : f->options->recompute ? marked : "auto";
}

sf_status sf_fit_in_time(const sf_graph *graph, const sf_search_options *options,
                         const sf_costs *costs, sf_fit_known *known, sf_plan *plan, sf_diag *diag,
                         sf_price *out, sf_group_runs *runs)
{
    fitting f = {.graph = graph,
                 .options = options,
                 .costs = costs,
                 .plan = plan,
                 .diag = diag,
                 .known = known,
                 .asked = {.microbatches = options->micro_batches > 1 ? options->micro_batches : 1,
                           .shards = options->co_shards > 1 ? options->co_shards : 1}};
    f.at = f.asked;
    *runs = (sf_group_runs){0};
    f.nlayers = sf_count_layers(graph);
    f.most_together = options->recompute ? 1 : f.nlayers / 2 + 1;
    sf_status status = mark_group(&f, 1);
    if (status == SF_OK)
        status = find_fit(&f);
    if (status == SF_OK)
        status = keep_more(&f);
    if (status == SF_OK) {
        *out = f.price;
        if (f.tells && f.fits) {
            known->fitted[known->count - 1] = f.price.seconds;
            known->recomputed[known->count - 1] =
                f.best.recomputed && f.best.microbatches == 1 && f.best.shards == 1;
        }
        take_best_way(&f);
    }
    *runs = f.runs;
    sf_arena_free(&f.arena);
    return status;
}
