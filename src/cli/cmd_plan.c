/* sheaf plan: from a step and a cluster to the best split. */
#include <ctype.h>
#include <inttypes.h>
#include <limits.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/diag.h"
#include "base/machine.h"
#include "cli/cli.h"

struct job {
    const char *step, *cluster;
    sf_load_options load;
    sf_cli_making making;
    sf_plan_options plan;
    sf_cli_script script;
    bool terminal;
};

/* On a terminal one line that is written over; elsewhere nothing, so that logs stay short. */
static bool print_progress(void *context, const sf_event *event)
{
    const struct job *job = context;
    if (job->terminal)
        fprintf(stderr, "\r\033[K%s", event->text);
    return true;
}

/* What the schedule costs is known from a second search, without it. The step becomes the one that it makes. */
static sf_status search_with_script(struct job *job, const sf_graph **step, sf_diag *diag,
                                    sf_primitives **kept, sf_plan **out)
{
    const sf_graph *graph = *step;
    sf_primitives *list;
    sf_plan *free_plan = NULL;
    sf_plan_options rest = job->plan;
    rest.misfit = NULL;
    job->script.ranks = sf_cluster_devices(job->plan.cluster);
    SF_TRY(sf_cli_run_script(&job->script, graph, diag, kept));
    list = *kept;
    *step = sf_primitives_graph(list);
    SF_TRY(sf_cli_check_unchanged(graph, *step, job->making.output, diag));
    sf_status status = sf_primitives_search(list, &job->plan, diag, out);
    if (status == SF_OK && sf_plan_search(graph, &rest, NULL, &free_plan) == SF_OK)
        sf_cli_say_cost(*out, free_plan);
    sf_plan_free(free_plan);
    return status;
}

static sf_status search(struct job *job, const sf_graph *graph, const sf_cluster *cluster,
                        sf_diag *diag)
{
    sf_plan *plan = NULL;
    sf_primitives *list = NULL;
    job->plan.cluster = cluster;
    sf_status status = job->script.path ? search_with_script(job, &graph, diag, &list, &plan)
                                        : sf_plan_search(graph, &job->plan, diag, &plan);
    if (job->terminal)
        fprintf(stderr, "\r\033[K");
    if (status == SF_OK && job->making.output)
        status = sf_plan_save(plan, graph, &(sf_output){.path = job->making.output}, diag);
    if (status == SF_OK && (!job->making.output || strcmp(job->making.output, "-") != 0))
        status = sf_plan_explain(plan, graph, cluster, NULL, &job->making.show, NULL, diag);
    sf_plan_free(plan);
    sf_primitives_free(list);
    return status;
}

static sf_status plan(struct job *job, sf_diag *diag)
{
    sf_graph *graph;
    sf_cluster *cluster;
    double began = sf_now();
    SF_TRY(sf_cli_try_output(job->making.output, job->step, job->cluster, diag));
    SF_TRY(sf_cluster_open(job->cluster, diag, &cluster));
    sf_status status = sf_load(job->step, &job->load, diag, &graph);
    if (status == SF_OK) {
        if (job->plan.seconds > 0) /* reading counts */
            job->plan.seconds = fmax(job->plan.seconds - (sf_now() - began), 1e-9);
        status = search(job, graph, cluster, diag);
        sf_graph_free(graph);
    }
    sf_cluster_free(cluster);
    return status;
}

/* A search makes graphs and programs and lets them go, hundreds of times. What is freed stays with the process: pages that go back to the
 * system have to be asked for, and cleared, again. */
static void keep_what_is_freed(void)
{
#ifdef __GLIBC__
    enum { LARGEST = 1 << 30, AT_ONCE = 1 << 26 };
    mallopt(M_MMAP_THRESHOLD, LARGEST);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_TOP_PAD, AT_ONCE);
#endif
}

int sf_cli_plan(int argc, char **argv)
{
    struct job job = {.plan = {.margin = SF_PLAN_MARGIN}};
    int64_t level = 3, threads = 0;
    const char *micro_batches = "auto", *co_shard = "auto", *stages = "auto";
    char recipe[64];
    const sf_cli_option options[] = {
        {SF_OPT_CLUSTER, &job.cluster,
         "what to plan for: a name of the library, a shorthand such as 8xH100, 2x8xV100 or "
         "8xA100+8xV100, or a "
         "file"},
        {SF_OPT_MEMORY, &job.plan.memory,
         "most memory of a rank, such as 12G (default: what the devices have)"},
        {SF_OPT_OPTIMIZE, &level, "2: faster; 3: more meshes (default)"},
        {SF_OPT_SECONDS, &job.plan.seconds,
         "stop improving so long after the start, as soon as something fits; the answer may then "
         "differ between runs"},
        {SF_OPT_RECIPES, &job.plan.recipes, "choose among the recipes alone"},
        {SF_OPT_MARGIN, &job.plan.margin,
         "how much faster than all recipes a searched plan must be to be taken (default 1; 0: the "
         "fastest is taken)"},
        {SF_OPT_COMPARE, &job.making.show.all,
         "list all meshes and recipes that were looked at, not the best of each recipe alone"},
        {SF_OPT_PASSES, &job.plan.passes,
         "rewrite programs by these passes, as in fsdp,prefetch,unshard, and price plans "
         "behind "
         "them; sheaf passes lists them"},
        {SF_OPT_SHARD_STATE, &job.plan.shard_state,
         "full: all state in pieces, gathered when it is needed: recipes with zero3 alone, behind "
         "--passes fsdp,prefetch,unshard; between: parameters in pieces between steps, behind "
         "--passes fsdp,unshard,prefetch,defer-gradient-readers; auto (default): whatever is "
         "fastest"},
        {SF_OPT_MICRO_BATCHES, &micro_batches,
         "turns that the batch is cut into, or auto (default): as few as make a plan fit that is "
         "then the fastest"},
        {SF_OPT_STAGES, &stages,
         "a pipeline of so many stages; 1: none; scopes that begin all but the first, as in "
         "layer_3,layer_6; or auto (default): where it is faster"},
        {SF_OPT_SCHEDULE, &job.plan.schedule,
         "the order of a pipeline: 1f1b, gpipe, zb-h1, ...; or a program in Lua, whose name ends "
         "in "
         ".lua: what it says holds, the rest is searched"},
        {SF_OPT_UNSAFE, &job.script.unsafe, "let that program use files and run others"},
        {SF_OPT_CO_SHARD, &co_shard,
         "heads and features in so many turns inside of each rank; RECIPE:N: what that recipe "
         "splits; N@SCOPE: in a scope alone; none; or auto (default): where a plan does not fit "
         "otherwise, or is faster so"},
        {SF_OPT_RECOMPUTE, &job.plan.recompute,
         "recompute rather than kept for the backward pass: none, text, layer, parts, "
         "cheap, full, scopes, as in layer_?/attn, or auto: as little as makes a plan fit "
         "(default: what "
         "the step's text computes again, where that fits; else as auto)"},
        {SF_OPT_THREADS, &threads, "how many to search with (default: as many as there are)"},
    };
    const sf_cli_command command = {
        .name = "plan",
        .synopsis = "STEP --cluster CLUSTER [--memory SIZE] [-O2] [--mesh AXES] [--pin PIN...] "
                    "[-o PLAN]",
        .about = "Finds the split of a step that takes the least time on a cluster and fits in "
                 "its memory, and says what it costs. --mesh names the only mesh to try. What "
                 "--pin says holds in the plan, and axes that it names are there. "
                 "docs/planning.md explains the search and the prices.",
        .operand = "STEP",
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .load = &job.load,
        .making = &job.making,
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, &job.step, &exit_code))
        return exit_code;
    if (!job.cluster)
        return sf_cli_misuse("plan", "give a --cluster, such as 2x8xV100");
    if (sf_cli_is_script(job.plan.schedule)) {
        job.script.path = job.plan.schedule;
        job.plan.schedule = NULL;
    }
    sf_cli_say_schedule(job.plan.schedule);
    if (job.script.unsafe && !job.script.path)
        return sf_cli_misuse("plan", "--unsafe is for a --schedule in Lua");
    if (level != 2 && level != 3)
        return sf_cli_misuse("plan", "the level is 2 or 3");
    if (!sf_cli_micro_batches(micro_batches, &job.plan.micro_batches))
        return sf_cli_misuse("plan", "--micro-batches is a number of at least 1, or auto");
    if (!sf_cli_micro_batches(stages, &job.plan.stages)) {
        if (!isalpha((unsigned char)*stages) && *stages != '_' && *stages != '*')
            return sf_cli_misuse("plan", "--stages is a number of at least 1, scopes, or auto");
        job.plan.stage_scopes = stages;
    }
    if (job.plan.stages == 1 && job.plan.schedule)
        return sf_cli_misuse("plan", "a --schedule is of a pipeline, which has --stages 2 or more");
    if (!sf_cli_co_shard(co_shard, recipe, sizeof recipe, &job.plan.co_shard, &job.plan.co_shards))
        return sf_cli_misuse("plan", "--co-shard is a number, RECIPE:NUMBER, none, or auto");
    if (threads > INT_MAX)
        return sf_cli_misuse("plan", "--threads is too large");
    /* In sf_plan_options 0 stands for the default. */
    job.plan.margin = job.plan.margin > 0 ? job.plan.margin : -1;
    job.plan.level = (int)level;
    job.plan.threads = (int)threads;
    job.plan.mesh = job.making.mesh;
    job.plan.pins = job.making.pins.at;
    job.plan.npins = job.making.pins.count;
    job.plan.cluster_name = job.cluster;
    sf_output standard = {0};
    job.plan.misfit = job.making.show.json ? &standard : NULL;
    job.plan.listener = print_progress;
    job.plan.context = &job;
    job.terminal = isatty(STDERR_FILENO);
    job.making.show.colour = sf_cli_colour(STDOUT_FILENO);
    sf_diag *diag = sf_cli_diag();
    keep_what_is_freed();
    return sf_cli_finish_making(plan(&job, diag), &job.making, diag);
}
