/* Where to cut the forward pass of a step into stages (plan/pipeline/stage.h), by the times of its
 * nodes: solve/cut/cut.h on the graph of the step, along no line in particular, so that skip
 * connections and encoders beside decoders are cut where they are narrow.
 *
 * The cost of a cut is the bytes of a micro-batch that it sends: a value of the forward pass that
 * another stage reads and, if it has one, its gradient; values that do not depend on the
 * micro-batch, weights and values of weights alone, once per step. */
#ifndef SF_PLAN_PIPELINE_STAGE_CUT_H
#define SF_PLAN_PIPELINE_STAGE_CUT_H

#include "plan/pipeline/stage.h"

typedef struct sf_stage_request {
    uint32_t count;
    /* by node, for forward nodes: time of it and of its gradient in a micro-batch */
    const double *time;
    const bool *beside;  /* by node: in none of these stages, whatever they are; NULL: none is */
    const double *speed; /* by stage, relative; NULL: all the same */
    const double
        *fixed; /* by argument: bytes that its stage holds for it, state included; NULL: none */
    /* by node: bytes that are kept of it for each micro-batch in flight; NULL: none */
    const double *kept;
    const double *room;      /* by stage: bytes; NULL: any */
    const double *in_flight; /* by stage: micro-batches in flight; NULL: one */
    double microbatches;     /* of a step; 0: one */
    double
        tolerance; /* of the slowest stage, in parts of the least that it can take, for the sake of bytes */
} sf_stage_request;

typedef struct sf_stage_cut {
    uint32_t *forward;    /* by node, for sf_stages_complete */
    double slowest;       /* time of the slowest stage, by its speed */
    double bytes;         /* per micro-batch */
    double least_slowest; /* no cut has a slowest stage of less */
    bool is_exact;        /* nothing better is there */
} sf_stage_cut;

/* SF_EMISMATCH where there are fewer nodes than stages, and where no cut has room. Warns where one node that cannot be
 * cut, a loop that stays, takes longer than a stage should. Lives in the arena. */
sf_status sf_cut_step(const sf_graph *graph, const sf_stage_request *request, sf_arena *arena,
                      sf_diag *diag, sf_stage_cut *out);

/* Adds the times of all nodes of a micro-batch to forward nodes: each backward node to one whose
 * gradient it is part of. Updates, and nodes that can run after the micro-batches as they do, are
 * left out. `time` and the result are by node. Lives in the arena. */
double *sf_forward_times(const sf_graph *graph, const double *time, sf_arena *arena);

/* By node: the lookup of the batch's tokens in parameters, with its operands; and the last product
 * that makes scores, more elements than it reads, with all that follows from it in the forward
 * pass. SF_EMISMATCH if the step has none of these. In the arena. */
sf_status sf_find_vocabulary(const sf_graph *graph, sf_arena *arena, sf_diag *diag, bool **first,
                             bool **last);

/* By a person: layer_3 and layer_6 begin the second stage with scope layer_3 and the third with layer_6. Patterns match as
 * those of pins do. Fills `forward`, by node, of one stage more than there are scopes. SF_EUSAGE where a pattern matches
 * nothing of the forward pass, or a stage would be empty. */
sf_status sf_cut_by_scopes(const sf_graph *graph, uint32_t count, const char *const *scopes,
                           sf_arena *arena, sf_diag *diag, uint32_t **forward);

#endif
