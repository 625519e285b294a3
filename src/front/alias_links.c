/* Links by the aliases of the text, which bind unless they are of memory only; and what contradicts what. */
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

/* Whether the result has the argument's path after that of something else, and grows from it. */
static bool is_namesake(const sf_linker *l, uint32_t result, uint32_t argument)
{
    const sf_graph *graph = l->graph;
    return sf_result_type(graph, result) == sf_argument_type(graph, argument) &&
           sf_has_path_of(graph, result, argument) && sf_is_new_state(l, result, argument);
}

/* The result that an argument becomes although the text aliases it to another; or SF_NONE. JAX pairs donated arguments with
 * results of their type in order, gradients and the state of other tensors included: then an alias is of memory only. It is
 * when the argument does not grow into that result, but into one that has its name and is aliased to nothing of that
 * name. */
static uint32_t refute_alias(const sf_linker *l, uint32_t argument, const uint32_t *aliases)
{
    const sf_block *top = l->graph->top;
    if (sf_grows_from(&l->growth, aliases[argument], argument))
        return SF_NONE;
    for (uint32_t r = 0; r < top->nresults; r++) {
        bool claimed = l->taken[r] || r == aliases[argument] || !is_namesake(l, r, argument);
        for (uint32_t i = 0; !claimed && i < top->narguments; i++)
            claimed = aliases[i] == r && is_namesake(l, r, i);
        if (!claimed)
            return r;
    }
    return SF_NONE;
}

enum { SHOWN = 200 };

static const char *result_name(const sf_linker *l, uint32_t result, char text[SHOWN + 8])
{
    const char *name = l->graph->results[result].name;
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

void sf_drop_refuted_aliases(sf_linker *l, uint32_t *aliases)
{
    sf_graph *graph = l->graph;
    uint32_t refuted = SF_NONE, better = SF_NONE;
    for (uint32_t i = 0; i < graph->top->narguments && refuted == SF_NONE; i++)
        if (aliases[i] != SF_NONE && (better = refute_alias(l, i, aliases)) != SF_NONE)
            refuted = i;
    if (refuted == SF_NONE)
        return;
    char first[SHOWN + 8], second[SHOWN + 8];
    contradict(
        l,
        "the text aliases the argument %.*s to result %u%s which is not made from it element "
        "by element, but result %u%s is and has its name: it is taken, and such aliases "
        "say where memory is used again",
        SHOWN, graph->arguments[refuted].name, aliases[refuted],
        result_name(l, aliases[refuted], first), better, result_name(l, better, second));
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (aliases[i] != SF_NONE && !is_namesake(l, aliases[i], i))
            aliases[i] = SF_NONE;
}

/* Of one type: the results that arguments grow into, and the one that each is aliased to. */
typedef struct matching {
    const sf_linker *l;
    uint32_t *becomes; /* by argument: its result, at first by the aliases */
    uint32_t *owners;  /* by result: the argument that it becomes, or SF_NONE */
    bool *seen;        /* by result */
    uint32_t left;     /* the result that the first argument gives up: free only for a cycle */
    bool cycle;
} matching;

/* Finds the argument a result that it grows into; who has that one finds another. The depth is that of one type's tensors. */
static bool find_grown(matching *m, uint32_t argument, int depth)
{
    enum { DEEPEST = 64 };
    const sf_graph *graph = m->l->graph;
    for (int cycle = 0; cycle < 2; cycle++)
        for (uint32_t r = 0; r < graph->top->nresults; r++) {
            uint32_t owner = m->owners[r];
            if (m->seen[r] || (cycle == 0 && r == m->left) || m->l->taken[r] ||
                sf_result_type(graph, r) != sf_argument_type(graph, argument) ||
                sf_is_passed_on(m->l, r) || !sf_is_new_state(m->l, r, argument))
                continue;
            m->seen[r] = true;
            m->cycle = m->cycle || r == m->left;
            if (owner == SF_NONE || r == m->left ||
                (depth < DEEPEST && find_grown(m, owner, depth + 1))) {
                m->becomes[argument] = r;
                m->owners[r] = argument;
                return true;
            }
        }
    return false;
}

/* Where no name speaks: JAX pairs donated arguments with the first results of their type. If one does not grow into its
 * result, but all could grow into results among which some are aliased to nothing, those are taken. If they only change
 * places the text is followed. Gives, by argument, the results that are taken instead, or SF_NONE. */
static uint32_t *refute_by_growth(sf_linker *l, const uint32_t *aliases)
{
    const sf_block *top = l->graph->top;
    uint32_t *instead = SF_ARRAY(&l->arena, top->narguments, uint32_t);
    bool cycles = false;
    for (uint32_t i = 0; i < top->narguments; i++)
        instead[i] = SF_NONE;
    for (uint32_t i = 0; i < top->narguments; i++) {
        if (aliases[i] == SF_NONE || instead[i] != SF_NONE || l->kept[i] ||
            sf_grows_from(&l->growth, aliases[i], i) || sf_has_path_of(l->graph, aliases[i], i))
            continue;
        matching m = {l,
                      SF_ARRAY(&l->arena, top->narguments, uint32_t),
                      SF_ARRAY(&l->arena, top->nresults, uint32_t),
                      SF_ARRAY(&l->arena, top->nresults, bool),
                      aliases[i],
                      false};
        for (uint32_t r = 0; r < top->nresults; r++)
            m.owners[r] = SF_NONE;
        for (uint32_t k = 0; k < top->narguments; k++) {
            m.becomes[k] = instead[k] != SF_NONE ? instead[k] : aliases[k];
            if (m.becomes[k] != SF_NONE)
                m.owners[m.becomes[k]] = k;
        }
        if (!find_grown(&m, i, 0) || (m.cycle && cycles))
            continue;
        cycles = cycles || m.cycle;
        char first[SHOWN + 8], second[SHOWN + 8];
        contradict(l,
                   "the text aliases the argument %.*s to result %u%s which is not made from it "
                   "element by element, but result %u%s is: %s",
                   SHOWN, l->graph->arguments[i].name, aliases[i],
                   result_name(l, aliases[i], first), m.becomes[i],
                   result_name(l, m.becomes[i], second),
                   m.cycle ? "the alias is followed, but may only say where memory is used again"
                           : "it is taken, and the alias says where memory is used again");
        for (uint32_t k = 0; !m.cycle && k < top->narguments; k++)
            if (m.becomes[k] != aliases[k])
                instead[k] = m.becomes[k];
    }
    return instead;
}

void sf_link_by_alias(sf_linker *l, const uint32_t *aliases)
{
    char name[SHOWN + 8];
    const uint32_t *instead = refute_by_growth(l, aliases);
    for (uint32_t i = 0; i < l->graph->top->narguments; i++)
        if (instead[i] != SF_NONE)
            sf_take_result(l, i, instead[i], SF_FROM_FLOW);
    for (uint32_t i = 0; i < l->graph->top->narguments; i++) {
        const sf_argument *argument = &l->graph->arguments[i];
        if (aliases[i] == SF_NONE || instead[i] != SF_NONE)
            continue;
        if (l->graph->results[aliases[i]].is_output)
            contradict(l,
                       "the text aliases the argument %.*s to result %u%s which is no new state "
                       "by \"outputs\" of the sidecar: it is not linked",
                       SHOWN, argument->name, aliases[i], result_name(l, aliases[i], name));
        if (l->taken[aliases[i]])
            continue;
        if (l->fed[i] || (sf_is_called_batch(argument->name) && l->growth.forward[aliases[i]]))
            contradict(l,
                       "the argument %.*s is %s by %s, but the text aliases it to result %u%s so "
                       "that becomes it in the next step",
                       SHOWN, argument->name,
                       sf_role_name(l->fed[i] ? argument->role : SF_ROLE_BATCH),
                       l->fed[i] ? "the sidecar" : "its name", aliases[i],
                       result_name(l, aliases[i], name));
        sf_take_result(l, i, aliases[i], SF_FROM_ALIAS);
    }
}

void sf_tell_namesakes(sf_linker *l)
{
    const sf_graph *graph = l->graph;
    char name[SHOWN + 8];
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        for (uint32_t r = 0;
             l->fed[i] && graph->arguments[i].next == SF_NONE && r < graph->top->nresults; r++) {
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
