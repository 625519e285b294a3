/* sheaf verify: runs a step and compares it with known results and losses, or split with unsplit. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/guard.h"
#include "base/json.h"
#include "cli/cli.h"

enum { MOST_SHOWN = 5 };

static bool show_progress(void *context, const sf_event *event)
{
    (void)context;
    if (event->rank > 0)
        return true;
    fprintf(stderr, "\rstep %" PRId64 " of %" PRId64 ", loss %.6g\033[K", event->step, event->steps,
            event->loss);
    fflush(stderr);
    return true;
}

/* The largest error that is smaller than `below` in the order of error, then position. */
static int next_largest(const sf_verify_report *report, int below)
{
    int best = -1;
    for (int i = 0; i < report->nresults; i++) {
        double error = report->results[i]->error;
        bool taken = below >= 0 && (error > report->results[below]->error ||
                                    (!(error < report->results[below]->error) && i <= below));
        if (!taken && (best < 0 || error > report->results[best]->error))
            best = i;
    }
    return best;
}

static void print_results(const sf_verify_report *report)
{
    printf("results: %d compared", report->nresults);
    if (report->ranks > 0)
        printf(" in %d step%s on %d rank%s", report->nlosses, report->nlosses == 1 ? "" : "s",
               report->ranks, report->ranks == 1 ? "" : "s");
    printf("\n  %-10s %13s %13s  %s\n", "error", "ours", "expected", "where");
    int at = next_largest(report, -1);
    char name[SF_CLI_SHOWN];
    for (int shown = 0; at >= 0 && shown < MOST_SHOWN; shown++) {
        const sf_difference *result = report->results[at];
        printf("  %-10.2e %13.6g %13.6g  %s, element %" PRId64, result->error, result->ours,
               result->theirs, sf_cli_shown(result->name, name), result->index);
        if (report->ranks > 0)
            printf(", rank %d, step %d", result->rank, result->step);
        puts(result->error <= result->tolerance ? "" : "  WRONG");
        at = next_largest(report, at);
    }
}

static int64_t count_unstable(const sf_verify_report *report, int *results)
{
    int64_t elements = 0;
    *results = 0;
    for (int i = 0; i < report->nresults; i++) {
        elements += report->results[i]->unstable;
        *results += report->results[i]->unstable > 0;
    }
    return elements;
}

static void print_unstable(const sf_verify_report *report)
{
    int results, shown = 0;
    int64_t elements = count_unstable(report, &results);
    char name[SF_CLI_SHOWN];
    if (elements == 0)
        return;
    printf("unstable: %" PRId64
           " element%s of %d result%s, which noise of the size of rounding moves "
           "past the tolerance\n  %-10s %13s  %s\n",
           elements, elements == 1 ? "" : "s", results, results == 1 ? "" : "s", "elements",
           "excused", "where");
    /* Those first that something is excused of. */
    for (int i = 0; i < 2 * report->nresults && shown < MOST_SHOWN; i++) {
        const sf_difference *result = report->results[i % report->nresults];
        if (result->unstable == 0 || (result->excused > 0) != (i < report->nresults))
            continue;
        printf("  %-10" PRId64 " %13" PRId64 "  %s\n", result->unstable, result->excused,
               sf_cli_shown(result->name, name));
        shown++;
    }
    if (shown < results)
        printf("  and %d more\n", results - shown);
}

static void print_losses(const sf_verify_report *report)
{
    printf("losses: %d compared\n  %-10s %13s %13s  %s\n", report->nlosses, "error", "ours",
           "expected", "step");
    for (int i = 0; i < report->nlosses; i++) {
        double ours = report->losses[i], expected = report->expected_losses[i];
        double error = ours == expected ? 0 : fabs(ours - expected) / fabs(expected);
        printf("  %-10.2e %13.9g %13.9g  %d\n", error, ours, expected, i);
    }
}

/* An error of 0 may be that of elements that are excused, or of signs of zeros: only equal bits are no error. */
static void print_worst(const sf_verify_report *report)
{
    const sf_difference *worst = report->results[report->worst];
    char name[SF_CLI_SHOWN];
    bool differs = false;
    for (int i = 0; i < report->nresults; i++)
        differs = differs || report->results[i]->differs;
    if (!differs)
        printf(", all bits equal (tolerance %g)", worst->tolerance);
    else if (worst->error > 0)
        printf(", largest error %.2e at %s (tolerance %g)", worst->error,
               sf_cli_shown(worst->name, name), worst->tolerance);
    else
        printf(", no error but in unstable elements and signs of zeros (tolerance %g)",
               worst->tolerance);
}

static void print_report(const sf_verify_report *report)
{
    print_results(report);
    print_unstable(report);
    if (report->nlosses > 0)
        print_losses(report);
    printf("verify: %s", report->passed ? "passed" : "FAILED");
    if (report->worst >= 0)
        print_worst(report);
    if (report->nlosses > 0)
        printf(", losses within %.2e", report->loss_error);
    if (report->approximate)
        printf(" (tolerance %g)\nnote: the plan's passes are an approximation (compress): it is "
               "held to the "
               "tolerances of 16 bits, on average over a tensor, and not to those of the step",
               report->loss_tolerance);
    putchar('\n');
}

static void put_result(sf_json_writer *json, const sf_difference *result, bool split)
{
    sf_json_begin_object(json);
    sf_json_add_string(json, "name", result->name);
    sf_json_add_double(json, "error", result->error);
    sf_json_add_double(json, "tolerance", result->tolerance);
    sf_json_add_int(json, "index", result->index);
    sf_json_add_double(json, "ours", result->ours);
    sf_json_add_double(json, "expected", result->theirs);
    if (result->is_weight)
        sf_json_add_double(json, "before", result->before);
    sf_json_add_bool(json, "differs", result->differs);
    sf_json_add_int(json, "unstable", result->unstable);
    sf_json_add_int(json, "excused", result->excused);
    if (split) {
        sf_json_add_int(json, "step", result->step);
        sf_json_add_int(json, "rank", result->rank);
    }
    sf_json_end_object(json);
}

/* Which results have unstable elements, and how many. */
static void put_unstable(sf_json_writer *json, const sf_verify_report *report)
{
    int results;
    sf_json_key(json, "unstable");
    sf_json_begin_object(json);
    sf_json_add_int(json, "elements", count_unstable(report, &results));
    sf_json_add_int(json, "noisy_runs", report->noisy_runs);
    sf_json_key(json, "results");
    sf_json_begin_array(json);
    for (int i = 0; i < report->nresults; i++)
        if (report->results[i]->unstable > 0)
            sf_json_put_string(json, report->results[i]->name);
    sf_json_end_array(json);
    sf_json_end_object(json);
}

struct printing {
    const sf_verify_report *report;
    const char *shrunk; /* or NULL */
};

static sf_status print_verify_json(void *context)
{
    const struct printing *printing = context;
    const sf_verify_report *report = printing->report;
    sf_buf buf = {0};
    sf_json_writer json = {.buf = &buf, .indent = true};
    sf_json_begin_object(&json);
    sf_json_add_bool(&json, "passed", report->passed);
    if (report->ranks > 0)
        sf_json_add_int(&json, "ranks", report->ranks);
    if (printing->shrunk)
        sf_json_add_string(&json, "shrunk", printing->shrunk);
    sf_json_key(&json, "worst");
    if (report->worst >= 0)
        put_result(&json, report->results[report->worst], report->ranks > 0);
    else
        sf_json_put_null(&json);
    put_unstable(&json, report);
    sf_json_add_double(&json, "loss_error", report->loss_error);
    sf_json_add_double(&json, "loss_tolerance", report->loss_tolerance);
    sf_json_add_bool(&json, "approximate", report->approximate);
    sf_json_key(&json, "losses");
    sf_json_begin_row(&json);
    for (int i = 0; i < report->nlosses; i++)
        sf_json_put_double(&json, report->losses[i]);
    sf_json_end_array(&json);
    sf_json_key(&json, "expected_losses");
    sf_json_begin_row(&json);
    for (int i = 0; i < report->nlosses; i++)
        sf_json_put_double(&json, report->expected_losses[i]);
    sf_json_end_array(&json);
    sf_json_key(&json, "results");
    sf_json_begin_array(&json);
    for (int i = 0; i < report->nresults; i++)
        put_result(&json, report->results[i], report->ranks > 0);
    sf_json_end_array(&json);
    sf_json_end_object(&json);
    puts(buf.text);
    sf_buf_free(&buf);
    return SF_OK;
}

struct job {
    sf_cli_split split;
    sf_cli_script script;
    sf_verify_options options;
    bool json;
};

/* Of several processes that found the same, one prints it. */
static sf_status print(const struct job *job, const sf_verify_report *report, const char *shrunk,
                       sf_diag *diag)
{
    struct printing printing = {report, shrunk};
    if (job->options.listener)
        fputs("\r\033[K", stderr);
    if (!report || report->rank > 0)
        return SF_OK;
    if (job->json)
        return sf_guarded(print_verify_json, &printing, diag);
    if (shrunk)
        printf("shrunk: %s\n", shrunk);
    print_report(report);
    return SF_OK;
}

static sf_status verify_plan(const struct job *job, const sf_graph *graph, const sf_plan *plan,
                             const char *shrunk, sf_diag *diag)
{
    sf_verify_report *report;
    sf_status status = sf_verify_plan(graph, plan, &job->options, diag, &report);
    sf_status printed = print(job, report, shrunk, diag);
    sf_verify_free(report);
    return printed != SF_OK ? printed : status;
}

static sf_status verify_shrunk(const struct job *job, const sf_graph *graph, const sf_plan *plan,
                               sf_diag *diag)
{
    sf_graph *small;
    sf_plan *small_plan;
    const char *about;
    sf_status status = sf_plan_shrink(plan, graph, diag, &small, &small_plan, &about);
    if (status != SF_OK)
        return status;
    status = sf_plan_check(small_plan, small, 0, diag);
    if (status == SF_OK)
        status = verify_plan(job, small, small_plan, about, diag);
    sf_plan_free(small_plan);
    sf_graph_free(small);
    return status;
}

static sf_status verify_known(const struct job *job, const sf_graph *graph, sf_diag *diag)
{
    sf_verify_report *report;
    sf_status status = sf_verify(graph, &job->options, diag, &report);
    sf_status printed = print(job, report, NULL, diag);
    sf_verify_free(report);
    return printed != SF_OK ? printed : status;
}

/* With a schedule the plan is the one that it pins. */
static sf_status verify_list(const struct job *job, const sf_primitives *list, sf_diag *diag)
{
    sf_verify_report *report;
    int culprit;
    sf_status status = sf_primitives_verify(
        list, &(sf_plan_spec){.size = sizeof(sf_plan_spec), .ranks = (int)job->split.ranks},
        &job->options, diag, &report, &culprit);
    sf_status printed = print(job, report, NULL, diag);
    sf_verify_free(report);
    return printed != SF_OK ? printed : status;
}

static sf_status verify_script(struct job *job, sf_diag *diag)
{
    sf_graph *graph;
    sf_primitives *list = NULL;
    job->script.ranks = sf_cli_script_ranks(job->split.ranks);
    job->options.limit = job->split.limit;
    sf_status status = sf_load(job->split.step, &job->split.load, diag, &graph);
    bool loaded = status == SF_OK;
    if (loaded)
        status = sf_cli_run_script(&job->script, graph, diag, &list);
    status = sf_ranks_agree(status, job->split.limit, diag);
    if (status == SF_OK)
        status = verify_list(job, list, diag);
    sf_primitives_free(list);
    if (loaded)
        sf_graph_free(graph);
    return status;
}

static sf_status verify_step(struct job *job, sf_diag *diag)
{
    sf_graph *graph;
    sf_plan *plan;
    if (job->script.path)
        return verify_script(job, diag);
    sf_status status = sf_cli_open(&job->split, diag, &graph, &plan);
    job->options.limit = job->split.limit;
    if (status == SF_OK)
        status = !plan                 ? verify_known(job, graph, diag)
                 : job->options.shrunk ? verify_shrunk(job, graph, plan, diag)
                                       : verify_plan(job, graph, plan, NULL, diag);
    sf_plan_free(plan);
    sf_graph_free(graph);
    return status;
}

int sf_cli_verify(int argc, char **argv)
{
    struct job job = {.options.size = sizeof job.options};
    int64_t steps = -1, threads = 0, seed = 0;
    const sf_cli_option options[] = {
        {SF_OPT_AGAINST, &job.options.against,
         "safetensors file with in.I, out.I, batch.K.NAME and losses; with a plan, in.I and "
         "batch.K.NAME suffice (default with a plan: initial state and data as in sheaf train)"},
        {SF_OPT_PLAN, &job.split.plan, "compare the step split by this plan with the unsplit step"},
        {SF_OPT_PASSES, &job.split.passes, SF_CLI_PASSES},
        {SF_OPT_RANKS, &job.split.ranks,
         "number of ranks; must be that of the plan; with --schedule, the value of sheaf.ranks"},
        {SF_OPT_SCHEDULE, &job.script.path,
         "compare the step split by this Lua program with the unsplit step, and name the first "
         "primitive that makes them differ"},
        {SF_OPT_UNSAFE, &job.script.unsafe,
         "let the Lua program open files and run other programs"},
        {SF_OPT_INIT, &job.options.init,
         "with a plan, without --against: initial weights, as in sheaf train"},
        {SF_OPT_DATA, &job.options.data,
         "with a plan, without --against: batches, as in sheaf train (default synthetic)"},
        {SF_OPT_SEED, &seed,
         "with a plan, without --against: seed of weights, batches and keys (default 0)"},
        {SF_OPT_SHRINK, &job.options.shrunk,
         "with a plan: reduce all dimensions to the smallest sizes that the plan allows, so that a "
         "large step runs on a small machine"},
        {SF_OPT_TOLERANCE, &job.options.tolerance,
         "largest relative error of a result (default 1e-4; 5e-2 if the step computes in 16 bits; "
         "more for elements that rounding noise moves further)"},
        {SF_OPT_LOSS_TOLERANCE, &job.options.loss_tolerance,
         "largest relative error of a loss (default 1e-4; with a plan 1e-5; 2e-2 if the step "
         "computes in 16 bits; more if rounding noise moves it further)"},
        {SF_OPT_STEPS, &steps,
         "steps whose losses are compared (default: all in FILE; with a plan 10, with --shrink 3); "
         "0: only results"},
        {SF_OPT_ENGINE, &job.options.engine,
         SF_CLI_ENGINE "; with a plan, cuda is that of the ranks, and oracle that of the unsplit "
                       "run"},
        {SF_OPT_THREADS, &threads,
         "threads of the cpu engine (default: as many as the process may use)"},
        {SF_OPT_WAIT, &job.split.limit,
         "seconds a rank waits for another rank before the run fails (default 300)"},
        {SF_OPT_DEVICE_MEMORY, &job.options.device_memory, SF_CLI_DEVICE_MEMORY},
        {SF_OPT_PRECISION, &job.options.precision, SF_CLI_PRECISION},
        {SF_OPT_CHECK, &job.options.check,
         "check each program before it runs: memory, order, events"},
        {SF_OPT_JSON, &job.json, "print JSON with all results"},
    };
    const sf_cli_command command = {
        .name = "verify",
        .synopsis = "[STEP] (--against FILE | --plan PLAN [-n N] [--shrink] | --schedule LUA) "
                    "[--tolerance T] "
                    "[--loss-tolerance T] "
                    "[--steps N] [--engine E] [--json]",
        .about = "Runs a step and compares every result with the expected one, then runs further "
                 "steps and compares their losses. With a plan, the expected results are those of "
                 "the unsplit step, and all results of all steps are compared on every rank.",
        .operand = "STEP",
        .optional = true, /* a plan leads to its own */
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .load = &job.split.load,
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, &job.split.step, &exit_code))
        return exit_code;
    if (!job.split.step && (!job.split.plan || job.script.path))
        return sf_cli_misuse(command.name, "STEP is missing");
    bool split = job.split.plan || job.script.path;
    if (!job.options.against && !split)
        return sf_cli_misuse("verify", "--against FILE, --plan PLAN or --schedule LUA is missing");
    if (job.script.path && (job.split.plan || !sf_cli_is_script(job.script.path)))
        return sf_cli_misuse("verify", "a --schedule is a file that ends in .lua, and no --plan");
    if (job.split.passes && !job.split.plan)
        return sf_cli_misuse("verify", "--passes needs a --plan");
    job.split.memory = job.options.device_memory;
    if (job.split.ranks > 0 && !split)
        return sf_cli_misuse("verify", "--ranks needs a --plan");
    if (job.split.ranks > INT_MAX)
        return sf_cli_misuse("verify", "--ranks is too large");
    if (job.options.shrunk && (!job.split.plan || job.options.against))
        return sf_cli_misuse("verify", "--shrink needs a --plan, and no --against");
    if ((job.options.data || job.options.init || seed > 0) && (!split || job.options.against))
        return sf_cli_misuse("verify", "--init, --data and --seed need a --plan, and no --against");
    if (steps == 0 && split)
        return sf_cli_misuse("verify", "with --plan, --steps is at least 1");
    if (steps > INT_MAX)
        return sf_cli_misuse("verify", "--steps is too large");
    /* In sf_verify_options 0 means the default. */
    job.options.steps = steps < 0 ? 0 : steps == 0 ? -1 : (int)steps;
    if (threads > INT_MAX)
        return sf_cli_misuse("verify", "--threads is too large");
    job.options.threads = (int)threads;
    job.options.seed = (uint64_t)seed;
    if (isatty(STDERR_FILENO))
        job.options.listener = show_progress;
    sf_diag *diag = sf_cli_diag();
    return sf_cli_finish(verify_step(&job, diag), diag);
}
