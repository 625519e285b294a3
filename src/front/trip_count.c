#include "front/trip_count.h"

#include "base/mem.h"
#include "front/normal.h"
#include "op/slots.h"

enum { DEEPEST = 32, MOST_OPERANDS = 8 };

struct sf_trips {
    const sf_module *module;
    const sf_attr **known; /* by value id of the module: its constant, or NULL */
    uint32_t *seen;        /* by value id: the loop for which `known` was set last */
    uint32_t *needed;      /* by value id: the loop whose condition needs it */
    uint32_t loop;         /* how many were counted */
    int64_t short_steps,
        long_steps; /* remaining, for the first iterations of loops and for others */
    int64_t *steps; /* which of the two */
};

sf_trips *sf_trips_new(const sf_module *module, int64_t most_steps)
{
    size_t nvalues = module->graph->nvalues;
    sf_trips *trips = sf_alloc(sizeof *trips);
    trips->module = module;
    trips->known = sf_alloc(nvalues * sizeof *trips->known);
    trips->seen = sf_alloc(nvalues * sizeof *trips->seen);
    trips->needed = sf_alloc(nvalues * sizeof *trips->needed);
    trips->short_steps = trips->long_steps = most_steps;
    return trips;
}

void sf_trips_free(sf_trips *trips)
{
    sf_free(trips->needed);
    sf_free(trips->seen);
    sf_free(trips->known);
    sf_free(trips);
}

static void set_constant(sf_trips *trips, sf_value value, const sf_attr *constant)
{
    trips->known[value] = constant;
    trips->seen[value] = trips->loop;
}

static const sf_attr *constant_of_node(const sf_node *node)
{
    const sf_attr *value = node->attrs[SF_CONSTANT_VALUE];
    return value->dense.data ? value : NULL;
}

/* The constant of a value. A value from outside of the loop is known if it is a constant: any other
 * may have been followed for another loop. */
static const sf_attr *constant_at(const sf_trips *trips, sf_value value)
{
    if (trips->seen[value] == trips->loop)
        return trips->known[value];
    const sf_node *maker = sf_maker(trips->module->graph, value);
    return maker && sf_is(maker, SF_OP_CONSTANT) ? constant_of_node(maker) : NULL;
}

static bool follow_block(sf_trips *trips, const sf_block *block, bool all, int depth);

static void follow_call(sf_trips *trips, const sf_node *node, int depth)
{
    const sf_func *func = sf_module_find(trips->module, node->attrs[SF_CALL_CALLEE]->text);
    if (!func || func->block->narguments != node->noperands ||
        func->block->nresults != node->nresults || depth >= DEEPEST)
        return;
    for (uint32_t i = 0; i < node->noperands; i++)
        set_constant(trips, func->block->arguments[i], constant_at(trips, node->operands[i]));
    if (!follow_block(trips, func->block, true, depth + 1))
        return;
    for (uint32_t i = 0; i < node->nresults; i++)
        set_constant(trips, node->result + i, constant_at(trips, func->block->results[i]));
}

static void follow_node(sf_trips *trips, const sf_node *node, int depth)
{
    const sf_graph *graph = trips->module->graph;
    for (uint32_t i = 0; i < node->nresults; i++)
        set_constant(trips, node->result + i, NULL);
    if (sf_is(node, SF_OP_CALL)) {
        follow_call(trips, node, depth);
        return;
    }
    if (sf_is(node, SF_OP_CONSTANT)) {
        set_constant(trips, node->result, constant_of_node(node));
        return;
    }
    if (node->nresults != 1 || node->noperands == 0 || node->noperands > MOST_OPERANDS)
        return;
    const sf_dense *in[MOST_OPERANDS];
    const sf_type *types[MOST_OPERANDS + 1];
    for (uint32_t i = 0; i < node->noperands; i++) {
        const sf_attr *operand = constant_at(trips, node->operands[i]);
        if (!operand)
            return;
        in[i] = &operand->dense;
    }
    sf_op op = sf_op_of(graph, node, types);
    sf_fold(&op, in, &trips->known[node->result]);
}

static bool is_needed(const sf_trips *trips, const sf_node *node)
{
    for (uint32_t i = 0; i < node->nresults; i++)
        if (trips->needed[node->result + i] == trips->loop)
            return true;
    return false;
}

/* All nodes of the block, or those that are needed. False when the steps have run out. */
static bool follow_block(sf_trips *trips, const sf_block *block, bool all, int depth)
{
    if (--*trips->steps < 0)
        return false;
    for (uint32_t i = 0; i < block->nnodes; i++) {
        const sf_node *node = trips->module->graph->nodes[block->nodes[i]];
        if (!all && !is_needed(trips, node))
            continue;
        if (--*trips->steps < 0)
            return false;
        follow_node(trips, node, depth);
    }
    return true;
}

/* Backwards: operands of a needed node are needed. */
static void need_block(sf_trips *trips, const sf_block *block)
{
    for (uint32_t i = block->nnodes; i-- > 0;) {
        const sf_node *node = trips->module->graph->nodes[block->nodes[i]];
        for (uint32_t j = 0; j < node->noperands && is_needed(trips, node); j++)
            trips->needed[node->operands[j]] = trips->loop;
    }
}

/* Marks the nodes that the condition needs: of itself, and of the body of the previous iteration,
 * until there are no new ones. Each round finds another variable of the loop, so a round costs a
 * step for each node. */
static bool need_condition(sf_trips *trips, const sf_node *loop)
{
    const sf_block *cond = loop->regions[0], *body = loop->regions[1];
    trips->needed[cond->results[0]] = trips->loop;
    need_block(trips, cond);
    for (bool grows = true; grows;) {
        grows = false;
        for (uint32_t i = 0; i < loop->noperands; i++) {
            if (trips->needed[cond->arguments[i]] != trips->loop &&
                trips->needed[body->arguments[i]] != trips->loop)
                continue;
            grows = grows || trips->needed[body->results[i]] != trips->loop;
            trips->needed[body->results[i]] = trips->loop;
        }
        *trips->steps -= body->nnodes + loop->noperands;
        if (*trips->steps < 0)
            return false;
        need_block(trips, body);
    }
    return true;
}

/* The body has run: its results are the arguments of the next iteration. They may be arguments in
 * another order, so they are read before any is written. */
static void next_turn(sf_trips *trips, const sf_block *body, const sf_attr **scratch)
{
    for (uint32_t i = 0; i < body->nresults; i++)
        scratch[i] = constant_at(trips, body->results[i]);
    for (uint32_t i = 0; i < body->nresults; i++)
        set_constant(trips, body->arguments[i], scratch[i]);
}

static int64_t count_turns(sf_trips *trips, const sf_node *loop, int64_t limit,
                           const sf_attr **scratch)
{
    const sf_block *cond = loop->regions[0], *body = loop->regions[1];
    for (int64_t count = 0; count <= SF_MOST_TRIPS || count <= limit; count++) {
        if (count > limit) {
            trips->steps = &trips->long_steps;
            *trips->steps -= loop->noperands;
        }
        for (uint32_t i = 0; i < loop->noperands; i++)
            set_constant(trips, cond->arguments[i], constant_at(trips, body->arguments[i]));
        if (!follow_block(trips, cond, false, 0))
            return -1;
        const sf_attr *go_on = constant_at(trips, cond->results[0]);
        if (!go_on)
            return -1;
        if (!sf_load_i64(go_on->dense.type->dtype, go_on->dense.data, 0))
            return count;
        if (!follow_block(trips, body, false, 0))
            return -1;
        next_turn(trips, body, scratch);
    }
    return -1;
}

int64_t sf_trip_count(sf_trips *trips, const sf_node *loop, const sf_attr *const *start,
                      int64_t limit)
{
    trips->loop++;
    trips->steps = &trips->short_steps;
    if (!need_condition(trips, loop))
        return -1;
    for (uint32_t i = 0; i < loop->noperands; i++)
        set_constant(trips, loop->regions[1]->arguments[i], start[i]);
    const sf_attr **scratch = sf_alloc(loop->noperands * sizeof *scratch);
    int64_t count = count_turns(trips, loop, limit, scratch);
    sf_free(scratch);
    return count;
}
