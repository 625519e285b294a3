/* Links by the aliases of the text, and what contradicts what. JAX pairs donated arguments with results of their type in
 * order: an alias says that a result replaces the argument, but which one does follows from the flow of data. */
#include <stdarg.h>
#include <stdio.h>

#include "front/role.h"
#include "front/state_linker.h"

sf_status sf_check_aliases(const sf_graph *graph, sf_diag *diag)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const sf_argument *argument = &graph->arguments[i];
        if (argument->next_from != SF_FROM_ALIAS)
            continue;
        if (argument->next >= graph->top->nresults ||
            sf_argument_type(graph, i) != sf_result_type(graph, argument->next))
            return sf_fail(diag, SF_EINPUT, SF_NOWHERE,
                           "argument %u is aliased to result %u, which is not of its type", i,
                           argument->next);
    }
    return SF_OK;
}

enum { SHOWN = 200 };

static const char *result_name(const sf_linker *l, uint32_t result, char text[SHOWN + 8])
{
    const char *name = result == SF_NONE ? "" : l->graph->results[result].name;
    text[0] = '\0';
    if (*name)
        snprintf(text, SHOWN + 8, ", %.*s,", SHOWN, name);
    return text;
}

/* A guess, or a word of the text, against something that is known. */
static void contradict(sf_linker *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void contradict(sf_linker *l, const char *format, ...)
{
    char text[4 * SHOWN];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (l->strict)
        l->status = sf_fail(l->diag, SF_EINPUT, SF_NOWHERE, "%s", text);
    else
        sf_warn(l->diag, SF_NOWHERE, "%s", text);
    sf_hint(l->diag, "--state ARGUMENT=RESULT,... says what becomes what; the sidecar, what an "
                     "argument is for and, in \"outputs\", which results become none");
}

/* Whether the argument grows into a result that nothing becomes, but not into `alias`. */
static bool grows_elsewhere(const sf_linker *l, uint32_t argument, uint32_t alias)
{
    const sf_graph *graph = l->graph;
    if (sf_grows_from(&l->growth, alias, argument))
        return false;
    for (uint32_t r = 0; r < graph->top->nresults; r++)
        if (!l->taken[r] && !sf_is_passed_on(l, r) &&
            sf_result_type(graph, r) == sf_argument_type(graph, argument) &&
            sf_is_new_state(l, r, argument))
            return true;
    return false;
}

/* What is against the alias: the flow of data, or another tensor that becomes that result. */
static bool is_refuted(const sf_linker *l, uint32_t argument, uint32_t alias)
{
    uint32_t next = l->graph->arguments[argument].next;
    return next != SF_NONE ? next != alias : l->taken[alias] || grows_elsewhere(l, argument, alias);
}

/* The first refuted alias, and how many there are. */
static void tell_refuted(sf_linker *l, const uint32_t *aliases, const bool *refuted)
{
    const sf_argument *arguments = l->graph->arguments;
    uint32_t first = SF_NONE, count = 0;
    for (uint32_t i = 0; i < l->graph->top->narguments; i++)
        if (refuted[i] && !l->said[i] && !l->graph->results[aliases[i]].is_output) {
            bool better = first == SF_NONE ||
                          (arguments[first].next == SF_NONE && arguments[i].next != SF_NONE);
            first = better ? i : first;
            count++;
        }
    if (first == SF_NONE)
        return;
    char name[SHOWN + 8], next[SHOWN + 8], instead[SHOWN + 80], more[40] = "";
    snprintf(instead, sizeof instead, "result %u%s is", arguments[first].next,
             result_name(l, arguments[first].next, next));
    if (count > 1)
        snprintf(more, sizeof more, " (and %u more arguments)", count - 1);
    contradict(
        l,
        "the text aliases the argument %.*s%s to result %u%s which by the flow of data is not "
        "its next value%s%s: donation pairs by type alone",
        SHOWN, arguments[first].name, more, aliases[first], result_name(l, aliases[first], name),
        arguments[first].next == SF_NONE ? "" : ", but ",
        arguments[first].next == SF_NONE ? "" : instead);
}

/* JAX pairs donated arguments and results of one type in their order. Where some become others by the flow of data, the rest
 * of both is paired in its order. */
static void pair_rest(sf_linker *l, const uint32_t *aliases, const bool *refuted)
{
    const sf_graph *graph = l->graph;
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        if (!refuted[i] || graph->arguments[i].next != SF_NONE || !l->taken[aliases[i]] ||
            l->fed[i] || grows_elsewhere(l, i, aliases[i]))
            continue;
        for (uint32_t k = 0; k < graph->top->narguments; k++)
            if (aliases[k] != SF_NONE && refuted[k] && !l->taken[aliases[k]] &&
                sf_result_type(graph, aliases[k]) == sf_argument_type(graph, i) &&
                !graph->results[aliases[k]].is_output) {
                sf_take_result(l, i, aliases[k], SF_FROM_ORDER);
                break;
            }
    }
}

/* Another result that the argument, which is made anew, may as well become: of its type, and nothing's. */
static uint32_t find_as_good(const sf_linker *l, const uint32_t *aliases, uint32_t argument)
{
    const sf_graph *graph = l->graph;
    uint32_t alias = aliases[argument], found = SF_NONE;
    if (sf_grows_from(&l->growth, alias, argument) || sf_has_path_of(graph, alias, argument) ||
        sf_may_be_key(sf_argument_type(graph, argument)))
        return SF_NONE;
    for (uint32_t r = 0; r < graph->top->nresults && found == SF_NONE; r++) {
        bool other = r != alias && r != l->loss && !l->taken[r] && !sf_is_passed_on(l, r) &&
                     sf_result_type(graph, r) == sf_argument_type(graph, argument);
        for (uint32_t k = 0; k < graph->top->narguments && other; k++)
            other = aliases[k] != r;
        found = other ? r : SF_NONE;
    }
    return found;
}

static void take_alias(sf_linker *l, const uint32_t *aliases, uint32_t i)
{
    const sf_argument *argument = &l->graph->arguments[i];
    uint32_t alias = aliases[i], other = find_as_good(l, aliases, i);
    char name[SHOWN + 8], second[SHOWN + 8];
    if (other != SF_NONE)
        contradict(
            l,
            "the text aliases the argument %.*s to result %u%s but result %u%s has its type, "
            "too, and neither is made from it element by element: the alias is followed",
            SHOWN, argument->name, alias, result_name(l, alias, name), other,
            result_name(l, other, second));
    if (l->fed[i] || (sf_is_called_batch(argument->name) && l->growth.forward[alias]))
        contradict(l,
                   "the argument %.*s is %s by %s, but the text aliases it to result %u%s so "
                   "that becomes it in the next step",
                   SHOWN, argument->name, sf_role_name(l->fed[i] ? argument->role : SF_ROLE_BATCH),
                   l->fed[i] ? "the sidecar" : "its name", alias, result_name(l, alias, name));
    sf_take_result(l, i, alias, SF_FROM_ALIAS);
}

void sf_link_by_alias(sf_linker *l, const uint32_t *aliases)
{
    sf_graph *graph = l->graph;
    char name[SHOWN + 8];
    bool *refuted = SF_ARRAY(&l->arena, graph->top->narguments, bool);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        refuted[i] = aliases[i] != SF_NONE && is_refuted(l, i, aliases[i]);
    tell_refuted(l, aliases, refuted);
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        if (aliases[i] == SF_NONE || l->said[i])
            continue;
        if (graph->results[aliases[i]].is_output)
            contradict(l,
                       "the text aliases the argument %.*s to result %u%s which is no new state "
                       "by \"outputs\" of the sidecar: it is not linked",
                       SHOWN, graph->arguments[i].name, aliases[i],
                       result_name(l, aliases[i], name));
        else if (graph->arguments[i].next == aliases[i])
            graph->arguments[i].next_from = SF_FROM_ALIAS;
        else if (!refuted[i])
            take_alias(l, aliases, i);
    }
    pair_rest(l, aliases, refuted);
}

void sf_tell_namesakes(sf_linker *l)
{
    const sf_graph *graph = l->graph;
    char name[SHOWN + 8];
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        for (uint32_t r = 0; l->fed[i] && !l->said[i] && graph->arguments[i].next == SF_NONE &&
                             r < graph->top->nresults;
             r++) {
            bool updates = l->numbers.of[r] == i && l->numbers.sure[r];
            if (l->taken[r] || sf_result_type(graph, r) != sf_argument_type(graph, i) ||
                !(updates || sf_has_path_of(graph, r, i)))
                continue;
            contradict(l,
                       "result %u%s %s the argument %.*s, which is %s by the sidecar: it does not "
                       "become it",
                       r, result_name(l, r, name),
                       updates ? "is an update of" : "has the name and the type of", SHOWN,
                       graph->arguments[i].name, sf_role_name(graph->arguments[i].role));
            break;
        }
}
