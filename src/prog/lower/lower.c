/* From a graph to a program, node by node. */
#include <string.h>

#include "base/hash.h"
#include "base/intern.h"
#include "base/mem.h"
#include "ir/clone.h"
#include "op/slots.h"
#include "prog/lower/lowering.h"

/* Instructions of one node */

static sf_view *contiguous_inputs(lowering *l, const sf_node *node, uint32_t ncaptured,
                                  const sf_value *captured)
{
    sf_view *in = SF_ARRAY(&l->program->arena, node->noperands + ncaptured, sf_view);
    for (uint32_t i = 0; i < node->noperands; i++)
        in[i] = contiguous(l, node->operands[i], node);
    for (uint32_t i = 0; i < ncaptured; i++)
        in[node->noperands + i] = contiguous(l, captured[i], node);
    return in;
}

/* The op, in memory of the program. */
static sf_op owned_op(lowering *l, const sf_node *node)
{
    sf_program *p = l->program;
    uint32_t ntypes = node->noperands + node->nresults;
    sf_op op = sf_op_of(l->graph, node, SF_ARRAY(&p->arena, ntypes, const sf_type *));
    op.pool = p->pool;
    op.graph = NULL;
    op.regions = NULL;
    if (op.def->nattrs)
        op.attrs = sf_arena_copy(&p->arena, op.attrs, (size_t)op.def->nattrs * sizeof *op.attrs);
    return op;
}

/* Regions are copied into a graph of the program; values of the enclosing blocks that they use are
 * arguments of its top block. */
static void own_regions(lowering *l, const sf_node *node, sf_call *call, const sf_value *captured)
{
    sf_program *p = l->program;
    sf_block **regions = SF_ARRAY(&p->arena, node->nregions, sf_block *);
    if (!p->inner)
        p->inner = sf_graph_new(p->pool);
    if (!l->inner)
        l->inner = SF_ARRAY(&l->scratch, l->graph->nvalues, sf_value);
    call->captured = SF_ARRAY(&p->arena, call->ncaptured, sf_value);
    for (uint32_t i = 0; i < call->ncaptured; i++) {
        const sf_type *type = sf_type_of(l->graph, captured[i]);
        call->captured[i] = sf_block_argument(p->inner, p->inner->top, type);
        l->inner[captured[i]] = call->captured[i];
    }
    for (uint32_t i = 0; i < node->nregions; i++)
        regions[i] = sf_block_clone(l->graph, node->regions[i], p->inner, l->inner);
    call->op.graph = p->inner;
    call->op.regions = regions;
}

static void lower_call(lowering *l, const sf_node *node)
{
    sf_program *p = l->program;
    sf_value *captured;
    uint32_t ncaptured = find_captured(l, node, &captured);
    sf_view *in = contiguous_inputs(l, node, ncaptured, captured);
    uint32_t inst = add_inst(l, SF_INST_CALL, node);
    sf_call *call = SF_NEW(&p->arena, sf_call);
    call->op = owned_op(l, node);
    call->ncaptured = ncaptured;
    if (node->nregions > 0)
        own_regions(l, node, call, captured);
    call->kernel = l->target->kernel(&call->op, &call->variant);
    p->insts[inst].call = call;
    p->insts[inst].in = in;
    p->insts[inst].nin = node->noperands + ncaptured;
    set_results(l, node, inst);
}

static void lower_exchange(lowering *l, const sf_node *node)
{
    sf_program *p = l->program;
    sf_view *in = contiguous_inputs(l, node, 0, NULL);
    uint32_t inst = add_inst(l, SF_INST_COMM, node);
    p->insts[inst].exchange = SF_NEW(&p->arena, sf_exchange);
    *p->insts[inst].exchange = sf_exchange_of(node, &p->mesh, p->rank);
    p->insts[inst].in = in;
    p->insts[inst].nin = node->noperands;
    set_results(l, node, inst);
}

static void lower_conv(lowering *l, const sf_node *node)
{
    sf_program *p = l->program;
    sf_view *in = SF_ARRAY(&p->arena, 2, sf_view);
    for (int i = 0; i < 2; i++)
        in[i] = *view_of(l, node->operands[i]);
    uint32_t inst = add_inst(l, SF_INST_CONV, node);
    p->insts[inst].in = in;
    p->insts[inst].nin = 2;
    set_results(l, node, inst);
    sf_op op = op_of(l, node);
    p->insts[inst].conv = SF_NEW(&p->arena, sf_conv);
    *p->insts[inst].conv = sf_conv_of_op(&op, &in[0], &in[1], &p->insts[inst].out[0]);
}

static bool is_multiplied(const lowering *l, const sf_node *node)
{
    if (sf_is(node, SF_OP_CONVOLUTION) &&
        is_transposed(l, sf_type_of(l->graph, node->operands[0])->dtype))
        return false;
    return l->target->multiplies(sf_type_of(l->graph, node->operands[0])->dtype,
                                 sf_type_of(l->graph, node->operands[1])->dtype,
                                 sf_type_of(l->graph, node->result)->dtype);
}

/* A value that only a barrier reads is stored at the barrier, not when its result is read: else a
 * sum over micro-batches, say, would keep each of its terms until then. */
static void lower_barrier(lowering *l, const sf_node *node)
{
    for (uint32_t i = 0; i < node->noperands; i++)
        if (l->values[node->operands[i]].level == LEVEL_DEFERRED &&
            l->readers[node->operands[i]] == node->id)
            view_of(l, node->operands[i]);
}

static void lower_node(lowering *l, const sf_node *node)
{
    if (passes_on(node))
        lower_barrier(l, node);
    if (sf_is(node, SF_OP_CONSTANT) || sf_is_view_op(node) || passes_on(node))
        return; /* its place is determined when it is used */
    if (cluster_pointwise(l, node) || cluster_reduce(l, node))
        return;
    if (sf_is(node, SF_OP_DOT_GENERAL) && is_multiplied(l, node))
        lower_dot(l, node);
    else if (sf_is(node, SF_OP_CONVOLUTION) && is_multiplied(l, node))
        lower_conv(l, node);
    else if (sf_is(node, SF_OP_WHILE) || sf_is(node, SF_OP_CASE))
        lower_control(l, node);
    else if (sf_is_collective(node) || sf_is_message(node))
        lower_exchange(l, node);
    else
        lower_call(l, node);
}

static bool is_unplaced(const lowering *l, sf_value value)
{
    return !l->values[value].has_view && l->values[value].cluster == NO_CLUSTER;
}

/* Those who look for the place of a value go back, one call for each, through values without one:
 * the last of a long chain gets a place. */
static void end_chains(lowering *l, const sf_node *node)
{
    for (uint32_t r = 0; r < node->nresults; r++) {
        uint32_t longest = 0;
        uint32_t first = passes_on(node) ? r : 0, end = passes_on(node) ? r + 1 : node->noperands;
        if (!is_unplaced(l, node->result + r))
            continue;
        for (uint32_t o = first; o < end; o++) {
            sf_value operand = value_of(l, node->operands[o]);
            if (is_unplaced(l, operand) && l->values[operand].unplaced > longest)
                longest = l->values[operand].unplaced;
        }
        l->values[node->result + r].unplaced = longest + 1;
        if (longest + 1 >= LONGEST_UNPLACED)
            view_of(l, node->result + r);
    }
}

/* Equal nodes */

/* A node with operands as they were lowered. */
typedef struct sought {
    const lowering *l;
    const sf_node *node;
} sought;

static bool is_sought_node(const void *item, const void *key)
{
    const sf_node *a = item;
    const sought *s = key;
    const sf_node *b = s->node;
    if (a->def != b->def || a->noperands != b->noperands)
        return false;
    for (uint32_t i = 0; i < a->noperands; i++)
        if (value_of(s->l, a->operands[i]) != value_of(s->l, b->operands[i]))
            return false;
    return a->def->nattrs == 0 ||
           memcmp(a->attrs, b->attrs, (size_t)a->def->nattrs * sizeof *a->attrs) == 0;
}

/* Finds the node that computes the same from the same values, if there was one. Types follow from op,
 * operands and attributes, except for ops whose result is declared: those are compared. */
static const sf_node *find_equal(lowering *l, sf_interner *seen, const sf_node *node)
{
    if (node->nregions || node->nresults != 1 || passes_on(node) ||
        sf_node_has_effect(l->graph, node))
        return node;
    const sf_type *type = sf_type_of(l->graph, node->result);
    uint64_t hash = sf_hash_mix((uint64_t)node->def->id, (uint64_t)(uintptr_t)type);
    for (uint32_t i = 0; i < node->noperands; i++)
        hash = sf_hash_mix(hash, value_of(l, node->operands[i]));
    for (int i = 0; i < node->def->nattrs; i++)
        hash = sf_hash_mix(hash, node->attrs[i] ? node->attrs[i]->hash : 0);
    sf_intern_slot *slot =
        sf_intern_find(seen, &l->scratch, hash, is_sought_node, &(sought){l, node});
    if (!slot->item)
        slot->item = node;
    const sf_node *first = slot->item;
    return sf_type_of(l->graph, first->result) == type ? first : node;
}

/* Blocks */

static void note_one_reader(lowering *l, sf_value value, uint32_t reader)
{
    uint32_t *known = &l->readers[value];
    *known = *known == SF_NONE || *known == reader ? reader : SEVERAL;
}

static void find_readers(lowering *l, const sf_block *block)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = l->graph->nodes[block->nodes[i]];
        for (uint32_t o = 0; o < node->noperands; o++)
            note_one_reader(l, node->operands[o], node->id);
        for (uint32_t r = 0; r < node->nregions; r++)
            find_readers(l, node->regions[r]);
    }
    for (uint32_t i = 0; i < block->nresults; i++)
        note_one_reader(l, block->results[i], SEVERAL);
}

static void set_program_arguments(lowering *l)
{
    const sf_block *top = l->graph->top;
    sf_program *p = l->program;
    p->narguments = top->narguments;
    p->next = SF_ARRAY(&p->arena, top->narguments, uint32_t);
    p->argument_types = SF_ARRAY(&p->arena, top->narguments, const sf_type *);
    for (uint32_t i = 0; i < top->narguments; i++) {
        const sf_type *type = sf_type_of(l->graph, top->arguments[i]);
        uint32_t buffer = add_buffer(l, sf_type_bytes(type), ALWAYS, top->arguments[i]);
        sf_view view = sf_view_whole(buffer, type);
        p->buffers[buffer].home = SF_HOME_ARGUMENT;
        p->buffers[buffer].argument = i;
        p->next[i] = l->graph->arguments[i].next;
        p->argument_types[i] = type;
        set_view(l, top->arguments[i], &view);
    }
}

static void set_block_results(lowering *l, const sf_block *block)
{
    sf_program *p = l->program;
    p->nresults = block->nresults;
    p->results = SF_ARRAY(&p->arena, block->nresults, sf_view);
    p->result_types = SF_ARRAY(&p->arena, block->nresults, const sf_type *);
    for (uint32_t i = 0; i < block->nresults; i++) {
        p->results[i] = contiguous(l, block->results[i], sf_maker(l->graph, block->results[i]));
        p->result_types[i] = sf_type_of(l->graph, block->results[i]);
    }
}

/* Without places, the arena is as large as what lives at a time. */
static void settle_block(sf_program *program, bool places)
{
    sf_arena scratch = {0};
    uint32_t at;
    sync_insts(program);
    find_lives(program);
    if (places)
        place_buffers(program);
    else
        program->arena_bytes[SF_SPACE_DEVICE] = sf_live_bytes(program, &scratch, NULL, &at);
    sf_arena_free(&scratch);
}

void lower_block(lowering *l, const sf_block *block)
{
    sf_interner seen = {0};
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = l->graph->nodes[block->nodes[i]];
        const sf_node *first = find_equal(l, &seen, node);
        if (first != node) {
            l->values[node->result].same = value_of(l, first->result);
            continue;
        }
        lower_node(l, node);
        end_chains(l, node);
    }
    set_block_results(l, block);
    fuse_clusters(l);
    order_insts(l);
    update_in_place(l);
    reuse_operands(l);
    fuse_epilogues(l);
    reuse_in_loops(l);
    bring_together(l);
    settle_block(l->program, !l->unplaced);
}

/* Bodies, and the buffer that is their arena. */
static void settle(sf_program *program, bool places);

static void settle_bodies(sf_program *program, const sf_inst *inst, bool places)
{
    sf_view *space = &inst->out[inst->nout - 1];
    int64_t bytes = 0;
    for (uint32_t b = 0; b < inst->nest->nbodies; b++) {
        sf_program *body = inst->nest->bodies[b];
        settle(body, places);
        if (body->arena_bytes[SF_SPACE_DEVICE] > bytes)
            bytes = body->arena_bytes[SF_SPACE_DEVICE];
    }
    space->dims[0] = program->buffers[space->buffer].bytes = bytes;
}

static void settle(sf_program *program, bool places)
{
    for (size_t i = 0; i < program->ninsts; i++)
        if (sf_body_count(&program->insts[i]) > 0)
            settle_bodies(program, &program->insts[i], places);
    settle_block(program, places);
}

void sf_program_settle(sf_program *program)
{
    settle(program, !program->is_unplaced);
}

void sf_program_settle_lives(sf_program *program)
{
    settle(program, false);
}

/* The trace */

static uint32_t inst_of(const lowering *l, const sf_node *node)
{
    const lowered *low = &l->values[value_of(l, node->result)];
    if (low->cluster != NO_CLUSTER)
        return l->now[l->clusters[low->cluster]->inst];
    bool stands = low->has_view && !sf_is_view_op(node) && !passes_on(node);
    uint32_t made = stands ? l->made[low->view->buffer] : ALWAYS;
    return made == ALWAYS ? SF_NONE : l->now[made];
}

static uint32_t buffer_of(const lowering *l, sf_value value)
{
    const lowered *low = &l->values[value_of(l, value)];
    if (!low->has_view)
        return SF_NONE;
    uint32_t at = l->renamed[low->view->buffer];
    const sf_buffer *buffer = &l->program->buffers[at];
    return buffer->home == SF_HOME_ARENA && buffer->first == SF_NONE ? SF_NONE : at;
}

static void fill_trace(const lowering *l, sf_arena *arena, sf_trace *trace)
{
    const sf_graph *graph = l->graph;
    trace->insts = SF_ARRAY(arena, graph->nnodes, uint32_t);
    trace->buffers = SF_ARRAY(arena, graph->nvalues, uint32_t);
    trace->in_order = SF_ARRAY(arena, graph->nvalues, bool);
    for (size_t v = 0; v < graph->nvalues; v++)
        trace->buffers[v] = SF_NONE;
    for (size_t i = 0; i < graph->nnodes; i++)
        trace->insts[i] = SF_NONE;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        trace->buffers[graph->top->arguments[i]] = i;
        trace->in_order[graph->top->arguments[i]] = true;
    }
    for (uint32_t i = 0; i < graph->top->nnodes; i++) {
        const sf_node *node = graph->nodes[graph->top->nodes[i]];
        for (uint32_t r = 0; r < node->nresults; r++) {
            const lowered *low = &l->values[value_of(l, node->result + r)];
            trace->buffers[node->result + r] = buffer_of(l, node->result + r);
            trace->in_order[node->result + r] =
                low->has_view ? sf_view_is_contiguous(low->view) : !sf_is_view_op(node);
        }
        if (node->nresults > 0)
            trace->insts[node->id] = inst_of(l, node);
    }
}

sf_program *lower_graph(const sf_graph *graph, const sf_lower_options *options, sf_trace *trace)
{
    sf_program *program = sf_alloc(sizeof *program);
    program->pool = sf_pool_derive(graph->pool);
    program->target = options->target;
    program->rank = options->rank;
    program->is_unplaced = options->unplaced;
    for (int a = 0; options->mesh && a < options->mesh->naxes; a++)
        program->mesh.axes[program->mesh.naxes++] =
            (sf_axis){sf_pool_string(program->pool, sf_str_of(options->mesh->axes[a].name)),
                      options->mesh->axes[a].size};
    lowering l = {.graph = graph,
                  .target = options->target,
                  .program = program,
                  .unplaced = options->unplaced,
                  .rounds = options->rounds || options->target->rounds};
    l.values = SF_ARRAY(&l.scratch, graph->nvalues, lowered);
    l.marks = SF_ARRAY(&l.scratch, graph->nvalues, uint32_t);
    l.readers = SF_ARRAY(&l.scratch, graph->nvalues, uint32_t);
    for (size_t i = 0; i < graph->nvalues; i++) {
        l.readers[i] = SF_NONE;
        l.values[i].same = (sf_value)i;
        l.values[i].cluster = NO_CLUSTER;
    }
    find_readers(&l, graph->top);
    set_program_arguments(&l);
    lower_block(&l, graph->top);
    if (options->trace_arena)
        fill_trace(&l, options->trace_arena, trace);
    sf_arena_free(&l.scratch);
    return program;
}
