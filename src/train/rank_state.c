#include "train/rank_state.h"

#include <string.h>

#include "ir/name.h"
#include "pass/agree_passes.h"

/* The program of this rank, and its shards. */
static sf_status take_part(sf_rank_state *rank_state, sf_diag *diag)
{
    const sf_rank_state_options *options = &rank_state->options;
    if (!options->plan) {
        rank_state->shards = rank_state->results =
            sf_rank_shards_whole(options->graph, &rank_state->arena);
        rank_state->results.layouts =
            SF_ARRAY(&rank_state->arena, options->graph->top->nresults, sf_layout);
        return SF_OK;
    }
    SF_TRY(sf_plan_expect(options->plan, options->graph, diag));
    int rank = options->comm ? sf_comm_rank(options->comm) : 0;
    rank_state->shards =
        (sf_rank_shards){options->graph, options->plan->mesh, rank, options->plan->arguments};
    rank_state->results = rank_state->shards;
    rank_state->results.layouts = options->plan->results;
    return sf_local_new(options->graph, options->plan, rank, diag, &rank_state->local);
}

static sf_status rewrite(void *context, sf_program *program, sf_diag *diag)
{
    sf_rank_state *rank_state = context;
    return sf_rewrite_together(rank_state->options.plan, rank_state->options.comm, program, diag);
}

static sf_status start_rank_engine(sf_rank_state *rank_state, sf_diag *diag)
{
    const sf_rank_state_options *o = &rank_state->options;
    sf_runner_options options = {.engine = o->engine,
                                 .mesh = &rank_state->shards.mesh,
                                 .rank = rank_state->shards.rank,
                                 .check = o->check,
                                 .rewrite = o->plan && *o->plan->passes.list ? rewrite : NULL,
                                 .context = rank_state,
                                 .with = {.pool = o->pool,
                                          .memory = o->memory,
                                          .device_memory = o->device_memory,
                                          .host_link = o->host_link,
                                          .precision = o->precision,
                                          .comm = o->comm}};
    return sf_runner_open(rank_state->local ? rank_state->local->graph : o->graph, &options, diag,
                          &rank_state->runner);
}

/* Batches and keys that are split are made whole first. */
static void make_wholes(sf_rank_state *rank_state)
{
    const sf_graph *graph = rank_state->options.graph;
    rank_state->inputs = SF_ARRAY(&rank_state->arena, graph->top->narguments, sf_tensor);
    rank_state->wholes = SF_ARRAY(&rank_state->arena, graph->top->narguments, char *);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_type *type = sf_rank_shards_type(&rank_state->shards, i);
        rank_state->inputs[i].type = type;
        if (!sf_argument_is_kept(&graph->arguments[i]) &&
            sf_rank_shards_is_split(&rank_state->shards, i))
            rank_state->wholes[i] = sf_arena_alloc(&rank_state->arena, (size_t)sf_type_bytes(type));
    }
}

sf_status sf_rank_state_open(const sf_rank_state_options *options, sf_diag *diag,
                             sf_rank_state *out)
{
    *out = (sf_rank_state){.options = *options};
    SF_TRY(sf_engine_choose(options->engine, diag, &out->options.engine));
    out->names = sf_clean_names(options->graph, &out->arena);
    SF_TRY(take_part(out, diag));
    SF_TRY(start_rank_engine(out, diag));
    make_wholes(out);
    return SF_OK;
}

void sf_rank_state_close(sf_rank_state *rank_state)
{
    sf_runner_close(&rank_state->runner);
    sf_local_free(rank_state->local);
    sf_arena_free(&rank_state->arena);
}

sf_holder sf_rank_state_holder(const sf_rank_state *rank_state)
{
    return (sf_holder){.engine = rank_state->runner.engine};
}

sf_state sf_rank_state_values(const sf_rank_state *rank_state)
{
    return (sf_state){&rank_state->shards, rank_state->names, sf_rank_state_holder(rank_state),
                      rank_state->options.comm};
}

sf_status sf_rank_state_lend_inputs(sf_rank_state *rank_state, const bool *which, sf_diag *diag)
{
    for (uint32_t i = 0; i < rank_state->options.graph->top->narguments; i++) {
        sf_tensor lent;
        if (!which[i])
            continue;
        if (rank_state->wholes[i]) {
            rank_state->inputs[i].data = rank_state->wholes[i];
            continue;
        }
        SF_TRY(sf_engine_lend(rank_state->runner.engine, i, true, diag, &lent));
        rank_state->inputs[i].data = lent.data;
    }
    return SF_OK;
}

/* Lends the shard, until it is returned. */
static sf_status cut_piece(sf_rank_state *rank_state, uint32_t argument, const void *whole,
                           sf_diag *diag)
{
    const sf_type *type = sf_rank_shards_type(&rank_state->shards, argument);
    sf_tensor shard;
    SF_TRY(sf_engine_lend(rank_state->runner.engine, argument, true, diag, &shard));
    sf_cut_shard(sf_rank_shards_runs(&rank_state->shards, argument),
                 sf_dtype_get(type->dtype)->bytes, whole, shard.data);
    return SF_OK;
}

sf_status sf_rank_state_write(sf_rank_state *rank_state, uint32_t argument, const void *whole,
                              sf_diag *diag)
{
    SF_TRY(cut_piece(rank_state, argument, whole, diag));
    return sf_engine_give_back(rank_state->runner.engine, argument, diag);
}

sf_status sf_rank_state_read(sf_rank_state *rank_state, uint32_t argument, void *whole,
                             sf_diag *diag)
{
    const sf_type *type = sf_rank_shards_type(&rank_state->shards, argument);
    sf_tensor shard;
    SF_TRY(sf_engine_lend(rank_state->runner.engine, argument, false, diag, &shard));
    SF_TRY(sf_rank_shards_join(&rank_state->shards, argument, shard.data, type, whole,
                               rank_state->options.comm, diag));
    return sf_engine_give_back(rank_state->runner.engine, argument, diag);
}

sf_status sf_rank_state_write_shard(sf_rank_state *rank_state, uint32_t argument, const void *data,
                                    size_t bytes, sf_diag *diag)
{
    sf_tensor shard;
    SF_TRY(sf_engine_lend(rank_state->runner.engine, argument, true, diag, &shard));
    SF_ASSERT((int64_t)bytes <= sf_type_bytes(shard.type));
    memcpy(shard.data, data, bytes);
    return sf_engine_give_back(rank_state->runner.engine, argument, diag);
}

sf_status sf_rank_state_read_shard(sf_rank_state *rank_state, uint32_t argument, void *data,
                                   size_t bytes, sf_diag *diag)
{
    sf_tensor shard;
    SF_TRY(sf_engine_lend(rank_state->runner.engine, argument, false, diag, &shard));
    SF_ASSERT((int64_t)bytes <= sf_type_bytes(shard.type));
    memcpy(data, shard.data, bytes);
    return sf_engine_give_back(rank_state->runner.engine, argument, diag);
}

sf_status sf_rank_state_read_result_shard(sf_rank_state *rank_state, uint32_t result, void *data,
                                          size_t bytes, sf_diag *diag)
{
    sf_tensor shard;
    SF_TRY(sf_engine_see(rank_state->runner.engine, result, diag, &shard));
    SF_ASSERT((int64_t)bytes <= sf_type_bytes(shard.type));
    memcpy(data, shard.data, bytes);
    return SF_OK;
}

sf_status sf_rank_state_read_result(sf_rank_state *rank_state, uint32_t result, void *whole,
                                    sf_diag *diag)
{
    const sf_graph *graph = rank_state->options.graph;
    const sf_type *type = sf_result_type(graph, result);
    sf_tensor shard;
    SF_TRY(sf_engine_see(rank_state->runner.engine, result, diag, &shard));
    return sf_rank_shards_join(&rank_state->results, result, shard.data, type, whole,
                               rank_state->options.comm, diag);
}

sf_status sf_rank_state_hand_in(sf_rank_state *rank_state, sf_diag *diag)
{
    for (uint32_t i = 0; i < rank_state->options.graph->top->narguments; i++) {
        if (!rank_state->inputs[i].data)
            continue;
        if (rank_state->wholes[i])
            SF_TRY(cut_piece(rank_state, i, rank_state->inputs[i].data, diag));
        rank_state->inputs[i].data = NULL;
        SF_TRY(sf_engine_give_back(rank_state->runner.engine, i, diag));
    }
    return SF_OK;
}

sf_status sf_rank_state_start(sf_rank_state *rank_state, sf_diag *diag, bool *goes_on)
{
    return sf_engine_start(rank_state->runner.engine, diag, goes_on);
}

sf_status sf_rank_state_finish(sf_rank_state *rank_state, sf_diag *diag)
{
    return sf_engine_finish(rank_state->runner.engine, diag);
}

sf_status sf_rank_state_number(sf_rank_state *rank_state, uint32_t result, sf_diag *diag,
                               double *out)
{
    sf_tensor tensor;
    SF_TRY(sf_engine_see(rank_state->runner.engine, result, diag, &tensor));
    *out = sf_get_f64(&tensor, 0);
    return SF_OK;
}
