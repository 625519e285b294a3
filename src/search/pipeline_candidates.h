/* Within search/: pipelines that may be worth being lowered (search/pipeline_search.h), and about how long they take. */
#ifndef SF_SEARCH_PIPELINE_CANDIDATES_H
#define SF_SEARCH_PIPELINE_CANDIDATES_H

#include "plan/pin.h"
#include "search/search.h"

typedef struct sf_prospect {
    int groups;
    uint32_t stages, microbatches;
    const char *recipe;  /* or NULL: groups of one, what pins say alone, or */
    const sf_plan *plan; /* searched for, without stages */
    const char *schedule;
    sf_mesh mesh;         /* its first axis is that of groups */
    const double *speeds; /* by group (search/stage_loads.h) */
    double seconds;       /* about */
    /* Of its memory, what the fullest of groups takes at the least, about, where stages are equal and nothing is computed again, and all
     * on the average. */
    double full, mean;
    double repeated; /* of the time of its nodes, what it takes to compute sf_prospects.again */
} sf_prospect;

/* A split of ranks inside of groups, and its plan before that is in stages. */
typedef struct sf_made_split {
    sf_prospect of;
    sf_plan *plan; /* or NULL: there is none yet */
} sf_made_split;
enum { SF_SPLITS_KEPT = 8 };

typedef struct sf_prospects {
    const sf_graph *graph;
    const sf_search_options *options;
    sf_arena arena;
    const sf_efforts *efforts;
    const bool *recomputed; /* by node: recompute where there is no room for it; or NULL */
    double worth;           /* seconds: nothing that takes longer is listed */
    double most_nodes;      /* nor what has more nodes in all turns */
    double all;             /* seconds of all kernels, shared by the devices, at the least; */
    double all_recomputed;  /* the same where all is computed again that can be; */
    double held;            /* and bytes that a rank takes without stages and turns, at the least */
    sf_prospect *list;
    size_t count, capacity;
    double params, state; /* bytes of the step */
    double shared;        /* of the parameters' bytes, what interlaced would share; 0: nothing */
    const bool *scores;   /* by node: of a vocabulary, and what follows from them; or NULL */
    const char *passes;   /* the schedule for several forward passes; NULL: there is one */
    sf_names names;       /* of the step, where there are pins */
    sf_made_split made[SF_SPLITS_KEPT]; /* the last, of all that were made */
    size_t nmade;
    struct sf_split *splits; /* those that are listed (search/pipeline_candidates.c) */
    size_t nsplits, split_capacity;
} sf_prospects;

/* Fills the list, the most promising first. */
void sf_prospects_list(sf_prospects *p);

/* The plan without stages, on a mesh whose first axis does nothing; pins hold in it. *out is for sf_plan_free. */
sf_status sf_prospect_plan(const sf_prospects *p, const sf_prospect *c, sf_diag *diag,
                           sf_plan **out);

/* The same in its layouts alone, sooner where the split is one of those kept: the last that were listed, or are to be. */
sf_status sf_prospect_layouts(const sf_prospects *p, const sf_prospect *c, sf_diag *diag,
                              sf_plan **out);
void sf_prospects_keep(sf_prospects *p, const sf_prospect *c);

/* Whether ranks have the same of a step, but for its stages. */
bool sf_prospects_split_alike(const sf_prospect *a, const sf_prospect *b);

/* How much longer than what is known something may seem to take. Estimates of a small step are less exact, and it is soon lowered. */
double sf_prospects_near(const sf_prospects *p);

void sf_prospects_free(sf_prospects *p);

/* Whether time is up. */
bool sf_prospects_are_over(const sf_prospects *p);

#endif
