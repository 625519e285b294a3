/* sheaf tune: tries settings of the variables of a schedule, and writes the plan of the best. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/guard.h"
#include "base/units.h"
#include "cli/cli.h"
#include "report/page/tune_page.h"

struct job {
    const char *script, *step, *cluster, *by, *output, *page;
    sf_load_options load;
    sf_script_options with;
    sf_tune_options options;
    bool json;
};

static bool print_progress(void *context, const sf_event *event)
{
    (void)context;
    fprintf(stderr, "\r\033[K%s", event->text);
    return true;
}

static void print_trial(const sf_tune_report *report, int index)
{
    const sf_trial *trial = report->trials[index];
    char shown[SF_CLI_SHOWN];
    printf("  %5d", index + 1);
    for (int v = 0; v < report->nvariables; v++)
        printf("  %*s",
               (int)strlen(report->variables[v]) > 6 ? (int)strlen(report->variables[v]) : 6,
               trial->values[v] ? sf_cli_shown(trial->values[v], shown) : "-");
    printf("  %9s", isfinite(trial->seconds) ? sf_text_seconds(trial->seconds).at : "-");
    printf("  %9s", trial->memory > 0 ? sf_text_bytes((double)trial->memory).at : "-");
    if (trial->why)
        printf("  %s", sf_cli_shown(trial->why, shown));
    else
        printf("%s", trial->pruned ? "  does not fit" : index == report->best ? "  best" : "");
    printf("\n");
}

static void print_table(const sf_tune_report *report)
{
    printf("trials\n  %5s", "trial");
    for (int v = 0; v < report->nvariables; v++)
        printf("  %6s", report->variables[v]);
    printf("  %9s  %9s\n", "step", "memory");
    for (int i = 0; i < report->ntrials; i++)
        print_trial(report, i);
}

/* Values of one variable. */
enum { MOST_SHOWN = 16 };

static const sf_trial *find_trial(const sf_tune_report *report, const char *first,
                                  const char *second)
{
    for (int i = 0; i < report->ntrials; i++) {
        const char *const *values = report->trials[i]->values;
        if (values[0] && values[1] && strcmp(values[0], first) == 0 &&
            strcmp(values[1], second) == 0)
            return report->trials[i];
    }
    return NULL;
}

/* Of two variables: how much slower than the best each setting is that was tried. */
static void print_map(const sf_tune_report *report)
{
    const char *rows[MOST_SHOWN], *columns[MOST_SHOWN];
    if (report->nvariables != 2 || report->best < 0)
        return;
    int nrows = sf_tune_values(report, 0, MOST_SHOWN, rows),
        ncolumns = sf_tune_values(report, 1, MOST_SHOWN, columns);
    double best = report->trials[report->best]->seconds;
    if (nrows == 0 || ncolumns == 0)
        return;
    printf("\nslower than the best, in percent; x: does not fit\n  %6s \\ %s\n  %6s",
           report->variables[0], report->variables[1], "");
    for (int c = 0; c < ncolumns; c++)
        printf(" %6s", columns[c]);
    for (int r = 0; r < nrows; r++) {
        printf("\n  %6s", rows[r]);
        for (int c = 0; c < ncolumns; c++) {
            const sf_trial *trial = find_trial(report, rows[r], columns[c]);
            if (trial && isfinite(trial->seconds))
                printf(" %6.1f", (trial->seconds / best - 1) * 100);
            else
                printf(" %6s", trial ? "x" : ".");
        }
    }
    printf("\n");
}

static void print_report(const sf_tune_report *report)
{
    int pruned = 0, logged = 0;
    for (int i = 0; i < report->ntrials; i++) {
        pruned += report->trials[i]->pruned;
        logged += report->trials[i]->logged;
    }
    print_table(report);
    print_map(report);
    printf("\n%d of %" PRId64 " settings looked at, %d of them predicted not to fit",
           report->ntrials, report->points, pruned);
    if (logged > 0)
        printf(", %d from the log", logged);
    printf("\n");
    if (report->best >= 0)
        printf("best: %s, %s a step\n", report->trials[report->best]->setting,
               sf_text_seconds(report->trials[report->best]->seconds).at);
}

struct printing {
    const sf_tune_report *report;
    const char *title;
};

static sf_status print_json(void *context)
{
    const struct printing *job = context;
    sf_buf buf = {0};
    sf_tune_json(job->report, job->title, true, &buf);
    puts(buf.text);
    sf_buf_free(&buf);
    return SF_OK;
}

/* Beside the plan: best.json has best.stablehlo.mlir. */
static void name_step(const char *plan, char *out, size_t size)
{
    size_t length = strlen(plan),
           end = length > 5 && strcmp(plan + length - 5, ".json") == 0 ? 5 : 0;
    snprintf(out, size, "%.*s.stablehlo.mlir", (int)(length - end), plan);
}

/* A plan names the file of its step. If the best setting replaces ops, that step is written, and
 * the plan is of the written step. */
static sf_status save_step(const char *plan, const sf_graph *made, sf_diag *diag, sf_graph **out)
{
    char path[SF_PATH_SIZE], shown[SF_CLI_SHOWN];
    name_step(plan, path, sizeof path);
    *out = NULL;
    SF_TRY(sf_save_stablehlo(made, &SF_OPTIONS(sf_output, .path = path), diag));
    SF_TRY(sf_load(path, NULL, diag, out));
    fprintf(stderr, "step: %s, as the schedule makes it\n", sf_cli_shown(path, shown));
    return SF_OK;
}

static sf_status save_best(const struct job *job, const sf_tune_report *report,
                           const sf_graph *graph, sf_diag *diag)
{
    sf_graph *read = NULL;
    bool is_file = strcmp(job->output, "-") != 0;
    sf_status status = SF_OK;
    if (report->step)
        status = is_file ? save_step(job->output, report->step, diag, &read)
                         : sf_cli_check_unchanged(graph, report->step, job->output, diag);
    if (status == SF_OK)
        status = sf_plan_save(report->plan, read ? read : graph,
                              &SF_OPTIONS(sf_output, .path = job->output), diag);
    sf_graph_free(read);
    return status;
}

static sf_status tune_graph(struct job *job, const sf_graph *graph, sf_diag *diag)
{
    sf_tune_report *report;
    sf_status status = sf_tune_script(graph, job->script, &job->with, &job->options, diag, &report);
    if (job->options.listener)
        fputs("\r\033[K", stderr);
    if (report && report->ntrials > 0 && (!job->output || strcmp(job->output, "-") != 0)) {
        if (job->json)
            sf_guarded(print_json, &(struct printing){report, job->script}, diag);
        else
            print_report(report);
    }
    if (report && report->ntrials > 0 && job->page) {
        sf_status written =
            sf_tune_page(report, job->script, &SF_OPTIONS(sf_output, .path = job->page), diag);
        status = status == SF_OK ? written : status;
    }
    if (status == SF_OK && job->output)
        status = save_best(job, report, graph, diag);
    sf_tune_free(report);
    return status;
}

static sf_status tune(struct job *job, sf_diag *diag)
{
    sf_graph *graph;
    sf_cluster *cluster = NULL;
    SF_TRY(sf_cli_try_output(job->output, job->step, job->script, diag));
    SF_TRY(sf_cli_try_output(job->page, job->step, job->script, diag));
    if (job->cluster)
        SF_TRY(sf_cluster_open(job->cluster, diag, &cluster));
    job->options.cluster = cluster;
    if (cluster && job->with.ranks == 0)
        job->with.ranks = sf_cluster_devices(cluster);
    sf_status status = sf_load(job->step, &job->load, diag, &graph);
    if (status == SF_OK) {
        status = tune_graph(job, graph, diag);
        sf_graph_free(graph);
    }
    sf_cluster_free(cluster);
    return status;
}

static bool is_algorithm(const char *name)
{
    for (int i = 0; sf_tune_algorithm(i); i++)
        if (!name || strcmp(sf_tune_algorithm(i), name) == 0)
            return true;
    return false;
}

int sf_cli_tune(int argc, char **argv)
{
    struct job job = {
        .by = "sim", .with.size = sizeof job.with, .options.size = sizeof job.options};
    int64_t trials = 0, ranks = 0, steps = 0, threads = 0;
    const sf_cli_option options[] = {
        {SF_OPT_CLUSTER, &job.cluster, "cluster to simulate plans on, as in sheaf plan"},
        {SF_OPT_BY, &job.by,
         "sim: simulated step time (default); run: measured step time on threads, the fastest step "
         "counts; cpu: as run, in CPU time of all ranks, for machines with other load"},
        {SF_OPT_ALGORITHM, &job.options.algorithm,
         "model: Gaussian process of time and memory (default); "
         "exhaustive: all settings"},
        {SF_OPT_TRIALS, &trials, "most settings to try (default: no limit)"},
        {SF_OPT_LOG, &job.options.log,
         "append one JSON line per setting to FILE; settings in FILE are not tried again"},
        {SF_OPT_OUTPUT, &job.output, "write the plan of the best setting to FILE"},
        {SF_OPT_PAGE, &job.page,
         "write an HTML page with all trials and a map of each pair of variables to FILE"},
        {SF_OPT_RANKS, &ranks, "number of ranks (default: the devices of the cluster)"},
        {SF_OPT_MEMORY, &job.options.memory,
         "memory limit of a rank, such as 12G (default: what the devices have)"},
        {SF_OPT_STEPS, &steps,
         "with --by run: steps of a trial (default 5); the first is not timed"},
        {SF_OPT_THREADS, &threads,
         "with --by run: threads (default: as many as the process may use)"},
        {SF_OPT_UNSAFE, &job.with.unsafe, "let the Lua program open files and run other programs"},
        {SF_OPT_JSON, &job.json, "print JSON"},
    };
    const sf_cli_command command = {
        .name = "tune",
        .synopsis =
            "LUA STEP (--cluster CLUSTER | --by run -n N) [--algorithm A] [--trials N] [--log "
            "FILE] [-o PLAN]",
        .about = "Finds the values of a Lua schedule's variables (tune.int, tune.choice) whose "
                 "plan takes the least time. Settings predicted not to fit are not tried. "
                 "docs/reference/schedules.md describes the language.",
        .operand = "LUA",
        .second = "STEP",
        .second_into = &job.step,
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .load = &job.load,
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, &job.script, &exit_code))
        return exit_code;
    job.options.by_processor = strcmp(job.by, "cpu") == 0;
    job.options.by_run = job.options.by_processor || strcmp(job.by, "run") == 0;
    if (!job.options.by_run && strcmp(job.by, "sim") != 0)
        return sf_cli_misuse("tune", "--by is sim, run or cpu, not '%s'", job.by);
    if (!job.options.by_run && !job.cluster)
        return sf_cli_misuse("tune", "give a --cluster, such as 1x8xV100, or --by run");
    if (!is_algorithm(job.options.algorithm))
        return sf_cli_misuse("tune", "--algorithm is model or exhaustive, not '%s'",
                             job.options.algorithm);
    if (trials > INT_MAX || ranks > INT_MAX || steps > INT_MAX || threads > INT_MAX)
        return sf_cli_misuse("tune", "a number is too large");
    job.options.trials = (int)trials;
    job.options.steps = (int)steps;
    job.options.threads = (int)threads;
    job.options.cluster_name = job.cluster;
    job.with.ranks = (int)ranks;
    job.options.ranks = (int)ranks;
    if (isatty(STDERR_FILENO))
        job.options.listener = print_progress;
    sf_diag *diag = sf_cli_diag();
    return sf_cli_finish(tune(&job, diag), diag);
}
