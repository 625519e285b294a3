#include "local/piping.h"

bool pipe_is_anywhere(const piping *p, const sf_node *node)
{
    return sf_is_transparent(node) || p->pipeline->stages.anywhere[node->id];
}

static uint32_t stage_of(const piping *p, const sf_node *node)
{
    return p->pipeline->stages.of_node[node->id];
}

static uint32_t group_of_bits(uint64_t bits)
{
    uint32_t group = 0;
    while (!(bits >> group & 1))
        group++;
    return group;
}

/* Who computes the node in the turn; still ones are in the group that holds the stage. */
uint32_t pipe_host(const piping *p, const sf_node *node, uint32_t turn)
{
    bool turns = turns_node(p->t, node);
    return group_of_bits(sf_pipe_hosts(p->pipe, stage_of(p, node), turns ? turn : 0));
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

/* Updates of which that is true, with all that they are made of: they wait for no task. */
static void find_early(piping *p)
{
    const sf_graph *step = p->t->step;
    p->early = SF_ARRAY(&p->t->arena, step->nnodes, bool);
    for (uint32_t i = 0; i < step->top->nnodes; i++) {
        const sf_node *node = sf_top_node(step, i);
        bool hands_on = sf_is_transparent(node), early = hands_on;
        early = early || (node->phase == SF_UPDATE && is_small(p, node));
        for (uint32_t o = 0; o < node->noperands; o++) {
            const sf_node *maker = sf_maker(step, node->operands[o]);
            early = early && (!maker || p->early[maker->id]);
        }
        p->early[node->id] = early || (!hands_on && pipe_is_anywhere(p, node));
    }
}

/* Behind the sums of turns: it is no part of any task. */
static bool is_behind(const piping *p, const sf_node *node)
{
    uint32_t count;
    const uint32_t *reads = turn_reads(p->t, node->id, &count);
    if (turns_node(p->t, node))
        return false;
    for (uint32_t r = 0; r < count; r++)
        if (p->t->behind[pipe_same(p, reads[r])] > 0)
            return true;
    return node->phase == SF_UPDATE && !p->early[node->id];
}

static size_t task_index(const piping *p, sf_task task)
{
    return ((size_t)task.stage * SF_PASSES + task.pass) * p->nturns + task.turn;
}

static sf_pass pass_of(const piping *p, const sf_node *node)
{
    const sf_moves *m = p->t->b->moves;
    bool leads = false;
    if (node->phase == SF_FORWARD)
        return SF_PASS_FORWARD;
    for (uint32_t r = 0; r < node->nresults; r++)
        leads = leads || p->leads[m->made[node->result + r]];
    return p->pipe->splits_weights && !leads ? SF_PASS_WEIGHTS : SF_PASS_BACKWARD;
}

/* The place of a node in the order of the group that computes it. */
uint32_t pipe_place(const piping *p, const sf_node *node, uint32_t turn)
{
    uint32_t group = pipe_host(p, node, turn), last = p->pipeline->schedule.ntasks[group];
    if (is_behind(p, node))
        return last;
    if (node->phase == SF_UPDATE && !turns_node(p->t, node))
        return 0;
    sf_task task = {stage_of(p, node), turns_node(p->t, node) ? turn : 0, pass_of(p, node)};
    uint32_t place = p->places[group][task_index(p, task)];
    task.pass = SF_PASS_FORWARD; /* there is no other, where a stage has no backward pass */
    return pipe_first(place, place == NEVER ? p->places[group][task_index(p, task)] : last);
}

/* Sums are where their parts are made; rows of what is made anywhere, too. */
uint32_t pipe_landing_host(const piping *p, const sf_moving *move, uint32_t turn)
{
    const sf_node *maker = sf_maker(p->t->step, move->value);
    return maker && !pipe_is_anywhere(p, maker) ? pipe_host(p, maker, turn) : SF_NONE;
}

/* The places of tasks in the orders of all groups. */
void pipe_find_places(piping *p)
{
    const sf_schedule *schedule = &p->pipeline->schedule;
    size_t count = (size_t)p->pipe->nstages * SF_PASSES * p->nturns;
    p->places = SF_ARRAY(&p->t->arena, p->pipe->ngroups, uint32_t *);
    for (uint32_t group = 0; group < p->pipe->ngroups; group++) {
        p->places[group] = SF_ARRAY(&p->t->arena, count, uint32_t);
        for (size_t i = 0; i < count; i++)
            p->places[group][i] = NEVER;
        for (uint32_t i = 0; i < schedule->ntasks[group]; i++)
            p->places[group][task_index(p, schedule->tasks[group][i])] = i;
    }
    p->nplaces = schedule->ntasks[p->group];
    find_early(p);
}

/* What of the backward pass other stages go on from. */
void pipe_find_leading(piping *p)
{
    const sf_moves *m = p->t->b->moves;
    for (size_t i = m->nsteps; i-- > 0;) {
        uint32_t index = m->steps[i].index, count;
        if (m->steps[i].is_move) {
            const sf_moving *move = &m->moves[index];
            if (!turn_lands(p->t, move))
                p->leads[move->from] = p->leads[move->from] || p->leads[move->to];
            continue;
        }
        const sf_node *node = p->t->step->nodes[index];
        const uint32_t *reads = turn_reads(p->t, node->id, &count);
        bool leads = false;
        for (uint32_t r = 0; r < node->nresults; r++)
            leads = leads || p->leads[m->made[node->result + r]];
        for (uint32_t r = 0; r < count && turns_node(p->t, node); r++) {
            const sf_node *maker = sf_maker(p->t->step, m->versions[reads[r]].value);
            bool crosses = maker && !pipe_is_anywhere(p, node) && !pipe_is_anywhere(p, maker) &&
                           stage_of(p, maker) != stage_of(p, node);
            p->leads[reads[r]] = p->leads[reads[r]] || leads || crosses;
        }
    }
}
