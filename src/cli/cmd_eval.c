/* sheaf eval: runs a step once with the reference kernels. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/diag.h"
#include "cli/cli.h"

static sf_status evaluate_step(const char *step, const sf_load_options *load,
                               const sf_eval_options *options, sf_diag *diag)
{
    sf_graph *graph;
    SF_TRY(sf_cli_try_output(options->outputs, step, options->inputs, diag));
    sf_status status = sf_load(step, load, diag, &graph);
    if (status != SF_OK)
        return status;
    status = sf_eval_file(graph, options, diag);
    int64_t checks = sf_graph_checks(graph);
    bool quiet = options->outputs && strcmp(options->outputs, "-") == 0;
    if (status == SF_OK && checks > 0 && !quiet)
        printf("%" PRId64 " check%s passed\n", checks, checks == 1 ? "" : "s");
    else if (status == SF_OK && !options->outputs)
        printf("evaluated; --output FILE keeps the results\n");
    sf_graph_free(graph);
    return status;
}

int sf_cli_eval(int argc, char **argv)
{
    sf_load_options load = {.size = sizeof load};
    sf_eval_options eval = {.size = sizeof eval};
    int64_t threads = 0;
    const char *step;
    const sf_cli_option options[] = {
        {SF_OPT_INPUTS, &eval.inputs,
         "safetensors file with in.0, in.1, ... or the names of the arguments (default: zeros, if "
         "all arguments are floats or complex)"},
        {SF_OPT_OUTPUT, &eval.outputs,
         "write the results to this safetensors file as out.0, out.1, ..."},
        {SF_OPT_MEMORY, &eval.memory,
         "limit on memory for tensors, such as 512M (default: what the machine has)"},
        {SF_OPT_ENGINE, &eval.engine, "oracle (default; plain and exact), cpu or cuda"},
        {SF_OPT_THREADS, &threads,
         "threads of the cpu engine (default: as many as the process may use)"},
    };
    const sf_cli_command command = {
        .name = "eval",
        .synopsis = "STEP [--inputs FILE] [--output FILE] [--memory SIZE] [--engine E]",
        .about =
            "Runs a step once, by default with the reference kernels. A step that checks itself "
            "(check.expect_eq and similar custom calls) fails if a check does not hold.",
        .operand = "STEP",
        .options = options,
        .noptions = sizeof options / sizeof *options,
        .load = &load,
    };
    int exit_code;
    if (!sf_cli_parse(&command, argc, argv, &step, &exit_code))
        return exit_code;
    if (threads > INT_MAX)
        return sf_cli_misuse("eval", "--threads is too large");
    eval.threads = (int)threads;
    sf_diag *diag = sf_cli_diag();
    return sf_cli_finish(evaluate_step(step, &load, &eval, diag), diag);
}
