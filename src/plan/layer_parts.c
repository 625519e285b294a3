#include "plan/layer_parts.h"

#include "op/op.h"

/* Places that hand over so many times the least bytes are narrow, too: small things go by, such as the sums of a norm. */
#define NARROW 1.1

typedef struct cutting {
    const sf_graph *graph;
    const bool *is_free;
    const sf_layers *layers;
    const sf_light *light;
    bool *is_inside; /* by node: of a layer */
    double *widths;  /* by place: bytes that are handed over it, of the current run */
    sf_layers parts;
} cutting;

static void find_inside(cutting *c, sf_arena *arena)
{
    c->is_inside = SF_ARRAY(arena, c->graph->nnodes, bool);
    for (uint32_t i = 0; i < c->graph->top->nnodes; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        c->is_inside[node->id] = node->phase == SF_FORWARD && !c->is_free[node->id] &&
                                 c->layers->of[node->id] != SF_NO_LAYER;
    }
}

/* The value is handed over the places from there on, of those before `end`, until it is read for the last time. */
static void hand_on(cutting *c, sf_value value, uint32_t from, uint32_t end)
{
    double bytes = (double)sf_type_bytes(sf_type_of(c->graph, value));
    uint32_t last = c->light->last_read[value] < end ? c->light->last_read[value] : end;
    const sf_node *maker = sf_maker(c->graph, value);
    if (last <= from || c->light->is_light[maker->id])
        return;
    c->widths[from] += bytes;
    c->widths[last] -= bytes;
}

/* Values that are made in the run, and values that enter it and end there: values that only pass
 * through have the same width everywhere. */
static void find_run_widths(cutting *c, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i <= end; i++)
        c->widths[i] = 0;
    for (uint32_t i = first; i < end; i++) {
        const sf_node *node = sf_top_node(c->graph, i);
        if (!c->is_inside[node->id])
            continue;
        for (uint32_t r = 0; r < node->nresults; r++)
            hand_on(c, node->result + r, i, end);
        for (uint32_t o = 0; o < node->noperands; o++) {
            const sf_node *maker = sf_maker(c->graph, node->operands[o]);
            bool enters = maker && !c->is_free[maker->id] && c->light->place[maker->id] < first;
            if (enters && c->light->last_read[node->operands[o]] == i)
                hand_on(c, node->operands[o], first, end);
        }
    }
    for (uint32_t i = first + 1; i < end; i++)
        c->widths[i] += c->widths[i - 1];
}

static void cut_run(cutting *c, uint32_t first, uint32_t end)
{
    find_run_widths(c, first, end);
    double least = sf_least_width(c->graph, c->is_inside, c->widths, first, end);
    sf_cut_narrow(c->graph, c->is_inside, c->widths, least > 0 ? NARROW * least : -1, first, end,
                  &c->parts);
}

sf_layers sf_find_layer_parts(const sf_graph *graph, const bool *is_free, const sf_light *light,
                              const sf_layers *layers, sf_arena *arena)
{
    const sf_block *top = graph->top;
    cutting c = {.graph = graph, .is_free = is_free, .light = light, .layers = layers};
    uint32_t first = 0, at = SF_NO_LAYER;
    c.parts.of = SF_ARRAY(arena, graph->nnodes, uint32_t);
    c.widths = SF_ARRAY(arena, top->nnodes + 1, double);
    find_inside(&c, arena);
    for (uint32_t i = 0; i < top->nnodes; i++) { /* runs of nodes of one layer */
        const sf_node *node = sf_top_node(graph, i);
        if (!c.is_inside[node->id] || layers->of[node->id] == at)
            continue;
        if (at != SF_NO_LAYER)
            cut_run(&c, first, i);
        first = i;
        at = layers->of[node->id];
    }
    if (at != SF_NO_LAYER)
        cut_run(&c, first, top->nnodes);
    return c.parts;
}
