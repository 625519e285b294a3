/* Verifying a step: its results against known ones, then the losses of the steps that follow. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/api_options.h"
#include "api/verify/compare.h"
#include "api/verify/findings.h"
#include "api/verify/noise_range.h"
#include "api/verify/replay.h"
#include "api/verify/verify.h"
#include "base/guard.h"
#include "base/mem.h"
#include "front/lost_state.h"
#include "run/runner.h"
#include "sheaf/eval.h"

struct job {
    const sf_graph *graph;
    sf_verify_options options;
    sf_diag *diag;
    sf_owned_report *out;
    sf_arena arena;
    sf_replay replay;
    sf_tensor *expected; /* results of step 0 */
    sf_tensor *results;  /* of the last step evaluated, which may be arguments now */
    sf_tensor *next;
    sf_runner runner;
    sf_threads *threads;
    sf_noise_range noise;
    sf_precision precision;
};

static sf_loc place(const struct job *job)
{
    return (sf_loc){job->options.against, 0, 0};
}

static double loss_tolerance_of(const struct job *job)
{
    if (job->options.loss_tolerance > 0)
        return job->options.loss_tolerance;
    return sf_is_narrow(job->graph, job->precision) ? 2e-2 : 1e-4;
}

/* Evaluates the step on job->replay.arguments and puts the results in job->results. */
static sf_status evaluate_ours(struct job *job)
{
    uint32_t count = job->graph->top->nresults;
    SF_TRY(sf_engine_evaluate(job->runner.engine, job->replay.arguments, job->next, job->diag));
    sf_values_free(count, job->results);
    memcpy(job->results, job->next, count * sizeof *job->results);
    memset(job->next, 0, count * sizeof *job->next);
    return SF_OK;
}

static sf_status compare_step(struct job *job)
{
    sf_verify_report *report = &job->out->report;
    uint32_t count = job->graph->top->nresults;
    sf_unstable *unstable = SF_ARRAY(&job->arena, count, sf_unstable);
    sf_comparison comparison = {
        .graph = job->graph,
        .arguments = job->replay.arguments,
        .ours = job->results,
        .theirs = job->expected,
        .tolerance = sf_tolerance_of(sf_is_narrow(job->graph, job->precision), job->precision,
                                     job->options.tolerance),
        .on_average = sf_is_narrow(job->graph, job->precision),
    };
    report->results = SF_ARRAY(&job->out->arena, count, sf_difference);
    report->nresults = (int)count;
    for (int pairs = 0;; pairs++) {
        report->worst = sf_compare(&comparison, &job->out->arena, report->results);
        if (sf_all_hold(job->graph, report->results) ||
            pairs == sf_noise_range_pairs(&job->noise) || job->options.tolerance > 0)
            return SF_OK;
        SF_TRY(sf_noise_range_widen(&job->noise, job->replay.arguments, job->results, job->diag));
        sf_find_unstable(&comparison, job->noise.at, &job->arena, unstable);
        comparison.unstable = unstable;
    }
}

static sf_status run_step(struct job *job, int step, uint32_t loss)
{
    sf_verify_report *report = &job->out->report;
    bool changed;
    SF_TRY(sf_replay_batch(&job->replay, step, job->diag, &changed));
    /* The first step was evaluated already, if its batch is the one among the inputs. */
    if (step > 0 || changed)
        SF_TRY(evaluate_ours(job));
    sf_carry_state(job->graph, job->results, job->replay.arguments);
    double ours = sf_get_f64(&job->results[loss], 0);
    report->losses[step] = ours;
    report->nlosses = step + 1;
    return SF_OK;
}

/* False when the listener wants no more steps. */
static bool tell_step(const struct job *job, int step, int64_t steps)
{
    sf_event event = {.size = sizeof event,
                      .kind = SF_EVENT_STEP,
                      .step = step + 1,
                      .steps = steps,
                      .loss = job->out->report.losses[step]};
    return !job->options.listener || job->options.listener(job->options.context, &event);
}

static sf_status run_steps(struct job *job)
{
    sf_verify_report *report = &job->out->report;
    const sf_tensor *losses = sf_safetensors_find(&job->replay.file, "losses");
    int64_t there = losses ? losses->type->count : 0;
    int64_t steps = job->options.steps ? job->options.steps : there;
    uint32_t loss = 0;
    if (steps > there || steps > INT32_MAX)
        return sf_fail(job->diag, SF_EINPUT, place(job),
                       "%" PRId64 " steps were asked for, but there %s %" PRId64 " loss%s", steps,
                       there == 1 ? "is" : "are", there, there == 1 ? "" : "es");
    if (steps <= 0)
        return SF_OK;
    SF_TRY(sf_find_loss(job->graph, job->diag, &loss));
    SF_TRY(sf_check_state(job->graph, job->diag));
    sf_replay_find(&job->replay, &job->arena);
    report->losses = SF_ARRAY(&job->out->arena, steps, double);
    report->expected_losses = SF_ARRAY(&job->out->arena, steps, double);
    sf_load_f64s(losses->type->dtype, losses->data, 0, steps, report->expected_losses);
    for (int step = 0; step < (int)steps; step++) {
        SF_TRY(run_step(job, step, loss));
        if (!tell_step(job, step, steps))
            return SF_OK;
    }
    return SF_OK;
}

/* A run from the start with noise in every step, and how far its losses come from ours. */
static sf_status drift(struct job *job, int run, uint32_t loss, sf_tensor *noisy, double *noise)
{
    const sf_graph *graph = job->graph;
    const sf_verify_report *report = &job->out->report;
    bool changed;
    SF_TRY(sf_values_arguments(graph, &job->replay.file, job->options.against, job->diag,
                               job->replay.arguments));
    for (int step = 0; step < report->nlosses; step++) {
        SF_TRY(sf_replay_batch(&job->replay, step, job->diag, &changed));
        SF_TRY(sf_noise_range_run(&job->noise, job->replay.arguments, run, noisy, job->diag));
        for (uint32_t i = 0; i < graph->top->nresults; i++)
            memcpy(job->results[i].data, noisy[i].data, (size_t)sf_type_bytes(noisy[i].type));
        sf_carry_state(graph, job->results, job->replay.arguments);
        double error =
            sf_relative_error(sf_get_f64(&noisy[loss], 0), report->losses[step], 0x1p-126);
        noise[step] = fmax(noise[step], error);
    }
    return SF_OK;
}

static sf_status judge_losses(struct job *job)
{
    sf_verify_report *report = &job->out->report;
    double plain = loss_tolerance_of(job);
    double *noise = SF_ARRAY(&job->arena, report->nlosses, double);
    uint32_t loss = 0;
    sf_finding worst =
        sf_worst_loss(report->nlosses, report->losses, report->expected_losses, noise, plain);
    if (worst.error > worst.tolerance && !(job->options.loss_tolerance > 0)) {
        sf_tensor *noisy = SF_ARRAY(&job->arena, job->graph->top->nresults, sf_tensor);
        SF_TRY(sf_find_loss(job->graph, job->diag, &loss));
        for (int run = 0; run < 2 * sf_noise_range_pairs(&job->noise); run++)
            SF_TRY(drift(job, run, loss, noisy, noise));
        worst =
            sf_worst_loss(report->nlosses, report->losses, report->expected_losses, noise, plain);
    }
    report->loss_error = worst.error;
    report->loss_tolerance = worst.tolerance;
    return SF_OK;
}

static sf_status tell_wrong(const sf_verify_report *report, int wrong, sf_diag *diag)
{
    const sf_difference *worst = &report->results[report->worst];
    char before[64] = "", where[64] = "";
    if (worst->is_weight)
        snprintf(before, sizeof before, " (%.9g before the step)", worst->before);
    if (report->ranks > 0)
        snprintf(where, sizeof where, ", on rank %d in step %d", worst->rank, worst->step);
    return sf_fail(diag, SF_EMISMATCH, SF_NOWHERE,
                   "%d of %d results differ; most of all %s, in element %" PRId64
                   "%s: %.9g, expected %.9g%s",
                   wrong, report->nresults, worst->name, worst->index, where, worst->ours,
                   worst->theirs, before);
}

sf_status sf_judge(sf_verify_report *report, sf_diag *diag)
{
    int wrong = 0;
    for (int i = 0; i < report->nresults; i++)
        wrong += !sf_difference_holds(&report->results[i]);
    sf_status status = SF_OK;
    if (wrong > 0)
        status = tell_wrong(report, wrong, diag);
    if (!(report->loss_error <= report->loss_tolerance))
        status =
            sf_fail(diag, SF_EMISMATCH, SF_NOWHERE, "the losses differ by %.3g, more than %.3g",
                    report->loss_error, report->loss_tolerance);
    report->passed = status == SF_OK;
    return status;
}

static sf_status verify_values(struct job *job)
{
    const sf_graph *graph = job->graph;
    const char *path = job->options.against;
    job->out = sf_alloc(sizeof *job->out);
    job->expected = SF_ARRAY(&job->arena, graph->top->nresults, sf_tensor);
    job->next = SF_ARRAY(&job->arena, graph->top->nresults, sf_tensor);
    job->results = SF_ARRAY(&job->arena, graph->top->nresults, sf_tensor);
    SF_TRY(sf_replay_open(graph, path, &job->arena, job->diag, &job->replay));
    SF_TRY(sf_values_results(graph, &job->replay.file, path, job->diag, job->expected));
    SF_TRY(evaluate_ours(job));
    SF_TRY(compare_step(job));
    SF_TRY(run_steps(job));
    SF_TRY(judge_losses(job));
    job->out->report.noisy_runs = job->noise.runs;
    return sf_judge(&job->out->report, job->diag);
}

static sf_status verify_with_engine(struct job *job)
{
    SF_TRY(sf_precision_find(job->options.precision, job->diag, &job->precision));
    SF_TRY(sf_engine_choose(job->options.engine, job->diag, &job->options.engine));
    sf_runner_options options = {.engine = job->options.engine,
                                 .check = job->options.check,
                                 .with = {.pool = job->threads, .precision = job->precision}};
    SF_TRY(sf_runner_open(job->graph, &options, job->diag, &job->runner));
    options.with.precision = SF_PRECISION_F32;
    sf_noise_range_init(job->graph, &options, &job->arena, &job->noise);
    job->noise.precision = job->precision;
    return verify_values(job);
}

static sf_status verify_guarded(void *context)
{
    struct job *job = context;
    sf_status status = verify_with_engine(job);
    sf_runner_close(&job->runner);
    sf_noise_range_close(&job->noise);
    if (job->results)
        sf_values_free(job->graph->top->nresults, job->results);
    sf_replay_close(&job->replay);
    sf_arena_free(&job->arena);
    if (status != SF_OK && status != SF_EMISMATCH) {
        sf_verify_free(job->out ? &job->out->report : NULL);
        job->out = NULL;
    }
    return status;
}

sf_status sf_verify(const sf_graph *graph, const sf_verify_options *options, sf_diag *diag,
                    sf_verify_report **out)
{
    struct job job = {.graph = graph, .diag = diag};
    *out = NULL;
    SF_TRY(sf_options_take(options, &job.options, sizeof job.options, diag));
    options = &job.options;
    if (!options->against)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "verify needs a file to compare with");
    SF_CHECK_OPTIONS(diag, {"tolerance", options->tolerance},
                     {"loss_tolerance", options->loss_tolerance}, {"threads", options->threads});
    SF_TRY(sf_threads_open(options->threads, diag, &job.threads));
    sf_status status = sf_guarded(verify_guarded, &job, diag);
    sf_threads_free(job.threads);
    sf_warn_loose(graph, diag);
    if (status == SF_OK || status == SF_EMISMATCH)
        *out = &job.out->report;
    return status;
}

void sf_verify_free(sf_verify_report *report)
{
    if (!report)
        return;
    sf_owned_report *owned = (void *)report;
    sf_arena_free(&owned->arena);
    sf_free(owned);
}
