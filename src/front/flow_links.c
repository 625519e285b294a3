/* Links by the flow of data: of the pairs of a result and an argument that it grows from, those that all ways to give as many
 * arguments as can be a result of their own have in common. Momentum m' = b m + g and p' = p - r m' grow from m, and from p
 * and m: p' cannot be the next m and leave one for p. Where several ways are as good, only results count that keep the value
 * of the argument, as new parameters do, and then multiples of it. */
#include "front/role.h"
#include "front/state_linker.h"

/* A search goes on from one pair to the next; a longer chain of tensors of one type is taken for undecided. */
enum { DEEPEST = 256 };

typedef struct matcher {
    sf_linker *l;
    size_t *first;     /* by argument: its results are results[first[i]] .. results[first[i + 1]] */
    uint32_t *results; /* those that may be its next value */
    size_t *first_of;  /* the same by result */
    uint32_t *arguments;
    uint32_t *becomes; /* by argument: a result, or SF_NONE */
    uint32_t *owners;  /* by result: the argument that becomes it, or SF_NONE */
    uint32_t *seen;    /* by result: the last search that came by */
    uint32_t search;
} matcher;

static bool may_become(const sf_linker *l, uint32_t result, uint32_t argument)
{
    const sf_type *type = sf_argument_type(l->graph, argument);
    bool is_number = type->rank == 0 && sf_is_inexact(type->dtype);
    return sf_result_type(l->graph, result) == type && !l->taken[result] && !l->reported[result] &&
           l->graph->arguments[argument].next == SF_NONE && !l->fed[argument] &&
           !sf_is_passed_on(l, result) && (!is_number || l->numbers.of[result] == argument) &&
           sf_is_new_state(l, result, argument);
}

static void find_pairs(matcher *m, sf_growing least)
{
    const sf_block *top = m->l->graph->top;
    const sf_growth *growth = &m->l->growth;
    size_t all = growth->first[top->nresults], count = 0;
    m->first = SF_ARRAY(&m->l->arena, top->narguments + 2, size_t);
    m->first_of = SF_ARRAY(&m->l->arena, top->nresults + 1, size_t);
    m->results = SF_ARRAY(&m->l->arena, all, uint32_t);
    m->arguments = SF_ARRAY(&m->l->arena, all, uint32_t);
    for (uint32_t r = 0; r < top->nresults; r++) {
        for (size_t k = growth->first[r]; k < growth->first[r + 1]; k++)
            if (growth->how[k] <= least && may_become(m->l, r, growth->arguments[k])) {
                m->arguments[count++] = growth->arguments[k];
                m->first[growth->arguments[k] + 2]++;
            }
        m->first_of[r + 1] = count;
    }
    for (uint32_t i = 0; i < top->narguments; i++)
        m->first[i + 2] += m->first[i + 1];
    for (uint32_t r = 0; r < top->nresults; r++)
        for (size_t k = m->first_of[r]; k < m->first_of[r + 1]; k++)
            m->results[m->first[m->arguments[k] + 1]++] = r;
}

/* Finds the argument a result; who has that one finds another. */
static bool find_result(matcher *m, uint32_t argument, int depth)
{
    for (size_t k = m->first[argument]; k < m->first[argument + 1]; k++) {
        uint32_t r = m->results[k];
        if (m->seen[r] == m->search)
            continue;
        m->seen[r] = m->search;
        if (m->owners[r] == SF_NONE ||
            (depth < DEEPEST && find_result(m, m->owners[r], depth + 1))) {
            m->becomes[argument] = r;
            m->owners[r] = argument;
            return true;
        }
    }
    return false;
}

/* Whether the argument, or who gives way to it, can have another result than `but`, or one that nobody has. */
static bool has_other_result(matcher *m, uint32_t argument, uint32_t but, int depth)
{
    for (size_t k = m->first[argument]; k < m->first[argument + 1]; k++) {
        uint32_t r = m->results[k];
        if (m->seen[r] == m->search || (depth == 0 && r == but))
            continue;
        m->seen[r] = m->search;
        if (m->owners[r] == SF_NONE || r == but || depth == DEEPEST ||
            has_other_result(m, m->owners[r], but, depth + 1))
            return true;
    }
    return false;
}

/* Whether an argument that has no result can have this one, or that of one that then takes this one. */
static bool has_other_argument(matcher *m, uint32_t result, int depth)
{
    m->seen[result] = m->search;
    for (size_t k = m->first_of[result]; k < m->first_of[result + 1]; k++) {
        uint32_t other = m->becomes[m->arguments[k]];
        if (other == SF_NONE || depth == DEEPEST ||
            (m->seen[other] != m->search && has_other_argument(m, other, depth + 1)))
            return true;
    }
    return false;
}

/* Takes the pairs that all the largest matchings have. */
static bool take_certain(sf_linker *l, sf_growing least)
{
    const sf_block *top = l->graph->top;
    bool any = false;
    sf_mark mark = sf_arena_mark(&l->arena);
    matcher m = {.l = l,
                 .becomes = SF_ARRAY(&l->arena, top->narguments, uint32_t),
                 .owners = SF_ARRAY(&l->arena, top->nresults, uint32_t),
                 .seen = SF_ARRAY(&l->arena, top->nresults, uint32_t)};
    find_pairs(&m, least);
    for (uint32_t i = 0; i < top->narguments; i++)
        m.becomes[i] = SF_NONE;
    for (uint32_t r = 0; r < top->nresults; r++)
        m.owners[r] = SF_NONE;
    for (uint32_t i = 0; i < top->narguments; i++) {
        m.search++;
        find_result(&m, i, 0);
    }
    for (uint32_t i = 0; i < top->narguments; i++) {
        uint32_t r = m.becomes[i];
        if (r == SF_NONE)
            continue;
        m.search++;
        bool certain = !has_other_result(&m, i, r, 0);
        m.search++;
        if (certain && !has_other_argument(&m, r, 0) &&
            sf_how_it_grows(&l->growth, r, i) <= SF_GROWS_SCALED) {
            sf_take_result(l, i, r, SF_FROM_FLOW);
            any = true;
        }
    }
    sf_arena_reset(&l->arena, mark);
    return any;
}

/* The argument that the result is, SF_NONE if it is made. */
static uint32_t passed_on_by(const sf_linker *l, uint32_t result)
{
    const sf_graph *graph = l->graph;
    sf_value value = graph->top->results[result];
    uint32_t of = graph->values[value].index;
    bool is = sf_is_passed_on(l, result) && of < graph->top->narguments &&
              graph->top->arguments[of] == value && sf_argument_type(graph, of)->rank > 0;
    return is ? of : SF_NONE;
}

static bool is_passed_on_freely(const sf_linker *l, uint32_t argument)
{
    for (uint32_t r = 0; r < l->graph->top->nresults; r++)
        if (!l->taken[r] && passed_on_by(l, r) == argument)
            return true;
    return false;
}

/* The old value of other state is the next value of the one argument of its type and path that has none; of several, of the
 * one whose own value goes on in turn. */
static bool link_moved(sf_linker *l, uint32_t result)
{
    const sf_graph *graph = l->graph;
    uint32_t of = passed_on_by(l, result), found = SF_NONE, count = 0, turns = 0;
    uint32_t next = of == SF_NONE ? SF_NONE : graph->arguments[of].next;
    if (next == SF_NONE || next == result || l->taken[result])
        return false;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        if (sf_argument_type(graph, i) != sf_result_type(graph, result) ||
            graph->arguments[i].next != SF_NONE || l->fed[i] ||
            sf_is_called_batch(graph->arguments[i].name) || !sf_has_path_of(graph, result, i))
            continue;
        bool turn = is_passed_on_freely(l, i);
        found = found == SF_NONE || (turn && turns == 0) ? i : found;
        turns += turn;
        count++;
    }
    if (count != 1 && turns != 1)
        return false;
    sf_take_result(l, found, result, SF_FROM_FLOW);
    return true;
}

/* State that the step passes on as it is stays what it is. */
static void link_unchanged(sf_linker *l, uint32_t result)
{
    uint32_t of = passed_on_by(l, result);
    if (of != SF_NONE && !l->taken[result] && l->kept[of] &&
        l->graph->arguments[of].next == SF_NONE)
        sf_take_result(l, of, result, SF_FROM_FLOW);
}

void sf_link_by_flow(sf_linker *l)
{
    uint32_t count = l->graph->top->nresults;
    bool any;
    take_certain(l, SF_GROWS_ANYHOW);
    do {
        any = take_certain(l, SF_GROWS_KEPT) || take_certain(l, SF_GROWS_SCALED);
        for (uint32_t r = 0; r < count; r++)
            any = link_moved(l, r) || any;
    } while (any);
    for (uint32_t r = 0; r < count; r++)
        link_unchanged(l, r);
}
