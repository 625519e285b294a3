/* The problem of an axis while it is made: what the files behind search/axis/axis.h share.
 *
 *     axis.c     nodes, arguments and pins, and the problem that all of it makes
 *     axis_network.c  variables, and edges between them
 *     axis_time.c     what nodes take
 *     axis_plan.c     from the solution to the plan, and back
 *     axis_end.c      who makes a value, and who reads it
 *     axis_version.c  the versions of values that several nodes read
 *     axis_reshard.c     what it costs that two ends of an edge differ
 *     axis_memory.c   what stands in memory, and when
 *
 * A value goes from its maker to its readers through its versions:
 *
 *     maker --- kept --+-- of one phase --+-- reader
 *                      |                  +-- reader
 *                      +-- reader (the only one of its phase)
 *
 * The kept one is there where several phases read the value, and is never larger than what was made; one
 * of a phase is there where several nodes of it read the value. Each is a variable: a layout. Every line is
 * an edge of the problem, whose cost is that of the moves between its ends.
 */
#ifndef SF_SEARCH_AXIS_AXIS_BUILDER_H
#define SF_SEARCH_AXIS_AXIS_BUILDER_H

#include "search/axis/axis.h"
#include "solve/problem/problem.h"

/* The choices of a variable as shares of one tensor. */
typedef struct axis_port {
    uint32_t variable, count;
    uint32_t stride;
    const sf_share *shares; /* choice k: shares[k * stride] */
    const bool
        *moved; /* by choice: it is sent, not what it comes from or cut from that; NULL: not told */
} axis_port;

/* One end of an edge: a port, and the layout that the tensor has along the other axes there. */
typedef struct axis_end {
    axis_port port;
    sf_layout others; /* replicated along the axis */
} axis_end;

enum {
    AXIS_MOVES = 1,         /* collectives may stand here */
    AXIS_KEEPS = 2,         /* the piece must not grow */
    AXIS_SLACK = 4,         /* reductions go on beside other work, */
    AXIS_TOGETHER = 8,      /* collectives go together with others */
    AXIS_EXPOSED_SHIFT = 8, /* and so many parts of their time (SF_EXPOSED_ALL) are exposed */
};

/* What it costs, in seconds, that the ends of an edge choose as they do; HUGE_VAL where they must not.
 * (choices of one end, choices of the other). */
typedef struct axis_matrix {
    axis_end from, to;
    const sf_type *type;
    int flags;
    double *seconds;
    struct axis_matrix *next; /* in the same slot */
} axis_matrix;

typedef struct axis_edge {
    uint32_t a, b;
    const axis_matrix *matrix;
    double times; /* that it stands in the step */
    struct axis_edge *next;
} axis_edge;

typedef struct axis_variable {
    uint32_t count;
    double *seconds; /* by choice */
} axis_variable;

typedef struct axis_version {
    const sf_share *made; /* which value: the port of its maker, */
    uint32_t maker;       /* and its variable; */
    int phase;            /* AXIS_KEPT: read in several */
    uint32_t variable;
    sf_share *shares; /* by choice */
    bool *moved;      /* by choice, or NULL */
    size_t count, capacity;
    struct axis_version *next;
} axis_version;
enum { AXIS_KEPT = -1 };

typedef struct axis_way {
    double seconds; /* HUGE_VAL: there is none */
    bool sends;     /* not all of it is slices and masks */
} axis_way;

enum { AXIS_SLOTS = 1 << 14 };

typedef struct axis_builder {
    const sf_efforts *efforts;
    const sf_graph *graph;
    const sf_readers *readers;
    const sf_axis_space *space;
    const sf_costs *costs;
    const sf_axis_options *options;
    sf_plan *plan;
    const sf_mesh *mesh;
    sf_diag *diag;
    sf_arena arena;

    uint32_t *nodes, *arguments; /* the variable of each, by id and by argument */
    sf_share_space *shares;      /* by argument: its choices */
    axis_variable *variables;
    size_t nvariables, variable_capacity;
    axis_version **versions; /* hashed */
    sf_axis_cache *cache;
    axis_matrix **matrices;
    axis_edge **edges;
    axis_edge **edge_list; /* in order */
    size_t nedges, edge_capacity;
    sf_share whole; /* the only choice of what must be replicated */
    uint32_t fixed; /* the variable of that */
} axis_builder;

/* Operands, then results. */
static inline sf_value axis_tensor(const sf_node *node, uint32_t tensor)
{
    return tensor < node->noperands ? node->operands[tensor]
                                    : node->result + (tensor - node->noperands);
}

/* axis_end.c. The end at the maker of a value, and at a reader. */
axis_end axis_made(const axis_builder *b, sf_value value);
axis_end axis_read(const axis_builder *b, sf_reader use);
sf_phase axis_phase(const axis_builder *b, sf_reader use);

/* axis_version.c: makes the versions of all values, then their variables. */
void axis_add_versions(axis_builder *b);

/* The version of that phase or the kept one, or NULL. */
const axis_version *axis_find_version(const axis_builder *b, const axis_end *made, int phase);
axis_port axis_port_of(const axis_version *version);

/* Whether it may be made as partial sums. */
bool axis_can_reduce(const axis_end *made);

/* Whether so much matters to the limit of memory. */
bool axis_is_large(const axis_builder *b, const sf_type *type);

/* Adds the edges of a value from its maker to its readers. */
void axis_add_edges(axis_builder *b, sf_value value);

/* axis_reshard.c: the layout with the share along the axis. A split that would take the digits of another
 * axis takes those below them. False when it does not fit. */
bool axis_fit(const axis_builder *b, const sf_type *type, const sf_layout *others, sf_share share,
              sf_layout *out);
axis_way axis_move(axis_builder *b, const sf_type *type, const sf_layout *from, const sf_layout *to,
                   bool together);
const axis_matrix *axis_matrix_of(axis_builder *b, const axis_end *from, const axis_end *to,
                                  const sf_type *type, int flags);

/* axis_network.c */
uint32_t axis_add_variable(axis_builder *b, uint32_t count);
void axis_add_edge(axis_builder *b, const axis_end *from, const axis_end *to, const sf_type *type,
                   int flags);

/* axis_time.c: adds the time of nodes to their variables. */
void axis_add_times(axis_builder *b);

/* axis_plan.c: writes choice[variables] into the plan; and what the plan chooses until now, of those
 * variables for which it is a choice. Of a class the first counts. */
void axis_write_plan(const axis_builder *b, const uint32_t *choice);
void axis_read_plan(const axis_builder *b, bool *known, uint32_t *choice);

/* Nothing is split or partial along the axis. */
bool axis_is_whole(const axis_builder *b);

/* axis_memory.c */
sf_status axis_add_memory(axis_builder *b, sf_problem_builder *problem);

#endif
