/* State links by position and type. */
#include "front/role.h"
#include "front/state_linker.h"

static bool is_number(const sf_type *type)
{
    return type->rank == 0 && sf_is_float(type->dtype);
}

static bool reports_number(const sf_linker *l)
{
    for (uint32_t r = 0; r < l->graph->top->nresults; r++)
        if ((!l->taken[r] || l->graph->results[r].is_output) &&
            is_number(sf_result_type(l->graph, r)))
            return true;
    return false;
}

/* Arguments and results in their order, as many pairs of one type as can be, those that grow counting most. The table has
 * the best that can be had from argument i and result r on. Pairs at the beginning that grow are in the best of all:
 * whatever else one of the two could be in counts no more, and the other is then in none. So they are taken, and the table,
 * which is quadratic, begins after them; of most steps that is next to nothing. */
enum { GROWING = 3, PLAIN = 1, MOST_CELLS = 1 << 26 };

typedef struct alignment {
    const sf_linker *l;
    size_t narguments, nresults;
    size_t first;     /* argument and result that the table begins with */
    uint32_t *scores; /* [narguments - first + 1][nresults - first + 1] */
} alignment;

static uint32_t *score_at(const alignment *a, size_t argument, size_t result)
{
    return &a->scores[(argument - a->first) * (a->nresults - a->first + 1) + result - a->first];
}

static uint32_t score_of_pair(const alignment *a, size_t argument, size_t result)
{
    const sf_graph *graph = a->l->graph;
    uint32_t i = (uint32_t)argument, r = (uint32_t)result;
    if (sf_argument_type(graph, i) != sf_result_type(graph, r) || a->l->fed[i] || a->l->taken[r] ||
        a->l->reported[r] || graph->arguments[i].next != SF_NONE)
        return 0;
    if (a->l->numbers.of[r] != SF_NONE)
        return sf_is_new_state(a->l, r, i) ? GROWING : 0;
    if (a->l->growth.forward[r] && !a->l->relaxed && !a->l->kept[i])
        return 0;
    return sf_grows_from(&a->l->growth, r, i) ? GROWING : PLAIN;
}

static uint32_t larger_of(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static void fill_scores(const alignment *a)
{
    for (size_t i = a->narguments; i-- > a->first;)
        for (size_t r = a->nresults; r-- > a->first;) {
            uint32_t pair = score_of_pair(a, i, r);
            uint32_t skip = larger_of(*score_at(a, i + 1, r), *score_at(a, i, r + 1));
            *score_at(a, i, r) = pair ? larger_of(pair + *score_at(a, i + 1, r + 1), skip) : skip;
        }
}

static void take_alignment(sf_linker *l, const alignment *a)
{
    for (size_t i = 0; i < a->first; i++)
        sf_take_result(l, (uint32_t)i, (uint32_t)i, SF_FROM_ORDER);
    for (size_t i = a->first, r = a->first; i < a->narguments && r < a->nresults;) {
        uint32_t pair = score_of_pair(a, i, r);
        if (pair && *score_at(a, i, r) == pair + *score_at(a, i + 1, r + 1))
            sf_take_result(l, (uint32_t)i++, (uint32_t)r++, SF_FROM_ORDER);
        else if (*score_at(a, i, r) == *score_at(a, i, r + 1))
            r++;
        else
            i++;
    }
}

static void drop_link(sf_linker *l, uint32_t argument)
{
    l->taken[l->graph->arguments[argument].next] = false;
    l->graph->arguments[argument].next = SF_NONE;
    l->graph->arguments[argument].next_from = SF_FROM_NOTHING;
}

/* But for numbers, and what it reports of samples, all results are state. */
static bool gives_nothing_else(const sf_linker *l)
{
    for (uint32_t r = 0; r < l->graph->top->nresults; r++)
        if (!l->taken[r] && sf_result_type(l->graph, r)->rank > 0 &&
            (l->relaxed || !l->growth.forward[r]))
            return false;
    return true;
}

/* What does not grow is state where it lies between what does, or right after it, as keys do. A function whose
 * arguments all come back, or that reports no number, is no step; nor is one that gives tensors which are nobody's
 * state, unless its state comes first. */
static void drop_chance(sf_linker *l, const bool *before)
{
    const sf_block *top = l->graph->top;
    const sf_argument *arguments = l->graph->arguments;
    uint32_t first = SF_NONE, last = 0, links = 0;
    bool any_before = false;
    for (uint32_t i = 0; i < top->narguments; i++)
        links += arguments[i].next != SF_NONE;
    /* Where all arguments come back, those that come back as they are need not be state. */
    bool all = links == top->narguments;
    links = 0;
    for (uint32_t i = 0; i < top->narguments; i++)
        if (arguments[i].next != SF_NONE && sf_grows_from(&l->growth, arguments[i].next, i) &&
            !(all && !sf_maker(l->graph, top->results[arguments[i].next]))) {
            first = first == SF_NONE ? i : first;
            last = i;
        }
    while (first != SF_NONE && last + 1 < top->narguments && arguments[last + 1].next != SF_NONE &&
           arguments[last + 1].next == arguments[last].next + 1 &&
           !sf_is_inexact(sf_argument_type(l->graph, last + 1)->dtype))
        last++;
    for (uint32_t i = 0; i < top->narguments; i++) {
        if (!before[i] && arguments[i].next != SF_NONE &&
            (first == SF_NONE || i < first || i > last))
            drop_link(l, i);
        links += arguments[i].next != SF_NONE;
        any_before = any_before || before[i];
    }
    bool is_step = links < top->narguments && reports_number(l) &&
                   (gives_nothing_else(l) || (links > 0 && arguments[0].next != SF_NONE));
    for (uint32_t i = 0; i < top->narguments; i++)
        if (arguments[i].next != SF_NONE && !is_step && !any_before)
            drop_link(l, i);
}

/* Arguments that a step does not use are not there, but what becomes of them is. */
void sf_link_by_order(sf_linker *l)
{
    alignment a = {l, l->graph->top->narguments, l->graph->top->nresults, 0, NULL};
    bool *before = SF_ARRAY(&l->arena, a.narguments, bool);
    for (size_t i = 0; i < a.narguments; i++)
        before[i] = l->graph->arguments[i].next != SF_NONE;
    while (a.first < a.narguments && a.first < a.nresults &&
           score_of_pair(&a, a.first, a.first) == GROWING)
        a.first++;
    size_t cells = (a.narguments - a.first + 1) * (a.nresults - a.first + 1);
    if (cells > MOST_CELLS)
        return;
    a.scores = SF_ARRAY(&l->arena, cells, uint32_t);
    fill_scores(&a);
    take_alignment(l, &a);
    drop_chance(l, before);
}

void sf_link_last_state(sf_linker *l)
{
    const sf_graph *graph = l->graph;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_type *type = sf_argument_type(graph, i);
        uint32_t arguments = 0, results = 0, last = SF_NONE;
        if (!l->kept[i] || graph->arguments[i].next != SF_NONE ||
            graph->arguments[i].role != SF_ROLE_STATE)
            continue;
        for (uint32_t k = 0; k < graph->top->narguments; k++)
            arguments += l->kept[k] && graph->arguments[k].next == SF_NONE &&
                         sf_argument_type(graph, k) == type;
        for (uint32_t r = 0; r < graph->top->nresults; r++)
            if (!l->taken[r] && r != l->loss && sf_result_type(graph, r) == type) {
                results++;
                last = r;
            }
        if (arguments == 1 && results == 1)
            sf_take_result(l, i, last, SF_FROM_ORDER);
    }
}

static bool is_free_key(const sf_linker *l, uint32_t argument)
{
    return l->graph->arguments[argument].next == SF_NONE && !l->fed[argument] &&
           sf_may_be_key(sf_argument_type(l->graph, argument));
}

void sf_link_keys(sf_linker *l)
{
    const sf_block *top = l->graph->top;
    uint32_t keys = 0, next = 0;
    for (uint32_t i = 0; i < top->narguments; i++)
        keys += is_free_key(l, i);
    for (uint32_t r = 0; r < top->nresults; r++)
        keys -= !l->taken[r] && sf_may_be_key(sf_result_type(l->graph, r));
    for (uint32_t i = 0; keys == 0 && i < top->narguments; i++) {
        const sf_type *type = sf_argument_type(l->graph, i);
        if (!is_free_key(l, i))
            continue;
        while (next < top->nresults &&
               (l->taken[next] || !sf_may_be_key(sf_result_type(l->graph, next))))
            next++;
        if (next < top->nresults && sf_result_type(l->graph, next) == type)
            sf_take_result(l, i, next, SF_FROM_ORDER);
    }
}
