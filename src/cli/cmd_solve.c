/* sheaf solve: picks a strategy for each node of a problem. */
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/machine.h"
#include "cli/cli.h"

struct job {
    const char *problem, *output;
    bool json, progress;
    sf_solve_options solve;
    double last;    /* when progress was printed */
    double reading; /* seconds */
};

/* A line every few seconds, fewer as the run gets long. */
static bool print_progress(void *context, const sf_event *event)
{
    struct job *job = context;
    const sf_solve_progress *progress = event->solve;
    double wait = progress->seconds < 10 ? 1 : progress->seconds < 60 ? 5 : 20;
    if (!job->progress || progress->seconds < job->last + wait)
        return true;
    job->last = progress->seconds;
    if (progress->feasible)
        fprintf(stderr, "%7.1f s  cost %" PRId64 "  bound %" PRId64 "  gap %.4f%%\n",
                progress->seconds, progress->cost, progress->bound,
                100 * (double)(progress->cost - progress->bound) / fabs((double)progress->cost));
    else
        fprintf(stderr, "%7.1f s  no answer yet  bound %" PRId64 "\n", progress->seconds,
                progress->bound);
    return true;
}

static const char *stop_name(sf_stop stop)
{
    switch (stop) {
    case SF_STOP_OPTIMAL:
        return "optimal";
    case SF_STOP_GAP:
        return "gap";
    case SF_STOP_INFEASIBLE:
        return "infeasible";
    case SF_STOP_SECONDS:
        return "seconds";
    case SF_STOP_WORK:
        return "work";
    case SF_STOP_ASKED:
        return "asked";
    }
    return "?";
}

static void print_failure(const sf_solution *found)
{
    bool proven = found->stop == SF_STOP_INFEASIBLE;
    printf("%s", proven ? "infeasible: " : "no answer found: ");
    if (found->over > 0)
        printf("at time %" PRId64 " the usage passes the limit by %" PRId64 "%s\n", found->time,
               found->over, proven ? " at least" : " in the best attempt");
    else
        printf("no assignment avoids what is forbidden%s\n",
               proven ? "" : ", as far as was searched");
}

/* The last line is for programs as much as for people; without an answer, or a bound, there is a dash. */
static void print_summary(const struct job *job, const sf_solution *found)
{
    char cost[32] = "-", bound[32] = "-", gap[32] = "-";
    if (found->feasible) {
        snprintf(cost, sizeof cost, "%" PRId64, found->cost);
        snprintf(gap, sizeof gap, "%.4f", 100 * found->gap);
    }
    if (found->stop != SF_STOP_INFEASIBLE)
        snprintf(bound, sizeof bound, "%" PRId64, found->bound);
    printf("cost %s bound %s gap %s%% nodes %" PRIu32 " seconds %.2f\n", cost, bound, gap,
           found->nodes, job->reading + found->seconds);
}

static void print_solution_json(const struct job *job, const sf_solution *found)
{
    printf("{\"stop\": \"%s\", \"feasible\": %s, \"nodes\": %" PRIu32 ", \"work\": %" PRId64
           ", \"seconds\": %.3f",
           stop_name(found->stop), found->feasible ? "true" : "false", found->nodes, found->work,
           job->reading + found->seconds);
    if (found->stop != SF_STOP_INFEASIBLE)
        printf(", \"bound\": %" PRId64, found->bound);
    if (found->feasible)
        printf(", \"cost\": %" PRId64 ", \"gap\": %.9f", found->cost, found->gap);
    else if (found->over > 0)
        printf(", \"time\": %" PRId64 ", \"over\": %" PRId64, found->time, found->over);
    printf("}\n");
}

static sf_status report(const struct job *job, const sf_solution *found, sf_diag *diag)
{
    if (job->json) {
        print_solution_json(job, found);
    } else {
        if (!found->feasible)
            print_failure(found);
        else
            printf("%s\n", found->stop == SF_STOP_OPTIMAL ? "optimal, proven"
                           : found->stop == SF_STOP_GAP   ? "within the gap asked for"
                                                          : "feasible; the budget is spent");
        print_summary(job, found);
    }
    if (job->output && found->feasible)
        return sf_solution_save(found, &SF_OPTIONS(sf_output, .path = job->output), diag);
    return SF_OK;
}

static sf_status solve(struct job *job, bool *feasible, sf_diag *diag)
{
    enum { DEFAULT_SECONDS = 60 };
    sf_choices *choices;
    sf_solution *found;
    double began = sf_now();
    sf_status status = sf_choices_load(job->problem, diag, &choices);
    if (status != SF_OK)
        return status;
    job->reading = sf_now() - began;
    if (job->solve.seconds == 0 && job->solve.work == 0)
        job->solve.seconds = DEFAULT_SECONDS;
    if (job->solve.seconds > 0)
        job->solve.seconds = fmax(job->solve.seconds - job->reading, 1e-3);
    status = sf_choices_solve(choices, &job->solve, diag, &found);
    sf_choices_free(choices);
    if (status != SF_OK)
        return status;
    *feasible = found->feasible;
    status = report(job, found, diag);
    sf_solution_free(found);
    return status;
}

int sf_cli_solve(int argc, char **argv)
{
    struct job job = {.solve.size = sizeof job.solve};
    int64_t threads = 0, seed = 0;
    double gap = 0;
    const sf_cli_option options[] = {
        {SF_OPT_SECONDS, &job.solve.seconds,
         "stop after T seconds (default 60, if --work is not given)"},
        {SF_OPT_WORK, &job.solve.work,
         "stop after W units of work; the result is then the same on every machine and for every "
         "number of threads"},
        {SF_OPT_GAP, &gap, "stop when the cost is proven to be within PERCENT of the optimum"},
        {SF_OPT_THREADS, &threads, "threads (default: all cores)"},
        {SF_OPT_SEED, &seed, "seed of the search (default 0)"},
        {SF_OPT_OUTPUT, &job.output,
         "write the chosen strategy of each node as a JSON list, counted from 0; - is standard "
         "output"},
        {SF_OPT_PROGRESS, &job.progress,
         "print cost, bound and gap on standard error from time to time (default on a terminal)"},
        {SF_OPT_JSON, &job.json, "print JSON"},
    };
    const sf_cli_command command = {
        .name = "solve",
        .synopsis = "PROBLEM [--seconds T | --work W] [-o FILE]",
        .about = "Chooses one strategy for each node of a problem so that the sum of node and edge "
                 "costs is minimal and usage stays within the limit at all times, and proves a "
                 "lower bound. PROBLEM is JSON as in the ASPLOS 2025 contest, plain, .gz or .xz. "
                 "Exits with 1 if no choice exists or none was found.",
        .operand = "PROBLEM",
        .options = options,
        .noptions = sizeof options / sizeof *options,
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, &job.problem, &exit_code))
        return exit_code;
    if (threads > INT_MAX)
        return sf_cli_misuse(command.name, "--threads %" PRId64 " is too many", threads);
    job.solve.threads = (int)threads;
    job.solve.seed = (uint64_t)seed;
    job.solve.gap = gap / 100;
    job.progress = job.progress || isatty(STDERR_FILENO);
    job.solve.listener = print_progress;
    job.solve.context = &job;
    bool feasible = false;
    sf_diag *diag = sf_cli_diag();
    int code = sf_cli_finish(solve(&job, &feasible, diag), diag);
    return code == SF_EXIT_GOOD && !feasible ? SF_EXIT_FAILED : code;
}
