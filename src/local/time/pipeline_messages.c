#include <stdlib.h>

#include "local/time/pipeline_builder.h"

static void note_message(piping *p, pipe_message m)
{
    if (m.from != m.to && (m.from == p->group || m.to == p->group))
        SF_PUSH(&p->t->arena, p->messages, p->nmessages, p->message_capacity, m);
}

/* Whether the node is computed in the run: in a survey, only predecessors of the survey's
 * outputs. */
static bool is_run(const piping *p, const sf_node *node, uint32_t run)
{
    for (uint32_t r = 0; r < node->nresults; r++)
        if (p->wanted[pipe_instance(p, p->t->b->reshards->made[node->result + r], run)] != 0)
            return true;
    return false;
}

/* From one of those that have it to those that want it and have it not, unless it is deferred. */
static void note_messages(piping *p, uint32_t from, uint64_t have, uint32_t version, uint32_t run,
                          uint32_t place)
{
    uint64_t wanted = p->wanted[pipe_instance(p, version, run)];
    for (uint32_t to = 0; to < p->pipe->ngroups; to++) {
        pipe_message m = {from, to, .version = pipe_same(p, version), .run = run, .sent_at = place};
        if (wanted >> to & 1 && pipe_sends(have, from, to) && !pipe_defer(p, &m))
            note_message(p, m);
    }
}

/* The order of a pipeline rank at one position after its tasks: parts of sums, then sums, then
 * nodes, then deferred messages. */
typedef enum coming_kind { COMING_PART, COMING_SUM, COMING_NODE, COMING_DEFERRED } coming_kind;

typedef struct coming {
    uint32_t place;
    coming_kind kind;
    uint32_t item; /* of the step's list; deferred: how many precede it */
    uint32_t run;
    pipe_message deferred;
} coming;

typedef struct comings {
    coming *at;
    size_t count, capacity;
} comings;

static int compare_numbers(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

static int compare_comings(const void *a, const void *b)
{
    const coming *x = a, *y = b;
    int order = compare_numbers(x->place, y->place);
    order = order ? order : compare_numbers(x->kind, y->kind);
    order = order ? order : compare_numbers(x->item, y->item);
    return order ? order : compare_numbers(x->run, y->run);
}
/* Whether the pipeline rank adds up some of the micro-batches. */
static bool has_parts(const piping *p, const sf_resharding *reshard, uint32_t group)
{
    for (uint32_t microbatch = 0; microbatch < p->nmicrobatches; microbatch++)
        if (pipe_output_hosts(p, reshard, microbatch) >> group & 1)
            return true;
    return false;
}

static void list_coming(piping *p, comings *list, coming c)
{
    SF_PUSH(&p->t->arena, list->at, list->count, list->capacity, c);
}

/* A value that is the same in all micro-batches, to those for whom it can be deferred. */
static void list_deferred(piping *p, uint32_t from, uint64_t have, uint32_t version, uint32_t place,
                          comings *list)
{
    uint64_t wanted = p->wanted[pipe_instance(p, version, 0)];
    for (uint32_t to = 0; to < p->pipe->ngroups; to++) {
        pipe_message m = {from, to, .version = pipe_same(p, version), .sent_at = place};
        if (wanted >> to & 1 && pipe_sends(have, from, to) && pipe_defer(p, &m))
            list_coming(p, list,
                        (coming){.place = m.sent_at,
                                 .kind = COMING_DEFERRED,
                                 .item = (uint32_t)list->count,
                                 .deferred = m});
    }
}

/* `lists` is by pipeline rank. */
static void list_output(piping *p, uint32_t item, comings *lists)
{
    const sf_resharding *reshard =
        &p->t->b->reshards->reshards[p->t->b->reshards->steps[item].index];
    if (!is_loop_output(p->t, reshard) || p->wanted[pipe_instance(p, reshard->to, 0)] == 0)
        return;
    uint64_t home = pipe_output_hosts(p, reshard, 0);
    const uint32_t *places = pipe_output_in_middle(p, reshard) ? p->middle : p->last;
    for (uint32_t group = 0; group < p->pipe->ngroups; group++) {
        bool is_home = home >> group & 1;
        if (is_home || has_parts(p, reshard, group))
            list_coming(p, &lists[group],
                        (coming){.place = places[group],
                                 .kind = is_home ? COMING_SUM : COMING_PART,
                                 .item = item});
    }
}

/* Whether the shards of the node in the run are a message of the pipeline rank whose step is
 * made. */
static bool is_sent(const piping *p, const sf_node *node, uint32_t run, uint64_t have)
{
    uint64_t wanted = 0;
    for (uint32_t r = 0; r < node->nresults; r++)
        wanted |= p->wanted[pipe_instance(p, p->t->b->reshards->made[node->result + r], run)];
    wanted &= ~have;
    return (uint32_t)__builtin_ctzll(have) == p->group ? wanted != 0 : wanted >> p->group & 1;
}

static void list_node(piping *p, uint32_t item, comings *lists)
{
    const sf_node *node = p->t->step->nodes[p->t->b->reshards->steps[item].index];
    uint32_t runs = pipe_is_anywhere(p, node) ? 0 : pipe_runs(p, is_microbatched_node(p->t, node));
    for (uint32_t run = 0; run < runs; run++) {
        uint64_t have = pipe_hosts(p, node, run);
        if (have == 0 || !is_sent(p, node, run, have))
            continue;
        uint32_t from = (uint32_t)__builtin_ctzll(have);
        uint32_t place = pipe_place(p, node, run, from);
        for (uint32_t r = 0; r < node->nresults && !is_microbatched_node(p->t, node); r++)
            list_deferred(p, from, have, p->t->b->reshards->made[node->result + r], place,
                          &lists[from]);
        list_coming(p, &lists[from],
                    (coming){.place = place, .kind = COMING_NODE, .item = item, .run = run});
    }
}

static void note_coming(piping *p, uint32_t group, const coming *c)
{
    const sf_reshards *m = p->t->b->reshards;
    if (c->kind == COMING_DEFERRED) {
        note_message(p, c->deferred);
        return;
    }
    const sf_step_item *item = &m->steps[c->item];
    if (c->kind == COMING_NODE) {
        const sf_node *node = p->t->step->nodes[item->index];
        for (uint32_t r = 0; r < node->nresults; r++)
            note_messages(p, group, pipe_hosts(p, node, c->run), m->made[node->result + r], c->run,
                          c->place);
        return;
    }
    const sf_resharding *reshard = &m->reshards[item->index];
    if (c->kind == COMING_SUM)
        note_messages(p, group, pipe_output_hosts(p, reshard, 0), reshard->to, 0, c->place);
    else
        note_message(
            p, (pipe_message){.from = group,
                              .to = (uint32_t)__builtin_ctzll(pipe_output_hosts(p, reshard, 0)),
                              .version = pipe_same(p, reshard->to),
                              .is_part = true,
                              .sent_at = c->place});
}

/* Lists the sends of a pipeline rank in its order. */
static void note_sent(piping *p, uint32_t group, comings *list)
{
    const sf_reshards *m = p->t->b->reshards;
    const sf_block *top = p->t->step->top;
    for (uint32_t i = 0; i < top->narguments; i++) {
        uint64_t holders = sf_pipeline_holders(p->pipeline, p->t->step, i);
        if (!(holders >> group & 1))
            continue;
        list_deferred(p, group, holders, m->made[top->arguments[i]], 0, list);
        note_messages(p, group, holders, m->made[top->arguments[i]], 0, 0);
    }
    if (list->count > 0)
        qsort(list->at, list->count, sizeof *list->at, compare_comings);
    for (size_t i = 0; i < list->count; i++)
        note_coming(p, group, &list->at[i]);
}

static void note_all_sent(piping *p)
{
    const sf_reshards *m = p->t->b->reshards;
    comings *lists = SF_ARRAY(&p->t->arena, p->pipe->ngroups, comings);
    for (uint32_t i = 0; i < m->nsteps; i++)
        (m->steps[i].is_reshard ? list_output : list_node)(p, i, lists);
    for (uint32_t group = 0; group < p->pipe->ngroups; group++)
        note_sent(p, group, &lists[group]);
}

uint32_t pipe_find_use(const piping *p, const pipe_message *m)
{
    const microbatching *t = p->t;
    sf_value value = t->b->reshards->versions[m->version].value;
    uint32_t place = NEVER;
    for (uint32_t u = t->uses.first[value]; u < t->uses.first[value + 1]; u++) {
        const sf_node *node =
            t->uses.at[u].node == SF_NONE ? NULL : t->step->nodes[t->uses.at[u].node];
        if (!node || t->uses.at[u].operand == SF_NONE || pipe_is_anywhere(p, node))
            continue;
        if (pipe_hosts(p, node, m->run) >> m->to & 1 && is_run(p, node, m->run))
            place = pipe_first(place, pipe_place(p, node, m->run, m->to));
    }
    return place;
}

/* A send has arrived once its receiver used it, before the receiver sends a message back. */
static void find_arrived(piping *p)
{
    pipe_channel *out = SF_ARRAY(&p->t->arena, p->pipe->ngroups, pipe_channel);
    for (uint32_t i = 0; i < p->nmessages; i++) {
        pipe_message *m = &p->messages[i];
        if (m->to == p->group)
            continue;
        pipe_channel *c = &out[m->to];
        m->used_at = m->is_part ? NEVER : pipe_find_use(p, m);
        SF_PUSH(&p->t->arena, c->at, c->count, c->capacity, i);
    }
    for (uint32_t group = 0; group < p->pipe->ngroups; group++) {
        const pipe_channel *in = &p->channels[group];
        pipe_channel *back = &out[group];
        for (size_t i = 0; i < in->count; i++) {
            pipe_message *m = &p->messages[in->at[i]];
            while (back->received < back->count &&
                   p->messages[back->at[back->received]].used_at < m->sent_at)
                back->received++;
            m->arrived = (int64_t)back->received;
        }
    }
}

void pipe_list_messages(piping *p)
{
    int64_t *sent = SF_ARRAY(&p->t->arena, p->pipe->ngroups, int64_t);
    note_all_sent(p);
    for (uint32_t i = (uint32_t)p->nmessages; i-- > 0;) {
        pipe_message *m = &p->messages[i];
        size_t at = pipe_instance(p, m->version, m->run);
        uint32_t *first = m->from == p->group ? &p->outgoing[at] : &p->incoming[at];
        m->next = *first;
        *first = i + 1;
    }
    for (uint32_t i = 0; i < p->nmessages; i++) {
        pipe_message *m = &p->messages[i];
        pipe_channel *c = &p->channels[m->from];
        m->number = m->from == p->group ? sent[m->to]++ : (int64_t)c->count;
        if (m->to == p->group)
            SF_PUSH(&p->t->arena, c->at, c->count, c->capacity, i);
    }
    find_arrived(p);
}
