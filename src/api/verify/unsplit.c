#include "api/verify/unsplit.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "ir/name.h"
#include "train/init.h"
#include "train/train.h"

static sf_tensor new_tensor(sf_arena *arena, const sf_type *type)
{
    return (sf_tensor){.type = type, .data = sf_arena_alloc(arena, (size_t)sf_type_bytes(type))};
}

static void copy_tensor(const sf_tensor *from, const sf_tensor *to)
{
    memcpy(to->data, from->data, (size_t)sf_type_bytes(to->type));
}

static void make_tensors(sf_unsplit *run)
{
    const sf_block *top = run->graph->top;
    run->split = SF_ARRAY(&run->arena, top->narguments, sf_tensor);
    run->own = SF_ARRAY(&run->arena, top->narguments, sf_tensor);
    run->theirs = SF_ARRAY(&run->arena, top->nresults, sf_tensor);
    for (uint32_t i = 0; i < top->narguments; i++) {
        const sf_type *type = sf_argument_type(run->graph, i);
        run->split[i] = new_tensor(&run->arena, type);
        run->own[i] = run->graph->arguments[i].next == SF_NONE ? run->split[i]
                                                               : new_tensor(&run->arena, type);
    }
    for (uint32_t i = 0; i < top->nresults; i++)
        run->theirs[i] = new_tensor(&run->arena, sf_result_type(run->graph, i));
}

static sf_status start_from_file(sf_unsplit *run, const char *file, sf_diag *diag)
{
    run->has_file = true;
    SF_TRY(sf_replay_open(run->graph, file, &run->arena, diag, &run->replay));
    sf_replay_find(&run->replay, &run->arena);
    for (uint32_t i = 0; i < run->graph->top->narguments; i++)
        copy_tensor(&run->replay.arguments[i], &run->split[i]);
    return SF_OK;
}

static sf_status draw_state(sf_unsplit *run, sf_arena *arena, sf_diag *diag)
{
    const char **names = sf_clean_names(run->graph, arena);
    sf_rank_shards shards = sf_rank_shards_whole(run->graph, arena);
    sf_holder holder = {.tensors = run->split};
    sf_init_rules rules;
    SF_TRY(sf_init_parse(run->init, arena, diag, &rules));
    return sf_init_random(&shards, (const char *const *)names, &rules, run->seed, NULL, &holder,
                          diag);
}

static sf_status start_as_training(sf_unsplit *run, const char *data, sf_diag *diag)
{
    const sf_graph *graph = run->graph;
    const char **names = sf_clean_names(graph, &run->arena);
    sf_data_options options = {.source = data ? data : "synthetic", .seed = run->seed};
    bool any = false;
    run->wanted = SF_ARRAY(&run->arena, graph->top->narguments, bool);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        run->wanted[i] =
            !sf_argument_is_kept(&graph->arguments[i]) && graph->arguments[i].role != SF_ROLE_KEY;
        any = any || run->wanted[i];
    }
    SF_TRY(draw_state(run, &run->arena, diag));
    if (!any)
        options.source = NULL;
    return sf_data_open(graph, (const char *const *)names, run->wanted, &options, diag, &run->data);
}

sf_status sf_unsplit_open(const sf_graph *graph, const sf_verify_options *options, sf_diag *diag,
                          sf_unsplit *out)
{
    *out = (sf_unsplit){.graph = graph, .init = options->init, .seed = options->seed};
    SF_TRY(sf_find_loss(graph, diag, &out->loss));
    SF_TRY(sf_check_state(graph, diag));
    make_tensors(out);
    SF_TRY(options->against ? start_from_file(out, options->against, diag)
                            : start_as_training(out, options->data, diag));
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].next != SF_NONE)
            copy_tensor(&out->split[i], &out->own[i]);
    return SF_OK;
}

void sf_unsplit_close(sf_unsplit *run)
{
    sf_replay_close(&run->replay);
    sf_data_close(&run->data);
    sf_arena_free(&run->arena);
}

int sf_unsplit_count(const sf_unsplit *run)
{
    return run->has_file ? sf_replay_count(&run->replay) : INT_MAX;
}

sf_status sf_unsplit_batch(sf_unsplit *run, int step, sf_diag *diag)
{
    bool changed;
    if (!run->has_file) {
        SF_TRY(sf_data_batch(&run->data, step, run->split, diag));
        sf_fill_keys(run->graph, run->seed, step, run->split);
        return SF_OK;
    }
    SF_TRY(sf_replay_batch(&run->replay, step, diag, &changed));
    for (uint32_t i = 0; i < run->graph->top->narguments; i++)
        if (run->graph->arguments[i].next == SF_NONE)
            copy_tensor(&run->replay.arguments[i], &run->split[i]);
    return SF_OK;
}

static void follow(const sf_graph *graph, const sf_tensor *results, const sf_tensor *arguments)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].next != SF_NONE)
            copy_tensor(&results[graph->arguments[i].next], &arguments[i]);
}

void sf_unsplit_follow(sf_unsplit *run, const sf_tensor *results)
{
    follow(run->graph, results, run->split);
}

sf_status sf_unsplit_restart(sf_unsplit *run, sf_arena *scratch, sf_diag *diag)
{
    if (!run->has_file)
        return draw_state(run, scratch, diag);
    for (uint32_t i = 0; i < run->graph->top->narguments; i++)
        if (run->graph->arguments[i].next != SF_NONE)
            copy_tensor(&run->replay.arguments[i], &run->split[i]);
    return SF_OK;
}

/* The results, which may be the engine's arguments now. */
static sf_status take_results(const sf_unsplit *run, sf_tensor *out, sf_diag *diag)
{
    for (uint32_t i = 0; i < run->graph->top->nresults; i++)
        SF_TRY(sf_engine_see(run->runner.engine, i, diag, &out[i]));
    return SF_OK;
}

static sf_status evaluate_unsplit(const sf_unsplit *run, const sf_tensor *arguments,
                                  sf_tensor *results, sf_diag *diag)
{
    sf_engine *engine = run->runner.engine;
    for (uint32_t i = 0; i < run->graph->top->narguments; i++) {
        sf_tensor to;
        SF_TRY(sf_engine_lend(engine, i, true, diag, &to));
        copy_tensor(&arguments[i], &to);
        SF_TRY(sf_engine_give_back(engine, i, diag));
    }
    SF_TRY(sf_engine_step(engine, diag));
    return take_results(run, results, diag);
}

static void keep_results(const sf_unsplit *run, const sf_tensor *results, const sf_tensor *to)
{
    for (uint32_t i = 0; i < run->graph->top->nresults; i++)
        copy_tensor(&results[i], &to[i]);
}

/* Goes on from `state`. */
static double go_on(const sf_unsplit *run, const sf_tensor *results, const sf_tensor *state)
{
    double loss = sf_get_f64(&results[run->loss], 0);
    follow(run->graph, results, state);
    return loss;
}

static sf_status step_both(sf_unsplit *run, bool same, sf_tensor *results, sf_diag *diag)
{
    SF_TRY(evaluate_unsplit(run, run->split, results, diag));
    keep_results(run, results, run->theirs);
    if (!same)
        SF_TRY(evaluate_unsplit(run, run->own, results, diag));
    run->own_loss = go_on(run, results, run->own);
    return SF_OK;
}

sf_status sf_unsplit_step(sf_unsplit *run, bool same, sf_diag *diag)
{
    sf_tensor *results = sf_alloc(run->graph->top->nresults * sizeof *results + 1);
    sf_status status = step_both(run, same, results, diag);
    sf_free(results);
    if (status == SF_OK && !isfinite(run->own_loss)) {
        sf_fail(diag, SF_EMISMATCH, SF_NOWHERE,
                "the loss of the unsplit run is %g, with which nothing can be compared",
                run->own_loss);
        return sf_hint(diag, "option against or option data may give it better numbers");
    }
    return status;
}
