#include "prog/lower.h"

#include <string.h>

#include "base/hash.h"
#include "base/intern.h"
#include "base/mem.h"
#include "op/slots.h"

const char *sf_inst_kind_name(sf_inst_kind kind)
{
    static const char *const names[] = {"loop", "dot", "conv", "op", "comm", "while", "case"};
    return names[kind];
}

sf_value value_of(const lowering *l, sf_value value)
{
    return l->values[value].same;
}

const sf_node *maker_of(const lowering *l, sf_value value)
{
    return l->values[value].is_given ? NULL : sf_maker(l->graph, value);
}

uint32_t add_buffer(lowering *l, int64_t bytes, uint32_t inst)
{
    sf_program *p = l->program;
    size_t count = p->nbuffers;
    sf_buffer buffer = {.home = SF_HOME_ARENA, .bytes = bytes};
    SF_PUSH(&p->arena, p->buffers, p->nbuffers, p->buffer_capacity, buffer);
    SF_PUSH(&l->scratch, l->made, count, l->made_capacity, inst);
    return (uint32_t)p->nbuffers - 1;
}

uint32_t add_inst(lowering *l, sf_inst_kind kind, const sf_node *node)
{
    sf_program *p = l->program;
    sf_inst inst = {.kind = kind, .node = node};
    SF_PUSH(&p->arena, p->insts, p->ninsts, p->inst_capacity, inst);
    return (uint32_t)p->ninsts - 1;
}

sf_op op_of(lowering *l, const sf_node *node)
{
    const sf_type **types =
        SF_ARRAY(&l->scratch, node->noperands + node->nresults, const sf_type *);
    return sf_op_of(l->graph, node, types);
}

/* Barriers and annotations pass their operands on. */
static bool passes_on(const sf_node *node)
{
    return sf_is(node, SF_OP_OPTIMIZATION_BARRIER) ||
           (sf_is(node, SF_OP_CUSTOM_CALL) && strcmp(node->attrs[0]->text, "Sharding") == 0);
}

static sf_view constant_view(lowering *l, const sf_node *node)
{
    const sf_dense *dense = &node->attrs[SF_CONSTANT_VALUE]->dense;
    int64_t width = sf_dtype_get(dense->type->dtype)->bytes;
    uint32_t buffer = add_buffer(l, dense->splat ? width : sf_type_bytes(dense->type), ALWAYS);
    l->program->buffers[buffer].home = SF_HOME_CONSTANT;
    l->program->buffers[buffer].constant = dense;
    sf_view view = sf_view_whole(buffer, dense->type);
    for (int i = 0; dense->splat && i < view.rank; i++)
        view.strides[i] = 0;
    return view;
}

/* The loop that copies a view into a buffer of its own. */
sf_view copy_of(lowering *l, sf_view view, const sf_node *node)
{
    sf_program *p = l->program;
    uint32_t inst = add_inst(l, SF_INST_LOOP, node);
    const sf_type *type = sf_type_get(l->graph->pool, view.dtype, view.rank, view.dims);
    sf_view copy = sf_view_whole(add_buffer(l, sf_type_bytes(type), inst), type);
    sf_loop *loop = SF_NEW(&p->arena, sf_loop);
    sf_view from = sf_view_squeeze(&view), to = sf_view_squeeze(&copy);
    loop->rank = from.rank ? from.rank : 1;
    loop->dims[0] = 1;
    loop->accesses = SF_ARRAY(&p->arena, 2, sf_access);
    loop->naccesses = 2;
    loop->accesses[0].dtype = loop->accesses[1].dtype = view.dtype;
    for (int i = 0; i < from.rank; i++) {
        loop->dims[i] = from.dims[i];
        loop->accesses[0].strides[i] = from.strides[i];
        loop->accesses[1].strides[i] = to.strides[i];
    }
    sf_vclass class = sf_vclass_of(view.dtype);
    loop->steps = SF_ARRAY(&p->arena, 2, sf_loop_step);
    loop->steps[0] = (sf_loop_step){.kind = SF_STEP_LOAD, .class = class, .dtype = view.dtype};
    loop->steps[1] = (sf_loop_step){.kind = SF_STEP_STORE, .class = class, .dtype = view.dtype};
    loop->steps[1].access = 1;
    loop->nsteps = 2;
    loop->nregisters = 1;
    loop->is_wide = SF_ARRAY(&p->arena, 1, bool);
    loop->is_wide[0] = class == SF_VF64 || class == SF_VI64;
    count_domain(loop, false);
    p->insts[inst].loop = loop;
    p->insts[inst].in = sf_arena_copy(&p->arena, &view, sizeof view);
    p->insts[inst].out = sf_arena_copy(&p->arena, &copy, sizeof copy);
    p->insts[inst].nin = p->insts[inst].nout = 1;
    return copy;
}

/* A value of a loop that somebody else needs is stored by the loop. */
static sf_view store_of(lowering *l, sf_value value)
{
    lowered *low = &l->values[value];
    cluster *c = l->clusters[low->cluster];
    const sf_type *type = sf_type_of(l->graph, value);
    SF_PUSH(&l->scratch, c->outputs, c->noutputs, c->output_capacity, value);
    return sf_view_whole(add_buffer(l, sf_type_bytes(type), c->inst), type);
}

sf_view view_of(lowering *l, sf_value value)
{
    value = value_of(l, value);
    lowered *low = &l->values[value];
    if (low->has_view)
        return low->view;
    const sf_node *node = sf_maker(l->graph, value);
    SF_ASSERT(node);
    sf_view view;
    if (low->level == LEVEL_DEFERRED)
        cluster_now(l, value);
    if (low->cluster != NO_CLUSTER) {
        view = store_of(l, value);
    } else if (sf_is(node, SF_OP_CONSTANT)) {
        view = constant_view(l, node);
    } else if (passes_on(node)) {
        view = view_of(l, node->operands[value - node->result]);
    } else {
        SF_ASSERT(sf_is_view_op(node));
        sf_view operand = view_of(l, node->operands[0]);
        sf_op op = op_of(l, node);
        if (!sf_view_of_op(&op, &operand, &view)) {
            operand = copy_of(l, operand, node);
            bool done = sf_view_of_op(&op, &operand, &view);
            SF_ASSERT(done);
        }
    }
    low = &l->values[value];
    low->view = view;
    low->has_view = true;
    return view;
}

bool peek_view(lowering *l, sf_value value, sf_view *out)
{
    value = value_of(l, value);
    const lowered *low = &l->values[value];
    if (low->has_view) {
        *out = low->view;
        return true;
    }
    const sf_node *node = sf_maker(l->graph, value);
    if (passes_on(node))
        return peek_view(l, node->operands[value - node->result], out);
    if (low->cluster != NO_CLUSTER || low->level == LEVEL_DEFERRED || !sf_is_view_op(node)) {
        *out = sf_view_whole(SF_NONE, sf_type_of(l->graph, value));
        return true;
    }
    sf_view operand;
    if (!peek_view(l, node->operands[0], &operand))
        return false;
    sf_op op = op_of(l, node);
    return sf_view_of_op(&op, &operand, out);
}

uint32_t time_of(lowering *l, sf_value value)
{
    value = value_of(l, value);
    const lowered *low = &l->values[value];
    const sf_node *node = sf_maker(l->graph, value);
    sf_view view;
    if (low->has_view)
        return l->made[low->view.buffer];
    if (low->level == LEVEL_DEFERRED)
        return NEEDS_COPY;
    if (low->cluster != NO_CLUSTER)
        return l->clusters[low->cluster]->inst;
    if (sf_is(node, SF_OP_CONSTANT))
        return ALWAYS;
    if (passes_on(node))
        return time_of(l, node->operands[value - node->result]);
    if (!peek_view(l, value, &view))
        return NEEDS_COPY;
    return time_of(l, node->operands[0]);
}

sf_view contiguous(lowering *l, sf_value value, const sf_node *node)
{
    sf_view view = view_of(l, value);
    return sf_view_is_contiguous(&view) ? view : copy_of(l, view, node);
}

void set_results(lowering *l, const sf_node *node, uint32_t inst)
{
    sf_program *p = l->program;
    sf_view *out = SF_ARRAY(&p->arena, node->nresults, sf_view);
    for (uint32_t i = 0; i < node->nresults; i++) {
        const sf_type *type = sf_type_of(l->graph, node->result + i);
        out[i] = sf_view_whole(add_buffer(l, sf_type_bytes(type), inst), type);
        l->values[node->result + i].view = out[i];
        l->values[node->result + i].has_view = true;
    }
    p->insts[inst].out = out;
    p->insts[inst].nout = node->nresults;
}

static void lower_op(lowering *l, const sf_node *node)
{
    sf_program *p = l->program;
    sf_value *captured;
    uint32_t ncaptured = find_captured(l, node, &captured), nin = node->noperands + ncaptured;
    sf_view *in = SF_ARRAY(&p->arena, nin, sf_view);
    for (uint32_t i = 0; i < nin; i++) {
        sf_value value = i < node->noperands ? node->operands[i] : captured[i - node->noperands];
        in[i] = contiguous(l, value, node);
    }
    uint32_t inst = add_inst(l, sf_is_collective(node) ? SF_INST_COMM : SF_INST_OP, node);
    p->insts[inst].in = in;
    p->insts[inst].nin = nin;
    p->insts[inst].captured = captured;
    p->insts[inst].ncaptured = ncaptured;
    set_results(l, node, inst);
}

static void lower_conv(lowering *l, const sf_node *node)
{
    sf_program *p = l->program;
    sf_view *in = SF_ARRAY(&p->arena, 2, sf_view);
    for (int i = 0; i < 2; i++)
        in[i] = view_of(l, node->operands[i]);
    uint32_t inst = add_inst(l, SF_INST_CONV, node);
    p->insts[inst].in = in;
    p->insts[inst].nin = 2;
    set_results(l, node, inst);
}

/* What matrix libraries multiply: floats of one type, with a result of that type or of float. */
static bool dot_is_real(const lowering *l, const sf_node *node)
{
    sf_dtype a = sf_type_of(l->graph, node->operands[0])->dtype;
    sf_dtype b = sf_type_of(l->graph, node->operands[1])->dtype;
    sf_dtype c = sf_type_of(l->graph, node->result)->dtype;
    bool is_narrow = a == SF_BF16 || a == SF_F16;
    return a == b && (a == SF_F32 || a == SF_F64 || is_narrow) &&
           (c == a || (c == SF_F32 && is_narrow));
}

static void lower_node(lowering *l, const sf_node *node)
{
    if (sf_is(node, SF_OP_CONSTANT) || sf_is_view_op(node) || passes_on(node))
        return; /* where it stands is found out when it is used */
    if (cluster_pointwise(l, node) || cluster_reduce(l, node))
        return;
    if (sf_is(node, SF_OP_DOT_GENERAL) && dot_is_real(l, node))
        lower_dot(l, node);
    else if (sf_is(node, SF_OP_CONVOLUTION) && dot_is_real(l, node))
        lower_conv(l, node);
    else if (sf_is(node, SF_OP_WHILE) || sf_is(node, SF_OP_CASE))
        lower_control(l, node);
    else
        lower_op(l, node);
}

static bool same_node(const void *item, const void *key)
{
    const sf_node *a = item, *b = key;
    return a->def == b->def && a->noperands == b->noperands &&
           memcmp(a->operands, b->operands, a->noperands * sizeof *a->operands) == 0 &&
           (a->def->nattrs == 0 ||
            memcmp(a->attrs, b->attrs, (size_t)a->def->nattrs * sizeof(void *)) == 0);
}

/* Finds the node that computes the same from the same values, if there was one. Types follow from op,
 * operands and attributes, except for ops whose result is declared: those are compared. */
static const sf_node *find_equal(lowering *l, sf_interner *seen, const sf_node *node)
{
    if (node->nregions || node->nresults != 1 || sf_node_has_effect(l->graph, node) ||
        passes_on(node))
        return node;
    sf_node *key = sf_arena_copy(&l->scratch, node, sizeof *node);
    key->operands = SF_ARRAY(&l->scratch, node->noperands, sf_value);
    const sf_type *type = sf_type_of(l->graph, node->result);
    uint64_t hash = sf_hash_mix((uint64_t)node->def->id, (uint64_t)type->dtype);
    for (int i = 0; i < type->rank; i++)
        hash = sf_hash_mix(hash, (uint64_t)type->dims[i]);
    for (uint32_t i = 0; i < node->noperands; i++) {
        key->operands[i] = value_of(l, node->operands[i]);
        hash = sf_hash_mix(hash, key->operands[i]);
    }
    for (int i = 0; i < node->def->nattrs; i++)
        hash = sf_hash_mix(hash, node->attrs[i] ? node->attrs[i]->hash : 0);
    sf_intern_slot *slot = sf_intern_find(seen, &l->scratch, hash, same_node, key);
    if (!slot->item)
        slot->item = key;
    const sf_node *first = slot->item;
    return sf_type_of(l->graph, first->result) == type ? first : node;
}

static void note_reader(lowering *l, sf_value value, uint32_t reader)
{
    uint32_t *known = &l->readers[value];
    *known = *known == SF_NONE || *known == reader ? reader : SEVERAL;
}

static void find_readers(lowering *l, const sf_block *block)
{
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = l->graph->nodes[block->nodes[i]];
        for (uint32_t o = 0; o < node->noperands; o++)
            note_reader(l, node->operands[o], node->id);
        for (uint32_t r = 0; r < node->nregions; r++)
            find_readers(l, node->regions[r]);
    }
    for (uint32_t i = 0; i < block->nresults; i++)
        note_reader(l, block->results[i], SEVERAL);
}

static void set_arguments(lowering *l)
{
    const sf_block *top = l->graph->top;
    sf_program *p = l->program;
    p->narguments = top->narguments;
    p->next = SF_ARRAY(&p->arena, top->narguments, uint32_t);
    for (uint32_t i = 0; i < top->narguments; i++) {
        const sf_type *type = sf_type_of(l->graph, top->arguments[i]);
        uint32_t buffer = add_buffer(l, sf_type_bytes(type), ALWAYS);
        p->buffers[buffer].home = SF_HOME_ARGUMENT;
        p->buffers[buffer].argument = i;
        p->next[i] = l->graph->arguments[i].next;
        l->values[top->arguments[i]].view = sf_view_whole(buffer, type);
        l->values[top->arguments[i]].has_view = true;
        p->state_bytes += sf_type_bytes(type);
    }
}

static void set_results_of(lowering *l, const sf_block *block)
{
    sf_program *p = l->program;
    p->nresults = block->nresults;
    p->results = SF_ARRAY(&p->arena, block->nresults, sf_view);
    for (uint32_t i = 0; i < block->nresults; i++)
        p->results[i] = contiguous(l, block->results[i], sf_maker(l->graph, block->results[i]));
}

void lower_block(lowering *l, const sf_block *block)
{
    sf_interner seen = {0};
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = l->graph->nodes[block->nodes[i]];
        const sf_node *first = find_equal(l, &seen, node);
        if (first->id != node->id)
            l->values[node->result].same = first->result;
        else
            lower_node(l, node);
    }
    set_results_of(l, block);
    for (uint32_t i = 0; i < l->nclusters; i++)
        fuse_cluster(l, i);
    order_insts(l);
    update_in_place(l);
    reuse_operands(l);
    fuse_epilogues(l->program);
    sf_program_place(l->program);
    sf_arena_free(&l->scratch);
}

sf_program *sf_lower(const sf_graph *graph)
{
    sf_program *program = sf_alloc(sizeof *program);
    program->graph = graph;
    lowering l = {.graph = graph, .program = program};
    l.values = sf_alloc(graph->nvalues * sizeof *l.values);
    l.marks = sf_alloc(graph->nvalues * sizeof *l.marks);
    l.readers = sf_alloc(graph->nvalues * sizeof *l.readers);
    for (size_t i = 0; i < graph->nvalues; i++) {
        l.readers[i] = SF_NONE;
        l.values[i].same = (sf_value)i;
        l.values[i].cluster = NO_CLUSTER;
    }
    find_readers(&l, graph->top);
    set_arguments(&l);
    lower_block(&l, graph->top);
    sf_free(l.readers);
    sf_free(l.marks);
    sf_free(l.values);
    return program;
}

void sf_program_free(sf_program *program)
{
    if (!program)
        return;
    for (size_t i = 0; i < program->ninsts; i++)
        for (uint32_t j = 0; j < program->insts[i].nbodies; j++)
            sf_program_free(program->insts[i].bodies[j]);
    sf_arena_free(&program->arena);
    sf_free(program);
}
