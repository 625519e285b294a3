/* What the ways to find state links share (flow_links.c, alias_links.c, name_links.c, tree_links.c,
 * order_links.c). */
#ifndef SF_FRONT_STATE_LINKER_H
#define SF_FRONT_STATE_LINKER_H

#include "base/diag.h"
#include "base/intern.h"
#include "front/elementwise_state.h"
#include "front/number_state.h"

typedef struct sf_named_result {
    const char *path; /* after "result" */
    uint32_t index;
    struct sf_named_result *next; /* another that ends alike */
} sf_named_result;

typedef struct sf_linker {
    sf_graph *graph;
    sf_diag *diag;
    bool strict; /* a guess against what is known is an error */
    sf_status status;
    sf_arena arena;
    sf_interner by_path; /* of sf_named_result */
    sf_interner by_last; /* lists of sf_named_result, by the last part of their path */
    sf_named_result *results;
    bool *taken;   /* by result: it becomes an argument, or somebody said that it becomes none */
    bool *said;    /* by argument: the user said what becomes it, or that nothing does */
    bool *fed;     /* by argument: it is said to be fed, so no guess makes it state */
    bool *kept;    /* by argument: the sidecar says that it is state */
    bool trusting; /* what is state by its role or an alias may grow from what the loss reads */
    bool relaxed;  /* results that are forward may be state: there is no other */
    uint32_t loss; /* the result that seems to be it as long as no link is known, or SF_NONE */
    sf_growth growth;
    sf_number_state numbers;
    bool *reported; /* by result: beside the loss */
} sf_linker;

static inline void sf_take_result(sf_linker *l, uint32_t argument, uint32_t result, sf_source from)
{
    l->graph->arguments[argument].next = result;
    l->graph->arguments[argument].next_from = from;
    l->taken[result] = true;
}

/* Whether the result grows from the argument as new state does: it is not on the way to the loss, or a place that the step
 * writes into, or the user says that the argument is state. */
static inline bool sf_is_new_state(const sf_linker *l, uint32_t result, uint32_t argument)
{
    if (l->numbers.of[result] != SF_NONE)
        return l->numbers.of[result] == argument && l->numbers.sure[result];
    bool is_loss = result == l->loss && sf_result_type(l->graph, result)->rank == 0;
    sf_growing how = sf_how_it_grows(&l->growth, result, argument);
    bool is_written = sf_is_written(l->graph, result) && how == SF_GROWS_KEPT;
    return how != SF_GROWS_NOT && !is_loss &&
           (l->relaxed || (l->trusting && l->kept[argument]) || is_written ||
            !l->growth.forward[result]);
}

/* What becomes itself is as well a batch that is passed on. */
static inline bool sf_is_passed_on(const sf_linker *l, uint32_t result)
{
    return !sf_maker(l->graph, l->graph->top->results[result]);
}

void sf_link_by_name(sf_linker *l);

/* Aliases come from the text: they may point past the results or join different types. */
sf_status sf_check_aliases(const sf_graph *graph, sf_diag *diag);

/* Pairs that no other way to link as many arguments is without. */
void sf_link_by_flow(sf_linker *l);

/* What the text says, by argument (SF_NONE: nothing), where the flow of data does not say otherwise. */
void sf_link_by_alias(sf_linker *l, const uint32_t *aliases);

/* What the sidecar says is fed has a namesake among the results, or an update: it does not become it, but the sidecar may
 * be wrong. */
void sf_tell_namesakes(sf_linker *l);

/* By trees of either side, of which the other side has as many tensors of the same types, one of which grows at least. */
void sf_link_trees(sf_linker *l, bool of_arguments);

/* By position and type: a step gives its new state in the order of its arguments. */
void sf_link_by_order(sf_linker *l);

/* The one argument of a type that the sidecar calls optimizer state and that has no next value, and the one result of it
 * that becomes nothing. */
void sf_link_last_state(sf_linker *l);

/* A key is made anew by other ops than those on elements. Where a step takes and gives as many, it gives the next ones. */
void sf_link_keys(sf_linker *l);

#endif
