#include "search/price/node_work.h"

#include <math.h>
#include <string.h>

#include "ir/uses.h"
#include "op/flops.h"
#include "op/slots.h"
#include "search/price/inner.h"
#include "search/price/price_attention.h"
#include "shard/strategy.h"
#include "sim/instruction_work.h"

typedef struct analysis {
    const sf_graph *graph;
    const sf_program *program;
    sf_trace trace;
    sf_efforts *out;
    sf_arena scratch;
    sf_uses uses;
} analysis;

/* Where values stand */

static bool shows_operand(const sf_node *node)
{
    return sf_is_view_op(node) || sf_is_transparent(node);
}

/* What is made of nothing wherever it is read: constants of one number, and views of them. */
static bool is_nothing(const analysis *a, sf_value value)
{
    const sf_node *node = sf_maker(a->graph, value);
    return node && (sf_is(node, SF_OP_CONSTANT) ? node->attrs[SF_CONSTANT_VALUE]->dense.splat
                    : sf_is_view_op(node)       ? a->out->place[node->operands[0]] == SF_NONE
                                                : false);
}

/* The first value that stands in a buffer has it; a view that stands nowhere would stand where its operand does. */
static void find_value_places(analysis *a)
{
    sf_efforts *out = a->out;
    sf_value *owner = SF_ARRAY(&a->scratch, a->program->nbuffers, sf_value);
    for (size_t b = 0; b < a->program->nbuffers; b++)
        owner[b] = SF_NONE;
    for (size_t v = 0; v < a->graph->nvalues; v++) {
        uint32_t buffer = a->trace.buffers[v];
        const sf_node *node = sf_maker(a->graph, (sf_value)v);
        out->in_order[v] = a->trace.in_order[v];
        out->stored[v] = buffer != SF_NONE;
        out->place[v] = (sf_value)v;
        if (buffer != SF_NONE && owner[buffer] == SF_NONE)
            owner[buffer] = (sf_value)v;
        if (is_nothing(a, (sf_value)v))
            out->place[v] = SF_NONE;
        else if (buffer != SF_NONE)
            out->place[v] = owner[buffer];
        else if (node && shows_operand(node))
            out->place[v] = out->place[node->operands[(sf_value)v - node->result]];
    }
}

/* When */

static uint32_t lesser_inst(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t greater_inst(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static void find_made(analysis *a)
{
    sf_efforts *out = a->out;
    for (uint32_t i = 0; i < a->graph->top->nnodes; i++) {
        const sf_node *node = a->graph->nodes[a->graph->top->nodes[i]];
        uint32_t inst = a->trace.insts[node->id], made = inst == SF_NONE ? 0 : inst + 1;
        for (uint32_t o = 0; o < node->noperands && inst == SF_NONE; o++)
            made = greater_inst(made, out->made[node->operands[o]]);
        for (uint32_t r = 0; r < node->nresults; r++)
            out->made[node->result + r] = made;
    }
}

static uint32_t first_reader(const analysis *a, sf_value value)
{
    uint32_t first = a->out->ninsts;
    for (uint32_t u = a->uses.first[value]; u < a->uses.first[value + 1]; u++)
        if (a->uses.at[u].node != SF_NONE)
            first = lesser_inst(first, a->out->nodes[a->uses.at[u].node].inst);
    return first;
}

/* Backwards, so that it is known of what reads through a view. */
static void find_first(analysis *a)
{
    sf_efforts *out = a->out;
    const sf_block *top = a->graph->top;
    for (uint32_t i = top->nnodes; i-- > 0;) {
        const sf_node *node = a->graph->nodes[top->nodes[i]];
        uint32_t inst = out->ninsts;
        for (uint32_t r = 0; r < node->nresults; r++) {
            out->first[node->result + r] = first_reader(a, node->result + r);
            inst = lesser_inst(inst, out->first[node->result + r]);
        }
        bool runs = a->trace.insts[node->id] != SF_NONE;
        out->nodes[node->id].inst = runs ? a->trace.insts[node->id] : inst;
    }
    for (uint32_t i = 0; i < top->narguments; i++)
        out->first[top->arguments[i]] = first_reader(a, top->arguments[i]);
}

static void find_last_readers(analysis *a)
{
    sf_efforts *out = a->out;
    for (size_t v = 0; v < a->graph->nvalues; v++) {
        sf_value place = out->place[v];
        uint32_t buffer = place == SF_NONE ? SF_NONE : a->trace.buffers[place];
        if (buffer == SF_NONE)
            continue;
        const sf_buffer *b = &a->program->buffers[buffer];
        out->last[v] = b->home != SF_HOME_ARENA || b->is_result ? out->ninsts : b->last;
    }
}

/* What nodes do */

/* Whether the node only looks up, or changes, some places of the operand. */
static bool node_touches(const sf_node *node, uint32_t operand)
{
    if (node->def->updates)
        return operand < node->nresults;
    return operand == 0 && node->def->looks_up;
}

static uint32_t bit_of(uint32_t tensor)
{
    return tensor < 32 ? 1u << tensor : 0;
}

/* Once for each instruction and place that it reads. */
typedef struct charging {
    analysis *a;
    uint32_t *read_by; /* by value: the last instruction that was charged for it, plus one */
} charging;

/* The node reads its operand from memory where another instruction has made it. What a broadcast repeats is read as
 * often as it is there: by the broadcast. */
static void charge_operand(charging *c, const sf_node *node, uint32_t operand)
{
    const sf_efforts *out = c->a->out;
    sf_value value = node->operands[operand], place = out->place[value];
    uint32_t inst = out->nodes[node->id].inst;
    const sf_node *maker = sf_maker(c->a->graph, value);
    if (place == SF_NONE || !out->stored[place] || node_touches(node, operand) ||
        out->made[place] == inst + 1)
        return;
    if (maker && sf_is(maker, SF_OP_BROADCAST_IN_DIM)) {
        out->nodes[maker->id].charged |= bit_of(0);
        return;
    }
    bool is_part = maker && sf_is(maker, SF_OP_SLICE); /* each reads another */
    sf_value read = is_part ? value : place;
    if (c->read_by[read] == inst + 1)
        return;
    c->read_by[read] = inst + 1;
    out->nodes[node->id].charged |= bit_of(operand);
}

static void charge_node(charging *c, const sf_node *node)
{
    const sf_efforts *out = c->a->out;
    sf_node_effort *effort = &out->nodes[node->id];
    if (c->a->trace.insts[node->id] == SF_NONE)
        return;
    for (uint32_t o = 0; o < node->noperands; o++)
        charge_operand(c, node, o);
    for (uint32_t r = 0; r < node->nresults; r++)
        if (out->stored[node->result + r] && !(node->def->updates && node_touches(node, r)))
            effort->charged |= bit_of(node->noperands + r);
    if (node->noperands + node->nresults > 32)
        effort->charged = UINT32_MAX;
}

/* The node of an instruction that has the most to do starts it. */
static void find_starts(analysis *a)
{
    sf_efforts *out = a->out;
    for (uint32_t i = 0; i < out->ninsts; i++) {
        uint32_t starts = SF_NONE;
        for (uint32_t k = out->first_of[i]; k < out->first_of[i + 1]; k++) {
            uint32_t id = out->nodes_of[k];
            if (a->trace.insts[id] == i &&
                (starts == SF_NONE || out->nodes[id].flops > out->nodes[starts].flops))
                starts = id;
        }
        if (starts != SF_NONE)
            out->nodes[starts].starts = true;
    }
}

static void list_nodes(analysis *a, sf_arena *arena)
{
    sf_efforts *out = a->out;
    const sf_block *top = a->graph->top;
    out->first_of = SF_ARRAY(arena, out->ninsts + 2, uint32_t);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        uint32_t inst = out->nodes[top->nodes[i]].inst;
        if (inst < out->ninsts)
            out->first_of[inst + 2]++;
    }
    for (uint32_t i = 2; i < out->ninsts + 2; i++)
        out->first_of[i] += out->first_of[i - 1];
    out->nodes_of = SF_ARRAY(arena, out->first_of[out->ninsts + 1], uint32_t);
    for (uint32_t i = 0; i < top->nnodes; i++) {
        uint32_t inst = out->nodes[top->nodes[i]].inst;
        if (inst < out->ninsts)
            out->nodes_of[out->first_of[inst + 1]++] = top->nodes[i];
    }
}

static void set_product(sf_node_effort *effort, const sf_inst *inst)
{
    sf_effort all = sf_inst_effort(inst);
    effort->product = true;
    effort->math = all.math;
    effort->unit = all.unit;
    effort->depth = all.depth;
    effort->calls = all.calls;
    if (inst->kind ==
        SF_INST_CONV) /* without zeros between spread elements, which no kernel multiplies */
        effort->flops = all.flops;
}

static void find_efforts(analysis *a)
{
    charging c = {a, SF_ARRAY(&a->scratch, a->graph->nvalues, uint32_t)};
    sf_touch *touches = SF_ARRAY(&a->scratch, a->out->ninsts, sf_touch);
    for (uint32_t i = 0; i < a->out->ninsts; i++)
        touches[i] = sf_inst_effort(&a->program->insts[i]).touch;
    for (uint32_t i = 0; i < a->graph->top->nnodes; i++) {
        const sf_node *node = a->graph->nodes[a->graph->top->nodes[i]];
        sf_node_effort *effort = &a->out->nodes[node->id];
        uint32_t inst = a->trace.insts[node->id];
        charge_node(&c, node);
        if (inst == SF_NONE)
            continue;
        effort->whole = node->def->cost == SF_COST_RANDOM;
        effort->touch = touches[inst];
        effort->flops = sf_node_flops(a->graph, node);
        if (sf_is_product(node->def))
            set_product(effort, &a->program->insts[inst]);
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
static void find_value_slack(analysis *a)
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

static void analyse_program(analysis *a, sf_arena *arena)
{
    const sf_graph *graph = a->graph;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].gradient != SF_NONE)
            a->out->gradient[graph->arguments[i].gradient] = true;
    for (size_t i = 0; i < graph->nnodes; i++)
        a->out->nodes[i].inst = a->out->ninsts;
    a->uses = sf_uses_of(graph, &a->scratch);
    find_value_places(a);
    find_made(a);
    find_first(a);
    find_last_readers(a);
    find_efforts(a);
    list_nodes(a, arena);
    find_starts(a);
    find_value_slack(a);
}

static sf_efforts *read_efforts(const sf_graph *graph, const sf_target *target, bool plain,
                                sf_arena *arena)
{
    sf_efforts *out = SF_NEW(arena, sf_efforts);
    analysis a = {.graph = graph, .out = out};
    sf_lower_options options = {
        .target = target, .trace_arena = &a.scratch, .plain = plain, .unplaced = true};
    sf_program *program = sf_lower(graph, &options, &a.trace);
    a.program = program;
    out->graph = graph;
    out->target = target;
    out->readers = sf_readers_of(graph, arena);
    out->ninsts = (uint32_t)program->ninsts;
    out->nodes = SF_ARRAY(arena, graph->nnodes, sf_node_effort);
    out->stored = SF_ARRAY(arena, graph->nvalues, bool);
    out->place = SF_ARRAY(arena, graph->nvalues, sf_value);
    out->in_order = SF_ARRAY(arena, graph->nvalues, bool);
    out->made = SF_ARRAY(arena, graph->nvalues, uint32_t);
    out->first = SF_ARRAY(arena, graph->nvalues, uint32_t);
    out->last = SF_ARRAY(arena, graph->nvalues, uint32_t);
    out->gradient = SF_ARRAY(arena, graph->nvalues, bool);
    out->slack = SF_ARRAY(arena, graph->nvalues, bool);
    analyse_program(&a, arena);
    if (!plain && sf_see_attention(program, &a.trace, out, arena))
        out->plain = read_efforts(graph, target, true, arena);
    sf_program_free(program);
    sf_arena_free(&a.scratch);
    return out;
}

sf_efforts *sf_efforts_new(const sf_graph *graph, const sf_target *target, sf_arena *arena)
{
    return read_efforts(graph, target, false, arena);
}

/* Whether what the node reads of scores is as it was made. */
static bool reads_as_made(const sf_efforts *efforts, const sf_plan *plan, const sf_node *node)
{
    for (uint32_t o = 0; o < node->noperands && o < 32; o++) {
        if (!(efforts->nodes[node->id].scores >> o & 1))
            continue;
        const sf_node *maker = sf_maker(efforts->graph, node->operands[o]);
        const sf_layout *made =
            &plan->nodes[maker->id][maker->noperands + node->operands[o] - maker->result];
        if (!sf_layout_equal(made, &plan->nodes[node->id][o]))
            return false;
    }
    return true;
}

const sf_efforts *sf_efforts_under(const sf_efforts *efforts, const sf_plan *plan)
{
    double share;
    for (uint32_t i = 0; efforts->plain && i < efforts->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(efforts->graph, i);
        if (!sf_keeps_attention(efforts, node, plan->nodes[node->id], &plan->mesh, &share) ||
            !reads_as_made(efforts, plan, node))
            return efforts->plain;
    }
    return efforts;
}

/* On a mesh */

/* Of the calls that a product takes, those of a rank: fewer where its batch is split. */
static double calls_of(const sf_node_effort *whole, const sf_node *node, const sf_layout *layouts,
                       const sf_mesh *mesh)
{
    sf_axes split = 0;
    if (whole->calls <= 1 || !sf_is(node, SF_OP_DOT_GENERAL))
        return whole->calls;
    const sf_attr *batch = node->attrs[SF_DOT_LHS_BATCH];
    for (int a = 0; a < mesh->naxes; a++) {
        const sf_share *share = &layouts[node->noperands].axes[a];
        if (share->kind == SF_SPLIT && batch && share->dim < batch->count)
            split |= 1u << a;
    }
    return fmax(1, whole->calls / sf_group_size(mesh, split));
}

sf_effort sf_effort_of(const sf_efforts *efforts, const sf_node *node, const sf_layout *layouts,
                       const sf_mesh *mesh)
{
    double share;
    if (!sf_keeps_attention(efforts, node, layouts, mesh, &share))
        return sf_effort_of(efforts->plain, node, layouts, mesh);
    const sf_node_effort *whole = &efforts->nodes[node->id];
    sf_effort out = {.product = whole->product,
                     .math = whole->math,
                     .unit = whole->unit,
                     .touch = whole->touch,
                     .depth = whole->depth,
                     .calls = calls_of(whole, node, layouts, mesh),
                     .flops = whole->flops};
    static const sf_layout replicated;
    uint32_t count = node->noperands + node->nresults;
    sf_axes split = whole->whole ? 0 : sf_layouts_split(layouts, count);
    for (uint32_t t = 0; t < count; t++) {
        sf_value value =
            t < node->noperands ? node->operands[t] : node->result + (t - node->noperands);
        const sf_layout *layout = whole->whole ? &replicated : &layouts[t];
        if (t >= 32 ? whole->charged == UINT32_MAX : whole->charged >> t & 1)
            out.bytes += sf_shard_bytes(sf_type_of(efforts->graph, value), layout, mesh);
    }
    if (sf_is_control(node))
        out.flops = sf_inner_work_of(efforts->graph, node, layouts, mesh, NULL).flops;
    else
        out.flops *= share / sf_group_size(mesh, split);
    return out;
}

void sf_effort_join(sf_effort *to, const sf_effort *more)
{
    to->bytes += more->bytes;
    to->vector += more->vector;
    to->touch = more->touch > to->touch ? more->touch : to->touch;
    to->calls = fmax(to->calls, more->calls);
    if (more->product && !to->product) {
        to->vector += to->flops;
        to->flops = 0;
        to->product = true;
        to->math = more->math;
        to->unit = more->unit;
        to->depth = more->depth;
    }
    if (to->product && !more->product)
        to->vector += more->flops;
    else
        to->flops += more->flops;
}

double sf_effort_seconds(const sf_efforts *efforts, const sf_node *node, const sf_layout *layouts,
                         const sf_mesh *mesh, const sf_costs *costs)
{
    static const sf_effort nothing;
    double share;
    if (!sf_keeps_attention(efforts, node, layouts, mesh, &share))
        return sf_effort_seconds(efforts->plain, node, layouts, mesh, costs);
    sf_effort effort = sf_effort_of(efforts, node, layouts, mesh);
    if (sf_is_control(node))
        return sf_costs_op(costs, &effort) +
               sf_inner_work_of(efforts->graph, node, layouts, mesh, costs).seconds;
    if (efforts->nodes[node->id].starts)
        return sf_costs_op(costs, &effort);
    if (effort.flops == 0 && effort.bytes == 0)
        return 0;
    return sf_costs_op(costs, &effort) - sf_costs_op(costs, &nothing);
}
