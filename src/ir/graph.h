/* The graph: a training step in static single assignment.
 *
 *     block ── nodes, in an order in which every operand is made before it is used
 *       node ── op, operands, results, attributes, nested blocks (the body of a loop, say)
 *         value ── dense id; its type and maker are in graph->values
 *
 * Node ids and value ids are dense over the whole graph, nested blocks included, so an analysis is an
 * array indexed by id. Values of an enclosing block may be used inside a nested one. The graph owns
 * one arena for everything it holds, and retains the pool of its types and attributes. */
#ifndef SF_IR_GRAPH_H
#define SF_IR_GRAPH_H

#include "base/reference.h"
#include "ir/attr.h"
#include "sheaf/graph.h"

typedef struct sf_opdef sf_opdef;
typedef uint32_t sf_value;
#define SF_NONE UINT32_MAX

typedef enum sf_phase { SF_FORWARD, SF_BACKWARD, SF_UPDATE, SF_PHASE_COUNT } sf_phase;
const char *sf_phase_name(sf_phase phase);

typedef struct sf_block {
    uint32_t narguments, nnodes, nresults;
    size_t capacity; /* of nodes */
    sf_value *arguments;
    uint32_t *nodes; /* ids, in order */
    sf_value *results;
} sf_block;

typedef struct sf_node {
    const sf_opdef *def;
    uint32_t id;
    uint32_t noperands, nresults, nregions;
    sf_value *operands;
    sf_value result;             /* results have the ids result, result + 1, ... */
    const sf_attr *const *attrs; /* def->nattrs of them, in the order of the definition */
    sf_block *const *regions;
    const sf_scope *scope;
    sf_phase phase;
    sf_loc loc;
    bool recomputed; /* the text computes it a second time, for later phases: front/remat.h */
} sf_node;

typedef struct sf_value_info {
    const sf_type *type;
    uint32_t node;  /* who makes it; SF_NONE for the argument of a block */
    uint32_t index; /* which result or argument it is */
} sf_value_info;

enum { SF_ROLE_COUNT = SF_ROLE_OTHER + 1 };

/* How something was found out; shown to the user. */
typedef enum sf_source {
    SF_FROM_NOTHING,
    SF_FROM_USER,    /* the command line */
    SF_FROM_SIDECAR, /* NAME.json beside the step */
    SF_FROM_ALIAS,   /* aliasing or donation in the text */
    SF_FROM_NAME,    /* names of arguments and results */
    SF_FROM_ORDER,   /* position and type */
    SF_FROM_FLOW,    /* the flow of data */
    SF_FROM_TEXT,    /* the text says it */
    SF_SOURCE_COUNT
} sf_source;
const char *sf_source_name(sf_source source);

/* Whether somebody said it; else it was guessed. */
static inline bool sf_source_is_known(sf_source source)
{
    return source == SF_FROM_USER || source == SF_FROM_SIDECAR || source == SF_FROM_ALIAS ||
           source == SF_FROM_TEXT;
}

typedef struct sf_argument {
    const char *name;     /* never NULL; "arg3" where the text has none */
    const char *sharding; /* as annotated in the text, or NULL */
    sf_role role;
    sf_source role_from;
    uint32_t next; /* result that becomes this argument in the next step, or SF_NONE */
    sf_source next_from;
    sf_value gradient; /* of a parameter, or SF_NONE where none was found */
    bool is_loose;     /* called state, but nothing becomes it: see front/lost_state.h */
} sf_argument;

typedef struct sf_result {
    const char *name; /* "" where the text has none */
    const char *sharding;
    bool is_loss;
    sf_source loss_from;
    bool is_output; /* somebody said that it becomes no argument */
    bool
        is_loose; /* looks like new state of argument `like`, but becomes none: see front/lost_state.h */
    uint32_t like;
} sf_result;

/* Options for reading a text that change the graph; zeros are defaults. As in sf_load_options,
 * except for the sidecar, which is a file that was named. */
typedef struct sf_reading {
    int64_t unroll, assume_trip_count;
    const char *state;
    bool no_sidecar;
    sf_reference sidecar;
} sf_reading;

/* Which kernels replace several ops (prog/attention/find_attention.h): those that are better, none,
 * or all that there are. */
typedef enum sf_kernel_choice { SF_KERNELS_BEST, SF_KERNELS_NONE, SF_KERNELS_ALL } sf_kernel_choice;

/* "best", "none" or "all"; false where it is another word. */
const char *sf_kernel_choice_name(sf_kernel_choice kernels);
bool sf_kernel_choice_read(sf_str word, sf_kernel_choice *out);

/* Whether the path is a line of a list of scopes, or NULL. */
bool sf_scopes_have(const char *lines, const char *path);

struct sf_graph {
    sf_arena arena;
    sf_pool *pool;
    const char *name;
    sf_reference origin; /* of its text */
    sf_reading reading;
    sf_node **nodes;
    size_t nnodes, node_capacity;
    sf_value_info *values;
    size_t nvalues, value_capacity;
    sf_block *top;
    sf_argument *arguments; /* top->narguments */
    sf_result *results;     /* top->nresults */
    bool has_scopes;        /* the text has scopes */
    bool scopes_guessed;    /* they are from the paths of parameters (front/param_scopes.h) */
    sf_kernel_choice kernels;
    const char *
        compiled; /* scopes whose loops want to be machine code, a line each; or NULL. In the pool */
    uint64_t hash; /* sf_graph_hash, where nodes stay as they are; 0: it is not kept */
};

/* A graph with an empty top block. Retains the pool. */
sf_graph *sf_graph_new(sf_pool *pool);

sf_block *sf_block_new(sf_graph *graph);
sf_value sf_block_argument(sf_graph *graph, sf_block *block, const sf_type *type);
void sf_block_return(sf_graph *graph, sf_block *block, uint32_t count, const sf_value *values);

/* The specification of a node. Arrays are copied. */
typedef struct sf_node_spec {
    const sf_opdef *def;
    uint32_t noperands, nresults, nregions;
    const sf_value *operands;
    const sf_type *const *types; /* of the results */
    const sf_attr *const *attrs; /* def->nattrs */
    sf_block *const *regions;
    const sf_scope *scope; /* NULL: the root */
    sf_phase phase;
    sf_loc loc;
    bool recomputed;
} sf_node_spec;

/* The specification of another node of the same op, in the same place: all but operands, types,
 * attributes and regions, and the text's position. */
static inline sf_node_spec sf_spec_like(const sf_node *node)
{
    return (sf_node_spec){.def = node->def,
                          .noperands = node->noperands,
                          .nresults = node->nresults,
                          .nregions = node->nregions,
                          .scope = node->scope,
                          .phase = node->phase,
                          .loc = node->loc};
}

/* Appends a node to the block. Nothing is checked here: op/node_builder.h does that. */
sf_node *sf_graph_add(sf_graph *graph, sf_block *block, const sf_node_spec *spec);

static inline const sf_type *sf_type_of(const sf_graph *graph, sf_value value)
{
    return graph->values[value].type;
}

static inline const sf_type *sf_argument_type(const sf_graph *graph, uint32_t index)
{
    return sf_type_of(graph, graph->top->arguments[index]);
}

static inline const sf_type *sf_result_type(const sf_graph *graph, uint32_t index)
{
    return sf_type_of(graph, graph->top->results[index]);
}

/* Numbers in all parameters. */
int64_t sf_count_parameters(const sf_graph *graph);

/* Node `at` of the top block. */
static inline sf_node *sf_top_node(const sf_graph *graph, uint32_t at)
{
    return graph->nodes[graph->top->nodes[at]];
}

/* The node that makes the value, or NULL for an argument. */
static inline sf_node *sf_maker(const sf_graph *graph, sf_value value)
{
    uint32_t id = graph->values[value].node;
    return id == SF_NONE ? NULL : graph->nodes[id];
}

/* By value: equal for equal computations; sf_graph_hash combines them. For sf_free. */
uint64_t *sf_value_hashes(const sf_graph *graph);

#endif
