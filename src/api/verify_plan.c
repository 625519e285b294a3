/* Verifying a plan: every rank compares what it holds with the same part of the unsplit results. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "api/compare.h"
#include "api/options.h"
#include "api/unsplit.h"
#include "api/verify.h"
#include "api/world.h"
#include "base/guard.h"
#include "base/mem.h"
#include "local/local.h"
#include "prog/check.h"
#include "run/comm/agree.h"
#include "run/runner.h"
#include "train/pieces.h"

/* A shrunk step is tried for fewer: every step is judged by itself. */
enum { DEFAULT_STEPS = 10, DEFAULT_SHRUNK_STEPS = 3 };

/* A shrunk step may be badly conditioned, so what is allowed follows from what rounding does to it: this
 * many times the effect of one unit in the last place of the arguments, because every op rounds; and never
 * so much that a forgotten sum, or a piece in the wrong place, which show in the first digit, would pass. */
#define NOISE_FACTOR 16
#define MOST_TOLERANCE 0.1
#define MOST_LOSS_TOLERANCE 0.05

/* What the ranks of this process share. */
struct shared {
    const sf_graph *graph, *reference;
    const sf_plan *plan;
    sf_verify_options options;
    sf_diag *diag;
    sf_threads *pool;        /* of the unsplit run */
    int64_t memory;          /* for it, and for each rank */
    sf_unsplit unsplit;      /* the leader writes, the others read after the next agreement */
    const sf_program *first; /* the leader's, of its split run, written like `unsplit` */
    sf_tensor *ours;         /* results of the last step, put together from all ranks */
    double *tolerances;      /* of the last step by result, written like `unsplit` */
    double loss_noise;       /* the largest so far */
    int steps;
    sf_owned_report *out; /* the leader fills it in */
};

struct rank {
    struct shared *shared;
    sf_comm *comm;
    sf_diag *diag;
    bool leads; /* in its process */
    sf_threads *pool;
    sf_arena arena, scratch;
    sf_pieces pieces; /* of arguments */
    sf_local *local;
    sf_runner runner;
    sf_held *held;        /* by result */
    sf_difference *worst; /* by result, of the steps so far */
    double loss_error;
};

static const sf_layout *result_layout(const struct rank *r, uint32_t result)
{
    return &r->shared->plan->results[result];
}

static sf_status agree(struct rank *r, sf_status status, const char *what)
{
    return sf_agree(r->comm, status, what, r->diag);
}

static sf_status start_unsplit(struct rank *r)
{
    struct shared *shared = r->shared;
    sf_runner_options options = {.engine = shared->options.engine,
                                 .with = {.pool = shared->pool, .memory = shared->memory}};
    return sf_runner_open(shared->reference, &options, r->diag, &shared->unsplit.runner);
}

static sf_status start_split(struct rank *r)
{
    struct shared *shared = r->shared;
    sf_runner_options options = {
        .mesh = &shared->plan->mesh,
        .rank = r->pieces.rank,
        .check = shared->options.check,
        .with = {.pool = r->pool, .memory = shared->memory, .comm = r->comm}};
    SF_TRY(sf_local_new(shared->graph, shared->plan, r->pieces.rank, r->diag, &r->local));
    SF_TRY(sf_runner_open(r->local->graph, &options, r->diag, &r->runner));
    if (r->leads)
        shared->first = r->runner.program;
    return SF_OK;
}

static sf_status cut_argument(const struct rank *r, uint32_t argument)
{
    const sf_tensor *whole = &r->shared->unsplit.split[argument];
    sf_tensor piece;
    SF_TRY(sf_engine_lend(r->runner.engine, argument, true, r->diag, &piece));
    sf_cut_piece(sf_pieces_runs(&r->pieces, argument), sf_dtype_get(whole->type->dtype)->bytes,
                 whole->data, piece.data);
    return sf_engine_give_back(r->runner.engine, argument, r->diag);
}

static sf_status get_ready(struct rank *r)
{
    struct shared *shared = r->shared;
    const sf_block *top = shared->graph->top;
    SF_TRY(agree(r, r->leads ? start_unsplit(r) : SF_OK, "starting the unsplit run"));
    int rank = sf_comm_rank(r->comm);
    r->pieces = (sf_pieces){shared->graph, shared->plan->mesh, rank, shared->plan->arguments};
    SF_TRY(agree(r, start_split(r), "starting the split run"));
    if (shared->options.check)
        SF_TRY(sf_program_match(shared->first, r->runner.program, r->diag));
    for (uint32_t i = 0; i < top->narguments; i++)
        SF_TRY(cut_argument(r, i));
    r->held = SF_ARRAY(&r->arena, top->nresults, sf_held);
    r->worst = SF_ARRAY(&r->arena, top->nresults, sf_difference);
    return SF_OK;
}

static sf_status run_split(struct rank *r)
{
    const sf_graph *graph = r->shared->graph;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].next == SF_NONE)
            SF_TRY(cut_argument(r, i));
    SF_TRY(sf_engine_step(r->runner.engine, r->diag));
    for (uint32_t i = 0; i < graph->top->nresults; i++) {
        sf_tensor piece;
        SF_TRY(sf_engine_see(r->runner.engine, i, r->diag, &piece));
        r->held[i] = (sf_held){sf_runs_of(result_layout(r, i), &r->pieces.mesh, r->pieces.rank,
                                          sf_result_type(graph, i)),
                               piece.data};
    }
    return SF_OK;
}

static sf_status all_ranks(struct rank *r, sf_transfer *transfer)
{
    int size = sf_comm_size(r->comm), *ranks = SF_ARRAY(&r->scratch, size, int);
    sf_group *world;
    for (int i = 0; i < size; i++)
        ranks[i] = i;
    SF_TRY(sf_comm_group(r->comm, ranks, size, r->diag, &world));
    return sf_comm_run(world, transfer, r->diag);
}

static sf_status put_together(struct rank *r)
{
    const sf_graph *graph = r->shared->graph;
    sf_pieces results = {graph, r->pieces.mesh, r->pieces.rank, r->shared->plan->results};
    for (uint32_t i = 0; i < graph->top->nresults; i++) {
        const sf_tensor *whole = &r->shared->ours[i];
        SF_TRY(sf_pieces_join(&results, i, r->held[i].data, whole->type, whole->data, r->comm,
                              r->diag));
    }
    return SF_OK;
}

static double loss_tolerance_of(const struct shared *shared)
{
    if (shared->options.loss_tolerance > 0)
        return shared->options.loss_tolerance;
    double least = sf_is_narrow(shared->graph) ? 2e-2 : 1e-5;
    return fmax(least, fmin(NOISE_FACTOR * shared->loss_noise, MOST_LOSS_TOLERANCE));
}

static sf_comparison comparison_of(const struct shared *shared)
{
    return (sf_comparison){
        .graph = shared->graph,
        .arguments = shared->unsplit.split,
        .theirs = shared->unsplit.theirs,
        .tolerance = sf_tolerance_of(shared->graph, shared->options.tolerance),
        .noise = sf_noise_of(shared->graph),
        .on_average = sf_is_narrow(shared->graph),
    };
}

/* What rounding does to the step at hand, and so what is allowed. */
static void measure_noise(struct rank *r)
{
    struct shared *shared = r->shared;
    uint32_t count = shared->graph->top->nresults;
    if (!shared->unsplit.shakes)
        return;
    sf_comparison comparison = comparison_of(shared);
    comparison.ours = shared->unsplit.shaken;
    sf_difference *differences = SF_ARRAY(&r->scratch, count, sf_difference);
    sf_compare(&comparison, &r->scratch, differences);
    for (uint32_t i = 0; i < count; i++)
        shared->tolerances[i] =
            fmax(comparison.tolerance, fmin(NOISE_FACTOR * differences[i].error, MOST_TOLERANCE));
    double noise =
        sf_relative_error(shared->unsplit.drifted_loss, shared->unsplit.own_loss, 0x1p-126);
    shared->loss_noise = fmax(shared->loss_noise, noise);
}

static sf_status compare(struct rank *r, int step)
{
    const struct shared *shared = r->shared;
    uint32_t count = shared->graph->top->nresults;
    sf_comparison comparison = comparison_of(shared);
    comparison.ours = shared->ours;
    comparison.held = r->held;
    comparison.tolerances = shared->tolerances;
    sf_difference *differences = SF_ARRAY(&r->scratch, count, sf_difference);
    sf_compare(&comparison, &r->scratch, differences);
    for (uint32_t i = 0; i < count; i++) {
        bool excused = differences[i].by_moment || r->worst[i].by_moment;
        differences[i].step = step;
        if (step == 0 || sf_badness(&differences[i]) > sf_badness(&r->worst[i]))
            r->worst[i] = differences[i];
        r->worst[i].by_moment = excused;
    }
    sf_tensor loss;
    SF_TRY(sf_engine_see(r->runner.engine, shared->unsplit.loss, r->diag, &loss));
    double ours = sf_get_f64(&loss, 0);
    double error = sf_relative_error(ours, shared->unsplit.own_loss, 0x1p-126);
    if (!(error <= r->loss_error))
        r->loss_error = error;
    if (r->leads) {
        shared->out->report.losses[step] = ours;
        shared->out->report.expected_losses[step] = shared->unsplit.own_loss;
    }
    return SF_OK;
}

/* *stop: a listener of one of the processes wants no more steps. */
static sf_status tell_step(struct rank *r, int step, bool *stop)
{
    const struct shared *shared = r->shared;
    sf_event event = {.size = sizeof event,
                      .kind = SF_EVENT_STEP,
                      .rank = r->pieces.rank,
                      .step = step + 1,
                      .steps = shared->steps,
                      .loss = shared->unsplit.own_loss};
    *stop = r->leads && shared->options.listener &&
            !shared->options.listener(shared->options.context, &event);
    SF_TRY(sf_agree_any(r->comm, SF_OK, "whether to stop", r->diag, stop));
    if (r->leads)
        shared->out->report.nlosses = step + 1;
    return SF_OK;
}

static sf_status make_step(struct rank *r, int step, bool *stop)
{
    struct shared *shared = r->shared;
    sf_status status = r->leads ? sf_unsplit_batch(&shared->unsplit, step, r->diag) : SF_OK;
    SF_TRY(agree(r, status, "the batch of a step"));
    SF_TRY(agree(r, run_split(r), "a step"));
    SF_TRY(put_together(r));
    if (r->leads)
        status = sf_unsplit_step(&shared->unsplit, step == 0, r->diag);
    if (r->leads && status == SF_OK)
        measure_noise(r);
    SF_TRY(agree(r, status, "the step of the unsplit run"));
    SF_TRY(agree(r, compare(r, step), "comparing results"));
    if (r->leads)
        sf_unsplit_follow(&shared->unsplit, shared->ours);
    return tell_step(r, step, stop);
}

/* A difference as it goes to the other ranks. */
enum { ERROR, INDEX, OURS, THEIRS, BEFORE, TOLERANCE, BY_MOMENT, STEP, FIELDS };

static void pack(const sf_difference *from, double *to)
{
    to[ERROR] = from->error;
    to[INDEX] = (double)from->index;
    to[OURS] = from->ours;
    to[THEIRS] = from->theirs;
    to[BEFORE] = from->before;
    to[TOLERANCE] = from->tolerance;
    to[BY_MOMENT] = from->by_moment;
    to[STEP] = from->step;
}

static void unpack(const double *from, sf_difference *to)
{
    to->error = from[ERROR];
    to->index = (int64_t)from[INDEX];
    to->ours = from[OURS];
    to->theirs = from[THEIRS];
    to->before = from[BEFORE];
    to->tolerance = from[TOLERANCE];
    to->by_moment = from[BY_MOMENT] != 0;
    to->step = (int)from[STEP];
}

/* What all ranks found: for each result what is worst, of equals on the first rank. */
static void merge(const struct rank *r, const double *found, size_t each)
{
    sf_verify_report *report = &r->shared->out->report;
    for (int rank = 0; rank < report->ranks; rank++) {
        const double *at = found + (size_t)rank * each;
        for (int i = 0; i < report->nresults; i++) {
            sf_difference *worst = &report->results[i];
            sf_difference next = {.name = worst->name, .rank = rank};
            next.is_weight = r->worst[i].is_weight;
            unpack(at + (size_t)i * FIELDS, &next);
            next.by_moment = next.by_moment || worst->by_moment;
            if (rank == 0 || sf_badness(&next) > sf_badness(worst))
                *worst = next;
            worst->by_moment = next.by_moment;
        }
        if (!(at[each - 1] <= report->loss_error))
            report->loss_error = at[each - 1];
    }
    for (int i = 0; i < report->nresults; i++)
        if (report->worst < 0 ||
            sf_badness(&report->results[i]) > sf_badness(&report->results[report->worst]))
            report->worst = i;
}

static sf_status share_findings(struct rank *r)
{
    uint32_t count = r->shared->graph->top->nresults;
    size_t each = (size_t)count * FIELDS + 1;
    double *mine = SF_ARRAY(&r->scratch, each, double);
    double *found = SF_ARRAY(&r->scratch, each * (size_t)sf_comm_size(r->comm), double);
    for (uint32_t i = 0; i < count; i++)
        pack(&r->worst[i], mine + (size_t)i * FIELDS);
    mine[each - 1] = r->loss_error;
    sf_transfer_part part = {.in = mine, .out = found, .count = (int64_t)each};
    sf_transfer gather = {.kind = SF_ALL_GATHER,
                          .dtype = SF_F64,
                          .nparts = 1,
                          .parts = &part,
                          .what = "what the ranks found"};
    SF_TRY(all_ranks(r, &gather));
    if (r->leads)
        merge(r, found, each);
    return SF_OK;
}

static sf_status verify_rank(struct rank *r)
{
    SF_TRY(agree(r, get_ready(r), "getting ready"));
    bool stop = false;
    for (int step = 0; step < r->shared->steps && !stop; step++) {
        sf_mark mark = sf_arena_mark(&r->scratch);
        SF_TRY(make_step(r, step, &stop));
        sf_arena_reset(&r->scratch, mark);
    }
    return share_findings(r);
}

static sf_status guarded_rank(void *context)
{
    struct rank *r = context;
    sf_status status = verify_rank(r);
    sf_runner_close(&r->runner);
    sf_local_free(r->local);
    if (r->leads)
        sf_runner_close(&r->shared->unsplit.runner);
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

/* Before anything is drawn: the unsplit step and the ranks run beside each other. */
static sf_status check_size(struct shared *shared)
{
    const sf_block *top = shared->graph->top;
    int64_t bytes = 0;
    for (uint32_t i = 0; i < top->narguments; i++)
        bytes += sf_type_bytes(sf_type_of(shared->graph, top->arguments[i]));
    shared->memory = sf_rank_memory(0, sf_plan_ranks(shared->plan) + 1);
    if (shared->memory == 0 || bytes <= shared->memory)
        return SF_OK;
    sf_fail(shared->diag, SF_ENOMEM, SF_NOWHERE,
            "the arguments of the step alone are %" PRId64
            " bytes; the unsplit step and each of %d ranks can have %" PRId64 " here",
            bytes, sf_plan_ranks(shared->plan), shared->memory);
    return sf_hint(shared->diag, "--shrink compares at reduced dimensions");
}

/* All memory that ranks share, and the report. */
static sf_status prepare(void *context)
{
    struct shared *shared = context;
    uint32_t count = shared->graph->top->nresults;
    SF_TRY(sf_plan_expect(shared->plan, shared->graph, shared->diag));
    SF_TRY(check_size(shared));
    SF_TRY(sf_unsplit_open(shared->reference, shared->options.against, shared->options.init,
                           shared->options.data, shared->diag, &shared->unsplit));
    SF_TRY(choose_steps(shared));
    if (shared->options.shrunk && !(shared->options.tolerance > 0)) {
        shared->tolerances = SF_ARRAY(&shared->unsplit.arena, count, double);
        sf_unsplit_shake(&shared->unsplit);
    }
    shared->ours = SF_ARRAY(&shared->unsplit.arena, count, sf_tensor);
    for (uint32_t i = 0; i < count; i++) {
        const sf_type *type = sf_result_type(shared->graph, i);
        shared->ours[i] = (sf_tensor){
            .type = type,
            .data = sf_arena_alloc(&shared->unsplit.arena, (size_t)sf_type_bytes(type))};
    }
    sf_owned_report *out = shared->out = sf_alloc(sizeof *out);
    out->report =
        (sf_verify_report){.nresults = (int)count,
                           .results = SF_ARRAY(&out->arena, count, sf_difference),
                           .worst = -1,
                           .losses = SF_ARRAY(&out->arena, shared->steps, double),
                           .expected_losses = SF_ARRAY(&out->arena, shared->steps, double),
                           .ranks = sf_plan_ranks(shared->plan)};
    for (uint32_t i = 0; i < count; i++)
        out->report.results[i].name = sf_result_name(shared->graph, i, &out->arena);
    return SF_OK;
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
    /* One of several processes says it for all. */
    return sf_judge(report, loss_tolerance_of(shared), report->rank == 0 ? shared->diag : NULL);
}

sf_status sf_verify_split(const sf_graph *reference, const sf_graph *graph, const sf_plan *plan,
                          const sf_verify_options *options, sf_diag *diag, sf_verify_report **out)
{
    struct shared shared = {
        .graph = graph, .reference = reference, .plan = plan, .options = *options, .diag = diag};
    *out = NULL;
    if (options->tolerance < 0 || options->loss_tolerance < 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "a tolerance is not negative");
    SF_TRY(sf_threads_open(options->threads, diag, &shared.pool));
    sf_status status = sf_guarded(prepare, &shared, diag);
    if (status == SF_OK) {
        status = run_ranks(&shared, out);
        sf_unsplit_close(&shared.unsplit);
    } else if (status != SF_ENOMEM) {
        sf_unsplit_close(&shared.unsplit);
    }
    sf_threads_free(shared.pool);
    return status;
}

sf_status sf_verify_plan(const sf_graph *graph, const sf_plan *plan,
                         const sf_verify_options *options, sf_diag *diag, sf_verify_report **out)
{
    sf_verify_options own;
    *out = NULL;
    SF_TRY(sf_options_take(options, &own, sizeof own, diag));
    return sf_verify_split(graph, graph, plan, &own, diag, out);
}
