/* Within plan/space/: the state of the builder of a plan. */
#ifndef SF_PLAN_SPACE_SPACE_BUILDER_H
#define SF_PLAN_SPACE_SPACE_BUILDER_H

#include "plan/space/space.h"

/* Devices that work together: groups of a pipeline are sets that share no device. */
typedef struct device_set {
    int count;
    const int *devices;
    uint64_t groups; /* a bit each, once sf_space_group has found them */
} device_set;

/* The ops of one label: placed by the same assignments, and spoken of by the same orders. */
typedef struct shard {
    uint32_t before; /* the label that was refined, counted from 1; 0: none */
    size_t said;     /* the assignment, or after those, the name in `names`, that refined it */
} shard;

typedef struct making {
    const sf_space *space;
    const sf_spec *spec;
    sf_diag *diag;
    sf_arena *arena;
    uint32_t nmicrobatches;

    /* space_stages.c */
    shard *pieces; /* by label */
    size_t npieces, piece_capacity;
    const char **names; /* ops that orders speak of, each once */
    size_t nnames, name_capacity;
    uint32_t nstages, *forward, *label; /* as sf_labelled has them */

    /* space_groups.c */
    device_set *sets;
    size_t nsets, set_capacity;
    uint32_t *set_of; /* by stage * nturns + micro-batch: its set */
    uint32_t ngroups;
    int group_size;
    bool strided; /* device d is in group d mod ngroups; else in d / group_size */

    sf_pipeline pipeline; /* where there is one */
} making;

/* Whether the part, or the one from which it was refined, is of the assignment, or of the name. */
bool space_is_of(const making *m, uint32_t label, size_t said);

/* Labels of the ops, and stages of them. */
sf_status space_find_stages(making *m);

/* Sets of devices of all stages in all micro-batches, and pipeline ranks of them. */
sf_status space_find_groups(making *m);

/* The pipeline: its tasks in an order that keeps the given orders. */
sf_status space_find_order(making *m);

#endif
