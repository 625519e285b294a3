#include "ir/clone.h"
#include "local/time/pipeline_builder.h"

static void find_held(piping *p)
{
    const sf_block *top = p->t->step->top;
    p->t->held = SF_ARRAY(&p->t->arena, top->narguments, bool);
    for (uint32_t i = 0; i < top->narguments; i++) {
        uint64_t holders = sf_pipeline_holders(p->pipeline, p->t->step, i);
        p->t->held[i] = holders == 0 || (holders >> p->group & 1);
    }
}

/* Whether an argument, or its next value, is in the pipeline rank's step: of the parts of one, that
 * which it holds, or else the first. */
static bool stands_here(const piping *p, uint32_t argument)
{
    sf_unstacked_of of =
        p->parts ? p->parts->arguments[argument] : (sf_unstacked_of){argument, SF_NONE, SF_NONE};
    if (of.stack == SF_NONE || p->t->held[argument])
        return true;
    for (uint32_t i = argument - of.part; of.part == 0 && i < p->t->step->top->narguments &&
                                          p->parts->arguments[i].index == of.index;
         i++)
        if (p->t->held[i])
            return false;
    return of.part == 0;
}

/* The arguments and results of the pipeline rank's step, as those of the step that they are. */
void pipe_find_ends(piping *p)
{
    const sf_graph *step = p->t->step;
    sf_graph *graph = p->t->b->graph;
    const sf_block *top = step->top;
    bool *leaves = SF_ARRAY(&p->t->arena, top->nresults, bool);
    uint32_t *arguments = SF_ARRAY(&p->t->arena, top->narguments, uint32_t), narguments = 0;
    uint32_t *results = SF_ARRAY(&p->t->arena, top->nresults, uint32_t), nresults = 0;
    uint32_t *new_result = SF_ARRAY(&p->t->arena, top->nresults, uint32_t);
    find_held(p);
    for (uint32_t i = 0; i < top->nresults; i++)
        leaves[i] = true;
    for (uint32_t i = 0; i < top->narguments; i++) {
        if (stands_here(p, i))
            arguments[narguments++] = i;
        else if (step->arguments[i].next != SF_NONE)
            leaves[step->arguments[i].next] = false;
    }
    for (uint32_t i = 0; i < top->nresults; i++) {
        new_result[i] = nresults;
        if (leaves[i])
            results[nresults++] = i;
    }
    p->t->arguments = arguments;
    p->t->results = results;
    sf_graph_clone_head(step, graph);
    sf_plan_apply_loops(p->t->b->plan, graph);
    for (uint32_t i = 0; i < narguments; i++) {
        graph->arguments[i] = step->arguments[arguments[i]];
        graph->arguments[i].gradient = SF_NONE;
        if (graph->arguments[i].next != SF_NONE)
            graph->arguments[i].next = new_result[graph->arguments[i].next];
    }
    for (uint32_t i = 0; i < nresults; i++)
        graph->results[i] = step->results[results[i]];
    p->narguments = narguments;
    p->nresults = nresults;
}
