/* What stands in memory along the axis, by choice, and from when to when: as an estimate has it
 * (search/price/estimate.h), as far as a variable can tell by itself.
 *
 * Arguments stand all the time, a value as long as in the unsplit program; partial sums that are reduced only
 * until they are. A version that is moved stands beside what it was made of: a reduced one from there on, others from
 * their first reader, until the last. Small values count as they are made, and copies for collectives not at all. */
#include "op/op.h"
#include "search/axis/axis_builder.h"

typedef struct standing {
    axis_builder *b;
    sf_problem_builder *problem;
    uint32_t end;                          /* of the step; instruction i runs at time i + 1 */
    uint32_t *last;                        /* by value: when it, or a view of it, is read last */
    bool *is_state;                        /* by value: it goes where an argument stands */
    int64_t usage[2 * SF_MOST_STRATEGIES]; /* scratch */
} standing;

static uint32_t later_inst(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Lives */

static uint32_t inst_of_value(const standing *s, sf_reader use)
{
    return use.node == SF_NONE ? s->end : s->b->efforts->nodes[use.node].inst + 1;
}

/* When the use is over: what a view shows is read as long as the view is. */
static uint32_t end_of_use(const standing *s, sf_reader use)
{
    const sf_efforts *efforts = s->b->efforts;
    uint32_t time = inst_of_value(s, use);
    if (use.node == SF_NONE || use.operand >= s->b->graph->nodes[use.node]->nresults)
        return time;
    sf_value result = s->b->graph->nodes[use.node]->result + use.operand;
    bool is_view = efforts->place[result] != result && efforts->place[result] != SF_NONE;
    return is_view ? later_inst(time, s->last[result]) : time;
}

static void find_last_use(standing *s, sf_value value)
{
    const axis_builder *b = s->b;
    for (uint32_t u = b->readers->first[value]; u < b->readers->first[value + 1]; u++)
        s->last[value] = later_inst(s->last[value], end_of_use(s, b->readers->at[u]));
}

/* Backwards: who reads a value comes behind it. */
static void find_port_lives(standing *s)
{
    const sf_graph *graph = s->b->graph;
    const sf_block *top = graph->top;
    s->last = SF_ARRAY(&s->b->arena, graph->nvalues, uint32_t);
    s->is_state = SF_ARRAY(&s->b->arena, graph->nvalues, bool);
    for (uint32_t i = top->nnodes; i-- > 0;) {
        const sf_node *node = graph->nodes[top->nodes[i]];
        for (uint32_t r = 0; r < node->nresults; r++)
            find_last_use(s, node->result + r);
    }
    for (uint32_t r = 0; r < top->nresults; r++)
        if (s->b->readers->becomes[r] != SF_NONE)
            s->is_state[top->results[r]] = true;
}

/* Uses */

/* Which choices of an end count: all; partial sums; others; what is sent. */
typedef enum counted { ALL, SUMS, NO_SUMS, MOVED } counted;

static bool choice_counts(const axis_port *port, uint32_t k, counted which)
{
    bool sums = port->shares[(size_t)k * port->stride].kind == SF_PARTIAL;
    return which == ALL || (which == SUMS && sums) || (which == NO_SUMS && !sums) ||
           (which == MOVED && port->moved && port->moved[k]);
}

/* Between the times, both included. */
static sf_status add_use(standing *s, const axis_end *end, const sf_type *type, uint32_t from,
                         uint32_t to, counted which)
{
    const axis_port *port = &end->port;
    int64_t *usage = s->usage, most = 0;
    for (uint32_t k = 0; k < port->count; k++) {
        sf_layout layout;
        usage[k] = 0;
        if (choice_counts(port, k, which) &&
            axis_fit(s->b, type, &end->others, port->shares[(size_t)k * port->stride], &layout))
            usage[k] = (int64_t)sf_shard_bytes(type, &layout, s->b->mesh);
        most = usage[k] > most ? usage[k] : most;
    }
    return most > 0 && from <= to ? sf_problem_add_use(s->problem, port->variable, from,
                                                       (int64_t)to + 1, usage, s->b->diag)
                                  : SF_OK;
}

/* The version of a phase, where it is sent, stands from its first reader to its last. */
static sf_status add_phase(standing *s, sf_value value, const axis_end *made, int phase)
{
    const axis_builder *b = s->b;
    const axis_version *version = axis_find_version(b, made, phase);
    uint32_t first = s->end, last = 0;
    if (!version || !version->moved)
        return SF_OK;
    axis_end end = {axis_port_of(version), made->others};
    for (uint32_t u = b->readers->first[value + 1]; u-- > b->readers->first[value];) {
        sf_reader use = b->readers->at[u];
        if ((int)axis_phase(b, use) != phase)
            continue;
        uint32_t time = inst_of_value(s, use);
        first = time < first ? time : first;
        last = later_inst(last, end_of_use(s, use));
        end.others = axis_read(b, use).others;
    }
    return add_use(s, &end, sf_type_of(b->graph, value), first, last, MOVED);
}

/* What may be made as partial sums stands in the version, kept or of its only phase, that is reduced. */
static const axis_version *standing_version(const standing *s, sf_value value, const axis_end *made)
{
    const axis_builder *b = s->b;
    if (!axis_can_reduce(made) || b->readers->first[value + 1] == b->readers->first[value])
        return NULL;
    const axis_version *version = axis_find_version(b, made, AXIS_KEPT);
    for (int phase = 0; phase < SF_PHASE_COUNT && !version; phase++)
        version = axis_find_version(b, made, phase);
    return version;
}

static sf_status add_made_port(standing *s, sf_value value, const axis_end *made)
{
    const axis_builder *b = s->b;
    const sf_node *maker = sf_maker(b->graph, value);
    const sf_type *type = sf_type_of(b->graph, value);
    const axis_version *version = standing_version(s, value, made);
    if (!maker || sf_is(maker, SF_OP_CONSTANT))
        return add_use(s, made, type, 0, s->end, ALL);
    uint32_t begin = b->efforts->made[value], last = b->efforts->last[value] + 1;
    if (s->is_state[value])
        return SF_OK;
    if (!version)
        return add_use(s, made, type, begin, last, ALL);
    axis_end end = {axis_port_of(version), made->others};
    SF_TRY(add_use(s, made, type, begin, begin, SUMS));
    return add_use(s, &end, type, begin, last, ALL);
}

/* Nodes that draw random bits make all of them, and cut. */
static sf_status add_whole(standing *s)
{
    const axis_builder *b = s->b;
    for (uint32_t i = 0; i < b->graph->top->nnodes; i++) {
        const sf_node *node = b->graph->nodes[b->graph->top->nodes[i]];
        for (uint32_t r = 0; r < node->nresults && b->efforts->nodes[node->id].whole; r++) {
            axis_end whole = {.port = {b->fixed, 1, 1, &b->whole, NULL}};
            uint32_t time = b->efforts->nodes[node->id].inst + 1;
            SF_TRY(add_use(s, &whole, sf_type_of(b->graph, node->result + r), time, time, ALL));
        }
    }
    return SF_OK;
}

sf_status axis_add_memory(axis_builder *b, sf_problem_builder *problem)
{
    enum { NEGLIGIBLE = 1 << 20 };
    if (b->options->memory <= 0)
        return SF_OK;
    standing s = {.b = b, .problem = problem, .end = b->efforts->ninsts + 1};
    sf_problem_set_limit(problem, b->options->memory);
    find_port_lives(&s);
    for (size_t v = 0; v < b->graph->nvalues; v++) {
        const sf_value_info *info = &b->graph->values[v];
        sf_value value = (sf_value)v, place = b->efforts->place[v];
        if (!b->readers->is_top[v] || !b->efforts->stored[v] || place == SF_NONE ||
            sf_type_bytes(info->type) < b->options->memory / NEGLIGIBLE)
            continue;
        axis_end made = axis_made(b, value);
        if (place == value)
            SF_TRY(add_made_port(&s, value, &made));
        for (int phase = 0;
             phase < SF_PHASE_COUNT && b->readers->first[v + 1] > b->readers->first[v]; phase++)
            SF_TRY(add_phase(&s, value, &made, phase));
    }
    return add_whole(&s);
}
