/* Where values are: in buffers, as views of them, or in no memory until a reader needs them
 * there. */
#include <string.h>

#include "op/slots.h"
#include "prog/lower/lowering.h"

sf_value value_of(const lowering *l, sf_value value)
{
    return l->values[value].same;
}

const sf_node *maker_of(const lowering *l, sf_value value)
{
    return l->values[value].is_given ? NULL : sf_maker(l->graph, value);
}

int squeezed(const sf_type *type, int64_t *dims)
{
    int rank = 0;
    for (int i = 0; i < type->rank; i++)
        if (type->dims[i] != 1)
            dims[rank++] = type->dims[i];
    return rank;
}

uint32_t add_buffer(lowering *l, int64_t bytes, uint32_t inst, sf_value value)
{
    sf_program *p = l->program;
    size_t count = p->nbuffers;
    sf_buffer buffer = {.home = SF_HOME_ARENA, .bytes = bytes, .value = value};
    SF_PUSH(&p->arena, p->buffers, p->nbuffers, p->buffer_capacity, buffer);
    SF_PUSH(&l->scratch, l->made, count, l->made_capacity, inst);
    return (uint32_t)p->nbuffers - 1;
}

uint32_t add_inst(lowering *l, sf_inst_kind kind, const sf_node *node)
{
    sf_program *p = l->program;
    sf_inst inst = {.kind = kind, .raises = SF_NONE, .origin = SF_NO_ORIGIN};
    if (node)
        inst.origin =
            (sf_origin){node->id, node->def->name, node->scope->path, node->phase, node->loc};
    SF_PUSH(&p->arena, p->insts, p->ninsts, p->inst_capacity, inst);
    return (uint32_t)p->ninsts - 1;
}

sf_op op_of(lowering *l, const sf_node *node)
{
    const sf_type **types =
        SF_ARRAY(&l->scratch, node->noperands + node->nresults, const sf_type *);
    sf_op op = sf_op_of(l->graph, node, types);
    op.pool = l->program->pool;
    return op;
}

bool passes_on(const sf_node *node)
{
    return sf_is(node, SF_OP_OPTIMIZATION_BARRIER) ||
           (sf_is(node, SF_OP_CUSTOM_CALL) &&
            strcmp(node->attrs[SF_CUSTOM_TARGET]->text, "Sharding") == 0);
}

void set_view(lowering *l, sf_value value, const sf_view *view)
{
    l->values[value].view = sf_arena_copy(&l->scratch, view, sizeof *view);
    l->values[value].has_view = true;
}

static sf_view constant_view(lowering *l, const sf_node *node)
{
    const sf_dense *dense = &node->attrs[SF_CONSTANT_VALUE]->dense;
    int64_t width = sf_dtype_get(dense->type->dtype)->bytes;
    uint32_t buffer =
        add_buffer(l, dense->splat ? width : sf_type_bytes(dense->type), ALWAYS, node->result);
    l->program->buffers[buffer].home = SF_HOME_CONSTANT;
    l->program->buffers[buffer].constant = dense;
    sf_view view = sf_view_whole(buffer, dense->type);
    for (int i = 0; dense->splat && i < view.rank; i++)
        view.strides[i] = 0;
    return view;
}

/* The loop that copies a view into a buffer of its own. */
sf_view copy_of(lowering *l, const sf_view *view, const sf_node *node)
{
    sf_program *p = l->program;
    uint32_t inst = add_inst(l, SF_INST_LOOP, node);
    const sf_type *type = sf_type_get(p->pool, view->dtype, view->rank, view->dims);
    sf_view copy = sf_view_whole(add_buffer(l, sf_type_bytes(type), inst, SF_NONE), type);
    sf_loop *loop = SF_NEW(&p->arena, sf_loop);
    sf_view raw = sf_view_raw(view), raw_copy = sf_view_raw(&copy);
    sf_view from = sf_view_squeeze(&raw), to = sf_view_squeeze(&raw_copy);
    loop->rank = from.rank ? from.rank : 1;
    loop->dims[0] = 1;
    loop->accesses = SF_ARRAY(&p->arena, 2, sf_access);
    loop->naccesses = 2;
    loop->accesses[0].dtype = loop->accesses[1].dtype = raw.dtype;
    for (int i = 0; i < from.rank; i++) {
        loop->dims[i] = from.dims[i];
        loop->accesses[0].strides[i] = from.strides[i];
        loop->accesses[1].strides[i] = to.strides[i];
    }
    sf_vclass class = sf_vclass_of(raw.dtype);
    loop->steps = SF_ARRAY(&p->arena, 2, sf_loop_step);
    loop->steps[0] = (sf_loop_step){.kind = SF_STEP_LOAD, .class = class, .dtype = raw.dtype};
    loop->steps[1] = (sf_loop_step){.kind = SF_STEP_STORE, .class = class, .dtype = raw.dtype};
    loop->steps[1].access = 1;
    loop->nsteps = 2;
    loop->nregisters = 1;
    loop->is_wide = SF_ARRAY(&p->arena, 1, bool);
    loop->is_wide[0] = class == SF_VF64 || class == SF_VI64;
    count_domain(loop, false);
    p->insts[inst].loop = loop;
    p->insts[inst].in = sf_arena_copy(&p->arena, &raw, sizeof raw);
    p->insts[inst].out = sf_arena_copy(&p->arena, &raw_copy, sizeof raw_copy);
    p->insts[inst].nin = p->insts[inst].nout = 1;
    return copy;
}

/* A value of a loop that somebody else needs is stored by the loop. */
static sf_view store_of(lowering *l, sf_value value)
{
    cluster *c = l->clusters[l->values[value].cluster];
    const sf_type *type = sf_type_of(l->graph, value);
    SF_PUSH(&l->scratch, c->outputs, c->noutputs, c->output_capacity, value);
    return sf_view_whole(add_buffer(l, sf_type_bytes(type), c->inst, value), type);
}

static sf_view view_of_op(lowering *l, const sf_node *node)
{
    sf_view view, copy;
    const sf_view *operand = view_of(l, node->operands[0]);
    sf_mark mark = sf_arena_mark(&l->scratch);
    sf_op op = op_of(l, node);
    bool done = sf_view_of_op(&op, operand, &view);
    sf_arena_reset(&l->scratch, mark);
    if (done)
        return view;
    copy = copy_of(l, operand, node);
    op = op_of(l, node);
    done = sf_view_of_op(&op, &copy, &view);
    SF_ASSERT(done);
    return view;
}

const sf_view *view_of(lowering *l, sf_value value)
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
        view = *view_of(l, node->operands[value - node->result]);
    } else {
        SF_ASSERT(sf_is_view_op(node));
        view = view_of_op(l, node);
    }
    set_view(l, value, &view);
    return l->values[value].view;
}

bool peek_view(lowering *l, sf_value value, sf_view *out)
{
    value = value_of(l, value);
    const lowered *low = &l->values[value];
    if (low->has_view) {
        *out = *low->view;
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
    sf_mark mark = sf_arena_mark(&l->scratch);
    sf_op op = op_of(l, node);
    bool can = sf_view_of_op(&op, &operand, out);
    sf_arena_reset(&l->scratch, mark);
    return can;
}

uint32_t time_of(lowering *l, sf_value value)
{
    value = value_of(l, value);
    const lowered *low = &l->values[value];
    const sf_node *node = sf_maker(l->graph, value);
    sf_view view;
    if (low->has_view)
        return l->made[low->view->buffer];
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
    const sf_view *view = view_of(l, value);
    return sf_view_is_contiguous(view) ? *view : copy_of(l, view, node);
}

void set_results(lowering *l, const sf_node *node, uint32_t inst)
{
    sf_program *p = l->program;
    sf_view *out = SF_ARRAY(&p->arena, node->nresults, sf_view);
    for (uint32_t i = 0; i < node->nresults; i++) {
        const sf_type *type = sf_type_of(l->graph, node->result + i);
        out[i] = sf_view_whole(add_buffer(l, sf_type_bytes(type), inst, node->result + i), type);
        set_view(l, node->result + i, &out[i]);
    }
    p->insts[inst].out = out;
    p->insts[inst].nout = node->nresults;
}
