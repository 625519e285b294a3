#include <string.h>

#include "op/slots.h"
#include "op/util.h"
#include "prog/lower/lowering.h"

/* A loop while its steps are put together, in room that all loops share. Registers are numbered without end here;
 * assign_registers makes few of them. */
typedef struct builder {
    lowering *l;
    const cluster *c;
    uint32_t index; /* of the cluster */
    sf_loop_step *steps;
    sf_access *accesses;
    sf_view *in, *out;
    bool *is_wide; /* by register */
    size_t step_capacity, access_capacity, in_capacity, out_capacity, wide_capacity;
    size_t nsteps, naccesses, nin, nout, nregisters;
} builder;

/* A value can be held by two registers: one of its own level, and one that is expanded from its row or
 * loaded as a row. */
enum { OWN, OTHER };

/* Where the register of a value is noted, plus one; 0 when there is none yet. */
static uint16_t *noted_register(const builder *b, sf_value value, int which)
{
    lowered *low = &b->l->values[value];
    if (low->stamp != b->index + 1) {
        low->stamp = b->index + 1;
        low->registers[OWN] = low->registers[OTHER] = 0;
    }
    return &low->registers[which];
}

static uint16_t register_of(const builder *b, sf_value value)
{
    uint16_t number = *noted_register(b, value, OWN);
    SF_ASSERT(number > 0);
    return (uint16_t)(number - 1);
}

static uint16_t new_register(builder *b, sf_vclass class)
{
    bool wide = class == SF_VF64 || class == SF_VI64;
    SF_PUSH(&b->l->scratch, b->is_wide, b->nregisters, b->wide_capacity, wide);
    return (uint16_t)(b->nregisters - 1);
}

static sf_loop_step *add_loop_step(builder *b, sf_loop_step step)
{
    SF_PUSH(&b->l->scratch, b->steps, b->nsteps, b->step_capacity, step);
    return &b->steps[b->nsteps - 1];
}

/* Strides by dimension of the domain. A tensor of one element has stride 0 everywhere. */
static sf_access access_to(const builder *b, const sf_view *view, bool is_row)
{
    sf_access access = {.dtype = view->dtype, .is_row = is_row};
    sf_view tensor = sf_view_squeeze(view);
    for (int i = 0; i < tensor.rank; i++)
        access.strides[i] = tensor.strides[is_row ? i : b->c->order[i]];
    return access;
}

static uint32_t add_access(builder *b, sf_access access, const sf_view *view, bool writes)
{
    sf_arena *arena = &b->l->scratch;
    if (writes) {
        access.view = (uint32_t)b->nout;
        SF_PUSH(arena, b->out, b->nout, b->out_capacity, *view);
    } else {
        access.view = (uint32_t)b->nin;
        SF_PUSH(arena, b->in, b->nin, b->in_capacity, *view);
    }
    SF_PUSH(arena, b->accesses, b->naccesses, b->access_capacity, access);
    return (uint32_t)b->naccesses - 1;
}

static void set_constant(sf_loop_step *step, const sf_dense *dense)
{
    if (sf_is_float(dense->type->dtype))
        step->constant.real = sf_load_f64(dense->type->dtype, dense->data, 0);
    else
        step->constant.integer = sf_load_i64(dense->type->dtype, dense->data, 0);
}

static uint16_t load_constant(builder *b, const sf_dense *dense, bool is_row)
{
    sf_vclass class = sf_vclass_of(dense->type->dtype);
    sf_loop_step step = {.kind = SF_STEP_CONSTANT, .class = class, .is_row = is_row};
    set_constant(&step, dense);
    step.dst = new_register(b, class);
    add_loop_step(b, step);
    return step.dst;
}

static void add_op(builder *b, const sf_node *node, level at);

static uint16_t load_zero(builder *b, sf_dtype dtype, bool is_row)
{
    sf_loop_step step = {.kind = SF_STEP_CONSTANT, .class = sf_vclass_of(dtype), .is_row = is_row};
    step.dst = new_register(b, step.class);
    add_loop_step(b, step);
    return step.dst;
}

/* A load of the same elements under another name; NULL where there is none. */
static const sf_loop_step *find_load(const builder *b, const sf_view *view, const sf_access *access)
{
    for (size_t i = 0; b->l->target->few_passes && i < b->nsteps; i++) {
        const sf_loop_step *step = &b->steps[i];
        if (step->kind != SF_STEP_LOAD)
            continue;
        const sf_access *other = &b->accesses[step->access];
        if (!other->windows && other->is_row == access->is_row && other->dtype == access->dtype &&
            b->in[other->view].buffer == view->buffer &&
            b->in[other->view].offset == view->offset &&
            memcmp(other->strides, access->strides, sizeof other->strides) == 0)
            return step;
    }
    return NULL;
}

/* The register that holds an operand at the given level, loading it if it comes from outside. */
static uint16_t operand_register(builder *b, sf_value operand, level at)
{
    lowering *l = b->l;
    relation r = relate(l, b->index, operand);
    sf_value value = value_of(l, operand);
    if (r.level != LEVEL_NONE && !r.expand)
        return register_of(b, r.base);
    if (r.expand) {
        uint16_t *expanded = noted_register(b, r.base, OTHER);
        if (!*expanded) {
            sf_vclass class = sf_vclass_of(sf_type_of(l->graph, r.base)->dtype);
            sf_loop_step step = {.kind = SF_STEP_EXPAND, .class = class};
            step.a = register_of(b, r.base);
            step.dst = new_register(b, class);
            add_loop_step(b, step);
            *expanded = (uint16_t)(step.dst + 1);
        }
        return (uint16_t)(*expanded - 1);
    }
    /* Loads are shared between the nodes of a cluster, one per level. */
    uint16_t *number = noted_register(b, value, at == LEVEL_ROW ? OTHER : OWN);
    if (*number)
        return (uint16_t)(*number - 1);
    const sf_node *maker = sf_maker(l->graph, value);
    sf_value base = behind_reshapes(l, operand);
    const lowered *low = &l->values[base];
    if (low->cluster != NO_CLUSTER && low->level == LEVEL_FULL && at == LEVEL_FULL &&
        (!low->has_view || l->made[low->view->buffer] >= b->c->inst)) {
        if (!*noted_register(b, base, OWN))
            add_op(b, sf_maker(l->graph, base), at); /* of another loop, recomputed */
        return register_of(b, base);
    }
    if (maker && sf_is(maker, SF_OP_CONSTANT) && maker->attrs[0]->dense.splat) {
        uint16_t constant = load_constant(b, &maker->attrs[0]->dense, at == LEVEL_ROW);
        *number = (uint16_t)(constant + 1);
        return constant;
    }
    sf_view view = *view_of(l, value);
    sf_access access = access_to(b, &view, at == LEVEL_ROW);
    const sf_loop_step *same = find_load(b, &view, &access);
    if (same) {
        *number = (uint16_t)(same->dst + 1);
        return same->dst;
    }
    sf_vclass class = sf_vclass_of(view.dtype);
    sf_loop_step step = {.kind = SF_STEP_LOAD, .class = class, .is_row = at == LEVEL_ROW};
    step.dtype = view.dtype;
    step.access = add_access(b, access, &view, false);
    step.dst = new_register(b, class);
    add_loop_step(b, step);
    *number = (uint16_t)(step.dst + 1);
    return step.dst;
}

/* Registers hold more than narrow types do: arithmetic is rounded back to the type. */
static bool is_rounded(sf_vop op, sf_dtype dtype)
{
    if (dtype == SF_PRED || sf_dtype_get(dtype)->bits >= 32)
        return false;
    return op != SF_VSELECT && op != SF_VMAX && op != SF_VMIN && op != SF_VAND && op != SF_VOR &&
           op != SF_VXOR;
}

/* The counter's dimension is the one that its access walks. */
static void add_counter(builder *b, const sf_node *node, level at)
{
    const sf_type *type = sf_type_of(b->l->graph, node->result);
    sf_view view = sf_view_whole(0, type);
    int64_t dimension = node->attrs[SF_IOTA_DIMENSION]->integer;
    for (int i = 0; i < view.rank; i++)
        view.strides[i] = i == dimension;
    sf_access access = access_to(b, &view, at == LEVEL_ROW);
    sf_loop_step step = {.kind = SF_STEP_INDEX, .class = sf_vclass_of(type->dtype)};
    step.is_row = at == LEVEL_ROW;
    step.dtype = type->dtype;
    step.access = (uint32_t)b->naccesses;
    SF_PUSH(&b->l->scratch, b->accesses, b->naccesses, b->access_capacity, access);
    step.dst = new_register(b, step.class);
    add_loop_step(b, step);
    *noted_register(b, node->result, OWN) = (uint16_t)(step.dst + 1);
}

/* A load of the operand through windows. */
static void add_padding(builder *b, const sf_node *node)
{
    lowering *l = b->l;
    const sf_type *type = sf_type_of(l->graph, node->result);
    sf_view view = *view_of(l, node->operands[0]), padded = view;
    sf_window windows[SF_MAX_RANK];
    int place[SF_MAX_RANK], rank = 0; /* by dimension of the tensor without those of 1: all of it */
    for (int d = 0; d < type->rank; d++) {
        int64_t low = node->attrs[SF_PAD_LOW]->ints[d],
                step = node->attrs[SF_PAD_INTERIOR]->ints[d] + 1;
        bool is_padded = low != 0 || step != 1 || type->dims[d] != view.dims[d];
        windows[d] = (sf_window){low, view.dims[d], is_padded ? step : 0};
        padded.dims[d] = type->dims[d];
        if (type->dims[d] != 1)
            place[rank++] = d;
    }
    sf_access access = access_to(b, &padded, false);
    access.windows = SF_ARRAY(&l->program->arena, SF_MAX_RANK, sf_window);
    for (int i = 0; i < rank; i++)
        access.windows[i] = windows[place[b->c->order[i]]];
    sf_loop_step step = {.kind = SF_STEP_LOAD, .class = sf_vclass_of(type->dtype)};
    step.dtype = type->dtype;
    set_constant(&step, &sf_maker(l->graph, value_of(l, node->operands[1]))->attrs[0]->dense);
    step.access = add_access(b, access, &view, false);
    step.dst = new_register(b, step.class);
    add_loop_step(b, step);
    *noted_register(b, node->result, OWN) = (uint16_t)(step.dst + 1);
}

static void add_op(builder *b, const sf_node *node, level at)
{
    if (is_counter(b->l->graph, node)) {
        add_counter(b, node, at);
        return;
    }
    if (is_padding(b->l, node)) {
        add_padding(b, node);
        return;
    }
    const sf_type *type = sf_type_of(b->l->graph, node->result);
    sf_loop_step step = {.kind = SF_STEP_OP, .is_row = at == LEVEL_ROW};
    uint16_t operands[3] = {0};
    vop_of(b->l->graph, node, &step.op);
    for (uint32_t i = 0; i < node->noperands; i++)
        operands[i] = operand_register(b, node->operands[i], at);
    sf_dtype from = sf_type_of(b->l->graph, node->operands[0])->dtype;
    step.class = sf_vclass_of(type->dtype);
    if (sf_is(node, SF_OP_CONVERT) && type->dtype == SF_PRED && from != SF_PRED) {
        step.op = SF_VNE; /* against zero, in the class of the operand */
        operands[1] = load_zero(b, from, at == LEVEL_ROW);
        step.class = sf_vclass_of(from);
    } else if (sf_is(node, SF_OP_CONVERT)) {
        step.kind = SF_STEP_CONVERT;
        step.dtype = from;
    }
    if (sf_is(node, SF_OP_CLAMP)) { /* min(max(low, x), high) */
        step.a = operands[1];
        step.b = operands[0];
        step.dst = new_register(b, step.class);
        add_loop_step(b, step);
        vop_of(b->l->graph, node, &step.op);
        step.op = step.op == SF_VUMAX ? SF_VUMIN : SF_VMIN;
        operands[0] = step.dst;
        operands[1] = operands[2];
    }
    /* Comparisons and IS_FINITE take the class of their operands. */
    if (sf_is(node, SF_OP_COMPARE) || sf_is(node, SF_OP_IS_FINITE))
        step.class = sf_vclass_of(from);
    step.a = operands[0];
    step.b = operands[1];
    step.c = operands[2];
    step.dst = new_register(b, sf_vclass_of(type->dtype));
    sf_vop op = step.op;
    uint16_t dst = step.dst;
    add_loop_step(b, step);
    if (is_rounded(op, type->dtype)) {
        sf_loop_step round = {.kind = SF_STEP_ROUND, .class = sf_vclass_of(type->dtype)};
        round.is_row = at == LEVEL_ROW;
        round.dtype = type->dtype;
        round.a = round.dst = dst;
        add_loop_step(b, round);
    }
    *noted_register(b, node->result, OWN) = (uint16_t)(dst + 1);
}

static void add_reduce(builder *b, const sf_node *node)
{
    lowering *l = b->l;
    const sf_type *type = sf_type_of(l->graph, node->result);
    const sf_dense *init = &sf_maker(l->graph, node->operands[1])->attrs[0]->dense;
    sf_loop_step step = {.class = sf_vclass_of(type->dtype), .dtype = type->dtype};
    fold_of(l->graph, node, &step.fold);
    step.a = operand_register(b, node->operands[0], LEVEL_FULL);
    set_constant(&step, init);
    if (l->values[node->result].level == LEVEL_GATHERED) {
        sf_view view = *view_of(l, node->result);
        step.kind = SF_STEP_GATHER;
        step.is_scalar = type->count == 1;
        step.access = add_access(b, (sf_access){.dtype = view.dtype}, &view, true);
        add_loop_step(b, step);
        return;
    }
    step.kind = SF_STEP_FOLD;
    step.is_row = true;
    step.dst = new_register(b, step.class);
    add_loop_step(b, step);
    if (is_rounded(SF_VADD, type->dtype)) {
        sf_loop_step round = step;
        round.kind = SF_STEP_ROUND;
        round.a = step.dst;
        add_loop_step(b, round);
    }
    *noted_register(b, node->result, OWN) = (uint16_t)(step.dst + 1);
}

static void add_store(builder *b, sf_value value)
{
    lowering *l = b->l;
    if (l->values[value].level == LEVEL_GATHERED)
        return;
    sf_view view = *view_of(l, value);
    bool is_row = l->values[value].level == LEVEL_ROW;
    sf_loop_step step = {
        .kind = SF_STEP_STORE, .class = sf_vclass_of(view.dtype), .is_row = is_row};
    step.dtype = view.dtype;
    step.a = register_of(b, value);
    step.access = add_access(b, access_to(b, &view, is_row), &view, true);
    add_loop_step(b, step);
}

/* Constants are set once, before the first tile, so their registers are reserved; other registers
 * are reused after their last read. */
static void assign_registers(builder *b, sf_loop *loop)
{
    sf_arena *scratch = &b->l->scratch;
    sf_mark mark = sf_arena_mark(scratch);
    size_t count = b->nregisters;
    uint32_t *last = SF_ARRAY(scratch, count, uint32_t);
    uint16_t *renamed = SF_ARRAY(scratch, count, uint16_t);
    bool *is_free = SF_ARRAY(scratch, count, bool), *is_set = SF_ARRAY(scratch, count, bool);
    bool *wide = SF_ARRAY(scratch, count, bool);
    uint16_t used = 0;
    for (uint32_t i = 0; i < b->nsteps; i++) {
        const sf_loop_step *step = &b->steps[i];
        last[step->a] = last[step->b] = last[step->c] = i;
    }
    for (uint32_t i = 0; i < b->nsteps; i++) {
        uint16_t dst = b->steps[i].dst;
        if (b->steps[i].kind != SF_STEP_CONSTANT)
            continue;
        last[dst] = UINT32_MAX;
        wide[used] = b->is_wide[dst];
        is_set[dst] = true;
        renamed[dst] = used++;
    }
    for (uint32_t i = 0; i < b->nsteps; i++) {
        sf_loop_step *step = &b->steps[i];
        uint16_t old[4] = {step->a, step->b, step->c, step->dst};
        bool writes = step->kind != SF_STEP_STORE && step->kind != SF_STEP_GATHER;
        if (writes && !is_set[old[3]]) {
            uint16_t pick = 0;
            while (pick < used && (!is_free[pick] || wide[pick] != b->is_wide[old[3]]))
                pick++;
            if (pick == used)
                used++;
            wide[pick] = b->is_wide[old[3]];
            is_free[pick] = false;
            is_set[old[3]] = true;
            renamed[old[3]] = pick;
        }
        step->a = renamed[old[0]];
        step->b = renamed[old[1]];
        step->c = renamed[old[2]];
        step->dst = renamed[old[3]];
        for (int j = 0; j < 4; j++)
            if (is_set[old[j]] && last[old[j]] <= i && (j < 3 || last[old[j]] < i))
                is_free[renamed[old[j]]] = true;
    }
    loop->is_wide = sf_arena_copy(&b->l->program->arena, wide, used);
    loop->nregisters = used;
    sf_arena_reset(scratch, mark);
}

static void set_domain(sf_loop *loop, const cluster *c)
{
    loop->rank = c->rank;
    for (int i = 0; i < c->rank; i++)
        loop->dims[i] = c->dims[c->order[i]];
    loop->split = c->split;
    loop->whole_rows = c->whole_rows;
    if (c->rank == 0) { /* a scalar is a row of one */
        loop->rank = 1;
        loop->dims[0] = 1;
    }
}

static void fuse_cluster(builder *b, uint32_t index)
{
    lowering *l = b->l;
    sf_arena *arena = &l->program->arena;
    const cluster *c = b->c = l->clusters[index];
    b->index = index;
    b->nsteps = b->naccesses = b->nin = b->nout = b->nregisters = 0;
    for (size_t i = 0; i < c->nnodes; i++) {
        const sf_node *node = c->nodes[i];
        if (sf_is(node, SF_OP_REDUCE))
            add_reduce(b, node);
        else
            add_op(b, node, l->values[node->result].level);
    }
    for (size_t i = 0; i < c->noutputs; i++)
        add_store(b, c->outputs[i]);
    sf_loop *loop = SF_NEW(arena, sf_loop);
    for (size_t i = 0; l->target->compiles && l->graph->compiled && i < c->nnodes; i++)
        loop->compiled =
            loop->compiled || sf_scopes_have(l->graph->compiled, c->nodes[i]->scope->path);
    set_domain(loop, c);
    assign_registers(b, loop);
    loop->steps = sf_arena_copy(arena, b->steps, b->nsteps * sizeof *b->steps);
    loop->nsteps = (uint32_t)b->nsteps;
    loop->accesses = sf_arena_copy(arena, b->accesses, b->naccesses * sizeof *b->accesses);
    loop->naccesses = (uint32_t)b->naccesses;
    count_domain(loop, c->split >= 0);
    sf_inst *inst = &l->program->insts[c->inst];
    inst->loop = loop;
    inst->in = sf_arena_copy(arena, b->in, b->nin * sizeof *b->in);
    inst->out = sf_arena_copy(arena, b->out, b->nout * sizeof *b->out);
    inst->nin = (uint32_t)b->nin;
    inst->nout = (uint32_t)b->nout;
}

void fuse_clusters(lowering *l)
{
    builder b = {.l = l};
    for (uint32_t i = 0; i < l->nclusters; i++)
        fuse_cluster(&b, i);
}
