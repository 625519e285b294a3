/* The price of a plan: what its program takes on a cluster. The plan is lowered for the first rank of each group, and the
 * programs are simulated (search/price/price_pipeline.h), so what is priced is what runs.
 */
#ifndef SF_SEARCH_PRICE_PRICE_H
#define SF_SEARCH_PRICE_PRICE_H

#include "base/json.h"
#include "cluster/cost_model.h"
#include "prog/program.h"
#include "search/price/price_pipeline.h"
#include "shard/reshard.h"

typedef enum sf_memory_kind {
    SF_MEMORY_PARAM,
    SF_MEMORY_STATE, /* of the optimizer */
    SF_MEMORY_BATCH, /* batch, keys, other arguments; constants */
    SF_MEMORY_GRADIENT,
    SF_MEMORY_ACTIVATION, /* all other values that are stored */
    SF_MEMORY_MOVED, /* versions in other layouts: gathered parameters, ...; and copies for collectives */
    SF_MEMORY_GAPS,    /* between what is held, where nothing fits */
    SF_MEMORY_SCRATCH, /* what kernels work in, where it is known how many threads there are */
    SF_MEMORY_KIND_COUNT
} sf_memory_kind;
const char *sf_memory_kind_name(sf_memory_kind kind);

/* Of an argument. */
sf_memory_kind sf_memory_kind_of(sf_role role);

typedef struct sf_price {
    double seconds;                  /* of a step: compute + exposed */
    double compute, exposed, hidden; /* hidden: time of collectives beside what is computed */
    double recomputed;               /* of compute, in an estimate: what it takes to make it fit */
    double traffic;                  /* bytes that a rank puts into, or gets out of, collectives */
    int ncollectives;
    int64_t nmessages; /* of the group of a pipeline that sends and receives most, */
    double message_bytes;
    int64_t memory; /* of a rank: arguments, constants, the arena and scratch */
    int64_t room;   /* of its device; where ranks differ, they are those that have the least left */
    int64_t by_kind[SF_MEMORY_KIND_COUNT]; /* at the peak */
    sf_origin peak; /* what is done at the peak, of the step, whose words it borrows */
    int nprograms;  /* that were lowered to know it; 0: an estimate */
} sf_price;

/* A tensor that a collective moves, for those who want to see each; of one that has several, its part. All of them together take what
 * the price says of collectives. */
typedef struct sf_simulated_reshard {
    sf_value
        value; /* SF_NONE: it is a part of none of the step, such as one that a loop over parts of the batch has */
    sf_reshard_kind kind;
    sf_axes axes;
    sf_phase phase;
    double bytes, seconds, exposed;
    sf_layout before, after;
    bool
        inner; /* it is of a tensor inside of a loop or branch, of which `value` is a result; as often as that runs */
} sf_simulated_reshard;
typedef void sf_see_reshard(void *context, const sf_simulated_reshard *reshard);

/* A price, with each of them in the order of the step. */
typedef struct sf_full_price {
    sf_price price;
    size_t nreshards, move_capacity;
    sf_simulated_reshard *reshards;
} sf_full_price;

/* Adds the keys of a peak to a JSON object. */
void sf_peak_put(const sf_origin *peak, sf_json_writer *json);

/* The mesh laid on the cluster: sf_costs_new. */
sf_status sf_mesh_costs(const sf_cluster *cluster, const sf_mesh *mesh, sf_arena *arena,
                        sf_diag *diag, sf_costs **out);

/* Of groups that were run on `costs`: time and collectives of the busiest, waiting for the others being exposed; the memory of
 * the one that has the least left of its device. `see` may be NULL. */
void sf_price_groups(const sf_group_runs *runs, const sf_costs *costs, sf_see_reshard *see,
                     void *context, sf_price *out);

/* The same with all moves, in the arena. */
const sf_full_price *sf_tell_groups(const sf_group_runs *runs, const sf_costs *costs,
                                    sf_arena *arena);

/* The same, of the plan. SF_EINPUT where it is none of this graph. */
sf_status sf_price_plan(const sf_graph *graph, const sf_plan *plan, const sf_target *target,
                        const sf_costs *costs, sf_see_reshard *see, void *context, sf_diag *diag,
                        sf_price *out);

/* The same of groups that were run within limits, where they keep to them. Else the price is of the group that does not: its memory,
 * which is beyond, or its seconds, where they are and that is not. */
void sf_price_within(const sf_group_runs *runs, const sf_costs *costs, sf_price *out);

/* By buffer of the program that `local` was lowered to: what it holds. In the arena. */
sf_memory_kind *sf_find_buffer_kinds(const sf_local *local, sf_program *program, sf_arena *arena);

/* What could be less, in bytes of a rank at the respective peaks. */
typedef struct sf_relief {
    int64_t state; /* of all but batch and activations: what no smaller batch takes away */
    int64_t batch; /* of batch and activations, which grow with the batch */
    int64_t
        recomputed; /* of all, if what waits for the backward pass were computed again there: at least */
} sf_relief;
sf_status sf_find_relief(const sf_graph *graph, const sf_plan *plan, const sf_target *target,
                         sf_diag *diag, sf_relief *out);

/* By value of the step: the bytes that it and its moved versions hold at the peak; what several share, such as
 * views, counts for the first. In the arena. */
sf_status sf_find_held(const sf_graph *graph, const sf_plan *plan, const sf_target *target,
                       sf_arena *arena, sf_diag *diag, double **out);

#endif
