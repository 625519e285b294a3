/* sheaf run: a few steps on synthetic data, to see how fast they are. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/guard.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/cli_progress.h"

struct job {
    sf_cli_split split;
    sf_train_options options;
    double amount, flops; /* of a step: tokens or samples, operations */
    double later;         /* seconds of the steps after the first, */
    double waited;        /* and those in which these waited for data */
    int64_t steps;        /* made so far */
    sf_cli_progress last;
    sf_output profile;
    bool json;
    struct sample {
        double seconds, waited, loss;
    } * samples; /* of the steps, where they are for machines */
};

static void print_start(const sf_train_progress *at)
{
    char parameters[SF_CLI_UNITS];
    printf("%sparameters, engine %s, %d thread%s", sf_cli_count((double)at->parameters, parameters),
           at->engine, at->threads, at->threads == 1 ? "" : "s");
    if (at->ranks > 1)
        printf(" on each of %d ranks", at->ranks);
    printf("\n%6s %12s %12s\n", "step", "ms", "loss");
}

static void print_step(struct job *job, const sf_event *at)
{
    const sf_train_progress *how = at->train;
    if (at->step == 1) {
        job->amount = how->rate * how->seconds;
        job->flops = how->flops * how->seconds;
    } else {
        job->later += how->computed;
        job->waited += how->waited;
    }
    if (job->samples)
        job->samples[at->step - 1] = (struct sample){how->computed, how->waited, at->loss};
    if (job->json)
        return;
    printf("%6" PRId64 " %12.3f %12.6g\n", at->step, 1e3 * how->computed, at->loss);
    fflush(stdout);
}

static bool print_event(void *context, const sf_event *at)
{
    struct job *job = context;
    if (at->rank > 0)
        return true;
    sf_cli_keep_progress(&job->last, at->train);
    job->steps = at->step;
    if (at->kind == SF_EVENT_START && !job->json)
        print_start(at->train);
    else if (at->kind == SF_EVENT_STEP)
        print_step(job, at);
    return true;
}

/* Of a step; the first one warms up. */
static double find_seconds(const struct job *job)
{
    return job->steps > 1 ? job->later / (double)(job->steps - 1) : job->last.at.computed;
}

static double find_waited(const struct job *job)
{
    return job->steps > 1 ? job->waited / (double)(job->steps - 1) : job->last.at.waited;
}

/* A step waits for inputs that are drawn concurrently if that takes longer than the step before. */
static void print_waited(double seconds, double waited)
{
    enum { PERCENT = 5 };
    if (100 * waited > PERCENT * seconds)
        printf("and %s a step, which do not count, to wait for its data\n",
               sf_text_seconds(waited).at);
}

static void print_end(const struct job *job)
{
    const sf_train_progress *last = &job->last.at;
    char rate[SF_CLI_UNITS], flops[SF_CLI_UNITS];
    double seconds = find_seconds(job);
    if (!(seconds > 0))
        return;
    printf("%s a step, %s%s/s, %s/s, %s%s\n", sf_text_seconds(seconds).at,
           sf_cli_count(job->amount / seconds, rate), last->counts_tokens ? "tokens" : "samples",
           sf_cli_flops(job->flops / seconds, flops), sf_text_bytes((double)last->memory).at,
           last->ranks > 1 ? " a rank" : "");
    print_waited(seconds, find_waited(job));
}

static sf_status print_run_json(void *context)
{
    const struct job *job = context;
    double seconds = find_seconds(job);
    sf_buf buf = {0};
    sf_json_writer json = {.buf = &buf, .indent = true};
    sf_json_begin_object(&json);
    sf_cli_put_progress(&json, &job->last.at);
    sf_json_add_double(&json, "seconds", seconds);
    sf_json_add_double(&json, "data_seconds", find_waited(job));
    sf_cli_put_speed(&json, job->amount / seconds, job->flops / seconds);
    sf_json_key(&json, "steps");
    sf_json_begin_array(&json);
    for (int64_t i = 0; i < job->steps; i++) {
        sf_json_begin_object(&json);
        sf_json_add_double(&json, "seconds", job->samples[i].seconds);
        sf_json_add_double(&json, "data_seconds", job->samples[i].waited);
        sf_json_add_double(&json, "loss", job->samples[i].loss);
        sf_json_end_object(&json);
    }
    sf_json_end_array(&json);
    sf_json_end_object(&json);
    puts(buf.text);
    sf_buf_free(&buf);
    return SF_OK;
}

static sf_status print_run(struct job *job, sf_diag *diag)
{
    if (job->json && job->steps > 0) /* of several processes, one receives the events */
        return sf_guarded(print_run_json, job, diag);
    if (!job->json)
        print_end(job);
    return SF_OK;
}

static sf_status run(struct job *job, sf_diag *diag)
{
    sf_graph *graph;
    sf_plan *plan;
    sf_status status = sf_cli_open(&job->split, diag, &graph, &plan);
    job->options.plan = plan;
    job->options.limit = job->split.limit;
    if (job->json && status == SF_OK) {
        job->samples = calloc((size_t)job->options.steps, sizeof *job->samples);
        if (!job->samples)
            status = sf_fail(diag, SF_ENOMEM, SF_NOWHERE, "no memory to remember %" PRId64 " steps",
                             job->options.steps);
    }
    if (status == SF_OK)
        status = sf_train(graph, &job->options, diag, NULL);
    if (status == SF_OK)
        status = print_run(job, diag);
    free(job->samples);
    sf_plan_free(plan);
    sf_graph_free(graph);
    return status;
}

int sf_cli_run(int argc, char **argv)
{
    struct job job = {.options = {.size = sizeof job.options,
                                  .steps = 10,
                                  .data = "synthetic",
                                  .listener = print_event},
                      .profile.size = sizeof job.profile};
    int64_t threads = 0;
    const sf_cli_option options[] = {
        {SF_OPT_PLAN, &job.split.plan,
         "split the step by this plan, over threads or, under mpirun, processes"},
        {SF_OPT_RANKS, &job.split.ranks,
         "number of ranks; must be that of the plan; with --schedule, the value of sheaf.ranks"},
        {SF_OPT_SCHEDULE, &job.split.script.path, SF_CLI_SCHEDULE},
        {SF_OPT_UNSAFE, &job.split.script.unsafe,
         "let the Lua program open files and run other programs"},
        {SF_OPT_PASSES, &job.split.passes, SF_CLI_PASSES},
        {SF_OPT_STEPS, &job.options.steps, "number of steps (default 10)"},
        {SF_OPT_DATA, &job.options.data,
         "data, as in sheaf train (default synthetic; synthetic:N draws integers below N)"},
        {SF_OPT_ENGINE, &job.options.engine, SF_CLI_ENGINE},
        {SF_OPT_THREADS, &threads, "threads (default: as many as the process may use)"},
        {SF_OPT_MEMORY, &job.options.memory,
         "limit on memory for tensors, such as 512M (default: what the machine has)"},
        {SF_OPT_DEVICE_MEMORY, &job.options.device_memory, SF_CLI_DEVICE_MEMORY},
        {SF_OPT_HOST_LINK, &job.options.host_link, SF_CLI_HOST_LINK},
        {SF_OPT_PRECISION, &job.options.precision, SF_CLI_PRECISION},
        {SF_OPT_WAIT, &job.split.limit,
         "seconds a rank waits for another rank before the run fails (default 300)"},
        {SF_OPT_CHECK, &job.options.check,
         "check each program before it runs: memory, order, events"},
        {SF_OPT_PROFILE, &job.profile.path,
         "write where the time of a step goes: a table, or the timeline of the last step if FILE "
         "ends in .json; - is standard output"},
        {SF_OPT_JSON, &job.json,
         "print one JSON object: speed, memory, and time and loss of each step"},
    };
    const sf_cli_command command = {
        .name = "run",
        .synopsis = "[STEP] [--plan PLAN] [-n N] [--steps N] [...]",
        .about = "Runs a step a few times on synthetic data from the initial state of training. "
                 "Prints time and loss of each step, then speed and memory. The first step and "
                 "the wait for data, which are drawn beside the step before, do not count. "
                 "Nothing is saved.",
        .operand = "STEP",
        .optional = true, /* a plan leads to its own */
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .load = &job.split.load,
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, &job.split.step, &exit_code))
        return exit_code;
    if (!job.split.step && !job.split.plan)
        return sf_cli_misuse(command.name, "STEP is missing");
    if (threads > INT_MAX)
        return sf_cli_misuse("run", "--threads is too large");
    if (job.json && job.profile.path && strcmp(job.profile.path, "-") == 0)
        return sf_cli_misuse("run", "--json and --profile cannot both go to standard output");
    if (job.options.steps < 1)
        return sf_cli_misuse("run", "--steps is at least 1");
    if (job.split.passes && !job.split.plan)
        return sf_cli_misuse("run", "--passes needs a --plan");
    job.split.memory = job.options.device_memory ? job.options.device_memory : job.options.memory;
    if (job.split.script.path && (job.split.plan || !sf_cli_is_script(job.split.script.path)))
        return sf_cli_misuse("run", "a --schedule is a file that ends in .lua, and no --plan");
    if (job.split.script.unsafe && !job.split.script.path)
        return sf_cli_misuse("run", "--unsafe is for a --schedule in Lua");
    if (job.split.ranks > 0 && !job.split.plan && !job.split.script.path)
        return sf_cli_misuse("run", "--ranks needs a --plan");
    job.options.threads = (int)threads;
    job.options.context = &job;
    sf_cli_set_profile(&job.profile, &job.options);
    sf_diag *diag = sf_cli_diag();
    return sf_cli_finish(run(&job, diag), diag);
}
