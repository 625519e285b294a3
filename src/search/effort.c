#include "search/effort.h"

#include <string.h>

#include "ir/uses.h"
#include "op/slots.h"
#include "op/util.h"
#include "plan/pin.h"
#include "shard/strategy.h"

/* How a node goes with those around it. */
typedef enum manner {
    ALONE,    /* reads from memory, writes to it */
    FOLDS,    /* takes in what makes its operands, writes its results: reduce */
    FUSES,    /* also goes on in the kernel that reads it */
    VIEW,     /* as FUSES, and its result is its operand under another shape */
    NOTHING,  /* constants of one number, iota: computed wherever they are read */
    GIVEN,    /* other constants: there from the start */
    HANDS_ON, /* optimization_barrier: results are the operands, and nothing fuses across it */
} manner;

typedef struct analysis {
    const sf_graph *graph;
    sf_efforts *out;
    sf_arena scratch;
    sf_uses uses;
    bool *is_result;      /* by value */
    sf_value *charged_to; /* by node: the last value that its kernel was charged for, plus one */
} analysis;

static manner manner_of(const sf_node *node)
{
    if (sf_is_transparent(node))
        return HANDS_ON;
    switch (node->def->id) {
    case SF_OP_CONSTANT:
        return node->attrs[SF_CONSTANT_VALUE]->dense.splat ? NOTHING : GIVEN;
    case SF_OP_IOTA:
        return NOTHING;
    case SF_OP_RESHAPE:
    case SF_OP_BROADCAST_IN_DIM:
    case SF_OP_TRANSPOSE:
    case SF_OP_SLICE:
        return VIEW;
    case SF_OP_BITCAST_CONVERT:
    case SF_OP_CONCATENATE:
    case SF_OP_PAD:
    case SF_OP_REVERSE:
        return FUSES;
    case SF_OP_REDUCE:
        return FOLDS;
    default:
        return node->def->factors == sf_factors_pointwise ? FUSES : ALONE;
    }
}

static bool fuses(const sf_node *node)
{
    manner m = manner_of(node);
    return m == FUSES || m == VIEW || m == NOTHING;
}

/* Writes into its first operands rather than making new tensors. */
static bool changes_operands(const sf_node *node)
{
    return sf_is(node, SF_OP_SCATTER) || sf_is(node, SF_OP_DYNAMIC_UPDATE_SLICE);
}

/* Kernels */

/* Whether the node can take in what makes its operands. A view that is stored cannot: it is no kernel. */
static bool takes_in(const analysis *a, const sf_node *node)
{
    manner m = manner_of(node);
    return m == FOLDS || m == FUSES || (m == VIEW && !a->out->stored[node->result]);
}

/* The one kernel that all readers of the value run in; SF_NONE where there are several, or none, or one
 * that takes nothing in. */
static uint32_t reading_kernel(const analysis *a, sf_value value)
{
    uint32_t kernel = SF_NONE;
    for (uint32_t i = a->uses.first[value]; i < a->uses.first[value + 1]; i++) {
        const sf_node *reader = a->graph->nodes[a->uses.at[i].node];
        uint32_t other = a->out->nodes[reader->id].kernel;
        if (!takes_in(a, reader) || (kernel != SF_NONE && kernel != other))
            return SF_NONE;
        kernel = other;
    }
    return kernel;
}

/* Backwards, so that the kernels of all readers are known. */
static void find_kernels(analysis *a)
{
    const sf_graph *graph = a->graph;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        a->out->stored[graph->top->arguments[i]] = true;
    for (uint32_t i = graph->top->nnodes; i-- > 0;) {
        const sf_node *node = graph->nodes[graph->top->nodes[i]];
        uint32_t kernel = SF_NONE;
        if (fuses(node) && !a->is_result[node->result])
            kernel = reading_kernel(a, node->result);
        a->out->nodes[node->id].kernel = kernel == SF_NONE ? node->id : kernel;
        for (uint32_t r = 0; r < node->nresults && kernel == SF_NONE; r++)
            a->out->stored[node->result + r] = true;
    }
}

/* Nobody else wants the operand as it was, so the node may change it where it stands. */
static bool is_changed(const analysis *a, const sf_node *node, uint32_t operand)
{
    sf_value value = node->operands[operand];
    return sf_maker(a->graph, value) && !a->is_result[value] &&
           sf_uses_count(&a->uses, value) == 1 && a->out->place[value] == value;
}

static void find_places(analysis *a)
{
    sf_value *place = a->out->place;
    for (size_t v = 0; v < a->graph->nvalues; v++)
        place[v] = (sf_value)v;
    for (uint32_t i = 0; i < a->graph->top->nnodes; i++) {
        const sf_node *node = a->graph->nodes[a->graph->top->nodes[i]];
        manner m = manner_of(node);
        for (uint32_t r = 0; r < node->nresults; r++) {
            if (m == NOTHING)
                place[node->result + r] = SF_NONE;
            else if (m == VIEW || m == HANDS_ON ||
                     (changes_operands(node) && is_changed(a, node, r)))
                place[node->result + r] = place[node->operands[r]];
        }
    }
}

/* Computing again: the bounds are those of prog/cluster.c. */

enum { MOST_AGAIN = 12, MOST_FUNCTIONS = 2 };

/* How a value comes from its source. */
typedef struct chain {
    int ops, functions;
} chain;

static bool is_function(const sf_node *node)
{
    switch (node->def->id) {
    case SF_OP_EXPONENTIAL:
    case SF_OP_EXPONENTIAL_MINUS_ONE:
    case SF_OP_LOG:
    case SF_OP_LOG_PLUS_ONE:
    case SF_OP_LOGISTIC:
    case SF_OP_TANH:
    case SF_OP_SINE:
    case SF_OP_COSINE:
    case SF_OP_TAN:
    case SF_OP_ERF:
    case SF_OP_CBRT:
    case SF_OP_POWER:
    case SF_OP_ATAN2:
        return true;
    default:
        return false;
    }
}

/* What stands somewhere all the time. */
static bool is_always_there(const analysis *a, sf_value value)
{
    sf_value place = a->out->place[value];
    const sf_node *maker = place == SF_NONE ? NULL : sf_maker(a->graph, place);
    return !maker || manner_of(maker) == GIVEN;
}

/* Sets the source of what an element-wise node makes. */
static void find_source(analysis *a, const sf_node *node, chain *chains)
{
    chain c = {1, is_function(node)};
    sf_value source = SF_NONE;
    const sf_type *type = sf_type_of(a->graph, node->result);
    for (uint32_t o = 0; o < node->noperands; o++) {
        sf_value value = node->operands[o], from = a->out->source[value];
        if (is_always_there(a, value))
            continue;
        if (from == SF_NONE)
            from = value;
        if ((source != SF_NONE && source != from) ||
            !sf_same_shape(sf_type_of(a->graph, from), type))
            return;
        source = from;
        c.ops += chains[value].ops;
        c.functions += chains[value].functions;
    }
    if (source == SF_NONE || !a->out->stored[a->out->place[source]] || c.ops > MOST_AGAIN ||
        c.functions > MOST_FUNCTIONS ||
        sf_type_bytes(sf_type_of(a->graph, source)) > sf_type_bytes(type))
        return;
    a->out->source[node->result] = source;
    chains[node->result] = c;
}

static bool readers_fuse(const analysis *a, sf_value value)
{
    for (uint32_t i = a->uses.first[value]; i < a->uses.first[value + 1]; i++)
        if (!takes_in(a, a->graph->nodes[a->uses.at[i].node]))
            return false;
    return true;
}

static void find_again(analysis *a)
{
    sf_efforts *out = a->out;
    chain *chains = SF_ARRAY(&a->scratch, a->graph->nvalues, chain);
    for (size_t v = 0; v < a->graph->nvalues; v++)
        out->source[v] = SF_NONE;
    for (uint32_t i = 0; i < a->graph->top->nnodes; i++) {
        const sf_node *node = a->graph->nodes[a->graph->top->nodes[i]];
        if (node->def->factors != sf_factors_pointwise)
            continue;
        find_source(a, node, chains);
        out->again[node->result] = out->source[node->result] != SF_NONE &&
                                   out->stored[node->result] && !a->is_result[node->result] &&
                                   readers_fuse(a, node->result);
    }
}

/* Effort */

static sf_math math_of(const sf_graph *graph, const sf_node *node)
{
    int slot = sf_attr_slot(node->def, sf_str_of("precision_config"));
    const sf_attr *precision = slot >= 0 ? node->attrs[slot] : NULL;
    const sf_type *type = sf_type_of(graph, node->operands[0]);
    if (type->dtype == SF_F64)
        return SF_MATH_F64;
    if (type->dtype == SF_BF16)
        return SF_MATH_BF16;
    if (type->dtype == SF_F16)
        return SF_MATH_F16;
    if (sf_is_float(type->dtype) && sf_dtype_get(type->dtype)->bits <= 8)
        return SF_MATH_F8;
    /* HIGH and HIGHEST: nothing may be rounded away. */
    bool exact = precision && strstr(precision->text, "HIGH");
    return type->dtype == SF_F32 && !exact ? SF_MATH_TF32 : SF_MATH_F32;
}

static bool is_product(const sf_node *node)
{
    return sf_is(node, SF_OP_DOT_GENERAL) || sf_is(node, SF_OP_CONVOLUTION);
}

static bool is_control(const sf_node *node)
{
    return sf_is(node, SF_OP_WHILE) || sf_is(node, SF_OP_CASE) || sf_is(node, SF_OP_CALL);
}

static void add_flops(analysis *a, const sf_node *node, double times, sf_node_effort *out);

/* Of branches all are counted: which one is taken is not known. */
static void add_regions(analysis *a, const sf_node *node, double times, sf_node_effort *out)
{
    const sf_attr *trips = sf_is(node, SF_OP_WHILE) ? node->attrs[SF_WHILE_TRIPS] : NULL;
    if (trips)
        times *= (double)trips->integer;
    for (uint32_t r = 0; r < node->nregions; r++)
        for (uint32_t i = 0; i < node->regions[r]->nnodes; i++)
            add_flops(a, a->graph->nodes[node->regions[r]->nodes[i]], times, out);
}

static void add_flops(analysis *a, const sf_node *node, double times, sf_node_effort *out)
{
    if (is_control(node)) {
        add_regions(a, node, times, out);
        return;
    }
    sf_mark mark = sf_arena_mark(&a->scratch);
    const sf_type **types =
        SF_ARRAY(&a->scratch, node->noperands + node->nresults, const sf_type *);
    sf_op op = sf_op_of(a->graph, node, types);
    out->flops += times * sf_op_flops(&op);
    if (is_product(node) && !out->product) {
        out->product = true;
        out->math = math_of(a->graph, node);
    }
    sf_arena_reset(&a->scratch, mark);
}

static uint32_t bit_of(uint32_t tensor)
{
    return tensor < 32 ? 1u << tensor : 0;
}

static uint32_t operand_of(const sf_node *node, sf_value value)
{
    uint32_t o = 0;
    while (o < node->noperands && node->operands[o] != value)
        o++;
    return o;
}

/* Whether the node only looks up, or changes, some places of the operand. */
static bool touches(const sf_node *node, uint32_t operand)
{
    if (changes_operands(node))
        return operand < node->nresults;
    return operand == 0 && (sf_is(node, SF_OP_GATHER) || sf_is(node, SF_OP_DYNAMIC_SLICE));
}

/* Which of its tensors a reader is charged with for the value. A view that goes on in a kernel reads what
 * it shows of its operand. */
static uint32_t reading_charge(const analysis *a, const sf_node *reader, sf_value value)
{
    uint32_t operand = operand_of(reader, value);
    manner m = manner_of(reader);
    if (m == HANDS_ON || (m == VIEW && a->out->stored[reader->result]) || touches(reader, operand))
        return 0;
    if (m == VIEW && !sf_is(reader, SF_OP_BROADCAST_IN_DIM))
        return bit_of(reader->noperands);
    return bit_of(operand);
}

/* Once for each kernel, but for slices, each of which reads another part. */
static void charge_readers(analysis *a, sf_value value)
{
    const sf_node *maker = sf_maker(a->graph, value);
    if (!a->out->stored[value] || a->out->place[value] == SF_NONE ||
        (maker && sf_is(maker, SF_OP_BROADCAST_IN_DIM)))
        return;
    for (uint32_t i = a->uses.first[value]; i < a->uses.first[value + 1]; i++) {
        if (a->uses.at[i].node == SF_NONE)
            continue;
        const sf_node *reader = a->graph->nodes[a->uses.at[i].node];
        sf_node_effort *effort = &a->out->nodes[reader->id];
        uint32_t charge = reading_charge(a, reader, value);
        if (charge == 0 ||
            (a->charged_to[effort->kernel] == value + 1 && !sf_is(reader, SF_OP_SLICE)))
            continue;
        effort->charged |= charge;
        if (!sf_is(reader, SF_OP_SLICE))
            a->charged_to[effort->kernel] = value + 1;
    }
}

static void charge_results(const analysis *a, const sf_node *node)
{
    sf_node_effort *effort = &a->out->nodes[node->id];
    for (uint32_t r = 0; r < node->nresults; r++)
        if (a->out->stored[node->result + r] && a->out->place[node->result + r] == node->result + r)
            effort->charged |= bit_of(node->noperands + r);
    if (node->noperands + node->nresults > 32)
        effort->charged = UINT32_MAX;
}

static void find_efforts(analysis *a)
{
    const sf_graph *graph = a->graph;
    a->charged_to = SF_ARRAY(&a->scratch, graph->nnodes, sf_value);
    for (size_t v = 0; v < graph->nvalues; v++)
        charge_readers(a, (sf_value)v);
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = graph->nodes[graph->top->nodes[i]];
        sf_node_effort *effort = &a->out->nodes[node->id];
        manner m = manner_of(node);
        if (m == NOTHING || m == GIVEN || m == HANDS_ON)
            continue;
        if (m != VIEW)
            charge_results(a, node);
        effort->whole = sf_is(node, SF_OP_RNG_BIT_GENERATOR);
        effort->starts = m != VIEW && effort->kernel == node->id;
        add_flops(a, node, 1, effort);
    }
}

/* Slack */

static bool leads_to_update(const analysis *a, sf_value_use use)
{
    if (use.node == SF_NONE)
        return true;
    const sf_node *reader = a->graph->nodes[use.node];
    if (reader->phase != SF_BACKWARD || reader->nresults == 0)
        return reader->phase == SF_UPDATE;
    return a->out->slack[reader->result + (sf_is_transparent(reader) ? use.operand : 0)];
}

/* Backwards, so that it is known of all readers. */
static void find_slack(analysis *a)
{
    const sf_block *top = a->graph->top;
    for (uint32_t i = top->nnodes; i-- > 0;) {
        const sf_node *node = a->graph->nodes[top->nodes[i]];
        for (uint32_t r = 0; r < node->nresults && node->phase == SF_BACKWARD; r++) {
            sf_value value = node->result + r;
            bool slack = true;
            for (uint32_t u = a->uses.first[value]; slack && u < a->uses.first[value + 1]; u++)
                slack = leads_to_update(a, a->uses.at[u]);
            a->out->slack[value] = slack;
        }
    }
}

sf_efforts *sf_efforts_new(const sf_graph *graph, sf_arena *arena)
{
    sf_efforts *out = SF_NEW(arena, sf_efforts);
    out->graph = graph;
    out->nodes = SF_ARRAY(arena, graph->nnodes, sf_node_effort);
    out->stored = SF_ARRAY(arena, graph->nvalues, bool);
    out->place = SF_ARRAY(arena, graph->nvalues, sf_value);
    out->source = SF_ARRAY(arena, graph->nvalues, sf_value);
    out->again = SF_ARRAY(arena, graph->nvalues, bool);
    out->gradient = SF_ARRAY(arena, graph->nvalues, bool);
    out->slack = SF_ARRAY(arena, graph->nvalues, bool);
    analysis a = {.graph = graph, .out = out};
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].gradient != SF_NONE)
            out->gradient[graph->arguments[i].gradient] = true;
    a.uses = sf_uses_of(graph, &a.scratch);
    a.is_result = SF_ARRAY(&a.scratch, graph->nvalues, bool);
    for (uint32_t i = 0; i < graph->top->nresults; i++)
        a.is_result[graph->top->results[i]] = true;
    find_kernels(&a);
    find_places(&a);
    find_again(&a);
    find_efforts(&a);
    find_slack(&a);
    sf_arena_free(&a.scratch);
    return out;
}

/* On a mesh */

sf_effort sf_effort_of(const sf_efforts *efforts, const sf_node *node, const sf_layout *layouts,
                       const sf_mesh *mesh)
{
    const sf_node_effort *whole = &efforts->nodes[node->id];
    sf_effort out = {.product = whole->product, .math = whole->math, .flops = whole->flops};
    static const sf_layout replicated;
    sf_axes split = 0;
    for (uint32_t t = 0; t < node->noperands + node->nresults; t++) {
        sf_value value =
            t < node->noperands ? node->operands[t] : node->result + (t - node->noperands);
        const sf_layout *layout = whole->whole ? &replicated : &layouts[t];
        for (int axis = 0; axis < mesh->naxes; axis++)
            if (layout->axes[axis].kind == SF_SPLIT)
                split |= 1u << axis;
        if (t >= 32 ? whole->charged == UINT32_MAX : whole->charged >> t & 1)
            out.bytes += sf_piece_bytes(sf_type_of(efforts->graph, value), layout, mesh);
    }
    out.flops /= sf_group_size(mesh, split);
    return out;
}

double sf_effort_seconds(const sf_efforts *efforts, const sf_node *node, const sf_layout *layouts,
                         const sf_mesh *mesh, const sf_costs *costs)
{
    static const sf_effort nothing;
    sf_effort effort = sf_effort_of(efforts, node, layouts, mesh);
    if (efforts->nodes[node->id].starts)
        return sf_costs_op(costs, &effort);
    if (effort.flops == 0 && effort.bytes == 0)
        return 0;
    return sf_costs_op(costs, &effort) - sf_costs_op(costs, &nothing);
}
