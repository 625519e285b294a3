/* Loops that stay and branches: their regions become programs. */
#include "base/mem.h"
#include "op/flops.h"
#include "prog/lower/lowering.h"

/* The values inside carry the node's mark; so do captured ones once they are found. Operands of the
 * region count as captured, too: its arguments are no copies of them. */
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
        if (value_of(c->l, block->arguments[i]) == block->arguments[i])
            c->l->marks[block->arguments[i]] = c->mark;
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = c->l->graph->nodes[block->nodes[i]];
        for (uint32_t j = 0; j < node->nresults; j++)
            c->l->marks[node->result + j] = c->mark;
        for (uint32_t j = 0; j < node->noperands; j++)
            capture_value(c, value_of(c->l, node->operands[j]));
        for (uint32_t j = 0; j < node->nregions; j++)
            capture_block(c, node->regions[j]);
    }
    for (uint32_t i = 0; i < block->nresults; i++)
        capture_value(c, value_of(c->l, block->results[i]));
}

uint32_t find_captured(lowering *l, const sf_node *node, sf_value **list)
{
    capture c = {.l = l, .mark = node->id + 1};
    for (uint32_t i = 0; i < node->nregions; i++)
        capture_block(&c, node->regions[i]);
    *list = c.list;
    return (uint32_t)c.count;
}

/* A region being lowered. */
typedef struct body {
    lowering l;
    const sf_node *node;
    const sf_block *block;
} body;

/* The node's instruction while its bodies are made: the fields that they need. */
typedef struct outside {
    lowering *l;
    const sf_node *node;
    sf_inst inst;
    sf_value *captured;
    uint32_t nused;
    const sf_value *used; /* values that the regions use, including constants */
} outside;

static void add_argument(body *b, int64_t bytes, uint32_t next)
{
    sf_program *p = b->l.program;
    uint32_t buffer = add_buffer(&b->l, bytes, ALWAYS, SF_NONE);
    p->buffers[buffer].home = SF_HOME_ARGUMENT;
    p->buffers[buffer].argument = buffer;
    p->next[p->narguments++] = next;
}

static void give_view(body *b, sf_value value, const sf_view *view)
{
    set_view(&b->l, value, view);
    b->l.values[value].is_given = true;
}

static bool loop_hands_on(const sf_node *node, uint32_t index)
{
    const sf_block *block = sf_is(node, SF_OP_WHILE) ? node->regions[1] : NULL;
    return block && block->results[index] == block->arguments[index];
}

/* An operand that stays where it is, maybe in the middle of a buffer: the argument is that buffer, and is seen through the same
 * view. */
static void add_outer(body *b, const outside *o, uint32_t operand, uint32_t next, sf_value value)
{
    sf_view view = o->inst.in[operand];
    int64_t bytes = o->l->program->buffers[view.buffer].bytes;
    view.buffer = b->l.program->narguments;
    add_argument(b, bytes, next);
    give_view(b, value, &view);
}

/* The block's arguments become its results when it is the body of a loop. Otherwise its results go to
 * arguments of their own. */
static void set_body_arguments(body *b, const outside *o)
{
    const sf_graph *graph = b->l.graph;
    sf_program *p = b->l.program;
    const sf_nest *nest = o->inst.nest;
    bool repeats = sf_is(b->node, SF_OP_WHILE) && b->block == b->node->regions[1];
    uint32_t taken = sf_is(b->node, SF_OP_WHILE) ? nest->noperands : 0;
    p->next = SF_ARRAY(&p->arena, taken + nest->ncaptured + b->block->nresults, uint32_t);
    for (uint32_t i = 0; i < taken; i++) {
        const sf_type *type = sf_type_of(graph, b->block->arguments[i]);
        sf_view view = sf_view_whole(i, type);
        if (loop_hands_on(b->node, i)) {
            add_outer(b, o, i, repeats ? i : SF_NONE, b->block->arguments[i]);
            continue;
        }
        add_argument(b, sf_type_bytes(type), repeats ? i : SF_NONE);
        give_view(b, b->block->arguments[i], &view);
    }
    for (uint32_t i = 0; i < nest->ncaptured; i++)
        add_outer(b, o, nest->noperands + i, SF_NONE, o->captured[i]);
    for (uint32_t i = 0; !repeats && i < b->block->nresults; i++)
        add_argument(b, sf_type_bytes(sf_type_of(graph, b->block->results[i])), i);
}

/* Values of enclosing blocks are seen through views of this program while the body is made, and are
 * restored afterwards. A constant is made once more instead: loops take it as a number. */
static sf_program *lower_body(const outside *o, uint32_t index)
{
    lowering *outer = o->l;
    sf_program *program = sf_alloc(sizeof *program);
    program->pool = sf_pool_retain(outer->program->pool);
    program->target = outer->target;
    program->mesh = outer->program->mesh;
    program->rank = outer->program->rank;
    body b = {.node = o->node, .block = o->node->regions[index]};
    b.l = (lowering){.graph = outer->graph,
                     .target = outer->target,
                     .program = program,
                     .rounds = outer->rounds};
    b.l.values = outer->values;
    b.l.marks = outer->marks;
    b.l.readers = outer->readers;
    lowered *before = SF_ARRAY(&outer->scratch, o->nused, lowered);
    for (uint32_t i = 0; i < o->nused; i++) {
        before[i] = outer->values[o->used[i]];
        outer->values[o->used[i]] = (lowered){.same = o->used[i], .cluster = NO_CLUSTER};
    }
    set_body_arguments(&b, o);
    lower_block(&b.l, b.block);
    for (uint32_t i = o->nused; i-- > 0;) /* of duplicates, the first is the original */
        outer->values[o->used[i]] = before[i];
    sf_arena_free(&b.l.scratch);
    return program;
}

static bool is_constant_node(const lowering *l, sf_value value)
{
    const sf_node *node = sf_maker(l->graph, value);
    return node && sf_is(node, SF_OP_CONSTANT);
}

static void set_inputs(outside *o)
{
    lowering *l = o->l;
    const sf_node *node = o->node;
    sf_nest *nest = o->inst.nest;
    o->inst.in = SF_ARRAY(&l->program->arena, nest->noperands + o->nused, sf_view);
    o->captured = SF_ARRAY(&l->scratch, o->nused, sf_value);
    for (uint32_t i = 0; i < nest->noperands; i++)
        o->inst.in[i] = contiguous(l, node->operands[i], node);
    for (uint32_t i = 0; i < o->nused; i++)
        if (!is_constant_node(l, o->used[i])) {
            o->inst.in[nest->noperands + nest->ncaptured] = *view_of(l, o->used[i]);
            o->captured[nest->ncaptured++] = o->used[i];
        }
    o->inst.nin = nest->noperands + nest->ncaptured;
}

/* A view of a buffer of its own. */
static sf_view new_view(lowering *l, const sf_type *type, int64_t bytes, uint32_t inst,
                        sf_value value)
{
    return sf_view_whole(add_buffer(l, bytes, inst, value), type);
}

/* The results, where the condition of a loop says its answer, and the arena of the bodies. */
static void set_outputs(outside *o, uint32_t index)
{
    lowering *l = o->l;
    const sf_node *node = o->node;
    sf_inst *inst = &o->inst;
    sf_nest *nest = inst->nest;
    int64_t bytes = 0;
    for (uint32_t i = 0; i < nest->nbodies; i++)
        if (nest->bodies[i]->arena_bytes[SF_SPACE_DEVICE] > bytes)
            bytes = nest->bodies[i]->arena_bytes[SF_SPACE_DEVICE];
    const sf_type *answer = sf_type_scalar(l->program->pool, SF_PRED);
    const sf_type *space = sf_type_get(l->program->pool, SF_U8, 1, &bytes);
    inst->out = SF_ARRAY(&l->program->arena, node->nresults + 2, sf_view);
    nest->is_fixed = SF_ARRAY(&l->program->arena, node->nresults, bool);
    for (uint32_t i = 0; i < node->nresults; i++) {
        const sf_type *type = sf_type_of(l->graph, node->result + i);
        bool fixed = loop_hands_on(node, i);
        inst->out[inst->nout++] =
            new_view(l, type, fixed ? 0 : sf_type_bytes(type), index, node->result + i);
        nest->is_fixed[i] = fixed;
        set_view(l, node->result + i, fixed ? &inst->in[i] : &inst->out[i]);
    }
    if (inst->kind == SF_INST_WHILE)
        inst->out[inst->nout++] = new_view(l, answer, 1, index, SF_NONE);
    inst->out[inst->nout++] = new_view(l, space, bytes, index, SF_NONE);
}

/* An operand of a region is not copied: the region's argument is another name for it. */
static void name_given(lowering *l, const sf_node *node)
{
    for (uint32_t r = 0; r < node->nregions; r++)
        for (uint32_t i = sf_own_operands(node); i < node->noperands; i++)
            l->values[node->regions[r]->arguments[i - sf_first_entering(node)]].same =
                value_of(l, node->operands[i]);
}

/* Ranks that meet there, and checks of a program that tests itself, are not left out. */
static bool only_computes(const sf_program *p)
{
    for (size_t i = 0; i < p->ninsts; i++) {
        const sf_inst *inst = &p->insts[i];
        if (inst->kind == SF_INST_COMM || inst->nout == 0 || sf_body_count(inst) > 0)
            return false;
    }
    return true;
}

void lower_control(lowering *l, const sf_node *node)
{
    sf_program *p = l->program;
    sf_value *used;
    name_given(l, node);
    uint32_t nused = find_captured(l, node, &used);
    for (uint32_t i = 0; i < nused; i++)
        used[i] = value_of(l, used[i]);
    outside o = {.l = l, .node = node, .nused = nused, .used = used};
    sf_nest *nest = o.inst.nest = SF_NEW(&p->arena, sf_nest);
    o.inst.kind = sf_is(node, SF_OP_WHILE) ? SF_INST_WHILE : SF_INST_CASE;
    nest->noperands = sf_own_operands(node);
    nest->nresults = node->nresults;
    set_inputs(&o);
    nest->bodies = SF_ARRAY(&p->arena, node->nregions, sf_program *);
    nest->runs = SF_ARRAY(&p->arena, node->nregions, double);
    for (uint32_t i = 0; i < node->nregions; i++) {
        nest->runs[i] = sf_region_runs(node, i);
        nest->bodies[nest->nbodies++] = lower_body(&o, i);
    }
    bool counts = o.inst.kind == SF_INST_WHILE && only_computes(nest->bodies[0]);
    nest->trips = counts ? sf_certain_trips(node) : -1;
    uint32_t index = add_inst(l, o.inst.kind, node);
    o.inst.raises = SF_NONE;
    o.inst.origin = p->insts[index].origin;
    set_outputs(&o, index);
    p->insts[index] = o.inst;
}
