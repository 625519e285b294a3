/* Between the files that look for the backward pass of a module or subgraph (api/primitive/backward_of.h). */
#ifndef SF_API_PRIMITIVE_BACKWARD_SEARCH_H
#define SF_API_PRIMITIVE_BACKWARD_SEARCH_H

#include "api/primitive/backward_of.h"
#include "ir/uses.h"

/* Looking for one. */
typedef struct backward_search {
    const sf_graph *graph;
    const sf_subgraph *part;
    bool *within; /* by node: it is of the backward pass of the part */
    bool *sums;   /* by node: it adds up what leaves the part, and does nothing else */
    bool *ours;   /* by value: the subgraph takes it, or makes it */
    bool *
        foreign; /* by node of the backward pass: what gradients are multiplied by there, of others */
    bool *follows; /* by node of the forward pass: it reads these, and no others */
    const bool *fixed;
    sf_uses uses;
    sf_arena *arena;
    sf_loc loc;
    sf_diag *diag;
} backward_search;

static inline bool backward_is_within(const backward_search *l, sf_value value)
{
    uint32_t maker = l->graph->values[value].node;
    return maker != SF_NONE && l->within[maker];
}

/* A gradient that comes from behind the part. */
static inline bool backward_comes_in(const backward_search *l, sf_value value)
{
    const sf_node *maker = sf_maker(l->graph, value);
    return maker && !l->within[maker->id] && !l->fixed[maker->id] && maker->phase == SF_BACKWARD;
}

/* What reads nothing of a subgraph's but results, or inputs that others read too, beside a gradient from elsewhere, may be of those
 * who read the same: with these, it is left to them. */
enum { BACKWARD_NOT_BY_RESULTS = 1, BACKWARD_NOT_BY_INPUTS = 2, BACKWARD_DOUBTS = 4 };

/* Sets `within` for a subgraph. */
void backward_mark_subgraph(backward_search *l, int doubts);

/* Values between its ends that the rest of the forward pass reads have gradients from there, which are not known: SF_EMISMATCH. */
sf_status backward_check_inside(const backward_search *l);

#endif
