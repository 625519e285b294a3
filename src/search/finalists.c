#include "search/finalists.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"
#include "base/units.h"
#include "local/rank.h"
#include "plan/pipeline/schedules.h"
#include "plan/recompute_policy.h"
#include "search/advice.h"
#include "search/candidate_table.h"
#include "search/climb.h"
#include "search/fit.h"
#include "search/offload_fallback.h"
#include "search/pipeline_search.h"
#include "search/price/estimate.h"
#include "search/specs/plan_queue.h"

/* Searches, until estimates of memory are right; and within lower limits, of which there are so many between one and its double. */
enum { MOST_TRIES = 4, MOST_LOWER = 3, LOWER_LIMITS = 32 };

/* Estimates of memory are held to so much of what would just fit. */
#define SAFE 0.99

/* A plan that does not fit is looked at again, to see what it takes to make it fit, where it may be faster than so much
 * of the one that fits. */
#define WORTH_TIME 0.97
#define WORTH_TIME_SMALL 0.99 /* of a small step, which is soon looked at */

/* Where all that was found takes more than so many times the memory, lower limits do not help. */
#define FAR_LARGER 1.1

typedef struct choosing {
    const sf_graph *graph;
    const sf_search_options *options; /* as they were given */
    sf_buf *misfit;
    sf_diag *diag;
    sf_plan *plan; /* the fastest so far that fits, or NULL */
    /* How plans may go on in time, see search/fit.h: as they are at first, then as they must to fit. */
    const char *recompute;
    int micro_batches, co_shards;
    double misfit_seconds;     /* of the fastest that does not fit, by its estimate; or HUGE_VAL */
    int lower;                 /* limits that may yet be tried where what is found is slow */
    sf_fit_known known;        /* of the search at hand */
    sf_found_plans last;       /* what the last search found: for a message, or the host */
    sf_group_runs runs;        /* of the plan, where they are known; */
    sf_group_runs found;       /* and of the best finalist of the search at hand */
    bool is_climbed, is_tuned; /* the plan: a climb from it was made, and changed it */
    double plain;              /* seconds of the plan before that */
} choosing;

/* What is computed again and in how many turns may be chosen. */
static bool may_take_time(const sf_search_options *options)
{
    return !options->recompute || options->micro_batches == 0 || options->co_shards == 0;
}

/* Finalists -------------------------------------------------------------------------------------- */

/* As it is known best. */
static const sf_price *price_of_candidate(const sf_candidate *c)
{
    return c->is_lowered ? &c->lowered : &c->at.price;
}

static double ranked_seconds(const sf_candidate *c)
{
    return c->handicap * price_of_candidate(c)->seconds;
}

/* To be faster than `best`, or NULL. *runs is to be freed. */
static sf_status lower_candidate(choosing *k, sf_candidate *c, const sf_candidate *best,
                                 sf_diag *diag, sf_group_runs *runs)
{
    sf_arena arena = {0};
    sf_costs *costs;
    *runs = (sf_group_runs){0};
    k->known.worth = best ? ranked_seconds(best) / c->handicap : HUGE_VAL;
    sf_status status = sf_mesh_costs(k->options->cluster, &c->at.plan->mesh, &arena, diag, &costs);
    sf_search_options options = *k->options;
    options.recompute = k->recompute;
    options.micro_batches = k->micro_batches;
    options.co_shards = k->co_shards;
    if (status == SF_OK)
        status = sf_fit_in_time(k->graph, &options, costs, &k->known, c->at.plan, diag, &c->lowered,
                                runs);
    c->is_lowered = status == SF_OK;
    c->is_out = !c->is_lowered;
    c->at.fits = c->is_lowered && sf_rank_fits(c->lowered.memory, k->options->memory);
    sf_arena_free(&arena);
    return status;
}

static double estimated_seconds(const sf_candidate *c)
{
    return c->handicap * c->at.price.seconds;
}

/* Whether a is to be lowered before b: what fits by its estimate, and the faster; of a large step of which neither fits, the smaller,
 * which is soon made to fit, and tells of others that they are not worth it. */
static bool goes_first(const choosing *k, const sf_candidate *a, const sf_candidate *b)
{
    if (a->at.fits != b->at.fits)
        return a->at.fits;
    if (!a->at.fits && k->graph->nnodes > SF_SMALL_STEP && a->at.price.memory != b->at.price.memory)
        return a->at.price.memory < b->at.price.memory;
    return estimated_seconds(a) < estimated_seconds(b);
}

/* Whether, of a large step, it neither fits nor is faster than the best, by estimates: what makes it fit takes time, too. */
static bool is_no_match(const choosing *k, const sf_candidate *c, const sf_candidate *best)
{
    return best && k->graph->nnodes > SF_SMALL_STEP && !c->at.fits &&
           estimated_seconds(c) >= estimated_seconds(best);
}

/* The finalist that is to be lowered next, if it may be faster than `best`. NULL: none. */
static sf_candidate *next_finalist(const choosing *k, const sf_found_plans *found,
                                   const sf_candidate *best)
{
    sf_candidate *next = NULL;
    double most = HUGE_VAL;
    if (best) /* what is estimated to be faster than the best turned out to be may be faster */
        most = fmax(found->near * estimated_seconds(best), ranked_seconds(best));
    for (size_t i = 0; i < found->count; i++) {
        sf_candidate *c = &found->candidates[i];
        if (!c->at.plan || c->is_lowered || c->is_out || estimated_seconds(c) > most ||
            is_no_match(k, c, best))
            continue;
        if (!next || goes_first(k, c, next))
            next = c;
    }
    return next;
}

/* What a program tells of a plan it tells of all that are the same. */
static void tell_same(sf_found_plans *found, const sf_candidate *lowered)
{
    for (size_t i = 0; i < found->count; i++) {
        sf_candidate *c = &found->candidates[i];
        if (c == lowered || c->is_lowered || !sf_candidates_are_same(c, lowered))
            continue;
        c->is_lowered = true;
        c->lowered = lowered->lowered;
        c->at.fits = lowered->at.fits;
    }
}

/* They replace those that were kept. */
static void keep_runs(sf_group_runs *kept, sf_group_runs *runs)
{
    sf_group_runs_free(kept);
    *kept = *runs;
    *runs = (sf_group_runs){0};
}

/* Lowers it once more, for the message. */
static sf_status tell_why_not(choosing *k, sf_candidate *c)
{
    sf_group_runs runs;
    sf_status status = lower_candidate(k, c, NULL, k->diag, &runs);
    sf_group_runs_free(&runs);
    return status;
}

/* Of those that are slower than the best by no more than the margin, one that takes far less memory. */
static sf_candidate *prefer_small(choosing *k, sf_found_plans *found, sf_candidate *best)
{
    const double far_less = 0.75;
    sf_candidate *least = best;
    for (size_t i = 0; best && i < found->count; i++) {
        sf_candidate *c = &found->candidates[i];
        if (c->is_lowered && c->at.plan && c->at.fits &&
            ranked_seconds(c) <= (1 + k->options->margin) * ranked_seconds(best) &&
            (double)c->lowered.memory <= far_less * (double)best->lowered.memory &&
            c->lowered.memory < least->lowered.memory)
            least = c;
    }
    if (least != best && k->options->margin > 0) {
        sf_group_runs_free(&k->found);
        k->found = (sf_group_runs){0};
        return least;
    }
    return best;
}

/* Lowers finalists until it is known which of those that fit is the best: *out, or NULL. Where none can go on in time as
 * the user wants, why the last of them cannot. */
static sf_status find_best_finalist(choosing *k, sf_found_plans *found, sf_candidate **out)
{
    sf_candidate *c, *cannot = NULL;
    bool any = false;
    *out = NULL;
    while (!found->has_no_room && (c = next_finalist(k, found, *out))) {
        sf_group_runs runs;
        bool is_lowered = lower_candidate(k, c, *out, NULL, &runs) == SF_OK;
        cannot = is_lowered ? cannot : c;
        any = any || is_lowered;
        if (is_lowered)
            tell_same(found, c);
        if (is_lowered && c->at.fits && (!*out || ranked_seconds(c) < ranked_seconds(*out))) {
            *out = c;
            keep_runs(&k->found, &runs);
        }
        sf_group_runs_free(&runs);
    }
    *out = prefer_small(k, found, *out);
    return any || !cannot ? SF_OK : tell_why_not(k, cannot);
}

/* The finalist that takes the least. All have been lowered where none fits. */
static sf_candidate *find_smallest(const sf_found_plans *found)
{
    sf_candidate *least = NULL;
    for (size_t i = 0; i < found->count; i++) {
        sf_candidate *c = &found->candidates[i];
        if (c->is_lowered && c->at.plan && (!least || c->lowered.memory < least->lowered.memory))
            least = c;
    }
    return least;
}

/* What is expected ------------------------------------------------------------------------------- */

/* Of what its programs say; alternatives are left to the caller. */
static sf_prediction *predict_plan(const choosing *k, const sf_price *price, double bound,
                                   sf_plan *plan)
{
    sf_prediction *predicted = SF_NEW(&plan->arena, sf_prediction);
    *predicted = (sf_prediction){.step = "",
                                 .cluster = "",
                                 .nodes = "",
                                 .cluster_hash = sf_cluster_hash(k->options->cluster),
                                 .seconds = price->seconds,
                                 .compute = price->compute,
                                 .exposed = price->exposed,
                                 .hidden = price->hidden,
                                 .traffic = price->traffic,
                                 .bound = bound,
                                 .memory = price->memory,
                                 .limit = k->options->limited ? k->options->memory : price->room,
                                 .margin = k->options->margin};
    plan->predicted = predicted;
    return predicted;
}

/* The plan of the candidate, which fits, becomes the answer if it is the fastest so far. */
static void take_plan(choosing *k, const sf_found_plans *found, sf_candidate *c)
{
    if (k->plan && k->plan->predicted->seconds <= c->lowered.seconds)
        return;
    sf_table_list(found, c->at.plan, predict_plan(k, &c->lowered, found->bound, c->at.plan));
    sf_plan_free(k->plan);
    k->plan = c->at.plan;
    k->is_climbed = k->is_tuned = false;
    c->at.plan = NULL;
    keep_runs(&k->runs, &k->found);
}

/* Nothing fits ----------------------------------------------------------------------------------- */

/* What was tried beside layouts. */
static void say_tried(const sf_search_options *options, sf_buf *out)
{
    const struct {
        bool tried;
        const char *how;
    } ways[] = {{!options->recompute, "everything recomputed that can be"},
                {!options->micro_batches, "the batch in micro-batches"},
                {!options->co_shards, "heads and features in chunks"},
                {!options->micro_batches && !options->co_shards, "both"}};
    const char *word = "not";
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (ways[i].tried) {
            sf_buf_printf(out, ", %s with %s", word, ways[i].how);
            word = "nor";
        }
}

static sf_status fail_misfit(const choosing *k, const sf_found_plans *found)
{
    const sf_candidate *smallest = find_smallest(found);
    const sf_origin *peak = &smallest->lowered.peak;
    sf_misfit misfit = {k->graph, k->options, smallest};
    sf_arena arena = {0};
    sf_advice advice;
    sf_buf text = {0}, tried = {0};
    say_tried(k->options, &tried);
    sf_fail(
        k->diag, SF_EMISMATCH, peak->loc,
        "no plan was found that fits in %s%s: a rank of the smallest that was found takes %s, by "
        "%s on %s, with its peak at %s in %s",
        sf_text_bytes((double)k->options->memory).at, tried.length > 0 ? tried.text : "",
        sf_text_bytes((double)smallest->lowered.memory).at, smallest->name, smallest->mesh,
        peak->op, *peak->scope ? peak->scope : "no scope");
    sf_advise(&misfit, &arena, &advice);
    sf_advice_text(&misfit, &advice, &text);
    if (k->misfit)
        sf_advice_json(&misfit, &advice, k->misfit);
    sf_status status = sf_hint(k->diag, "%s", text.text);
    sf_buf_free(&text);
    sf_buf_free(&tried);
    sf_arena_free(&arena);
    return status;
}

/* What fits with some of it on the host, and a word that it is so; or why nothing does. */
static sf_status take_on_host(choosing *k, sf_found_plans *found)
{
    sf_candidate *c = k->options->on_host ? sf_find_on_host(k->graph, k->options, found) : NULL;
    if (!c)
        return fail_misfit(k, found);
    sf_warn(k->diag, SF_NOWHERE,
            "no plan was found that fits in %s: this one brings what does not fit to memory of the "
            "host and back in every step, by passes %s",
            sf_text_bytes((double)k->options->memory).at, c->at.plan->passes.list);
    sf_group_runs_free(&k->found);
    take_plan(k, found, c);
    return SF_OK;
}

/* Searches --------------------------------------------------------------------------------------- */

/* Whether a search whose estimates are held to `memory` instead of `held` may find what is faster than the one
 * that was taken: one of which no more is known is faster, and fits by its estimate only now. */
static bool is_promising(const sf_found_plans *found, const sf_candidate *taken, int64_t held,
                         int64_t memory)
{
    for (size_t i = 0; i < found->count && memory > held; i++) {
        const sf_candidate *c = &found->candidates[i];
        const sf_price *price = &c->at.price;
        if (!c->is_lowered && !sf_rank_fits(price->memory, held) &&
            sf_rank_fits(price->memory, memory) && price->seconds <= taken->at.price.seconds)
            return true;
    }
    return false;
}

/* Takes the best of what was found with estimates held to *memory. Where a search held to another number may find
 * more, *again is set and *memory becomes that. */
static sf_status judge_finalists(choosing *k, sf_found_plans *found, int64_t *memory,
                                 bool *recomputed)
{
    bool fitted = found->count > 0 && found->candidates[0].at.fits;
    double held = (double)*memory, limit = (double)k->options->memory;
    sf_candidate *taken;
    SF_TRY(find_best_finalist(k, found, &taken));
    for (size_t i = 0; i < found->count; i++)
        if (!found->candidates[i].at.fits)
            k->misfit_seconds = fmin(k->misfit_seconds, ranked_seconds(&found->candidates[i]));
    if (!taken) {
        const sf_candidate *least = find_smallest(found);
        *recomputed = fitted && !k->plan;
        if (*recomputed)
            *memory = (int64_t)(SAFE * held * limit / (double)least->lowered.memory);
        return SF_OK;
    }
    double off = (double)taken->lowered.memory / (double)taken->at.price.memory;
    *memory = (int64_t)(SAFE * limit / off);
    *recomputed = !k->plan && is_promising(found, taken, (int64_t)held, *memory);
    take_plan(k, found, taken);
    return SF_OK;
}

/* Whether a plan that does not fit, as far as is known, may be faster than so much of what does. */
static bool is_slow(const choosing *k, double worth)
{
    return !k->plan || k->misfit_seconds <= worth * k->plan->predicted->seconds;
}

/* Searches within limits that hardly differ may end in plans that do: a search is no proof. So where what was found is slow, lower
 * limits are tried, which are the same ones for all limits: with more memory no less is found. Of a large step, only where
 * nothing is. */
static bool try_lower(choosing *k, const sf_found_plans *found, int64_t *memory)
{
    const sf_candidate *least = find_smallest(found);
    double limit = (double)k->options->memory, next = fmin((double)*memory, limit) - 1;
    if (k->lower == 0 || !is_slow(k, WORTH_TIME) || (k->plan && k->graph->nnodes > SF_SMALL_STEP) ||
        !least || (double)least->lowered.memory > FAR_LARGER * limit)
        return false;
    k->lower--;
    *memory = (int64_t)exp2(floor(LOWER_LIMITS * log2(next)) / LOWER_LIMITS);
    return *memory > 0;
}

/* Where there is a plan, what fails is only the attempt to find a better one. */
static sf_status search_once(choosing *k, sf_search_options *options, bool is_last,
                             bool *recomputed)
{
    sf_found_plans found;
    bool is_first = !k->plan;
    sf_diag *diag = k->diag;
    *recomputed = false;
    k->known.count = 0;
    options->known = k->plan ? k->plan->predicted->seconds : 0;
    k->diag = is_first ? diag : NULL;
    sf_status status = sf_search_plans(k->graph, options, k->diag, &found);
    if (status == SF_OK)
        status = judge_finalists(k, &found, &options->memory, recomputed);
    *recomputed =
        (*recomputed && !is_last) || (status == SF_OK && try_lower(k, &found, &options->memory));
    k->diag = diag;
    sf_found_plans_free(&k->last);
    k->last = found;
    return is_first ? status : SF_OK;
}

/* Searches until estimates of memory are right. */
static sf_status search_in_space(choosing *k, sf_search_options *held)
{
    bool recomputed = true;
    sf_status status = SF_OK;
    for (int tries = 1; recomputed && status == SF_OK; tries++) {
        status = search_once(k, held, tries >= MOST_TRIES, &recomputed);
        recomputed = recomputed && !(k->plan && held->deadline > 0 && sf_now() > held->deadline);
    }
    return status;
}

/* What does not fit as it is may be faster than what does, even with parts of it computed again. */
static sf_status search_in_time(choosing *k, sf_search_options *held)
{
    const sf_search_options *options = k->options;
    bool is_small = k->graph->nnodes <= SF_SMALL_STEP;
    if (!is_slow(k, is_small ? WORTH_TIME_SMALL : WORTH_TIME))
        return SF_OK;
    k->recompute = options->recompute;
    k->micro_batches = options->micro_batches;
    k->co_shards = options->co_shards;
    *held = *options;
    held->spares = true;
    held->level = 2; /* what more axes gain is less than what estimates do not know of time */
    return search_in_space(k, held);
}

/* What the plan has beside layouts may make it faster. */
static void climb(choosing *k)
{
    if (!k->plan || k->is_climbed)
        return;
    sf_prediction *was = k->plan->predicted;
    const sf_full_price *told = sf_climb(k->graph, k->options, k->plan, was->seconds, &k->runs);
    k->is_climbed = true;
    k->plain = was->seconds;
    if (!told)
        return;
    k->is_tuned = true;
    sf_table_copy(was, k->plan, predict_plan(k, &told->price, was->bound, k->plan));
    k->plan->predicted->simulated = told;
}

/* What another plan has to be faster than to be looked at: what the best was before a climb, as the other is. */
static double seconds_to_beat(const choosing *k)
{
    return !k->plan ? 0 : k->is_climbed ? k->plain : k->plan->predicted->seconds;
}

/* Whether the plan is a recipe that people know. */
static bool is_known(const choosing *k)
{
    return k->plan && *k->plan->recipe && !k->is_tuned;
}

/* Another plan, whose prediction is known, is the answer if it is faster after a climb; than a recipe that people know, by more than
 * the margin. */
static void challenge(choosing *k, sf_plan *plan, sf_group_runs *runs)
{
    choosing other = *k;
    double worth = is_known(k) ? 1 - k->options->margin : 1;
    other.plan = plan;
    other.runs = *runs;
    other.is_climbed = other.is_tuned = false;
    *runs = (sf_group_runs){0};
    climb(&other);
    bool wins = !k->plan || other.plan->predicted->seconds < worth * k->plan->predicted->seconds;
    sf_plan_free(wins ? k->plan : other.plan);
    sf_group_runs_free(wins ? &k->runs : &other.runs);
    if (wins)
        *k = other;
}

/* What is expected of a plan in stages, beside what else was looked at. */
static void predict_staged(const choosing *k, const sf_full_price *simulated, sf_plan *plan)
{
    const sf_prediction *known = k->plan ? k->plan->predicted : NULL;
    sf_prediction *predicted = predict_plan(k, &simulated->price, known ? known->bound : 0, plan);
    predicted->simulated = simulated;
    if (!known)
        return;
    sf_table_copy(known, plan, predicted);
}

/* In stages, where that is faster than the best so far, or nothing else fits. `only`: there is no other way, so why it fails is said. */
static sf_status search_in_stages(choosing *k, bool only)
{
    sf_plan *plan;
    const sf_full_price *simulated;
    sf_group_runs runs = {0};
    double worth = k->options->worth > 0 ? k->options->worth : HUGE_VAL;
    if (k->plan)
        worth = fmin(worth, seconds_to_beat(k));
    bool must = only && !k->plan;
    sf_status status = sf_search_pipes(k->graph, k->options, worth, must ? k->diag : NULL, &plan,
                                       &simulated, &runs);
    if (!plan)
        return must ? status : SF_OK;
    predict_staged(k, simulated, plan);
    challenge(k, plan, &runs);
    return SF_OK;
}

/* The pipeline that is asked for: "in 4 stages", "in stages by zb-v". */
static const char *say_stages(const sf_search_options *o, sf_buf *out)
{
    sf_buf_puts(out, "in ");
    if (o->stages > 1)
        sf_buf_printf(out, "%d ", o->stages);
    sf_buf_puts(out, "stages");
    if (o->schedule)
        sf_buf_printf(out, " by schedule %s", o->schedule);
    return out->text;
}

/* What was asked for beside stages, and does not go with them. */
static sf_status refuse_stages(const choosing *k)
{
    const sf_search_options *o = k->options;
    sf_buf asked = {0};
    const char *why = o->cluster->ndevices < 2
                          ? "the cluster has one device"
                          : "the first axis of the mesh that is given is not called pipe";
    sf_fail(k->diag, SF_EUSAGE, SF_NOWHERE, "no plan %s is searched for: %s", say_stages(o, &asked),
            why);
    sf_buf_free(&asked);
    return SF_EUSAGE;
}

/* The numbers of stages that the schedule runs on groups of equally many devices; whether that which is asked for is one. */
static bool list_stages(const sf_search_options *o, sf_buf *out)
{
    sf_schedule_kind kind;
    bool is_one = false;
    if (!o->schedule || sf_schedule_parse(o->schedule, &kind, NULL) != SF_OK)
        return true;
    for (uint32_t groups = 2; groups <= (uint32_t)o->cluster->ndevices; groups++) {
        if ((uint32_t)o->cluster->ndevices % groups != 0)
            continue;
        uint32_t stages = sf_schedule_stages(kind, groups);
        is_one = is_one || stages == (uint32_t)o->stages;
        sf_buf_printf(out, "%s%" PRIu32, out->length > 0 ? ", " : "", stages);
    }
    return is_one;
}

static sf_status fail_stages(const choosing *k)
{
    const sf_search_options *o = k->options;
    sf_buf list = {0}, asked = {0};
    say_stages(o, &asked);
    if (o->stages > 1 && !list_stages(o, &list))
        sf_fail(k->diag, SF_EMISMATCH, SF_NOWHERE,
                "no plan in %d stages was found: on pipeline ranks that divide %d devices evenly, "
                "schedule %s runs %s",
                o->stages, o->cluster->ndevices, o->schedule, list.text);
    else
        sf_fail(k->diag, SF_EMISMATCH, SF_NOWHERE,
                "no plan %s was found: as many groups as divide %d devices evenly run them, and a "
                "rank has to fit in %s",
                asked.text, o->cluster->ndevices, sf_text_bytes((double)o->memory).at);
    sf_buf_free(&list);
    sf_buf_free(&asked);
    return SF_EMISMATCH;
}

/* A row that was found to be faster than the answer is the answer. */
static void take_row(choosing *k, const sf_price *price, sf_plan *plan, sf_group_runs *runs)
{
    sf_prediction *predicted = predict_plan(k, price, k->plan->predicted->bound, plan);
    sf_table_copy(k->plan->predicted, plan, predicted);
    sf_plan_free(k->plan);
    k->plan = plan;
    k->is_climbed = k->is_tuned = false;
    keep_runs(&k->runs, runs);
}

/* Until no estimate is better than what was simulated. What cannot be simulated, or not in time, is not told of. */
static void settle_table(choosing *k)
{
    const sf_search_options *options = k->options;
    int row;
    k->known = (sf_fit_known){0};
    while ((row = sf_table_claim(k->plan->predicted, k->plan->predicted->seconds)) >= 0) {
        sf_plan *plan = NULL;
        sf_price price;
        sf_group_runs runs = {0};
        sf_alternative *at = &k->plan->predicted->alternatives[row];
        bool late = options->deadline > 0 && sf_now() > options->deadline;
        k->known.worth = k->plan->predicted->seconds;
        if (late ||
            sf_table_simulate(k->graph, options, &k->known, at, &plan, &price, &runs) != SF_OK) {
            sf_table_drop(k->plan->predicted, row);
        } else if (at->fits && at->seconds < k->plan->predicted->seconds) {
            take_row(k, &price, plan, &runs);
            plan = NULL;
        }
        sf_group_runs_free(&runs);
        sf_plan_free(plan);
    }
}

/* What a specification says without layouts of its own may be faster, or fit where nothing else does. */
static void search_specs(choosing *k)
{
    enum { WIDTH = 4, BUDGET = 120 };
    const sf_search_options *o = k->options;
    sf_queue_found found;
    sf_group_runs none = {0};
    if (!o->rules || o->recipes_only || o->groups > 1)
        return;
    sf_search_queue(k->graph,
                    &(sf_queue_options){.cluster = o->cluster,
                                        .target = o->target,
                                        .rules = o->rules,
                                        .memory = o->limited ? o->memory : 0,
                                        .known = seconds_to_beat(k),
                                        .width = WIDTH,
                                        .budget = o->level == 2 ? BUDGET / 2 : BUDGET,
                                        .deadline = o->deadline,
                                        .interrupt = o->audience.interrupt,
                                        .threads = o->threads},
                    &found);
    if (o->spent)
        o->spent->programs += found.simulated;
    if (!found.plan)
        return;
    sf_prediction *predicted = predict_plan(
        k, &found.price, k->plan ? k->plan->predicted->bound : k->last.bound, found.plan);
    if (k->plan)
        sf_table_copy(k->plan->predicted, found.plan, predicted);
    else
        sf_table_list(&k->last, found.plan, predicted);
    challenge(k, found.plan, &none);
}

/* Ranks of the plan are right, and what its programs say is told. */
static sf_status check_chosen(choosing *k)
{
    const sf_search_options *options = k->options;
    sf_arena arena = {0};
    sf_costs *costs;
    sf_status status = sf_mesh_costs(options->cluster, &k->plan->mesh, &arena, k->diag, &costs);
    if (status == SF_OK && k->runs.count == 0)
        status = sf_group_runs_new(k->graph, k->plan, options->target, costs, k->diag, &k->runs);
    if (status == SF_OK && !k->plan->predicted->simulated) {
        k->runs.at[0].costs = costs; /* those that it was lowered with are gone */
        k->plan->predicted->simulated = sf_tell_groups(&k->runs, costs, &k->plan->arena);
    }
    if (status == SF_OK)
        status = sf_group_runs_check(&k->runs, options->threads, k->diag);
    sf_arena_free(&arena);
    return status;
}

/* What is on the host part of the time in all ranks may be so in stages as well. */
static sf_status search_in_stages_on_host(choosing *k)
{
    const sf_search_options *options = k->options;
    sf_search_options hosted = *options;
    sf_arena arena = {0};
    const char *passes = k->plan->passes.list;
    hosted.passes = sf_arena_string(&arena, passes, strlen(passes));
    k->options = &hosted;
    sf_status status = search_in_stages(k, false);
    k->options = options;
    sf_arena_free(&arena);
    return status;
}

/* The efforts of the step are known. */
static sf_status choose_with(const sf_graph *graph, const sf_search_options *options,
                             sf_buf *misfit, sf_diag *diag, sf_plan **out)
{
    choosing k = {.graph = graph, .options = options, .misfit = misfit, .diag = diag};
    sf_search_options held = *options;
    bool may = may_take_time(options);
    k.misfit_seconds = HUGE_VAL;
    k.lower = may ? 0 : MOST_LOWER;
    k.recompute = options->recompute ? options->recompute : options->as_text ? "text" : "none";
    k.micro_batches = options->micro_batches ? options->micro_batches : 1;
    k.co_shards = options->co_shards ? options->co_shards : 1;
    held.impatient = may;
    held.spares = strcmp(k.recompute, "text") == 0 ? sf_text_has_recompute(graph)
                                                   : strcmp(k.recompute, "none") != 0;
    held.spares = held.spares || options->co_shards > 1;
    held.recompute = k.recompute;
    bool staged = options->stages != 1 && sf_may_pipe(options),
         only = options->stages > 1 || options->only_stages ||
                (staged && sf_mesh_is_piped(options->mesh));
    if (only && !staged)
        return refuse_stages(&k);
    sf_status status = only ? SF_OK : search_in_space(&k, &held);
    if (status == SF_OK && may && !only)
        status = search_in_time(&k, &held);
    if (status == SF_OK && k.plan)
        settle_table(&k);
    if (status == SF_OK) {
        climb(&k);
        search_specs(&k);
    }
    if (status == SF_OK && staged)
        status = search_in_stages(&k, only);
    bool is_hosted = status == SF_OK && !k.plan && !only;
    if (status == SF_OK && !k.plan)
        status = only ? fail_stages(&k) : take_on_host(&k, &k.last);
    if (status == SF_OK && staged && is_hosted)
        status = search_in_stages_on_host(&k);
    sf_found_plans_free(&k.last);
    if (status == SF_OK) {
        settle_table(&k);
        climb(&k);
        sf_table_finish(k.plan, k.is_tuned);
        status = check_chosen(&k);
    }
    sf_group_runs_free(&k.runs);
    sf_group_runs_free(&k.found);
    if (status != SF_OK)
        sf_plan_free(k.plan);
    *out = status == SF_OK ? k.plan : NULL;
    return status;
}

sf_status sf_choose_plan(const sf_graph *graph, const sf_search_options *options, sf_buf *misfit,
                         sf_diag *diag, sf_plan **out)
{
    sf_arena arena = {0};
    sf_search_options own = *options;
    if (!own.efforts)
        own.efforts = sf_efforts_new(graph, own.target, &arena);
    sf_status status = choose_with(graph, &own, misfit, diag, out);
    sf_arena_free(&arena);
    return status;
}
