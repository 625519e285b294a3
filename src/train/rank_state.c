#include "train/rank_state.h"

#include <string.h>

#include "ir/name.h"
#include "pass/agree_passes.h"

/* What this rank runs and which pieces it has. */
static sf_status take_part(sf_seat *seat, sf_diag *diag)
{
    const sf_seat_options *options = &seat->options;
    if (!options->plan) {
        seat->pieces = seat->results = sf_pieces_whole(options->graph, &seat->arena);
        seat->results.layouts = SF_ARRAY(&seat->arena, options->graph->top->nresults, sf_layout);
        return SF_OK;
    }
    SF_TRY(sf_plan_expect(options->plan, options->graph, diag));
    int rank = options->comm ? sf_comm_rank(options->comm) : 0;
    seat->pieces = (sf_pieces){options->graph, options->plan->mesh, rank, options->plan->arguments};
    seat->results = seat->pieces;
    seat->results.layouts = options->plan->results;
    return sf_local_new(options->graph, options->plan, rank, diag, &seat->local);
}

static sf_status rewrite(void *context, sf_program *program, sf_diag *diag)
{
    sf_seat *seat = context;
    return sf_rewrite_together(seat->options.plan, seat->options.comm, program, diag);
}

static sf_status start_seat_engine(sf_seat *seat, sf_diag *diag)
{
    const sf_seat_options *o = &seat->options;
    sf_runner_options options = {.engine = o->engine,
                                 .mesh = &seat->pieces.mesh,
                                 .rank = seat->pieces.rank,
                                 .check = o->check,
                                 .rewrite = o->plan && *o->plan->passes.list ? rewrite : NULL,
                                 .context = seat,
                                 .with = {.pool = o->pool,
                                          .memory = o->memory,
                                          .device_memory = o->device_memory,
                                          .host_link = o->host_link,
                                          .precision = o->precision,
                                          .comm = o->comm}};
    return sf_runner_open(seat->local ? seat->local->graph : o->graph, &options, diag,
                          &seat->runner);
}

/* Batches and keys that are split are made whole first. */
static void make_wholes(sf_seat *seat)
{
    const sf_graph *graph = seat->options.graph;
    seat->inputs = SF_ARRAY(&seat->arena, graph->top->narguments, sf_tensor);
    seat->wholes = SF_ARRAY(&seat->arena, graph->top->narguments, char *);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_type *type = sf_pieces_type(&seat->pieces, i);
        seat->inputs[i].type = type;
        if (!sf_argument_is_kept(&graph->arguments[i]) && sf_pieces_is_split(&seat->pieces, i))
            seat->wholes[i] = sf_arena_alloc(&seat->arena, (size_t)sf_type_bytes(type));
    }
}

sf_status sf_seat_open(const sf_seat_options *options, sf_diag *diag, sf_seat *out)
{
    *out = (sf_seat){.options = *options};
    SF_TRY(sf_engine_choose(options->engine, diag, &out->options.engine));
    out->names = sf_clean_names(options->graph, &out->arena);
    SF_TRY(take_part(out, diag));
    SF_TRY(start_seat_engine(out, diag));
    make_wholes(out);
    return SF_OK;
}

void sf_seat_close(sf_seat *seat)
{
    sf_runner_close(&seat->runner);
    sf_local_free(seat->local);
    sf_arena_free(&seat->arena);
}

sf_holder sf_seat_holder(const sf_seat *seat)
{
    return (sf_holder){.engine = seat->runner.engine};
}

sf_state sf_seat_state(const sf_seat *seat)
{
    return (sf_state){&seat->pieces, seat->names, sf_seat_holder(seat), seat->options.comm};
}

sf_status sf_seat_lend_inputs(sf_seat *seat, const bool *which, sf_diag *diag)
{
    for (uint32_t i = 0; i < seat->options.graph->top->narguments; i++) {
        sf_tensor lent;
        if (!which[i])
            continue;
        if (seat->wholes[i]) {
            seat->inputs[i].data = seat->wholes[i];
            continue;
        }
        SF_TRY(sf_engine_lend(seat->runner.engine, i, true, diag, &lent));
        seat->inputs[i].data = lent.data;
    }
    return SF_OK;
}

/* Lends the piece, to be given back. */
static sf_status cut_piece(sf_seat *seat, uint32_t argument, const void *whole, sf_diag *diag)
{
    const sf_type *type = sf_pieces_type(&seat->pieces, argument);
    sf_tensor piece;
    SF_TRY(sf_engine_lend(seat->runner.engine, argument, true, diag, &piece));
    sf_cut_piece(sf_pieces_runs(&seat->pieces, argument), sf_dtype_get(type->dtype)->bytes, whole,
                 piece.data);
    return SF_OK;
}

sf_status sf_seat_write(sf_seat *seat, uint32_t argument, const void *whole, sf_diag *diag)
{
    SF_TRY(cut_piece(seat, argument, whole, diag));
    return sf_engine_give_back(seat->runner.engine, argument, diag);
}

sf_status sf_seat_read(sf_seat *seat, uint32_t argument, void *whole, sf_diag *diag)
{
    const sf_type *type = sf_pieces_type(&seat->pieces, argument);
    sf_tensor piece;
    SF_TRY(sf_engine_lend(seat->runner.engine, argument, false, diag, &piece));
    SF_TRY(
        sf_pieces_join(&seat->pieces, argument, piece.data, type, whole, seat->options.comm, diag));
    return sf_engine_give_back(seat->runner.engine, argument, diag);
}

sf_status sf_seat_write_shard(sf_seat *seat, uint32_t argument, const void *shard, size_t bytes,
                              sf_diag *diag)
{
    sf_tensor piece;
    SF_TRY(sf_engine_lend(seat->runner.engine, argument, true, diag, &piece));
    SF_ASSERT((int64_t)bytes <= sf_type_bytes(piece.type));
    memcpy(piece.data, shard, bytes);
    return sf_engine_give_back(seat->runner.engine, argument, diag);
}

sf_status sf_seat_read_shard(sf_seat *seat, uint32_t argument, void *shard, size_t bytes,
                             sf_diag *diag)
{
    sf_tensor piece;
    SF_TRY(sf_engine_lend(seat->runner.engine, argument, false, diag, &piece));
    SF_ASSERT((int64_t)bytes <= sf_type_bytes(piece.type));
    memcpy(shard, piece.data, bytes);
    return sf_engine_give_back(seat->runner.engine, argument, diag);
}

sf_status sf_seat_read_result(sf_seat *seat, uint32_t result, void *whole, sf_diag *diag)
{
    const sf_graph *graph = seat->options.graph;
    const sf_type *type = sf_result_type(graph, result);
    sf_tensor piece;
    SF_TRY(sf_engine_see(seat->runner.engine, result, diag, &piece));
    return sf_pieces_join(&seat->results, result, piece.data, type, whole, seat->options.comm,
                          diag);
}

sf_status sf_seat_hand_in(sf_seat *seat, sf_diag *diag)
{
    for (uint32_t i = 0; i < seat->options.graph->top->narguments; i++) {
        if (!seat->inputs[i].data)
            continue;
        if (seat->wholes[i])
            SF_TRY(cut_piece(seat, i, seat->inputs[i].data, diag));
        seat->inputs[i].data = NULL;
        SF_TRY(sf_engine_give_back(seat->runner.engine, i, diag));
    }
    return SF_OK;
}

sf_status sf_seat_start(sf_seat *seat, sf_diag *diag, bool *goes_on)
{
    return sf_engine_start(seat->runner.engine, diag, goes_on);
}

sf_status sf_seat_finish(sf_seat *seat, sf_diag *diag)
{
    return sf_engine_finish(seat->runner.engine, diag);
}

sf_status sf_seat_number(sf_seat *seat, uint32_t result, sf_diag *diag, double *out)
{
    sf_tensor tensor;
    SF_TRY(sf_engine_see(seat->runner.engine, result, diag, &tensor));
    *out = sf_get_f64(&tensor, 0);
    return SF_OK;
}
