/* Spaces (sheaf/space.h): the primitives that were applied, and the plan that follows from them.
 *
 *     space.c         primitives: each is checked by itself as it comes
 *     space_groups.c  the devices of assigned ops, as pipeline ranks
 *     space_stages.c  ops that are placed together, or ordered by themselves, as stages
 *     space_order.c   orders as pairs of tasks, and the search that completes them
 *     space_plan.c    splits as axes of a mesh and chosen factors; the plan */
#ifndef SF_PLAN_SPACE_SPACE_H
#define SF_PLAN_SPACE_SPACE_H

#include "plan/pipeline/pipeline.h"
#include "plan/spec.h"
#include "sheaf/space.h"

/* Strings are in the arena of the space, and never NULL. */
typedef struct sf_said_trans {
    const char *ops, *how;
    int parts;
    sf_where where;
} sf_said_trans;

typedef struct sf_said_assign {
    const char *ops;
    int microbatch; /* or SF_EVERY */
    int count;
    const int *devices; /* in order, each once */
} sf_said_assign;

typedef struct sf_said_order {
    sf_task before, after;
} sf_said_order;

/* Each thing that was said is in order by itself; whether they go together, sf_space_make says. */
struct sf_space {
    sf_arena arena;
    const sf_graph *graph;
    int devices;
    sf_said_trans *trans;
    sf_said_assign *assigns;
    sf_said_order *orders;
    size_t ntrans, trans_capacity, nassigns, assign_capacity, norders, order_capacity;
};

sf_status sf_space_add_trans(sf_space *space, const sf_said_trans *said, sf_diag *diag);
sf_status sf_space_add_assign(sf_space *space, const sf_said_assign *said, sf_diag *diag);
sf_status sf_space_add_order(sf_space *space, const sf_said_order *said, sf_diag *diag);

/* The name of a transformation that is no factor, for `how`; NULL past the last. */
const char *sf_transformation_name(int index);

/* The plan; *out is for sf_plan_free. From the specification: the mesh of the devices of a pipeline
 * rank, or the axes that splits need; the recipe for devices that are left over; pins; the order of
 * tasks if no orders are given, or the search finds one; and recompute, beside the scopes of
 * transformations. */
sf_status sf_space_make(const sf_space *space, const sf_spec *spec, sf_diag *diag, sf_plan **out);

#endif
