/* The variables of the problem and the edges between them, while it is built. */
#include "base/hash.h"
#include "search/axis/axis_builder.h"

uint32_t axis_add_variable(axis_builder *b, uint32_t count)
{
    axis_variable variable = {count, SF_ARRAY(&b->arena, count, double)};
    SF_PUSH(&b->arena, b->variables, b->nvariables, b->variable_capacity, variable);
    return (uint32_t)b->nvariables - 1;
}

void axis_add_edge(axis_builder *b, const axis_end *from, const axis_end *to, const sf_type *type,
                   int flags)
{
    const axis_matrix *matrix = axis_matrix_of(b, from, to, type, flags);
    uint64_t hash = sf_hash_mix(from->port.variable, to->port.variable);
    hash = sf_hash_mix(hash, (uint64_t)(uintptr_t)matrix);
    axis_edge **slot = &b->edges[hash % AXIS_SLOTS];
    for (axis_edge *e = *slot; e; e = e->next)
        if (e->a == from->port.variable && e->b == to->port.variable && e->matrix == matrix) {
            e->times += 1;
            return;
        }
    axis_edge *fresh = SF_NEW(&b->arena, axis_edge);
    *fresh = (axis_edge){from->port.variable, to->port.variable, matrix, 1, *slot};
    *slot = fresh;
    SF_PUSH(&b->arena, b->edge_list, b->nedges, b->edge_capacity, fresh);
}
