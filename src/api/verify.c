/* Verifying a step: its results against known ones, then the losses of the steps that follow. */
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "api/compare.h"
#include "api/guard.h"
#include "api/values.h"
#include "base/mem.h"
#include "run/engine.h"
#include "sheaf/eval.h"

/* A report with its memory. */
struct owned {
    sf_verify_report report;
    sf_arena arena;
};

struct job {
    const sf_graph *graph;
    sf_verify_options options;
    sf_diag *diag;
    struct owned *out;
    sf_arena arena;
    sf_safetensors file;
    sf_tensor *arguments; /* of the step at hand */
    sf_tensor *expected;  /* results of step 0 */
    sf_str *batches;      /* by argument: NAME of the batch.K.NAME that feed it, or empty */
    sf_tensor *results;   /* of the last step evaluated, which may be arguments now */
    sf_tensor *next;
    sf_engine *engine;
    sf_threads *threads;
};

static sf_loc place(const struct job *job)
{
    return (sf_loc){job->options.against, 0, 0};
}

/* Where a step computes in 16 bits or fewer, two good runs differ far more. */
static bool computes_in_16_bits(const sf_graph *graph)
{
    for (size_t i = 0; i < graph->nvalues; i++) {
        sf_dtype dtype = graph->values[i].type->dtype;
        if (sf_is_float(dtype) && sf_dtype_get(dtype)->bits <= 16)
            return true;
    }
    return false;
}

static double tolerance_of(const struct job *job)
{
    if (job->options.tolerance > 0)
        return job->options.tolerance;
    return computes_in_16_bits(job->graph) ? 5e-2 : 1e-4;
}

static double loss_tolerance_of(const struct job *job)
{
    if (job->options.loss_tolerance > 0)
        return job->options.loss_tolerance;
    return computes_in_16_bits(job->graph) ? 2e-2 : 1e-4;
}

/* Rounding errors of sums, as a fraction of the largest gradient: eight units in the last place of
 * float32 or bfloat16. In float32, gradients that are not zero are far above it. */
static double noise_of(const sf_graph *graph)
{
    return computes_in_16_bits(graph) ? 8 * 0x1p-9 : 8 * 0x1p-24;
}

/* Evaluates the step on job->arguments and puts the results in job->results. */
static sf_status evaluate(struct job *job)
{
    uint32_t count = job->graph->top->nresults;
    SF_TRY(sf_engine_evaluate(job->engine, job->arguments, job->next, job->diag));
    sf_values_free(count, job->results);
    memcpy(job->results, job->next, count * sizeof *job->results);
    memset(job->next, 0, count * sizeof *job->next);
    return SF_OK;
}

static void compare_step(struct job *job)
{
    sf_comparison comparison = {
        .graph = job->graph,
        .arguments = job->arguments,
        .ours = job->results,
        .theirs = job->expected,
        .tolerance = tolerance_of(job),
        .noise = noise_of(job->graph),
        .on_average = computes_in_16_bits(job->graph),
    };
    sf_verify_report *report = &job->out->report;
    uint32_t count = job->graph->top->nresults;
    report->results = SF_ARRAY(&job->out->arena, count, sf_difference);
    report->nresults = (int)count;
    report->worst = sf_compare(&comparison, &job->out->arena, report->results);
}

/* Whether the last words of `name` are `ending`, letters and digits alone considered, and how long
 * that is. HLO writes batch__ids__.1 for batch['ids']. */
static size_t match_ending(sf_str name, sf_str ending)
{
    size_t at = name.length, matched = 0;
    while (at > 0 && isdigit((unsigned char)name.at[at - 1]))
        at--;
    if (at > 0 && name.at[at - 1] == '.')
        name.length = at - 1;
    for (size_t i = name.length, k = ending.length;;) {
        bool word = i > 0 && isalnum((unsigned char)name.at[i - 1]);
        while (k > 0 && !isalnum((unsigned char)ending.at[k - 1]))
            k--;
        if (k == 0)
            return word ? 0 : matched;
        while (i > 0 && !isalnum((unsigned char)name.at[i - 1]))
            i--;
        if (i == 0 || name.at[--i] != ending.at[--k])
            return 0;
        matched++;
    }
}

/* The name of the batch tensor that feeds an argument: the longest one that the argument's name
 * ends with; else, where the text has no names, the one whose first batch is what the inputs hold
 * there. Empty when there is none. */
static sf_str find_batch(const struct job *job, uint32_t argument)
{
    static const char prefix[] = "batch.0.";
    const sf_tensor *input = &job->arguments[argument];
    sf_str best = {0}, same = {0};
    size_t most = 0, sames = 0;
    for (size_t i = 0; i < job->file.count; i++) {
        const sf_named_tensor *named = &job->file.tensors[i];
        if (!sf_str_starts(named->name, prefix))
            continue;
        sf_str name = {named->name.at + strlen(prefix), named->name.length - strlen(prefix)};
        size_t length = match_ending(sf_str_of(job->graph->arguments[argument].name), name);
        if (length > most) {
            most = length;
            best = name;
        }
        size_t bytes = (size_t)sf_type_bytes(input->type);
        if (sf_values_fit(named->tensor.type, input->type) &&
            memcmp(named->tensor.data, input->data, bytes) == 0) {
            same = name;
            sames++;
        }
    }
    return most > 0 ? best : sames == 1 ? same : (sf_str){0};
}

static void find_batches(struct job *job)
{
    const sf_graph *graph = job->graph;
    job->batches = SF_ARRAY(&job->arena, graph->top->narguments, sf_str);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].next == SF_NONE && graph->arguments[i].role != SF_ROLE_KEY)
            job->batches[i] = find_batch(job, i);
}

/* Puts the batch of a step into the arguments; *changed when one of them is another now. What is
 * neither state nor in the file stays as it is. */
static sf_status bind_batch(struct job *job, int step, bool *changed)
{
    const sf_graph *graph = job->graph;
    *changed = false;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        sf_tensor *argument = &job->arguments[i];
        char name[300];
        snprintf(name, sizeof name, "batch.%d.%.*s", step, (int)job->batches[i].length,
                 job->batches[i].length ? job->batches[i].at : "");
        if (job->batches[i].length == 0 && graph->arguments[i].role != SF_ROLE_BATCH)
            continue;
        const sf_tensor *batch = sf_safetensors_find(&job->file, name);
        if (!batch)
            return sf_fail(job->diag, SF_EINPUT, place(job),
                           "there is no %s%s for the argument '%s'", name,
                           job->batches[i].length ? "" : "NAME", graph->arguments[i].name);
        SF_TRY(sf_values_check(batch, name, argument->type, job->options.against, job->diag));
        if (memcmp(argument->data, batch->data, (size_t)sf_type_bytes(argument->type)) != 0)
            *changed = true;
        argument->data = batch->data;
    }
    return SF_OK;
}

/* The state that a step leaves is the state that the next one takes. */
static void carry_state(struct job *job)
{
    const sf_graph *graph = job->graph;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].next != SF_NONE)
            job->arguments[i].data = job->results[graph->arguments[i].next].data;
}

static sf_status check_state(const struct job *job)
{
    const sf_graph *graph = job->graph;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        uint32_t next = graph->arguments[i].next;
        char has[SF_TYPE_TEXT], wants[SF_TYPE_TEXT];
        if (next == SF_NONE)
            continue;
        const sf_type *from = sf_result_type(graph, next), *to = sf_argument_type(graph, i);
        if (from->dtype != to->dtype || !sf_same_shape(from, to))
            return sf_fail(job->diag, SF_EINPUT, SF_NOWHERE,
                           "result %u, %s, cannot become the argument '%s', %s", next,
                           sf_type_text(from, has), graph->arguments[i].name,
                           sf_type_text(to, wants));
    }
    return SF_OK;
}

static sf_status find_loss(const struct job *job, uint32_t *out)
{
    const sf_graph *graph = job->graph;
    for (uint32_t i = 0; i < graph->top->nresults; i++)
        if (graph->results[i].is_loss && sf_result_type(graph, i)->count == 1) {
            *out = i;
            return SF_OK;
        }
    return sf_fail(job->diag, SF_EINPUT, place(job),
                   "there are losses to compare with, but no result of the step is the loss");
}

static sf_status run_step(struct job *job, int step, uint32_t loss)
{
    sf_verify_report *report = &job->out->report;
    bool changed;
    SF_TRY(bind_batch(job, step, &changed));
    /* The first step was evaluated already, if its batch is the one among the inputs. */
    if (step > 0 || changed)
        SF_TRY(evaluate(job));
    carry_state(job);
    double ours = sf_get_f64(&job->results[loss], 0);
    double error = sf_relative_error(ours, report->expected_losses[step], 0x1p-126);
    report->losses[step] = ours;
    report->nlosses = step + 1;
    if (error > report->loss_error)
        report->loss_error = error;
    return SF_OK;
}

static sf_status run_steps(struct job *job)
{
    sf_verify_report *report = &job->out->report;
    const sf_tensor *losses = sf_safetensors_find(&job->file, "losses");
    int64_t there = losses ? losses->type->count : 0;
    int64_t steps = job->options.steps ? job->options.steps : there;
    uint32_t loss = 0;
    if (steps > there || steps > INT32_MAX)
        return sf_fail(job->diag, SF_EINPUT, place(job),
                       "%" PRId64 " steps were asked for, but there %s %" PRId64 " loss%s", steps,
                       there == 1 ? "is" : "are", there, there == 1 ? "" : "es");
    if (steps <= 0)
        return SF_OK;
    SF_TRY(find_loss(job, &loss));
    SF_TRY(check_state(job));
    find_batches(job);
    report->losses = SF_ARRAY(&job->out->arena, steps, double);
    report->expected_losses = SF_ARRAY(&job->out->arena, steps, double);
    sf_load_f64s(losses->type->dtype, losses->data, 0, steps, report->expected_losses);
    for (int step = 0; step < (int)steps; step++) {
        SF_TRY(run_step(job, step, loss));
        if (job->options.progress)
            job->options.progress(job->options.context, step, (int)steps, report->losses[step]);
    }
    return SF_OK;
}

static sf_status judge(struct job *job)
{
    sf_verify_report *report = &job->out->report;
    double allowed = loss_tolerance_of(job);
    int wrong = 0;
    for (int i = 0; i < report->nresults; i++)
        wrong += !sf_difference_holds(&report->results[i]);
    sf_status status = SF_OK;
    if (wrong > 0) {
        const sf_difference *worst = &report->results[report->worst];
        char before[64] = "";
        if (worst->is_weight)
            snprintf(before, sizeof before, " (%.9g before the step)", worst->before);
        status = sf_fail(job->diag, SF_EWRONG, SF_NOWHERE,
                         "%d of %d results differ; most of all %s, in element %" PRId64
                         ": %.9g, expected %.9g%s",
                         wrong, report->nresults, worst->name, worst->index, worst->ours,
                         worst->theirs, before);
    }
    if (!(report->loss_error <= allowed))
        status = sf_fail(job->diag, SF_EWRONG, SF_NOWHERE,
                         "the losses differ by %.3g, more than %.3g", report->loss_error, allowed);
    report->loss_tolerance = allowed;
    report->passed = status == SF_OK;
    return status;
}

static sf_status verify(struct job *job)
{
    const sf_graph *graph = job->graph;
    const char *path = job->options.against;
    job->out = sf_alloc(sizeof *job->out);
    job->arguments = SF_ARRAY(&job->arena, graph->top->narguments, sf_tensor);
    job->expected = SF_ARRAY(&job->arena, graph->top->nresults, sf_tensor);
    job->next = SF_ARRAY(&job->arena, graph->top->nresults, sf_tensor);
    job->results = SF_ARRAY(&job->arena, graph->top->nresults, sf_tensor);
    SF_TRY(sf_safetensors_read(path, job->diag, &job->file));
    SF_TRY(sf_values_arguments(graph, &job->file, path, job->diag, job->arguments));
    SF_TRY(sf_values_results(graph, &job->file, path, job->diag, job->expected));
    SF_TRY(evaluate(job));
    compare_step(job);
    SF_TRY(run_steps(job));
    return judge(job);
}

static sf_status verify_with_engine(struct job *job)
{
    sf_engine_options options = {.pool = job->threads};
    SF_TRY(sf_engine_kind_of(job->options.engine ? job->options.engine : "cpu", job->diag,
                             &options.kind));
    SF_TRY(sf_engine_new(job->graph, &options, job->diag, &job->engine));
    return verify(job);
}

static sf_status work(void *context)
{
    struct job *job = context;
    sf_status status = verify_with_engine(job);
    sf_engine_free(job->engine);
    if (job->results)
        sf_values_free(job->graph->top->nresults, job->results);
    sf_safetensors_close(&job->file);
    sf_arena_free(&job->arena);
    if (status != SF_OK && status != SF_EWRONG) {
        sf_verify_free(job->out ? &job->out->report : NULL);
        job->out = NULL;
    }
    return status;
}

sf_status sf_verify(const sf_graph *graph, const sf_verify_options *options, sf_diag *diag,
                    sf_verify_report **out)
{
    struct job job = {.graph = graph, .options = *options, .diag = diag};
    *out = NULL;
    if (!options->against)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "verify needs a file to compare with");
    if (options->tolerance < 0 || options->loss_tolerance < 0)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "a tolerance is not negative");
    SF_TRY(sf_open_threads(options->threads, diag, &job.threads));
    sf_status status = sf_guarded(work, &job, diag);
    sf_threads_free(job.threads);
    if (status == SF_OK || status == SF_EWRONG)
        *out = &job.out->report;
    return status;
}

void sf_verify_free(sf_verify_report *report)
{
    if (!report)
        return;
    struct owned *owned = (void *)report;
    sf_arena_free(&owned->arena);
    sf_free(owned);
}
