/* Lowering first rewrites the graph: into forms that loops can compute, then into ops for which the
 * target has kernels, then into other dimensions for the nodes in loops. The traces are of the
 * nodes and values of the original graph. */
#include "prog/attention/find_attention.h"
#include "prog/lower/lowering.h"

typedef sf_program *lower_form(const sf_graph *graph, const sf_lower_options *options,
                               sf_trace *trace);

static void rename_program(const sf_regraph *found, const sf_value *value_of, sf_program *program)
{
    for (size_t i = 0; i < program->nbuffers; i++) {
        sf_buffer *buffer = &program->buffers[i];
        if (buffer->value != SF_NONE)
            buffer->value = value_of[buffer->value];
    }
    for (size_t i = 0; i < program->ninsts; i++) {
        sf_inst *inst = &program->insts[i];
        if (inst->origin.node != SF_NONE)
            inst->origin.node = found->node_of[inst->origin.node];
        for (uint32_t b = 0; b < sf_body_count(inst); b++)
            rename_program(found, value_of, inst->nest->bodies[b]);
    }
}

static void rename_trace(const sf_graph *graph, const sf_regraph *found, const sf_trace *from,
                         sf_arena *arena, sf_trace *to)
{
    to->insts = SF_ARRAY(arena, graph->nnodes, uint32_t);
    to->buffers = SF_ARRAY(arena, graph->nvalues, uint32_t);
    to->in_order = SF_ARRAY(arena, graph->nvalues, bool);
    for (size_t i = 0; i < graph->nnodes; i++)
        to->insts[i] = found->nodes[i] == SF_NONE ? SF_NONE : from->insts[found->nodes[i]];
    for (size_t v = 0; v < graph->nvalues; v++) {
        sf_value value = found->values[v];
        to->buffers[v] = value == SF_NONE ? SF_NONE : from->buffers[value];
        to->in_order[v] = value == SF_NONE || from->in_order[value];
    }
}

/* The program of a graph in another form, with traces of the original graph. */
static sf_program *lower_other(const sf_graph *graph, sf_regraph *other,
                               const sf_lower_options *options, lower_form *lower, sf_trace *trace)
{
    sf_trace *inner = SF_ARRAY(&other->arena, 1, sf_trace);
    sf_program *program = lower(other->graph, options, inner);
    sf_value *value_of = SF_ARRAY(&other->arena, other->graph->nvalues, sf_value);
    for (size_t v = 0; v < other->graph->nvalues; v++)
        value_of[v] = SF_NONE;
    for (size_t v = 0; v < graph->nvalues; v++)
        if (other->values[v] != SF_NONE)
            value_of[other->values[v]] = (sf_value)v;
    rename_program(other, value_of, program);
    if (options->trace_arena)
        rename_trace(graph, other, inner, options->trace_arena, trace);
    sf_regraph_free(other);
    return program;
}

static sf_program *lower_fewer(const sf_graph *graph, const sf_lower_options *options,
                               sf_trace *trace)
{
    sf_regraph other = find_fewer(graph);
    return other.graph ? lower_other(graph, &other, options, lower_graph, trace)
                       : lower_graph(graph, options, trace);
}

static sf_program *lower_finer(const sf_graph *graph, const sf_lower_options *options,
                               sf_trace *trace)
{
    if (!options->target->few_passes)
        return lower_graph(graph, options, trace);
    sf_regraph other = find_finer(graph);
    return other.graph ? lower_other(graph, &other, options, lower_fewer, trace)
                       : lower_fewer(graph, options, trace);
}

static sf_program *lower_attention(const sf_graph *graph, const sf_lower_options *options,
                                   sf_trace *trace)
{
    sf_regraph other = {0};
    if (!options->plain)
        other = sf_find_attention(graph, options->target,
                                  options->rounds || options->target->rounds, options->narrows);
    return other.graph ? lower_other(graph, &other, options, lower_finer, trace)
                       : lower_finer(graph, options, trace);
}

static sf_program *lower_squeezed(const sf_graph *graph, const sf_lower_options *options,
                                  sf_trace *trace)
{
    sf_regraph other = find_squeezed(graph);
    return other.graph ? lower_other(graph, &other, options, lower_attention, trace)
                       : lower_attention(graph, options, trace);
}

sf_program *sf_lower(const sf_graph *graph, const sf_lower_options *options, sf_trace *trace)
{
    sf_regraph other = find_forms(graph, options->target);
    return other.graph ? lower_other(graph, &other, options, lower_squeezed, trace)
                       : lower_squeezed(graph, options, trace);
}
