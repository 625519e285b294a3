/* Spaces (sheaf/space.h): what was said, and the plan that follows from it.
 *
 *     space.c         what is said: each thing is looked at by itself as it comes
 *     space_groups.c  the devices that ops are assigned to, as groups of a pipeline
 *     space_stages.c  ops that are placed together, or ordered by themselves, as stages
 *     space_order.c   orders as pairs of tasks, and the search that completes them
 *     space_plan.c    splits as axes of a mesh and chosen factors; the plan
 */
#ifndef SF_PLAN_SPACE_SPACE_H
#define SF_PLAN_SPACE_SPACE_H

#include "plan/pipeline/pipeline.h"
#include "plan/plan.h"
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

/* What `how` of a transformation that is no factor is called; NULL past the last. */
const char *sf_transformation_name(int index);

/* The order of tasks by name, or as a table, where no orders are said; both NULL: the search finds one. */
typedef struct sf_space_request {
    const char *recipe;   /* or NULL */
    const char *schedule; /* a name, */
    const sf_schedule *table;
    const sf_mesh *mesh; /* of the devices of a group; NULL: as splits need it */
    int npins;           /* that hold on it */
    const char *const *pins;
    const char *recompute; /* scopes, or NULL */
} sf_space_request;

/* The plan; *out is for sf_plan_free. */
sf_status sf_space_make(const sf_space *space, const sf_space_request *request, sf_diag *diag,
                        sf_plan **out);

#endif
