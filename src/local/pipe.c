#include "local/pipe.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ir/clone.h"
#include "ir/name.h"
#include "local/turning.h"
#include "op/slots.h"

enum { NEVER = UINT32_MAX };

/* A version of a value in a turn, still ones in turn 0: an instance. */
typedef struct message {
    uint32_t from, to; /* groups */
    uint32_t version, turn;
    bool is_part;   /* of a sum that is made in several groups */
    int64_t number; /* among those between the two, in this direction */
    uint32_t sent_at,
        used_at; /* the place in the order of who sends, and of who receives; NEVER: not known */
    int64_t arrived; /* messages the other way that have been used where it is sent */
    uint32_t
        next; /* that takes the same instance elsewhere, or brings another part of it, counted from 1; 0: none */
} message;

/* Messages from one group, in order. */
typedef struct channel {
    uint32_t *at;
    size_t count, capacity, received;
} channel;

/* What the group does at a place in its order: a node or a move in a turn, or what a barrier hands on. */
typedef struct doing {
    bool is_move;
    uint32_t index;  /* node id, or move */
    uint32_t result; /* of a barrier */
    uint32_t turn;
} doing;

typedef struct doings {
    doing *at;
    size_t count, capacity;
} doings;

typedef struct piping {
    turning *t;
    const sf_pipeline *pipeline;
    const sf_pipe *pipe;
    uint32_t group, nturns;
    uint64_t *wanted; /* by instance: the groups that need it */
    uint32_t *due;    /* by instance: the first place of this group that needs it, or NEVER */
    bool *leads;      /* by version: other stages of the backward pass follow from it */
    uint32_t **
        places; /* by group, and by stage, pass and turn: the place of the task in the order of the group */
    uint32_t nplaces; /* of tasks of this group; behind them, what follows */
    doings *doings;   /* by place, one more than there are tasks */

    local_version **versions; /* by turn, and at the end, those that are still */
    uint32_t *landing_of;     /* by version: the first move that lands it, counted from 1, */
    uint32_t *next_landing;   /* and by move, the next */
    turn_landing *landings;   /* by move, where it lands */
    sf_value *sums;           /* by move: so far; SF_NONE: no part yet */

    message *
        messages; /* to and from this group, those between two in the order in which they are sent */
    size_t nmessages, message_capacity;
    uint32_t *outgoing; /* by instance: the first message that takes it elsewhere, counted from 1 */
    uint32_t *incoming; /* by instance: the first message that brings it, or a part of it */
    channel *channels;  /* by group that sends */
} piping;

static uint32_t first_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Where things are ------------------------------------------------------------------------------- */

static uint32_t version_same(const piping *p, uint32_t version)
{
    return p->t->b->moves->versions[version].same;
}

static size_t instance(const piping *p, uint32_t version, uint32_t turn)
{
    uint32_t at = version_same(p, version);
    return (size_t)at * p->nturns + (turns_version(p->t, at) ? turn : 0);
}

static bool is_anywhere(const piping *p, const sf_node *node)
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
static uint32_t host_of(const piping *p, const sf_node *node, uint32_t turn)
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

/* Behind the sums of turns: it is no part of any task. */
static bool is_behind(const piping *p, const sf_node *node)
{
    uint32_t count;
    const uint32_t *reads = turn_reads(p->t, node->id, &count);
    if (turns_node(p->t, node))
        return false;
    for (uint32_t r = 0; r < count; r++)
        if (p->t->behind[version_same(p, reads[r])] > 0)
            return true;
    return node->phase == SF_UPDATE && !is_small(p, node);
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
static uint32_t place_of(const piping *p, const sf_node *node, uint32_t turn)
{
    uint32_t group = host_of(p, node, turn), last = p->pipeline->schedule.ntasks[group];
    if (is_behind(p, node))
        return last;
    if (node->phase == SF_UPDATE && !turns_node(p->t, node))
        return 0;
    sf_task task = {stage_of(p, node), turns_node(p->t, node) ? turn : 0, pass_of(p, node)};
    return first_of(p->places[group][task_index(p, task)], last);
}

/* Who needs what ---------------------------------------------------------------------------------- */

static void want(piping *p, uint32_t version, uint32_t turn, uint64_t groups, uint32_t place)
{
    size_t at = instance(p, version, turn);
    p->wanted[at] |= groups;
    if (groups >> p->group & 1)
        p->due[at] = first_of(p->due[at], place);
}

static uint32_t turns_of(const piping *p, bool turns)
{
    return turns ? p->nturns : 1;
}

static void do_at(piping *p, uint32_t place, doing d)
{
    doings *list = &p->doings[place];
    SF_PUSH(&p->t->arena, list->at, list->count, list->capacity, d);
}

/* A barrier hands on each operand by itself, as a move does. */
static void want_through(piping *p, uint32_t from, uint32_t to, doing d)
{
    size_t at = instance(p, to, d.turn);
    if (p->wanted[at] == 0)
        return;
    want(p, from, d.turn, p->wanted[at], p->due[at]);
    if (p->wanted[at] >> p->group & 1)
        do_at(p, p->due[at], d);
}

/* Sums are where their parts are made; rows of what is made anywhere, too. */
static uint32_t host_of_landing(const piping *p, const sf_moving *move, uint32_t turn)
{
    const sf_node *maker = sf_maker(p->t->step, move->value);
    return maker && !is_anywhere(p, maker) ? host_of(p, maker, turn) : SF_NONE;
}

static void want_landing(piping *p, uint32_t index)
{
    const sf_moving *move = &p->t->b->moves->moves[index];
    size_t at = instance(p, move->to, 0);
    if (p->wanted[at] == 0)
        return;
    for (uint32_t turn = 0; turn < p->nturns; turn++) {
        uint32_t host = host_of_landing(p, move, turn);
        want(p, move->from, turn, host == SF_NONE ? p->wanted[at] : (uint64_t)1 << host,
             p->nplaces - 1);
    }
}

static void want_move(piping *p, uint32_t index)
{
    const sf_moving *move = &p->t->b->moves->moves[index];
    if (turn_lands(p->t, move)) {
        want_landing(p, index);
        return;
    }
    for (uint32_t turn = 0; turn < turns_of(p, turns_version(p->t, move->to)); turn++)
        want_through(p, move->from, move->to,
                     (doing){.is_move = true, .index = index, .turn = turn});
}

static void want_barrier(piping *p, const sf_node *node)
{
    uint32_t count;
    const uint32_t *reads = turn_reads(p->t, node->id, &count);
    for (uint32_t r = 0; r < node->nresults; r++) {
        uint32_t made = p->t->b->moves->made[node->result + r];
        for (uint32_t turn = 0; turn < turns_of(p, turns_version(p->t, made)); turn++)
            want_through(p, reads[r], made, (doing){.index = node->id, .result = r, .turn = turn});
    }
}

static void want_node(piping *p, const sf_node *node, uint32_t turn)
{
    const sf_moves *m = p->t->b->moves;
    uint32_t count, place = NEVER;
    const uint32_t *reads = turn_reads(p->t, node->id, &count);
    uint64_t groups = 0;
    for (uint32_t r = 0; r < node->nresults; r++) {
        size_t at = instance(p, m->made[node->result + r], turn);
        groups |= p->wanted[at];
        place = first_of(place, p->due[at]);
    }
    if (groups == 0)
        return;
    if (!is_anywhere(p, node)) {
        groups = (uint64_t)1 << host_of(p, node, turn);
        place = place_of(p, node, turn);
    }
    for (uint32_t r = 0; r < count; r++)
        want(p, reads[r], turn, groups, place);
    if (groups >> p->group & 1)
        do_at(p, place, (doing){.index = node->id, .turn = turn});
}

/* Results go to every group, state to the one that holds it. */
static void want_results(piping *p)
{
    const sf_block *top = p->t->step->top;
    uint64_t all = p->pipe->ngroups == 64 ? UINT64_MAX : ((uint64_t)1 << p->pipe->ngroups) - 1;
    uint64_t *groups = SF_ARRAY(&p->t->arena, top->nresults, uint64_t);
    for (uint32_t i = 0; i < top->nresults; i++)
        groups[i] = all;
    for (uint32_t i = 0; i < top->narguments; i++) {
        uint32_t holder = sf_pipeline_holder(p->pipeline, p->t->step, i);
        uint32_t next = p->t->step->arguments[i].next;
        if (next != SF_NONE && holder != SF_NONE)
            groups[next] = (uint64_t)1 << holder;
    }
    for (uint32_t i = 0; i < top->nresults; i++)
        want(p, p->t->b->moves->results[i], 0, groups[i], p->nplaces);
}

static void reverse_doings(doings *list)
{
    for (size_t i = 0, j = list->count; i + 1 < j; i++) {
        doing other = list->at[--j];
        list->at[j] = list->at[i];
        list->at[i] = other;
    }
}

static void find_wanted(piping *p)
{
    const sf_moves *m = p->t->b->moves;
    want_results(p);
    for (size_t i = m->nsteps; i-- > 0;) {
        uint32_t index = m->steps[i].index;
        if (m->steps[i].is_move) {
            want_move(p, index);
            continue;
        }
        const sf_node *node = p->t->step->nodes[index];
        if (sf_is_transparent(node)) {
            want_barrier(p, node);
            continue;
        }
        for (uint32_t turn = turns_of(p, turns_node(p->t, node)); turn-- > 0;)
            want_node(p, node, turn);
    }
    for (uint32_t place = 0; place <= p->nplaces; place++)
        reverse_doings(&p->doings[place]);
}

/* What of the backward pass other stages go on from. */
static void find_leading(piping *p)
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
            bool crosses = maker && !is_anywhere(p, node) && !is_anywhere(p, maker) &&
                           stage_of(p, maker) != stage_of(p, node);
            p->leads[reads[r]] = p->leads[reads[r]] || leads || crosses;
        }
    }
}

/* Messages ---------------------------------------------------------------------------------------- */

static void note_message(piping *p, message m)
{
    if (m.from != m.to && (m.from == p->group || m.to == p->group))
        SF_PUSH(&p->t->arena, p->messages, p->nmessages, p->message_capacity, m);
}

static void note_messages(piping *p, uint32_t from, uint32_t version, uint32_t turn, uint32_t place)
{
    uint64_t wanted = p->wanted[instance(p, version, turn)];
    for (uint32_t to = 0; to < p->pipe->ngroups; to++)
        if (wanted >> to & 1)
            note_message(p, (message){.from = from,
                                      .to = to,
                                      .version = version_same(p, version),
                                      .turn = turn,
                                      .sent_at = place});
}

/* What a group comes to: parts of sums first of what follows its tasks, then sums, then nodes. */
typedef enum coming_kind { COMING_PART, COMING_SUM, COMING_NODE } coming_kind;

typedef struct coming {
    uint32_t place;
    coming_kind kind;
    uint32_t item; /* of the step's list */
    uint32_t turn;
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
    return order ? order : compare_numbers(x->turn, y->turn);
}

/* The places of tasks in the orders of all groups. */
static void find_places(piping *p)
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
}

/* Whether the group adds up some of the turns. */
static bool has_parts(const piping *p, const sf_moving *move, uint32_t group)
{
    for (uint32_t turn = 0; turn < p->nturns; turn++)
        if (host_of_landing(p, move, turn) == group)
            return true;
    return false;
}

static void list_landing(piping *p, uint32_t item, uint32_t group, comings *list)
{
    const sf_moving *move = &p->t->b->moves->moves[p->t->b->moves->steps[item].index];
    if (!turn_lands(p->t, move) || p->wanted[instance(p, move->to, 0)] == 0)
        return;
    bool is_home = host_of_landing(p, move, 0) == group;
    coming c = {p->pipeline->schedule.ntasks[group], is_home ? COMING_SUM : COMING_PART, item, 0};
    if (is_home || has_parts(p, move, group))
        SF_PUSH(&p->t->arena, list->at, list->count, list->capacity, c);
}

static void list_node(piping *p, uint32_t item, uint32_t group, comings *list)
{
    const sf_node *node = p->t->step->nodes[p->t->b->moves->steps[item].index];
    if (is_anywhere(p, node))
        return;
    for (uint32_t turn = 0; turn < turns_of(p, turns_node(p->t, node)); turn++) {
        coming c = {place_of(p, node, turn), COMING_NODE, item, turn};
        if (host_of(p, node, turn) == group)
            SF_PUSH(&p->t->arena, list->at, list->count, list->capacity, c);
    }
}

static void note_coming(piping *p, uint32_t group, const coming *c)
{
    const sf_moves *m = p->t->b->moves;
    const sf_step_item *item = &m->steps[c->item];
    if (c->kind == COMING_NODE) {
        const sf_node *node = p->t->step->nodes[item->index];
        for (uint32_t r = 0; r < node->nresults; r++)
            note_messages(p, group, m->made[node->result + r], c->turn, c->place);
        return;
    }
    const sf_moving *move = &m->moves[item->index];
    if (c->kind == COMING_SUM)
        note_messages(p, group, move->to, 0, c->place);
    else
        note_message(p, (message){.from = group,
                                  .to = host_of_landing(p, move, 0),
                                  .version = version_same(p, move->to),
                                  .is_part = true,
                                  .sent_at = c->place});
}

/* What the group sends, in the order in which it comes to it; first its arguments. */
static void list_sent(piping *p, uint32_t group)
{
    const sf_moves *m = p->t->b->moves;
    const sf_block *top = p->t->step->top;
    comings list = {0};
    for (uint32_t i = 0; i < top->narguments; i++)
        if (sf_pipeline_holder(p->pipeline, p->t->step, i) == group)
            note_messages(p, group, m->made[top->arguments[i]], 0, 0);
    for (uint32_t i = 0; i < m->nsteps; i++) {
        if (m->steps[i].is_move)
            list_landing(p, i, group, &list);
        else
            list_node(p, i, group, &list);
    }
    if (list.count > 0)
        qsort(list.at, list.count, sizeof *list.at, compare_comings);
    for (size_t i = 0; i < list.count; i++)
        note_coming(p, group, &list.at[i]);
}

/* Where the receiver reads it at the latest for the first time; NEVER: that is not known. */
static uint32_t find_use(const piping *p, const message *m)
{
    const turning *t = p->t;
    sf_value value = t->b->moves->versions[m->version].value;
    uint32_t place = NEVER;
    for (uint32_t u = t->uses.first[value]; u < t->uses.first[value + 1]; u++) {
        const sf_node *node =
            t->uses.at[u].node == SF_NONE ? NULL : t->step->nodes[t->uses.at[u].node];
        if (!node || t->uses.at[u].operand == SF_NONE || is_anywhere(p, node))
            continue;
        if (host_of(p, node, m->turn) == m->to)
            place = first_of(place, place_of(p, node, m->turn));
    }
    return place;
}

/* What this group sent has arrived where the other has used it, before it sends something back. */
static void find_arrived(piping *p)
{
    channel *out = SF_ARRAY(&p->t->arena, p->pipe->ngroups, channel);
    for (uint32_t i = 0; i < p->nmessages; i++) {
        message *m = &p->messages[i];
        if (m->to == p->group)
            continue;
        channel *c = &out[m->to];
        m->used_at = m->is_part ? NEVER : find_use(p, m);
        SF_PUSH(&p->t->arena, c->at, c->count, c->capacity, i);
    }
    for (uint32_t group = 0; group < p->pipe->ngroups; group++) {
        const channel *in = &p->channels[group];
        channel *back = &out[group];
        for (size_t i = 0; i < in->count; i++) {
            message *m = &p->messages[in->at[i]];
            while (back->received < back->count &&
                   p->messages[back->at[back->received]].used_at < m->sent_at)
                back->received++;
            m->arrived = (int64_t)back->received;
        }
    }
}

static void list_messages(piping *p)
{
    int64_t *sent = SF_ARRAY(&p->t->arena, p->pipe->ngroups, int64_t);
    for (uint32_t group = 0; group < p->pipe->ngroups; group++)
        list_sent(p, group);
    for (uint32_t i = (uint32_t)p->nmessages; i-- > 0;) {
        message *m = &p->messages[i];
        size_t at = instance(p, m->version, m->turn);
        uint32_t *first = m->from == p->group ? &p->outgoing[at] : &p->incoming[at];
        m->next = *first;
        *first = i + 1;
    }
    for (uint32_t i = 0; i < p->nmessages; i++) {
        message *m = &p->messages[i];
        channel *c = &p->channels[m->from];
        m->number = m->from == p->group ? sent[m->to]++ : (int64_t)c->count;
        if (m->to == p->group)
            SF_PUSH(&p->t->arena, c->at, c->count, c->capacity, i);
    }
    find_arrived(p);
}

/* How a value stands in a group that makes it, and in one that reads it, while it goes from one to the other: as few
 * bytes as either has it in, and complete. */
static sf_layout message_layout(const piping *p, uint32_t version)
{
    const turning *t = p->t;
    const sf_value_version *v = &t->b->moves->versions[version];
    const sf_type *type = sf_type_of(t->step, v->value);
    sf_layout best, layout;
    double least = -1;
    sf_layout made = *sf_plan_layout(t->space, t->step, v->value);
    if (!sf_layout_is_partial(&made) && turn_layout(t, v->layout, &made, &best))
        least = sf_piece_bytes(type, &made, &t->space->mesh);
    for (uint32_t u = t->uses.first[v->value]; u < t->uses.first[v->value + 1]; u++) {
        sf_value_use use = t->uses.at[u];
        if (use.node == SF_NONE || use.operand == SF_NONE)
            continue;
        const sf_layout *want = &t->space->nodes[use.node][use.operand];
        double bytes = sf_piece_bytes(type, want, &t->space->mesh);
        if (!sf_layout_is_partial(want) && (least < 0 || bytes < least) &&
            turn_layout(t, v->layout, want, &layout)) {
            best = layout;
            least = bytes;
        }
    }
    return least < 0 ? turn_still : best;
}

static const sf_node *add_message(piping *p, const message *m, sf_opcode code, sf_value *operand,
                                  const sf_type *type)
{
    local_builder *b = p->t->b;
    sf_pool *pool = b->graph->pool;
    sf_buf name = {0};
    const sf_value_version *v = &b->moves->versions[m->version];
    const char *what = sf_value_name(p->t->step, v->value, &name);
    const sf_attr *attrs[SF_MESSAGE_SLOTS] = {
        [SF_COLLECTIVE_AXES] = sf_attr_int(pool, 1 << p->pipeline->axis),
        [SF_COLLECTIVE_SIZE] = sf_attr_int(pool, p->pipe->ngroups),
        [SF_COLLECTIVE_NUMBER] = sf_attr_int(pool, m->number),
        [SF_COLLECTIVE_WHAT] = sf_attr_text(pool, sf_str_of(what)),
        [SF_MESSAGE_PEER] = sf_attr_int(pool, operand ? m->to : m->from),
        [SF_MESSAGE_ARRIVED] = m->arrived > 0 ? sf_attr_int(pool, m->arrived) : NULL,
    };
    sf_buf_free(&name);
    sf_node_spec spec = {.def = sf_opdef_get(code),
                         .noperands = operand ? 1 : 0,
                         .operands = operand,
                         .nresults = operand ? 0 : 1,
                         .types = &type,
                         .attrs = attrs,
                         .scope = b->scope,
                         .phase = b->phase,
                         .loc = b->loc};
    const sf_node *node = sf_graph_add(b->graph, b->block, &spec);
    sf_layout layout = message_layout(p, m->version);
    turn_settle(p->t, node, &layout);
    return node;
}

static void enter_turn(piping *p, uint32_t turn, bool turns)
{
    p->t->b->versions = p->versions[turns ? turn : p->nturns];
    p->t->b->rank = (int)turn;
}

static void note_where(piping *p, sf_value value)
{
    const sf_node *maker = sf_maker(p->t->step, value);
    local_note_place(p->t->b, maker, maker ? maker->phase : SF_FORWARD);
}

static sf_value receive_value(piping *p, const message *m)
{
    local_builder *b = p->t->b;
    const sf_value_version *v = &b->moves->versions[m->version];
    note_where(p, v->value);
    const sf_type *type = local_type(b, sf_type_of(p->t->step, v->value), v->layout);
    return add_message(p, m, SF_OP_RECEIVE, NULL, type)->result;
}

static void receive_message(piping *p, const message *m)
{
    local_builder *b = p->t->b;
    enter_turn(p, m->turn, turns_version(p->t, m->version));
    sf_value value = receive_value(p, m);
    if (!m->is_part) {
        local_set(b, m->version, value);
        return;
    }
    uint32_t move = b->moves->versions[m->version].move;
    p->sums[move] = turn_landing_join(p->t, &p->landings[move], p->sums[move], value);
}

/* All messages from that group up to this one: in the order in which they were sent. */
static void receive_up_to(piping *p, const message *m)
{
    channel *c = &p->channels[m->from];
    while ((int64_t)c->received <= m->number)
        receive_message(p, &p->messages[c->at[c->received++]]);
}

/* What is needed now, and is made elsewhere. It is received here, and not before, so that nothing that waits for it comes
 * before what is sent until now; lowering lets it begin earlier (prog/order.c). */
static void receive_version(piping *p, uint32_t version, uint32_t turn)
{
    for (uint32_t i = p->incoming[instance(p, version, turn)]; i > 0; i = p->messages[i - 1].next)
        receive_up_to(p, &p->messages[i - 1]);
}

static void send_version(piping *p, uint32_t version, uint32_t turn, bool is_part)
{
    local_builder *b = p->t->b;
    uint32_t at = version_same(p, version);
    for (uint32_t i = p->outgoing[instance(p, at, turn)]; i > 0; i = p->messages[i - 1].next) {
        const message *m = &p->messages[i - 1];
        if (m->is_part != is_part)
            continue;
        sf_value value = local_value(b, at);
        note_where(p, b->moves->versions[at].value);
        add_message(p, m, SF_OP_SEND, &value, NULL);
    }
}

/* Emitting ---------------------------------------------------------------------------------------- */

/* Still values are in the turn as they are. */
static void bring_still(piping *p, uint32_t version)
{
    uint32_t at = version_same(p, version);
    if (!turns_version(p->t, at))
        p->t->b->versions[at] = p->versions[p->nturns][at];
}

static void bring_reads(piping *p, uint32_t count, const uint32_t *reads, uint32_t turn, bool turns)
{
    for (uint32_t r = 0; r < count; r++) {
        uint32_t at = version_same(p, reads[r]);
        receive_version(p, at, turn);
        if (!turns || turns_version(p->t, at))
            continue;
        enter_turn(p, turn, false);
        local_value(p->t->b, at); /* what was summed is brought into shape once, for all */
        enter_turn(p, turn, true);
        bring_still(p, at);
    }
    enter_turn(p, turn, turns);
}

/* The part of a turn in what its results add up to. */
static void land_version(piping *p, uint32_t version, uint32_t turn)
{
    local_builder *b = p->t->b;
    for (uint32_t at = p->landing_of[version]; at > 0; at = p->next_landing[at - 1]) {
        const sf_moving *move = &b->moves->moves[at - 1];
        turn_landing *l = &p->landings[at - 1];
        sf_value *sum = &p->sums[at - 1];
        if (p->wanted[instance(p, move->to, 0)] == 0)
            continue;
        if (!l->type)
            *l = turn_land(p->t, at - 1);
        if (*sum == SF_NONE && !l->is_sum)
            *sum = turn_landing_start(p->t, l);
        sf_value number =
            l->is_sum ? SF_NONE : emit_number(b, sf_type_scalar(b->graph->pool, SF_S32), turn);
        *sum = turn_landing_add(p->t, l, *sum, number);
    }
}

static sf_status add_doing_node(piping *p, const sf_node *node, uint32_t turn)
{
    uint32_t count;
    const uint32_t *reads = turn_reads(p->t, node->id, &count);
    bool turns = turns_node(p->t, node);
    const sf_moves *m = p->t->b->moves;
    bring_reads(p, count, reads, turn, turns);
    SF_TRY(local_add_node(p->t->b, node));
    SF_TRY(turn_settle_same(p->t, node));
    for (uint32_t r = 0; r < node->nresults; r++) {
        if (turns && turns_version(p->t, m->made[node->result + r]))
            land_version(p, version_same(p, m->made[node->result + r]), turn);
        if (!is_anywhere(p, node))
            send_version(p, m->made[node->result + r], turn, false);
    }
    return SF_OK;
}

static sf_status add_doing(piping *p, const doing *d)
{
    const sf_moves *m = p->t->b->moves;
    uint32_t count;
    if (!d->is_move) {
        const sf_node *node = p->t->step->nodes[d->index];
        if (!sf_is_transparent(node))
            return add_doing_node(p, node, d->turn);
        const uint32_t *reads = turn_reads(p->t, node->id, &count);
        bool turns = turns_version(p->t, m->made[node->result + d->result]);
        bring_reads(p, 1, &reads[d->result], d->turn, turns);
        turn_add_barrier(p->t, node, d->result);
        return SF_OK;
    }
    const sf_moving *move = &m->moves[d->index];
    bool turns = turns_version(p->t, move->to);
    bring_reads(p, 1, &move->from, d->turn, turns);
    local_make_move(p->t->b, d->index);
    if (turns)
        land_version(p, version_same(p, move->to), d->turn);
    return SF_OK;
}

/* What the turns have added up to: parts of sums that another group has go there, then those that come from elsewhere are
 * added. */
static void close_landings(piping *p, bool at_home)
{
    const sf_moves *m = p->t->b->moves;
    for (size_t item = 0; item < m->nsteps; item++) {
        uint32_t i = m->steps[item].index;
        if (!m->steps[item].is_move || p->sums[i] == SF_NONE)
            continue;
        const sf_moving *move = &m->moves[i];
        uint32_t home = host_of_landing(p, move, 0);
        if ((home == p->group || home == SF_NONE) != at_home)
            continue;
        if (at_home)
            receive_version(p, move->to, 0);
        enter_turn(p, 0, false);
        p->versions[p->nturns][move->to].raw = turn_landing_end(p->t, &p->landings[i], p->sums[i]);
        send_version(p, move->to, 0, !at_home);
        if (!at_home)
            p->versions[p->nturns][move->to] = (local_version){SF_NONE, SF_NONE};
    }
}

static sf_status add_tasks(piping *p)
{
    for (uint32_t place = 0; place <= p->nplaces; place++) {
        const doings *list = &p->doings[place];
        if (place == p->nplaces) {
            close_landings(p, false);
            close_landings(p, true);
        }
        for (size_t i = 0; i < list->count; i++)
            SF_TRY(add_doing(p, &list->at[i]));
    }
    return SF_OK;
}

/* The step ---------------------------------------------------------------------------------------- */

/* What another group holds is empty here. */
static void add_arguments(piping *p)
{
    local_builder *b = p->t->b;
    const sf_block *top = p->t->step->top;
    sf_graph_clone_head(p->t->step, b->graph);
    enter_turn(p, 0, false);
    for (uint32_t i = 0; i < top->narguments; i++) {
        const sf_type *type = sf_argument_type(p->t->step, i);
        const int64_t none[] = {0};
        if (!p->t->held[i])
            type = sf_type_get(b->graph->pool, type->dtype, 1, none);
        sf_value argument = sf_block_argument(b->graph, b->graph->top, type);
        b->graph->arguments[i].gradient = SF_NONE;
        if (p->t->held[i])
            local_set(b, b->moves->made[top->arguments[i]], argument);
        if (p->t->held[i] && sf_pipeline_holder(p->pipeline, p->t->step, i) == p->group)
            send_version(p, b->moves->made[top->arguments[i]], 0, false);
    }
}

static void add_results(piping *p)
{
    local_builder *b = p->t->b;
    const sf_block *top = p->t->step->top;
    sf_value *results = SF_ARRAY(&p->t->arena, top->nresults, sf_value);
    for (uint32_t i = 0; i < top->nresults; i++)
        results[i] = SF_NONE;
    for (uint32_t i = 0; i < top->narguments; i++)
        if (!p->t->held[i] && p->t->step->arguments[i].next != SF_NONE)
            results[p->t->step->arguments[i].next] = b->graph->top->arguments[i];
    for (uint32_t i = 0; i < top->nresults; i++)
        if (results[i] == SF_NONE) {
            bring_reads(p, 1, &b->moves->results[i], 0, false);
            results[i] = local_value(b, b->moves->results[i]);
        }
    sf_block_return(b->graph, b->graph->top, top->nresults, results);
}

static void find_held(piping *p)
{
    const sf_block *top = p->t->step->top;
    p->t->held = SF_ARRAY(&p->t->arena, top->narguments, bool);
    for (uint32_t i = 0; i < top->narguments; i++) {
        uint32_t holder = sf_pipeline_holder(p->pipeline, p->t->step, i);
        p->t->held[i] = holder == SF_NONE || holder == p->group;
    }
}

static void open_pipe(piping *p)
{
    const sf_moves *m = p->t->b->moves;
    sf_arena *arena = &p->t->arena;
    size_t ninstances = m->nversions * p->nturns;
    p->wanted = SF_ARRAY(arena, ninstances, uint64_t);
    p->due = SF_ARRAY(arena, ninstances, uint32_t);
    p->outgoing = SF_ARRAY(arena, ninstances, uint32_t);
    p->incoming = SF_ARRAY(arena, ninstances, uint32_t);
    p->channels = SF_ARRAY(arena, p->pipe->ngroups, channel);
    p->landing_of = SF_ARRAY(arena, m->nversions, uint32_t);
    p->next_landing = SF_ARRAY(arena, m->nmoves, uint32_t);
    p->leads = SF_ARRAY(arena, m->nversions, bool);
    p->landings = SF_ARRAY(arena, m->nmoves, turn_landing);
    p->sums = SF_ARRAY(arena, m->nmoves, sf_value);
    p->versions = SF_ARRAY(arena, p->nturns + 1, local_version *);
    for (uint32_t turn = 0; turn <= p->nturns; turn++) {
        p->versions[turn] = SF_ARRAY(arena, m->nversions, local_version);
        for (size_t v = 0; v < m->nversions; v++)
            p->versions[turn][v] = (local_version){SF_NONE, SF_NONE};
    }
    for (size_t i = 0; i < ninstances; i++)
        p->due[i] = NEVER;
    for (uint32_t i = 0; i < m->nmoves; i++) {
        uint32_t from = version_same(p, m->moves[i].from);
        p->sums[i] = SF_NONE;
        if (!turn_lands(p->t, &m->moves[i]))
            continue;
        p->next_landing[i] = p->landing_of[from];
        p->landing_of[from] = i + 1;
    }
    find_places(p);
    p->doings = SF_ARRAY(arena, p->nplaces + 1, doings);
}

static sf_status build_pipe(piping *p)
{
    SF_TRY(turn_plan(p->t));
    if (p->t->nloops > 1)
        return sf_fail(p->t->b->diag, SF_EWRONG, SF_NOWHERE,
                       "a pipeline cannot run this step: what its turns need of the whole batch "
                       "takes a pass over all of them first");
    open_pipe(p);
    find_leading(p);
    find_wanted(p);
    list_messages(p);
    find_held(p);
    add_arguments(p);
    SF_TRY(add_tasks(p));
    add_results(p);
    return SF_OK;
}

sf_status sf_pipe_step_new(const sf_graph *graph, const sf_plan *plan, const sf_pipeline *pipeline,
                           uint32_t group, sf_pool *pool, sf_diag *diag, sf_turned *out)
{
    local_builder b = {.diag = diag};
    turning t = {.b = &b,
                 .step = graph,
                 .space = plan,
                 .turns = (int)pipeline->schedule.pipe.nturns,
                 .stages = &pipeline->stages};
    piping p = {.t = &t,
                .pipeline = pipeline,
                .pipe = &pipeline->schedule.pipe,
                .group = group,
                .nturns = pipeline->schedule.pipe.nturns};
    *out = (sf_turned){0};
    sf_status status = turn_open(&t);
    if (status == SF_OK) {
        sf_local *local = sf_alloc(sizeof *local);
        local_open(&b, local, graph, t.time, 0, pool, 0);
        status = build_pipe(&p);
        if (status == SF_OK)
            status = turn_carry_plan(&t, out);
        local_close(&b);
        sf_local_free(local);
    }
    if (status != SF_OK)
        sf_turned_free(out);
    turn_close(&t);
    return status;
}
