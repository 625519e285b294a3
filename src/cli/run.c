/* sheaf run: a few steps on synthetic data, to see how fast they are. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "cli/cli.h"

struct job {
    sf_cli_split split;
    sf_train_options options;
    double amount, flops; /* of a step: tokens or samples, operations */
    double later;         /* seconds of the steps after the first */
    int64_t steps;        /* made so far */
    sf_train_progress last;
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
        job->later += how->seconds;
    }
    printf("%6" PRId64 " %12.3f %12.6g\n", at->step, 1e3 * how->seconds, at->loss);
    fflush(stdout);
}

static bool print_event(void *context, const sf_event *at)
{
    struct job *job = context;
    if (at->rank > 0)
        return true;
    job->last = *at->train;
    job->steps = at->step;
    if (at->kind == SF_EVENT_START)
        print_start(at->train);
    else if (at->kind == SF_EVENT_STEP)
        print_step(job, at);
    return true;
}

/* The first step warms up. */
static void print_end(const struct job *job)
{
    const sf_train_progress *last = &job->last;
    char rate[SF_CLI_UNITS], flops[SF_CLI_UNITS], memory[SF_CLI_UNITS];
    double seconds = job->steps > 1 ? job->later / (double)(job->steps - 1) : last->seconds;
    if (!(seconds > 0))
        return;
    printf("%.3f ms a step, %s%s/s, %s/s, %s%s\n", 1e3 * seconds,
           sf_cli_count(job->amount / seconds, rate), last->counts_tokens ? "tokens" : "samples",
           sf_cli_flops(job->flops / seconds, flops), sf_cli_bytes((double)last->memory, memory),
           last->ranks > 1 ? " a rank" : "");
}

static sf_status run(struct job *job, sf_diag *diag)
{
    sf_graph *graph;
    sf_plan *plan;
    sf_status status = sf_cli_open(&job->split, diag, &graph, &plan);
    job->options.plan = plan;
    job->options.limit = job->split.limit;
    if (status == SF_OK)
        status = sf_train(graph, &job->options, diag, NULL);
    if (status == SF_OK)
        print_end(job);
    sf_plan_free(plan);
    sf_graph_free(graph);
    return status;
}

int sf_cli_run(int argc, char **argv)
{
    struct job job = {.options = {.steps = 10, .data = "synthetic", .listener = print_event}};
    int64_t threads = 0;
    const sf_cli_option options[] = {
        {"plan", 'p', SF_CLI_TEXT, &job.split.plan, "PLAN",
         "split the step as this plan says, over threads or, under mpirun, processes"},
        {"ranks", 'n', SF_CLI_COUNT, &job.split.ranks, "N",
         "how many ranks there are to be: those of the plan"},
        {"steps", 'N', SF_CLI_COUNT, &job.options.steps, "N", "how many steps (default 10)"},
        {"data", 'd', SF_CLI_TEXT, &job.options.data, "PATH",
         "as of train (default synthetic; synthetic:N for integers below N)"},
        {"engine", 'e', SF_CLI_TEXT, &job.options.engine, "ENGINE", "cpu or oracle (default cpu)"},
        {"threads", 't', SF_CLI_COUNT, &threads, "T",
         "threads (default: as many as the process may use)"},
        {"memory", 'm', SF_CLI_SIZE, &job.options.memory, "SIZE",
         "most memory for tensors, such as 512M (default: what the machine has)"},
        {"wait", 0, SF_CLI_NUMBER, &job.split.limit, "SECONDS",
         "how long a rank may wait for another (default 300)"},
        {"check", 0, SF_CLI_FLAG, &job.options.check, NULL,
         "check the program before it runs: memory, order, events"},
    };
    const sf_cli_command command = {
        .name = "run",
        .synopsis = "STEP [--plan PLAN] [-n N] [--steps N] [...]",
        .about = "Runs a step a few times on synthetic data, from the state that training starts "
                 "from, and prints the time and the loss of every step, then speed and memory. The "
                 "first step does not count in the speed. Nothing is kept.",
        .operand = "STEP",
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .load = &job.split.load,
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, &job.split.step, &exit_code))
        return exit_code;
    if (threads > INT_MAX)
        return sf_cli_misuse("run", "--threads is too large");
    if (job.options.steps < 1)
        return sf_cli_misuse("run", "there is at least one of --steps");
    if (job.split.ranks > 0 && !job.split.plan)
        return sf_cli_misuse("run", "--ranks needs a --plan");
    job.options.threads = (int)threads;
    job.options.context = &job;
    sf_diag *diag = sf_cli_diag();
    return sf_cli_finish(run(&job, diag), diag);
}
