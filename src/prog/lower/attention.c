/* Lowering begins with what the target has kernels for, in another graph. What is said of nodes and values is of the one that was
 * given. */
#include "prog/attention/attention.h"
#include "prog/lower/build.h"

static void rename_program(const sf_attention *found, const sf_value *value_of, sf_program *program)
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

static void rename_trace(const sf_graph *graph, const sf_attention *found, const sf_trace *from,
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

sf_program *sf_lower(const sf_graph *graph, const sf_lower_options *options, sf_trace *trace)
{
    sf_attention found =
        sf_find_attention(graph, options->target, options->rounds || options->target->rounds);
    if (!found.graph)
        return lower_graph(graph, options, trace);
    sf_trace inner = {0};
    sf_program *program = lower_graph(found.graph, options, &inner);
    sf_value *value_of = SF_ARRAY(&found.arena, found.graph->nvalues, sf_value);
    for (size_t v = 0; v < found.graph->nvalues; v++)
        value_of[v] = SF_NONE;
    for (size_t v = 0; v < graph->nvalues; v++)
        if (found.values[v] != SF_NONE)
            value_of[found.values[v]] = (sf_value)v;
    rename_program(&found, value_of, program);
    if (options->trace_arena)
        rename_trace(graph, &found, &inner, options->trace_arena, trace);
    sf_attention_free(&found);
    return program;
}
