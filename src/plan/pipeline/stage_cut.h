/* Where to cut the forward pass of a step into stages (plan/pipeline/stage.h), by what its nodes take: solve/cut/cut.h on the
 * graph of the step, along no line in particular, so that skip connections and encoders beside decoders are cut where they
 * are narrow.
 *
 * What is counted is what a turn sends: a value of the forward pass that another stage reads and, where it has one, its
 * gradient; what turns do not change, weights and what is made of them alone, once per step.
 */
#ifndef SF_PLAN_PIPELINE_STAGE_CUT_H
#define SF_PLAN_PIPELINE_STAGE_CUT_H

#include "plan/pipeline/stage.h"

typedef struct sf_stage_request {
    uint32_t count;
    const double *time;  /* by node, for forward nodes: what it and its gradient take in a turn */
    const bool *beside;  /* by node: in none of these stages, whatever they are; NULL: none is */
    const double *speed; /* by stage, relative; NULL: all the same */
    const double
        *fixed; /* by argument: bytes that its stage holds for it, state included; NULL: none */
    const double *kept; /* by node: bytes that are kept of it for each turn under way; NULL: none */
    const double *room; /* by stage: bytes; NULL: any */
    const double *in_flight; /* by stage: turns under way; NULL: one */
    double microbatches;     /* of a step; 0: one */
    double
        tolerance; /* of the slowest stage, in parts of the least that it can take, for the sake of bytes */
} sf_stage_request;

typedef struct sf_stage_cut {
    uint32_t *forward;    /* by node, for sf_stages_complete */
    double slowest;       /* time of the slowest stage, by its speed */
    double bytes;         /* per turn */
    double least_slowest; /* no cut has a slowest stage of less */
    bool is_exact;        /* nothing better is there */
} sf_stage_cut;

/* SF_EMISMATCH where there are fewer nodes than stages, and where no cut has room. Warns where one node that cannot be
 * cut, a loop that stays, takes longer than a stage should. Lives in the arena. */
sf_status sf_cut_step(const sf_graph *graph, const sf_stage_request *request, sf_arena *arena,
                      sf_diag *diag, sf_stage_cut *out);

/* Shares out the times of all nodes of a turn to forward nodes: each backward node to one whose gradient it is part of.
 * Updates, and what may wait for
 * the end of the turns as they do, are left out. `time` and the result are by node. Lives in the arena. */
double *sf_forward_times(const sf_graph *graph, const double *time, sf_arena *arena);

/* By node: what looks up tokens of the batch in parameters, with what that is made of; and the last product that makes scores, more
 * than it reads, with all that follows from it in the forward pass. SF_EMISMATCH where the step has no such things. In the
 * arena. */
sf_status sf_find_vocabulary(const sf_graph *graph, sf_arena *arena, sf_diag *diag, bool **first,
                             bool **last);

/* By a person: "layer_3,layer_6" begins the second stage with scope layer_3 and the third with layer_6. Patterns match as
 * those of pins do. Fills `forward`, by node, and the number of stages. SF_EUSAGE where a pattern matches nothing of
 * the forward pass, or a stage would be empty. */
sf_status sf_cut_by_scopes(const sf_graph *graph, const char *scopes, sf_arena *arena,
                           sf_diag *diag, uint32_t **forward, uint32_t *count);

#endif
