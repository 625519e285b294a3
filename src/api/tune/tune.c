/* Tuning: settings are tried, by simulation or by running them, and the best becomes a plan. */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "api/api_options.h"
#include "api/cluster_price.h"
#include "api/tune/tuning.h"
#include "base/guard.h"
#include "base/listen.h"
#include "base/machine.h"
#include "base/units.h"
#include "sheaf/train.h"

/* A report, and the memory that it is in. */
typedef struct kept_report {
    sf_tune_report report;
    sf_arena arena;
} kept_report;

/* The text of a message, without its place; in the arena. */
static const char *keep_words(sf_tuning *tuning, const sf_diag *diag)
{
    int count = diag->count < SF_DIAG_KEPT ? diag->count : SF_DIAG_KEPT;
    for (int i = 0; i < count; i++)
        if (diag->messages[i].status != SF_OK && diag->messages[i].text)
            return sf_arena_string(&tuning->arena, diag->messages[i].text,
                                   strlen(diag->messages[i].text));
    return "it failed without words";
}

/* The plan of a setting, and where its primitives replace parts of the step, the step that they make; else NULL. */
static sf_status make_plan(sf_tuning *tuning, size_t point, sf_diag *diag, sf_plan **out,
                           sf_graph **made)
{
    const sf_point *at = &tuning->at[point];
    sf_settings *settings = SF_NEW(&tuning->arena, sf_settings);
    sf_primitives *list;
    *out = NULL;
    *made = NULL;
    settings->nwanted = at->nvariables;
    memcpy(settings->wanted, at->chosen, (size_t)at->nvariables * sizeof *at->chosen);
    SF_TRY(sf_tuning_apply(tuning, settings, diag, &list));
    sf_status status = sf_primitives_pin(
        list, &(sf_plan_spec){.size = sizeof(sf_plan_spec), .ranks = tuning->options.ranks}, diag,
        out);
    if (status == SF_OK && sf_primitives_graph(list) != tuning->graph)
        status = sf_primitives_copy_graph(list, diag, made);
    sf_primitives_free(list);
    return status;
}

/* If plans are run, they are simulated on CPUs, for their memory. */
static sf_status find_cluster(sf_tuning *tuning, const sf_plan *plan, const sf_cluster **out,
                              sf_diag *diag)
{
    char name[64];
    *out = tuning->options.cluster;
    if (*out)
        return SF_OK;
    if (tuning->own && sf_cluster_devices(tuning->own) != sf_plan_ranks(plan)) {
        sf_cluster_free(tuning->own);
        tuning->own = NULL;
    }
    snprintf(name, sizeof name, "1x%dxCPU", sf_plan_ranks(plan));
    if (!tuning->own)
        SF_TRY(sf_cluster_open(name, diag, &tuning->own));
    *out = tuning->own;
    return SF_OK;
}

static sf_status price(sf_tuning *tuning, const sf_graph *graph, const sf_plan *plan, sf_diag *diag,
                       sf_price *out)
{
    const sf_cluster *cluster;
    SF_TRY(find_cluster(tuning, plan, &cluster, diag));
    return sf_cluster_price(graph, plan, cluster, diag, out);
}

/* The fastest step but the first, which warms up. */
struct fastest {
    double seconds;
    bool processor; /* time is that of processors, of all ranks of this process */
    double began;
};

static double processor_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool keep_fastest(void *context, const sf_event *event)
{
    struct fastest *f = context;
    if (event->kind != SF_EVENT_STEP)
        return true;
    double now = processor_seconds();
    if (event->step > 1)
        f->seconds = fmin(f->seconds, f->processor ? now - f->began : event->train->computed);
    f->began = now;
    return true;
}

static sf_status run_plan(sf_tuning *tuning, const sf_graph *graph, const sf_plan *plan,
                          sf_diag *diag, double *seconds)
{
    int steps = tuning->options.steps > 0 ? tuning->options.steps : 5;
    struct fastest f = {.seconds = (double)INFINITY, .processor = tuning->options.by_processor};
    sf_status status =
        sf_train(graph,
                 &SF_OPTIONS(sf_train_options, .steps = steps < 2 ? 2 : steps, .data = "synthetic",
                             .plan = plan, .threads = tuning->options.threads, .ignore_nan = true,
                             .listener = keep_fastest, .context = &f),
                 diag, NULL);
    *seconds = f.seconds;
    return status;
}

/* The memory of a rank: the option, else that of its device; if plans run, that of the machine for
 * all. */
static int64_t find_room(const sf_tuning *tuning, const sf_plan *plan, const sf_price *priced)
{
    if (tuning->options.memory > 0)
        return tuning->options.memory;
    return tuning->options.by_run ? sf_machine_memory() / sf_plan_ranks(plan) : priced->room;
}

static sf_status try_plan(sf_tuning *tuning, const sf_graph *graph, const sf_plan *plan,
                          sf_diag *diag, sf_trial *trial)
{
    sf_price priced;
    SF_TRY(price(tuning, graph, plan, diag, &priced));
    tuning->report->room = find_room(tuning, plan, &priced);
    trial->memory = priced.memory;
    trial->pruned = tuning->report->room > 0 && priced.memory > tuning->report->room;
    if (trial->pruned)
        return SF_OK;
    if (tuning->options.by_run)
        return run_plan(tuning, graph, plan, diag, &trial->seconds);
    trial->seconds = priced.seconds;
    return SF_OK;
}

/* A failure is an impossible setting, and the reason; only without memory does tuning end. */
static sf_status try_point(sf_tuning *tuning, size_t point, sf_trial *trial)
{
    sf_plan *plan;
    sf_graph *made;
    sf_diag own = {0};
    *trial = (sf_trial){.size = sizeof *trial, .seconds = (double)INFINITY};
    sf_status status = make_plan(tuning, point, &own, &plan, &made);
    if (status == SF_OK)
        status = try_plan(tuning, made ? made : tuning->graph, plan, &own, trial);
    if (status != SF_OK) {
        trial->why = keep_words(tuning, &own);
        trial->seconds = (double)INFINITY;
    }
    sf_plan_free(plan);
    sf_graph_free(made);
    sf_diag_clear(&own);
    return status == SF_ENOMEM ? sf_fail(tuning->diag, status, SF_NOWHERE, "%s", trial->why)
                               : SF_OK;
}

static bool tell_listener(const sf_tuning *tuning, const sf_trial *trial)
{
    const sf_tune_options *options = &tuning->options;
    char text[512];
    sf_audience audience = {options->listener, options->context, options->interrupt};
    if (!sf_is_heard(&audience))
        return true;
    snprintf(text, sizeof text, "%d of %" PRId64 " settings: %s: %s", tuning->report->ntrials,
             tuning->report->points, trial->setting,
             trial->why      ? trial->why
             : trial->pruned ? "does not fit"
                             : sf_text_seconds(trial->seconds).at);
    return sf_tell(&audience, &(sf_event){.size = sizeof(sf_event),
                                          .kind = SF_EVENT_STAGE,
                                          .text = text,
                                          .step = tuning->report->ntrials,
                                          .steps = tuning->report->points,
                                          .loss = (double)NAN});
}

/* Makes one trial, or takes it from the log. */
static sf_status make_trial(sf_tuning *tuning, size_t point, sf_trial *trial)
{
    if (tuning->simulated[point].setting)
        *trial = tuning->simulated[point];
    else
        SF_TRY(try_point(tuning, point, trial));
    trial->setting = tuning->at[point].text;
    trial->values = tuning->at[point].values;
    size_t count = (size_t)tuning->report->ntrials;
    sf_trial *kept = sf_arena_copy(&tuning->arena, trial, sizeof *trial);
    SF_PUSH(&tuning->arena, tuning->trials, count, tuning->capacity, kept);
    tuning->report->ntrials = (int)count;
    tuning->report->trials = tuning->trials;
    return sf_tuning_write_log(tuning, trial);
}

static sf_status make_trials(sf_tuning *tuning, sf_tuner *tuner)
{
    sf_tune_report *report = tuning->report;
    size_t point;
    bool more = true;
    while (more && (tuning->options.trials == 0 || report->ntrials < tuning->options.trials) &&
           sf_tuner_ask(tuner, &point)) {
        sf_trial trial;
        SF_TRY(make_trial(tuning, point, &trial));
        double share = report->room > 0 ? (double)trial.memory / (double)report->room : 0;
        if (report->best < 0 ? isfinite(trial.seconds)
                             : trial.seconds < report->trials[report->best]->seconds)
            report->best = report->ntrials - 1;
        sf_tuner_observe(tuner, point, (sf_observed){.seconds = trial.seconds, .memory = share});
        more = tell_listener(tuning, &trial);
    }
    return SF_OK;
}

static sf_status fail_unfit(const sf_tuning *tuning)
{
    const sf_tune_report *report = tuning->report;
    const char *why = NULL;
    int pruned = 0;
    for (int i = 0; i < report->ntrials; i++) {
        why = why ? why : report->trials[i]->why;
        pruned += report->trials[i]->pruned;
    }
    sf_fail(tuning->diag, SF_EMISMATCH, SF_NOWHERE,
            "of %d settings that were looked at, none can be: %d do not fit", report->ntrials,
            pruned);
    return why ? sf_hint(tuning->diag, "one of them: %s", why) : SF_EMISMATCH;
}

static sf_status make_best(sf_tuning *tuning)
{
    const sf_tune_report *report = tuning->report;
    if (report->best < 0)
        return fail_unfit(tuning);
    size_t point = 0;
    while (strcmp(tuning->at[point].text, report->trials[report->best]->setting) != 0)
        point++;
    return make_plan(tuning, point, tuning->diag, &tuning->report->plan, &tuning->report->step);
}

static sf_status tune(sf_tuning *tuning)
{
    kept_report *kept = SF_NEW(&tuning->arena, kept_report);
    tuning->report = &kept->report;
    tuning->report->size = sizeof *tuning->report;
    tuning->report->best = -1;
    SF_TRY(sf_tuning_find_points(tuning));
    tuning->simulated = SF_ARRAY(&tuning->arena, tuning->points.count, sf_trial);
    sf_tuner *tuner = sf_tuner_new(tuning->options.algorithm, &tuning->points, &tuning->arena);
    if (!tuner)
        return sf_fail(tuning->diag, SF_EUSAGE, SF_NOWHERE,
                       "a tuner is model or exhaustive, not \"%s\"", tuning->options.algorithm);
    SF_TRY(sf_tuning_open_log(tuning));
    SF_TRY(make_trials(tuning, tuner));
    return make_best(tuning);
}

static sf_status tune_guarded(void *context)
{
    sf_tuning *tuning = context;
    sf_status status = tune(tuning);
    tuning->returned = true;
    return status;
}

sf_status sf_tune(const sf_graph *graph, sf_tune_apply *apply, void *context,
                  const sf_tune_options *options, sf_diag *diag, sf_tune_report **out)
{
    SF_CLEAR(out);
    SF_NEED(diag, graph, apply, out);
    sf_tuning tuning = {.graph = graph, .apply = apply, .context = context, .diag = diag};
    SF_TRY(SF_TAKE(sf_tune_options, options, &tuning.options, diag));
    SF_CHECK_OPTIONS(diag, {"trials", tuning.options.trials}, {"ranks", tuning.options.ranks},
                     {"memory", (double)tuning.options.memory}, {"steps", tuning.options.steps},
                     {"threads", tuning.options.threads});
    if (!tuning.options.cluster && !tuning.options.by_run)
        return sf_fail(diag, SF_EUSAGE, SF_NOWHERE, "tuning by simulation needs a cluster");
    if (tuning.options.cluster)
        tuning.options.memory =
            sf_cluster_memory_limit(tuning.options.cluster, tuning.options.memory, diag);
    sf_status status = sf_guarded(tune_guarded, &tuning, diag);
    sf_log_close(&tuning.log);
    if (!tuning.returned) /* the guard has freed everything */
        return status;
    sf_buf_free(&tuning.log.line);
    sf_cluster_free(tuning.own);
    kept_report *kept = (kept_report *)tuning.report;
    kept->arena = tuning.arena;
    *out = tuning.report;
    return status;
}

void sf_tune_free(sf_tune_report *report)
{
    if (!report)
        return;
    sf_plan_free(report->plan);
    sf_graph_free(report->step);
    sf_arena arena = ((kept_report *)report)->arena; /* the report is in it */
    sf_arena_free(&arena);
}

const char *sf_tune_algorithm(int index)
{
    return sf_tuner_name(index);
}
