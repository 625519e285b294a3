#include "local/time/pipeline_builder.h"

bool pipe_is_anywhere(const piping *p, const sf_node *node)
{
    return sf_is_transparent(node) || p->pipeline->stages.anywhere[node->id];
}

static uint32_t stage_of(const piping *p, const sf_node *node)
{
    return p->pipeline->stages.of_node[node->id];
}

uint64_t pipe_hosts(const piping *p, const sf_node *node, uint32_t run)
{
    bool microbatches = is_microbatched_node(p->t, node);
    return sf_pipe_hosts(p->pipe, stage_of(p, node), microbatches ? pipe_microbatch_of(p, run) : 0);
}

/* A few numbers that every update waits for, learning rates and corrections, are computed first. */
static bool is_small(const piping *p, const sf_node *node)
{
    enum { SMALL = 64 };
    int64_t bytes = 0;
    for (uint32_t r = 0; r < node->nresults; r++)
        bytes += sf_type_bytes(sf_type_of(p->t->step, node->result + r));
    return bytes <= SMALL;
}

/* After the sums over micro-batches: it is in no task. */
static bool is_behind(const piping *p, const sf_node *node)
{
    uint32_t count;
    const uint32_t *reads = microbatch_reads(p->t, node->id, &count);
    for (uint32_t r = 0; r < count && !is_microbatched_node(p->t, node); r++)
        if (p->t->after[pipe_same(p, reads[r])] > 0)
            return true;
    return false;
}

/* Of the update, and invariant over micro-batches: before all tasks or after them, unless they read
 * it. */
static bool is_free(const piping *p, const sf_node *node)
{
    return node->phase == SF_UPDATE && !is_microbatched_node(p->t, node);
}

void pipe_find_needed(piping *p)
{
    const sf_reshards *m = p->t->b->reshards;
    for (size_t i = m->nsteps; i-- > 0;) {
        uint32_t index = m->steps[i].index, count;
        if (m->steps[i].is_reshard) {
            p->needed[pipe_same(p, m->reshards[index].from)] |=
                p->needed[pipe_same(p, m->reshards[index].to)];
            continue;
        }
        const sf_node *node = p->t->step->nodes[index];
        const uint32_t *reads = microbatch_reads(p->t, index, &count);
        bool in_task = !pipe_is_anywhere(p, node) && !is_free(p, node) && !is_behind(p, node);
        for (uint32_t r = 0; r < count; r++)
            p->needed[pipe_same(p, reads[r])] |= in_task || pipe_any_result(p, node, p->needed);
    }
}

/* Nodes that follow from arguments alone, among those that need not be in their task. A reader of a
 * late value is late, too, however small it is. */
void pipe_find_early(piping *p)
{
    const sf_reshards *m = p->t->b->reshards;
    const sf_block *top = p->t->step->top;
    for (uint32_t i = 0; i < top->narguments; i++)
        p->early[pipe_same(p, m->made[top->arguments[i]])] = true;
    for (size_t i = 0; i < m->nsteps; i++) {
        uint32_t index = m->steps[i].index, count;
        if (m->steps[i].is_reshard) {
            const sf_resharding *reshard = &m->reshards[index];
            p->early[pipe_same(p, reshard->to)] =
                p->early[pipe_same(p, reshard->from)] && !is_loop_output(p->t, reshard);
            continue;
        }
        const sf_node *node = p->t->step->nodes[index];
        const uint32_t *reads = microbatch_reads(p->t, index, &count);
        bool early =
            pipe_is_anywhere(p, node) ||
            (is_free(p, node) && (is_small(p, node) || pipe_any_result(p, node, p->needed)));
        for (uint32_t r = 0; r < count; r++)
            early = early && p->early[pipe_same(p, reads[r])];
        for (uint32_t r = 0; r < node->nresults; r++)
            p->early[pipe_same(p, m->made[node->result + r])] = early;
    }
}

/* Invariant nodes are placed with their readers, in the pass that other stages wait for; a survey
 * has no other. */
static sf_pass pass_of(const piping *p, const sf_node *node, uint32_t run)
{
    if (node->phase == SF_FORWARD)
        return SF_PASS_FORWARD;
    bool is_late = p->pipe->splits_weights && is_microbatched_node(p->t, node) &&
                   run < p->nmicrobatches && !pipe_any_result(p, node, p->leads);
    return is_late ? SF_PASS_WEIGHTS : SF_PASS_BACKWARD;
}

/* The position of the node's task; of an invariant node, that of the first micro-batch of the
 * pipeline rank. */
static uint32_t place_in_pass(const piping *p, const sf_node *node, uint32_t run, sf_pass pass,
                              uint32_t group)
{
    uint32_t place = NEVER;
    sf_stage_task task = {stage_of(p, node), run, pass};
    if (is_microbatched_node(p->t, node))
        return pipe_task_place(p, task, group);
    uint32_t first = pipe_any_result(p, node, p->surveyed) ? p->nruns - p->nmicrobatches : 0;
    for (task.microbatch = first; task.microbatch < first + p->nmicrobatches; task.microbatch++)
        place = pipe_first(place, pipe_task_place(p, task, group));
    return place;
}

/* The place of a node in the order of a pipeline rank that computes it. */
uint32_t pipe_place(const piping *p, const sf_node *node, uint32_t run, uint32_t group)
{
    uint32_t last = p->last[group];
    if (is_behind(p, node))
        return pipe_any_result(p, node, p->needed) ? p->middle[group] : last;
    if (is_free(p, node) && pipe_any_result(p, node, p->early))
        return 0;
    if (is_free(p, node) && !pipe_any_result(p, node, p->needed))
        return last;
    uint32_t place = place_in_pass(p, node, run, pass_of(p, node, run), group);
    if (place == NEVER) /* there is no other, where a stage has no backward pass */
        place = place_in_pass(p, node, run, SF_PASS_FORWARD, group);
    return pipe_first(place, last);
}

/* Sums are where their parts are made, concatenated rows where those of the first micro-batch are;
 * a value that every reader makes is on each reader. */
uint64_t pipe_output_hosts(const piping *p, const sf_resharding *reshard, uint32_t run)
{
    const sf_node *maker = sf_maker(p->t->step, reshard->value);
    bool is_sum = sf_move_reduces(reshard->kind);
    return maker && !pipe_is_anywhere(p, maker) ? pipe_hosts(p, maker, is_sum ? run : 0) : 0;
}

/* Nodes of the backward pass whose results other stages read. */
void pipe_find_leading(piping *p)
{
    const sf_reshards *m = p->t->b->reshards;
    for (size_t i = m->nsteps; i-- > 0;) {
        uint32_t index = m->steps[i].index, count;
        if (m->steps[i].is_reshard) {
            const sf_resharding *reshard = &m->reshards[index];
            if (!is_loop_output(p->t, reshard))
                p->leads[reshard->from] = p->leads[reshard->from] || p->leads[reshard->to];
            continue;
        }
        const sf_node *node = p->t->step->nodes[index];
        const uint32_t *reads = microbatch_reads(p->t, node->id, &count);
        bool leads = false;
        for (uint32_t r = 0; r < node->nresults; r++)
            leads = leads || p->leads[m->made[node->result + r]];
        for (uint32_t r = 0; r < count && is_microbatched_node(p->t, node); r++) {
            const sf_node *maker = sf_maker(p->t->step, m->versions[reads[r]].value);
            bool crosses = maker && !pipe_is_anywhere(p, node) && !pipe_is_anywhere(p, maker) &&
                           stage_of(p, maker) != stage_of(p, node);
            p->leads[reads[r]] = p->leads[reads[r]] || leads || crosses;
        }
    }
}
