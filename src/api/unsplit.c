#include "api/unsplit.h"

#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/hash.h"
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

static sf_status start_as_training(sf_unsplit *run, const char *init, const char *data,
                                   sf_diag *diag)
{
    const sf_graph *graph = run->graph;
    const char **names = sf_clean_names(graph, &run->arena);
    sf_pieces pieces = sf_pieces_whole(graph, &run->arena);
    sf_holder holder = {.tensors = run->split};
    sf_init_rules rules;
    sf_data_options options = {.source = data ? data : "synthetic", .seed = run->seed};
    bool any = false;
    run->wanted = SF_ARRAY(&run->arena, graph->top->narguments, bool);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        run->wanted[i] =
            !sf_argument_is_kept(&graph->arguments[i]) && graph->arguments[i].role != SF_ROLE_KEY;
        any = any || run->wanted[i];
    }
    SF_TRY(sf_init_parse(init, &run->arena, diag, &rules));
    SF_TRY(sf_init_random(&pieces, (const char *const *)names, &rules, run->seed, &holder, diag));
    if (!any)
        options.source = NULL;
    return sf_data_open(graph, (const char *const *)names, run->wanted, &options, diag, &run->data);
}

sf_status sf_unsplit_open(const sf_graph *graph, const char *file, const char *init,
                          const char *data, sf_diag *diag, sf_unsplit *out)
{
    *out = (sf_unsplit){.graph = graph};
    SF_TRY(sf_find_loss(graph, diag, &out->loss));
    SF_TRY(sf_check_state(graph, diag));
    make_tensors(out);
    SF_TRY(file ? start_from_file(out, file, diag) : start_as_training(out, init, data, diag));
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

/* The results, which may be the engine's arguments now. */
static sf_status take_results(const sf_unsplit *run, sf_tensor *out, sf_diag *diag)
{
    for (uint32_t i = 0; i < run->graph->top->nresults; i++)
        SF_TRY(sf_engine_see(run->runner.engine, i, diag, &out[i]));
    return SF_OK;
}

/* Every float by a unit in the last place, up or down. */
static void shake(const sf_tensor *tensor, uint64_t seed)
{
    enum { CHUNK = 1024 };
    double values[CHUNK];
    sf_dtype dtype = tensor->type->dtype;
    if (!sf_is_float(dtype))
        return;
    double unit = ldexp(1, -sf_dtype_get(dtype)->mantissa);
    for (int64_t first = 0; first < tensor->type->count; first += CHUNK) {
        int64_t rest = tensor->type->count - first, length = rest < CHUNK ? rest : CHUNK;
        sf_load_f64s(dtype, tensor->data, first, length, values);
        for (int64_t i = 0; i < length; i++)
            values[i] *= sf_hash_mix(seed, (uint64_t)(first + i)) & 1 ? 1 + unit : 1 - unit;
        sf_store_f64s(dtype, tensor->data, first, length, values);
    }
}

static sf_status evaluate_unsplit(const sf_unsplit *run, const sf_tensor *arguments, bool shaken,
                                  sf_tensor *results, sf_diag *diag)
{
    sf_engine *engine = run->runner.engine;
    for (uint32_t i = 0; i < run->graph->top->narguments; i++) {
        sf_tensor to;
        SF_TRY(sf_engine_lend(engine, i, true, diag, &to));
        copy_tensor(&arguments[i], &to);
        if (shaken)
            shake(&to, i);
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

static sf_status step_shaken(sf_unsplit *run, bool same, sf_tensor *results, sf_diag *diag)
{
    SF_TRY(evaluate_unsplit(run, run->split, true, results, diag));
    keep_results(run, results, run->shaken);
    if (!same)
        SF_TRY(evaluate_unsplit(run, run->drifted, false, results, diag));
    run->drifted_loss = go_on(run, results, run->drifted);
    return SF_OK;
}

static sf_status step_both(sf_unsplit *run, bool same, sf_tensor *results, sf_diag *diag)
{
    SF_TRY(evaluate_unsplit(run, run->split, false, results, diag));
    keep_results(run, results, run->theirs);
    if (!same)
        SF_TRY(evaluate_unsplit(run, run->own, false, results, diag));
    run->own_loss = go_on(run, results, run->own);
    return run->shakes ? step_shaken(run, same, results, diag) : SF_OK;
}

void sf_unsplit_shake(sf_unsplit *run)
{
    const sf_block *top = run->graph->top;
    run->shakes = true;
    run->shaken = SF_ARRAY(&run->arena, top->nresults, sf_tensor);
    run->drifted = SF_ARRAY(&run->arena, top->narguments, sf_tensor);
    for (uint32_t i = 0; i < top->nresults; i++)
        run->shaken[i] = new_tensor(&run->arena, run->theirs[i].type);
    for (uint32_t i = 0; i < top->narguments; i++)
        run->drifted[i] = run->graph->arguments[i].next == SF_NONE
                              ? run->split[i]
                              : new_tensor(&run->arena, run->split[i].type);
}

sf_status sf_unsplit_step(sf_unsplit *run, bool same, sf_diag *diag)
{
    sf_tensor *results = sf_alloc(run->graph->top->nresults * sizeof *results + 1);
    sf_status status = step_both(run, same, results, diag);
    sf_free(results);
    if (status == SF_OK && !isfinite(run->own_loss)) {
        sf_fail(diag, SF_EWRONG, SF_NOWHERE,
                "the loss of the unsplit run is %g, with which nothing can be compared",
                run->own_loss);
        return sf_hint(diag, "--against or --data may give it better numbers");
    }
    return status;
}
