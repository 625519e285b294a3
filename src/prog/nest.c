#include <string.h>

#include "base/mem.h"
#include "prog/lower.h"

/* The values that are inside carry the node's mark; so do captured ones once they are found. */
typedef struct capture {
    lowering *l;
    uint32_t mark;
    sf_value *list;
    size_t count, capacity;
} capture;

static void capture_value(capture *c, sf_value value)
{
    if (c->l->marks[value] == c->mark)
        return;
    c->l->marks[value] = c->mark;
    SF_PUSH(&c->l->program->arena, c->list, c->count, c->capacity, value);
}

static void capture_block(capture *c, const sf_block *block)
{
    for (uint32_t i = 0; i < block->narguments; i++)
        c->l->marks[block->arguments[i]] = c->mark;
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = c->l->graph->nodes[block->nodes[i]];
        for (uint32_t j = 0; j < node->nresults; j++)
            c->l->marks[node->result + j] = c->mark;
        for (uint32_t j = 0; j < node->noperands; j++)
            capture_value(c, node->operands[j]);
        for (uint32_t j = 0; j < node->nregions; j++)
            capture_block(c, node->regions[j]);
    }
    for (uint32_t i = 0; i < block->nresults; i++)
        capture_value(c, block->results[i]);
}

uint32_t find_captured(lowering *l, const sf_node *node, sf_value **list)
{
    capture c = {.l = l, .mark = node->id + 1};
    for (uint32_t i = 0; i < node->nregions; i++)
        capture_block(&c, node->regions[i]);
    *list = c.list;
    return (uint32_t)c.count;
}

const sf_view *sf_body_argument(const sf_inst *inst, uint32_t index)
{
    uint32_t taken = inst->kind == SF_INST_WHILE ? inst->node->noperands : 0;
    if (index < taken)
        return inst->is_fixed[index] ? &inst->in[index] : &inst->out[index];
    if (index < taken + inst->ncaptured)
        return &inst->in[inst->node->noperands + index - taken];
    return &inst->out[index - inst->ncaptured];
}

/* A region being lowered. */
typedef struct body {
    lowering l;
    const sf_node *node;
    const sf_block *block;
} body;

static void add_argument(body *b, int64_t bytes, uint32_t next)
{
    sf_program *p = b->l.program;
    uint32_t buffer = add_buffer(&b->l, bytes, ALWAYS);
    p->buffers[buffer].home = SF_HOME_ARGUMENT;
    p->buffers[buffer].argument = buffer;
    p->next[p->narguments++] = next;
}

static void give_view(body *b, sf_value value, sf_view view)
{
    lowered *low = &b->l.values[value];
    low->view = view;
    low->has_view = true;
    low->is_given = true;
}

/* The block's arguments become its results when it is the body of a loop. Otherwise its results go to
 * arguments of their own. */
static void set_body_arguments(body *b, const lowering *outer, const sf_inst *inst)
{
    const sf_graph *graph = b->l.graph;
    sf_program *p = b->l.program;
    bool repeats = sf_is(b->node, SF_OP_WHILE) && b->block == b->node->regions[1];
    uint32_t taken = b->block->narguments;
    p->next = SF_ARRAY(&p->arena, taken + inst->ncaptured + b->block->nresults, uint32_t);
    for (uint32_t i = 0; i < taken; i++) {
        const sf_type *type = sf_type_of(graph, b->block->arguments[i]);
        add_argument(b, sf_type_bytes(type), repeats ? i : SF_NONE);
        give_view(b, b->block->arguments[i], sf_view_whole(i, type));
    }
    for (uint32_t i = 0; i < inst->ncaptured; i++) {
        sf_view view = inst->in[b->node->noperands + i];
        int64_t bytes = outer->program->buffers[view.buffer].bytes;
        view.buffer = taken + i;
        add_argument(b, bytes, SF_NONE);
        give_view(b, inst->captured[i], view);
    }
    for (uint32_t i = 0; !repeats && i < b->block->nresults; i++)
        add_argument(b, sf_type_bytes(sf_type_of(graph, b->block->results[i])), i);
}

/* Values of enclosing blocks are seen through views of this program while it is made, and are put back as
 * they were. A constant is made again instead: loops take it as a number. */
static sf_program *lower_body(lowering *outer, const sf_inst *inst, uint32_t index,
                              uint32_t nvalues, const sf_value *used)
{
    sf_program *program = sf_alloc(sizeof *program);
    program->graph = outer->graph;
    body b = {.node = inst->node, .block = inst->node->regions[index]};
    b.l = (lowering){.graph = outer->graph, .program = program};
    b.l.values = outer->values;
    b.l.marks = outer->marks;
    b.l.readers = outer->readers;
    lowered *before = sf_alloc(nvalues * sizeof *before);
    for (uint32_t i = 0; i < nvalues; i++) {
        before[i] = outer->values[used[i]];
        outer->values[used[i]] = (lowered){.same = used[i], .cluster = NO_CLUSTER};
    }
    set_body_arguments(&b, outer, inst);
    lower_block(&b.l, b.block);
    for (uint32_t i = nvalues; i-- > 0;) /* of what stands there twice, the first is the original */
        outer->values[used[i]] = before[i];
    sf_free(before);
    return program;
}

static bool is_constant(const lowering *l, sf_value value)
{
    const sf_node *node = sf_maker(l->graph, value);
    return node && sf_is(node, SF_OP_CONSTANT);
}

static void set_inputs(lowering *l, const sf_node *node, sf_inst *inst, uint32_t nused,
                       const sf_value *used)
{
    sf_arena *arena = &l->program->arena;
    inst->in = SF_ARRAY(arena, node->noperands + nused, sf_view);
    inst->captured = SF_ARRAY(arena, nused, sf_value);
    for (uint32_t i = 0; i < node->noperands; i++)
        inst->in[i] = contiguous(l, node->operands[i], node);
    for (uint32_t i = 0; i < nused; i++)
        if (!is_constant(l, used[i])) {
            inst->in[node->noperands + inst->ncaptured] = view_of(l, used[i]);
            inst->captured[inst->ncaptured++] = used[i];
        }
    inst->nin = node->noperands + inst->ncaptured;
}

static bool hands_on(const sf_node *node, uint32_t index)
{
    const sf_block *block = sf_is(node, SF_OP_WHILE) ? node->regions[1] : NULL;
    return block && block->results[index] == block->arguments[index];
}

/* The results, where the condition of a loop says its answer, and the arena of the bodies. */
static void set_outputs(lowering *l, const sf_node *node, sf_inst *inst, uint32_t index)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < inst->nbodies; i++)
        if (inst->bodies[i]->arena_bytes > bytes)
            bytes = inst->bodies[i]->arena_bytes;
    const sf_type *answer = sf_type_scalar(l->graph->pool, SF_PRED);
    const sf_type *space = sf_type_get(l->graph->pool, SF_U8, 1, &bytes);
    inst->out = SF_ARRAY(&l->program->arena, node->nresults + 2, sf_view);
    inst->is_fixed = SF_ARRAY(&l->program->arena, node->nresults, bool);
    for (uint32_t i = 0; i < node->nresults; i++) {
        const sf_type *type = sf_type_of(l->graph, node->result + i);
        bool fixed = hands_on(node, i);
        uint32_t buffer = add_buffer(l, fixed ? 0 : sf_type_bytes(type), index);
        inst->out[inst->nout++] = sf_view_whole(buffer, type);
        inst->is_fixed[i] = fixed;
        l->values[node->result + i].view = fixed ? inst->in[i] : inst->out[i];
        l->values[node->result + i].has_view = true;
    }
    if (inst->kind == SF_INST_WHILE)
        inst->out[inst->nout++] = sf_view_whole(add_buffer(l, 1, index), answer);
    inst->out[inst->nout++] = sf_view_whole(add_buffer(l, bytes, index), space);
}

void lower_control(lowering *l, const sf_node *node)
{
    sf_program *p = l->program;
    sf_inst inst = {.kind = sf_is(node, SF_OP_WHILE) ? SF_INST_WHILE : SF_INST_CASE, .node = node};
    sf_value *used;
    uint32_t nused = find_captured(l, node, &used);
    for (uint32_t i = 0; i < nused; i++)
        used[i] = value_of(l, used[i]);
    set_inputs(l, node, &inst, nused, used);
    inst.bodies = SF_ARRAY(&p->arena, node->nregions, sf_program *);
    for (uint32_t i = 0; i < node->nregions; i++)
        inst.bodies[inst.nbodies++] = lower_body(l, &inst, i, nused, used);
    uint32_t index = add_inst(l, inst.kind, node);
    set_outputs(l, node, &inst, index);
    p->insts[index] = inst;
}
