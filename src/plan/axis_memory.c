/* What stands in memory along the axis, by choice, and from when to when.
 *
 * Arguments stand all the time. A value stands from its maker to its last reader, in the version in which it
 * is kept; what was made of it as partial sums only until these are reduced, right away. A version that has
 * grown stands while its phase reads it. A view stands where its operand stands. */
#include "plan/axis_build.h"

typedef struct standing {
    axis_builder *b;
    sf_problem_builder *problem;
    uint32_t *last;                        /* by value: when it, or a view of it, was read last */
    bool *is_state;                        /* by value: it goes where an argument stands */
    int64_t usage[2 * SF_MOST_STRATEGIES]; /* scratch */
} standing;

/* Which choices of an end count. */
typedef enum counted { ALL, SUMS, NO_SUMS, GROWN } counted;

static sf_status add_use(standing *s, const axis_end *end, const sf_type *type, uint32_t from,
                         uint32_t to, counted which)
{
    const axis_port *port = &end->port;
    int64_t *usage = s->usage, most = 0;
    for (uint32_t k = 0; k < port->count; k++) {
        usage[k] = 0;
        sf_share share = port->shares[(size_t)k * port->stride];
        sf_layout layout;
        bool counts = which == ALL || (which == GROWN && port->grown && port->grown[k]) ||
                      (which == SUMS && share.kind == SF_PARTIAL) ||
                      (which == NO_SUMS && share.kind != SF_PARTIAL);
        if (counts && axis_fit(s->b, type, &end->others, share, &layout))
            usage[k] = (int64_t)sf_piece_bytes(type, &layout, s->b->mesh);
        most = usage[k] > most ? usage[k] : most;
    }
    return most > 0 ? sf_problem_add_use(s->problem, port->variable, from, to, usage, s->b->diag)
                    : SF_OK;
}

static void find_lives(standing *s)
{
    const axis_builder *b = s->b;
    const sf_graph *graph = b->graph;
    s->last = SF_ARRAY(&s->b->arena, graph->nvalues, uint32_t);
    s->is_state = SF_ARRAY(&s->b->arena, graph->nvalues, bool);
    for (size_t v = 0; v < graph->nvalues; v++) {
        sf_value place = b->efforts->place[v];
        for (uint32_t u = b->first_use[v]; u < b->first_use[v + 1] && place != SF_NONE; u++)
            if (axis_time(b, b->uses[u]) > s->last[place])
                s->last[place] = axis_time(b, b->uses[u]);
    }
    for (uint32_t r = 0; r < graph->top->nresults; r++)
        if (b->becomes[r] != SF_NONE)
            s->is_state[graph->top->results[r]] = true;
}

/* The grown version of a phase stands from its first reader to its last. */
static sf_status add_phases(standing *s, sf_value value, const axis_end *made)
{
    const axis_builder *b = s->b;
    const sf_type *type = sf_type_of(b->graph, value);
    for (int phase = 0; phase < SF_PHASE_COUNT; phase++) {
        const axis_version *version = axis_find_version(b, made, phase);
        uint32_t first = UINT32_MAX, last = 0;
        axis_end end = {.others = made->others};
        for (uint32_t u = b->first_use[value]; version && u < b->first_use[value + 1]; u++) {
            if ((int)axis_phase(b, b->uses[u]) != phase)
                continue;
            uint32_t time = axis_time(b, b->uses[u]);
            first = time < first ? time : first;
            last = time > last ? time : last;
            end.others = axis_read(b, b->uses[u]).others;
        }
        if (!version || first == UINT32_MAX || !version->grown)
            continue;
        end.port = (axis_port){version->variable, (uint32_t)version->count, 1, version->shares,
                               version->grown};
        SF_TRY(add_use(s, &end, type, first, last + 1, GROWN));
    }
    return SF_OK;
}

/* The version, kept or of its only phase, in which the value stands; NULL: as it was made. */
static const axis_version *standing_version(const standing *s, sf_value value, const axis_end *made)
{
    const axis_version *version = axis_find_version(s->b, made, AXIS_KEPT);
    for (int phase = 0; phase < SF_PHASE_COUNT && !version; phase++)
        version = axis_find_version(s->b, made, phase);
    return s->b->first_use[value + 1] > s->b->first_use[value] ? version : NULL;
}

static sf_status add_value(standing *s, sf_value value)
{
    const axis_builder *b = s->b;
    const sf_node *maker = sf_maker(b->graph, value);
    const sf_type *type = sf_type_of(b->graph, value);
    axis_end made = axis_made(b, value);
    uint32_t begin = maker ? b->position[maker->id] : 0;
    if (!maker)
        SF_TRY(add_use(s, &made, type, 0, b->graph->top->nnodes + 2, ALL));
    SF_TRY(add_phases(s, value, &made));
    if (!maker || s->is_state[value] || s->last[value] < begin)
        return SF_OK;
    const axis_version *version = standing_version(s, value, &made);
    if (!version)
        return add_use(s, &made, type, begin, s->last[value] + 1, ALL);
    bool kept = version->phase == AXIS_KEPT;
    axis_end end = {{version->variable, (uint32_t)version->count, 1, version->shares, NULL},
                    made.others};
    SF_TRY(add_use(s, &made, type, begin, begin + 1, SUMS));
    return add_use(s, &end, type, begin, s->last[value] + 1, kept ? ALL : NO_SUMS);
}

sf_status axis_add_memory(axis_builder *b, sf_problem_builder *problem)
{
    enum { NEGLIGIBLE = 1 << 20 };
    if (b->options->memory <= 0)
        return SF_OK;
    standing s = {.b = b, .problem = problem};
    sf_problem_set_limit(problem, b->options->memory);
    find_lives(&s);
    for (size_t v = 0; v < b->graph->nvalues; v++) {
        const sf_value_info *info = &b->graph->values[v];
        if (b->is_top[v] && b->efforts->stored[v] && b->efforts->place[v] == (sf_value)v &&
            sf_type_bytes(info->type) >= b->options->memory / NEGLIGIBLE)
            SF_TRY(add_value(&s, (sf_value)v));
    }
    return SF_OK;
}
