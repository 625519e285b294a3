/* Verifies a plan: every rank compares its shards with the same part of the unsplit results. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "api/api_options.h"
#include "api/run_ranks.h"
#include "api/verify/compare.h"
#include "api/verify/findings.h"
#include "api/verify/noise_range.h"
#include "api/verify/unsplit.h"
#include "api/verify/verify.h"
#include "base/guard.h"
#include "base/listen.h"
#include "base/mem.h"
#include "base/units.h"
#include "front/lost_state.h"
#include "local/local.h"
#include "local/rank.h"
#include "pass/agree_passes.h"
#include "prog/check_program.h"
#include "run/comm/rank_agreement.h"
#include "run/runner.h"
#include "sheaf/version.h"
#include "train/rank_shards.h"

/* A shrunk step is tried for fewer: every step is judged by itself. */
enum { DEFAULT_STEPS = 10, DEFAULT_SHRUNK_STEPS = 3 };

/* State shared by the ranks of this process. */
struct shared {
    sf_plan_trial trial;
    sf_verify_options options;
    sf_diag *diag;
    sf_threads *pool;        /* of the unsplit run */
    int64_t memory;          /* for it, and for each rank */
    sf_unsplit unsplit;      /* the leader writes, the others read after the next agreement */
    const sf_program *first; /* the leader's, of its split run, written like `unsplit` */
    sf_tensor *ours;         /* results of the last step, put together from all ranks */
    sf_noise_range noise;    /* of the step at hand, written like `unsplit` */
    sf_unstable *unstable;   /* by result, from the deviations */
    double *loss_noise;      /* by step, relative; likewise */
    bool moved;              /* a step of the unsplit run has changed a parameter; likewise */
    int steps;
    sf_owned_report *out;   /* the leader fills it in */
    sf_precision precision; /* of ranks */
    bool approximate;       /* passes of the plan make it another training, near this one */
    bool narrow;            /* numbers of few bits are computed with, or sent */
};

struct rank {
    struct shared *shared;
    sf_comm *comm;
    sf_diag *diag;
    bool leads; /* in its process */
    sf_threads *pool;
    sf_arena arena, scratch;
    sf_rank_shards shards; /* of arguments */
    sf_local *local;
    sf_runner runner;
    sf_held *held;        /* by result */
    sf_difference *worst; /* by result, of the steps so far */
    int nlosses;
    double *losses, *expected;
};

static const sf_layout *result_layout(const struct rank *r, uint32_t result)
{
    return &r->shared->trial.plan->results[result];
}

static sf_status agree(struct rank *r, sf_status status, const char *what)
{
    return sf_agree(r->comm, status, what, r->diag);
}

static sf_status start_unsplit(struct rank *r)
{
    struct shared *shared = r->shared;
    return sf_runner_open(shared->trial.reference, &shared->noise.options, r->diag,
                          &shared->unsplit.runner);
}

static sf_status rewrite(void *context, sf_program *program, sf_diag *diag)
{
    struct rank *r = context;
    return sf_rewrite_together(r->shared->trial.plan, r->comm, program, diag);
}

/* Ranks run on GPUs if the options request that, and are then compared with the step on the CPU. */
static bool ranks_have_gpus(const struct shared *shared)
{
    return strcmp(shared->options.engine, "cuda") == 0;
}

static sf_status start_split(struct rank *r)
{
    struct shared *shared = r->shared;
    sf_runner_options options = {.engine = ranks_have_gpus(shared) ? "cuda" : NULL,
                                 .mesh = &shared->trial.plan->mesh,
                                 .rank = r->shards.rank,
                                 .check = shared->options.check,
                                 .rewrite = *shared->trial.plan->passes.list ? rewrite : NULL,
                                 .context = r,
                                 .with = {.pool = r->pool,
                                          .memory = shared->memory,
                                          .device_memory = shared->options.device_memory,
                                          .precision = shared->precision,
                                          .comm = r->comm}};
    SF_TRY(
        sf_local_new(shared->trial.graph, shared->trial.plan, r->shards.rank, r->diag, &r->local));
    if (shared->trial.spoil)
        shared->trial.spoil(shared->trial.context, r->local, r->shards.rank);
    SF_TRY(sf_runner_open(r->local->graph, &options, r->diag, &r->runner));
    if (r->leads)
        shared->first = r->runner.program;
    return SF_OK;
}

/* Whether the ranks would wait for each other. Groups of a pipeline have programs of their own: their messages are matched
 * in the plan, by one for all. */
static sf_status check_together(const struct rank *r)
{
    const struct shared *shared = r->shared;
    if (sf_plan_groups(shared->trial.plan) == 1)
        return sf_program_match(shared->first, r->runner.program, r->diag);
    return r->leads ? sf_check_plan(shared->trial.graph, shared->trial.plan, NULL,
                                    r->runner.program->target, NULL, r->diag)
                    : SF_OK;
}

static sf_status cut_argument(const struct rank *r, uint32_t argument)
{
    const sf_tensor *whole = &r->shared->unsplit.split[argument];
    sf_tensor shard;
    SF_TRY(sf_engine_lend(r->runner.engine, argument, true, r->diag, &shard));
    sf_cut_shard(sf_rank_shards_runs(&r->shards, argument), sf_dtype_get(whole->type->dtype)->bytes,
                 whole->data, shard.data);
    return sf_engine_give_back(r->runner.engine, argument, r->diag);
}

static sf_status get_ready(struct rank *r)
{
    struct shared *shared = r->shared;
    const sf_block *top = shared->trial.graph->top;
    SF_TRY(agree(r, r->leads ? start_unsplit(r) : SF_OK, "starting the unsplit run"));
    int rank = sf_comm_rank(r->comm);
    r->shards = (sf_rank_shards){shared->trial.graph, shared->trial.plan->mesh, rank,
                                 shared->trial.plan->arguments};
    SF_TRY(agree(r, start_split(r), "starting the split run"));
    if (shared->options.check)
        SF_TRY(check_together(r));
    for (uint32_t i = 0; i < top->narguments; i++)
        SF_TRY(cut_argument(r, i));
    r->held = SF_ARRAY(&r->arena, top->nresults, sf_held);
    r->worst = SF_ARRAY(&r->arena, top->nresults, sf_difference);
    r->losses = SF_ARRAY(&r->arena, shared->steps, double);
    r->expected = SF_ARRAY(&r->arena, shared->steps, double);
    return SF_OK;
}

static sf_status run_split(struct rank *r)
{
    const sf_graph *graph = r->shared->trial.graph;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].next == SF_NONE)
            SF_TRY(cut_argument(r, i));
    SF_TRY(sf_engine_step(r->runner.engine, r->diag));
    for (uint32_t i = 0; i < graph->top->nresults; i++) {
        sf_tensor shard;
        SF_TRY(sf_engine_see(r->runner.engine, i, r->diag, &shard));
        r->held[i] = (sf_held){sf_runs_of(result_layout(r, i), &r->shards.mesh, r->shards.rank,
                                          sf_result_type(graph, i)),
                               shard.data};
    }
    return SF_OK;
}

static sf_status put_together(struct rank *r)
{
    const sf_graph *graph = r->shared->trial.graph;
    sf_rank_shards results = {graph, r->shards.mesh, r->shards.rank,
                              r->shared->trial.plan->results};
    for (uint32_t i = 0; i < graph->top->nresults; i++) {
        const sf_tensor *whole = &r->shared->ours[i];
        SF_TRY(sf_rank_shards_join(&results, i, r->held[i].data, whole->type, whole->data, r->comm,
                                   r->diag));
    }
    return SF_OK;
}

static sf_comparison comparison_of(const struct shared *shared)
{
    return (sf_comparison){
        .graph = shared->trial.graph,
        .arguments = shared->unsplit.split,
        .theirs = shared->unsplit.theirs,
        .tolerance = sf_tolerance_of(shared->narrow, shared->precision, shared->options.tolerance),
        .unstable = shared->noise.pairs > 0 ? shared->unstable : NULL,
        .on_average = shared->narrow,
    };
}

/* The leader: another pair of noisy runs from the state at hand. */
static sf_status add_noise(struct rank *r)
{
    struct shared *shared = r->shared;
    SF_TRY(sf_noise_range_widen(&shared->noise, shared->unsplit.split, shared->unsplit.theirs,
                                r->diag));
    sf_comparison comparison = comparison_of(shared);
    sf_find_unstable(&comparison, shared->noise.at, &r->scratch, shared->unstable);
    return SF_OK;
}

/* Over all ranks, each with its shards. Differences past the tolerance trigger noisy runs, until
 * these explain them or there were enough of them; without a difference there are none. */
static sf_status compare_held(struct rank *r, sf_difference *differences)
{
    struct shared *shared = r->shared;
    for (int pairs = 0;; pairs++) {
        sf_comparison comparison = comparison_of(shared);
        comparison.ours = shared->ours;
        comparison.held = r->held;
        sf_compare(&comparison, &r->scratch, differences);
        bool more = !sf_all_hold(shared->trial.graph, differences) &&
                    pairs < sf_noise_range_pairs(&shared->noise) &&
                    !(shared->options.tolerance > 0);
        SF_TRY(sf_agree_any(r->comm, SF_OK, "comparing results", r->diag, &more));
        if (!more)
            return SF_OK;
        SF_TRY(agree(r, r->leads ? add_noise(r) : SF_OK, "a step with noise"));
    }
}

static void keep_worst(struct rank *r, sf_difference *differences, int step)
{
    for (uint32_t i = 0; i < r->shared->trial.graph->top->nresults; i++) {
        differences[i].step = step;
        if (step == 0)
            r->worst[i] = differences[i];
        sf_keep_worse(&r->worst[i], &differences[i]);
    }
}

static sf_status compare(struct rank *r, int step)
{
    const struct shared *shared = r->shared;
    uint32_t count = shared->trial.graph->top->nresults;
    sf_difference *differences = SF_ARRAY(&r->scratch, count, sf_difference);
    sf_tensor loss;
    SF_TRY(compare_held(r, differences));
    keep_worst(r, differences, step);
    SF_TRY(sf_engine_see(r->runner.engine, shared->unsplit.loss, r->diag, &loss));
    r->losses[step] = sf_get_f64(&loss, 0);
    r->expected[step] = shared->unsplit.own_loss;
    r->nlosses = step + 1;
    if (r->leads) {
        shared->out->report.losses[step] = r->losses[step];
        shared->out->report.expected_losses[step] = r->expected[step];
    }
    return SF_OK;
}

/* *stop: a listener of one of the processes wants no more steps. */
static sf_status tell_step(struct rank *r, int step, bool *stop)
{
    const struct shared *shared = r->shared;
    sf_event event = {.size = sizeof event,
                      .kind = SF_EVENT_STEP,
                      .rank = r->shards.rank,
                      .step = step + 1,
                      .steps = shared->steps,
                      .loss = shared->unsplit.own_loss};
    const sf_verify_options *options = &shared->options;
    sf_audience audience = {options->listener, options->context, options->interrupt};
    *stop = r->leads && !sf_tell(&audience, &event);
    SF_TRY(sf_agree_any(r->comm, SF_OK, "whether to stop", r->diag, stop));
    if (r->leads)
        shared->out->report.nlosses = step + 1;
    return SF_OK;
}

/* Whether the step of the unsplit run changes a parameter; true where none could be. */
static bool has_moved(const struct shared *shared)
{
    const sf_graph *graph = shared->trial.reference;
    bool any = false;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        uint32_t next = graph->arguments[i].next;
        if (graph->arguments[i].role != SF_ROLE_PARAM || next == SF_NONE)
            continue;
        any = true;
        if (memcmp(shared->unsplit.split[i].data, shared->unsplit.theirs[next].data,
                   (size_t)sf_type_bytes(shared->unsplit.theirs[next].type)) != 0)
            return true;
    }
    return !any;
}

static sf_status make_step(struct rank *r, int step, bool *stop)
{
    struct shared *shared = r->shared;
    sf_status status = r->leads ? sf_unsplit_batch(&shared->unsplit, step, r->diag) : SF_OK;
    SF_TRY(agree(r, status, "the batch of a step"));
    SF_TRY(agree(r, run_split(r), "a step"));
    SF_TRY(put_together(r));
    if (r->leads) {
        sf_noise_range_clear(&shared->noise);
        status = sf_unsplit_step(&shared->unsplit, step == 0, r->diag);
    }
    SF_TRY(agree(r, status, "the step of the unsplit run"));
    SF_TRY(agree(r, compare(r, step), "comparing results"));
    if (r->leads) {
        shared->moved = shared->moved || has_moved(shared);
        sf_unsplit_follow(&shared->unsplit, shared->ours);
    }
    return tell_step(r, step, stop);
}

/* The leader: the deviation of losses of runs that have noise in every step. */
static sf_status spread_losses(struct rank *r, sf_tensor *results)
{
    struct shared *shared = r->shared;
    for (int run = 0; run < 2 * sf_noise_range_pairs(&shared->noise); run++) {
        SF_TRY(sf_unsplit_restart(&shared->unsplit, &r->scratch, r->diag));
        for (int step = 0; step < r->nlosses; step++) {
            SF_TRY(sf_unsplit_batch(&shared->unsplit, step, r->diag));
            SF_TRY(
                sf_noise_range_run(&shared->noise, shared->unsplit.split, run, results, r->diag));
            double loss = sf_get_f64(&results[shared->unsplit.loss], 0);
            double error = sf_relative_error(loss, r->expected[step], 0x1p-126);
            shared->loss_noise[step] = fmax(shared->loss_noise[step], error);
            sf_unsplit_follow(&shared->unsplit, results);
        }
    }
    return SF_OK;
}

static sf_finding worst_loss(const struct rank *r)
{
    const struct shared *shared = r->shared;
    double given = shared->options.loss_tolerance;
    double plain = given > 0 ? given : shared->narrow ? 2e-2 : 1e-5;
    return sf_worst_loss(r->nlosses, r->losses, r->expected, shared->loss_noise, plain);
}

static sf_status judge_losses(struct rank *r, sf_finding *out)
{
    const struct shared *shared = r->shared;
    *out = worst_loss(r);
    bool noise = out->error > out->tolerance && !(shared->options.loss_tolerance > 0);
    SF_TRY(sf_agree_any(r->comm, SF_OK, "comparing losses", r->diag, &noise));
    if (!noise)
        return SF_OK;
    sf_tensor *results = SF_ARRAY(&r->scratch, shared->trial.graph->top->nresults, sf_tensor);
    SF_TRY(agree(r, r->leads ? spread_losses(r, results) : SF_OK, "runs with noise"));
    *out = worst_loss(r);
    return SF_OK;
}

static sf_status share_findings(struct rank *r)
{
    sf_finding loss;
    SF_TRY(judge_losses(r, &loss));
    sf_verify_report *report = r->leads ? &r->shared->out->report : NULL;
    if (report)
        report->noisy_runs = r->shared->noise.runs;
    return sf_findings_share(r->comm, r->shared->trial.graph->top->nresults, r->worst, loss,
                             &r->scratch, r->diag, report);
}

/* Ranks on several hosts may see other files under the same names, and have other processors. */
static sf_status check_same(struct rank *r)
{
    const struct shared *shared = r->shared;
    char arithmetic[SF_ARITHMETIC], step[24], steps[24];
    snprintf(step, sizeof step, "%016" PRIx64, sf_graph_hash(shared->trial.graph));
    snprintf(steps, sizeof steps, "%d", shared->steps);
    const sf_agree_thing things[] = {
        {"version of Sheaf", SF_VERSION},
        {"step", step},
        {"number of steps", steps},
        {"vector set (SHEAF_VEC) and library", sf_engine_arithmetic(NULL, arithmetic)},
    };
    return sf_agree_things(r->comm, things, sizeof things / sizeof *things, r->diag);
}

static sf_status verify_rank(struct rank *r)
{
    SF_TRY(agree(r, check_same(r), "what to do"));
    SF_TRY(agree(r, get_ready(r), "getting ready"));
    bool stop = false;
    for (int step = 0; step < r->shared->steps && !stop; step++) {
        sf_mark mark = sf_arena_mark(&r->scratch);
        SF_TRY(make_step(r, step, &stop));
        sf_arena_reset(&r->scratch, mark);
    }
    return share_findings(r);
}

static void close_unsplit(struct shared *shared)
{
    sf_runner_close(&shared->unsplit.runner);
    sf_noise_range_close(&shared->noise);
}

static sf_status guarded_rank(void *context)
{
    struct rank *r = context;
    sf_status status = verify_rank(r);
    sf_runner_close(&r->runner);
    sf_local_free(r->local);
    if (r->leads)
        close_unsplit(r->shared);
    sf_arena_free(&r->arena);
    sf_arena_free(&r->scratch);
    return status;
}

static sf_status rank_work(void *context, sf_comm *comm, sf_diag *diag)
{
    struct rank r = {.shared = context, .comm = comm, .diag = diag};
    r.leads = sf_comm_leads(comm);
    SF_TRY(sf_threads_open(sf_rank_threads(r.shared->options.threads, comm), diag, &r.pool));
    if (r.leads)
        r.shared->out->report.rank = sf_comm_rank(comm);
    sf_status status = sf_guarded(guarded_rank, &r, diag);
    sf_threads_free(r.pool);
    return status;
}

static sf_status choose_steps(struct shared *shared)
{
    int wanted = shared->options.steps, there = sf_unsplit_count(&shared->unsplit);
    int usual = shared->options.shrunk ? DEFAULT_SHRUNK_STEPS : DEFAULT_STEPS;
    shared->steps = wanted ? wanted : there < usual ? there : usual;
    if (shared->steps < 1)
        return sf_fail(shared->diag, SF_EUSAGE, SF_NOWHERE, "there are no steps to compare");
    if (shared->steps > there)
        return sf_fail(shared->diag, SF_EINPUT, (sf_loc){shared->options.against, 0, 0},
                       "%d steps were asked for, but there are batches for %d", shared->steps,
                       there);
    return SF_OK;
}

/* Before anything is drawn: the unsplit step, the same with noise, and the ranks are there beside each other. */
static sf_status check_size(struct shared *shared)
{
    const sf_block *top = shared->trial.graph->top;
    int64_t bytes = 0;
    for (uint32_t i = 0; i < top->narguments; i++)
        bytes += sf_type_bytes(sf_type_of(shared->trial.graph, top->arguments[i]));
    shared->memory = sf_rank_memory(0, sf_plan_ranks(shared->trial.plan) + 2);
    if (shared->memory == 0 || bytes <= shared->memory)
        return SF_OK;
    sf_fail(
        shared->diag, SF_ENOMEM, SF_NOWHERE,
        "the arguments of the step alone are %s; the unsplit step and each of %d ranks can have %s "
        "here",
        sf_text_bytes((double)bytes).at, sf_plan_ranks(shared->trial.plan),
        sf_text_bytes((double)shared->memory).at);
    return sf_hint(shared->diag, "the step shrunk to small dimensions can be compared instead");
}

/* All memory that ranks share, and the report. */
static sf_status prepare(void *context)
{
    struct shared *shared = context;
    uint32_t count = shared->trial.graph->top->nresults;
    SF_TRY(sf_plan_expect(shared->trial.plan, shared->trial.graph, shared->diag));
    SF_TRY(check_size(shared));
    SF_TRY(
        sf_unsplit_open(shared->trial.reference, &shared->options, shared->diag, &shared->unsplit));
    SF_TRY(choose_steps(shared));
    sf_runner_options options = {.engine = ranks_have_gpus(shared) ? NULL : shared->options.engine,
                                 .with = {.pool = shared->pool, .memory = shared->memory}};
    sf_noise_range_init(shared->trial.reference, &options, &shared->unsplit.arena, &shared->noise);
    shared->approximate = sf_plan_is_approximate(shared->trial.plan);
    shared->noise.precision = shared->approximate ? SF_PRECISION_BF16 : shared->precision;
    shared->narrow = shared->approximate || sf_is_narrow(shared->trial.graph, shared->precision);
    shared->unstable = SF_ARRAY(&shared->unsplit.arena, count, sf_unstable);
    shared->loss_noise = SF_ARRAY(&shared->unsplit.arena, shared->steps, double);
    shared->ours = SF_ARRAY(&shared->unsplit.arena, count, sf_tensor);
    for (uint32_t i = 0; i < count; i++) {
        const sf_type *type = sf_result_type(shared->trial.graph, i);
        shared->ours[i] = (sf_tensor){
            .type = type,
            .data = sf_arena_alloc(&shared->unsplit.arena, (size_t)sf_type_bytes(type))};
    }
    sf_owned_report *out = shared->out = sf_alloc(sizeof *out);
    out->report =
        (sf_verify_report){.size = sizeof(sf_verify_report),
                           .worst = -1,
                           .losses = SF_ARRAY(&out->arena, shared->steps, double),
                           .expected_losses = SF_ARRAY(&out->arena, shared->steps, double),
                           .ranks = sf_plan_ranks(shared->trial.plan),
                           .approximate = shared->approximate};
    sf_difference *results = sf_report_results(out, count);
    for (uint32_t i = 0; i < count; i++)
        results[i].name = sf_result_name(shared->trial.graph, i, &out->arena);
    return SF_OK;
}

/* Two runs that change nothing agree, whatever their gradients are. */
static void warn_unmoved(const struct shared *shared)
{
    if (shared->moved || shared->out->report.rank != 0)
        return;
    sf_warn(shared->diag, SF_NOWHERE,
            "no parameter changes in the steps that were compared: that puts gradients and updates "
            "to no test");
    sf_hint(shared->diag, "state that must not start at zero, such as a scale of the loss, has its "
                          "values from --against or --init; a rate that rises from zero takes more "
                          "steps");
}

static sf_status run_ranks(struct shared *shared, sf_verify_report **out)
{
    sf_verify_report *report = &shared->out->report;
    sf_world world = {.ranks = report->ranks,
                      .limit = shared->options.limit,
                      .work = rank_work,
                      .context = shared};
    sf_status status = sf_world_run(&world, shared->diag);
    if (status != SF_OK) {
        sf_verify_free(report);
        return status;
    }
    *out = report;
    warn_unmoved(shared);
    /* One of several processes says it for all. */
    return sf_judge(report, report->rank == 0 ? shared->diag : NULL);
}

sf_status sf_verify_trial(const sf_plan_trial *trial, const sf_verify_options *options,
                          sf_diag *diag, sf_verify_report **out)
{
    struct shared shared = {.trial = *trial, .options = *options, .diag = diag};
    *out = NULL;
    SF_CHECK_OPTIONS(diag, {"tolerance", options->tolerance},
                     {"loss_tolerance", options->loss_tolerance}, {"threads", options->threads},
                     {"limit", options->limit});
    SF_TRY(sf_precision_find(options->precision, diag, &shared.precision));
    SF_TRY(sf_engine_choose(options->engine, diag, &shared.options.engine));
    SF_TRY(sf_threads_open(options->threads, diag, &shared.pool));
    sf_status status = sf_guarded(prepare, &shared, diag);
    if (status == SF_OK) {
        status = run_ranks(&shared, out);
        sf_unsplit_close(&shared.unsplit);
    } else if (status != SF_ENOMEM) {
        sf_unsplit_close(&shared.unsplit);
    }
    sf_threads_free(shared.pool);
    sf_warn_loose(trial->graph, diag);
    return status;
}

sf_status sf_verify_plan(const sf_graph *graph, const sf_plan *plan,
                         const sf_verify_options *options, sf_diag *diag, sf_verify_report **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, graph, plan, out);
    sf_verify_options own;
    SF_TRY(SF_TAKE(sf_verify_options, options, &own, diag));
    sf_plan_trial trial = {.reference = graph, .graph = graph, .plan = plan};
    return sf_verify_trial(&trial, &own, diag, out);
}
