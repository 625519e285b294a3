#include "local/time/pipeline_builder.h"

static void want(piping *p, uint32_t version, uint32_t run, uint64_t groups, uint32_t place)
{
    size_t at = pipe_instance(p, version, run);
    p->wanted[at] |= groups;
    if (groups >> p->group & 1)
        p->due[at] = pipe_first(p->due[at], place);
}

static void do_at(piping *p, uint32_t place, pipe_doing d)
{
    pipe_doings *list = &p->doings[place];
    SF_PUSH(&p->t->arena, list->at, list->count, list->capacity, d);
}

/* A barrier hands on each operand by itself, as a reshard does. */
static void want_through(piping *p, uint32_t from, uint32_t to, pipe_doing d)
{
    size_t at = pipe_instance(p, to, d.run);
    if (p->wanted[at] == 0)
        return;
    want(p, from, d.run, p->wanted[at], p->due[at]);
    if (p->wanted[at] >> p->group & 1)
        do_at(p, p->due[at], d);
}

static void want_output(piping *p, uint32_t index)
{
    const sf_resharding *reshard = &p->t->b->reshards->reshards[index];
    size_t at = pipe_instance(p, reshard->to, 0);
    if (p->wanted[at] == 0)
        return;
    uint32_t place = (pipe_output_in_middle(p, reshard) ? p->middle : p->last)[p->group];
    uint32_t first = pipe_first_run(p, reshard);
    for (uint32_t run = first; run < first + p->nmicrobatches; run++) {
        uint64_t hosts = pipe_output_hosts(p, reshard, run);
        want(p, reshard->from, run, hosts == 0 ? p->wanted[at] : hosts, place - 1);
    }
}

static void want_reshard(piping *p, uint32_t index)
{
    const sf_resharding *reshard = &p->t->b->reshards->reshards[index];
    if (is_loop_output(p->t, reshard)) {
        want_output(p, index);
        return;
    }
    for (uint32_t run = 0; run < pipe_runs(p, is_microbatched_version(p->t, reshard->to)); run++)
        want_through(p, reshard->from, reshard->to,
                     (pipe_doing){.is_reshard = true, .index = index, .run = run});
}

static void want_barrier(piping *p, const sf_node *node)
{
    uint32_t count;
    const uint32_t *reads = microbatch_reads(p->t, node->id, &count);
    for (uint32_t r = 0; r < node->nresults; r++) {
        uint32_t made = p->t->b->reshards->made[node->result + r];
        for (uint32_t run = 0; run < pipe_runs(p, is_microbatched_version(p->t, made)); run++)
            want_through(p, reads[r], made,
                         (pipe_doing){.index = node->id, .result = r, .run = run});
    }
}

static void want_node(piping *p, const sf_node *node, uint32_t run)
{
    const sf_reshards *m = p->t->b->reshards;
    uint32_t count, place = NEVER;
    const uint32_t *reads = microbatch_reads(p->t, node->id, &count);
    uint64_t groups = 0;
    for (uint32_t r = 0; r < node->nresults; r++) {
        size_t at = pipe_instance(p, m->made[node->result + r], run);
        groups |= p->wanted[at];
        place = pipe_first(place, p->due[at]);
    }
    if (groups == 0)
        return;
    if (!pipe_is_anywhere(p, node)) {
        groups = pipe_hosts(p, node, run);
        place = pipe_place(p, node, run, p->group);
    }
    for (uint32_t r = 0; r < count; r++)
        want(p, reads[r], run, groups, place);
    if (groups >> p->group & 1)
        do_at(p, place, (pipe_doing){.index = node->id, .run = run});
}

/* Results go to every pipeline rank, state to those that hold it. */
static void want_results(piping *p)
{
    const sf_block *top = p->t->step->top;
    uint64_t *groups = SF_ARRAY(&p->t->arena, top->nresults, uint64_t);
    for (uint32_t i = 0; i < top->nresults; i++)
        groups[i] = sf_all_groups(p->pipe->ngroups);
    for (uint32_t i = 0; i < top->narguments; i++) {
        uint64_t holders = sf_pipeline_holders(p->pipeline, p->t->step, i);
        uint32_t next = p->t->step->arguments[i].next;
        if (next != SF_NONE && holders != 0)
            groups[next] = holders;
    }
    for (uint32_t i = 0; i < top->nresults; i++)
        want(p, p->t->b->reshards->results[i], 0, groups[i], p->last[p->group]);
}

static void reverse_doings(pipe_doings *list)
{
    for (size_t i = 0, j = list->count; i + 1 < j; i++) {
        pipe_doing other = list->at[--j];
        list->at[j] = list->at[i];
        list->at[i] = other;
    }
}

void pipe_find_wanted(piping *p)
{
    const sf_reshards *m = p->t->b->reshards;
    want_results(p);
    for (size_t i = m->nsteps; i-- > 0;) {
        uint32_t index = m->steps[i].index;
        if (m->steps[i].is_reshard) {
            want_reshard(p, index);
            continue;
        }
        const sf_node *node = p->t->step->nodes[index];
        if (sf_is_transparent(node)) {
            want_barrier(p, node);
            continue;
        }
        for (uint32_t run = pipe_runs(p, is_microbatched_node(p->t, node)); run-- > 0;)
            want_node(p, node, run);
    }
    for (uint32_t place = 0; place <= p->last[p->group]; place++)
        reverse_doings(&p->doings[place]);
}
