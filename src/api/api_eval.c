/* Evaluating a step on values from a file. */
#include <inttypes.h>
#include <stdio.h>

#include "api/api_options.h"
#include "api/value_files.h"
#include "base/checked.h"
#include "base/guard.h"
#include "base/machine.h"
#include "base/mem.h"
#include "base/units.h"
#include "op/eval.h"
#include "op/op.h"
#include "op/slots.h"
#include "run/runner.h"
#include "sheaf/eval.h"

struct job {
    const sf_graph *graph;
    sf_eval_options options;
    sf_diag *diag;
    sf_arena arena;
    sf_safetensors inputs;
    sf_tensor *arguments, *results;
    sf_threads *threads;
};

/* Zeros can replace weights, but not arguments that may be an index or a seed. */
static sf_status make_zeros(struct job *job, int64_t limit)
{
    const sf_graph *graph = job->graph;
    int64_t total = 0;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_type *type = sf_argument_type(graph, i);
        char text[SF_TYPE_TEXT];
        if (!sf_is_inexact(type->dtype)) {
            sf_fail(job->diag, SF_EINPUT, SF_NOWHERE,
                    "the step needs inputs: its argument '%s' is %s", graph->arguments[i].name,
                    sf_type_text(type, text));
            return sf_hint(
                job->diag,
                "zeros stand in for floats alone; option inputs names a file of safetensors "
                "with in.0, in.1, ...");
        }
        if (!sf_add(total, sf_type_bytes(type), &total) || (limit && total > limit)) {
            sf_fail(job->diag, SF_ENOMEM, SF_NOWHERE, "the arguments need more than %s of memory",
                    sf_text_bytes((double)limit).at);
            return sf_hint(job->diag, "option memory sets the limit");
        }
        job->arguments[i] = (sf_tensor){.type = type};
        job->arguments[i].data = sf_arena_alloc(&job->arena, (size_t)sf_type_bytes(type));
    }
    return SF_OK;
}

static sf_status write_results(const struct job *job)
{
    uint32_t count = job->graph->top->nresults;
    sf_arena arena = {0};
    sf_named_tensor *named = SF_ARRAY(&arena, count, sf_named_tensor);
    for (uint32_t i = 0; i < count; i++) {
        char *name = sf_arena_alloc(&arena, SF_VALUE_NAME);
        snprintf(name, SF_VALUE_NAME, "out.%u", i);
        named[i] = (sf_named_tensor){sf_str_of(name), job->results[i]};
    }
    sf_status status = sf_safetensors_write(job->options.outputs, count, named, job->diag);
    sf_arena_free(&arena);
    return status;
}

/* The oracle evaluates in place; an engine is opened, run once, and closed. */
static sf_status run_once(struct job *job, int64_t limit)
{
    const char *name = job->options.engine ? job->options.engine : "oracle";
    sf_runner_options options = {.engine = name, .with = {.pool = job->threads, .memory = limit}};
    sf_runner runner;
    SF_TRY(sf_engine_find(name, job->diag, &name));
    if (!sf_engine_target(name))
        return sf_eval_graph(job->graph, job->arguments, job->results, limit, job->diag);
    sf_status status = sf_runner_open(job->graph, &options, job->diag, &runner);
    if (status == SF_OK)
        status = sf_engine_evaluate(runner.engine, job->arguments, job->results, job->diag);
    sf_runner_close(&runner);
    return status;
}

static sf_status evaluate_values(struct job *job)
{
    const sf_graph *graph = job->graph;
    const char *inputs = job->options.inputs;
    int64_t limit = job->options.memory ? job->options.memory : sf_machine_memory();
    job->arguments = SF_ARRAY(&job->arena, graph->top->narguments, sf_tensor);
    job->results = SF_ARRAY(&job->arena, graph->top->nresults, sf_tensor);
    if (inputs) {
        SF_TRY(sf_safetensors_read(inputs, job->diag, &job->inputs));
        SF_TRY(sf_values_arguments(graph, &job->inputs, inputs, job->diag, job->arguments));
    } else {
        SF_TRY(make_zeros(job, limit));
    }
    sf_status status = run_once(job, limit);
    if (status == SF_ENOMEM)
        return sf_hint(job->diag, "option memory sets the limit");
    SF_TRY(status);
    return job->options.outputs ? write_results(job) : SF_OK;
}

static sf_status eval_guarded(void *context)
{
    struct job *job = context;
    sf_status status = evaluate_values(job);
    if (job->results)
        sf_values_free(job->graph->top->nresults, job->results);
    sf_safetensors_close(&job->inputs);
    sf_arena_free(&job->arena);
    return status;
}

sf_status sf_eval_file(const sf_graph *graph, const sf_eval_options *options, sf_diag *diag)
{
    SF_NEED(diag, graph);
    struct job job = {.graph = graph, .diag = diag};
    SF_TRY(SF_TAKE(sf_eval_options, options, &job.options, diag));
    SF_CHECK_OPTIONS(diag, {"memory", (double)job.options.memory},
                     {"threads", job.options.threads});
    SF_TRY(sf_threads_open(job.options.threads, diag, &job.threads));
    sf_status status = sf_guarded(eval_guarded, &job, diag);
    sf_threads_free(job.threads);
    return status;
}

int64_t sf_graph_checks(const sf_graph *graph)
{
    SF_NEED_OR(0, graph);
    int64_t checks = 0;
    for (size_t i = 0; i < graph->nnodes; i++) {
        const sf_node *node = graph->nodes[i];
        if (sf_is(node, SF_OP_CUSTOM_CALL) &&
            sf_str_starts(sf_str_of(node->attrs[SF_CUSTOM_TARGET]->text), "check.expect_"))
            checks++;
    }
    return checks;
}
