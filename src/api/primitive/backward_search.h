/* Between the files that look for the backward pass of a module or subgraph (api/primitive/backward_of.h). */
#ifndef SF_API_PRIMITIVE_BACKWARD_SEARCH_H
#define SF_API_PRIMITIVE_BACKWARD_SEARCH_H

#include "api/primitive/backward_of.h"
#include "ir/uses.h"

/* Looking for one. */
typedef struct backward_search {
    const sf_graph *graph;
    const sf_subgraph *part;
    bool *within;  /* by node: it is of the backward pass of the part */
    bool *sums;    /* by node: it only adds up outputs of the part */
    bool *ours;    /* by value: the subgraph takes it, or makes it */
    bool *foreign; /* by node of the backward pass: factors of gradients there, of others */
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

/* A gradient from the forward pass's later readers. */
static inline bool backward_comes_in(const backward_search *l, sf_value value)
{
    const sf_node *maker = sf_maker(l->graph, value);
    return maker && !l->within[maker->id] && !l->fixed[maker->id] && maker->phase == SF_BACKWARD;
}

/* Nodes that read only results of the subgraph, or inputs that others read too, beside a gradient
 * from elsewhere, may belong to other readers: with these flags, they are left to them. */
enum { BACKWARD_NOT_BY_RESULTS = 1, BACKWARD_NOT_BY_INPUTS = 2, BACKWARD_DOUBTS = 4 };

/* Sets `within` for a subgraph. */
void backward_mark_subgraph(backward_search *l, int doubts);

/* Inner values that other nodes of the forward pass read have gradients from there, which are not
 * known: SF_EMISMATCH. */
sf_status backward_check_inside(const backward_search *l);

#endif
