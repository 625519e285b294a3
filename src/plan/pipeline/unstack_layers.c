#include "plan/pipeline/unstack_layers.h"

#include <string.h>

#include "ir/clone.h"
#include "op/node_builder.h"
#include "op/slots.h"
#include "op/util.h"

/* A part of a value that is no part of a stack: all its rows are the same. */
typedef struct uniform_part {
    uint32_t stack, part;
    sf_value value;
    struct uniform_part *next;
} uniform_part;

typedef struct unstacking {
    const sf_graph *from;
    const sf_stacks *stacks;
    const sf_row_split *splits;
    sf_graph *to;
    sf_unstacked *out;
    sf_arena scratch;
    int64_t **sizes;         /* by stack and part: how many rows it has */
    int64_t **places;        /* by stack and row: its place in its part */
    sf_value *map;           /* by value of the step: itself, where it is whole */
    sf_value **parts;        /* by value of a stack: its parts */
    uniform_part **uniforms; /* by value */
    size_t nnodes, node_capacity, nvalues, value_capacity;

    /* The node that is rewritten. */
    const sf_node *node;
    uint32_t stack, part;
} unstacking;

/* The stack of a value, if that is cut. */
static uint32_t stack_of(const unstacking *u, sf_value value)
{
    uint32_t stack = u->stacks->of_value[value];
    return stack != SF_NONE && u->splits[stack].nparts > 0 ? stack : SF_NONE;
}

static uint32_t count_parts(const unstacking *u, sf_value value)
{
    uint32_t stack = stack_of(u, value);
    return stack == SF_NONE ? 1 : u->splits[stack].nparts;
}

static const sf_type *with_rows(unstacking *u, const sf_type *type, int64_t rows)
{
    int64_t dims[SF_MAX_RANK];
    memcpy(dims, type->dims, (size_t)type->rank * sizeof *dims);
    dims[0] = rows;
    return sf_type_get(u->to->pool, type->dtype, type->rank, dims);
}

static const sf_type *type_of_part(unstacking *u, sf_value value)
{
    return with_rows(u, sf_type_of(u->from, value), u->sizes[u->stack][u->part]);
}

/* Adding */

/* Records for the new nodes and values their counterpart in the step: the current node, or a part
 * of it; values are `first` and those after it. */
static void note_added(unstacking *u, const sf_node *added, sf_value first)
{
    sf_unstacked_of of = {u->node ? u->node->id : SF_NONE, u->stack, u->part};
    while (u->nnodes < u->to->nnodes)
        SF_PUSH(&u->out->arena, u->out->nodes, u->nnodes, u->node_capacity, of);
    while (u->nvalues < u->to->nvalues)
        SF_PUSH(&u->out->arena, u->out->value_of, u->nvalues, u->value_capacity, SF_NONE);
    for (uint32_t r = 0; added && first != SF_NONE && r < added->nresults; r++)
        u->out->value_of[added->result + r] = first + r;
}

/* A helper node of the current one, with one result; `what` is its value in the step, or
 * SF_NONE. */
static sf_value add_helper(unstacking *u, sf_opcode code, uint32_t noperands,
                           const sf_value *operands, const sf_attr *const *attrs,
                           const sf_type *type, sf_value what)
{
    sf_node_spec spec = sf_spec_like(u->node);
    spec.def = sf_opdef_get(code);
    spec.noperands = noperands;
    spec.operands = operands;
    spec.nresults = 1;
    spec.nregions = 0;
    spec.types = &type;
    spec.attrs = attrs;
    const sf_node *added = sf_graph_add(u->to, u->to->top, &spec);
    note_added(u, added, what);
    return added->result;
}

static sf_value add_number(unstacking *u, const sf_type *type, int64_t number)
{
    uint64_t element = 0;
    sf_store_i64(type->dtype, &element, 0, number);
    const sf_attr *attr = sf_attr_dense(u->to->pool, type, true, &element);
    return add_helper(u, SF_OP_CONSTANT, 0, NULL, &attr, type, SF_NONE);
}

/* Rows of a value that is there. */
static sf_value add_slice(unstacking *u, sf_value value, int64_t first, int64_t count,
                          sf_value what)
{
    const sf_type *type = sf_type_of(u->to, value);
    int64_t starts[SF_MAX_RANK] = {first}, limits[SF_MAX_RANK], strides[SF_MAX_RANK];
    if (first == 0 && count == type->dims[0])
        return value;
    for (int d = 0; d < type->rank; d++) {
        limits[d] = d == 0 ? first + count : type->dims[d];
        strides[d] = 1;
    }
    const sf_attr *attrs[] = {[SF_SLICE_STARTS] = sf_attr_ints(u->to->pool, type->rank, starts),
                              [SF_SLICE_LIMITS] = sf_attr_ints(u->to->pool, type->rank, limits),
                              [SF_SLICE_STRIDES] = sf_attr_ints(u->to->pool, type->rank, strides)};
    return add_helper(u, SF_OP_SLICE, 1, &value, attrs, with_rows(u, type, count), what);
}

static sf_value add_joined(unstacking *u, uint32_t count, const sf_value *values,
                           const sf_type *type, sf_value what)
{
    const sf_attr *dimension = sf_attr_int(u->to->pool, 0);
    return count == 1 ? values[0]
                      : add_helper(u, SF_OP_CONCATENATE, count, values, &dimension, type, what);
}

/* Row by row */

static sf_value part_of(unstacking *u, sf_value value);

/* The node, on a part of its tensors. */
static const sf_node *add_part(unstacking *u, const sf_node *node, const sf_row_op *rows)
{
    uint32_t count = node->noperands + node->nresults;
    sf_mark mark = sf_arena_mark(&u->scratch);
    const sf_type **pieces = SF_ARRAY(&u->scratch, count, const sf_type *);
    const sf_attr **attrs = SF_ARRAY(&u->scratch, node->def->nattrs, const sf_attr *);
    sf_value *operands = SF_ARRAY(&u->scratch, node->noperands, sf_value);
    sf_op op = sf_op_of(u->from, node, SF_ARRAY(&u->scratch, count, const sf_type *));
    for (uint32_t t = 0; t < count; t++) {
        bool is_result = t >= node->noperands;
        sf_value value = is_result ? node->result + (t - node->noperands) : node->operands[t];
        pieces[t] = rows->has_rows[t] ? type_of_part(u, value) : sf_type_of(u->from, value);
        if (!is_result)
            operands[t] = rows->has_rows[t] ? part_of(u, value) : u->map[value];
    }
    op.pool = u->to->pool;
    for (int i = 0; i < node->def->nattrs; i++)
        attrs[i] = node->attrs[i];
    if (sf_is(node, SF_OP_CONSTANT)) {
        const sf_dense *dense = &node->attrs[SF_CONSTANT_VALUE]->dense;
        attrs[SF_CONSTANT_VALUE] = sf_attr_dense(u->to->pool, pieces[0], true, dense->data);
    } else if (node->def->local) {
        node->def->local(&op, pieces, attrs);
    }
    sf_node_spec spec = sf_spec_like(node);
    spec.operands = operands;
    spec.types = pieces + node->noperands;
    spec.attrs = attrs;
    spec.recomputed = node->recomputed;
    const sf_node *added = sf_graph_add(u->to, u->to->top, &spec), *before = u->node;
    u->node = node;
    note_added(u, added, node->result);
    u->node = before;
    sf_arena_reset(&u->scratch, mark);
    return added;
}

/* The current part of a value with rows; of one whose rows are all the same, it is made now. */
static sf_value part_of(unstacking *u, sf_value value)
{
    if (u->stacks->of_value[value] == u->stack)
        return u->parts[value][u->part];
    for (const uniform_part *p = u->uniforms[value]; p; p = p->next)
        if (p->stack == u->stack && p->part == u->part)
            return p->value;
    const sf_node *maker = sf_maker(u->from, value);
    uint32_t result = value - maker->result;
    sf_row_op rows = sf_row_op_of(u->from, maker, maker->noperands + result, &u->out->arena);
    uniform_part *made = SF_NEW(&u->out->arena, uniform_part);
    *made = (uniform_part){u->stack, u->part, add_part(u, maker, &rows)->result + result,
                           u->uniforms[value]};
    u->uniforms[value] = made;
    return made->value;
}

/* Rows from `row` on, before `end`, that are in one part, which is then current. */
static int64_t enter_run(unstacking *u, int64_t row, int64_t end)
{
    const uint32_t *of_row = u->splits[u->stack].of_row;
    int64_t last = row;
    u->part = of_row[row];
    while (last < end && of_row[last] == u->part)
        last++;
    return last - row;
}

static int64_t place_of(const unstacking *u, int64_t row)
{
    return u->places[u->stack][row];
}

/* Ops */

static void split_each(unstacking *u, const sf_row_op *rows)
{
    for (u->part = 0; u->part < u->splits[u->stack].nparts; u->part++) {
        const sf_node *added = add_part(u, u->node, rows);
        for (uint32_t r = 0; r < u->node->nresults; r++)
            u->parts[u->node->result + r][u->part] = added->result + r;
    }
}

/* Puts some rows into the current part. */
static sf_value put_rows(unstacking *u, sf_value part, sf_value rows, int64_t first,
                         const sf_value *starts)
{
    const sf_type *type = sf_type_of(u->to, part);
    sf_value operands[SF_MAX_RANK + 2] = {part, rows};
    const sf_type *index =
        starts ? sf_type_of(u->to, starts[0]) : sf_type_scalar(u->to->pool, SF_S32);
    for (int d = 0; d < type->rank; d++)
        operands[2 + d] =
            d > 0 && starts ? starts[d] : add_number(u, index, d > 0 ? 0 : place_of(u, first));
    return add_helper(u, SF_OP_DYNAMIC_UPDATE_SLICE, 2 + (uint32_t)type->rank, operands, NULL, type,
                      u->node->result);
}

static void split_put(unstacking *u, const sf_row_op *rows)
{
    const sf_node *node = u->node;
    sf_value starts[SF_MAX_RANK], *parts = u->parts[node->result];
    for (uint32_t o = 2; o < node->noperands; o++)
        starts[o - 2] = u->map[node->operands[o]];
    for (u->part = 0; u->part < u->splits[u->stack].nparts; u->part++)
        parts[u->part] = part_of(u, node->operands[0]);
    for (int64_t row = rows->first, end = row + rows->count, count; row < end; row += count) {
        count = enter_run(u, row, end);
        sf_value some = add_slice(u, u->map[node->operands[1]], row - rows->first, count, SF_NONE);
        parts[u->part] = put_rows(u, parts[u->part], some, row, starts);
    }
}

static void split_joined(unstacking *u)
{
    const sf_node *node = u->node;
    uint32_t nparts = u->splits[u->stack].nparts;
    int64_t all = u->stacks->rows[u->stack], before = 0;
    sf_value *pieces = SF_ARRAY(&u->out->arena, nparts * all, sf_value);
    uint32_t *npieces = SF_ARRAY(&u->out->arena, nparts, uint32_t);
    for (uint32_t o = 0; o < node->noperands; o++) {
        int64_t rows = sf_type_of(u->from, node->operands[o])->dims[0];
        for (int64_t row = 0, count; row < rows; row += count) {
            count = enter_run(u, before + row, before + rows);
            pieces[u->part * all + npieces[u->part]++] =
                add_slice(u, u->map[node->operands[o]], row, count, SF_NONE);
        }
        before += rows;
    }
    for (u->part = 0; u->part < nparts; u->part++)
        u->parts[node->result][u->part] = add_joined(u, npieces[u->part], &pieces[u->part * all],
                                                     type_of_part(u, node->result), node->result);
}

/* The elements between the rows are the same in all of them. */
static void split_padded(unstacking *u, const sf_row_op *rows)
{
    const sf_node *node = u->node;
    sf_value *parts = u->parts[node->result];
    const sf_attr *none = sf_attr_ints(u->to->pool, 0, NULL);
    for (u->part = 0; u->part < u->splits[u->stack].nparts; u->part++)
        parts[u->part] = add_helper(u, SF_OP_BROADCAST_IN_DIM, 1, &u->map[node->operands[1]], &none,
                                    type_of_part(u, node->result), node->result);
    for (int64_t row = rows->first, end = row + rows->count, count; row < end; row += count) {
        count = enter_run(u, row, end);
        sf_value some = add_slice(u, u->map[node->operands[0]], row - rows->first, count, SF_NONE);
        parts[u->part] = put_rows(u, parts[u->part], some, row, NULL);
    }
}

/* Each stack by itself; all other carried values together. */
static void split_handed_on(unstacking *u)
{
    const sf_node *node = u->node;
    sf_value *rest = SF_ARRAY(&u->out->arena, node->noperands, sf_value);
    const sf_type **types = SF_ARRAY(&u->out->arena, node->noperands, const sf_type *);
    uint32_t nrest = 0;
    for (uint32_t o = 0; o < node->noperands; o++) {
        sf_value value = node->operands[o], result = node->result + o;
        u->stack = stack_of(u, value);
        for (u->part = 0; u->stack != SF_NONE && u->part < u->splits[u->stack].nparts; u->part++)
            u->parts[result][u->part] =
                add_helper(u, SF_OP_OPTIMIZATION_BARRIER, 1, &u->parts[value][u->part], NULL,
                           type_of_part(u, value), result);
        if (u->stack != SF_NONE)
            continue;
        types[nrest] = sf_type_of(u->from, value);
        rest[nrest++] = u->map[value];
    }
    u->stack = u->part = SF_NONE;
    if (nrest == 0)
        return;
    sf_node_spec spec = sf_spec_like(node);
    spec.noperands = spec.nresults = nrest;
    spec.operands = rest;
    spec.types = types;
    const sf_node *added = sf_graph_add(u->to, u->to->top, &spec);
    note_added(u, added, SF_NONE);
    for (uint32_t o = 0, r = 0; o < node->noperands; o++)
        if (stack_of(u, node->operands[o]) == SF_NONE) {
            u->out->value_of[added->result + r] = node->result + o;
            u->map[node->result + o] = added->result + r++;
        }
}

/* The slice as it was, but of a part, and of its own rows there. */
static sf_value take_run(unstacking *u, int64_t row, int64_t count)
{
    const sf_node *node = u->node;
    const sf_type *type = sf_type_of(u->from, node->result);
    int64_t starts[SF_MAX_RANK], limits[SF_MAX_RANK];
    const sf_attr *attrs[] = {node->attrs[0], node->attrs[1], node->attrs[2]};
    memcpy(starts, attrs[SF_SLICE_STARTS]->ints, (size_t)type->rank * sizeof *starts);
    memcpy(limits, attrs[SF_SLICE_LIMITS]->ints, (size_t)type->rank * sizeof *limits);
    starts[0] = place_of(u, row);
    limits[0] = starts[0] + count;
    attrs[SF_SLICE_STARTS] = sf_attr_ints(u->to->pool, type->rank, starts);
    attrs[SF_SLICE_LIMITS] = sf_attr_ints(u->to->pool, type->rank, limits);
    return add_helper(u, SF_OP_SLICE, 1, &u->parts[node->operands[0]][u->part], attrs,
                      with_rows(u, type, count), node->result);
}

static void split_taken(unstacking *u, const sf_row_op *rows)
{
    const sf_node *node = u->node;
    sf_value *runs = SF_ARRAY(&u->out->arena, rows->count, sf_value);
    uint32_t nruns = 0;
    for (int64_t row = rows->first, end = row + rows->count, count; row < end; row += count) {
        count = enter_run(u, row, end);
        runs[nruns++] = take_run(u, row, count);
    }
    u->stack = u->part = SF_NONE;
    u->map[node->result] =
        add_joined(u, nruns, runs, sf_type_of(u->from, node->result), node->result);
}

static void split_folded(unstacking *u)
{
    const sf_node *node = u->node;
    const sf_type *type = sf_type_of(u->from, node->result);
    sf_op op = sf_op_of(u->from, node, SF_ARRAY(&u->out->arena, 3, const sf_type *));
    sf_opcode code = sf_op_of_monoid(sf_op_monoid(&op, SF_REDUCE_BODY));
    uint32_t stack = u->stack;
    for (uint32_t part = 0; part < u->splits[stack].nparts; part++) {
        u->stack = stack;
        u->part = part;
        sf_value operands[] = {u->parts[node->operands[0]][part], u->map[node->operands[1]]};
        sf_value sum = add_helper(u, SF_OP_REDUCE, 2, operands, node->attrs, type, node->result);
        u->stack = u->part = SF_NONE;
        sf_value both[] = {u->map[node->result], sum};
        u->map[node->result] =
            part == 0 ? sum : add_helper(u, code, 2, both, NULL, type, node->result);
    }
}

/* A tensor of the node that is in parts: a result if there is one, else an operand; SF_NONE: none is. */
static uint32_t find_tensor(const unstacking *u, const sf_node *node)
{
    for (uint32_t r = 0; r < node->nresults; r++)
        if (stack_of(u, node->result + r) != SF_NONE)
            return node->noperands + r;
    for (uint32_t o = 0; o < node->noperands; o++)
        if (stack_of(u, node->operands[o]) != SF_NONE)
            return o;
    return SF_NONE;
}

static void copy_node(unstacking *u, const sf_node *node)
{
    sf_node_clone(u->from, node, u->to, u->to->top, u->map);
    note_added(u, u->to->nodes[u->to->nnodes - 1], node->result);
}

static void split_node(unstacking *u, const sf_node *node)
{
    uint32_t tensor = find_tensor(u, node);
    u->node = node;
    u->stack = u->part = SF_NONE;
    if (tensor == SF_NONE) {
        copy_node(u, node);
        return;
    }
    bool is_result = tensor >= node->noperands;
    sf_row_op rows = sf_row_op_of(u->from, node, tensor, &u->out->arena);
    u->stack =
        stack_of(u, is_result ? node->result + (tensor - node->noperands) : node->operands[tensor]);
    for (uint32_t r = 0; r < node->nresults; r++)
        if (stack_of(u, node->result + r) != SF_NONE)
            u->parts[node->result + r] =
                SF_ARRAY(&u->out->arena, count_parts(u, node->result + r), sf_value);
    switch (rows.kind) {
    case SF_ROWS_EACH:
        split_each(u, &rows);
        break;
    case SF_ROWS_HANDED_ON:
        split_handed_on(u);
        break;
    case SF_ROWS_PUT:
        split_put(u, &rows);
        break;
    case SF_ROWS_JOINED:
        split_joined(u);
        break;
    case SF_ROWS_PADDED:
        split_padded(u, &rows);
        break;
    case SF_ROWS_TAKEN:
        split_taken(u, &rows);
        break;
    case SF_ROWS_FOLDED:
        split_folded(u);
        break;
    case SF_ROWS_MIXED:
        SF_ASSERT(false); /* then it would be no stack */
    }
}

/* Ends */

static void count_rows(unstacking *u)
{
    sf_arena *arena = &u->out->arena;
    u->sizes = SF_ARRAY(arena, u->stacks->count, int64_t *);
    u->places = SF_ARRAY(arena, u->stacks->count, int64_t *);
    for (uint32_t s = 0; s < u->stacks->count; s++) {
        const sf_row_split *split = &u->splits[s];
        u->sizes[s] = SF_ARRAY(arena, split->nparts, int64_t);
        u->places[s] = SF_ARRAY(arena, u->stacks->rows[s], int64_t);
        for (int64_t row = 0; split->nparts > 0 && row < u->stacks->rows[s]; row++)
            u->places[s][row] = u->sizes[s][split->of_row[row]]++;
    }
}

static void add_arguments(unstacking *u)
{
    const sf_block *top = u->from->top;
    size_t count = 0, capacity = 0;
    u->node = NULL;
    for (uint32_t i = 0; i < top->narguments; i++) {
        sf_value value = top->arguments[i];
        u->stack = stack_of(u, value);
        u->parts[value] = SF_ARRAY(&u->out->arena, count_parts(u, value), sf_value);
        for (u->part = 0; u->part < count_parts(u, value); u->part++) {
            const sf_type *type =
                u->stack == SF_NONE ? sf_type_of(u->from, value) : type_of_part(u, value);
            sf_unstacked_of of = {i, u->stack, u->stack == SF_NONE ? SF_NONE : u->part};
            u->map[value] = u->parts[value][u->part] = sf_block_argument(u->to, u->to->top, type);
            SF_PUSH(&u->out->arena, u->out->arguments, count, capacity, of);
            note_added(u, NULL, SF_NONE);
            u->out->value_of[u->map[value]] = value;
        }
    }
}

/* By result of the step: the first result that has it. */
static uint32_t *add_results(unstacking *u)
{
    const sf_block *top = u->from->top;
    uint32_t *first = SF_ARRAY(&u->out->arena, top->nresults, uint32_t);
    size_t count = 0, capacity = 0, same = 0, value_capacity = 0;
    sf_value *results = NULL;
    for (uint32_t i = 0; i < top->nresults; i++) {
        sf_value value = top->results[i];
        uint32_t stack = stack_of(u, value);
        first[i] = (uint32_t)count;
        for (uint32_t p = 0; p < count_parts(u, value); p++) {
            sf_unstacked_of of = {i, stack, stack == SF_NONE ? SF_NONE : p};
            SF_PUSH(&u->out->arena, results, same, value_capacity,
                    stack == SF_NONE ? u->map[value] : u->parts[value][p]);
            SF_PUSH(&u->out->arena, u->out->results, count, capacity, of);
        }
    }
    sf_block_return(u->to, u->to->top, (uint32_t)count, results);
    return first;
}

static void add_heads(unstacking *u, const uint32_t *first)
{
    const sf_graph *from = u->from;
    sf_graph *to = u->to;
    sf_graph_clone_head(from, to);
    if (!from->arguments || !from->results)
        return;
    to->arguments = SF_ARRAY(&to->arena, to->top->narguments, sf_argument);
    to->results = SF_ARRAY(&to->arena, to->top->nresults, sf_result);
    for (uint32_t i = 0; i < to->top->narguments; i++) {
        sf_unstacked_of of = u->out->arguments[i];
        const sf_argument *argument = &from->arguments[of.index];
        sf_value gradient = argument->gradient;
        uint32_t part = of.part == SF_NONE ? 0 : of.part;
        to->arguments[i] = *argument;
        if (argument->next != SF_NONE)
            to->arguments[i].next = first[argument->next] + part;
        if (gradient != SF_NONE)
            to->arguments[i].gradient =
                stack_of(u, gradient) == SF_NONE ? u->map[gradient] : u->parts[gradient][part];
    }
    for (uint32_t i = 0; i < to->top->nresults; i++)
        to->results[i] = from->results[u->out->results[i].index];
}

void sf_unstack(const sf_graph *graph, const sf_stacks *stacks, const sf_row_split *splits,
                sf_pool *pool, sf_unstacked *out)
{
    *out = (sf_unstacked){.graph = sf_graph_new(pool)};
    unstacking u = {
        .from = graph, .stacks = stacks, .splits = splits, .to = out->graph, .out = out};
    u.map = SF_ARRAY(&out->arena, graph->nvalues, sf_value);
    u.parts = SF_ARRAY(&out->arena, graph->nvalues, sf_value *);
    u.uniforms = SF_ARRAY(&out->arena, graph->nvalues, uniform_part *);
    for (sf_value v = 0; v < graph->nvalues; v++)
        u.map[v] = SF_NONE;
    count_rows(&u);
    add_arguments(&u);
    for (uint32_t i = 0; i < graph->top->nnodes; i++)
        split_node(&u, sf_top_node(graph, i));
    add_heads(&u, add_results(&u));
    sf_arena_free(&u.scratch);
}

void sf_unstacked_free(sf_unstacked *unstacked)
{
    sf_graph_free(unstacked->graph);
    sf_arena_free(&unstacked->arena);
    *unstacked = (sf_unstacked){0};
}
