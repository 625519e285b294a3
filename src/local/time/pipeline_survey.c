/* Values of all micro-batches that tasks need: the load of each expert in a loss that balances
 * them, a number of tokens that follows from weights.
 *
 * If all forward tasks precede all others, as in gpipe, if these tasks make its parts, and if no
 * forward task reads it, it is completed between the two. Else a survey computes it: before all
 * tasks, each micro-batch goes through the stages, with the predecessors of this value alone, and
 * keeps no activations.
 *
 *     gpipe    F0.0 F0.1 F0.2 F0.3  middle  B0.0 B0.1 B0.2 B0.3                      updates
 *     others   survey of 0, 1, 2, 3 middle  F0.0 F0.1 B0.0 F0.2 B0.1 F0.3 B0.2 B0.3  updates
 *
 * The survey goes from the first stage to the last, and back for values that it needs of the
 * backward pass; all micro-batches of a stage one after the other. So all its tasks are in one
 * order, which each pipeline rank follows: no deadlock. */
#include "ir/name.h"
#include "local/time/pipeline_builder.h"

/* Predecessors of outputs that complete in the middle. */
static void find_surveyed(piping *p)
{
    const sf_reshards *m = p->t->b->reshards;
    for (size_t i = m->nsteps; i-- > 0;) {
        uint32_t index = m->steps[i].index, count;
        if (m->steps[i].is_reshard) {
            const sf_resharding *reshard = &m->reshards[index];
            bool leads = is_loop_output(p->t, reshard) ? pipe_output_in_middle(p, reshard)
                                                       : p->surveyed[pipe_same(p, reshard->to)];
            p->surveyed[pipe_same(p, reshard->from)] |= leads;
            p->has_middle |= leads && is_loop_output(p->t, reshard);
            continue;
        }
        const sf_node *node = p->t->step->nodes[index];
        const uint32_t *reads = microbatch_reads(p->t, index, &count);
        bool leads = pipe_any_result(p, node, p->surveyed);
        for (uint32_t r = 0; r < count; r++)
            p->surveyed[pipe_same(p, reads[r])] |= leads;
    }
}

/* How many tasks a group has before the first that is not of the forward pass; all, where another of that follows. */
static uint32_t count_forward(const sf_schedule *schedule, uint32_t group)
{
    const sf_stage_task *tasks = schedule->tasks[group];
    uint32_t count = schedule->ntasks[group], forward = 0;
    while (forward < count && tasks[forward].pass == SF_PASS_FORWARD)
        forward++;
    for (uint32_t i = forward; i < count; i++)
        if (tasks[i].pass == SF_PASS_FORWARD)
            return count;
    return forward;
}

/* Whether a node of the forward pass follows from a value of all micro-batches, or one of another
 * pass leads to it. */
static bool mixes_passes(const piping *p, const sf_node *node)
{
    uint32_t count;
    const uint32_t *reads = microbatch_reads(p->t, node->id, &count);
    if (node->phase != SF_FORWARD)
        return pipe_any_result(p, node, p->surveyed);
    for (uint32_t r = 0; r < count; r++) {
        uint32_t at = pipe_same(p, reads[r]);
        if (!is_microbatched_version(p->t, at) && p->t->after[at] > 0)
            return true;
    }
    return false;
}

static bool needs_survey(const piping *p)
{
    const sf_block *top = p->t->step->top;
    for (uint32_t g = 0; g < p->pipe->ngroups; g++)
        if (count_forward(&p->pipeline->schedule, g) == p->pipeline->schedule.ntasks[g])
            return true;
    for (uint32_t i = 0; i < top->nnodes; i++) {
        const sf_node *node = sf_top_node(p->t->step, i);
        if (!sf_is_transparent(node) && is_microbatched_node(p->t, node) && mixes_passes(p, node))
            return true;
    }
    return false;
}

/* A micro-batch's part of a value that all of them make is no version of it. */
static sf_status refuse_exchange(const piping *p)
{
    const sf_reshards *m = p->t->b->reshards;
    for (uint32_t i = 0; i < m->nreshards; i++) {
        const sf_resharding *reshard = &m->reshards[i];
        if (!is_loop_output(p->t, reshard) || !is_microbatched_version(p->t, reshard->to))
            continue;
        sf_buf name = {0};
        const sf_node *maker = sf_maker(p->t->step, reshard->value);
        sf_status status = sf_fail(
            p->t->b->diag, SF_EMISMATCH, maker ? maker->loc : SF_NOWHERE,
            "a pipeline cannot run this step: each micro-batch continues from a part of %s, which "
            "all micro-batches make",
            sf_value_name(p->t->step, reshard->value, &name));
        sf_buf_free(&name);
        return status;
    }
    return SF_OK;
}

sf_status pipe_find_survey(piping *p)
{
    SF_TRY(refuse_exchange(p));
    find_surveyed(p);
    p->nruns = p->has_middle && needs_survey(p) ? 2 * p->nmicrobatches : p->nmicrobatches;
    return SF_OK;
}

/* Places */

static size_t task_index(const piping *p, sf_stage_task task)
{
    return ((size_t)task.stage * SF_PASSES + task.pass) * p->nruns + task.microbatch;
}

uint32_t pipe_task_place(const piping *p, sf_stage_task task, uint32_t group)
{
    return p->places[group][task_index(p, task)];
}

/* All micro-batches of a stage in the survey; returns the next position. */
static uint32_t place_survey(piping *p, uint32_t group, uint32_t stage, sf_pass pass,
                             uint32_t place)
{
    for (uint32_t microbatch = 0; microbatch < p->nmicrobatches; microbatch++) {
        sf_stage_task task = {stage, p->nmicrobatches + microbatch, pass};
        if (sf_pipe_hosts(p->pipe, stage, microbatch) >> group & 1)
            p->places[group][task_index(p, task)] = place++;
    }
    return place;
}

static void place_group(piping *p, uint32_t group)
{
    const sf_schedule *schedule = &p->pipeline->schedule;
    uint32_t place = 0, middle = 0, nstages = p->pipe->nstages;
    bool surveys = p->nruns > p->nmicrobatches;
    for (uint32_t s = 0; s < nstages && surveys; s++)
        place = place_survey(p, group, s, SF_PASS_FORWARD, place);
    for (uint32_t s = nstages; s-- > 0 && surveys;)
        place = place_survey(p, group, s, SF_PASS_BACKWARD, place);
    if (p->has_middle && !surveys)
        middle = count_forward(schedule, group);
    for (uint32_t i = 0; i <= schedule->ntasks[group]; i++) {
        if (p->has_middle && i == middle)
            p->middle[group] = place++;
        if (i < schedule->ntasks[group])
            p->places[group][task_index(p, schedule->tasks[group][i])] = place++;
    }
    p->last[group] = place;
}

void pipe_find_places(piping *p)
{
    sf_arena *arena = &p->t->arena;
    size_t count = (size_t)p->pipe->nstages * SF_PASSES * p->nruns;
    p->places = SF_ARRAY(arena, p->pipe->ngroups, uint32_t *);
    p->middle = SF_ARRAY(arena, p->pipe->ngroups, uint32_t);
    p->last = SF_ARRAY(arena, p->pipe->ngroups, uint32_t);
    for (uint32_t group = 0; group < p->pipe->ngroups; group++) {
        p->places[group] = SF_ARRAY(arena, count, uint32_t);
        for (size_t i = 0; i < count; i++)
            p->places[group][i] = NEVER;
        place_group(p, group);
    }
}
