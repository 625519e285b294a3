/* The shards of a step's arguments on a rank. A run on one device is one of one rank: its mesh has
 * no axes, and every shard is the whole. */
#ifndef SF_TRAIN_RANK_SHARDS_H
#define SF_TRAIN_RANK_SHARDS_H

#include "run/engine/engine.h"
#include "shard/contiguous_runs.h"

typedef struct sf_rank_shards {
    const sf_graph *graph; /* the step as it was written; borrowed */
    sf_mesh mesh;
    int rank;
    const sf_layout *layouts; /* by argument; borrowed */
} sf_rank_shards;

/* The holder of the shards: an engine, or the owner of these tensors. They are lent, one or several
 * at a time, as in run/engine/engine.h. */
typedef struct sf_holder {
    sf_engine *engine;        /* or NULL: */
    const sf_tensor *tensors; /* by argument */
} sf_holder;

/* The type of a shard. */
const sf_type *sf_holder_type(const sf_holder *holder, uint32_t argument);

sf_status sf_holder_lend(const sf_holder *holder, uint32_t argument, bool writes, sf_diag *diag,
                         sf_tensor *out);
sf_status sf_holder_clear(const sf_holder *holder, uint32_t argument, sf_diag *diag); /* zeros */
sf_status sf_holder_give_back(const sf_holder *holder, uint32_t argument, sf_diag *diag);

/* For one device. */
sf_rank_shards sf_rank_shards_whole(const sf_graph *graph, sf_arena *arena);

/* The whole type of an argument, and the runs of its shard. */
const sf_type *sf_rank_shards_type(const sf_rank_shards *shards, uint32_t argument);
sf_runs sf_rank_shards_runs(const sf_rank_shards *shards, uint32_t argument);

/* Whether the shard is not all of the argument. */
bool sf_rank_shards_is_split(const sf_rank_shards *shards, uint32_t argument);

/* Puts a shard, with the layout of `layouts` for `index`, at its place in the whole, of that type;
 * ranks as sf_rank_state_read. */
sf_status sf_rank_shards_join(const sf_rank_shards *shards, uint32_t index, const void *shard,
                              const sf_type *type, void *whole, sf_comm *comm, sf_diag *diag);

/* Whether this rank is the first of those that hold the same shard of the argument. */
bool sf_rank_shards_is_first(const sf_rank_shards *shards, uint32_t argument);

#endif
