/* sheaf verify: runs a step and compares it with known results and losses. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "api/guard.h"
#include "base/json.h"
#include "cli/cli.h"

enum { MOST_SHOWN = 5 };

static void show_progress(void *context, int step, int steps, double loss)
{
    (void)context;
    fprintf(stderr, "\rstep %d of %d, loss %.6g\033[K", step + 1, steps, loss);
    fflush(stderr);
}

/* The largest error that is smaller than `below` in the order of error, then position. */
static int next_largest(const sf_verify_report *report, int below)
{
    int best = -1;
    for (int i = 0; i < report->nresults; i++) {
        double error = report->results[i].error;
        bool taken = below >= 0 && (error > report->results[below].error ||
                                    (!(error < report->results[below].error) && i <= below));
        if (!taken && (best < 0 || error > report->results[best].error))
            best = i;
    }
    return best;
}

static void print_results(const sf_verify_report *report)
{
    int by_moment = 0;
    for (int i = 0; i < report->nresults; i++)
        by_moment += report->results[i].by_moment;
    printf("results: %d compared", report->nresults);
    if (by_moment > 0)
        printf(", %d with elements that differ by the noise of a gradient near zero", by_moment);
    printf("\n  %-10s %13s %13s  %s\n", "error", "ours", "expected", "where");
    int at = next_largest(report, -1);
    for (int shown = 0; at >= 0 && shown < MOST_SHOWN; shown++) {
        const sf_difference *result = &report->results[at];
        printf("  %-10.2e %13.6g %13.6g  %s, element %" PRId64 "%s\n", result->error, result->ours,
               result->theirs, result->name, result->index,
               result->error <= result->tolerance ? "" : "  WRONG");
        at = next_largest(report, at);
    }
}

static void print_losses(const sf_verify_report *report)
{
    printf("losses: %d compared\n  %-10s %13s %13s  %s\n", report->nlosses, "error", "ours",
           "expected", "step");
    for (int i = 0; i < report->nlosses; i++) {
        double expected = report->expected_losses[i];
        printf("  %-10.2e %13.9g %13.9g  %d\n", fabs(report->losses[i] - expected) / fabs(expected),
               report->losses[i], expected, i);
    }
}

static void print_report(const sf_verify_report *report)
{
    print_results(report);
    if (report->nlosses > 0)
        print_losses(report);
    printf("verify: %s", report->passed ? "passed" : "FAILED");
    if (report->worst >= 0) {
        const sf_difference *worst = &report->results[report->worst];
        printf(", largest error %.2e at %s (tolerance %g)", worst->error, worst->name,
               worst->tolerance);
    }
    if (report->nlosses > 0)
        printf(", losses within %.2e", report->loss_error);
    putchar('\n');
}

static void put_number(sf_json_writer *json, const char *key, double value)
{
    sf_json_key(json, key);
    sf_json_put_double(json, value);
}

static void put_result(sf_json_writer *json, const sf_difference *result)
{
    sf_json_begin_object(json);
    sf_json_key(json, "name");
    sf_json_put_string(json, result->name);
    put_number(json, "error", result->error);
    put_number(json, "tolerance", result->tolerance);
    sf_json_key(json, "index");
    sf_json_put_int(json, result->index);
    put_number(json, "ours", result->ours);
    put_number(json, "expected", result->theirs);
    if (result->is_weight)
        put_number(json, "before", result->before);
    sf_json_key(json, "by_moment");
    sf_json_put_bool(json, result->by_moment);
    sf_json_end_object(json);
}

static sf_status print_json(void *context)
{
    const sf_verify_report *report = context;
    sf_buf buf = {0};
    sf_json_writer json = {.buf = &buf, .indent = true};
    sf_json_begin_object(&json);
    sf_json_key(&json, "passed");
    sf_json_put_bool(&json, report->passed);
    sf_json_key(&json, "worst");
    if (report->worst >= 0)
        put_result(&json, &report->results[report->worst]);
    else
        sf_json_put_null(&json);
    put_number(&json, "loss_error", report->loss_error);
    put_number(&json, "loss_tolerance", report->loss_tolerance);
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
        put_result(&json, &report->results[i]);
    sf_json_end_array(&json);
    sf_json_end_object(&json);
    puts(buf.text);
    sf_buf_free(&buf);
    return SF_OK;
}

static sf_status verify(const char *step, const sf_load_options *load,
                        const sf_verify_options *options, bool json, sf_diag *diag)
{
    sf_graph *graph;
    sf_verify_report *report;
    sf_status status = sf_load(step, load, diag, &graph);
    if (status != SF_OK)
        return status;
    status = sf_verify(graph, options, diag, &report);
    if (options->progress)
        fputs("\r\033[K", stderr);
    if (report && json) {
        sf_status printed = sf_guarded(print_json, report, diag);
        if (printed != SF_OK)
            status = printed;
    } else if (report) {
        print_report(report);
    }
    sf_verify_free(report);
    sf_graph_free(graph);
    return status;
}

int sf_cli_verify(int argc, char **argv)
{
    sf_load_options load = {0};
    sf_verify_options verify_options = {0};
    const char *step;
    int64_t steps = -1, threads = 0;
    bool json = false;
    const sf_cli_option options[] = {
        {"against", 'a', SF_CLI_TEXT, &verify_options.against, "FILE",
         "safetensors with in.I, out.I, batch.K.NAME and losses"},
        {"tolerance", 't', SF_CLI_NUMBER, &verify_options.tolerance, "T",
         "largest relative error of a result (default 1e-4, or 5e-2 where the step computes in 16 "
         "bits)"},
        {"loss-tolerance", 0, SF_CLI_NUMBER, &verify_options.loss_tolerance, "T",
         "largest relative error of a loss (default 1e-4, or 2e-2 where the step computes in 16 "
         "bits)"},
        {"steps", 'n', SF_CLI_COUNT, &steps, "N",
         "steps whose losses to compare (default: as many as there are; 0: the results alone)"},
        {"engine", 'e', SF_CLI_TEXT, &verify_options.engine, "ENGINE",
         "cpu or oracle (default cpu)"},
        {"threads", 0, SF_CLI_COUNT, &threads, "T",
         "threads of the engine cpu (default: as many as the process may use)"},
        {"json", 0, SF_CLI_FLAG, &json, NULL, "for machines; all results"},
    };
    const sf_cli_command command = {
        .name = "verify",
        .synopsis =
            "STEP --against FILE [--tolerance T] [--loss-tolerance T] [--steps N] [--engine E] "
            "[--json]",
        .about = "Runs a step, compares every result with the one expected, then runs the steps "
                 "that follow and compares their losses.",
        .operand = "STEP",
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .load = &load,
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, &step, &exit_code))
        return exit_code;
    if (!verify_options.against)
        return sf_cli_misuse("verify", "--against FILE is missing");
    if (steps > INT_MAX)
        return sf_cli_misuse("verify", "--steps is too large");
    /* In sf_verify_options 0 stands for the default. */
    verify_options.steps = steps < 0 ? 0 : steps == 0 ? -1 : (int)steps;
    if (threads > INT_MAX)
        return sf_cli_misuse("verify", "--threads is too large");
    verify_options.threads = (int)threads;
    if (isatty(STDERR_FILENO))
        verify_options.progress = show_progress;
    sf_diag *diag = sf_cli_diag();
    return sf_cli_finish(verify(step, &load, &verify_options, json, diag), diag);
}
