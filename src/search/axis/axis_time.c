/* The time that nodes take, by choice. */
#include <math.h>

#include "base/hash.h"
#include "search/axis/axis_builder.h"

/* Nodes that do the same with the same layouts along the other axes take the same time. */
typedef struct timed {
    const sf_share *shares; /* of the space */
    const sf_node *node;    /* one of them */
    double *seconds;        /* by choice */
    struct timed *next;
} timed;

typedef struct timing {
    axis_builder *b;
    timed **slots;
    sf_layout *layouts; /* of a node's tensors */
    size_t capacity;
} timing;

static void others_of(const axis_builder *b, const sf_node *node, sf_layout *out)
{
    for (uint32_t t = 0; t < node->noperands + node->nresults; t++) {
        out[t] = b->plan->nodes[node->id][t];
        out[t].axes[b->options->axis] = (sf_share){0};
    }
}

static bool takes_the_same(const axis_builder *b, const sf_node *x, const sf_node *y)
{
    const sf_node_effort *e = &b->efforts->nodes[x->id], *f = &b->efforts->nodes[y->id];
    if (e->flops != f->flops || e->charged != f->charged || e->starts != f->starts)
        return false;
    for (uint32_t t = 0; t < x->noperands + x->nresults && b->mesh->naxes > 1; t++) {
        sf_layout p = b->plan->nodes[x->id][t], q = b->plan->nodes[y->id][t];
        p.axes[b->options->axis] = q.axes[b->options->axis];
        if (!sf_layout_equal(&p, &q))
            return false;
    }
    return true;
}

static double *time_node(timing *t, const sf_node *node)
{
    axis_builder *b = t->b;
    const sf_node_space *space = &b->space->nodes[node->id];
    double *seconds = SF_ARRAY(&b->arena, space->nstrategies, double);
    sf_layout *others = SF_ARRAY(&b->arena, 2 * space->ntensors, sf_layout);
    sf_layout *layouts = others + space->ntensors;
    others_of(b, node, others);
    for (uint32_t k = 0; k < space->nstrategies; k++) {
        bool fits = true;
        for (uint32_t i = 0; i < space->ntensors && fits; i++)
            fits = axis_fit(b, sf_type_of(b->graph, axis_tensor(node, i)), &others[i],
                            space->shares[k * space->ntensors + i], &layouts[i]);
        seconds[k] =
            fits ? sf_effort_seconds(b->efforts, node, layouts, b->mesh, b->costs) : HUGE_VAL;
    }
    return seconds;
}

static const double *node_seconds(timing *t, const sf_node *node)
{
    const axis_builder *b = t->b;
    const sf_share *shares = b->space->nodes[node->id].shares;
    uint64_t hash = sf_hash_mix(3, (uint64_t)(uintptr_t)shares);
    for (uint32_t i = 0; i < node->noperands + node->nresults && b->mesh->naxes > 1; i++) {
        sf_layout layout = b->plan->nodes[node->id][i];
        layout.axes[b->options->axis] = (sf_share){0};
        hash = sf_hash_mix(hash, sf_layout_hash(&layout));
    }
    timed **slot = &t->slots[hash % AXIS_SLOTS];
    for (timed *known = *slot; known; known = known->next)
        if (known->shares == shares && takes_the_same(b, known->node, node))
            return known->seconds;
    timed *fresh = SF_NEW(&t->b->arena, timed);
    *fresh = (timed){shares, node, time_node(t, node), *slot};
    *slot = fresh;
    return fresh->seconds;
}

void axis_add_times(axis_builder *b)
{
    timing t = {.b = b, .slots = SF_ARRAY(&b->arena, AXIS_SLOTS, timed *)};
    for (uint32_t i = 0; i < b->graph->top->nnodes; i++) {
        const sf_node *node = b->graph->nodes[b->graph->top->nodes[i]];
        if (sf_is_transparent(node))
            continue;
        const double *seconds = node_seconds(&t, node);
        axis_variable *variable = &b->variables[b->nodes[node->id]];
        for (uint32_t k = 0; k < variable->count; k++)
            variable->seconds[k] += seconds[k];
    }
}
