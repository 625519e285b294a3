/* Ops and factors that the user names.
 *
 *     layer_0                       all ops of the forward pass in that scope
 *     layer_?/mlp/up/dot_general    one op in each of several scopes
 *     layer_0,layer_1               both
 *
 * Patterns match as those of pins do, the scope of an op followed by its name, or an outer scope.
 * Factors go by their letters (ir/factor.h): i, j and k of a product of matrices. */
#ifndef SF_PLAN_OP_SELECTOR_H
#define SF_PLAN_OP_SELECTOR_H

#include "plan/propagate.h"

typedef struct sf_ops {
    size_t count, capacity;
    const sf_node **at; /* of the top block, in order */
} sf_ops;

/* "layer_0/mlp/dot_general". Lives in the arena. */
const char *sf_op_path(const sf_node *node, sf_arena *arena);

/* The ops of the forward pass that one of the patterns, separated by commas, matches; NULL or "": all. SF_EUSAGE where one
 * matches nothing. Lives in the arena. */
sf_status sf_ops_find(const sf_graph *graph, const char *patterns, sf_arena *arena, sf_diag *diag,
                      sf_ops *out);

typedef struct sf_choice_list {
    size_t count, capacity;
    sf_chosen *at;
} sf_choice_list;

/* Adds those of the ops that have the factor and can be cut along it into so many parts. SF_EUSAGE, with the reason, where
 * none can; `diag` says why the first of those that come nearest to it cannot. */
sf_status sf_choose_factor(const sf_graph *graph, const sf_ops *ops, const char *factor, int parts,
                           int axis, sf_arena *arena, sf_diag *diag, sf_choice_list *out);

/* "OPS:FACTOR;OPS:FACTOR", along axis 0. */
bool sf_is_choice_text(const char *text);
sf_status sf_choose_by_text(const sf_graph *graph, const char *text, int parts, sf_arena *arena,
                            sf_diag *diag, sf_choice_list *out);

/* A line for each op: its path, its factors, and the letters of those that can be cut, with their sizes. */
void sf_ops_list(const sf_graph *graph, const sf_ops *ops, sf_buf *out);

#endif
