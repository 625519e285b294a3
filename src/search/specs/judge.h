/* What a choice costs, at two fidelities: the estimate, and the simulated program of the plan.
 *
 * ESTIMATE. Without stages: the choice's plan of each short step (search/specs/folded.h) is lowered and simulated, and the sum is
 * that of the step, but for what folding loses. With stages: the same on the devices of a pipeline rank, as if they had all stages,
 * says how long the passes of a micro-batch take. Stages share these times as they share those of the unsplit step; the
 * schedule's tasks then run with these times.
 *
 * SIMULATED. The plan of the whole step, every pipeline rank lowered: the judge (search/price/price.h). */
#ifndef SF_SEARCH_SPECS_JUDGE_H
#define SF_SEARCH_SPECS_JUDGE_H

#include "cluster/cluster.h"
#include "plan/plan.h"
#include "search/price/price.h"
#include "search/specs/choice.h"
#include "search/specs/folded.h"

typedef struct sf_judge sf_judge;

/* Everything is borrowed. Plans are for so many bytes of memory; 0: what devices have. For sf_judge_free. */
sf_judge *sf_judge_new(const sf_graph *graph, const sf_cluster *cluster, const sf_target *target,
                       const sf_choice_rules *rules, int64_t memory);
void sf_judge_free(sf_judge *judge);

/* What is known of a choice. */
typedef struct sf_judged {
    bool is_plan;   /* it is one; else nothing else counts */
    double seconds; /* of a step */
    double filled;  /* memory of the fullest rank, as a part of what it may take */
} sf_judged;

static inline bool sf_judged_fits(const sf_judged *judged)
{
    return judged->is_plan && judged->filled <= 1;
}

/* Nodes that an estimate simulates. */
double sf_judge_work(const sf_judge *judge);

/* Threads may share the judge. */
sf_judged sf_judge_estimate(const sf_judge *judge, const sf_choice *choice);

/* The plan, for sf_plan_free, or NULL; and its price. The part `kept` of the forward pass, its last, keeps what others recompute:
 * layers are equal, so time and memory are affine in it. What is not `placed` takes a little less memory than it will. */
sf_judged sf_judge_simulate(const sf_judge *judge, const sf_choice *choice, double kept,
                            bool placed, sf_plan **plan, sf_price *price);

#endif
