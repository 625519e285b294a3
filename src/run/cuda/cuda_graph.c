#include "run/cuda/cuda_graph.h"

/* A node takes up to some KiB of memory that is not in the program's prediction, its parameters
 * among it, and some microseconds when the graph is made. A longer step is put on the stream node
 * by node each time, which does not wait either. */
enum { MOST_NODES = 50000 };

static bool frame_waits(const frame *f);

static bool waits_for_host(const sf_inst *inst, const made *m)
{
    bool by_comm = m->exchange && !m->exchange->nccl && inst->exchange->size > 1;
    if (inst->kind == SF_INST_WHILE && inst->nest->trips >= 0)
        return frame_waits(&m->bodies[1]);
    return sf_body_count(inst) > 0 || by_comm || is_check(inst);
}

static bool frame_waits(const frame *f)
{
    for (size_t i = 0; i < f->program->ninsts; i++)
        if (waits_for_host(&f->program->insts[i], &f->insts[i]))
            return true;
    return false;
}

/* About as many as a run of the frame puts on lanes. */
static double count_nodes(const frame *f)
{
    double nodes = 0;
    for (size_t i = 0; i < f->program->ninsts; i++) {
        const sf_inst *inst = &f->program->insts[i];
        const made *m = &f->insts[i];
        nodes += (double)m->code.nlaunches + (m->plan ? 1 : 0);
        nodes += sf_goes_beside(inst) ? inst->nout : 0;
        if (inst->kind == SF_INST_WHILE)
            nodes += inst->nest->nresults + (double)inst->nest->trips * count_nodes(&m->bodies[1]);
    }
    return nodes;
}

void sf_cuda_look_for_host(cuda *c)
{
    c->can_draw = table_of(c)->begin && !c->faults && !frame_waits(&c->top) &&
                  count_nodes(&c->top) <= MOST_NODES;
}

void sf_cuda_draw(cuda *c)
{
    if (!c->can_draw)
        return;
    void *graph = NULL;
    sf_status status = table_of(c)->begin(c->device, NULL);
    if (status == SF_OK) {
        c->is_drawn = true;
        c->last_put = SF_LANE_COMPUTE;
        status = sf_cuda_run(c, &c->top, NULL);
        c->is_drawn = false;
        sf_status ended = table_of(c)->end(c->device, NULL, &graph);
        status = status == SF_OK ? ended : status;
    }
    if (status != SF_OK && graph)
        table_of(c)->forget(c->device, graph);
    c->graph = status == SF_OK ? graph : NULL;
    c->can_draw = c->graph != NULL;
}

void sf_cuda_forget_graph(cuda *c)
{
    if (c->graph)
        table_of(c)->forget(c->device, c->graph);
    c->graph = NULL;
}
