/* Within search/: a prospect (search/pipeline_candidates.h) in stages, before it is lowered, and what is known of it by then: how evenly its
 * groups share the work, and what they hold at the least. Lowering takes far longer, so what cannot fit is told here.
 */
#ifndef SF_SEARCH_STAGE_ESTIMATE_H
#define SF_SEARCH_STAGE_ESTIMATE_H

#include "search/pipeline_candidates.h"

/* A group that holds about so much of its memory is likely to fit. */
#define SF_LIKELY_FULL 0.9

/* One of the ways to make a plan of a prospect. */
typedef struct sf_stage_way {
    const char *recompute;
    const bool *recomputed; /* by node: what that means (sf_recomputed_by) */
    int shards;             /* of heads and features; 0: as asked, or none */
    bool limited; /* stages are cut so that they fit, by what is known before they are lowered */
} sf_stage_way;

typedef struct sf_draft {
    sf_plan *plan; /* in stages, and nothing computed again yet; for sf_plan_free */
    uint32_t *cut; /* by node, its stage; in the arena */
    double
        slower; /* how much longer the busiest group takes than if all shared evenly and nothing was computed again */
    double waits; /* how much longer a step takes with the messages between stages */
    double
        held; /* of its memory, what arguments and gradients that turns add up take in the fullest group, */
    double least; /* and with what is surely kept for the backward pass, */
    double about; /* and with all that may be */
    double mean;  /* of all groups, what `least` is of the fullest: no stages hold less */
} sf_draft;

/* To be lowered; or to be looked at alone, without its recipe and pins. SF_EUSAGE where there are no such stages. */
sf_status sf_draft_make(const sf_prospects *p, const sf_prospect *c, const sf_stage_way *way,
                        const sf_costs *costs, bool to_lower, sf_arena *arena, sf_diag *diag,
                        sf_draft *out);

#endif
