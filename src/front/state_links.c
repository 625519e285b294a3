#include "front/state_links.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "front/find_loss.h"
#include "front/role.h"
#include "front/state_linker.h"

static void set_next(sf_argument *argument, uint32_t result, sf_source from)
{
    argument->next = result;
    argument->next_from = from;
}

bool sf_any_link(const sf_graph *graph)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (graph->arguments[i].next != SF_NONE)
            return true;
    return false;
}

/* By hand */

/* The argument or result that a number or a name means; SF_NONE when there is none. */
static uint32_t find_named_argument(const sf_graph *graph, const char *text)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    if (*text && !*end)
        return number < graph->top->narguments ? (uint32_t)number : SF_NONE;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (strcmp(graph->arguments[i].name, text) == 0)
            return i;
    return SF_NONE;
}

static uint32_t find_named_result(const sf_graph *graph, const char *text)
{
    char *end;
    unsigned long number = strtoul(text, &end, 10);
    if (*text && !*end)
        return number < graph->top->nresults ? (uint32_t)number : SF_NONE;
    for (uint32_t i = 0; i < graph->top->nresults; i++)
        if (strcmp(graph->results[i].name, text) == 0)
            return i;
    return SF_NONE;
}

static sf_status link_by_hand(sf_graph *graph, char *pair, sf_source from, sf_diag *diag)
{
    bool in_file = from == SF_FROM_SIDECAR;
    sf_status wrong = in_file ? SF_EINPUT : SF_EUSAGE;
    const char *where = in_file ? "\"state\" of the sidecar" : "state";
    char *equals = strrchr(pair, '=');
    if (!equals)
        return sf_fail(diag, wrong, SF_NOWHERE, "%s: \"%s\" is not ARGUMENT=RESULT", where, pair);
    *equals = 0;
    uint32_t argument = find_named_argument(graph, pair);
    uint32_t result = find_named_result(graph, equals + 1);
    if (argument == SF_NONE)
        return sf_fail(diag, wrong, SF_NOWHERE, "%s: there is no argument \"%s\"", where, pair);
    if (result == SF_NONE)
        return sf_fail(diag, wrong, SF_NOWHERE, "%s: there is no result \"%s\"", where, equals + 1);
    if (sf_argument_type(graph, argument) != sf_result_type(graph, result))
        return sf_fail(diag, wrong, SF_NOWHERE,
                       "%s: argument %u and result %u have different types", where, argument,
                       result);
    if (graph->arguments[argument].next != SF_NONE)
        return sf_fail(diag, wrong, SF_NOWHERE, "%s: argument %u comes twice", where, argument);
    set_next(&graph->arguments[argument], result, from);
    return SF_OK;
}

static sf_status links_by_hand(sf_graph *graph, const char *state, sf_source from, sf_diag *diag)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        set_next(&graph->arguments[i], SF_NONE, SF_FROM_NOTHING);
    if (strcmp(state, "none") == 0)
        return SF_OK;
    char *text = sf_arena_string(&graph->arena, state, strlen(state));
    while (text) {
        char *comma = strchr(text, ',');
        if (comma)
            *comma++ = 0;
        SF_TRY(link_by_hand(graph, text, from, diag));
        text = comma;
    }
    return SF_OK;
}

/* By what may be the loss as long as links are not known. */
static void find_growth(sf_linker *l)
{
    const sf_graph *graph = l->graph;
    uint32_t *becomes = SF_ARRAY(&l->arena, graph->nvalues, uint32_t);
    bool *kept = SF_ARRAY(&l->arena, graph->top->narguments, bool);
    l->growth = sf_growth_of(graph, NULL, &l->arena);
    for (uint32_t r = 0; r < graph->top->nresults; r++)
        for (size_t k = l->growth.first[r]; k < l->growth.first[r + 1]; k++) {
            uint32_t i = l->growth.arguments[k];
            kept[i] = kept[i] || (sf_result_type(graph, r) == sf_argument_type(graph, i) &&
                                  !sf_is_passed_on(l, r));
        }
    bool *needed = sf_needed_by(graph, becomes, sf_guess_loss(graph, becomes, kept, false));
    l->growth = sf_growth_of(graph, needed, &l->arena);
    sf_free(needed);
}

/* Texts without locations have names of results alone: of arguments the numbers. */
static bool has_names(const sf_graph *graph)
{
    for (uint32_t i = 0; i < graph->top->narguments; i++) {
        const char *name = graph->arguments[i].name;
        bool is_number =
            strncmp(name, "arg", 3) == 0 && name[3] && !name[3 + strspn(name + 3, "0123456789")];
        if (*name && !is_number)
            return true;
    }
    return false;
}

static void guess_links(sf_linker *l)
{
    const sf_graph *graph = l->graph;
    bool arguments = has_names(graph);
    bool results = graph->top->nresults > 0 && *graph->results[0].name;
    bool any = sf_any_link(graph);
    if (arguments && results)
        sf_link_by_name(l);
    else if (arguments || results)
        sf_link_trees(l, arguments);
    if (!(arguments && results ? sf_any_link(graph) : any))
        sf_link_by_order(l);
}

static void infer_links(sf_linker *l)
{
    sf_graph *graph = l->graph;
    const sf_block *top = graph->top;
    uint32_t *aliases = SF_ARRAY(&l->arena, top->narguments, uint32_t);
    l->taken = SF_ARRAY(&l->arena, top->nresults, bool);
    l->fed = SF_ARRAY(&l->arena, top->narguments, bool);
    l->kept = SF_ARRAY(&l->arena, top->narguments, bool);
    for (uint32_t r = 0; r < top->nresults; r++)
        l->taken[r] = graph->results[r].is_output;
    for (uint32_t i = 0; i < top->narguments; i++) {
        sf_argument *argument = &graph->arguments[i];
        bool aliased = argument->next_from == SF_FROM_ALIAS;
        aliases[i] = aliased ? argument->next : SF_NONE;
        set_next(argument, SF_NONE, SF_FROM_NOTHING);
        bool said = argument->role_from == SF_FROM_SIDECAR;
        l->fed[i] = said && (argument->role == SF_ROLE_BATCH || argument->role == SF_ROLE_OTHER);
        l->kept[i] = said && (argument->role == SF_ROLE_PARAM || argument->role == SF_ROLE_STATE);
    }
    l->numbers = sf_find_number_state(graph, &l->arena);
    l->reported = sf_find_reported(graph, false, &l->arena);
    for (uint32_t r = 0; r < top->nresults; r++) /* what is donated is state */
        if (l->numbers.of[r] != SF_NONE && aliases[l->numbers.of[r]] != SF_NONE)
            l->numbers.sure[r] = true;
    find_growth(l);
    sf_drop_refuted_aliases(l, aliases);
    sf_link_by_alias(l, aliases);
    guess_links(l);
    l->relaxed = !sf_any_link(graph);
    if (l->relaxed)
        guess_links(l);
    if (sf_any_link(graph))
        sf_link_keys(l);
    sf_tell_namesakes(l);
}

sf_status sf_link_state(sf_graph *graph, const char *state, sf_source from, bool strict,
                        sf_diag *diag)
{
    SF_TRY(sf_check_aliases(graph, diag));
    if (state)
        return links_by_hand(graph, state, from, diag);
    sf_linker l = {.graph = graph, .diag = diag, .strict = strict};
    infer_links(&l);
    sf_arena_free(&l.arena);
    return l.status;
}
