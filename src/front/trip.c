#include "front/trip.h"

#include "base/mem.h"
#include "front/normal.h"
#include "op/slots.h"

enum { DEEPEST = 32, MOST_OPERANDS = 8 };

struct sf_trips {
    const sf_module *module;
    const sf_attr **known; /* by value id of the module: its constant, or NULL */
    int64_t steps_left;
};

sf_trips *sf_trips_new(const sf_module *module, int64_t most_steps)
{
    sf_trips *trips = sf_alloc(sizeof *trips);
    trips->module = module;
    trips->known = sf_alloc(module->graph->nvalues * sizeof *trips->known);
    trips->steps_left = most_steps;
    return trips;
}

void sf_trips_free(sf_trips *trips)
{
    sf_free(trips->known);
    sf_free(trips);
}

static bool follow_block(sf_trips *trips, const sf_block *block, int depth);

static void follow_call(sf_trips *trips, const sf_node *node, int depth)
{
    const sf_func *func = sf_module_find(trips->module, node->attrs[SF_CALL_CALLEE]->text);
    if (!func || func->block->narguments != node->noperands ||
        func->block->nresults != node->nresults || depth >= DEEPEST)
        return;
    for (uint32_t i = 0; i < node->noperands; i++)
        trips->known[func->block->arguments[i]] = trips->known[node->operands[i]];
    if (!follow_block(trips, func->block, depth + 1))
        return;
    for (uint32_t i = 0; i < node->nresults; i++)
        trips->known[node->result + i] = trips->known[func->block->results[i]];
}

static void follow_node(sf_trips *trips, const sf_node *node, int depth)
{
    const sf_graph *graph = trips->module->graph;
    for (uint32_t i = 0; i < node->nresults; i++)
        trips->known[node->result + i] = NULL;
    if (sf_is(node, SF_OP_CALL)) {
        follow_call(trips, node, depth);
        return;
    }
    if (sf_is(node, SF_OP_CONSTANT)) {
        const sf_attr *value = node->attrs[SF_CONSTANT_VALUE];
        trips->known[node->result] = value->dense.data ? value : NULL;
        return;
    }
    if (node->nresults != 1 || node->noperands == 0 || node->noperands > MOST_OPERANDS)
        return;
    const sf_dense *in[MOST_OPERANDS];
    const sf_type *types[MOST_OPERANDS + 1];
    for (uint32_t i = 0; i < node->noperands; i++) {
        if (!trips->known[node->operands[i]])
            return;
        in[i] = &trips->known[node->operands[i]]->dense;
    }
    sf_op op = sf_op_of(graph, node, types);
    sf_fold(&op, in, &trips->known[node->result]);
}

/* False when the steps have run out. */
static bool follow_block(sf_trips *trips, const sf_block *block, int depth)
{
    trips->steps_left -= block->nnodes + 1;
    if (trips->steps_left < 0)
        return false;
    for (uint32_t i = 0; i < block->nnodes; i++)
        follow_node(trips, trips->module->graph->nodes[block->nodes[i]], depth);
    return true;
}

int64_t sf_trip_count(sf_trips *trips, const sf_node *loop, const sf_attr *const *start,
                      int64_t limit)
{
    const sf_block *cond = loop->regions[0], *body = loop->regions[1];
    const sf_attr **known = trips->known;
    for (uint32_t i = 0; i < loop->noperands; i++)
        known[body->arguments[i]] = start[i];
    for (int64_t count = 0; count <= limit; count++) {
        for (uint32_t i = 0; i < loop->noperands; i++)
            known[cond->arguments[i]] = known[body->arguments[i]];
        if (!follow_block(trips, cond, 0) || !known[cond->results[0]])
            return -1;
        const sf_dense *go_on = &known[cond->results[0]]->dense;
        if (!sf_load_i64(go_on->type->dtype, go_on->data, 0))
            return count;
        if (!follow_block(trips, body, 0))
            return -1;
        /* Results may be arguments in another order, so they are read before any is written. */
        const sf_attr **next = sf_alloc(loop->noperands * sizeof *next);
        for (uint32_t i = 0; i < loop->noperands; i++)
            next[i] = known[body->results[i]];
        for (uint32_t i = 0; i < loop->noperands; i++)
            known[body->arguments[i]] = next[i];
        sf_free(next);
    }
    return -1;
}
