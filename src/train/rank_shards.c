#include "train/rank_shards.h"

#include <string.h>

const sf_type *sf_holder_type(const sf_holder *holder, uint32_t argument)
{
    return holder->engine ? sf_engine_argument_type(holder->engine, argument)
                          : holder->tensors[argument].type;
}

sf_status sf_holder_lend(const sf_holder *holder, uint32_t argument, bool writes, sf_diag *diag,
                         sf_tensor *out)
{
    if (holder->engine)
        return sf_engine_lend(holder->engine, argument, writes, diag, out);
    *out = holder->tensors[argument];
    return SF_OK;
}

sf_status sf_holder_give_back(const sf_holder *holder, uint32_t argument, sf_diag *diag)
{
    return holder->engine ? sf_engine_give_back(holder->engine, argument, diag) : SF_OK;
}

sf_status sf_holder_clear(const sf_holder *holder, uint32_t argument, sf_diag *diag)
{
    if (holder->engine)
        return sf_engine_clear(holder->engine, argument, diag);
    const sf_tensor *to = &holder->tensors[argument];
    memset(to->data, 0, (size_t)sf_type_bytes(to->type));
    return SF_OK;
}

sf_rank_shards sf_rank_shards_whole(const sf_graph *graph, sf_arena *arena)
{
    return (sf_rank_shards){.graph = graph,
                            .layouts = SF_ARRAY(arena, graph->top->narguments, sf_layout)};
}

const sf_type *sf_rank_shards_type(const sf_rank_shards *shards, uint32_t argument)
{
    return sf_argument_type(shards->graph, argument);
}

sf_runs sf_rank_shards_runs(const sf_rank_shards *shards, uint32_t argument)
{
    return sf_runs_of(&shards->layouts[argument], &shards->mesh, shards->rank,
                      sf_rank_shards_type(shards, argument));
}

bool sf_rank_shards_is_split(const sf_rank_shards *shards, uint32_t argument)
{
    for (int a = 0; a < shards->mesh.naxes; a++)
        if ((shards->layouts[argument].axes[a].kind == SF_SPLIT ||
             shards->layouts[argument].axes[a].on != 0) &&
            shards->mesh.axes[a].size > 1)
            return true;
    return false;
}

bool sf_rank_shards_is_first(const sf_rank_shards *shards, uint32_t argument)
{
    for (int a = 0; a < shards->mesh.naxes; a++) {
        sf_share share = shards->layouts[argument].axes[a];
        int at = sf_mesh_coordinate(&shards->mesh, shards->rank, a);
        if (!sf_share_is_held(share, at) ||
            (share.kind != SF_SPLIT && !share.partition && sf_share_place(share, at) != 0))
            return false;
    }
    return true;
}

/* Between processes every element comes from one rank: a sum of bits in which the others have zeros. */
static sf_status add_bits(sf_comm *comm, void *data, size_t bytes, sf_diag *diag)
{
    int size = sf_comm_size(comm);
    sf_arena scratch = {0};
    int *ranks = SF_ARRAY(&scratch, size, int);
    sf_transfer_part part = {.in = data, .out = data, .count = (int64_t)bytes};
    sf_transfer sum = {.kind = SF_ALL_REDUCE,
                       .dtype = SF_U8,
                       .monoid = SF_MONOID_OR,
                       .nparts = 1,
                       .parts = &part,
                       .what = "shards, to assemble them"};
    sf_group *world;
    for (int i = 0; i < size; i++)
        ranks[i] = i;
    sf_status status = sf_comm_group(comm, ranks, size, diag, &world);
    if (status == SF_OK)
        status = sf_comm_run(world, &sum, diag);
    sf_arena_free(&scratch);
    return status;
}

sf_status sf_rank_shards_join(const sf_rank_shards *shards, uint32_t index, const void *shard,
                              const sf_type *type, void *whole, sf_comm *comm, sf_diag *diag)
{
    size_t bytes = (size_t)sf_type_bytes(type);
    bool processes = comm && !sf_comm_is_one_process(comm);
    sf_runs runs = sf_runs_of(&shards->layouts[index], &shards->mesh, shards->rank, type);
    if (processes && bytes > 0)
        memset(whole, 0, bytes);
    if (sf_rank_shards_is_first(shards, index))
        sf_paste_shard(runs, sf_dtype_get(type->dtype)->bytes, shard, whole);
    return processes && bytes > 0 ? add_bits(comm, whole, bytes, diag) : SF_OK;
}
